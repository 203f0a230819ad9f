"""Casts. In polars a cast that fails is an error, or NULL where `strict=False`; no cell can make a query fail here."""

from __future__ import annotations

import datetime
from typing import Any

from sqlglot import exp

from ..query.kinds import SQL_TYPES, Type
from .operators import alone
from .terms import Term, unlike

_PYTHON: dict[Any, tuple[str, Type]] = {
    int: ("BIGINT", "whole"), float: ("DOUBLE", "real"), bool: ("BOOLEAN", "flag"), str: ("VARCHAR", "text"),
    datetime.date: ("DATE", "date"), datetime.datetime: ("TIMESTAMP", "moment"),
}  # fmt: skip
_POLARS: dict[str, tuple[str, Type]] = {
    "Int8": ("TINYINT", "whole"), "Int16": ("SMALLINT", "whole"), "Int32": ("INT", "whole"),
    "Int64": ("BIGINT", "whole"), "UInt8": ("UTINYINT", "whole"), "UInt16": ("USMALLINT", "whole"),
    "UInt32": ("UINT", "whole"), "Float64": ("DOUBLE", "real"), "Boolean": ("BOOLEAN", "flag"),
    "String": ("VARCHAR", "text"), "Utf8": ("VARCHAR", "text"), "Date": ("DATE", "date"),
    "Datetime": ("TIMESTAMP", "moment"),
}  # fmt: skip
# From, to: where SQL and polars mean the same.
_ALIKE: set[tuple[str, str]] = {
    ("whole", "real"), ("whole", "text"), ("whole", "flag"), ("real", "whole"), ("real", "flag"),
    ("flag", "whole"), ("flag", "real"), ("flag", "text"), ("text", "real"), ("key", "real"), ("key", "text"),
    ("date", "text"), ("date", "moment"), ("moment", "date"),
}  # fmt: skip
_INSTEAD = {
    ("text", "whole"): "cast to Float64 first, and then to a whole number",
    ("key", "whole"): "cast to Float64 first, and then to a whole number",
    ("moment", "text"): "write dt.strftime('%Y-%m-%d %H:%M:%S')",
    ("real", "text"): "cast to a whole number first",
}


def cast(term: Term, to: Any, strict: bool) -> Term:
    """The value as one of a type of Python or polars, where SQL means by it what polars does."""
    if strict:
        raise unlike(
            "A cast that fails would tell that a cell is there", "leave strict out: what cannot be cast is null"
        )
    word = to if isinstance(to, str) else str(getattr(to, "__name__", to) if isinstance(to, type) else to)
    target = _PYTHON.get(to) if isinstance(to, type) else None
    target = target or _POLARS.get(word.partition("(")[0])
    if target is None:
        words = ", ".join(_POLARS)
        raise unlike(
            f"Values are not cast to {word} here", f"write int, float, bool, str, date, datetime, or one of {words}"
        )
    name, wanted = target
    term = alone(term, "cast()")
    kind = term.kind.type
    if kind == wanted and SQL_TYPES.get(wanted) == name:
        return term
    if kind != wanted and (kind, wanted) not in _ALIKE:
        instead = _INSTEAD.get((kind, wanted), "there is none that polars and SQL have in common")
        raise unlike(f"A cast from {kind} to {wanted} differs between polars and SQL", instead)
    tree = term.tree.copy()
    if kind == "real" and wanted == "whole":
        tree = exp.Trunc(this=tree)  # polars cuts off, SQL rounds
    if kind == "real" and wanted == "flag":
        return term.of(exp.NEQ(this=tree, expression=exp.Literal.number(0)), "flag")
    nullable = term.kind.nullable or wanted == "whole" or kind in ("text", "key")
    return term.of(exp.cast(tree, name), wanted, nullable=nullable, lower=term.kind.lower if wanted == "real" else None)
