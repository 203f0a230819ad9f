"""Which type of the vocabulary each expression of a statement has, where an engine must know it to write the words.

PostgreSQL raises where doubles overflow, divides whole numbers by the same sign as doubles, and casts truth values to
nothing but INT; Spark adds whole numbers up in the width that they have. So their lowerings ask of what type the
operands are. A tree says so by itself, given the types of the tables' columns: types are inferred from the leaves on,
through subqueries, and stand in `meta` under KIND.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .base import needed
from .lowering import type_of
from .vocabulary import word_of

KIND = "inferred-kind"
INTEGERS = ("TINYINT", "SMALLINT", "INT", "UTINYINT", "USMALLINT", "UINT", "BIGINT")
TABLES = Mapping[str, Mapping[str, str]]
Columns = dict[str, "str | None"]
Scope = Sequence[tuple[str, Columns]]

_DOUBLE = "quotient floor ceiling cut root exponential power natural_log decimal_log binary_log octaves"
_BOOLEAN = (
    "equal different less at_most greater at_least same not_same between among exists is_null both either not "
    "is_finite sign_bit like like_any_case escaped begins_with ends_on holds all_true any_true not_a_number is_digits"
)
_VARCHAR = (
    "joined lower upper reverse trimmed trimmed_before trimmed_behind part first_characters last_characters repeated "
    "replaced texts_of month_name day_name listed_or_null"
)
_BIGINT = "characters place_of boundaries_between count row_number rank dense_rank tile wholes_of whole_or_null"
_FIXED = {
    **dict.fromkeys(_DOUBLE.split(), "DOUBLE"),
    **dict.fromkeys(_BOOLEAN.split(), "BOOLEAN"),
    **dict.fromkeys(_VARCHAR.split(), "VARCHAR"),
    **dict.fromkeys(_BIGINT.split(), "BIGINT"),
    "sign": "INT", "ordering_hash": "INT128", "last_day": "DATE", "moment_or_null": "TIMESTAMP", "interval": "INTERVAL",
}  # fmt: skip
_OF_ARITHMETIC = frozenset(
    ("sum_of_two", "difference", "product", "whole_quotient", "remainder", "shifted_right", "bits_of_both")
)
_OF_SEVERAL = {"first_present", "null_if", "least_present", "greatest_present"}
_OF_FIRST = frozenset(
    (
        "negative",
        "size",
        "rounded",
        "minimum",
        "maximum",
        "value_at",
        "earlier",
        "later",
        "first_of",
        "last_of",
        "nth_of",
    )
) | {"start_of"}
_WIDER = ("DOUBLE", "DECIMAL", "INT128", "BIGINT")


def kind_of(node: Any) -> str | None:
    """The type that was inferred; None where nothing says so, as of a bare NULL."""
    kind: str | None = node.meta.get(KIND)
    return kind


def annotate(tree: Any, tables: TABLES) -> None:
    """Infer the types of all expressions of a tree. `tables` has the types of the tables' columns, in lower case."""
    exp = needed("sqlglot").exp
    columns: dict[str, Columns] = {name: {**types} for name, types in tables.items()}
    inference = _Inference(exp, columns)
    if isinstance(tree, exp.Query):
        inference.query(tree, {}, ())
    else:
        inference.value(tree, {}, ([("", {})],))


def column_kinds(query: Any, tables: TABLES) -> list[str | None] | None:
    """The types of a query's columns, in their order; None where two of them have one name."""
    tree = query.copy()
    columns = _Inference(needed("sqlglot").exp, {name: {**types} for name, types in tables.items()}).query(tree, {}, ())
    names = query.named_selects
    return list(columns.values()) if "*" in names or len(columns) == len(names) else None


class _Inference:
    def __init__(self, exp: Any, tables: dict[str, Columns]) -> None:
        self._exp, self._tables = exp, tables

    def query(self, node: Any, ctes: dict[str, Columns], around: tuple[Scope, ...]) -> Columns:
        """The types of a query's columns, by name in lower case."""
        exp = self._exp
        ctes = dict(ctes)
        for cte in node.args["with_"].expressions if node.args.get("with_") else ():
            ctes[cte.alias.lower()] = _renamed(self.query(cte.this, ctes, around), cte.args.get("alias"))
        if isinstance(node, exp.Subquery):
            return self.query(node.this, ctes, around)
        if isinstance(node, exp.Union):
            left, right = self.query(node.this, ctes, around), self.query(node.expression, ctes, around)
            pairs = zip(left.items(), right.values(), strict=False)
            return {name: merged([one, other]) for (name, one), other in pairs}
        scope = [self._source(each, ctes, around) for each in _sources(node)]
        scopes = (scope, *around)
        for part, value in node.args.items():
            if part not in ("with_", "from_"):
                for child in value if isinstance(value, list) else [value]:
                    if isinstance(child, exp.Join):
                        self._parts(child, ("this", "using"), ctes, scopes)
                    elif isinstance(child, exp.Expr):
                        self.value(child, ctes, scopes)
        columns: Columns = {}
        for place, shown in enumerate(node.expressions):
            if isinstance(shown, exp.Star):
                for _, inner in scope:
                    columns |= inner
            else:
                columns[shown.alias_or_name.lower() or f"?{place}"] = kind_of(shown)
        return columns

    def _source(self, node: Any, ctes: dict[str, Columns], around: tuple[Scope, ...]) -> tuple[str, Columns]:
        exp = self._exp
        if isinstance(node, exp.Table):
            columns = ctes.get(node.name.lower(), self._tables.get(node.name.lower(), {}))
        elif isinstance(node, exp.Values):
            rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in node.expressions]
            for row in rows:
                for cell in row:
                    self.value(cell, ctes, around)
            kinds = [merged([kind_of(cell) for cell in cells]) for cells in zip(*rows, strict=True)]
            columns = {f"column{place}": kind for place, kind in enumerate(kinds, 1)}
        else:
            columns = self.query(node, ctes, around)
        return node.alias_or_name.lower(), _renamed(columns, node.args.get("alias"))

    def _parts(self, node: Any, without: Sequence[str], ctes: dict[str, Columns], scopes: tuple[Scope, ...]) -> None:
        for part, value in node.args.items():
            for child in value if isinstance(value, list) else [value]:
                if part not in without and isinstance(child, self._exp.Expr):
                    self.value(child, ctes, scopes)

    def value(self, node: Any, ctes: dict[str, Columns], scopes: tuple[Scope, ...]) -> None:
        exp = self._exp
        if isinstance(node, exp.Query):
            columns = self.query(node, ctes, scopes)
            kind = next(iter(columns.values()), None)
        elif isinstance(node, exp.Column):
            kind = self._column(node, scopes)
        else:
            self._parts(node, (), ctes, scopes)
            kind = self._of(node)
        if kind is not None:
            node.meta[KIND] = kind

    def _column(self, node: Any, scopes: tuple[Scope, ...]) -> str | None:
        name, table = node.name.lower(), node.table.lower()
        for scope in scopes:
            for called, columns in scope:
                if name in columns and table in ("", called):
                    return columns[name]
        return None

    def _of(self, node: Any) -> str | None:
        exp = self._exp
        if isinstance(node, exp.Literal):
            return "VARCHAR" if node.is_string else _number(node.name)
        if isinstance(node, exp.Boolean):
            return "BOOLEAN"
        if isinstance(node, exp.Alias | exp.Paren | exp.Ordered | exp.Window | exp.Distinct | exp.Tuple):
            first = node.this if isinstance(node.this, exp.Expr) else next(iter(node.expressions), None)
            return None if first is None else kind_of(first)
        word = word_of(node)
        return None if word is None else self._word(word.name, node)

    def _word(self, name: str, node: Any) -> str | None:
        exp = self._exp
        if name in _FIXED:
            return _FIXED[name]
        if name == "cast":
            return type_of(node.to)
        if isinstance(node, exp.Anonymous):
            operands = node.expressions
            if operands and isinstance(operands[-1], exp.DataType):
                return type_of(operands[-1])
        else:
            operands = [each for each in (node.this, node.args.get("expression")) if isinstance(each, exp.Expr)]
            operands += [each for each in node.expressions if isinstance(each, exp.Expr)]
        if name == "case":
            return merged([kind_of(each.args["true"]) for each in node.args["ifs"]] + [_default(node)])
        if name == "part_of_date":
            return "DOUBLE" if node.name.upper() == "EPOCH" else "BIGINT"
        if name == "exact_sum":
            return "DECIMAL" if kind_of(operands[0]) == "DECIMAL" else "INT128"
        if name in _OF_ARITHMETIC:
            return _arithmetic(name, [kind_of(each) for each in operands])
        if name in _OF_SEVERAL:
            return merged([kind_of(each) for each in operands])
        return kind_of(operands[0]) if name in _OF_FIRST else None


def _sources(select: Any) -> list[Any]:
    first = select.args.get("from_")
    return [*([first.this] if first else []), *(join.this for join in select.args.get("joins") or [])]


def _renamed(columns: Columns, alias: Any) -> Columns:
    names = [each.name.lower() for each in (alias.args.get("columns") or [])] if hasattr(alias, "args") else []
    if not names:
        return columns
    return dict(zip([*names, *list(columns)[len(names) :]], columns.values(), strict=True))


def _default(case: Any) -> str | None:
    default = case.args.get("default")
    return None if default is None else kind_of(default)


def _number(digits: str) -> str:
    if "e" in digits.lower():
        return "DOUBLE"
    if "." in digits:
        return "DECIMAL"
    return "INT" if abs(int(digits)) < 2**31 else "BIGINT" if abs(int(digits)) < 2**63 else "INT128"


def merged(kinds: Sequence[str | None]) -> str | None:
    """The type that holds values of all of these."""
    present = [kind for kind in kinds if kind is not None]
    wide = [kind for kind in _WIDER if kind in present]
    if "DECIMAL" in wide and "DOUBLE" not in wide:
        return "DECIMAL"
    return wide[0] if wide else present[0] if present else None


def _arithmetic(name: str, kinds: list[str | None]) -> str | None:
    if "INTERVAL" in kinds:
        return "TIMESTAMP"
    if "DATE" in kinds:
        return "BIGINT" if kinds == ["DATE", "DATE"] else "DATE"
    if "TIMESTAMP" in kinds:
        return "INTERVAL"
    if "DOUBLE" not in kinds and None in kinds:
        return None
    kind = merged(kinds)
    return "BIGINT" if kind in INTEGERS else kind
