"""Expressions over released values: what a SELECT list, HAVING and ORDER BY may say about numbers that have left.

All of it is post-processing: free, and no more is learned than what was released. Values are figures (numbers that
know their noise), keys (the values that groups are made by) or truths (SQL's true, false, unknown).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np
from sqlglot import exp

from ..refusal import QueryError
from . import figures, images, text_functions
from .figures import Figure
from .values import Keys, Objects, Truth, Value, as_figure, as_truth, compare_keys, keys_of, moment, objects


def evaluate(
    node: exp.Expression, columns: Mapping[str, Value], names: Callable[[exp.Expression], str | None], size: int
) -> Value:
    """The value of an expression for each of `size` groups. `names` says which column an aggregate or a key is."""
    with np.errstate(all="ignore"):
        return _Evaluation(columns, names, size).value(node)


class _Evaluation:
    def __init__(self, columns: Mapping[str, Value], names: Callable[[exp.Expression], str | None], size: int) -> None:
        self.columns, self.names, self.size = columns, names, size

    def value(self, node: exp.Expression) -> Value:
        name = self.names(node)
        if name is not None:
            return self.columns[name]
        method = _METHODS.get(type(node))
        if method is None:
            raise QueryError(
                f"{_shown(node)} cannot be used on released values.",
                "use arithmetic, comparisons, CASE, texts, ROUND and the like; or write it into a subquery, below "
                "the aggregate",
                node,
            )
        return method(self, node)

    def figure(self, node: exp.Expression) -> Figure:
        found = as_figure(self.value(node))
        if found is not None:
            return found
        raise QueryError(f"{_shown(node)} is not a number.", "use a number here, such as COUNT(*)", node)

    def truth(self, node: exp.Expression) -> Truth:
        found = self.unknown() if self.null(node) else as_truth(self.value(node))
        if found is not None:
            return found
        raise QueryError(f"{_shown(node)} is not a condition.", "compare it with something", node)

    def unknown(self) -> Truth:
        return Truth(np.zeros(self.size, dtype=np.bool_), np.zeros(self.size, dtype=np.bool_))

    def null(self, node: exp.Expression) -> bool:
        return isinstance(node.unnest(), exp.Null)

    def public(self, node: exp.Expression, what: str) -> float:
        """A constant of the query."""

        def nameless(each: exp.Expression) -> str | None:
            if self.names(each) is not None:
                raise QueryError(f"{what} must be a plain number.", "write a number, such as 2", node)
            return None

        return float(_Evaluation({}, nameless, 1).figure(node).value[0])

    # one method for each kind of node

    def literal(self, node: exp.Expression) -> Value:
        if node.is_string:
            return Keys(objects([node.this] * self.size), "text")
        return figures.constant(float(node.this), self.size)

    def boolean(self, node: exp.Expression) -> Value:
        return Truth(np.full(self.size, bool(node.this)), np.ones(self.size, dtype=np.bool_))

    def nothing(self, node: exp.Expression) -> Value:
        return figures.constant(np.nan, self.size)

    def inner(self, node: exp.Expression) -> Value:
        return self.value(node.this)

    def choice(self, node: exp.Expression) -> Value:
        """CASE and IF, from the last branch to the first."""
        branches = node.args["ifs"] if isinstance(node, exp.Case) else [node]
        last = node.args.get("default") if isinstance(node, exp.Case) else node.args.get("false")
        result: exp.Expression | Value = last or exp.Null()
        for branch in reversed(branches):
            simple = isinstance(node, exp.Case) and node.this is not None
            held = self.compared(exp.EQ, node.this, branch.this, branch) if simple else self.truth(branch.this)
            result = self.chosen(held, branch.args["true"], result)
        assert not isinstance(result, exp.Expression)
        return result

    def chosen(self, held: Truth, one: exp.Expression | Value, two: exp.Expression | Value) -> Value:
        """Both of one kind; NULL is of any."""
        nodes = [each for each in (one, two) if isinstance(each, exp.Expression)]
        first, second = (self.value(each) if isinstance(each, exp.Expression) else each for each in (one, two))
        if isinstance(first, Keys | Truth) and isinstance(two, exp.Expression) and self.null(two):
            second = self._nulls(first)
        if isinstance(second, Keys | Truth) and isinstance(one, exp.Expression) and self.null(one):
            first = self._nulls(second)
        if isinstance(first, Keys) and isinstance(second, Keys) and first.type == second.type:
            return Keys(np.where(held.true, first.values, second.values), first.type)
        one_number, two_number = as_figure(first), as_figure(second)
        if one_number is not None and two_number is not None:
            return images.where(held.true, one_number, two_number, held.guards)
        one_truth, two_truth = as_truth(first), as_truth(second)
        if one_truth is not None and two_truth is not None:
            true = np.where(held.true, one_truth.true, two_truth.true)
            known = np.where(held.true, one_truth.known, two_truth.known)
            return Truth(true, known, held.guards + one_truth.guards + two_truth.guards)
        raise QueryError(
            "The branches are of different kinds: numbers, keys and conditions cannot be mixed.",
            "give all branches one kind",
            nodes[0] if nodes else None,
        )

    def _nulls(self, like: Keys | Truth) -> Keys | Truth:
        return self.unknown() if isinstance(like, Truth) else Keys(objects([None] * self.size), like.type)

    def coalesce(self, node: exp.Expression) -> Value:
        terms = [node.this, *node.expressions]
        result: exp.Expression | Value = terms[-1]
        for term in reversed(terms[:-1]):
            result = self.chosen(self.present(self.value(term)), term, result)
        return self.value(result) if isinstance(result, exp.Expression) else result

    def present(self, value: Value) -> Truth:
        every = np.ones(self.size, dtype=np.bool_)
        if isinstance(value, Figure):
            return Truth(np.isfinite(value.value), every)
        if isinstance(value, Keys):
            return Truth(np.array([each is not None for each in value.values], dtype=np.bool_), every)
        return Truth(value.known, every) if isinstance(value, Truth) else Truth(every, every)

    def nullif(self, node: exp.Expression) -> Value:
        return self.chosen(self.compared(exp.EQ, node.this, node.expression, node), exp.Null(), node.this)

    def comparison(self, node: exp.Expression) -> Value:
        return self.compared(type(node), node.this, node.expression, node)

    def compared(self, how: type[Any], left: exp.Expression, right: exp.Expression, node: exp.Expression) -> Truth:
        if self.null(left) or self.null(right):
            return self.unknown()
        compare = _COMPARE[how]
        one, two = self.value(left), self.value(right)
        one, two = self.read(one, left, two), self.read(two, right, one)
        if isinstance(one, Keys | Truth) and isinstance(two, Keys | Truth):
            return compare_keys(compare, *self.alike(one, two, node))
        first, second = self.figure(left), self.figure(right)
        between = first - second
        known = ~np.isnan(between.value)
        decided = between.noisy and how not in (exp.EQ, exp.NEQ)  # nobody asks noise for equality
        return Truth(compare(first.value, second.value) & known, known, (between,) if decided else ())

    def read(self, value: Value, node: exp.Expression, beside: Value) -> Value:
        """A literal as what it is compared with: a date, or the text that a key of unknown type is compared as."""
        literal = node.unnest()
        if isinstance(beside, Keys) and isinstance(literal, exp.Literal | exp.Neg):
            if beside.type in ("date", "moment") and literal.is_string:
                return Keys(objects([moment(literal)] * self.size), "moment")
            if beside.type == "key" and not literal.is_string:
                return Keys(objects([literal.sql()] * self.size), "text")
        return value

    def alike(self, one: Keys | Truth, two: Keys | Truth, node: exp.Expression) -> tuple[Objects, Objects]:
        """Both as values that Python compares as the engine does."""
        left, right = (keys_of(each) for each in (one, two))
        types = {left.type, right.type}
        if "key" in types:
            return left.as_text().values, right.as_text().values
        if types == {"date", "moment"}:  # a date is the moment it begins
            return left.as_moments().values, right.as_moments().values
        if len(types) == 1 or types <= {"whole", "real"}:
            return left.values, right.values
        raise QueryError(f"A {left.type} is compared with a {right.type}.", f"give a {left.type} on both sides", node)

    def among(self, node: exp.Expression) -> Value:
        if not node.expressions:
            raise QueryError("IN needs a list of values here.", "write the values out, as in k IN ('a', 'b')", node)
        tests = [self.compared(exp.EQ, node.this, each, node) for each in node.expressions]
        return reduce(lambda a, b: a | b, tests)

    def between(self, node: exp.Expression) -> Value:
        low, high = node.args["low"], node.args["high"]
        return self.compared(exp.GTE, node.this, low, node) & self.compared(exp.LTE, node.this, high, node)

    def like(self, node: exp.Expression) -> Value:
        value, pattern = self.value(node.this), node.expression
        if not isinstance(value, Keys) or not isinstance(pattern, exp.Literal) or not pattern.is_string:
            raise QueryError("LIKE compares a key with a text.", "write it as in k LIKE 'north%'", node)
        parts = {"%": ".*", "_": "."}
        text = "".join(parts.get(sign, re.escape(sign)) for sign in pattern.this)
        found = re.compile(text, re.DOTALL | (re.IGNORECASE if isinstance(node, exp.ILike) else 0))
        texts = value.as_text().values
        true = np.array([each is not None and found.fullmatch(each) is not None for each in texts], dtype=np.bool_)
        held = Truth(true, np.array([each is not None for each in texts], dtype=np.bool_))
        return ~held if node.args.get("negate") else held

    def is_(self, node: exp.Expression) -> Value:
        wanted = node.expression
        if isinstance(wanted, exp.Null):
            return ~self.present(self.value(node.this))
        if isinstance(wanted, exp.Boolean):
            held = self.truth(node.this)
            held = held if wanted.this else ~held
            return Truth(held.true, np.ones(self.size, dtype=np.bool_), held.guards)
        raise QueryError("IS takes NULL, TRUE or FALSE.", "use = for values", node)

    def log(self, node: exp.Expression) -> Value:
        """LOG(x) is to base 10, LOG(b, x) to base b."""
        if node.expression is None:
            return images.logarithm(self.figure(node.this), 10.0)
        base = self.public(node.this, "The base of a logarithm")
        if not base > 0 or base == 1:
            raise QueryError("This is no base of logarithms.", "use 2, 10, or LN(x)", node)
        return images.logarithm(self.figure(node.expression), base)

    def power(self, node: exp.Expression) -> Value:
        return images.power(self.figure(node.this), self.public(node.expression, "An exponent"))

    def round_(self, node: exp.Expression) -> Value:
        places = node.args.get("decimals")
        digits = 0 if places is None else int(self.public(places, "The number of places"))
        return images.rounded(self.figure(node.this), lambda x: _rounded(x, max(-15, min(digits, 15))))

    def extreme(self, node: exp.Expression) -> Value:
        terms = [self.figure(each) for each in (node.this, *node.expressions)]
        return images.extreme(terms, greatest=isinstance(node, exp.Greatest))

    def cast(self, node: exp.Expression) -> Value:
        to = node.args["to"].this
        value = self.value(node.this)
        if to in exp.DataType.TEXT_TYPES:
            return text_functions.written(value, node)
        if to in exp.DataType.TEMPORAL_TYPES:
            if isinstance(node.this, exp.Literal):
                value = Keys(objects([moment(node.this)] * self.size), "moment")
            if isinstance(value, Keys) and value.type in ("date", "moment"):
                moments = value.as_moments()
                return moments.as_dates() if to == exp.DataType.Type.DATE else moments
        sizes = node.args["to"].expressions
        if to == exp.DataType.Type.DECIMAL and (len(sizes) == 2 or not sizes):
            digits = min(int(sizes[1].name), 15) if sizes else 3
            return images.rounded(self.figure(node.this), lambda x: _rounded(x, digits))
        if to in exp.DataType.REAL_TYPES:
            return self.figure(node.this)
        if to in exp.DataType.INTEGER_TYPES:
            return images.rounded(self.figure(node.this), np.rint)
        raise QueryError(f"{_shown(node)} cannot be cast after release.", "leave the cast out", node)


def _binary(how: Callable[[Any, Any], Any]) -> Callable[[_Evaluation, exp.Expression], Value]:
    return lambda self, node: how(self.figure(node.this), self.figure(node.expression))


def _unary(how: Callable[[Figure], Figure]) -> Callable[[_Evaluation, exp.Expression], Value]:
    return lambda self, node: how(self.figure(node.this))


def _step(way: Callable[[Any], Any]) -> Callable[[_Evaluation, exp.Expression], Value]:
    def step(self: _Evaluation, node: exp.Expression) -> Value:
        if node.args.get("decimals") is not None:
            raise QueryError("This takes no number of places.", "use ROUND(x, places)", node)
        return images.rounded(self.figure(node.this), way)

    return step


_COMPARE: dict[type[exp.Expression], Callable[[Any, Any], Any]] = {
    exp.EQ: lambda a, b: a == b,
    exp.NEQ: lambda a, b: a != b,
    exp.LT: lambda a, b: a < b,
    exp.LTE: lambda a, b: a <= b,
    exp.GT: lambda a, b: a > b,
    exp.GTE: lambda a, b: a >= b,
}

_METHODS: dict[type[exp.Expression], Callable[[_Evaluation, Any], Value]] = {
    exp.Literal: _Evaluation.literal,
    exp.Boolean: _Evaluation.boolean,
    exp.Null: _Evaluation.nothing,
    exp.Paren: _Evaluation.inner,
    exp.Alias: _Evaluation.inner,
    exp.Add: _binary(lambda a, b: a + b),
    exp.Sub: _binary(lambda a, b: a - b),
    exp.Mul: _binary(lambda a, b: a * b),
    exp.Div: _binary(lambda a, b: a / b),
    exp.IntDiv: _binary(lambda a, b: images.rounded(a / b, np.trunc)),
    exp.Neg: _unary(lambda a: -a),
    exp.Abs: _unary(images.absolute),
    exp.Sqrt: _unary(images.root),
    exp.Ln: _unary(images.logarithm),
    exp.Exp: _unary(images.exponential),
    exp.Log: _Evaluation.log,
    exp.Pow: _Evaluation.power,
    exp.Round: _Evaluation.round_,
    exp.Floor: _step(np.floor),
    exp.Ceil: _step(np.ceil),
    exp.Trunc: _step(np.trunc),
    exp.Greatest: _Evaluation.extreme,
    exp.Least: _Evaluation.extreme,
    exp.Case: _Evaluation.choice,
    exp.If: _Evaluation.choice,
    exp.Coalesce: _Evaluation.coalesce,
    exp.Nullif: _Evaluation.nullif,
    exp.And: lambda self, node: self.truth(node.this) & self.truth(node.expression),
    exp.Or: lambda self, node: self.truth(node.this) | self.truth(node.expression),
    exp.Not: lambda self, node: ~self.truth(node.this),
    exp.In: _Evaluation.among,
    exp.Between: _Evaluation.between,
    exp.Like: _Evaluation.like,
    exp.ILike: _Evaluation.like,
    exp.Is: _Evaluation.is_,
    exp.Cast: _Evaluation.cast,
    exp.TryCast: _Evaluation.cast,
    **dict.fromkeys(_COMPARE, _Evaluation.comparison),
    **text_functions.METHODS,
}


def _rounded(x: Any, digits: int) -> Any:
    """Halves away from 0, as in the engine."""
    scale = 10.0**digits
    return np.copysign(np.floor(np.abs(x) * scale + 0.5) / scale, x)


def _shown(node: exp.Expression) -> str:
    text = node.sql(dialect="duckdb")
    return text if len(text) <= 60 else text[:57] + "..."
