"""FROM as it is written: brackets around joins, NATURAL, and what WHERE says of units by way of a third table."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from sqlglot import exp

from ..refusal import QueryError
from ..relation import visible
from .joins import Side, conjuncts


def without_brackets(select: exp.Select) -> tuple[exp.Expression, list[exp.Join], list[exp.Expression]]:
    """The first table, the joins after it, and the conditions that brackets moved.

    `(a JOIN b ON p) JOIN c ON q` is read from the left anyway. `a JOIN (b JOIN c ON p) ON q` is a, b, c with p and q
    where all joins are inner ones: then it is the same whatever is joined first. Other brackets are refused.
    """
    first, joins = _opened(select.args["from_"].this)
    moved: list[exp.Expression] = []
    for join in select.args.get("joins") or []:
        table, inside = _opened(join.this)
        if not inside:
            joins.append(join)
            continue
        if not all(map(_inner, [join, *inside])):
            raise QueryError(
                "Brackets around a join are read where all its joins are inner ones.",
                "put the joins in brackets into a subquery, or leave the brackets out",
                join,
            )
        conditions = [each.args["on"] for each in (join, *inside) if each.args.get("on") is not None]
        moved += [part for condition in conditions for part in conjuncts(condition)]
        joins.append(exp.Join(this=table))
        *rest, last = inside
        joins += [exp.Join(this=each.this) for each in rest]
        joins.append(exp.Join(this=last.this, on=exp.and_(*conditions) if conditions else None))
    return first, joins, moved


def _opened(node: exp.Expression) -> tuple[exp.Expression, list[exp.Join]]:
    """What stands in brackets: a table and its joins."""
    if not isinstance(node, exp.Subquery) or isinstance(node.this, exp.Select | exp.SetOperation):
        return node, []
    if any(value for part, value in node.args.items() if part not in ("this", "joins")):
        return node, []
    table, more = node.this, node.args.get("joins") or []
    if isinstance(table, exp.Subquery) and not table.args.get("alias"):
        within = table.copy()
        within.set("joins", None)
        inner, joins = _opened(within)
        return (inner, [*joins, *(table.args.get("joins") or []), *more]) if joins else (node, [])
    joins = [*(table.args.get("joins") or []), *more]
    if not joins:
        return node, []
    bare = table.copy()
    bare.set("joins", None)
    return bare, joins


def _inner(join: exp.Join) -> bool:
    return (
        not join.method and not join.side and join.kind.upper() in ("", "INNER", "CROSS") and not join.args.get("using")
    )


def natural(left: Side, right: Side, join: exp.Join) -> exp.Join:
    """NATURAL JOIN is USING of all columns that both sides have."""
    if join.method.upper() != "NATURAL":
        return join
    theirs = {name for relation in right.scope.sources.values() for name in visible(relation)}
    shared = [name for relation in left.scope.sources.values() for name in visible(relation) if name in theirs]
    if not shared:
        raise QueryError(
            "A NATURAL JOIN meets on columns of the same name, and there are none.", "write JOIN ... ON a = b", join
        )
    plain = join.copy()
    plain.set("method", None)
    plain.set("using", [exp.to_identifier(name) for name in dict.fromkeys(shared)])
    return plain


def implied(conditions: Iterable[exp.Expression]) -> Iterator[exp.Expression]:
    """The conditions, and the equations between columns that follow from them: a = c and b = c make a = b.

    They only say that units meet; what the engine is given is the condition on the units themselves.
    """
    classes: list[dict[str, exp.Expression]] = []
    stated: list[set[str]] = []
    for condition in conditions:
        yield condition
        if not isinstance(condition, exp.EQ):
            continue
        ends = [condition.this.unnest(), condition.expression.unnest()]
        if not all(isinstance(end, exp.Column) for end in ends):
            continue
        named = {end.sql(normalize=True).lower(): end for end in ends}
        stated.append(set(named))
        together = [each for each in classes if not each.keys().isdisjoint(named)]
        classes = [each for each in classes if each not in together]
        classes.append({name: end for part in (*together, named) for name, end in part.items()})
    for alike in classes:
        for one, other in itertools.combinations(alike, 2):
            if {one, other} not in stated:
                yield exp.EQ(this=alike[one].copy(), expression=alike[other].copy())
