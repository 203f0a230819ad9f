"""How good a model is: on public data for nothing, on private data as a release that is paid for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .. import checks
from ..bounds.base import Floats
from ..bounds.cell_counts import CellCounts
from ..errors import ArgumentError
from ..grid import Integers
from ..mechanisms import Gaussian, Laplace
from ..record import LIVE, record
from ..rows import Rows
from ..schema import Column
from .features import Features, Target
from .front import Described, described
from .live import Model
from .modes import in_use
from .owners import OwnerWatch
from .plan import made_up

_SEATS = 64


@record("judgements/1")
@dataclass(frozen=True, kw_only=True)
class Judgements(CellCounts):
    """How many records a public model tells right, and how many wrong.

    A record's place in a batch is worked out from the record itself, so that what the model says of it, to the last
    bit, does not depend on who else is there.
    """

    model: Model = field(metadata=LIVE)
    inputs: tuple[Features, ...]
    target: Target
    reads: Mapping[str, Column]

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "reads", dict(self.reads))

    @property
    def columns(self) -> Mapping[str, Column]:
        return self.reads

    @property
    def names(self) -> tuple[str, ...]:
        return ("right", "wrong")

    @property
    def combined(self) -> int:
        return 2

    def places(self, rows: Rows) -> tuple[Integers, NDArray[np.bool_]]:
        inputs, labels = tuple(each.tensor(rows) for each in self.inputs), self.target.tensor(rows)
        valid = self.target.readable(rows)
        for feature in self.inputs:
            valid = valid & feature.readable(rows)
        right = judged(self.model.loaded_as_is(), inputs, labels, OwnerWatch())
        return np.where(right, 0, 1).astype(np.int64), valid

    def finish(self, noisy: Floats) -> Any:
        right, wrong = float(noisy[0]), float(noisy[1])
        return {"accuracy": _share(right, wrong), "records": right + wrong}

    def error(self, noisy: Floats, width: Any) -> Any:
        """To first order the share moves by width over the number of records; that number is itself noisy."""
        records = float(noisy.sum()) - 2 * width
        return {"accuracy": min(1.0, width / records) if records > 0 else 1.0, "records": 2 * width}


def _share(right: float, wrong: float) -> float:
    return min(max(right / (right + wrong), 0.0), 1.0) if right + wrong > 0 else 0.0


def judged(
    model: torch.nn.Module, inputs: tuple[torch.Tensor, ...], target: torch.Tensor, watch: OwnerWatch | None = None
) -> NDArray[np.bool_]:
    """Which records the model tells right; under a watch, it must tell so of each from that record alone."""
    count = len(target)
    if not count:
        return np.zeros(0, dtype=np.bool_)
    seats = _seats(inputs)
    order = np.argsort(seats, kind="stable")
    rank = np.arange(count) - np.searchsorted(seats[order], np.arange(_SEATS))[seats[order]]
    right = np.zeros(count, dtype=np.bool_)
    with torch.no_grad():
        for batch in range(int(rank.max()) + 1):
            members = order[rank == batch]
            index = np.zeros(_SEATS, dtype=np.int64)
            index[seats[members]] = members
            chosen = torch.from_numpy(index)
            seated = [each[chosen] for each in inputs]
            if watch is None:
                score = model(*seated)
            else:
                with watch.over(seated, _SEATS):
                    score = model(*seated)
                watch.settle(score)
            labels = score.argmax(1) if score.dim() == 2 and score.shape[1] > 1 else (score.reshape(_SEATS) > 0).long()
            right[members] = (labels == target[chosen]).numpy()[seats[members]]
    return right


def _seats(inputs: tuple[torch.Tensor, ...]) -> NDArray[np.int64]:
    """A seat for each record, from its own numbers: whole-number arithmetic that wraps, the same in any order."""
    total = np.zeros(len(inputs[0]), dtype=np.uint64)
    for tensor in inputs:
        flat = tensor.reshape(len(tensor), -1)
        bits = (
            flat.contiguous().view(torch.int32 if flat.dtype.itemsize == 4 else torch.int64).numpy().astype(np.uint64)
        )
        weights = np.arange(1, bits.shape[1] + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        total += bits @ weights
    return ((total ^ (total >> np.uint64(29))) >> np.uint64(7)).astype(np.int64) % _SEATS


def accuracy(
    model: torch.nn.Module,
    *,
    data: Described,
    inputs: Any,
    target: str | Target,
    epsilon: Any,
    delta: Any = 0,
    per_unit: int = 1,
) -> Laplace | Gaussian:
    """The accuracy of a model on private data, as a plan: release it like any other, it is paid for.

    The model must be public already (released, or never trained on private data). With delta, the noise is Gaussian.
    """
    table, reads = described(data, inputs)
    tells = target if isinstance(target, Target) else Target(target)
    tells.classes(table)
    columns = {name: table.column(name) for each in reads for name in each.columns}
    columns[tells.column] = table.column(tells.column)
    public_model = Model(model)
    # A model that mixes records is refused now.
    judged(public_model.loaded_as_is(), *made_up(reads, tells, table), OwnerWatch())
    query = Judgements(unit=data.unit, per_unit=per_unit, model=public_model, inputs=reads, target=tells, reads=columns)
    if checks.delta(delta, zero=True):
        return Gaussian(query=query, epsilon=epsilon, delta=delta)
    return Laplace(query=query, epsilon=epsilon)


def by_group(
    model: torch.nn.Module, inputs: Any, target: torch.Tensor, groups: Any
) -> dict[Any, tuple[float, float, int]]:
    """Accuracy on public data, for each group: (accuracy, half-width at 95 %, records). Noise and clipping cost small
    groups most: look at it before a model is used. The data must be public; on private data it is a release."""
    several = inputs if isinstance(inputs, tuple) else (inputs,)
    names = np.asarray(groups)
    if len(names) != len(target):
        raise ArgumentError("groups are not allowed: give one name for each record of the target.")
    with in_use(model):
        right = judged(model, several, target)
    by_name = {}
    for name in np.unique(names):
        mine = right[names == name]
        share = float(mine.mean())
        by_name[name.item()] = (
            share,
            1.96 * float(np.sqrt(max(share * (1 - share), 0.25 / len(mine)) / len(mine))),
            len(mine),
        )
    return by_name
