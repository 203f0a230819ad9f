"""The form of a training: the model, what it reads and tells, and how it learns. What it may spend is `privacy`."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema

from ..plain_yaml import Bare, number
from .checking import Form
from .fields import Number, Text, Truth, Whole, said, shown, text


def _one_or_more(value: Any) -> Any:
    """A name stands for a list of one."""
    return [value] if isinstance(value, str) else value


def _setting(value: Any) -> Any:
    """A setting of an optimiser: a number, true or false, a word, or a list of these."""
    if isinstance(value, list):
        return [_setting(each) for each in value]
    if not isinstance(value, str):
        raise said(f"{shown(value)} stands where a setting is needed", "write a number, a word, or true or false")
    exact = number(value) if isinstance(value, Bare) else None
    if exact is not None:
        return int(exact) if exact.denominator == 1 and "." not in value and "e" not in value.lower() else float(exact)
    if isinstance(value, Bare) and value in ("true", "false"):
        return value == "true"
    return text(value)


class ModelForm(Form):
    """What is trained."""

    short: ClassVar[str] = "name"

    name: Text = Field(description="linear, logistic, mlp or cnn; or module:function of a Python file of your own")
    hidden: list[Whole] | None = Field(None, description="of mlp: the sizes of its hidden layers; of cnn: channels")
    activation: Annotated[Literal["tanh", "relu", "gelu"], BeforeValidator(text)] = Field(
        "tanh", description="between layers of mlp and cnn"
    )
    seed: Whole = Field(1, description="of the first weights, which are public")


class TargetForm(Form):
    """What the model learns to tell."""

    short: ClassVar[str] = "column"

    column: Text = Field(description="the column")
    type: Annotated[Literal["class", "number"] | None, BeforeValidator(text)] = Field(
        None, description="class or number, where the column could be either"
    )
    scaled: Truth = Field(False, description="numbers from their bounds to [-1, 1]")


class OptimizerForm(Form):
    """Any optimiser of torch.optim, with its settings."""

    model_config = ConfigDict(extra="allow", frozen=True, defer_build=True)
    __pydantic_extra__: dict[
        str,
        Annotated[Any, BeforeValidator(_setting), WithJsonSchema({"type": ["number", "string", "boolean", "array"]})],
    ]

    short: ClassVar[str] = "name"

    name: Text = Field("SGD", description="the name of a class in torch.optim; its settings stand beside it: lr: 0.5")


class ClipForm(Form):
    """How a unit's gradient is clipped to max_grad_norm."""

    short: ClassVar[str] = "rule"

    rule: Annotated[Literal["flat", "per-layer", "per-group", "automatic", "adaptive"], BeforeValidator(text)] = Field(
        "flat", description="flat, per-layer, per-group, automatic or adaptive"
    )
    weights: dict[Text, Number] | None = Field(None, description="of per-group: weights by pattern of parameter names")
    stability: Number = Field(None, description="of automatic: added to a gradient's length")
    quantile: Number = Field(None, description="of adaptive: the share of units that shall not be clipped")
    pace: Number = Field(None, description="of adaptive: how fast the norm follows")
    noise: Number = Field(None, description="of adaptive: on the count of unclipped units, as a share of the batch")


class TrainingForm(Form):
    """A training on the private table."""

    model: ModelForm = Field(
        description="linear, logistic, mlp or cnn; or module:function of a Python file of your own"
    )
    features: Annotated[
        list[Text],
        BeforeValidator(_one_or_more),
        WithJsonSchema({"type": ["string", "array"], "items": {"type": "string"}}),
    ] = Field(description="the columns that the model reads")
    indicators: Truth = Field(False, description="a further number for each column: is it NULL?")
    target: TargetForm = Field(description="the column that it learns to tell")
    loss: Text | None = Field(
        None, description="cross_entropy, mse, l1 or huber, or module:function; by default what fits the target"
    )
    optimizer: OptimizerForm = Field(
        default_factory=lambda: OptimizerForm.model_validate({}),
        description="of torch.optim, with its settings: {name: Adam, lr: 0.01}; SGD with lr 0.1 by default",
    )
    batch_size: Whole = Field(None, description="how many units are expected in a step; or privacy: sample_rate")
    epochs: Number = Field(None, description="how often each unit is expected to take part; or privacy: steps")
    population: Whole = Field(
        None, description="how many units there are, a public number; the table's rows by default"
    )
    sampling: Annotated[Literal["poisson", "fixed"], BeforeValidator(text)] = Field(
        "poisson",
        description="each unit joins by chance, or batches of exactly batch_size (of units that are replaced)",
    )
    per_unit: Whole = Field(1, description="how many rows of a user a step reads at most")
    clip: ClipForm = Field(
        default_factory=lambda: ClipForm.model_validate({}),
        description="how gradients are clipped to max_grad_norm: flat, per-layer, per-group, automatic or adaptive",
    )
    count: Number = Field(
        None, description="noise on the count of unclipped units, as a share of the batch; left out: not counted"
    )
    noise: Annotated[Literal["exact", "fast"], BeforeValidator(text)] = Field(
        "exact", description="fast: float-grade noise, which the policy must allow"
    )
    strict: Truth = Field(False, description="gradients as whole numbers, with norms that are verified; slower")
    average: Number = Field(None, description="the decay of a running average of the weights, which is then released")
    cast: Annotated[Literal["bfloat16"] | None, BeforeValidator(text)] = Field(
        None, description="run the model in bfloat16"
    )
    public_test: Text | None = Field(
        None, description="a file of public data with the same columns, for loss and accuracy; relative to this file"
    )
    subgroup: Text | None = Field(
        None, description="a column of the public data: accuracy is told for each of its values"
    )
    out: Text | None = Field(None, description="where the weights are written, as torch.save writes them: model.pt")
    checkpoint: Text | None = Field(None, description="a file that keeps what is done so far, while it runs")
