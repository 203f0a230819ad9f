"""What is learnt about a model before any data is touched: where its parameters are used, and how records lie there.

The model runs on made-up records, in two batch sizes. What grows with the batch belongs to records. How they lie in it
is measured, not guessed: weights on the losses must come back as weights on each record's own part, and on nothing
else. That is also the test that no record reaches another one's loss on the way back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.autograd.graph import GradientEdge

from ..errors import PlanError
from . import chance, graph
from .chance import apart, seeded
from .layout import Layout, candidates
from .owners import Trace

Tensors = tuple[torch.Tensor, ...]
Losses = Callable[[Tensors, torch.Tensor], torch.Tensor]
_CLOSE = 1e-4  # how exactly weights must come back


@dataclass(frozen=True)
class Survey:
    """What one size of the batch looks like.

    names     of all nodes, in order: a graph that differs from it is another model
    uses      the operands of each node that has some
    shapes    of that node's value
    layouts   how records lie in it
    unclear   where that could not be told, as no gradient arrived: none may arrive there later
    last      those of them behind which there is no other one: the backward pass ends there
    saved     how records lie in the tensors that such a node kept, by their names
    whole     is the graph kept whole in the backward pass, for operations that have no rule of their own?
    trace     what was done to numbers of records in the forward pass, and how records lie in what that made
    """

    records: int
    names: tuple[str, ...]
    uses: dict[int, tuple[graph.Operand, ...]]
    shapes: dict[int, tuple[int, ...]]
    layouts: dict[int, Layout]
    unclear: frozenset[int]
    last: frozenset[int]
    saved: dict[int, dict[str, Layout]]
    whole: bool = False
    trace: Trace | None = None

    def scaled(self, records: int) -> Survey:
        """The same for another number of records."""
        shapes = {
            place: tuple(
                size // self.records * records if dim == self.layouts[place].dim else size
                for dim, size in enumerate(shape)
            )
            for place, shape in self.shapes.items()
        }
        return replace(self, records=records, shapes=shapes)


def survey(
    losses: Losses, inputs: Tensors, target: torch.Tensor, parameters: Sequence[torch.Tensor], rows_per_unit: int = 1
) -> Survey:
    """For the batch size of these made-up records, of `rows_per_unit` rows each."""
    records = len(target) // rows_per_unit
    with shaken(parameters):
        larger = graph.nodes(losses(*_grown(inputs, target, rows_per_unit)))
        shapes = [graph.shapes(node) for node in larger]
        names = graph.names(larger)
        saved_shapes = [_shapes_kept(node) for node in larger]
        del larger
        nodes = graph.nodes(losses(inputs, target))
        if graph.names(nodes) != names:
            raise PlanError(
                "the model computes something else for another size of the batch: what a record contributes must not "
                "depend on how many there are"
            )
        belongs = [graph.shapes(node) != other for node, other in zip(nodes, shapes, strict=True)]
        uses: dict[int, tuple[graph.Operand, ...]] = {}
        for operand in graph.operands(nodes, belongs, parameters):
            uses[operand.node] = (*uses.get(operand.node, ()), operand)
        places = sorted(uses)
        sizes = {place: graph.shapes(nodes[place])[0] for place in places}
        inside = {place: _shapes_kept(nodes[place]) for place in places}
        last = graph.ends(nodes, places)
    possible = {place: candidates(sizes[place], shapes[place][0], records, records + 1) for place in places}
    layouts: dict[int, Layout] = {}
    for strength in (0.02, 0.3, 1.0):
        with shaken(parameters, strength):
            layouts = measured(losses(inputs, target), possible, records)
        if all(len(each) == 1 for each in possible.values()):
            break
    lies = {place: dict(_kept(inside[place], saved_shapes[place], records, layouts[place].before)) for place in places}
    unclear = frozenset(place for place in places if len(possible[place]) > 1)
    return Survey(records, names, {place: uses[place] for place in places}, sizes, layouts, unclear, last, lies)


def _shapes_kept(node: Any) -> dict[str, tuple[int, ...]]:
    return {name: tuple(each.shape) for name, each in graph.saved(node).items()}


def _kept(
    inside: dict[str, tuple[int, ...]], larger: dict[str, tuple[int, ...]], records: int, before: int
) -> Iterator[tuple[str, Layout]]:
    """What a node kept lies as its value does, if it can."""
    for name, shape in inside.items():
        possible = candidates(shape, larger.get(name, ()), records, records + 1)
        alike = [each for each in possible if each.before == before]
        if possible:
            yield name, (alike or possible)[0]


def _grown(inputs: Tensors, target: torch.Tensor, more: int) -> tuple[Tensors, torch.Tensor]:
    return tuple(torch.cat([each, each[:more]]) for each in inputs), torch.cat([target, target[:more]])


@contextmanager
def shaken(parameters: Sequence[torch.Tensor], strength: float = 0.02) -> Iterator[None]:
    """Parameters a little away from where they are: one that begins at 0 (an adapter) hides what lies behind it."""
    before = [each.detach().clone() for each in parameters]
    generator = seeded(7)
    try:
        with torch.no_grad():
            for parameter in parameters:
                parameter.add_(chance.shaken(parameter, generator) * strength)
        with apart():  # dropout draws, and nobody's stream shall move
            yield
    finally:
        with torch.no_grad():
            for parameter, old in zip(parameters, before, strict=True):
                parameter.copy_(old)


def measured(losses: torch.Tensor, possible: dict[int, list[Layout]], records: int) -> dict[int, Layout]:
    """Which of the possible layouts are true, at each place; those that are not are taken out of `possible`."""
    nodes = graph.nodes(losses)
    edges = [GradientEdge(nodes[place], 0) for place in possible]
    others = [GradientEdge(nodes[place], k) for place in possible for k in range(1, len(graph.shapes(nodes[place])))]
    got = torch.autograd.grad(losses, [*edges, *others], torch.ones_like(losses), retain_graph=True, allow_unused=True)
    plain = got[: len(edges)]
    for edge, other in zip(others, got[len(edges) :], strict=True):
        if other is not None:
            raise PlanError(
                f"{graph.spoken(edge.node.name())} uses parameters and makes several values that the losses depend on: "
                "no rule knows such a layer. Call it so that one of its values is used"
            )
    for weights in _patterns(records, losses.dtype):
        row_weights = weights.repeat_interleave(len(losses) // records)
        weighted = torch.autograd.grad(losses, edges, row_weights, retain_graph=True, allow_unused=True)
        for (place, layouts), one, two in zip(possible.items(), plain, weighted, strict=True):
            if one is not None and two is not None:
                layouts[:] = [each for each in layouts if _follows(each, one, two, weights)]
            if not layouts:
                node = nodes[place]
                raise PlanError(
                    f"the model mixes records at {graph.spoken(node.name())} (value of shape {graph.shapes(node)[0]} "
                    f"for {records} records): a record's loss must depend on that record alone, and records must lie "
                    "along one dimension"
                )
    return {place: layouts[0] for place, layouts in possible.items()}


def _patterns(records: int, kind: torch.dtype) -> Iterator[torch.Tensor]:
    """Weights for the records, which differ for any two of them in one of the patterns; powers of 2, which pass through
    every float type unrounded."""
    index, digits = torch.arange(records), 1
    while 8**digits < records:
        digits += 1
    for digit in range(digits):
        yield torch.exp2((index // 8**digit % 8).to(kind))


def _follows(layout: Layout, one: torch.Tensor, two: torch.Tensor, weights: torch.Tensor) -> bool:
    """Do the records' weights come back as they were given, each on its own part?"""
    real = [torch.view_as_real(each) if each.is_complex() else each for each in (one, two)]
    before, after = (layout.split(each.float(), len(weights)) for each in real)
    expected = before * weights.float().reshape(-1, *[1] * (before.dim() - 1))
    if not expected.numel():
        return True
    return bool(((after - expected).abs() <= _CLOSE * expected.abs() + _CLOSE**2 * expected.abs().max()).all())
