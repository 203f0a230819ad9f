"""T4, membership inference by shadow models: Carlini et al. 2022, on a small table with labels that mean nothing.

What has nothing to learn can only be learnt by heart, so members show as well as they ever do. Shadow models tell how a
member's loss looks; further models with hidden coins are attacked. Judged in two ways, jointly:

TPR <= e^epsilon FPR + delta at every FPR, by exact binomial bounds. Records of one model are not independent, so one
    record is drawn for each of many models, among those that give themselves away most (`models.lira.every_rate`).
All records of a few models, by the bound for one run, against the whole curve that was paid for: it needs no word on
    how records depend on each other.

Training without clipping and without noise is the planted bug.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from sfumato import learn, schema
from sfumato.audit import surface
from sfumato.audit.models import lira, membership
from sfumato.audit.silent import Silent
from sfumato.learn.clipping import Flat
from sfumato.learn.engine import Pass
from sfumato.learn.plan import SGD
from sfumato.learn.stepping import Batch, Stepper
from sfumato.noise import Noise, SecureBits, SeededBits
from sfumato.rows import Rows
from sfumato.schema import Schema
from sfumato.units import Unit

from .verdict import FALSE_ALARM, Verdict

SHADOWS, TARGETS, LONE = 64, 16, 1000
RECORDS, WIDTH = 120, 100
_UNCLIPPED = 2.0**30


class _Bare(Batch):
    def add(self, done: Pass, present: torch.Tensor) -> None:
        step = surface.step_of(self)
        sums, _ = step.stepper.engine.summed(
            done, present.float(), clipping=Flat(norm=_UNCLIPPED), norm=_UNCLIPPED, eta=1.0
        )
        step.sum.add(sums)
        self.left -= 1


class NoNoiseNoClip(Stepper):
    """Ordinary training, sold as private."""

    def __init__(self, plan: Any, rows: Rows, noise: Noise, model: torch.nn.Module) -> None:
        super().__init__(plan, rows, Silent(surface.bits_of(noise)), model)

    def batch(self) -> Batch:
        return _Bare(self)


def attack(
    stepper: Callable[..., Stepper] = Stepper,
    *,
    shadows: int = SHADOWS,
    targets: int = TARGETS,
    lone: int = LONE,
    noise: Callable[[], Noise] = lambda: Noise(SecureBits()),
) -> Verdict:
    """The library's own steps, or what a planted bug makes of them; `lone` models are attacked for one record each."""
    plan, pool = training(), table()
    sure = 1 - FALSE_ALARM / 4
    audits = {
        f"shadow models, {fits}": lira.audit(
            plan, pool, shadows=shadows, targets=targets, fits=fits, confidence=sure, noise=noise(), stepper=stepper
        )
        for fits in lira.FITS
    }
    audits["the loss alone"] = membership.loss_threshold(plan, pool, confidence=sure, noise=noise(), stepper=stepper)
    figures: dict[str, float] = {}
    for name, audit in audits.items():
        figures[f"{name}: guessed rightly, of all"] = audit.counted[0].correct / audit.counted[0].guesses
        rates_of_truth = {key: value for key, value in audit.figures.items() if key.startswith("true positives")}
        figures.update({f"{name}: {key}": value for key, value in rates_of_truth.items()})
    rates = lira.every_rate(plan, pool, shadows=shadows, targets=lone, confidence=sure, noise=noise(), stepper=stepper)
    for fits, curve in rates.items():
        figures[f"one record of each model, {fits}: TPR above what FPR allows by at least"] = curve.excess
    broken = [name for name, audit in audits.items() if audit.broken]
    broken += [f"the rates of one record of each model, {fits}" for fits, each in rates.items() if each.broken]
    text = (
        f"Members are told by {' and by '.join(broken)} better than (epsilon, delta) = (1, 1e-05) allows."
        if broken
        else f"{shadows} shadow models tell the members of {targets} others, and one record of each of {lone}, no "
        "better than epsilon = 1 allows."
    )
    return Verdict("T4", bool(broken), text, figures)


def control() -> Verdict:
    """Without noise and clipping it must break, judged in either way."""
    verdict = attack(NoNoiseNoClip, shadows=32, targets=12, lone=300)
    missed = [way for way in ("shadow models, online", "the rates of one record") if way not in verdict.text]
    return replace(verdict, broken=not missed, text=f"Not found by {missed[0]}." if missed else verdict.text)


@lru_cache(maxsize=1)
def training() -> SGD:
    model = torch.nn.Linear(WIDTH, 2)
    with torch.no_grad():
        for weights in model.parameters():
            weights.zero_()
    return learn.sgd(
        model, torch.nn.functional.cross_entropy, data=_LabelledData(), inputs="x", target="y", clip=1, epsilon=1,
        delta=1e-5, rate=1, steps=12, micro=128, optimiser=learn.optimiser("SGD", lr=2.0),
    )  # fmt: skip


class _LabelledData:
    """What the data looks like."""

    unit = Unit()
    schema = Schema.of(x=schema.tensor((WIDTH,), -1, 1), y=schema.category(["no", "yes"]), rows=RECORDS // 2)


@lru_cache(maxsize=1)
def table() -> dict[str, Any]:
    """Records at random corners of a cube, with labels by a coin; the same every time."""
    source = Noise(SeededBits(9))
    corners = source.integers(2, RECORDS * WIDTH).reshape(RECORDS, WIDTH)
    labels = np.array(["no", "yes"])[source.integers(2, RECORDS)]
    return {"x": (2 * corners - 1).astype(np.float32), "y": labels}


__all__ = ["NoNoiseNoClip", "attack", "control", "table", "training"]
