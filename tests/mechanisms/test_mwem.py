"""MWEM: the exact chance of whole transcripts on neighbouring tables, and how good its answers are."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from sfumato import Schema, Unit, bounds, events, record
from sfumato import mechanisms as m
from sfumato.accounting import pure, zcdp
from sfumato.errors import ArgumentError
from sfumato.mechanisms import MWEM
from sfumato.mechanisms.synthetic import Synthetic, far_off
from sfumato.schema import category, key
from sfumato.strategies import Cells, Listed, Prefixes, Ranges
from sfumato.units import RELATIONS
from tests.helpers import read, seeded

NAMES = ("a", "b", "c")
SCHEMA = Schema.of(u=key(), w=category(NAMES))
ASKED = Listed.of([[1, 1, 0], [0, 1, 1], [1, 0, -0.5], [0.25, 0, 1]])


def plan_for(unit: Unit = Unit(), **fields: Any) -> MWEM:  # noqa: B008
    given: dict[str, Any] = {"rounds": 2, "epsilon": 1, "passes": 3} | fields
    if given.get("rho") is not None:
        given.pop("epsilon")
    per_unit = given.pop("per_unit", 1)
    return MWEM(query=bounds.histogram("w", NAMES, unit, per_unit=per_unit), workload=ASKED, **given)


def rows_of(unit: Unit, people: list[tuple[Any, ...]]) -> Any:
    return read(
        SCHEMA,
        unit,
        u=[f"u{i}" for i, person in enumerate(people) for _ in person],
        w=[cell for person in people for cell in person],
    )


def log_chance(plan: MWEM, rows: Any, raw: dict[str, Any]) -> Any:
    """ln P(raw) from the definition: selections proportional to exp(rate * score), then noise by its law."""
    cells = plan.query.steps(rows, plan.exponent + plan.bits).astype(object)
    truth = plan._whole.astype(object) @ cells
    chance = mp.mpf(0)
    if plan.total is None:
        noisy = int(np.rint(np.ldexp(raw["total"], -plan.exponent)))
        chance += log_mass(plan._total_law, noisy - int(plan._ones[0].astype(object) @ cells))
    made = Synthetic(3, raw.get("total", plan.total), plan.passes)
    for place, value in zip(raw["picked"], raw["values"], strict=True):
        scores = far_off(truth, plan._weights @ made.cells, plan.exponent)
        logits = [mp.mpf(int(s)) * plan.rate.numerator / plan.rate.denominator for s in scores]
        chance += logits[place] - mp.log(mp.fsum(mp.exp(x) for x in logits))
        noisy = int(np.rint(np.ldexp(value, -plan.exponent)))
        chance += log_mass(plan.law, noisy - int(truth[place]))
        made.learn(plan._weights[place], float(value))
    return chance


def log_mass(law: Any, k: int) -> Any:
    """Of a rounded law, with enough digits for its tails."""
    k = abs(k)
    if hasattr(law, "scale"):
        s = mp.mpf(law.scale)
        return mp.log(-mp.expm1(-1 / (2 * s))) if k == 0 else -k / s + mp.log(mp.sinh(1 / (2 * s)))
    s = mp.mpf(law.sigma) * mp.sqrt(2)
    return mp.log((mp.erfc((k - mp.mpf(0.5)) / s) - mp.erfc((k + mp.mpf(0.5)) / s)) / 2)


def pairs(unit: Unit) -> list[tuple[Any, Any]]:
    base: list[tuple[Any, ...]] = [("a",), ("a",), ("b",), ("c",)]
    people: list[tuple[Any, ...]] = [("a",), ("b",), ("c",)]
    if unit.column is not None:
        people += [("a",) * 5, ("c",) * 4, ("a", "b", "c")]
    if unit.change == "add-remove":
        changes = [((), person) for person in people]
    elif unit.change == "replace":
        changes = [(one, other) for one in people for other in [*people, (None,)] if one != other]
    else:
        changes = [((None,) * len(person), person) for person in people]
    group = unit.group
    return [
        (rows_of(unit, [one] * group + more), rows_of(unit, [other] * group + more))
        for one, other in changes
        for more in (([], base) if unit.column else ([], base, base * 5))
    ]


def worst_loss(plan: MWEM, seeds: range = range(4)) -> float:
    """The largest |ln P/P'| over neighbours and transcripts: those drawn, and what an attacker hopes to see."""
    worst = mp.mpf(0)
    with mp.workdps(40):
        for one, other in pairs(plan.unit):
            drawn = [plan._run(rows, seeded(seed)) for rows in (one, other) for seed in seeds]
            for raw in (*drawn, *hoped_for(plan)):
                worst = max(worst, abs(log_chance(plan, one, raw) - log_chance(plan, other, raw)))
    return float(worst)


def hoped_for(plan: MWEM) -> list[dict[str, Any]]:
    """Every sequence of picks, with values far out, where the noise tells most."""
    far = math.ldexp(float(2 ** math.ceil(math.log2(60 * plan.law.spread))), plan.exponent)
    found = []
    for first in range(ASKED.answers):
        for sign in (-1, 1):
            raw: dict[str, Any] = {
                "picked": np.full(plan.rounds, first, dtype=np.int64),
                "values": np.full(plan.rounds, sign * far),
            }
            found.append(raw if plan.total is not None else raw | {"total": sign * far})
    return found


UNITS = [
    Unit(),
    Unit(change="replace"),
    Unit(change="zero-out"),
    Unit("user:u"),
    Unit("user:u", change="replace"),
    Unit(group=3),
]


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_no_transcript_tells_neighbours_apart_by_more_than_epsilon(unit: Unit) -> None:
    plan = plan_for(unit, per_unit=2 if unit.column else 1)
    assert pure.epsilon(plan.event) == 1
    loss = worst_loss(plan)
    assert loss <= 1 + 1e-9
    assert loss >= 0.35  # tests that cannot fail show nothing


def test_the_selection_is_tight_and_knows_that_scores_move_both_ways() -> None:
    """A row goes from a cell that is underestimated to another one: one score falls, the other rises."""
    unit = Unit(change="replace")
    plan = MWEM(query=bounds.histogram("w", NAMES, unit), workload=Cells(cells=3), rounds=1, epsilon=1, total=3)
    logits = []
    for a, b in ((5, 5), (4, 6)):
        cells = plan.query.steps(rows_of(unit, [("a",)] * a + [("b",)] * b), plan.exponent)
        scores = far_off(plan._whole @ cells, plan._weights @ Synthetic(3, 3.0, 1).cells, plan.exponent)
        logits.append([Fraction(int(score)) * plan.rate for score in scores])
    change = [x - y for x, y in zip(*logits, strict=True)]
    assert max(change) - min(change) == plan.selection_epsilon == Fraction(1, 2)


def test_a_public_total_costs_nothing() -> None:
    plan = plan_for(Unit(change="replace"), total=10)
    assert plan.event == events.Sequence(
        (
            events.Repeat(events.Exponential(epsilon=Fraction(1, 4), relation="replace"), 2),
            events.Repeat(events.Laplace(epsilon=Fraction(1, 4), relation="replace"), 2),
        )
    )
    assert 0.4 <= worst_loss(plan) <= 1 + 1e-9


@record.record("test-mwem-loud/1")
@dataclass(frozen=True, kw_only=True)
class Loud(MWEM):
    """Guarantee: none. Half the noise on measurements."""

    @property
    def law(self) -> Any:  # type: ignore[override]
        return self._law(self._reach(self._whole) / 2)


@record.record("test-mwem-keen/1")
@dataclass(frozen=True, kw_only=True)
class Keen(MWEM):
    """Guarantee: none. The selection forgets that scores are not monotone, and more."""

    @property
    def rate(self) -> Any:  # type: ignore[override]
        return 4 * self.selection_epsilon / self._reach(self._whole)


@record.record("test-mwem-careless/1")
@dataclass(frozen=True, kw_only=True)
class Careless(MWEM):
    """Guarantee: none. The weights count as if none were above one half."""

    def _reach(self, weights: Any, exponent: Any = None) -> Fraction:
        return super()._reach(weights, exponent) / 2


@pytest.mark.parametrize("mutant", [Loud, Keen, Careless])
def test_mutants_are_caught_by_the_same_check(mutant: Any) -> None:
    plan = plan_for(Unit(), rounds=1)
    fields = {name: getattr(plan, name) for name in ("query", "workload", "rounds", "epsilon", "passes")}
    assert worst_loss(plan) <= 1 + 1e-9
    assert worst_loss(mutant(**fields)) > 1.05


def test_rho_is_the_sum_of_equal_parts() -> None:
    plan = plan_for(rho=0.5, rounds=3)
    total = zcdp.rho(plan.event)
    assert Fraction(1, 2) * (1 - Fraction(1, 10**12)) <= total <= Fraction(1, 2)
    assert plan.selection_epsilon**2 / 8 <= Fraction(1, 14)
    picked, noisy = plan.event.events  # type: ignore[attr-defined]
    assert (picked.times, noisy.times) == (3, 4) and isinstance(noisy.event, events.Gaussian)


def test_the_renyi_divergence_of_a_round_stays_under_rho() -> None:
    """One round with a public total: the exact divergence of order 2 over all picks; the noise adds (D/sigma)^2/2."""
    plan = plan_for(Unit(change="replace"), rho=0.2, rounds=1, total=8)
    part = 0.1
    for one, other in pairs(plan.unit):
        laws = []
        for rows in (one, other):
            cells = plan.query.steps(rows, plan.exponent + plan.bits)
            made = Synthetic(3, 8.0, 1)
            scores = far_off(plan._whole @ cells, plan._weights @ made.cells, plan.exponent)
            logits = scores.astype(float) * float(plan.rate)
            laws.append(np.exp(logits - np.log(np.exp(logits).sum())))
        for order in (1.01, 2, 8, 50):
            divergence = math.log(float(np.sum(laws[0] ** order * laws[1] ** (1 - order)))) / (order - 1)
            assert divergence <= order * part + 1e-12


def test_finish_makes_everything_from_what_left() -> None:
    plan, rows = plan_for(rounds=3), rows_of(Unit(), [("a",)] * 50 + [("b",)] * 8)
    raw = plan._run(rows, seeded())
    assert set(raw) == {"total", "picked", "values"} and raw["values"].shape == (3,)
    parsed = record.parse(record.canonical(raw))
    told = plan.finish(parsed)
    assert told == plan.finish(raw)
    assert list(told) == ["cells", "answers"] and list(told["cells"]) == list(NAMES)
    cells = np.array(list(told["cells"].values()))
    assert cells.sum() == pytest.approx(max(raw["total"], 1)) and np.all(cells >= 0)
    np.testing.assert_allclose(list(told["answers"].values()), ASKED.matrix @ cells)
    assert plan.error(raw, 0.05) is None and plan.expected_error(0.05) is None


def skewed(cells: int, rows: int, seed: int = 1) -> Any:
    chance = np.exp(-np.arange(cells) / 3.0)
    return np.random.default_rng(seed).choice(cells, size=rows, p=chance / chance.sum())


def test_it_beats_noise_on_every_query_and_keeps_the_bound_of_the_paper() -> None:
    """64 cells, 600 queries, 20,000 rows. Theorem 2.2: with chance 1 - 2T/|Q| the largest error is at most
    2 n sqrt(ln |D| / T) + 10 T ln |Q| / epsilon."""
    cells, n, rounds, epsilon = 64, 20_000, 12, 0.5
    names = tuple(range(cells))
    column = skewed(cells, n)
    rows = read(Schema.of(w=category(names)), Unit(), w=column)
    truth = np.bincount(column, minlength=cells)
    asked = Listed.of(np.random.default_rng(2).integers(0, 2, size=(600, cells)))
    query = bounds.histogram("w", names, Unit())
    plan = MWEM(query=query, workload=asked, rounds=rounds, epsilon=epsilon)
    wanted = asked.matrix @ truth
    off = [np.abs(asked.answer(plan.histogram(plan._run(rows, seeded(seed)))) - wanted) for seed in range(4)]
    paper = 2 * n * math.sqrt(math.log(cells) / rounds) + 10 * rounds * math.log(600) / epsilon
    assert max(each.max() for each in off) <= paper
    laplace = np.abs(asked.matrix).sum(axis=0).max() / epsilon  # the mean error of one Laplace draw is its scale
    assert np.mean(off) < laplace / 2
    uniform = np.abs(asked.matrix @ np.full(cells, n / cells) - wanted).mean()
    assert np.mean(off) < uniform / 5


def test_sharing_rows_out_over_cells_loses_nothing_to_speak_of() -> None:
    unit = Unit("user:u")
    rows = rows_of(unit, [("a", "b", "c")] * 3000)
    plan = plan_for(unit, epsilon=5)
    cells = np.ldexp(plan.query.steps(rows, plan.exponent + plan.bits).astype(float), plan.exponent + plan.bits)
    np.testing.assert_allclose(cells, 1000, atol=0.01)


@pytest.mark.parametrize("change", RELATIONS)
def test_odd_data_is_answered(change: Any) -> None:
    unit = Unit(change=change)
    for people in ([], [(None,)], [("a",)], [("a",)] * 300):
        for plan in (plan_for(unit, epsilon=1e-6), plan_for(unit, rho=1e-12), plan_for(unit, rounds=1, epsilon=9)):
            raw = plan._run(rows_of(unit, people), seeded())
            assert all(math.isfinite(x) for x in plan.finish(raw)["answers"].values())


def test_one_cell_ranges_and_heavy_weights() -> None:
    rows = rows_of(Unit(), [("a",)] * 9)
    one = MWEM(query=bounds.histogram("w", ["a"], Unit()), workload=Cells(cells=1), rounds=1, epsilon=5)
    assert math.isfinite(one.finish(one._run(rows, seeded()))["cells"]["a"])
    heavy = MWEM(
        query=bounds.histogram("w", NAMES, Unit()), workload=Listed.of([[1000, -3, 1 / 3]]), rounds=2, epsilon=1
    )
    assert heavy.bits == 16 and heavy._reach(heavy._whole) == Fraction(1000) / Fraction(2) ** heavy.exponent
    assert math.isfinite(heavy.finish(heavy._run(rows, seeded()))["cells"]["a"])
    ranges = MWEM(query=bounds.histogram("w", NAMES, Unit()), workload=Ranges(cells=3), rounds=2, epsilon=1)
    assert "b to c" in ranges.finish(ranges._run(rows, seeded()))["answers"]
    assert "rounds" not in " ".join(ranges.explain()) and "2 times" in ranges.explain()[1]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"query": bounds.clipped_sum("x", 0, 1, Unit())}, "query"),
        ({"workload": Prefixes(cells=4)}, "workload"),
        ({"workload": "prefixes"}, "workload"),
        ({"workload": Listed.of([[1e-9, 0, 0]])}, "weights"),
        ({"rounds": 0}, "rounds"),
        ({"rounds": 10**4}, "rounds"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": None}, "one way"),
        ({"rho": 1}, "one way"),
        ({"epsilon": 1e-9}, "epsilon"),
        ({"total": 5}, "total"),
        ({"passes": 0}, "passes"),
        ({"delta": 1}, "delta"),
    ],
)
def test_nonsense_is_refused_at_birth(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        replace(plan_for(), **fields)


def test_the_histogram_learns_and_stays_a_histogram() -> None:
    made = Synthetic(3, 30.0, 20)
    for _ in range(5):
        made.learn(np.array([1.0, 0, 0]), 24.0)
        made.learn(np.array([0, 2.0, 0]), 8.0)
    np.testing.assert_allclose(made.cells, [24, 4, 2], atol=0.2)
    wild = Synthetic(2, -5.0, 3)
    for value in (1e300, -1e300, 0.0):
        wild.learn(np.array([1.0, -1.0]), value)
    wild.learn(np.zeros(2), 1.0)
    assert wild.cells.sum() == pytest.approx(1) and np.all(np.isfinite(wild.cells))


def test_the_other_mechanisms_take_the_same_workload() -> None:
    """For few cells the matrix mechanism is the better choice; see the docs."""
    query = bounds.workload(bounds.histogram("w", NAMES, Unit()), ASKED, noise="laplace")
    assert m.Laplace(query=query, epsilon=1).expected_error(0.05) is not None
