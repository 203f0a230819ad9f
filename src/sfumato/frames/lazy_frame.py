"""Lazy frames over private tables: each holds one query, and its end is the plan of that query's text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from sqlglot import exp

from ..checks import refuse
from ..query.above.report_plan import SqlReport
from ..query.ask import sql
from ..query.plan import Sql
from ..query.refusal import QueryError
from ..units import Unit
from . import joining, operators, over_rows, stepping_back, summaries
from .block import SelectBlock, aggregates_alone, conjunction, has_window, stacked_windows
from .expr import Expr, expressions
from .terms import Term, known_name, pending_in, unlike
from .unlike_polars import FRAMES, no_such_method


@dataclass(frozen=True, eq=False)
class LazyFrame:
    """A query over private tables, step by step. Immutable: every method gives a new one, and nothing is read.

    Built by `frame`. `plan(epsilon=...)` is the plan that `sf.sql` makes of its text: the same question, the same price
    and the same refusals.
    """

    _data: Any = field(repr=False)
    _unit: Unit | None = field(repr=False)
    _block: SelectBlock = field(repr=False)

    @property
    def columns(self) -> list[str]:
        """The names of its columns, in order."""
        return list(self._block.columns)

    def sql(self) -> str:
        """The query, as text: what `plan` asks."""
        return self._block.select().sql("duckdb", pretty=True)

    def plan(self, *, unit: Unit | None = None, **options: Any) -> Sql | SqlReport:
        """The plan that answers it. `options` are those of `sf.sql`: epsilon, delta, limits, bounds, keys, ..."""
        if "dialect" in options:
            raise refuse("dialect", options["dialect"], "nothing: a frame writes its own SQL")
        text = self.sql()
        try:  # the dialect is named so that nothing in a text of the query is read as a word about it
            return sql(text, self._data, unit=unit or self._unit, dialect="duckdb", **options)
        except QueryError as refusal:
            problem = stepping_back.of_frame(refusal, text)
        raise problem

    def __repr__(self) -> str:
        return f"<LazyFrame of {', '.join(self.columns)}>\n{self.sql()}"

    def __getattr__(self, name: str) -> NoReturn:
        raise no_such_method("a frame", name, FRAMES)

    def pipe(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """What a function makes of it."""
        return function(self, *args, **kwargs)

    def _of(self, block: SelectBlock) -> LazyFrame:
        return replace(self, _block=block)

    def filter(self, *predicates: Expr, **constraints: Any) -> LazyFrame:
        """The rows for which all of them hold: WHERE, of groups HAVING, of windows QUALIFY."""
        tests = [*expressions(predicates, {}), *(expressions((name,), {})[0] == v for name, v in constraints.items())]
        if not tests:
            return self
        block = self._block
        again = block.grouped and any(_looks_around(test, block) for test in tests)
        if again or block.windowed or block.distinct or block.limit is not None:
            block = block.wrapped()
        tree = _condition(tests, block)
        if block.grouped:
            return self._of(replace(block, having=(*block.having, tree)))
        if has_window(tree):
            return self._of(replace(block, qualify=tree))
        return self._of(replace(block, where=(*block.where, tree)))

    def select(self, *exprs: Any, **named_exprs: Any) -> LazyFrame:
        """These columns and no others; of aggregates alone, one row of them."""
        return self._selected(expressions(exprs, named_exprs), whole=False)

    def with_columns(self, *exprs: Any, **named_exprs: Any) -> LazyFrame:
        """All columns, and these."""
        return self._selected(expressions(exprs, named_exprs), whole=True)

    def _selected(self, exprs: list[Expr], *, whole: bool) -> LazyFrame:
        _told_apart([expr._name for expr in exprs])
        block = self._block.wrapped() if self._block.distinct else self._block
        fresh = [_looks_around(expr, block) for expr in exprs]
        block = block.wrapped() if any(fresh) and not block.open else block
        terms = [expr._term(block) for expr in exprs]
        if any(stacked_windows(term.tree) for term in terms):
            return self._of(block.wrapped())._selected(exprs, whole=whole)
        if not whole and exprs and all(fresh) and all(aggregates_alone(term.tree) for term in terms):
            columns = {expr._name: term for expr, term in zip(exprs, terms, strict=True)}
            return self._of(replace(block.plainly(), columns=columns, group=()))
        terms = [over_rows.everywhere(term) if looks else term for term, looks in zip(terms, fresh, strict=True)]
        names = [expr._name for expr in exprs]
        if not whole:
            return self._of(replace(block, columns=dict(zip(names, terms, strict=True))))
        names = [known_name(name, block.columns) if _holds(name, block) else name for name in names]
        return self._of(replace(block, columns={**block.columns, **dict(zip(names, terms, strict=True))}))

    def rename(self, mapping: Mapping[str, str]) -> LazyFrame:
        """The same columns under other names."""
        names = {known_name(old, self._block.columns): new for old, new in mapping.items()}
        renamed = [names.get(name, name) for name in self._block.columns]
        _told_apart(renamed)
        block = self._block.wrapped() if self._block.distinct else self._block
        return self._of(replace(block, columns=dict(zip(renamed, block.columns.values(), strict=True))))

    def drop(self, *columns: Any) -> LazyFrame:
        """All columns but these."""
        gone = {known_name(expr._name, self._block.columns) for expr in expressions(columns, {})}
        block = self._block.wrapped() if self._block.distinct else self._block
        left = {name: term for name, term in block.columns.items() if name not in gone}
        if not left:
            raise refuse("columns", ", ".join(gone), "some of the columns: a frame has at least one")
        return self._of(replace(block, columns=left))

    def group_by(self, *by: Any, **named_by: Any) -> GroupBy:
        """Groups, for `agg`. By the unit's column, they are a step per unit, which may be grouped again."""
        maintain = named_by.pop("maintain_order", False)
        if maintain is not False:
            raise unlike("Groups have no order of their own", "sort() the released frame")
        return GroupBy(self, tuple(expressions(by, named_by)))

    def join(
        self,
        other: LazyFrame,
        on: Any = None,
        how: str = "inner",
        *,
        left_on: Any = None,
        right_on: Any = None,
        suffix: str = "_right",
        coalesce: bool | None = None,
    ) -> LazyFrame:
        """Rows of both that agree: how is "inner", "left", "right", "full", "semi", "anti" or "cross"."""
        if not isinstance(other, LazyFrame) or (other._data is not self._data and other._data != self._data):
            raise refuse("other", type(other).__name__, "a frame of the same data")
        if on is not None and (left_on is not None or right_on is not None):
            raise refuse("on", on, "on, or left_on with right_on")
        left, right = (expressions((on,), {}),) * 2 if on is not None else ([], [])
        if left_on is not None or right_on is not None:
            left, right = expressions((left_on,), {}), expressions((right_on,), {})
        block = joining.join(self._block, other._block, left, right, how=how, suffix=suffix, coalesce=coalesce)
        return self._of(block)

    def sort(self, by: Any, *more_by: Any, descending: Any = False, nulls_last: Any = False) -> LazyFrame:
        """The order of a released answer. Private rows have none."""
        keys = expressions((by, *more_by), {})
        many = [[flag] * len(keys) if isinstance(flag, bool) else list(flag) for flag in (descending, nulls_last)]
        if any(len(flags) != len(keys) for flags in many):
            raise refuse("descending", descending, "one of True and False, or one for each column")
        block = self._block if self._block.limit is None and not self._block.distinct else self._block.wrapped()
        terms = [key._term(block) for key in keys]
        order = [over_rows.ordered(term, down, last) for term, down, last in zip(terms, *many, strict=True)]
        return self._of(replace(block, order=tuple(order)))

    def head(self, n: int = 5) -> LazyFrame:
        """The first so many rows of a released answer."""
        if not isinstance(n, int) or isinstance(n, bool) or n < 0:
            raise refuse("n", n, "a whole number from 0 on")
        limit = n if self._block.limit is None else min(n, self._block.limit)
        return self._of(replace(self._block, limit=limit))

    limit = head

    def unique(self, subset: Any = None, *, keep: str = "any") -> LazyFrame:
        """Each row once: DISTINCT."""
        if keep != "any":
            raise unlike(f"keep={keep!r} goes by the order of rows", "leave it out, or filter by a rank over the unit")
        if subset is not None:
            names = {known_name(expr._name, self._block.columns) for expr in expressions((subset,), {})}
            if names != set(self._block.columns):
                raise unlike(
                    "Which of several rows stays would be left open", "select() the columns first, then unique()"
                )
        if self._block.distinct:
            return self
        block = self._block if self._block.plain else self._block.wrapped()
        return self._of(replace(block, distinct=True, order=()))

    def drop_nulls(self, subset: Any = None) -> LazyFrame:
        """The rows where nothing is missing, in these columns or in all."""
        names = [expr._name for expr in expressions((subset,), {})] if subset is not None else self.columns
        names = [known_name(name, self._block.columns) for name in names]
        tests = [expressions((name,), {})[0].is_not_null() for name in names if self._block.column(name).kind.nullable]
        frame = self.filter(*tests)
        columns = {n: t.never_missing if n in names else t for n, t in frame._block.columns.items()}
        return frame._of(replace(frame._block, columns=columns))


@dataclass(frozen=True, eq=False)
class GroupBy:
    """Groups of a frame, which `agg` makes rows of."""

    _frame: LazyFrame = field(repr=False)
    _by: tuple[Expr, ...] = field(repr=False)

    def agg(self, *aggs: Any, **named_aggs: Any) -> LazyFrame:
        """One row for each group: what it is grouped by, and these aggregates."""
        exprs = expressions(aggs, named_aggs)
        if not self._by:
            raise refuse("by", "nothing", "columns, or expressions; select() aggregates all rows")
        _told_apart([expr._name for expr in (*self._by, *exprs)])
        block = self._frame._block.plainly()
        keys = {expr._name: expr._term(block) for expr in self._by}
        for term in keys.values():
            if has_window(term.tree) or next(pending_in(term.tree), None) is not None:
                raise unlike("Groups go by values of single rows", "with_columns() it first, and group by that column")
        terms = {expr._name: expr._term(block) for expr in exprs}
        for name, term in terms.items():
            if has_window(term.tree):
                raise unlike(f"{name!r} aggregates a window", "with_columns() the window first")
            if not aggregates_alone(term.tree):
                raise unlike(f"{name!r} would be a list of the group's values", "write sum(), mean(), len(), ...")
        group = tuple(term.tree for term in keys.values())
        of_units = any(term.kind.within_unit for term in keys.values())
        return self._frame._of(replace(block, columns={**keys, **terms}, group=group, of_units=of_units))

    def len(self, name: str = "len") -> LazyFrame:
        """How many rows each group has."""
        return self.agg(Expr(lambda names: summaries.length(), name))

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"groups have no {name!r}: write agg(...)")


@dataclass(frozen=True)
class _Marked:
    """The columns of a block as if they were stored: what an expression itself adds is then all there is."""

    block: SelectBlock

    def column(self, name: str) -> Term:
        return replace(self.block.column(name), tree=exp.column("x"))


def _looks_around(expr: Expr, block: SelectBlock) -> bool:
    """Does the expression itself look at several rows, and not only the columns that it names?"""
    tree = expr._term(_Marked(block)).tree
    return has_window(tree) or next(pending_in(tree), None) is not None


def _condition(tests: list[Expr], block: SelectBlock) -> exp.Expr:
    """All of them; aggregates that they make are over all rows, those of groups are the groups' own."""
    terms = [operators.alone(test._term(block), "conditions") for test in tests]
    return conjunction([term.tree if block.grouped else over_rows.everywhere(term).tree for term in terms])


def _holds(name: str, block: SelectBlock) -> bool:
    return any(name.lower() == other.lower() for other in block.columns)


def _told_apart(names: list[str]) -> None:
    lower = [name.lower() for name in names]
    for name in names:
        if lower.count(name.lower()) > 1:
            raise refuse("columns", name, "names that differ, also without case: alias() gives another one")
