"""The register: what left the same data without differential privacy, and what is published of it exactly."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ...ledger.stores.base import Book, Store
from ...ledger.tree import known_data
from .history import Entry, asked_for, history, places


class Declared(NamedTuple):
    """An entry that some officer made: no guarantee covers what it names.

    of  "without DP" or "invariant"
    """

    number: int
    at: str | None
    by: str | None
    data: str
    of: str
    text: str
    recipients: str
    reason: str | None
    approvals: tuple[Any, ...]


def declared(store: Store, *, data: str | None = None, last: int | None = None) -> Iterator[Declared]:
    """The register, of one data set and its copies and views where that is asked."""
    asked_for(data=data)
    names = None if data is None else same_people(store, data)
    for entry in history(store, kind="declare", last=last):
        found = declared_in(entry)
        if names is None or is_of(found, names):
            yield found


def is_of(entry: Declared, names: set[str]) -> bool:
    return not names.isdisjoint(place.name for place in places(entry.data))


def declared_in(entry: Entry) -> Declared:
    fields, approvals = entry.fields, entry.fields.get("approvals")
    return Declared(
        number=entry.number,
        at=entry.at,
        by=entry.by,
        data=str(fields.get("data", "")),
        of=str(fields.get("of", "")),
        text=str(fields.get("text", "")),
        recipients=str(fields.get("recipients", "")),
        reason=entry.reason,
        approvals=approvals if isinstance(approvals, tuple) else (),
    )


def same_people(store: Store, data: str) -> set[str]:
    """The data set and all that are charged on an account of it: copies and views. An account's own name counts."""
    with store.reading() as book:
        return charged_together(book, {data})


def charged_together(book: Book, names: set[str]) -> set[str]:
    """These data sets or accounts, and every data set that is charged where one of them is, as it stands today: a copy
    follows what it is a copy of, also to accounts that were added later."""
    known = {name: known_data(book, name) for name in {*book.facts("data"), *names}}
    accounts = {*names, *(account for name in names for account in known[name].accounts)}
    return accounts | {
        name for name, each in known.items() if accounts.intersection((*each.accounts, *each.blocks.values()))
    }
