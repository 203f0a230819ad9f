"""Black-box canaries: odd records that are put in by coins, and the finished model's loss on them.

The attacker sees the released model and nothing else, asks for its loss on each canary, and compares it with the loss
before training. Steinke, Nasr, Jagielski 2023 for the bound, which holds for any records and any score; what makes it
large is a record that the model learns from nothing else: a wrong label, or an input that no other record has.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from ... import checks
from ...errors import ArgumentError
from ...learn.datasets import Encoded
from ...learn.plan import SGD
from ...learn.stepping import Stepper
from ...noise import Noise
from ..arguments import noise_of
from ..counting import checked_confidence
from . import canaries as coins_of
from . import watching
from .outcome import ModelAudit, judged
from .watching import Columns, Steps

Floats = NDArray[np.float64]
_AT_ONCE = 4096


def one_run(
    plan: SGD,
    data: Columns,
    *,
    canaries: Columns,
    score: Literal["drop", "loss"] = "drop",
    guesses: Any = None,
    confidence: float = 0.95,
    noise: Noise | None = None,
    stepper: Steps = Stepper,
    way: str = "odd records, black box",
) -> ModelAudit:
    """Train once on the data and on the canaries whose coin says so, and tell which by the loss of the finished model.

    canaries  records by column, such as `mislabelled` and `lone` make them
    score     "drop": by how much training lowered the loss; "loss": how low it is
    """
    checks.one_of(score, "score", ("drop", "loss"))
    source = noise_of(noise)
    pool = Pool(plan, data, canaries)
    pool.check_guesses(guesses, confidence)
    coins = coins_of.tossed(len(pool), source)
    model = pool.trained(coins, source, stepper=stepper)
    after = pool.losses(model)
    scores = pool.losses(plan.model.loaded_as_is()) - after if score == "drop" else -after
    claim, delta = watching.claimed(pool.plan)
    return judged(
        scores, coins, way=way, claim=claim, delta=delta, guesses=guesses, confidence=confidence,
        curve=watching.curve_of(pool.plan),
        figures={"mean loss of canaries that were in": _mean(after[coins]), "and of others": _mean(after[~coins])},
    )  # fmt: skip


class Pool:
    """Records that may be put in or left out, beside data that stays; and the plan for about half of them."""

    def __init__(self, plan: SGD, data: Columns | None, pool: Columns, *, name: str = "canaries") -> None:
        checks.instance(plan, SGD, "plan", "a training, as learn.sgd makes it")
        if plan.unit.column is not None or plan.unit.change != "add-remove":
            raise checks.refuse("plan", str(plan.unit), "a plan whose unit is a row that comes and goes")
        if not watching.check_columns(plan, pool, name):
            raise checks.refuse(name, "no record", "at least one record")
        if data is not None:
            watching.check_columns(plan, data, "data")
        self._pool = {name: watching.as_array(pool[name]) for name in plan.reads}
        self._data = {
            name: each[:0] if data is None else watching.as_array(data[name]) for name, each in self._pool.items()
        }
        self._encoded = Encoded(watching.rows_of(plan, self._pool), plan.arguments, plan.target)
        there = len(next(iter(self._data.values()))) + len(self) // 2
        spread = math.ceil(2.5 * math.sqrt(len(self)))
        seats = watching.seats_for(plan.sampling, there, spread, Fraction(plan.delta))
        self.plan: SGD = replace(plan, sampling=seats)

    def __len__(self) -> int:
        return len(next(iter(self._pool.values())))

    def check_guesses(self, guesses: Any, confidence: float, targets: int = 1) -> None:
        """Refuse what cannot be judged later, before the time is spent."""
        coins_of.numbers_of(guesses, targets * len(self))
        checked_confidence(confidence)

    def trained(self, coins: coins_of.Coins, noise: Noise, *, stepper: Steps = Stepper) -> torch.nn.Module:
        """The model that these coins make."""
        rows = watching.rows_of(self.plan, watching.joined(self._data, self._pool, coins))
        return watching.trained(self.plan, rows, noise, stepper=stepper)

    def losses(self, model: torch.nn.Module) -> Floats:
        """The model's loss on each record of the pool."""
        out = []
        for start in range(0, len(self), _AT_ONCE):
            taken = self._encoded.take(np.arange(start, min(start + _AT_ONCE, len(self))))
            assert isinstance(taken.inputs, dict) and taken.targets is not None
            with torch.no_grad():
                losses = self.plan.loss.call(model(*taken.inputs.values()), taken.targets)
            out.append((losses.flatten(1).mean(1) if losses.dim() > 1 else losses).double().numpy())
        return np.concatenate(out)


def mislabelled(columns: Columns, target: str, classes: Sequence[Any], noise: Noise | None = None) -> dict[str, Any]:
    """The same records, each with a label that is not its own, any of the others alike."""
    source = noise_of(noise)
    if not isinstance(columns, Mapping) or target not in columns:
        raise checks.refuse("columns", type(columns).__name__, f"columns by name, with the target {target!r}")
    places = {value: place for place, value in enumerate(checks.distinct(classes, "classes", least=2))}
    labels = watching.as_array(columns[target])
    if labels.ndim != 1 or not set(labels.tolist()) <= set(places):
        raise ArgumentError("classes is not allowed: it lacks labels that the target has. List all of them.")
    own = np.array([places[each] for each in labels.tolist()], dtype=np.int64)
    moved = (own + 1 + source.integers(len(classes) - 1, len(own))) % len(classes)
    return {**columns, target: np.asarray(classes)[moved]}


def lone(shape: tuple[int, ...], places: Any, *, level: float = 1.0) -> NDArray[np.float32]:
    """One input for each place: nothing but one number there."""
    if not isinstance(shape, tuple) or not shape:
        raise checks.refuse("shape", shape, "the shape of one input, such as (28, 28)")
    size = math.prod(checks.whole(each, "shape") for each in shape)
    at = np.asarray(places)
    if at.ndim != 1 or (at.size and (at.dtype.kind not in "iu" or at.min() < 0 or at.max() >= size)):
        raise checks.refuse("places", type(places).__name__, f"a list of whole numbers from 0 to {size - 1}")
    if isinstance(level, bool) or not isinstance(level, int | float) or not math.isfinite(level):
        raise checks.refuse("level", level, "a finite number")
    out = np.zeros((len(at), size), dtype=np.float32)
    out[np.arange(len(at)), at.astype(np.int64)] = level
    return out.reshape(len(at), *shape)


def _mean(losses: Floats) -> float:
    return float(losses.mean()) if len(losses) else math.nan


__all__ = ["Pool", "lone", "mislabelled", "one_run"]
