"""MariaDB, 10.6 or later: what each word of the vocabulary becomes there.

Nothing that a row holds can make an expression raise. It has no NaN, no infinity, no aggregate that picks the value at
a share (`value_at` is a gap), no FULL JOIN, and no frames by RANGE over values that may be NULL last. Truth values are
1 and 0, and texts are compared by the collation of the connection, which sessions set (`mariadb_texts`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ..errors import PlanError
from . import mariadb_numbers as numbers
from . import mariadb_texts as texts
from .base import needed
from .inferred_types import kind_of
from .lowering import as_is
from .mariadb_numbers import written
from .sql_texts import of, of_node
from .typed_engine import ServerEngine, plain_name_of
from .vocabulary import TYPES, word_of

_AS_IS = """
    size equal different less at_most greater at_least same not_same between among exists is_null both either not case
    branch first_present null_if lower upper count minimum maximum row_number rank dense_rank tile earlier later
    first_of last_of nth_of table_once
"""


@dataclass(frozen=True, eq=False)
class MariaEngine(ServerEngine):
    """The words of MariaDB, and how it holds a statement together."""

    computes_once: ClassVar[bool] = False

    def name_of(self, name: str) -> str:
        return plain_name_of(name)

    def check(self, tree: Any) -> None:
        super().check(tree)
        check_joins(tree, self.name)
        check_frames(tree, self.name)

    def prepare(self, around: Any) -> None:
        without_qualify(around)
        flatten(around)
        name_subqueries(around)
        nulls_in_order(around)

    def other(self, node: Any) -> Any | None:
        exp = needed("sqlglot").exp
        if isinstance(node, exp.Case):
            return passed_on(node)
        if isinstance(node, exp.Window) and isinstance(node.this, exp.Lag | exp.Lead):
            return _with_default(node)
        return None


def check_joins(tree: Any, name: str) -> None:
    exp = needed("sqlglot").exp
    for join in tree.find_all(exp.Join):
        if str(join.args.get("side")).upper() == "FULL":
            raise PlanError(f"{name} has no FULL JOIN: the statement is not run there")


def check_frames(tree: Any, name: str) -> None:
    """Frames by values are NULL's own affair in each of the engines."""
    exp = needed("sqlglot").exp
    for spec in tree.find_all(exp.WindowSpec):
        ends = (spec.args.get("start"), spec.args.get("end"))
        if str(spec.args.get("kind")).upper() == "RANGE" and any(isinstance(end, exp.Expr) for end in ends):
            raise PlanError(f"{name} has no frames by RANGE of values: the statement is not run there")


def without_qualify(around: Any) -> None:
    """QUALIFY is a column of a subquery, and a WHERE around it."""
    exp = needed("sqlglot").exp
    for select in list(around.find_all(exp.Select)):
        qualify = select.args.get("qualify")
        if qualify is None:
            continue
        names = [shown.alias_or_name for shown in select.expressions]
        if any(not name or name == "*" for name in names):
            raise PlanError("a QUALIFY over columns without names is not run there")
        select.set("qualify", None)
        with_, order = select.args.get("with_"), select.args.get("order")
        inner = select.copy()
        inner.set("with_", None)
        inner.set("order", None)
        inner.append("expressions", exp.alias_(qualify.this.copy(), "_qualified"))
        outer = exp.select(*(exp.column(name, quoted=True) for name in names))
        outer = outer.from_(exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier("_ranked"))))
        outer = outer.where(exp.column("_qualified"))
        for part, value in (("with_", with_), ("order", order)):
            outer.set(part, value)
        select.replace(outer)


_ROWS_AS_THEY_ARE = ("joins", "where", "group", "having", "qualify", "distinct", "with_", "order")


def flatten(around: Any) -> None:
    """A SELECT that computes from the columns of one subquery, row by row, is that subquery with other columns: the
    server finds what stands around a subquery one level out, and no further."""
    exp = needed("sqlglot").exp
    for select in reversed(list(around.find_all(exp.Select))):
        source = select.args["from_"].this if select.args.get("from_") else None
        inner = source.this if isinstance(source, exp.Subquery) else None
        if (
            source is None
            or not isinstance(inner, exp.Select)
            or any(select.args.get(part) for part in _ROWS_AS_THEY_ARE)
        ):
            continue
        if any(inner.args.get(part) for part in ("group", "distinct", "order", "with_", "qualify")):
            continue
        shown_there = {shown.alias_or_name.lower(): shown.unalias() for shown in inner.expressions}
        kinds = (exp.Column, exp.Star, exp.AggFunc, exp.Window, exp.Query, exp.Anonymous)
        inside = [node for shown in select.expressions for node in shown.find_all(*kinds)]
        own = ("", source.alias.lower())
        if not all(
            isinstance(node, exp.Column) and node.table.lower() in own and node.name.lower() in shown_there
            for node in inside
        ):
            continue
        # What folds rows into one must stay, or they would be as many as before.
        if any(map(_folds, shown_there.values())) and not any(
            _folds(shown_there[node.name.lower()]) for node in inside
        ):
            continue
        columns = [
            exp.Paren(this=exp.alias_(shown.unalias().copy(), shown.alias_or_name, quoted=True))
            for shown in select.expressions
        ]
        for column in columns:
            for node in list(column.find_all(exp.Column)):
                node.replace(exp.Paren(this=shown_there[node.name.lower()].copy()))
        inner = inner.copy()
        inner.set("expressions", [column.this for column in columns])
        select.replace(inner)


def _folds(tree: Any) -> bool:
    words = (word_of(node) for node in tree.walk())
    return any(word is not None and word.fold for word in words)


def name_subqueries(around: Any) -> None:
    """A subquery that is read has a name there."""
    exp = needed("sqlglot").exp
    for place, node in enumerate(list(around.find_all(exp.Subquery))):
        if isinstance(node.parent, exp.From | exp.Join) and not node.alias:
            node.set("alias", exp.TableAlias(this=exp.to_identifier(f"_unnamed{place}")))


def nulls_in_order(around: Any) -> None:
    """NULLs come before all values there, and no word says otherwise: whether a value is NULL is ordered by first."""
    exp = needed("sqlglot").exp
    for order in around.find_all(exp.Order):
        ordered = []
        for node in order.expressions:
            falling, first = bool(node.args.get("desc")), bool(node.args.get("nulls_first"))
            if first == falling:
                is_null = exp.Is(this=_shown_as(node.this, order, exp).copy(), expression=exp.Null())
                ordered.append(exp.Ordered(this=exp.Paren(this=is_null), desc=first, nulls_first=not first))
            node.set("nulls_first", not falling)
            ordered.append(node)
        order.set("expressions", ordered)


def _shown_as(value: Any, order: Any, exp: Any) -> Any:
    """A name in an ORDER BY may be one that the SELECT gives; within an expression the server does not see that."""
    if isinstance(value, exp.Column) and not value.table and isinstance(order.parent, exp.Select):
        for shown in order.parent.expressions:
            if isinstance(shown, exp.Alias) and shown.alias.lower() == value.name.lower():
                return shown.this
    return value


def passed_on(node: Any) -> Any | None:
    """A value that is tested for being there and then taken is the value."""
    exp = needed("sqlglot").exp
    if node.this is not None or len(node.args["ifs"]) != 1 or node.args.get("default") is not None:
        return None
    condition, value = node.args["ifs"][0].this.unnest(), node.args["ifs"][0].args["true"]
    inner = condition.this.unnest() if isinstance(condition, exp.Not) else None
    if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null) and inner.this.unnest() == value.unnest():
        return value
    return None


def _with_default(window: Any) -> Any | None:
    """LAG and LEAD have no default there: a constant that they fetch is NULL where there is no such row."""
    exp = needed("sqlglot").exp
    default = window.this.args.get("default")
    if default is None:
        return None
    moved, there = window.copy(), window.copy()
    moved.this.set("default", None)
    there.this.set("default", None)
    there.this.set("this", exp.Literal.number(1))
    if isinstance(default.unnest(), exp.Null):
        return moved
    branch = exp.If(this=exp.Is(this=there, expression=exp.Null()), true=default.copy())
    return exp.Case(ifs=[branch], default=moved)


def _sum(x: Any) -> Any:
    if kind_of(x) in (None, "DOUBLE"):
        raise numbers.refusal("exact_sum", "values that are no integers")
    return written("SUM(v_x)", x=x)


MARIADB = MariaEngine(
    "MariaDB",
    "mysql",
    {
        **dict.fromkeys(_AS_IS.split(), as_is),
        "sum_of_two": numbers.sum_of_two,
        "difference": numbers.difference,
        "product": numbers.product,
        "negative": numbers.negative,
        "quotient": numbers.quotient,
        "whole_quotient": numbers.whole_quotient,
        "remainder": numbers.remainder,
        "shifted_right": numbers.shifted_right,
        "bits_of_both": numbers.bits_of_both,
        "sign": of_node(written, "SIGN(v_x)"),
        "floor": of_node(written, "FLOOR(v_x)"),
        "ceiling": of_node(written, "CEILING(v_x)"),
        "cut": of(written, "TRUNCATE(v_x, 0)"),
        "rounded": numbers.rounded,
        "root": of_node(written, numbers.ROOT),
        "exponential": of_node(written, numbers.EXPONENTIAL),
        "power": numbers.power,
        "natural_log": of(written, "LN(v_x)"),
        "decimal_log": of(written, "LOG10(v_x)"),
        "binary_log": of(written, numbers.BINARY_LOG),
        "octaves": numbers.octaves,
        "is_finite": of(written, numbers.FINITE),
        "sign_bit": of(written, "v_x < 0"),
        "not_a_number": of(written, "v_x <> v_x"),
        "cast": numbers.cast,
        "nearest": numbers.nearest,
        "nearest_or_null": numbers.nearest_or_null,
        "narrowed_or_null": numbers.narrowed_or_null,
        "read_or_null": texts.read_or_null,
        "decimal_or_null": numbers.decimal_or_null,
        "whole_or_null": numbers.whole_or_null,
        "is_digits": of(written, texts.DIGITS),
        "moment_or_null": texts.moment_or_null,
        "time_or_null": texts.time_or_null,
        "least_present": texts.extreme_of_present("LEAST"),
        "greatest_present": texts.extreme_of_present("GREATEST"),
        "ordering_hash": texts.hashed,
        "exact_sum": _sum,
        "all_true": of_node(written, "MIN(v_x)"),
        "any_true": of_node(written, "MAX(v_x)"),
        "joined": of_node(written, "CONCAT(v_x, v_y)"),
        "like": texts.like,
        "like_any_case": texts.like,
        "escaped": texts.escaped,
        "reverse": of_node(written, "REVERSE(v_x)"),
        "characters": of(written, "CHAR_LENGTH(v_x)"),
        "trimmed": texts.trimmed("BOTH"),
        "trimmed_before": texts.trimmed("LEADING"),
        "trimmed_behind": texts.trimmed("TRAILING"),
        "part": texts.part,
        "first_characters": texts.counted("LEFT"),
        "last_characters": texts.counted("RIGHT"),
        "repeated": texts.counted("REPEAT"),
        "replaced": of(written, "REPLACE(v_x, v_y, v_z)", "x", "y", "z"),
        "begins_with": of(written, "(LEFT(v_x, CHAR_LENGTH(v_y)) = v_y)"),
        "ends_on": of(written, "(RIGHT(v_x, CHAR_LENGTH(v_y)) = v_y)"),
        "holds": of(written, "(LOCATE(v_y, v_x) > 0)"),
        "place_of": of(written, "LOCATE(v_y, v_x)"),
        "texts_of": texts.listed,
        "wholes_of": texts.listed_wholes,
        "listed_or_null": texts.one_listed,
        "part_of_date": texts.part_of_date,
        "start_of": texts.start_of,
        "boundaries_between": texts.boundaries_between,
        "last_day": of_node(written, "LAST_DAY(v_x)"),
        "month_name": of(written, "MONTHNAME(v_x)"),
        "day_name": of(written, "DAYNAME(v_x)"),
        "interval": texts.interval,
    },
    {name: name for name in TYPES},
)
