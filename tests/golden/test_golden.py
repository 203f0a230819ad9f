"""Other libraries as oracles. `python -m bench.golden` regenerates the files."""

import json
import math
from fractions import Fraction
from pathlib import Path

from sfumato.accounting import gdp
from sfumato.laws import DiscreteGaussian, DiscreteLaplace

HERE = Path(__file__).parent


def golden(name: str) -> list[list[float]]:
    return json.loads((HERE / f"{name}.json").read_text())["rows"]


def test_the_analytic_gaussian_agrees_with_diffprivlib():
    for epsilon, delta, sigma in golden("analytic_gaussian"):
        ours = float(gdp.least_multiplier(Fraction(repr(epsilon)), Fraction(repr(delta))))
        # diffprivlib finds its root in float64, which cancels at tiny delta: off by up to 0.1 % there, both ways
        assert math.isclose(ours, sigma, rel_tol=1e-8 if delta >= 1e-6 else 2e-3), (epsilon, delta)
        if sigma < ours * (1 - 1e-7):  # then theirs is too little noise, and provably so
            theirs = gdp.enclose_delta(1 / Fraction(sigma), Fraction(repr(epsilon)), 120)
            assert Fraction(theirs.lo, 2**120) > Fraction(repr(delta))


def test_discrete_error_bars_agree_with_opendp():
    for scale, alpha, laplace, gaussian in golden("discrete_error_bars"):
        # OpenDP: P(|noise| >= a) <= alpha, real a for Laplace; ours: the least whole w with P(|noise| > w) <= alpha
        assert DiscreteLaplace(scale).half_width(alpha) + 1 == max(1, math.ceil(laplace - 1e-9)), (scale, alpha)
        assert DiscreteGaussian(scale).half_width(alpha) + 1 == max(1, gaussian), (scale, alpha)
