"""The smooth-sensitivity median: its exact law on all small neighbours, mutants, the law that is drawn, odd data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations_with_replacement
from types import SimpleNamespace
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from sfumato import Schema, Unit, events, partition
from sfumato.errors import ArgumentError, SfumatoError
from sfumato.mechanisms import SmoothMedian
from sfumato.mechanisms.local_sensitivity import Around, around_median, smooth
from sfumato.mechanisms.smooth_median import _root, _Rounding
from sfumato.noise import Noise, SeededBits
from sfumato.schema import key, real
from tests.helpers import read, seeded

TOP = 4
REPLACE, USERS = Unit(change="replace"), Unit("user:u", "replace")
SCHEMA = Schema.of(u=key(), x=real(0, 100))
Tail = Callable[[Any], Any]


def plan_for(epsilon: Any = 1, shape: int = 4, unit: Unit = REPLACE) -> SmoothMedian:
    return SmoothMedian(column="x", lower=0, upper=100, epsilon=epsilon, shape=shape, protects=unit)


def power(plan: SmoothMedian, size: float, scale: float = 1) -> Tail:
    """P(|noise| >= j) before rounding."""
    return lambda j: (1 + j / (float(plan.scale) * scale * size)) ** (1.0 - plan.shape)


def laplace(plan: SmoothMedian, size: float) -> Tail:
    return lambda j: np.exp(-j / (float(plan.scale) * size))


def law(median: int, tail: Tail, reach: int = 3000) -> Any:
    """P of -reach..reach from the definition, and of everything beyond."""
    j = np.arange(1, 2 * reach, dtype=float)
    above = np.append(1.0, tail(j - 0.5))  # P(|rounded noise| >= 0, 1, 2, ...)
    each = (above[:-1] - above[1:]) / 2
    each[0] *= 2
    places = np.abs(np.arange(-reach, reach + 1) - median)
    beyond = [float(tail(reach + 0.5 - median)) / 2, float(tail(reach + 0.5 + median)) / 2]
    return np.maximum(np.append(each[places], beyond), 1e-300)


def neighbours(n: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    every = list(combinations_with_replacement(range(TOP + 1), n))
    for x in every:
        for i in range(n):
            for v in range(x[i] + 1, TOP + 1):
                yield x, tuple(sorted((*x[:i], v, *x[i + 1 :])))


def worst(noise: Callable[[Around], Tail]) -> float:
    """The largest |ln ratio| over all small neighbours and all outcomes."""
    found = 0.0
    for n in (1, 3, 4, 5):
        laws = {}
        for pair in neighbours(n):
            for x in pair:
                if x not in laws:
                    around = around_median(np.array(x), 0, TOP)
                    laws[x] = np.log(law(around.median, noise(around)))
            found = max(found, float(np.abs(laws[pair[0]] - laws[pair[1]]).max()))
    return found


@pytest.mark.parametrize(("epsilon", "shape"), [(1, 4), (0.2, 4), (1, 3), (3, 8), (6, 3)])
def test_the_exact_loss_is_within_the_price_and_near_it(epsilon: float, shape: int) -> None:
    plan = plan_for(epsilon, shape)
    found = worst(lambda around: power(plan, float(smooth(around, plan.beta))))
    assert 0.75 * epsilon < found <= epsilon * (1 + 1e-9)


def test_mutants_are_caught() -> None:
    plan = plan_for(1)
    rough = 2 * plan.beta
    mutants: dict[str, Callable[[Around], Tail]] = {
        "local instead of smooth": lambda around: power(plan, max(around.gap(0), 0.01)),
        "twice the beta": lambda around: power(plan, float(smooth(around, rough))),
        "half the scale": lambda around: power(plan, float(smooth(around, plan.beta)), 0.5),
        "Laplace noise": lambda around: laplace(plan, float(smooth(around, plan.beta))),
    }
    for name, noise in mutants.items():
        assert worst(noise) > 1.05, name


@pytest.mark.parametrize(("epsilon", "shape"), [(1e-9, 4), (0.01, 3), (1, 4), (1, 32), (10, 3), (10, 4)])
def test_scale_and_beta_are_the_least_and_the_most(epsilon: float, shape: int) -> None:
    plan = plan_for(epsilon, shape)
    b, s, e = float(plan.beta), 1 / float(plan.scale), float(plan.epsilon)
    spent = [(shape - 1) * b, shape * math.log1p(s), b + shape * math.log1p(s * math.exp(-b))]
    assert max(spent) <= e * (1 + 1e-6) and sorted(spent)[-2] >= e * (1 - 1e-6)  # two of the three are reached


def test_more_beta_costs_little_scale() -> None:
    """The rule of the plan: beta = epsilon/(g-1), against sharing epsilon out by halves."""
    for epsilon in (0.1, 1.0):
        plan, halves = plan_for(epsilon), 1 / math.expm1(epsilon / 2 / 4)
        assert float(plan.beta) == pytest.approx(2 * (epsilon / 2 / 3)) and float(plan.scale) < 0.8 * halves


def test_the_law_that_is_drawn_is_the_law_that_was_checked() -> None:
    noise, plan = Noise(SeededBits(4)), plan_for(1)
    for values in ((0, 1, 2), (0, 0, 4, 4, 4), (2, 2, 2)):
        around = around_median(np.array(values), 0, TOP)
        size = smooth(around, plan.beta)
        small: Any = SimpleNamespace(
            _ends=(0, TOP), shape=plan.shape, scale=plan.scale
        )  # the same noise, five outcomes
        drawn = [noise.settle(_Rounding(around.median, size, small).decide) for _ in range(4000)]
        expected = law(around.median, power(plan, float(size)))
        middle = expected[3000 : 3000 + TOP + 1].copy()
        middle[0] += expected[:3000].sum() + expected[-1]
        middle[-1] += expected[3000 + TOP + 1 : -2].sum() + expected[-2]
        assert middle.sum() == pytest.approx(1)
        seen = np.bincount(drawn, minlength=TOP + 1)
        chi_square = float((((seen - 4000 * middle) ** 2) / (4000 * middle)).sum())
        assert chi_square < 38  # 4 degrees of freedom: once in ten million


def test_more_bits_change_nothing() -> None:
    """What 64 bits decide, every continuation decides alike; and few bits leave it open."""
    plan = plan_for(1)
    around = around_median(np.array([10, 2**20, 2**21, 2**23]), *plan._ends)
    rounding = _Rounding(around.median, smooth(around, plan.beta), plan)
    words = SeededBits(8).words(120)
    for first, more in zip(words[::2].tolist(), words[1::2].tolist(), strict=True):
        early = rounding.decide(first, 64)
        late = rounding.decide((first << 64) | more, 128)
        assert late is not None and early in (None, late)
    assert rounding.decide(0, 64) is None or rounding.decide(0, 64) == plan._ends[1]
    assert rounding.decide(0, 1) is None
    assert rounding.decide((1 << 63) - 1, 64) == around.median  # U near 1: no noise


def test_where_one_answer_ends_and_the_next_begins() -> None:
    """The uniform that parts magnitudes k - 1 and k is (1 + (k - 1/2)/(scale S))^-(g-1), to 150 bits."""
    plan = plan_for(1)
    around = around_median(np.array([2**30, 2**31, 2**31 + 2**20, 2**31 + 2**28, 2**31 + 2**29]), *plan._ends)
    size = smooth(around, plan.beta)
    rounding, bits = _Rounding(around.median, size, plan), 191
    with mp.workdps(90):
        exactly = size.enclose(250)
        width = mp.mpf(exactly.lo) / mp.mpf(2) ** 250 * plan.scale.numerator / plan.scale.denominator
        for k in (1, 2, 77, 10**6, 10**8):
            parting = int((1 + (k - mp.mpf(1) / 2) / width) ** (1 - plan.shape) * mp.mpf(2) ** bits)
            for sign, top in ((1, 0), (-1, 1 << bits)):
                assert rounding.decide(top + parting - 2**40, bits + 1) == around.median + sign * k
                assert rounding.decide(top + parting + 2**40, bits + 1) == around.median + sign * (k - 1)
                assert rounding.decide(top + parting, bits + 1) in (None, around.median + sign * k)


def test_roots() -> None:
    for p in (2, 3, 7, 31):
        for x in (1, 2, 7, 2**p - 1, 2**p, 3**p - 1, 3**p, 10**60 + 12345):
            y = _root(x, p)
            assert y**p <= x < (y + 1) ** p


def test_answers_come_near_where_the_data_are_dense() -> None:
    plan, run = plan_for(1), seeded()
    rows = read(SCHEMA, REPLACE, u=range(2001), x=np.linspace(40, 60, 2001))
    answers = [plan.finish(plan._run(rows, run)) for _ in range(400)]
    assert np.median(answers) == pytest.approx(50, abs=0.05)
    assert np.quantile(np.abs(np.array(answers) - 50), 0.95) < 0.5
    assert min(answers) >= 0 and max(answers) <= 100


def test_a_unit_counts_once_with_its_average() -> None:
    plan = plan_for(9, unit=USERS)
    rows = read(SCHEMA, USERS, u=[1] * 50 + [2, 3, 4], x=[0.0] * 25 + [50.0] * 25 + [80.0, None, float("inf")])
    values = sorted(plan._values(rows) * 2.0**plan.exponent)
    assert values == pytest.approx([0, 25, 80, 100])  # without a value: lower


@pytest.mark.parametrize("values", [[], [5.0], [math.nan] * 3, [None, math.inf, -math.inf, 1e308], [7.0] * 9])
def test_odd_tables_are_answered(values: list[Any]) -> None:
    for plan in (plan_for(1e-9), plan_for(0.5), plan_for(9, 32)):
        answer = plan.finish(plan._run(read(SCHEMA, REPLACE, u=range(len(values)), x=values), seeded(3)))
        assert isinstance(answer, float) and 0 <= answer <= 100


def test_extreme_bounds() -> None:
    for lower, upper in ((-1e100, 1e100), (2e-100, 4e-100), (0, 1e-90), (-3, -2.999)):
        plan = SmoothMedian(column="x", lower=lower, upper=upper, epsilon=1, protects=REPLACE)
        rows = read(Schema.of(x=real(lower, upper)), REPLACE, x=[lower, upper, (lower + upper) / 2])
        assert lower <= plan.finish(plan._run(rows, seeded())) <= upper
    with pytest.raises(ArgumentError, match="nearer to 0"):
        SmoothMedian(column="x", lower=1e15, upper=1e15 + 1, epsilon=1, protects=REPLACE)


def test_what_is_refused_and_why() -> None:
    for unit, words in (
        (Unit(), "replace"),
        (Unit(change="zero-out"), "replace"),
        (Unit("row", "replace", 2), "group"),
    ):
        with pytest.raises(ArgumentError, match=words):
            plan_for(unit=unit)
    for wrong in ({"shape": 2}, {"shape": 2.5}, {"epsilon": 0}, {"epsilon": math.nan}):
        with pytest.raises(ArgumentError, match=next(iter(wrong))):
            plan_for(**wrong)
    plan = plan_for()
    assert plan.needs_whole and plan.event == events.Pure(epsilon=1, relation="replace")
    assert plan.error(3, 0.05) is None and plan.expected_error(0.05) is None
    with pytest.raises(SfumatoError):
        partition("u", ("a", "b"), plan)
    assert plan.beta == Fraction(1, 3) and "no error bar" in plan.explain()[-1]
