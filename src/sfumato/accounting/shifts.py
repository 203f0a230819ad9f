"""Discrete Gaussian noise on whole vectors: which shifts are worst, and one pair that dominates them all.

Noise N_Z(0, s) on every coordinate, P(k) proportional to exp(-k^2 / (2 s)), against the same moved by a whole vector v.
The loss is (2 m - |v|^2) / (2 s) with m = sum v_i k_i: on the multiples of 1/(2 s). The noise is log-concave, so the
best test of one coordinate is a threshold, and a longer shift is easier to see (Dong, Roth, Su 2022, on
log-concave noise): a vector that exceeds another in every coordinate dominates it. Of those that are left, every
curve has its kinks at the nodes e^(j/(2s)); the polygon through the largest values there lies above all of them, is
convex, and so is the curve of a pair. (The continuous Gaussian's curve does not bound the discrete one.)
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..errors import UnsupportedEventError

Floats = NDArray[np.float64]
Vector = tuple[int, ...]

_MOST_ATOMS = 1 << 20
_MOST_VECTORS = 512


@lru_cache(maxsize=256)
def vectors(squared: int, coordinates: int) -> list[Vector]:
    """The whole shifts of squared length at most `squared`, up to signs and order, that no other one exceeds in every
    coordinate."""
    if coordinates == 1 or squared < 4:
        return [(math.isqrt(squared),)] if coordinates == 1 else [(1,) * min(squared, coordinates)]
    distinct: list[Vector] = []

    def extend(prefix: Vector, left: int) -> None:
        if len(distinct) > _MOST_VECTORS:
            return
        most = min(math.isqrt(left), prefix[-1] if prefix else left)
        if most == 0 or len(prefix) == coordinates:
            distinct.append(prefix)
            return
        for part in range(most, 0, -1):
            extend((*prefix, part), left - part * part)

    extend((), squared)
    if len(distinct) > _MOST_VECTORS:
        raise UnsupportedEventError(
            "DiscreteGaussian has too many possible shifts to enumerate: price it by rho, or use rounded Gaussian noise"
        )
    longest = max(map(len, distinct))
    padded = np.array([v + (0,) * (longest - len(v)) for v in distinct])
    return [v for v, row in zip(distinct, padded, strict=True) if int(np.all(padded >= row, axis=1).sum()) == 1]


def dominating(variance: float, shifts: list[Vector], tail: float) -> tuple[Floats, Floats]:
    """The losses of the pair that dominates these shifts, and the logs of its Q-masses; at most `tail` of P is left
    out."""
    laws = [_law(variance, shift, tail / len(shifts)) for shift in shifts]
    if len(laws) == 1:
        return laws[0]
    first = round(2 * variance * min(losses[0] for losses, _ in laws))
    last = round(2 * variance * max(losses[-1] for losses, _ in laws))
    if last - first > _MOST_ATOMS or max(-first, last) > 1200 * variance:  # e^loss would leave float64
        raise _too_many()
    losses = np.arange(first, last + 1) / (2 * variance)
    tables = []
    for places, log_q in laws:
        table = np.zeros(losses.size)
        table[np.rint(2 * variance * places).astype(np.int64) - first] = np.exp(log_q)
        tables.append(table)
    return losses, _envelope(np.exp(losses), np.array(tables))


def _envelope(x: Floats, q: Floats) -> Floats:
    """The logs of the Q-masses of the polygon through the largest node of each curve.

    Where one curve leads on both sides of a node, its own mass counts; where the lead changes, the difference of the
    slopes, which rounding may leave a hair too small: it is raised by that much.
    """
    beyond = np.cumsum(q[:, ::-1], axis=1)[:, ::-1]
    slope = np.concatenate([beyond[:, 1:], np.zeros((q.shape[0], 1))], axis=1)  # Q(loss > node)
    steps = np.diff(x)
    height = np.concatenate(
        [np.cumsum((slope[:, :-1] * steps)[:, ::-1], axis=1)[:, ::-1], np.zeros((q.shape[0], 1))], axis=1
    )
    leader = height.argmax(axis=0)
    top = height.max(axis=0)
    alike = leader[:-1] == leader[1:]
    chord = np.where(alike, slope[leader[:-1], np.arange(steps.size)], (top[:-1] - top[1:]) / steps)
    left, right = np.append(1.0, chord), np.append(chord, 0.0)
    own = np.append(True, alike) & np.append(alike, True)
    hair = 1e-13 * (left + np.append(top[:-1] / steps, 0.0))
    mass = np.where(own, q[leader, np.arange(x.size)], np.maximum(left - right, 0.0) + hair)
    with np.errstate(divide="ignore"):
        return np.asarray(np.where(mass > 0, np.log(np.maximum(mass, 1e-320)), -800.0))


def _law(variance: float, shift: Vector, tail: float) -> tuple[Floats, Floats]:
    """The losses of one shift, rising, and the logs of their Q-masses."""
    reach = math.ceil(math.sqrt(-2 * variance * math.log(tail / (4 * len(shift)))) + 1)  # sub-Gaussian: CKS 2020
    if (2 * reach + max(shift)) * sum(shift) > _MOST_ATOMS:
        raise _too_many()
    far = math.ceil(39 * math.sqrt(variance)) + 1
    whole = math.log(float(np.sum(np.exp(-0.5 * np.arange(-far, far + 1, dtype=np.float64) ** 2 / variance))))
    if len(shift) == 1:
        k = np.arange(-reach, reach + shift[0] + 1, dtype=np.float64)
        return shift[0] * (2 * k - shift[0]) / (2 * variance), -k * k / (2 * variance) - whole
    total, first = np.ones(1), 0
    for part in shift:  # Q-law of the sum of part * k
        k = np.arange(-reach, reach + part + 1, dtype=np.float64)
        spread = np.zeros(part * (k.size - 1) + 1)
        spread[::part] = np.exp(-k * k / (2 * variance) - whole)
        total, first = np.convolve(total, spread), first - part * reach
    m = first + np.arange(total.size, dtype=np.float64)
    squared = sum(part * part for part in shift)
    positive = total > 1e-290
    return (2 * m[positive] - squared) / (2 * variance), np.log(total[positive])


def _too_many() -> UnsupportedEventError:
    return UnsupportedEventError("DiscreteGaussian of such a size has too many atoms: price it by rho")
