"""All faults, area by area, and a few that stand for them."""

from __future__ import annotations

from .faults import (
    accountants,
    clipping,
    door,
    ledger,
    lowered_words,
    noise,
    owners,
    queries,
    reading,
    splitting,
    training,
)
from .mutant import Mutant

MUTANTS: tuple[Mutant, ...] = tuple(
    fault
    for area in (
        noise,
        reading,
        clipping,
        splitting,
        accountants,
        ledger,
        queries,
        lowered_words,
        owners,
        door,
        training,
    )
    for fault in area.FAULTS
)

_FEW = (
    "half the scale",
    "the step follows the answer",
    "selections at twice the rate",
    "a column with a NULL is read as a list",
    "only the upper bound makes the sensitivity",
    "a group counts as one",
    "every winner gets the whole epsilon",
    "the classic formula for Gaussian noise",
    "sampling at half the rate",
    "a failure gives the charge back",
    "accounts never lock",
    "a part of a list is taken for good",
    "parts of a SELECT that are not known are passed over",
    "errors tell what went wrong with the data",
    "any receipt opens the data",
    "batches of a shuffled order",
)
"""Of each area the faults that take least time to notice."""

QUICK: tuple[Mutant, ...] = tuple(each for each in MUTANTS if each.name in _FEW)
