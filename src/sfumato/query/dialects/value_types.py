"""What type a value of a pasted query has, as far as its text and the schema say.

Only a few types matter: whether `/` cuts off, `+` joins texts, or a cast rounds. A name is looked up without its table:
among the columns of all tables and the aliases of the whole query, and where these do not agree nobody knows. So what
is said holds wherever the name stands, and who needs a type that is not known refuses.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from sqlglot import exp

from ...schema import Schema
from ..kinds import OF_COLUMNS
from ..parsing import read_only

ValueType = Literal["whole", "decimal", "real", "text", "flag", "time"]

_T: Any = exp.DataType.Type
_NUMBERS = ("whole", "decimal", "real")
_KINDS: dict[str, ValueType] = {
    "whole": "whole", "flag": "flag", "text": "text", "key": "text", "date": "time", "moment": "time",
}  # fmt: skip
_WHOLE = (
    exp.Count, exp.CountIf, exp.ApproxDistinct, exp.IntDiv, exp.Length, exp.StrPosition, exp.DateDiff, exp.Sign,
    exp.RowNumber, exp.Rank, exp.DenseRank, exp.Ntile, exp.Year, exp.Month, exp.Day, exp.Quarter, exp.Hour, exp.Minute,
    exp.DayOfYear, exp.DayOfWeek, exp.DayOfWeekIso, exp.WeekOfYear, exp.Week,
)  # fmt: skip
_REAL = (
    exp.Sqrt, exp.Exp, exp.Ln, exp.Log, exp.Pow, exp.Variance, exp.VariancePop, exp.Stddev, exp.StddevPop,
    exp.StddevSamp, exp.Corr, exp.CovarPop, exp.CovarSamp, exp.Median, exp.SafeDivide,
)  # fmt: skip
_TEXT = (
    exp.Lower, exp.Upper, exp.Trim, exp.Substring, exp.Left, exp.Right, exp.Replace, exp.Reverse, exp.Concat, exp.DPipe,
    exp.TimeToStr, exp.National,
)  # fmt: skip
_LIKE_ITS_OPERAND = (exp.Paren, exp.Neg, exp.Abs, exp.Min, exp.Max, exp.Filter, exp.Window, exp.Alias)
_LIKE_ITS_OPERANDS = (exp.Coalesce, exp.Nullif, exp.Greatest, exp.Least)


@dataclass(frozen=True)
class ValueTypes:
    """The types of the values of one query.

    numeric    PostgreSQL's ways: SUM of whole numbers is of a type that only the database knows, EXTRACT is a decimal
    means_cut  is AVG of whole numbers one itself, as in T-SQL?
    """

    schema: Schema
    query: exp.Expr
    numeric: bool = False
    means_cut: bool = False
    _open: set[str] = field(default_factory=set)

    def of(self, node: exp.Expr) -> ValueType | None:
        """The type of a value; None where nobody knows."""
        if isinstance(node, exp.Literal):
            return "text" if node.is_string else "whole" if node.name.isdigit() else "decimal"
        if isinstance(node, exp.Column):
            return self._named(node.name.lower())
        if isinstance(node, exp.Cast | exp.TryCast):
            return _of_data_type(node.args["to"])
        if isinstance(node, _LIKE_ITS_OPERAND):
            return self.of(node.this)
        if isinstance(node, exp.Case | exp.If):
            return self._chosen(node)
        if isinstance(node, _LIKE_ITS_OPERANDS):
            rest = [node.expression] if isinstance(node, exp.Nullif) else node.expressions
            return _common(self.of(term) for term in (node.this, *rest) if not isinstance(term, exp.Null))
        if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Mod | exp.Div):
            return self._computed(node)
        if isinstance(node, exp.Sum | exp.Avg):
            return self._folded(node)
        if isinstance(node, exp.Round | exp.Floor | exp.Ceil | exp.Trunc):
            return self.of(node.this)
        if isinstance(node, exp.Extract):
            return "decimal" if self.numeric else "whole"
        return _by_class(node)

    @cached_property
    def _of_views(self) -> frozenset[str]:
        """The names that views of the schema give to values."""
        nodes = [node for text in self.schema.views.values() for node in read_only(text).walk()]
        return frozenset(node.alias.lower() for node in nodes if isinstance(node, exp.Alias)) | frozenset(
            column.name.lower() for node in nodes if isinstance(node, exp.TableAlias) for column in node.columns
        )

    def _named(self, name: str) -> ValueType | None:
        """The type of whatever bears the name anywhere in the query or the schema."""
        if name in self._open:  # x + 1 AS x
            return None
        types: list[ValueType | None] = [
            _of_kind(OF_COLUMNS[column.type](column).type, column.decimals)
            for table in self.schema.tables.values()
            for own, column in table.columns.items()
            if own.lower() == name and column.type in OF_COLUMNS
        ]
        if any(column.name.lower() == name for each in self.query.find_all(exp.TableAlias) for column in each.columns):
            return None
        if name in self._of_views:  # whose words mean what they mean in DuckDB
            return None
        self._open.add(name)
        types += [self.of(each.this) for each in self.query.find_all(exp.Alias) if each.alias.lower() == name]
        self._open.discard(name)
        return types[0] if types and len(set(types)) == 1 else None

    def _chosen(self, node: exp.Expr) -> ValueType | None:
        branches = node.args["ifs"] if isinstance(node, exp.Case) else [node]
        last = node.args.get("default") if isinstance(node, exp.Case) else node.args.get("false")
        values = [branch.args["true"] for branch in branches] + ([] if last is None else [last])
        return _common(self.of(each) for each in values if not isinstance(each, exp.Null))

    def _computed(self, node: exp.Binary) -> ValueType | None:
        types = {self.of(node.this), self.of(node.expression)}
        if types == {"text"}:
            return "text"
        if types & {"time"} or "text" in types or None in types:
            return None
        if isinstance(node, exp.Div) and not node.args.get("typed"):
            return "real"
        return "real" if "real" in types else "decimal" if "decimal" in types else "whole"

    def _folded(self, node: exp.Sum | exp.Avg) -> ValueType | None:
        inner = self.of(node.this.expressions[0] if isinstance(node.this, exp.Distinct) else node.this)
        if isinstance(node, exp.Avg) and inner == "whole":
            return "whole" if self.means_cut else "real"
        if inner == "flag":
            return "whole"
        return None if isinstance(node, exp.Sum) and self.numeric and inner == "whole" else inner


def _of_kind(kind: str, decimals: int | None) -> ValueType | None:
    return _KINDS.get(kind, "real" if decimals is None else "decimal")


def _of_data_type(to: exp.Expr) -> ValueType | None:
    word = to.this if isinstance(to, exp.DataType) else None
    if word in exp.DataType.INTEGER_TYPES:
        return "whole"
    if word in exp.DataType.FLOAT_TYPES:
        return "real"
    if word in (_T.DECIMAL, _T.BIGDECIMAL, _T.MONEY, _T.SMALLMONEY):
        return "decimal"
    if word in exp.DataType.TEXT_TYPES:
        return "text"
    if word in exp.DataType.TEMPORAL_TYPES:
        return "time"
    return "flag" if word in (_T.BOOLEAN, _T.BIT) else None


def _by_class(node: exp.Expr) -> ValueType | None:
    classes: tuple[tuple[Any, ValueType], ...] = (
        (_WHOLE, "whole"), (_REAL, "real"), (_TEXT, "text"), ((exp.Predicate, exp.Connector, exp.Not), "flag"),
    )  # fmt: skip
    return next((word for nodes, word in classes if isinstance(node, nodes)), None)


def _common(types: Iterable[ValueType | None]) -> ValueType | None:
    """The one type of all of them; numbers of several types are of the widest."""
    distinct = set(types)
    if distinct and distinct <= set(_NUMBERS):
        return next(word for word in reversed(_NUMBERS) if word in distinct)
    return distinct.pop() if len(distinct) == 1 else None
