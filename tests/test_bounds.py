"""Sensitivities against brute force: no neighbour moves a query further than it says, and some neighbour that far."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sfumato import Schema, Unit, bounds, grid, partition, repeat, sequence
from sfumato import mechanisms as m
from sfumato.bounds import Bounded
from sfumato.errors import PlanError
from sfumato.noise import Noise, SeededBits
from sfumato.plan import Run
from sfumato.rows import Rows
from sfumato.schema import category, flag, key, real, whole
from sfumato.units import RELATIONS
from tests.helpers import few, many, read, soak

INF, NAN = math.inf, math.nan
WARDS = ("a", "b", "c")
TABLE = Schema.of(user=key(), x=real(-1e100, 1e100), n=whole(-(2**63), 2**63 - 1), ward=category(WARDS), on=flag())

Row = tuple[Any, ...]  # user, x, n, ward


def rows_of(given_: list[Row], unit: Unit) -> Rows:
    user, x, n, ward = (list(column) for column in zip(*given_, strict=True)) if given_ else ([], [], [], [])
    return read(TABLE, unit, user=user, x=x, n=n, ward=ward, on=[None] * len(user))


def gap(a: Any, b: Any) -> bounds.Sensitivity:
    """The distance between two vectors of steps, exactly."""
    gaps = [abs(int(x) - int(y)) for x, y in zip(a, b, strict=True)]
    return bounds.Sensitivity(Fraction(sum(gaps)), Fraction(sum(g * g for g in gaps)), Fraction(max(gaps)))


def moved(query: Bounded, before: list[Row], after: list[Row], exponent: int) -> bounds.Sensitivity:
    return gap(*(query.steps(rows_of(rows, query.unit), exponent) for rows in (before, after)))


def assert_within(measured: bounds.Sensitivity, allowed: bounds.Sensitivity, why: Any = None) -> None:
    assert measured.l1 <= allowed.l1, why
    assert measured.l2_squared <= allowed.l2_squared, why
    assert measured.linf <= allowed.linf, why


# Random neighbours

cells = st.one_of(
    st.floats(-200, 200),
    st.sampled_from([None, NAN, INF, -INF, -0.0, 5e-324, 1e308, -1e308, "7", "n/a", 10**400, 1j, 0.5, -0.5]),
    st.integers(-(2**70), 2**70),
)
wards = st.sampled_from([*WARDS, None, "unlisted", 7, NAN])


def row(user: Any) -> st.SearchStrategy[Row]:
    return st.tuples(st.just(user), cells, cells, wards)


@st.composite
def neighbours(draw: st.DrawFn, unit: Unit) -> tuple[list[Row], list[Row]]:
    """Two tables that differ by what `unit` hides: `group` changes, one after another."""
    users = [1, 2, 3, "x"]
    before = draw(st.lists(st.sampled_from(users).flatmap(row), max_size=12))
    after = list(before)
    for _ in range(unit.group):
        change = _change_row(after, unit) if unit.column is None else _change_user(after, unit, users)
        after = draw(change)
    return before, after


@st.composite
def _change_row(draw: st.DrawFn, rows: list[Row], unit: Unit) -> list[Row]:
    if unit.change == "add-remove" and (not rows or draw(st.booleans())):
        return [*rows, draw(row(9))]
    if not rows:
        return rows
    at = draw(st.integers(0, len(rows) - 1))
    if unit.change == "add-remove":
        return rows[:at] + rows[at + 1 :]
    new = draw(row(9)) if unit.change == "replace" else (rows[at][0], None, None, None)
    return [*rows[:at], new, *rows[at + 1 :]]


@st.composite
def _change_user(draw: st.DrawFn, rows: list[Row], unit: Unit, users: list[Any]) -> list[Row]:
    who = draw(st.sampled_from([*users, 9]))
    others, own = [r for r in rows if r[0] != who], [r for r in rows if r[0] == who]
    if unit.change == "zero-out":
        return others + [(who, None, None, None)] * len(own)
    if own and unit.change == "add-remove":
        return others
    fresh = draw(st.lists(row(who), max_size=12))
    return draw(st.permutations([*others, *fresh]))


ends = st.one_of(
    st.tuples(st.fractions(-100, 100, max_denominator=1000), st.fractions(-100, 100, max_denominator=1000)),
    st.sampled_from(
        [
            (0, 1),
            (-1, 0),
            (5, 10),
            (-10, -5),
            (-100, 1),
            (-1, 100),
            (Fraction(1, 3), Fraction(2, 3)),
            (-1e100, 1e100),
            (1e-100, 2e-100),
            (-1e-90, 1e90),
            (0, 1e-100),
            (-(2**63), 2**63),
            (0.1, 0.3),
            (-0.3, -0.1),
        ]
    ),
)


@st.composite
def queries(draw: st.DrawFn, kinds: tuple[str, ...] = ("count", "sum", "mean", "histogram", "votes")) -> Bounded:
    of = draw(st.sampled_from(["row", "user:user"]))
    unit = Unit(of, draw(st.sampled_from(RELATIONS)), draw(st.integers(1, 3)))
    per_unit = draw(st.integers(1, 5)) if of != "row" else 1
    kind = draw(st.sampled_from(kinds))
    if kind == "count":
        return bounds.count(unit, per_unit=per_unit)
    if kind == "histogram":
        listed = draw(st.lists(st.sampled_from([*WARDS, "d"]), min_size=1, unique=True))
        return bounds.histogram("ward", listed, unit, per_unit=per_unit)
    if kind == "votes":
        return bounds.votes("ward", WARDS, unit)
    low, high = sorted(map(Fraction, draw(ends)))
    assume(
        low < high and (not low or abs(low) >= Fraction(1, 10**100)) and (not high or abs(high) >= Fraction(1, 10**100))
    )
    make = bounds.clipped_sum if kind == "sum" else bounds.mean
    return make(draw(st.sampled_from(["x", "n"])), low, high, unit, per_unit=per_unit)


def grids(query: Bounded, epsilon: float) -> set[int]:
    """The grids that real plans would choose for the query."""
    plans = [m.Laplace(query=query, epsilon=epsilon), m.Gaussian(query=query, epsilon=epsilon, delta=1e-6)]
    return {plan.exponent for plan in plans} | {m.Exponential(query=query, epsilon=epsilon)._exponent}


Drawn = tuple[Bounded, tuple[list[Row], list[Row]]]
cases = queries().flatmap(lambda q: st.tuples(st.just(q), neighbours(q.unit)))
budgets = st.sampled_from([1e-7, 0.01, 1, 9])


def assert_hidden(drawn: Drawn, epsilon: float) -> None:
    query, (before, after) = drawn
    for exponent in grids(query, epsilon):
        assert_within(moved(query, before, after, exponent), query.in_steps(exponent), (exponent, before, after))


@many
@given(cases, budgets)
def test_no_neighbour_moves_a_query_beyond_its_sensitivity(drawn: Drawn, epsilon: float) -> None:
    assert_hidden(drawn, epsilon)


@pytest.mark.slow
@soak
@given(cases, budgets)
def test_no_neighbour_of_thousands_moves_a_query_beyond_its_sensitivity(drawn: Drawn, epsilon: float) -> None:
    assert_hidden(drawn, epsilon)


@pytest.mark.slow
@many
@given(queries(("count", "histogram", "votes")).flatmap(lambda q: st.tuples(st.just(q), neighbours(q.unit))))
def test_a_monotone_query_moves_one_way_for_each_unit(drawn: tuple[Bounded, tuple[list[Row], list[Row]]]) -> None:
    query, (before, after) = drawn
    if not query.monotone or query.unit.group > 1:
        return
    a, b = (query.steps(rows_of(rows, query.unit), -8) for rows in (before, after))
    gaps = [int(y) - int(x) for x, y in zip(a, b, strict=True)]
    assert all(g >= 0 for g in gaps) or all(g <= 0 for g in gaps)


# The extremes: what a hostile unit would bring

UNITS = [Unit(of, change, group) for of in ("row", "user:user") for change in RELATIONS for group in (1, 3)]


def extremes(query: Bounded) -> list[list[Row]]:
    """What one unit may hold: nothing, or up to 40 equal rows."""
    values = [None, -1e300, 1e300, 0.0, float(getattr(query, "lower", 0)), float(getattr(query, "upper", 0))]
    most = 40 if query.unit.column else 1
    contents = [(v, v, w) for v in values for w in (None, "a", "b")]
    return [[], *([c] * k for c in contents for k in {1, min(5, most), most})]


def blanked(own: list[Row]) -> list[Row]:
    return [(None, None, None)] * len(own)


def partners(query: Bounded, made: list[list[Row]]) -> list[tuple[list[Row], list[Row]]]:
    """(before, after) of one unit, as the relation allows."""
    if query.unit.change == "add-remove":
        return [(own, []) for own in made]
    if query.unit.change == "zero-out":
        return [(own, blanked(own)) for own in made]
    same_size = query.unit.column is None
    return [(own, new) for own in made for new in made if len(own) == len(new) or not same_size]


SHAPES: list[tuple[str, dict[str, Any]]] = [
    ("count", {}),
    ("sum", {"lower": 0, "upper": 1}),
    ("sum", {"lower": -3, "upper": 7}),
    ("sum", {"lower": 5, "upper": 10}),
    ("sum", {"lower": -10, "upper": -5}),
    ("sum", {"lower": -1e90, "upper": 1e-90}),
    ("mean", {"lower": -3, "upper": 7}),
    ("mean", {"lower": 18, "upper": 120}),
    ("histogram", {}),
]


def make(shape: str, fields: dict[str, Any], unit: Unit, per_unit: int) -> Bounded:
    if shape == "count":
        return bounds.count(unit, per_unit=per_unit)
    if shape == "histogram":
        return bounds.histogram("ward", WARDS, unit, per_unit=per_unit)
    build = bounds.clipped_sum if shape == "sum" else bounds.mean
    return build("x", fields["lower"], fields["upper"], unit, per_unit=per_unit)


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize(("shape", "fields"), SHAPES, ids=lambda v: str(v))
def test_the_extremes_reach_the_sensitivity_and_never_pass_it(shape: str, fields: dict[str, Any], unit: Unit) -> None:
    # Rows are units: their number is public under replace and zero-out, so a count of them does not move at all.
    still = shape == "count" and unit.column is None and unit.change != "add-remove"
    # Blanking a user's rows leaves the rows there, so a count of rows does not move either.
    still |= shape == "count" and unit.change == "zero-out"
    others = [(100 + i, 2.0 * i, 2 * i, WARDS[i % 3]) for i in range(6)]
    for per_unit in (1, 2, 5) if unit.column else (1,):
        query = make(shape, fields, unit, per_unit)
        exponent = m.Laplace(query=query, epsilon=0.5).exponent
        allowed = query.in_steps(exponent)

        def steps(own: list[Row], query: Bounded = query, exponent: int = exponent) -> Any:
            group = [(who, *content) for who in range(unit.group) for content in own]
            return tuple(map(int, query.steps(rows_of(others + group, unit), exponent)))

        made = extremes(query)
        at = {id(own): steps(own) for own in made}
        farthest = Fraction(0)
        for before, after in partners(query, made):
            measured = gap(at[id(before)], at[id(after)] if id(after) in at else steps(after))
            assert_within(measured, allowed, (per_unit, before, after))
            farthest = max(farthest, measured.l1)
        if not still:
            assert farthest >= Fraction(99, 100) * allowed.l1, (per_unit, float(farthest / allowed.l1))


@pytest.mark.parametrize(
    ("lower", "upper", "epsilon", "per_unit", "group"),
    [
        (-1e6 - 1e-3, -1e6, 1e-9, 1, 1),
        (-1e6 - 1e-3, -1e6, 1e-6, 1000, 1),
        (-1e6 - 1e-3, -1e6, 1e-6, 1, 1000),
        (-273.15, -273.1499999999, 0.1, 1, 1),
        (-1 - 1e-12, -1, 1, 1, 1),
        (1e6, 1e6 + 1e-3, 1e-9, 1, 1),
    ],
)
def test_an_interval_narrower_than_a_grid_step_stays_within_its_sensitivity(
    lower: float, upper: float, epsilon: float, per_unit: int, group: int
) -> None:
    # Rounded inward the interval is empty; whatever the value then becomes, it must not lie outside the bounds.
    unit = Unit("user:user", group=group)
    query = bounds.clipped_sum("x", lower, upper, unit, per_unit=per_unit)
    plans = [m.Laplace(query=query, epsilon=epsilon), m.Gaussian(query=query, epsilon=epsilon, delta=1e-5)]
    for exponent in {plan.exponent for plan in plans}:
        own = [(who, v, 0, None) for who in range(group) for v in [lower] * per_unit]
        assert_within(moved(query, own, [], exponent), query.in_steps(exponent), exponent)


def test_heavy_users_count_no_more_than_per_unit() -> None:
    unit = Unit("user:user")
    rows = rows_of([(1, 10.0, 10, "a")] * 100_000 + [(2, 4.0, 4, "b")] * 2, unit)
    assert bounds.count(unit, per_unit=3).steps(rows, 0).tolist() == [5]
    assert bounds.clipped_sum("x", 0, 10, unit, per_unit=3).steps(rows, 0).tolist() == [38]
    assert bounds.mean("x", 0, 10, unit, per_unit=3).steps(rows, 0).tolist() == [3 * 5 + 2 * -1, 5 * 5]
    assert bounds.histogram("ward", WARDS, unit, per_unit=3).steps(rows, -4).tolist() == [48, 32, 0]
    mixed = rows_of([(1, 0, 0, "a")] * 30 + [(1, 0, 0, "b")] * 10 + [(1, 0, 0, None)] * 60, unit)
    assert bounds.histogram("ward", WARDS, unit, per_unit=4).steps(mixed, -4).tolist() == [48, 16, 0]
    assert bounds.votes("ward", WARDS, unit).steps(mixed, -20).tolist() == [3 << 18, 1 << 18, 0]


@few
@given(st.lists(st.floats(-50, 50), min_size=1, max_size=30), st.integers(1, 5))
def test_a_unit_brings_its_average_times_its_counted_rows(xs: list[float], per_unit: int) -> None:
    query = bounds.clipped_sum("x", -10, 7, Unit("user:user"), per_unit=per_unit)
    got = query.steps(rows_of([(1, x, 0, None) for x in xs], query.unit), -20)
    clipped = [min(max(Fraction(round(Fraction(x) * 2**20)), -10 * 2**20), 7 * 2**20) for x in xs]
    assert int(got[0]) == math.floor(sum(clipped) * min(len(xs), per_unit) / len(xs))


def test_empty_tables_and_empty_columns_count_nothing() -> None:
    for unit in (Unit(), Unit("user:user")):
        for rows in ([], [(None, 1.0, 1, "a")] if unit.column else []):
            table = rows_of(rows, unit)
            assert bounds.count(unit).steps(table, 0).tolist() == [0]
            assert bounds.clipped_sum("x", 1, 2, unit).steps(table, 0).tolist() == [0]
            assert bounds.mean("x", 1, 2, unit).steps(table, -3).tolist() == [0, 0]
            assert bounds.histogram("ward", WARDS, unit).steps(table, 0).tolist() == [0, 0, 0]
        nulls = rows_of([(1, None, NAN, None), (2, "n/a", None, "unlisted")], unit)
        assert bounds.clipped_sum("x", 1, 2, unit).steps(nulls, 0).tolist() == [0]
        assert bounds.mean("n", 1, 2, unit).steps(nulls, -3).tolist() == [0, 0]
        assert bounds.histogram("ward", WARDS, unit).steps(nulls, 0).tolist() == [0, 0, 0]
        assert bounds.count(unit).steps(nulls, 0).tolist() == [2]


def test_histograms_read_flags_and_other_orders_of_the_categories() -> None:
    table = Schema.of(on=flag(), ward=category(WARDS))
    rows = read(table, Unit(), on=[True, "yes", 0, None], ward=["a", "b", "c", "c"])
    assert bounds.histogram("on", [True, False], Unit()).steps(rows, 0).tolist() == [2, 1]
    assert bounds.histogram("on", [False, True], Unit()).steps(rows, 0).tolist() == [1, 2]
    assert bounds.histogram("ward", ["c", "zz", "a"], Unit()).steps(rows, 0).tolist() == [2, 0, 1]


# Zero-out: a blanked row is NULL, so nothing may stand in for NULLs


@pytest.mark.parametrize("unit", [Unit(change="zero-out"), Unit("user:user", "zero-out")], ids=str)
def test_blanking_a_unit_is_not_allowed_where_something_stands_in_for_null(unit: Unit) -> None:
    schema = Schema.of(user=key(), x=real(-100, 100, nulls=-100), ward=category(WARDS, nulls="b"), on=flag())
    plans = [
        m.Laplace(query=bounds.clipped_sum("x", -100, 100, unit), epsilon=1),
        m.Gaussian(query=bounds.mean("x", -100, 100, unit), epsilon=1, delta=1e-6),
        m.Exponential(query=bounds.votes("ward", WARDS, unit), epsilon=1),
        partition("ward", WARDS, m.Laplace(query=bounds.count(unit), epsilon=1)),
        sequence(a=m.Laplace(query=bounds.histogram("ward", WARDS, unit), epsilon=1)),
        repeat(m.Laplace(query=bounds.histogram("ward", WARDS, unit), epsilon=1), 2),
    ]
    # Why: the blanked unit would not vanish but turn into the stand-in, twice as far away.
    query = plans[0].query  # type: ignore[attr-defined]
    a, b = (query.steps(read(schema, unit, user=[1], x=[x], ward=["a"], on=[1]), 0) for x in (100.0, None))
    assert gap(a, b).l1 == 2 * query.in_steps(0).l1
    for plan in plans:
        with pytest.raises(PlanError, match="zeroed-out unit would count"):
            plan.check(schema.table())
    m.Laplace(query=bounds.histogram("on", [True], unit), epsilon=1).check(schema.table())


# Declared


def _shifted(by: Any) -> bounds.Declared:
    def fn(rows: Rows) -> Any:
        return by(rows)

    return bounds.declared(fn, Unit(), reads={}, labels=["p", "q"], l1=2, l2=1.5, linf=1)


@many
@given(
    st.integers(-12, 3),
    st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=2),
    st.sampled_from([(1.0, 1.0), (-1.0, 1.0), (0.0, 1.0), (1.0, 0.5), (-1.0, 0.0)]),
)
def test_a_declared_query_pays_for_its_own_rounding(exponent: int, at: list[float], step: tuple[float, float]) -> None:
    # Values as near to half a step as floats come: rounding may move each neighbour half a step, apart.
    half = 2.0**exponent / 2
    low = [math.floor(v / (2 * half)) * 2 * half + half * (1 - 2e-9 * s) for v, s in zip(at, step, strict=True)]
    high = [v + s for v, s in zip(low, step, strict=True)]
    query = bounds.declared(lambda rows: 0, Unit(), reads={}, labels=["p", "q"], l1=2, l2=1.5, linf=1)
    a, b = (_shifted(lambda rows, v=v: v).steps(rows_of([], Unit()), exponent) for v in (low, high))
    measured = gap(a, b)
    slack = Fraction(1, 10**6)  # low and high are themselves floats
    allowed = query.in_steps(exponent)
    assert_within(measured, bounds.Sensitivity(allowed.l1 + slack, allowed.l2_squared + slack, allowed.linf + slack))


def test_a_declared_query_scales_for_groups_and_for_rounding() -> None:
    query = bounds.declared(lambda r: 0, Unit(group=3), reads={}, labels=["p", "q"], l1=2, l2=1.5, linf=1)
    got = query.in_steps(-2)
    assert (got.l1, got.linf) == (3 * 2 * 4 + 2, 3 * 4 + 1)
    assert float(got.l2_squared) == pytest.approx((3 * 1.5 * 4 + math.sqrt(2)) ** 2)
    assert got.l2_squared >= (18 + Fraction(1414213562, 10**9)) ** 2


@pytest.mark.parametrize("odd", [NAN, INF, -INF, 1e308, -1e308, 5e-324])
def test_a_declared_query_is_finite_whatever_the_function_returns(odd: float) -> None:
    steps = _shifted(lambda rows: [odd, 1.0]).steps(rows_of([], Unit()), -30)
    assert steps.dtype == np.int64 and abs(int(steps[0])) <= 2**61 and int(steps[1]) == 2**30


# What leaves: finish, and error bars that cover


def test_finished_values_have_the_shape_that_was_asked() -> None:
    unit = Unit()
    assert bounds.count(unit).finish(np.array([3.5])) == 3.5
    assert bounds.histogram("ward", WARDS, unit).finish(np.array([1.0, 2.0, 3.0])) == {"a": 1.0, "b": 2.0, "c": 3.0}
    mean = bounds.mean("x", 10, 20, unit)
    assert mean.finish(np.array([0.0, 5.0])) == 15 and mean.finish(np.array([1.0, -5.0])) == 15
    assert mean.finish(np.array([5.0, 5.0])) == 20 and mean.finish(np.array([-500.0, 5.0])) == 10
    assert mean.error(np.array([0.0, 1.0]), 2.0) == 10
    assert 0 < mean.error(np.array([10.0, 500.0]), 2.0) < 1
    assert _shifted(None).finish(np.array([1.0, 2.0])) == {"p": 1.0, "q": 2.0}


@many
@given(
    st.floats(-1, 1), st.integers(1, 1000), st.floats(0.01, 200), st.floats(-1, 1), st.floats(-1, 1), st.floats(0.1, 50)
)
def test_the_mean_s_error_bar_holds_for_any_noise_within_the_width(
    mean: float, count: int, width: float, e: float, f: float, half: float
) -> None:
    # noise e, f within the width; the true mean is `mean` half-widths off the middle
    query = bounds.mean("x", 20 - half, 20 + half, Unit())
    true, noisy = 20 + half * mean, np.array([half * count * mean + width * e, half * count + width * f])
    assert abs(query.finish(noisy) - true) <= query.error(noisy, width) * (1 + 1e-9) + 1e-9


RUNS = 1000


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("of", ["row", "user:user"])
@pytest.mark.parametrize("shape", ["count", "sum", "mean", "histogram"])
def test_error_bars_cover_the_clipped_truth(shape: str, of: str, noise: str) -> None:
    unit = Unit(of)
    rng = np.random.default_rng(5)
    data = [(i % 60, float(v), 0, WARDS[i % 3]) for i, v in enumerate(rng.normal(40, 30, 150))]
    rows = rows_of(data, unit)
    query = make(shape, {"lower": 0, "upper": 90}, unit, 2 if unit.column else 1)
    plan: Any = (
        m.Laplace(query=query, epsilon=0.7) if noise == "laplace" else m.Gaussian(query=query, epsilon=0.7, delta=1e-5)
    )
    exact = grid.to_float(query.steps(rows, -40 if shape != "histogram" else -20), -40 if shape != "histogram" else -20)
    truth = query.finish(exact)
    run = Run(Noise(SeededBits(11)))
    hits: list[bool] = []
    for _ in range(RUNS):
        raw = plan._run(rows, run)
        value, bar = plan.finish(raw), plan.error(raw, 0.05)
        if isinstance(value, dict):
            hits.append(abs(value["b"] - truth["b"]) <= bar["b"])
        else:
            hits.append(abs(value - truth) <= bar)
    share = sum(hits) / RUNS
    assert share >= 0.95 - 4 * math.sqrt(0.95 * 0.05 / RUNS)
    if shape != "mean":  # and they are not wider than they need to be
        assert share <= 0.95 + 5 * math.sqrt(0.95 * 0.05 / RUNS)
