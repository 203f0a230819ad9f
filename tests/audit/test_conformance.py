"""check_plan passes honest plans and catches planted bugs: a check that no mutant fails is not a check."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato import Budget, Unit, bounds, events, exact, grid, partition, repeat, reserve, schema, sequence
from sfumato.audit.conformance import ConformanceError, check_plan
from sfumato.bounds import Histogram, Sensitivity, Sum, recode
from sfumato.combine import Sequence
from sfumato.errors import ArgumentError, PlanError
from sfumato.laws import DiscreteLaplace, RoundedGaussian, RoundedLaplace
from sfumato.mechanisms import Exponential, Gaussian, Laplace, PermuteAndFlip, RandomizedResponse
from sfumato.plan import Plan
from sfumato.record import record

ROW, REPLACE, ZERO_OUT, USER = Unit(), Unit(change="replace"), Unit(change="zero-out"), Unit("user:id")
WARDS = ("east", "north", "west")
_DOC = """A planted bug.

    Guarantee: none.
    Needs: to be caught.
    Paper: none.
    """


def mutant(name: str) -> Callable[[type], type]:
    """A planted bug is a registered record with the parts of a docstring, so that only the bug can be caught."""

    def register(cls: type) -> type:
        cls.__doc__ = _DOC
        return record(f"mutant-{name}/1")(dataclass(frozen=True, kw_only=True)(cls))

    return register


def count(epsilon: Any = 1) -> dict[str, Any]:
    return {"query": bounds.count(ROW), "epsilon": epsilon}


def wards(unit: Unit = ROW, epsilon: Any = 1) -> dict[str, Any]:
    return {"query": bounds.histogram("ward", WARDS, unit), "epsilon": epsilon}


# ---------------------------------------------------------------------------------- too little noise


@mutant("half-noise")
class HalfNoise(Laplace):
    def _law_in_steps(self, exponent):
        return RoundedLaplace(super()._law_in_steps(exponent).scale / 2)


@mutant("nearly-enough-noise")
class NearlyEnoughNoise(Laplace):
    def _law_in_steps(self, exponent):
        return RoundedLaplace(super()._law_in_steps(exponent).scale * 0.999)


@mutant("half-gaussian")
class HalfGaussian(Gaussian):
    def _law_in_steps(self, exponent):
        return RoundedGaussian(super()._law_in_steps(exponent).sigma / 2)


@mutant("classic-gaussian")
class ClassicGaussian(Gaussian):
    """sqrt(2 ln(1.25/delta))/epsilon: 3 % too little at epsilon = 10."""

    def _law_in_steps(self, exponent):
        classic = math.sqrt(2 * math.log(1.25 / self.delta)) / self.epsilon
        return RoundedGaussian(math.sqrt(self.query.in_steps(exponent).l2_squared) * classic)


@mutant("linf-gaussian")
class WrongNorm(Gaussian):
    def _law_in_steps(self, exponent):
        return RoundedGaussian(exact.float_above(self.query.in_steps(exponent).linf * self._noise_multiplier))


@mutant("half-noise-when-run")
class HalfNoiseWhenRun(Laplace):
    def _run(self, rows, run):
        return replace(self, epsilon=2 * self.epsilon)._run_honestly(rows, run)

    def _run_honestly(self, rows, run):
        return super()._run(rows, run)


@mutant("bare-coordinate")
class BareCoordinate(Laplace):
    def _run(self, rows, run):
        steps = self.query.steps(rows, self.exponent)
        noise = run.noise.draw(self.law, steps.size)
        noise[-1] = 0
        return grid.to_float(steps + noise, self.exponent)


@mutant("shared-noise")
class SharedNoise(Laplace):
    def _run(self, rows, run):
        return grid.to_float(self.query.steps(rows, self.exponent) + run.noise.draw(self.law, 1), self.exponent)


@mutant("no-noise-on-nothing")
class NoNoiseOnNothing(Laplace):
    def _run(self, rows, run):
        raw = super()._run(rows, run)
        return raw if len(rows) else 0 * raw


@mutant("noise-by-data")
class NoiseByData(Laplace):
    """Local sensitivity: less noise where fewer rows are."""

    def _run(self, rows, run):
        steps = self.query.steps(rows, self.exponent)
        noise = run.noise.draw(self.law, steps.size) * min(len(rows), 4) // 4
        return grid.to_float(steps + noise, self.exponent)


@mutant("keeps-too-often")
class KeepsTooOften(RandomizedResponse):
    def keep_chance(self, bits):
        return replace(self, epsilon=2 * self.epsilon)._honest_chance(bits)

    def _honest_chance(self, bits):
        return super().keep_chance(bits)


@mutant("geometric")
class GeometricCount(Plan[Any, Any]):
    """A newcomer's own mechanism, whose law nobody knows but itself; honest with `share` = 1."""

    query: Any
    epsilon: Fraction
    share: Fraction = Fraction(1)

    @property
    def unit(self):
        return self.query.unit

    @property
    def event(self):
        return events.Pure(epsilon=self.epsilon, relation=self.unit.change)

    def _run(self, rows, run):
        counts = self.query.steps(rows, 0)
        scale = float(self.share * self.query.in_steps(0).l1 / self.epsilon)
        return counts + run.noise.draw(DiscreteLaplace(scale), counts.size)

    def finish(self, raw):
        return self.query.finish(raw)


def geometric(share: Fraction) -> Plan[Any, Any]:
    return GeometricCount(query=bounds.count(ROW), epsilon=Fraction(1, 2), share=share)


# ---------------------------------------------------------------------------------- too small a sensitivity


@mutant("half-sum")
class HalfSum(Sum):
    @property
    def sensitivity(self):
        whole = super().sensitivity
        return Sensitivity(whole.l1 / 2, whole.l2_squared / 4, whole.linf / 2)


@mutant("unclamped-sum")
class UnclampedSum(Sum):
    def steps(self, rows, exponent):
        series = rows[self.column]
        with np.errstate(over="ignore"):
            scaled = np.rint(np.ldexp(series.values[series.valid], -exponent))
        return np.array([int(np.clip(scaled, -(2.0**60), 2.0**60).sum())], dtype=object)


@mutant("replace-as-add-remove")
class ReplaceAsAddRemove(Histogram):
    @property
    def sensitivity(self):
        k = Fraction(self.per_unit)
        return Sensitivity(k, k * k, k)


@mutant("unlimited-histogram")
class UnlimitedHistogram(Histogram):
    """per_unit is not enforced."""

    def steps(self, rows, exponent):
        cell, valid = recode(rows, self.column, self.categories)
        return np.bincount(cell[valid], minlength=len(self.categories)).astype(np.int64) << -exponent


@mutant("monotone-histogram")
class AlwaysMonotone(Histogram):
    @property
    def monotone(self):
        return True


# ---------------------------------------------------------------------------------- too eager a selection


@mutant("double-rate")
class DoubleRate(Exponential):
    @property
    def rate(self):
        return 2 * super().rate


@mutant("double-rate-flip")
class DoubleRateFlip(PermuteAndFlip):
    @property
    def rate(self):
        return 2 * super().rate


@mutant("double-rate-when-run")
class DoubleRateWhenRun(PermuteAndFlip):
    def _run(self, rows, run):
        scores = np.asarray(self.query.steps(rows, self._exponent), dtype=np.float64)
        return run.noise.select(scores, scale=2 * self.rate, noise=self.noise)


# ---------------------------------------------------------------------------------- too low a price


@mutant("cheap-event")
class CheapEvent(Laplace):
    @property
    def event(self):
        return events.Laplace(epsilon=self.epsilon / 2, relation=self.unit.change)


@mutant("bounded-range-flip")
class FlipAsBoundedRange(PermuteAndFlip):
    """Permute-and-flip is not bounded-range: the exponential mechanism's zCDP price is a quarter of its own."""

    @property
    def event(self):
        return events.Exponential(epsilon=self.epsilon, relation=self.unit.change)


@mutant("free-parts")
class FreeParts(Sequence):
    @property
    def event(self):
        return self.children[0].event


@mutant("wrong-relation")
class WrongRelation(Laplace):
    @property
    def event(self):
        return events.Laplace(epsilon=self.epsilon, relation="replace")


@mutant("unpriced")
class Unpriced(Laplace):
    @property
    def event(self):
        return events.Approximate(epsilon=self.epsilon, delta=Fraction(1, 10**6))


# ---------------------------------------------------------------------------------- not a value, not from run.noise


@mutant("lazy")
class Lazy(Laplace):
    def _run(self, rows, run):
        return (super(Lazy, self)._run(rows, run) for _ in range(1))


@mutant("keys-of-the-data")
class KeysOfTheData(Laplace):
    def _run(self, rows, run):
        raw = super()._run(rows, run)
        seen = self.query.steps(rows, 0)
        return {name: float(x) for name, x, n in zip(self.query.names, raw, seen, strict=True) if n}

    def finish(self, raw):
        return raw

    def error(self, raw, alpha):
        return None


@mutant("as-many-as-rows")
class AsManyAsRows(RandomizedResponse):
    """Reports only of rows that hold an answer: NULL or not is told without noise."""

    def _run(self, rows, run):
        known = recode(rows, self.column, self.categories)[1]
        return super()._run(rows, run)[known]


@mutant("global-random")
class GlobalRandom(Laplace):
    def _run(self, rows, run):
        return super()._run(rows, run) + np.random.laplace(scale=1.0)


@mutant("own-generator")
class OwnGenerator(Laplace):
    def _run(self, rows, run):
        return super()._run(rows, run) + np.random.default_rng().laplace(scale=1.0)


@mutant("no-noise")
class NoNoise(Laplace):
    def _run(self, rows, run):
        run.noise.draw(self.law, 1)
        return grid.to_float(self.query.steps(rows, self.exponent), self.exponent)


_KEPT: dict[str, Any] = {}


@mutant("same-noise-again")
class SameNoiseAgain(Laplace):
    def _run(self, rows, run):
        noise = _KEPT.setdefault(self.hash, run.noise.draw(self.law, 1))
        run.noise.draw(self.law, 1)
        return grid.to_float(self.query.steps(rows, self.exponent) + noise, self.exponent)


@mutant("sorts-the-data")
class SortsTheData(Laplace):
    def _run(self, rows, run):
        rows["x"].values.base.sort()
        return super()._run(rows, run)


# ---------------------------------------------------------------------------------- tells by how it fails


@mutant("tells-in-its-error")
class TellsInItsError(Laplace):
    def _run(self, rows, run):
        for value in rows["x"].values[rows["x"].valid]:
            if not math.isfinite(value):
                raise ValueError(f"a patient has {value}")
        return super()._run(rows, run)


@mutant("warns")
class Warns(Laplace):
    def _run(self, rows, run):
        values = rows["x"].values
        if values.size and values.max() > 1e6:
            warnings.warn(f"large value {values.max()}", stacklevel=2)
        return super()._run(rows, run)


@mutant("prints")
class Prints(Laplace):
    def _run(self, rows, run):
        print(len(rows))
        return super()._run(rows, run)


@mutant("divides-by-zero")
class DividesByZero(Laplace):
    def finish(self, raw):
        return float(raw[0]) / max(round(float(raw[0])), 0) if round(float(raw[0])) > 0 else math.nan


@mutant("goes-on-without-noise")
class GoesOnWithoutNoise(Laplace):
    def _run(self, rows, run):
        try:
            return super()._run(rows, run)
        except ValueError:
            return grid.to_float(self.query.steps(rows, self.exponent), self.exponent)


@mutant("reads-anything")
class ReadsAnything(Laplace):
    def check(self, table):
        return None


@mutant("bars-of-another-shape")
class BarsOfAnotherShape(Laplace):
    def error(self, raw, alpha):
        return {"all": 1.0}


def _sum(cls: type[Sum] = Sum, unit: Unit = ROW) -> Sum:
    return cls(column="x", lower=0, upper=10, unit=unit)


def _histogram(cls: type[Histogram], unit: Unit) -> Histogram:
    return cls(column="ward", categories=WARDS, unit=unit)


MUTANTS: list[tuple[str, str, Callable[[], Plan[Any, Any]]]] = [
    ("half the noise", "exact loss", lambda: HalfNoise(**count())),
    ("0.1 % too little noise", "exact loss", lambda: NearlyEnoughNoise(**count())),
    ("half the Gaussian noise", "exact loss", lambda: HalfGaussian(**count(), delta=1e-5)),
    ("classic Gaussian formula", "exact loss", lambda: ClassicGaussian(**count(10), delta=1e-5)),
    (
        "L-infinity for L2",
        "exact loss",
        lambda: WrongNorm(query=bounds.histogram("ward", WARDS, REPLACE), rho=0.5, delta=1e-5),
    ),
    ("half the noise when run", "sampled loss", lambda: HalfNoiseWhenRun(**count())),
    ("no noise on one coordinate", "sampled loss", lambda: BareCoordinate(**wards())),
    ("one noise for all coordinates", "sampled loss", lambda: SharedNoise(**wards())),
    ("no noise on an empty table", "sampled loss", lambda: NoNoiseOnNothing(**count())),
    ("noise that depends on the data", "sampled loss", lambda: NoiseByData(**count())),
    (
        "answers kept too often",
        "sampled loss",
        lambda: KeepsTooOften(column="ward", categories=WARDS[:2], epsilon=1, protects=REPLACE),
    ),
    ("half the noise of an unknown law", "sampled loss", lambda: geometric(Fraction(1, 2))),
    ("half the sensitivity", "sensitivity", lambda: Laplace(query=_sum(HalfSum), epsilon=1)),
    ("values not clamped", "sensitivity", lambda: Laplace(query=_sum(UnclampedSum), epsilon=1)),
    (
        "replace priced as add-remove",
        "sensitivity",
        lambda: Laplace(query=_histogram(ReplaceAsAddRemove, REPLACE), epsilon=1),
    ),
    ("per_unit not enforced", "sensitivity", lambda: Laplace(query=_histogram(UnlimitedHistogram, USER), epsilon=1)),
    (
        "not monotone under replace",
        "sensitivity",
        lambda: Exponential(query=_histogram(AlwaysMonotone, REPLACE), epsilon=1),
    ),
    ("wrong factor 2 (exponential)", "exact loss", lambda: DoubleRate(**wards(REPLACE))),
    ("wrong factor 2 (permute-and-flip)", "exact loss", lambda: DoubleRateFlip(**wards())),
    ("wrong factor 2 when run", "sampled loss", lambda: DoubleRateWhenRun(**wards())),
    ("event cheaper than the run", "exact loss", lambda: CheapEvent(**count())),
    ("permute-and-flip as bounded range", "exact loss", lambda: FlipAsBoundedRange(**wards())),
    (
        "a sequence that pays for one part",
        "sampled loss",
        lambda: FreeParts(plans={x: Laplace(**count()) for x in "abc"}),
    ),
    ("event between other neighbours", "event", lambda: WrongRelation(**count())),
    ("event that cannot be priced", "event", lambda: Unpriced(**count())),
    ("a generator", "output", lambda: Lazy(**count())),
    ("shape from the data", "odd data", lambda: KeysOfTheData(**wards())),
    (
        "length from the data",
        "shape between neighbours",
        lambda: AsManyAsRows(column="ward", categories=WARDS, epsilon=1, protects=REPLACE),
    ),
    ("numpy's global noise", "noise", lambda: GlobalRandom(**count())),
    ("a generator of its own", "noise", lambda: OwnGenerator(**count())),
    ("no noise at all", "noise", lambda: NoNoise(**count())),
    ("the same noise again", "noise", lambda: SameNoiseAgain(**count())),
    ("data changed", "output", lambda: SortsTheData(query=_sum(), epsilon=1)),
    ("error text with data", "odd data", lambda: TellsInItsError(query=_sum(), epsilon=1)),
    ("warning with data", "odd data", lambda: Warns(query=_sum(), epsilon=1)),
    ("prints", "odd data", lambda: Prints(**count())),
    ("not a number", "odd data", lambda: DividesByZero(**count())),
    ("swallows a failure of the noise", "failure", lambda: GoesOnWithoutNoise(**count())),
    ("reads whatever there is", "refusals", lambda: ReadsAnything(query=_sum(), epsilon=1)),
    ("error bars of another shape", "output", lambda: BarsOfAnotherShape(**count())),
]


@pytest.mark.parametrize(("check", "make"), [row[1:] for row in MUTANTS], ids=[row[0] for row in MUTANTS])
def test_mutant_is_caught(check: str, make: Callable[[], Plan[Any, Any]]) -> None:
    with pytest.raises(ConformanceError) as caught:
        check_plan(make())
    assert caught.value.check == check, str(caught.value)


def _unnamed() -> Plan[Any, Any]:
    class Unregistered(Laplace):
        __doc__ = _DOC

    return Unregistered(**count())


def _undocumented() -> Plan[Any, Any]:
    plan = HalfNoise(**count())
    return type("Undocumented", (type(plan),), {"__doc__": "Guarantee: some. Needs: nothing."})(**count())


@pytest.mark.parametrize(("make", "check"), [(_unnamed, "record"), (_undocumented, "docstring")])
def test_a_class_lacks_its_papers(make: Callable[[], Plan[Any, Any]], check: str) -> None:
    with pytest.raises(ConformanceError) as caught:
        check_plan(make())
    assert caught.value.check == check


def test_mutants_are_many() -> None:
    """At least 30, every one of them caught above."""
    assert len(MUTANTS) >= 30


def _highest(rows: Any) -> list[float]:
    x = rows["x"]
    return [float(np.clip(x.values[x.valid], 0, 10).max(initial=0.0))]


MANY = Laplace(query=bounds.count(ROW), epsilon=0.5)
MORE = Laplace(query=bounds.clipped_sum("x", 0, 1, ROW), epsilon=0.5)


def _adaptive(run: Any) -> dict[str, float]:
    many = run.release(MANY)
    return {"rows": many, "more": run.release(MORE) if many > 3 else 0.0}


def _declared(unit: Unit = ROW) -> bounds.Declared:
    return bounds.declared(_highest, unit, reads={"x": schema.real(0, 10)}, labels=("highest",), l1=10, l2=10, linf=10)


HONEST: dict[str, Callable[[], Plan[Any, Any]]] = {
    "count": lambda: Laplace(query=bounds.count(ROW), epsilon=1),
    "sum under zero-out": lambda: Laplace(query=bounds.clipped_sum("x", -2, 5, ZERO_OUT), epsilon=1),
    "mean under replace": lambda: Gaussian(query=bounds.mean("x", 0.1, 5, REPLACE), epsilon=1, delta=1e-5),
    "users, two rows each": lambda: Gaussian(
        query=bounds.histogram("ward", WARDS, USER, per_unit=2), multiplier=2, delta=1e-6
    ),
    "a law unknown to the audit": lambda: geometric(Fraction(1)),
    "own function": lambda: Laplace(query=_declared(), epsilon=1),
    "selection under replace": lambda: Exponential(query=bounds.votes("ward", WARDS, REPLACE), epsilon=1),
    "adaptive": lambda: reserve(_adaptive, unit=ROW, budget=Budget(epsilon=1), reads={"x": schema.real(0, 1)}),
}

MORE_HONEST: dict[str, Callable[[], Plan[Any, Any]]] = {
    "tiny epsilon": lambda: Laplace(query=bounds.clipped_sum("x", 0, 1, ROW), epsilon=Fraction(1, 10**6)),
    "groups": lambda: Laplace(query=bounds.clipped_sum("x", -2, 5, Unit(group=3)), epsilon=1),
    "groups of users": lambda: Laplace(query=bounds.count(Unit("user:id", group=2), per_unit=3), epsilon=1),
    "mean of users": lambda: Laplace(query=bounds.mean("x", 0.1, 5, Unit("user:id", "replace"), per_unit=2), epsilon=2),
    "users zeroed out": lambda: Laplace(query=bounds.mean("x", -1, 5, Unit("user:id", "zero-out")), epsilon=1),
    "flip in groups": lambda: PermuteAndFlip(
        query=bounds.votes("ward", WARDS, Unit(change="replace", group=2)), epsilon=2
    ),
    "flip of users": lambda: PermuteAndFlip(query=bounds.votes("ward", WARDS, USER), epsilon=1),
    "150 candidates": lambda: Exponential(query=bounds.votes("code", range(150), ROW), epsilon=1),
    "reports under zero-out": lambda: RandomizedResponse(column="ward", categories=WARDS, epsilon=1, protects=ZERO_OUT),
    "reports in groups": lambda: RandomizedResponse(
        column="ward", categories=WARDS, epsilon=0.5, protects=Unit(change="replace", group=2)
    ),
    "sequence": lambda: sequence(
        rows=Laplace(query=bounds.count(ROW), epsilon=1),
        total=Gaussian(query=bounds.clipped_sum("x", 0, 1, ROW), epsilon=1, delta=1e-6),
    ),
    "nested": lambda: repeat(sequence(a=Laplace(query=bounds.count(ROW), epsilon=0.5)), 2),
    "parts by the unit itself": lambda: partition("id", WARDS, Laplace(query=bounds.count(USER), epsilon=1)),
    "parts of users": lambda: partition(
        "ward", WARDS, Laplace(query=bounds.clipped_sum("x", 0, 1, Unit("user:id", "replace")), epsilon=1)
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("make", HONEST.values(), ids=HONEST)
def test_honest_plan_passes(make: Callable[[], Plan[Any, Any]]) -> None:
    report = check_plan(make())
    assert dict(report.passed)["sampled loss"]
    assert "sampled loss" in str(report)


@pytest.mark.slow
@pytest.mark.parametrize("make", MORE_HONEST.values(), ids=MORE_HONEST)
def test_other_honest_plans_pass(make: Callable[[], Plan[Any, Any]]) -> None:
    check_plan(make())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["count", "selection under replace"])
def test_honest_plan_passes_at_length(name: str) -> None:
    check_plan(HONEST[name](), quick=False)


def test_the_exact_checks_reach_the_whole_price() -> None:
    """The pairs are extreme enough: an honest plan's worst pair costs what the plan pays, to the last percent."""
    passed = dict(check_plan(Laplace(query=bounds.mean("x", 0, 7, ROW), epsilon=1)).passed)
    assert passed["sensitivity"].startswith("100 %")
    assert passed["exact loss"].startswith("100 %")


def test_the_same_plan_gets_the_same_verdict() -> None:
    plan = Laplace(query=bounds.count(ROW), epsilon=1)
    assert check_plan(plan) == check_plan(plan)


def test_a_plan_of_the_users_own_loop_is_not_run() -> None:
    names = [name for name, _ in check_plan(reserve(unit=ROW, budget=Budget(epsilon=1))).passed]
    assert names == ["docstring", "record", "event", "refusals"]


def test_anything_else_is_no_plan() -> None:
    with pytest.raises(ArgumentError, match="needs a plan"):
        check_plan(bounds.count(ROW))  # type: ignore[arg-type]


def test_reports_per_row_do_not_survive_a_partition() -> None:
    """A report per row shows how many rows a part has, and a change moves a row from part to part."""
    reports = RandomizedResponse(column="ward", categories=WARDS, epsilon=1, protects=REPLACE)
    with pytest.raises((ConformanceError, ArgumentError, PlanError)):
        check_plan(partition("sex", ("f", "m"), reports))


def test_a_plan_by_rho_alone_can_be_explained() -> None:
    check_plan(Gaussian(query=bounds.count(ROW), rho=0.5))
