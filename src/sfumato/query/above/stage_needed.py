"""Where a query needs a stage, and how that place is found again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sqlglot import exp

from .above_rules import AboveError

if TYPE_CHECKING:
    from .release_blocks import ReleasePart

PLACE = "sfumato-place"


class StageNeededError(AboveError):
    """Private rows are read together with something released: refused, unless a stage is made of that.

    place     of the subquery or table in the query (see `placed`)
    tree      what it is, over the tables of releases and public ones
    releases  that it reads, by name
    """

    def __init__(self, rule: str, node: exp.Expr, tree: exp.Query, releases: Mapping[str, ReleasePart]) -> None:
        super().__init__(rule, "release that first, and write the released numbers into a second query", node)
        self.place, self.tree, self.releases = node.meta.get(PLACE), tree, releases


def placed(tree: exp.Query) -> exp.Query:
    """Subqueries and tables numbered, so that they are found again in copies."""
    for number, node in enumerate(tree.find_all(exp.Query, exp.Table)):
        node.meta[PLACE] = number
    return tree
