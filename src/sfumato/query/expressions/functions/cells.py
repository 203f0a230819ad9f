"""UNREADABLE(column): is there a cell that cannot be read as the schema says, and so counts as missing?

Only a table itself knows what stood in a cell, so the flag is another column of its view (`sources.reading`), which is
there for the columns that a query asks about.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from ...kinds import Typed
from ...refusal import QueryError
from .operands import Reader, Rule, shown

NAME = "unreadable"


def flag_name(column: str) -> str:
    """What the flag of a column is called in a relation, which no name of a user's is."""
    return f"_{NAME} {column.lower()}"


def asked(tree: exp.Expr) -> frozenset[str]:
    """The columns, in lower case, of which a query asks whether they can be read."""
    calls = (each for each in tree.find_all(exp.Anonymous) if each.name.lower() == NAME)
    return frozenset(column.name.lower() for each in calls for column in each.find_all(exp.Column))


def unreadable(node: Any, read: Reader) -> Typed:
    """The flag of a column, where a relation carries it; others are refused."""
    given = node.expressions
    if len(given) != 1 or not isinstance(given[0], exp.Column) or isinstance(given[0].this, exp.Star):
        raise QueryError("UNREADABLE takes the name of one column.", "write UNREADABLE(cost)", node)
    column = given[0]
    read.read(column)  # a name that means nothing here is refused in the words for that
    flag = exp.column(flag_name(column.name), table=column.table or None)
    try:
        found = read.scope.column(flag)
    except QueryError:
        found = None
    if found is None:
        raise QueryError(
            f"Whether {shown(column)} can be read is not known here: it is a key, names the unit, or comes from a "
            "subquery or from two tables.",
            "ask where the table itself is read, of a column that is no key, with the name of its table",
            node,
        )
    return Typed(found.tree.copy(), found.kind)


NAMED: dict[str, Rule] = {NAME: unreadable}
