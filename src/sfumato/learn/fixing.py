"""A copy of a model in which records no longer meet: what `fix` can replace by itself.

    BatchNorm                          by GroupNorm, with the same weights: each record is normalised by itself
    InstanceNorm with running          by InstanceNorm without: running statistics are averages over records
      statistics
    BatchNorm, statistics public       by the same layer with its statistics fixed for good

Build the optimiser after `fix`: the copy has parameters of its own.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm

from .. import checks
from ..errors import PlanError

_GROUPS = 32  # Wu and He 2018


@dataclass(frozen=True)
class Change:
    """One module that `fix` replaces."""

    where: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.where or 'the model itself'}: {self.before} becomes {self.after}"


class FixedNorm(nn.Module):
    """A BatchNorm whose statistics are constants in training, too: names and values in state_dict are as before. They
    are public: nothing here ever changes them, and nothing protects them."""

    weight: nn.Parameter | None
    bias: nn.Parameter | None

    running_mean: torch.Tensor
    running_var: torch.Tensor

    def __init__(self, norm: _BatchNorm) -> None:
        super().__init__()
        self.num_features, self.eps = norm.num_features, norm.eps
        self.register_parameter("weight", norm.weight if norm.affine else None)
        self.register_parameter("bias", norm.bias if norm.affine else None)
        self.register_buffer("running_mean", cast(torch.Tensor, norm.running_mean).detach().clone())
        self.register_buffer("running_var", cast(torch.Tensor, norm.running_var).detach().clone())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.batch_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, training=False, eps=self.eps
        )

    def extra_repr(self) -> str:
        return f"{self.num_features}, eps={self.eps}"

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        state_dict.pop(prefix + "num_batches_tracked", None)  # weights of the layer it was are read, too
        super()._load_from_state_dict(state_dict, prefix, *rest)


def fix(model: nn.Module, *, public_statistics: bool = False) -> nn.Module:
    """A copy of the model with what mixes records replaced; the model itself stays as it is. Build the optimiser after.

    public_statistics   the running statistics of BatchNorm were learnt on public data: keep them, as constants
    """
    fixed, _ = _fixed(model, public_statistics)
    return fixed


def fixes(model: nn.Module, *, public_statistics: bool = False) -> tuple[Change, ...]:
    """What `fix` would change, without changing it."""
    return _fixed(model, public_statistics)[1]


def mixes(module: nn.Module) -> bool:
    """Is this a module that `fix` replaces?"""
    return isinstance(module, _BatchNorm) or (isinstance(module, _InstanceNorm) and module.track_running_stats)


def _fixed(model: nn.Module, public_statistics: bool) -> tuple[nn.Module, tuple[Change, ...]]:
    checks.instance(model, nn.Module, "model", "a torch.nn.Module")
    checks.flag(public_statistics, "public_statistics")
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if nn.parameter.is_lazy(tensor):
            raise PlanError(f"{name} has no shape yet: run the model once on a made-up record, then fix it")
    try:
        copied = copy.deepcopy(model)
    except Exception as problem:
        raise PlanError(
            f"the model cannot be copied ({type(problem).__name__}): some part keeps what cannot be copied, such as a "
            "tensor with a history or an open file. Detach or remove it, or replace BatchNorm by GroupNorm by hand"
        ) from None
    mixing = [(path, module) for path, module in copied.named_modules(remove_duplicate=False) if mixes(module)]
    swapped: dict[int, nn.Module] = {}  # one module in two places stays one module
    changes = []
    for path, module in mixing:
        if id(module) not in swapped:
            swapped[id(module)] = _apart(module, path, public_statistics)
        new = swapped[id(module)]
        changes.append(Change(path, repr(module), repr(new)))
        if not path:
            return new, tuple(changes)
        home, _, name = path.rpartition(".")
        copied.get_submodule(home)._modules[name] = new
    return copied, tuple(changes)


def _apart(norm: Any, path: str, public_statistics: bool) -> nn.Module:
    """The module that takes this one's place."""
    new: nn.Module
    if isinstance(norm, _InstanceNorm):
        kinds = (nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d)
        kind: Any = next((each for each in kinds if isinstance(norm, each)), None)
        if kind is None:
            raise PlanError(
                f"{path or 'the model'} is an InstanceNorm of an unknown kind: give it no running statistics"
            )
        new = kind(norm.num_features, eps=norm.eps, affine=norm.affine, track_running_stats=False)
    elif public_statistics and norm.running_mean is not None:
        return FixedNorm(norm).train(norm.training)
    else:
        new = nn.GroupNorm(_groups(norm), norm.num_features, eps=norm.eps, affine=norm.affine)
    if norm.affine:
        new.register_parameter("weight", norm.weight)  # the copy's own: value, type, device and requires_grad stay
        new.register_parameter("bias", norm.bias)
    return new.train(norm.training)


def _groups(norm: Any) -> int:
    """The largest divisor of the channels up to 32. On vectors a group would be few numbers, or one, which normalises
    to 0: there all channels are one group."""
    if isinstance(norm, nn.BatchNorm1d):
        return 1
    return max(each for each in range(1, _GROUPS + 1) if norm.num_features % each == 0)
