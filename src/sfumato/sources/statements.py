"""What an engine may be asked: one SELECT over the tables of the session, in words of the vocabulary and no others.

The query area allows analysts far less. This is the second lock, on the door itself, and holds whatever made the tree.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from .. import checks
from ..errors import PlanError
from .base import needed
from .lowering import Change, Engine

if TYPE_CHECKING:
    import sqlglot


class StatementItself:
    """A tree that is itself alone: what is remembered of it is not believed of another that looks like it."""

    def __init__(self, tree: sqlglot.exp.Query) -> None:
        self.tree = tree

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StatementItself) and self.tree is other.tree

    def __hash__(self) -> int:
        return id(self.tree)


def checked(tree: sqlglot.exp.Query, tables: Collection[str], engine: Engine, change: Change | None = None) -> str:
    """The statement as text of the engine, or a refusal that names what is wrong with it. The text is remembered, and
    is what runs: a tree that somebody changes after it was checked runs as it was.

    change  what the session does to a copy of the tree before it is lowered, the same where it is equal
    """
    return _checked(StatementItself(tree), tuple(tables), engine, change)


@lru_cache(maxsize=64)
def _checked(statement: StatementItself, tables: tuple[str, ...], engine: Engine, change: Change | None) -> str:
    tree = statement.tree
    exp = needed("sqlglot").exp
    if not isinstance(tree, exp.Select | exp.SetOperation):
        raise checks.refuse("tree", type(tree), "one SELECT, as a sqlglot tree")
    names = {name.lower() for name in tables}
    for node in tree.find_all(exp.Table):
        _check_table(node, names, exp)
    engine.check(tree)
    return engine.text(tree, change=change)


def _check_table(node: Any, names: Collection[str], exp: Any) -> None:
    if not isinstance(node.this, exp.Identifier):
        raise PlanError("a function in FROM is not run: only the tables of the schema are read")
    name = node.name.lower()
    if node.args.get("db") or node.args.get("catalog") or not (name in names or name in in_scope(node, exp)):
        raise PlanError(f"there is no table {node.name!r} here")


def in_scope(node: Any, exp: Any) -> set[str]:
    """The CTEs that a name can mean at this place. A CTE does not see itself or later ones: there, its name would mean
    whatever else the engine knows by it, such as its catalogue."""
    names: set[str] = set()
    child, parent = node, node.parent
    while parent is not None:
        if isinstance(parent, exp.With):
            before = itertools.takewhile(lambda cte, child=child: cte is not child, parent.expressions)  # type: ignore[misc]
            names |= {cte.alias.lower() for cte in before}
        elif (with_ := parent.args.get("with_") or parent.args.get("with")) is not None and with_ is not child:
            names |= {cte.alias.lower() for cte in with_.expressions}
        child, parent = parent, parent.parent
    return names
