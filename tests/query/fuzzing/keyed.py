"""Random tables that are owned through keys, and random queries over them, along the keys and past them.

Orders belong to whom their key names, items to whoever has their order, notes to whoever has their item: keys are
shared by units, doubled, NULL, and lead nowhere; one unit is heavy at every link.
"""

from __future__ import annotations

import datetime
import random
import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sfumato import sources
from sfumato.errors import SfumatoError
from sfumato.query import sql
from sfumato.schema import Schema, Table, category, date, key, real, whole
from sfumato.units import Unit

from .claims import check
from .expressions import Expressions, Rows
from .queries import question
from .sources import Sources
from .trial import PER_WORLD, Report
from .watching import Broken, watch
from .worlds import FIRST, LAST, World, kept, shuffled

_NAN = float("nan")
SCHEMA = Schema(
    {
        "people": Table({"person": key(), "age": whole(0, 120), "sex": category(["f", "m"])}, unit="person"),
        "orders": Table(
            {"id": key(), "buyer": key(), "ward": category(["a", "b"]), "total": real(0, 50), "day": date(FIRST, LAST)},
            owner="buyer -> people.person",
        ),
        "items": Table(
            {"order": key(), "item": key(), "drug": key(), "price": real(-5, 9), "size": whole(0, 5)},
            owner="order -> orders.id",
        ),
        "notes": Table({"about": key(), "stars": whole(1, 5), "word": key()}, owner="about -> items.item"),
        "wards": Table({"ward": category(["a", "b"]), "region": key(), "beds": whole(0, 100)}, private=False),
    }
)
_OF_A_KEY = {"id", "order", "item", "about"}


def _tables(draw: random.Random, heavy: int) -> dict[str, dict[str, list[Any]]]:
    buyers = [0] * heavy + [1] * (heavy // 3) + [draw.randrange(2, 30) for _ in range(60)] + [None] * 4 + [77]
    ids = [f"{place}" for place in range(len(buyers))]
    for _ in range(len(ids) // 6):  # one key of several units, or of one twice
        ids[draw.randrange(len(ids))] = draw.choice(ids)
    ids[draw.randrange(len(ids))] = ids[3] = None  # type: ignore[call-overload]
    some = [each for each in ids if each is not None]
    orders = [
        (
            each, buyer, draw.choice(["a", "b", None]), draw.choice([1.0, 49.0, _NAN, 1e300, None]),
            FIRST + datetime.timedelta(draw.randrange(-3, 370)),
        )
        for each, buyer in zip(ids, buyers, strict=True)
    ]  # fmt: skip
    wanted = [*(draw.choice(some) for _ in range(2 * len(some))), *[some[0]] * heavy, None, None, "none", "-7", "oops"]
    names = [draw.choice([f"{place}", f"{place}", "5", "17", None]) for place in range(len(wanted))]
    items = [
        (
            each,
            name,
            draw.choice(["d0", "d1", "12", None, f"rare {name}"]),
            draw.choice([-9.0, 3.5, 9.0, None]),
            draw.randrange(7),
        )
        for each, name in zip(wanted, names, strict=True)
    ]
    notes = [
        (draw.choice([*names, "nothing", None]), draw.randrange(0, 7), draw.choice(["d0", "", None, "x"]))
        for _ in range(150)
    ]
    people = [(person, draw.choice([None, 7, 40, 200]), draw.choice("fm?")) for person in [*range(30), 0, None]]
    wards = [("a", "north", 10), ("a", "south", 20), ("b", "north", None), (None, "west", 7)]
    rows = {"people": people, "orders": orders, "items": items, "notes": notes, "wards": wards}
    for each in rows.values():
        draw.shuffle(each)  # type: ignore[arg-type]
    return {
        name: {column: [row[i] for row in rows[name]] for i, column in enumerate(table.columns)}
        for name, table in SCHEMA.tables.items()
    }


def _without(draw: random.Random, tables: Any, stays: Any) -> dict[str, Any]:
    """Without the units that do not stay. Rows that then lead to nobody go with them, or stay as nobody's."""
    left = kept(tables, {name: list(map(stays, tables[name][column])) for name, column in _NAMES.items()})
    if draw.random() < 0.5:
        return left
    for name, column, parent, target in (("items", "order", "orders", "id"), ("notes", "about", "items", "item")):
        now = set(left[parent][target]) - {None}
        left = kept(left, {name: [each in now for each in left[name][column]]})
    return left


_NAMES = {"people": "person", "orders": "buyer"}
_TYPES = {
    "person": pa.int64(), "age": pa.int32(), "total": pa.float64(), "price": pa.float64(), "size": pa.int64(),
    "stars": pa.int64(), "beds": pa.int64(), "day": pa.date32(),
}  # fmt: skip


def _stored(draw: random.Random, folder: Path, name: str, columns: Any, texts: set[str]) -> Any:
    """Keys are texts in some tables and numbers in others, as their files have it."""
    types = {column: _TYPES.get(column, pa.string()) for column in columns}
    types |= {"buyer": pa.string() if "buyer" in texts else pa.int64()} if "buyer" in columns else {}
    given = {}
    for column, values in columns.items():
        cells = values
        if column in _OF_A_KEY and column not in texts:
            digits = [None if each is None or not each.isdigit() else int(each) for each in values]
            cells, types[column] = digits, pa.int64()
        elif column == "buyer" and column in texts:
            cells = [None if each is None else str(each) for each in values]
        given[column] = pa.array(cells, types[column], from_pandas=False)
    table = pa.table(given)
    if draw.random() < 0.5:
        return sources.source(table)
    pq.write_table(table, folder / f"{name}.parquet", row_group_size=draw.choice([7, 10**6]))
    return sources.source(folder / f"{name}.parquet")


@contextmanager
def world(seed: int, folder: Path, heavy: int) -> Iterator[World]:
    draw = random.Random(seed)
    tables, b = _tables(draw, heavy), draw.choice([1, 2, 3, 77, draw.randrange(30)])
    texts = set(draw.sample([*sorted(_OF_A_KEY), "buyer"], draw.randrange(6)))
    worlds = {
        "all": tables,
        "mixed": shuffled(draw, tables),
        "without a": _without(draw, tables, lambda who: who != 0),
        "without b": _without(draw, tables, lambda who: who != b),
        "alone": _without(draw, tables, lambda who: who == 0),
    }
    sessions = {}
    with ExitStack() as stack:
        for which, held in worlds.items():
            place = folder / f"keyed {seed} {which}"
            place.mkdir(parents=True)
            given = {name: (SCHEMA.table(name), _stored(draw, place, name, each, texts)) for name, each in held.items()}
            sessions[which] = sources.connect(given, threads=2 if which == "mixed" else 1)
            stack.callback(sessions[which].close)
        yield World(SCHEMA, Unit("user:person"), sessions)


def table(name: str, alias: str) -> Rows:
    """A private table of these worlds."""
    if name == "people":
        return Rows(f"people AS {alias}", f"{alias}.person", [(f"{alias}.age", True)], [f"{alias}.sex"])
    if name == "orders":
        columns = [(f"{alias}.total", True)], [f"{alias}.ward"], [], [], [f"{alias}.day"]
        return Rows(f"orders AS {alias}", f"{alias}.buyer", *columns)  # type: ignore[arg-type]
    if name == "items":
        numbers = [(f"{alias}.price", True), (f"{alias}.size", True)]
        return Rows(f"items AS {alias}", None, numbers, [], [f"{alias}.drug"])
    return Rows(f"notes AS {alias}", None, [(f"{alias}.stars", True)], [], [f"{alias}.word"])


class KeyedSources(Sources):
    """FROM clauses over tables that are owned through keys."""

    def rows(self) -> Rows:
        ways = [
            self.keyed, self.keyed, self.along, self.along, self.along, self.whole_chain, self.by_key, self.by_key,
            self.by_key_joined, self.key_window, self.key_distinct, self.siblings, self.tested, self.passed_on,
            self.with_wards,
        ]  # fmt: skip
        chosen = self.draw.choice(ways)
        self.features.add(chosen.__name__)
        return chosen()

    def _own(self, rows: Rows) -> list[str]:
        """Subqueries along keys, over rows of the same unit."""
        draw, outer = random.Random(str(self.draw.getstate()[1][:3])), re.match(r"(orders|items) AS (\w+)", rows.text)
        if outer is None or draw.random() > 0.4 or re.search("RIGHT|FULL", rows.text):
            return []
        alias = outer[2]
        ties = {
            "orders": [f'items AS z WHERE z."order" = {alias}.id', f"orders AS z WHERE {alias}.id = z.id"],
            "items": [
                f"notes AS z WHERE {alias}.item = z.about",
                f'items AS z WHERE z."order" = {alias}."order" AND z.size <> {alias}.size',
            ],
        }
        tied, x = draw.choice(ties[outer[1]]), draw.choice(rows.of("number"))
        number = {"items": "z.size", "notes": "z.stars", "orders": "z.total"}[tied.partition(" ")[0]]
        key, among = draw.choice(
            {
                "orders": [("id", 'SELECT z."order" FROM items AS z WHERE z.size > 1'),
                           ("id", 'SELECT "order" FROM items GROUP BY "order" HAVING COUNT(*) > 2')],
                "items": [('"order"', "SELECT z.id FROM orders AS z WHERE z.total > 2"),
                          ("item", "SELECT z.about FROM notes AS z WHERE z.stars > 1")],
            }[outer[1]]
        )  # fmt: skip
        ways = {
            "IN along a key": f"{alias}.{key} IN ({among})",
            "NOT IN along a key": f"{alias}.{key} NOT IN ({among})",
            "EXISTS along a key": f"EXISTS (SELECT 1 FROM {tied} AND {number} > 1)",
            "NOT EXISTS along a key": f"NOT EXISTS (SELECT 1 FROM {tied} AND {number} > 1)",
            "values along a key": f"{x} NOT IN (SELECT {number} FROM {tied})",
            "lone value along a key": f"{x} <= (SELECT {draw.choice(['MAX', 'AVG', 'SUM'])}({number}) FROM {tied})",
        }
        way = draw.choice(sorted(ways))
        self.features.add(way)
        return [ways[way]]

    def keyed(self) -> Rows:
        return table(self.draw.choice(["items", "items", "notes", "orders"]), "t")

    def along(self) -> Rows:
        parent, child, on = self.draw.choice(
            [("orders", "items", 'l.id = r."order"'), ("items", "notes", "r.about = l.item")]
        )
        one, two = table(parent, "l"), table(child, "r")
        both = one + two
        how = self.draw.choice(["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "COMMA", "TURNED"])
        self.features.add(f"keyed {how}")
        more = f" AND {self._condition(both)}" if self.draw.random() < 0.4 else ""
        if how in ("RIGHT JOIN", "FULL JOIN"):
            both.unit = None
        if how == "COMMA":
            both.text = f"(SELECT l.*, r.* FROM {one.text}, {two.text} WHERE {on}{more}) AS s"
            return _renamed(both)
        if how == "TURNED":
            both.text = f"{two.text} JOIN {one.text} ON {on}{more}"
            return both
        both.text = f"{one.text} {how} {two.text} ON {on}{more}"
        return both

    def whole_chain(self) -> Rows:
        tables = [
            table(name, alias) for name, alias in zip(("people", "orders", "items", "notes"), "poin", strict=True)
        ]
        many = self.draw.choice([2, 3, 4])
        both = tables[0]
        for other in tables[1:many]:
            both = both + other
        tests = ["p.person = o.buyer", 'o.id = i."order"', "n.about = i.item"][: many - 1]
        joins = "".join(f" JOIN {each.text} ON {test}" for each, test in zip(tables[1:], tests, strict=False))
        both.text = f"{tables[0].text}{joins}"
        return both

    def by_key(self) -> Rows:
        rows, by = self.draw.choice([(table("items", "t"), 't."order"'), (table("notes", "t"), "t.about")])
        make = Expressions(self.draw, rows, self.features)
        x, _ = make.number(1)
        y = self.draw.choice(rows.numbers)[0]
        name = self.draw.choice(["SUM", "AVG", "MIN", "MAX", "MEDIAN"])
        kept_ones = f" HAVING {self.draw.choice(['COUNT(*) > 1', f'MAX({y}) > 0'])}" if self.draw.random() < 0.3 else ""
        text = f"SELECT {by} AS k, COUNT(*) AS many, {name}({x}) AS x, AVG({y}) AS y FROM {rows.text} GROUP BY {by}"
        return Rows(f"({text}{kept_ones}) AS s", None, [("s.many", False), ("s.x", False), ("s.y", True)])

    def by_key_joined(self) -> Rows:
        one = table("orders", "t")
        text = 'SELECT "order" AS k, SUM(price) AS total_of, MAX(size) AS top FROM items GROUP BY "order"'
        both = one + Rows("", None, [("m.total_of", False), ("m.top", True)])
        both.text = f"{one.text} {self.draw.choice(['JOIN', 'LEFT JOIN'])} ({text}) AS m ON m.k = t.id"
        return both

    def key_window(self) -> Rows:
        rows, by = self.draw.choice([(table("items", "t"), 't."order"'), (table("notes", "t"), "t.about")])
        x = self.draw.choice(rows.numbers)[0]
        over = f"OVER (PARTITION BY {by} ORDER BY {x})"
        made = self.draw.choice([f"ROW_NUMBER() {over}", f"RANK() {over}", f"LAG({x}) {over}", f"SUM({x}) {over}"])
        text = f"SELECT {rows.keys[0]} AS item, {made} AS x FROM {rows.text}"
        text += f" QUALIFY ROW_NUMBER() {over} <= 2" if self.draw.random() < 0.4 else ""
        return Rows(f"({text}) AS s", None, [("s.x", False)], [], ["s.item"])

    def key_distinct(self) -> Rows:
        text = 'SELECT DISTINCT "order" AS k, drug AS item, size AS x FROM items'
        return Rows(f"({text}) AS s", None, [("s.x", True)], [], ["s.item"])

    def siblings(self) -> Rows:
        one, two = table("items", "l"), table("items", "r")
        both = one + two
        both.text = f'{one.text} JOIN {two.text} ON l."order" = r."order" AND l.drug = r.drug AND l.size > r.size'
        return both

    def tested(self) -> Rows:
        one = table("orders", "t")
        kind = self.draw.choice(["SEMI", "ANTI"])
        one.text = f'{one.text} {kind} JOIN items AS i ON i."order" = t.id AND i.size > 2'
        return one

    def passed_on(self) -> Rows:
        self.named.append("o AS (SELECT id AS k, buyer AS who, ward AS place, total FROM orders WHERE total > 0)")
        text = '(SELECT "order" AS k, price AS x, drug AS item FROM items)'
        rows = Rows("", "o.who", [("o.total", True), ("s.x", True)], ["o.place"], ["s.item"])
        how = self.draw.choice(["USING (k)", "ON s.k = o.k"])
        rows.text = f"o JOIN {text} AS s {how}"
        return rows

    def with_wards(self) -> Rows:
        one, two = table("orders", "o"), table("items", "i")
        both = one + two + Rows("", None, [("w.beds", True)], [], ["w.region"], publics=["w.region", "w.ward"])
        both.text = f'{two.text} JOIN {one.text} ON o.id = i."order" JOIN wards AS w ON w.ward = o.ward'
        return both


def _renamed(rows: Rows) -> Rows:
    """The same columns out of a subquery that shows all of two tables."""

    def moved(name: str) -> str:
        return f"s.{name.partition('.')[2]}"

    return Rows(
        rows.text, rows.unit and moved(rows.unit), [(moved(name), known) for name, known in rows.numbers],
        list(map(moved, rows.categories)), list(map(moved, rows.keys)), [], list(map(moved, rows.dates)),
    )  # fmt: skip


def trial(seeds: Iterable[int], folder: Path) -> Report:
    """Check the queries of these seeds; Broken where one does not keep what it promises."""
    report = Report()
    for number, these in groupby(seeds, lambda seed: seed // PER_WORLD):
        with world(number, folder, (120, 12, 400)[number % 3]) as opened:
            for seed in these:
                _one(seed, opened, report)
    return report


def _one(seed: int, opened: World, report: Report) -> None:
    draw = random.Random(seed)
    unit = Unit(opened.unit.of, draw.choice(["add-remove", "add-remove", "replace"]), draw.choice([1, 1, 1, 2]))
    asked = question(seed, users=True, sources=KeyedSources)
    try:
        plan = sql(asked.text, opened.schema, unit=unit, **asked.options)
    except SfumatoError as refusal:
        report.refused[seed] = f"{asked.text}: {refusal}"
        return
    try:
        found = check(watch(plan, opened))
    except Broken as problem:
        raise Broken(f"seed {seed}: {asked.text} with {asked.options}, {plan.unit}: {problem}") from None
    report.checked += 1
    report.features.update(asked.features)
    for name, used in found.used.items():
        report.used[name] = max(report.used.get(name, 0.0), used)
