"""A query of public tables alone: answered for nothing, and by nobody's account.

It is no plan. A plan costs an event, and an event says which mechanism ran between which neighbours; here there is
none, so there is nothing that a ledger could charge, price or prove. What keeps that honest is the door: the tables
come from the session of a rehearsal with no made-up rows, which holds public tables as they are and no private row,
and the query runs in an engine that was handed the public tables that it names (`sources/released_engine.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sqlglot import exp

from ... import checks
from ...openings import ENGINE
from ...schema import Schema
from ...sources.mentions import mentions
from ..dialects.pasted import dialect_of, in_duckdb_sql
from ..parsing import parsed
from ..refusal import QueryError
from ..relations.bases import base_tables
from ..released.answer import Answer
from . import above_answer, permitted, shown_rows
from .above_rules import by_own_names, public_tables, written
from .query_blocks import QuerySplit

if TYPE_CHECKING:
    import pyarrow

NOTE = "public tables only: nothing was paid, and the numbers are exact"


def public(text: str, data: Any, *, dialect: str | None = None) -> Answer:
    """The answer to a query that reads public tables only. No private row is read, and nothing is charged.

    >>> from sfumato import Private, Schema, Unit, public, schema
    >>> wards = schema.Table({"ward": schema.key(), "beds": schema.whole(0, 100)}, private=False)
    >>> visits = schema.Table({"patient": schema.key()}, unit="patient")
    >>> tables = Schema({"visits": visits, "wards": wards})
    >>> data = {"visits": {"patient": ["a", "b"]}, "wards": {"ward": ["east", "west"], "beds": [20, 8]}}
    >>> clinic = Private("clinic", data, unit=Unit("user:patient"), schema=tables)
    >>> public("SELECT ward FROM wards WHERE beds > 10", clinic)["ward"]
    ['east']

    Refused where the query names a private table: such a query needs a plan, `sql(...)`.
    """
    checks.instance(text, str, "text", "a query")
    if not isinstance(getattr(data, "schema", None), Schema) or not hasattr(data, "rehearsal"):
        raise checks.refuse("data", type(data).__name__, "a Private")
    text = in_duckdb_sql(text, dialect_of(dialect or "duckdb"), data.schema)
    split = QuerySplit(data.schema, data.unit, {})
    try:
        status = split.walk(parsed(text))
        if status != "public" or split.tree is None:
            raise QueryError("The query reads private tables.", "make a plan of it, with sf.sql, and release that")
        tree = permitted.steadied(by_own_names(split.tree))
        permitted.check(tree, list(public_tables(data.schema)))
    except QueryError as problem:
        raise problem.within(text) from None
    shown = shown_rows.shown({}, {}, written(tree), _tables(tree, data))
    if "failed" in shown:
        raise QueryError(f"The query cannot be run: {shown['failed']}.", "mend it there")
    answer = above_answer.answer({}, {}, shown)
    answer.notes = (NOTE, *answer.notes)
    return answer


def _tables(tree: exp.Query, data: Any) -> dict[str, pyarrow.Table]:
    """The public tables that it names, as the schema reads them."""
    relations = base_tables(data.schema, data.unit, names=mentions(tree).names)
    ctes = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    names = {table.name.lower() for table in tree.find_all(exp.Table)} - ctes
    public_ones = [name for name in public_tables(data.schema) if name in names]
    session: Any = data.rehearsal(0, _no_words, ENGINE)
    try:
        return {name: session.run(relations[name].tree) for name in public_ones}
    finally:
        ENGINE.close(session)


def _no_words(count: int) -> Any:
    """No row is made up, so nothing hangs on what is drawn."""
    return np.zeros(count, dtype=np.uint64)
