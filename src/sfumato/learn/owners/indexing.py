"""Look-ups: which record a number came from is decided by an index, so the index is looked at.

An index that is nobody's says the same whatever the records hold; where it goes along the records it must lead every
record to its own place. An index that is made from records may lead anywhere within its own record, and nowhere else.
"""

from __future__ import annotations

import torch

from ..layout import Layout
from .call import Call
from .memory import Mixed, Owner


def _kept(call: Call, owner: Layout, size: int, index: torch.Tensor) -> int | None:
    """How often the records come round along an index that is nobody's, if each is led to places of its own in the
    usual order; None if not."""
    records = call.memory.records
    if index.dim() != 1 or index.dtype == torch.bool or not len(index) or len(index) % records:
        return None
    owners = owner.owners(size, records)[index]
    for before in range(1, len(index) // records + 1):
        if len(index) % (before * records) == 0 and torch.equal(owners, Layout(0, before).owners(len(index), records)):
            return before
    return None


def selected(call: Call) -> Owner:
    """index_select, index_add and the like: one index for a whole dimension."""
    source, dim = call["self"], call["dim"] % max(call["self"].dim(), 1)
    if call.owners["index"] is not None:
        return call.mixing
    owner = call.agreed(*(mine for _, mine in call.owned))
    if not isinstance(owner, Layout):
        return owner
    if owner.dim != dim:
        return call.carried(call.owned[0][0], owner, call.outputs[0], owner.dim)
    before = _kept(call, owner, source.shape[dim], call["index"]) if call.name == "index_select" else None
    return call.mixing if before is None else Layout(dim, before)


def _indices(call: Call) -> list[torch.Tensor | None]:
    """The indices of x[i, j, ...]; a mask of one dimension that is nobody's, as the places that it marks."""
    marks = (torch.bool, torch.uint8)
    return [
        index.nonzero().flatten() if index is not None and owner is None and index.dtype in marks and index.dim() == 1
        else index
        for index, owner in zip(call["indices"], call.owners["indices"], strict=True)
    ]  # fmt: skip


def _shape(indices: list[torch.Tensor | None]) -> tuple[int, ...]:
    """Of the indices, broadcast together."""
    there = [index for index in indices if index is not None]
    return tuple(torch.broadcast_tensors(*there)[0].shape)  # type: ignore[no-untyped-call]


def _led(call: Call, owner: Owner) -> Owner:
    """How records lie in x[i, j, ...], if they lie like this in x; Mixed where they could move."""
    source, indices = call["self"], _indices(call)
    places = [dim for dim, index in enumerate(indices) if index is not None]
    if any(index is not None and index.dtype in (torch.bool, torch.uint8) for index in indices):
        return call.mixing
    shape = _shape(indices)
    adjacent = places == list(range(places[0], places[-1] + 1))
    start = places[0] if adjacent else 0  # where the dimensions of the indices come
    mine: list[Owner] = []
    for index, one in zip(indices, call.owners["indices"], strict=True):
        if index is not None and isinstance(one, Layout):
            mine.append(Layout(one.dim + len(shape) - index.dim(), one.before))
    led = call.agreed(*mine)
    if isinstance(led, Mixed):
        return led
    if not isinstance(owner, Layout):
        return None if led is None else Layout(start + led.dim, led.before)
    if owner.dim not in places:
        if led is not None:
            return call.mixing  # everybody's index into everybody
        gone = sum(dim < owner.dim for dim in places)
        passed = len(shape) if not adjacent or owner.dim > start else 0
        return Layout(owner.dim - gone + passed, owner.before)
    if call.owners["indices"][owner.dim] is not None:
        return call.mixing  # records say where records come from
    index = indices[owner.dim]
    assert index is not None
    dims = [dim for dim, size in enumerate(index.shape) if size > 1]
    before = _kept(call, owner, source.shape[owner.dim], index.flatten()) if len(dims) == 1 else None
    if before is None:
        return call.mixing
    own = Layout(dims[0] + len(shape) - index.dim(), before)
    return Layout(start + own.dim, before) if led in (None, own) else call.mixing


def indexed(call: Call) -> Owner:
    """x[i, j, ...]"""
    return _led(call, call.owners["self"])


def put(call: Call) -> Owner:
    """x[i, j, ...] = values: what is written must lie as what would be read there. A mask may choose, within each
    record, where one value goes that is nobody's."""
    indices, values, target = call["indices"], call["values"], call["self"]
    owner, value_owner, marks = call.owners["self"], call.owners["values"], call.owners["indices"]
    if indices[0] is not None and indices[0].dtype == torch.bool and len(indices) == 1 and values.numel() == 1:
        return call.agreed(owner, marks[0], None if value_owner is None else call.mixing)
    if value_owner is None and all(mark is None for mark in marks):
        return _led(call, owner) and owner
    sizes = enumerate(target.shape)
    possible = [owner] if owner is not None else [Layout(dim) for dim, size in sizes if size % call.memory.records == 0]
    for layout in possible:
        read = _led(call, layout)
        if not isinstance(read, Layout):
            continue
        there = _indices(call)
        rank = len(_shape(there)) + target.dim() - sum(index is not None for index in there)
        if value_owner is None or Layout(value_owner.dim + rank - values.dim(), value_owner.before) == read:
            return layout
    return call.mixing


def embedded(call: Call) -> Owner:
    """Rows of a table that is nobody's."""
    owner = call.owners["indices"]
    if owner is None or call.owners["weight"] is not None:
        return call.mixing
    return call.carried(call["indices"], owner, call.outputs[0], owner.dim)


def bags(call: Call) -> tuple[Owner, ...]:
    """Sums of rows of a table: every record has as many bags as any other, and they end where its own ids end."""
    owner, ids, offsets = call.owners["indices"], call["indices"], call["offsets"]
    others = tuple(call.mixing for _ in call.outputs[1:])
    records = call.memory.records
    count = len(call.outputs[0])
    weights = call.owners.get("per_sample_weights")
    if owner != Layout(0) or not call.only("indices", "per_sample_weights") or count % records:
        return (call.mixing, *others)
    own = len(ids) // records
    starts = torch.arange(records)[:, None] * own
    begins = offsets[:count].reshape(records, -1) - starts
    inside = bool((begins[:, 0] == 0).all() and (begins >= 0).all() and (begins <= own).all())
    return (Layout(0) if inside and weights in (None, owner) else call.mixing, *others)


def recurrent(call: Call) -> tuple[Owner, ...]:
    """A recurrent layer, time first: records along dimension 1 of what it is given and makes, 0 of its states."""
    main, states = call.owners["input"], [call.owners["hx_"], call.owners["cx_"]]
    before = main.before if isinstance(main, Layout) else 1
    apart = call.only("input", "hx_", "cx_") and main in (None, Layout(1, before))
    if not apart or any(state not in (None, Layout(0, before)) for state in states):
        return tuple(call.mixing for _ in call.outputs)
    return tuple(Layout(1 if output.dim() == 3 else 0, before) for output in call.outputs)
