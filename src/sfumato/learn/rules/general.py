"""For operations without a rule of their own: each record's part of the gradient goes through the node by itself."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch.autograd.graph import GradientEdge

from .. import graph
from ..layout import Layout


class Kept(NamedTuple):
    """What a node kept for its backward pass; taken before that pass drops it. `values` may be added to."""

    name: str
    values: dict[str, Any]

    def __getattr__(self, name: str) -> Any:
        return self.values[name]


class Use(NamedTuple):
    """One operand at one node, after the backward pass: its gradient is asked for, record by record.

    shape  of the operand, before it was turned (transposed)
    g      the gradient at the node's value
    saved  how records lie in the tensors that the node kept, by their names in `graph.saved`
    """

    node: Any
    kept: Kept
    slot: int
    turned: bool
    shape: tuple[int, ...]
    g: torch.Tensor
    layout: Layout
    records: int
    saved: dict[str, Layout]


def anything(use: Use) -> torch.Tensor:
    """(records, *shape): by sending each record's part of the gradient through the node alone. Needs the graph whole.

    The copy for one record has 0 in the other records' rows. But the node multiplies them by what it kept of those, and
    0 times infinity would spoil everybody's gradient. So rows with such numbers are set to 0 for the time being; the
    gradients of the records they belong to, and of no other, are NaN.
    """
    owners = use.layout.owners(use.g.shape[use.layout.dim], use.records)
    own = owners == torch.arange(use.records).unsqueeze(1)
    own = own.reshape(use.records, *(-1 if dim == use.layout.dim else 1 for dim in range(use.g.dim())))
    alone = torch.where(own, use.g, 0.0)
    child, number = use.node.next_functions[use.slot]
    with _finite(use) as bad:
        gradients = sent_back(GradientEdge(use.node, 0), GradientEdge(child, number), alone)
    gradients = gradients.transpose(1, 2) if use.turned else gradients
    return (
        gradients.masked_fill_(bad.reshape(-1, *[1] * (gradients.dim() - 1)), torch.nan)
        if bool(bad.any())
        else gradients
    )


def sent_back(start: GradientEdge, goal: GradientEdge | torch.Tensor, gradients: torch.Tensor) -> torch.Tensor:
    """Gradients of one value, one for each record, sent back to another value that it was made from."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some operations have no batched form: slow, and right
        wanted: Any = [goal]
        (got,) = torch.autograd.grad([start], wanted, [gradients], retain_graph=True, is_grads_batched=True)
    return got


@contextmanager
def _finite(use: Use) -> Iterator[torch.Tensor]:
    """Which records have something that is not finite in what the node kept. As long as this is open, it is 0 there."""
    bad = torch.zeros(use.records, dtype=torch.bool)
    saved = [(each, use.saved[name]) for name, each in graph.saved(use.node).items() if name in use.saved]
    for tensor, layout in saved:
        bad |= ~layout.split(tensor, use.records).flatten(1).isfinite().all(1)
    if not bool(bad.any()):
        yield bad
        return
    before = []
    for tensor, layout in saved:
        rows = tensor.data  # no new version of the tensor: the graph takes it as it is
        for dim, step in enumerate(rows.stride()):
            rows = rows.narrow(dim, 0, 1) if step == 0 else rows  # one number that is seen more than once
        if rows.shape[layout.dim] == tensor.shape[layout.dim]:
            index = bad[layout.owners(tensor.shape[layout.dim], use.records)].nonzero().reshape(-1)
            before.append((rows, layout.dim, index, rows.index_select(layout.dim, index)))
            rows.index_fill_(layout.dim, index, 0.0)
    try:
        yield bad
    finally:
        for rows, dim, index, old in reversed(before):  # two of them may be the same numbers
            rows.index_copy_(dim, index, old)
