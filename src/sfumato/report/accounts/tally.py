"""What was released on an account, as a list of events with their counts: equal releases are counted, not repeated."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from typing import Any, NamedTuple

from ... import exact
from ...accounting import price
from ...accounting.members import plan_epsilon
from ...errors import UnsupportedEventError
from ...events import Event, Gaussian, Repeat, Sequence
from ...ledger.parts import LIST
from ...ledger.stores.base import Store
from .history import deep, links, shallow

MOST_KINDS = 64  # unlike mechanisms that are priced together: each takes its share of a second

_BITS = 512  # as members keep their totals

Past = tuple[Event, Fraction]


class Beside(NamedTuple):
    """A figure that is shown beside the guarantee, with the words that must go with it; None with the reason."""

    label: str
    epsilon: float | None
    delta: float | None
    reason: str | None = None


@dataclass
class Tally:
    """Releases on an account, with how often."""

    events: Counter[Past] = field(default_factory=Counter)
    unread: int = 0  # charges that this version of sfumato cannot read
    lists: int = 0  # charges that paid for a list of releases
    parts: int = 0  # releases that were paid with such a list
    inexact: int = 0  # releases whose noise is not of grade "exact"

    @property
    def releases(self) -> int:
        """What ran, or may run at any time: of a list, the parts that were taken."""
        return self.events.total() + self.unread - self.lists + self.parts


class Tallying:
    """Counts while the entries are read. Of equal bare JSON the value is made once."""

    def __init__(self, account: str) -> None:
        self._account = account
        self._raw: Counter[tuple[str, str]] = Counter()
        self._drawing: dict[str, tuple[str, str]] = {}  # holds under way that are paid on this account
        self._lists = self._parts = self._inexact = 0

    def take(self, told: Mapping[str, Any]) -> None:
        """One entry, as bare JSON."""
        kind = told.get("kind")
        if kind in ("spend", "hold", "part") and _of(told, "loop") != LIST and _paid(told, self._account):
            self._inexact += _of(told, "grade") != "exact"
        if kind == "hold" and _paid(told, self._account):
            self._drawing[str(_of(told, "id"))] = _key(_of(told, "event")), _key(told.get("delta"))
        elif kind == "spend" and _paid(told, self._account):
            self._raw[_key(_of(told, "event")), _key(told.get("delta"))] += 1
            self._lists += _of(told, "loop") == LIST
        elif kind == "part" and _paid(told, self._account):
            self._parts += 1
        elif kind == "draw" and (whole := self._drawing.get(str(told.get("receipt")))) is not None:
            before = told.get("before")
            if before is None:
                self._raw[_key(told.get("event")), _key(told.get("delta"))] += 1
            elif before == 0:  # steps: one release, fixed in advance, however many of them are drawn in the end
                self._raw[whole] += 1
        elif kind in ("close", "settle"):
            self._drawing.pop(str(told.get("receipt")), None)

    def found(self) -> Tally:
        events = events_of(self._raw)
        return Tally(events, self._raw.total() - events.total(), self._lists, self._parts, self._inexact)


def tally(store: Store, account: str, *, last: int | None = None) -> Tally:
    """Read the whole chain once."""
    counting = Tallying(account)
    for _, _, body in links(store, 1, last):
        counting.take(shallow(body))
    return counting.found()


def events_of(raw: Counter[tuple[str, str]]) -> Counter[Past]:
    """Of bare JSON of an event and its delta; without those that this version of sfumato cannot read."""
    found: Counter[Past] = Counter()
    for (event, delta), count in raw.items():
        one, own = deep(json.loads(event)), deep(json.loads(delta))
        if isinstance(one, Event) and isinstance(own, Fraction):
            found[one, own] += count
    return found


def _key(bare: Any) -> str:
    return json.dumps(bare, sort_keys=True)


def _of(told: Mapping[str, Any], name: str) -> Any:
    receipt = told.get("receipt")
    return receipt.get(name) if isinstance(receipt, Mapping) else None


def _paid(told: Mapping[str, Any], account: str) -> bool:
    charged = told.get("charged")
    if isinstance(charged, Mapping):
        return any(isinstance(pair, list) and pair[:1] == [account] for pair in charged.get("items", ()))
    return account in (_of(told, "accounts") or ())


def added(sizes: Iterable[Fraction]) -> Fraction:
    """The sum as members keep it: exact while denominators are short, then rounded up. (The exact sum of many unlike
    fractions grows without bound, and so does the time that it takes.)"""
    return reduce(lambda so_far, size: exact.total_above(so_far, size, _BITS), sizes, Fraction(0))


def basic(found: Tally) -> Beside:
    """Each plan's own epsilon at its own delta, added up."""
    label = "basic composition: the plans' own epsilons and deltas, added up"
    try:
        epsilon = added(count * plan_epsilon(*past) for past, count in found.events.items())
    except UnsupportedEventError as problem:
        return Beside(label, None, None, str(problem))
    delta = added(count * past[1] for past, count in found.events.items())
    if found.unread:
        return Beside(label, None, None, _unread(found))
    return Beside(label, exact.float_above(epsilon), exact.float_above(delta))


def in_advance(found: Tally, delta: Fraction) -> Beside:
    """The tight price of the whole list, from its privacy loss."""
    label = (
        f"privacy loss (PLD) at delta = {float(delta):g}, if exactly this list had been fixed in advance; "
        "not a guarantee for adaptive choice"
    )
    return _priced(found, label, delta, lambda event: price.epsilon(event, delta=delta).upper)


def _priced(found: Tally, label: str, delta: Fraction, cost: Callable[[Event], float]) -> Beside:
    if found.unread:
        return Beside(label, None, None, _unread(found))
    parts = list(_merged(found.events))
    if not parts:
        return Beside(label, 0.0, float(delta))
    if len(parts) > MOST_KINDS:
        return Beside(label, None, None, f"{len(parts)} unlike mechanisms: too many to price together")
    if len({part.relation for part in parts}) > 1:
        return Beside(label, None, None, "the releases compare different neighbours")
    try:
        return Beside(label, cost(Sequence(tuple(parts)) if len(parts) > 1 else parts[0]), float(delta))
    except UnsupportedEventError as problem:
        return Beside(label, None, None, str(problem))


def _merged(events: Counter[Past]) -> Iterator[Event]:
    """Equal events once, with how often. All Gaussian noise is as good as one with the sum of 1/multiplier^2, whose
    multiplier is rounded down."""
    counts: Counter[Event] = Counter()
    squares: dict[Any, Fraction] = {}
    for (event, _), count in events.items():
        one, times = (event.event, event.times * count) if isinstance(event, Repeat) else (event, count)
        if isinstance(one, Gaussian):
            squares[one.relation] = added((squares.get(one.relation, Fraction(0)), times / one.multiplier**2))
        else:
            counts[one] += times
    for event, count in counts.items():
        yield event if count == 1 else Repeat(event, count)
    for relation, square in squares.items():
        yield Gaussian(multiplier=1 / Fraction(exact.sqrt_above(square)), relation=relation)


def _unread(found: Tally) -> str:
    return f"{found.unread} release(s) cannot be read by this version of sfumato"
