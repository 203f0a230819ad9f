"""Whose is which part of memory. A tensor is a window on a block of memory (torch calls it a storage), and windows
overlap: views, slices, writes in place. So ownership is a property of the block, and every view of it has it at once.

Byte o of an owned block belongs to record (o // stride) % records. That describes every dense tensor in which records
lie along one dimension, in any order of the dimensions; how they lie in a view of it follows from the view's strides
(`lies`). A block without a stride is nobody's: what is in it depends on no record. In a mixed one, nobody can tell.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from ...errors import PlanError
from ..layout import Layout


@dataclass(frozen=True)
class Mixed:
    """Of several records, or of one in another's place; and which operation made it so."""

    cause: str


Owner = Layout | Mixed | None
"""How records lie in a tensor; None where it is nobody's."""
EARLIER = Mixed("a tensor that was kept from an earlier pass")
_PIECES = Mixed("a slice along the records")


class _Block:
    """One block of memory that was made, or written to, in this pass."""

    __slots__ = ("_alive", "base", "owner")

    def __init__(self, storage: torch.UntypedStorage, owner: int | Mixed | None, base: int = 0) -> None:
        self._alive = StorageWeakRef(storage)  # type: ignore[no-untyped-call]  # the address is ours while this is here
        self.owner = owner
        self.base = base  # where the first record begins

    @property
    def is_alive(self) -> bool:
        return not self._alive.expired()  # type: ignore[no-untyped-call]


class Memory:
    """The blocks that a pass through the model has made. All others are older than the pass: weights, buffers."""

    def __init__(self) -> None:
        self.records = 0
        self._blocks: dict[int, _Block] = {}

    def begin(self, records: int, owned: Iterable[torch.Tensor]) -> None:
        """A new pass, over these tensors of so many records, one after the other. What is left of an earlier pass
        belongs to no record of this one."""
        self.records = records
        left = {place: block for place, block in self._blocks.items() if block.owner is not None and block.is_alive}
        for block in left.values():
            block.owner = EARLIER
        self._blocks = left
        begun = set[int]()
        for tensor in owned:
            place = address(tensor)
            if place not in begun:
                base = int(tensor.storage_offset()) * tensor.element_size()
                self._blocks[place] = block = _Block(tensor.untyped_storage(), None, base)
                block.owner = self._stride(block, tensor, Layout(0))
            elif self.owner(tensor) != Layout(0):
                self._blocks[place].owner = _PIECES
            begun.add(place)

    def owner(self, tensor: torch.Tensor) -> Owner:
        """How records lie in a tensor."""
        return self.owner_at(address(tensor), tensor)

    def owner_at(self, place: int, tensor: torch.Tensor) -> Owner:
        """The same, where the address is known."""
        block = self._blocks.get(place)
        if block is None or block.owner is None:
            return None
        if isinstance(block.owner, Mixed):
            return block.owner
        return self._lies(block, block.owner, tensor)

    def assign(self, tensor: torch.Tensor, owner: Owner) -> None:
        """A tensor in a block of its own, new in this pass."""
        self._blocks[address(tensor)] = block = _Block(tensor.untyped_storage(), None)
        if owner is not None:
            block.owner = self._stride(block, tensor, owner)

    def written(self, tensor: torch.Tensor, owner: Owner) -> bool:
        """Something was written where this tensor is. False if the block is older than this pass, and what was written
        is of records: it would stay there."""
        if owner is None:
            return True
        block = self._blocks.get(address(tensor))
        if block is None:
            self._blocks[address(tensor)] = _Block(tensor.untyped_storage(), EARLIER)
            return False
        if block.owner is None:
            block.owner = self._stride(block, tensor, owner)
        if self.owner(tensor) != owner:
            block.owner = owner if isinstance(owner, Mixed) else _PIECES
        return True

    def _lies(self, block: _Block, stride: int, tensor: torch.Tensor) -> Owner:
        size = tensor.element_size()
        offset = int(tensor.storage_offset()) * size - block.base
        return lies(stride, self.records, offset, tuple(tensor.shape), tensor.stride(), size)

    def _stride(self, block: _Block, tensor: torch.Tensor, owner: Layout | Mixed) -> int | Mixed:
        """The stride of a block in which records lie like this; mixed, where no stride describes them."""
        if isinstance(owner, Mixed):
            return owner
        size = tensor.element_size()
        if not tensor.numel():
            return size  # nothing is in it
        places, long = owner.before * self.records, tensor.shape[owner.dim]
        if long % places:
            return _PIECES
        stride = long // places * tensor.stride(owner.dim) * size
        return stride if stride and self._lies(block, stride, tensor) == owner else _PIECES


def address(tensor: torch.Tensor) -> int:
    """Of the block that the tensor is a view of."""
    try:
        place: int = tensor.untyped_storage()._cdata
    except (NotImplementedError, RuntimeError):
        raise PlanError(
            f"a tensor of layout {tensor.layout} cannot be followed to its records: use ordinary (dense) tensors"
        ) from None
    return place


@lru_cache(maxsize=2**14)
def lies(stride: int, records: int, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], size: int) -> Owner:
    """How records lie in a view of a block, offset and strides of the block in bytes.

    All steps of the view but those along one dimension must stay with the record that they begin at: steps of whole
    rounds of the records (`outer`), and steps that together reach no further than one step of that dimension (`inner`).
    The steps of that dimension go through the records in their order, beginning with the first.
    """
    round_ = stride * records
    if 0 in shape:
        return None
    steps = [
        (step * size, long, dim)
        for dim, (long, step) in enumerate(zip(shape, strides, strict=True))
        if long > 1 and step * size % round_
    ]
    across = [each for each in steps if each[0] * each[1] >= round_]
    if len(across) != 1:
        return _PIECES
    step, long, dim = across[0]
    if step > stride or stride % step or long % (records * (stride // step)):
        return _PIECES
    reach = sum(other * (many - 1) for other, many, _ in steps if (other, many, _) != across[0]) + size
    if offset % round_ + reach > step:
        return _PIECES
    return Layout(dim, long // (records * (stride // step)))
