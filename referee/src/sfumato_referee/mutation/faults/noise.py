"""Faults of the noise: too little of it, not of its law, not independent, or visible in the last bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato.audit import seams
from sfumato.laws import RoundedLaplace
from sfumato.mechanisms import selection
from sfumato.noise import Noise, bits, samplers

from ..mutant import Shelf, attacks, plans, plant, swap, swap_everywhere, verifies

FAULTS = Shelf("noise")


@FAULTS.fault("half the scale", by=(*attacks("V3"), *plans("Laplace")))
def half_the_scale() -> None:
    swap(Noise, "draw", lambda draw: lambda self, law, count: draw(self, law, count) // 2)


@FAULTS.fault("nine tenths of the scale", by=attacks("V3"))
def nine_tenths() -> None:
    swap(Noise, "draw", lambda draw: lambda self, law, count: draw(self, law, count) * 9 // 10)


@FAULTS.fault("the first boundary of a table is lost", by=plans("Geometric"))
def off_by_one() -> None:
    plant(seams.BOUNDARIES, lambda boundaries: lambda law: boundaries(law)[1:])


@FAULTS.fault("the sign bit is lost", by=plans("Laplace", "Geometric"))
def no_sign() -> None:
    plant(seams.SIGN, lambda _: lambda words, out: None)


@FAULTS.fault("one draw for all coordinates", by=plans("Gaussian", "Tidy"))
def one_draw() -> None:
    swap(Noise, "draw", lambda draw: lambda self, law, count: np.repeat(draw(self, law, 1), count))


@FAULTS.fault("keys from a seed", by=attacks("F5"))
def seeded() -> None:
    swap(bits, "os", lambda os: _Os(os))


class _Os:
    """The operating system, with an empty pool of entropy."""

    def __init__(self, os: Any) -> None:
        self._os = os

    def urandom(self, count: int) -> bytes:
        return bytes(count)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._os, name)


@FAULTS.fault("noise and sum are added in floats", by=attacks("F1", "F2"))
def in_floats() -> None:
    def add_floats(_: Any) -> Any:
        def run(self: Any, rows: Any, run: Any) -> Any:
            steps = self.query.steps(rows, self.exponent)
            u = (run.noise.integers(1 << 53, 2 * steps.size).astype(np.float64) + 1) * 2.0**-53
            sign = np.where(u[: steps.size] < 0.5, -1.0, 1.0)
            size = self.law.spread if isinstance(self.law, RoundedLaplace) else self.law.std
            scaled = size * 2.0**self.exponent * -np.log(u[steps.size :])
            return steps.astype(np.float64) * 2.0**self.exponent + sign * scaled

        return run

    plant(seams.ADDED, add_floats)


@FAULTS.fault("the step follows the answer", by=attacks("F2", "F1"))
def step_of_the_data() -> None:
    def round_by_data(run: Any) -> Any:
        def rounded(self: Any, rows: Any, run_: Any) -> Any:
            raw, steps = run(self, rows, run_), self.query.steps(rows, self.exponent).astype(np.float64)
            step = 2.0 ** np.floor(np.log2(np.abs(steps) + 1) + self.exponent - 12)
            return np.rint(raw / step) * step

        return rounded

    plant(seams.ADDED, round_by_data)


@FAULTS.fault("selections at twice the rate", by=(*verifies("Exponential", "PermuteAndFlip"), *plans("Exponential")))
def twice_the_rate() -> None:
    swap(selection.Selection, "rate", lambda rate: lambda self: 2 * rate(self))


@FAULTS.fault("half the Gumbel noise", by=plans("Exponential"))
def half_gumbel() -> None:
    plant(seams.GUMBEL, lambda noise: lambda *arguments: 0.5 * noise(*arguments))


@FAULTS.fault("coins that know one bit of their chance", by=plans("RandomizedResponse"))
def rough_coins() -> None:
    def toss_rough_coins(coins: Any) -> Any:
        def rough(chance: Any, count: int, source: Any) -> Any:
            p = chance(64)
            heads = -(-(p.lo >> 62) // 1) + 1
            return (source.words(count) >> np.uint64(62)) < np.uint64(heads)

        return rough

    swap_everywhere(samplers.coins, toss_rough_coins)


@FAULTS.fault("an order by keys of two bits", by=attacks("T1"))
def short_keys() -> None:
    def shorten_keys(_: Any) -> Any:
        def permutation(count: int, source: Any) -> Any:
            return np.argsort(source.words(count) & np.uint64(3), kind="stable").astype(np.int64)

        return permutation

    swap_everywhere(samplers.permutation, shorten_keys)
