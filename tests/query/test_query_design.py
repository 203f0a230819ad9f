"""Shares, noise and the threshold of groups."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

from sfumato import Unit, sql
from sfumato.errors import ArgumentError
from sfumato.query import Limits
from sfumato.query.design import Design
from sfumato.query.plan import Sql
from sfumato.schema import Schema, Table, category, key, real, whole

SCHEMA = Schema(
    {
        "visits": Table(
            {"patient": key(), "ward": category(["a", "b"]), "drug": key(), "days": real(0, 50), "n": whole(0, 9)},
            unit="patient",
        )
    }
)
CHOSEN = "SELECT drug, COUNT(*) AS c FROM visits GROUP BY drug"
USER = Unit("user:patient")


def plan(text: str = CHOSEN, *, unit: Unit = USER, **options: Any) -> Sql:
    return sql(text, SCHEMA, unit=unit, **{"epsilon": 1, "delta": 1e-6, "limits": Limits(rows=4, keys=3), **options})


def design(text: str = CHOSEN, **options: Any) -> Design:
    made = plan(text, **options).fixed
    assert made is not None
    return made


def chance_of_new(made: Design, groups: int, threshold: int) -> float:
    """That any of the groups of one unit alone is shown."""
    assert made.votes is not None
    height = made.votes.weight(groups, made.blur)
    if not height:
        return 0.0
    each = float(made.law(made.votes.coordinate).sf(threshold - height - 1))  # P(noise >= threshold - height)
    return -math.expm1(groups * math.log1p(-each))


@pytest.mark.parametrize("laplace", [False, True])
@pytest.mark.parametrize("limits", [Limits(rows=1, keys=1), Limits(keys=5, most_keys=5), Limits(keys=3, most_keys=300)])
@pytest.mark.parametrize("delta", [1e-9, 1e-4])
def test_a_unit_alone_shows_no_group_but_for_delta(laplace: bool, limits: Limits, delta: float) -> None:
    made = design(delta=delta, limits=limits)
    if laplace:
        made = Design(
            made.questions,
            type(made.blur)("laplace", Fraction(1), USER, Fraction(delta)),
            made.limits, made.reaches, made.shares, True,
        )  # fmt: skip
    delta_of_keys = float(made.blur.key_delta)
    chances = [chance_of_new(made, t, made.threshold) for t in range(1, limits.most_keys + 1)]
    assert max(chances) <= delta_of_keys * (1 + 1e-6)
    # The control: a threshold that is a little lower is too low for somebody, and this one is hardly above the least.
    step = 1 << made.bits
    assert max(chance_of_new(made, t, made.threshold - step) for t in range(1, limits.most_keys + 1)) > delta_of_keys
    assert chance_of_new(made, limits.most_keys + 1, -(10**9)) == 0.0  # no say at all


def test_up_to_sixteen_groups_the_threshold_is_the_least() -> None:
    made = design(limits=Limits(keys=2, most_keys=16))
    delta = float(made.blur.key_delta)
    assert max(chance_of_new(made, t, made.threshold) for t in range(1, 17)) <= delta * (1 + 1e-6)
    assert max(chance_of_new(made, t, made.threshold - 1) for t in range(1, 17)) > delta * (1 - 1e-6)


@pytest.mark.parametrize("group", [2, 5])
def test_groups_of_units_may_share_a_new_group(group: int) -> None:
    made = design(unit=Unit("user:patient", group=group), limits=Limits(keys=2, most_keys=10))
    law = made.law(made.votes.coordinate)  # type: ignore[union-attr]
    full = 1 << made.bits
    for together in range(1, group + 1):
        each = float(law.sf(made.threshold - together * full - 1))
        many = group * 10 // together
        assert -math.expm1(many * math.log1p(-each)) <= float(made.blur.key_delta) * (1 + 1e-6)
    one = design(limits=Limits(keys=2, most_keys=10))
    assert made.threshold * 2.0**-made.bits > group * one.threshold * 2.0**-one.bits * 0.9


def test_replaced_units_need_a_threshold_for_twice_the_noise() -> None:
    usual, replaced = design(), design(unit=Unit("user:patient", change="replace"))
    assert replaced.threshold * 2.0**-replaced.bits > 1.8 * usual.threshold * 2.0**-usual.bits


def test_a_bad_default_of_most_keys_is_capped() -> None:
    few, many = design(limits=Limits(keys=1, most_keys=1)), design(limits=Limits(keys=1, most_keys=1000))
    assert few.threshold <= many.threshold


def test_shares_add_up_to_one_and_follow_weights() -> None:
    text = "SELECT ward, COUNT(*) c, SUM(days) s, MEDIAN(days) m, COUNT(DISTINCT drug) d FROM visits GROUP BY ward"
    made = design(text)
    assert sum(made.shares.values()) == 1
    assert len(set(made.shares.values())) == 1
    weighted = design(text, shares={"rows": 5})
    assert weighted.shares["rows"] == Fraction(5, 8)
    assert sum(weighted.shares.values()) == 1
    assert design(CHOSEN).shares == {"rows": Fraction(1, 3), "units": Fraction(2, 3)}
    with pytest.raises(ArgumentError, match="no such question: name one of rows, units"):
        plan(CHOSEN, shares={"nothing": 2})


def test_equal_questions_are_measured_once() -> None:
    made = design("SELECT COUNT(*) AS a, COUNT(*) + 1 AS b, AVG(days) AS m, SUM(days) AS s FROM visits")
    assert [each.measure.name for each in made.sums] == ["rows", 'rows with "visits"."days"', 'sum of "visits"."days"']
    trees = design("SELECT MEDIAN(days) AS a, QUANTILE(days, 0.9) AS b, MAX(days) AS c FROM visits")
    (only,) = trees.questions.ranked.values()
    assert only.chances == (0.5, 0.9, 1.0)


def test_reaches_follow_limits_and_bounds() -> None:
    text = "SELECT SUM(days) AS s, COUNT(*) AS c FROM visits"
    reach = {each.measure.name: each.reach for each in design(text).sums}
    assert reach == {'sum of "visits"."days"': pytest.approx(200, rel=1e-3), "rows": pytest.approx(4, rel=1e-3)}
    asked = design(text, limits=Limits(rows=4, reach={"s": 60}))
    assert float(asked.reaches['sum of "visits"."days"']) == pytest.approx(60)
    bounded = design(text, bounds={"days": (0, 10)})
    assert float(bounded.reaches['sum of "visits"."days"']) == pytest.approx(40)


def test_noise_that_is_too_wide_is_refused_at_birth() -> None:
    with pytest.raises(ArgumentError, match="rows wide: give a larger epsilon, or smaller limits"):
        plan("SELECT COUNT(*) AS c FROM visits", epsilon=1e-7, delta=0, limits=Limits(rows=10**6))


def test_weights_are_coarser_where_noise_is_wide() -> None:
    narrow = design("SELECT COUNT(*) AS c FROM visits", limits=Limits(rows=1))
    wide = design("SELECT COUNT(*) AS c FROM visits", epsilon=1e-5, limits=Limits(rows=1000))
    assert narrow.bits == 12 > wide.bits


def test_spreads_tell_every_measured_number() -> None:
    made = design(
        "SELECT COUNT(*) AS c, COUNT(DISTINCT drug) AS d, HISTOGRAM(n, [0, 5, 9]) AS h, COUNT(DISTINCT patient) AS p "
        "FROM visits"
    )
    names = list(made.spreads)
    assert names[:2] == ["rows", "units"] and len(names) == 4
    for law, step in made.spreads.values():
        assert law.std * step > 0
