"""Random numbers and conditions over the columns of some rows."""

from __future__ import annotations

import random
from dataclasses import dataclass, field


@dataclass
class Rows:
    """What stands in FROM, the column that names the unit there, and the other columns by what they may be used for.

    number    (name, has it public bounds?)
    category  its values are known
    key       anything that is compared for equality
    public    a column of a public table
    """

    text: str
    unit: str | None
    numbers: list[tuple[str, bool]] = field(default_factory=list)
    categories: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    dates: list[str] = field(default_factory=list)
    publics: list[str] = field(default_factory=list)

    def of(self, kind: str) -> list[str]:
        if kind == "number":
            return [name for name, _ in self.numbers]
        return {"category": self.categories, "key": self.keys, "date": self.dates, "public": self.publics}[kind]

    def __add__(self, other: Rows) -> Rows:
        """The columns of both."""
        mine = (self.numbers + other.numbers, self.categories + other.categories, self.keys + other.keys)
        return Rows(
            "", self.unit, *mine, self.flags + other.flags, self.dates + other.dates, self.publics + other.publics
        )


class Expressions:
    def __init__(self, draw: random.Random, rows: Rows, features: set[str]) -> None:
        self.draw, self.rows, self.features = draw, rows, features
        self.turn = random.Random(rows.text)  # chances of their own, so that the queries of before stay what they were

    def number(self, depth: int) -> tuple[str, bool]:
        """A number, and whether its bounds are surely known."""
        x, known = self._number(depth)
        if depth == 0 or self.turn.random() > 0.12:
            return x, known
        if self.rows.flags and self.turn.random() < 0.4:
            self.features.add("flags as numbers")
            return f"({x} * {self.turn.choice(self.rows.flags)})", known
        self.features.add("DECIMAL")
        source = self.turn.choice([x, *self.rows.keys])
        return f"CAST({source} AS DECIMAL({self.turn.choice(['4, 1', '9, 3', '15, 2'])}))", True

    def _number(self, depth: int) -> tuple[str, bool]:
        draw = self.draw
        if depth == 0 or draw.random() < 0.4:
            return draw.choice(self.rows.numbers) if self.rows.numbers else ("1", True)
        way = draw.choice(["sum", "product", "quotient", "function", "case", "other", "date", "text"])
        x, known = self.number(depth - 1)
        if way == "sum":
            y, also = self.number(0)
            return f"({x} {draw.choice('+-')} {y})", known and also
        if way == "product":
            return f"({x} * {draw.choice(['2', '0.5', '-3', '1e-3'])})", known
        if way == "quotient":
            y, _ = self.number(0)
            self.features.add("division")
            return f"({x} {draw.choice(['/', '%', '//'])} {y})", False
        if way == "function":
            name = draw.choice(["ABS", "SQRT", "LN", "EXP", "ROUND", "FLOOR", "CEIL", "SIGN"])
            return f"{name}({x})", name in ("ABS", "SIGN") and known
        if way == "case":
            y, also = self.number(0)
            self.features.add("CASE")
            return f"CASE WHEN {self.condition(depth - 1)} THEN {x} ELSE {y} END", known and also
        if way == "date" and self.rows.dates:
            self.features.add("dates")
            day = draw.choice(self.rows.dates)
            if draw.random() < 0.5:
                return f"DATE_DIFF('day', DATE '2024-06-01', {day})", False
            return f"{draw.choice(['MONTH', 'DAYOFYEAR', 'YEAR'])}({day})", True
        if way == "text" and self.rows.keys:
            return draw.choice(
                [f"LENGTH({draw.choice(self.rows.keys)})", f"TRY_CAST({draw.choice(self.rows.keys)} AS INTEGER)"]
            ), False
        y, also = self.number(0)
        return draw.choice([
            (f"COALESCE({x}, {y})", known and also), (f"NULLIF({x}, 0)", known),
            (f"GREATEST({x}, {y})", known and also),
            (f"LEAST({x}, 7)", known), (f"POWER({x}, 2)", False), (f"CAST({x} AS DOUBLE)", known),
        ])  # fmt: skip

    def condition(self, depth: int) -> str:
        condition = self._condition(depth)
        return condition if self.turn.random() > 0.15 else self._also(condition)

    def _also(self, condition: str) -> str:
        """The condition, or something that younger words say."""
        turn, rows = self.turn, self.rows
        words = [f"({condition}) = 1", f"({condition}) <> 'true'", f"IFF({condition}, 1, 0) > 0"]
        words += [f"{name} {test}" for name in rows.keys for test in ("< 12", ">= 'd'", "BETWEEN 1 AND 20")]
        words += [f"STRFTIME({name}, '%Y-%m') >= '2024-03'" for name in rows.dates]
        self.features.add("younger words")
        return turn.choice(words)

    def _condition(self, depth: int) -> str:
        draw, rows = self.draw, self.rows
        if depth > 0 and draw.random() < 0.3:
            joined = f"({self.condition(depth - 1)} {draw.choice(['AND', 'OR'])} {self.condition(depth - 1)})"
            return draw.choice([joined, f"NOT ({self.condition(depth - 1)})"])
        ways = ["number", "number"]
        ways += ["category"] * bool(rows.categories) + ["key"] * bool(rows.keys) + ["date"] * bool(rows.dates)
        ways += ["flag"] * bool(rows.flags)
        way = draw.choice(ways)
        if way == "number":
            x, _ = self.number(max(depth - 1, 0))
            if draw.random() < 0.2:
                return f"{x} BETWEEN 0 AND 20"
            if draw.random() < 0.2:
                return f"{x} IS {draw.choice(['', 'NOT '])}NULL"
            return f"{x} {draw.choice(['<', '>', '>=', '<>', '='])} {draw.choice(['0', '1', '7', '0.1', '20'])}"
        if way == "category":
            return f"{draw.choice(rows.categories)} {draw.choice(['IN', 'NOT IN'])} ('a', 'b', 'f')"
        if way == "key":
            name = draw.choice(rows.keys)
            self.features.add("texts")
            return draw.choice(
                [f"{name} LIKE 'd%'", f"{name} = '12'", f"{name} <> 12", f"LOWER({name}) = 'd0'", f"{name} IS NOT NULL"]
            )
        if way == "date":
            name = draw.choice(rows.dates)
            self.features.add("dates")
            return draw.choice([
                f"{name} >= DATE '2024-03-01'", f"MONTH({name}) < 7", f"{name} + INTERVAL 1 MONTH < DATE '2024-09-01'",
                f"DATE_TRUNC('month', {name}) = DATE '2024-05-01'",
            ])  # fmt: skip
        return draw.choice(rows.flags)
