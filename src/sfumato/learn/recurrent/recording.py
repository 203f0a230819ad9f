"""`recorded(model)`: while it is open, the model's recurrent modules run on nodes that keep what the engine needs.

Modules stay what and where they are: only the instance's `forward` is covered, and uncovered at the end. Parameters,
their names, the modules' types and hooks are untouched.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from ...errors import PlanError
from ..owners import as_one
from .layer import RecurrentLayer, Use, parts

_MODULES = (nn.LSTM, nn.GRU, nn.RNN)


@dataclass(frozen=True)
class Call:
    """One run of one layer in one direction: the module's name, the node, and the handle that makes the node run."""

    name: str
    node: Any
    handle: Tensor

    def uses(self) -> list[Use]:
        return list(self.node.uses())


@dataclass
class Recording:
    """The calls made so far, in order. They hold the graph, so let go of them when they are used up."""

    calls: list[Call] = field(default_factory=list)

    @property
    def handles(self) -> list[Tensor]:
        """What to ask autograd for, so that every layer's backward pass runs."""
        return [call.handle for call in self.calls]

    def taken(self) -> Recording:
        """The calls so far, which are forgotten here: for a loop that goes on."""
        calls, self.calls = self.calls, []
        return Recording(calls)

    def run(self, name: str, x: Tensor, *inputs: Any) -> Tensor:
        handle: Any = torch.zeros(x.shape[1], 0, dtype=x.dtype, device=x.device, requires_grad=True)
        # For whoever finds that it does not grow with the batch.
        handle.hint = (
            f"{name} takes records for the steps of one sequence: set batch_first=True, or transpose its input"
        )
        h0, c0, *weights = inputs
        output: Tensor = as_one(
            lambda: RecurrentLayer.apply(handle, x, *inputs),  # type: ignore[no-untyped-call]
            time_first=x,
            others=(h0, c0),
            shared=[each for each in weights if isinstance(each, Tensor)],
        )
        self.calls.append(Call(name, output.grad_fn, handle))
        return output


@contextmanager
def recorded(model: nn.Module) -> Iterator[Recording]:
    """Record the recurrent modules of the model that have something to learn.

    A subclass with a `forward` of its own is left alone, as is a module whose instance has one. May be entered again
    while it is open, and left in any order: calls go to the recording that was opened last.
    """
    recording = Recording()
    covered: list[_Forward] = []
    try:
        for name, module in model.named_modules():
            if _recordable(module):
                covered.append(_Forward.of(name, module))
                covered[-1].recordings.append(recording)
        yield recording
    finally:
        for forward in covered:
            forward.leave(recording)


def _recordable(module: nn.Module) -> bool:
    if not any(isinstance(module, kind) and type(module).forward is kind.forward for kind in _MODULES):
        return False
    if not isinstance(module.__dict__.get("forward"), _Forward | None):
        return False
    return any(each.requires_grad for each in module.parameters())


class _Forward:
    """Stands in for a module's own forward while recordings are open."""

    def __init__(self, name: str, module: Any) -> None:
        self.name, self.module = name, module
        self.recordings: list[Recording] = []

    @classmethod
    def of(cls, name: str, module: Any) -> _Forward:
        forward = module.__dict__.get("forward")
        if not isinstance(forward, cls):
            forward = module.__dict__["forward"] = cls(name, module)
        return forward

    def leave(self, recording: Recording) -> None:
        self.recordings = [each for each in self.recordings if each is not recording]
        if not self.recordings and self.module.__dict__.get("forward") is self:
            del self.module.__dict__["forward"]

    def __call__(self, input: Any, hx: Any = None) -> Any:
        if not torch.is_grad_enabled():
            return type(self.module).forward(self.module, input, hx)
        return _through(self.module, self.name, self.recordings[-1], input, hx)


def _through(module: Any, name: str, recording: Recording, input: Any, hx: Any) -> Any:
    """The module's forward, layer by layer and direction by direction."""
    _refuse_shapes(module, _called(module, name), input)
    cell, directions = module.mode == "LSTM", 2 if module.bidirectional else 1
    x = input.transpose(0, 1) if module.batch_first else input
    initial = _initial(module, x) if hx is None else hx
    module.check_forward_args(input, initial, None)
    h0, c0 = (initial[0].unbind(), initial[1].unbind()) if cell else (initial.unbind(), None)
    hidden, cells = [], []
    for layer in range(module.num_layers):
        outputs = []
        for direction in range(directions):
            place = layer * directions + direction
            weights = _weights(module, place)
            c = c0[place] if c0 is not None else None
            produced = recording.run(_called(module, name), x, h0[place], c, *weights, module.mode, direction == 1)
            output, h_n, c_n = parts(produced, len(x), module.hidden_size, module.mode, direction == 1)
            outputs.append(output)
            hidden.append(h_n)
            cells.append(c_n)
        x = outputs[0] if directions == 1 else torch.cat(outputs, -1)
        if module.dropout and module.training and layer < module.num_layers - 1:
            x = nn.functional.dropout(x, module.dropout)
    output, h_n = x.transpose(0, 1) if module.batch_first else x, torch.stack(hidden)
    return output, (h_n, torch.stack(cells)) if cell else h_n  # type: ignore[arg-type]


def _weights(module: Any, place: int) -> list[Tensor | None]:
    """Read by name, at every call: weights may be computed (parametrised), or another model's (functional_call)."""
    names = module._all_weights[place]
    weights: list[Tensor | None] = [getattr(module, each) for each in names]
    biases = weights[2:4] if module.bias else [None, None]
    return [*weights[:2], *biases, weights[-1] if getattr(module, "proj_size", 0) else None]


def _initial(module: Any, x: Tensor) -> Any:
    layers = module.num_layers * (2 if module.bidirectional else 1)
    h = x.new_zeros(layers, x.shape[1], getattr(module, "proj_size", 0) or module.hidden_size)
    return (h, x.new_zeros(layers, x.shape[1], module.hidden_size)) if module.mode == "LSTM" else h


def _called(module: Any, name: str) -> str:
    return f"{type(module).__name__} {name!r}" if name else type(module).__name__


def _refuse_shapes(module: Any, called: str, input: Any) -> None:
    if isinstance(input, PackedSequence):
        # Its rows are sorted by length and as many as the longest record has steps: one record would decide about
        # the place and the arithmetic of the others.
        raise PlanError(
            f"{called}: a PackedSequence lets the longest record decide about everybody's shapes. Pad all records to "
            "one fixed length, call the module on the padded tensor, and read each record's output at its own last step"
        )
    if input.dim() != 3:
        raise PlanError(
            f"{called}: input has {input.dim()} dimensions and needs 3, (steps, records, features) or with batch_first "
            "(records, steps, features). In 2 dimensions the records themselves would be the steps of one sequence"
        )
    if not input.shape[1 if module.batch_first else 0]:
        raise PlanError(f"{called}: input has no steps; a sequence needs at least one")
