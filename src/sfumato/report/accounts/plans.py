"""What a plan's stored JSON says, without building the plan: an auditor needs no mechanism."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from ... import contributions, questions, record
from ...errors import RecordError
from ...events import Event
from ...plan import Plan
from . import old_entries, stored_json


@lru_cache(maxsize=256)
def parameters(text: str) -> tuple[str | None, Mapping[str, Any]]:
    """The registered name of the plan, and the numbers and words among its own fields, as it was asked for."""
    plan = stored_json.body(text)
    if not isinstance(plan, Mapping):
        return None, {}
    name = plan.get("is")
    return name if isinstance(name, str) else None, stored_json.scalars(plan)


def question(text: str | None, stored: Any) -> str | None:
    """The digest of what a plan asks: what its entry stores of it, or, in an entry of before, what the plan's JSON
    tells. Equal for the same question at another price."""
    stated = stored_json.body(stored)
    if isinstance(stated, list):
        return questions.digest(stated)
    try:
        return None if text is None else old_entries.question(text)
    except RecordError:
        return None


def contribution_bounds(text: str | None, stored: Any) -> tuple[Mapping[str, Any], ...] | None:
    """What bounds one unit, with its limits: as the entry stores it, or read from the plan in an entry of before."""
    bounds = stored_json.body(stored)
    if isinstance(bounds, list) and all(isinstance(bound, Mapping) for bound in bounds):
        is_limit = stored_json.scalar
        return tuple({name: limit for name, limit in bound.items() if is_limit(limit) is not None} for bound in bounds)
    return None if text is None else old_entries.contribution_bounds(text)


def post_processing(text: str | None, stored: Any) -> tuple[str, ...]:
    """What a plan does with numbers that are noisy already: as the entry stores it, or, in an entry of before, as far
    as the plan's fields say so."""
    steps = stored_json.body(stored)
    if isinstance(steps, list) and all(isinstance(step, str) for step in steps):
        return tuple(steps)
    return () if text is None else old_entries.post_processing(text)


@lru_cache(maxsize=256)
def mechanisms(text: str) -> tuple[str, ...]:
    """The registered names of the plan and of every plan inside it."""
    names = (part["is"] for part in stored_json.records(stored_json.body(text)))
    return tuple(dict.fromkeys(name for name in names if name.startswith("plan-")))


def noises(event: Event) -> tuple[str, ...]:
    """The kinds of noise in an event: "gaussian", "laplace". What only wraps others has none of its own."""
    events = stored_json.records(record.encode(event))
    parts = [part for part in events if "/" in part["is"]]  # numbers are records of no version
    alone = (part["is"] for part in parts if not any("/" in inner["is"] for inner in stored_json.records_inside(part)))
    return tuple(dict.fromkeys(name.partition("/")[0] for name in alone))


def steps(plan: Plan[Any, Any]) -> tuple[str, ...] | None:
    """The plan in plain words."""
    try:
        return tuple(str(line) for line in plan.explain())
    except Exception:  # words are a comfort: they must not stop a reading
        return None


def bound_words(bound: Mapping[str, Any], unit: str) -> str:
    """One of the contribution bounds, as a sentence: what its entry says of it, or its limits by name."""
    words = bound.get(contributions.WORDS) or old_entries.bound_words(bound, unit)
    return words if isinstance(words, str) else _limits_by_name(bound, unit)


def _limits_by_name(bound: Mapping[str, Any], unit: str) -> str:
    sentences, told_apart = [], ("of", "kind", "column", "lower", "upper", "per_unit")
    if "lower" in bound or "upper" in bound:
        name = bound.get("column") or str(bound.get("of", "")).rpartition(".")[2]
        sentences.append(f"{name} is clamped to {bound.get('lower', '-inf')} ... {bound.get('upper', 'inf')}")
    if "per_unit" in bound:
        sentences.append(f"one {unit} counts for at most {bound['per_unit']} row(s)")
    sentences += [f"{name} = {value}" for name, value in bound.items() if name not in told_apart]
    return "; ".join(sentences)
