"""Random FROM clauses with the words below the release: different values and modes per unit, pairs, frames by values,
rows that the query lists, texts that are made longer, and columns whose bounds follow from dates and from WHERE."""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

from sfumato.errors import SfumatoError
from sfumato.query import sql
from sfumato.units import Unit

from .claims import check
from .expressions import Expressions, Rows
from .queries import question
from .sources import Sources, table
from .trial import PER_WORLD, Report
from .watching import Broken, watch
from .worlds import World, world


class WordSources(Sources):
    """FROM clauses with these words."""

    def rows(self) -> Rows:
        self.tests: list[str] = []
        ways = [self.different, self.different, self.frequent, self.ranged, self.ranged, self.listed, self.gaps]
        ways += [self.gaps, self.longer, self.own_different]
        made = self.draw.choice(ways)
        self.features.add(made.__name__)
        return made()

    def where(self, rows: Rows, make: Expressions) -> str:
        text = super().where(rows, make)
        if not self.tests:
            return text
        return f"{text} AND {' AND '.join(self.tests)}" if text else f" WHERE {' AND '.join(self.tests)}"

    def _table(self) -> Rows:
        return table(self.draw.choice(["visits", "visits", "claims"]), "t")

    def _grouped(self, rows: Rows, shown: str, by: list[str], numbers: list[tuple[str, bool]]) -> Rows:
        group = ", ".join([rows.unit or "", *by])
        kept = self.draw.choice(["", "", " HAVING SUM(DISTINCT t.day - DATE '2024-02-01') > 3", " HAVING COUNT(*) > 1"])
        items = "".join(f", {each} AS item" for each in by)
        made = Rows(
            f"(SELECT {rows.unit} AS who{items}, {shown} FROM {rows.text} GROUP BY {group}{kept}) AS s", "s.who"
        )
        made.numbers += numbers
        made.keys += ["s.item"] if by == rows.keys else []
        made.categories += ["s.item"] if by and by != rows.keys else []
        return made

    def different(self) -> Rows:
        """SUM(DISTINCT x) and its like."""
        rows = self._table()
        x, y = self.draw.choice(rows.numbers)[0], self.draw.choice(rows.numbers)[0]
        by = self.draw.choice([[], rows.categories, rows.keys])
        kept = self.draw.choice(["", f" FILTER (WHERE {y} > 0)"])
        pair = self.draw.choice([f"({x}, {rows.keys[0]})", f"{rows.keys[0]}, {rows.categories[0]}"])
        fold = self.draw.choice(["AVG", "STDDEV", "VARIANCE"])
        shown = f"SUM(DISTINCT {x}){kept} AS x, {fold}(DISTINCT {y}) AS y, COUNT(DISTINCT {pair}) AS k"
        return self._grouped(rows, shown, by, [("s.x", False), ("s.y", True), ("s.k", False)])

    def frequent(self) -> Rows:
        """MODE of numbers, texts and keys."""
        rows = self._table()
        x = self.draw.choice(rows.numbers)[0]
        by = self.draw.choice([[], rows.categories])
        kept = self.draw.choice(["", f" FILTER (WHERE {x} > 0)"])
        shown = f"MODE({x}){kept} AS x, MODE({rows.keys[0]}) AS often, MODE({rows.categories[0]}) AS place"
        made = self._grouped(rows, shown, by, [("s.x", True)])
        made.keys.append("s.often")
        made.categories.append("s.place")
        return made

    def ranged(self) -> Rows:
        rows = self._table()
        x = self.draw.choice(rows.numbers)[0]
        by = self.draw.choice([rows.unit, f"{rows.unit}, {rows.categories[0]}"])
        order, ends = self.draw.choice([
            ("t.day", "INTERVAL 30 DAY PRECEDING AND CURRENT ROW"), ("t.day DESC", "7 PRECEDING AND 7 FOLLOWING"),
            (x, "1 PRECEDING AND 2 FOLLOWING"), (f"{x} DESC NULLS FIRST", "CURRENT ROW AND UNBOUNDED FOLLOWING"),
            ("CAST(t.day AS TIMESTAMP)", "INTERVAL 36 HOUR PRECEDING AND CURRENT ROW"),
            (f"{x} * 1e300", "1 PRECEDING AND CURRENT ROW"),
        ])  # fmt: skip
        fold = self.draw.choice([f"SUM({x})", f"AVG({x})", f"MAX({x})", "COUNT(*)"])
        text = f"SELECT {rows.unit} AS who, {rows.categories[0]} AS place, {rows.keys[0]} AS item, {fold} OVER "
        text += f"(PARTITION BY {by} ORDER BY {order} RANGE BETWEEN {ends}) AS x FROM {rows.text}"
        return Rows(f"({text}) AS s", "s.who", [("s.x", False)], ["s.place"], ["s.item"])

    def listed(self) -> Rows:
        """Rows of the query itself: they repeat private rows, and drop some."""
        rows = self._table()
        words, twice = (
            "('a', 'first', 1), ('a', NULL, -2.5), ('b', 'second', NULL), (NULL, 'none', 1e9)",
            "['a', 'a', 'c']",
        )
        source, more = self.draw.choice([
            (f"(VALUES {words}) AS w(ward, word, factor)", Rows("", None, [("w.factor", True)], [], ["w.word"])),
            (f"UNNEST({twice}) AS w(ward)", Rows("", None)),
            ("(SELECT 'a' AS ward, 2 AS factor UNION ALL SELECT 'd', 7) AS w", Rows("", None, [("w.factor", True)])),
        ])  # fmt: skip
        both = rows + more
        both.text = f"{rows.text} {self.draw.choice(['JOIN', 'LEFT JOIN'])} {source} ON {rows.categories[0]} = w.ward"
        return both

    def gaps(self) -> Rows:
        """Numbers without bounds of their own, which dates or conditions give."""
        rows = self._table()
        x = self.draw.choice(rows.numbers)[0]
        gap = f"t.day - LAG(t.day) OVER (PARTITION BY {rows.unit} ORDER BY t.day)"
        months = "DATE_DIFF('month', DATE '2020-02-29', t.day)"
        text = f"SELECT {rows.unit} AS who, {rows.categories[0]} AS place, {rows.keys[0]} AS item, {gap} AS gap, "
        text += f"{months} AS months, {x} / t.day AS x FROM {rows.text}".replace("/ t.day", f"/ NULLIF({x} - 1, 0)")
        self.tests.append(self.draw.choice(["s.x BETWEEN -3 AND 4", "s.x >= -1 AND 2.5 > s.x AND s.gap > 0"]))
        return Rows(
            f"({text}) AS s", "s.who", [("s.gap", True), ("s.months", True), ("s.x", True)], ["s.place"], ["s.item"]
        )

    def longer(self) -> Rows:
        rows = self._table()
        key, place = rows.keys[0], rows.categories[0]
        word = self.draw.choice([f"LPAD({key}, 4, 'xy')", f"RPAD({key}, 2, '-')", f"REPEAT({key}, 900)"])
        text = f"SELECT {rows.unit} AS who, {word} AS item, LPAD({place}, 2, '0') AS place, LENGTH({word}) AS x"
        return Rows(f"({text} FROM {rows.text}) AS s", "s.who", [("s.x", False)], ["s.place"], ["s.item"])

    def own_different(self) -> Rows:
        rows = self._table()
        x = self.draw.choice(rows.numbers)[0]
        owner = (rows.unit or "").partition(".")[2]
        own = rows.text.partition(" ")[0]
        inner = f"FROM {own} AS o WHERE o.{owner} = {rows.unit}"
        self.tests.append(
            f"{x} <= (SELECT {self.draw.choice(['AVG', 'SUM'])}(DISTINCT o.{x.partition('.')[2]}) {inner})"
        )
        return rows


_HEAVY = (300, 40, 1500)


def trial(seeds: Iterable[int], folder: Path) -> Report:
    """Check the queries of these seeds; Broken where one does not keep what it promises."""
    report = Report()
    for number, these in groupby(seeds, lambda seed: seed // PER_WORLD):
        with world(number, folder, users=True, heavy=_HEAVY[number % len(_HEAVY)]) as opened:
            for seed in these:
                _one(seed, opened, report)
    return report


def _one(seed: int, opened: World, report: Report) -> None:
    draw = random.Random(seed)
    unit = Unit(opened.unit.of, draw.choice(["add-remove", "add-remove", "replace"]), draw.choice([1, 1, 1, 2]))
    asked = question(seed, users=True, sources=WordSources)
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
