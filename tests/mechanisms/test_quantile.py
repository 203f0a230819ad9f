"""Quantiles by the exponential mechanism: lemma and price on all small databases, law, odd data, utility."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from sfumato import Schema, Unit, events
from sfumato import mechanisms as m
from sfumato.errors import ArgumentError
from sfumato.mechanisms import ranking
from sfumato.mechanisms.ranking import RankedRows
from sfumato.noise import Noise, SeededBits
from sfumato.plan import Run
from sfumato.schema import key, real, whole
from sfumato.units import RELATIONS, Relation
from tests.helpers import read, seeded
from tests.mechanisms.selecting import exactly

HALF, THIRD = Fraction(1, 2), Fraction(1, 3)
RANKS = (Fraction(0), Fraction(1, 10), THIRD, HALF, Fraction(4, 5), Fraction(1))
POINTS = 5
SCHEMA = Schema.of(u=key(), x=real(0, 4))
Weighted = tuple[tuple[int, Fraction], ...]  # (point, weight) of each row


def score(rows: Weighted, q: Fraction, g: int) -> Fraction:
    """How far g is from being a q-quantile, from the definition."""
    below = sum((w for x, w in rows if x < g), Fraction(0))
    at = sum((w for x, w in rows if x == g), Fraction(0))
    wanted = q * sum((w for _, w in rows), Fraction(0))
    return -max(Fraction(0), below - wanted, wanted - below - at)


def scores(rows: Weighted, q: Fraction, points: int = POINTS) -> list[Fraction]:
    return [score(rows, q, g) for g in range(points)]


class _SeenError(Exception):
    pass


class SpyNoise:
    """Catches the race that would be run."""

    def select(self, scores: Any, *, scale: Fraction, weights: Any) -> int:
        self.scores, self.scale, self.weights = scores, scale, weights
        raise _SeenError


def race_of(ranked: RankedRows, q: Fraction, rate: Fraction) -> dict[int, Fraction]:
    """The log-odds of every point, as they would be drawn."""
    spy = SpyNoise()
    run = Run(spy)  # type: ignore[arg-type]
    with pytest.raises(_SeenError):
        ranked.choose(q, rate, run)
    odds, at = {}, 0
    for value, weight in zip(spy.scores.tolist(), spy.weights.tolist(), strict=True):
        for _ in range(weight):
            odds[at] = Fraction(value) * spy.scale
            at += 1
    return odds


def odds_of(plan: m.Quantile, rows: Any, q: Fraction = HALF) -> list[Fraction]:
    found = race_of(plan.ranked(rows), q, plan.rate(q))
    assert list(found) == list(range(plan.points))
    return list(found.values())


def law(odds: list[Fraction]) -> list[Any]:
    top = max(odds)
    weights = [mp.exp(exactly(x - top)) for x in odds]
    return [w / mp.fsum(weights) for w in weights]


def plan_for(unit: Unit, q: Any = HALF, epsilon: Any = 1, **more: Any) -> m.Quantile:
    return m.Quantile(column="x", lower=0, upper=POINTS - 1, q=q, epsilon=epsilon, protects=unit, step=1, **more)


def databases(most: int) -> Iterator[tuple[int, ...]]:
    for size in range(most + 1):
        yield from combinations_with_replacement(range(POINTS), size)


def ones(db: tuple[int, ...]) -> Weighted:
    return tuple((x, Fraction(1)) for x in db)


def neighbours(db: tuple[int, ...], change: Relation) -> Iterator[tuple[int, ...]]:
    """One row joins (leaving is the same pair turned round), or is exchanged, or becomes NULL."""
    if change != "replace":
        yield from ((*db, x) for x in range(POINTS))
        return
    for i in range(len(db)):
        yield from ((*db[:i], x, *db[i + 1 :]) for x in range(POINTS))
        yield (*db[:i], *db[i + 1 :])  # exchanged for a row that is NULL


# ------------------------------------------------------------------------------------------------ the lemma


@pytest.mark.parametrize("change", RELATIONS)
@pytest.mark.parametrize("q", RANKS, ids=str)
def test_span_holds_on_all_small_databases_and_is_reached(q: Fraction, change: Relation) -> None:
    widest = Fraction(0)
    for db in databases(4):
        here = scores(ones(db), q)
        assert max(here) == 0  # there is always a quantile
        for other in neighbours(db, change):
            moves = [b - a for a, b in zip(here, scores(ones(other), q), strict=True)]
            widest = max(widest, max(*moves, 0) - min(*moves, 0))
    assert widest <= ranking.span(q, change)
    assert widest >= ranking.span(q, change) * Fraction(9, 10) or q not in (0, HALF, 1)


def test_spans_are_those_of_the_docs() -> None:
    assert ranking.span(HALF, "add-remove") == 1
    assert ranking.span(Fraction(9, 10), "zero-out") == Fraction(9, 5)
    assert ranking.span(Fraction(1, 10), "replace") == 2
    assert {ranking.span(q, change) for q in (Fraction(0), Fraction(1)) for change in RELATIONS} == {1}


@settings(deadline=None, max_examples=300, derandomize=True)
@given(data=st.data())
def test_span_holds_for_units_of_many_weighted_rows(data: Any) -> None:
    """A unit's rows have any weights that sum to at most 1."""
    q, change = data.draw(st.sampled_from(RANKS)), data.draw(st.sampled_from(RELATIONS))
    base = ones(tuple(data.draw(st.lists(st.integers(0, POINTS - 1), max_size=5))))

    def unit() -> Weighted:
        places = data.draw(st.lists(st.integers(0, POINTS - 1), max_size=4))
        shares = data.draw(st.lists(st.integers(1, 6), min_size=len(places), max_size=len(places)))
        total = max(sum(shares), data.draw(st.integers(1, 24)))
        return tuple((x, Fraction(s, total)) for x, s in zip(places, shares, strict=True))

    before, after = (unit(), unit()) if change == "replace" else ((), unit())
    moves = [b - a for a, b in zip(scores((*base, *before), q), scores((*base, *after), q), strict=True)]
    assert max(*moves, 0) - min(*moves, 0) <= ranking.span(q, change)


# ------------------------------------------------------------------------------------------------ the code


@pytest.mark.parametrize("q", RANKS, ids=str)
def test_the_race_gives_every_point_its_score(q: Fraction) -> None:
    plan = plan_for(Unit(), q, 2)
    for db in databases(4):
        odds = odds_of(plan, read(SCHEMA, Unit(), u=list(range(len(db))), x=list(db)), q)
        rate = Fraction(2) / ranking.span(q, "add-remove")
        assert odds == [rate * s for s in scores(ones(db), q)]


def test_units_share_their_weight_over_their_rows() -> None:
    unit = Unit("user:u")
    for per_unit in (1, 2, 3):
        plan = plan_for(unit, HALF, 1, per_unit=per_unit)
        owners, places = [1, 1, 1, 2, 3, 3], [0, 1, 1, 4, 2, 2]
        odds = odds_of(plan, read(SCHEMA, unit, u=owners, x=places))
        shares = {u: Fraction(min(n, per_unit), n) for u, n in Counter(owners).items()}
        rows = tuple((x, shares[u]) for u, x in zip(owners, places, strict=True))
        want = [s / per_unit for s in scores(rows, HALF)]
        assert all(abs(a - b) < Fraction(1, 10**6) for a, b in zip(odds, want, strict=True))
        kept = plan._weights(np.array([0, 0, 0, 1, 2, 2]), 3)
        for unit_number in range(3):  # never more than per_unit whole rows
            held = kept[np.array([0, 0, 0, 1, 2, 2]) == unit_number].sum()
            assert held <= per_unit * plan._whole_row


def worst(plan: m.Quantile, q: Fraction, factor: Fraction = Fraction(1)) -> tuple[Any, Any]:
    """The largest |log-ratio| and the widest range of log-ratios over all small neighbours."""
    loss = width = mp.mpf(0)
    cache: dict[tuple[int, ...], list[Any]] = {}

    def logs(db: tuple[int, ...]) -> list[Any]:
        db = tuple(sorted(db))
        if db not in cache:
            odds = odds_of(plan, read(SCHEMA, plan.unit, u=list(range(len(db))), x=list(db)), q)
            cache[db] = [mp.log(p) for p in law([factor * x for x in odds])]
        return cache[db]

    for db in databases(3):
        for other in neighbours(db, plan.unit.change):
            ratios = [a - b for a, b in zip(logs(db), logs(other), strict=True)]
            loss, width = max(loss, *map(abs, ratios)), max(width, max(ratios) - min(ratios))
    return loss, width


@pytest.mark.parametrize("change", ["add-remove", "replace"])
@pytest.mark.parametrize("q", [Fraction(0), THIRD, HALF, Fraction(1)], ids=str)
def test_all_small_neighbours_are_within_epsilon_and_its_range(q: Fraction, change: Relation) -> None:
    with mp.workdps(30):
        for epsilon in (Fraction(1, 10), 3):
            plan = plan_for(Unit(change=change), q, epsilon)
            loss, width = worst(plan, q)
            assert max(loss, width) <= exactly(Fraction(epsilon)) + mp.mpf(10) ** -12
            # the same check sees a rate that is a tenth too high
            assert q == THIRD or worst(plan, q, Fraction(11, 10))[1] > exactly(Fraction(epsilon)) * 1.05


def test_a_span_without_the_factor_two_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    with mp.workdps(30):
        monkeypatch.setattr(ranking, "span", lambda q, change: max(q, 1 - q))
        assert worst(plan_for(Unit()), HALF)[1] > 1.5
        monkeypatch.setattr(ranking, "span", lambda q, change: 2 * max(q, 1 - q))  # of add-remove
        assert worst(plan_for(Unit(change="replace")), HALF)[1] > 1.5


USERS = [[], [0], [4], [0, 4], [2, 2, 2], [0, 0, 4], [1, 3, None], [None]]


@pytest.mark.parametrize("change", RELATIONS)
@pytest.mark.parametrize(("per_unit", "group"), [(1, 1), (2, 1), (1, 2)])
def test_user_neighbours_are_hidden(change: Relation, per_unit: int, group: int) -> None:
    unit = Unit("user:u", change, group)
    with mp.workdps(30):
        for q in (Fraction(0), THIRD, HALF):
            plan = plan_for(unit, q, 1, per_unit=per_unit)
            for before, after, rest in product(USERS, USERS, ([], [[0], [4], [4, 4]], [[1, 2, 3], [2]])):
                if change != "replace" and before:
                    continue
                if change == "zero-out":
                    before = [None] * len(after)
                logs = []
                for changing in (before, after):
                    people = [changing] * group + rest
                    u = [i for i, person in enumerate(people) for _ in person]
                    x = [cell for person in people for cell in person]
                    odds = odds_of(plan, read(SCHEMA, unit, u=u, x=x), q)
                    logs.append([mp.log(p) for p in law(odds)])
                ratios = [a - b for a, b in zip(*logs, strict=True)]
                assert max(ratios) - min(ratios) <= 1 + mp.mpf(10) ** -12
                assert max(map(abs, ratios)) <= 1 + mp.mpf(10) ** -12


def test_the_law_that_is_drawn_is_the_law_that_was_checked() -> None:
    """Points inside a gap too: each is drawn alike."""
    for unit, q, db, seed in ((Unit(), HALF, [0, 0, 4], 1), (Unit(change="replace"), Fraction(1), [1, 2, 2], 2)):
        plan, rows = plan_for(unit, q, 2), read(SCHEMA, unit, u=list(range(3)), x=db)
        run = Run(Noise(SeededBits(seed)))
        seen = np.bincount([int(plan._run(rows, run)[0]) for _ in range(4000)], minlength=POINTS)
        want = np.array([float(p) for p in law(odds_of(plan, rows, q))])
        assert chisquare(seen, want * 4000).pvalue > 1e-6
        assert chisquare(seen, np.full(POINTS, 800)).pvalue < 1e-6


def test_the_race_runs_for_the_same_words_whatever_the_values() -> None:
    def words(cells: list[float]) -> int:
        given = 0

        class Counted:
            grade = "seeded"

            def words(self, count: int) -> Any:
                nonlocal given
                given += count
                return SeededBits(3).words(count)

        plan_for(Unit())._run(read(SCHEMA, Unit(), u=list(range(9)), x=cells), Run(Noise(Counted())))
        return given

    assert words([0.0] * 9) == words([float(i % 5) for i in range(9)]) == 20


# ------------------------------------------------------------------------------------------------ utility


@pytest.mark.parametrize(
    ("q", "change"), [(HALF, "add-remove"), (Fraction(9, 10), "replace"), (Fraction(1), "zero-out")]
)
def test_the_rank_is_as_good_as_the_theorem_says(q: Fraction, change: Relation) -> None:
    values = np.sort(np.concatenate([np.geomspace(0.01, 900, 700), np.full(200, 17.0)]))
    unit = Unit(change=change)
    rows = read(Schema.of(x=real(0, 1000)), unit, x=values)
    plan = m.Quantile(column="x", lower=0, upper=1000, q=q, epsilon=1, protects=unit)
    run, target, off = Run(Noise(SeededBits(11))), float(q) * values.size, []
    for _ in range(300):
        answer = plan._run(rows, run)[0]
        low, high = np.searchsorted(values, [answer - plan.step, answer + plan.step])
        off.append(max(0.0, low - target, target - high))
    for alpha in (0.05, 0.5):
        assert np.mean(np.array(off) > plan.rank_error(alpha)) <= alpha
    assert np.median(off) > 0 or q == 1
    assert plan.rank_error(0.05) == pytest.approx(float(ranking.span(q, change)) * math.log(plan.points / 0.05))


def test_a_coarser_step_and_a_larger_epsilon_make_better_ranks() -> None:
    fine, coarse = plan_for(Unit()), m.median("x", 0, 4, Unit(), epsilon=1)
    assert fine.points == 5 and coarse.points == 2**30 + 1 and fine.rank_error(0.1) < coarse.rank_error(0.1) / 4
    assert plan_for(Unit(), epsilon=2).rank_error(0.1) == pytest.approx(fine.rank_error(0.1) / 2)
    assert plan_for(Unit(), Fraction(0)).rank_error(0.1) == pytest.approx(fine.rank_error(0.1))
    assert plan_for(Unit(), Fraction(9, 10)).rank_error(0.1) == pytest.approx(1.8 * fine.rank_error(0.1))
    assert fine.error(np.zeros(1), 0.1) is None and fine.expected_error(0.1) is None  # no bar that data would make


def test_a_million_rows_of_which_most_are_tied_have_an_answer() -> None:
    values = np.concatenate([np.full(800_000, 3.25), np.linspace(0, 1000, 200_000)])
    rows = read(Schema.of(x=real(0, 1000)), Unit(), x=values)
    plan = m.median("x", 0, 1000, Unit(), epsilon=0.1)
    assert {float(plan.finish(plan._run(rows, seeded(s)))) for s in range(2)} == {3.25}
    spread = m.Quantile(column="x", lower=0, upper=1000, q=Fraction(9, 10), epsilon=0.1, protects=Unit())
    assert abs(float(spread._run(rows, seeded())[0]) - 500) < 5


# ------------------------------------------------------------------------------------------------ several


def test_several_quantiles_share_epsilon_and_come_out_in_order() -> None:
    plan = plan_for(Unit(), (Fraction(3, 4), HALF, Fraction(1, 4)), 3)
    assert plan.event == events.Repeat(events.Exponential(epsilon=1), 3)
    assert plan.rate(HALF) == plan_for(Unit(), HALF, 1).rate(HALF)
    assert plan.finish(np.array([1.0, 3.0, 2.0])) == {0.75: 3.0, 0.5: 2.0, 0.25: 1.0}
    single = plan_for(Unit(), (HALF,), 1)
    assert single.event == events.Exponential(epsilon=1) and single.finish(np.array([2.0])) == {0.5: 2.0}
    rows = read(Schema.of(x=real(0, 4)), Unit(), x=np.linspace(0, 4, 1000))
    assert list(plan.finish(plan._run(rows, seeded())).values()) == [3.0, 2.0, 1.0]
    assert plan.rank_error(0.1) > plan_for(Unit(), Fraction(3, 4), 1).rank_error(0.1)


def test_friendly_names() -> None:
    for make, q in ((m.median, HALF), (m.minimum, Fraction(0)), (m.maximum, Fraction(1))):
        plan = make("x", 0, 4, Unit("user:u"), epsilon=1, per_unit=3, step=0.3)
        assert plan.q == q and plan.per_unit == 3 and plan.step == Fraction(1, 4)
        assert any("exponential mechanism" in line for line in plan.explain())


# ------------------------------------------------------------------------------------------------ odd data


@pytest.mark.parametrize(
    "cells",
    [
        [], [math.nan] * 4, [math.inf, -math.inf, math.nan, 1e308], [None, "x", 2], [5e-324, -0.0], [3.0] * 50,
        [-1e308] * 3,
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize(("lower", "upper"), [(0, 4), (-1e100, 1e100), (1e-99, 2e-99), (1e15, 1e15 + 2), (-3, 1e-9)])
def test_whatever_the_cells_hold_there_is_an_answer_within_the_bounds(cells: list[Any], lower: Any, upper: Any) -> None:
    rows = read(Schema.of(x=real(lower, upper)), Unit(), x=cells)
    for q in (0, 0.5, 1):
        plan = m.Quantile(column="x", lower=lower, upper=upper, q=q, epsilon=0.5, protects=Unit())
        answer = plan.finish(plan._run(rows, seeded()))
        assert lower <= answer <= upper


def test_whole_columns_of_any_width() -> None:
    for low, high, step in ((-(2**63), 2**63 - 1, None), (0, 2**53, 1), (-(2**40), 7, 1), (2**62, 2**62 + 5000, 1024)):
        rows = read(Schema.of(x=whole(low, high)), Unit(), x=[low, high, 0, 5, high - 1])
        plan = m.Quantile(column="x", lower=low, upper=high, q=0.5, epsilon=1, protects=Unit(), step=step)
        assert low <= plan.finish(plan._run(rows, seeded())) <= high


def test_values_are_rounded_to_the_step_and_clamped() -> None:
    rows = read(Schema.of(x=real(0, 4)), Unit(), x=[1.4] * 60)
    plan = plan_for(Unit(), HALF, 9)
    assert plan._run(rows, seeded()).tolist() == [1.0]
    rows = read(Schema.of(x=real(0, 4)), Unit(), x=[-7.0] * 60)
    assert plan._run(rows, seeded()).tolist() == [0.0]


# ------------------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"q": 1.5}, "q"), ({"q": -0.1}, "q"), ({"q": math.nan}, "q"), ({"q": "0.5"}, "q"), ({"q": ()}, "q"),
        ({"q": (0.5, 0.5)}, "q"), ({"q": Fraction(1, 2**21)}, "q"), ({"epsilon": 0}, "epsilon"),
        ({"epsilon": math.inf}, "epsilon"), ({"lower": 4}, "lower"), ({"upper": math.nan}, "upper"),
        ({"step": 0}, "step"), ({"step": 100}, "step"), ({"step": 1e-40}, "step"), ({"per_unit": 2}, "per_unit"),
        ({"per_unit": 0}, "per_unit"), ({"protects": "row"}, "protects"), ({"column": ""}, "column"),
        ({"q": tuple(Fraction(i, 900) for i in range(900)), "epsilon": 1e-8}, "q"),
    ],
    ids=str,
)  # fmt: skip
def test_bad_arguments_are_refused_by_name(wrong: dict[str, Any], named: str) -> None:
    good: dict[str, Any] = {"column": "x", "lower": 0, "upper": 4, "q": 0.5, "epsilon": 1, "protects": Unit()}
    with pytest.raises(ArgumentError, match=f"^{named} = "):
        m.Quantile(**{**good, **wrong})


def test_an_interval_narrower_than_floats_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"^lower = "):
        m.median("x", 10**15, 10**15 + Fraction(1, 10**6), Unit(), epsilon=1)
    with pytest.raises(ArgumentError, match=r"^per_unit = "):
        m.Quantile(
            column="x", lower=0, upper=1, q=Fraction(1, 1000), epsilon=1, protects=Unit("user:u"), per_unit=2**18
        )


@settings(deadline=None, max_examples=200, derandomize=True)
@given(
    rows=st.lists(st.tuples(st.integers(0, 8), st.integers(0, 5)), max_size=8),
    q=st.fractions(0, 1, max_denominator=7),
)
def test_any_whole_weights_give_every_point_its_score(rows: list[tuple[int, int]], q: Fraction) -> None:
    """Rows of no weight too: a unit with very many rows may have some."""
    places, weights = (np.array([row[i] for row in rows], dtype=np.int64) for i in (0, 1))
    odds = race_of(RankedRows.of(9, places, weights), q, Fraction(1, 3))
    want = scores(tuple((x, Fraction(w)) for x, w in rows), q, 9)
    assert list(odds.values()) == [s * q.denominator / 3 for s in want]
