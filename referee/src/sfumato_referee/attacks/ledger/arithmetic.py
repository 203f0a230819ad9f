"""L11 and L12: sums are exact, and only a cost is a cost.

L11. What is spent is a sum of fractions, each the exact number that was asked for: ten times 0.1 is 1, three times 1/3
is 1, and then the smallest spend is refused. A million times 10^-6 is spent from an account's filter, which is where
ledgers add up. The planted bug adds up floats.

L12. Negative, infinite and missing numbers, texts, events that were changed after their checks, alone or inside others,
and things that are no events at all buy nothing: nothing is accepted, and the ledger is as it was. The planted bug
gives away what it cannot price.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from sfumato import events
from sfumato.accounting.filters import Budget, Filter
from sfumato.audit import surface
from sfumato.combine import reserve
from sfumato.errors import BudgetError, SfumatoError
from sfumato.events import Event
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.stores.memory import MemoryStore
from sfumato.ledger.stores.sqlite import SQLiteStore
from sfumato.plan import Receipt

from ...mutants.ledgers import FloatSums, Unpriced
from ..verdict import Verdict
from .ground import ROW, Choices, count, folder, pay, spent

Kind = Callable[[Any], Ledger]
SUMS: tuple[tuple[Any, int], ...] = ((0.1, 10), (Fraction(1, 3), 3), (0.01, 100), (Fraction(1, 7), 7))
LEAST = Fraction(1, 10**9)  # the smallest epsilon that a plan may have


def attack(*, kind: Kind = Ledger, times: int = 30_000, small: int = 10**6) -> Verdict:
    """L11: each sum on a ledger that is opened anew for every spend, `times` times 1/times in memory, and `small` times
    1/small from a filter."""
    wrong = _filtered(small) if small else []
    with folder() as home:
        for number, (part, parts) in enumerate(SUMS):
            wrong += across_restarts(home / str(number), part, parts, kind)
    ledger = kind(MemoryStore())
    ledger.open_account("a", Budget(epsilon=1))
    plan, paid = count(Fraction(1, times)), 0
    with suppress(BudgetError):
        for _ in range(times + 1):
            pay(ledger, plan)
            paid += 1
    wrong += _judged(ledger, Fraction(1, times), times, paid)
    sums = len(SUMS) + 1 + bool(small)
    words = f"{sums} sums of up to {max(times, small)} parts: "
    words += wrong[0] if wrong else "each exactly 1, and not more."
    return Verdict("L11", bool(wrong), words, {"sums": sums, "wrong": len(wrong)})


def across_restarts(place: Path, part: Any, parts: int, kind: Kind = Ledger) -> list[str]:
    """So many parts of 1, each spent from a ledger that is opened anew for it, and one more."""
    with kind(SQLiteStore(place, create=True)) as ledger:
        ledger.open_account("a", Budget(epsilon=1))
    paid = 0
    for _ in range(parts + 1):
        with kind(SQLiteStore(place)) as ledger, suppress(BudgetError):
            pay(ledger, count(part))
            paid += 1
    with kind(SQLiteStore(place)) as ledger:
        return _judged(ledger, part, parts, paid)


def _filtered(parts: int) -> list[str]:
    """That many spends of one part in so many are exactly the limit, and one more is refused."""
    account, part, paid = Filter.of(Budget(epsilon=1)), events.Laplace(epsilon=Fraction(1, parts)), 0
    with suppress(BudgetError):
        for _ in range(parts + 1):
            account = account.spend(part, Fraction(0))
            paid += 1
    right = paid == parts and account.used == 1
    return [] if right else [f"a filter of 1 took {paid} times 1/{parts}: {float(account.used)!r} is used"]


def _judged(ledger: Ledger, part: Any, parts: int, paid: int) -> list[str]:
    try:
        pay(ledger, count(LEAST))
        more = True
    except BudgetError:
        more = False
    if (paid, spent(ledger, "a"), more) == (parts, Fraction(1), False):
        return []
    also = " and more" if more else ""
    return [f"{paid} times {float(part):g} were paid from 1{also}: {float(spent(ledger, 'a'))!r} is spent"]


def control() -> Verdict:
    return attack(kind=FloatSums, times=1000, small=0)


LEAF = events.Laplace(epsilon=Fraction(1, 1000))
GOOD: tuple[tuple[Event, tuple[str, ...]], ...] = (  # with the fields that must be above zero
    (LEAF, ("epsilon",)),
    (events.Pure(epsilon=Fraction(1, 1000)), ("epsilon",)),
    (events.DiscreteLaplace(epsilon=Fraction(1, 1000), shift=3), ("epsilon", "shift")),
    (events.RandomizedResponse(epsilon=Fraction(1, 1000), categories=4), ("epsilon", "categories")),
    (events.Gaussian(multiplier=2000), ("multiplier",)),
    (events.DiscreteGaussian(variance=10**7), ("variance", "shift_squared", "coordinates")),
    (events.ZeroConcentrated(rho=Fraction(1, 10**6)), ("rho",)),
    (events.Approximate(epsilon=Fraction(1, 1000), delta=Fraction(1, 10**9)), ("epsilon", "delta")),
    (events.Poisson(events.Gaussian(multiplier=2000), 0.25), ("rate",)),
    (events.Repeat(LEAF, 3), ("times",)),
)
NO_NUMBER: tuple[Any, ...] = (
    0, -1, -0.1, float("nan"), float("inf"), -float("inf"), Fraction(-1, 3), -(10**400), "1", None, b"", (), 1j
)  # fmt: skip


def odd_costs(*, kind: Kind = Ledger, times: int = 100_000, seed: int = 1) -> Verdict:
    """L12: so many costs that are none, drawn from room that is held; and budgets that are none."""
    choose, taken = Choices(seed), list[str]()
    with folder() as home, kind(SQLiteStore(home / "ledger", create=True)) as ledger:
        ledger.open_account("a", Budget(epsilon=10, delta=1e-5))
        held = reserve(unit=ROW, budget=Budget(epsilon=1, delta=1e-6))
        receipt = ledger.hold((), held, data="a@1", grade="exact", note="")
        ledger.open(receipt)
        right = sum(_taken(ledger, receipt, event, Fraction(1, 10**8)) for event, _ in GOOD)
        before = len(list(surface.store_of(ledger).entries())), ledger.spent("a")
        for event, delta in odd_offers(choose, times):
            if _taken(ledger, receipt, event, delta):
                taken.append(f"{type(event).__name__} at {delta!r}")
        for value in NO_NUMBER[1:]:
            taken += [f"a plan that is {value!r}"] * _bought(ledger, value)
            taken += [f"a budget of {value!r}"] * _opened(ledger, value)
        after = len(list(surface.store_of(ledger).entries())), ledger.spent("a")
    changed = before != after
    words = (
        f"{len(taken)} of {times + 2 * len(NO_NUMBER) - 2} odd costs were taken, and {right} of {len(GOOD)} right ones"
    )
    words += f"; the first was {taken[0]}." if taken else "; the ledger was changed." if changed else "."
    figures = {"taken": len(taken), "offered": times, "right ones taken": right}
    return Verdict("L12", bool(taken) or changed or right != len(GOOD), words, figures)


def odd_costs_control() -> Verdict:
    return odd_costs(kind=Unpriced, times=200)


def odd_offers(choose: Choices, times: int) -> Iterator[tuple[Any, Any]]:
    """So many costs that are none: an event and its delta, one of which is wrong."""
    for _ in range(times):
        if choose.share() < 0.2:
            yield choose.one(GOOD)[0], choose.one((*NO_NUMBER[1:], 1, 2, "x"))
        else:
            yield _forged(choose), choose.one((Fraction(0), Fraction(1, 10**7)))


def _forged(choose: Choices) -> Any:
    """An event with a field that was changed after its checks, alone or inside others; or no event at all."""
    while True:
        good, fields = choose.one(GOOD)
        event, field, value = copy.deepcopy(good), choose.one(fields), choose.one(NO_NUMBER)
        object.__setattr__(event, field, value)
        if value or not _constructible(good, field, value):
            break
    match choose.below(6):
        case 0:
            return _built(events.Sequence, events=(LEAF, event))
        case 1:
            return _built(events.Repeat, event=event, times=2)
        case 2:
            return choose.one((*NO_NUMBER, events.Laplace, object(), True, ROW, count(1)))
    return event


def _constructible(good: Event, field: str, value: Any) -> bool:
    """Nothing at all is allowed in some fields: no delta, say."""
    try:
        replace(good, **{field: value})  # type: ignore[type-var]
    except SfumatoError:
        return False
    return True


def _built(kind: type[Any], **fields: Any) -> Any:
    """Without its checks."""
    made = object.__new__(kind)
    for name, value in fields.items():
        object.__setattr__(made, name, value)
    return made


def _taken(ledger: Ledger, receipt: Receipt, event: Any, delta: Any) -> bool:
    with suppress(Exception):
        ledger.draw(receipt, event, delta)
        return True
    return False


def _bought(ledger: Ledger, plan: Any) -> bool:
    with suppress(Exception):
        pay(ledger, plan)
        return True
    return False


def _opened(ledger: Ledger, epsilon: Any) -> bool:
    budget = copy.deepcopy(Budget(epsilon=1))
    object.__setattr__(budget, "epsilon", epsilon)
    with suppress(Exception):
        ledger.open_account(f"odd {epsilon!r}"[:40], budget, parent="a")
        return True
    return False
