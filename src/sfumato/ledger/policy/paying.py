"""Who pays from what, where the policy lists people on accounts.

Only those whom an account lists pay from it, or from what is below it. And as soon as people are listed on the account
of a data set, or below it, whoever reads that data pays from an account that lists them, the lowest that does: a person
who could name the account above it would leave their own cap out. An account that lists nobody belongs to those above.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from .policy import Policy


def refusal(
    policy: Policy, who: str, paying: Iterable[str], data: Iterable[str], parent: Callable[[str], str | None]
) -> str | None:
    """Why they may not pay so; None where they may.

    paying  the accounts with a limit that are charged: those named, the data's, and all above
    data    the accounts of the data that is read
    parent  the account right above one in the ledger
    """
    listed = {rule.name: rule.people for rule in policy.accounts if rule.people}
    if not listed:
        return None
    rules = {rule.name: rule.parent for rule in policy.accounts}
    known: dict[str, set[str]] = {}

    def over(name: str) -> set[str]:
        """The account itself and all above it: in the ledger, and where the policy wants it."""
        if name not in known:
            found, todo = set[str](), [name]
            while todo:
                each = todo.pop()
                if each not in found:
                    found.add(each)
                    todo += [above for above in (parent(each), rules.get(each)) if above is not None]
            known[name] = found
        return known[name]

    charged = set[str]().union(*map(over, paying))
    others = sorted(name for name in charged if name in listed and who not in listed[name])
    if others:
        return f"account {others[0]!r} is not yours to pay from: the policy lists who does"
    mine = [name for name, people in listed.items() if who in people]
    for root in data:
        own = [name for name in mine if root in over(name)]
        lowest = {name for name in own if not any(name in over(each) and each not in over(name) for each in own)}
        if own and not lowest & charged:
            return f"name the account that you pay from: {' or '.join(map(repr, sorted(lowest)))}, or one below"
        if not own and any(root in over(name) for name in listed):
            return f"name the account that you pay from: the policy lists who pays for {root!r}, and you nowhere there"
    return None
