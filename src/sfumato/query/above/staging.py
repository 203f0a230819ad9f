"""Private rows that are compared with what all rows come to: what they are compared with is released first.

    SELECT COUNT(*) FROM visits WHERE cost > (SELECT AVG(cost) FROM visits)

is two stages: the average is a release of its own, and the count reads the table that it leaves,

    SELECT COUNT(*) FROM visits WHERE cost > (SELECT MAX(release_1.number_1) FROM release_1)

as a public one. The walk of query_blocks.py says where that is needed, innermost first; here the query is rewritten and
walked again, until nothing is left. A correlated subquery is a release by its equalities (lookups.py, tying.py), whose
row is looked up; so are IN (SELECT ...), EXISTS, and a released table that private rows are joined with.

All that is public and known before anybody pays: which stages there are, what each of them is asked, the types of the
tables in between. Only the cells of these are not. Why that is private stands in `stages_plan.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from ...schema import Table
from ..refusal import QueryError
from .above_rules import AboveError
from .release_blocks import ReleasePart, outside_windows
from .released_stages import names_in_stage, stage_table
from .stage_needed import PLACE, StageNeededError

if TYPE_CHECKING:
    from ..plan import Sql

MOST = 16
_OURS = re.compile(r"release_\d+", re.IGNORECASE)
_LATER = ("limit", "offset", "qualify", "group", "having")


@dataclass
class Staging:
    """A query, and what has to be released before it can be read.

    plan_of   the plan of one release, as if it had all of the budget
    tree      the query over the tables that are released by then
    releases  by name, in the order in which they run
    released  the tables that they leave
    columns   by release: what its aliases are called in the table
    """

    tree: exp.Query
    fields: Mapping[str, Any]
    plan_of: Callable[[ReleasePart, Mapping[str, Any]], Sql]
    releases: dict[str, ReleasePart] = field(default_factory=dict)
    released: dict[str, Table] = field(default_factory=dict)
    columns: dict[str, Mapping[str, str]] = field(default_factory=dict)

    def take(self, wanted: StageNeededError) -> None:
        """Make stages of what is needed, and let the query read their tables."""
        if len(self.releases) + len(wanted.releases) > MOST:
            raise wanted
        node = next(
            (node for node in self.tree.find_all(exp.Query, exp.Table) if node.meta.get(PLACE) == wanted.place), None
        )
        if node is None or wanted.place is None:
            raise wanted
        self._check_names()
        names = {f"_{name}": self._stage(release) for name, release in wanted.releases.items()}
        body = _renamed(wanted.tree, names, self.columns)
        if not _is_rows(node):
            body = _one_value(body, [self.releases[name] for name in names.values()], wanted)
        node.replace(body)
        _drop_unread(self.tree)

    def _stage(self, release: ReleasePart) -> str:
        """The table that a release leaves; the same release is made once."""
        for name, other in self.releases.items():
            if other.text == release.text:
                return name
        name = f"release_{len(self.releases) + 1}"
        own = self.plan_of(release, {**self.fields, "released": self.released})
        self.releases[name] = release
        self.released[name], self.columns[name] = stage_table(name, own), names_in_stage(own)
        return name

    def _check_names(self) -> None:
        taken = [*self.fields["schema"].tables]
        if not self.releases:
            taken += [node.name for node in self.tree.find_all(exp.Identifier)]
        for name in taken:
            if _OURS.fullmatch(name):
                raise AboveError(f"{name} is what a stage of this query is called.", "choose another name")


def _is_rows(node: Any) -> bool:
    """Does it stand for rows? Else it stands for one value."""
    parent = node.parent
    if isinstance(node, exp.Table) or isinstance(parent, exp.From | exp.Join | exp.Exists):
        return True
    return isinstance(parent, exp.In) and parent.args.get("query") is node


def _renamed(tree: exp.Query, names: Mapping[str, str], columns: Mapping[str, Mapping[str, str]]) -> exp.Query:
    """The same over the tables of stages, whose columns have names of their own."""
    tree = tree.copy()
    aliases = {table.alias_or_name: names[table.name] for table in tree.find_all(exp.Table) if table.name in names}
    for column in tree.find_all(exp.Column):
        if column.table in aliases:
            own = columns[aliases[column.table]]
            column.set("this", exp.to_identifier(own.get(column.name.lower(), column.name)))
            if column.table in names:
                column.set("table", exp.to_identifier(names[column.table]))
    for table in tree.find_all(exp.Table):
        if table.name in names:
            table.set("this", exp.to_identifier(names[table.name]))
            table.set("quoted", None)
    return tree


def _one_value(body: exp.Query, releases: list[ReleasePart], wanted: StageNeededError) -> exp.Query:
    """The value of the one row that there is: the compiler asks for an aggregate, which over one row is the row."""
    select = body.unnest()
    if not isinstance(select, exp.Select) or len(select.expressions) != 1:
        raise wanted
    picked = list(select.find_all(exp.AnyValue))
    for node in picked:
        node.replace(exp.Max(this=node.this.copy()))
    [shown] = select.expressions
    if picked or any(isinstance(node, exp.AggFunc) for node in outside_windows([shown])):
        return body
    if any(key.link is None for release in releases for key in release.keys):
        raise QueryError(
            "A subquery that stands for one value must be an aggregate without GROUP BY.",
            "write (SELECT MAX(x) FROM ...), or join the table",
            wanted.node,
        )
    if any(select.args.get(part) for part in _LATER):
        raise wanted
    select.set("distinct", None)
    select.set("order", None)
    select.set("expressions", [exp.alias_(exp.Max(this=shown.unalias().copy()), "value")])
    return body


def _drop_unread(tree: exp.Query) -> None:
    """Leave out CTEs that nobody names any more: what they release would be paid for."""
    while True:
        read = {table.name.lower() for table in tree.find_all(exp.Table)}
        unread = [cte for cte in tree.find_all(exp.CTE) if cte.alias.lower() not in read]
        if not unread:
            return
        for cte in unread:
            clause = cte.parent
            cte.pop()
            if isinstance(clause, exp.With) and not clause.expressions and clause.parent is not None:
                clause.parent.set("with_", None)
