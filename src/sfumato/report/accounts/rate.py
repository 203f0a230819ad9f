"""When an account is exhausted at the rate of a window of time.

Times are what clocks said: good enough for a forecast, and for nothing else. Where one went back, there is no rate.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from ... import record
from ...accounting.members import Member
from ...errors import UnsupportedEventError
from ...ledger.stores.base import Account, Book, Store
from .history import links, moment, shallow
from .tally import Past, added, events_of

_FEW = 3  # releases below which there is no rate
_SHORTEST = timedelta(hours=1)
_HORIZON = 3652.0  # days
_CLOCKS = timedelta(seconds=5)  # by which the clocks of several writers may differ
_DAY = timedelta(days=1)


class Rate(NamedTuple):
    """See Forecast."""

    since: datetime | None
    releases: int
    exhausted: datetime | None
    binding: str | None
    reason: str | None


@dataclass
class _Window:
    """What was charged within it, by account, and since when each account was there."""

    raw: dict[str, Counter[tuple[str, str]]]
    opened: dict[str, datetime]
    latest: datetime
    backwards: bool = False
    holds: dict[str, tuple[tuple[str, ...], Any]] = field(default_factory=dict)


def rate_of(store: Store, path: list[Account], since: datetime, now: datetime) -> Rate:
    """How fast the accounts of a path were spent in that time, and which runs out first."""
    window = _read(store, {each.name for each in path}, since)
    own = path[0].name
    start, releases = window.opened[own], window.raw[own].total()

    def told(reason: str | None, when: datetime | None = None, binding: str | None = None) -> Rate:
        return Rate(start, releases, when, binding, reason)

    if path[0].filter is None:
        return told(f"no rate: account {own!r} has no budget of its own")
    if window.backwards or window.latest > now + _CLOCKS:
        return told("no rate: the clock went back within the window")
    if releases < _FEW or now - start < _SHORTEST:
        return told(f"no rate: fewer than {_FEW} releases, or less than an hour, in the window")
    ends = [(days, each.name) for each in path if (days := _days(each, window, now)) is not None]
    if not ends:
        return told("no rate: nothing that is counted here was spent")
    soonest, binding = min(ends)
    if soonest > _HORIZON:
        return told("at this rate not exhausted within 10 years", binding=binding)
    return told(None, now + soonest * _DAY, binding)


def _read(store: Store, names: set[str], since: datetime) -> _Window:
    with store.reading() as book:
        start, head = _first_since(book, since), book.head.number
    window = _Window({name: Counter() for name in names}, dict.fromkeys(names, since), since)
    for _, _, body in links(store, start, head):
        entry = shallow(body)
        at = moment(entry.get("at"))
        if at is not None:
            window.backwards |= at < window.latest - _CLOCKS
            window.latest = max(window.latest, at)
        if entry.get("kind") == "open account" and entry.get("account") in names and at is not None:
            window.opened[entry["account"]] = max(since, at)
        else:
            _take(store, window, entry)
    return window


def _take(store: Store, window: _Window, entry: dict[str, Any]) -> None:
    kind, receipt = entry.get("kind"), entry.get("receipt")
    if kind in ("spend", "hold") and isinstance(receipt, dict):
        accounts, event = tuple(receipt.get("accounts") or ()), receipt.get("event")
        if kind == "hold":
            window.holds[str(receipt.get("id"))] = accounts, event
            return
    elif kind == "draw" and not entry.get("before"):  # later steps of a work come with its first ones
        accounts, whole = _drawn_on(store, str(receipt), window.holds)
        event = entry.get("event") if entry.get("before") is None else whole
    else:
        return
    past = (json.dumps(event, sort_keys=True), json.dumps(entry.get("delta")))
    for name in accounts:
        if name in window.raw:
            window.raw[name][past] += 1


def _drawn_on(store: Store, receipt: str, holds: dict[str, tuple[tuple[str, ...], Any]]) -> tuple[tuple[str, ...], Any]:
    """Who pays for what is drawn, and the event that is held, as bare JSON."""
    if receipt not in holds:
        with store.reading() as book:
            filed = book.filed(receipt)
        holds[receipt] = ((), None) if filed is None else (filed.receipt.accounts, record.encode(filed.receipt.event))
    return holds[receipt]


def _first_since(book: Book, since: datetime) -> int:
    """The first entry that is not before. Found by halving, as the times of entries rise."""
    low, high = 1, book.head.number + 1
    while low < high:
        middle = (low + high) // 2
        stored = book.entry(middle)
        at = None if stored is None else moment(shallow(stored[1]).get("at"))
        low, high = (middle + 1, high) if at is not None and at < since else (low, middle)
    return low


def _days(account: Account, window: _Window, now: datetime) -> float | None:
    """Until the last of the account's members runs out, or one that every release needs: a release passes while one
    of the others has room."""
    if account.filter is None or now <= window.opened[account.name]:
        return None
    spent = events_of(window.raw[account.name])
    elapsed = (now - window.opened[account.name]) / _DAY
    members = account.filter.open
    last = [left for m in members if not m.required and (left := _rounds(m, spent)) is not None]
    first = [left for m in members if m.required and (left := _rounds(m, spent)) is not None]
    return elapsed * min([max(last), *first]) if last else None


def _rounds(member: Member, spent: Counter[Past]) -> float | None:
    """How many more times what was spent in the window fits."""
    try:
        used = added(count * member.price(*past) for past, count in spent.items())
        failed = added(count * member.failure(*past) for past, count in spent.items())
    except UnsupportedEventError:
        return None
    rounds = [(member.limit - member.spent) / used] if used > 0 else []
    rounds += [(member.delta_limit - member.delta_spent) / failed] if failed > 0 else []
    return float(min(rounds)) if rounds else None
