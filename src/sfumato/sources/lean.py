"""What a session leaves out of a statement before it runs it, as it knows what its tables hold. The rows stay the same
rows, so that nothing else changes, no number, no price, no proof: only how long it takes.

A DISTINCT: whoever writes a statement may mark a SELECT DISTINCT whose rows are different wherever those of one column
of one table are (ONCE). Where the session finds these to be different, the DISTINCT is left out.

A comparison as texts: keys of several tables are compared as texts, since engines may hold them as several types. Where
both are columns of whole numbers, these are equal if and only if their texts are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .base import needed
from .mentions import ONCE, Columns

if TYPE_CHECKING:
    import sqlglot


@dataclass(frozen=True)
class Lean:
    """What is known of the tables, by table and column: whose values are different, and which are whole numbers."""

    different: Columns = frozenset()
    whole: Columns = frozenset()

    def __call__(self, tree: sqlglot.exp.Query) -> None:
        """Leave out of a statement what is needless by that."""
        exp = needed("sqlglot").exp
        for node in list(tree.find_all(exp.Select, exp.EQ)):
            if isinstance(node, exp.Select):
                if node.meta.get(ONCE) in self.different:
                    node.set("distinct", None)
                continue
            columns = [_compared(side) for side in (node.this, node.expression)]
            if all(column is not None and _stored(column) in self.whole for column in columns):
                for name, column in zip(("this", "expression"), columns, strict=True):
                    node.set(name, column.copy())


def _compared(side: Any) -> Any:
    """The column whose text this is; None where it is anything else."""
    exp, cast = needed("sqlglot").exp, side.unnest()
    is_text = type(cast) is exp.Cast and cast.to.this in (exp.DataType.Type.VARCHAR, exp.DataType.Type.TEXT)
    inner = cast.this.unnest() if is_text else None
    return inner if isinstance(inner, exp.Column) else None


def _stored(column: Any) -> tuple[str, str] | None:
    """The table and column whose cells these are, through subqueries that pass them on; None where it is not plain."""
    exp = needed("sqlglot").exp
    select, table = column.find_ancestor(exp.Select), column.table
    while select is not None:
        joins = [each.this for each in select.args.get("joins") or []]
        first = select.args.get("from_") or select.args.get("from")
        sources = [*([first.this] if first is not None else []), *joins]
        meant = [each for each in sources if not table or each.alias_or_name == table]
        if len(meant) == 1:
            return _in_source(meant[0], column.name)
        if meant:
            return None
        select = select.find_ancestor(exp.Select)
    return None


def _in_source(source: Any, name: str) -> tuple[str, str] | None:
    exp = needed("sqlglot").exp
    if isinstance(source, exp.Table):
        shadowed = any(each.alias_or_name.lower() == source.name.lower() for each in source.root().find_all(exp.CTE))
        return None if shadowed else (source.name, name)
    inner = source.this if isinstance(source, exp.Subquery) else None
    if not isinstance(inner, exp.Select):
        return None
    shown = [each for each in inner.expressions if each.alias_or_name == name]
    column = shown[0].unalias() if len(shown) == 1 else None
    return _stored(column) if isinstance(column, exp.Column) and not isinstance(column.this, exp.Star) else None
