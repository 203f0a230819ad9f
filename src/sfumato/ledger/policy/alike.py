"""The same question asked again: a digest of a plan without its noise, its price and its labels.

Who asks one thing many times averages the noise away as far as the budget lets them. That is paid for, and so it is
safe; but it is rarely what a budget is for, and worth a look. This digest finds it where it is not hidden on purpose:
it drops what can be turned without asking anything else (epsilon, the mechanism, the strategy, the contribution bound,
names of parts, the order of keys), rounds clipping bounds to one significant digit, and keeps columns, keys, filters.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from typing import Any

from ...errors import RecordError

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

WRAPPERS = frozenset(f"plan-{name}" for name in ("sequence", "repeat", "tidy", "joint", "partition"))
"""Plans without noise of their own: all that they release, their parts do."""

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

_COARSE = Context(prec=1, Emax=MAX_EMAX, Emin=MIN_EMIN)
_FINE = Context(prec=4, Emax=MAX_EMAX, Emin=MIN_EMIN)


def alike(plan: str) -> str:
    """The digest of a plan's JSON: equal for the same question at other noise, different for another column, key or
    filter."""
    try:
        questions = sorted({_written(question) for question in _questions(json.loads(plan))})
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise RecordError("this is no plan that was written here") from None
    return hashlib.sha256("\n".join(questions).encode("utf-8", "surrogatepass")).hexdigest()


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


def _questions(plan: dict[str, Any]) -> Iterator[Any]:
    """What a plan asks, one by one. A sequence asks what its parts ask, whatever they are called."""
    kind = _word(plan)
    if kind not in WRAPPERS:
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
        body["q"] = [_number(Fraction(1, 2), False)]
    return {**body, "is": _FAMILY.get(kind, kind)}


def _plain(node: Any, exactly: bool) -> Any:
    """A value without what may be turned: numbers as rounded text, so that 1, 1.0 and an exact 1 are one."""
    if node is None or isinstance(node, bool | str):
        return node
    if isinstance(node, int | float):
        return _number(Fraction(node) if isinstance(node, int) else Fraction(repr(node)), exactly)
    if isinstance(node, list):
        return [_plain(item, exactly) for item in node]
    kind = _word(node)
    if kind == "exact":
        return _number(Fraction(node["value"]), exactly)
    if kind == "map":
        return _sorted([[_plain(key, True), _plain(item, exactly)] for key, item in node["items"]])
    if kind in ("share", "running"):  # the same numbers, divided by a public one or added up
        return _plain(node["query"], exactly)
    return {**_body(node, kind), "is": kind}


def _body(node: dict[str, Any], kind: str) -> dict[str, Any]:
    fields = {}
    for name, item in node.items():
        if name == "is" or (name in _DROPPED and _KEPT_FOR.get(kind) != name):
            continue
        value = _plain(item, kind in _FILTERS or name in _CHOOSING)
        fields[name] = _sorted(value) if name in _UNORDERED and isinstance(value, list) else value
    return fields


def _word(node: dict[str, Any]) -> str:
    kind = node.get("is")
    return kind.split("/")[0] if isinstance(kind, str) else ""


def _number(value: Fraction, exactly: bool) -> list[str]:
    """One significant digit; where a number chooses rows, a whole one stays, and others keep four digits."""
    if exactly and value.denominator == 1:
        rounded = Decimal(value.numerator)
    else:
        context = _FINE if exactly else _COARSE
        rounded = context.divide(Decimal(value.numerator), Decimal(value.denominator))
    sign, digits, exponent = rounded.as_tuple()
    text = "".join(map(str, digits)).lstrip("0")
    bare = text.rstrip("0")
    if not bare:
        return ["0"]
    assert isinstance(exponent, int)
    return [f"{'-' if sign else ''}{bare}e{exponent + len(text) - len(bare)}"]  # a list: no text of the data is one


def _sorted(values: list[Any]) -> list[Any]:
    return sorted(values, key=_written)


def _written(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
