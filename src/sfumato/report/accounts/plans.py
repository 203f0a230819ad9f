"""What a plan's stored JSON says, without building the plan: an auditor needs no mechanism."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from ... import questions, record
from ...errors import RecordError
from ...events import Event
from ...plan import Plan
from . import old_entries

_SQL_LIMITS = "sql-limits/1"
_QUERY, _COLUMN, _BOUNDS, _ADVISED = "plan-sql/1", "column/1", "sql-bounds", "sql-advised"


@lru_cache(maxsize=256)
def parameters(text: str) -> tuple[str | None, Mapping[str, Any]]:
    """The registered name of the plan, and the numbers and words among its own fields, as it was asked for."""
    body = _json(text)
    if not isinstance(body, Mapping):
        return None, {}
    name = body.get("is")
    own = {field: _scalar(value) for field, value in body.items() if field != "is" and _scalar(value) is not None}
    return name if isinstance(name, str) else None, own


def question(text: str | None, stored: Any) -> str | None:
    """The digest of what a plan asks: what its entry stores of it, or, in an entry of before, what the plan's JSON
    tells. Equal for the same question at another price."""
    asked = _json(stored) if isinstance(stored, str) else None
    if isinstance(asked, list):
        return questions.digest(asked)
    try:
        return None if text is None else old_entries.question(text)
    except RecordError:
        return None


def contribution_bounds(text: str | None, stored: Any) -> tuple[Mapping[str, Any], ...] | None:
    """What bounds one unit, with its limits: as the entry stores it, or read from the plan in an entry of before."""
    bounds = _json(stored) if isinstance(stored, str) else None
    if isinstance(bounds, list) and all(isinstance(bound, Mapping) for bound in bounds):
        return tuple({name: limit for name, limit in bound.items() if _scalar(limit) is not None} for bound in bounds)
    return None if text is None else old_entries.contribution_bounds(text)


@lru_cache(maxsize=256)
def mechanisms(text: str) -> tuple[str, ...]:
    """The registered names of the plan and of every plan inside it."""
    return tuple(dict.fromkeys(each["is"] for each in _records(_json(text)) if each["is"].startswith("plan-")))


_AFTERWARDS = {
    _QUERY: "SELECT list, HAVING, ORDER BY and LIMIT of queries",
    "plan-tidy/1": "histograms made non-negative, whole and consistent",
}
_ON_REQUEST = {
    "floor": "numbers below 0 raised to 0",
    "unclip": "sums raised by what limits are estimated to take",
}


@lru_cache(maxsize=256)
def post_processing(text: str) -> tuple[str, ...]:
    """What a plan, or one inside it, does with numbers that are noisy already, as far as its stored fields say so."""
    found: dict[str, None] = {}
    for body in _records(_json(text)):
        if body["is"] in _AFTERWARDS:
            found[_AFTERWARDS[body["is"]]] = None
        if body["is"] == _QUERY:
            found |= {words: None for name, words in _ON_REQUEST.items() if body.get(name) is True}
    return tuple(found)


def noises(event: Event) -> tuple[str, ...]:
    """The kinds of noise in an event: "gaussian", "laplace". What only wraps others has none of its own."""
    parts = [each for each in _records(record.encode(event)) if "/" in each["is"]]  # numbers are records of no version
    alone = (each["is"] for each in parts if not any("/" in inner["is"] for inner in _inside(each)))
    return tuple(dict.fromkeys(name.partition("/")[0] for name in alone))


def steps(plan: Plan[Any, Any]) -> tuple[str, ...] | None:
    """The plan in plain words."""
    try:
        return tuple(str(line) for line in plan.explain())
    except Exception:  # words are a comfort: they must not stop a reading
        return None


def bound_words(limit: Mapping[str, Any], unit: str) -> str:
    """One of the contribution bounds, as a sentence."""
    kind = limit.get("kind")
    if kind == _SQL_LIMITS:
        return _limit_words(limit, unit)
    if kind == _ADVISED:
        return (
            f"up to where one {unit} counts in full was measured, for a part of the price: see the notes on the answer"
        )
    if kind in (_COLUMN, _BOUNDS):
        name = limit.get("column") or str(limit.get("of", "")).rpartition(".")[2]
        return f"{name}, where it is added up or ranked, is clamped to {limit.get('lower')} ... {limit.get('upper')}"
    words, known = [], ("of", "kind", "column", "lower", "upper", "per_unit")
    if "lower" in limit or "upper" in limit:
        name = limit.get("column") or str(limit.get("of", "")).rpartition(".")[2]
        words.append(f"{name} is clamped to {limit.get('lower', '-inf')} ... {limit.get('upper', 'inf')}")
    if "per_unit" in limit:
        words.append(f"one {unit} counts for at most {limit['per_unit']} row(s)")
    words += [f"{name} = {value}" for name, value in limit.items() if name not in known]
    return "; ".join(words)


def _limit_words(limit: Mapping[str, Any], unit: str) -> str:
    """A weight begins where the vector of a unit's row counts, one for each group, is longer than `rows`."""
    rows, keys = limit.get("rows"), limit.get("keys")
    square = limit.get("lengths") == "square"
    over = f"in one group, or a vector of row counts {rows} long over several" if square else "over all groups"
    words = [f"one {unit} counts in full up to {rows} row(s) {over}"]
    most = "as many groups, if there are so many" if keys is None else f"up to {keys} group(s)"
    words.append(f"where {unit}s are counted, in {most}")
    words += [f"in {name[9:]} up to {limit[name]}" for name in limit if name.startswith("reach of ")]
    return "; ".join([*words, "one that holds more is weighted down as a whole"])


def _inside(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for item in body.values():
        yield from _records(item)


def _records(body: Any) -> Iterator[Mapping[str, Any]]:
    """The stored records in a JSON value, each before those inside it."""
    if isinstance(body, Mapping):
        if isinstance(body.get("is"), str):
            yield body
        yield from _inside(body)
    elif isinstance(body, list):
        for item in body:
            yield from _records(item)


def _scalar(value: Any) -> Any:
    """A number (exact ones as text), a word or a truth value; None for anything larger."""
    if isinstance(value, Mapping) and value.get("is") == "exact":
        return value.get("value")
    return value if isinstance(value, bool | int | float | str) else None


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
