"""The same random queries, with what stands in their FROM and WITH taken out into views of the schema."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

from sfumato.errors import SfumatoError
from sfumato.query import sql
from sfumato.query.plan import Sql
from sfumato.schema import Schema

from .claims import check
from .expressions import Rows
from .queries import question
from .sources import Sources
from .trial import PER_WORLD, Report, users_in
from .watching import Broken, watch
from .worlds import world

_DERIVED = re.compile(r"\((SELECT .*)\) AS (\w+)(?= ON |$)", re.DOTALL)
_CTE = re.compile(r"(\w+) AS \((.*)\)", re.DOTALL)


class ViewSources(Sources):
    """FROM clauses that read views, and views of views."""

    views: dict[str, str]

    def rows(self) -> Rows:
        rows = super().rows()
        type(self).views = {}
        for text in self.named:
            cte = _CTE.fullmatch(text)
            assert cte is not None
            self.views[cte[1]] = cte[2]
        self.named = []
        rows.text = _DERIVED.sub(self._seen, rows.text)
        rows.text = re.sub(r"\b(visits|claims|patients) AS", r"all_\1 AS", rows.text)
        self.views |= {f"all_{name}": f"SELECT * FROM {name}" for name in ("visits", "claims", "patients")}
        return rows

    def _seen(self, derived: re.Match[str]) -> str:
        self.views["seen"] = derived[1]
        self.features.add("a view of a subquery")
        return f"seen AS {derived[2]}"


def trial(seeds: Iterable[int], folder: Path) -> Report:
    """Check the queries of these seeds; Broken where one does not keep what it promises."""
    report = Report()
    for number, these in groupby(seeds, lambda seed: seed // PER_WORLD):
        with world(number, folder, users=users_in(number * PER_WORLD), heavy=600) as opened:
            for seed in these:
                asked = question(seed, users=users_in(seed), sources=ViewSources)
                schema = Schema(opened.schema.tables, views=ViewSources.views)
                try:
                    plan = sql(asked.text, schema, unit=opened.unit, **asked.options)
                except SfumatoError as refusal:
                    report.refused[seed] = str(refusal)
                    continue
                assert isinstance(plan, Sql) and not plan.schema.views
                asked.features |= {f"view {name}" for name in schema.views if f"{name} AS (" in plan.text}
                try:
                    used = check(watch(plan, opened)).used
                except Broken as problem:
                    raise Broken(f"seed {seed}: {plan.text}: {problem}") from None
                report.checked += 1
                report.features.update(asked.features)
                for name, share in used.items():
                    report.used[name] = max(report.used.get(name, 0.0), share)
    return report
