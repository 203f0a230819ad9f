"""Whose is which part of a tensor: how records lie in it."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Layout:
    """Records lie along one dimension, each with the same number of places.

    before  how often the records come round: 1 where they lie one after the other; the length of a sequence where that
            comes before the batch, and the two were flattened
    """

    dim: int
    before: int = 1

    def split(self, tensor: torch.Tensor, records: int) -> torch.Tensor:
        """As (records, places, everything else in its order)."""
        size = tensor.shape[self.dim]
        after = size // (self.before * records)
        if self.before == 1 and self.dim == 0:
            return tensor.reshape(records, after, *tensor.shape[1:])
        if self.before == 1:
            parts, dim = _unflat(tensor, self.dim, records, after), self.dim
            return parts.movedim((dim, dim + 1), (0, 1))
        parts, dim = _unflat(tensor, self.dim, self.before, records, after), self.dim
        parts = parts.movedim((dim + 1, dim, dim + 2), (0, 1, 2))
        return parts.flatten(1, 2)

    def owners(self, size: int, records: int) -> torch.Tensor:
        """The record that each place along the dimension belongs to."""
        return torch.arange(size) // (size // (self.before * records)) % records


def _unflat(tensor: torch.Tensor, dim: int, *sizes: int) -> torch.Tensor:
    return tensor.reshape(*tensor.shape[:dim], *sizes, *tensor.shape[dim + 1 :])


def candidates(shape: tuple[int, ...], other: tuple[int, ...], records: int, others: int) -> list[Layout]:
    """What is possible, given the shapes of the same thing for two sizes of the batch."""
    if len(shape) != len(other):
        return []
    grown = [dim for dim, (one, two) in enumerate(zip(shape, other, strict=True)) if one != two]
    if len(grown) != 1:
        return []
    size, larger = shape[grown[0]], other[grown[0]]
    if size * others != larger * records or size % records:
        return []
    places = size // records
    if records == 1:
        return [Layout(grown[0])]
    return [Layout(grown[0], before) for before in range(1, places + 1) if places % before == 0]
