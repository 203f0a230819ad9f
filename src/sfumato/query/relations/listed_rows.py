"""Rows that stand in the query itself: VALUES, UNNEST of a list, a series of numbers, a SELECT without FROM.

They are public, as the text is: a table like one of the schema's. Every cell is an expression over no row, so it is
one value, and the columns' values are known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from ..expressions.functions.operands import constant_whole, nothing
from ..expressions.scalars import translate
from ..kinds import Kind, Typed
from ..refusal import QueryError
from ..relation import Relation, Scope
from . import merging
from .bases import lone_name, named, of
from .naming import known_parts

MOST = 1000
_ROWS = "_listed"


def listed(node: exp.Expression) -> Relation | None:
    """The rows that such a node of FROM stands for; None where it is another."""
    if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Values | exp.Unnest):
        known_parts(node, ("this", "alias"))
        return listed(node.this)
    if isinstance(node, exp.Values):
        known_parts(node, ("expressions", "alias"))
        rows = [_cells(row) for row in node.expressions]
        return _relation([f"col{place}" for place in range(len(rows[0]))], rows, node)
    if isinstance(node, exp.Unnest):
        known_parts(node, ("expressions", "alias"))
        if len(node.expressions) != 1 or not isinstance(node.expressions[0], exp.Array):
            raise QueryError("UNNEST takes a list that stands in the query.", "write UNNEST(['a', 'b']) AS t(x)", node)
        return _relation(["unnest"], [[cell] for cell in node.expressions[0].expressions], node)
    if isinstance(node, exp.Table) and isinstance(node.this, exp.GenerateSeries):
        known_parts(node, ("this", "alias"))
        return _series(node.this)
    return None


def one_row(select: exp.Select) -> Relation:
    """A SELECT without FROM: one row of constants."""
    known_parts(select, ("expressions",))
    lone = select.expressions[0] if len(select.expressions) == 1 else None
    if lone is not None and isinstance(many := lone.unalias(), exp.Explode) and isinstance(many.this, exp.Array):
        return _relation([lone_name(lone.alias or "unnest", lone)], [[cell] for cell in many.this.expressions], select)
    cells: dict[str, exp.Expression] = {}
    for place, node in enumerate(select.expressions):
        if isinstance(node, exp.Star) or list(node.find_all(exp.AggFunc, exp.Window, exp.Explode)):
            raise QueryError("A query without FROM reads no table.", "add FROM and a table", select)
        name = node.alias or (node.name if isinstance(node, exp.Column) else f"col{place}")
        cells[lone_name(name, node)] = node.unalias()
    if len(cells) < len(select.expressions):
        raise QueryError("Two columns have one name.", "give one another name with AS", select)
    return _relation(list(cells), [list(cells.values())], select)


def _series(node: exp.GenerateSeries) -> Relation:
    example = "generate_series(1, 12)"
    ends = [
        constant_whole(node.args[name], "An end of a series", example, -(2**62), 2**62) for name in ("start", "end")
    ]
    step = node.args.get("step")
    by = 1 if step is None else constant_whole(step, "The step of a series", example, -(2**62), 2**62)
    if by == 0:
        raise QueryError("A series has a step other than 0.", f"write {example}", node)
    last = ends[1] + (0 if node.args.get("is_end_exclusive") else 1 if by > 0 else -1)
    numbers = range(ends[0], last, by)
    if not 1 <= len(numbers) <= MOST:
        raise QueryError(f"A series has 1 to {MOST} numbers here.", f"write {example}", node)
    name = "range" if node.args.get("is_end_exclusive") else "generate_series"
    return _relation([name], [[exp.Literal.number(number)] for number in numbers], node)


def _cells(row: exp.Expression) -> list[exp.Expression]:
    if isinstance(row, exp.Tuple):
        return list(row.expressions)
    cell = row.unnest()
    assert isinstance(cell, exp.Expression)
    return [cell]


def _constant(cell: exp.Expression) -> Typed:
    """A NULL takes the type of what is beside it."""
    value = translate(cell, Scope())
    return Typed(exp.Null(), value.kind) if nothing(value.kind) else value


def _relation(names: Sequence[str], rows: Sequence[Sequence[exp.Expression]], node: exp.Expression) -> Relation:
    if not rows or any(len(row) != len(names) for row in rows):
        raise QueryError("A list of rows has as many values in each.", "write VALUES (1, 'a'), (2, 'b')", node)
    if len(rows) > MOST:
        raise QueryError(f"There are more than {MOST} rows in the query.", "make a public table of them", node)
    constants = [[_constant(cell) for cell in row] for row in rows]
    columns = [merging.alike(column, node) for column in zip(*constants, strict=True)]
    kinds: Mapping[str, Kind] = {name: kind for name, (_, kind) in zip(names, columns, strict=True)}
    cells = zip(*(trees for trees, _ in columns), strict=True)
    spots = [f"c{place}" for place in range(len(names))]
    alias = exp.TableAlias(
        this=exp.to_identifier(_ROWS, quoted=True), columns=[exp.to_identifier(spot, quoted=True) for spot in spots]
    )
    values = exp.Values(expressions=[exp.Tuple(expressions=list(row)) for row in cells], alias=alias)
    shown = [named(of(_ROWS, spot), name) for spot, name in zip(spots, names, strict=True)]
    return Relation(exp.Select().from_(values).select(*shown), kinds, private=False)
