"""F2, the precision of the output: Haney, Desfontaines, Hartman, Shrestha, Hay, "Precision-based attacks and interval
refining: how to break, then fix, differential privacy on finite computers" (2022).

The spacing of floats grows with their size. Noise added to a large true value is rounded to the spacing up there; the
same answer from a small true value would have had finer bits. So the lowest set bit of an answer, *given its size*,
tells how large the truth was.

The attack asks the same query with truths 0, 1, 2^10 and 2^30, and compares within each octave of the answer how often
each lowest set bit comes up. On a fixed grid, or with one rounding of an exact answer, the truth does not show: the
histograms are alike up to chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy import special

from .bitwise import Integers, lowest_bit, magnitude
from .targets import LIBRARY, Target
from .verdict import FALSE_ALARM, Verdict

RELEASES = 100_000
TRUTHS = (0.0, 1.0, 2.0**10, 2.0**30)
SENSITIVITIES = (1.0, 2.0**10, 2.0**30)
_ENOUGH = 2000  # answers of one truth in an octave, to be compared there
_EXPECTED = 100.0  # per cell: chi-square is then good to far beyond the p-values asked of it
_OCTAVES = 60
_COARSE = 6  # bits so near the leading one are rare, and follow the shape of the density: they are counted together


@dataclass(frozen=True)
class Compared:
    """One octave of one target: are the lowest bits alike for all truths?"""

    p_value: float
    where: str


def attack(targets: Sequence[Target] = LIBRARY, *, releases: int = RELEASES) -> Verdict:
    figures: dict[str, float] = {}
    broken: list[Compared] = []
    trials = list(product(targets, SENSITIVITIES))
    for target, sensitivity in trials:
        answers = {truth: target.release(truth, sensitivity, releases) for truth in TRUTHS}
        views = {truth: (magnitude(y), lowest_bit(y)) for truth, y in answers.items()}
        octaves = list(_compared(views, f"{target.name}, sensitivity {sensitivity:g}"))
        if not octaves:
            continue
        least = min(octaves, key=lambda octave: octave.p_value)
        figures[f"{target.name}, sensitivity {sensitivity:g}: least p-value of {len(octaves)} octaves"] = least.p_value
        if least.p_value < FALSE_ALARM / (10 * _OCTAVES * len(trials)):  # ten for the chi-square approximation
            broken.append(least)
    text = (
        f"The lowest bit tells how large the truth was: {broken[0].where}."
        if broken
        else f"The lowest bits are alike for truths {', '.join(f'{t:g}' for t in TRUTHS)} in every octave they share."
    )
    return Verdict("F2", bool(broken), text, figures)


def _compared(views: dict[float, tuple[Integers, Integers]], where: str) -> list[Compared]:
    comparisons = []
    sizes = np.unique(np.concatenate([np.unique(size) for size, _ in views.values()]))
    for octave in sizes[-_OCTAVES:].tolist():
        parts = {truth: np.minimum(low[size == octave], octave - _COARSE) for truth, (size, low) in views.items()}
        shared = {truth: low for truth, low in parts.items() if low.size >= _ENOUGH}
        if len(shared) >= 2:
            names = ", ".join(f"{truth:g}" for truth in shared)
            p = homogeneous(list(shared.values()))
            comparisons.append(Compared(p, f"{where}, answers from 2^{octave}, truths {names}, p = {p:.3g}"))
    return comparisons


def homogeneous(samples: list[Integers]) -> float:
    """The p-value of chi-square that all samples come from one law; cells that are too thin are put together."""
    values, inverse = np.unique(np.concatenate(samples), return_inverse=True)
    owner = np.repeat(np.arange(len(samples)), [s.size for s in samples])
    table = np.zeros((len(samples), values.size))
    np.add.at(table, (owner, inverse.reshape(-1)), 1)
    share = table.sum(axis=1) / table.sum()
    table = _pooled(table, share.min())
    if table.shape[1] < 2:
        return 1.0
    expected = np.outer(share, table.sum(axis=0))
    statistic = float(((table - expected) ** 2 / expected).sum())
    return float(special.chdtrc((len(samples) - 1) * (table.shape[1] - 1), statistic))


def _pooled(table: NDArray[np.float64], share: float) -> NDArray[np.float64]:
    """Neighbouring columns put together, from the finest bit up, until each has enough expected of every sample."""
    columns: list[NDArray[np.float64]] = []
    running = np.zeros(table.shape[0])
    for column in table.T:
        running = running + column
        if running.sum() * share >= _EXPECTED:
            columns.append(running)
            running = np.zeros(table.shape[0])
    if columns:
        columns[-1] = columns[-1] + running
    return np.array(columns).T.reshape(table.shape[0], len(columns))
