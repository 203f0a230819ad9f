"""Membership inference by the loss alone: whoever has a low loss was there.

Yeom, Giacomelli, Fredrikson, Jha 2018: the simplest attack that there is, and the floor under all others. Every record
of a pool is put in by a fair coin, so the bound of one_run_bound.py holds for the model as it is, with no word on how
records depend on each other through it.
"""

from __future__ import annotations

from typing import Any

from ...learn.plan import SGD
from ...learn.stepping import Stepper
from ...noise import Noise
from ..arguments import noise_of
from . import canaries as coins_of
from . import watching
from .inputs import Pool
from .outcome import ModelAudit, judged
from .watching import Columns, Steps


def loss_threshold(
    plan: SGD,
    pool: Columns,
    *,
    guesses: Any = None,
    confidence: float = 0.95,
    noise: Noise | None = None,
    stepper: Steps = Stepper,
) -> ModelAudit:
    """Train once on about half of the pool, and guess by the loss who was in it.

    The figures hold Yeom's advantage: true minus false positives of "its loss is below the mean loss of members".
    """
    source = noise_of(noise)
    records = Pool(plan, None, pool, name="pool")
    records.check_guesses(guesses, confidence)
    coins = coins_of.tossed(len(records), source)
    losses = records.losses(records.trained(coins, source, stepper=stepper))
    claim, delta = watching.claimed(records.plan)
    low = losses <= (losses[coins].mean() if coins.any() else 0.0)
    advantage = float(low[coins].mean() - low[~coins].mean()) if coins.any() and not coins.all() else 0.0
    return judged(
        -losses, coins, way="the loss alone", claim=claim, delta=delta, guesses=guesses, confidence=confidence,
        curve=watching.curve_of(records.plan), figures={"advantage (Yeom et al. 2018)": advantage},
    )  # fmt: skip


__all__ = ["loss_threshold"]
