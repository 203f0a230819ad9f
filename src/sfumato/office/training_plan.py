"""From what a file says about a training to its plan, and to the public data that it is measured on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ..errors import ArgumentError, PlanError, SfumatoError
from ..project.code import Wrong, beside, failure, file_of, function_of, is_code
from ..project.project import Project
from ..project.training import Training
from ..rows import Rows
from ..schema import Column, Table, TensorColumn
from ..sources import Csv, columns_of, source
from ..units import Unit

if TYPE_CHECKING:
    from ..learn import SGD, Features

T = TypeVar("T")
_MOST_CLASSES = 10_000
_FIELDS = {"optimiser": "optimizer", "settings": "optimizer", "rate": "", "inputs": "features", "norm": ""}
_OF_RULES = {
    "flat": (),
    "per-layer": (),
    "per-group": ("weights",),
    "automatic": ("stability",),
    "adaptive": ("quantile", "pace", "noise"),
}


def plan_of(project: Project, training: Training) -> SGD:
    """The plan. Whatever torch or the library refuses is told at its line of the file."""
    from .. import learn

    form = training.form
    table = project.private.table
    features = _trying(training, "features", lambda: learn.Features(tuple(form.features), indicators=form.indicators))
    target = _trying(
        training, "target", lambda: learn.Target(form.target.column, type=form.target.type, scaled=form.target.scaled)
    )
    for field, encoder in (("features", features), ("target", target)):
        _trying(training, field, partial(encoder.check, table))
    classes = target.classes(table) if target.tells_classes(table) else None
    model = _model(training, features.shape(table), classes)
    loss, clip = _loss(training, classes), _clip(training)
    fields: dict[str, Any] = {
        "rate": training.rate,
        "batch_size": form.batch_size,
        "steps": training.steps,
        "epochs": form.epochs,
        "epsilon": training.epsilon if training.multiplier is None else None,
        "multiplier": training.multiplier,
        "population": form.population,
        "sampling": form.sampling,
        "per_unit": form.per_unit,
        "count": form.count,
        "noise": form.noise,
        "strict": form.strict,
        "average": form.average,
        "cast": form.cast,
    }
    if "optimizer" in form.model_fields_set:
        settings = dict(form.optimizer.model_extra or {})
        fields["optimiser"] = _trying(training, "optimizer", lambda: learn.optimiser(form.optimizer.name, **settings))
    data = project.private
    plan = _trying(
        training,
        "",
        lambda: learn.sgd(
            model, loss, data=data, inputs=features, target=target, clip=clip, delta=training.delta, **fields
        ),
    )
    if training.multiplier is not None and training.epsilon is not None and plan.price() > training.epsilon:
        raise training.text.wrong(
            ("privacy", "noise_multiplier"),
            f"with this noise the training costs epsilon = {float(plan.price()):.4g}, above target_epsilon",
            "write noise_multiplier: auto, which is the least that the target allows, or a larger number",
        )
    return plan


def _model(training: Training, shape: tuple[int, ...], classes: int | None) -> Any:
    from ..learn.builtin import NAMES, builtin, seeded

    form = training.form.model
    if is_code(form.name):
        if odd := sorted(form.model_fields_set & {"hidden", "activation"}):
            raise training.wrong(f"model.{odd[0]}", "it is for the models that come with sfumato", "leave it out")
        make = function_of(form.name, training.file, _wrong(training, "model"))
        return _trying(training, "model", lambda: seeded(lambda: _called(make, form.name, training), form.seed))
    if form.name not in NAMES:
        fix = f"write {', '.join(NAMES)}, or module:function of a file of your own"
        raise training.wrong("model", f"there is no model {form.name[:60]!r}", fix)
    if form.name == "logistic" and classes is None:
        raise training.wrong("model", "logistic tells classes, and the target is a number", "write model: linear")
    if classes is not None and classes > _MOST_CLASSES:
        raise training.wrong("target", f"it has {classes} classes, too many for this model", "write type: number there")
    return _trying(
        training,
        "model",
        lambda: builtin(form.name, shape, classes or 1, hidden=form.hidden, activation=form.activation, seed=form.seed),
    )


def _called(make: Any, name: str, training: Training) -> Any:
    """What the function makes, called without arguments."""
    wrong = _wrong(training, "model")
    file = file_of(name, training.file, wrong)
    try:
        with beside(training.file):
            return make()
    except Exception as problem:
        fix = "correct the function: it is called without arguments"
        raise wrong(failure(file, problem), fix) from problem


def _wrong(training: Training, field: str) -> Wrong:
    return partial(training.wrong, field)


def _loss(training: Training, classes: int | None) -> Any:
    from ..learn.builtin import LOSSES

    name = training.form.loss
    if name is None:
        return LOSSES["mse" if classes is None else "cross_entropy"]
    if is_code(name):
        return function_of(name, training.file, _wrong(training, "loss"))
    if name not in LOSSES:
        fix = f"write {', '.join(LOSSES)}, or module:function of a file of your own"
        raise training.wrong("loss", f"there is no loss {name[:60]!r}", fix)
    if (name == "cross_entropy") == (classes is None):
        kind = "a number" if classes is None else "a class"
        raise training.wrong("loss", f"{name} does not fit a target that is {kind}", "leave loss out, or correct it")
    return LOSSES[name]


def _clip(training: Training) -> Any:
    from .. import learn

    form, norm = training.form.clip, training.norm
    settings = {name: getattr(form, name) for name in form.model_fields_set - {"rule"}}
    if odd := sorted(set(settings) - set(_OF_RULES[form.rule])):
        raise training.wrong(
            f"clip.{odd[0]}", f"{form.rule} clipping has no {odd[0]}", "leave it out, or correct the rule"
        )
    if form.rule == "per-group" and "weights" not in settings:
        raise training.wrong("clip", "weights is missing", 'add weights by pattern, such as {"head.*": 1, "*": 1}')
    rules: dict[str, Callable[..., Any]] = {
        "flat": learn.Flat,
        "per-layer": learn.PerLayer,
        "per-group": learn.PerGroup,
        "automatic": learn.Automatic,
        "adaptive": learn.Adaptive,
    }
    return _trying(training, "clip", lambda: rules[form.rule](norm=norm, **settings))


def _trying(training: Training, field: str, make: Callable[[], T]) -> T:
    """What it makes; what it refuses is told at the field that it speaks of."""
    try:
        return make()
    except (ArgumentError, PlanError) as problem:
        name = problem.argument or ""
        place = _FIELDS.get(name, name if name in type(training.form).model_fields else field)
        raise training.wrong(
            place or field, problem.cause, problem.fix or "see docs/project-file.md#training"
        ) from None


# public data


@dataclass(frozen=True)
class Public:
    """Public data to measure on, encoded as the model takes it; `groups` names the subgroup of each record."""

    inputs: Any
    target: Any
    groups: list[str] | None

    def __len__(self) -> int:
        return len(self.target)


def public_of(project: Project, training: Training, plan: SGD) -> Public | None:
    """The public test data that the file names, read and encoded. Records without a target are left out."""
    form = training.form
    if form.public_test is None:
        return None
    table = project.private.table
    path = training.folder / form.public_test
    if project.lives_by(path):
        cause = "this file is the project's own, so it is not public"
        raise training.wrong("public_test", cause, "give a file of people who agreed, or of made-up ones")
    if not path.is_file():
        raise training.wrong(
            "public_test", f"there is no file {form.public_test[:80]!r}", "put it there, or correct it"
        )
    if form.subgroup is not None and not table.column(form.subgroup).of_kind.is_listed:
        cause = "subgroups are told by a category or a flag, and this column is neither"
        raise training.wrong("subgroup", cause, "give another column")
    names = [*form.features, form.target.column, *([form.subgroup] if form.subgroup is not None else [])]
    columns = {name: _open(table.column(name)) for name in dict.fromkeys(names)}
    try:
        rows = _read(Table(columns, private=False, name=table.name), path, project)
    except SfumatoError as problem:
        fix = problem.fix or "give a file with the table's columns"
        raise training.wrong("public_test", problem.cause, fix) from None
    except Exception:
        cause = f"{path.name} cannot be read with the columns of {table.name!r}"
        raise training.wrong("public_test", cause, "give a file with the same columns") from None
    features: Features = plan.inputs[0]
    readable = np.flatnonzero(plan.target.readable(rows) & features.readable(rows))
    if not len(readable):
        raise training.wrong("public_test", "no record in it has a target", "give a file with the same columns")
    groups = None if form.subgroup is None else _groups(rows, form.subgroup, readable)
    return Public(features.tensor(rows, readable), plan.target.tensor(rows, readable), groups)


def _open(column: Column) -> Column:
    return column if isinstance(column, TensorColumn) or not column.constant else replace(column, constant=False)


def _read(table: Table, path: Path, project: Project) -> Rows:
    file = source(str(path))
    own = (
        next(iter(project.sources.values()))
        if len(project.sources) == 1
        else project.sources[project.private.table.name]
    )
    if isinstance(file, Csv) and isinstance(own, Csv) and path.suffix.lower() == Path(str(own.path)).suffix.lower():
        file = replace(own, path=str(path))  # written as the private one is
    file.check(table)
    return Rows.read(table, columns_of(table, file), Unit())


def _groups(rows: Rows, name: str, readable: Any) -> list[str]:
    """The subgroup of each record, in words."""
    column, series = rows.table.column(name), rows[name]
    values, valid = series.values[readable], series.valid[readable]
    words = [str(value) for value in column.categories] or ["false", "true"]
    return [words[value] if ok else "(none)" for value, ok in zip(values, valid, strict=True)]
