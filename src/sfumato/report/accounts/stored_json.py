"""The JSON that entries store of a plan, read as it stands: no plan is built, and nothing that is there is believed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any


def body(text: Any) -> Any:
    """What a text says; None where it is none, or no JSON."""
    if not isinstance(text, str):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def scalar(value: Any) -> Any:
    """A number (exact ones as text), a word or a truth value; None for anything larger."""
    if isinstance(value, Mapping) and value.get("is") == "exact":
        return value.get("value")
    return value if isinstance(value, bool | int | float | str) else None


def scalars(record: Mapping[str, Any]) -> dict[str, Any]:
    """Those among the fields of a record, by name."""
    named = {name: scalar(value) for name, value in record.items() if name != "is"}
    return {name: value for name, value in named.items() if value is not None}


def pairs(mapping: Any) -> Iterator[tuple[str, Any]]:
    """What a stored mapping holds, by name."""
    items = mapping.get("items") if isinstance(mapping, Mapping) else None
    for pair in items if isinstance(items, list) else ():
        if isinstance(pair, list) and len(pair) == 2:
            yield str(pair[0]), pair[1]


def records(value: Any) -> Iterator[Mapping[str, Any]]:
    """The stored records in a JSON value, each before those inside it."""
    if isinstance(value, Mapping):
        if isinstance(value.get("is"), str):
            yield value
        yield from records_inside(value)
    elif isinstance(value, list):
        for item in value:
            yield from records(item)


def records_inside(record: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for item in record.values():
        yield from records(item)
