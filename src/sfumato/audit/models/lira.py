"""Membership inference by shadow models: how would the loss on this record look if it had been there, and if not?

Carlini, Chien, Nasr, Song, Terzis, Tramer, "Membership inference attacks from first principles" (2022). Shadow models
are trained on halves of the pool by coins that the attacker knows. For each record, ln(p / (1 - p)) of the model's
confidence p = e^-loss is nearly normal over models; the score of a target is the log-likelihood ratio of the two fits
(online), or how far its value lies above those of models without the record (offline, from half of the fits).

The bound. Targets are further models with hidden coins, one for each record and target. All of them together are one
mechanism in which a coin touches one model, so it is as private as a single one, and one_run_bound.py and
one_run_tradeoff.py hold for all coins at once, whatever ties records of one model together. (Counting pairs of record
and model as independent trials would not do: they are not.) Shadow models are independent of the targets' coins.

Where rates are to be compared (`every_rate`), one record of each target is looked at, drawn at random from those that
the shadows tell apart best: then scores are independent and alike, given the shadows, and two_sided.py holds at every
threshold. That takes many targets.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ... import checks
from ...learn.plan import SGD
from ...learn.stepping import Stepper
from ...noise import Noise
from ..arguments import noise_of
from ..counting import checked_confidence
from . import canaries as coins_of
from . import watching
from .inputs import Pool
from .outcome import ModelAudit, judged
from .two_sided import EveryRate, everywhere
from .watching import Columns, Steps

Floats = NDArray[np.float64]
Fits = Literal["online", "offline"]
FITS: tuple[Fits, ...] = ("online", "offline")
_ENOUGH = 16  # models of one kind for a spread of its own; with fewer, records share one (as the paper does)


def audit(
    plan: SGD,
    pool: Columns,
    *,
    shadows: int = 64,
    targets: int = 16,
    fits: Fits = "online",
    guesses: Any = None,
    confidence: float = 0.95,
    noise: Noise | None = None,
    stepper: Steps = Stepper,
) -> ModelAudit:
    """Train shadow models and targets on halves of the pool, and tell the targets' members by the shadows' fits."""
    checks.one_of(fits, "fits", FITS)
    shadow_count, hidden = checks.whole(shadows, "shadows", least=4), checks.whole(targets, "targets")
    source = noise_of(noise)
    records = Pool(plan, None, pool, name="pool")
    records.check_guesses(guesses, confidence, hidden)
    seen, coins = _models(records, shadow_count, source, stepper)
    answers, secret = _models(records, hidden, source, stepper)
    scores = scores_of(seen, coins, answers, fits=fits)
    claim, delta = watching.claimed(records.plan)
    return judged(
        scores, secret.reshape(-1), way=f"shadow models, {fits}", claim=claim, delta=delta, guesses=guesses,
        confidence=confidence, curve=watching.curve_of(records.plan),
        cut=0.0 if fits == "online" else None, figures={"shadow models": float(shadow_count), "targets": float(hidden)},
    )  # fmt: skip


def every_rate(
    plan: SGD,
    pool: Columns,
    *,
    shadows: int = 64,
    targets: int = 1000,
    confidence: float = 0.95,
    noise: Noise | None = None,
    stepper: Steps = Stepper,
) -> dict[Fits, EveryRate]:
    """Is TPR <= e^epsilon FPR + delta for one record of each target, at every threshold? Jointly for both fits."""
    shadow_count, hidden = checks.whole(shadows, "shadows", least=4), checks.whole(targets, "targets", least=2)
    source = noise_of(noise)
    records = Pool(plan, None, pool, name="pool")
    error = 1 - checked_confidence(confidence)
    seen, coins = _models(records, shadow_count, source, stepper)
    answers, secret = _models(records, hidden, source, stepper)
    epsilon, delta = watching.claimed(records.plan)
    exposed = _exposed(seen, coins)
    taken = np.arange(hidden), exposed[source.integers(len(exposed), hidden)]
    there = secret[taken]
    if there.all() or not there.any():
        raise checks.refuse("targets", hidden, "more of them: every coin fell on the same side")
    excesses: dict[Fits, EveryRate] = {}
    for fits in FITS:
        scores = scores_of(seen, coins, answers, fits=fits).reshape(answers.shape)[taken]
        sure = 1 - error / len(FITS)
        excesses[fits] = everywhere(scores[there], scores[~there], epsilon=epsilon, delta=delta, confidence=sure)
    return excesses


def scores_of(seen: Floats, coins: NDArray[np.bool_], asked: Floats, *, fits: Fits = "online") -> Floats:
    """The score of each target and record, in one row after the other.

    seen, coins  what shadow models gave for each record, and whether it was in; rows are models
    asked        what the targets gave
    """
    out_mean, out_spread = _fit(seen, ~coins)
    if fits == "offline":
        return np.asarray(special.log_ndtr((asked - out_mean) / out_spread)).reshape(-1)
    in_mean, in_spread = _fit(seen, coins)
    return np.asarray(_log_normal(asked, in_mean, in_spread) - _log_normal(asked, out_mean, out_spread)).reshape(-1)


def _exposed(seen: Floats, coins: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The tenth of all records that shadow models tell apart best."""
    (in_mean, in_spread), (out_mean, out_spread) = _fit(seen, coins), _fit(seen, ~coins)
    gap = (in_mean - out_mean) / np.hypot(in_spread, out_spread)
    return np.argsort(gap)[-max(1, len(gap) // 10) :]


def scaled(losses: Floats) -> Floats:
    """ln(p / (1 - p)) for p = e^-loss, within what a float can tell."""
    return np.asarray(-np.log(np.expm1(np.clip(losses, 1e-12, 500.0))))


def _models(records: Pool, many: int, noise: Noise, stepper: Steps) -> tuple[Floats, NDArray[np.bool_]]:
    coins = np.stack([coins_of.tossed(len(records), noise) for _ in range(many)])
    with watching.on_one_thread():
        losses = [scaled(records.losses(records.trained(each, noise, stepper=stepper))) for each in coins]
    return np.stack(losses), coins


def _fit(seen: Floats, chosen: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Mean and spread of each record over the chosen models; of all records alike where there are few models."""
    counts = np.maximum(chosen.sum(0), 1)
    mean = np.where(chosen, seen, 0.0).sum(0) / counts
    squares = np.where(chosen, (seen - mean) ** 2, 0.0)
    few = squares.sum() / max(int(chosen.sum()), 1)
    spread = squares.sum(0) / counts if counts.min() >= _ENOUGH else np.full(len(mean), few)
    return np.asarray(mean), np.sqrt(np.maximum(spread, 1e-12))


def _log_normal(values: Floats, mean: Floats, spread: Floats) -> Floats:
    return np.asarray(-0.5 * ((values - mean) / spread) ** 2 - np.log(spread))


__all__ = ["FITS", "audit", "every_rate", "scaled", "scores_of"]
