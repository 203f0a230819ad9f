"""A release that does not fit: what is asked, spent and left, how much would fit, and which limit would do."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import is_dataclass, replace
from decimal import ROUND_FLOOR, Context
from fractions import Fraction
from typing import Any, Literal, cast

from ..accounting.filters import Budget, Filter
from ..errors import BudgetError, SfumatoError
from ..ledger import Ledger
from ..plan import Plan
from .problems import OfficeError

LESS = "ask for less (a smaller epsilon, delta or rho, a wider accuracy)"
_DOUBLINGS = 8  # beyond, a limit is no limit
_FINE = Fraction(1, 50)  # how exactly what would fit is told: a part of what was asked


class ShortageError(OfficeError):
    """An account has no room for a release.

    less    how to ask for less
    enough  a budget of the account that would do; None where doubling it a few times does not
    """

    def __init__(self, account: str, why: str, less: str, enough: Budget | None) -> None:
        fix = f"{less}, or have the limit of {account} raised"
        super().__init__(f"the budget of {account} is short; nothing was charged", why, fix, "budget", "short")
        self.account, self.less, self.enough = account, less, enough


def short_of(
    ledger: Ledger, path: tuple[str, ...], plan: Plan[Any, Any], error: BudgetError, less: str = LESS
) -> Exception:
    """Which account has no room, what is asked, spent and left there; how to ask for `less`."""
    for name in path:
        why = refused_in_words(ledger, name, plan)
        if why:
            return ShortageError(name, "\n".join(why), less, enough_for(ledger, name, plan))
    return error


def refused_in_words(ledger: Ledger, account: str, plan: Plan[Any, Any], *, gauges: bool = False) -> list[str]:
    """Why the account has no room for the plan; empty where it has. With `gauges`, in each of its ways to add up."""
    lines = (ledger.refusal(account, plan) or "").splitlines()
    why = [line.strip() for line in lines if ": asked " in line]
    if not why:
        return []
    if (room := _room_for_less(ledger, account, plan, "delta" if is_short_of_delta(why) else "epsilon")) is not None:
        why.append(room)
    if gauges:
        why += (ledger.refusal(account, plan, gauges=True) or "").splitlines()
    return why + [line for line in lines if line.startswith("Room is held")]


def enough_for(ledger: Ledger, account: str, plan: Plan[Any, Any]) -> Budget | None:
    """A larger budget of the account that has room for the plan, as far as doubling it a few times does. Unless an
    account keeps delta back for that, it takes some more delta."""
    state = next((each.account.filter for each in ledger.overview().accounts if each.account.name == account), None)
    with warnings.catch_warnings(action="ignore"):  # nobody asked for the limits that are tried here
        larger = () if state is None else _larger_budgets(state, plan)
        return next((budget for budget in larger if ledger.would_fit(account, budget, plan)), None)


def is_short_of_delta(why: list[str]) -> bool:
    """Is it the delta for unknown keys and the like that a refusal in these lines lacks?"""
    return any(line.endswith(": too little") for line in why)


def _larger_budgets(state: Filter, plan: Plan[Any, Any]) -> Iterator[Budget]:
    """Larger budgets to try, the smallest first; with the same epsilon where it is delta that is short."""
    now, powers = state.budget, [2**times for times in range(1, _DOUBLINGS)]
    if now.rho is not None:
        yield from (Budget(rho=now.rho * power) for power in powers)
        return
    lacking = is_short_of_delta(state.short(plan.event, plan.delta))
    pairs = [(1, power) for power in powers] if lacking else []
    for power in powers:
        pairs += [(power, 1 if now.raisable else 2), (power, power)]
    for epsilon, delta in pairs:
        if now.delta * delta < 1:
            yield Budget(epsilon=now.epsilon * epsilon, delta=now.delta * delta, raisable=now.raisable)


def _room_for_less(ledger: Ledger, account: str, plan: Plan[Any, Any], part: Literal["epsilon", "delta"]) -> str | None:
    """The largest epsilon, or delta, at which the same plan would fit, rounded down. None where the plan has none to
    make smaller."""
    wanted = getattr(plan, part, None)
    if not isinstance(wanted, Fraction) or not wanted or not is_dataclass(plan) or plan.steps is not None:
        return None
    room, shrinking = ledger.room(account), cast(Any, plan)

    def fits(size: Fraction) -> bool:
        try:
            with warnings.catch_warnings(action="ignore"):
                less: Plan[Any, Any] = replace(shrinking, **{part: size})
            return room.fits(less.event, less.delta)
        except SfumatoError:
            return False

    low, high = wanted / 4096, wanted
    if not fits(low):
        return "room: for none like it, however small"
    while high - low > _FINE * low:
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    most = Context(prec=2, rounding=ROUND_FLOOR).divide(low.numerator, low.denominator)
    return f"room: for one like it at {part} {float(most):g}"
