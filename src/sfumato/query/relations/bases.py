"""The tables of a schema as relations: each private row with its unit, rows without one left out."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from sqlglot import exp

from ...owners import owners as owners_of
from ...schema import Schema, Table, TensorColumn
from ...sources.reading import flag_of, with_flags
from ...units import Unit
from ..expressions import trees
from ..expressions.functions.cells import flag_name
from ..kinds import Kind, of_column
from ..refusal import QueryError
from ..relation import UNIT, Relation

_OWNED = "sfumato-private"  # marks the private tables in engine trees, since units of different tables differ in type


def base_tables(schema: Schema, unit: Unit, flagged: Collection[str] = ()) -> Mapping[str, Relation]:
    """What each name in FROM means, by lower-case name; with the flags of unreadable cells for these columns."""
    columns = owners_of(schema, unit)
    found: dict[str, Relation] = {}
    for name, table in schema.tables.items():
        if name.lower() in found:
            raise QueryError(f"Two tables are called {name.lower()!r} in SQL.", "rename one in the schema")
        found[name.lower()] = _base(name, table, columns.get(name), flagged)
    return found


def _base(name: str, table: Table, owner: str | None, flagged: Collection[str]) -> Relation:
    kinds: dict[str, Kind] = {}
    shown: list[exp.Expression] = []
    for each, column in table.columns.items():
        if isinstance(column, TensorColumn):
            continue  # no engine holds arrays: to SQL there is no such column
        if each.startswith("_"):
            continue  # such names are ours; the unit may still be called so, since it is carried as UNIT
        if each.lower() in kinds:
            raise QueryError(f"Table {name!r} has two columns {each.lower()!r} in SQL.", "rename one in the schema")
        kind = of_column(column, unit=each == owner)
        kind = replace(kind, nullable=False) if kind.unit else kind
        kinds[each.lower()] = kind if table.private else replace(kind, origin=(name, each))
        shown.append(named(exp.column(each, quoted=True), each.lower()))
    flags = {each: flag_of(table, each) for each in table.columns if each.lower() in flagged and each != owner}
    for each, flag in flags.items():
        if flag is not None:
            kinds[flag_name(each)] = Kind("flag", values=(False, True), nullable=False)
            shown.append(named(exp.column(flag, quoted=True), flag_name(each)))
    source = exp.Table(this=exp.to_identifier(with_flags(name) if any(flags.values()) else name, quoted=True))
    tree = exp.Select().from_(source)
    tree.find(exp.Table).meta[_OWNED] = table.private  # type: ignore[union-attr]
    if owner is not None:
        shown.insert(0, named(exp.column(owner, quoted=True), UNIT))
        tree = tree.where(exp.Not(this=exp.Is(this=exp.column(owner, quoted=True), expression=exp.Null())))
    return Relation(tree.select(*shown), kinds, table.private, single=table.private and owner is None)


def carries(relation: Relation) -> bool:
    """Has the relation a column that names the unit of each row?"""
    return relation.private and UNIT in relation.tree.named_selects


def with_ids(relation: Relation) -> Relation:
    """The same rows where each is a unit, numbered, so that a later step may repeat one and it is still known as one.

    A number is only a name: which row gets which depends on the others, so nothing but grouping may use it.
    """
    if not relation.private or carries(relation):
        return relation
    number = exp.Window(this=exp.RowNumber())
    shown = [named(number, UNIT), *(named(of("_rows", each), each) for each in relation.columns)]
    return replace(relation, tree=exp.Select().from_(derived(relation.tree, "_rows")).select(*shown))


def owners(tree: exp.Expr) -> frozenset[str]:
    """The private tables that rows of this tree come from. The units of one table have one type in the engine."""
    return frozenset(each.name for each in tree.find_all(exp.Table) if each.meta.get(_OWNED))


def named(tree: exp.Expression, name: str) -> exp.Expression:
    return exp.Alias(this=tree.copy(), alias=exp.to_identifier(name, quoted=True))


def of(table: str, name: str) -> exp.Column:
    """A column of one of our subqueries."""
    return exp.column(name, table=table, quoted=True)


def derived(tree: exp.Query, alias: str) -> exp.Subquery:
    """A tree as a subquery in FROM."""
    return exp.Subquery(this=tree.copy(), alias=exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))


def as_text(tree: exp.Expression) -> exp.Expression:
    """Keys of different tables may have different types in the engine; as texts they compare without raising."""
    return trees.cast(tree.copy(), "VARCHAR")


def steady(tree: exp.Expression, kind: Kind) -> exp.Expression:
    """-0.0 and 0.0 are equal but print differently; which of them stands for a group would depend on row order."""
    if kind.type != "real":
        return tree
    return trees.when(trees.binary(exp.EQ, tree.copy(), trees.real(0.0)), trees.real(0.0), tree.copy())


def lone_name(name: str, node: exp.Expression) -> str:
    """A name that a user gives, in lower case."""
    if name.startswith("_"):
        raise QueryError(f"Names that begin with an underscore are reserved: {name!r}.", "choose another name", node)
    return name.lower()
