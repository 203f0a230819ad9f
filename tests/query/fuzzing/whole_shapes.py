"""Random queries of the shapes that stand around words: NATURAL, USING, bracketed and comma joins, subqueries over the
unit's own rows as numbers and flags, times of zones, pairs, ROLLUP, CUBE and GROUPING SETS, lists of groups. In some
worlds a table is empty.

What one query releases is checked release by release, and together: all that one change moves is within the budget that
was asked for.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import groupby
from pathlib import Path
from typing import Any

from sqlglot import exp

from sfumato.accounting import gdp
from sfumato.errors import SfumatoError
from sfumato.laws import RoundedGaussian
from sfumato.query import SqlReport, SqlStages, sql
from sfumato.query.parsing import parsed
from sfumato.query.plan import Sql
from sfumato.units import Unit

from .claims import PAIRS, check, spent
from .expressions import Expressions, Rows
from .queries import Question, question
from .sources import Sources, table
from .trial import PER_WORLD, Report
from .watching import Broken, Watched, watch
from .worlds import World, world

_HEAVY = (300, 40, 900)
_EMPTY: tuple[tuple[str, ...], ...] = ((), ("claims",), (), ("patients", "wards"), (), ("visits",))
"""Tables without rows, world by world."""
_ZONED = (
    "t.at AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Berlin'",
    "CAST(t.at AS TIMESTAMPTZ) AT TIME ZONE 'America/New_York'",
    "CAST(t.at AS TIMESTAMPTZ)",
    "CAST(t.at AS DATE)",
)
_OF_PATIENT = " WHERE o.patient = t.patient"


class ShapeSources(Sources):
    """FROM clauses of these shapes."""

    def rows(self) -> Rows:
        self.tests: list[str] = []
        ways = [self.natural, self.using, self.bracketed, self.commas, self.own_numbers, self.own_flags, self.zoned]
        chosen = self.draw.choice(ways)
        self.features.add(chosen.__name__)
        return chosen()

    def where(self, rows: Rows, make: Expressions) -> str:
        text = super().where(rows, make)
        if not self.tests:
            return text
        self.draw.shuffle(self.tests)
        return f"{text} AND {' AND '.join(self.tests)}" if text else f" WHERE {' AND '.join(self.tests)}"

    def natural(self) -> Rows:
        ours = "(SELECT patient, ward AS place, drug AS item, days AS x, day AS moment_of FROM visits) AS s"
        theirs = "(SELECT patient, sex, age FROM patients) AS p"
        how = self.draw.choice(["NATURAL JOIN", "NATURAL LEFT JOIN"])
        numbers = [("s.x", True), ("p.age", True)]
        return Rows(f"{ours} {how} {theirs}", "s.patient", numbers, ["s.place"], ["s.item"], [], ["s.moment_of"])

    def using(self) -> Rows:
        one, two = table("visits", "v"), table("patients", "p")
        both = one + two
        both.text = f"{one.text} {self.draw.choice(['JOIN', 'LEFT JOIN'])} {two.text} USING (patient)"
        both.unit = self.draw.choice(["patient", "v.patient"])
        return both

    def bracketed(self) -> Rows:
        one, two, three = table("visits", "v"), table("patients", "p"), table("claims", "c")
        public = Rows("", None, [("w.beds", True)], [], ["w.region"], publics=["w.region", "w.ward"])
        along = "v.patient = p.patient AND c.ward = v.ward AND c.code = v.drug"
        both, text = self.draw.choice([
            (one + two + three,
             f"{one.text} JOIN ({two.text} JOIN {three.text} ON c.customer = p.patient) ON {along}"),
            (one + two + public,
             f"(({one.text} JOIN {two.text} ON v.patient = p.patient) JOIN wards AS w ON w.ward = v.ward)"),
            (one + public + two,
             f"({one.text} JOIN wards AS w ON w.ward = v.ward) LEFT JOIN {two.text} ON p.patient = v.patient"),
        ])  # fmt: skip
        both.text = text
        return both

    def commas(self) -> Rows:
        """Tables in any order; which rows meet is told by WHERE, of two of them by way of a third."""
        tables = [table("visits", "v"), table("patients", "p"), table("claims", "c")]
        both = tables[0] + tables[1] + tables[2] + Rows("", None, [("w.beds", True)], [], ["w.region"])
        texts = [*(each.text for each in tables), "wards AS w"]
        self.draw.shuffle(texts)
        both.text = ", ".join(texts)
        self.tests += ["v.patient = p.patient", "p.patient = c.customer", "v.drug = c.code", "c.ward = w.ward"]
        return both

    def own_numbers(self) -> Rows:
        """What the unit's other rows come to, as a number of the row: in WHERE, in aggregates, in groups."""
        rows, kept = table("visits", "t"), self.draw.choice(["", " AND o.ward = t.ward", " AND o.amount > t.days"])
        tied = f"FROM claims AS o WHERE o.customer = t.patient{kept}"
        fold, known = self.draw.choice([("MAX(o.amount)", True), ("COUNT(*)", False), ("SUM(o.amount)", False)])
        rows.numbers = [(f"(SELECT {fold} {tied})", known)] * 2 + rows.numbers
        return rows

    def own_flags(self) -> Rows:
        rows = table("visits", "t")
        far = "NOT EXISTS (SELECT 1 FROM claims AS z WHERE z.customer = o.patient AND z.amount > t.cost)"
        rows.flags = [
            f"EXISTS (SELECT 1 FROM patients AS o{_OF_PATIENT} AND o.age > 40)",
            f"EXISTS (SELECT 1 FROM visits AS o{_OF_PATIENT} AND o.day > t.day AND {far})",
            "t.patient IN (SELECT customer FROM claims WHERE ward = 'a')",
            "t.drug NOT IN (SELECT o.code FROM claims AS o WHERE o.customer = t.patient)",
            "t.ward IN (SELECT ward FROM wards WHERE beds > 5)",
            f"t.cost >= (SELECT MAX(o.cost) FROM visits AS o{_OF_PATIENT} AND o.ward = t.ward)",
        ]
        return rows

    def zoned(self) -> Rows:
        rows = table("visits", "t")
        rows.dates = list(_ZONED)
        return rows


def question_of(seed: int) -> Question:
    """The query of a seed, some of them grouped several times, some as lists of groups, some with pairs counted."""
    draw = random.Random(f"shape {seed}")
    asked = question(seed, users=True, sources=draw.choice([ShapeSources, ShapeSources, Sources]))
    tree = parsed(asked.text)
    assert isinstance(tree, exp.Select)
    groups = [each.alias for each in tree.expressions if each.alias.startswith("g")]
    features, options = set(asked.features), dict(asked.options)
    if groups and draw.random() < 0.6:
        sets, text = draw.choice([
            ("ROLLUP", f"ROLLUP ({', '.join(groups)})"), ("CUBE", f"CUBE ({', '.join(groups)})"),
            ("GROUPING SETS", f"GROUPING SETS (({', '.join(groups)}), ({groups[-1]}), ())"),
        ])  # fmt: skip
        tree.set("group", parsed(f"SELECT 1 FROM visits GROUP BY {text}").args["group"])
        return Question(tree.sql("duckdb"), options, features | {sets})
    pairs = [name for name in (_pair(each) for each in tree.find_all(exp.Table)) if name]
    if pairs and draw.random() < 0.4:
        tree = tree.select(f"COUNT(DISTINCT ({draw.choice(pairs)})) AS pairs")
        return Question(tree.sql("duckdb"), options, features | {"pairs of all rows"})
    if groups and "delta" in options and "bounds" not in options and draw.random() < 0.5:
        tree.set("expressions", [each for each in tree.expressions if each.alias in groups])
        for part in ("having", "order", "limit"):
            tree.set(part, None)
        return Question(tree.sql("duckdb"), options, features | {"list of groups"})
    return Question(tree.sql("duckdb"), options, features)


def _pair(source: exp.Table) -> str:
    both = {"visits": ("ward", "drug"), "claims": ("code", "ward"), "patients": ("sex", "age")}.get(source.name)
    return "" if both is None or not source.alias else f"{source.alias}.{both[0]}, {source.alias}.{both[1]}"


def trial(seeds: Iterable[int], folder: Path) -> Report:
    """Check the queries of these seeds; Broken where one does not keep what it promises."""
    report = Report()
    for number, these in groupby(seeds, lambda seed: seed // PER_WORLD):
        empty = _EMPTY[number % len(_EMPTY)]
        with world(number, folder, users=True, heavy=_HEAVY[number % len(_HEAVY)], empty=empty) as opened:
            for seed in these:
                _one(seed, opened, report)
    return report


def _one(seed: int, opened: World, report: Report) -> None:
    draw, asked = random.Random(seed), question_of(seed)
    unit = Unit(opened.unit.of, draw.choice(["add-remove", "add-remove", "replace"]), draw.choice([1, 1, 1, 2]))
    try:
        plan: Any = sql(asked.text, opened.schema, unit=unit, **asked.options)
        if isinstance(
            plan, SqlStages
        ):  # a name that is the subquery's own: everybody's average, which is released first
            report.refused[seed] = f"{asked.text}: in stages, which are checked by themselves"
            return
        plans = tuple(plan.sqls.values()) if isinstance(plan, SqlReport) else (plan,)
    except SfumatoError as refusal:
        report.refused[seed] = f"{asked.text}: {refusal}"
        return
    try:
        seen = [watch(part, opened) for part in plans]
        for part in seen:
            for name, used in check(part).used.items():
                report.used[name] = max(report.used.get(name, 0.0), used)
        used = _together(seen, plans, asked.options)
    except Broken as problem:
        raise Broken(f"seed {seed}: {asked.text} with {asked.options}, {unit}: {problem}") from None
    report.checked += 1
    report.features.update(asked.features | ({"several releases"} if len(plans) > 1 else set()))
    report.used["together"] = max(report.used.get("together", 0.0), used)


def _together(seen: Sequence[Watched], plans: Sequence[Sql], options: dict[str, Any]) -> float:
    """How much of the whole budget one change moves, over all releases; Broken where it is more than all of it."""
    gaussian = {isinstance(drawn.law, RoundedGaussian) for part in seen for drawn in part.drawn}
    if len(gaussian) != 1:
        return 0.0  # nothing was drawn
    if gaussian == {False}:
        most = Fraction(options["epsilon"])
    elif "rho" in options:
        most = 2 * Fraction(options["rho"])
    else:
        delta = Fraction(options["delta"]) / (2 if any(part.front.selects for part in plans) else 1)
        most = 1 / gdp.least_multiplier(Fraction(options["epsilon"]), delta) ** 2
    largest = 0.0
    for one, other, units in PAIRS:
        part = Fraction(units, plans[0].blur.sides) ** (2 if gaussian == {True} else 1)
        used = sum((spent(each, one, other) for each in seen), Fraction(0)) / most / part
        if used > 1:
            raise Broken(f"together: {one} and {other}: {float(used):.6g} times what is allowed")
        largest = max(largest, float(used))
    return largest
