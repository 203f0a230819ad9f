"""Convolutions of one, two and three dimensions, with groups, strides and dilation; transposed ones, too.

A convolution is a matrix product with the patches of its input: a record's gradient is the sum over the places of the
output of g_l a_l^T, a_l being a patch. (Other paddings than zeros are done before the convolution: the input that it
kept is the padded one.) In a transposed convolution input and output change their parts.

  held    one ordinary backward pass of a convolution that has the records as groups: each has its gradient to itself.
  ghost   patches are never formed: a_s . a_t is the sum over the kernel's offsets o of x_{s+o} . x_{t+o}, so the
          products of all pairs of pixels are enough. The same terms as in the product of patches, in another order: the
          bounds of affine.py hold. |a|^2 and |g|^2 are the diagonals.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import torch

from ..arithmetic import FLOOR, TINY, depth, gamma, run
from .affine import HELD, TRAFFIC
from .base import Known, Rule, Sizes, blanked

AT_ONCE = 4 * 2**20  # bytes of input and output for which gradients are made at a time
PAIRS = 64 * 2**20  # bytes that the products of all pairs of places may take at a time


class Form(NamedTuple):
    """How a convolution runs over its input. With several frames to a record, these are one more dimension."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int


def convolution(node: Any, x: torch.Tensor, g: torch.Tensor, weight: tuple[int, ...], records: int) -> Rule:
    """The rule for the weight of a convolution, from what its node kept; x and g are (records * frames, ...)."""
    if x.dtype.itemsize < 4:
        x, g = x.float(), g.float()
    one = Convolution(node, x, g, records, weight)
    return Known(one.by_record()) if one.held_is_cheaper() else one


class Convolution(Rule):
    """The ghost form: the gradient of no record is ever held."""

    def __init__(self, node: Any, x: torch.Tensor, g: torch.Tensor, records: int, weight: tuple[int, ...]) -> None:
        self._node, self._records, self._weight = node, records, weight
        self._x, self._g = x, g
        self._frames = len(g) // records
        dims = len(weight) - 2
        stride, padding, dilation = (_for_all(each, dims) for each in (node.stride, node.padding, node.dilation))
        self._form = Form((1, *weight[2:]), (1, *stride), (0, *padding), (1, *dilation), node.groups)

    @property
    def _slid(self) -> torch.Tensor:
        return self._g if self._node.transposed else self._x

    @property
    def _still(self) -> torch.Tensor:
        return self._x if self._node.transposed else self._g

    def held_is_cheaper(self) -> bool:
        """By shapes alone."""
        pixels, places = (self._frames * math.prod(each.shape[2:]) for each in (self._slid, self._still))
        entries = math.prod(self._weight)
        shifts = 2 * math.prod(self._form.kernel) * self._form.groups
        ghost = 2 * pixels**2 * self._slid.shape[1] + 2 * places**2 * self._still.shape[1]
        ghost += TRAFFIC // 4 * places**2 * shifts
        if self._records * entries * self._x.dtype.itemsize > 4 * HELD and 4 * (pixels**2 + places**2) < PAIRS:
            return False
        return places > 1 and ghost > TRAFFIC * entries

    def sizes(self) -> Sizes:
        kind, groups = self._x.dtype, self._form.groups
        a, g = self._channels(self._slid), self._channels(self._still)
        out = (self._frames, *self._still.shape[2:])
        places, wide, high = math.prod(out), math.prod(self._weight[1:]), g.shape[1]
        several = max(1, PAIRS // (4 * (a.shape[2] ** 2 + 2 * places**2)))
        parts = [
            _measured(
                a[start : start + several], g[start : start + several], self._sizes_of(self._slid), out, self._form
            )
            for start in range(0, len(a), several)
        ]
        ghost, inner, outer = (torch.cat(each) for each in zip(*parts, strict=True))
        up = 1 + gamma(2 * (wide + high + 2 * places) + 8, kind)
        most = inner.mul_(up).add_(places * wide * FLOOR) * outer.mul_(up).add_(places * high * FLOOR)
        squares = (
            ghost.clamp_min_(0).add_(places * places * TINY).add_(most, alpha=gamma(wide + high + 2 * places + 8, kind))
        )
        rows = (self._records, groups)
        rounds = gamma(depth(self._records * places, self._length() * places), kind)
        return Sizes(squares.reshape(rows).sum(1), most.reshape(rows).sum(1) * rounds**2)

    def _length(self) -> int:
        """Records that one product adds up."""
        places = self._frames * math.prod(self._still.shape[2:])
        return max(1, run(self._records, places) // places)

    def _sizes_of(self, tensor: torch.Tensor) -> tuple[int, ...]:
        return (self._frames, *tensor.shape[2:])

    def _channels(self, tensor: torch.Tensor) -> torch.Tensor:
        """(records * groups, channels of one group, places)"""
        parts = tensor.reshape(self._records, self._frames, self._form.groups, -1, math.prod(tensor.shape[2:]))
        if self._frames > 1:
            parts = parts.movedim(1, 3)
        return parts.reshape(self._records * self._form.groups, tensor.shape[1] // self._form.groups, -1)

    def total(self, weights: torch.Tensor) -> torch.Tensor:
        factors = weights.to(self._g.dtype)
        factors = factors if self._frames == 1 else factors.repeat_interleave(self._frames)
        scaled = self._g * factors.reshape(-1, *[1] * (self._g.dim() - 1))
        step = self._length() * self._frames
        out = self._back(scaled[:step], self._x[:step], self._weight, self._form.groups)
        for start in range(step, len(scaled), step):
            part = slice(start, start + step)
            out += self._back(scaled[part], self._x[part], self._weight, self._form.groups)
        return out

    def _back(self, g: torch.Tensor, x: torch.Tensor, weight: tuple[int, ...], groups: int) -> torch.Tensor:
        node, shape = self._node, x.new_empty(weight)  # of which only the shape is read
        got = torch.ops.aten.convolution_backward(
            g, x, shape, None, node.stride, node.padding, node.dilation, node.transposed, node.output_padding, groups,
            (False, True, False),
        )  # fmt: skip
        return got[1]

    def by_record(self) -> torch.Tensor:
        """A few records at a time, so that what a convolution makes on the way stays in the cache."""
        size = self._x.dtype.itemsize * (math.prod(self._weight) + (self._x.numel() + self._g.numel()) // self._records)
        several = min(self._records, max(8, AT_ONCE // size))
        x, g = (each.reshape(self._records, self._frames, *each.shape[1:]) for each in (self._x, self._g))
        out = x.new_empty(self._records, *self._weight)
        for start in range(0, self._records, several):
            count = min(several, self._records - start)
            inputs, grown = (_aside(each[start : start + count]) for each in (x, g))
            weight = (count * self._weight[0], *self._weight[1:])
            gradients = self._back(grown, inputs, weight, count * self._form.groups)
            if count == self._records:
                return gradients.reshape(count, *self._weight)
            out[start : start + count] = gradients.reshape(count, *self._weight)
        return out

    def drop(self, which: torch.Tensor) -> None:
        frames = which.repeat_interleave(self._frames)
        self._x, self._g = blanked(self._x, frames), blanked(self._g, frames)


def _aside(parts: torch.Tensor) -> torch.Tensor:
    """(frames, records * channels, ...) from (records, frames, channels, ...): the records side by side."""
    return parts.transpose(0, 1).flatten(1, 2)


def _for_all(sizes: Any, dims: int) -> tuple[int, ...]:
    """One number for each dimension, where one stands for all."""
    return tuple(sizes) * dims if len(sizes) == 1 else tuple(sizes)


def _measured(
    a: torch.Tensor, g: torch.Tensor, pixels: tuple[int, ...], out: tuple[int, ...], form: Form
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """sum_{s,t} (a_s . a_t)(g_s . g_t), and the squared lengths of patches and of g."""
    pairs = _patch_pairs(torch.bmm(a.transpose(1, 2), a), pixels, out, form)
    other = torch.bmm(g.transpose(1, 2), g)
    inner, outer = (each.diagonal(dim1=1, dim2=2).sum(1).double() for each in (pairs, other))
    return pairs.mul_(other).sum(2).sum(1).double(), inner, outer


def _patch_pairs(pairs: torch.Tensor, pixels: tuple[int, ...], out: tuple[int, ...], form: Form) -> torch.Tensor:
    """(N, places, places): products of patches, from those of pixels (N, pixels, pixels)."""
    if math.prod(form.kernel) == 1 and not any(form.padding) and set(form.stride) == {1}:
        return pairs
    pairs = pairs.reshape(-1, *pixels, *pixels)
    sums = pairs.new_zeros(len(pairs), *out, *out)
    for offsets in itertools.product(*(range(size) for size in form.kernel)):
        to, taken = [], []
        for dim, offset in enumerate(offsets):
            first = offset * form.dilation[dim] - form.padding[dim]  # the pixel that place 0 sees
            low = max(0, -(first // form.stride[dim]))  # the first place that sees a pixel at all, not padding
            high = min(out[dim], (pixels[dim] - 1 - first) // form.stride[dim] + 1)
            if high <= low:
                break
            to.append(slice(low, high))
            start = first + low * form.stride[dim]
            taken.append(slice(start, start + (high - low - 1) * form.stride[dim] + 1, form.stride[dim]))
        else:
            sums[(slice(None), *to, *to)] += pairs[(slice(None), *taken, *taken)]
    return sums.reshape(len(pairs), math.prod(out), -1)
