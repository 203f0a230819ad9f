"""Joins: which rows may meet, and whose the joined row is.

A row of the result has to belong to one unit, and the rows of one unit must not depend on another's. So private rows
meet public rows as they like, and private rows only where both are of the same unit. A side that a join keeps without
a partner must be private: a kept public row would belong to nobody, yet come and go with private rows.

Whatever a query writes, the engine is asked for equal units besides. So a join is sound also where the query names no
unit; it is taken where that changes nothing that SQL would say, which is where the columns of a declared key are equal:
both hold keys of rows that the row's own unit owns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp
from sqlglot.dialects import DuckDB

from ..expressions import trees
from ..expressions.scalars import translate
from ..kinds import Kind, Typed
from ..public_images import Image
from ..refusal import QueryError
from ..relation import UNIT, Relation, Scope, visible
from .bases import as_text, namers, of
from .merging import alike

_SIDES = {"": "", "LEFT": "LEFT", "RIGHT": "RIGHT", "FULL": "FULL"}
_ONLY_TEST = ("SEMI", "ANTI")
_UNNAMED = re.compile(r"(list|subquery) \d+")
_RESERVED = DuckDB.Generator.RESERVED_KEYWORDS - {"user"}  # which DuckDB itself takes as a name


@dataclass(frozen=True)
class Names(Scope):
    """A scope with more to know.

    merged  columns that two tables share by USING
    outer   the scope around a subquery
    moved   what columns are called after the rows were numbered; (alias, name) -> column
    place   the number of each row among its unit's
    """

    merged: Mapping[str, Typed] = field(default_factory=dict)
    outer: Scope | None = None
    moved: Mapping[tuple[str, str], exp.Column] = field(default_factory=dict)
    place: exp.Column | None = None

    def column(self, node: exp.Column) -> Typed:
        name, table = node.name.lower(), node.table.lower()
        if not table and name in self.merged:
            return self.merged[name]
        known = table in self.sources if table else any(name in each.columns for each in self.sources.values())
        if self.outer is not None and not known and name not in self.aliases:
            meant = self.outer.column(node)
            if any(each.table in self.sources for each in meant.tree.find_all(exp.Column)):
                raise QueryError(
                    f"Column {name!r} is of an outer table whose name the subquery uses again.",
                    "give the table of the subquery another name with AS",
                    node,
                )
            return meant
        found = super().column(node)
        spot = (found.tree.table, found.tree.name) if isinstance(found.tree, exp.Column) else ("", "")
        return Typed(self.moved[spot], found.kind) if spot in self.moved else found

    def images(self) -> dict[tuple[str, str], Image | None]:
        """By table and column, also as they are called after the rows were numbered."""
        images = super().images()
        for typed in self.merged.values():
            if isinstance(typed.tree, exp.Column):
                images[typed.tree.table, typed.tree.name] = typed.kind.image
        return images | {(column.table, column.name): images[spot] for spot, column in self.moved.items()}

    def everything(self, table: str | None = None) -> Iterator[tuple[str, exp.Column]]:
        """What * or table.* stands for."""
        seen: set[str] = set()
        for alias, relation in self.sources.items():
            for name in visible(relation):
                if table is None and name in self.merged:
                    if name not in seen:
                        yield name, exp.column(name, quoted=True)
                    seen.add(name)
                elif table in (None, alias):
                    yield name, of(alias, name)


@dataclass(frozen=True)
class Side:
    """What is read so far, or what is joined to it.

    unit    the unit of each row, where units are users or rows have ids
    single  has each unit at most one row?
    namers  the private tables that name the units
    """

    scope: Names
    unit: exp.Expression | None
    private: bool
    single: bool
    namers: frozenset[str]


def joined(
    left: Side, right: Side, source: exp.Subquery, join: exp.Join, where: list[exp.Expression]
) -> tuple[Side, exp.Join]:
    """One more table. `where` are the conditions of WHERE, in which a comma join may name the unit."""
    side, kind = _form(join)
    _refuse_rows_of_nobody(left, right, side, kind, join)
    both = _both(left, right)
    pairs = _using(left, right, join)
    asked = list(conjuncts(join.args["on"])) if join.args.get("on") is not None else []
    asked += [exp.EQ(this=one.tree.copy(), expression=other.tree.copy()) for one, other in pairs]
    conditions = [each for each in asked if not units_meet(each, left.scope, right.scope)]
    needed: list[exp.Expression] = []
    if left.private and right.private:
        inner = not side and kind not in _ONLY_TEST
        meet = len(conditions) < len(asked) or any(_both_units(*pair) for pair in pairs)
        meet = meet or (inner and any(units_meet(each, left.scope, right.scope) for each in where))
        keyed = [each for each in where if inner and keys_meet(each, left.scope, right.scope)]
        if not meet and not keyed and not any(keys_meet(each, left.scope, right.scope) for each in asked):
            raise QueryError(*_needs_unit(left, right), join)
        needed = [same_unit(left, right)]
        conditions += keyed  # WHERE asks for them once more: here, they keep rows of one unit from meeting all others
    needed += [_flag(each, both, join) for each in conditions]
    made = exp.Join(this=source, side=side or None)
    if kind in _ONLY_TEST:
        made.set("kind", kind)
    elif not needed:
        made.set("kind", "CROSS")
    if needed:
        made.set("on", exp.and_(*needed, copy=False))
    after = _after(left, right, side, kind, _merged(pairs, side, join))
    if side == "FULL" and conditions:  # a unit's rows of both sides may stay without a partner: then it has two
        after = replace(after, single=False)
    return after, made


def _form(join: exp.Join) -> tuple[str, str]:
    """LEFT, RIGHT, FULL or nothing; SEMI, ANTI or nothing."""
    extra = [each for each, value in join.args.items() if value and each not in ("this", "on", "side", "kind", "using")]
    method, side, kind = join.method.upper(), join.side.upper(), join.kind.upper()
    if method or extra or side not in _SIDES or kind not in ("", "INNER", "CROSS", "OUTER", *_ONLY_TEST):
        words = " ".join(each for each in (method, side, kind) if each) or extra[0].upper()
        raise QueryError(
            f"A {words} JOIN cannot be followed by the unit.",
            "write INNER, LEFT, RIGHT, FULL or CROSS JOIN, with the condition in ON or USING",
            join,
        )
    needs = kind != "CROSS" and (side or kind)
    if needs and not join.args.get("on") and not join.args.get("using"):
        raise QueryError("A join of this kind needs a condition.", "add ON <condition>", join)
    return side, kind if kind in _ONLY_TEST else ""


def _refuse_rows_of_nobody(left: Side, right: Side, side: str, kind: str, join: exp.Join) -> None:
    if left.private == right.private:
        return
    if kind in _ONLY_TEST and right.private:
        raise QueryError(
            f"A {kind} JOIN would keep public rows that belong to nobody, and tell which have private partners.",
            "begin with the private table, or use INNER JOIN",
            join,
        )
    kept = {"LEFT": (left,), "RIGHT": (right,), "FULL": (left, right)}.get(side, ())
    if any(not each.private for each in kept):
        raise QueryError(
            f"A {side} JOIN would keep public rows that belong to nobody, and tell which lack private partners.",
            f"keep the private side, {'LEFT' if left.private else 'RIGHT'} JOIN, or use INNER JOIN; to see every "
            "public key in the answer, group by the public table's column",
            join,
        )


def _both(left: Side, right: Side) -> Names:
    sources = {**left.scope.sources, **right.scope.sources}
    return Names(sources=sources, merged=left.scope.merged, outer=left.scope.outer)


def _using(left: Side, right: Side, join: exp.Join) -> list[tuple[Typed, Typed]]:
    """The columns of USING, one of each side."""
    pairs = []
    for name in join.args.get("using") or []:
        one, other = left.scope.column(_bare(name)), right.scope.column(_bare(name))
        if not isinstance(one.tree, exp.Column) and not _both_units(one, other):
            raise QueryError(
                f"Column {name.name!r} was already merged by a FULL JOIN.",
                "put the first join into a subquery and join its result",
                join,
            )
        pairs.append((one, other))
    return pairs


def _both_units(one: Typed, other: Typed) -> bool:
    return one.kind.unit and other.kind.unit


def _merged(pairs: list[tuple[Typed, Typed]], side: str, join: exp.Join) -> dict[str, Typed]:
    """What the bare name of a USING column means after the join."""
    found = {}
    for name, (one, other) in zip(join.args.get("using") or [], pairs, strict=True):
        if side == "FULL":
            (a, b), kind = alike([one, other], join)
            kind = replace(kind, nullable=not _both_units(one, other))
            found[name.name.lower()] = Typed(exp.Coalesce(this=a, expressions=[b]), kind)
        else:
            found[name.name.lower()] = other if side == "RIGHT" else one
    return found


def units_meet(node: exp.Expression, left: Names, right: Names) -> bool:
    """Is this `a.unit = b.unit`, with one from each side?"""
    return any(one.unit and other.unit for one, other in _equated(node, left, right))


def keys_meet(node: exp.Expression, left: Names, right: Names) -> bool:
    """Is this an equality of two columns along a declared key, with one from each side?"""
    return any(_one_key(one, other) for one, other in _equated(node, left, right))


def _one_key(one: Kind, other: Kind) -> bool:
    return one.reference is not None and one.reference == other.reference


def _equated(node: exp.Expression, left: Names, right: Names) -> Iterator[tuple[Kind, Kind]]:
    """What is known of `a = b`, where one is a column of each side."""
    if not isinstance(node, exp.EQ):
        return
    one, other = node.this.unnest(), node.expression.unnest()
    if not isinstance(one, exp.Column) or not isinstance(other, exp.Column):
        return
    for a, b in ((one, other), (other, one)):
        kinds = _own_kind(a, left, right), _own_kind(b, right, left)
        if kinds[0] is not None and kinds[1] is not None:
            yield kinds[0], kinds[1]


def _own_kind(column: exp.Column, scope: Names, opposite: Names) -> Kind | None:
    """A bare name that both sides have is refused later as ambiguous; it is no column of one side here."""
    name, table = column.name.lower(), column.table.lower()
    if not table and any(name in each.columns for each in opposite.sources.values()):
        return None
    try:
        return replace(scope, outer=None).column(column).kind
    except QueryError:
        return None


def same_unit(left: Side, right: Side) -> exp.Expression:
    assert left.unit is not None and right.unit is not None
    if _one_type(left, right):
        return trees.binary(exp.EQ, left.unit.copy(), right.unit.copy())
    return trees.binary(exp.EQ, as_text(left.unit), as_text(right.unit))


def _one_type(left: Side, right: Side) -> bool:
    """Rows that all come from one table have units of one engine type; others are compared as texts."""
    return left.namers == right.namers and len(left.namers) == 1


def _needs_unit(left: Side, right: Side) -> tuple[str, str]:
    rule = "Rows of two private tables may only meet within one unit: the ON condition must equate the unit's columns."
    one, other = units_in(left.scope), units_in(right.scope)
    if one and other:
        return rule, f"add {one[0]} = {other[0]} to the ON condition"
    keys = [keys_in(side.scope) for side in (left, right)]
    if shared := [reference for reference in keys[0] if reference in keys[1]]:
        return rule, f"add the declared key, {keys[0][shared[0]]} = {keys[1][shared[0]]}, to the ON condition"
    return rule, "select the unit's column in the subquery, never NULL, and equate it in ON"


def units_in(scope: Scope) -> list[str]:
    """The columns here that name the unit."""
    return [
        _spelt(alias, name)
        for alias, relation in scope.sources.items()
        for name, kind in relation.columns.items()
        if kind.unit
    ]


def _spelt(alias: str, name: str) -> str:
    """A column as a query may name it: of a subquery that has no name of its own by its own name alone."""
    parts = [name] if _UNNAMED.fullmatch(alias) else [alias, name]
    return ".".join(exp.to_identifier(part, quoted=part.lower() in _RESERVED or None).sql() for part in parts)


def keys_in(scope: Scope) -> dict[tuple[str, str], str]:
    """The columns here that hold declared keys, by where they lead."""
    return {
        kind.reference: _spelt(alias, name)
        for alias, relation in scope.sources.items()
        for name, kind in relation.columns.items()
        if kind.reference is not None
    }


def _after(left: Side, right: Side, side: str, kind: str, merged: dict[str, Typed]) -> Side:
    if kind in _ONLY_TEST:
        return left
    first = _nullable(left.scope) if side in ("RIGHT", "FULL") else left.scope
    second = _nullable(right.scope) if side in ("LEFT", "FULL") else right.scope
    scope = Names(
        sources={**first.sources, **second.sources}, merged={**first.merged, **merged}, outer=left.scope.outer
    )
    if side == "FULL" and left.unit is not None and right.unit is not None:
        one, other = (left.unit, right.unit) if _one_type(left, right) else (as_text(left.unit), as_text(right.unit))
        unit: exp.Expression | None = exp.Coalesce(this=one.copy(), expressions=[other.copy()])
    elif left.private and not (side == "RIGHT" and right.private):
        unit = left.unit
    else:
        unit = right.unit
    single = left.private and right.private and left.single and right.single
    return Side(scope, unit, left.private or right.private, single, left.namers | right.namers)


def _nullable(scope: Names) -> Names:
    """Where a row has no partner the columns are NULL, and then do not name the unit."""
    sources = {
        alias: replace(each, columns={name: kind.or_missing() for name, kind in each.columns.items()})
        for alias, each in scope.sources.items()
    }
    merged = {name: Typed(each.tree, each.kind.or_missing()) for name, each in scope.merged.items()}
    return replace(scope, sources=sources, merged=merged)


def side_of(alias: str, relation: Relation, outer: Scope | None) -> Side:
    """One relation of FROM by itself."""
    unit = of(alias, UNIT) if UNIT in relation.tree.named_selects and relation.private else None
    return Side(
        Names(sources={alias: relation}, outer=outer), unit, relation.private, relation.single, namers(relation.tree)
    )


def conjuncts(node: exp.Expression) -> Iterator[exp.Expression]:
    """The conditions that AND joins."""
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.And):
        yield from conjuncts(node.this)
        yield from conjuncts(node.expression)
    else:
        yield node


def _flag(node: exp.Expression, scope: Scope, join: exp.Join) -> exp.Expression:
    typed = translate(node, scope)
    if typed.kind.type != "flag":
        raise QueryError("A join condition is true or false.", "compare two columns, such as a.key = b.key", join)
    return trees.wrapped(typed.tree)


def _bare(name: exp.Expression) -> exp.Column:
    identifier = exp.to_identifier(name.name)
    identifier.meta.update(name.meta)
    return exp.Column(this=identifier)
