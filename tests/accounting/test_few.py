"""A few unlike mechanisms: optimal composition, outcome by outcome, beside sums of fifty digits."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.accounting import pairs, pld
from sfumato.accounting.few import few
from sfumato.events import Approximate, Event, Gaussian, Laplace, Pure, RandomizedResponse, Repeat, Sequence


def optimal(mechanisms: list[tuple[str, str, int]], epsilon: Any) -> Any:
    """Murtagh and Vadhan 2016, Theorem 1.5: of (epsilon, delta, times), all outcomes of randomised responses."""
    kinds = [(mp.mpf(e), mp.mpf(d), n) for e, d, n in mechanisms]
    left = mp.mpf(1)
    for _, own, times in kinds:
        left *= (1 - own) ** times
    total = mp.mpf(0)
    for counts in itertools.product(*(range(times + 1) for _, _, times in kinds)):
        loss, mass = mp.mpf(0), mp.mpf(1)
        for j, (size, _, times) in zip(counts, kinds, strict=True):
            p = 1 / (1 + mp.exp(-size))
            loss += (2 * j - times) * size
            mass *= math.comb(times, j) * p**j * (1 - p) ** (times - j)
        total += mass * max(1 - mp.exp(epsilon - loss), mp.mpf(0))
    return 1 - left * (1 - total)


def event(mechanisms: list[tuple[str, str, int]]) -> Event:
    def one(size: str, own: str) -> Event:
        return (
            Approximate(epsilon=Fraction(size), delta=Fraction(own)) if Fraction(own) else Pure(epsilon=Fraction(size))
        )

    return Sequence(tuple(Repeat(one(size, own), times) for size, own, times in mechanisms))


FIVE_EACH = [(size, "0", 5) for size in ("0.05", "0.1", "0.2", "0.4")]


def test_five_each_of_four_pure_mechanisms() -> None:
    """It was 5e-6 too high."""
    found = sf.delta(event(FIVE_EACH), epsilon=2)
    with mp.workdps(40):
        truth = optimal(FIVE_EACH, mp.mpf(2))
        assert mp.mpf(found.lower) <= truth <= mp.mpf(found.upper)
    assert found.upper == pytest.approx(0.0202890205, abs=1e-10) and found.width < 1e-12
    back = sf.epsilon(event(FIVE_EACH), delta=found.upper)
    assert back.lower <= 2 <= back.upper and back.width < 1e-10


@settings(derandomize=True, deadline=None, max_examples=12)
@given(
    st.lists(
        st.tuples(st.integers(1, 200), st.sampled_from(["0", "1e-6", "1e-3"]), st.integers(1, 4)),
        min_size=2, max_size=4, unique_by=lambda kind: kind[:2],
    ),
    st.integers(0, 99),
)  # fmt: skip
def test_unlike_mechanisms_compose_exactly(kinds: list[tuple[int, str, int]], share: int) -> None:
    mechanisms = [(f"{size}e-2", own, times) for size, own, times in kinds]
    whole = sum(Fraction(size) * times for size, _, times in mechanisms)
    epsilon = Fraction(share, 100) * whole
    found = sf.delta(event(mechanisms), epsilon=epsilon)
    with mp.workdps(40):
        truth = optimal(mechanisms, mp.mpf(epsilon.numerator) / epsilon.denominator)
        assert mp.mpf(found.lower) <= truth <= mp.mpf(found.upper)
    assert found.width <= 1e-10 * found.upper + 1e-13


def test_atoms_of_any_kind_are_composed_and_agree_with_the_lattice() -> None:
    both = Sequence((Repeat(RandomizedResponse(epsilon=1, categories=3), 4), Repeat(Pure(epsilon=0.3), 7)))
    parts = [
        (pairs.directions(leaf, 1e-15)[0], n) for leaf, n in ((both.events[0].event, 4), (both.events[1].event, 7))
    ]
    found = few(parts)
    assert found is not None and float(found.law.masses.sum()) == pytest.approx(1, abs=1e-13)
    for epsilon in (0.1, 1.0, 3.0):
        one, two = found.delta(epsilon), pld._delta_on_lattice(parts, epsilon, 1e-15)
        assert two.lower <= one.lower <= one.upper <= two.upper
        assert one.width < 1e-10 * one.upper < two.width


def test_what_is_smooth_or_long_is_left_to_others() -> None:
    def part(leaf: Event, times: int) -> list[tuple[pairs.Loss, int]]:
        return [(pairs.directions(leaf, 1e-15)[0], times)]

    assert few(part(Laplace(epsilon=1), 2)) is None and few(part(Gaussian(multiplier=1), 2)) is None
    assert few(part(Pure(epsilon=1), 201)) is None
    assert few([p for e in range(1, 8) for p in part(Pure(epsilon=e), 20)]) is None


def test_losses_that_cancel_are_known_to_their_own_digits() -> None:
    """A sum of large losses of both signs may be nearly 0: the shift covers its rounding."""
    sizes = np.array([[9.99, 10.0, 3.3]])
    laws = [pairs.directions(Pure(epsilon=float(size)), 1e-15)[0] for size in sizes[0]]
    found = few([(law, 2) for law in laws])
    assert found is not None and found.shift >= 2 * float(sizes.sum()) * 2**-52
