"""Parts of a list that are taken in their turn: what follows for the others when one is taken.

A price may rest on the order in which parts read the data, as that of a series does whose units count in few blocks.
Such parts form chains. Taking one passes over those before it, which wait no more; and the one that was taken last is
over: if its answer is not stored by then, it never will be.

So of one chain, parts that are answered read the data in their order. Sketch: let a part be answered, and a later one
of its chain too. Had the later one been taken first, the earlier would have been passed over. So the earlier was taken
first, and its answer was stored before the later was taken: it read before that, and the later part reads after it was
taken and opened.
"""

from __future__ import annotations

from collections.abc import Iterable

# Of each chain: the receipt of the part that was taken last, and the hashes of those that may still be.
Chains = tuple[tuple[str, tuple[str, ...]], ...]


def chains_of(parts: Iterable[Iterable[str]]) -> Chains:
    """Before any of them was taken."""
    return tuple(("", tuple(hashes)) for hashes in parts)


def in_turn(chains: Chains, plan_hash: str, receipt: str) -> tuple[Chains, tuple[str, ...], str]:
    """The chains after this part was taken with this receipt, the parts before it that are passed over, and the receipt
    of the one that is over; nothing of the sort for a part that has no turn."""
    for place, (last, hashes) in enumerate(chains):
        if plan_hash in hashes:
            at = hashes.index(plan_hash)
            after = (*chains[:place], (receipt, hashes[at + 1 :]), *chains[place + 1 :])
            return after, hashes[:at], last
    return chains, (), ""
