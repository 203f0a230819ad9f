"""What a referee of the privacy proofs found broken once, each with the smallest case that shows it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato import Schema, Unit, events, sources
from sfumato.noise import Noise, SeededBits
from sfumato.plan import Run
from sfumato.query import Limits, running, sql
from sfumato.query.plan import Sql
from sfumato.schema import Table, key, real, whole

USER = Unit("user:u")


def opened(schema: Schema, **data: Any) -> Any:
    return sources.connect({name: (schema.table(name), sources.source(each)) for name, each in data.items()}, threads=1)


def moved(plan: Sql, connection: Any) -> Fraction:
    """How much of its limit the one unit in the data uses, over all sums together (L1)."""
    design = plan.fixed
    assert design is not None and design.blur.kind == "laplace"
    (row,) = connection.run(running._sums(plan.front, design).statement).to_pylist()
    total = sum((each.share for each in design.sums), Fraction(0))
    sizes = [abs(int(row[f"s{i}"])) * Fraction(2) ** (each.exponent - each.bits) for i, each in enumerate(design.sums)]
    return sum(
        (each.share / total * size / each.reach for each, size in zip(design.sums, sizes, strict=True)), Fraction(0)
    )


def test_a_full_join_may_leave_two_rows_to_one_unit() -> None:
    schema = Schema({
        "a": Table({"u": key(), "x": real(0, 10)}, unit="u"),
        "b": Table({"u": key(), "y": real(0, 10)}, unit="u"),
    })  # fmt: skip
    text = (
        "SELECT COUNT(*) AS n FROM (SELECT u, MAX(x) AS x FROM a GROUP BY u) AS a FULL JOIN "
        "(SELECT u, MAX(y) AS y FROM b GROUP BY u) AS b ON a.u = b.u AND a.x > b.y"
    )
    plan = sql(text, schema, unit=USER, epsilon=1, limits=Limits(rows=1))
    with opened(
        schema, a={"u": np.array([1]), "x": np.array([1.0])}, b={"u": np.array([1]), "y": np.array([5.0])}
    ) as c:
        assert 0.999 < moved(plan, c) <= 1


@pytest.mark.parametrize("upper", [0.3, 0.7, 1 / 3, 10.1, 0.9999, 123.456, 7.77])
@pytest.mark.parametrize("epsilon", [0.7, 1, 2.3])
def test_a_row_that_is_a_unit_is_not_rounded_beyond_its_bound(upper: float, epsilon: float) -> None:
    schema = Schema({"v": Table({"x": real(0, upper)})})
    plan = sql("SELECT SUM(x) AS s FROM v", schema, unit=Unit("row"), epsilon=epsilon)
    with opened(schema, v={"x": np.array([upper])}) as c:
        assert 0.999 < moved(plan, c) <= 1


@pytest.mark.parametrize("cell", [0, 5, 2**62, 2**63 - 1, -(2**63)])
@pytest.mark.parametrize("bounds", [(-(2**63), 2**63 - 1), (2**62, 2**63 - 1)])
def test_no_whole_number_is_too_large_to_be_cast(cell: int, bounds: tuple[int, int]) -> None:
    schema = Schema({"v": Table({"u": key(), "x": whole(-(2**63), 2**63 - 1)}, unit="u")})
    limits = Limits(rows=1, reach={"s": 1000})
    plan = sql("SELECT SUM(x) AS s FROM v", schema, unit=USER, epsilon=1, bounds={"s": bounds}, limits=limits)
    with opened(schema, v={"u": np.array([1]), "x": np.array([cell])}) as c:
        assert moved(plan, c) <= 1


@pytest.mark.parametrize("cell", [0.0, 1e-10, 1.0, 1e6])
@pytest.mark.parametrize("bounds", [(0, 10**6), (10**5, 10**6), (-(10**6), -(10**5))])
def test_no_real_number_is_too_large_to_be_cast_where_a_limit_is_tiny(cell: float, bounds: tuple[int, int]) -> None:
    schema = Schema({"v": Table({"u": key(), "x": real(-1e6, 1e6)}, unit="u")})
    limits = Limits(rows=1, reach={"s": 1e-9})
    plan = sql("SELECT SUM(x) AS s FROM v", schema, unit=USER, epsilon=1, bounds={"s": bounds}, limits=limits)
    with opened(schema, v={"u": np.array([1]), "x": np.array([cell])}) as c:
        assert moved(plan, c) <= 1


def released(plan: Sql, connection: Any, seed: int) -> dict[str, Any]:
    return plan._run(connection, Run(Noise(SeededBits(seed))))


@pytest.mark.parametrize("more", [{"delta": 1e-6}, {}])
def test_the_adviser_may_find_sums_of_large_whole_numbers(more: dict[str, Any]) -> None:
    """A failure here comes after the price was paid, and tells about the data."""
    schema = Schema({"v": Table({"u": key(), "cents": whole(0, 10**8)}, unit="u")})
    plan = sql("SELECT SUM(cents) AS s, AVG(cents) AS m FROM v", schema, unit=USER, epsilon=1, **more)
    rng = np.random.default_rng(1)
    rows = {"u": rng.integers(0, 2000, 100_000), "cents": rng.integers(0, 10**8, 100_000)}
    with opened(schema, v=rows) as c:
        answer = plan.finish(released(plan, c, 1))
    assert answer["s"][0] == pytest.approx(rows["cents"].sum(), rel=0.5)
    assert answer["m"][0] == pytest.approx(rows["cents"].mean(), rel=0.1)


def test_sums_of_large_whole_numbers_keep_their_limits() -> None:
    schema = Schema({"v": Table({"u": key(), "x": whole(-(10**12), 10**12)}, unit="u")})
    plan = sql("SELECT SUM(x) AS s FROM v", schema, unit=USER, epsilon=1, limits=Limits(rows=100))
    for cells in ([10**12] * 100, [10**12] * 101, [-(10**12)] * 3000, [123456789012]):
        with opened(schema, v={"u": np.ones(len(cells)), "x": np.array(cells)}) as c:
            assert moved(plan, c) <= 1
    assert (
        plan.fixed is not None and plan.fixed.sums[0].exponent > 0
    )  # rounded: counted in 10^12s of ones no noise is drawn


def test_limits_of_noise_that_cannot_be_drawn_are_refused_before_anything_is_paid() -> None:
    schema = Schema({"v": Table({"u": key(), "x": real(0, 1)}, unit="u")})
    group = Unit("user:u", "add-remove", 10**6)
    with pytest.raises(ValueError, match=r"scale|noise"):
        sql("SELECT AVG(x) AS m FROM v", schema, unit=group, epsilon=1e-9)


def test_weak_noise_is_no_large_epsilon() -> None:
    """The multiplier of Gaussian noise was checked as if it were an epsilon: small budgets were refused."""
    schema = Schema({"v": Table({"u": key(), "x": real(0, 1)}, unit="u")})
    for epsilon in (0.05, 1e-4):
        plan = sql(
            "SELECT SUM(x) AS s FROM v",
            schema,
            unit=USER,
            epsilon=epsilon,
            delta=1e-6,
            limits=Limits(rows=1),
            noise="gaussian",
        )
        assert isinstance(plan.event, events.Gaussian)
