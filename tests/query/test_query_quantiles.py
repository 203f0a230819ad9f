"""Quantiles by group: exact before the noise, one draw per node, the price kept, and bars that hold."""

from __future__ import annotations

import itertools
import math
import time
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato import Unit
from sfumato.laws import DiscreteLaplace, Law, RoundedGaussian, RoundedLaplace
from sfumato.mechanisms import QuantileTree
from sfumato.noise import Noise, SeededBits
from sfumato.query import leaves as leaves_module
from sfumato.query import quantiles as module
from sfumato.query.kinds import Kind
from sfumato.query.leaves import Leaves, leaves_of
from sfumato.query.quantiles import Counts, Quantiles, histogram, quantiles, rank_error, read

STEP = 2**16
REAL = Kind("real", Fraction(0), Fraction(100))


class Silent(Noise):
    """No noise, to see what is under it. Says how much was asked for."""

    def __init__(self) -> None:
        super().__init__(SeededBits(0))
        self.drawn = 0

    def draw(self, law: Law, count: int) -> Any:
        self.drawn += count
        return np.zeros(count, dtype=np.int64)


def seeded(seed: int = 1) -> Noise:
    return Noise(SeededBits(seed))


def law_for(tree: Leaves, kind: str, epsilon: float = 1.0) -> Law:
    if kind == "laplace":
        return RoundedLaplace(STEP * tree.levels / epsilon)
    return RoundedGaussian(STEP * 3.7 * math.sqrt(tree.levels) / epsilon)


def cells(tree: Leaves, group: Any, x: Any) -> tuple[Any, Any, Any]:
    """What the engine gives, for rows of weight 1."""
    start = tree.first if tree.type == "real" else int(tree.lower)
    leaf = np.floor(np.asarray(x) / float(tree.width)).astype(np.int64) - start
    code, count = np.unique(np.asarray(group) * tree.count + leaf, return_counts=True)
    return code // tree.count, code % tree.count, count * STEP


def made_up(groups: int, rows: int, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return np.repeat(np.arange(groups), rows), np.clip(rng.gamma(2, 8, groups * rows), 0, 100)


@pytest.mark.parametrize("values", [2, 7, 40, 1000, 4096])
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_without_noise_whole_quantiles_are_exact(values: int, noise: str) -> None:
    rng = np.random.default_rng(values)
    tree = leaves_of(Kind("whole", Fraction(3), Fraction(values + 2)), noise=noise)
    group, x = rng.integers(0, 20, 400), rng.integers(3, values + 3, 400)
    ps = [0.1, 0.25, 0.5, 0.9]
    law = DiscreteLaplace(1.0)  # of 2^-16 rows: the bars are narrow, too
    found = quantiles(21, *cells(tree, group, x), tree=tree, law=law, noise=Silent(), ps=[*ps, 0, 1])
    assert found.values.shape == (21, 6)
    for code in range(20):
        own = x[group == code]
        assert found.rows[code] == own.size
        assert found.values[code, :4].tolist() == np.quantile(own, ps, method="inverted_cdf").tolist()
        assert found.values[code, 4:].tolist() == [own.min(), own.max()]
    assert found.unreliable.tolist() == [False] * 20 + [True]
    assert (found.lower <= found.values).all() and (found.values <= found.upper).all()
    assert found.lower[20].tolist() == [3] * 6 and found.upper[20].tolist() == [values + 2] * 6


def test_without_noise_real_quantiles_are_in_the_right_leaf() -> None:
    tree = leaves_of(REAL)
    group, x = made_up(30, 1000)
    found = quantiles(30, *cells(tree, group, x), tree=tree, law=DiscreteLaplace(1.0), noise=Silent(), ps=[0.2, 0.7])
    truth = np.quantile(x.reshape(30, 1000), [0.2, 0.7], axis=1, method="inverted_cdf").T
    assert np.abs(found.values - truth).max() <= float(tree.width)
    assert np.median(found.upper - found.lower) <= 2 * float(tree.width)


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_no_node_is_drawn_twice_and_few_are_drawn(noise: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = leaves_of(REAL, noise=noise)
    law, seen = law_for(tree, noise), set()
    children = Counts.children

    def watched(self: Counts, level: int, groups: Any, nodes: Any) -> Any:
        for key in zip([level] * len(groups), groups.tolist(), nodes.tolist(), strict=True):
            assert key not in seen
            seen.add(key)
        return children(self, level, groups, nodes)

    monkeypatch.setattr(Counts, "children", watched)
    monkeypatch.setattr(module, "_CELLS", 2000)  # in several blocks of groups
    group, x = made_up(40, 200)
    found = quantiles(40, *cells(tree, group, x), tree=tree, law=law, noise=seeded(), ps=[0.5, 0.25, 0.5, 0.5])
    assert (found.values[:, 0] == found.values[:, 2]).all()
    assert (found.lower[:, 0] == found.lower[:, 3]).all()
    assert len({group for _, group, _ in seen}) == 40
    assert sum(tree.fanout[level] for level, *_ in seen) < 40 * tree.count / 4


def test_the_counts_under_the_noise_are_exact_however_large() -> None:
    tree = Leaves("whole", Fraction(0), Fraction(10), Fraction(1), 0, 11, (2, 3, 2))
    rng = np.random.default_rng(4)
    big = rng.integers(-(2**60), 2**60, (50, 11))  # running totals over all groups wrap around many times
    codes, leaf = np.divmod(rng.permutation(550), 11)
    counts = Counts(50, codes, leaf, big[codes, leaf], tree, DiscreteLaplace(1.0), Silent())
    for level, stride in enumerate(tree.strides):
        parents = math.prod(tree.fanout[:level])
        groups, nodes = np.repeat(np.arange(50), parents), np.tile(np.arange(parents), 50)
        found = counts.children(level, groups, nodes).reshape(50, -1)
        for node in range(found.shape[1]):
            exact = [sum(map(int, row[node * stride : (node + 1) * stride])) for row in big]
            assert found[:, node].tolist() == exact


def test_rows_of_unknown_groups_and_leaves_are_no_error() -> None:
    tree = leaves_of(Kind("whole", Fraction(0), Fraction(9)))
    law = DiscreteLaplace(1.0)
    found = quantiles(2, [0, -1, 2, 0], [3, 3, 3, 10], [STEP] * 4, tree=tree, law=law, noise=Silent(), ps=[0.5])
    assert found.rows.tolist() == [1, 0]
    none = quantiles(0, [], [], [], tree=tree, law=law, noise=Silent(), ps=[0.5, 1])
    assert none.values.shape == (0, 2)


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_a_unit_moves_all_levels_by_what_is_priced(noise: str) -> None:
    """The bound that the law's scale is for, on units with rows in many groups and leaves."""
    tree = leaves_of(Kind("whole", Fraction(0), Fraction(199)), noise=noise)
    rng = np.random.default_rng(5)
    for _ in range(20):
        rows = rng.integers(1, 300)
        group, leaf = rng.integers(0, 6, rows), np.minimum(rng.geometric(0.03, rows), 199)
        per_group = np.bincount(group).astype(float)
        size = math.sqrt((per_group**2).sum()) if noise == "gaussian" else per_group.sum()
        weight = math.floor(STEP * min(1, 5 / size))
        counts = Counts(6, group, leaf, [weight] * rows, tree, DiscreteLaplace(1.0), Silent())
        moved = []
        for level in range(tree.levels):
            parents = math.prod(tree.fanout[:level])
            found = counts.children(level, np.repeat(np.arange(6), parents), np.tile(np.arange(parents), 6)) / STEP
            moved.append(float((found**2).sum() if noise == "gaussian" else found.sum()))
        assert max(moved) <= (25 if noise == "gaussian" else 5)


class Enumerated(Counts):
    """Each group has the same rows, and noise of its own from a table: one column for each node but the root."""

    def __init__(self, counts: list[int], table: Any, tree: Leaves, law: Law) -> None:
        groups, leaf = np.repeat(np.arange(len(table)), len(counts)), np.tile(np.arange(len(counts)), len(table))
        super().__init__(len(table), groups, leaf, np.tile(counts, len(table)), tree, law, Silent())
        self._table = table

    def _drawn(self, level: int, groups: Any, nodes: Any, branches: int) -> Any:
        start = sum(math.prod(self.tree.fanout[: k + 1]) for k in range(level))
        return self._table[groups[:, None], start + nodes[:, None] * branches + np.arange(branches)]


def outcomes(counts: list[int], most: int, law: Law, tree: Leaves, ps: list[float]) -> dict[Any, float]:
    """The chance of each outcome, over all noise of at most so much at each node."""
    nodes = sum(math.prod(tree.fanout[: k + 1]) for k in range(tree.levels))
    table = np.array(list(itertools.product(range(-most, most + 1), repeat=nodes)))
    chance = law.pmf(table).prod(axis=1)
    found = read(Enumerated(counts, table, tree, law), ps, step=1.0, alpha=0.5)
    shown = np.concatenate([found.values, found.lower, found.upper, found.rows[:, None]], axis=1).round(9)
    kinds, which = np.unique(shown, axis=0, return_inverse=True)
    return dict(zip(map(tuple, kinds.tolist()), np.bincount(which.reshape(-1), weights=chance).tolist(), strict=True))


@pytest.mark.parametrize("few", [0, 6])  # do estimates look a level ahead?
@pytest.mark.parametrize("ps", [[0.5], [0, 0.7]])
def test_neighbours_are_as_alike_as_the_price_says(few: int, ps: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """All noise up to 1 on one table, up to 2 on the neighbour: shifted by the one row, the first is part of the
    second, so exp(epsilon) holds between these parts of the laws too. Half of epsilon, the price of one level, does
    not: the test would see it."""
    monkeypatch.setattr(leaves_module, "_FEW", few)
    module._searches.cache_clear()
    tree = Leaves("whole", Fraction(0), Fraction(3), Fraction(1), 0, 4, (2, 2))
    law = DiscreteLaplace(1.0)
    worst = 0.0
    for row in range(4):
        more = [2, 1, 1, 3]
        less = [count - (leaf == row) for leaf, count in enumerate(more)]
        for one, other in ((more, less), (less, more)):
            inner, outer = outcomes(one, 1, law, tree, ps), outcomes(other, 2, law, tree, ps)
            worst = max(worst, *(math.log(chance / outer.get(shown, 1e-300)) for shown, chance in inner.items()))
    module._searches.cache_clear()
    assert 1.0 < worst <= 2.0 + 1e-9


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_quantiles_rise_with_p_and_bars_hold(noise: str) -> None:
    tree = leaves_of(REAL, noise=noise)
    law = law_for(tree, noise, 0.5)
    group, x = made_up(500, 1000)
    ps = [0.02, 0.1, 0.5, 0.5, 0.9, 0.98]
    found = quantiles(500, *cells(tree, group, x), tree=tree, law=law, noise=seeded(), ps=ps)
    assert (np.diff(found.values, axis=1) >= 0).all()
    truth = np.quantile(x.reshape(500, 1000), ps, axis=1, method="inverted_cdf").T
    held = ((found.lower <= truth) & (truth <= found.upper)).mean(axis=0)
    assert (held >= 0.93).all(), held
    assert (np.median(found.upper - found.lower, axis=0)[:5] < 20).all()
    assert abs(found.rows.std() / found.rows_std - 1) < 0.15
    assert abs(found.rows.mean() - 1000) < 4 * found.rows_std / math.sqrt(500)
    off = [abs((x[group == g] < found.values[g, 2]).sum() - 500) for g in range(500)]
    assert np.mean(np.array(off) <= rank_error(tree, law, 0.5)) >= 0.95
    assert np.quantile(off, 0.95) > rank_error(tree, law, 0.5) / 3  # no needless caution


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("count", [7, 100, 333])
def test_ranks_are_off_by_what_the_formula_says(noise: str, count: int) -> None:
    """Full leaves, all alike: a quantile at the edge of a leaf moves by the error of the running total there."""
    tree = leaves_of(Kind("whole", Fraction(0), Fraction(2**20 * count - 1)), noise=noise, resolution=count)
    assert (tree.count, tree.width) == (count, 2**20)
    law, groups = law_for(tree, noise), 1500
    full = np.full(groups * count, 2**20 * STEP)
    codes, leaf = np.divmod(np.arange(groups * count), count)
    for edge in (1, count // 3, count - 2):
        p = edge / count
        found = quantiles(groups, codes, leaf, full, tree=tree, law=law, noise=seeded(edge), ps=[p])
        off = found.values[:, 0] - edge * 2**20 + 0.5
        expected = module._deviations(tree, p)[edge] * law.std / STEP
        assert 0.85 < off.std() / expected < 1.08  # less where the last nodes have fewer children
        assert abs(off.mean()) < 4 * expected / math.sqrt(groups)


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_the_least_and_the_largest_are_read_a_little_inside(noise: str) -> None:
    tree = leaves_of(REAL, noise=noise)
    rng = np.random.default_rng(2)
    group, x = np.repeat(np.arange(200), 5000), rng.uniform(20, 80, 200 * 5000)
    law = law_for(tree, noise)
    found = quantiles(200, *cells(tree, group, x), tree=tree, law=law, noise=seeded(), ps=[0, 1])
    least, largest = found.values.T
    assert np.mean((least >= 20) & (least < 22)) > 0.95
    assert np.mean((largest <= 80) & (largest > 78)) > 0.95
    assert (found.lower[:, 0] == 0).all() and (found.upper[:, 1] == 100).all()
    assert np.mean(found.upper[:, 0] >= 20) > 0.95 and np.mean(found.lower[:, 1] <= 80) > 0.95
    # A pile of rows at a bound is seen there.
    piled = quantiles(200, *cells(tree, group, np.where(x < 30, 0, 100)), tree=tree, law=law, noise=seeded(), ps=[0, 1])
    assert np.mean(piled.values == [0, 100]) > 0.95


def test_one_person_far_out_does_not_show() -> None:
    tree = leaves_of(REAL)
    group, x = np.repeat(np.arange(300), 1000), np.random.default_rng(3).uniform(20, 30, 300_000)
    x[::1000] = 99.0
    found = quantiles(300, *cells(tree, group, x), tree=tree, law=law_for(tree, "gaussian"), noise=seeded(), ps=[1])
    assert np.mean(found.values > 90) < 0.02


def test_small_groups_are_marked() -> None:
    tree = leaves_of(REAL)
    empty = quantiles(300, [], [], [], tree=tree, law=law_for(tree, "gaussian"), noise=seeded(), ps=[0.5])
    assert empty.unreliable.mean() > 0.98
    assert np.isfinite(empty.values).all() and (empty.lower >= 0).all() and (empty.upper <= 100).all()
    assert np.mean(empty.upper - empty.lower) > 60
    assert set(np.unique(np.sign(empty.rows))) >= {-1.0, 1.0}


def core_values(plan: QuantileTree, x: Any, groups: int, noise: Noise) -> Any:
    law, exponent, found = plan.noisy.law, plan.noisy.exponent, []
    for own in x.reshape(groups, -1):
        counts = np.histogram(own, plan._bins.cuts)[0].astype(np.int64)
        steps = plan.tree.measure(counts * 2**-exponent)
        found.append(list(plan.finish((steps + noise.draw(law, steps.size)) * 2.0**exponent).values()))
    return np.array(found)


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_medians_are_no_worse_than_one_tree_for_each_group(noise: str) -> None:
    """100 groups of 10,000 rows, against the core's mechanism with all its nodes drawn and made consistent."""
    epsilon, groups, ps = 0.3, 100, (0.1, 0.5, 0.9)
    how: dict[str, Any] = {"epsilon": epsilon} if noise == "laplace" else {"multiplier": 3.7 / epsilon}
    plan = QuantileTree(column="x", lower=0, upper=100, protects=Unit(), q=ps, leaves=2**12, **how)
    tree = leaves_of(REAL, noise=noise)
    group, x = made_up(groups, 10_000)
    truth = np.quantile(x.reshape(groups, -1), ps, axis=1).T
    ours = quantiles(
        groups, *cells(tree, group, x), tree=tree, law=law_for(tree, noise, epsilon), noise=seeded(), ps=ps
    )
    core = core_values(plan, x, groups, seeded(2))
    scale = np.abs(core - truth).mean(axis=0)
    assert np.mean(np.abs(ours.values - truth).mean(axis=0) / scale) < 1.2
    assert np.abs(ours.values - truth)[:, 1].mean() < 0.3


def test_ten_thousand_groups_take_less_than_a_second() -> None:
    tree = leaves_of(REAL)
    group, x = made_up(10_000, 50)
    given = cells(tree, group, x)
    start = time.process_time()
    found = quantiles(10_000, *given, tree=tree, law=law_for(tree, "gaussian"), noise=seeded(), ps=[0.5])
    assert time.process_time() - start < 1.0
    assert isinstance(found, Quantiles)


def test_histograms_are_counts_with_noise() -> None:
    codes, bins, sums = [0, 0, 1, 1, 5], [0, 2, 1, 7, 0], [3 * STEP, STEP, STEP // 2, STEP, STEP]
    exact = histogram(3, codes, bins, sums, size=3, law=DiscreteLaplace(1.0), noise=Silent())
    assert exact.tolist() == [[3, 0, 1], [0, 0.5, 0], [0, 0, 0]]
    law = RoundedLaplace(2.0 * STEP)
    noisy = histogram(2000, codes, bins, sums, size=3, law=law, noise=seeded())
    assert noisy.shape == (2000, 3)
    assert abs(noisy[2:].std() / (law.std / STEP) - 1) < 0.1
