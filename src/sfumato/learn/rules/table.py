"""Which operation has which rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ..arithmetic import FLOOR
from ..layout import Layout
from . import small
from .affine import affine
from .base import Known, Rule, lengths
from .convolution import convolution
from .embedding import Embedding
from .general import Kept, Use

_KEPT = {
    "AddmmBackward0": ("mat1", "alpha", "beta"),
    "MmBackward0": ("self",),
    "ConvolutionBackward0": ("input", "stride", "padding", "dilation", "groups", "transposed", "output_padding"),
    "EmbeddingBackward0": ("indices", "padding_idx", "scale_grad_by_freq"),
    "NativeLayerNormBackward0": ("input", "result1", "result2", "normalized_shape"),
    "NativeGroupNormBackward0": ("input", "result1", "result2", "N", "C", "group"),
    "MulBackward0": ("self", "other"),
    "DivBackward0": ("self", "other"),
    "PreluKernelBackward0": ("self",),
    "AddBackward0": ("alpha",),
    "SubBackward0": ("alpha",),
}


def keep(node: Any) -> Kept:
    name = node.name()
    return Kept(name, {each: getattr(node, f"_saved_{each}") for each in _KEPT.get(name, ())})


def rule(use: Use) -> Rule | None:
    """The gradients of the operand, record by record, as this use gives them; None where only `anything` can tell."""
    special = _RULES.get((use.kept.name, use.slot))
    return None if special is None or use.g.is_complex() else special(use)


def looked(ids: torch.Tensor, padding: int, g: torch.Tensor, rows: int) -> Embedding:
    """Look-ups (records, places) in a table of so many rows. What looks up the padding row teaches it nothing."""
    if 0 <= padding < rows:
        g = g.masked_fill((ids == padding).unsqueeze(-1), 0.0)
    return Embedding(ids, g, rows)


def _product(use: Use, a: torch.Tensor) -> Rule | None:
    if use.layout.dim != 0 or use.g.dim() != 2:
        return None
    inputs, g = use.layout.split(a, use.records), use.layout.split(use.g, use.records)
    return affine(inputs, g, _grown(use)) if use.turned else affine(g, inputs)


def _addmm(use: Use) -> Rule | None:
    return _product(use, use.kept.mat1) if use.kept.alpha == 1 else None


def _addmm_bias(use: Use) -> Rule | None:
    if use.kept.beta != 1 or use.turned:
        return None
    grown = _grown(use) if use.shape == use.g.shape[1:] else None
    return _spread(use) if grown is None else Known(use.g, grown)


def _grown(use: Use) -> torch.Tensor | None:
    """The squared lengths of the gradients of records with one place each: weight and bias need the same ones."""
    if len(use.g) != use.records or use.g.dtype.itemsize < 4:
        return None
    if "grown" not in use.kept.values:
        use.kept.values["grown"] = lengths(use.g, FLOOR)
    return use.kept.values["grown"]


def _mm(use: Use) -> Rule | None:
    return _product(use, use.kept.values["self"])


def _spread(use: Use, g: torch.Tensor | None = None) -> Rule | None:
    if use.turned:
        return None
    return Known(small.spread(use.g if g is None else g, use.shape, use.layout, use.records))


def _added(use: Use) -> Rule | None:
    return _spread(use) if use.slot == 0 or use.kept.alpha == 1 else None


def _subtracted(use: Use) -> Rule | None:
    if use.slot == 0:
        return _spread(use)
    return _spread(use, -use.g) if use.kept.alpha == 1 else None


def _multiplied(use: Use) -> Rule | None:
    other = use.kept.values["other" if use.slot == 0 else "self"]
    return None if other is None else _spread(use, use.g * other)


def _divided(use: Use) -> Rule | None:
    one, other = use.kept.values["self"], use.kept.values["other"]
    if use.slot == 0:
        return _spread(use, use.g / other)
    return None if one is None else _spread(use, -use.g * (one / other) / other)


def _rectified(use: Use) -> Rule | None:
    return _spread(use, use.g * use.kept.values["self"].clamp_max(0))


def _convolved(use: Use) -> Rule | None:
    if use.layout != Layout(0) or use.turned:
        return None
    return convolution(use.kept, use.kept.input, use.g, use.shape, use.records)


def _convolved_bias(use: Use) -> Rule | None:
    if use.layout.dim != 0 or use.turned:
        return None
    parts = use.layout.split(use.g if use.g.dtype.itemsize >= 4 else use.g.float(), use.records)
    return Known(parts.flatten(3).sum(-1).sum(1) if parts.dim() > 3 else parts.sum(1))


def _looked_up(use: Use) -> Rule | None:
    if use.kept.scale_grad_by_freq or use.turned or use.layout.dim >= use.kept.indices.dim():
        return None
    ids = use.layout.split(use.kept.indices, use.records).reshape(use.records, -1)
    g = use.layout.split(use.g, use.records).reshape(use.records, ids.shape[1], use.g.shape[-1])
    return looked(ids, use.kept.padding_idx, g, use.shape[0])


def _scaled_layer(use: Use) -> Rule | None:
    node = use.kept
    if use.turned or use.layout.dim >= use.g.dim() - len(node.normalized_shape):
        return None
    return _spread(use, small.layer_norm(use.g, node.input, node.result1, node.result2))


def _scaled_group(use: Use) -> Rule | None:
    if use.turned or use.layout.dim != 0:
        return None
    if "scales" not in use.kept.values:
        use.kept.values["scales"] = small.group_norm(use.kept, use.g)
    scales = use.kept.values["scales"][use.slot - 1]
    return Known(use.layout.split(scales, use.records).sum(1))


def _repeated(use: Use) -> Rule | None:
    if use.turned or use.layout != Layout(0) or len(use.shape) != 1 or use.g.dim() != 1:
        return None
    return Known(small.repeated(use.g, use.shape, use.layout, use.records))


_RULES: dict[tuple[str, int], Callable[[Use], Rule | None]] = {
    ("AddmmBackward0", 0): _addmm_bias,
    ("AddmmBackward0", 2): _addmm,
    ("MmBackward0", 1): _mm,
    ("AddBackward0", 0): _added,
    ("AddBackward0", 1): _added,
    ("SubBackward0", 0): _subtracted,
    ("SubBackward0", 1): _subtracted,
    ("MulBackward0", 0): _multiplied,
    ("MulBackward0", 1): _multiplied,
    ("DivBackward0", 0): _divided,
    ("DivBackward0", 1): _divided,
    ("PreluKernelBackward0", 1): _rectified,
    ("ExpandBackward0", 0): _spread,
    ("RepeatBackward0", 0): _repeated,
    ("ConvolutionBackward0", 1): _convolved,
    ("ConvolutionBackward0", 2): _convolved_bias,
    ("EmbeddingBackward0", 0): _looked_up,
    ("NativeLayerNormBackward0", 1): _scaled_layer,
    ("NativeLayerNormBackward0", 2): _spread,
    ("NativeGroupNormBackward0", 1): _scaled_group,
    ("NativeGroupNormBackward0", 2): _scaled_group,
}
