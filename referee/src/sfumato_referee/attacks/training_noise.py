"""F3, the lowest bits of a noisy gradient: Jin, McMurtry, Rubinstein, Ohrimenko, "Are we there yet? Timing and
floating-point attacks on differential privacy systems" (S&P 2022).

The attack of F1 on one coordinate of one step. A model of as many parameters as releases are wanted, and one person
whose gradient is the same in each: with the clip norm larger by the square root of their number, and the multiplier
smaller by as much, every coordinate is a release of a model of one parameter, with its grid and its noise. Fast noise
(floats from torch) is the planted bug: it falls, and so it must be named wherever a privacy statement is made.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from sfumato import exact, learn, schema
from sfumato.accounting import gdp
from sfumato.accounting.filters import Budget
from sfumato.curator import Curator
from sfumato.learn.stepping import Stepper
from sfumato.ledger import MemoryLedger
from sfumato.noise import Bits, Noise, SecureBits
from sfumato.private import Private
from sfumato.rows import Rows
from sfumato.schema import Schema
from sfumato.units import Unit

from . import float_bits
from .targets import DELTA, Floats
from .training import Line, times
from .verdict import Verdict

RELEASES = float_bits.RELEASES
SCALES = (1e-3, 1.0, 100.0)


@dataclass(frozen=True)
class Gradient:
    """One step of training, through the code of a real one."""

    noise: Literal["exact", "fast"] = "exact"
    epsilon: float = 1.0
    sensitivities: tuple[float, ...] = SCALES
    bits: Bits | None = None

    @property
    def name(self) -> str:
        return f"a gradient with {self.noise} noise"

    @property
    def delta(self) -> float:
        return float(DELTA)

    def release(self, value: float, sensitivity: float, count: int) -> Floats:
        private = _people(value, count)
        root = exact.sqrt_above(Fraction(count))
        least = Fraction(gdp.least_multiplier(Fraction(self.epsilon), DELTA))
        fields: dict[str, Any] = {"rate": 1, "steps": 1, "delta": DELTA, "noise": self.noise, "micro": 17}
        plan = learn.sgd(
            Line(count), times, data=private, inputs="x", target="y", clip=Fraction(sensitivity * root),
            multiplier=least * Fraction(1 + 1e-12) / Fraction(root), **fields,
        )  # fmt: skip
        rows = Rows.read(private.schema.table(), _columns(value, count), Unit())
        stepper = Stepper(plan, rows, Noise(self.bits or SecureBits()), plan.model.fresh())
        try:
            (gradient,) = stepper.step()
        finally:
            stepper.close()
        return np.asarray(gradient.numpy().ravel().astype(np.float64))


def attack(noise: Literal["exact", "fast"] = "exact", *, releases: int = RELEASES) -> Verdict:
    """Exact noise must withstand; fast noise must be named."""
    verdict = float_bits.attack((Gradient(noise),), releases=releases)
    problems = [] if noise != "exact" else [f"{place} does not name fast noise" for place in unnamed()]
    text = verdict.text if not problems else f"{verdict.text} And {'; '.join(problems)}."
    return replace(verdict, id="F3", broken=verdict.broken or bool(problems), text=text)


def unnamed() -> list[str]:
    """Where fast noise is not called what it is, though it should be."""
    private = _people(1.0, 3)
    fields: dict[str, Any] = {"rate": 1, "steps": 1, "clip": 1, "multiplier": 2, "delta": DELTA, "noise": "fast"}
    plan = learn.sgd(Line(3), times, data=private, inputs="x", target="y", **fields)
    ledger = MemoryLedger({private.name: Budget(epsilon=5, delta=4 * DELTA)})
    release = Curator(private, ledger).release(plan)
    assert release.receipt is not None
    naming = {
        "the plan": plan.grade == "float" and "float-grade" in " ".join(plan.explain()),
        "the receipt": release.receipt.grade == "float",
        "the privacy statement": "secure_noise = false" in ledger.statement(private.name).guarantee,
    }
    return [place for place, named in naming.items() if not named]


def _columns(value: float, count: int) -> dict[str, Any]:
    """One person whose gradient is `value` everywhere; nobody for 0."""
    return {"x": np.ones((int(value != 0), count), dtype=np.float32), "y": [value] * int(value != 0)}


def _people(value: float, count: int) -> Private:
    shape = Schema.of(x=schema.tensor((count,), 0, 1), y=schema.real(0, 10**9), rows=1)
    return Private("one", _columns(value, count), unit=Unit(), schema=shape)


__all__ = ["Gradient", "attack", "unnamed"]
