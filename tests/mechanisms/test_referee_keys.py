"""What a second reader tried against the selections of keys, the aggregates and what they cost."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from sfumato import Budget, Curator, MemoryLedger, Private, Schema, Unit, bounds, events, schema, tradeoff
from sfumato.accounting import price
from sfumato.accounting.group import group
from sfumato.column_kinds.block_reading import cell_by_cell, coded, keys, place_of
from sfumato.errors import BudgetError, UnsupportedEventError
from sfumato.jointly import joint
from sfumato.mechanisms import OptimalKeys, ThresholdKeys, WeightedKeys
from sfumato.rows import Rows, Series
from tests.mechanisms.keyed import ROW, USER, run, table

SELECTIONS = [
    ThresholdKeys(column="k", protects=ROW, epsilon=2, delta=1e-5),
    ThresholdKeys(column="k", protects=ROW, epsilon=2, delta=1e-5, noise="gaussian"),
    WeightedKeys(column="k", protects=ROW, epsilon=2, delta=1e-5),
]


@pytest.mark.parametrize("plan", SELECTIONS, ids=lambda plan: type(plan).__name__)
def test_two_units_that_share_a_new_key_cost_more_than_their_parts_say(plan: Any) -> None:
    """Two units bring a key that nobody else has: it shows with p, and never without them. By parts the group would
    seem to cost 2 delta, which is less."""
    shows = plan.keep_chance(2)
    by_parts = price.delta(group(events.Sequence(plan.event.events), 2), epsilon=20).upper
    assert shows > by_parts
    with pytest.raises(UnsupportedEventError, match="bundle"):
        group(plan.event, 2)
    with pytest.raises(UnsupportedEventError):
        group(events.Repeat(plan.event, 3), 2)
    assert tradeoff(plan.event).group(2)(0.0) <= 1 - shows


def test_three_units_that_share_keys_in_a_ring_are_no_two_selections_of_groups() -> None:
    """Units with keys ab, bc, ca move three coins by two units each; a group's parts would be two coins by three."""
    plan = OptimalKeys(column="k", protects=USER, epsilon=1, delta=1e-6, per_unit=2)
    with pytest.raises(UnsupportedEventError, match="bundle"):
        group(plan.event, 3)
    step = float(plan.share[0])
    assert math.tanh(3 * step / 2) < _three_coins(2 * step)  # the total variations of the two pairs


def _three_coins(size: float) -> float:
    heads = 1 / (1 + math.exp(-size))
    return sum(
        math.comb(3, k)
        * abs(heads**k * (1 - heads) ** (3 - k) - heads ** (3 - k) * (1 - heads) ** k)
        for k in range(4)
    ) / 2  # fmt: skip


@pytest.mark.parametrize("change", ["add-remove", "replace"])
@pytest.mark.parametrize(("size", "per_unit"), [(1, 3), (2, 1), (3, 2), (4, 3)])
def test_no_way_to_share_new_keys_in_a_group_shows_them_more_often(change: Any, size: int, per_unit: int) -> None:
    for noise in ("laplace", "gaussian"):
        unit = Unit("user:u", change, group=size)
        plan = ThresholdKeys(column="k", protects=unit, epsilon=1, delta=1e-4, per_unit=per_unit, noise=noise)
        hidden = [1 - Fraction(plan.keep_chance(c)) for c in range(size + 1)]
        worst = max(1 - math.prod(hidden[c] for c in shared) for shared in _ways(size * per_unit, size))
        assert worst <= plan.key_delta * (1 + Fraction(1, 10**9))
        lower = type(plan).__new__(type(plan))  # a threshold of one unit less is caught by the same test
        lower.__dict__.update(plan.__dict__, threshold_steps=plan.threshold_steps - (1 << -plan.exponent))
        hidden = [1 - Fraction(lower.keep_chance(c)) for c in range(size + 1)]
        assert max(1 - math.prod(hidden[c] for c in shared) for shared in _ways(size * per_unit, size)) > plan.key_delta


@lru_cache
def _ways(total: int, most: int) -> list[tuple[int, ...]]:
    """All ways to split so many (unit, key) pairs into keys of at most `most` units."""
    if not total:
        return [()]
    return [(c, *rest) for c in range(1, min(total, most) + 1) for rest in _ways(total - c, c)]


@pytest.mark.parametrize("change", ["add-remove", "replace", "zero-out"])
def test_no_number_of_new_keys_shows_more_often_than_the_weights_allow(change: Any) -> None:
    plan = WeightedKeys(column="k", protects=Unit("user:u", change), epsilon=1, delta=1e-4, per_unit=200)
    shown = [1 - (1 - Fraction(plan.keep_chance(1, t))) ** t for t in range(1, 201)]
    assert max(shown) <= plan.key_delta * (1 + Fraction(1, 10**9)) and max(shown) > plan.key_delta * Fraction(99, 100)


@pytest.mark.parametrize("epsilon", ["1e-9", "1e-3", "1", "40", "1e4"])
@pytest.mark.parametrize("delta", [Fraction(1, 10**100), Fraction(1, 10**6), Fraction(1, 2), 1 - Fraction(1, 10**12)])
@pytest.mark.filterwarnings("ignore:epsilon")
def test_float_chances_are_near_enough_to_settle_by(epsilon: str, delta: Fraction) -> None:
    """A draw is settled in floats where it is 2^-36 or more away."""
    plan = OptimalKeys(column="k", protects=ROW, epsilon=Fraction(epsilon), delta=delta)
    turn = plan._turn
    for n in {1, 2, 1000, 2**31, turn - 1, turn, turn + 1, turn + 2, 2 * turn, 2 * turn + 1}:
        exact = plan.chance(max(n, 0), 128)
        assert exact.hi - exact.lo <= 4
        assert abs(Fraction(exact.lo, 2**128) - Fraction(float(plan.chances(max(n, 0))))) < Fraction(1, 2**40)


def test_failures_beside_next_to_nothing_cost_the_same_as_alone() -> None:
    """(0, delta) against (1e-9, delta), in compositions that take different ways; the latter filled the memory."""
    poisson = events.Poisson(events.Gaussian(multiplier=2), Fraction(1, 10))
    part = events.Partition("c", (events.Gaussian(multiplier=2), events.Laplace(epsilon=1)))
    for rest in (events.Exponential(epsilon=1), poisson, part, events.Laplace(epsilon=Fraction(1, 2))):
        nothing, little = (
            price.epsilon(events.Sequence((rest, events.Approximate(epsilon=e, delta=1e-4))), delta=1e-3)
            for e in (0, Fraction(1, 10**9))
        )
        assert nothing.lower <= little.upper <= nothing.upper * 1.01 + 1e-3 and little.lower <= nothing.upper


def test_an_account_without_a_delta_takes_no_selection() -> None:
    plan = ThresholdKeys(column="k", protects=ROW, epsilon=1, delta=1e-6)
    for limit, taken in ((Budget(epsilon=5), False), (Budget(rho=5), False), (Budget(epsilon=5, delta=1e-5), True)):
        curator = Curator(
            Private("t", {"k": ["a"] * 90}, unit=ROW, schema=Schema.of(k=schema.key())), MemoryLedger({"t": limit})
        )
        if taken:
            assert list(curator.release(plan).value) == ["a"]
            continue
        with pytest.raises(BudgetError):
            curator.release(plan)


# Rows.

WORDS = ("12", "-5", "x", "012", " 7", "+3", "-0", "0", "9223372036854775807", "9223372036854775808", "1" * 45)
LISTS: list[tuple[Any, ...]] = [
    WORDS, (0, 1), (1, 0), (True, False), (True,), (False,), (5, 3, -7, 2**62), (-(2**63), 2**63 - 1), (3, 4, 6),
    (0, 2**20 - 1), (0, 2**20), (2**63 - 1,), ("7",), ("true", "false"), ("1", "0"),
]  # fmt: skip
CELLS: dict[Any, list[Any]] = {
    np.int8: [-128, 127, 0, 1, 5, -5, -7, 3],
    np.int64: [0, 1, -5, 12, -(2**63), 2**63 - 1, 2**62, 7, 2**20, 2**20 - 1, 4],
    np.uint64: [0, 1, 12, 2**63 - 1, 2**63, 2**64 - 1, 2**64 - 5, 2**64 - 7, 7],
    np.bool_: [True, False],
    np.float64: [0.0, 1.0, -0.0, 0.5, math.nan, math.inf, -math.inf, 12.0, -5.0, 2.0**63, -(2.0**63), 7.0],
    np.float16: [0.0, 1.0, 12.0, math.inf, math.nan],
    "U": ["a", " a", "12", "012", "-5", "true", "True", "1", "0", " 7", "7", "x", "", "nan", "-0"],
}


@pytest.mark.parametrize("kind", CELLS, ids=str)
def test_blocks_are_read_as_their_cells_are(kind: Any) -> None:
    cells = np.array(CELLS[kind], dtype=kind)
    columns = [schema.category(each) for each in LISTS] + [schema.flag()]
    for column in columns:
        values = column.categories or (False, True)
        for some in (cells, cells[::-2], cells[:0], cells.astype(cells.dtype.newbyteorder(">"))):
            codes, valid = coded(some, values)
            each, there = cell_by_cell(some.astype(object), place_of(values), np.int64)
            assert valid.tolist() == there.tolist() and codes[valid].tolist() == each[there].tolist()
    codes, valid, names = keys(cells)
    one_by_one = keys(cells.astype(object))
    labels, others = Series(codes, valid, names).label(codes[valid]), Series(*one_by_one).label(one_by_one[0][valid])
    assert list(map(repr, labels)) == list(map(repr, others)) and valid.tolist() == one_by_one[1].tolist()


def test_a_key_is_called_the_same_whatever_lies_beside_it() -> None:
    odd: list[Any] = [12, 12.0, "12", b"12", True, -0.0, "-0", None, math.nan, math.inf, 10**40, 10**4999, "\ud800"]
    odd += [b"\xff", [1], 1j, 5e-324, 2**64, Fraction(1, 3), Fraction(1, 10**5000), np.datetime64("NaT"), "x" * 10**5]
    random.Random(1).shuffle(odd)
    series = Series(*keys(np.fromiter(odd, dtype=object)))
    for place, cell in enumerate(odd):
        alone = Series(*keys(np.fromiter([cell], dtype=object)))
        assert alone.valid[0] == series.valid[place]
        if alone.valid[0]:
            assert repr(alone.label(alone.values)) == repr(series.label(series.values[place : place + 1]))
    kept = series.keep(np.arange(len(odd)) % 2 == 0)
    assert kept.label(kept.values[kept.valid]) == series.label(series.values[::2][series.valid[::2]])


@pytest.mark.parametrize("odd", ["\ud800", b"\xff"], ids=range(2))
def test_what_no_utf8_holds_is_no_key(odd: Any) -> None:
    series = Series(*keys(np.fromiter([odd, "a"], dtype=object)))
    assert series.valid.tolist() == [False, True]


@pytest.mark.parametrize("odd", [10**4999, "x" * 10**5, 2**64, 0.5, 1j, "a\x00"], ids=range(6))
def test_odd_keys_leave_and_come_back_from_the_ledger(odd: Any) -> None:
    data = {"k": [odd] * 200}
    curator = Curator(
        Private("t", data, unit=ROW, schema=Schema.of(k=schema.key())),
        MemoryLedger({"t": Budget(epsilon=9, delta=0.1)}),
    )
    for plan in SELECTIONS:
        first = curator.release(plan).value
        assert len(first) == 1 and repr(curator.release(plan).value) == repr(first)


def test_which_keys_a_unit_brings_is_uniform_and_does_not_depend_on_others() -> None:
    plan = ThresholdKeys(column="k", protects=USER, epsilon=1, delta=1e-5, per_unit=2)
    rows = table(USER, "abcd", "abcd", *["a"] * 3)
    seen: dict[tuple[Any, ...], int] = {}
    times = 3600
    for seed in range(times):
        units, codes = plan._held(rows, run(seed))
        chosen = tuple(tuple(sorted(codes[units == unit].tolist())) for unit in (0, 1))
        seen[chosen] = seen.get(chosen, 0) + 1
    pairs = list(combinations(range(4), 2))
    assert set(seen) == {(a, b) for a in pairs for b in pairs}
    expected = times / 36
    assert sum((count - expected) ** 2 / expected for count in seen.values()) < 85  # 35 degrees of freedom: p < 1e-5


# Aggregates.


@pytest.mark.parametrize("columns", [2, 3])
def test_no_two_rows_move_a_covariance_further_apart(columns: int) -> None:
    """Climbing from many places, with either row also shrunk towards being absent."""
    names = {f"c{i}": (0, 1) for i in range(columns)}
    bound = bounds.covariance(names, Unit(change="replace")).sensitivity
    draw = np.random.default_rng(5)

    def row(y: Any) -> Any:
        return np.concatenate([[1], y, [y[i] * y[j] for i, j in combinations(range(columns), 2)], y * y - 0.5])

    def climb(norm: Any) -> float:
        at = np.append(draw.uniform(-1, 1, 2 * columns), draw.choice([1.0, draw.uniform()]))
        best, step = 0.0, 0.5
        while step > 1e-6:
            moves = [np.clip(at + s * e, [-1] * 2 * columns + [0], 1) for e in np.eye(at.size) for s in (step, -step)]
            found = [norm(row(m[:columns]) - m[-1] * row(m[columns:-1])) for m in moves]
            top = int(np.argmax(found))
            at, best, step = (moves[top], found[top], step) if found[top] > best + 1e-12 else (at, best, step / 2)
        return best

    l1, l2 = (max(climb(norm) for _ in range(12)) for norm in (lambda d: abs(d).sum(), lambda d: (d * d).sum()))
    assert 0.999 * float(bound.l1) < l1 <= float(bound.l1) * (1 + 1e-9)
    assert 0.999 * float(bound.l2_squared) < l2 <= float(bound.l2_squared) * (1 + 1e-9)


POOL = [-math.inf, math.inf, math.nan, None, 0, 5e-324, 1e308, -1e308, -3, 7, 2.0000001, 1 / 3, 1e-30, 99, -7]
TABLE = Schema.of(u=schema.key(), x=schema.real(-1e100, 1e100), y=schema.real(-1e100, 1e100), f=schema.flag()).table()


@pytest.mark.parametrize("seed", range(12))
def test_no_neighbours_move_an_aggregate_by_more_than_it_says(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(6):
        change, size, per_unit = draw.choice(["add-remove", "replace", "zero-out"]), draw.choice([1, 2]), 2**18
        unit = Unit("user:u", change, group=size)  # type: ignore[arg-type]
        per_unit = draw.choice([1, 3, per_unit])
        ends = draw.choice([(-3, 7), (-1e100, 1e100), (2, 3), (-5, -4), (1e99, 1.0000001e99), (0, 1e-90)])
        queries: list[Any] = [
            bounds.variance("x", *ends, unit, per_unit=per_unit),
            bounds.covariance({"x": ends, "y": (-1, 12)}, unit, per_unit=per_unit),
            bounds.vector_mean(["x", "y"], draw.choice([2, 1e-90, 1e100]), unit, per_unit=per_unit),
            bounds.ratio(("x", *ends), ("y", 3, 4), unit, per_unit=per_unit),
            bounds.count_where(unit, {"x": (0, None), "f": [True]}, per_unit=per_unit),
        ]
        one, two = _neighbours(draw, unit)
        for query in queries:
            exponent = draw.choice([-42, -20, 0])
            moved = [
                int(a) - int(b) for a, b in zip(query.steps(one, exponent), query.steps(two, exponent), strict=True)
            ]
            most = query.in_steps(exponent)
            assert sum(map(abs, moved)) <= most.l1 and max(map(abs, moved)) <= most.linf
            assert sum(each**2 for each in moved) <= most.l2_squared


def _neighbours(draw: random.Random, unit: Unit) -> tuple[Rows, Rows]:
    def some() -> list[tuple[Any, ...]]:
        return [
            (draw.choice([*POOL, draw.uniform(-4, 8)]), draw.choice([*POOL, 3.5]), draw.choice([True, None]))
            for _ in range(draw.choice([1, 2, 7]))
        ]

    others = [some() for _ in range(draw.choice([0, 2]))]
    olds = [some() for _ in range(unit.group)]
    news = [some() if unit.change == "replace" else [(None,) * 3] if unit.change == "zero-out" else [] for _ in olds]
    tables = []
    for changed in (olds, news):
        rows = [(f"u{i}", *row) for i, held in enumerate([*others, *changed]) for row in held]
        columns = {name: [row[i] for row in rows] for i, name in enumerate("uxyf")}
        tables.append(Rows.read(TABLE, columns, unit))
    return tables[0], tables[1]


def test_a_joint_plan_never_takes_more_than_the_budget() -> None:
    draw = random.Random(9)
    unit = Unit("user:u", "replace")
    for _ in range(60):
        ratio = bounds.ratio(("x", -3, 7), ("y", 0, 10), unit)
        made = [bounds.count(unit, per_unit=5), bounds.variance("x", -3, 7, unit), ratio]
        queries = {f"q{i}": draw.choice(made) for i in range(draw.randint(1, 5))}
        accuracy = {name: 10.0 ** draw.uniform(-3, 9) for name in queries}
        asked: dict[str, Any] = {"accuracy": accuracy, "spend": draw.choice(["all", "least"])}
        epsilon, rho = draw.choice([Fraction(1, 1000), Fraction(1, 3), Fraction(7)]), Fraction(1, 7)
        parts: list[Any] = list(joint(queries, epsilon=epsilon, **asked).event.events)  # type: ignore[attr-defined]
        assert sum(part.epsilon for part in parts) <= epsilon
        parts = list(joint(queries, rho=rho, **asked).event.events)  # type: ignore[attr-defined]
        assert sum(1 / (2 * part.multiplier**2) for part in parts) <= rho
        both = joint(queries, epsilon=epsilon, delta=Fraction(1, 10**6), **asked)
        assert both.delta <= Fraction(1, 10**6) and both.price() <= epsilon * (1 + Fraction(1, 10**9))
