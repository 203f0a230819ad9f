"""How much of a record's gradient counts: rules of clipping, as public fields.

A rule splits the parameters into groups, each with a norm; a record's part in a group never exceeds that norm, so
altogether it never exceeds `norm`, the square root of the sum of their squares, which the noise is made for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import torch

from .. import checks, exact
from ..checks import Exact
from ..errors import PlanError
from ..questions import CLIP, COARSE, FINE, PRICE
from ..record import record
from .arithmetic import roundoff
from .rules import Sizes

NORMS = (Fraction(1, 2**30), Fraction(2**30))


@dataclass(frozen=True, kw_only=True)
class Clipping(ABC):
    """A rule of clipping."""

    norm: Exact = field(metadata=CLIP)

    def __post_init__(self) -> None:
        object.__setattr__(self, "norm", _sized(self.norm, "norm"))

    @abstractmethod
    def groups(self, names: Sequence[str]) -> tuple[int, ...]:
        """The group of each parameter, by its place; groups are numbered from 0."""

    def shares(self, count: int) -> tuple[float, ...]:
        """The norm of each group for an overall norm of 1; their squares add up to at most 1."""
        return (_equal_share(count),) * count

    def factor(self, norms: torch.Tensor, most: float) -> torch.Tensor:
        """The weights of records with these norms, where `most` is the norm that a record may have."""
        return (most / norms).clamp_max(1.0)


@record("clip-flat/1", kept=True)
@dataclass(frozen=True, kw_only=True)
class Flat(Clipping):
    """One norm for all parameters together (Abadi et al. 2016)."""

    def groups(self, names: Sequence[str]) -> tuple[int, ...]:
        return (0,) * len(names)


@record("clip-automatic/1", kept=True)
@dataclass(frozen=True, kw_only=True)
class Automatic(Flat):
    """Every record is scaled to nearly the same length, norm * |g| / (|g| + stability): the norm need not be tuned, it
    only scales the learning rate (Bu, Wang, Zha, Karypis 2023)."""

    stability: Exact = field(default=Fraction(1, 100), metadata=COARSE)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "stability", _sized(self.stability, "stability"))

    def factor(self, norms: torch.Tensor, most: float) -> torch.Tensor:
        return most / (norms + float(self.stability))


@record("clip-layers/1", kept=True)
@dataclass(frozen=True, kw_only=True)
class PerLayer(Clipping):
    """Each layer (the parameters of one module) by itself, all with the same norm."""

    def groups(self, names: Sequence[str]) -> tuple[int, ...]:
        layers = {layer: place for place, layer in enumerate(dict.fromkeys(_layer(name) for name in names))}
        return tuple(layers[_layer(name)] for name in names)


@record("clip-groups/1")
@dataclass(frozen=True, kw_only=True)
class PerGroup(Clipping):
    """Groups by patterns of parameter names, each with its share of the norm: {"head.*": 3, "*": 4} gives them norms in
    the proportion 3 to 4. The first pattern that fits counts."""

    weights: Mapping[str, Exact] = field(metadata=FINE)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.weights, Mapping) or not self.weights:
            raise checks.refuse("weights", self.weights, 'a weight for each pattern, such as {"head.*": 1, "*": 1}')
        checked = {
            checks.label(name, "weights"): checks.positive(each, "weights") for name, each in self.weights.items()
        }
        object.__setattr__(self, "weights", checked)

    def groups(self, names: Sequence[str]) -> tuple[int, ...]:
        places = []
        for name in names:
            place = next((place for place, each in enumerate(self.weights) if fnmatchcase(name, each)), None)
            if place is None:
                raise PlanError(f"no pattern of the clipping groups fits the parameter {name!r}: add '*' for the rest")
            places.append(place)
        return tuple(places)

    def shares(self, count: int) -> tuple[float, ...]:
        total = sum(each**2 for each in self.weights.values())
        return tuple(1 / exact.sqrt_above(total / each**2) for each in self.weights.values())


@record("clip-adaptive/1", kept=True)
@dataclass(frozen=True, kw_only=True)
class Adaptive(Flat):
    """The norm follows a quantile of the records' norms (Andrew, Thakkar, McMahan, Ramaswamy 2021).

    norm      where it begins
    quantile  the share of records that shall not be clipped
    pace      the learning rate of the logarithm of the norm
    noise     the standard deviation of the noise on the count of records that are not clipped, as a share of the
              expected batch. The count is a part of every step's release, and is paid for with it
    """

    quantile: Exact = field(default=Fraction(1, 2), metadata=COARSE)
    pace: Exact = field(default=Fraction(1, 5), metadata=COARSE)
    noise: Exact = field(default=Fraction(1, 20), metadata=PRICE)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("pace", "noise"):
            object.__setattr__(self, name, checks.positive(getattr(self, name), name))
        quantile = checks.positive(self.quantile, "quantile")
        if quantile >= 1:
            raise checks.refuse("quantile", self.quantile, "a share above 0 and below 1")
        object.__setattr__(self, "quantile", quantile)


def _sized(size_given: Any, name: str) -> Fraction:
    """Where single floats have digits to spare on both sides."""
    size = checks.positive(size_given, name)
    if not NORMS[0] <= size <= NORMS[1]:
        raise checks.refuse(name, size_given, "a number from 2^-30 to 2^30")
    return size


@cache
def _equal_share(count: int) -> float:
    return 1 / exact.sqrt_above(Fraction(count))


def _layer(name: str) -> str:
    return name.rpartition(".")[0]


def coefficients(
    clipping: Clipping, norm: float, sizes: Sequence[Sizes | None], groups: Sequence[int], eta: float
) -> tuple[list[torch.Tensor], torch.Tensor]:
    """The weights of the records in each group, and their norms over all groups (rounded up).

    A record whose gradient is not finite has norm infinity or nan, and weight 0.
    """
    measured = [(each, group) for each, group in zip(sizes, groups, strict=True) if each is not None]
    shares = clipping.shares(max(groups) + 1)
    count = len(shares)  # maybe more: a group without a parameter
    table = torch.stack([each.squares for each, _ in measured] + [each.doubts for each, _ in measured])
    records = table.shape[1]
    table = table.view(2, -1, records)
    if count == 1:
        sums = table.sum(1, keepdim=True).numpy()
    else:
        place = torch.tensor([group for _, group in measured])
        sums = torch.zeros(2, count, records, dtype=torch.float64).index_add_(1, place, table).numpy()
    roots = np.sqrt(sums)  # in numpy from here on: there is little of it, and its calls are short
    down = 1 - 16 * roundoff(torch.float32)  # more than all roundings of what follows
    room = eta / (2 * max(records, 1))
    weights = []
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for group, share in enumerate(shares):
            most = norm * share * down
            factors = clipping.factor(torch.from_numpy(roots[0, group]), most).numpy()
            factors = np.minimum(factors, room * most / roots[1, group])
            # 0 where something is not finite, as where it is too large for float32, which public numbers can make it
            weights.append(torch.from_numpy((np.where(factors < 2.0**100, factors, 0.0) * down).astype(np.float32)))
    return weights, torch.from_numpy(roots[0, 0] if count == 1 else np.sqrt(sums[0].sum(0)))
