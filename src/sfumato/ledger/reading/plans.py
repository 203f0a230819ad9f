"""What a plan's stored JSON says, without building the plan: an auditor needs no mechanism."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from ...plan import Plan

# How far one unit may reach: the limits that plans and their queries carry.
_LIMITS = ("per_unit", "lower", "upper", "norm", "bound", "clip", "most", "limit")


@lru_cache(maxsize=256)
def parameters(text: str) -> tuple[str | None, Mapping[str, Any]]:
    """The registered name of the plan, and the numbers and words among its own fields, as it was asked for."""
    body = _json(text)
    if not isinstance(body, Mapping):
        return None, {}
    name = body.get("is")
    own = {field: _scalar(value) for field, value in body.items() if field != "is" and _scalar(value) is not None}
    return name if isinstance(name, str) else None, own


@lru_cache(maxsize=256)
def contribution_bounds(text: str) -> tuple[Mapping[str, Any], ...]:
    """The queries in a plan that limit what one unit can do, with their limits."""
    return tuple(_bounded(_json(text), ""))


@lru_cache(maxsize=256)
def mechanisms(text: str) -> tuple[str, ...]:
    """The registered names of the plan and of every plan inside it."""
    return tuple(dict.fromkeys(name for name in _names(_json(text)) if name.startswith("plan-")))


def steps(plan: Plan[Any]) -> tuple[str, ...] | None:
    """The plan in plain words."""
    try:
        return tuple(str(line) for line in plan.explain())
    except Exception:  # words are a comfort: they must not stop a reading
        return None


def _bounded(body: Any, path: str) -> Iterator[dict[str, Any]]:
    if isinstance(body, list):
        for place, item in enumerate(body):
            yield from _bounded(item, f"{path}[{place}]")
    if not isinstance(body, Mapping) or body.get("is") in ("exact", "array", "live", "unit/1"):
        return
    found = {name: _scalar(body[name]) for name in _LIMITS if name in body and _scalar(body[name]) is not None}
    if found:
        column = body.get("column")
        yield {"of": path or "plan", "kind": body.get("is"), **({"column": column} if column else {}), **found}
    for name, item in body.items():
        if name != "is":
            yield from _bounded(item, f"{path}.{name}" if path else name)


def _names(body: Any) -> Iterator[str]:
    if isinstance(body, Mapping):
        if isinstance(body.get("is"), str):
            yield body["is"]
        for item in body.values():
            yield from _names(item)
    elif isinstance(body, list):
        for item in body:
            yield from _names(item)


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
