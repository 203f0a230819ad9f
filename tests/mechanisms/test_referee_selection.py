"""A second opinion on selections, quantiles, bounds, medians and vector noise: attacks that the other tests leave out.

Everything is computed here from definitions, through whole plans where that is possible: users with many rows and
NULLs, all relations, groups, words at both ends of the uniform, data made to be slow, and extreme public arguments.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement as multisets
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from sfumato import Schema, Unit, bounds
from sfumato import mechanisms as m
from sfumato.errors import ArgumentError
from sfumato.mechanisms import local_sensitivity, ranking
from sfumato.mechanisms.local_sensitivity import Around, around_median, distance, smooth
from sfumato.noise import Noise, SeededBits, race
from sfumato.plan import Run
from sfumato.rows import Rows
from sfumato.schema import category, key, real, whole
from sfumato.units import RELATIONS, Relation
from tests.helpers import read, seeded
from tests.mechanisms.selecting import exactly

WARDS = ("a", "b", "c")
SCHEMA = Schema.of(u=key(), x=real(-9, 9), w=category(WARDS), t=whole(0, 9))
Row = tuple[Any, Any, Any]
User = tuple[Row, ...]


def table(users: Any, unit: Unit) -> Rows:
    listed = [(i, *row) for i, user in enumerate(users) for row in user]
    columns = {name: np.empty(len(listed), dtype=object) for name in ("u", "x", "w", "t")}
    for place, row in enumerate(listed):
        for column, value in zip(columns.values(), row, strict=True):
            column[place] = value
    return read(SCHEMA, unit, **columns)


def blank(user: User) -> User:
    return ((None, None, None),) * len(user)


# ------------------------------------------------------------------------------------------------ quantiles

RANKS = (Fraction(0), Fraction(1, 3), Fraction(1, 2), Fraction(9, 10), Fraction(1))
KINDS: tuple[User, ...] = tuple(
    tuple((x, None, None) for x in values)
    for values in ((0,), (1,), (3,), (None,), (0, 3), (3, 3), (0, None), (None, None), (0, 1, 3))
)


class Lots:
    """Takes the races that would be run, and lets the first candidate win."""

    def __init__(self) -> None:
        self.races: list[np.ndarray[Any, Any]] = []

    def select(self, scores: Any, *, scale: Fraction, weights: Any) -> int:
        odds = np.repeat(scores * float(scale), weights)
        self.races.append(odds - odds.max() - math.log(np.exp(odds - odds.max()).sum()))
        return int(np.flatnonzero(weights)[0])

    def integers(self, below: int, count: int) -> Any:
        return np.zeros(count, dtype=np.int64)


def user_neighbours(change: Relation, group: int) -> Iterator[tuple[tuple[User, ...], tuple[User, ...]]]:
    for rest in multisets(KINDS, 1):
        if change == "replace":
            for gone in multisets(KINDS, group):
                for come in multisets(KINDS, group) if group == 1 else [KINDS[:2], KINDS[2:4], KINDS[5:7]]:
                    yield rest + gone, rest + tuple(come)
        elif change == "zero-out":
            for gone in multisets(KINDS, group):
                yield rest + gone, rest + tuple(map(blank, gone))
        else:
            for one in KINDS:
                yield rest, (*rest, one)
                if group == 2:
                    yield from ((rest, (*rest, one, other)) for other in KINDS[::3])
                    yield from (((*rest, one), (*rest, other)) for other in KINDS[::2])  # one comes and one goes


def widest_ranges(change: Relation, group: int, per_unit: int) -> list[float]:
    """Of the log-ratios of each of five quantiles' probabilities, over epsilon, through the whole plan."""
    unit = Unit("user:u", change, group)
    plan = m.Quantile(column="x", lower=0, upper=3, q=RANKS, epsilon=5, protects=unit, per_unit=per_unit, step=1)
    known: dict[Any, list[Any]] = {}
    for pair in user_neighbours(change, group):
        for users in pair:
            if users not in known:
                lots = Lots()
                plan._run(table(users, unit), Run(lots))  # type: ignore[arg-type]
                known[users] = lots.races
    widest = [0.0] * len(RANKS)
    for left, right in user_neighbours(change, group):
        for place, (p, q) in enumerate(zip(known[left], known[right], strict=True)):
            assert p.size == q.size == 4
            widest[place] = max(widest[place], float(np.ptp(p - q)))
    return widest


@pytest.mark.parametrize("change", RELATIONS)
@pytest.mark.parametrize(("group", "per_unit"), [(1, 1), (1, 2), (2, 1)])
def test_quantiles_of_users_with_many_rows_and_nulls(change: Relation, group: int, per_unit: int) -> None:
    found = widest_ranges(change, group, per_unit)
    assert max(found) <= 1 + 1e-9
    if group == per_unit == 1:
        assert found[0] > 1 - 1e-6 and found[2] > 1 - 1e-6 and found[4] > 1 - 1e-6  # a full row's weight is reached


def test_a_span_that_is_too_short_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "span", lambda q, change: Fraction(1))
    assert widest_ranges("replace", 1, 1)[2] > 1.5


# ------------------------------------------------------------------------------------------------ selections


def crowd(rng: random.Random) -> User:
    return tuple(
        (
            rng.choice([None, 0, 0.3, -0.3, 1, 5, -9, 9, math.inf]),
            rng.choice([*WARDS, None]),
            rng.choice([0, 1, 2, 3, None]),
        )
        for _ in range(rng.choice([1, 1, 2, 3, 5]))
    )


@pytest.mark.parametrize("change", RELATIONS)
def test_scores_move_within_the_span_for_every_query(change: Relation) -> None:
    """`monotone` halves the span: also for a group, of which some come while others go."""
    rng, widest = random.Random(3), {}
    for group, per_unit in ((1, 1), (1, 3), (2, 1), (2, 2)):
        unit = Unit("user:u", change, group)
        histogram = bounds.histogram("w", WARDS, unit, per_unit=per_unit)
        queries = [
            histogram,
            bounds.Powers(column="x", lowest=-2, highest=3, unit=unit, per_unit=per_unit),
            bounds.increments("t", 4, unit, per_unit=per_unit, separation=2),
            bounds.cumulative(histogram),
            bounds.share(histogram, 7),
            bounds.mean("x", -2, 5, unit, per_unit=per_unit),
        ]
        plans = [m.Exponential(query=query, epsilon=1) for query in queries]
        for _ in range(40):
            left = [crowd(rng) for _ in range(rng.choice([0, 1, 3]))]
            right = list(left)
            for _ in range(group):
                one = crowd(rng)
                if change == "add-remove":
                    rng.choice([left, right]).append(one)
                else:
                    left.append(one)
                    right.append(crowd(rng) if change == "replace" else blank(one))
            before, after = table(left, unit), table(right, unit)
            for plan in plans:
                moves = np.append(plan._scores(before) - plan._scores(after), 0)
                name = type(plan.query).__name__
                widest[name] = max(widest.get(name, 0.0), float(np.ptp(moves) / plan.span))
    assert max(widest.values()) <= 1
    assert widest["Histogram"] == widest["Powers"] == 1


class FirstWords:
    """The first call gives the words of a script, later ones whatever comes."""

    grade = "seeded"

    def __init__(self, first: list[int], rng: random.Random) -> None:
        self._first: list[int] | None = first
        self._rng = rng

    def words(self, count: int) -> Any:
        words = self._first or [self._rng.getrandbits(64) for _ in range(count)]
        self._first = None
        assert len(words) == count
        return np.array(words, dtype=np.uint64)


def a_word(rng: random.Random) -> int:
    edges = (0, 1, 2**24 - 1, 2**24, 2**64 - 2**34 - 1, 2**64 - 2**34, 2**64 - 1)
    deep, high = rng.getrandbits(rng.randint(1, 30)), 2**64 - 1 - rng.getrandbits(rng.randint(1, 40))
    return rng.choice([*[rng.getrandbits(64)] * 8, deep, high, rng.choice(edges)])


def ends_of_total(shift: Fraction, weight: int, word: int, kind: race.Kind) -> tuple[Any, Any]:
    """Between which totals a candidate lies, whatever the further bits of its uniform."""
    if not weight:
        return -mp.inf, -mp.inf
    size = [-mp.log(mp.mpf(n) / 2**64) if n else mp.inf for n in (word + 1, word)]  # of the exponential variable
    if kind == "exponential":
        noise = size
    else:
        noise = [-mp.log(e) if 0 < e < mp.inf else (mp.inf if e == 0 else -mp.inf) for e in reversed(size)]
    base = exactly(shift) + mp.log(weight)
    return base + noise[0], base + noise[1]


def test_no_race_is_decided_against_its_words() -> None:
    """Scores up to 2^53, weights up to 2^60, words at the ends, near ties: nobody is named who is certainly behind."""
    rng = random.Random(5)
    with mp.workprec(300):
        for _ in range(700):
            size, kind = rng.randint(1, 6), rng.choice(race.KINDS)
            words = [a_word(rng) for _ in range(size)]
            scale = rng.choice([Fraction(1, 3), Fraction(10**4), Fraction(1, 10**12), Fraction(7, 2**31)])
            top = rng.choice([1, 1000, 2**53])
            scores = [float(rng.choice([0, rng.randint(-top, top), -(2**53)])) for _ in range(size)]
            weights = [1] * size
            if kind == "gumbel" and rng.random() < 0.4:
                weights = [1, *(rng.choice([0, 1, 2**60, rng.getrandbits(59)]) for _ in range(size - 1))]
            if size > 1 and weights[1] and all(2 <= word < 2**64 - 2 for word in words[:2]) and rng.random() < 0.5:
                ahead, behind = (ends_of_total(Fraction(0), weights[i], words[i], kind)[0] for i in (0, 1))
                tie = float((ahead - behind) / exactly(scale)) + scores[0]
                scores[1] = tie if abs(tie) <= 2**53 else scores[1]
            best = max(s for s, w in zip(scores, weights, strict=True) if w)
            parts = zip(scores, weights, words, strict=True)
            ends = [ends_of_total((Fraction(s) - Fraction(best)) * scale, w, n, kind) for s, w, n in parts]
            bits: Any = FirstWords(words, rng)
            if kind == "gumbel" and set(weights) == {1} and rng.random() < 0.7:
                named = race.top(np.array(scores), rng.randint(1, size), scale, bits)
            else:
                lots = np.array(weights, dtype=np.int64) if kind == "gumbel" else None
                named = [race.select(np.array(scores), scale, kind, bits, lots)]
            assert len(set(named)) == len(named) and all(weights[i] for i in named)
            for place, winner in enumerate(named):
                left = set(range(size)) - set(named[: place + 1])
                assert all(ends[other][0] <= ends[winner][1] for other in left)


def test_with_value_is_yes_or_no() -> None:
    votes = bounds.votes("w", WARDS, Unit())
    with pytest.raises(ArgumentError, match="with_value"):
        m.report_noisy_max(query=votes, epsilon=1, with_value="no")  # type: ignore[call-overload]


# ------------------------------------------------------------------------------------------------ bounds


def test_bounds_fail_and_bars_miss_no_more_often_than_they_say() -> None:
    rng, run = np.random.default_rng(1), Run(Noise(SeededBits(3)))
    schema = Schema.of(x=real(-1e9, 1e9))
    for count, epsilon in ((60, 2), (3000, 0.2)):
        plan = m.private_bounds("x", Unit(), epsilon=epsilon, failure=0.05)
        values = np.exp(rng.normal(0, 4, count)) * rng.choice([-1, 1], count)
        rows = read(schema, Unit(), x=values)
        true, wide, missed, times = plan.query.steps(rows, 0), 0, 0, 150
        for _ in range(times):
            raw = plan._run(rows, run)
            said, bar = plan.finish(raw), plan.error(raw, 0.1)
            inside = (values > said["lower"]) & (values <= said["upper"])
            inside |= (values == said["lower"]) if said["lower"] < 0 else False
            wide += bool(((raw > plan.threshold) & (true == 0)).any())
            missed += abs(1 - inside.mean() - said["clipped"]) > bar["clipped"] + 1e-9
        assert wide <= 0.05 * times + 4 * math.sqrt(0.05 * times)
        assert missed <= 0.1 * times


# ------------------------------------------------------------------------------------------------ medians


def test_data_made_of_near_ties_is_settled_quickly_and_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values that grow as e^(beta k) make every k nearly the best. To look at all of them one by one would take n^2
    steps, and the time taken would tell."""
    n, looked = 3000, 0
    beta, top = Fraction(44, n), 2**32
    high = (top * np.exp(-float(beta) * np.arange(n // 2, 0, -1))).astype(np.int64)
    around = around_median(np.append(np.zeros(n - n // 2, dtype=np.int64), high), 0, top)
    original = local_sensitivity._Table.at

    def counted(self: Any, rows: Any, columns: Any) -> Any:
        nonlocal looked
        found = original(self, rows, columns)
        looked += found.size
        return found

    def never(self: Around, k: int) -> int:
        raise AssertionError("A_k was computed from its definition")

    with monkeypatch.context() as patch:
        patch.setattr(local_sensitivity._Table, "at", counted)
        patch.setattr(Around, "gap", never)
        enclosed = smooth(around, beta).enclose(128)
    assert looked <= 40 * n
    gaps = [(k, around.gap(k)) for k in range(n)]
    with mp.workprec(300):
        rate = exactly(beta)
        best = max(mp.exp(-rate * k) * gap for k, gap in gaps)
        assert enclosed.lo <= best * 2**128 <= enclosed.hi


@pytest.mark.parametrize(
    ("epsilon", "delta", "bound"),
    [(2, Fraction(1, 10), Fraction(1, 3)), (1, Fraction(9, 10), 1), (4, Fraction(1, 10**6), 1)],
)
def test_propose_test_release_between_all_small_neighbours(epsilon: int, delta: Fraction, bound: Any) -> None:
    """The hockey-stick of the whole release, where values lie just within and just beyond the bound of each other."""
    unit = Unit(change="replace")
    plan = m.ProposeTestRelease(column="x", lower=0, upper=3, bound=bound, epsilon=epsilon, delta=delta, protects=unit)
    (low, high), steps = plan._ends, plan._steps
    assert steps * 2.0**plan.exponent <= bound
    outcomes = np.arange(low, high + 1)
    places = sorted({0, steps, steps + 1, high // 2, high})

    def law(values: tuple[int, ...]) -> Any:
        around = around_median(np.array(values), low, high)
        chance = float(plan.test_law.sf(plan.threshold - distance(around, steps)))
        noisy = plan.law.pmf(outcomes - around.median)
        noisy[0], noisy[-1] = plan.law.cdf(low - around.median), plan.law.sf(high - 1 - around.median)
        return np.append(noisy * chance, 1 - chance)

    worst = 0.0
    for n in (1, 2, 3, 4):
        laws = {values: law(values) for values in multisets(places, n)}
        for rest in multisets(places, n - 1):
            near = [laws[tuple(sorted((*rest, one)))] for one in places]
            worst = max(worst, *(float(np.maximum(p - math.exp(epsilon) * q, 0).sum()) for p in near for q in near))
    assert float(delta) / 20 < worst <= float(delta) * (1 + 1e-9)


def test_a_bound_that_is_too_wide_is_told_by_name() -> None:
    for bound in (1, 2, 1000):
        with pytest.raises(ArgumentError, match=r"^bound"):
            m.ProposeTestRelease(
                column="x", lower=0, upper=1, bound=bound, epsilon=1, delta=1e-6, protects=Unit(change="replace")
            )


# ------------------------------------------------------------------------------------------------ extremes


@pytest.mark.filterwarnings("ignore::sfumato.errors.PrivacyWarning")
def test_counts_of_two_billion_rows_fit_the_grid() -> None:
    """Many cells at a huge epsilon ask for so fine a grid that counts in its steps would leave int64 and wrap."""
    unit = Unit()
    for count in (2**10, 2**20):
        query = bounds.bins_between("x", 0, 1, count, unit)
        for kind in (m.LInfinityNoise, m.L2Noise):
            for epsilon in (1, 10**4):
                try:
                    plan = kind(query=query, epsilon=epsilon)
                except ArgumentError:
                    assert count * epsilon > 2**30
                else:
                    assert 2**31 << -plan.exponent < 2**62
    with pytest.raises(ArgumentError, match="grid"):
        m.LInfinityNoise(query=query, epsilon=10**4)


ODD: dict[str, list[Any]] = {
    "nothing": [],
    "odd": [math.nan, None, math.inf, -math.inf, 5e-324, 2**63, -(2**70), "7", "x", b"\xff", True, 1e308, {}, [1]],
    "tied": [0.0] * 7,
}


def makers(unit: Unit) -> Iterator[Any]:
    for low, high in ((0, 1), (-1e100, 1e100), (-3, -1), (2e-100, 1e100), (1e15, 1e15 + 1)):
        span = {"column": "x", "lower": low, "upper": high, "protects": unit}
        yield lambda e, span=span: m.Quantile(**span, q=[0, Fraction(1, 3), 1], epsilon=3 * e)
        if unit.change == "replace":
            yield lambda e, span=span: m.SmoothMedian(**span, epsilon=e, shape=32)
            bound = (Fraction(high) - Fraction(low)) / 1000
            yield lambda e, span=span, bound=bound: m.ProposeTestRelease(
                **span, epsilon=e, bound=bound, delta=Fraction(1, 10**100)
            )
        mean = bounds.mean("x", low, high, unit)
        yield lambda e, mean=mean: m.TopK(query=mean, epsilon=2 * e, k=2)
        yield lambda e, mean=mean: m.NoisyMaxWithValue(query=mean, epsilon=2 * e)
        yield lambda e, mean=mean: m.L2Noise(query=mean, epsilon=e)
        yield lambda e, mean=mean: m.LInfinityNoise(query=mean, epsilon=e)
    yield lambda e: m.private_bounds("x", unit, epsilon=e, lowest=-300, highest=300, failure=1e-100)


@pytest.mark.filterwarnings("ignore::sfumato.errors.PrivacyWarning")
@pytest.mark.parametrize("unit", [Unit(), Unit("user:u", "replace"), Unit("user:u", "zero-out", 10**6)], ids=str)
def test_whatever_is_born_answers_in_one_shape(unit: Unit) -> None:
    """A plan is refused at birth, or answers all data alike: no error, no warning, no other shape, nothing infinite."""
    schema = Schema.of(u=key(), x=real(-1e100, 1e100))
    tables = []
    for values in ODD.values():
        cells = np.empty(len(values), dtype=object)
        for place, value in enumerate(values):
            cells[place] = value
        tables.append(read(schema, unit, u=np.arange(len(values)) // 3, x=cells))
    born = 0
    for make in makers(unit):
        for epsilon in (Fraction(1, 10**9), 1, 3000):
            try:
                plan = make(epsilon)
            except ArgumentError:
                continue
            born += 1
            shapes = set()
            for rows in tables:
                raw = plan._run(rows, seeded())
                said = plan.finish(raw)
                plan.error(raw, 0.05)
                values = list(said.values()) if isinstance(said, dict) else said if isinstance(said, list) else [said]
                assert all(math.isfinite(v) for v in values if isinstance(v, float))
                shapes.add((np.shape(raw), len(values)))
            assert len(shapes) == 1, plan
    assert born > 50
