"""One column out of several: what UNION ALL stacks and a FULL JOIN merges must have one type in the engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from ..expressions import trees
from ..expressions.decimals import shared_places
from ..expressions.intervals import Interval, hull
from ..kinds import SQL_TYPES, Kind, Typed
from ..refusal import QueryError
from .bases import as_text


def alike(columns: Sequence[Typed], node: exp.Expression) -> tuple[list[exp.Expression], Kind]:
    """The columns cast to one type, and what is known of a value that is any of them."""
    known = [each for each in columns if not isinstance(each.tree, exp.Null)]
    kinds = [each.kind for each in known] or [columns[0].kind]
    kinds = [replace(kind, nullable=True) for kind in kinds] if len(known) < len(columns) else kinds
    types = {kind.type for kind in kinds}
    if types == {"key"}:
        return [as_text(each.tree) for each in columns], replace(_together(kinds), type="key")
    if types <= {"key", "text"}:
        return [as_text(each.tree) for each in columns], replace(_together(kinds), type="text", unit=False)
    if types == {"real", "whole"}:
        return [trees.cast(each.tree.copy(), "DOUBLE") for each in columns], replace(_together(kinds), type="real")
    if len(types) > 1 or types == {"span"}:
        words = " and ".join(sorted(types))
        raise QueryError(
            f"A column cannot hold {words} values together.", "cast them to one type, such as CAST(x AS VARCHAR)", node
        )
    to = SQL_TYPES[kinds[0].type]
    # A NULL literal has no type of its own, so it is given one; the others have this type already.
    cast = [trees.null(to) if isinstance(each.tree, exp.Null) else each.tree.copy() for each in columns]
    return cast, _together(kinds)


def _together(kinds: Sequence[Kind]) -> Kind:
    first = kinds[0]
    bounds = hull(*(Interval(kind.lower, kind.upper) for kind in kinds))
    listed = [kind.values for kind in kinds]
    united = tuple(dict.fromkeys(value for values in listed if values is not None for value in values))
    return Kind(
        first.type,
        bounds.lower,
        bounds.upper,
        values=None if None in listed else united,
        origin=first.origin if all(kind.origin == first.origin for kind in kinds) else None,
        unit=all(kind.unit for kind in kinds),
        row=tuple(kind.row for kind in kinds),  # of one row where they are in each part
        nullable=any(kind.nullable for kind in kinds),
        places=shared_places(list(kinds), bounds) if "real" in {kind.type for kind in kinds} else None,
    )
