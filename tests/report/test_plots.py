"""Plots: what is drawn, on axes that only remember; once for real where matplotlib is there."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from sfumato.errors import ArgumentError, SfumatoError
from sfumato.events import Gaussian, Laplace
from sfumato.report import plot_epsilon, plot_tradeoff


class Line:
    def get_color(self) -> str:
        return "black"


class Axes:
    """Remembers what it was asked to draw."""

    def __init__(self) -> None:
        self.lines: list[tuple[Any, Any, dict[str, Any]]] = []
        self.bands: list[tuple[Any, Any, Any]] = []
        self.words: dict[str, str] = {}

    def plot(self, x: Any, y: Any, **style: Any) -> list[Line]:
        self.lines.append((np.asarray(x), np.asarray(y), style))
        return [Line()]

    def fill_between(self, x: Any, low: Any, high: Any, **style: Any) -> None:
        self.bands.append((np.asarray(x), np.asarray(low), np.asarray(high)))

    def __getattr__(self, name: str) -> Any:
        def remember(text: str = "") -> None:
            self.words[name] = text

        return remember


def test_the_trade_off_of_a_gaussian() -> None:
    ax = Axes()
    assert plot_tradeoff(Gaussian(multiplier=1), ax=ax) is ax
    alphas, betas, style = ax.lines[0]
    inside = (alphas > 0) & (alphas < 1)
    exact = stats.norm.cdf(stats.norm.isf(alphas[inside]) - 1)
    assert np.all(betas[inside] <= exact * (1 + 1e-12)) and np.allclose(betas[inside], exact, atol=1e-9)
    assert np.all(np.diff(alphas) > 0) and np.all(np.diff(betas) <= 1e-12)
    assert style["label"] == "Gaussian" and "false-positive" in ax.words["set_xlabel"]


def test_the_trade_off_of_an_epsilon() -> None:
    ax = Axes()
    plot_tradeoff(1, delta=0.1, ax=ax)
    alphas, betas, style = ax.lines[0]
    exact = np.maximum(0, np.maximum(0.9 - np.e * alphas, (0.9 - alphas) / np.e))
    assert np.all(betas <= exact + 1e-12) and np.allclose(betas, exact, atol=1e-9)
    assert style["label"] == "epsilon = 1, delta = 0.1"
    plot_tradeoff(2, ax=ax, label="mine")
    assert ax.lines[2][2]["label"] == "mine"


def test_epsilon_against_delta() -> None:
    ax = Axes()
    plot_epsilon(Gaussian(multiplier=1), ax=ax)
    deltas, epsilons, _ = ax.lines[0]
    assert np.all(np.diff(np.log(deltas)) > 0) and np.all(np.diff(epsilons) < 0)
    assert epsilons[list(deltas).index(1e-5)] == pytest.approx(4.377178, abs=2e-6)
    _, low, high = ax.bands[0]
    assert np.all(low <= high) and np.all(high == epsilons)
    assert ax.words["set_xscale"] == "log"


def test_deltas_can_be_given() -> None:
    ax = Axes()
    plot_epsilon(Laplace(epsilon=1), deltas=[1e-6, 1e-3], ax=ax)
    assert list(ax.lines[0][0]) == [1e-6, 1e-3]
    with pytest.raises(ArgumentError, match="deltas"):
        plot_epsilon(Laplace(epsilon=1), deltas=[2], ax=ax)
    with pytest.raises(ArgumentError, match="event"):
        plot_epsilon(1.0, ax=ax)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="delta"):
        plot_tradeoff(Laplace(epsilon=1), delta=1e-6, ax=ax)


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    for draw in (lambda: plot_tradeoff(1), lambda: plot_epsilon(Laplace(epsilon=1), deltas=[1e-6])):
        with pytest.raises(SfumatoError, match=r"pip install '\.\[plots\]'"):
            draw()


def test_nothing_heavy_is_loaded_before_it_is_used() -> None:
    import subprocess

    code = "import sys; sys.path[:0] = sys.argv[1:]; import sfumato.report; print('matplotlib' in sys.modules)"
    source = str(Path(sys.modules["sfumato"].__file__ or "").parents[1])
    done = subprocess.run([sys.executable, "-c", code, source], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::PendingDeprecationWarning")
def test_a_real_figure(tmp_path: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    first = plot_tradeoff(Gaussian(multiplier=1))
    plot_tradeoff(1, ax=first)
    second = plot_epsilon(Gaussian(multiplier=1), deltas=[1e-9, 1e-6, 1e-3])
    for number, ax in enumerate((first, second)):
        path = tmp_path / f"{number}.png"
        ax.figure.savefig(path)
        assert path.stat().st_size > 5000
        matplotlib.pyplot.close(ax.figure)
