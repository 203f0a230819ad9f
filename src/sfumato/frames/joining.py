"""Joins and stacks of frames, as polars names their columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from sqlglot import exp

from ..checks import one_of, refuse
from ..query.kinds import Kind
from .block import PART, SelectBlock, conjunction, free_name
from .expr import Expr
from .operators import compare, first_of, no_pending
from .terms import Term, column_of, identifier, unlike

_SIDES = {"left": "LEFT", "right": "RIGHT", "full": "FULL"}
_KINDS = {"semi": "SEMI", "anti": "ANTI", "cross": "CROSS"}
HOW = ("inner", *_SIDES, *_KINDS)


def join(
    left: SelectBlock,
    right: SelectBlock,
    left_on: list[Expr],
    right_on: list[Expr],
    *,
    how: str,
    suffix: str,
    coalesce: bool | None,
) -> SelectBlock:
    """Both as one SELECT. A missing key meets nothing, in polars as in SQL."""
    one_of(how, "how", HOW)
    if (how == "cross") != (not left_on) or len(left_on) != len(right_on):
        raise refuse(
            "on",
            "as many columns on both sides" if left_on else None,
            "the columns that meet; none of them for how='cross'",
        )
    if coalesce is not None and how != "full":
        raise unlike(f"coalesce= of how={how!r} is not possible", "leave it out, and select() the columns")
    keeps_right = how in ("right", "full")
    simple = left.plain and not (keeps_right and (left.where or not left.whole or left.joins))
    left = replace(left, order=()) if simple else left.wrapped()
    right = _beside(right, left)
    ons = [
        (no_pending(a._term(left), "join()"), no_pending(b._term(right), "join()"))
        for a, b in zip(left_on, right_on, strict=True)
    ]
    parts: dict[str, object] = {"this": right.source.copy()}
    if ons:
        parts["on"] = conjunction([compare("==", a, b).tree for a, b in ons])
    if how in _SIDES:
        parts["side"] = _SIDES[how]
    if how in _KINDS:
        parts["kind"] = _KINDS[how]
    columns = dict(left.columns)
    if how not in ("semi", "anti"):
        columns = _columns(
            left, right, [a._name for a in left_on], [b._name for b in right_on], ons, how, suffix, coalesce
        )
    return replace(left, columns=columns, joins=(*left.joins, exp.Join(**parts)), public=left.public and right.public)


def _beside(right: SelectBlock, left: SelectBlock) -> SelectBlock:
    """The other frame as a table or a subquery with a name of its own."""
    taken = left.names
    if not right.bare:
        return right.wrapped(taken)
    name = right.source.alias_or_name
    own = free_name(name, {*taken, *(right.avoided - {name.lower()})})
    if own == name:
        return right
    source = right.source.copy()
    source.set("alias", exp.TableAlias(this=identifier(own)))
    columns = {name: replace(term, tree=column_of(name, own)) for name, term in right.columns.items()}
    return replace(right, source=source, columns=columns)


def _columns(
    left: SelectBlock,
    right: SelectBlock,
    left_names: list[str],
    right_names: list[str],
    ons: Sequence[tuple[Term, Term]],
    how: str,
    suffix: str,
    coalesce: bool | None,
) -> dict[str, Term]:
    """The left frame's columns, then the right one's but its keys; with `right`, the left one's keys go; with `full`,
    all stay, unless `coalesce`."""
    lower = [name.lower() for name in right_names], [name.lower() for name in left_names]
    first = {name: _missing(term) if how in ("right", "full") else term for name, term in left.columns.items()}
    second = {name: _missing(term) if how in ("left", "full") else term for name, term in right.columns.items()}
    if how == "right":
        first = {name: term for name, term in first.items() if name.lower() not in lower[1]}
    elif how != "full" or coalesce:
        second = {name: term for name, term in second.items() if name.lower() not in lower[0]}
    if how == "full" and coalesce:
        for name, (a, b) in zip(left_names, ons, strict=True):
            first = {own: first_of([a, b]) if own.lower() == name.lower() else term for own, term in first.items()}
    taken = {name.lower() for name in first}
    for name, term in second.items():
        own = f"{name}{suffix}" if name.lower() in taken else name
        if own.lower() in taken:
            raise refuse("suffix", suffix, f"one with which no column of that name is there: {own!r} is")
        taken.add(own.lower())
        first[own] = term
    return first


def _missing(term: Term) -> Term:
    return replace(term, kind=term.kind.or_missing())


def stack(blocks: Sequence[SelectBlock]) -> SelectBlock:
    """UNION ALL: the rows of all of them."""
    first, *others = blocks
    names = list(first.columns)
    for block in others:
        if [name.lower() for name in block.columns] != [name.lower() for name in names]:
            raise refuse(
                "items", ", ".join(block.columns), f"frames with the columns {', '.join(names)}, in that order"
            )
    selects: list[exp.Query] = [_part(block) for block in blocks]
    tree = reduce(lambda above, below: exp.Union(this=above, expression=below, distinct=False), selects)
    name = free_name(PART, first.avoided)
    source = exp.Subquery(this=tree, alias=exp.TableAlias(this=identifier(name)))
    kinds = {own: _of_all([block.column(own).kind for block in blocks]) for own in names}
    columns = {own: Term(column_of(own, name), kind) for own, kind in kinds.items()}
    return SelectBlock(source, columns, tuple(columns), all(block.public for block in blocks), avoided=first.avoided)


def _part(block: SelectBlock) -> exp.Select:
    return block.wrapped().select() if block.limit is not None else replace(block, order=()).inner()


def _of_all(kinds: Sequence[Kind]) -> Kind:
    """What is known of a column of all of them."""
    types = {kind.type for kind in kinds}
    lowest = [kind.lower for kind in kinds if kind.lower is not None]
    lower = min(lowest) if len(lowest) == len(kinds) else None
    type = kinds[0].type if len(types) == 1 else "real" if types == {"real", "whole"} else "text"
    unit = all(kind.unit for kind in kinds)
    return Kind(type, lower, unit=unit, nullable=any(kind.nullable for kind in kinds))
