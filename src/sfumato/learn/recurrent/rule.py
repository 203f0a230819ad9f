"""From a recurrent node to the engine's rules."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from ...errors import PlanError
from ..layout import Layout
from ..rules.affine import affine
from ..rules.base import Known, Rule
from .layer import Use, Uses


def is_call(node: Any) -> bool:
    """Is this a node of a recurrent layer of ours?"""
    return isinstance(getattr(node, "uses", None), Uses)


def rule(node: Any, slot: int, layout: Layout | None = None, records: int | None = None) -> Rule:
    """The gradients of all records at one of the node's parameters.

    Args:
        node: a node for which `is_call` holds, after the backward pass.
        slot: the parameter's place in the node's next_functions.
        layout: how records lie in the node's value: along dimension 1, one or more sequences each.
        records: how many there are; as many as sequences, if not given.
    """
    if layout is not None and layout.dim != node.batch_dim:
        raise PlanError(
            "a recurrent layer takes records for the steps of one sequence: set batch_first=True on it, or transpose "
            "its input"
        )
    uses: list[Use] = [use for use in node.uses() if use.slot == slot]
    if not uses:
        raise ValueError("slot: no parameter of this recurrent layer stands there")
    _, _, a, g = uses[0]
    if a is None:
        return Known(_of_records(g.sum(0, keepdim=True), node, layout, records).sum(1))
    return affine(_of_records(a, node, layout, records), _of_records(g, node, layout, records))


def _of_records(rows: Tensor, node: Any, layout: Layout | None, records: int | None) -> Tensor:
    """From (steps, sequences, features) to (records, places, features)."""
    if layout is None or records is None or records == node.sequences:
        return rows.transpose(0, 1)
    return layout.split(rows, records).flatten(1, 2)
