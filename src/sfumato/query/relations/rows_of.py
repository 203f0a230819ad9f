"""The rows of a subquery or CTE: projections, per-unit GROUP BY, windows, DISTINCT, UNION ALL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from ...units import Unit
from ..expressions import trees
from ..kinds import Kind, Typed
from ..refusal import QueryError, no_such
from ..relation import UNIT, Relation, visible
from . import merging, per_unit, reading, windows
from .around import OuterRow
from .bases import as_text, carries, derived, lone_name, named, namers, of, owners, steady, with_ids
from .joins import Names
from .listed_rows import one_row
from .naming import found, known_parts, refuse_our_names, spelt_out

_UNION_PARTS = ("this", "expression", "distinct", "order")


def with_ctes(query: exp.Query, tables: Mapping[str, Relation], unit: Unit) -> tuple[exp.Query, Mapping[str, Relation]]:
    """The query without its WITH, and the tables it may name: those of WITH hide others of the same name."""
    given = query.args.get("with_")
    if given is None:
        return query, tables
    if given.args.get("recursive"):
        raise QueryError(
            "A recursive WITH repeats a step until the data stops it.", "write the steps out as plain CTEs", given
        )
    refuse_our_names(query)
    known = dict(tables)
    for each in given.expressions:
        if not isinstance(each.this, exp.Query):
            raise QueryError("A CTE is a SELECT.", "write WITH name AS (SELECT ...)", each)
        made = relation(each.this, known, unit)
        columns = each.args["alias"].args.get("columns") or []
        if columns:
            made = renamed(made, [lone_name(column.name, each) for column in columns], each)
        known[lone_name(each.alias, each)] = made
    bare = query.copy()
    bare.set("with_", None)
    return bare, known


def relation(query: exp.Query, tables: Mapping[str, Relation], unit: Unit, around: OuterRow | None = None) -> Relation:
    """The rows of a subquery. `around` is the row around one that stands in an expression."""
    query, tables = with_ctes(query, tables, unit)
    if isinstance(query, exp.Subquery):
        known_parts(query, ("this", "alias", "order"))
        return relation(query.this, tables, unit, around)
    if isinstance(query, exp.Select):
        return _selected(query, tables, unit, around)
    if isinstance(query, exp.Union) and not query.args.get("distinct"):
        known_parts(query, _UNION_PARTS)
        return _stacked(query, [relation(each, tables, unit, around) for each in _branches(query)], unit)
    if isinstance(query, exp.SetOperation):
        raise QueryError(
            f"{query.key.upper()} compares rows of different units with each other.",
            "use UNION ALL; to make rows distinct per unit, SELECT DISTINCT with the unit's column",
            query.expression,
        )
    raise QueryError(f"{query.key.upper()} is not a SELECT.", "write a SELECT over the schema's tables", query)


def _selected(select: exp.Select, tables: Mapping[str, Relation], unit: Unit, around: OuterRow | None) -> Relation:
    for part in ("limit", "offset"):
        if select.args.get(part) is not None:
            known_parts(select, [each for each in select.args if each != part])
    aggregated = per_unit.aggregates(select)
    if select.args.get("from_") is None and not aggregated:
        return one_row(select)
    rows = reading.reading(select, tables, unit, around)
    if aggregated and isinstance(rows.scope, Names):  # an aggregate of columns around it would be one of the rows there
        rows = replace(rows, scope=replace(rows.scope, outer=None))
    # ORDER BY alone orders nothing that anybody sees, so it is left out.
    asked = _listed(select, rows, aggregated)
    qualify = select.args.get("qualify")
    condition = None if qualify is None else spelt_out(qualify.this, select, rows.scope)
    if aggregated:
        wanted = [node for _, node in asked]
        rows, swapped = per_unit.grouped(rows, select, wanted if condition is None else [*wanted, condition])
        condition = None if condition is None else swapped.pop()
        asked = [(name, node) for (name, _), node in zip(asked, swapped, strict=True)]
    if any(
        windows.tells_apart(each)
        for node in (condition, *(node for _, node in asked))
        for each in windows.windows_in(node)
    ):
        rows = windows.numbered(rows)
    scope = replace(rows.scope, special=windows.over(rows, select))
    columns: dict[str, Typed] = {}
    for name, node in asked:
        if name in columns:
            raise QueryError(f"Two columns are called {name!r}.", "give one another name with AS", select)
        columns[name] = rows.translate(node, scope)
    if condition is not None:
        if not any(list(found(each, exp.Window)) for each in (condition, *select.expressions)):
            raise QueryError("QUALIFY filters by window functions.", "use WHERE", qualify)
        rows = replace(rows, select=rows.select.copy())
        rows.select.set("qualify", exp.Qualify(this=rows.condition(condition, scope)))
    if select.args.get("distinct") is not None:
        return _distinct(select, rows, columns, unit)
    return rows.project(columns)


def _listed(select: exp.Select, rows: reading.Reading, aggregated: bool) -> list[tuple[str, exp.Expression]]:
    """The SELECT list by name, with * spelt out."""
    asked: list[tuple[str, exp.Expression]] = []
    for node in select.expressions:
        star = node if isinstance(node, exp.Star) else node.this if isinstance(node, exp.Column) else None
        if isinstance(star, exp.Star):
            if aggregated:
                raise QueryError("* cannot stand beside aggregates.", "name the columns", node)
            known_parts(star, ("except_",))
            left_out = {each.name.lower() for each in star.args.get("except_") or []}
            table = node.table.lower() if isinstance(node, exp.Column) else None
            if table is not None and table not in rows.scope.sources:
                raise no_such("table", table, rows.scope.sources, node)
            assert isinstance(rows.scope, Names)
            asked += [(name, each) for name, each in rows.scope.everything(table) if name not in left_out]
            continue
        name = node.alias_or_name.lower() if isinstance(node, (exp.Alias, exp.Column)) else ""
        name = name or node.sql(dialect="duckdb", comments=False).lower()
        asked.append((name, spelt_out(node.unalias(), select, rows.scope)))
    return asked


def _distinct(select: exp.Select, rows: reading.Reading, columns: dict[str, Typed], unit: Unit) -> Relation:
    node = select.args["distinct"]
    if node.args.get("on") is not None:
        raise QueryError(
            "DISTINCT ON keeps the first row, which depends on the order of rows.",
            "use QUALIFY ROW_NUMBER() OVER (PARTITION BY <unit>, ... ORDER BY ...) = 1",
            node,
        )
    own = [each.kind.unit for each in columns.values()]
    if rows.private and not any(each.kind.within_unit for each in columns.values()):
        if unit.column is None:
            rule, rewrite = "SELECT DISTINCT merges rows, and each row is its own unit.", "leave DISTINCT out"
        else:
            rule = "SELECT DISTINCT without the unit's column merges rows of different units."
            rewrite = "select the unit's column too, or count with COUNT(DISTINCT x) in the outermost SELECT"
        raise QueryError(rule, rewrite, select.expressions[0])
    steadied = {name: Typed(steady(each.tree, each.kind), each.kind) for name, each in columns.items()}
    made = replace(rows, single=rows.single or all(own)).project(steadied)
    assert isinstance(made.tree, exp.Select)
    return replace(made, tree=made.tree.distinct())


def _branches(query: exp.Expression) -> list[exp.Query]:
    if isinstance(query, exp.Union) and not query.args.get("distinct") and not query.args.get("with_"):
        known_parts(query, _UNION_PARTS)
        return _branches(query.this) + _branches(query.expression)
    assert isinstance(query, exp.Query)
    return [query]


def _stacked(node: exp.Union, parts: list[Relation], unit: Unit) -> Relation:
    """UNION ALL, columns matched by position."""
    if len({each.private for each in parts}) > 1:
        raise QueryError(
            "UNION ALL of private and public rows: the public ones would belong to nobody.",
            "unite tables of one sort; join a public table instead",
            node.expression,
        )
    if len({len(each.columns) for each in parts}) > 1:
        raise QueryError("UNION ALL needs as many columns on each side.", "select the same columns", node.expression)
    private = parts[0].private
    sources = [owners(each.tree) for each in parts]
    if private and unit.column is None:
        if any(one & other for place, one in enumerate(sources) for other in sources[:place]):
            raise QueryError(
                "UNION ALL of a table with itself gives a row twice, and each row is its own unit.",
                "read the table once, with CASE or OR for what differs",
                node.expression,
            )
        numbered = any(carries(each) for each in parts)
        parts = [with_ids(each) for each in parts] if numbered else parts
    names = list(parts[0].columns)
    columns: dict[str, list[exp.Expression]] = {}
    kinds: dict[str, Kind] = {}
    for place, name in enumerate(names):
        stacked = [Typed(of("_part", list(each.columns)[place]), list(each.columns.values())[place]) for each in parts]
        columns[name], kinds[name] = merging.alike(stacked, node.expression)
    one_type = len(frozenset().union(*(namers(each.tree) for each in parts))) == 1
    trees_of = []
    for place, part in enumerate(parts):
        shown = [named(columns[name][place], name) for name in names]
        if carries(part):
            shown.insert(0, named(_unit_of(place, len(parts), unit, one_type), UNIT))
        trees_of.append(exp.Select().from_(derived(part.tree, "_part")).select(*shown))
    tree: exp.Query = trees_of[0]
    for each in trees_of[1:]:
        tree = exp.Union(this=tree, expression=each, distinct=False)
    single = private and unit.column is None and all(each.single for each in parts)
    return Relation(tree, kinds, private, single)


def _unit_of(place: int, parts: int, unit: Unit, one_type: bool) -> exp.Expression:
    own = of("_part", UNIT)
    if unit.column is not None:
        return own if one_type else as_text(own)
    # Rows of different tables are different units: their numbers must not meet. Numbers stay far below 2^63.
    return trees.binary(exp.Add, trees.binary(exp.Mul, own, trees.whole(parts)), trees.whole(place))


def renamed(given: Relation, names: list[str], node: exp.Expression) -> Relation:
    """The same rows, columns called otherwise."""
    old_names = visible(given)
    if len(names) != len(old_names) or len(set(names)) < len(names):
        raise QueryError(f"There are {len(old_names)} columns to name.", "give each one name", node)
    pairs = list(zip(old_names, names, strict=True))
    shown = [named(of("_rows", old), new) for old, new in pairs]
    if carries(given):
        shown.insert(0, named(of("_rows", UNIT), UNIT))
    tree = exp.Select().from_(derived(given.tree, "_rows")).select(*shown)
    return replace(given, tree=tree, columns={new: given.columns[old] for old, new in pairs}, base=None)
