"""A third opening, as a newcomer writes one: edges, and a plan that counts them. All of it is in this file."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from sfumato import Unit, events, units
from sfumato.checks import Exact
from sfumato.laws import RoundedLaplace
from sfumato.openings import Opening, Tables
from sfumato.plan import Plan, Run
from sfumato.record import record
from sfumato.schema import Column, key

Links = list[tuple[str, str]]


class Edges(Opening[Links]):
    """The rows of a table as edges: what a newcomer writes."""

    does = "walk along edges"
    hides = (units.ROW, units.EDGE, units.NODE)

    def __init__(self) -> None:
        self.open_now = 0

    def _open(self, tables: Tables) -> Links:
        rows = tables.rows()
        ends = [rows[name] for name in ("src", "dst")]
        there = ends[0].valid & ends[1].valid
        self.open_now += 1
        return list(zip(*(end.label(end.values[there]) for end in ends), strict=True))

    def close(self, data: Links) -> None:
        data.clear()
        self.open_now -= 1


EDGES = Edges()


@record("test-edge-count/1")
@dataclass(frozen=True, kw_only=True)
class EdgeCount(Plan[Links, int]):
    """How many different edges there are, with Laplace noise.

    Guarantee: epsilon-DP for one change of a row or an edge; not of a node, which an audit is to tell.
    Needs: a table of edges.
    Paper: Dwork, McSherry, Nissim, Smith 2006.
    """

    protects: Unit
    epsilon: Exact = Fraction(1)
    share: Exact = field(default=Fraction(1))  # of the noise that the price asks for

    @property
    def unit(self) -> Unit:
        return self.protects

    @property
    def opens(self) -> Opening[Links]:
        return EDGES

    @property
    def columns(self) -> dict[str, Column]:
        return {"src": key(), "dst": key()}

    @property
    def event(self) -> events.Event:
        return events.Pure(epsilon=self.epsilon, relation=self.unit.change)

    def _run(self, edges: Links, run: Run) -> int:
        there = len(set(map(frozenset, edges)))
        return there + int(run.noise.draw(RoundedLaplace(float(self.share / self.epsilon)), 1)[0])
