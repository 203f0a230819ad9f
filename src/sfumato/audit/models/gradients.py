"""White-box canaries: records whose clipped gradient is a direction of their own.

Nasr et al., "Tight auditing of differentially private machine learning" (2023): a canary whose gradient is one
coordinate as long as the clip norm ("Dirac"), and an attacker who sees every noisy gradient, make the sampled Gaussian
mechanism itself visible: no canary can be told better. Here there are many, one coordinate for each, so that one
training shows them all (Steinke, Nasr, Jagielski 2023), and none is in another's way.

How. The user's model gets a table of weights beside it, one for each canary, and records get a column that says which
canary they are (0: none). An ordinary record never touches the table. The loss of a canary is its weight, times a
number that makes the gradient longer than the clip norm; it never touches the model. So clipping, sampling, noise, grid
and steps are those of the plan, and the price is the plan's: a wider model costs no more.

The score of a canary is the log-likelihood ratio of what its coordinate showed, step by step, under noise of the
promised size: with rate q and z = sd / norm, log(1 - q + q exp((2x - 1) / 2z^2)) for x, the coordinate over the norm.
A score may be anything (the bound does not ask where it is from); this one is the most telling where the noise is
what it should be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ... import checks, schema
from ...learn.features import Features
from ...learn.live import Loss, Model
from ...learn.plan import SGD
from ...learn.stepping import Stepper
from ...noise import Noise
from ..arguments import noise_of
from ..counting import checked_confidence
from . import canaries as coins_of
from . import two_sided, watching
from .outcome import ModelAudit, judged
from .watching import Columns, Steps, WatchedStep

COLUMN = "canary"
_LOUD = 2.0**10  # the canary's gradient over the clip norm, before it is clipped


class Beside(torch.nn.Module):
    """A model, and beside it one weight for each canary."""

    def __init__(self, model: torch.nn.Module, canaries: int) -> None:
        super().__init__()
        self.model = model
        self.canaries = torch.nn.Embedding(canaries + 1, 1)
        torch.nn.init.zeros_(self.canaries.weight)
        self.train(model.training)

    def forward(self, *inputs: torch.Tensor) -> tuple[Any, torch.Tensor, torch.Tensor]:
        *own, which = inputs
        sign = which[:, 0].sign().to(torch.float32)
        return self.model(*own), self.canaries(which[:, 0].abs())[:, 0], sign


class BesideLoss(torch.nn.Module):
    """The user's own loss for ordinary records; for a canary its weight, loud."""

    def __init__(self, loss: Loss, loud: float) -> None:
        super().__init__()
        self._loss, self.of, self.loud = loss.call, loss.print, loud

    def forward(self, output: tuple[Any, torch.Tensor, torch.Tensor], target: torch.Tensor) -> torch.Tensor:
        prediction, weight, sign = output
        own = self._loss(prediction, target)
        own = own.flatten(1).mean(1) if own.dim() > 1 else own
        return torch.where(sign == 0, own, torch.zeros_like(own)) + self.loud * sign * weight


def one_run(
    plan: SGD,
    data: Columns,
    *,
    canaries: int = 1000,
    guesses: Any = None,
    confidence: float = 0.95,
    noise: Noise | None = None,
    stepper: Steps = Stepper,
) -> ModelAudit:
    """Train once, with gradient canaries that are put in by coins, and tell how much the steps give away.

    plan        a training, as learn.sgd makes it; its unit is a row
    data        columns to train on, as a mapping of arrays: what is learnt of them is shown to whoever reads the result
    canaries    how many; more of them show more, and cost a weight each
    guesses     how many coins are guessed, one number or a list, fixed in advance; None for a public list
    stepper     the step that is audited: the library's, or a planted bug
    """
    coins_of.numbers_of(guesses, checks.whole(canaries, "canaries", most=10**6))  # before the time is spent
    checked_confidence(confidence)
    seen = watched(plan, data, canaries=canaries, noise=noise, stepper=stepper)
    return seen.audit(guesses=guesses, confidence=confidence)


@dataclass(frozen=True)
class Watched:
    """One training that was watched: the score of each canary, and its coin."""

    plan: SGD
    scores: NDArray[np.float64]
    coins: NDArray[np.bool_]

    def audit(self, *, guesses: Any = None, confidence: float = 0.95) -> ModelAudit:
        """What the scores prove."""
        claim, delta = watching.claimed(self.plan)
        return judged(
            self.scores, self.coins, way="gradient canaries, white box", claim=claim, delta=delta, guesses=guesses,
            confidence=confidence, curve=watching.curve_of(self.plan), cut=0.0,
            figures={"steps": float(self.plan.steps)},
        )  # fmt: skip


def watched(
    plan: SGD, data: Columns, *, canaries: int, noise: Noise | None = None, stepper: Steps = Stepper
) -> Watched:
    """Train once, and score every canary."""
    many = checks.whole(canaries, "canaries", most=10**6)
    source = noise_of(noise)
    wide = with_canaries(plan, _length(plan, data), many)
    coins = coins_of.tossed(many, source)
    rows = watching.rows_of(wide, _columns(plan, data, many, coins))
    seen = _Scores(wide, many)
    watching.trained(wide, rows, source, stepper=stepper, see=seen)
    return Watched(wide, seen.total, coins)


def many_runs(
    plan: SGD,
    data: Columns,
    *,
    trainings: int = 1000,
    confidence: float = 0.95,
    noise: Noise | None = None,
    stepper: Steps = Stepper,
) -> two_sided.TwoSided:
    """Train many times, with one gradient canary and without it in turns, and tell the two apart by the steps.

    Independent trainings prove more than one training of as many canaries, and cost as many times more.
    """
    runs = checks.whole(trainings, "trainings", least=4)
    checked_confidence(confidence)
    source = noise_of(noise)
    wide = with_canaries(plan, _length(plan, data), 1)
    both = [
        watching.rows_of(wide, _columns(plan, data, 1, np.array([there], dtype=np.bool_))) for there in (False, True)
    ]
    scores: list[list[float]] = [[], []]
    with watching.on_one_thread():
        for run in range(runs):
            seen = _Scores(wide, 1)
            watching.trained(wide, both[run % 2], source, stepper=stepper, see=seen)
            scores[run % 2].append(float(seen.total[0]))
    return two_sided.bounds(scores[1], scores[0], delta=watching.claimed(wide)[1], confidence=confidence)


def with_canaries(plan: SGD, records: int, canaries: int) -> SGD:
    """The same training of the same model, with a weight for each canary beside it."""
    checks.instance(plan, SGD, "plan", "a training, as learn.sgd makes it")
    if plan.unit.column is not None:
        raise checks.refuse("plan", str(plan.unit), "a plan whose unit is a row: a canary is one record")
    if plan.unit.change not in ("add-remove", "replace"):
        raise checks.refuse("plan", str(plan.unit), "units that come and go, or are replaced")
    if COLUMN in plan.reads:
        raise checks.refuse("plan", COLUMN, f"columns of other names than {COLUMN!r}, which the audit adds")
    replaced = plan.unit.change == "replace"
    column = schema.tensor((1,), -canaries if replaced else 0, canaries, whole=True)
    there = records + (canaries if replaced else canaries // 2)
    spread = 0 if replaced else math.ceil(2.5 * math.sqrt(canaries))
    norm = float(plan.clip.norm)
    return replace(
        plan,
        model=Model(Beside(plan.model.fresh(), canaries)),
        loss=Loss(BesideLoss(plan.loss, _LOUD * norm)),
        inputs=(*plan.inputs, Features((COLUMN,))),
        reads={**plan.reads, COLUMN: column},
        sampling=watching.seats_for(plan.sampling, there, spread, Fraction(plan.delta)),
    )


def _columns(plan: SGD, data: Columns, canaries: int, coins: NDArray[np.bool_]) -> dict[str, Any]:
    """Ordinary records, then the canaries that are in. Where units are replaced all are there, and a coin is a sign."""
    made_up = plan.table.make_up(canaries, _still, awkward=False)
    names = np.arange(1, canaries + 1, dtype=np.int64)
    replaced = plan.unit.change == "replace"
    if replaced:
        names, coins = np.where(coins, names, -names), np.ones_like(coins)
    ordinary = {**{name: data[name] for name in plan.reads}, COLUMN: np.zeros((_length(plan, data), 1), dtype=np.int64)}
    return watching.joined(ordinary, {**made_up, COLUMN: names[:, None]}, coins)


def _still(count: int) -> NDArray[np.uint64]:
    """Words for made-up records that nobody learns from."""
    return np.full(count, 2**63, dtype=np.uint64)


def _length(plan: SGD, data: Columns) -> int:
    checks.instance(plan, SGD, "plan", "a training, as learn.sgd makes it")
    return watching.check_columns(plan, data, "data")


class _Scores:
    """Log-likelihood ratios, added up step by step."""

    def __init__(self, plan: SGD, canaries: int) -> None:
        self.total = np.zeros(canaries)
        self._plan = plan
        names = [name for name, each in plan.model.original.named_parameters() if each.requires_grad]
        self._place = names.index("canaries.weight")
        self._rate = float(plan.sampling.expected) / float(plan.sampling.population)  # type: ignore[attr-defined]
        self._signs = plan.unit.change == "replace"

    def __call__(self, step: WatchedStep) -> None:
        drawn = step.gradients[self._place].double().numpy().reshape(-1)[1:] * self._plan.divisor / step.norm
        spread = self._plan.blur.deviation(step.norm) / step.norm
        if self._signs:  # one sign or the other: by symmetry the difference of both
            self.total += _ratio(drawn, spread, self._rate) - _ratio(-drawn, spread, self._rate)
        else:
            self.total += _ratio(drawn, spread, self._rate)


def _ratio(drawn: NDArray[np.float64], spread: float, rate: float) -> NDArray[np.float64]:
    there = (2 * drawn - 1) / (2 * spread**2)
    if rate >= 1:
        return np.asarray(there)
    return np.asarray(np.logaddexp(math.log1p(-rate), math.log(rate) + there))


__all__ = ["COLUMN", "Beside", "BesideLoss", "Watched", "many_runs", "one_run", "watched", "with_canaries"]
