"""What is wrong with a model by the look of it: modules and parameters, by their types."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import nn

from .fixing import mixes

_FLOATS = (torch.float32, torch.float64, torch.bfloat16)
_WRAPPED = {
    "DataParallel": "Give the model inside, model.module: what is split over devices is clipped in one place",
    "DistributedDataParallel": "Give the model inside, model.module: each worker would add noise for itself",
    "FullyShardedDataParallel": "Give the model as it was before it was sharded",
    "FSDPModule": "Give the model as it was before it was sharded",
    "OptimizedModule": "Give the model as it was before torch.compile, model._orig_mod",
    "ScriptModule": "Give the model in Python, as it was before torch.jit",
}


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that was found: what, where in the model, why it matters, what to do; refused, or good to know."""

    what: str
    where: str = ""
    why: str = ""
    fix: str = ""
    refused: bool = True

    def __str__(self) -> str:
        return f"{self.where or 'the model'}: " + " ".join(
            f"{each}." for each in (self.what, self.why, self.fix) if each
        )


def modules(model: nn.Module) -> Iterator[Finding]:
    """By type, wherever in the model, once for each place."""
    for path, module in model.named_modules(remove_duplicate=False):
        kind = type(module).__name__
        wrapped = next((each.__name__ for each in type(module).__mro__ if each.__name__ in _WRAPPED), None)
        if wrapped is not None:
            yield Finding(
                what=f"{kind} is not supported",
                where=path,
                why="The engine reads the model itself",
                fix=_WRAPPED[wrapped],
            )
        elif mixes(module):
            yield _norm(path, module, kind)
        elif isinstance(module, nn.Embedding | nn.EmbeddingBag):
            yield from _table(path, module, kind)
        elif any(map(nn.parameter.is_lazy, module.parameters(recurse=False))):
            yield Finding(
                what=f"{kind} has no shape yet",
                where=path,
                why="Its parameters are made in its first run",
                fix="Run the model once on a made-up record, before anything else",
            )
    if not model.training:
        yield Finding(
            what="it is in eval mode",
            why="Dropout is off, and stays off in training",
            fix="Call model.train() first if that is not meant",
            refused=False,
        )


def _norm(path: str, module: nn.Module, kind: str) -> Finding:
    """BatchNorm, and what keeps averages as it does. In eval mode it does not mix, but one train() is enough."""
    other = "InstanceNorm without running statistics" if "Instance" in kind else "GroupNorm"
    fix = f"learn.fix(model) replaces it by {other}; build the optimiser after that"
    if module.training:
        return Finding(
            what=f"{kind} is not allowed, trainable or not",
            where=path,
            why="It computes with averages over the records, or keeps them: records mix, and what is kept is released "
            "without protection",
            fix=fix,
        )
    return Finding(
        what=f"{kind} is not allowed, in eval mode neither",
        where=path,
        why="Its statistics came from somewhere, and one call of train() makes it mix records",
        fix=f"{fix}. If its statistics come from public data, learn.fix(model, public_statistics=True) keeps them",
    )


def _table(path: str, module: nn.Embedding | nn.EmbeddingBag, kind: str) -> Iterator[Finding]:
    """Tables with more to them than looking up."""
    if module.max_norm is not None:
        yield Finding(
            what=f"{kind} with max_norm is not allowed",
            where=path,
            why="It shortens rows that records look up, in the forward pass: weights tell who was there, without noise",
            fix="Leave max_norm out; shorten all rows after a step if need be",
        )
    if module.scale_grad_by_freq:
        yield Finding(
            what=f"{kind} with scale_grad_by_freq is not allowed",
            where=path,
            why="It divides a record's gradient by how often others look up the same row",
            fix="Leave scale_grad_by_freq out",
        )


def parameters(model: nn.Module) -> Iterator[Finding]:
    """Trainable ones, by type."""
    for name, parameter in model.named_parameters():
        if nn.parameter.is_lazy(parameter) or not parameter.requires_grad:
            continue
        if parameter.is_complex():
            yield Finding(
                what=f"a parameter of type {parameter.dtype}",
                where=name,
                why="Clipping is for real numbers",
                fix="Hold real and imaginary part as two real parameters",
            )
        elif parameter.dtype not in _FLOATS:
            yield Finding(
                what=f"a parameter of type {parameter.dtype}",
                where=name,
                why="Gradients overflow in it, and its float errors are too large to be bounded",
                fix="Use model.float(), and cast='bfloat16' for mixed precision",
            )
        elif parameter.device.type != "cpu" or type(parameter) is not nn.Parameter:
            yield Finding(
                what="a parameter that is no ordinary one on the CPU ("
                f"{type(parameter).__name__}, {parameter.device.type})",
                where=name,
                why="The engine computes on the CPU",
                fix="Call model.cpu() first",
            )
        if parameter._backward_hooks or getattr(parameter, "_post_accumulate_grad_hooks", None):
            yield Finding(
                what="a hook on this parameter's gradient",
                where=name,
                why="It never runs: no gradient without protection is computed",
                fix="Remove it, or do the same to .grad after a step",
                refused=False,
            )
