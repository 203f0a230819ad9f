"""Random queries over the whole language. What they ask for is noted, so that a test can see that all of it was hit."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from sfumato.query.limits import Limits

from .expressions import Expressions, Rows
from .sources import Sources


@dataclass
class Question:
    """A query with its options, and the features it uses."""

    text: str
    options: dict[str, Any]
    features: set[str] = field(default_factory=set)


def question(seed: int, *, users: bool, sources: type[Sources] = Sources) -> Question:
    """The query of this seed, over what these sources give."""
    return _Asking(random.Random(seed), users, sources).question()


class _Asking:
    def __init__(self, draw: random.Random, users: bool, sources: type[Sources]) -> None:
        self.draw, self.users, self.sources = draw, users, sources
        self.features: set[str] = set()
        self.bounds: dict[str, tuple[int, int]] = {}
        self.keys: dict[str, Any] = {}
        self.selects = False
        self.laplace = draw.random() < 0.3

    def question(self) -> Question:
        sources = self.sources(self.draw, self.users, self.features)
        rows = sources.rows()
        self.make = Expressions(self.draw, rows, self.features)
        groups = self._groups(rows)
        asked = self._aggregates(rows)
        where = sources.where(rows, self.make)
        text = f"{sources.ctes()}SELECT {', '.join([*(f'{each} AS g{i}' for i, each in enumerate(groups)), *asked])}"
        text += f" FROM {rows.text}{where}"
        if groups:
            text += " GROUP BY " + self.draw.choice(
                [", ".join(groups), ", ".join(str(i + 1) for i in range(len(groups))), "ALL"]
            )
        text += self._later(groups)
        if "{" in text:  # nothing of ours has braces
            raise AssertionError(text)
        return Question(text, self._options(), self.features)

    def _groups(self, rows: Rows) -> list[str]:
        draw, made = self.draw, self.make
        found: list[str] = []
        for _ in range(draw.choice([0, 1, 1, 1, 2])):
            way = draw.choice(["category", "key", "key", "given", "public", "expression", "date"])
            name = f"g{len(found)}"
            if way == "category" and rows.of("category"):
                found.append(draw.choice(rows.of("category")))
            elif way == "key" and rows.of("key") and not self.laplace:
                found.append(draw.choice(rows.of("key")))
                self.selects = True
            elif way == "given" and rows.of("key"):
                found.append(draw.choice(rows.of("key")))
                self.keys[name] = draw.sample(["d0", "12", "O'Brien", "", "none such", "north"], 3)
            elif way == "public" and rows.of("public"):
                found.append(draw.choice(rows.of("public")))
            elif way == "expression":
                found.append(f"CASE WHEN {made.condition(1)} THEN 'yes' WHEN {made.condition(0)} THEN 'no' END")
            elif way == "date" and rows.of("date"):
                date = draw.choice(rows.of("date"))
                found.append(draw.choice([f"MONTH({date})", f"EXTRACT(quarter FROM {date})", f"DAYNAME({date})"]))
                self.features.add("dates")
            else:
                continue
            if len(set(found)) < len(found):
                found.pop()
                self.keys.pop(name, None)
                continue
            self.features.add(f"group by {way}")
        self._pictured(rows, found)
        if found and not self.laplace and draw.random() < 0.1 and "g0" not in self.keys:
            self.keys["g0"], self.selects = "select", True
            self.features.add("group by chosen")
        return found

    def _pictured(self, rows: Rows, groups: list[str]) -> None:
        """A group that is a function of public columns. It is drawn by itself: what else a seed asks stays."""
        draw = random.Random(str(self.draw.getstate()[1][3:6]))
        ways = [f"COALESCE({each} || '!', 'none')" for each in rows.of("category") + rows.of("public")]
        ways += [f"CAST({each} AS VARCHAR)" for each in rows.of("category")]
        if not self.laplace:  # of rows out of a union their list is not known, and choosing takes a delta
            ways += [f"CASE WHEN {each} = 'a' THEN 1 ELSE LENGTH({each}) / 2 END" for each in rows.of("category")]
        if ways and draw.random() < 0.2:
            self.features.add("group by image")
            groups.append(draw.choice(ways))

    def _aggregates(self, rows: Rows) -> list[str]:
        found = []
        for place in range(self.draw.choice([1, 1, 2, 3, 4])):
            found.append(f"{self._aggregate(rows, f'x{place}')} AS x{place}")
        return found

    def _aggregate(self, rows: Rows, alias: str) -> str:
        draw, make = self.draw, self.make
        kind = draw.choice([
            "COUNT(*)", "COUNT(*)", "COUNT", "units", "units", "distinct", "distinct", "SUM", "SUM", "SUM", "AVG",
            "AVG", "VARIANCE", "STDDEV", "MIN", "MAX", "MEDIAN", "QUANTILE", "QUANTILES", "WITHIN", "HISTOGRAM",
            "COVAR", "CORR", "COUNT_IF", "RATIO", "BOOL",
        ])  # fmt: skip
        if kind == "units" and rows.unit is None:
            kind = "SUM"
        if kind == "distinct" and not (rows.of("key") or rows.of("category")):
            kind = "COUNT"
        self.features.add(kind)
        if kind == "COUNT(*)":
            return self._filtered("COUNT(*)")
        if kind == "units":
            return f"COUNT(DISTINCT {rows.unit})"
        if kind == "distinct":
            return self._filtered(
                f"COUNT(DISTINCT {draw.choice(rows.of('key') + rows.of('category') + rows.of('public'))})"
            )
        if kind == "COUNT_IF":
            return f"COUNT_IF({make.condition(1)})"
        if kind == "BOOL":
            return f"SUM(CASE WHEN {make.condition(1)} THEN 1 ELSE 0 END)"
        if kind == "COUNT":
            return self._filtered(f"COUNT({draw.choice(rows.of('number') + rows.of('date') + rows.of('key'))})")
        low, high = draw.choice([(0, 10), (-5, 50), (-1000, 1), (10, 20), (0, 1)])
        if (
            kind in ("MIN", "MAX", "MEDIAN", "QUANTILE", "QUANTILES", "WITHIN")
            and rows.of("date")
            and draw.random() < 0.05
        ):
            self.features.add("quantiles of dates")
            x = draw.choice(rows.dates)
        elif kind == "HISTOGRAM":
            x, _ = make.number(1)
            edges = sorted({draw.randrange(-10, 100) for _ in range(6)} | {0, 1})
            return f"HISTOGRAM({x}, {edges})"
        else:
            x, bounded = make.number(2)
            if not bounded or draw.random() < 0.15:
                self.bounds[alias] = (low, high)
                self.features.add("bounds")
        if kind in ("COVAR", "CORR"):
            y, bounded = make.number(1)
            if not bounded:
                self.bounds[alias] = (low, high)
            return f"{draw.choice(['COVAR_POP', 'COVAR_SAMP']) if kind == 'COVAR' else 'CORR'}({x}, {y})"
        if kind == "QUANTILE":
            return self._filtered(f"QUANTILE({x}, {draw.choice(['0.9', '0.01', '1'])})")
        if kind == "QUANTILES":
            return f"QUANTILE({x}, [0.25, 0.5, 0.75])"
        if kind == "WITHIN":
            return f"PERCENTILE_CONT(0.3) WITHIN GROUP (ORDER BY {x})"
        if kind == "RATIO":
            return f"SUM({x}) / COUNT(*)"
        name = {"VARIANCE": ["VARIANCE", "VAR_POP"], "STDDEV": ["STDDEV", "STDDEV_POP"]}.get(kind, [kind])
        return self._filtered(f"{draw.choice(name)}({x})")

    def _filtered(self, text: str) -> str:
        if self.draw.random() > 0.15:
            return text
        self.features.add("FILTER")
        return f"{text} FILTER (WHERE {self.make.condition(1)})"

    def _later(self, groups: list[str]) -> str:
        text = ""
        if groups and self.draw.random() < 0.2:
            text += " HAVING COUNT(*) > 3"
            self.features.add("HAVING")
        if groups and self.draw.random() < 0.2:
            text += f" ORDER BY g0 {self.draw.choice(['', 'DESC'])} LIMIT 5"
            self.features.add("ORDER BY")
        return text

    def _options(self) -> dict[str, Any]:
        draw = self.draw
        found: dict[str, Any] = {}
        if self.laplace:
            found["epsilon"] = draw.choice([Fraction(1, 10), 1, 5])
            self.features.add("laplace")
        else:
            how = draw.choice(["epsilon", "rho"])
            found[how] = draw.choice([Fraction(1, 10), 1, 3])
            if how == "epsilon" or self.selects:
                found["delta"] = draw.choice([1e-6, 1e-3])
            self.features.add("gaussian")
        if self.bounds:
            found["bounds"] = self.bounds
        if self.keys:
            found["keys"] = self.keys
        if draw.random() < 0.7:
            found["limits"] = Limits(
                rows=draw.choice([1, 2, 5, Fraction(3, 2), 20, Fraction(37, 10)]),
                keys=draw.choice([1, 2, 3, 5, 12]),
                most_keys=draw.choice([1, 3, 10, 1000]),
                values=draw.choice([1, 2, 4, 30]),
            )
            self.features.add("limits")
        elif self.users:
            self.features.add("adviser")
        if draw.random() < 0.2:
            found["advice"] = Fraction(1, 4)
        return found
