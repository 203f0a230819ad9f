"""What the engine asks of a use of a parameter, once the backward pass is over."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import NamedTuple

import torch

from ..arithmetic import TINY, depth, gamma, run, squared


class Sizes(NamedTuple):
    """For each record: an upper bound of the squared norm of its gradient, and of the squared float error that its part
    of the weighted sum can have, for a weight of 1. Both in double precision."""

    squares: torch.Tensor
    doubts: torch.Tensor


class Rule(ABC):
    """The gradients of all records with respect to one operand, as far as they are needed."""

    @abstractmethod
    def sizes(self) -> Sizes: ...

    @abstractmethod
    def total(self, weights: torch.Tensor) -> torch.Tensor:
        """The weighted sum of the records' gradients."""

    @abstractmethod
    def drop(self, which: torch.Tensor) -> None:
        """Forget these records: their gradients are 0 from now on."""

    @abstractmethod
    def by_record(self) -> torch.Tensor:
        """(records, *shape): every record's gradient."""


class Known(Rule):
    """Gradients that are held one by one. A record's gradient is what is held, float for float; only adding up rounds.

    The norm is taken in two stages, whose rounding is that of the two lengths together. It may be given, if it was
    computed from the same numbers already.
    """

    def __init__(self, gradients: torch.Tensor, squares: torch.Tensor | None = None) -> None:
        self._gradients = gradients
        self._squares = squares

    def sizes(self) -> Sizes:
        gradients = self._gradients
        records = gradients.shape[0]
        squares = lengths(gradients) if self._squares is None else self._squares
        return Sizes(squares, squares * gamma(depth(records, run(records, 1)), gradients.dtype) ** 2)

    def total(self, weights: torch.Tensor) -> torch.Tensor:
        gradients = self._gradients
        if gradients.dim() == 3 and not gradients.is_contiguous() and gradients.transpose(1, 2).is_contiguous():
            return Known(gradients.transpose(1, 2)).total(weights).t()  # held the other way round
        flat, factors = (
            gradients if gradients.dim() == 2 else gradients.reshape(gradients.shape[0], -1),
            weights.to(gradients.dtype),
        )
        records = flat.shape[0]
        length = run(records, 1)
        if records <= length:
            return (factors @ flat).reshape(gradients.shape[1:])
        out = factors[:length] @ flat[:length]
        for start in range(length, records, length):
            out += factors[start : start + length] @ flat[start : start + length]
        return out.reshape(gradients.shape[1:])

    def by_record(self) -> torch.Tensor:
        return self._gradients

    def drop(self, which: torch.Tensor) -> None:
        self._gradients, self._squares = blanked(self._gradients, which), None


def lengths(gradients: torch.Tensor, floor: float = TINY) -> torch.Tensor:
    """(records,): upper bounds of the squared norms of what is held for each record."""
    records = gradients.shape[0]
    count = math.prod(gradients.shape[1:])
    if gradients.dim() == 3 and gradients.stride(1) < gradients.stride(2):
        gradients = gradients.transpose(1, 2)  # in the order in which it lies
    if gradients.dim() > 2 and gradients.shape[1] > 1:
        norms = torch.linalg.vector_norm(gradients.reshape(records, gradients.shape[1], -1), dim=-1)
        terms = gradients.shape[1] + count // max(gradients.shape[1], 1)
        return squared(torch.linalg.vector_norm(norms, dim=-1), terms, (count + 8) * floor)
    return squared(torch.linalg.vector_norm(gradients.reshape(records, -1), dim=-1), count, (count + 8) * floor)


def blanked(rows: torch.Tensor, which: torch.Tensor) -> torch.Tensor:
    """The same with zeros for these records, which lie along the first dimension. It lies in memory as before, so the
    others' numbers are added up in the same order."""
    out = torch.empty_strided(rows.shape, rows.stride(), dtype=rows.dtype) if all(rows.stride()) else rows.clone()
    return out.copy_(rows).masked_fill_(which.reshape(-1, *[1] * (rows.dim() - 1)), 0.0)
