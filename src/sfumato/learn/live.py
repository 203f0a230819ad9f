"""What a training plan holds besides numbers: a model, a loss, an optimiser; each with a fingerprint for the ledger."""

from __future__ import annotations

import copy
import hashlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from .. import checks
from ..errors import ArgumentError, PlanError
from ..questions import COARSE
from ..record import canonical, fingerprint, record


class Model:
    """The user's model, and what it was when the plan was made."""

    def __init__(self, model: torch.nn.Module) -> None:
        if not isinstance(model, torch.nn.Module):
            raise checks.refuse("model", type(model).__name__, "a torch.nn.Module")
        self.original = model
        self.print = model_fingerprint(model)

    def fresh(self) -> torch.nn.Module:
        """A copy to train: the user's own stays as it is."""
        self.check()
        return copy.deepcopy(self.original)

    def check(self) -> None:
        if model_fingerprint(self.original) != self.print:
            raise PlanError(
                "the model changed since the plan was made (its weights, or its parts): make the plan again"
            )

    def loaded_as_is(self) -> torch.nn.Module:
        """A copy with the weights that it had, ready for use."""
        return self.fresh().eval()

    def loaded(self, state: Mapping[str, Any]) -> torch.nn.Module:
        """A copy with these weights, ready for use."""
        model = copy.deepcopy(self.original)
        model.load_state_dict({name: torch.as_tensor(value) for name, value in state.items()})
        return model.eval()


def model_fingerprint(model: torch.nn.Module) -> str:
    """SHA-256 of the tree of modules with their settings, of the code of modules that are not torch's own, of every
    parameter's and buffer's name, shape and type, and of their values."""
    digest = hashlib.sha256()
    for path, module in model.named_modules():
        kind = type(module)
        digest.update(
            f"{path}|{kind.__module__}.{kind.__qualname__}|{module.extra_repr()}|{module.training}\n".encode()
        )
        digest.update(f"{_settings(module)}|{_forward(kind)}\n".encode())
    first: dict[int, str] = {}  # what is used under two names is one
    for name, tensor in (*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False)):
        earlier = first.setdefault(id(tensor), name)
        digest.update(f"{name}|{earlier}|{tuple(tensor.shape)}|{tensor.dtype}|{tensor.requires_grad}\n".encode())
        digest.update(tensor.detach().contiguous().view(-1).view(torch.uint8).numpy().data if tensor.numel() else b"")
    return digest.hexdigest()


def _settings(module: torch.nn.Module) -> str:
    """What a module does not show of itself, such as the smoothing of a loss."""
    plain = {name: each for name, each in vars(module).items() if name[0] != "_" and _is_plain(each)}
    return repr(sorted(plain.items()))


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float | str)


def _forward(kind: type[torch.nn.Module]) -> str:
    code = getattr(kind.forward, "__code__", None)
    if code is None or kind.__module__.partition(".")[0] == "torch":
        return ""
    try:
        return inspect.getsource(code)
    except (OSError, TypeError):  # typed at a prompt
        return str(code.co_code.hex()) + repr(code.co_names)


class Loss:
    """A loss that gives one number for each record, and a name or fingerprint for it."""

    def __init__(self, loss: Any) -> None:
        from .checking import per_record

        self.original = loss
        self.call: Callable[[Any, torch.Tensor], torch.Tensor] = per_record(loss)
        self.print = _loss_fingerprint(loss)


def _loss_fingerprint(loss: Any) -> str:
    if isinstance(loss, torch.nn.Module):
        return model_fingerprint(loss)
    home = getattr(loss, "__module__", "") or ""
    if home.partition(".")[0] == "torch":  # what torch ships is known by its name
        return hashlib.sha256(f"{home}.{loss.__qualname__}".encode()).hexdigest()
    return fingerprint(loss)


@fingerprint.register
def _(value: Model) -> str:
    return value.print


@fingerprint.register
def _(value: Loss) -> str:
    return value.print


@record("optimiser/1")
@dataclass(frozen=True)
class Optimiser:
    """Any optimiser of torch.optim, by its name, with its settings: Optimiser("SGD", {"lr": 0.5, "momentum": 0.9}).

    It reads nothing but the noisy gradients, so whatever it does is post-processing.
    """

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict, metadata=COARSE)

    def __post_init__(self) -> None:
        kind = getattr(torch.optim, checks.label(self.name, "name"), None)
        if not (
            isinstance(kind, type) and issubclass(kind, torch.optim.Optimizer) and kind is not torch.optim.Optimizer
        ):
            raise checks.refuse("optimiser", self.name, "the name of a class in torch.optim, such as 'SGD' or 'Adam'")
        if not isinstance(self.settings, Mapping):
            raise checks.refuse("settings", self.settings, "a mapping, such as {'lr': 0.1}")
        object.__setattr__(self, "settings", dict(self.settings))
        canonical(self.settings)
        try:
            self.build([torch.nn.Parameter(torch.zeros(1, 1))])
        except (TypeError, ValueError) as problem:
            raise ArgumentError(f"settings are not allowed: torch.optim.{self.name} says: {problem}") from None

    def build(self, parameters: Iterable[torch.nn.Parameter]) -> torch.optim.Optimizer:
        kind: Any = getattr(torch.optim, self.name)
        optimiser: torch.optim.Optimizer = kind(parameters, **self.settings)
        return optimiser


def optimiser(name: str, **settings: Any) -> Optimiser:
    """Any optimiser of torch.optim: optimiser("SGD", lr=0.5, momentum=0.9)."""
    return Optimiser(name, settings)
