"""Expressions over columns, in polars' words: small values that say nothing until a frame says what its columns are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, NoReturn, TypeAlias

from sqlglot import exp

from . import casting, operators, over_rows, summaries
from .terms import AnyName, Term, TermNames, literal, unlike
from .text_words import Texts
from .time_words import Times
from .unlike_polars import EXPRESSIONS, no_such_method

Word: TypeAlias = str  # in the class, `str` is a namespace


class Expr:
    """An expression, immutable. `+ - * / // % **`, comparisons and `& | ~` make more of it; nothing is computed."""

    __slots__ = ("_build", "_name")
    _build: Callable[[TermNames], Term]
    _name: Word

    def __init__(self, build: Callable[[TermNames], Term], name: Word) -> None:
        object.__setattr__(self, "_build", build)
        object.__setattr__(self, "_name", name)

    def __setattr__(self, name: Word, value: Any) -> NoReturn:
        raise AttributeError("an expression does not change: its methods make new ones")

    def __getattr__(self, name: Word) -> NoReturn:
        raise no_such_method("an expression", name, EXPRESSIONS)

    def __repr__(self) -> str:
        return f"<{self._term(AnyName()).tree.sql('duckdb')}>"

    def __bool__(self) -> NoReturn:
        raise TypeError("an expression is neither true nor false: write & for and, | for or, ~ for not")

    __hash__ = None  # type: ignore[assignment]

    def _term(self, names: TermNames) -> Term:
        return self._build(names)

    def _then(self, name: Word, make: Callable[[Term], Term]) -> Expr:
        """Another expression of this one; `name` is the method's."""
        return Expr(lambda names: make(self._term(names)), self._name)

    def _with(self, other: Any, make: Callable[[Term, Term], Term], *, turned: bool = False) -> Expr:
        right = _operand(other)
        first, second = (right, self) if turned else (self, right)
        return Expr(lambda names: make(first._term(names), second._term(names)), first._name)

    def _arithmetic(self, sign: Word, other: Any, *, turned: bool = False) -> Expr:
        return self._with(other, lambda left, right: operators.arithmetic(sign, left, right), turned=turned)

    def _compared(self, sign: Word, other: Any) -> Expr:
        return self._with(other, lambda left, right: operators.compare(sign, left, right))

    def __add__(self, other: Any) -> Expr:
        return self._arithmetic("+", other)

    def __radd__(self, other: Any) -> Expr:
        return self._arithmetic("+", other, turned=True)

    def __sub__(self, other: Any) -> Expr:
        return self._arithmetic("-", other)

    def __rsub__(self, other: Any) -> Expr:
        return self._arithmetic("-", other, turned=True)

    def __mul__(self, other: Any) -> Expr:
        return self._arithmetic("*", other)

    def __rmul__(self, other: Any) -> Expr:
        return self._arithmetic("*", other, turned=True)

    def __truediv__(self, other: Any) -> Expr:
        return self._arithmetic("/", other)

    def __rtruediv__(self, other: Any) -> Expr:
        return self._arithmetic("/", other, turned=True)

    def __floordiv__(self, other: Any) -> Expr:
        return self._arithmetic("//", other)

    def __rfloordiv__(self, other: Any) -> Expr:
        return self._arithmetic("//", other, turned=True)

    def __mod__(self, other: Any) -> Expr:
        return self._arithmetic("%", other)

    def __rmod__(self, other: Any) -> Expr:
        return self._arithmetic("%", other, turned=True)

    def __pow__(self, other: Any) -> Expr:
        return self._arithmetic("**", other)

    def __neg__(self) -> Expr:
        return self._then("-", operators.negated)

    def __eq__(self, other: Any) -> Expr:  # type: ignore[override]
        return self._compared("==", other)

    def __ne__(self, other: Any) -> Expr:  # type: ignore[override]
        return self._compared("!=", other)

    def __lt__(self, other: Any) -> Expr:
        return self._compared("<", other)

    def __le__(self, other: Any) -> Expr:
        return self._compared("<=", other)

    def __gt__(self, other: Any) -> Expr:
        return self._compared(">", other)

    def __ge__(self, other: Any) -> Expr:
        return self._compared(">=", other)

    def __and__(self, other: Any) -> Expr:
        return self._with(other, lambda left, right: operators.logic(exp.And, left, right))

    def __rand__(self, other: Any) -> Expr:
        return self._with(other, lambda left, right: operators.logic(exp.And, left, right), turned=True)

    def __or__(self, other: Any) -> Expr:
        return self._with(other, lambda left, right: operators.logic(exp.Or, left, right))

    def __ror__(self, other: Any) -> Expr:
        return self._with(other, lambda left, right: operators.logic(exp.Or, left, right), turned=True)

    def __invert__(self) -> Expr:
        return self._then("~", operators.opposite)

    def eq_missing(self, other: Any) -> Expr:
        return self._with(other, lambda left, right: operators.both(exp.NullSafeEQ, left, right, "flag"))

    def ne_missing(self, other: Any) -> Expr:
        return self._with(other, lambda left, right: operators.both(exp.NullSafeNEQ, left, right, "flag"))

    def is_in(self, other: Collection[Any], *, nulls_equal: bool = False) -> Expr:
        if isinstance(other, (Expr, Word)) or not isinstance(other, Collection):
            raise unlike("is_in() takes values that stand in the query", "write a list, or join(..., how='semi')")
        values = [literal(value) for value in other]
        return self._then("is_in", lambda term: operators.among(term, values, nulls_equal=nulls_equal))

    def is_between(self, lower_bound: Any, upper_bound: Any, closed: Word = "both") -> Expr:
        low, high = _operand(lower_bound), _operand(upper_bound)
        return Expr(
            lambda names: operators.between(self._term(names), low._term(names), high._term(names), closed), self._name
        )

    def is_null(self) -> Expr:
        return self._then("is_null", lambda term: operators.missing(term, is_missing=True))

    def is_not_null(self) -> Expr:
        return self._then("is_not_null", lambda term: operators.missing(term, is_missing=False))

    def not_(self) -> Expr:
        return ~self

    def alias(self, name: Word) -> Expr:
        return Expr(self._build, name)

    def cast(self, dtype: Any, *, strict: bool = False) -> Expr:
        return self._then("cast", lambda term: casting.cast(term, dtype, strict))

    def fill_null(self, value: Any) -> Expr:
        return self._with(value, lambda term, other: operators.first_of([term, other]))

    def clip(self, lower_bound: Any = None, upper_bound: Any = None) -> Expr:
        low, high = (None if bound is None else _operand(bound) for bound in (lower_bound, upper_bound))

        def clip(names: TermNames) -> Term:
            ends = [None if end is None else end._term(names) for end in (low, high)]
            return operators.clipped(self._term(names), *ends)

        return Expr(clip, self._name)

    def _real(self, name: Word, node: type[exp.Expr], *, total: bool = True, lower: Any = None) -> Expr:
        def compute(term: Term) -> Term:
            return operators.function(term, node(this=term.tree.copy()), "real", total=total, lower=lower)

        return self._then(name, compute)

    def _same(self, name: Word, node: type[exp.Expr], *, whole: bool, lower: Any = None) -> Expr:
        """A function that leaves whole numbers whole; `whole` ones stay what they are."""

        def compute(term: Term) -> Term:
            if whole and term.kind.is_whole:
                return term
            lowest = 0 if lower is None and term.positive else lower
            return operators.function(term, node(this=term.tree.copy()), term.kind.type, lower=lowest)

        return self._then(name, compute)

    def abs(self) -> Expr:
        return self._same("abs", exp.Abs, whole=False, lower=0)

    def floor(self) -> Expr:
        return self._same("floor", exp.Floor, whole=True)

    def ceil(self) -> Expr:
        return self._same("ceil", exp.Ceil, whole=True)

    def sign(self) -> Expr:
        return self._then(
            "sign", lambda term: operators.function(term, exp.Sign(this=term.tree.copy()), term.kind.type)
        )

    def sqrt(self) -> Expr:
        return self._real("sqrt", exp.Sqrt, total=False, lower=0)

    def exp(self) -> Expr:
        return self._real("exp", exp.Exp, lower=0)

    def log(self, base: float | None = None) -> Expr:
        """The natural logarithm, or the one to a base."""
        if base is None:
            return self._real("log", exp.Ln, total=False)
        bottom = literal(base).tree

        def compute(term: Term) -> Term:
            tree = exp.Log(this=bottom.copy(), expression=term.tree.copy())
            return operators.function(term, tree, "real", total=False)

        return self._then("log", compute)

    def round(self, decimals: int = 0, mode: Word = "half_to_even") -> Expr:
        if mode != "half_away_from_zero":
            raise unlike("polars rounds halves to even digits, SQL away from 0", "write mode='half_away_from_zero'")

        def compute(term: Term) -> Term:
            if term.kind.is_whole:
                return term
            places = {"decimals": literal(decimals).tree} if decimals else {}
            tree = exp.Round(this=term.tree.copy(), **places)
            return operators.function(term, tree, "real", lower=0 if term.positive else None)

        return self._then("round", compute)

    @property
    def str(self) -> Texts:
        return Texts(self)

    @property
    def dt(self) -> Times:
        return Times(self)

    def filter(self, *predicates: Expr) -> Expr:
        """The rows that the aggregate behind it takes: FILTER."""
        tests = [_operand(predicate) for predicate in predicates]

        def keep(names: TermNames) -> Term:
            term = self._term(names)
            trees = [operators.alone(test._term(names), "conditions").tree for test in tests]
            wheres = [*([] if term.where is None else [term.where]), *trees]
            where = wheres[0] if wheres else None
            for other in wheres[1:]:
                where = exp.And(this=operators.bracketed(where), expression=operators.bracketed(other))  # type: ignore[arg-type]
            return Term(term.tree, term.kind, where, term.dropped)

        return Expr(keep, self._name)

    def drop_nulls(self) -> Expr:
        """Values that are there: the aggregate behind it leaves out the others."""
        return self._then("drop_nulls", lambda term: Term(term.tree, term.kind, term.where, dropped=True))

    def len(self) -> Expr:
        return self._then("len", summaries.length)

    def count(self) -> Expr:
        return self._then("count", summaries.count)

    def null_count(self) -> Expr:
        return self._then("null_count", summaries.null_count)

    def n_unique(self) -> Expr:
        return self._then("n_unique", summaries.different)

    def sum(self) -> Expr:
        return self._then("sum", summaries.total)

    def mean(self) -> Expr:
        return self._then("mean", summaries.mean)

    def median(self) -> Expr:
        return self._then("median", summaries.middle)

    def min(self) -> Expr:
        return self._then("min", lambda term: summaries.end(exp.Min, term))

    def max(self) -> Expr:
        return self._then("max", lambda term: summaries.end(exp.Max, term))

    def std(self, ddof: int = 1) -> Expr:
        return self._then("std", lambda term: summaries.spread(term, ddof, root=True))

    def var(self, ddof: int = 1) -> Expr:
        return self._then("var", lambda term: summaries.spread(term, ddof, root=False))

    def quantile(self, quantile: float, interpolation: Any = "nearest") -> Expr:
        return self._then("quantile", lambda term: summaries.quantile(term, quantile, interpolation))

    def any(self, *, ignore_nulls: bool = True) -> Expr:
        _skips_nulls(ignore_nulls)
        return self._then("any", lambda term: summaries.holds("BOOL_OR", term))

    def all(self, *, ignore_nulls: bool = True) -> Expr:
        _skips_nulls(ignore_nulls)
        return self._then("all", lambda term: summaries.holds("BOOL_AND", term))

    def histogram(self, edges: Iterable[Any]) -> Expr:
        """How many values lie between these edges: a bin holds its lower edge, the last one both."""
        listed = [*edges]
        return self._then("histogram", lambda term: summaries.bins(term, listed))

    def rank(self, method: Any = "average", *, descending: bool = False) -> Expr:
        return self._then("rank", lambda term: over_rows.rank(term, method, descending))

    def shift(self, n: int = 1, *, fill_value: Any = None) -> Expr:
        missing = None if fill_value is None else literal(fill_value)
        return self._then("shift", lambda term: over_rows.shifted(term, n, missing))

    def diff(self, n: int = 1) -> Expr:
        return self._arithmetic("-", self.shift(n))

    def first(self) -> Expr:
        return self._then("first", lambda term: over_rows.at_end(term, exp.FirstValue))

    def last(self) -> Expr:
        return self._then("last", lambda term: over_rows.at_end(term, exp.LastValue))

    def cum_sum(self) -> Expr:
        return self._then("cum_sum", lambda term: over_rows.running(term, exp.Sum))

    def cum_min(self) -> Expr:
        return self._then("cum_min", lambda term: over_rows.running(term, exp.Min))

    def cum_max(self) -> Expr:
        return self._then("cum_max", lambda term: over_rows.running(term, exp.Max))

    def cum_count(self) -> Expr:
        return self._then("cum_count", lambda term: over_rows.running(term, exp.Count, counted=True))

    def over(
        self,
        partition_by: Any = None,
        *more_exprs: Any,
        order_by: Any = None,
        descending: bool = False,
        nulls_last: bool = False,
    ) -> Expr:
        """Over the rows that agree in these columns, in the order of `order_by`."""
        parts = [*_columns(partition_by), *(part for more in more_exprs for part in _columns(more))]
        keys = _columns(order_by)
        if not parts and not keys:
            raise unlike(
                "over() says over which rows", "write .over('patient'), or .over(order_by='day') of released ones"
            )

        def window(names: TermNames) -> Term:
            order = [over_rows.ordered(key._term(names), descending, nulls_last) for key in keys]
            return over_rows.over(self._term(names), [part._term(names) for part in parts], order)

        return Expr(window, self._name)


def _skips_nulls(ignore_nulls: bool) -> None:
    if not ignore_nulls:
        raise unlike("ignore_nulls=False is not possible", "fill_null() what is missing first")


def _operand(value: Any) -> Expr:
    """What stands beside an operator: texts are values there, as in polars."""
    if isinstance(value, Expr):
        return value
    term = literal(value)
    return Expr(lambda names: term, "literal")


def _columns(values: Any) -> list[Expr]:
    """What stands where columns are named: texts are names there."""
    if values is None:
        return []
    if isinstance(values, list | tuple):
        return [column for value in values for column in _columns(value)]
    if isinstance(values, str):
        return [column(values)]
    return [_operand(values)]


def column(name: str) -> Expr:
    """The column of a frame."""
    if not isinstance(name, str) or name in ("", "*") or (name.startswith("^") and name.endswith("$")):
        raise unlike("col() takes the name of one column", "name the columns one by one")
    return Expr(lambda names: names.column(name), name)


def expressions(values: tuple[Any, ...], named: dict[str, Any]) -> list[Expr]:
    """The expressions of a method's arguments, by position and by name."""
    by_name = [_columns(value)[0].alias(name) for name, value in named.items()]
    return [*_columns([*values]), *by_name]
