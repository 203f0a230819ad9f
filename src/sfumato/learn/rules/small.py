"""Parameters that meet every place of a record alone: biases, scales, the weights of norms. Their gradients are small,
and are held for each record."""

from __future__ import annotations

import math
from typing import Any

import torch

from ..layout import Layout


def spread(g: torch.Tensor, shape: tuple[int, ...], layout: Layout, records: int) -> torch.Tensor:
    """(records, *shape): the gradient of an operand that was spread out over g's places, record by record."""
    if g.dtype.itemsize < 4:
        g = g.float()
    full = (1,) * (g.dim() - len(shape)) + tuple(shape)
    rest = full[: layout.dim] + full[layout.dim + 1 :]
    parts = layout.split(g, records)
    over = [dim + 2 for dim, size in enumerate(rest) if size == 1 and parts.shape[dim + 2] != 1]
    if parts.shape[1] > 1:
        over.append(1)
    return (parts.sum(over) if over else parts).reshape(records, *shape)


def layer_norm(g: torch.Tensor, x: torch.Tensor, mean: torch.Tensor, rstd: torch.Tensor) -> torch.Tensor:
    """g times the normalised input of a layer norm, as its node kept it."""
    kind = torch.float64 if x.dtype == torch.float64 else torch.float32
    return torch.sub(x.to(kind), mean.to(kind)).mul_(rstd.to(kind)).mul_(g)


def group_norm(node: Any, g: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(N, channels), twice: the gradients of scales and shifts, by one pass with the samples as groups."""
    count, channels, groups = node.N, node.C, node.group
    kind = g.dtype if g.dtype.itemsize >= 4 else torch.float32
    size = math.prod(g.shape[2:])
    aside = [each.to(kind).reshape(1, count * channels, size) for each in (g, node.input)]
    mean, rstd = (each.to(kind).reshape(1, count * groups) for each in (node.result1, node.result2))
    _, scales, shifts = torch.ops.aten.native_group_norm_backward(
        *aside,
        mean,
        rstd,
        mean.new_ones(count * channels),
        1,
        count * channels,
        size,
        count * groups,
        (False, True, True),
    )
    return scales.reshape(count, channels), shifts.reshape(count, channels)


def repeated(g: torch.Tensor, shape: tuple[int, ...], layout: Layout, records: int) -> torch.Tensor:
    """(records, *shape): the gradient of an operand that was written again and again, once for each record at least."""
    parts = layout.split(g if g.dtype.itemsize >= 4 else g.float(), records)
    if math.prod(parts.shape[1:]) % math.prod(shape):
        raise ValueError("not repeated as a whole")
    return parts.reshape(records, -1, *shape).sum(1)
