"""A model tried out on made-up records: does a record reach another one's loss, does the model remember records, and
does one record count for at most the clip norm, with the gradient that plain autograd gives it?

Every run has the same seed, so that dropout draws the same masks, and the same shapes, so that equal numbers are equal
to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch

from ..errors import SfumatoError
from . import chance
from .clipping import Clipping
from .engine import Engine
from .survey import Tensors, shaken

UNITS = 3
_STEPS = 3
_SEED = 11


class Trial:
    """A small batch of made-up records for one engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.rows_per_unit = engine._rows_per_unit
        inputs, target = engine._examples
        rows = torch.arange(UNITS * self.rows_per_unit) % len(target)
        self.inputs, self.target = tuple(each[rows] for each in inputs), target[rows]

    @property
    def model(self) -> torch.nn.Module:
        return self.engine.model

    def losses(self, inputs: Tensors | None = None, target: torch.Tensor | None = None) -> torch.Tensor:
        with seeded():
            per_row = self.engine.losses(
                self.inputs if inputs is None else inputs, self.target if target is None else target
            )
        return per_row.detach()

    def part(
        self, counted: Sequence[int], *, clipping: Clipping, norm: float | None = None, inputs: Tensors | None = None
    ) -> tuple[list[torch.Tensor], torch.Tensor]:
        """The clipped sum of the units that are counted, and all units' norms."""
        weights = torch.zeros(UNITS)
        weights[list(counted)] = 1
        tensors = self.inputs if inputs is None else inputs
        self.engine.survey(UNITS)  # before the seed: it runs the model, too
        with seeded():
            done = self.engine.backward(tensors, self.target, weights.repeat_interleave(self.rows_per_unit))
        return self.engine.summed(done, weights, clipping=clipping, norm=norm, eta=1 / 64)

    def plain(self, unit: int) -> list[torch.Tensor]:
        """One unit's gradient by plain autograd, in the same batch."""
        with seeded():
            losses = self.engine.losses(self.inputs, self.target)
        own = losses[unit * self.rows_per_unit : (unit + 1) * self.rows_per_unit].sum()
        return list(torch.autograd.grad(own, self.engine.parameters, allow_unused=True, materialize_grads=True))

    def others(self, unit: int) -> torch.Tensor:
        """The rows of all other units."""
        rows = torch.arange(UNITS * self.rows_per_unit)
        return rows[rows // self.rows_per_unit != unit]

    # changes of one unit

    def changed_inputs(self, unit: int) -> Iterator[tuple[Tensors, bool]]:
        """The inputs with one unit made another one, for the first unit in several ways; and whether the change is an
        ordinary one."""
        rows = slice(unit * self.rows_per_unit, (unit + 1) * self.rows_per_unit)
        for way in ("other",) if unit else ("other", "large", "zero", "nan"):
            changed, moved = [], False
            for tensor in self.inputs:
                new = tensor.clone()
                new[rows] = _other(tensor, rows, way)
                moved = moved or not equal(new, tensor)
                changed.append(new)
            if moved:
                yield tuple(changed), way == "other"

    def changed_target(self, unit: int) -> Iterator[torch.Tensor]:
        """The target with one unit's made another, of values that there are already."""
        rows = slice(unit * self.rows_per_unit, (unit + 1) * self.rows_per_unit)
        seen = self.engine._examples[1]
        for new in (seen.flip(0), seen.amax(), seen.amin()) if seen.numel() and not seen.is_complex() else ():
            target = self.target.clone()
            target[rows] = new if new.dim() == 0 else _sized(new, target[rows])
            if not equal(target, self.target):
                yield target


def _other(rows: torch.Tensor, which: slice, way: str) -> torch.Tensor:
    own = rows[which]
    if rows.dtype == torch.bool:
        return ~own
    if not rows.is_floating_point():
        most, least = rows.max(), rows.min()
        turned = least + most - own  # stays within what there is: ids that a table has
        return {"other": turned, "large": most.expand_as(own), "zero": least.expand_as(own)}.get(way, own)
    if way == "nan":
        return torch.full_like(own, float("nan"))
    return {"other": 0.5 - 2 * own, "large": 100 * own + 50, "zero": torch.zeros_like(own)}[way]


def _sized(rows: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    return rows[torch.arange(len(like)) % len(rows)]


@contextmanager
def seeded() -> Iterator[None]:
    with chance.apart(_SEED):
        yield


def equal(one: torch.Tensor, two: torch.Tensor) -> bool:
    """Alike to the last bit, but for the sign of 0; nan is like nan."""
    return one.shape == two.shape and bool(((one == two) | ((one != one) & (two != two))).all())


def apart(one: torch.Tensor, two: torch.Tensor) -> float:
    """How far apart, as a share of the largest number there is."""
    if equal(one, two):
        return 0.0
    largest = max(float(one.abs().max()), float(two.abs().max()), 1e-30)
    away = float((one - two).abs().max()) / largest
    return away if away == away else float("inf")


def states(trial: Trial, clipping: Clipping) -> Iterator[tuple[str, AbstractContextManager[None]]]:
    """Weights that training may lead to: shaken a little and a lot, many times as large, and after a few steps on the
    made-up records. Each is in words, and to be entered; the weights are back afterwards."""
    parameters = trial.engine.parameters
    for words, strength in (("shaken a little", 0.1), ("shaken", 1.0), ("shaken hard", 10.0)):
        yield words, shaken(parameters, strength)
    yield "after a few steps", _stepped(trial, clipping)


@contextmanager
def _stepped(trial: Trial, clipping: Clipping) -> Iterator[None]:
    parameters = trial.engine.parameters
    with shaken(parameters, 0.0):  # puts them back
        for _ in range(_STEPS):
            sums, _ = trial.part(range(UNITS), clipping=clipping)
            with torch.no_grad():
                for parameter, total in zip(parameters, sums, strict=True):
                    parameter.sub_(total.to(parameter.dtype))
        yield


def reach(trial: Trial, units: Sequence[int] = range(UNITS)) -> tuple[str, float]:
    """By way of what one unit moves the losses of others ("inputs", "target", or "" for not at all), and how far."""
    base = trial.losses()
    far: tuple[str, float] = ("", 0.0)
    for unit in units:
        rest = trial.others(unit)
        for inputs, ordinary in trial.changed_inputs(unit):
            try:
                moved = apart(trial.losses(inputs=inputs)[rest], base[rest])
            except SfumatoError:
                raise
            except Exception:
                if ordinary:
                    raise
                continue  # a model may refuse what no record can hold
            far = max(far, ("inputs", moved), key=lambda reached: reached[1])
        for target in trial.changed_target(unit) if unit == 0 else ():
            moved = apart(trial.losses(target=target)[rest], base[rest])
            far = max(far, ("target", moved), key=lambda reached: reached[1])
    return far if far[1] else ("", 0.0)


def reached(trial: Trial) -> str | None:
    """The first module whose output for other units moves with one unit, by its path."""
    for unit in range(UNITS):
        plain = _outputs(trial, trial.inputs)
        for inputs, _ in trial.changed_inputs(unit):
            try:
                changed = _outputs(trial, inputs)
            except Exception:
                continue
            for (path, before), (_, after) in zip(plain, changed, strict=False):
                if path and any(_moved(one, two, trial, unit) for one, two in zip(before, after, strict=False)):
                    return path
    return None


def _moved(one: torch.Tensor, two: torch.Tensor, trial: Trial, unit: int) -> bool:
    rows = UNITS * trial.rows_per_unit
    if one.shape != two.shape:
        return False
    for dim in range(min(one.dim(), 2)):
        if one.shape[dim] == rows:
            rest = trial.others(unit)
            return apart(one.index_select(dim, rest), two.index_select(dim, rest)) > 0
    return False


def _outputs(trial: Trial, inputs: Tensors) -> list[tuple[str, list[torch.Tensor]]]:
    """What each module gave, in the order in which they ended."""
    seen: list[tuple[str, list[torch.Tensor]]] = []

    def hook(path: str) -> Any:
        def note(module: Any, args: Any, output: Any) -> None:
            parts = output if isinstance(output, tuple | list) else [output]
            seen.append((path, [each.detach().clone() for each in parts if isinstance(each, torch.Tensor)]))

        return note

    handles = [module.register_forward_hook(hook(path)) for path, module in trial.model.named_modules()]
    try:
        trial.losses(inputs=inputs)
    finally:
        for handle in handles:
            handle.remove()
    return seen


def rewritten(trial: Trial) -> list[str]:
    """The parameters that a forward pass changes. Large ones: a bound on their size shows."""
    named = list(trial.model.named_parameters())
    before = [each.detach().clone() for _, each in named]
    try:
        with torch.no_grad():
            for _, parameter in named:
                parameter.mul_(1000)
        trial.losses()
        with torch.no_grad():
            return [name for (name, each), old in zip(named, before, strict=True) if not equal(each, old * 1000)]
    finally:
        with torch.no_grad():
            for (_, parameter), old in zip(named, before, strict=True):
                parameter.copy_(old)


LOSSES = ("", "losses")


def state_of(model: torch.nn.Module, losses: torch.Tensor | None = None) -> dict[tuple[str, str], Any]:
    """What a model holds besides parameters, by module and name: buffers, and tensors and floats in its attributes; and
    the losses of a run, where given."""
    state: dict[tuple[str, str], Any] = {} if losses is None else {LOSSES: losses}
    for path, module in model.named_modules():
        for name, buffer in module.named_buffers(recurse=False):
            state[path, name] = buffer.detach().clone()
        for name, value in vars(module).items():
            if name not in ("_parameters", "_buffers", "_modules"):
                for place, one in enumerate(_values(value)):
                    state[path, f"{name}[{place}]" if place else name] = one
    return state


def _values(value: Any, depth: int = 3) -> Iterator[Any]:
    if isinstance(value, torch.Tensor):
        yield value.detach().clone()
    elif isinstance(value, float):
        yield value
    elif isinstance(value, list | tuple | set) and depth:
        for part in value:
            yield from _values(part, depth - 1)
    elif isinstance(value, dict) and depth:
        for part in value.values():
            yield from _values(part, depth - 1)


def differences(before: dict[tuple[str, str], Any], after: dict[tuple[str, str], Any]) -> list[tuple[str, str]]:
    """What is new or not the same."""
    return [place for place, value in after.items() if place not in before or not _alike(before[place], value)]


def _alike(one: Any, two: Any) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(two, torch.Tensor):
        return equal(one, two)
    return type(one) is type(two) and (one == two or one != one)


def length(tensors: Sequence[torch.Tensor]) -> float:
    """The L2 norm of all of them together."""
    return float(sum(float(each.double().square().sum()) for each in tensors) ** 0.5)


def bent(got: Sequence[torch.Tensor], own: Sequence[torch.Tensor]) -> float:
    """How far from being a multiple of one's own gradient, as a share of the length; 0 for a gradient of 0, or none."""
    size = length(own)
    if not 1e-30 < size < float("inf"):
        return 0.0
    scale = sum(float((one.double() * two.double()).sum()) for one, two in zip(got, own, strict=True)) / size**2
    off = length([one.double() - scale * two.double() for one, two in zip(got, own, strict=True)])
    whole = length(got)
    return off / whole if whole else 1.0
