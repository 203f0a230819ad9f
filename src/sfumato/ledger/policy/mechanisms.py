"""The mechanisms of a plan, by their registered names: what a policy allows."""

from __future__ import annotations

import json
from typing import Any

from ... import kinds, record
from ...errors import RecordError
from ...plan import Plan


def kinds_within(plan: str) -> tuple[str, ...]:
    """The registered names of a plan and of all plans inside it, from its JSON."""
    found: dict[str, None] = {}

    def visit(node: Any) -> None:
        if isinstance(node, dict):
            kind = node.get("is")
            if isinstance(kind, str) and kind.startswith("plan-"):
                found[kind] = None
            for item in node.values():
                visit(item)
        elif isinstance(node, list):
            for item in node:
                visit(item)

    try:
        visit(json.loads(plan))
    except (ValueError, TypeError, RecursionError):
        raise RecordError("this is no plan that was written here") from None
    return tuple(found)


def with_noise(names: tuple[str, ...]) -> tuple[str, ...]:
    """Those of them that release something themselves: what only wraps others is as allowed as they are. A name that
    is not known wraps nothing."""
    kinds.load()
    known = record.kinds(Plan)  # type: ignore[type-abstract]
    return tuple(name for name in names if name not in known or not known[name].wraps)
