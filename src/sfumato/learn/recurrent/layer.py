"""The node of the graph: one layer in one direction, with its parameters as inputs.

Its backward pass computes the gradients at the gates and keeps them with the inputs they belong to, which is all that
a record's gradients are made of: for a weight of shape (p, D) the sum over steps of g_t a_t^T, for a bias that of g_t.
The ordinary gradient of a weight, a sum over records, is computed only where somebody asks for it.

The handle: autograd runs a node only if something behind it is asked for, and a gradient *at* this node does not count.
So every call takes an input of no elements, (records, 0), that requires a gradient. Ask for the gradient at the handle,
and the node runs. Its shape grows with the batch as that of everything that belongs to records.

The node makes one value, outputs and last states together, (places, records, features): so whoever looks at the
gradient at that value has seen all that comes back to the layer.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from . import cells

KINDS = ("LSTM", "GRU", "RNN_TANH", "RNN_RELU")  # torch's own names: the `mode` of its modules


class Use(NamedTuple):
    """What all records did to one parameter: its gradient for one of them is the sum over steps of g_t a_t^T, or g_t.

    slot  the parameter's place in the node's next_functions
    kind  "affine", or "bias"
    a     (steps, records, D); a bias has none
    g     (steps, records, p), summed to one step for a bias; uses whose g is the same object share it
    """

    slot: int
    kind: str
    a: Tensor | None
    g: Tensor


class Uses:
    """The uses of a node's trainable parameters, once its backward pass ran; those of the last one, if it ran again.

    Held by the node and holding no node: a tensor in here that led back to the node would keep both for ever.
    """

    def __init__(self) -> None:
        self._found: list[Use] | None = None

    @property
    def ran(self) -> bool:
        return self._found is not None

    def keep(self, uses: list[Use]) -> None:
        self._found = uses

    def __call__(self) -> list[Use]:
        if self._found is None:
            raise RuntimeError(
                "uses: the backward pass did not reach this recurrent layer. Ask autograd for the gradient at the "
                "call's handle; where that is None, the losses do not depend on the layer"
            )
        return self._found


class RecurrentLayer(torch.autograd.Function):
    """One recurrent layer in one direction, time-major; `parts` takes apart what it makes.

    The node offers `uses()`, `sequences` (how many ran side by side) and `batch_dim` (1: records lie behind the steps).
    """

    @staticmethod
    def forward(
        ctx: Any,
        handle: Tensor,
        x: Tensor,
        h0: Tensor,
        c0: Tensor | None,
        w_ih: Tensor,
        w_hh: Tensor,
        b_ih: Tensor | None,
        b_hh: Tensor | None,
        w_hr: Tensor | None,
        kind: str,
        reverse: bool,
    ) -> Tensor:
        tensors = (handle, x, h0, c0, w_ih, w_hh, b_ih, b_hh, w_hr)
        ctx.kind, ctx.reverse = kind, reverse
        ctx.slots = _slots(tensors)
        ctx.uses, ctx.batch_dim, ctx.sequences = Uses(), 1, x.shape[1]
        with _plainly(x):
            xs, h, c, *weights = (_wide(each) for each in tensors[1:])
            states = _ahead(kind, xs, h, c, cells.Weights(*weights), reverse)
            ctx.save_for_backward(*tensors[1:], *states)
            # The user's copy: whatever is done to it in place does not reach the states that the way back needs.
            outputs = cells.after(states[0], reverse)
            last = _rows(cells.final(states[1], reverse), outputs.shape[2]) if kind == "LSTM" else outputs[:0]
            return torch.cat([outputs, last]).to(x.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors
        tensors, states = saved[:8], saved[8:]
        x, weights = tensors[0], cells.Weights(*(_wide(each) for each in tensors[3:]))
        with _plainly(x):
            back = _back(ctx.kind, states, weights, ctx.reverse, _wide(grad))
            xs = _wide(x).detach()
            hs = cells.before(states[0], ctx.reverse)
            sum_ih = back.ih.sum(0, keepdim=True)  # a bias needs no more than that, and an LSTM's two biases the same
            sum_hh = sum_ih if back.hh is back.ih else back.hh.sum(0, keepdim=True)
            sides: list[tuple[str, Tensor | None, Tensor | None]] = [
                ("w_ih", xs, back.ih),
                ("w_hh", hs, back.hh),
                ("b_ih", None, sum_ih),
                ("b_hh", None, sum_hh),
                ("w_hr", states[-1] if back.hr is not None else None, back.hr),
            ]
            uses = [
                Use(ctx.slots[name], "bias" if a is None else "affine", a, g)
                for name, a, g in sides
                if g is not None and name in ctx.slots and ctx.next_functions[ctx.slots[name]][0] is not None
            ]
            ctx.uses.keep(uses)
            gradients: dict[str, Tensor | None] = {
                "handle": x.new_zeros(ctx.sequences, 0),
                "h0": back.h0,
                "c0": back.c0,
            }
            if _asked(ctx, "x"):
                gradients["x"] = torch.matmul(back.ih, weights.ih)
            for name, a, g in sides:
                if g is not None and _asked(ctx, name):
                    gradients[name] = g.sum((0, 1)) if a is None else g.flatten(0, 1).t() @ a.flatten(0, 1)
            kinds = dict(zip(_NAMES[1:], tensors, strict=True))
            grads = [gradients["handle"], *(_narrow(gradients.get(name), kinds[name]) for name in _NAMES[1:])]
            return (*grads, None, None)


_NAMES = ("handle", "x", "h0", "c0", "w_ih", "w_hh", "b_ih", "b_hh", "w_hr")


def parts(states: Tensor, steps: int, hidden: int, kind: str, reverse: bool) -> tuple[Tensor, Tensor, Tensor | None]:
    """Outputs, last hidden state and, of an LSTM, last cell state."""
    if kind != "LSTM":
        return states, cells.final(states, reverse), None
    outputs = states[:steps]
    return outputs, cells.final(outputs, reverse), _unrows(states[steps:], hidden)


def _rows(cell: Tensor, wide: int) -> Tensor:
    """A cell state, (records, hidden), as (rows, records, wide), to stand below the outputs: one row if wide enough."""
    rows = -(-cell.shape[1] // wide)
    padded = torch.nn.functional.pad(cell, (0, rows * wide - cell.shape[1]))
    return padded.reshape(cell.shape[0], rows, wide).transpose(0, 1)


def _unrows(rows: Tensor, hidden: int) -> Tensor:
    return rows[0] if len(rows) == 1 else rows.transpose(0, 1).flatten(1)[:, :hidden]


def _slots(tensors: tuple[Tensor | None, ...]) -> dict[str, int]:
    """Where each input stands in next_functions, which knows tensors only."""
    present = [name for name, each in zip(_NAMES, tensors, strict=True) if each is not None]
    return {name: slot for slot, name in enumerate(present)}


def _asked(ctx: Any, name: str) -> bool:
    """Does this backward pass go on to that input? (needs_input_grad tells only whether one could.)"""
    node = ctx.next_functions[ctx.slots[name]][0] if name in ctx.slots else None
    if node is None:
        return False
    try:
        return bool(torch._C._will_engine_execute_node(node))
    except (AttributeError, RuntimeError):  # not known, or a leaf that autograd.grad was asked for by name
        return True


def _ahead(
    kind: str, x: Tensor, h: Tensor, c: Tensor | None, weights: cells.Weights, reverse: bool
) -> tuple[Tensor, ...]:
    if kind == "LSTM" and c is not None:
        return cells.lstm(x, h, c, weights, reverse)
    if kind == "GRU":
        return cells.gru(x, h, weights, reverse)
    return cells.elman(x, h, weights, reverse, torch.relu_ if kind == "RNN_RELU" else torch.tanh_)


def _back(
    kind: str,
    saved: tuple[Tensor, ...],
    weights: cells.Weights,
    reverse: bool,
    grad: Tensor,
) -> cells.Back:
    if kind == "LSTM":
        steps, hidden = saved[3].shape[0], saved[3].shape[2]
        last = _unrows(grad[steps:], hidden).clone(memory_format=torch.contiguous_format)
        return cells.lstm_back(saved, weights, reverse, grad[:steps], last)
    if kind == "GRU":
        return cells.gru_back(saved, weights, reverse, grad)
    return cells.elman_back(saved, weights, reverse, grad, kind == "RNN_RELU")


def _wide(tensor: Tensor | None) -> Any:
    """Half-precision values as float32, in which the recurrence is computed: rounding would add up over the steps."""
    return tensor.float() if tensor is not None and tensor.dtype.itemsize < 4 else tensor


def _narrow(grad: Tensor | None, like: Tensor | None) -> Tensor | None:
    return None if grad is None or like is None else grad.to(like.dtype)


def _plainly(x: Tensor) -> AbstractContextManager[Any]:
    """Without autocast: types are chosen here."""
    return torch.autocast(x.device.type, enabled=False)
