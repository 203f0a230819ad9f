"""Error bars of statistics: they hold as often as they say, and say so where noise hides the number."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import pairwise

import numpy as np
import pytest

from sfumato.laws import DiscreteGaussian, DiscreteLaplace, Geometric, Law, RoundedGaussian, RoundedLaplace
from sfumato.query.released import formulas, images, mixtures
from sfumato.query.released.figures import Figure, constant, given, measured

RUNS = 20_000
FINE = 64.0  # the noise scale in steps
SCALES = {"n": 20.0, "x": 1000.0, "xx": 50_000.0, "y": 1000.0, "yy": 50_000.0, "xy": 50_000.0}
LAWS: list[Law] = [RoundedGaussian(FINE), RoundedLaplace(FINE)]

Found = Mapping[str, Figure]
STATISTICS: dict[str, tuple[Callable[[Found], Figure], Callable[[np.ndarray, np.ndarray], float]]] = {
    "count": (lambda f: f["n"], lambda x, y: x.size),
    "sum": (lambda f: formulas.total(f["n"], f["x"], 50.0), lambda x, y: x.sum()),
    "mean": (lambda f: formulas.mean(f["n"], f["x"], 50.0, 0.0, 100.0), lambda x, y: x.mean()),
    "var_samp": (lambda f: formulas.variance(f["n"], f["x"], f["xx"], width=100.0), lambda x, y: x.var(ddof=1)),
    "var_pop": (lambda f: formulas.variance(f["n"], f["x"], f["xx"], sample=False), lambda x, y: x.var()),
    "stddev": (lambda f: formulas.deviation(f["n"], f["x"], f["xx"], width=100.0), lambda x, y: x.std(ddof=1)),
    "covar_samp": (
        lambda f: formulas.covariance(f["n"], f["x"], f["y"], f["xy"], most=2500.0),
        lambda x, y: np.cov(x, y)[0, 1],
    ),
    "covar_pop": (
        lambda f: formulas.covariance(f["n"], f["x"], f["y"], f["xy"], sample=False),
        lambda x, y: np.cov(x, y, ddof=0)[0, 1],
    ),
    "corr": (
        lambda f: formulas.correlation(f["n"], f["x"], f["y"], f["xx"], f["yy"], f["xy"]),
        lambda x, y: np.corrcoef(x, y)[0, 1],
    ),
    "ratio": (
        lambda f: formulas.ratio(formulas.total(f["n"], f["x"], 50.0), formulas.total(f["n"], f["y"], 50.0)),
        lambda x, y: x.sum() / y.sum(),
    ),
}


def draws(rng: np.random.Generator, law: Law, size: int) -> np.ndarray:
    if isinstance(law, RoundedGaussian):
        return np.round(law.sigma * rng.standard_normal(size))
    assert isinstance(law, RoundedLaplace)
    return np.round(rng.laplace(scale=law.scale, size=size))


def simulated(law: Law, rows: int, runs: int = RUNS) -> tuple[Found, mixtures.Spreads, np.ndarray, np.ndarray]:
    """Sums of made-up rows with noise, drawn anew in each run (a run stands for a group)."""
    rng = np.random.default_rng(rows + len(type(law).__name__))
    x = rng.gamma(2, 10, rows).clip(0, 100)
    y = (x + 10 * rng.standard_normal(rows)).clip(0, 100)
    a, b = x - 50, y - 50
    sums = {"n": rows, "x": a.sum(), "xx": a @ a, "y": b.sum(), "yy": b @ b, "xy": a @ b}
    spreads = {name: (law, scale / FINE) for name, scale in SCALES.items()}
    found = {
        name: measured(name, (np.round(sums[name] / step) + draws(rng, own, runs)) * step)
        for name, (own, step) in spreads.items()
    }
    return found, spreads, x, y


@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
@pytest.mark.parametrize("name", STATISTICS)
def test_intervals_hold_the_truth_as_often_as_they_say(name: str, law: Law) -> None:
    found, spreads, x, y = simulated(law, 20_000)
    figure, truth = STATISTICS[name][0](found), STATISTICS[name][1](x, y)
    for alpha, least, most in ((0.05, 0.93, 0.98), (0.3, 0.66, 0.80), (0.01, 0.983, 0.998)):
        low, high = figure.interval(spreads, alpha)
        held = float(np.mean((low <= truth) & (truth <= high)))
        assert least <= held <= most, (alpha, held)
        assert np.all((low <= figure.value) & (figure.value <= high))
    assert not figure.unreliable(spreads).any()
    spread = float(np.std(figure.value))
    assert np.median(figure.std(spreads)) == pytest.approx(spread, rel=0.05)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
@pytest.mark.parametrize("name", ["mean", "var_samp", "stddev", "covar_samp", "corr", "ratio"])
def test_small_counts_become_unreliable_and_intervals_still_hold(name: str, law: Law) -> None:
    doubts = []
    for rows in (3, 20, 60, 120, 2000, 30_000):
        found, spreads, x, y = simulated(law, rows, 4000)
        figure, truth = STATISTICS[name][0](found), STATISTICS[name][1](x, y)
        low, high = figure.interval(spreads, 0.05)
        assert np.mean((low <= truth) & (truth <= high)) >= 0.93, rows
        doubts.append(float(figure.unreliable(spreads).mean()))
    assert doubts[0] > 0.95
    assert doubts[-1] == 0
    assert all(more >= less - 0.02 for more, less in pairwise(doubts)), doubts


def test_an_unreliable_mean_is_known_to_lie_within_its_bounds() -> None:
    spreads = {"n": (RoundedGaussian(10.0), 1.0), "s": (RoundedGaussian(10.0), 1.0)}
    mean = formulas.mean(measured("n", [5.0, -4.0, 1e6]), measured("s", [40.0, 7.0, 0.0]), 50.0, 0.0, 100.0)
    assert mean.unreliable(spreads).tolist() == [True, True, False]
    low, high = mean.interval(spreads)
    assert low[:2].tolist() == [0.0, 0.0]
    assert high[:2].tolist() == [100.0, 100.0]
    assert mean.value[:2].tolist() == [58.0, 50.0]  # with no rows left, the middle
    assert mean.half_width(spreads)[2] < 1e-3


def test_a_variance_is_never_negative_and_keeps_what_it_was() -> None:
    spreads = {name: (RoundedGaussian(10.0), 1.0) for name in "nsq"}
    variance = formulas.variance(measured("n", [1000.0]), measured("s", [0.0]), measured("q", [-30.0]), width=2.0)
    assert variance.value.tolist() == [0.0]
    assert variance.raw is not None
    assert variance.raw[0] == pytest.approx(-30 / 999)
    low, high = variance.interval(spreads)
    assert low[0] == 0.0
    assert high[0] == pytest.approx(19.8 / 999, rel=0.05)  # of a width, though all of the raw interval is below 0
    deviation = images.root(variance)
    assert deviation.value.tolist() == [0.0]
    assert deviation.unreliable(spreads).all()
    assert np.isnan(deviation.std(spreads)).all()


@pytest.mark.parametrize(
    "law", [*LAWS, DiscreteGaussian(5.0), DiscreteLaplace(5.0)], ids=lambda law: type(law).__name__
)
def test_one_number_has_the_exact_width_of_its_law(law: Law) -> None:
    count = measured("n", [100.0, 7.0])
    spreads = {"n": (law, 0.25)}
    width = (law.half_width(0.05) + 0.5) * 0.25
    assert count.half_width(spreads) == pytest.approx(width)
    assert (count + count).half_width(spreads) == pytest.approx(2 * width)  # the same noise twice
    assert (count - count).half_width(spreads) == pytest.approx(0)
    assert (-count * constant(3.0, 2)).std(spreads) == pytest.approx(3 * 0.25 * law.std)
    assert count.exact
    assert (count / count).interval({"n": (law, 0.01)})[0] == pytest.approx(1)


MIXES: list[list[Law]] = [
    [RoundedGaussian(30.0), RoundedGaussian(5.0)],
    [RoundedLaplace(30.0), RoundedLaplace(5.0)],
    [RoundedLaplace(30.0), RoundedLaplace(30.0), RoundedLaplace(30.0)],
    [RoundedGaussian(30.0), RoundedLaplace(30.0)],
    [RoundedGaussian(30.0), RoundedGaussian(30.0), RoundedLaplace(8.0)],
    [DiscreteLaplace(20.0), RoundedLaplace(9.0)],
    [DiscreteGaussian(20.0), RoundedGaussian(9.0)],
    [DiscreteGaussian(20.0), RoundedLaplace(9.0)],
    [DiscreteGaussian(20.0), Geometric(9.0), Geometric(3.0)],
]


@pytest.mark.parametrize("laws", MIXES, ids=lambda laws: "+".join(type(law).__name__ for law in laws))
def test_mixtures_of_different_noise_are_covered(laws: list[Law]) -> None:
    """Against the exact law of the sum, by convolution."""
    weights = [1, 2, 1][: len(laws)]
    total = np.ones(1)
    for law, weight in zip(laws, weights, strict=True):
        reach = math.ceil(law.spread * 40)
        spaced = np.zeros(2 * reach * weight + 1)
        spaced[::weight] = law.pmf(np.arange(-reach, reach + 1))
        total = np.convolve(total, spaced)
    size = np.abs(np.arange(total.size) - total.size // 2)
    spreads = {str(i): (law, 0.5) for i, law in enumerate(laws)}
    slopes = {str(i): np.array([float(weight)]) for i, weight in enumerate(weights)}
    deviation = math.sqrt(float(total @ size**2)) / 2
    if not any(law.one_sided for law in laws):
        assert mixtures.std(slopes, spreads)[0] == pytest.approx(deviation, rel=1e-6)
    for alpha in (0.3, 0.05, 0.001):
        width = float(mixtures.half_width(slopes, spreads, alpha)[0])
        assert total[size * 0.5 > width].sum() <= alpha
        beyond = np.cumsum(np.bincount(size, total)[::-1])[::-1]
        least = float(np.flatnonzero(beyond <= alpha)[0] - 1) / 2
        assert width <= (3.0 if laws[-1].one_sided else 2.0) * least + 4


def test_functions_of_one_number_carry_its_interval_with_them() -> None:
    spreads = {"n": (RoundedGaussian(2.0), 1.0)}
    n = measured("n", [100.0, 3.0, -50.0])
    low, high = n.interval(spreads)
    found = images.exponential(n * constant(0.1, 3)).interval(spreads)
    assert found[0] == pytest.approx(np.exp(0.1 * low))
    assert images.power(n, 3.0).interval(spreads)[1] == pytest.approx(high**3)
    square = images.power(n, 2.0).interval(spreads)
    assert square[0] == pytest.approx([low[0] ** 2, 0.0, high[2] ** 2])
    assert images.absolute(n).interval(spreads)[0] == pytest.approx([low[0], 0.0, -high[2]])
    assert images.logarithm(n).value[0] == pytest.approx(math.log(100))
    assert np.isnan(images.logarithm(n).value[2])
    assert images.logarithm(n).unreliable(spreads).tolist() == [False, True, False]  # NULL is surely NULL
    floored = images.clip(n, 0.0)
    assert floored.value.tolist() == [100.0, 3.0, 0.0]
    assert floored.raw is n.value
    assert floored.interval(spreads)[0] == pytest.approx([low[0], 0.0, 0.0])
    assert images.rounded(n, np.floor).interval(spreads)[0] == pytest.approx(np.floor(low))
    reciprocal = constant(1.0, 3) / n
    assert reciprocal.interval(spreads)[1] == pytest.approx([1 / low[0], np.inf, 1 / low[2]])
    assert reciprocal.unreliable(spreads).tolist() == [False, True, False]
    assert images.power(n, -1.0).value == pytest.approx(1 / n.value)


def test_greatest_of_a_noisy_number_and_a_bound_is_a_floor() -> None:
    spreads = {"n": (RoundedLaplace(10.0), 1.0), "m": (RoundedLaplace(10.0), 1.0)}
    n, m = measured("n", [-5.0, 500.0]), measured("m", [4.0, 510.0])
    floored = images.extreme([n, constant(0.0, 2)], greatest=True)
    assert floored.value.tolist() == [0.0, 500.0]
    assert floored.interval(spreads)[1] == pytest.approx(np.maximum(n.interval(spreads)[1], 0))
    assert floored.std(spreads) == pytest.approx(n.std(spreads))
    most = images.extreme([n, m], greatest=True)
    high = most.interval(spreads, 0.05)[1]
    assert high == pytest.approx(m.interval(spreads, 0.025)[1])
    assert most.jumps
    assert ((most + n).interval(spreads)[1] >= most.value + n.value).all()


def test_a_branch_that_noise_may_have_chosen_counts_with_both_its_ends() -> None:
    spreads = {"n": (RoundedGaussian(10.0), 1.0)}
    n = measured("n", [95.0, 1000.0])
    margin = n - constant(100.0, 2)
    kept = images.where(margin.value > 0, n, constant(0.0, 2), (margin,))
    assert kept.value.tolist() == [0.0, 1000.0]
    assert kept.unreliable(spreads).tolist() == [True, False]
    low, high = kept.interval(spreads)
    assert (low[0], high[0]) == (0.0, pytest.approx(n.interval(spreads)[1][0]))
    assert not kept.exact


def test_a_number_with_intervals_of_its_own_takes_part() -> None:
    def within(alpha: float) -> tuple[np.ndarray, np.ndarray]:
        width = -math.log(alpha)
        return np.array([10.0, 20.0]) - width, np.array([10.0, 20.0]) + width

    median = given("median", [10.0, 20.0], within, np.array([False, True]))
    spreads = {"n": (RoundedGaussian(10.0), 1.0)}
    doubled = median * constant(2.0, 2)
    assert doubled.half_width(spreads, 0.05) == pytest.approx(2 * -math.log(0.05))
    assert doubled.unreliable(spreads).tolist() == [False, True]
    both = median + measured("n", [100.0, 100.0])
    n = measured("n", [100.0, 100.0])
    assert both.interval(spreads, 0.05)[0] == pytest.approx(within(0.025)[0] + n.interval(spreads, 0.025)[0])
    assert median.std(spreads) == pytest.approx(-math.log(1 - 0.6827))


def test_ten_thousand_groups_are_quick() -> None:
    found, spreads, _, _ = simulated(RoundedLaplace(FINE), 5000, 10_000)
    figure = STATISTICS["corr"][0](found)
    assert figure.interval(spreads, 0.02)[0].shape == (10_000,)
    empty = {name: measured(name, np.zeros(0)) for name in SCALES}
    for make, _ in STATISTICS.values():
        assert make(empty).half_width(spreads).shape == (0,)
