"""The tables of a schema as relations: each private row with its unit, rows without one left out.

The rows of a table that is owned through a key are joined with the pairs (key, unit) of the table that the key leads
to, each pair once. So a row is there once for every unit that owns rows with its key, and has that unit.

Proof sketch: what a unit's rows here become depends on the pairs of this unit alone, which are made of its own rows of
the other table (by induction along the chain), and on the rows of this table that hold these keys. Without another
unit those are all still there (see `owners`): so no other unit's rows change, whatever keys two units share. Each pair
stands once, so a unit that holds a key twice does not count a row twice; and a join along the key, which asks for equal
units besides, gives the rows that SQL gives.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from sqlglot import exp

from ...foreign_keys import ForeignKey
from ...owners import Ownership, ownerships
from ...schema import Column, Schema, Table, TensorColumn
from ...sources.mentions import ONCE
from ...sources.reading import flag_of, with_flags
from ...units import Unit
from ..expressions import trees
from ..expressions.functions.cells import flag_name
from ..kinds import MANY_DAYS, Kind, of_column
from ..public_images import RELEASED, TABLE, of_listed
from ..refusal import QueryError
from ..relation import UNIT, Base, Relation

_OWNED = "sfumato-private"  # marks the private tables in engine trees
_NAMES = "sfumato-names"  # marks those that name units, since units of different tables may differ in type
_ROWS, _OWNERS, _KEY = "_rows", "_owners", "_key"
_NOTHING: Mapping[str, Table] = {}


def base_tables(
    schema: Schema,
    unit: Unit,
    flagged: Collection[str] = (),
    released: Mapping[str, Table] = _NOTHING,
    *,
    names: Collection[str] | None = None,
) -> Mapping[str, Relation]:
    """What each name in FROM means, by lower-case name; with the flags of unreadable cells for these columns. Beside
    the schema's tables stand those that an earlier stage released. Of tables and columns those with such a `name`, and
    keys: what a query does not name costs nothing."""
    whose = ownerships(schema, unit)
    relations: dict[str, Relation] = {}
    for name, table in schema.tables.items():
        if name.lower() in relations:
            raise QueryError(f"Two tables are called {name.lower()!r} in SQL.", "rename one in the schema")
        if names is None or name.lower() in names:
            relations[name.lower()] = _base(name, table, schema, whose, flagged, names)
    for name in schema.tables:
        if name in whose and whose[name].link is not None and (names is None or orphans_of(name).lower() in names):
            relations.setdefault(orphans_of(name).lower(), _orphans(name, schema, whose))
    for name, table in released.items():
        if name.lower() in relations:
            raise QueryError(f"What was released is called {name!r} here, as a table is.", "rename the table")
        relations[name.lower()] = _left_by_a_stage(name, table)
    return relations


def _left_by_a_stage(name: str, table: Table) -> Relation:
    """What an earlier stage released: public rows, of which nothing says which groups there are. Their number and
    values are not known before that stage ran, and an answer's shape is."""
    source = exp.Table(this=exp.to_identifier(name, quoted=True))
    source.meta.update({TABLE: name, RELEASED: True})
    kinds = {each.lower(): of_column(column) for each, column in table.columns.items() if isinstance(column, Column)}
    kinds = {  # a released number may be any: whoever adds it up says how far it counts
        each: replace(kind, lower=None, upper=None) if kind.is_real else kind for each, kind in kinds.items()
    }
    shown = [named(exp.column(each, quoted=True), each.lower()) for each in table.columns]
    return Relation(exp.Select().from_(source, copy=False).select(*shown), kinds, private=False)


def orphans_of(table: str) -> str:
    """What the rows of a table are called that are owned through a key, and that lead to nobody."""
    return f"orphans of {table}"


def _orphans(name: str, schema: Schema, whose: Mapping[str, Ownership]) -> Relation:
    """The rows of a table whose key is NULL or leads nowhere.

    No unit's coming or going moves them: the rows that lead to it alone come and go with it (see `owners`). So whatever
    is asked of them hides every unit at any price. They may be somebody's all the same, who is not known any more: all
    rows of one key are therefore hidden together, and each row without a key by itself, as if they were units.
    """
    owned = whose[name]
    assert owned.link is not None
    source = exp.Table(this=exp.to_identifier(name, quoted=True), alias=_alias(_ROWS))
    source.meta[_OWNED] = source.meta[_NAMES] = orphans_of(name)
    pairs = _pairs(owned.link, schema, whose)
    for table in pairs.find_all(exp.Table):
        table.meta.update({_OWNED: None, _NAMES: None})
    key = _own(owned.column, owned)
    same = trees.binary(exp.EQ, key, of(_OWNERS, _KEY))
    tree = exp.Select().from_(source, copy=False).join(derived(pairs, _OWNERS), on=same, join_type="ANTI")
    number = as_text(exp.Window(this=exp.RowNumber()))  # only a name: see `with_ids`
    missing = exp.Is(this=key.copy(), expression=exp.Null())
    kinds = {
        each.lower(): of_column(column)
        for each, column in schema.tables[name].columns.items()
        if not isinstance(column, TensorColumn) and not each.startswith("_")
    }
    names = trees.when(missing, _joined("row ", number), _joined("key ", as_text(key)))
    shown = [named(names, UNIT)]
    shown += [named(_own(each, owned), each.lower()) for each in schema.tables[name].columns if each.lower() in kinds]
    return Relation(tree.select(*shown), kinds, private=True)


def _joined(word: str, name: exp.Expression) -> exp.Expression:
    return trees.binary(exp.DPipe, trees.text(word), name, safe=True)


def _base(
    name: str,
    table: Table,
    schema: Schema,
    whose: Mapping[str, Ownership],
    flagged: Collection[str],
    names: Collection[str] | None,
) -> Relation:
    owned = whose.get(name)
    owner = owned.column if owned is not None and owned.link is None else None
    keys = _keys(name, schema)
    kinds: dict[str, Kind] = {}
    shown: list[exp.Expression] = []
    named_here = [each for each in table.columns if names is None or each.lower() in names or each in (*keys, owner)]
    for each in named_here or table.columns:
        column = table.columns[each]
        if isinstance(column, TensorColumn):
            continue  # no engine holds arrays: to SQL there is no such column
        if each.startswith("_"):
            continue  # such names are ours; the unit may still be called so, since it is carried as UNIT
        if each.lower() in kinds:
            raise QueryError(f"Table {name!r} has two columns {each.lower()!r} in SQL.", "rename one in the schema")
        kind = of_column(column, unit=each == owner)
        kind = replace(kind, nullable=False) if kind.unit else replace(kind, reference=keys.get(each))
        if table.private and kind.listable(MANY_DAYS) and not kind.unit:
            kind = replace(kind, image=of_listed(each.lower(), kind))
        kinds[each.lower()] = kind if table.private else replace(kind, origin=(name, each))
        shown.append(named(_own(each, owned), each.lower()))
    flags = {each: flag_of(table, each) for each in table.columns if each.lower() in flagged and each != owner}
    for each, flag in flags.items():
        if flag is not None:
            kinds[flag_name(each)] = Kind("flag", values=(False, True), nullable=False)
            shown.append(named(_own(flag, owned), flag_name(each)))
    tree = _from(name, schema, whose, flags=any(flags.values()))
    base = Base()
    if owned is not None and owned.link is not None and owned.column.lower() in kinds:
        rows = tree.copy().select(*shown)
        rows.set("joins", None)
        base = Base(rows, owned.column.lower())
    if owned is not None:
        shown.insert(0, named(_unit(owned), UNIT))
    single = table.private and owned is None
    return Relation(tree.select(*shown), kinds, table.private, single, base if table.private else None)


def _from(name: str, schema: Schema, whose: Mapping[str, Ownership], *, flags: bool = False) -> exp.Select:
    """The rows of a table; of a private one, those that are somebody's."""
    table, owned = schema.tables[name], whose.get(name)
    source = exp.Table(this=exp.to_identifier(with_flags(name) if flags else name, quoted=True))
    source.meta.update({_OWNED: name if table.private else None, TABLE: name})
    if owned is None or owned.link is None:
        source.meta[_NAMES] = _named_like(name, schema) if table.private else None
        tree = exp.Select().from_(source, copy=False)
        if owned is None:
            return tree
        return tree.where(exp.Not(this=exp.Is(this=_unit(owned), expression=exp.Null())))
    source.set("alias", _alias(_ROWS))
    # Both columns have one type in the engine: the session sees to it.
    same = trees.binary(exp.EQ, _own(owned.column, owned), of(_OWNERS, _KEY))
    tree = exp.Select().from_(source, copy=False)
    return tree.join(derived(_pairs(owned.link, schema, whose), _OWNERS), on=same)


def _named_like(name: str, schema: Schema) -> str:
    """The table whose column of units has the type of this one's: keys have that of the column they lead to."""
    link = schema.tables[name].leads
    return name if link is None else _named_like(link.table, schema)


def _keys(name: str, schema: Schema) -> dict[str, tuple[str, str]]:
    """The columns of a private table that are declared keys, with where they lead."""
    links = [table.leads for table in schema.tables.values() if table.leads is not None]
    keys = {link.key: (link.table, link.key) for link in links if link.table == name}
    own = schema.tables[name].leads
    return keys if own is None else keys | {own.column: (own.table, own.key)}


def _own(column: str, owned: Ownership | None) -> exp.Column:
    """A column of the table itself, beside the pairs that it may be joined with."""
    linked = owned is not None and owned.link is not None
    return of(_ROWS, column) if linked else exp.column(column, quoted=True)


def _unit(owned: Ownership) -> exp.Column:
    return exp.column(owned.column, quoted=True) if owned.link is None else of(_OWNERS, UNIT)


def _pairs(link: ForeignKey, schema: Schema, whose: Mapping[str, Ownership]) -> exp.Select:
    """The keys that rows of a table hold, each once with every unit that owns such rows."""
    owned = whose[link.table]
    tree = _from(link.table, schema, whose)
    pairs = tree.select(named(_unit(owned), UNIT), named(_own(link.key, owned), _KEY)).distinct()
    pairs.meta[ONCE] = link.table, link.key  # in rows of different keys no pair stands twice
    return pairs


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
    return replace(relation, tree=exp.Select().from_(derived(relation.tree, "_rows")).select(*shown), base=None)


def owners(tree: exp.Expr) -> frozenset[str]:
    """The private tables that rows of this tree come from."""
    return frozenset(name for each in tree.find_all(exp.Table) if (name := each.meta.get(_OWNED)))


def namers(tree: exp.Expr) -> frozenset[str]:
    """The tables that name the units of this tree's rows. The units of one table have one type in the engine."""
    return frozenset(name for each in tree.find_all(exp.Table) if (name := each.meta.get(_NAMES)))


def named(tree: exp.Expression, name: str) -> exp.Expression:
    return exp.Alias(this=tree.copy(), alias=exp.to_identifier(name, quoted=True))


def of(table: str, name: str) -> exp.Column:
    """A column of one of our subqueries."""
    return exp.column(name, table=table, quoted=True)


def derived(tree: exp.Query, alias: str) -> exp.Subquery:
    """A tree as a subquery in FROM."""
    return exp.Subquery(this=tree.copy(), alias=_alias(alias))


def _alias(name: str) -> exp.TableAlias:
    return exp.TableAlias(this=exp.to_identifier(name, quoted=True))


def as_text(tree: exp.Expression) -> exp.Expression:
    """Keys of different tables may have different types in the engine; as texts they compare without raising."""
    return trees.cast(tree.copy(), "VARCHAR")


def steady(tree: exp.Expression, kind: Kind) -> exp.Expression:
    """-0.0 and 0.0 are equal but print differently; which of them stands for a group would depend on row order."""
    if not kind.is_real:
        return tree
    return trees.when(trees.binary(exp.EQ, tree.copy(), trees.real(0.0)), trees.real(0.0), tree.copy())


def lone_name(name: str, node: exp.Expression) -> str:
    """A name that a user gives, in lower case."""
    if name.startswith("_"):
        raise QueryError(f"Names that begin with an underscore are reserved: {name!r}.", "choose another name", node)
    return name.lower()
