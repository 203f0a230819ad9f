"""Random tables: private ones that share a unit, with heavy users and whatever a column can hold; and public ones.

A world is one schema with one set of tables, and neighbours of it: without one unit, without another, one unit alone.
Each is an open engine session, so that many queries can be asked of it.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato import sources
from sfumato.schema import Column, Schema, Table, category, date, flag, key, moment, real, whole
from sfumato.units import Unit

Columns = dict[str, list[Any]]
Tables = Mapping[str, Columns]

WARDS = ("a", "b", "c", "d")
DRUGS = ("d0", "d1", "12", "012", "O'Brien", "", " ", "NULL", "\u00e9", "%_", "d0 ", "D0", "x" * 40)
FIRST, LAST = datetime.date(2024, 1, 1), datetime.date(2024, 12, 31)
_NAN, _INF = float("nan"), float("inf")
_AWKWARD = (_NAN, _INF, -_INF, None, 0.0, -0.0, 1e308, -1e308, 5e-324, 1e-9)
_UNITS = {"visits": "patient", "patients": "patient", "claims": "customer"}


@dataclass(frozen=True)
class World:
    """A schema and its unit, and the open sessions by name of the neighbour.

    "all" is the data itself, "mixed" the same rows in another order, stored otherwise, read by two threads; "alone"
    holds unit a only.
    """

    schema: Schema
    unit: Unit
    sessions: Mapping[str, Any]


def schema_of(draw: random.Random, users: bool) -> Schema:
    """The same tables with other bounds, and NULLs that mean other things."""

    def owner(name: str) -> str | None:
        return _UNITS[name] if users else None

    def number(low: Any, high: Any) -> Column:
        return real(low, high, nulls=draw.choice(["drop", "drop", low]))

    days, amounts = draw.choice([(0, 50), (-30, 30), (0, 1)]), draw.choice([(0, 100), (-1e6, 1e9), (0.1, 0.3)])
    visits = {
        "patient": key(), "ward": category(WARDS), "drug": key(), "days": number(*days), "cost": real(*amounts),
        "n": whole(*draw.choice([(0, 9), (-5, 1000), (-(2**62), 2**62)])), "ok": flag(), "day": date(FIRST, LAST),
        "at": moment(FIRST, LAST),
    }  # fmt: skip
    patients = {"patient": key(), "age": whole(0, 120), "sex": category(["f", "m"]), "weight": number(0, 200)}
    claims = {
        "customer": key(),
        "amount": real(*amounts),
        "code": key(),
        "ward": category(WARDS),
        "day": date(FIRST, LAST),
    }
    return Schema({
        "visits": Table(visits, unit=owner("visits")),
        "patients": Table(patients, unit=owner("patients")),
        "claims": Table(claims, unit=owner("claims"), names="patient" if users else None),
        "wards": Table({"ward": category(WARDS), "region": key(), "beds": whole(0, 100)}, private=False),
        "drugs": Table({"drug": key(), "class": category(["x", "y"]), "price": real(0, 10)}, private=False),
    })  # fmt: skip


def tables_of(draw: random.Random, heavy: int) -> dict[str, Columns]:
    """Sixty people, one of them with `heavy` visits, another with many; rows without anybody; rows many times over."""
    people = list(range(60))
    visits: list[tuple[Any, ...]] = []
    sizes = {0: heavy, 1: heavy // 4, 2: 40}
    # A heavy unit in one drug alone, another one in all of them: both ends of what a norm over groups may be.
    for person in [*people, None]:
        few = draw.sample(DRUGS, draw.choice([1, 3, len(DRUGS)]))
        many = sizes.get(person, draw.randrange(5)) if person is not None else 30  # type: ignore[arg-type]
        constant = draw.random() < 0.3 or many == 3000  # sums of equal numbers are rounded the same way each time
        for _ in range(many):
            day = FIRST + datetime.timedelta(draw.randrange(-3, 370))
            drug = (
                draw.choice(few) if draw.random() < 0.93 else draw.choice([None, f"rare {person} {draw.randrange(9)}"])
            )
            x = 29.3 if constant else _number(draw, 60)
            at = datetime.datetime.combine(
                day, datetime.time(draw.randrange(24), draw.randrange(60), 1, draw.randrange(3))
            )
            visits.append((
                person, draw.choice([*WARDS, *WARDS, None, "?"]), drug, x, _number(draw, 1e9),
                draw.choice([None, 0, 1, 7, 2**62, -(2**63), 2**63 - 1]), draw.choice([True, False, None]),
                draw.choice([day, day, None]), draw.choice([at, at, None]),
            ))  # fmt: skip
    visits += [draw.choice(visits) for _ in range(60)]
    draw.shuffle(visits)
    patients = [
        (person, draw.choice([None, -3, 40, 41, 200]), draw.choice(["f", "m", "?", None]), _number(draw, 200))
        for person in [*people[:50], *people[:3], *people[:3], None, 900]
    ]
    claims = [
        (
            draw.choice(["0", "0", "0", "0", "1", "2", str(draw.randrange(70)), "07", "7", None, "zoe"]),
            _number(draw, 1e6), draw.choice([*DRUGS, None]), draw.choice([*WARDS, None]),
            FIRST + datetime.timedelta(draw.randrange(366)),
        )
        for _ in range(160)
    ]  # fmt: skip
    wards = [
        ("a", "north", 10),
        ("a", "south", 20),
        ("b", "north", None),
        ("c", None, 5),
        (None, "west", 7),
        ("d", "east", 100),
    ]
    drugs = [(drug, draw.choice(["x", "y", None]), _number(draw, 10)) for drug in (*DRUGS[:7], "d0", "unused", None)]
    named = {
        "visits": ("patient", "ward", "drug", "days", "cost", "n", "ok", "day", "at"),
        "patients": ("patient", "age", "sex", "weight"),
        "claims": ("customer", "amount", "code", "ward", "day"),
        "wards": ("ward", "region", "beds"),
        "drugs": ("drug", "class", "price"),
    }
    made = {"visits": visits, "patients": patients, "claims": claims, "wards": wards, "drugs": drugs}
    return {name: _columns(named[name], rows) for name, rows in made.items()}


def _number(draw: random.Random, size: float) -> float | None:
    if draw.random() < 0.15:
        return draw.choice(_AWKWARD)
    return draw.choice([draw.uniform(-size, size), draw.uniform(0, size), size / 3, 0.1, 1.0])


def _columns(names: tuple[str, ...], rows: list[tuple[Any, ...]]) -> Columns:
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}


def kept(tables: Tables, stays: Mapping[str, list[bool]]) -> dict[str, Columns]:
    """The rows that stay; tables that `stays` does not name stay as they are."""
    return {
        name: {
            column: [value for value, stay in zip(values, stays[name], strict=True) if stay]
            if name in stays
            else values
            for column, values in columns.items()
        }
        for name, columns in tables.items()
    }


def owners_of(tables: Tables, users: bool) -> dict[str, list[Any]]:
    """Whose each private row is, as a text; where rows are units, a name of its own for each."""
    if users:
        return {
            name: [None if each is None else str(each) for each in tables[name][unit]] for name, unit in _UNITS.items()
        }
    return {name: [f"{name} {i}" for i in range(len(tables[name][unit]))] for name, unit in _UNITS.items()}


def neighbours_of(draw: random.Random, tables: Tables, users: bool) -> dict[str, dict[str, Columns]]:
    """The data and its neighbours. Unit a is the heaviest, or a row that holds a lot; b is any."""
    owners = owners_of(tables, users)
    if users:
        a, b = "0", draw.choice(["1", "2", "3", "7", "zoe", str(draw.randrange(60))])
    else:
        a, b = (f"visits {draw.randrange(20)}" for _ in range(2))
        b = b if a != b else "visits 21"

    def without(*gone: str) -> dict[str, Columns]:
        return kept(tables, {name: [each not in gone for each in held] for name, held in owners.items()})

    alone = kept(tables, {name: [each == a for each in held] for name, held in owners.items()})
    return {
        "all": dict(tables), "mixed": shuffled(draw, tables), "without a": without(a), "without b": without(b),
        "alone": alone,
    }  # fmt: skip


def shuffled(draw: random.Random, tables: Tables) -> dict[str, Columns]:
    made = {}
    for name, columns in tables.items():
        size = len(next(iter(columns.values())))
        order = draw.sample(range(size), size)
        made[name] = {column: [values[i] for i in order] for column, values in columns.items()}
    return made


_TYPES = {
    "patient": pa.int64(), "customer": pa.string(), "n": pa.int64(), "age": pa.int32(), "beds": pa.int64(),
    "days": pa.float64(), "cost": pa.float64(), "amount": pa.float64(), "weight": pa.float64(), "price": pa.float64(),
    "ok": pa.bool_(), "day": pa.date32(), "at": pa.timestamp("us"),
}  # fmt: skip


def stored(draw: random.Random, folder: Path, name: str, columns: Columns, how: str) -> Any:
    """A table as a source: in memory, as Parquet in small row groups, or in a DuckDB file."""
    table = pa.table({column: pa.array(values, _TYPES.get(column, pa.string())) for column, values in columns.items()})
    if how == "arrow":
        return sources.source(table)
    if how == "parquet":
        path = folder / f"{name}.parquet"
        pq.write_table(table, path, row_group_size=draw.choice([7, 100, 10**6]))
        return sources.source(path)
    path = folder / f"{name}.duckdb"
    with duckdb.connect(str(path)) as con:
        con.register("given", table)
        con.execute(f'CREATE TABLE "{name}" AS SELECT * FROM given')
    return sources.source(path)


@contextmanager
def world(
    seed: int,
    folder: Path,
    *,
    users: bool,
    change: Any = "add-remove",
    group: int = 1,
    heavy: int = 600,
    empty: Sequence[str] = (),
) -> Iterator[World]:
    """One world, open until the block ends. `empty` tables have no rows."""
    draw = random.Random(seed)
    schema = schema_of(draw, users)
    unit = Unit("user:patient" if users else "row", change, group)
    sessions = {}
    with ExitStack() as stack:
        held_rows = tables_of(draw, heavy)
        held_rows |= {name: {column: [] for column in held_rows[name]} for name in empty}
        for which, tables in neighbours_of(draw, held_rows, users).items():
            place = folder / f"{seed} {which}"
            place.mkdir(parents=True)
            held = {
                name: (
                    schema.table(name),
                    stored(draw, place, name, columns, draw.choice(["arrow", "parquet", "duckdb"])),
                )
                for name, columns in tables.items()
            }
            session = sources.connect(held, threads=2 if which == "mixed" else 1)
            stack.callback(session.close)
            sessions[which] = session
        yield World(schema, unit, sessions)
