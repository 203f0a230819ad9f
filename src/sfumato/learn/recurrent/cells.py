"""One layer in one direction, forward and back through time: plain functions of tensors, one pair per cell kind.

Everything is time-major, (steps, records, features), and a row of a record depends on that record only. The
gradients are those *at the gates before their activation*, for all steps at once; products with the weights' inputs are
left to the caller.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

# One pass over memory instead of three: grad * y * (1 - y), grad * (1 - y * y), and grad where y > 0.
_sigmoid_back = torch.ops.aten.sigmoid_backward.grad_input
_tanh_back = torch.ops.aten.tanh_backward.grad_input
_relu_back = torch.ops.aten.threshold_backward.grad_input


@dataclass(frozen=True)
class Weights:
    """The weights of one layer and direction, in the type that is computed in; hr is an LSTM's projection."""

    ih: Tensor
    hh: Tensor
    b_ih: Tensor | None = None
    b_hh: Tensor | None = None
    hr: Tensor | None = None

    def blocks(self, x: Tensor, gates: int, *, both: bool) -> Tensor:
        """x W^T + b for all steps, one block (steps, records, hidden) per gate, so that every gate is contiguous.

        Args:
            x: the inputs, (steps, records, features).
            gates: how many gates the rows of the weights hold.
            both: add the hidden side's bias too.
        """
        steps, records, features = x.shape
        hidden = self.ih.shape[0] // gates
        bias = self.ih.new_zeros(()) if self.b_ih is None else self.b_ih
        if both and self.b_hh is not None:
            bias = bias + self.b_hh
        products = torch.baddbmm(
            bias.expand(gates * hidden).reshape(gates, 1, hidden),
            x.reshape(1, steps * records, features).expand(gates, steps * records, features),
            self.ih.reshape(gates, hidden, features).transpose(1, 2),
        )
        return products.view(gates, steps, records, hidden)

    def hidden_blocks(self, gates: int) -> Tensor:
        return self.hh.reshape(gates, -1, self.hh.shape[1]).transpose(1, 2)


@dataclass(frozen=True)
class Back:
    """Gradients at the gates, seen from the inputs (ih) and from the hidden states (hh), and at the initial states."""

    ih: Tensor
    hh: Tensor
    h0: Tensor
    c0: Tensor | None = None
    hr: Tensor | None = None


def order(steps: int, reverse: bool) -> list[tuple[int, int, int]]:
    """(step, where the state before it stands, where the state after it stands), as the layer walks."""
    if reverse:
        return [(t, t + 1, t) for t in reversed(range(steps))]
    return [(t, t, t + 1) for t in range(steps)]


def states(initial: Tensor, steps: int, reverse: bool) -> Tensor:
    """Room for the states of all steps with the initial one at its end, so that those before a step are a slice."""
    room = initial.new_empty((steps + 1, *initial.shape))
    room[steps if reverse else 0] = initial
    return room


def before(room: Tensor, reverse: bool) -> Tensor:
    return room[1:] if reverse else room[:-1]


def after(room: Tensor, reverse: bool) -> Tensor:
    return room[:-1] if reverse else room[1:]


def final(room: Tensor, reverse: bool) -> Tensor:
    return room[0] if reverse else room[-1]


def lstm(x: Tensor, h0: Tensor, c0: Tensor, w: Weights, reverse: bool) -> tuple[Tensor, ...]:
    """Hidden states, cell states, gates i f g o, tanh of the cells, and with a projection what it is applied to."""
    steps, records, _ = x.shape
    gates = w.blocks(x, 4, both=True)
    hidden = gates.shape[-1]
    hs, cs = states(h0, steps, reverse), states(c0, steps, reverse)
    tanhs = gates.new_empty(steps, records, hidden)
    unprojected = gates.new_empty(0 if w.hr is None else steps, records, hidden)
    w_hh = w.hidden_blocks(4)
    h, c, whole, pairs, tanh_c = hs.unbind(), cs.unbind(), gates.unbind(1), gates[:2].unbind(1), tanhs.unbind()
    i, f, g, o = (gate.unbind() for gate in gates.unbind())
    for t, prev, now in order(steps, reverse):
        whole[t].baddbmm_(h[prev].expand(4, *h0.shape), w_hh)
        pairs[t].sigmoid_()
        g[t].tanh_()
        o[t].sigmoid_()
        torch.mul(f[t], c[prev], out=c[now])
        c[now].addcmul_(i[t], g[t])
        torch.tanh(c[now], out=tanh_c[t])
        if w.hr is None:
            torch.mul(o[t], tanh_c[t], out=h[now])
        else:
            torch.mul(o[t], tanh_c[t], out=unprojected[t])
            torch.mm(unprojected[t], w.hr.t(), out=h[now])
    return hs, cs, gates, tanhs, unprojected


def lstm_back(saved: tuple[Tensor, ...], w: Weights, reverse: bool, grad: Tensor, grad_c: Tensor) -> Back:
    """From gradients at the outputs and at the last cell state, which is used up, to those at the gates."""
    _, cs, gates, tanhs, _ = saved
    _, steps, records, hidden = gates.shape
    dh, dc, scratch = torch.zeros_like(grad[0]), grad_c, torch.empty_like(grad_c)
    back = gates.new_empty(steps, records, 4 * hidden)
    rows, outputs, c, tanh_c = back.unbind(), grad.unbind(), cs.unbind(), tanhs.unbind()
    di, df, dg, do = (gate.unbind() for gate in back.view(steps, records, 4, hidden).unbind(2))
    i, f, g, o = (gate.unbind() for gate in gates.unbind())
    projected = None if w.hr is None else dh.new_empty(steps, *dh.shape)
    for t, prev, _ in reversed(order(steps, reverse)):
        dh.add_(outputs[t])
        dm = dh
        if projected is not None and w.hr is not None:
            projected[t] = dh
            dm = dh @ w.hr
        torch.mul(dm, o[t], out=scratch)
        dc.add_(_tanh_back(scratch, tanh_c[t], grad_input=scratch))
        torch.mul(dm, tanh_c[t], out=scratch)
        _sigmoid_back(scratch, o[t], grad_input=do[t])
        torch.mul(dc, g[t], out=scratch)
        _sigmoid_back(scratch, i[t], grad_input=di[t])
        torch.mul(dc, c[prev], out=scratch)
        _sigmoid_back(scratch, f[t], grad_input=df[t])
        torch.mul(dc, i[t], out=scratch)
        _tanh_back(scratch, g[t], grad_input=dg[t])
        dc.mul_(f[t])
        torch.mm(rows[t], w.hh, out=dh)
    return Back(ih=back, hh=back, h0=dh, c0=dc, hr=projected)


def gru(x: Tensor, h0: Tensor, w: Weights, reverse: bool) -> tuple[Tensor, ...]:
    """Hidden states, gates r z n, and the hidden side of n before r is applied: its bias sits inside the product."""
    steps, records, _ = x.shape
    gates = w.blocks(x, 3, both=False)
    hidden = gates.shape[-1]
    hs = states(h0, steps, reverse)
    inner = gates.new_empty(steps, records, hidden)
    w_hh = w.hh.t()
    h, inside, pairs = hs.unbind(), inner.unbind(), gates[:2].unbind(1)
    r, z, n = (gate.unbind() for gate in gates.unbind())
    side = gates.new_empty(records, 3 * hidden)
    side_pair, side_n = side[:, : 2 * hidden].view(records, 2, hidden).transpose(0, 1), side[:, 2 * hidden :]
    for t, prev, now in order(steps, reverse):
        if w.b_hh is None:
            torch.mm(h[prev], w_hh, out=side)
        else:
            torch.addmm(w.b_hh, h[prev], w_hh, out=side)
        pairs[t].add_(side_pair).sigmoid_()
        inside[t].copy_(side_n)
        n[t].addcmul_(r[t], side_n).tanh_()
        torch.lerp(n[t], h[prev], z[t], out=h[now])
    return hs, gates, inner


def gru_back(saved: tuple[Tensor, ...], w: Weights, reverse: bool, grad: Tensor) -> Back:
    """As `lstm_back`; the new gate's gradient differs between the input's side and the hidden side by the factor r."""
    hs, gates, inner = saved
    _, steps, records, hidden = gates.shape
    dh, scratch, dn = gates.new_zeros(3, records, hidden).unbind()
    ih, hh = gates.new_empty(steps, records, 3 * hidden), gates.new_empty(steps, records, 3 * hidden)
    rows, outputs, h, inside = hh.unbind(), grad.unbind(), hs.unbind(), inner.unbind()
    dr, dz, dn_hidden = (gate.unbind() for gate in hh.view(steps, records, 3, hidden).unbind(2))
    r, z, n = (gate.unbind() for gate in gates.unbind())
    dn_input = ih[:, :, 2 * hidden :].unbind()
    for t, prev, _ in reversed(order(steps, reverse)):
        dh.add_(outputs[t])
        torch.sub(h[prev], n[t], out=scratch)
        scratch.mul_(dh)
        _sigmoid_back(scratch, z[t], grad_input=dz[t])
        torch.mul(dh, z[t], out=scratch)
        dh.sub_(scratch)
        _tanh_back(dh, n[t], grad_input=dn)
        dn_input[t].copy_(dn)
        torch.mul(dn, r[t], out=dn_hidden[t])
        dn.mul_(inside[t])
        _sigmoid_back(dn, r[t], grad_input=dr[t])
        torch.addmm(scratch, rows[t], w.hh, out=dh)
    ih[:, :, : 2 * hidden] = hh[:, :, : 2 * hidden]
    return Back(ih=ih, hh=hh, h0=dh)


def elman(x: Tensor, h0: Tensor, w: Weights, reverse: bool, squash: Callable[[Tensor], Tensor]) -> tuple[Tensor, ...]:
    """Hidden states of a plain recurrent layer; `squash` is torch.tanh_ or torch.relu_."""
    steps = x.shape[0]
    hs = states(h0, steps, reverse)
    after(hs, reverse).copy_(w.blocks(x, 1, both=True)[0])
    h, w_hh = hs.unbind(), w.hh.t()
    for _, prev, now in order(steps, reverse):
        squash(h[now].addmm_(h[prev], w_hh))
    return (hs,)


def elman_back(saved: tuple[Tensor, ...], w: Weights, reverse: bool, grad: Tensor, rectified: bool) -> Back:
    """As `lstm_back`; the activation's slope is read from its value, so nothing but the states was kept."""
    hs = after(saved[0], reverse)
    back, dh = torch.empty_like(hs), torch.zeros_like(hs[0])
    rows, outputs, h = back.unbind(), grad.unbind(), hs.unbind()
    for t, _, _ in reversed(order(hs.shape[0], reverse)):
        dh.add_(outputs[t])
        if rectified:
            _relu_back(dh, h[t], 0, grad_input=rows[t])
        else:
            _tanh_back(dh, h[t], grad_input=rows[t])
        torch.mm(rows[t], w.hh, out=dh)
    return Back(ih=back, hh=back, h0=dh)
