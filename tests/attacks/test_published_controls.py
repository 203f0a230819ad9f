"""What attacks show of code that is not private, beside the figures that were published or measured for it: an attack
that does not reach these would prove little where it finds nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from sfumato import Unit
from sfumato.audit.lessons import subset_sums
from sfumato.bounds import Sum
from sfumato.rows import Rows
from sfumato_referee.attacks import frame_numbers, sql_numbers, targets


def _fine(y: Any) -> float:
    """The share of answers below 1/2 that are no multiples of 2^-53 (Mironov 2012)."""
    scaled = np.ldexp(np.abs(y), 53)
    return float(np.mean((np.abs(y) < 0.5) & (scaled != np.floor(scaled))))


def test_f1_the_event_of_the_paper() -> None:
    rng = np.random.default_rng(1)
    laplace, normal = rng.laplace(0, 1, 200_000), rng.normal(0, 1, 200_000)
    assert _fine(laplace) == pytest.approx(0.2725, abs=0.006) and _fine(1 + laplace) == 0
    assert _fine(normal) == pytest.approx(0.2569, abs=0.006) and _fine(1 + normal) == 0
    textbook = targets.Textbook()
    assert _fine(textbook.release(0.0, 1.0, 200_000)) > 0.2 and _fine(textbook.release(1.0, 1.0, 200_000)) == 0
    exact = [_fine(targets.LIBRARY[0].release(value, 1.0, 20_000)) for value in (0.0, 1.0)]
    assert exact == [0, 0]  # on its grid the event never happens


@pytest.mark.slow
def test_n1_a_sum_of_doubles_at_the_published_size() -> None:
    x = frame_numbers.ones_then_tiny(2**22)
    assert np.cumsum(x)[-1] - np.cumsum(x[1:])[-1] == 1.001953125
    sums = []
    with duckdb.connect() as opened:
        opened.execute("SET threads = 1")
        for cells in (x, x[1:]):
            opened.register("t", pa.table({"x": cells}))
            sums += opened.sql("SELECT sum(x) FROM t").fetchall()
    assert sums[0][0] - sums[1][0] == 1.001953125
    verdict = sql_numbers.rounding(sql_numbers.CONTROL, kinds=("arrow",), orders=0)
    assert verdict.broken and verdict.figures["moved"] == pytest.approx(1.001953125)


@dataclass(frozen=True, kw_only=True)
class _Running(Sum):
    """The planted bug on frames: a running sum of doubles, put on the grid at the end."""

    def steps(self, rows: Rows, exponent: int) -> Any:
        values = np.clip(rows["x"].values.astype(np.float64), float(self.lower), float(self.upper))
        return [int(np.floor(np.ldexp(np.cumsum(values)[-1], -exponent)))]


def test_frames_are_attacked_too() -> None:
    def running(column: str, lower: Any, upper: Any, unit: Unit, **_: Any) -> Any:
        return _Running(column=column, lower=lower, upper=upper, unit=unit)

    share, values = frame_numbers.rounding(2**18, 4, running)
    assert share > 1 and values > 1
    assert frame_numbers.rounding(2**14, 2) == (1, 1)
    assert frame_numbers.reordered(np.linspace(-3e15, 1e16, 101), 4) == 2
    assert frame_numbers.overflowing(("int8", "uint64")) <= 1
    assert frame_numbers.poisoned(sql_numbers.POISON) <= 1


SHARES: dict[str, tuple[float, Any]] = {
    "within 2": (1.000, lambda rng, m: rng.uniform(-2, 2, m)),
    "within sqrt(n)/4": (1.000, lambda rng, m: rng.uniform(-1, 1, m) * np.sqrt(128) / 4),
    "within sqrt(n)": (0.879, lambda rng, m: rng.uniform(-1, 1, m) * np.sqrt(128)),
    "within n/2": (0.590, lambda rng, m: rng.uniform(-64, 64, m)),
    "Laplace, epsilon 1 per query": (1.000, lambda rng, m: rng.laplace(0, 1, m)),
    "Laplace, epsilon 1 in all": (0.510, lambda rng, m: rng.laplace(0, m, m)),
    "Gaussian, rho 1/2 in all": (0.593, lambda rng, m: rng.normal(0, np.sqrt(m), m)),
}


@pytest.mark.parametrize("name", SHARES)
def test_r1_shares_of_bits_found(name: str) -> None:
    """128 people, 1024 random subset counts, least squares, 20 seeds (Dinur, Nissim 2003)."""
    share, noise = SHARES[name]
    shares = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        secret, subsets = rng.integers(0, 2, 128), rng.integers(0, 2, (1024, 128))
        shares.append(subset_sums.share_rebuilt(subsets, subsets @ secret + noise(rng, 1024), secret))
    assert np.mean(shares) == pytest.approx(share, abs=0.02 if share < 1 else 0.002), shares
