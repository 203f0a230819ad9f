"""The laws' formulas against mpmath, against each other, and against published numbers."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from scipy.special import ndtr

from sfumato import laws
from sfumato.errors import ArgumentError
from sfumato.laws import (
    TAIL_ERROR,
    DiscreteGaussian,
    DiscreteLaplace,
    Geometric,
    Law,
    RoundedGaussian,
    RoundedLaplace,
)
from tests.noise import reference
from tests.noise.reference import LAWS

timeless = settings(deadline=None)
SCALES = (0.05, 0.3, 0.5, 1.0, 2.0, 3.7, 10.0, 47.9, 48.0, 100.0, 1234.5, 1e5, 1e6, 1e9)
GAUSSIANS = (RoundedGaussian, DiscreteGaussian)
kinds = pytest.mark.parametrize("kind", LAWS)
scales = pytest.mark.parametrize("scale", SCALES)

any_law = st.builds(lambda kind, scale: kind(scale), st.sampled_from(LAWS), st.floats(-12, 40).map(lambda e: 2.0**e))


def deepest(law: Law) -> float:
    """How many scales out P(|X| >= k) is near 2^-90."""
    return 11.0 if isinstance(law, GAUSSIANS) else 62.0


def places(law: Law, count: int) -> list[int]:
    """Whole k >= 1 from the first to far beyond what is ever drawn."""
    far = max(4.0, deepest(law) * law.spread)
    return sorted({1, 2, *(max(1, round(x)) for x in np.geomspace(1, far, count // 2).tolist()),
                   *(max(1, round(x)) for x in np.linspace(1, far, count // 2).tolist())})  # fmt: skip


def float_error(law: Law, ks: list[int]) -> float:
    """The largest distance of `tail` from the reference."""
    found = law.tail(np.array(ks, dtype=np.float64))
    with mp.workprec(reference.PRECISION):
        return max(float(abs(mpf(float(f)) - reference.tail(law, k))) for f, k in zip(found, ks, strict=True))


@kinds
@scales
def test_tail_is_64_times_better_than_its_promise(kind: type[Law], scale: float) -> None:
    law = kind(scale)
    assert float_error(law, places(law, 40)) < TAIL_ERROR / 64


def test_a_tail_off_by_its_promise_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    smooth = DiscreteGaussian._smooth_tail
    monkeypatch.setattr(DiscreteGaussian, "_smooth_tail", lambda self, k: smooth(self, k) * (1 + TAIL_ERROR))
    law = DiscreteGaussian(100.0)
    assert float_error(law, places(law, 60)) > TAIL_ERROR / 64


@kinds
@scales
@pytest.mark.parametrize("bits", [63, 127, 300])
def test_enclose_tail_holds_the_tail_within_few_ulps(kind: type[Law], scale: float, bits: int) -> None:
    law = kind(scale)
    for k in places(law, 8):
        found = law.enclose_tail(k, bits)
        low, high = reference.scaled(reference.tail(law, k), bits)
        assert found.bits == bits
        assert found.lo <= low and high <= found.hi
        assert found.hi - found.lo <= 4


@pytest.mark.slow
@kinds
def test_enclose_tail_holds_the_tail_everywhere(kind: type[Law]) -> None:
    for scale in np.exp(np.linspace(math.log(0.05), math.log(1e9), 40)).tolist():
        law = kind(scale)
        for k in places(law, 60):
            for bits in (63, 127, 191, 319):
                found = law.enclose_tail(k, bits)
                low, high = reference.scaled(reference.tail(law, k), bits)
                assert found.lo <= low and high <= found.hi and found.hi - found.lo <= 4


def uniforms(count: int) -> list[float]:
    """Floats t in [2^-63, 1), dense at both ends."""
    deep = 2.0 ** -np.linspace(63, 0.5, count)
    near_one = 1 - 2.0 ** -np.linspace(2, 53, count // 2)
    return [2.0**-63, *deep.tolist(), *near_one.tolist()]


@kinds
@pytest.mark.parametrize("scale", [0.05, 1.0, 10.0, 48.0, 64.0, 200.0, 1234.5, 1e6, 1e9, 2.0**40])
def test_invert_is_off_by_less_than_it_says(kind: type[Law], scale: float) -> None:
    law = kind(scale)
    ts = np.array(uniforms(24))
    found = law.invert(ts)
    if kind is DiscreteGaussian and scale < DiscreteGaussian.LARGE:
        assert found is None
        return
    assert found is not None
    with mp.workprec(reference.PRECISION):
        off = [
            float(abs(mpf(float(x)) - reference.magnitude_at(law, Fraction(t))))
            for x, t in zip(found, ts.tolist(), strict=True)
        ]
    assert max(off) < law.invert_error / 4
    assert law.invert_error < max(1e-3 * law.spread, 1e-3)  # and the promise is worth something


@kinds
@pytest.mark.parametrize("scale", [50.0, 1234.5, 1e6])
def test_the_floor_of_invert_counts_the_tails_above(kind: type[Law], scale: float) -> None:
    """The defining property, at float t that are not close calls."""
    law = kind(scale)
    ts = np.array(uniforms(24)[1:])
    found = law.invert(ts)
    assert found is not None
    checked = 0
    for x, t in zip(found.tolist(), ts.tolist(), strict=True):
        if min(x - math.floor(x), math.ceil(x) - x) > 2 * law.invert_error:
            n = Fraction(t) * 2**200
            assert n.denominator == 1
            assert reference.magnitude_of(law, int(n), 200) == math.floor(x)
            checked += 1
    assert checked > 20


@kinds
@pytest.mark.parametrize("scale", [0.05, 0.3, 0.5, 1.0, 2.9, 3.0, 10.0, 47.9, 48.0, 100.0])
def test_pmf_sums_to_one_and_has_the_stated_moments(kind: type[Law], scale: float) -> None:
    law = kind(scale)
    k = np.arange(-math.ceil(60 * scale) - 8, math.ceil(60 * scale) + 9)
    p = law.pmf(k)
    assert math.fsum(p) == pytest.approx(1, abs=1e-14)
    mean = math.fsum(p * k)
    assert mean == pytest.approx(float(law.tail(np.arange(1, k[-1])).sum()) if law.one_sided else 0, abs=1e-10 * scale)
    assert law.variance == pytest.approx(math.fsum(p * (k - mean) ** 2), rel=1e-12)
    assert law.std == math.sqrt(law.variance)


@kinds
@scales
def test_pmf_is_the_difference_of_cdf_and_of_the_reference(kind: type[Law], scale: float) -> None:
    law = kind(scale)
    ks = np.array([-k for k in places(law, 20)] + [0] + places(law, 20))
    assert np.abs(law.pmf(ks) - (law.cdf(ks) - law.cdf(ks - 1))).max() < 8 * TAIL_ERROR / 256
    with mp.workprec(reference.PRECISION):
        for k in ks.tolist():
            upper = mpf(1) if k == 0 else reference.tail(law, abs(k))
            mass = upper - reference.tail(law, abs(k) + 1)
            if k < 0 and law.one_sided:
                mass = mpf(0)
            elif k and not law.one_sided:
                mass /= 2
            assert float(law.pmf(k)) == pytest.approx(float(mass), rel=1e-6, abs=1e-15)  # relative also in the tail


@timeless
@given(any_law, st.floats(1e-12, 1 - 1e-12))
def test_quantile_is_the_least_k_with_enough_below(law: Law, p: float) -> None:
    k = law.quantile(p)
    assert law.cdf(k) >= p > law.cdf(k - 1)
    assert not law.one_sided or k >= 0


@timeless
@given(any_law, st.floats(1e-15, 1 - 1e-12))
def test_half_width_is_the_least_w_with_little_outside(law: Law, alpha: float) -> None:
    w = law.half_width(alpha)
    assert w >= 0 and law.tail(w + 1) <= alpha
    assert w == 0 or law.tail(w) > alpha


@timeless
@given(any_law, st.integers(-(10**10), 10**10) | st.integers(-3, 3))
def test_cdf_and_sf_share_out_the_whole(law: Law, k: int) -> None:
    below, above = float(law.cdf(k)), float(law.sf(k))
    assert 0 <= below <= 1 and 0 <= above <= 1 and below + above == pytest.approx(1, abs=1e-15)
    if law.one_sided:
        assert (below == 0) == (k < 0)
    else:
        assert above == float(law.cdf(-k - 1))  # symmetry
        if k >= 0:
            assert above == float(law.tail(k + 1)) / 2  # no cancellation
    assert law.cdf(k) <= law.cdf(k + 1)


@kinds
def test_arrays_and_single_numbers_give_the_same(kind: type[Law]) -> None:
    law, ks = kind(20.0), np.arange(-90, 90)
    for name in ("pmf", "cdf", "sf"):
        one_by_one = [float(getattr(law, name)(int(k))) for k in ks]
        assert getattr(law, name)(ks).tolist() == pytest.approx(one_by_one, rel=1e-14, abs=1e-300)


@pytest.mark.parametrize("scale", [48.0, 50.3, 64.0, 300.0])
def test_euler_maclaurin_agrees_with_direct_sums(scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same law by both branches, where `LARGE` would switch from the one to the other."""
    law, ks = DiscreteGaussian(scale), np.arange(1, round(9 * scale), 7)
    smooth = law.tail(ks)
    certified = {k: law.enclose_tail(k, 200) for k in (1, 7, round(scale), round(5 * scale), round(11 * scale))}
    monkeypatch.setattr(DiscreteGaussian, "LARGE", math.inf)
    assert np.abs(law.tail(ks) - smooth).max() < TAIL_ERROR / 64
    for k, found in certified.items():
        summed = law.enclose_tail(k, 200)
        assert summed.lo <= found.hi and found.lo <= summed.hi


@pytest.mark.parametrize("scale", [48.0, 64.0, 100.0])
def test_the_remainder_that_the_enclosure_leaves_out_is_real(scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant a formula with too few terms: the enclosure no longer holds the tail."""
    monkeypatch.setattr(laws, "_remainder_below", lambda terms, sigma, bits: terms >= 3)
    law = DiscreteGaussian(scale)
    low, high = reference.scaled(reference.tail(law, round(1.5 * scale)), 200)
    found = law.enclose_tail(round(1.5 * scale), 200)
    assert not (found.lo <= low and high <= found.hi)


def test_euler_maclaurin_refuses_a_precision_that_it_does_not_reach() -> None:
    with pytest.raises(ArithmeticError, match="precision"):
        DiscreteGaussian(48.0).enclose_tail(3, 6000)


@timeless
@given(st.sampled_from([48.0, 100.0, 1e4]), st.integers(1, 60))
def test_the_series_stops_only_where_the_remainder_is_small(sigma: float, terms: int) -> None:
    with mp.workprec(400):
        bound = 4 * mp.sqrt(mp.factorial(2 * terms)) / (2 * mp.pi * mpf(sigma)) ** (2 * terms)
        for bits in range(20, 300, 40):
            if laws._remainder_below(terms, sigma, bits):
                assert bound <= mpf(2) ** -bits


# Published numbers.


@pytest.mark.parametrize(
    ("variance", "true_variance"), [(0.25, 0.215012675), (0.5, 0.498979131), (1.0, 0.999999788768)]
)
def test_published_variance_of_the_discrete_gaussian(variance: float, true_variance: float) -> None:
    assert DiscreteGaussian(math.sqrt(variance)).variance == pytest.approx(true_variance, abs=6e-10)


@pytest.mark.parametrize("variance", [2.0, 3.0, 4.0, 8.9, 9.0, 9.1, 100.0])
def test_from_2_on_the_discrete_gaussian_has_its_nominal_variance(variance: float) -> None:
    assert DiscreteGaussian(math.sqrt(variance)).variance == pytest.approx(variance, rel=1e-9)


def test_published_mass_at_zero() -> None:
    assert float(DiscreteGaussian(1.0).pmf(0)) == pytest.approx(0.39894228, abs=6e-9)
    assert float(DiscreteLaplace(1.0).pmf(0)) == pytest.approx(0.46211716, abs=6e-9)
    assert DiscreteLaplace(1.0).variance == pytest.approx(1.84134719, abs=6e-9)


def delta(law: Law, epsilon: float) -> float:
    """sup over events of P(A) - e^epsilon P(A + 1): neighbours at distance 1."""
    k = np.arange(-math.ceil(20 * law.spread), math.ceil(20 * law.spread) + 1)
    return math.fsum(np.maximum(law.pmf(k) - math.exp(epsilon) * law.pmf(k - 1), 0))


@pytest.mark.parametrize(
    ("variance", "epsilon", "published"),
    [(1, 1, 0.14135134), (4, 1, 7.2487768e-3), (16, 1, 3.0554546e-6), (100, 0.5, 6.9343703e-9)],
)
def test_published_delta_of_the_discrete_gaussian(variance: float, epsilon: float, published: float) -> None:
    assert delta(DiscreteGaussian(math.sqrt(variance)), epsilon) == pytest.approx(published, rel=2e-8)


def test_the_discrete_gaussian_is_not_bounded_by_the_continuous_curve_but_the_rounded_is() -> None:
    continuous = 0.12693673750664393  # delta(epsilon=1, mu=1)
    assert delta(DiscreteGaussian(1.0), 1.0) > continuous + 0.01
    # The best event is a half-line that starts at a cell's edge here, so rounding loses nothing; elsewhere it does.
    assert delta(RoundedGaussian(1.0), 1.0) == pytest.approx(continuous, abs=1e-15)
    assert delta(RoundedGaussian(1.0), 0.5) < float(ndtr(0.0) - math.exp(0.5) * ndtr(-1.0)) - 0.001


@timeless
@given(st.floats(0.3, 30), st.sampled_from([RoundedLaplace, DiscreteLaplace]))
def test_laplace_laws_are_exactly_as_private_as_their_scale(scale: float, kind: type[Law]) -> None:
    """The log ratio between neighbours at distance 1 is at most 1/scale, and reaches it."""
    law, k = kind(scale), np.arange(-200, 201)
    ratios = np.log(law.pmf(k)) - np.log(law.pmf(k - 1))
    assert np.abs(ratios).max() == pytest.approx(1 / scale, rel=1e-9)


def test_equal_parameters_of_different_laws_are_different_laws() -> None:
    assert len({kind(2.0) for kind in LAWS}) == len(LAWS)
    assert RoundedLaplace(2) == RoundedLaplace(2.0) and isinstance(RoundedLaplace(2).scale, float)
    assert RoundedLaplace(np.float64(2.0)) == RoundedLaplace(2.0)


@kinds
@pytest.mark.parametrize(
    "bad", [0, -1.0, math.nan, math.inf, 1e-320, 2.0**-12 / 1.001, 2.0**40 * 1.001, "1", None, True]
)
def test_a_bad_scale_is_refused_by_name(kind: type[Law], bad: Any) -> None:
    name = "sigma" if kind in GAUSSIANS else "scale"
    with pytest.raises(ArgumentError, match=rf"^{name} = .* is not allowed: give a number of grid steps from"):
        kind(bad)


@kinds
@pytest.mark.parametrize("bad", [0.0, 1.0, -0.1, 1.5, math.nan])
def test_a_bad_probability_is_refused_by_name(kind: type[Law], bad: float) -> None:
    with pytest.raises(ArgumentError, match=r"^p = "):
        kind(1.0).quantile(bad)
    with pytest.raises(ArgumentError, match=r"^alpha = "):
        kind(1.0).half_width(bad)


def test_the_reference_agrees_with_itself() -> None:
    """Direct sums and the endpoint formula, at a scale where both can be had."""
    for k in (1, 100, 500, 2000):
        summed = reference._summed_tails(500.0)[k]
        formula = reference._euler_maclaurin_tail(500.0, k)
        assert abs(summed - formula) < mpf(2) ** -200
    for law in (DiscreteGaussian(100.0), RoundedGaussian(3.0), Geometric(50.0)):
        t = Fraction(1, 37)
        x = reference.magnitude_at(law, t)
        assert int(mp.ceil(x)) - 1 == reference.magnitude_of(law, math.floor(t * 2**100), 100)
