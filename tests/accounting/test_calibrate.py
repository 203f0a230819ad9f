"""Calibration: published values, and the one promise that matters: what is returned stays within the target."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.accounting import approximate, gdp, pld, pure, zcdp
from sfumato.accounting.calibrate import Calibrated, calibrate, most_steps
from sfumato.accounting.filters import Budget, Filter
from sfumato.accounting.interval import Interval
from sfumato.errors import ArgumentError, UnsupportedEventError
from sfumato.events import (
    Approximate,
    Event,
    Gaussian,
    Laplace,
    Partition,
    Poisson,
    Pure,
    RandomizedResponse,
    Repeat,
    Sequence,
    ZeroConcentrated,
)

some = settings(derandomize=True, deadline=None, max_examples=40)


# Balle and Wang's analytic Gaussian, sensitivity 1 (recomputed with mpmath)
@pytest.mark.parametrize(
    ("epsilon", "delta", "sigma"),
    [
        (0.1, 1e-5, 30.749566),
        (0.5, 1e-5, 7.031827),
        (1, 1e-5, 3.730632),
        (1, 1e-6, 4.224679),
        (2, 1e-5, 1.993812),
        (4, 1e-5, 1.081162),
        (8, 1e-5, 0.600229),
        (10, 1e-5, 0.499889),
    ],
)
def test_the_analytic_gaussian(epsilon: float, delta: float, sigma: float) -> None:
    found = calibrate(lambda m: Gaussian(multiplier=m), epsilon=epsilon, delta=delta)
    assert float(found) == pytest.approx(sigma, abs=1.01e-6)
    assert found.parameter >= gdp.least_multiplier(Fraction(str(epsilon)), Fraction(str(delta)))
    assert found.epsilon is not None and found.epsilon.upper <= epsilon


def test_the_analytic_gaussian_by_mpmath() -> None:
    found = calibrate(lambda m: Gaussian(multiplier=m), epsilon=1, delta=1e-5)
    with mpmath.workdps(30):
        mu = 1 / mpmath.mpf(found.parameter)
        delta = mpmath.ncdf(mu / 2 - 1 / mu) - mpmath.e * mpmath.ncdf(-mu / 2 - 1 / mu)
    assert delta <= mpmath.mpf("1e-5") < delta * (1 + mpmath.mpf("1e-6"))


# Google's accounting tests, with the values of a finer lattice
@pytest.mark.parametrize(("queries", "scale"), [(20, 13.550326), (500, 70.961925)])
def test_the_least_laplace_scale(queries: int, scale: float) -> None:
    found = calibrate(lambda b: Repeat(Laplace(epsilon=1 / b), queries), epsilon=1, delta=1e-4)
    assert float(found) == pytest.approx(scale, rel=3e-4)  # theirs is from an upper bound, so may be above the least
    assert float(found) <= scale * (1 + 1e-4)


def test_the_least_sampled_gaussian() -> None:
    found = calibrate(lambda m: Poisson(Gaussian(multiplier=m), 0.01), epsilon=1, delta=1e-5)
    assert float(found) == pytest.approx(0.67379294682, rel=2e-4)
    many = calibrate(lambda s: Repeat(Poisson(Gaussian(multiplier=s / 6), 0.001), 25), epsilon=1, delta=1e-5)
    assert float(many) == pytest.approx(3.20956502598, rel=2e-4)


def test_a_training_run() -> None:
    found = calibrate(lambda m: Repeat(Poisson(Gaussian(multiplier=m), 256 / 60000), 2344), epsilon=3, delta=1e-5)
    assert 0.6936 <= float(found) <= 0.6938
    assert found.epsilon is not None and 2.998 < found.epsilon.lower <= found.epsilon.upper <= 3
    assert found.evaluations <= 10
    assert found.event == Repeat(Poisson(Gaussian(multiplier=found.parameter), 256 / 60000), 2344)


FAMILIES: dict[str, tuple[Callable[[float], Event], bool]] = {  # and whether more is safer
    "gaussian": (lambda m: Gaussian(multiplier=m), True),
    "gaussians": (lambda m: Sequence((Gaussian(multiplier=m), Repeat(Gaussian(multiplier=3 * m), 7))), True),
    "parts": (lambda m: Partition("ward", (Gaussian(multiplier=m), Gaussian(multiplier=2 * m))), True),
    "laplace": (lambda e: Laplace(epsilon=e), False),
    "laplace scale": (lambda b: Repeat(Laplace(epsilon=1 / b), 10), True),
    "response": (lambda e: Repeat(RandomizedResponse(epsilon=e, categories=2), 5), False),
    "mixed": (lambda m: Sequence((Gaussian(multiplier=m), Laplace(epsilon=0.05 / m))), True),
}


@pytest.mark.parametrize("name", FAMILIES)
@settings(derandomize=True, deadline=None, max_examples=5)
@given(epsilon=st.floats(0.05, 8), exponent=st.floats(-9, -3))
def test_the_target_is_never_exceeded(name: str, epsilon: float, exponent: float) -> None:
    family, falling = FAMILIES[name]
    target, delta = float(f"{epsilon:.3g}"), float(f"{10**exponent:.2g}")
    found = calibrate(family, epsilon=target, delta=delta)
    assert found.epsilon is not None and found.epsilon.upper <= target
    assert found.event == family(found.parameter)
    # and it is the least: with a little less noise an account charges more (one pure mechanism at its pure epsilon)
    beyond = family(found.parameter * (0.999 if falling else 1.001))
    assert approximate.epsilon(beyond, Fraction(str(delta))) > Fraction(str(target))


@some
@given(epsilon=st.floats(1e-6, 1e3))
def test_pure_targets_are_exact(epsilon: float) -> None:
    target = float(f"{epsilon:.4g}")
    found = calibrate(lambda e: Repeat(Laplace(epsilon=e), 3), epsilon=target)
    exact = Fraction(repr(target)) / 3
    assert found.epsilon is not None and found.epsilon.upper <= target
    assert exact * (1 - Fraction(1, 10**8)) <= Fraction(repr(found.parameter)) <= exact
    assert pure.epsilon(found.event) <= Fraction(repr(target))


@some
@given(rho=st.floats(1e-6, 1e3))
def test_rho_targets_are_exact(rho: float) -> None:
    target = float(f"{rho:.4g}")
    found = calibrate(lambda m: Repeat(Gaussian(multiplier=m), 10), rho=target)
    assert found.rho is not None and found.rho == zcdp.rho(found.event) <= Fraction(repr(target))
    assert float(found) == pytest.approx(math.sqrt(5 / target), rel=1e-8)
    assert found.epsilon is None


def test_a_rate_can_be_calibrated_too() -> None:
    found = calibrate(lambda q: Repeat(Poisson(Laplace(epsilon=1), q), 5), epsilon=1, delta=1e-6)
    assert 0 < float(found) < 1 and found.epsilon is not None and found.epsilon.upper <= 1


def test_the_end_of_the_range_can_be_the_answer() -> None:
    assert float(calibrate(lambda e: Laplace(epsilon=e), epsilon=9999)) == pytest.approx(9999, rel=1e-6)
    assert float(calibrate(lambda b: Laplace(epsilon=1 / b), epsilon=1e-8)) == pytest.approx(1e8, rel=1e-6)


# What an account accepts


class Stingy:
    """An account that takes only very noisy Gaussians."""

    def __init__(self) -> None:
        self.asked: list[tuple[Event, Fraction]] = []

    def fits(self, event: Event, delta: Fraction) -> bool:
        self.asked.append((event, delta))
        return isinstance(event, Gaussian) and event.multiplier >= 37


def test_an_account_is_asked_and_what_is_returned_fits() -> None:
    account = Stingy()
    found = calibrate(lambda m: Gaussian(multiplier=m), account=account, delta=1e-7)
    assert 37 <= float(found) <= 37 * 1.0001
    assert (found.event, Fraction(1, 10**7)) in account.asked
    assert found.epsilon is None and found.delta == Fraction(1, 10**7)


@pytest.mark.parametrize(
    ("budget", "delta"), [(Budget(epsilon=1, delta=1e-6), 1e-7), (Budget(rho=0.1), None), (Budget(epsilon=1), None)]
)
def test_what_is_returned_is_spent_and_a_little_more_is_not(budget: Budget, delta: float | None) -> None:
    def family(b: float) -> Event:
        return Laplace(epsilon=1 / b) if budget.delta == 0 and budget.rho is None else Gaussian(multiplier=b)

    left = Filter.of(budget).spend(family(10), Fraction(0) if delta is None else Fraction(repr(delta)))
    own = Fraction(0) if delta is None else Fraction(repr(delta))
    found = calibrate(family, account=left, delta=delta)
    assert left.fits(found.event, own) and not left.fits(family(found.parameter * 0.9998), own)
    left.spend(found.event, own)
    fresh = calibrate(family, account=budget, delta=delta)
    assert fresh.parameter < found.parameter


def test_something_that_is_no_account_is_refused() -> None:
    with pytest.raises(ArgumentError, match="account = 'people' is not allowed"):
        calibrate(lambda m: Gaussian(multiplier=m), account="people")


# Steps


def test_the_most_steps() -> None:
    assert int(most_steps(lambda t: Repeat(Laplace(epsilon=0.1), t), epsilon=1)) == 10
    assert int(most_steps(lambda t: Repeat(Gaussian(multiplier=10), t), rho=1)) == 200
    exact = most_steps(lambda t: Repeat(Gaussian(multiplier=10), t), epsilon=1, delta=1e-5)
    least = gdp.least_multiplier(Fraction(1), Fraction(1, 10**5))
    assert int(exact) == math.floor(100 / least**2) == 7


def test_the_most_steps_of_a_training_run() -> None:
    def family(steps: int) -> Event:
        return Repeat(Poisson(Gaussian(multiplier=2), 0.01), steps)

    found = most_steps(family, epsilon=0.62203, delta=1e-5)
    assert abs(int(found) - 1000) <= 2
    assert found.epsilon is not None and found.epsilon.upper <= 0.62203
    assert pld.epsilon(family(int(found) + 1), 1e-5, accuracy=1e-6).upper > 0.62203 * (1 - 1e-5)


def test_most_steps_of_an_account() -> None:
    found = most_steps(lambda t: Repeat(Laplace(epsilon=0.1), t), account=Budget(epsilon=2))
    assert int(found) == 20 and "fits the account" in str(found)


@pytest.mark.parametrize(
    ("family", "match"),
    [
        (lambda t: Repeat(Laplace(epsilon=3), t), "stays above epsilon = 1 for every parameter looked at, from 1"),
        (lambda t: Laplace(epsilon=Fraction(10, t)), "costs less with more steps"),
        (lambda t: Laplace(epsilon=0.1), "does not change with it"),
    ],
)
def test_steps_that_cannot_be_counted(family: Any, match: str) -> None:
    with pytest.raises(ArgumentError, match=match):
        most_steps(family, epsilon=1)


# Refusals


@pytest.mark.parametrize(
    ("family", "arguments", "match"),
    [
        (lambda m: Laplace(epsilon=1), {"epsilon": 3}, "stays within epsilon = 3 .* does not change"),
        (lambda m: Laplace(epsilon=10), {"epsilon": 3}, "stays above epsilon = 3 .* does not change"),
        (lambda m: Pure(epsilon=1), {"epsilon": 3, "delta": 1e-6}, "does not change"),
        (lambda m: Sequence((Laplace(epsilon=2), Laplace(epsilon=1 / m))), {"epsilon": 1}, "allow more, or release"),
        (lambda m: None, {"epsilon": 1}, "family = None is not allowed"),
        (lambda m, k: None, {"epsilon": 1}, "family raised TypeError at the parameter 1"),
        (lambda m: Gaussian(multiplier=-m), {"epsilon": 1, "delta": 1e-6}, "family refuses the parameter 1: multi"),
        (lambda m: Gaussian(multiplier=m), {"epsilon": 1, "rho": 1}, "exactly one of the three"),
        (lambda m: Gaussian(multiplier=m), {"delta": 1e-6}, "exactly one of the three"),
        (lambda m: Gaussian(multiplier=m), {"rho": 1, "delta": 1e-6}, "no delta with rho"),
        (lambda m: Gaussian(multiplier=m), {"epsilon": -1, "delta": 1e-6}, "epsilon = -1"),
        (lambda m: Gaussian(multiplier=m), {"epsilon": 1, "delta": 2}, "delta = 2"),
        (lambda m: Gaussian(multiplier=m), {"epsilon": 1, "delta": 1e-6, "tolerance": 0.5}, "tolerance = 0.5"),
        (lambda m: Gaussian(multiplier=m), {"epsilon": 1, "delta": 1e-6, "start": 0}, "start = 0"),
    ],
)
def test_refusals_name_the_argument_and_the_fix(family: Any, arguments: dict[str, Any], match: str) -> None:
    with pytest.raises(ArgumentError, match=match):
        calibrate(family, **arguments)


def test_an_event_that_nothing_prices_is_said_so() -> None:
    with pytest.raises(UnsupportedEventError, match="Gaussian has no pure epsilon"):
        calibrate(lambda m: Gaussian(multiplier=m), epsilon=1)
    with pytest.raises(UnsupportedEventError, match="Approximate has no zCDP price"):
        calibrate(lambda e: Approximate(epsilon=e, delta=1e-9), rho=1)


def test_a_family_with_a_will_of_its_own_cannot_break_the_promise() -> None:
    """What is returned is the event that was priced, not a second one."""
    calls = iter(range(10**6))

    def family(m: float) -> Event:
        return ZeroConcentrated(rho=1 / m / (1 + Fraction(next(calls), 10**7)))

    found = calibrate(family, rho=0.5)
    assert zcdp.rho(found.event) <= Fraction(1, 2)


def test_the_result_reads_well() -> None:
    found = calibrate(lambda m: Gaussian(multiplier=m), epsilon=1, delta=1e-5)
    assert isinstance(found, Calibrated) and isinstance(found.epsilon, Interval)
    assert str(found).startswith("3.73063163") and "at delta = 1e-05" in str(found)
    assert str(calibrate(lambda m: Gaussian(multiplier=m), rho=0.5)).startswith("1: rho = 0.5")
