"""The validator: is this a model whose records can be protected one by one? It runs on made-up records, before anything
is paid for, and says of every finding what it is, where, why it matters, and what to do.

By type it refuses BatchNorm in every form, InstanceNorm with running statistics, wrapped or compiled models, and float
types that clipping cannot bound. By following every operation (owners/) it refuses records that meet or move inside the
batch. By trying, with the weights as they are and in other states that training may lead to, it refuses records that
reach each other, models that remember records, and gradients that are not those of plain autograd or count for more
than the clip norm. Shared parameters and sparse embeddings are fine; gradients come as ordinary (dense) tensors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch

from ..errors import PlanError
from . import probing
from .clipping import Clipping
from .engine import ETA, Engine
from .inspecting import Finding, modules, parameters
from .losses import PerRecord, per_record
from .probing import UNITS, Trial
from .survey import shaken

__all__ = ["Finding", "Findings", "PerRecord", "check", "check_parts", "explain", "look", "per_record"]

_CLOSE = 1e-6  # as a share: below this a difference is one of rounding
_ALONE = "What a record contributes must depend on that record alone, or clipping bounds nothing"
_REFUSED = "this model cannot be trained privately as it is:\n"
_OURS = "This is a fault of the library: please report it with the model"


@dataclass(frozen=True)
class Findings:
    """All that was found."""

    all: tuple[Finding, ...]

    @property
    def refused(self) -> tuple[Finding, ...]:
        return tuple(each for each in self.all if each.refused)

    @property
    def warnings(self) -> tuple[Finding, ...]:
        return tuple(each for each in self.all if not each.refused)

    def __str__(self) -> str:
        return explain(self)


def explain(findings: Findings) -> str:
    """The findings as lines of text, the refusals first."""
    lines = [f"- {each}" for each in findings.refused] + [f"- (allowed) {each}" for each in findings.warnings]
    return (
        "\n".join(lines)
        or "nothing found: each record reaches its own loss alone, and counts for the clip norm at most"
    )


def check(engine: Engine, *, clipping: Clipping) -> Findings:
    """Refuse a model that cannot be trained privately; what is only worth knowing comes back."""
    findings = look(engine, clipping=clipping)
    if findings.refused:
        raise PlanError(_REFUSED + explain(Findings(findings.refused)))
    return findings


def check_parts(model: torch.nn.Module) -> None:
    """Refuse a model for its parts alone, before it runs."""
    findings = Findings((*modules(model), *parameters(model)))
    if findings.refused:
        raise PlanError(_REFUSED + explain(Findings(findings.refused)))


def look(engine: Engine, *, clipping: Clipping) -> Findings:
    """All findings, refusals among them. Weights and buffers are as before when this returns."""
    findings = [*modules(engine.model), *parameters(engine.model)]
    if any(each.refused for each in findings):  # what is known to fail is not tried
        return Findings(tuple(findings))
    before_test = [(each, each.detach().clone()) for each in (*engine.model.parameters(), *engine.model.buffers())]
    try:
        trial = Trial(engine)
        for test in (_rewrites, _repeats, _remembers, _apart, _shares, _elsewhere):
            findings += test(trial, clipping)
            if any(each.refused for each in findings):
                break
    except PlanError as problem:
        findings.append(Finding(what=str(problem).rstrip(".").replace("\n", " ")))
    except RuntimeError as problem:
        if "use_reentrant" not in str(problem):
            raise
        findings.append(
            Finding(
                what="it computes activations again by torch.utils.checkpoint in the old way (use_reentrant=True)",
                why="That hides parameters from the graph",
                fix="Give checkpoint(..., use_reentrant=False)",
            )
        )
    finally:
        with torch.no_grad():
            for tensor, before in before_test:
                tensor.copy_(before)
    return Findings(tuple(findings))


def _rewrites(trial: Trial, clipping: Clipping) -> Iterator[Finding]:
    """A forward pass that changes weights."""
    for name in probing.rewritten(trial):
        yield Finding(
            what="the forward pass changes this parameter",
            where=name,
            why="Weights would tell of records without noise",
            fix="Change weights after a step alone (no max_norm in embeddings, no assignment to .data in forward)",
        )


def _repeats(trial: Trial, clipping: Clipping) -> Iterator[Finding]:
    """Two runs on the same records with the same seed."""
    before = probing.state_of(trial.model, trial.losses())
    after = probing.state_of(trial.model, trial.losses())
    if probing.differences(before, after) == [probing.LOSSES]:
        yield Finding(
            what="two runs on the same records give different losses",
            why="Whether records mix cannot be tried",
            fix="Draw all randomness from torch's generator, as nn.Dropout does",
        )


def _remembers(trial: Trial, clipping: Clipping) -> Iterator[Finding]:
    """Something that the model keeps, and that a run on other records changes."""
    trial.losses()  # what is made once, in the first run, may stay
    before = probing.state_of(trial.model)
    for inputs, ordinary in trial.changed_inputs(0):
        if ordinary:
            trial.losses(inputs=inputs)
    changed = probing.differences(before, probing.state_of(trial.model))
    with shaken(trial.engine.parameters):  # other weights show what follows them, as training will
        trial.losses()
    buffers = {
        (path, name)
        for path, module in trial.model.named_modules()
        for name in dict(module.named_buffers(recurse=False))
    }
    moved = probing.differences(before, probing.state_of(trial.model))
    for path, name in (*changed, *(each for each in moved if each in buffers and each not in changed)):
        if ".parametrizations." in f".{path}" and name in ("_u", "_v"):
            yield Finding(
                what="spectral_norm changes its vectors in every run",
                where=path.partition("parametrizations")[0].rstrip("."),
                why="What a forward pass changes is released without protection",
                fix=f"Stop it by model.{path}.eval(), or use weight_norm",
            )
        elif (path, name) in buffers:
            yield Finding(
                what=f"the buffer {name!r} changes in the forward pass",
                where=path,
                why="It carries records from one step to the next, and into the saved model, without protection",
                fix="Take it out, or keep its value fixed (most modules do in eval mode)",
            )
        else:
            yield Finding(
                what=f"the attribute {name!r} keeps something of the records",
                where=path,
                why="It may reach later steps, or a saved model, without protection",
                fix="Return it from forward instead, or do not keep it",
            )


def _elsewhere(trial: Trial, clipping: Clipping) -> Iterator[Finding]:
    """The same with other weights: a gate, a router or an adapter that begins at 0 hides what is behind it."""
    for state, weights in probing.states(trial, clipping):
        with weights:
            for finding in (*_remembers(trial, clipping), *_apart(trial, clipping, range(1))):
                if finding.refused:
                    yield replace(finding, what=f"{finding.what}, with weights {state}")
                    return


def _apart(trial: Trial, clipping: Clipping, units: Sequence[int] = range(UNITS)) -> Iterator[Finding]:
    """No record may move another one's loss, norm or clipped gradient."""
    way, far = probing.reach(trial, units)
    if way == "target" and far > _CLOSE:
        yield Finding(
            what="a record's loss moves with the target of another record",
            where="the loss",
            why=_ALONE,
            fix="Give one loss for each record, with reduction='none', from output and target of the same shape: a "
            "target of shape (n,) beside an output of shape (n, 1) pairs everyone with everyone",
        )
        return
    if way and far > _CLOSE:
        yield Finding(
            what="a record's loss moves with another record",
            where=probing.reached(trial) or "the loss",
            why=_ALONE,
            fix="Take out what computes over the batch: a mean over dimension 0, a norm of the batch, attention "
            "between records",
        )
        return
    if way:
        yield Finding(
            what="a record's loss moves by rounding with another record",
            where=probing.reached(trial) or "",
            why=f"It is within {_CLOSE:g}, as float errors are, but should be nothing",
            fix="Nothing to do; torch.use_deterministic_algorithms(True) may help",
            refused=False,
        )
    for unit in units:
        rest = [each for each in range(UNITS) if each != unit]
        base, sizes = trial.part(rest, clipping=clipping)
        for inputs, ordinary in trial.changed_inputs(unit):
            if not ordinary:
                continue
            sums, norms = trial.part(rest, clipping=clipping, inputs=inputs)
            away = [probing.apart(one, two) for one, two in zip(sums, base, strict=True)]
            if max([*away, probing.apart(norms[rest], sizes[rest])]) > _CLOSE:
                yield Finding(
                    what="a record's gradient moves with another record", why=_ALONE,
                    fix="Take out what computes over the batch",
                )  # fmt: skip
                return


def _shares(trial: Trial, clipping: Clipping) -> Iterator[Finding]:
    """One record counts for at most the clip norm, with its own gradient; also where it is clipped hard."""
    engine = trial.engine
    plain = [trial.plain(unit) for unit in range(UNITS)]
    used = {leaf for uses in engine.survey(UNITS).uses.values() for operand in uses for leaf in operand.leaves}
    for place, name in enumerate(engine.names):
        if place not in used:
            yield Finding(
                what="no gradient reaches this parameter from made-up records",
                where=name,
                why="The loss does not depend on it, or not yet; noise is added to it all the same",
                fix="Freeze it by requires_grad_(False) if it is not used",
                refused=False,
            )
    sizes = [probing.length(each) for each in plain]
    small = min((each for each in sizes if 0 < each < float("inf")), default=0.0)
    yield from _share(trial, clipping, float(clipping.norm), plain, among=False)
    if small:
        yield from _share(trial, clipping, small / 2, plain, among=True)


def _share(
    trial: Trial, clipping: Clipping, norm: float, plain: list[list[torch.Tensor]], *, among: bool
) -> Iterator[Finding]:
    """For one norm: each record alone, and among the others."""
    engine = trial.engine
    groups = clipping.groups(engine.names)
    rough = engine._cast is not None or any(each.dtype.itemsize < 4 for each in engine.parameters)
    hooked = [place for place, each in enumerate(engine.parameters) if each._backward_hooks]  # run in plain autograd
    together = trial.part(range(UNITS), clipping=clipping, norm=norm)[0] if among else []
    for unit in range(UNITS):
        alone, _ = trial.part([unit], clipping=clipping, norm=norm)
        moved = 0.0
        if among:
            without, _ = trial.part([each for each in range(UNITS) if each != unit], clipping=clipping, norm=norm)
            moved = probing.length([one.double() - two.double() for one, two in zip(together, without, strict=True)])
        if probing.length(alone) > norm * (1 + _CLOSE) or moved > norm * (1 + ETA):
            yield Finding(
                what="a record counts for more than the clip norm", why="The noise is made for the clip norm", fix=_OURS
            )
            return
        for group in set(groups):
            places = [place for place, each in enumerate(groups) if each == group and place not in hooked]
            bent = probing.bent([alone[place] for place in places], [plain[unit][place] for place in places])
            if bent > (0.1 if rough else 1e-3):
                yield Finding(
                    what="the gradient is not the one of plain autograd",
                    where=engine.names[places[0]],
                    why="Something else would be learnt",
                    fix=_OURS,
                )
                return
