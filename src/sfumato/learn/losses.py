"""Losses that keep records apart: one number for each."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from .. import checks
from ..errors import PlanError

_SUMS = ("sum", "batchmean")  # of a whole batch; for one record: the sum over what it has


@dataclass(frozen=True)
class PerRecord:
    """A loss of torch without its mean over the batch: over a record's own places it is the mean, or the sum where the
    given loss was a sum. Places that the loss ignores (ignore_index) count as 0.
    """

    loss: Callable[..., torch.Tensor]
    adds: bool = False

    def __call__(self, output: Any, target: torch.Tensor) -> torch.Tensor:
        losses = self.loss(output, target)
        if losses.dim() == 0 or len(losses) != len(target):
            raise wrong_length(losses, target)
        if losses.dim() == 1:
            return losses
        return losses.flatten(1).sum(1) if self.adds else losses.flatten(1).mean(1)


def per_record(loss: Any) -> Callable[[Any, torch.Tensor], torch.Tensor]:
    """One loss for each record from a loss as torch has them: nn.CrossEntropyLoss(), F.mse_loss, a module or function
    with a `reduction`. Any other function is taken as it is: it must give one number for each record."""
    if isinstance(loss, type):
        raise checks.refuse("loss", loss, f"a loss, not its class: {loss.__name__}()")
    if not callable(loss):
        raise checks.refuse("loss", loss, "a function of output and target, such as torch.nn.functional.cross_entropy")
    if isinstance(loss, PerRecord):
        return loss
    if isinstance(loss, torch.nn.Module):
        reduction = getattr(loss, "reduction", None)
        if not isinstance(reduction, str):
            return loss
        apart: Any = copy.copy(loss)  # the caller's own keeps its reduction
        apart.reduction = "none"
        return PerRecord(apart, reduction in _SUMS)
    try:
        wanted = inspect.signature(loss).parameters.get("reduction")
    except (TypeError, ValueError):  # a function that says nothing of its arguments
        return loss
    if wanted is None:
        return loss
    if not isinstance(wanted.default, str) and wanted.default is not inspect.Parameter.empty:
        return loss  # a reduction of its own kind
    return PerRecord(partial(loss, reduction="none"), wanted.default in _SUMS)


def wrong_length(losses: torch.Tensor, target: torch.Tensor) -> PlanError:
    """The error for a loss that is not one number for each record; shapes only, no values."""
    if losses.dim() == 0:
        cause = "the loss is one number for the whole batch, an average or sum that mixes records"
    else:
        cause = f"the loss has {len(losses)} entries for {len(target)} records"
    return PlanError(f"{cause}: give one number for each record, with reduction='none', or by learn.per_record(loss)")
