"""The rules of lists: paid as one, then taken part by part, each part once, on the data that the list was paid on.

Which parts a list has is read from the text of its plan, and nothing else: a plan need not be built again for that.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from ... import record
from ...events import Event, Repeat, Sequence
from ...plan import Receipt
from .in_turn import chains_of, in_turn
from .rules_receipts import new_receipt
from .state import Entry, EntryError, Settled, State, limited_above

_LISTS = {"plan-sequence/1": "plans"}  # plans that are lists, and the field that holds their parts
_SERIES = "plan-sql-series/1"  # a list of equal parts by level, which holds their hashes


def listed(state: State, entry: Entry, receipt: Receipt) -> None:
    """The parts of a list that was paid wait to be taken."""
    hashes, event = part_hashes(entry["plan"]), receipt.event
    if not hashes or len(set(hashes)) < len(hashes):
        raise EntryError("it pays for parts, and its plan is no list of different plans")
    events = _part_events(entry["plan"], event)
    if len(events) != len(hashes):
        raise EntryError("its event is not that of its parts")
    state.lists[receipt.id] = dict(zip(hashes, events, strict=True))
    for each in hashes:
        name = record.digest((receipt.data, each))
        state.facts["part", name] = (*state.facts.get(("part", name), ()), receipt.id)
    state.facts["part", ""] = state.facts.get(("part", ""), 0) + len(hashes)
    if chains := _chains(entry["plan"]):
        state.facts["turns", receipt.id] = chains_of(chains)


def part(state: State, entry: Entry) -> None:
    """One part is taken: nothing is charged, and nobody takes it again."""
    receipt, paid = new_receipt(state, entry), state.settled(entry["of"]).receipt
    if paid.loop != "parts" or receipt.loop != "part":
        raise EntryError("it is paid with a receipt that pays for no list")
    for field in ("accounts", "data", "unit", "grade"):
        if getattr(receipt, field) != getattr(paid, field):
            raise EntryError(f"it differs in its {field} from the list that it is paid with")
    events = state.lists[paid.id]
    if receipt.plan_hash not in events:
        raise EntryError("its plan is not a part of the list that it is paid with")
    if events[receipt.plan_hash] != receipt.event:
        raise EntryError("its event is not that of the part")
    name = record.digest((receipt.data, receipt.plan_hash))
    waiting = state.facts["part", name]
    if paid.id not in waiting:
        raise EntryError("that part of the list was taken before, or a later one was that it had to come before")
    for account in map(state.account, receipt.accounts):
        if account.closed:
            raise EntryError("it runs on an account that is closed")
        if not limited_above(state, account) <= set(receipt.accounts):
            raise EntryError("the list was not charged to the accounts above")
    if state.prices is not None:
        state.prices.part(entry)
    for plan_hash in (receipt.plan_hash, *_passed(state, paid, receipt)):
        name = record.digest((receipt.data, plan_hash))
        state.facts["part", name] = tuple(id for id in state.facts["part", name] if id != paid.id)
        state.facts["part", ""] -= 1
    state.receipts[receipt.id] = Settled(receipt, "spent", entry["key"])


def _passed(state: State, paid: Receipt, receipt: Receipt) -> tuple[str, ...]:
    """The parts that this one passes over; the one that was taken last in its chain is over."""
    if ("turns", paid.id) not in state.facts:
        return ()
    after, passed, over = in_turn(state.facts["turns", paid.id], receipt.plan_hash, receipt.id)
    state.facts["turns", paid.id] = after
    if over and (settled := state.receipts[over]).state in ("spent", "opened"):
        state.receipts[over] = settled._replace(state="failed")
    return passed


def part_hashes(text: str) -> list[str]:
    """The hashes of the parts of a list, in their order, from its canonical JSON; none of any other plan."""
    body = _read(text)
    if body.get("is") == _SERIES:
        return [digest for _, digest in body["hashes"]["items"]]
    field = _LISTS.get(body.get("is", ""))
    return [] if field is None else [_digest(part) for _, part in body[field]["items"]]


def _chains(text: str) -> list[list[str]]:
    """Of a series, the parts of each level where a unit counts in fewer blocks than there are; of no other list any."""
    body = _read(text)
    if body.get("is") != _SERIES:
        return []
    levels = [
        (most, [digest for name, digest in body["hashes"]["items"] if name.partition(" ")[0] == level])
        for level, most in body["most"]["items"]
    ]
    return [hashes for most, hashes in levels if most < len(hashes)]


def _part_events(text: str, event: Event) -> list[Event]:
    """What each part costs by itself, in their order: of a list as its event says; of a series that of the part's
    level, which the event repeats as often as a unit may count there. None where the event is no such."""
    if type(event) is not Sequence:
        return []
    body = _read(text)
    if body.get("is") != _SERIES:
        return list(event.events)
    levels, names = [level for level, _ in body["most"]["items"]], [name for name, _ in body["hashes"]["items"]]
    times = [most for _, most in body["most"]["items"]]
    repeats = [part for part in event.events if type(part) is Repeat]
    if [part.times for part in repeats] != times or len(event.events) != len(times):
        return []
    own = {level: part.event for level, part in zip(levels, repeats, strict=True)}
    return [own[name.partition(" ")[0]] for name in names]


def _read(text: str) -> dict[str, Any]:
    try:
        body: dict[str, Any] = json.loads(text)
    except RecursionError:
        raise EntryError("its plan cannot be read") from None
    return body


def _digest(body: Any) -> str:
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()
