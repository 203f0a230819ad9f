"""Accuracy first: the least epsilon for an error, and one budget over several errors."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.accounting import gdp, pure, zcdp
from sfumato.accounting.filters import Budget, Filter
from sfumato.accounting.share import Split, Want, least_epsilon_for, split
from sfumato.errors import ArgumentError
from sfumato.events import Event, Gaussian, Laplace, Sequence


def gaussian(m: float) -> Event:
    return Gaussian(multiplier=m)


def laplace(epsilon: float) -> Event:
    return Laplace(epsilon=epsilon)


def test_the_least_epsilon_of_laplace_noise() -> None:
    # half-width at 95 %: scale * ln 20
    found = least_epsilon_for(laplace, lambda e: math.log(20) / e, target=10)
    assert float(found) == pytest.approx(math.log(20) / 10, rel=1e-8)
    assert math.log(20) / found.parameter <= 10
    assert found.epsilon is not None and found.epsilon.upper == pytest.approx(math.log(20) / 10, rel=1e-8)


def test_the_least_epsilon_of_gaussian_noise() -> None:
    found = least_epsilon_for(gaussian, lambda m: 3 * m, target=12, delta=1e-6)
    assert float(found) == pytest.approx(4, rel=1e-8) and found.parameter <= 4
    exact = gdp.least_epsilon(Fraction(1, 16), Fraction(1, 10**6))
    assert found.epsilon is not None and found.epsilon.upper == pytest.approx(float(exact), rel=1e-8)


def test_an_error_of_another_parameter_is_noticed() -> None:
    with pytest.raises(ArgumentError, match="family costs less where the error is smaller"):
        least_epsilon_for(laplace, lambda e: 3 * e, target=10)


@pytest.mark.parametrize(
    ("error", "match"),
    [
        (lambda m: math.nan, "error is nan"),
        (lambda m: -1.0, "error is -1"),
        (lambda m: 3.0, "error stays within error <= 10"),
        (lambda m: 30.0, "error stays above error <= 10"),
    ],
)
def test_errors_that_make_no_sense(error: object, match: str) -> None:
    with pytest.raises(ArgumentError, match=match):
        least_epsilon_for(gaussian, error, target=10, delta=1e-6)  # type: ignore[arg-type]


def test_wants_are_checked() -> None:
    with pytest.raises(ArgumentError, match="error = 3 is not allowed"):
        Want(gaussian, 3, 10)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="target = 0 is not allowed"):
        Want(gaussian, lambda m: m, 0)
    with pytest.raises(ArgumentError, match="wants"):
        split({}, rho=1)
    with pytest.raises(ArgumentError, match="wants"):
        split({"total": gaussian}, rho=1)  # type: ignore[dict-item]


def test_a_split_by_rho_has_a_closed_form() -> None:
    # errors s_i m_i = r t_i, so rho = sum (s_i / t_i)^2 / (2 r^2)
    wants = {"total": Want(gaussian, lambda m: m, 5), "ages": Want(gaussian, lambda m: 120 * m, 300)}
    found = split(wants, rho=0.05)
    ratio = math.sqrt((1 / 25 + (120 / 300) ** 2) / (2 * 0.05))
    assert found.ratio == pytest.approx(ratio, rel=1e-8)
    assert found.parameters["total"] == pytest.approx(5 * ratio, rel=1e-8)
    assert found.errors["ages"] == pytest.approx(300 * ratio, rel=1e-8)
    assert found.rho is not None and found.rho == zcdp.rho(found.event) <= Fraction(1, 20)
    assert not found.met and "targets not met" in str(found)


def test_a_split_within_epsilon_and_delta() -> None:
    wants = {
        "total": Want(gaussian, lambda m: 2 * m, 10),
        "ages": Want(gaussian, lambda m: 50 * m, 500),
        "best": Want(laplace, lambda e: 3 / e, 40),
    }
    found = split(wants, epsilon=1, delta=1e-6)
    assert found.epsilon is not None and found.epsilon.lower > 0.998 and found.epsilon.upper <= 1
    for name, want in wants.items():
        assert found.errors[name] <= found.ratio * want.target
        assert found.errors[name] == pytest.approx(found.ratio * want.target, rel=1e-7)
        assert want.error(found.parameters[name]) == found.errors[name]
    assert isinstance(found.event, Sequence) and len(found.event.events) == 3
    assert found.event.events[0] == gaussian(found.parameters["total"])


def test_a_pure_split_and_one_for_an_account() -> None:
    wants = {"a": Want(laplace, lambda e: 1 / e, 4), "b": Want(laplace, lambda e: 1 / e, 12)}
    found = split(wants, epsilon=1)
    assert pure.epsilon(found.event) <= 1
    assert found.ratio == pytest.approx(1 / 4 + 1 / 12, rel=1e-8) and found.met
    account = Filter.of(Budget(epsilon=1))
    taken = split(wants, account=account)
    assert account.fits(taken.event, Fraction(0)) and taken.ratio == pytest.approx(found.ratio, rel=2e-4)
    assert "fits the account" in str(taken) and "all targets met" in str(taken)


@settings(derandomize=True, deadline=None, max_examples=25)
@given(
    targets=st.lists(st.floats(0.1, 1e4), min_size=1, max_size=5),
    rho=st.floats(1e-4, 10),
)
def test_no_other_split_does_better(targets: list[float], rho: float) -> None:
    """Any other split with the same rho has a larger worst ratio: tried by moving a tenth of one share to another."""
    wants = {str(i): Want(gaussian, lambda m: m, target) for i, target in enumerate(targets)}
    found: Split = split(wants, rho=rho)
    shares = [0.5 / m**2 for m in found.parameters.values()]
    assert math.fsum(shares) <= rho * (1 + 1e-12)
    for giver in range(len(shares)):
        moved = list(shares)
        moved[giver] *= 0.9
        worst = max(math.sqrt(0.5 / share) / target for share, target in zip(moved, targets, strict=True))
        assert worst >= found.ratio * (1 - 1e-9)
