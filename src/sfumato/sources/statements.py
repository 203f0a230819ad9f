"""What an engine may be asked: one SELECT over the tables of the session.

The query area allows analysts far less. This is the second lock, on the door itself, and holds whatever made the tree.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from .. import checks
from ..errors import PlanError
from .base import needed

if TYPE_CHECKING:
    import sqlglot

# Scalar functions that reach out of the data, or write, or raise on purpose.
_REFUSED = frozenset({
    "current_setting", "getvariable", "getenv", "write_log", "error", "query", "query_table", "nextval", "currval",
    "current_database", "current_schema", "current_schemas", "current_user", "version", "sleep_ms",
})  # fmt: skip


def checked(tree: sqlglot.exp.Query, tables: Collection[str], dialect: str) -> str:
    """The statement as text of the engine, or a refusal that names what is wrong with it."""
    exp = needed("sqlglot").exp
    if not isinstance(tree, exp.Select | exp.SetOperation):
        raise checks.refuse("tree", type(tree), "one SELECT, as a sqlglot tree")
    known = {name.lower() for name in tables}
    for node in tree.walk():
        if isinstance(node, exp.Table):
            _check_table(node, known, exp)
        elif isinstance(node, exp.Func):
            _check_function(node, exp)
        elif isinstance(node, exp.Lateral) and not isinstance(node.this, exp.Subquery | exp.Unnest):
            raise PlanError("a function in FROM is not run: only the tables of the schema are read")
        elif isinstance(node, exp.With) and node.args.get("recursive"):
            raise PlanError("WITH RECURSIVE is not run: how long it takes depends on the data")
        elif isinstance(node, _others(exp)):
            raise PlanError(f"a statement that holds {type(node).__name__.upper()} is not run: only SELECT is")
    return tree.sql(dialect=dialect, comments=False)


def _others(exp: Any) -> tuple[type, ...]:
    """What is no part of a SELECT that reads and no more."""
    return (
        exp.Into, exp.Command, exp.DML, exp.Pragma, exp.Set, exp.Attach, exp.Detach, exp.Copy, exp.Create, exp.Drop,
        exp.Alter, exp.Use, exp.Placeholder, exp.Parameter, exp.SessionParameter,
    )  # fmt: skip


def _check_function(node: Any, exp: Any) -> None:
    name = (node.name if isinstance(node, exp.Anonymous) else node.sql_name()).lower()
    if name in _REFUSED or name.startswith(("read_", "duckdb_", "pragma_", "parquet_", "pg_")):
        raise PlanError(f"the function {name} is not run: it reads more than the tables")


def _check_table(node: Any, known: Collection[str], exp: Any) -> None:
    if not isinstance(node.this, exp.Identifier):
        raise PlanError("a function in FROM is not run: only the tables of the schema are read")
    name = node.name.lower()
    if node.args.get("db") or node.args.get("catalog") or not (name in known or name in _in_scope(node, exp)):
        raise PlanError(f"there is no table {node.name!r} here")


def _in_scope(node: Any, exp: Any) -> set[str]:
    """The CTEs that a name can mean at this place. A CTE does not see itself or later ones: there, its name would mean
    whatever else the engine knows by it, such as its catalogue."""
    names: set[str] = set()
    child, parent = node, node.parent
    while parent is not None:
        if isinstance(parent, exp.With):
            before = itertools.takewhile(lambda each, child=child: each is not child, parent.expressions)  # type: ignore[misc]
            names |= {each.alias.lower() for each in before}
        elif (with_ := parent.args.get("with_") or parent.args.get("with")) is not None and with_ is not child:
            names |= {each.alias.lower() for each in with_.expressions}
        child, parent = parent, parent.parent
    return names
