"""Where a model uses its trainable parameters: read from the graph that autograd built anyway.

Every use of a parameter is an edge of the graph from a node whose value belongs to records (its shape grows with the
batch) to one whose value does not: the parameter itself, or something made of parameters alone (a transpose, the
embeddings of positions). Nothing can be missed: a parameter that no such edge reaches does not move the losses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ..errors import PlanError

LEAF = "torch::autograd::AccumulateGrad"
_CASTS = ("ToCopyBackward0",)  # a copy of another float type: its gradient is the parameter's own
_TURNS = ("TBackward0",)
_VIEWS = ("ViewBackward0", "UnsqueezeBackward0", "ReshapeAliasBackward0")


@dataclass(frozen=True)
class Operand:
    """One edge at which a parameter, or something made of parameters, meets the records.

    node    the place of the node in `nodes(...)`
    slot    which of its inputs
    path    "itself"; "rows", from `start` on; "viewed", in another shape; "looked": a look-up in it, whose indices
            belong to no record (positions); or "made": whatever else was done to parameters first
    turned  was it transposed, after that?
    shape   of what the path made, before it was transposed
    leaves  the parameters behind it, by their places
    """

    node: int
    slot: int
    path: str
    turned: bool
    start: int
    shape: tuple[int, ...]
    leaves: tuple[int, ...]


def nodes(losses: torch.Tensor) -> list[Any]:
    """The nodes behind the losses, each once, in an order that depends on the model alone."""
    root = losses.grad_fn
    if root is None:
        raise PlanError("the losses depend on no trainable parameter: nothing would be learnt")
    ordered, seen, waiting = [], {root}, [root]
    while waiting:
        node = waiting.pop()
        ordered.append(node)
        for child, _ in node.next_functions:
            if child is not None and child not in seen:
                seen.add(child)
                waiting.append(child)
    return ordered


def names(nodes: Sequence[Any]) -> tuple[str, ...]:
    return tuple([node.name() for node in nodes])


def shapes(node: Any) -> tuple[tuple[int, ...], ...]:
    """The shapes of what the node made."""
    return tuple(tuple(each.shape) for each in node._input_metadata)


def saved(node: Any) -> dict[str, torch.Tensor]:
    """All float tensors that a node kept for its backward pass."""
    tensors: dict[str, torch.Tensor] = {}
    for name in dir(node):
        if name.startswith("_saved_") or name == "saved_tensors":
            value = getattr(node, name)
            several = value if isinstance(value, tuple | list) else (value,)
            for number, tensor in enumerate(several):
                if isinstance(tensor, torch.Tensor) and (tensor.is_floating_point() or tensor.is_complex()):
                    tensors[f"{name} {number}"] = tensor
    return tensors


def ends(nodes: Sequence[Any], places: Iterable[int]) -> frozenset[int]:
    """Those places behind which there is no other one of them."""
    wanted = {nodes[place] for place in places}
    behind: dict[Any, bool] = {}  # is there a wanted node at, or behind, this one?
    for root in wanted:
        waiting = [(root, False)]
        while waiting:
            node, done = waiting.pop()
            if node in behind:
                continue
            children = [child for child, _ in node.next_functions if child is not None]
            if done:
                behind[node] = node in wanted or any(behind[child] for child in children)
            else:
                waiting.append((node, True))
                waiting.extend((child, False) for child in children)
    return frozenset(
        place
        for place in places
        if not any(behind[child] for child, _ in nodes[place].next_functions if child is not None)
    )


def operands(nodes: Sequence[Any], belongs: Sequence[bool], parameters: Sequence[torch.Tensor]) -> Iterator[Operand]:
    """The edges from nodes that belong to records to those that do not."""
    places = {node: place for place, node in enumerate(nodes)}
    numbers = {id(parameter): number for number, parameter in enumerate(parameters)}
    for place, node in enumerate(nodes):
        children = [(slot, child) for slot, (child, _) in enumerate(node.next_functions) if child is not None]
        if not belongs[place]:
            if any(belongs[places[child]] for _, child in children):
                raise PlanError(
                    f"the model mixes records: {spoken(node.name())} makes one value of the whole batch. A record "
                    "must not reach the loss of another one (an average over the batch, a BatchNorm): take it out"
                )
            continue
        for slot, child in children:
            if not belongs[places[child]]:
                yield _operand(place, slot, node.next_functions[slot], numbers)


def _operand(place: int, slot: int, edge: tuple[Any, int], numbers: dict[int, int]) -> Operand:
    node, number = past_casts(edge)
    turned = node.name() in _TURNS
    if turned:
        node, number = past_casts(node.next_functions[0])
    path, start, shape = "itself", 0, shapes(node)[number]
    if node.name() != LEAF:
        path, start = _step(node, number)
        if path != "made":
            node = past_casts(node.next_functions[0])[0]
    if node.name() != LEAF or (turned and path not in ("itself", "rows")):
        child, number = edge
        return Operand(place, slot, "made", False, 0, shapes(child)[number], _leaves(child, numbers))
    return Operand(place, slot, path, turned, start, shape, _leaves(node, numbers))


def past_casts(edge: tuple[Any, int]) -> tuple[Any, int]:
    """Past copies in another float type."""
    while edge[0].name() in _CASTS:
        edge = edge[0].next_functions[0]
    return edge


def _step(node: Any, number: int) -> tuple[str, int]:
    """What one node made of a parameter, and from which row on, if it took rows of it."""
    name = node.name()
    if name in _VIEWS:
        return "viewed", 0
    if name == "EmbeddingBackward0" and not node._saved_scale_grad_by_freq:
        return "looked", 0
    if name == "SplitBackward0" and node._saved_dim == 0:
        return "rows", number * node._saved_split_size
    if name == "SplitWithSizesBackward0" and node._saved_dim == 0:
        return "rows", sum(node._saved_split_sizes[:number])
    if name == "SliceBackward0" and node._saved_dim == 0 and node._saved_step == 1 and 0 <= node._saved_start < 2**62:
        return "rows", node._saved_start
    return "made", 0


def _leaves(node: Any, numbers: dict[int, int]) -> tuple[int, ...]:
    leaves, seen, waiting = set(), {node}, [node]
    while waiting:
        current = waiting.pop()
        if current.name() == LEAF:
            if id(current.variable) not in numbers:
                raise PlanError(
                    getattr(current.variable, "hint", None)
                    or "the losses depend on a tensor that requires gradients and is no parameter of the model: make "
                    "it a parameter, or detach it"
                )
            leaves.add(numbers[id(current.variable)])
        for child, _ in current.next_functions:
            if child is not None and child not in seen:
                seen.add(child)
                waiting.append(child)
    return tuple(sorted(leaves))


def spoken(name: str) -> str:
    """A node's name as people know the operation."""
    return name.rpartition("::")[2].removesuffix("0").removesuffix("1").removesuffix("Backward")
