"""T3, canaries in training: does one training, or many, show more than the accountant says?

Steinke, Nasr, Jagielski 2023 (one run); Mahloujifar, Melis, Chaudhuri 2025 (the whole curve in one run); Nasr et al.
2023 (many runs). Small trainings with a thousand gradient canaries each, through the steps of a release. Every training
is judged by itself; then all of them together, as one mechanism in which each coin touches one training: that is as
private as one of them, and the more coins, the smaller the fault that shows. Last, many trainings with one canary,
judged by both kinds of error. Noise of a tenth is the planted bug: nearly every training must show it alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from sfumato import learn, schema
from sfumato.audit import surface
from sfumato.audit.models import gradients, watching
from sfumato.audit.models.canaries import Coins, Floats
from sfumato.audit.models.outcome import ModelAudit, judged
from sfumato.laws import Integers, Law
from sfumato.learn.plan import SGD
from sfumato.learn.stepping import Stepper
from sfumato.noise import Noise, SecureBits
from sfumato.rows import Rows
from sfumato.schema import Schema
from sfumato.units import Unit

from .verdict import FALSE_ALARM, Verdict

SEEDS, CANARIES, RUNS = 100, 1000, 200
KINDS: Mapping[str, tuple[int, Fraction]] = {
    "epsilon 1": (1, Fraction(1)),
    "epsilon 8": (8, Fraction(1)),
    "epsilon 8, half of all in a step": (8, Fraction(1, 2)),
}
"""Epsilon, and the rate at which people join a step."""
CAUGHT = ("epsilon 1", "epsilon 8")  # where a tenth of the noise shows: who did not join leaves no trace
_DELTA = 1e-5
_PEOPLE = 64
_SHARES = (1, 2, 5)  # of the canaries of one training, one in so many is guessed
_SHARES_OF_ALL = (2, 20, 200)
_MOST_MISSED = 0.01


class _Tenth(Noise):
    def __init__(self, inner: Noise) -> None:
        super().__init__(surface.bits_of(inner))
        self._inner = inner

    def draw(self, law: Law, count: int) -> Integers:
        return self._inner.draw(law, count) // 10


class TenthOfTheNoise(Stepper):
    """A decimal point in the wrong place."""

    def __init__(self, plan: Any, rows: Rows, noise: Noise, model: torch.nn.Module) -> None:
        super().__init__(plan, rows, _Tenth(noise), model)


def attack(
    stepper: Callable[..., Stepper] = Stepper,
    *,
    seeds: int = SEEDS,
    canaries: int = CANARIES,
    runs: int = RUNS,
    noise: Callable[[], Noise] = lambda: Noise(SecureBits()),
) -> Verdict:
    """The library's own steps, or what a planted bug makes of them."""
    figures: dict[str, float] = {}
    problems: list[str] = []
    share = FALSE_ALARM / (3 * len(KINDS))  # each alone, all together, and many runs
    for name in KINDS:
        plan = training(name)
        audits, scores, coins = trained(plan, stepper, seeds, canaries, 1 - share / seeds, noise())
        curve = watching.curve_of(gradients.with_canaries(plan, _PEOPLE, canaries))
        numbers = [max(1, len(coins) // each) for each in _SHARES_OF_ALL]
        claim = audits[0].claim
        together = judged(
            scores, coins, way="all", claim=claim, delta=_DELTA, confidence=1 - share, guesses=numbers, curve=curve,
            cut=0.0,
        )  # fmt: skip
        many = gradients.many_runs(
            plan, people(_PEOPLE), trainings=runs, confidence=1 - share, noise=noise(), stepper=stepper
        )
        refuted = sum(each.broken for each in audits)
        figures[f"{name}: trainings that show more by themselves"] = refuted
        figures[f"{name}: all together show at least, if Gaussian"] = together.gaussian
        figures[f"{name}: many runs show at least"] = many.epsilon
        if refuted:
            problems.append(f"{refuted} of {seeds} trainings ({name}) refute their price")
        if together.broken:
            problems.append(f"trainings ({name}) refute their price together")
        if many.epsilon > claim:
            problems.append(f"many runs ({name}) show {many.epsilon:.3g}")
    text = (
        f"Canaries show more than was paid for: {'; '.join(problems)}."
        if problems
        else f"{seeds} trainings with {canaries} gradient canaries of each kind stay within the accountant's curve, "
        "alone and together."
    )
    return Verdict("T3", bool(problems), text, figures)


def control(*, seeds: int = SEEDS, canaries: int = CANARIES) -> Verdict:
    """A tenth of the noise: at 95 %, nearly every training must be caught by itself."""
    figures: dict[str, float] = {}
    for name in CAUGHT:
        audits, _, _ = trained(training(name), TenthOfTheNoise, seeds, canaries, 0.95, Noise(SecureBits()))
        figures[f"{name}: share of trainings that show it"] = float(np.mean([a.broken for a in audits]))
    caught = min(figures.values()) >= 1 - _MOST_MISSED
    text = "A tenth of the noise shows in nearly every training." if caught else "A tenth of the noise stays unseen."
    return Verdict("T3", caught, text, figures)


def trained(
    plan: SGD, stepper: Callable[..., Stepper], seeds: int, canaries: int, confidence: float, noise: Noise
) -> tuple[list[ModelAudit], Floats, Coins]:
    """One audit for each training, and the scores and coins of all."""
    audits, scores, coins = [], [], []
    guesses = [max(1, canaries // each) for each in _SHARES]
    for _ in range(seeds):
        with watching.on_one_thread():
            seen = gradients.watched(plan, people(_PEOPLE), canaries=canaries, noise=noise, stepper=stepper)
        audits.append(seen.audit(guesses=guesses, confidence=confidence))
        scores.append(seen.scores)
        coins.append(seen.coins)
    return audits, np.concatenate(scores), np.concatenate(coins)


@lru_cache(maxsize=8)
def training(name: str) -> SGD:
    """A few steps of a tiny model."""
    epsilon, rate = KINDS[name]
    model = torch.nn.Linear(2, 1)
    with torch.no_grad():
        for weights in model.parameters():
            weights.zero_()
    return learn.sgd(
        model, torch.nn.functional.mse_loss, data=_Described(), inputs="x", target="y", clip=1, epsilon=epsilon,
        delta=_DELTA, rate=rate, steps=2, micro=256,
    )  # fmt: skip


class _Described:
    """What the data looks like."""

    unit = Unit()
    schema = Schema.of(x=schema.tensor((2,), -1, 1), y=schema.tensor((1,), -1, 1), rows=_PEOPLE)


def people(many: int) -> dict[str, Any]:
    """Ordinary people, of whom nothing is to be found out."""
    x = np.stack([np.linspace(-1, 1, many), np.linspace(1, -1, many)], axis=1).astype(np.float32)
    return {"x": x, "y": x[:, :1].copy()}


__all__ = ["TenthOfTheNoise", "attack", "control", "people", "trained", "training"]
