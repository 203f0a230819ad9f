"""Snowflake, BigQuery, Trino and SQL Server: what words of the vocabulary become there, by their manuals alone.

None of these statements was ever run by us: they are compared with texts that somebody read
(`tests/sources/dbapi/texts`). So a word is here only where its meaning there is certain from what is written, and every
other is a gap. Expressions are made of comparisons, CASE and arithmetic that no operand can make raise, also where an
engine computes a branch that is not taken. There is no NaN and no infinity: doubles are cut as in `mariadb_numbers`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

from ..errors import PlanError
from .base import needed
from .inferred_types import INTEGERS, kind_of
from .lowering import Lowered, as_is, type_of
from .mariadb import check_frames, name_subqueries, passed_on, without_qualify
from .mariadb_numbers import INFINITE, LARGEST, SPANS
from .sql_texts import Written, number_in, of, of_node, type_kept, with_number, writer
from .typed_engine import ServerEngine, plain_name_of
from .vocabulary import TYPES

_AS_IS = """
    equal different less at_most greater at_least same not_same between among exists is_null both either not case branch
    first_present null_if count minimum maximum row_number rank dense_rank table_once
"""
_TEXTS = ("joined", "lower", "upper", "characters", "listed_or_null")
_ROUNDER = 6755399441055744.0
"""1.5 * 2^52: added to a double below 2^51 and taken away again, it leaves the nearest whole number, halves to even."""
_MOST = 9223372036854774784.0
"""The largest double that 64 bits hold."""


@dataclass(frozen=True, eq=False)
class Warehouse(ServerEngine):
    """The words of one of them.

    own  by type of the vocabulary: what it is called in a cast
    """

    computes_once: ClassVar[bool] = False
    own: Mapping[str, str] = field(default_factory=dict)

    def name_of(self, name: str) -> str:
        return plain_name_of(name)

    def check(self, tree: Any) -> None:
        super().check(tree)
        check_frames(tree, self.name)
        if self.dialect == "tsql":
            _check_joins_and_positions(tree, self.name)

    def prepare(self, around: Any) -> None:
        without_qualify(around)
        name_subqueries(around)

    def other(self, node: Any) -> Any | None:
        return passed_on(node) if isinstance(node, needed("sqlglot").exp.Case) else None


def _check_joins_and_positions(tree: Any, name: str) -> None:
    exp = needed("sqlglot").exp
    for join in tree.find_all(exp.Join):
        if join.args.get("using"):
            raise PlanError(f"{name} has no JOIN ... USING: the statement is not run there")
    for group in tree.find_all(exp.Group):
        if any(isinstance(each, exp.Literal) for each in group.expressions):
            raise PlanError(f"{name} has no GROUP BY of places: the statement is not run there")


class _Words:
    """The words, written in one dialect."""

    def __init__(self, name: str, dialect: str, own: Mapping[str, str], cut: str) -> None:
        self.name, self.own, self.cut = name, own, cut
        self.written: Written = writer(dialect)

    def refusal(self, word: str, of: str) -> PlanError:
        return PlanError(f"{self.name} has no word for {word!r} of {of}: the statement is not run there")

    def number(self, number: float) -> str:
        if number != number:  # there is no NaN
            return self._cast("NULL", "DOUBLE")
        shown = repr(float(number))
        return self._cast(shown if "e" in shown else f"{shown}e0", "DOUBLE")

    def _cast(self, text: str, kind: str) -> str:
        return f"CAST({text} AS {self.own[kind]})"

    def double(self, node: Any) -> Any:
        if kind_of(node) == "DOUBLE":
            return node
        number = number_in(node)
        if number is not None:
            return type_kept(with_number(self.written(self.number(number)), number), "DOUBLE")
        return self.written(self._cast("v_x", "DOUBLE"), x=node)

    def _within(self, x: str, bound: float) -> str:
        shown = self.number(bound)
        return f"CASE WHEN {x} > {shown} THEN {shown} WHEN {x} < -{shown} THEN -{shown} ELSE {x} END"

    def _two(self, node: Any, sign: str, bounds: float) -> Any:
        kind = kind_of(node)
        if kind == "DOUBLE":
            text = f"({self._within('v_a', bounds)}) {sign} ({self._within('v_b', bounds)})"
            return self.written(text, a=self.double(node.this), b=self.double(node.expression))
        if kind not in (*INTEGERS, "INT128"):
            raise self.refusal("arithmetic", "values that are no numbers")
        wide = "INT128" if kind == "INT128" else "BIGINT"
        text = f"{self._cast('v_a', wide)} {sign} {self._cast('v_b', wide)}"
        return self.written(text, a=node.this, b=node.expression)

    def negative(self, node: Any) -> Any:
        number = number_in(node.this)
        return with_number(self.written("-v_x", x=node.this), None if number is None else -number)

    def quotient(self, node: Any) -> Any:
        """By what is too small to be told from 0 it is NULL."""
        text = f"({self._within('v_a', 2.0**511)}) / CASE WHEN ABS(v_b) >= {self.number(2.0**-511)} THEN v_b END"
        return self.written(text, a=self.double(node.this), b=self.double(node.expression))

    def _wide(self, node: Any, word: str) -> str:
        if kind_of(node) not in (*INTEGERS, "INT128"):
            raise self.refusal(word, "values that are no integers")
        if kind_of(node) == "INT128" and self.name == "SQL Server":
            raise self.refusal(word, "integers of 128 bits")
        return "INT128" if kind_of(node) == "INT128" else "BIGINT"

    def whole_quotient(self, node: Any) -> Any:
        """Of the sizes, whose remainder has no sign; and what is divided is then a multiple."""
        wide = self._wide(node, "whole_quotient")
        a, b = (self._cast(f"ABS({self._cast(x, wide)})", wide) for x in ("v_a", "v_b"))
        whole = self._divided(a, b)
        return self.written(self._cast(f"SIGN(v_a) * SIGN(v_b) * ({whole})", wide), a=node.this, b=node.expression)

    def _divided(self, a: str, b: str) -> str:
        """Of sizes. BigQuery divides to doubles; of the others, a multiple is divided without a rest."""
        if self.name == "BigQuery":
            return f"DIV({a}, NULLIF({b}, 0))"
        return f"({a} - {self._remainder(a, b)}) / NULLIF({b}, 0)"

    def _remainder(self, a: str, b: str) -> str:
        return f"({a} % NULLIF({b}, 0))" if self.name == "SQL Server" else f"MOD({a}, NULLIF({b}, 0))"

    def remainder(self, node: Any) -> Any:
        wide = self._wide(node, "remainder")
        a, b = (self._cast(f"ABS({self._cast(x, wide)})", wide) for x in ("v_a", "v_b"))
        return self.written(self._cast(f"SIGN(v_a) * {self._remainder(a, b)}", wide), a=node.this, b=node.expression)

    def shifted_right(self, node: Any) -> Any:
        wide, bits = self._wide(node.this, "shifted_right"), number_in(node.expression)
        if bits is None:
            raise self.refusal("shifted_right", "bits that are no constant")
        a, b = self._cast("v_a", wide), self._cast(str(2 ** int(bits)), wide)
        return self.written(self._cast(self._divided(a, b), wide), a=node.this)

    def bits_of_both(self, node: Any) -> Any:
        wide, mask = self._wide(node.this, "bits_of_both"), int(number_in(node.expression) or 0)
        if mask <= 0 or mask & (mask + 1):
            raise self.refusal("bits_of_both", "bits that are not the lowest ones")
        text = self._remainder(self._cast("v_a", wide), self._cast(str(mask + 1), wide))
        return self.written(self._cast(text, "BIGINT"), a=node.this)

    def rounded(self, node: Any) -> Any:
        places = int(number_in(node.args["decimals"]) or 0) if node.args.get("decimals") else 0
        if places or kind_of(node) != "DOUBLE":
            raise self.refusal("rounded", "decimals, or to some")
        return self.written(self.cut.replace("v_x", "(v_x + SIGN(v_x) * 4.9999999999999994e-1)"), x=node.this)

    def _nearest(self) -> str:
        half, rounder = self.number(2.0**51), self.number(_ROUNDER)
        return f"CASE WHEN ABS(v_x) < {half} THEN (v_x + {rounder}) - {rounder} ELSE v_x END"

    def nearest(self, x: Any, to: Any) -> Any:
        """Cut to what the type holds, and rounded then: no value makes the cast raise."""
        self._no_wide(to)
        whole = self._nearest().replace("v_x", f"({self._within('v_x', _MOST)})")
        return self.written(self._cast(whole, "BIGINT"), x=self.double(x))

    def nearest_or_null(self, x: Any, to: Any) -> Any:
        self._no_wide(to)
        low, high = SPANS[type_of(to)]
        fits = f"({self._nearest()}) BETWEEN {self.number(low)} AND {self.number(high)}"
        if type_of(to) == "BIGINT":
            fits = f"v_x >= {self.number(low)} AND v_x <= {self.number(_MOST)}"
        whole = self.written(f"CASE WHEN {fits} THEN v_x END", x=self.double(x))
        whole.meta.update(self.double(x).meta)
        type_kept(whole, "DOUBLE")
        return self.nearest(whole, to)

    def _no_wide(self, to: Any) -> None:
        if type_of(to) == "INT128":
            raise self.refusal("nearest", "integers of 128 bits")

    def narrowed_or_null(self, x: Any, to: Any) -> Any:
        if type_of(to) == "INT128":
            return self.written(self._cast("v_x", "INT128"), x=x)
        low, high = SPANS[type_of(to)]
        return self.written(self._cast(f"CASE WHEN v_x BETWEEN {low} AND {high} THEN v_x END", "BIGINT"), x=x)

    def whole_or_null(self, x: Any) -> Any:
        whole = f"{self.cut} = v_x AND ABS(v_x) <= {self.number(_MOST)}"
        return self.written(self._cast(f"CASE WHEN {whole} THEN v_x END", "BIGINT"), x=self.double(x))

    def cast(self, node: Any) -> Any:
        x, to, kind = node.this, type_of(node.to), kind_of(node.this)
        bare, number = x.unnest(), number_in(x)
        if isinstance(bare, needed("sqlglot").exp.Literal) and bare.is_string and to != "VARCHAR":
            if to == "DOUBLE":
                number = float(bare.name)
                shown = f"{'-' * (number < 0)}{LARGEST}" if abs(number) == float("inf") else None
                text = self.number(number) if shown is None else self._cast(shown, "DOUBLE")
                return with_number(self.written(text), number)
            if to in SPANS:
                return with_number(self.written(self._cast(bare.name, to)), int(bare.name))
            if to == "DATE":
                return self.written(self._cast("v_x", "DATE"), x=x)
        if to == "DOUBLE":
            return self.double(x)
        if to in SPANS and kind in (*INTEGERS, "INT128"):
            return with_number(self.written(self._cast("v_x", "INT128" if to == "INT128" else "BIGINT"), x=x), number)
        if to in SPANS and kind == "DOUBLE":
            return self.nearest(x, node.to)
        if kind == to:
            return x
        if to == "VARCHAR" and kind in (*INTEGERS, None) and "VARCHAR" in self.own:
            return self.written(self._cast("v_x", "VARCHAR"), x=x)
        raise self.refusal("cast", f"{kind or 'values of unknown types'} to {to}")

    def sum(self, x: Any) -> Any:
        if kind_of(x) not in (*INTEGERS, "INT128"):
            raise self.refusal("exact_sum", "values that are no integers of 64 bits")
        return self.written(f"SUM({self._cast('v_x', 'INT128')})", x=x)

    def extreme(self, sign: str, *values: Any) -> Any:
        """One after the other, by comparisons: what LEAST makes of NULL is another thing in each of them."""
        if "DOUBLE" in map(kind_of, values):
            values = tuple(map(self.double, values))
        extreme = values[0]
        for value in values[1:]:
            text = f"CASE WHEN v_a IS NULL THEN v_b WHEN v_b IS NULL THEN v_a WHEN v_a {sign} v_b THEN v_a ELSE v_b END"
            extreme = self.written(text, a=extreme, b=value)
        return extreme

    def one_listed(self, text: Any, joined: Any, between: Any) -> Any:
        literal = needed("sqlglot").exp.Literal.string
        shown = [literal(part).sql(dialect=self._dialect) for part in joined.name.split(between.name)]
        return self.written("CASE WHEN v_x IN (v_l) THEN v_x END", x=text, l=", ".join(shown))

    _dialect = ""


def _engine(name: str, dialect: str, own: Mapping[str, str], cut: str, length: str = "LENGTH(v_x)") -> Warehouse:
    words = _Words(name, dialect, own, cut)
    words._dialect = dialect
    written = words.written
    plain: dict[str, Lowered] = {
        **dict.fromkeys(_AS_IS.split(), as_is),
        "sum_of_two": lambda node: words._two(node, "+", INFINITE),
        "difference": lambda node: words._two(node, "-", INFINITE),
        "product": lambda node: words._two(node, "*", 2.0**511),
        "negative": words.negative,
        "quotient": words.quotient,
        "whole_quotient": words.whole_quotient,
        "remainder": words.remainder,
        "shifted_right": words.shifted_right,
        "bits_of_both": words.bits_of_both,
        "size": of_node(written, "ABS(v_x)"),
        "sign": of_node(written, f"CAST(SIGN(v_x) AS {own['BIGINT']})"),
        "floor": of_node(written, "FLOOR(v_x)"),
        "ceiling": of_node(written, "CEILING(v_x)" if dialect == "tsql" else "CEIL(v_x)"),
        "cut": of(written, cut),
        "rounded": words.rounded,
        "root": of_node(written, "SQRT(CASE WHEN v_x >= 0 THEN v_x END)"),
        "is_finite": of(written, f"ABS(v_x) < {words.number(INFINITE)}"),
        "not_a_number": of(written, "v_x <> v_x"),
        "cast": words.cast,
        "nearest": words.nearest,
        "nearest_or_null": words.nearest_or_null,
        "narrowed_or_null": words.narrowed_or_null,
        "whole_or_null": words.whole_or_null,
        "least_present": partial(words.extreme, "<="),
        "greatest_present": partial(words.extreme, ">="),
        "exact_sum": words.sum,
        "joined": of_node(written, "CONCAT(v_x, v_y)"),
        "lower": of_node(written, "LOWER(v_x)"),
        "upper": of_node(written, "UPPER(v_x)"),
        "characters": of(written, length),
        "listed_or_null": words.one_listed,
    }
    # Texts are compared with blanks at their ends left out there, whatever the collation: 'a' would be 'a '.
    if "VARCHAR" not in own:
        plain = {word: lower for word, lower in plain.items() if word not in _TEXTS}
    if "BOOLEAN" not in own:
        plain = {word: lower for word, lower in plain.items() if word not in ("same", "not_same")}
    types = {kind: kind for kind in TYPES if kind in own}
    return Warehouse(name, dialect, plain, types, own=own)


_SMALL = ("TINYINT", "SMALLINT", "INT", "BIGINT", "UTINYINT", "USMALLINT", "UINT")


def _types(whole: str, wide: str, double: str, **more: str) -> dict[str, str]:
    return {**dict.fromkeys(_SMALL, whole), "INT128": wide, "DOUBLE": double, "DATE": "DATE", **more}


SNOWFLAKE = _engine(
    "Snowflake",
    "snowflake",
    _types("NUMBER(38, 0)", "NUMBER(38, 0)", "DOUBLE", VARCHAR="VARCHAR", BOOLEAN="BOOLEAN"),
    "TRUNC(v_x)",
)
BIGQUERY = _engine(
    "BigQuery",
    "bigquery",
    _types("INT64", "BIGNUMERIC", "FLOAT64", VARCHAR="STRING", BOOLEAN="BOOL"),
    "TRUNC(v_x)",
    "CHAR_LENGTH(v_x)",
)
TRINO = _engine(
    "Trino",
    "trino",
    _types("BIGINT", "DECIMAL(38, 0)", "DOUBLE", VARCHAR="VARCHAR", BOOLEAN="BOOLEAN"),
    "TRUNCATE(v_x)",
)
SQL_SERVER = _engine("SQL Server", "tsql", _types("BIGINT", "DECIMAL(38, 0)", "FLOAT"), "ROUND(v_x, 0, 1)")

WAREHOUSES: Mapping[str, Warehouse] = {each.dialect: each for each in (SNOWFLAKE, BIGQUERY, TRINO, SQL_SERVER)}
