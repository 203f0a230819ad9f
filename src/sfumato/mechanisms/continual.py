"""Continual counting: a running count that is told after every step, all steps for one price."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import chain
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .. import bounds, checks, events, grid
from ..bounds import Bounded, Increments, Running, Tally
from ..checks import Exact
from ..errors import PlanError
from ..interactive import Conversation, Interactive
from ..plan import Plan, Run
from ..questions import PRICE
from ..record import record
from ..rows import Rows
from ..schema import Table
from ..strategies import Banded, Causal, Prefixes, SquareRoot, best_step_tree
from ..units import Unit
from .gaussian import Gaussian
from .laplace import Laplace

_STRATEGIES = ("square-root", "banded", "tree")


@record("plan-continual-count/1")
@dataclass(frozen=True, kw_only=True)
class ContinualCount(Interactive):
    """The number of rows up to each step: step by step in `curator.session(plan)`, where `session.ask()` tells the next
    step's total from the data as it is then, or all steps at once by `curator.release(plan)`.

    strategy  what is measured: "square-root" (best with a delta or a rho), "tree" (best with epsilon alone), "banded"
              (for units that come again and again, `separation` steps apart), or a causal strategy of your own
    Say how much noise by epsilon alone (Laplace), by epsilon and delta, or by rho (both Gaussian).

    Guarantee: all totals together are one Laplace or Gaussian release: epsilon-DP, or exactly the Gaussian curve asked
        for, whatever the number of steps told, and also where the data of later steps answer to earlier totals.
    Needs: the number of steps, in advance. In a session a row counts if it is there when its step is told: rows of
        earlier steps that come late do not count, rows of later steps not yet. What a unit has counted for is
        remembered under its key, so the limits hold on data that change in any way. With rows as units, a row that
        counted must not come again under another step.
    Paper: Dwork, Naor, Pitassi, Rothblum 2010; Chan, Shi, Song 2011 (tree); Honaker 2015 (its estimates);
        Fichtenberger, Henzinger, Upadhyay 2023; Henzinger, Upadhyay, Upadhyay 2023 (square root); Kalinin, Lampert
        2024 (banded); Denisov, McMahan, Rush, Smith, Thakurta 2022; Jain, Raskhodnikova, Sivakumar, Smith 2023
        (adaptive data).

    Proof sketch: the measurements A x, x being what each step adds, get independent noise, scaled to what one unit
    moves them by (see bounds.Running); totals are computed from the noisy measurements alone. So far this is the matrix
    mechanism. Measurement i uses steps up to its own only and is told then, so that data chosen after seeing it cannot
    change it. Let an adversary choose, at each step and after all it was told, what the step adds with the unit and
    without it. On every path the two streams are neighbours: the moves d_1, d_2, ... of the measurements satisfy
    sum |d_i| <= l1 and sum d_i^2 <= l2^2, and d_i is fixed before the noise of measurement i is drawn. Laplace: the
    ratio of the densities of a path is the product of its steps' ratios, at most exp(sum |d_i| epsilon/l1) <=
    exp(epsilon). Gaussian: adaptively chosen Gaussian releases whose squared moves add up to at most l2^2 on every path
    have the curve of one release that is moved by l2 (Denisov et al. 2022; as a privacy filter: Smith, Thakurta 2022).
    """

    query: Increments
    strategy: Any = field(default=None, metadata=PRICE)
    epsilon: Exact = field(default=None, metadata=PRICE)
    delta: Exact = field(default=Fraction(0), metadata=PRICE)
    rho: Exact = field(default=None, metadata=PRICE)

    rereads: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checks.instance(self.query, Increments, "query", "bounds.increments(column, horizon, unit)")
        if (self.epsilon is None) == (self.rho is None):
            raise checks.refuse("epsilon", self.epsilon, "epsilon (alone, or with delta), or rho")
        object.__setattr__(self, "delta", checks.delta(self.delta, zero=True))
        object.__setattr__(self, "strategy", self._strategy(self.strategy))
        noisy = self.measured  # refuses what no noise fits, now
        object.__setattr__(self, "epsilon", noisy.epsilon)
        if isinstance(noisy, Gaussian):
            object.__setattr__(self, "rho", noisy.rho)

    def _strategy(self, strategy: Any) -> Causal:
        if isinstance(strategy, Causal):
            return strategy
        if strategy is None:
            strategy = "tree" if self._pure else "square-root"
        name, cells, apart = checks.one_of(strategy, "strategy", _STRATEGIES), self.query.horizon, self.query.separation
        if name == "banded":
            if apart is None:
                raise checks.refuse("strategy", name, "a query with a separation, which is the number of bands")
            return Banded(cells=cells, bands=apart)
        if name == "square-root":
            return SquareRoot(cells=cells)
        return best_step_tree(cells, "laplace" if self._pure else "gaussian")

    @property
    def _pure(self) -> bool:
        return self.rho is None and self.delta == 0

    @cached_property
    def measured(self) -> Laplace | Gaussian:
        """The one release that all totals are made of."""
        cells = Prefixes(cells=self.query.horizon)
        query = Running(query=self.query, strategy=self.strategy, workload=cells, unit=self.query.unit)
        if self._pure:
            return Laplace(query=query, epsilon=self.epsilon)
        return Gaussian(query=query, epsilon=self.epsilon, delta=self.delta, rho=self.rho)

    @property
    def children(self) -> tuple[Plan[Any, Any], ...]:
        return (self.measured,)

    @property
    def unit(self) -> Unit:
        return self.query.unit

    @property
    def event(self) -> events.Event:
        return self.measured.event

    @property
    def agenda(self) -> tuple[Any, ...]:
        return (None,) * self.query.horizon

    @property
    def _queries(self) -> Iterator[Bounded]:
        return iter(())  # steps are told without being asked about

    def check(self, table: Table) -> None:
        Plan.check(self, table)

    def accept(self, question: Any, table: Table) -> None:
        if question is not None:
            raise PlanError("a continual count takes no question: session.ask() tells the next step's total")

    def _begin(self, run: Run) -> Conversation:
        return _Counting(self, run)

    def _blur(self, measurements: NDArray[Any], run: Run) -> NDArray[np.float64]:
        """Measurements in grid steps, with the one noise each of them gets."""
        noise = run.noise.draw(self.measured.law, measurements.size)
        return grid.to_float(measurements + noise, self.measured.exponent)

    def _run(self, rows: Rows, run: Run) -> Any:
        return self._blur(self.measured.query.steps(rows, self.measured.exponent), run)

    def finish(self, raw: Any) -> list[float]:
        """The totals, from all measurements in one array (a release) or step by step (a session)."""
        noisy = raw if isinstance(raw, np.ndarray) else np.fromiter(chain.from_iterable(raw), dtype=np.float64)
        return list(self.strategy.running(noisy).tolist())

    def error(self, raw: Any, alpha: float) -> list[float]:
        steps = self.query.horizon if isinstance(raw, np.ndarray) else len(raw)
        return list(self._widths(alpha)[:steps].tolist())

    def expected_error(self, alpha: float) -> float:
        """Of the total that is least exact."""
        return float(self._widths(alpha).max())

    def _widths(self, alpha: float) -> NDArray[np.float64]:
        widths = self.measured.mixed_widths(alpha)
        assert widths is not None
        return widths

    @property
    def stds(self) -> NDArray[np.float64]:
        """The standard deviation of each step's total."""
        return np.asarray(self.measured.std * self.strategy.running_mixing.l2)

    def explain(self) -> list[str]:
        query, noisy, kind = self.query, self.measured, type(self.strategy).__name__
        limit = (
            f"of one {self.unit.column} at most {query.times} row(s) count" if self.unit.column else "each row counts"
        )
        apart = f", at least {query.separation} steps apart" if query.separation else ""
        return [
            f"count the rows of each step, 0 to {query.horizon - 1}, by column {query.column!r}; {limit}{apart}",
            f"measure mixtures of the counts of steps so far ({kind}, {self.strategy.measurements} in all); one change "
            f"of the unit moves them by at most {noisy.query.l1:g} (L1), {noisy.query.l2:g} (L2)",
            f"add {type(noisy.law).__name__} noise of standard deviation {noisy.std:.6g} to each, once",
            "tell the running total after each step, from the measurements made so far",
        ]

    @classmethod
    def sample(cls) -> ContinualCount:
        days = bounds.increments("day", 7, Unit("user:id"), per_unit=2, separation=3)
        return cls(query=days, strategy="banded", epsilon=1, delta=1e-6)


class _Counting(Conversation):
    """What each step added so far, exactly, and the measurements that become due."""

    def __init__(self, plan: ContinualCount, run: Run) -> None:
        self._plan, self._run = plan, run
        self._tally = Tally(plan.query)
        self._added = np.zeros(plan.query.horizon, dtype=np.int64)
        self._step = 0

    @property
    def over(self) -> bool:
        return self._step == self._plan.query.horizon

    def answer(self, rows: Rows, question: Any) -> list[float]:
        plan, step = self._plan, self._step
        self._step += 1  # whatever happens, a step is told once
        fine = -(plan.measured.exponent + plan.strategy.bits)
        self._added[step] = self._tally.count(rows, step) << fine
        return list(plan._blur(plan.strategy.latest(self._added[: step + 1]), self._run).tolist())
