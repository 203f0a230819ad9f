"""The search itself: what it returns was looked at and will do, and its neighbour will not."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.accounting.search import OutsideError, crossing
from sfumato.errors import ArgumentError

many = settings(derandomize=True, deadline=None, max_examples=200)


class Spy:
    """A function that remembers where it was looked at."""

    def __init__(self, function: Callable[[float], float]) -> None:
        self.function, self.seen = function, {}  # type: ignore[var-annotated]

    def __call__(self, x: float) -> float:
        self.seen[x] = self.function(x)
        return self.seen[x]


@many
@given(
    root=st.floats(1e-8, 1e8),
    power=st.sampled_from([-3.0, -1.0, -0.5, 0.25, 1.0, 4.0]),
    tolerance=st.sampled_from([1e-2, 1e-4, 1e-7]),
    curved=st.booleans(),
)
def test_powers_and_curved_powers_are_crossed(root: float, power: float, tolerance: float, curved: bool) -> None:
    def excess(x: float) -> float:
        line = power * (math.log(x) - math.log(root))
        return math.copysign(math.expm1(min(abs(line), 600)), line) if curved else line

    spy = Spy(excess)
    found = crossing(spy, "f", tolerance=tolerance)
    assert spy.seen[found.inside] <= 0 < spy.seen[found.outside]
    assert abs(math.log(found.inside / found.outside)) <= tolerance
    assert found.more_is_safer == (power < 0)
    assert found.evaluations == len(spy.seen) <= 45


@many
@given(root=st.floats(1e-6, 1e6), rising=st.booleans())
def test_yes_and_no_are_enough(root: float, rising: bool) -> None:
    found = crossing(lambda x: 1.0 if (x > root) == rising else -1.0, "f", tolerance=1e-4)
    low, high = sorted((found.inside, found.outside))
    assert low <= root <= high and high / low < 1 + 1.001e-4
    assert found.more_is_safer != rising


@many
@given(last=st.integers(1, 10**9), kind=st.sampled_from(["root", "jump", "steep"]))
def test_whole_numbers_are_settled_to_the_last_one(last: int, kind: str) -> None:
    def excess(x: float) -> float:
        assert x == int(x) >= 1
        if kind == "jump":
            return -1.0 if x <= last else 1.0
        return (0.5 if kind == "root" else 3.0) * math.log(x / (last + 0.5))

    found = crossing(excess, "f", start=1, whole=True)
    assert (found.inside, found.outside) == (last, last + 1)


def test_a_smooth_price_takes_few_evaluations() -> None:
    found = crossing(lambda x: math.log((0.3 / x + 0.1 / x**3) / 2), "f", tolerance=1e-4)
    assert found.evaluations <= 9


@pytest.mark.parametrize("level", [-1.0, 1.0])
def test_a_flat_function_is_refused(level: float) -> None:
    with pytest.raises(ArgumentError, match=r"f stays .* the target .* does not change"):
        crossing(lambda x: level, "f")


def test_a_target_out_of_reach_is_refused_with_what_stopped_it() -> None:
    def excess(x: float) -> float:
        if x > 5:
            raise OutsideError("five is the most")
        return math.log(10 / x)

    with pytest.raises(ArgumentError, match=r"stays above the target.*five is the most"):
        crossing(excess, "f")
    with pytest.raises(ArgumentError, match=r"stays within the target.*any of them will do.*five is the most"):
        crossing(lambda x: -excess(x), "f", start=4)


def test_the_target_may_lie_close_to_what_is_not_allowed() -> None:
    def excess(x: float) -> float:
        if x > 5:
            raise OutsideError("five is the most")
        return math.log(4.9999 / x)

    assert 4.9999 <= crossing(excess, "f").inside <= 5


def test_other_starts_are_tried_and_the_first_refusal_is_told() -> None:
    def only_small(x: float) -> float:
        if x >= 0.05:
            raise OutsideError("too large")
        return math.log(x / 0.02)

    assert crossing(only_small, "f").inside == pytest.approx(0.02, rel=1e-4)
    with pytest.raises(ArgumentError, match=r"f refuses the parameter 1: too large.*start="):
        crossing(only_small, "f", start=1.0)


def test_a_function_that_turns_is_refused() -> None:
    def bumpy(x: float) -> float:
        return 1 + math.log(x) / 2 + 3 * math.exp(-4 * (math.log(x) + 1.9) ** 2)

    with pytest.raises(ArgumentError, match="not monotone"):
        crossing(bumpy, "f", start=1)


def test_nan_is_refused() -> None:
    with pytest.raises(ArgumentError, match="nan"):
        crossing(lambda x: math.nan, "f")


def test_infinities_are_only_signs() -> None:
    found = crossing(lambda x: math.inf if x < 3 else -math.inf, "f")
    assert found.outside < 3 <= found.inside
