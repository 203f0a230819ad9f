"""What happened, entry by entry.

Entries are read in order and let go again, so a long history takes no more memory than a short one. What this version
cannot read (a kind of entry or a record of a newer one) is shown as the JSON that is stored.
"""

from __future__ import annotations

import json
import warnings
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

from ... import address, checks, kinds, record
from ...errors import ArgumentError, PrivacyWarning, RecordError
from ...ledger.desk import short
from ...ledger.proof.chain import GENESIS, Link
from ...ledger.stores.base import Store
from ...plan import Plan, Receipt

_REMEMBERED = 4096  # receipts whose accounts are looked up once


class Place(NamedTuple):
    """One data set that an address names. A version of None: the address is of another make."""

    name: str
    version: str | None
    blocks: tuple[str, ...] = ()


def places(data: str) -> tuple[Place, ...]:
    """The data sets of an address."""
    try:
        return tuple(Place(*each) for each in address.read(data))
    except ArgumentError:
        return (Place(data, None),)


@dataclass(frozen=True)
class Entry:
    """One entry as it is stored.

    number    its place in the chain
    hash      of it and everything before it, in hex; `previous` is that of the entry before
    kind, by, at, fields   what it says; `at` is what the clock said then
    """

    number: int
    hash: str
    previous: str | None
    kind: str
    by: str | None
    at: str | None
    fields: Mapping[str, Any]

    @property
    def time(self) -> datetime | None:
        """Its time, if the text is one."""
        return moment(self.at)

    @property
    def receipt(self) -> str | None:
        """The id of the receipt that it is about."""
        return _id(self.fields.get("receipt"))

    @property
    def accounts(self) -> tuple[str, ...]:
        """The accounts that it names by itself; one about a receipt may name none."""
        return _accounts(self.fields)

    @property
    def reason(self) -> str | None:
        found = self.fields.get("reason")
        return found if isinstance(found, str) and found else None

    @property
    def outcome(self) -> str | None:
        """Of a receipt that is settled: "answered"; "failed" with the data open, which counts towards the lock;
        "interrupted" by hand, or "unopened", which do not."""
        found = self.fields.get("outcome")
        return found if isinstance(found, str) and found else None

    def as_dict(self) -> dict[str, Any]:
        """JSON: records as they are stored."""
        return {
            "number": self.number,
            "hash": self.hash,
            "previous": self.previous,
            "kind": self.kind,
            "by": self.by,
            "at": self.at,
            "fields": {name: _stored(value) for name, value in self.fields.items()},
        }

    def __str__(self) -> str:
        told = [f"{self.number:>8}  {self.at or '':32}  {self.kind:14}  {self.by or ''}"]
        told += [", ".join(self.accounts)] if self.accounts else []
        told += [f"receipt {self.receipt[:8]}"] if self.receipt else []
        told += [self.reason] if self.reason else []
        told += [self.outcome] if self.outcome else []
        return "  ".join(told)


def history(
    store: Store,
    *,
    account: str | None = None,
    data: str | None = None,
    by: str | None = None,
    kind: str | None = None,
    first: int = 1,
    last: int | None = None,
) -> Iterator[Entry]:
    """The entries, oldest first; those about an account, a data set (its name or a whole address), by somebody or of a
    kind, where that is asked. An entry about a receipt is about the accounts and the data that the receipt names."""
    checks.whole(first, "first")
    asked_for(account=account, data=data, by=by, kind=kind)
    receipts = _Receipts(store)
    for link, previous, body in links(store, first, last):
        told = shallow(body)
        if by is not None and told.get("by") != by:
            continue
        if kind is not None and told.get("kind") != kind:
            continue
        if (account is None and data is None) or _about(told, account, data, receipts):
            yield entry_of(link, previous, told)


def links(store: Store, first: int = 1, last: int | None = None) -> Iterator[tuple[Link, bytes | None, bytes]]:
    """Entries with the hash before them."""
    if last is not None:
        checks.whole(last, "last", least=0)
    previous: bytes | None = GENESIS.hash if first == 1 else None
    if first > 1:
        with store.reading() as book:
            before = book.entry(first - 1)
        previous = None if before is None else before[0].hash
    for link, body in store.entries(first):
        if last is not None and link.number > last:
            return
        yield link, previous, body
        previous = link.hash


def asked_for(**which: Any) -> None:
    """What is looked for is a text: anything else would quietly find nothing."""
    for name, value in which.items():
        if value is not None:
            short(value, name)


def shallow(body: bytes) -> dict[str, Any]:
    """The fields of an entry as bare JSON: cheap, and whatever they hold. `deep` makes values of them."""
    try:
        outer = json.loads(body)
        return {str(name): value for name, value in outer["items"]}
    except (ValueError, TypeError, KeyError, RecursionError):
        return {"kind": "unreadable", "raw": body.decode("utf-8", "backslashreplace")}


def deep(value: Any) -> Any:
    """The value of bare JSON; the JSON itself where this version cannot read it."""
    if value is None or isinstance(value, bool | str | int | float):
        return value
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # a weak epsilon was warned of when it was chosen
        try:
            return record.decode(value)
        except RecordError:
            return value


@lru_cache(maxsize=256)
def plan_of(text: str) -> Plan[Any, Any] | None:
    """The plan of stored JSON; None where it cannot be built again (a function in a field, a newer kind)."""
    kinds.load()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = record.parse(text, Plan)
        except Exception:  # a plan that a newer version wrote may fail in any way; its JSON is there
            return None
    return found if isinstance(found, Plan) else None


def moment(text: Any) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except (ValueError, TypeError):
        return None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def entry_of(link: Link, previous: bytes | None, told: Mapping[str, Any]) -> Entry:
    fields = {name: deep(value) for name, value in told.items() if name not in ("kind", "by", "at")}
    return Entry(
        number=link.number,
        hash=link.hash.hex(),
        previous=None if previous is None else previous.hex(),
        kind=str(told.get("kind")),
        by=_text(told.get("by")),
        at=_text(told.get("at")),
        fields=fields,
    )


class _Receipts:
    """The accounts and the data of receipts, by id."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: OrderedDict[str, tuple[tuple[str, ...], str]] = OrderedDict()

    def of(self, id: str) -> tuple[tuple[str, ...], str]:
        if id not in self._known:
            with self._store.reading() as book:
                filed = book.filed(id)
            self.keep(id, ((), "") if filed is None else (filed.receipt.accounts, filed.receipt.data))
        return self._known[id]

    def keep(self, id: str, found: tuple[tuple[str, ...], str]) -> None:
        self._known[id] = found
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)


def _about(told: Mapping[str, Any], account: str | None, data: str | None, receipts: _Receipts) -> bool:
    accounts, read = _accounts(told), _data(told)
    id = _id(told.get("receipt"))
    if id is not None and not isinstance(told.get("receipt"), str):
        receipts.keep(id, (accounts, read))
    elif id is not None:
        paid, read = receipts.of(id)
        accounts = (*accounts, *paid)
    if account is not None and account not in accounts:
        return False
    return data is None or data == read or data in {place.name for place in places(read)}


def _accounts(told: Mapping[str, Any]) -> tuple[str, ...]:
    """Bare JSON or values."""
    found: list[str] = []
    receipt = told.get("receipt")
    if isinstance(receipt, Receipt):
        found += receipt.accounts
    elif isinstance(receipt, Mapping) and isinstance(receipt.get("accounts"), list):
        found += receipt["accounts"]
    for name in ("account", "source", "target", "parent"):
        if isinstance(told.get(name), str):
            found.append(told[name])
    for name in ("accounts", "charged", "shapes"):
        found += _names(told.get(name))
    found += _asked_for(told.get("act"))
    return tuple(dict.fromkeys(name for name in found if isinstance(name, str)))


def _names(value: Any) -> list[Any]:
    """The names in a tuple, or the keys of a mapping, which as bare JSON is a list of pairs."""
    if isinstance(value, Mapping) and value.get("is") == "map":
        return [pair[0] for pair in value.get("items", ()) if isinstance(pair, list) and pair]
    return list(value) if isinstance(value, Mapping | tuple | list) else []


def _asked_for(act: Any) -> list[Any]:
    """The account whose limit somebody asked for, or approved."""
    do, on = (act.get("do"), act.get("on")) if isinstance(act, Mapping) else (_of(act, "do"), _of(act, "on"))
    return [on] if do in ("raise", "reset") else []


def _of(value: Any, name: str) -> Any:
    return getattr(value, name, None)


def _data(told: Mapping[str, Any]) -> str:
    receipt = told.get("receipt")
    if isinstance(receipt, Receipt):
        return receipt.data
    found = receipt.get("data") if isinstance(receipt, Mapping) else told.get("data")
    return found if isinstance(found, str) else ""


def _id(receipt: Any) -> str | None:
    found = receipt.id if isinstance(receipt, Receipt) else receipt
    found = found.get("id") if isinstance(found, Mapping) else found
    return found if isinstance(found, str) else None


def _stored(value: Any) -> Any:
    try:
        return record.encode(value)
    except RecordError:  # what no ledger writes (nan), in an entry that somebody put there: shown all the same
        return str(value)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
