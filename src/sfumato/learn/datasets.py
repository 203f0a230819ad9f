"""What training reads: records as tensors, taken slot by slot, private and public ones alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .. import checks
from ..errors import PlanError
from ..rows import Rows
from ..schema import Column, Schema, Table, TensorColumn
from ..sources import Examples, columns_of, source
from ..units import Unit
from .features import Features, Places, Target, shared
from .sampling import FREE

if TYPE_CHECKING:
    import torch

Inputs: TypeAlias = "torch.Tensor | dict[str, torch.Tensor]"
_KEPT = 2**28  # vectors are encoded once and kept up to so many bytes, and batch by batch beyond


class Batch(NamedTuple):
    """Slots of records. The weight is 1 for a record that counts, and 0 for one that does not and for a free slot."""

    inputs: Inputs
    targets: torch.Tensor | None
    weights: torch.Tensor


@dataclass(frozen=True, eq=False, repr=False)
class Encoded:
    """Rows, and how a model reads them.

    features  one for a model with one input, or several by the names of a model's arguments
    """

    rows: Rows
    features: Features | Mapping[str, Features]
    target: Target | None = None
    _whole: dict[str, torch.Tensor] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        columns_read(self.rows.table, self.features, self.target)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"<Encoded rows of table {self.rows.table.name!r}>"

    def take(self, places: Any) -> Batch:
        """The records at these places; FREE stands for none, and gets placeholders of weight 0.

        What a slot holds depends on its own record alone: the same record in the same slot is the same tensor, bit by
        bit, whatever stands beside it.
        """
        wanted = np.asarray(places, dtype=np.int64)
        free = wanted == FREE
        if not len(self.rows):
            wanted, free = wanted[:0], np.ones(len(wanted), dtype=np.bool_)
        filled = np.where(free[: len(wanted)], 0, wanted)
        inputs = {name: self._inputs(name, each, filled, free) for name, each in named(self.features).items()}
        weights = ~free
        targets = None
        if self.target is not None:
            targets = _filled(self.target.tensor(self.rows, filled), self.target.placeholder(self.rows.table), free)
            weights = weights & _over(self.target.readable(self.rows, filled), free)
        for feature in named(self.features).values():
            weights = weights & _over(feature.readable(self.rows, filled), free)
        features = inputs if isinstance(self.features, Mapping) else inputs[""]
        return Batch(features, targets, shared(weights.astype(np.float32)))

    def whole(self) -> Batch:
        """All records, in their order."""
        return self.take(np.arange(len(self.rows)))

    def _inputs(self, name: str, features: Features, filled: Places, free: NDArray[np.bool_]) -> torch.Tensor:
        placeholder = features.placeholder(self.rows.table)
        if placeholder.dim() == 1 and placeholder.is_floating_point() and self._small(placeholder):
            if name not in self._whole:
                self._whole[name] = features.tensor(self.rows)
            taken = self._whole[name][shared(filled)]
        else:
            taken = features.tensor(self.rows, filled)
        return _filled(taken, placeholder, free)

    def _small(self, placeholder: torch.Tensor) -> bool:
        return len(self.rows) * placeholder.numel() * 4 <= _KEPT


def named(features: Features | Mapping[str, Features]) -> Mapping[str, Features]:
    """Features by the name of the argument they are for; "" where a model has one input."""
    if isinstance(features, Features):
        return {"": features}
    if not isinstance(features, Mapping) or not features:
        raise checks.refuse("features", features, "Features, or Features by the names of a model's arguments")
    for name, feature in features.items():
        checks.label(name, "the name of an argument")
        checks.instance(feature, Features, name, "Features, such as Features(('age', 'ward'))")
    return features


def encode(
    data: Any,
    schema: Schema | Table,
    features: Features | Mapping[str, Features],
    target: Target | None = None,
) -> Encoded:
    """Public data as a model that was trained on private data of this schema reads it.

    data  what may be given as private data: arrays, lists or tensors by column, a frame, a Parquet file, a data set.
          Columns that the model does not read need not be there
    """
    table = schema.table() if isinstance(schema, Schema) else schema
    checks.instance(table, Table, "schema", "a Schema or Table")
    if isinstance(data, Rows):
        return Encoded(data, features, target)
    part = Table(columns_read(table, features, target), name=table.name)
    place = source(data)
    read = table if isinstance(place, Examples) else part  # records name their columns by the order of all of them
    place.check(read)
    return Encoded(Rows.read(part, columns_of(read, place), Unit()), features, target)


def columns_read(table: Table, features: Features | Mapping[str, Features], target: Target | None) -> dict[str, Column]:
    """The columns that a plan of training needs, by name. Refuses a table that features and target do not fit."""
    names: list[str] = []
    for feature in named(features).values():
        feature.check(table)
        names += feature.columns
    if target is not None:
        checks.instance(target, Target, "target", "a Target, such as Target('label')")
        target.check(table)
        if target.column in names and not isinstance(table.column(target.column), TensorColumn):
            raise PlanError(f"column {target.column!r} is the target: a model that reads it has nothing to learn")
        names.append(target.column)
    return {name: table.column(name) for name in dict.fromkeys(names)}


def _filled(taken: torch.Tensor, placeholder: torch.Tensor, free: NDArray[np.bool_]) -> torch.Tensor:
    if not len(taken):
        return placeholder.expand(len(free), *placeholder.shape).clone()
    if free.any():
        taken[shared(free)] = placeholder
    return taken


def _over(readable: NDArray[np.bool_], free: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return readable if len(readable) else np.zeros(len(free), dtype=np.bool_)
