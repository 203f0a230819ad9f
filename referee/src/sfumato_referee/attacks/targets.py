"""What the attacks on float noise aim at: the library's own release path, and the textbook code it replaces.

A target answers the same query many times. Its promise is (epsilon, delta) for neighbours whose true values differ by
at most `sensitivity`. The textbook targets are the planted bugs: the formulas are right, in float64 they are not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato import grid, schema
from sfumato.accounting import gdp
from sfumato.audit import surface
from sfumato.bounds import Bounded, Sensitivity
from sfumato.mechanisms.additive import Additive
from sfumato.mechanisms.gaussian import Gaussian
from sfumato.mechanisms.geometric import Geometric
from sfumato.mechanisms.laplace import Laplace
from sfumato.mechanisms.vector import L2Noise, LInfinityNoise, VectorNoise
from sfumato.noise import Bits, Noise, SecureBits
from sfumato.rows import Rows
from sfumato.schema import Column, Table
from sfumato.units import Unit

Floats = NDArray[np.float64]

DELTA = Fraction(1, 10**6)
REAL = tuple(10.0**e for e in range(-3, 7))


class Target(Protocol):
    """Something that claims to hide the difference between neighbours."""

    @property
    def name(self) -> str: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def delta(self) -> float: ...
    @property
    def sensitivities(self) -> tuple[float, ...]:
        """Where it is to be tried."""

    def release(self, value: float, sensitivity: float, count: int) -> Floats:
        """`count` independent answers where the truth is `value`."""


@dataclass(frozen=True, kw_only=True)
class _CopiesOfOne(Bounded):
    """One number, asked `count` times over, each time as its own release: a bulk of releases in one vector."""

    value: Fraction
    reach: Fraction
    count: int
    counts: bool = False

    @property
    def sensitivity(self) -> Sensitivity:
        return Sensitivity(self.reach, self.reach**2, self.reach)

    @property
    def columns(self) -> Mapping[str, Column]:
        return {}

    @property
    def names(self) -> tuple[str, ...]:
        return ("value",) * self.count

    @property
    def largest(self) -> Fraction:
        return Fraction(1) if self.counts else self.reach

    @property
    def whole(self) -> bool:
        return self.counts

    def steps(self, rows: Rows, exponent: int) -> NDArray[Any]:
        whole = math.floor(grid.steps(self.value, exponent))
        return np.full(self.count, whole, dtype=np.int64 if abs(whole) < 2**61 else object)


_NO_ROWS = Rows.read(Table({"x": schema.real(0, 1)}), {"x": []}, Unit())


@dataclass(frozen=True)
class Library:
    """sfumato's mechanisms, through `Plan._run`: grid, law, sampler and conversion are those of a real release."""

    kind: type[Additive]
    epsilon: float = 1.0
    counts: bool = False
    bits: Bits = field(default_factory=SecureBits)

    @property
    def name(self) -> str:
        return f"{self.kind.__name__}, {'count' if self.counts else 'sum'}"

    @property
    def delta(self) -> float:
        return float(DELTA) if self.kind is Gaussian else 0.0

    @property
    def sensitivities(self) -> tuple[float, ...]:
        return (1.0, 1000.0) if self.counts else REAL

    def release(self, value: float, sensitivity: float, count: int) -> Floats:
        query = _CopiesOfOne(
            unit=Unit(), value=Fraction(value), reach=Fraction(sensitivity), count=count, counts=self.counts
        )
        spent: dict[str, Any] = {"epsilon": Fraction(self.epsilon)} | ({"delta": DELTA} if self.delta else {})
        plan = self.kind(query=query, **spent)
        return surface.run(plan, _NO_ROWS, Noise(self.bits))


@dataclass(frozen=True)
class Vector:
    """Noise on a whole vector, here of one number: drawn one by one, so there is a tenth of the releases."""

    kind: type[VectorNoise]
    epsilon: float = 1.0
    delta: float = 0.0
    sensitivities: tuple[float, ...] = (REAL[0], 1.0, REAL[-1])
    bits: Bits = field(default_factory=SecureBits)

    @property
    def name(self) -> str:
        return f"{self.kind.__name__}, sum"

    def release(self, value: float, sensitivity: float, count: int) -> Floats:
        query = _CopiesOfOne(unit=Unit(), value=Fraction(value), reach=Fraction(sensitivity), count=1)
        plan, noise = self.kind(query=query, epsilon=Fraction(self.epsilon)), Noise(self.bits)
        return np.concatenate([surface.run(plan, _NO_ROWS, noise) for _ in range(max(count // 10, 1))])


LIBRARY: tuple[Target, ...] = (Library(Laplace), Library(Gaussian), Library(Laplace, counts=True))
EVERY: tuple[Target, ...] = (*LIBRARY, Library(Geometric, counts=True), Vector(L2Noise), Vector(LInfinityNoise))
"""Every mechanism that adds noise to numbers."""


@dataclass(frozen=True)
class Textbook:
    """value + scale * noise in float64, as most code on the web does it."""

    gaussian: bool = False
    epsilon: float = 1.0
    sensitivities: tuple[float, ...] = REAL
    bits: Bits = field(default_factory=SecureBits)

    @property
    def name(self) -> str:
        return f"textbook {'Gaussian' if self.gaussian else 'Laplace'} in float64"

    @property
    def delta(self) -> float:
        return float(DELTA) if self.gaussian else 0.0

    def release(self, value: float, sensitivity: float, count: int) -> Floats:
        if self.gaussian:
            scale = sensitivity * float(gdp.least_multiplier(Fraction(self.epsilon), DELTA))
            radius = np.sqrt(-2.0 * np.log(self._uniforms(count)))
            return np.asarray(value + scale * (radius * np.cos(2 * math.pi * self._uniforms(count))))
        signs = np.where(self._uniforms(count) < 0.5, -1.0, 1.0)
        return np.asarray(value - sensitivity / self.epsilon * signs * np.log(self._uniforms(count)))

    def _uniforms(self, count: int) -> Floats:
        """In (0, 1], multiples of 2^-53: what numpy and the C library give."""
        return np.asarray(((self.bits.words(count) >> np.uint64(11)) + np.uint64(1)).astype(np.float64) * 2.0**-53)


TEXTBOOK: tuple[Target, ...] = (Textbook(), Textbook(gaussian=True))
