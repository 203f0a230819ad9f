"""What entries of before said only by their plan: its question, its bounds and what it does with noisy numbers, read
from its JSON by field names.

A plan now says all of it itself, and its entry holds what it said (`charges.stated`). This reads the entries that were
written before, by the names that fields had then, and serves nothing else: no new mechanism is added here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

from ... import questions, times
from ...errors import RecordError
from .stored_json import body as body_of
from .stored_json import pairs, records, scalar, scalars

# Each mechanism beside those that answer the same question.
_FAMILIES = {
    "value": ("laplace", "gaussian", "geometric", "linfinity-noise", "l2-noise"),
    "best": ("exponential", "permute-and-flip", "top-k", "noisy-max-with-value"),
    "quantile": ("quantile", "quantile-tree", "smooth-median", "propose-test-release"),
    "keys": ("optimal-keys", "threshold-keys", "weighted-keys"),
    "synthetic": ("mwem", "multiplicative-weights"),
}
_FAMILY = {f"plan-{name}": family for family, names in _FAMILIES.items() for name in names}
_MEDIANS = ("plan-smooth-median", "plan-propose-test-release")  # quantiles that do not say which

_WRAPPERS = frozenset(f"plan-{name}" for name in ("sequence", "repeat", "tidy", "joint", "partition"))

# What a question does not depend on: price and noise, who is protected, how it is computed and tidied.
_DROPPED = {
    "epsilon", "delta", "rho", "multiplier", "answers_epsilon", "count_epsilon", "failure", "share", "alpha",
    "accuracy", "noise", "shape", "step", "tau", "sensitivity", "budget", "passes", "rounds", "updates", "times",
    "count", "most", "k", "unit", "protects", "per_unit", "separation", "group", "strategy", "tree", "leaves",
    "branching", "levels", "bands", "monotone", "nonnegative", "whole", "total", "project", "rows", "labels",
    "declared_l1", "declared_l2", "declared_linf", "bound", "nulls",
}  # fmt: skip
_KEPT_FOR = {"equal-bins": "count"}  # there, the number of cells is the question
_UNORDERED = frozenset({"categories", "values", "q", "axes", "questions"})
_FILTERS = frozenset({"between", "bins"})  # numbers there choose rows, and are kept
_CHOOSING = _UNORDERED | {"over", "weights", "horizon", "lowest", "highest", *_KEPT_FOR.values()}  # and in these fields


@lru_cache(maxsize=256)
def question(plan: str) -> str:
    """The digest of what a plan asks, from its JSON."""
    try:
        return questions.digest(_questions(json.loads(plan)))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise RecordError("this is no plan that was written here") from None


def _questions(plan: dict[str, Any]) -> Iterator[Any]:
    """What a plan asks, one by one. A sequence asks what its parts ask, whatever they are called."""
    kind = _word(plan)
    if kind not in _WRAPPERS:
        yield _question(plan)
        return
    parts = [part for _, part in plan["plans"]["items"]] if "plans" in plan else [plan["plan"]]
    keys = [key for key, _ in plan["plans"]["items"]] if kind == "plan-partition" else parts
    for key, part in zip(keys, parts, strict=True):
        for question in _questions(part):
            yield ["for", plan["column"], _plain(key, True), question] if kind == "plan-partition" else question


def _question(plan: dict[str, Any]) -> Any:
    kind = _word(plan)
    body = _body(plan, kind)
    if kind in _MEDIANS:
        body["q"] = [questions.number(Fraction(1, 2), "roughly")]
    return {**body, "is": _FAMILY.get(kind, kind)}


def _plain(node: Any, exactly: bool) -> Any:
    """A value without what may be turned: numbers as rounded text, so that 1, 1.0 and an exact 1 are one."""
    if node is None or isinstance(node, bool | str):
        return node
    if isinstance(node, int | float):
        return questions.number(
            Fraction(node if isinstance(node, int) else repr(node)), "nearly" if exactly else "roughly"
        )
    if isinstance(node, list):
        return [_plain(item, exactly) for item in node]
    kind = _word(node)
    if kind == "exact":
        return questions.number(Fraction(node["value"]), "nearly" if exactly else "roughly")
    if kind == "map":
        return questions.in_order([[_plain(key, True), _plain(item, exactly)] for key, item in node["items"]])
    if kind in ("share", "running"):  # the same numbers, divided by a public one or added up
        return _plain(node["query"], exactly)
    return {**_body(node, kind), "is": kind}


def _body(node: dict[str, Any], kind: str) -> dict[str, Any]:
    fields = {}
    for name, item in node.items():
        if name == "is" or (name in _DROPPED and _KEPT_FOR.get(kind) != name):
            continue
        value = _plain(item, kind in _FILTERS or name in _CHOOSING)
        fields[name] = questions.in_order(value) if name in _UNORDERED and isinstance(value, list) else value
    return fields


def _word(node: dict[str, Any]) -> str:
    kind = node.get("is")
    return kind.split("/")[0] if isinstance(kind, str) else ""


# How far one unit may reach: the limits that plans and their queries carried.
_LIMITS = ("per_unit", "lower", "upper", "norm", "bound", "clip", "most", "limit")
_SQL_LIMITS = "sql-limits/1"  # all of whose fields are limits
_QUERY, _COLUMN, _BOUNDS, _ADVISED = "plan-sql/1", "column/1", "sql-bounds", "sql-advised"


@lru_cache(maxsize=256)
def contribution_bounds(text: str) -> tuple[Mapping[str, Any], ...]:
    """The queries in a plan that limit what one unit can do, with their limits."""
    return tuple(_bounded(body_of(text), ""))


def _bounded(body: Any, path: str) -> Iterator[dict[str, Any]]:
    if isinstance(body, list):
        for place, item in enumerate(body):
            yield from _bounded(item, f"{path}[{place}]")
    if not isinstance(body, Mapping) or body.get("is") in ("exact", "array", "live", "unit/1"):
        return
    if body.get("is") == "map":
        for name, item in pairs(body):
            yield from _bounded(item, f"{path}.{name}" if path else name)
        return
    if body.get("is") == _QUERY:
        yield from _of_query(body, path)
        return
    if body.get("is") == _SQL_LIMITS:
        own = scalars(body)
        reach = {f"reach of {name}": scalar(item) for name, item in pairs(body.get("reach"))}
        yield {"of": path or "plan", "kind": _SQL_LIMITS, **own, **reach}
        return
    if body.get("private") is False:  # a table that hides nobody limits nobody
        return
    found = {name: scalar(body[name]) for name in _LIMITS if name in body and scalar(body[name]) is not None}
    if body.get("type") in ("date", "moment"):  # stored as days or microseconds
        found = {
            name: times.shown(int(each), body["type"])
            for name, each in found.items()
            if str(each).lstrip("-").isdigit()
        }
    if found:
        column = body.get("column")
        yield {"of": path or "plan", "kind": body.get("is"), **({"column": column} if column else {}), **found}
    for name, item in body.items():
        if name != "is":
            yield from _bounded(item, f"{path}.{name}" if path else name)


def _of_query(body: Mapping[str, Any], path: str) -> Iterator[dict[str, Any]]:
    """Limits first: those of the plan, or that an adviser measures them. Then the query's own bounds, which come before
    those of the schema."""
    within = f"{path}." if path else ""
    unit = body.get("protects")
    by_rows = isinstance(unit, Mapping) and unit.get("of") == "row"
    plain = body.get("rho") is None and scalar(body.get("delta")) in (None, 0, "0")
    for each in _bounded(body.get("limits"), f"{within}limits"):
        yield each | {"lengths": "add up" if plain else "square"}
    if body.get("limits") is None and not by_rows:
        yield {"of": f"{within}limits", "kind": _ADVISED}
    own = {}
    for name, pair in pairs(body.get("bounds")):
        if isinstance(pair, list) and len(pair) == 2:
            own[name] = {"lower": scalar(pair[0]), "upper": scalar(pair[1])}
            yield {"of": f"{within}bounds.{name}", "kind": _BOUNDS, "column": name, **own[name]}
    for each in _bounded(body.get("schema"), f"{within}schema"):
        if str(each["of"]).rpartition(".")[2].lower() not in own:
            yield each


def bound_words(bound: Mapping[str, Any], unit: str) -> str | None:
    """A bound that says none itself, as a sentence; None for one whose limits speak by their names."""
    kind = bound.get("kind")
    if kind == _SQL_LIMITS:
        return _limit_words(bound, unit)
    if kind == _ADVISED:
        return (
            f"up to where one {unit} counts in full was measured, for a part of the price: see the notes on the answer"
        )
    if kind in (_COLUMN, _BOUNDS):
        name = bound.get("column") or str(bound.get("of", "")).rpartition(".")[2]
        return f"{name}, where it is added up or ranked, is clamped to {bound.get('lower')} ... {bound.get('upper')}"
    return None


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
    steps: dict[str, None] = {}
    for body in records(body_of(text)):
        if body["is"] in _AFTERWARDS:
            steps[_AFTERWARDS[body["is"]]] = None
        if body["is"] == _QUERY:
            steps |= {words: None for name, words in _ON_REQUEST.items() if body.get(name) is True}
    return tuple(steps)
