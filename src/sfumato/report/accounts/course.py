"""The course of the accounts: what each had spent after any entry, followed while the entries are read.

Only what entries say is followed. Where one cannot be followed (a kind that this version does not know, a charge that
does not fit), the accounts it may have changed are unknown from then on, and readings say None of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

from ...accounting.filters import Budget, Filter
from ...errors import SfumatoError
from ...events import Event
from ...plan import Gauge, Receipt
from .history import deep

# Kinds that change no filter.
_QUIET = frozenset(
    ["birth", "writer", "accept restore", "register", "open", "close", "settle", "unlock", "policy", "ask", "approve",
     "declare", "close account", "part", "owners"]
)  # fmt: skip

Gauges = tuple[Gauge, ...]
Price = tuple[str, Fraction | None, Fraction | None]  # currency, price, failures; None: the member knew no price


class Course:
    """Filters by account, as of the last entry that was taken in."""

    def __init__(self) -> None:
        self._filters: dict[str, Filter | None] = {}
        self.policy: Any = None
        self.limits: dict[str, list[Budget]] = {}

    def gauges(self, accounts: tuple[str, ...]) -> dict[str, Gauges | None]:
        return {name: _gauges(self._filters.get(name)) for name in accounts}

    def take(self, told: Mapping[str, Any]) -> None:
        """One entry that charges nobody, as bare JSON."""
        kind = told.get("kind")
        if kind == "policy":
            self.policy = deep(told.get("policy"))
        elif kind in ("open account", "limit"):
            self._limit(told)
        elif kind == "move":
            self._move(told)
        elif kind == "hold":
            self._hold(told)
        elif kind not in _QUIET:
            self._filters.clear()

    def _hold(self, told: Mapping[str, Any]) -> None:
        """A hold fixes the members of an account that has released nothing yet."""
        receipt, shapes = deep(told.get("receipt")), deep(told.get("shapes"))
        for name in receipt.accounts if isinstance(receipt, Receipt) else ():
            before = self._filters.get(name)
            if not isinstance(shapes, Mapping):  # an entry that does not tell them
                self._filters[name] = before if before is not None and before.count else None
            elif name in shapes:
                self._filters[name] = shapes[name] if isinstance(shapes[name], Filter) else None

    def _limit(self, told: Mapping[str, Any]) -> None:
        name, budget, filter_ = told.get("account"), deep(told.get("budget")), deep(told.get("filter"))
        if not isinstance(name, str):
            return
        if isinstance(budget, Budget):
            self.limits.setdefault(name, []).append(budget)
        if isinstance(filter_, Filter):
            self._filters[name] = filter_
        elif told.get("kind") == "open account" and isinstance(budget, Budget):
            self._filters[name] = Filter.of(budget)
        else:
            self._filters[name] = None

    def _move(self, told: Mapping[str, Any]) -> None:
        """A part of a limit went from one account to another: both have another filter."""
        filters = deep(told.get("filters"))
        for name in (told.get("source"), told.get("target")):
            after = filters.get(name) if isinstance(filters, Mapping) else None
            if isinstance(name, str):
                self._filters[name] = after if isinstance(after, Filter) else None
            if isinstance(name, str) and isinstance(after, Filter):
                self.limits.setdefault(name, []).append(after.budget)

    def charge(
        self, told: Mapping[str, Any], receipt: Receipt, event: Event, delta: Fraction
    ) -> dict[str, tuple[Price, ...] | None]:
        """A spend or a draw: what it cost each account, in each member that was open."""
        recorded = _recorded(json.dumps(told.get("charged")))
        names = tuple(recorded) if isinstance(recorded, Mapping) else tuple(dict.fromkeys(receipt.accounts))
        return {
            name: self._charged(name, recorded[name] if isinstance(recorded, Mapping) else None, event, delta)
            for name in names
        }

    def _charged(self, name: str, charge: Any, event: Event, delta: Fraction) -> tuple[Price, ...] | None:
        before = self._filters.get(name)
        if before is None:
            return None
        try:
            if charge is None:
                charge = before.charge(event, delta)
            shape = before if charge.shape is None else charge.shape
            self._filters[name] = before.after(charge)
            return tuple(
                (member.currency, None, None) if price is None else (member.currency, price[0], price[1])
                for member, price in zip(shape.open, charge.prices, strict=True)
            )
        except (SfumatoError, ValueError, TypeError, AttributeError):
            self._filters[name] = None
            return None


@lru_cache(maxsize=1024)
def _recorded(text: str) -> Any:
    """Equal releases are charged alike: their charges are read once."""
    return deep(json.loads(text))


def _gauges(filter_: Filter | None) -> Gauges | None:
    if filter_ is None:
        return None
    return tuple(Gauge(member.currency, member.spent, member.limit) for member in filter_.open if not member.required)
