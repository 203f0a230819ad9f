"""What the guarantee does not cover, said of this very release or account. After docs/promise.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ..units import Unit
from .accounts.register import Declared


class Gap(NamedTuple):
    """What is not protected, and what to know about it."""

    what: str
    why: str


_ALWAYS = (
    Gap(
        "what was asked, when, by whom and at what price",
        "Queries, purposes, names, prices and the number of releases stand in the ledger as they are.",
    ),
    Gap(
        "what was declared public",
        "Column names, types, bounds, categories, listed groups, public tables and the data's version. If they "
        "were taken from the data, they leak.",
    ),
    Gap("answered or failed", "Whether a paid release fails is one bit about the data, which no noise hides."),
    Gap("time and memory", "How long a run takes tells roughly how many rows and groups there are."),
    Gap(
        "facts about groups",
        "That smokers fall ill more often is learned with or without any one person. That is the purpose.",
    ),
    Gap("the data itself", "The guarantee is about answers. Whoever gets at the tables themselves reads them."),
    Gap(
        "releases that are not in this ledger",
        "Tables, models or dashboards made of the same people elsewhere add to what can be learned.",
    ),
)

_UNITS = {
    "replace": Gap("how many units there are", "Neighbours exchange one for another, so the number of them is public."),
    "zero-out": Gap("how many units there are", "Neighbours blank one out, so the number of them is public."),
}


def gaps(
    units: Iterable[Unit],
    loops: Iterable[str],
    delta: bool,
    declared: Iterable[Declared],
    block: bool = False,
    above: str | None = None,
    grades: Iterable[str] = (),
) -> list[Gap]:
    """The list, what is special first.

    declared  what the register names; `block`: is it about the budget of one block?
    above     the account that this one is a part of
    grades    of the noise
    """
    listed = [*_declared(declared), *_of_grades(grades), *_of_units(units), *_of_loops(loops, delta, block)]
    if above is not None and not block:
        what = "what other accounts release of the same people"
        listed.append(Gap(what, f"This budget is a part of account {above}: what all of them add up to is told there."))
    return list(dict.fromkeys([*listed, *_ALWAYS]))


def _declared(declared: Iterable[Declared]) -> Iterator[Gap]:
    for entry in declared:
        kind = "left without differential privacy" if entry.of == "without DP" else "is published exactly"
        yield Gap(f"{entry.text} ({kind})", f"Register, entry {entry.number}: to {entry.recipients}, of {entry.data}.")


def _of_grades(grades: Iterable[str]) -> Iterator[Gap]:
    if any(grade != "exact" for grade in grades):
        yield Gap(
            "what floating-point noise shows",
            "Some noise is of float grade (secure_noise = false): its lowest bits, and a generator that somebody might "
            "guess, may tell more than the guarantee says.",
        )


def _of_units(units: Iterable[Unit]) -> Iterator[Gap]:
    for unit in dict.fromkeys(units):
        if not unit.of_kind.many:
            yield Gap(
                "a person with several rows",
                f"The unit is one {unit.noun}: ten rows of one person are ten times exposed.",
            )
        else:
            yield Gap(
                f"several {unit.noun}s together",
                f"What one {unit.noun} contributed is hidden. What several have in common, as a household or a firm, "
                "is hidden less the more they are."
                if unit.group == 1
                else f"Any {unit.group} together are hidden; larger groups are hidden less.",
            )
        if unit.change in _UNITS:
            yield _UNITS[unit.change]


def _of_loops(loops: Iterable[str], delta: bool, block: bool) -> Iterator[Gap]:
    if any(loop.startswith("trusted ") for loop in loops):
        yield Gap(
            "what the user's own loop did", "Its code saw the data. The guarantee covers what it released by the run."
        )
    if delta:
        yield Gap(
            "rare outcomes",
            "They may tell more than epsilon says. Delta bounds what all of them together add to any attacker's "
            "chance; it is not the probability of such an outcome, which may be larger.",
        )
    if block:
        yield Gap(
            "what a unit has in other blocks", "This budget is for one block; the data set's own account sums them."
        )
