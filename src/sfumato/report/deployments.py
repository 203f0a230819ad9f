"""Where public deployments stand, and why most of them cannot be put in one order.

An epsilon says little without its unit (a person, a person's day, one report), its delta, and whom people have to trust
(nobody, in the local model; whoever holds the data, in the central one). Figures are as published, or recomputed from
published parameters where the note says so. They say what was promised, not how it was audited.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from .. import checks, display
from ..errors import PrivacyWarning
from ..units import USER, Unit

Trust = Literal["central", "local"]
TRUSTS = ("central", "local")


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """One published guarantee. `delta` 0 is pure; `relation` None is not published or not clear."""

    name: str
    epsilon: float
    delta: float = 0.0
    unit: str
    period: str
    trust: Trust
    relation: str | None = None
    source: str
    year: int
    note: str = "as published"

    def differs(self, *, delta: float, unit: str, trust: str) -> tuple[str, ...]:
        """Why this figure cannot be set beside another one."""
        differences = []
        if trust != self.trust:
            differences.append("trust")
        if unit != self.unit:
            differences.append("unit")
        if delta != self.delta:
            differences.append("delta")
        return tuple(differences)


_APPLE = "Apple, Differential Privacy Overview; Learning with Privacy at Scale"
_CENSUS = "US Census Bureau, 2020 Census disclosure avoidance, P.L. 94-171 production settings"
_GBOARD = "Google, Federated Learning with Formal Differential Privacy Guarantees; Xu et al. (arXiv 2305.18465)"

DEPLOYMENTS: tuple[Deployment, ...] = (
    Deployment(
        name="US Census 2020, redistricting, persons",
        epsilon=17.14,
        delta=1e-10,
        unit="person",
        period="once",
        trust="central",
        relation="replace",
        source=_CENSUS,
        year=2021,
        note="as published; recomputed as 17.1436 from rho = 293764/114921 = 2.556; state totals are released exactly",
    ),
    Deployment(
        name="US Census 2020, redistricting, housing units",
        epsilon=2.47,
        delta=1e-10,
        unit="housing unit",
        period="once",
        trust="central",
        relation="replace",
        source=_CENSUS,
        year=2021,
        note="as published; persons and housing units together 19.61",
    ),
    Deployment(
        name="Apple, emoji",
        epsilon=4.0,
        unit="person-day",
        period="a day; renewed every day",
        trust="local",
        relation="replace",
        source=_APPLE,
        year=2017,
        note="as published, one report a day; days add up",
    ),
    Deployment(
        name="Apple, health types",
        epsilon=2.0,
        unit="person-day",
        period="a day; renewed every day",
        trust="local",
        relation="replace",
        source=_APPLE,
        year=2017,
        note="as published, one report a day; days add up",
    ),
    Deployment(
        name="Apple, new words (QuickType)",
        epsilon=16.0,
        unit="person-day",
        period="a day; renewed every day",
        trust="local",
        relation="replace",
        source=_APPLE,
        year=2017,
        note="8 a report as published, two reports a day; days add up",
    ),
    Deployment(
        name="Google Chrome, RAPPOR, one report",
        epsilon=2.0433,
        unit="report",
        period="one report",
        trust="local",
        relation="replace",
        source="Erlingsson, Pihur, Korolova, RAPPOR (CCS 2014); settings of the Chromium source",
        year=2014,
        note="recomputed: 2 hash functions, f = 1/2, p = 1/4, q = 3/4 give 4 ln(5/3)",
    ),
    Deployment(
        name="Google Chrome, RAPPOR, all reports of one value",
        epsilon=4.3944,
        unit="person-value",
        period="unlimited, as long as the value stays the same",
        trust="local",
        relation="replace",
        source="Erlingsson, Pihur, Korolova, RAPPOR (CCS 2014); settings of the Chromium source",
        year=2014,
        note="recomputed: 2 hash functions, f = 1/2 give 4 ln 3",
    ),
    Deployment(
        name="Google, COVID-19 search symptoms",
        epsilon=1.68,
        unit="person-day",
        period="a day; renewed every day",
        trust="central",
        source="Bavadekar et al., COVID-19 Search Trends Symptoms: Anonymization Process (arXiv 2009.01265)",
        year=2020,
    ),
    Deployment(
        name="Google, COVID-19 vaccination searches",
        epsilon=2.19,
        delta=1e-5,
        unit="person-day",
        period="a day; renewed every day",
        trust="central",
        source="Bavadekar et al., COVID-19 Vaccination Search Insights: Anonymization Process (arXiv 2107.01179)",
        year=2021,
    ),
    Deployment(
        name="LinkedIn, Audience Engagements API, one query",
        epsilon=0.15,
        delta=1e-10,
        unit="person-query",
        period="one query",
        trust="central",
        source="Rogers et al., LinkedIn's Audience Engagements API (arXiv 2002.05839)",
        year=2020,
        note="of one query; an analyst may ask many",
    ),
    Deployment(
        name="LinkedIn, Audience Engagements API, one month",
        epsilon=34.9,
        delta=7e-9,
        unit="person-month",
        period="a month, for one analyst; renewed every month",
        trust="central",
        source="Rogers et al., LinkedIn's Audience Engagements API (arXiv 2002.05839)",
        year=2020,
        note="the cap on one analyst; analysts add up",
    ),
    Deployment(
        name="Gboard, Spanish next-word model",
        epsilon=8.9,
        delta=1e-10,
        unit="person",
        period="one trained model",
        trust="central",
        relation="zero-out",
        source=_GBOARD,
        year=2022,
        note="rho = 0.81; a person is a device; trained on devices, but the server that adds the noise is trusted",
    ),
    Deployment(
        name="Gboard, strongest of more than 30 models",
        epsilon=0.994,
        delta=1e-10,
        unit="person",
        period="one trained model",
        trust="central",
        relation="zero-out",
        source="Google Research, Advances in private training for production on-device language models",
        year=2024,
    ),
    Deployment(
        name="Gboard, weakest of more than 30 models",
        epsilon=13.69,
        delta=1e-10,
        unit="person",
        period="one trained model",
        trust="central",
        relation="zero-out",
        source="Google Research, Advances in private training for production on-device language models",
        year=2024,
    ),
)

_WHY = {
    "trust": "local and central figures are not of one kind: a local epsilon bounds what the collector sees, and "
    "the same number costs far more accuracy",
    "unit": "their units differ: hiding a report or a day is less than hiding a person",
    "delta": "their deltas differ: an epsilon at a larger delta is smaller for the very same mechanism",
}


@dataclass(frozen=True)
class Placement:
    """A figure among the deployments, weakest promise last. `differs` says what stands against each comparison."""

    epsilon: float
    delta: float
    unit: str
    trust: str
    rows: tuple[tuple[Deployment, tuple[str, ...]], ...]

    @property
    def comparable(self) -> tuple[Deployment, ...]:
        """The deployments of the same unit, delta and trust."""
        return tuple(deployment for deployment, differs in self.rows if not differs)

    def _lines(self) -> Iterator[tuple[str, str, str, str, str, str]]:
        placed = False
        for deployment, differs in self.rows:
            if not placed and deployment.epsilon > self.epsilon:
                placed = True
                yield self._own()
            against = f"other {', '.join(differs)}" if differs else ""
            yield (
                f"{deployment.epsilon:.4g}",
                f"{deployment.delta:g}",
                deployment.unit,
                deployment.trust,
                f"{deployment.name} ({deployment.year})",
                against,
            )
        if not placed:
            yield self._own()

    def _own(self) -> tuple[str, str, str, str, str, str]:
        return f"{self.epsilon:.4g}", f"{self.delta:g}", self.unit, self.trust, "-> this one", ""

    _HEAD = ("epsilon", "delta", "unit", "trust", "deployment", "")

    def __str__(self) -> str:
        lines = [self._HEAD, *self._lines()]
        widths = [max(len(line[i]) for line in lines) for i in range(6)]
        return "\n".join("  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in lines)

    def _repr_html_(self) -> str:
        return display.card("", display.table(self._HEAD, self._lines(), right=(0, 1)))


def place(
    epsilon: Any, *, delta: Any = 0, unit: str | Unit = "person", trust: str = "central", comparable: bool = False
) -> Placement:
    """Where a figure stands among public deployments, with a warning for each way in which they differ from it.

    comparable  show only deployments of the same unit, delta and trust (there may be none)
    """
    size = float(checks.epsilon(epsilon, warn=False))
    own = float(checks.delta(delta, zero=True))
    checks.one_of(trust, "trust", TRUSTS)
    whose = _unit(unit)
    rows = [(each, each.differs(delta=own, unit=whose, trust=trust)) for each in DEPLOYMENTS]
    if comparable:
        rows = [row for row in rows if not row[1]]
    rows.sort(key=lambda row: row[0].epsilon)
    for kind, why in _WHY.items():
        others = sum(kind in differs for _, differs in rows)
        if others:
            warnings.warn(
                f"{others} of {len(rows)} deployments have another {kind} than this figure, and {why}. Do not rank "
                "them; comparable=True leaves them out.",
                PrivacyWarning,
                stacklevel=2,
            )
    return Placement(size, own, whose, trust, tuple(rows))


def _unit(unit: str | Unit) -> str:
    if isinstance(unit, Unit):
        return "person" if unit.of_kind is USER and unit.group == 1 else f"{unit.of} x {unit.group}"
    return checks.label(unit, "unit")
