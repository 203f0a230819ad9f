"""Modes and buffers of a model: each module keeps the mode that its owner put it in, and no buffer leaves changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from ..errors import PlanError

_CHANGED = (
    "a buffer of the model changed in a step: it would be released without protection. It is put back. Take it out, or "
    "put its module in eval mode if that stops it"
)


@contextmanager
def in_use(model: torch.nn.Module) -> Iterator[torch.nn.Module]:
    """The model in eval mode, for a while. Afterwards every module is in the mode that it was in: a frozen part that
    was in eval mode stays there."""
    modes = [(module, module.training) for module in model.modules()]
    try:
        yield model.eval()
    finally:
        for module, training in modes:
            module.training = training


class Buffers:
    """The buffers of a model as they were before it saw records: saved with it or not."""

    def __init__(self, model: torch.nn.Module) -> None:
        self._model = model
        self._before = {name: each.detach().clone() for name, each in model.named_buffers()}

    def check(self) -> None:
        """Put them back, and refuse if one was changed, replaced or added."""
        if self.restore():
            raise PlanError(_CHANGED)

    def restore(self) -> bool:
        """Put them back. Was there one to put back?"""
        now = dict(self._model.named_buffers())
        changed = [name for name, each in self._before.items() if name not in now or not _alike(now[name], each)]
        added = [name for name in now if name not in self._before]
        for name in changed + added:
            home, _, last = name.rpartition(".")
            module = self._model.get_submodule(home)
            if name in self._before and name in now and now[name].shape == self._before[name].shape:
                with torch.no_grad():
                    now[name].copy_(self._before[name])
            elif name in self._before:
                module._buffers[last] = self._before[name].clone()
            else:
                del module._buffers[last]
        return bool(changed or added)


def _alike(one: torch.Tensor, two: torch.Tensor) -> bool:
    """To the last bit, but for the sign of 0; nan is like nan."""
    same = one.shape == two.shape and one.dtype == two.dtype
    return same and (torch.equal(one, two) or bool(((one == two) | ((one != one) & (two != two))).all()))
