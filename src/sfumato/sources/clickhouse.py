"""ClickHouse: what each word of the vocabulary becomes there.

Nothing that a row holds makes an expression raise. Doubles are those of IEEE 754, but NaN is equal to nothing and no
aggregate gives it, and -0.0 is a group of its own; texts are compared by their bytes. What else statements lean on are
settings, which stand behind each of them (`clickhouse_session`): joins and empty groups give NULL, limits raise, an
alias does not hide a column, values that differ are counted exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from . import clickhouse_numbers as numbers
from . import clickhouse_texts as texts
from .base import needed
from .clickhouse_numbers import written
from .inferred_types import INTEGERS, kind_of
from .lowering import as_is
from .mariadb import check_frames, flatten, name_subqueries, passed_on
from .sql_texts import number_in, of, of_node
from .typed_engine import ServerEngine, plain_name_of
from .vocabulary import TYPES

_AS_IS = """
    equal different less at_most greater at_least between exists is_null both either not case branch first_present
    null_if count minimum maximum row_number rank dense_rank tile nth_of table_once
"""


@dataclass(frozen=True, eq=False)
class ClickEngine(ServerEngine):
    """The words of ClickHouse, and how it holds a statement together."""

    computes_once: ClassVar[bool] = False

    def name_of(self, name: str) -> str:
        return plain_name_of(name)

    def check(self, tree: Any) -> None:
        super().check(tree)
        check_frames(tree, self.name)

    def prepare(self, around: Any) -> None:
        flatten(around)
        _count_nothing(around)
        name_subqueries(around)

    def other(self, node: Any) -> Any | None:
        exp = needed("sqlglot").exp
        if isinstance(node, exp.Case):
            return passed_on(node)
        if isinstance(node, exp.Window) and _counts(node.this):
            return written("toInt64(v_x)", x=node)
        if isinstance(node, exp.Count) and not isinstance(node.parent, exp.Window):
            return written("toInt64(v_x)", x=node)
        if isinstance(node, exp.Literal) and not node.is_string and node.is_int and abs(int(node.name)) >= 2**31:
            return _large(node)
        return None


def _count_nothing(around: Any) -> None:
    """The server joins a subquery that looks at the row around it: its COUNT is NULL there where it finds nothing."""
    exp = needed("sqlglot").exp
    for node in list(around.find_all(exp.Subquery)):
        select = node.this
        if isinstance(node.parent, exp.From | exp.Join | exp.In | exp.Exists) or not isinstance(select, exp.Select):
            continue
        if select.args.get("group") or not _looks_around(select):
            continue
        shown = select.expressions[0].unalias().unnest()
        if isinstance(shown, exp.Count):
            node.replace(exp.Coalesce(this=node.copy(), expressions=[exp.Literal.number(0)]))
        elif select.expressions[0].find(exp.Count):
            raise numbers.refusal("count", "rows of a subquery that looks at the row around it, and computes with it")


def _looks_around(subquery: Any) -> bool:
    """Does it name a column of a query around it?"""
    exp = needed("sqlglot").exp
    for column in subquery.find_all(exp.Column):
        select, inside = column.find_ancestor(exp.Select), not column.table
        while select is not None and not inside:
            sources = [join.this for join in select.args.get("joins") or []]
            sources += [select.args["from_"].this] if select.args.get("from_") else []
            inside = column.table.lower() in {source.alias_or_name.lower() for source in sources}
            select = None if select is subquery else select.find_ancestor(exp.Select)
        if not inside:
            return True
    return False


def _large(node: Any) -> Any:
    """A large constant has no sign there, unless its type says so."""
    number = int(node.name)
    tree = written(f"{'toInt64' if -(2**63) <= number < 2**63 else 'toInt128'}('{number}')")
    tree.meta["sfumato-constant"] = number
    return tree


def _counts(node: Any) -> bool:
    exp = needed("sqlglot").exp
    return isinstance(node, exp.Count | exp.RowNumber | exp.Rank | exp.DenseRank | exp.Ntile)


def _among(node: Any) -> Any:
    """A list, or rows, that may hold NULL: IN passes over it there, where the word gives NULL for what is not found.
    Where NULL counts as false, that is the same."""
    exp = needed("sqlglot").exp
    if _is_asked_for_truth(node):
        return node
    if not node.args.get("query"):
        if all(isinstance(each.unnest(), exp.Literal) or number_in(each) is not None for each in node.expressions):
            return node
        listed = {f"{chr(ord('a') + place)}": each for place, each in enumerate(node.expressions)}
        if len(listed) > 20:
            raise numbers.refusal("among", "many values that are no constants")
        return written(" OR ".join(f"v_x = v_{name}" for name in listed), x=node.this, **listed)
    if isinstance(node.this.unnest(), exp.Tuple):
        raise numbers.refusal("among", "tuples, of which one may hold NULL")
    rows = node.args["query"].this if isinstance(node.args["query"], exp.Subquery) else node.args["query"]
    text = rows.sql(dialect="clickhouse", comments=False)
    column = "tupleElement(tuple(*), 1)"
    nulls = f"(SELECT count() FROM ({text}) AS _listed WHERE isNull({column}))"
    return written(
        f"CASE WHEN (SELECT count() FROM ({text}) AS _listed) = 0 THEN 0 WHEN v_x IS NULL THEN NULL "
        f"WHEN v_x IN ({text}) THEN 1 WHEN {nulls} > 0 THEN NULL ELSE 0 END", x=node.this,
    )  # fmt: skip


def _is_asked_for_truth(node: Any) -> bool:
    exp = needed("sqlglot").exp
    while isinstance(node.parent, exp.And | exp.Or | exp.Paren):
        node = node.parent
    parent = node.parent
    return isinstance(parent, exp.Where | exp.Having) or (isinstance(parent, exp.If) and parent.this is node)


def _sum(x: Any) -> Any:
    kind = kind_of(x)
    if kind == "DECIMAL":
        return written("sum(v_x)", x=x)  # of 38 digits
    if kind not in (*INTEGERS, "INT128", "BOOLEAN"):
        raise numbers.refusal("exact_sum", "values that are no integers")
    return written("sum(toInt128(v_x))", x=x)


def _moved(function: str) -> Any:
    """Where there is no such row, a type without NULL would give 0."""

    def lower(node: Any) -> Any:
        offset = node.args.get("offset") or needed("sqlglot").exp.Literal.number(1)
        default = node.args.get("default")
        if default is None:
            return written(f"{function}(toNullable(v_x), toInt64(v_n))", x=node.this, n=offset)
        return written(f"{function}(toNullable(v_x), toInt64(v_n), toNullable(v_d))", x=node.this, n=offset, d=default)

    return lower


def _value_at(x: Any, share: Any) -> Any:
    number = number_in(share)
    return written(
        f"arrayElementOrNull(arraySort(groupArray(v_x)), greatest(1, toInt64(ceil({number!r} * count(v_x)))))", x=x
    )


CLICKHOUSE = ClickEngine(
    "ClickHouse",
    "clickhouse",
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
        "size": numbers.size,
        "sign": of_node(written, "sign(v_x)"),
        "floor": of_node(written, "floor(v_x)"),
        "ceiling": of_node(written, "ceil(v_x)"),
        "cut": of(written, "trunc(v_x)"),
        "rounded": numbers.rounded,
        "root": of_node(written, "sqrt(v_x)"),
        "exponential": of_node(written, "exp(v_x)"),
        "power": of_node(written, "pow(v_x, v_y)"),
        "natural_log": of(written, "log(v_x)"),
        "decimal_log": of(written, "log10(v_x)"),
        "binary_log": of(written, "log2(v_x)"),
        "octaves": lambda node: written("log2(v_x)", x=node.expression),
        "is_finite": of(written, "isFinite(v_x)"),
        "sign_bit": of(written, "(v_x < 0 OR (v_x = 0 AND 1 / v_x < 0))"),
        "not_a_number": of(written, "isNaN(v_x)"),
        "same": of_node(written, "isNotDistinctFrom(v_x, v_y)"),
        "not_same": of_node(written, "isDistinctFrom(v_x, v_y)"),
        "among": _among,
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
        "least_present": lambda *values: _several("least", values),
        "greatest_present": lambda *values: _several("greatest", values),
        "ordering_hash": texts.hashed,
        "exact_sum": _sum,
        "all_true": of_node(written, "min(v_x)"),
        "any_true": of_node(written, "max(v_x)"),
        "value_at": _value_at,
        "earlier": _moved("lag"),
        "later": _moved("lead"),
        "first_of": of_node(written, "first_value_respect_nulls(toNullable(v_x))"),
        "last_of": of_node(written, "last_value_respect_nulls(toNullable(v_x))"),
        "joined": of_node(written, "concat(v_x, v_y)"),
        "like": texts.like,
        "like_any_case": texts.like,
        "escaped": texts.escaped,
        "lower": of_node(written, "lowerUTF8(v_x)"),
        "upper": of_node(written, "upperUTF8(v_x)"),
        "reverse": of_node(written, "reverseUTF8(v_x)"),
        "characters": of(written, "toInt64(lengthUTF8(v_x))"),
        "trimmed": texts.trimmed("BOTH"),
        "trimmed_before": texts.trimmed("LEADING"),
        "trimmed_behind": texts.trimmed("TRAILING"),
        "part": texts.part,
        "first_characters": texts.counted("leftUTF8", 2**31 - 1),
        "last_characters": texts.counted("rightUTF8", 2**31 - 1),
        "repeated": texts.repeated,
        "replaced": texts.replaced,
        "begins_with": of(written, "startsWith(v_x, v_y)"),
        "ends_on": of(written, "endsWith(v_x, v_y)"),
        "holds": of(written, "(positionUTF8(v_x, v_y) > 0)"),
        "place_of": of(written, "toInt64(positionUTF8(v_x, v_y))"),
        "texts_of": texts.listed,
        "wholes_of": texts.listed_wholes,
        "listed_or_null": texts.one_listed,
        "part_of_date": texts.part_of_date,
        "start_of": texts.start_of,
        "boundaries_between": texts.boundaries_between,
        "last_day": texts.last_day,
        "month_name": texts.month_name,
        "day_name": texts.day_name,
        "interval": texts.interval,
    },
    {name: name for name in TYPES},
)


def _several(function: str, values: tuple[Any, ...]) -> Any:
    if "DOUBLE" in map(kind_of, values):
        values = tuple(map(numbers.double, values))
    elif "INT128" in map(kind_of, values):
        values = tuple(written("toInt128(v_x)", x=value) for value in values)
    listed = ", ".join(value.sql(dialect="clickhouse", comments=False) for value in values)
    return written(f"{function}(v_l)", l=listed)
