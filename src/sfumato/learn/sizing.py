"""How many units go through the model at once, and what float errors that may cost: from made-up records alone."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import torch

from .. import checks
from .chance import apart
from .engine import Engine

_MEMORY = 2**30  # bytes that the passes of one micro-batch may keep
_LARGEST = 256
_GOOD = Fraction(1, 64)  # a share for float errors that nobody minds; smaller micro-batches have less of them
_LEAST, _WORST = Fraction(1, 1024), Fraction(1, 8)
_MARGIN = 4  # real records may be worse than made-up ones: those above are clipped a little more, and nothing else


class Sized(NamedTuple):
    """
    micro  units of one micro-batch
    eta    the share of the clip norm that is set aside for float errors
    """

    micro: int
    eta: Fraction


def micro_batch(engine: Engine, expected: int, wanted: int | None = None) -> Sized:
    """As large as memory allows, and small enough that float errors stay small; or as `wanted`."""
    if wanted is not None:
        return Sized(checks.whole(wanted, "micro", most=2**16), share_for(engine, wanted))
    size = max(1, min(_LARGEST, expected, _MEMORY // kept_bytes(engine)))
    size = 1 << (size.bit_length() - 1)  # a power of two: fewer sizes, and rows lie well in memory
    eta = share_for(engine, size)
    while eta > _GOOD and size > 8:
        size //= 2
        eta = share_for(engine, size)
    return Sized(size, eta)


def kept_bytes(engine: Engine) -> int:
    """What the graph keeps for one unit."""
    sizes: dict[int, int] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        sizes[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    taken = 2
    inputs, target = engine.tiled(taken)
    with apart(), torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        engine.losses(inputs, target)
    owned = {each.untyped_storage().data_ptr() for each in engine.model.parameters()}
    return max(1, 2 * sum(size for place, size in sizes.items() if place not in owned) // taken)


def share_for(engine: Engine, records: int) -> Fraction:
    """The share that micro-batches of this size need, by made-up records, with a margin."""
    with apart():
        done = engine.backward(*engine.tiled(records))
    squares = torch.zeros(records, dtype=torch.float64)
    doubts = torch.zeros(records, dtype=torch.float64)
    with torch.no_grad():
        for sizes in done.sizes():
            if sizes is not None:
                squares += sizes.squares
                doubts += sizes.doubts
    ratio = (doubts / squares.clamp_min(1e-300)).sqrt()[squares > 0]
    needed = Fraction(2 * records * _MARGIN * float(ratio.max())) if len(ratio) else _LEAST
    share = _LEAST
    while share < needed and share < _WORST:
        share *= 2
    return share
