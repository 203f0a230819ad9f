"""Whole shifts of discrete Gaussian noise: none is forgotten, and the envelope lies above every one."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from sfumato.accounting import gdp, pld, price, shifts, zcdp
from sfumato.errors import UnsupportedEventError
from sfumato.events import DiscreteGaussian, Repeat


@pytest.mark.parametrize(("squared", "coordinates"), [(1, 3), (2, 5), (4, 4), (5, 2), (9, 3), (13, 3), (6, 2)])
def test_every_shift_is_exceeded_by_a_listed_one(squared: int, coordinates: int) -> None:
    listed = [(*v, *(0,) * (coordinates - len(v))) for v in shifts.vectors(squared, coordinates)]
    most = math.isqrt(squared)
    for vector in product(range(most + 1), repeat=coordinates):
        if sum(part * part for part in vector) <= squared:
            ordered = sorted(vector, reverse=True)
            assert any(all(a >= b for a, b in zip(other, ordered, strict=True)) for other in listed), vector
    for i, one in enumerate(listed):
        assert sum(part * part for part in one) <= squared
        assert not any(j != i and all(a >= b for a, b in zip(o, one, strict=True)) for j, o in enumerate(listed))


def _curve(variance: float, vector: tuple[int, ...], epsilon: float, reach: int) -> float:
    """P(S) - e^epsilon Q(S) at its largest, by going through all outcomes of a small product."""
    k = np.arange(-reach, reach + 1)
    base = np.exp(-(k**2) / (2 * variance))
    base /= base.sum()
    p, q = np.ones(1), np.ones(1)
    for part in vector:
        moved = np.exp(-((k - part) ** 2) / (2 * variance))
        q = np.outer(q, base).ravel()
        p = np.outer(p, moved / np.exp(-(np.arange(-60, 61) ** 2) / (2 * variance)).sum()).ravel()
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


@pytest.mark.parametrize(("variance", "squared", "coordinates"), [(1, 4, 4), (0.5, 4, 4), (2, 5, 2), (0.3, 9, 3)])
def test_the_price_holds_for_every_vector_and_is_attained_or_close(
    variance: float, squared: int, coordinates: int
) -> None:
    event = DiscreteGaussian(variance=variance, shift_squared=squared, coordinates=coordinates)
    for epsilon in (0.0, 0.5, 2.0, 5.0):
        found = pld.delta(event, epsilon)
        reach = 25 if coordinates < 3 else 9  # beyond lies less than the bounds resolve
        truth = max(_curve(variance, v, epsilon, reach) for v in shifts.vectors(squared, coordinates))
        assert truth <= found.upper * (1 + 1e-9) + 1e-12
        assert found.upper <= truth * 1.3 + 1e-12  # an envelope costs a little
        assert found.lower <= truth * (1 + 1e-9) + 1e-12


def test_one_vector_is_a_product_of_coordinates() -> None:
    both = DiscreteGaussian(variance=3, shift_squared=2, coordinates=7)
    assert pld.epsilon(both, 1e-6) == pld.epsilon(Repeat(DiscreteGaussian(variance=3), 2), 1e-6)


def test_the_continuous_curve_does_not_bound_the_discrete_one_and_rho_does() -> None:
    event = DiscreteGaussian(variance=1)
    delta = pld.delta(event, 1.0)
    assert delta.lower > 0.1413513 > gdp.delta(1.0, 1.0)
    target = Fraction(1, 10**6)
    for squared in (4, 9):
        many = Repeat(DiscreteGaussian(variance=2, shift_squared=squared, coordinates=9), 10)
        assert float(price.epsilon(many, delta=target)) <= float(zcdp.epsilon(zcdp.rho(many), target))


def test_too_many_vectors_or_atoms_are_refused_by_name_and_priced_by_rho() -> None:
    for event in (
        DiscreteGaussian(variance=10**6, shift_squared=4000, coordinates=40),
        DiscreteGaussian(variance=10**14),
    ):
        with pytest.raises(UnsupportedEventError, match="DiscreteGaussian"):
            pld.epsilon(event, 1e-6)
        assert (
            0
            <= float(price.epsilon(event, delta=1e-6))
            <= float(zcdp.epsilon(zcdp.rho(event), Fraction(1, 10**6))) * (1 + 1e-9)
        )
