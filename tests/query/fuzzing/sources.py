"""Random FROM clauses: tables, joins, subqueries, CTEs, unions, per-unit groups and windows."""

from __future__ import annotations

import random

from .expressions import Expressions, Rows

_OWNERS = {"visits": "patient", "patients": "patient", "claims": "customer"}


def table(name: str, alias: str) -> Rows:
    """A private table of the worlds."""
    if name == "visits":
        numbers = [(f"{alias}.days", True), (f"{alias}.cost", True), (f"{alias}.n", True)]
        dates = [f"{alias}.day", f"{alias}.at"]
        return Rows(
            f"visits AS {alias}",
            f"{alias}.patient",
            numbers,
            [f"{alias}.ward"],
            [f"{alias}.drug"],
            [f"{alias}.ok"],
            dates,
        )
    if name == "patients":
        numbers = [(f"{alias}.age", True), (f"{alias}.weight", True)]
        return Rows(f"patients AS {alias}", f"{alias}.patient", numbers, [f"{alias}.sex"])
    return Rows(
        f"claims AS {alias}", f"{alias}.customer", [(f"{alias}.amount", True)], [f"{alias}.ward"], [f"{alias}.code"],
        [], [f"{alias}.day"],
    )  # fmt: skip


def _columns(rows: Rows, x: str) -> str:
    """What all our subqueries select, so that they can be united."""
    place, item = rows.categories[0], rows.keys[0]
    return f"SELECT {rows.unit} AS who, {place} AS place, {item} AS item, {x} AS x, t.day AS moment_of"


class Sources:
    def __init__(self, draw: random.Random, users: bool, features: set[str]) -> None:
        self.draw, self.users, self.features = draw, users, features
        self.named: list[str] = []  # CTEs

    def rows(self) -> Rows:
        """What the outermost SELECT reads."""
        ways = [self.plain, self.plain, self.subquery, self.with_public, self.with_public, self.cte]
        if self.users:
            ways += [
                self.join,
                self.join,
                self.self_join,
                self.three,
                self.union,
                self.union,
                self.twice,
                self.per_unit,
            ]
            ways += [self.per_unit, self.window, self.window, self.distinct, self.per_unit_joined, self.semi]
        else:
            ways += [self.union_of_rows]
        made = self.draw.choice(ways)
        self.features.add(made.__name__)
        rows = made()
        if not self.users:
            rows.keys += [rows.unit] if rows.unit and self.draw.random() < 0.5 else []
            rows.unit = None
        return rows

    def where(self, rows: Rows, make: Expressions) -> str:
        own = self._own(rows)
        if self.draw.random() < 0.4:
            return f" WHERE {' AND '.join(own)}" if own else ""
        self.features.add("WHERE")
        tests = [make.condition(2), *own]
        if rows.categories and self.draw.random() < 0.15:
            self.features.add("IN public")
            tests.append(f"{self.draw.choice(rows.categories)} IN (SELECT ward FROM wards WHERE beds > 5)")
        if rows.categories and self.draw.random() < 0.1:
            self.features.add("EXISTS")
            tests.append(f"EXISTS (SELECT 1 FROM wards AS e WHERE e.ward = {rows.categories[0]} AND e.beds < 50)")
        if rows.numbers and self.draw.random() < 0.1:
            self.features.add("lone value")
            tests.append(f"{rows.numbers[0][0]} < (SELECT MAX(beds) FROM wards)")
        return " WHERE " + " AND ".join(tests)

    def _own(self, rows: Rows) -> list[str]:
        """Subqueries over the rows of the same unit. They are drawn by themselves: what else a seed asks stays."""
        draw = random.Random(str(self.draw.getstate()[1][:3]))
        if not self.users or rows.unit is None or draw.random() > 0.25:
            return []
        name = draw.choice(["visits", "claims", "patients"])
        inner = table(name, "o")
        tied = f"FROM {inner.text} WHERE o.{_OWNERS[name]} = {rows.unit}"
        number, x = draw.choice(inner.numbers)[0], draw.choice(rows.of("number"))
        kept = draw.choice(["", f" AND {number} > 0", f" AND {number} <> {x}"])
        far = f" AND NOT EXISTS (SELECT 1 FROM patients AS f WHERE f.patient = {rows.unit} AND f.age > 100)"
        ways = {
            "own EXISTS": f"EXISTS (SELECT 1 {tied}{kept})",
            "own NOT EXISTS": f"NOT EXISTS (SELECT 1 {tied}{kept})",
            "own nested EXISTS": f"EXISTS (SELECT 1 {tied}{kept}{far})",
            "own values": f"{x} NOT IN (SELECT {number} {tied}{kept})",
            "own units": f"{rows.unit} IN (SELECT o.{_OWNERS[name]} FROM {inner.text} GROUP BY 1 HAVING COUNT(*) > 2)",
            "own count": f"(SELECT COUNT(*) {tied}{kept}) % 2 = 0",
            "own lone value": f"{x} <= (SELECT {draw.choice(['MAX', 'AVG', 'SUM', 'MEDIAN'])}({number}) {tied}{kept})",
        }
        way = draw.choice(sorted(ways))
        self.features.add(way)
        return [ways[way]]

    def ctes(self) -> str:
        return f"WITH {', '.join(self.named)} " if self.named else ""

    def plain(self) -> Rows:
        return table(self.draw.choice(["visits", "visits", "visits", "claims", "patients"]), "t")

    def _condition(self, rows: Rows) -> str:
        return Expressions(self.draw, rows, self.features).condition(1)

    def subquery(self) -> Rows:
        return self._named(f"({self._inner()}) AS s", "s")

    def cte(self) -> Rows:
        self.named.append(f"base AS ({self._inner()})")
        if self.users and self.draw.random() < 0.4:
            self.features.add("CTE twice")
            rows = self._named("", "s") + self._named("", "z")
            rows.text = "base AS s JOIN base AS z ON s.who = z.who AND s.place = z.place"
            return rows
        return self._named("base AS s", "s")

    def _inner(self) -> str:
        """who, place, item, x, when."""
        rows = table(self.draw.choice(["visits", "claims"]), "t")
        make = Expressions(self.draw, rows, self.features)
        x, _ = make.number(1)
        text = _columns(rows, x)
        return f"{text} FROM {rows.text}" + (f" WHERE {make.condition(1)}" if self.draw.random() < 0.5 else "")

    def _named(self, text: str, alias: str) -> Rows:
        numbers = [(f"{alias}.x", False)]
        return Rows(text, f"{alias}.who", numbers, [f"{alias}.place"], [f"{alias}.item"], [], [f"{alias}.moment_of"])

    def with_public(self) -> Rows:
        rows = self.draw.choice([table("visits", "t"), table("claims", "t"), table("visits", "t")])
        if rows.keys == ["t.drug"] and self.draw.random() < 0.5:
            more = Rows("", None, [("d.price", True)], ["d.class"], [], publics=["d.drug", "d.class"])
            source, match = "drugs AS d", "t.drug = d.drug"
        else:
            more = Rows("", None, [("w.beds", True)], [], ["w.region"], publics=["w.region", "w.ward"])
            source, match = "wards AS w", "t.ward = w.ward"
        how = self.draw.choice(["JOIN", "JOIN", "LEFT JOIN", "CROSS JOIN", "COMMA"])
        self.features.add(f"public {how}")
        both = rows + more
        if how == "COMMA":
            both.text = f"{rows.text}, {source}"
        else:
            both.text = f"{rows.text} {how} {source}" + ("" if how == "CROSS JOIN" else f" ON {match}")
        return both

    def join(self) -> Rows:
        left, right = self.draw.sample(["visits", "patients", "claims"], 2)
        one, two = table(left, "l"), table(right, "r")
        how = self.draw.choice(["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "COMMA"])
        self.features.add(f"private {how}")
        both = one + two
        if how == "COMMA":
            both.text = f"{one.text} JOIN {two.text} ON {one.unit} = {two.unit} AND {self._condition(both)}"
            return both
        if how == "RIGHT JOIN":
            both.unit = two.unit
        if how == "FULL JOIN":
            if _OWNERS[left] != _OWNERS[right]:
                how = "LEFT JOIN"
            else:
                both.unit = "patient"
                both.text = f"{one.text} FULL JOIN {two.text} USING (patient)"
                return both
        more = f" AND {self._condition(both)}" if self.draw.random() < 0.4 else ""
        both.text = f"{one.text} {how} {two.text} ON {one.unit} = {two.unit}{more}"
        return both

    def self_join(self) -> Rows:
        name = self.draw.choice(["claims", "patients", "visits"])
        one, two = table(name, "l"), table(name, "r")
        both = one + two
        both.text = f"{one.text} JOIN {two.text} ON {one.unit} = {two.unit}"
        if name == "visits":  # the square of the heavy user's rows, but for this
            both.text += " AND l.drug = r.drug AND l.ward = r.ward AND l.day = r.day"
        return both

    def three(self) -> Rows:
        one, two, three = table("visits", "v"), table("patients", "p"), table("claims", "c")
        both = one + two + three
        both.text = (
            f"{one.text} JOIN {two.text} ON v.patient = p.patient "
            f"JOIN {three.text} ON c.customer = p.patient AND c.ward = v.ward"
        )
        return both

    def semi(self) -> Rows:
        one, two = table("visits", "v"), table("claims", "c")
        kind = self.draw.choice(["SEMI", "ANTI"])
        one.text = f"{one.text} {kind} JOIN {two.text} ON v.patient = c.customer AND v.ward = c.ward"
        return one

    def _part(self, name: str) -> str:
        rows = table(name, "t")
        x = self.draw.choice(rows.numbers)[0]
        more = f" WHERE {self._condition(rows)}" if self.draw.random() < 0.4 else ""
        return f"{_columns(rows, x)} FROM {rows.text}{more}"

    def union(self) -> Rows:
        parts = [self._part(self.draw.choice(["visits", "claims"])) for _ in range(self.draw.choice([2, 2, 3]))]
        return self._named(f"({' UNION ALL '.join(parts)}) AS s", "s")

    def twice(self) -> Rows:
        part = self._part("visits")
        return self._named(f"({part} UNION ALL {part}) AS s", "s")

    def union_of_rows(self) -> Rows:
        return self._named(f"({self._part('visits')} UNION ALL {self._part('claims')}) AS s", "s")

    def distinct(self) -> Rows:
        text = "SELECT DISTINCT patient AS who, ward AS place, drug AS item, n AS x, day AS moment_of FROM visits"
        return self._named(f"({text}) AS s", "s")

    def per_unit(self) -> Rows:
        rows = table(self.draw.choice(["visits", "claims"]), "t")
        make = Expressions(self.draw, rows, self.features)
        by = self.draw.choice([[], rows.categories, rows.keys])
        x, _ = make.number(1)
        y = self.draw.choice(rows.numbers)[0]
        kept = (
            f" HAVING {self.draw.choice(['COUNT(*) > 1', f'MAX({y}) > 0', f'SUM({y}) <> 0'])}"
            if self.draw.random() < 0.3
            else ""
        )
        name = self.draw.choice(["SUM", "AVG", "MIN", "MAX", "MEDIAN"])
        text = f"SELECT {rows.unit} AS who, {', '.join([*(f'{each} AS item' for each in by), ''])}"
        spread = self.draw.choice(["AVG", "AVG", "AVG", "STDDEV"])
        text += f"COUNT(*) AS many, {name}({x}) AS x, MAX(t.day) AS moment_of, {spread}({y}) AS y, "
        text += (
            f"COUNT(DISTINCT {rows.keys[0]}) AS k FROM {rows.text} GROUP BY {', '.join([rows.unit or '', *by])}{kept}"
        )
        made = Rows(f"({text}) AS s", "s.who", [("s.many", False), ("s.x", False), ("s.y", True), ("s.k", False)])
        if by:
            (made.keys if by == rows.keys else made.categories).append("s.item")
        made.dates.append("s.moment_of")
        return made

    def per_unit_joined(self) -> Rows:
        one = table("visits", "t")
        text = "SELECT customer, SUM(amount) AS total, MAX(amount) AS top FROM claims GROUP BY customer"
        both = one + Rows("", None, [("m.total", False), ("m.top", True)])
        both.text = f"{one.text} {self.draw.choice(['JOIN', 'LEFT JOIN'])} ({text}) AS m ON m.customer = t.patient"
        return both

    def window(self) -> Rows:
        rows = table(self.draw.choice(["visits", "claims"]), "t")
        x = self.draw.choice(rows.numbers)[0]
        order = self.draw.choice(["t.day", x, f"{rows.keys[0]}, t.day DESC"])
        by = self.draw.choice([rows.unit, f"{rows.unit}, {rows.categories[0]}"])
        over = f"OVER (PARTITION BY {by} ORDER BY {order})"
        made = self.draw.choice([
            f"ROW_NUMBER() {over}", f"RANK() {over}", f"DENSE_RANK() {over}", f"NTILE(4) {over}", f"LAG({x}) {over}",
            f"LEAD({x}, 2, 0) {over}", f"FIRST_VALUE({x}) {over}", f"SUM({x}) {over}",
            f"AVG({x}) OVER (PARTITION BY {by})",
            f"COUNT(*) OVER (PARTITION BY {by})", f"MAX({x}) {over[:-1]} ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)",
            f"SUM({x}) {over[:-1]} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING)",
        ])  # fmt: skip
        text = f"{_columns(rows, made)} FROM {rows.text}"
        if self.draw.random() < 0.3:
            text += f" QUALIFY ROW_NUMBER() {over} <= 3"
            self.features.add("QUALIFY")
        return self._named(f"({text}) AS s", "s")
