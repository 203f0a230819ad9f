"""Worlds for the law of ownership: schemas, units and tables that are edited in every way that parses.

A world may be refused. One that is not must keep what it prints: without the unit that the receipt names, and without
nothing else, an answer moves by what was declared.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from sfumato.audit.sql_losses import SLACK, without_noise
from sfumato.errors import PlanError, SfumatoError
from sfumato.openings import ROWS
from sfumato.plan import Plan
from sfumato.private import Private
from sfumato.query import Limits, Sql, sql
from sfumato.rows import Rows
from sfumato.schema import Column, Schema, Table, category, key, real
from sfumato.sources import Csv, DuckDBTable
from sfumato.units import Unit
from sfumato_referee.attacks.asking import KINDS, moved, stored

PEOPLE = ["anna", "ANNA", "anna ", "1", "01", "1.0", "n\u00e9", "ne\u0301"]  # different, byte by byte
HEAVY = 40  # rows of the first of them; the others have one or two
WARDS = ["a", "b"]
NAMES = ["patient", "visit", "home", "Patient", "unit", "row", "k0", "_id", "user:x", "is", "n\u00e9", "a b", "names"]
TABLES = ["data", "visits", "t", "k0", "patient", "a b"]
SOURCES = (*KINDS, "csv without header", "duckdb with a collation", "duckdb with a view")
Columns = dict[str, list[Any]]


@dataclass(frozen=True)
class World:
    """Private data that somebody might put together, by the cells of its tables."""

    unit: Unit
    schema: Schema
    cells: Mapping[str, Columns]
    source: str
    block: str | None
    text: str

    def private(self, folder: Path, cells: Mapping[str, Columns]) -> Private:
        data: Any = {name: self._stored(folder, name, each) for name, each in cells.items()}
        data = data if len(data) > 1 else next(iter(data.values()))
        return Private("d", data, unit=self.unit, schema=self.schema, block=self.block)

    def _stored(self, folder: Path, name: str, cells: Columns) -> Any:
        return source_of(self.source, folder, name, {each: cells[each] for each in self.schema.table(name).columns})


def source_of(kind: str, folder: Path, name: str, cells: Columns) -> Any:
    """The cells as one kind of source, with what a file of that kind may bring along."""
    folder.mkdir(parents=True, exist_ok=True)
    if "duckdb" in kind and len({each.lower() for each in cells}) < len(cells):
        raise PlanError("no DuckDB file has two columns of one name")
    if kind in KINDS:
        made = stored(cells, kind, folder, name)
        return DuckDBTable(made, name) if kind == "duckdb" else made
    if kind == "csv without header":
        made = stored(cells, "csv", folder, name)
        made.write_text(made.read_text(encoding="utf-8").partition("\n")[2], encoding="utf-8")
        return Csv(made, header=False)
    path = folder / f"{name}.duckdb"
    path.unlink(missing_ok=True)
    given = pa.table({each: pa.array(values) for each, values in cells.items()})
    with duckdb.connect(str(path)) as base:
        base.register("given", given)
        if kind == "duckdb with a view":
            base.execute("CREATE TABLE base AS SELECT * FROM given")
            numbers = [
                each for each, type_ in zip(given.column_names, given.schema.types, strict=True) if type_ == "double"
            ]
            share = "".join(f', "{each}" / nullif(max("{each}") OVER (), 0) AS "{each}"' for each in numbers)
            base.execute(f'CREATE VIEW "{name}" AS SELECT * EXCLUDE ({_quoted(numbers)}){share} FROM base' if numbers
                         else f'CREATE VIEW "{name}" AS SELECT * FROM base')  # fmt: skip
        else:
            kinds = {
                "string": "VARCHAR COLLATE NOCASE.NOACCENT",
                "double": "DOUBLE",
                "int64": "BIGINT",
                "bool": "BOOLEAN",
            }
            columns = [
                f'"{each}" {kinds.get(str(t), "VARCHAR")}'
                for each, t in zip(given.column_names, given.schema.types, strict=True)
            ]
            base.execute(f'CREATE TABLE "{name}" ({", ".join(columns)}); INSERT INTO "{name}" SELECT * FROM given')
    return DuckDBTable(path, name)


def _quoted(names: list[str]) -> str:
    return ", ".join(f'"{each}"' for each in names)


def world(seed: int, source: str | None = None) -> World | None:
    """One of them, with cells from a source of this kind; None where it does not even parse."""
    draw = random.Random(seed)
    names = draw.sample(NAMES, 6)
    table, other = draw.sample(TABLES, 2)
    cells = {table: _visits(draw, names)}
    if draw.random() < 0.5:
        cells[other] = _orders(draw, names)
    kinds = {names[3]: category(WARDS), names[4]: real(0, 1)}
    try:
        tables = {name: _table(draw, each, kinds, names[0]) for name, each in cells.items()}
        if draw.random() < 0.3:
            tables["public"] = Table({"w": category(WARDS)}, private=False)
            cells["public"] = {"w": WARDS}
        schema = Schema(tables)
        every = [column for each in cells.values() for column in each]
        of = names[0] if draw.random() < 0.7 else draw.choice(every)
        unit = Unit() if draw.random() < 0.1 else Unit(f"user:{of}")
    except SfumatoError:
        return None
    block = names[3] if draw.random() < 0.1 and len(tables) == 1 else None
    text = _text(draw, table, other in cells and other, names)
    return World(unit, schema, cells, source or draw.choice(SOURCES), block, text)


def _visits(draw: random.Random, names: list[str]) -> Columns:
    """Who, which visit, whose home, ward, cost, and the number of the row."""
    who: list[Any] = (
        [PEOPLE[0]] * HEAVY + [each for each in PEOPLE[1:] for _ in range(draw.choice((1, 2)))] + [None] * 2
    )
    draw.shuffle(who)
    columns = [who, [f"v{i}" for i in range(len(who))], [f"h{len(str(each)) % 3}" for each in who]]
    columns += [[draw.choice(WARDS) for _ in who], [1.0 if each == PEOPLE[0] else 0.1 for each in who]]
    return dict(zip(names, columns, strict=False))


def _orders(draw: random.Random, names: list[str]) -> Columns:
    who = [each for each in PEOPLE for _ in range(draw.choice((1, 3)))]
    own = draw.choice((names[0], names[0], names[5]))  # the same people under the same name, or under another
    return {own: who, names[1]: [f"v{i}" for i in range(len(who))], names[4]: [1.0] * len(who)}


def _table(draw: random.Random, cells: Columns, kinds: Mapping[str, Column], whose: str) -> Table:
    order = list(cells)
    draw.shuffle(order)
    columns = {}
    for each in order:
        texts = [cell for cell in dict.fromkeys(cells[each]) if isinstance(cell, str)]
        columns[each] = kinds.get(each) or (category(texts) if draw.random() < 0.2 else key())
    own = next(iter(cells))
    unit = draw.choice([None, own]) if draw.random() < 0.8 else draw.choice(list(cells))
    declared = unit is not None and (own != whose or draw.random() < 0.1) and draw.random() < 0.9
    return Table(columns, unit=unit, names=whose if declared else None)


def _text(draw: random.Random, table: str, other: str | bool, names: list[str]) -> str:
    who, visit, _, ward, cost, alias = (f'"{each}"' for each in names)
    texts = [
        f'SELECT COUNT(*) AS n, SUM({cost}) AS s FROM "{table}"',
        f'SELECT {ward} AS w, COUNT(*) AS n FROM "{table}" GROUP BY w',
        f'SELECT COUNT(DISTINCT {visit}) AS n FROM "{table}" AS x',
        f'SELECT SUM(m) AS s FROM (SELECT {who}, MAX({cost}) AS m FROM "{table}" GROUP BY {who}) AS x',
        f'WITH x AS (SELECT {who} AS z, {cost} AS c FROM "{table}") SELECT SUM(c) AS s FROM x',
    ]
    if other:
        for own in (who, alias):
            texts.append(f'SELECT SUM(b.{cost}) AS s FROM "{table}" AS a JOIN "{other}" AS b ON a.{who} = b.{own}')
            texts.append(f'SELECT SUM(c) AS s FROM (SELECT {who} AS p, {cost} AS c FROM "{table}" UNION ALL '
                         f'SELECT {own}, {cost} FROM "{other}") AS x')  # fmt: skip
    return draw.choice(texts)


def broken(world: World, folder: Path) -> str | None:
    """What is wrong with a world that was taken; None where all is right. Raises SfumatoError where it is refused."""
    plan = sql(world.text, world.schema, unit=world.unit, epsilon=1, limits=Limits(rows=1))
    whole = world.private(folder / "whole", world.cells)
    whole.compare(plan)
    by_rows = sum(table.private for table in world.schema.tables.values()) == 1
    for name, column in plan.other_names.items():
        if world.schema.tables[name].names != world.unit.column:
            return f"{column!r} of {name!r} names the unit, and nobody declared it: {plan.hides}"
    releases = [plan] if isinstance(plan, Sql) else list(plan.plans.values())  # each of which has a price of its own
    before, rows = [answer(each, whole) for each in releases], _rows(whole) if by_rows else None
    for victim in (PEOPLE[0], PEOPLE[1], "v0", "h1", WARDS[0]):
        try:
            cells = without(world, plan, victim)
        except AssertionError as problem:
            return f"{problem}: {plan.hides}"
        if cells is None:
            continue
        less = world.private(folder / "less", cells)
        shares = (moved(each, one, answer(each, less)) for each, one in zip(releases, before, strict=True))
        if (share := max(shares)) > SLACK:
            return f"{victim!r} moves {share:.4g} of what was declared: {plan.hides}"
        if rows is not None and (wrong := apart(rows, _rows(less))):
            return f"{victim!r}: {wrong}: {plan.hides}"
    return None


def without(world: World, plan: Plan[Any, Any], victim: str) -> dict[str, Columns] | None:
    """The tables without the unit of this name, by the columns that are printed; of rows, without the first row."""
    column = plan.unit.column
    assert plan.hides == plan.unit.hiding(plan.other_names) and (column or "one row") in plan.hides
    cells: dict[str, Columns] = {}
    for name, table in world.schema.tables.items():
        own = None if column is None else plan.other_names.get(name, column)
        count = len(next(iter(world.cells[name].values())))
        keep = [True] * count
        if table.private and own is None:
            keep = [place > 0 or bool(cells) for place in range(count)]
        elif table.private:
            printed = world.cells[name].get(own)
            assert printed is not None or not re.search(f'(FROM|JOIN) "{name}"', world.text), "a table without the unit"
            keep = keep if printed is None else [cell != victim for cell in printed]
        cells[name] = {
            each: [c for c, k in zip(column_, keep, strict=True) if k] for each, column_ in world.cells[name].items()
        }
    return cells if cells != world.cells else None


def answer(plan: Any, private: Private) -> dict[str, Any]:
    session = plan.opens._open(private._tables)
    try:
        return without_noise(plan, session)
    finally:
        session.close()


def _rows(private: Private) -> Rows:
    return ROWS._open(private._tables)


def apart(one: Rows, other: Rows) -> str | None:
    """What is wrong with two tables that should differ by one unit, and by nothing else: what a plan does to rows is
    proven for such pairs."""
    gone, came = _units(one) - _units(other), _units(other) - _units(one)
    return f"{gone.total()} units go, {came.total()} come" if gone.total() > 1 or came else None


def _units(rows: Rows) -> Counter[tuple[Any, ...]]:
    cells = []
    for series in rows.series.values():
        read = series.values.tolist() if series.keys is None else series.label(series.values)
        cells.append([str(cell) if valid else None for cell, valid in zip(read, series.valid.tolist(), strict=True)])
    owned: dict[int, list[Any]] = {}
    for unit, row in zip(rows.units.tolist(), zip(*cells, strict=True), strict=True):
        owned.setdefault(unit, []).append(row)
    return Counter(tuple(sorted(each, key=repr)) for each in owned.values())


def tried(seeds: range, folder: Path, source: str | None = None) -> tuple[int, int, list[str]]:
    """How many worlds were taken, how many refused, and what is wrong with the taken ones."""
    taken, refused, wrong = 0, 0, []
    for seed in seeds:
        made = world(seed, source)
        try:
            if made is None:
                continue
            found = broken(made, folder / str(seed))
        except SfumatoError:
            refused += 1
            continue
        taken += 1
        if found:
            wrong.append(f"world {seed}, {made.source}: {found}")
    return taken, refused, wrong
