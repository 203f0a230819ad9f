"""Attacks N1-N5 on the arithmetic before the noise. Each has a control that the attack does break."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato import Budget, Curator, MemoryLedger, Private, Schema, Unit, bounds
from sfumato import mechanisms as m
from sfumato.bounds import Bounded
from sfumato.errors import ArgumentError
from sfumato.rows import Rows
from sfumato.schema import category, key, real, whole
from tests.helpers import read, seeded

INF, NAN = math.inf, math.nan
ROW, USER = Unit(), Unit("user:u")


def real_rows(values: Any, unit: Unit = ROW, users: Any = None) -> Rows:
    users = np.arange(len(values)) if users is None else users
    return read(Schema.of(u=key(), x=real(-1e50, 1e50)), unit, x=values, u=users)


def steps(query: Bounded, rows: Rows, exponent: int) -> list[int]:
    return list(map(int, query.steps(rows, exponent)))


# N1: repeated rounding (Casacuberta et al. 2022)


def rounding_attack(half: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Ones, then values that vanish beside the sum of the ones but not beside one less."""
    tiny = 4.66e-10 if half == 2**22 else 2.0**-53 * half * 1.0000001
    table = np.concatenate([np.ones(half), np.full(half, tiny)])
    return table, table[1:]


def in_order(values: np.ndarray[Any, Any]) -> float:
    return float(np.cumsum(values)[-1])


@pytest.mark.parametrize("half", [2**18, pytest.param(2**22, marks=pytest.mark.slow)])
def test_n1_a_sum_moves_by_no_more_than_its_sensitivity_in_any_order(half: int) -> None:
    table, neighbour = rounding_attack(half)
    query = bounds.clipped_sum("x", 0, 1, ROW)
    rng = np.random.default_rng(1)
    for plan in (m.Laplace(query=query, epsilon=0.1), m.Gaussian(query=query, epsilon=1, delta=1e-9)):
        allowed = query.in_steps(plan.exponent).l1
        (first,), (second,) = (steps(query, real_rows(rows), plan.exponent) for rows in (table, neighbour))
        assert abs(first - second) <= allowed
        for _ in range(20 if half <= 2**18 else 3):
            assert steps(query, real_rows(rng.permutation(table)), plan.exponent) == [first]
            assert steps(query, real_rows(rng.permutation(neighbour)), plan.exponent) == [second]
    # by user: the same rows, a hundred to a user
    by_user = bounds.clipped_sum("x", 0, 1, USER, per_unit=100)
    users = np.arange(len(table)) // 100
    exponent = m.Laplace(query=by_user, epsilon=0.1).exponent
    (whole_,), (less,) = (
        steps(by_user, real_rows(table[keep], USER, users[keep]), exponent) for keep in (users >= 0, users > 0)
    )
    assert abs(whole_ - less) <= by_user.in_steps(exponent).l1


@pytest.mark.parametrize("half", [2**18, pytest.param(2**22, marks=pytest.mark.slow)])
def test_n1_control_a_running_float_sum_moves_further(half: int) -> None:
    table, neighbour = rounding_attack(half)
    assert abs(in_order(table) - in_order(neighbour)) > 1
    # In float32 two rows' worth: bounds [0, 256], and 1.0001 counts as 2 beside 2^24, as 1 just below it.
    wide = np.concatenate([np.full(2**16, 256), np.full(2**10, 1.0001)]).astype(np.float32)
    assert abs(in_order(wide) - in_order(wide[1:])) > 256


# N2: integer overflow


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64])
def test_n2_integer_sums_never_wrap(kind: type[Any]) -> None:
    top, low = int(np.iinfo(kind).max), int(np.iinfo(kind).min)
    table = np.array([top] * 5 + [low] * 2 + [1], dtype=kind)
    for lower, upper in ((min(low, 0), top), (-1, 1), (0, min(top, 2**63 - 1))):
        if lower >= upper:
            continue
        for column in (whole(max(lower, -(2**63)), min(upper, 2**63 - 1)), real(lower, upper)):
            schema = Schema.of(x=column)
            query = bounds.clipped_sum("x", lower, upper, ROW)
            exponent = m.Laplace(query=query, epsilon=1).exponent
            allowed = query.in_steps(exponent).l1
            (all_,) = steps(query, read(schema, ROW, x=table), exponent)
            exact = sum(min(max(int(v), lower, int(column.lower)), upper, int(column.upper)) for v in table)
            rounding = len(table) * Fraction(2) ** max(exponent, -1) + Fraction(abs(exact), 2**50)
            assert abs(Fraction(all_) * Fraction(2) ** exponent - exact) <= rounding
            for i in range(len(table)):
                (less,) = steps(query, read(schema, ROW, x=np.delete(table, i)), exponent)
                assert abs(all_ - less) <= allowed
    with np.errstate(over="ignore"):  # the control wraps
        assert int(np.sum(np.array([top, 1], dtype=kind), dtype=kind)) == low


def test_n2_sums_beyond_int64_are_still_exact() -> None:
    rows = read(Schema.of(x=whole(-(2**63), 2**63 - 1)), ROW, x=[2**63 - 1] * 3 + [2**64, "1" * 30])
    query = bounds.clipped_sum("x", 0, 2**42, ROW)
    assert steps(query, rows, -20) == [5 << 62]
    assert query.steps(rows, -20).dtype == object  # Python's own integers
    raw = m.Laplace(query=query, epsilon=1e-3)._run(rows, seeded())
    assert raw.dtype == np.float64 and math.isfinite(raw[0]) and abs(raw[0] - 5 * 2.0**42) < 2**42 * 1e3 * 60


# N3: order


@pytest.mark.parametrize("unit", [ROW, USER], ids=str)
def test_n3_the_same_rows_in_any_order_give_the_same_steps(unit: Unit) -> None:
    rng = np.random.default_rng(3)
    schema = Schema.of(u=key(), x=real(-100, 100), w=category(["a", "b", "c"]))
    cells: list[Any] = [*rng.normal(0, 60, 300).tolist(), NAN, INF, -INF, None, 0.1, 1e-300, "3.5", -0.0]
    table = [(i % 23, cell, "abcd"[i % 4]) for i, cell in enumerate(cells)]
    per_unit = 3 if unit.column else 1
    queries = [
        bounds.count(unit, per_unit=per_unit),
        bounds.clipped_sum("x", -50, 70, unit, per_unit=per_unit),
        bounds.mean("x", -50, 70, unit, per_unit=per_unit),
        bounds.histogram("w", ["a", "b", "c"], unit, per_unit=per_unit),
    ]
    seen: set[tuple[Any, ...]] = set()
    for _ in range(50):
        u, x, w = zip(*(table[i] for i in rng.permutation(len(table))), strict=True)
        rows = read(schema, unit, u=list(u), x=list(x), w=list(w))
        seen.add(tuple(tuple(steps(q, rows, m.Laplace(query=q, epsilon=0.3).exponent)) for q in queries))
    assert len(seen) == 1
    # control: plain float sums differ by order
    plain = [c for c in cells if isinstance(c, float) and abs(c) < 1e9]
    assert len({sum(np.array(plain)[rng.permutation(len(plain))].tolist()) for _ in range(50)}) > 1


def test_n3_control_a_float32_running_sum_stops_growing() -> None:
    assert np.float32(2**24) + np.float32(1) == np.float32(2**24)
    query = bounds.clipped_sum("x", 0, 1, ROW)
    ones = real_rows(np.ones(2**18, dtype=np.float32))
    assert steps(query, ones, -30) == [2**18 << 30]


# N4: poison

POISON: list[Any] = [
    NAN,
    INF,
    -INF,
    -0.0,
    5e-324,
    -5e-324,
    None,
    1e308,
    "nan",
    "inf",
    "SECRET",
    1j,
    b"\xff",
    10**400,
    object(),
]


def plans_on(unit: Unit) -> list[Any]:
    per_unit = 2 if unit.column else 1
    queries = [
        bounds.count(unit, per_unit=per_unit),
        bounds.clipped_sum("x", -3, 10, unit, per_unit=per_unit),
        bounds.clipped_sum("n", -3, 10, unit, per_unit=per_unit),
        bounds.mean("x", -3, 10, unit, per_unit=per_unit),
        bounds.mean("n", -3, 10, unit, per_unit=per_unit),
        bounds.histogram("w", ["a", "b"], unit, per_unit=per_unit),
    ]
    made: list[Any] = [m.Laplace(query=q, epsilon=1) for q in queries]
    made += [m.Gaussian(query=q, epsilon=1, delta=1e-6) for q in queries]
    return made


@pytest.mark.parametrize("poison", POISON, ids=lambda p: repr(p)[:20])
@pytest.mark.parametrize("unit", [Unit(), Unit(change="replace"), USER, Unit("user:u", "replace")], ids=str)
def test_n4_one_poisoned_row_moves_no_query_further_than_any_row(poison: Any, unit: Unit) -> None:
    schema = Schema.of(u=key(), x=real(-3, 10), n=whole(-3, 10), w=category(["a", "b"]))
    clean = {"u": [1, 1, 2, 3], "x": [1.0, 2.5, -1.0, 9.0], "n": [1, 2, 3, 4], "w": ["a", "b", "a", "b"]}
    bad = {**{name: [*values, poison] for name, values in clean.items()}, "u": [*clean["u"], 4]}
    good = {name: [*values, more] for (name, values), more in zip(clean.items(), (4, 1.0, 1, "a"), strict=True)}
    base = good if unit.change == "replace" else clean
    for plan in plans_on(unit):
        with np.errstate(all="raise"):
            before, after = (plan.query.steps(read(schema, unit, **rows), plan.exponent) for rows in (base, bad))
        gaps = [abs(int(a) - int(b)) for a, b in zip(before, after, strict=True)]
        allowed = plan.query.in_steps(plan.exponent)
        assert sum(gaps) <= allowed.l1 and sum(g * g for g in gaps) <= allowed.l2_squared and max(gaps) <= allowed.linf
        raw = plan._run(read(schema, unit, **bad), seeded())
        assert np.isfinite(raw).all()
        value, bar = plan.finish(raw), plan.error(raw, 0.05)
        for number in (*(value.values() if isinstance(value, dict) else [value]),):
            assert math.isfinite(number)
        for number in (*(bar.values() if isinstance(bar, dict) else [bar]),):
            assert math.isfinite(number)


def test_n4_a_poisoned_unit_is_nobody_or_one_body_and_raises_nothing() -> None:
    schema = Schema.of(u=key(), x=real(-3, 10))
    for poison in POISON:
        rows = read(schema, USER, u=[1, 1, 2, poison], x=[1.0, 2.0, 3.0, 10.0])
        got = steps(bounds.clipped_sum("x", -3, 10, USER), rows, 0)
        assert got in ([4], [14])  # nobody's row is dropped, somebody's counts once


def test_n4_poison_passes_the_curator_with_the_same_shape_and_charge() -> None:
    schema = Schema.of(u=key(), x=real(0, 10), w=category(["a", "b"]), unit="u")
    shapes = set()
    for poison in [1.0, *POISON]:
        ledger = MemoryLedger({"d": Budget(epsilon=10)})
        private = Private("d", {"u": [1, 2], "x": [1.0, poison], "w": ["a", poison]}, unit=USER, schema=schema)
        released = [Curator(private, ledger).release(p) for p in plans_on(USER)[:1] + plans_on(USER)[5:6]]
        shapes.add((tuple(r.raw.shape for r in released), tuple(type(r.value) for r in released), ledger.left("d")))
    assert len(shapes) == 1


def test_n4_control_numpy_is_poisoned() -> None:
    with np.errstate(invalid="ignore"):
        assert math.isnan(np.clip(np.array([NAN]), 0, 1)[0]) and math.isnan(np.sum([INF, -INF]))


# N5: bad parameters


@pytest.mark.parametrize("bad", [0, -1, NAN, INF, 1e-320, "1"])
def test_n5_bad_parameters_are_refused_before_anything_happens(bad: Any) -> None:
    for make in (
        lambda: m.Laplace(query=bounds.count(ROW), epsilon=bad),
        lambda: m.Gaussian(query=bounds.count(ROW), epsilon=bad, delta=1e-6),
        lambda: m.Gaussian(query=bounds.count(ROW), epsilon=1, delta=bad),
        lambda: m.Gaussian(query=bounds.count(ROW), multiplier=bad),
        lambda: bounds.clipped_sum("x", 0, bad if bad not in (0, -1) else NAN, ROW),
        lambda: bounds.clipped_sum("x", 1, bad, ROW),
        lambda: Budget(epsilon=bad),
        lambda: Budget(epsilon=1, delta=bad if bad != 0 else 1),
    ):
        with pytest.raises(ArgumentError):
            make()
