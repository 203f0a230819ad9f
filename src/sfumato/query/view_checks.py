"""Is a view one that queries may read? Asked of all views of a project, before anybody queries one."""

from __future__ import annotations

from sqlglot import exp

from ..schema import Schema
from ..units import Unit
from .above.query_blocks import QuerySplit
from .parsing import parsed
from .refusal import QueryError
from .relations.bases import base_tables
from .relations.rows_of import relation
from .unfolding import unfolded


def check_view(name: str, schema: Schema, unit: Unit) -> None:
    """Refuse a view that is neither rows of units nor made of releases, by the rules for queries."""
    own = exp.to_identifier(name, quoted=True).sql("duckdb")
    query = unfolded(f"SELECT * FROM {own}", schema)
    tree = parsed(query.text)
    try:
        if QuerySplit(schema.stored, unit, {}).walk(tree) == "rows":
            relation(tree, base_tables(schema.stored, unit), unit)
    except QueryError as refusal:
        problem = query.refused(refusal.within(query.text))
    else:
        return
    raise problem
