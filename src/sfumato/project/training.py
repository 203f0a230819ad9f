"""A training as a file says it: the `training` section of sfumato.yaml, or a training file beside it.

Paths are relative to the file. What a training file does not say about privacy, sfumato.yaml does.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from .building import checked_spend
from .checking import Form, filled
from .entrance import open_project
from .faults import Faults
from .fields import Text, said, shown
from .form import AUTO, SpendForm
from .lines import Text as Written
from .lines import load
from .problems import ProjectError
from .project import FILE, Project
from .published import schema_of
from .training_columns import checked_columns
from .training_form import TrainingForm

NAME = "sfumato-training"
PUBLISHED = Path(__file__).with_name("sfumato-training.schema.json")


def _version(value: Any) -> int:
    if value != "1":
        raise said(f"{shown(value)} is no version of this form", f"write {NAME}: 1")
    return 1


class TrainingFileForm(Form):
    """A training of its own, beside sfumato.yaml."""

    sfumato_training: Annotated[Any, BeforeValidator(_version), WithJsonSchema({"const": 1})] = Field(
        alias="sfumato-training", description="1, the version of this form"
    )
    note: Text = Field("", description="what it is for: receipts and reports bear it")
    account: Text | None = Field(None, description="the account that pays beside the data set's own")
    privacy: SpendForm = Field(
        default_factory=lambda: SpendForm.model_validate({}),
        description="what it may spend; sfumato.yaml says the rest",
    )
    training: TrainingForm = Field(description="the model, what it reads and tells, and how it learns")


@dataclass(frozen=True, kw_only=True)
class Training:
    """What is to be trained, and for how much.

    epsilon     the guarantee that the noise is chosen for, or a limit where `multiplier` is given
    multiplier  None stands for auto
    rate        None where a batch size is given; `steps` None where epochs are
    folder      that paths and modules are relative to
    """

    form: TrainingForm
    epsilon: Fraction | None
    delta: Fraction
    multiplier: Fraction | None
    norm: Fraction
    rate: Fraction | None
    steps: int | None
    note: str
    account: str | None
    file: Path
    text: Written

    @property
    def folder(self) -> Path:
        return self.file.absolute().parent

    def wrong(self, place: str, cause: str, fix: str) -> ProjectError:
        """The error for a field of the section, such as "model" or "clip.weights"; the caller raises it."""
        return self.text.wrong(("training", *place.split(".")) if place else ("training",), cause, fix)


def load_training(path: str | Path, folder: str | Path | None = None) -> tuple[Project, Training]:
    """The training that a file describes, and its project: that of `folder`, or of the file's own folder."""
    file = Path(path)
    if file.is_dir():
        file = file / FILE
    written = load(file)
    if not isinstance(written.value, dict) or NAME not in written.value:
        project = open_project(file)
        if project.training is None:
            fix = f"add training: {{model: logistic, features: [...], target: ...}}, or begin the file with {NAME}: 1"
            raise project.text.wrong((), "it has no training section", fix)
        return project, _training(project, project.training, None, file, project.text)
    form = filled(TrainingFileForm, written)
    faults = Faults(written)
    checked_spend(form.privacy, faults)
    project = open_project(file.parent if folder is None else folder)
    checked_columns(form.training, project.schema.tables, faults)
    faults.raise_any()
    return project, _training(project, form.training, form.privacy, file, written, form.note, form.account)


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a training file, for editors."""
    return schema_of(TrainingFileForm, "a training file")


def _training(
    project: Project,
    form: TrainingForm,
    own: SpendForm | None,
    file: Path,
    text: Written,
    note: str = "",
    account: str | None = None,
) -> Training:
    """What the file says, and what sfumato.yaml says where it does not. Of two ways to say a thing the file's own wins,
    and both in one file are refused."""
    usual, faults = project.privacy, Faults(text)
    here = text.lined.at(("privacy",)) or {}

    def said_here(name: str) -> bool:
        return isinstance(here, dict) and name in here

    for name, other in (("batch_size", "sample_rate"), ("epochs", "steps")):
        if getattr(form, name) is not None and said_here(other):
            faults.add(
                ("training", name), f"privacy says {other}, which says the same in another way", "give one of them"
            )

    def value(name: str) -> Any:
        setting = getattr(own, name, None) if said_here(name) and own is not None else getattr(usual, name)
        return None if setting == AUTO else setting

    epsilon, delta, norm = value("target_epsilon"), value("target_delta"), value("max_grad_norm")
    rate = None if form.batch_size is not None else value("sample_rate")
    steps = None if form.epochs is not None else value("steps")
    multiplier = value("noise_multiplier")
    for what, there, fix in (
        ("how much to spend", epsilon is not None or multiplier is not None, "target_epsilon: 3 under privacy"),
        ("at which delta", bool(delta), "target_delta: 1e-6 under privacy: well below 1/n for n people"),
        ("how long gradients may be", norm is not None, "max_grad_norm: 1 under privacy"),
        ("who takes part in a step", rate is not None or form.batch_size is not None, "batch_size under training"),
        ("how long to train", steps is not None or form.epochs is not None, "epochs under training"),
    ):
        if not there:
            faults.add(("training",), f"it is not said {what}", f"add {fix}")
    faults.raise_any()
    assert delta is not None and norm is not None
    return Training(
        form=form, epsilon=epsilon, delta=delta, multiplier=multiplier, norm=norm, rate=rate, steps=steps, note=note,
        account=account, file=file, text=text,
    )  # fmt: skip
