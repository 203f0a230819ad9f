"""Roots and minima are those of scipy.optimize, bit for bit: stored prices were found with it."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from sfumato.accounting import brent

_Curve = Callable[[float], float]


def _curve(kind: str, at: float, steep: float, bend: float) -> _Curve:
    curves: dict[str, _Curve] = {
        "line": lambda x: steep * (x - at),
        "cube": lambda x: (x - at) ** 3 + bend * (x - at),
        "exponential": lambda x: math.expm1(min(steep * (x - at), 700.0)),
        "sigmoid": lambda x: math.atan(steep * (x - at)),
        "steps": lambda x: float(math.floor(steep * (x - at))) + 0.5,
        "flat": lambda x: math.copysign(abs(x - at) ** (1 + 8 * bend), x - at),
        "tiny": lambda x: 1e-300 * (x - at) ** 3,
        "waves": lambda x: (x - at) + bend * math.sin(7 * steep * (x - at)),
    }
    return curves[kind]


KINDS = st.sampled_from(["line", "cube", "exponential", "sigmoid", "steps", "flat", "tiny", "waves"])
SIZES = st.floats(1e-3, 1e3)
TOLERANCES = st.sampled_from([(1e-14, 1e-14), (1e-13, 1e-13), (1e-9, 1e-9), (1e-3, 1e-9)])


@settings(max_examples=300)
@given(KINDS, st.floats(-50, 50), SIZES, st.floats(0, 2), st.floats(1e-6, 60), st.floats(1e-6, 60), TOLERANCES)
def test_roots_are_those_of_scipy(
    kind: str, at: float, steep: float, bend: float, below: float, above: float, tolerances: tuple[float, float]
) -> None:
    excess, low, high = _curve(kind, at, steep, bend), at - below, at + above
    if excess(low) * excess(high) > 0:
        return
    absolute, relative = tolerances
    theirs: list[float] = []
    ours: list[float] = []

    def noted(seen: list[float]) -> _Curve:
        def looked_at(x: float) -> float:
            seen.append(x)
            return excess(x)

        return looked_at

    try:
        wanted = optimize.brentq(noted(theirs), low, high, xtol=absolute, rtol=relative)
    except (RuntimeError, ValueError) as error:
        with pytest.raises(type(error)):
            brent.root(noted(ours), low, high, absolute=absolute, relative=relative)
    else:
        assert brent.root(noted(ours), low, high, absolute=absolute, relative=relative) == wanted
    assert ours == theirs, "at every point on the way"


@settings(max_examples=300)
@given(KINDS, st.floats(-50, 50), SIZES, st.floats(0, 2), st.floats(1e-3, 60), st.floats(1e-3, 60), st.booleans())
def test_minima_are_those_of_scipy(
    kind: str, at: float, steep: float, bend: float, below: float, above: float, sharp: bool
) -> None:
    curve, low, high = _curve(kind, at, steep, bend), at - below, at + above
    absolute = 1e-10 if sharp else 0.02

    def height(x: float) -> float:
        return min(abs(curve(float(x))), 1e40) ** 2

    wanted = optimize.minimize_scalar(height, bounds=(low, high), method="bounded", options={"xatol": absolute})
    assert brent.least(height, low, high, absolute=absolute) == (float(wanted.x), float(wanted.fun))


def test_a_root_where_there_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="two points of one sign"):
        brent.root(lambda x: x * x + 1, -1.0, 1.0, absolute=1e-9, relative=1e-9)
    with pytest.raises(ValueError, match="no number"):
        brent.root(lambda x: math.nan, -1.0, 1.0, absolute=1e-9, relative=1e-9)


def test_ends_that_are_roots_are_returned() -> None:
    assert brent.root(lambda x: x, 0.0, 1.0, absolute=1e-9, relative=1e-9) == 0.0
    assert brent.root(lambda x: x, -1.0, 0.0, absolute=1e-9, relative=1e-9) == 0.0
