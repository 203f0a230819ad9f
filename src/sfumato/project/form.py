"""The form of sfumato.yaml: which fields there are, and what each takes. What they mean together is for `building`."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, create_model

from ..report.accounts.about import About
from .checking import Form
from .columns import ColumnForm
from .fields import Number, Text, Truth, Whole, exact, said, shown, text
from .training_form import TrainingForm

AUTO = "auto"


def _version(value: Any) -> int:
    if value != "1":
        raise said(f"{shown(value)} is no version of this form", "write sfumato: 1")
    return 1


def _or_auto(value: Any) -> Any:
    return AUTO if value == AUTO else exact(value)


def _dates(value: Any) -> Any:
    """A form, a list of forms, or one of these for each column."""
    if isinstance(value, dict):
        return {text(name): _dates(each) for name, each in value.items()}
    return [text(each) for each in value] if isinstance(value, list) else text(value)


_LISTED = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
_DATES = {"anyOf": [*_LISTED["anyOf"], {"type": "object", "additionalProperties": _LISTED}]}


class UnitForm(Form):
    """Whose presence is hidden."""

    short: ClassVar[str] = "of"

    of: Text = Field(description="row, or user:<column>")
    change: Annotated[Literal["add-remove", "replace", "zero-out"], BeforeValidator(text)] = Field(
        "add-remove", description="what neighbours differ by"
    )
    group: Whole = Field(1, description="hide any so many units together")


class SourceForm(Form):
    """Where a table is."""

    short: ClassVar[str] = "path"

    path: Text | None = Field(
        None,
        description="a .csv, .tsv, .data, .txt, .parquet or .duckdb file, relative to sfumato.yaml; beside spark, a "
        "folder of Parquet files or of a Delta table, as that Spark reaches it",
    )
    postgres: Text | None = Field(
        None,
        description="in place of path: the environment variable, or the file relative to sfumato.yaml, that holds the "
        "postgresql://... address of a server",
    )
    spark: Text | None = Field(
        None,
        description="the environment variable, or the file relative to sfumato.yaml, that holds the address of a Spark "
        "(sc://..., spark://..., local[4]), which reads path or table",
    )
    connect: Text | None = Field(
        None,
        description="in place of path: package.module:function, which opens a connection of a database's driver, or "
        "the environment variable that holds such a text",
    )
    dialect: Text | None = Field(
        None, description="with connect: whose SQL the database takes, such as mariadb (by default) or clickhouse"
    )
    untested: Truth = Field(
        None, description="with connect: you know that sfumato was never run on an engine of this dialect"
    )
    table: Text | None = Field(
        None,
        description="the table in a .duckdb file, or on a server, such as clinic.visits; by default called as here",
    )
    delimiter: Text | None = Field(None, description="between the cells of a CSV row")
    quote: Text | None = Field(None, description='around CSV cells that hold delimiters; "" for none')
    header: Truth = Field(None, description="the first CSV row names the columns")
    columns: list[Text] | None = Field(
        None, description="without a header: all columns of the CSV file in their order, also those that are left out"
    )
    encoding: Annotated[Literal["utf-8", "latin-1", "utf-16"] | None, BeforeValidator(text)] = Field(
        None, description="of a CSV file"
    )
    null: Text | None = Field(None, description="the text of a NULL in a CSV file")
    trim: Truth = Field(None, description="blanks around the cells of a CSV file are left away")
    decimal: Text | None = Field(None, description='the decimal sign of numbers in a CSV file: "." or ","')
    thousands: Text | None = Field(None, description="the sign between thousands in a CSV file, where there is one")
    dates: Annotated[Any, BeforeValidator(_dates), WithJsonSchema(_DATES)] = Field(
        None,
        description='how dates are written in a CSV file, such as "%d.%m.%Y": a form, a list of them, or by column',
    )


class TableForm(Form):
    """One table."""

    source: SourceForm = Field(
        description="the file that holds the table, relative to sfumato.yaml, or the server: {postgres: CLINIC_URL}, "
        "{spark: CLINIC_SPARK, table: clinic.visits}, or the database: {connect: CLINIC_CONNECT, dialect: mariadb}"
    )
    unit: Text | None = Field(None, description="the column that names the unit of each row")
    names: Text | None = Field(
        None, description="the unit's own column, whose names stand in unit, where that is called otherwise"
    )
    owner: Text | None = Field(
        None, description="the key by which rows belong to the owner of another table's, such as order -> orders.id"
    )
    references: dict[Text, Text] | None = Field(
        None, description="other keys, by column, to people whom this table does not hide: {receiver: accounts.id}"
    )
    public: Truth = Field(False, description="everybody may know this table: it hides nobody")
    rows: Whole = Field(None, description="how many rows there are, if that is public")
    columns: dict[Text, ColumnForm] = Field(description="the columns by name; other columns of the file stay unread")


class ViewForm(Form):
    """A query that others read as they read a table."""

    short: ClassVar[str] = "query"

    query: Text = Field(description="SELECT ... over tables and other views; the unit is tracked through it")
    source: SourceForm | None = Field(
        None, description="the .duckdb file whose view this is: where it says something else one day, releases stop"
    )


class LimitsForm(Form):
    """How much one unit counts for in a query, at most, where the query does not say."""

    rows: Number = Field(1, description="the length of a unit's vector of row counts")
    keys: Whole = Field(None, description="in how many groups a unit counts in full; by the rows where left out")
    most_keys: Whole = Field(1000, description="units with more groups have no say in which groups are shown")
    values: Whole = Field(
        None, description="how many values a unit brings to COUNT(DISTINCT column); by the rows where left out"
    )
    sample: Whole = Field(None, description="keep so many groups of each unit, drawn by a hash")
    salt: Whole = Field(0, description="of that hash")


class EngineForm(Form):
    """What the engine may use."""

    threads: Whole = Field(None, description="how many threads")
    memory: Text | None = Field(None, description="how much memory: 4GB, 500MB")
    seconds: Number = Field(None, description="how long a statement may take")
    temp: Text | None = Field(None, description="a folder for what does not fit into memory")


class LedgerForm(Form):
    """Where budgets are kept."""

    short: ClassVar[str] = "place"

    place: Text = Field("budget.ledger", description="a file, relative to sfumato.yaml, or postgresql://...")
    anchor: Text | None = Field(None, description="a file in another folder, best on another disk, for checkpoints")
    key: Text | None = Field(None, description="the file of the key that signs them")
    principal: Text | None = Field(None, description="who pays, where the command line does not say")


class SpendForm(Form):
    """What a release, or a training, takes."""

    target_epsilon: Number = Field(None, description="epsilon of a release, or of a whole training")
    target_delta: Number = Field(None, description="delta of a release, or of a whole training")
    noise_multiplier: Annotated[
        Any,
        BeforeValidator(_or_auto),
        WithJsonSchema({"anyOf": [{"const": AUTO}, {"type": "number", "exclusiveMinimum": 0}]}),
    ] = Field(AUTO, description="of training: auto is the least that the target allows")
    max_grad_norm: Number = Field(None, description="of training: gradients are clipped to this length")
    sample_rate: Number = Field(None, description="of training: how likely a unit is in a step")
    steps: Whole = Field(None, description="of training: how many steps")


class PrivacyForm(SpendForm):
    """What every release, and training, takes where it does not say more."""

    accounting_mode: Annotated[Literal["auto", "pure", "zcdp", "gdp", "rdp"], BeforeValidator(text)] = Field(
        "auto", description="how the account adds up what is spent; auto keeps several gauges"
    )
    secure_mode: Truth = Field(True, description="exact noise from the system's randomness; cannot be turned off")


class TotalForm(Form):
    """A budget: epsilon, with delta or without, or rho."""

    epsilon: Number = Field(None, description="such as 1")
    delta: Number = Field(None, description="well below 1/n for n people, such as 1e-6")
    rho: Number = Field(None, description="instead of epsilon and delta")
    raisable: Truth = Field(False, description="keep a part of delta back, so that the limit can be raised later")


class AllocationForm(TotalForm):
    """A part of the total: a share of it, or a budget of its own size."""

    short: ClassVar[str] = "share"

    share: Number = Field(None, description="of the total, above 0, at most 1")


class BudgetForm(Form):
    """What may be spent in all, ever, on this data."""

    total: TotalForm = Field(description="such as {epsilon: 3, delta: 1e-6}")
    allocations: dict[Text, AllocationForm] = Field({}, description="accounts below it, each with a part of the total")
    alert_threshold: Number = Field(None, description="tell when this share of the total is spent: 0.8")


def _about() -> Any:
    """The fields that About has."""
    models: dict[str, Any] = {}
    for entry in fields(About):
        kind: Any = Text
        if entry.default == () or entry.type == "bool | None":
            kind = list[Text] if entry.default == () else Truth
        models[entry.name] = (kind, None)
    return create_model(
        "AboutForm", __base__=Form, __doc__="What only the organisation can say, for reports.", **models
    )


if TYPE_CHECKING:
    AboutForm = Form
else:
    AboutForm = _about()


class ProjectForm(Form):
    """A project: its data, whom to hide, its budget."""

    sfumato: Annotated[Any, BeforeValidator(_version), WithJsonSchema({"const": 1})] = Field(
        description="1, the version of this form"
    )
    name: Text = Field(description="the name of the data set, and of its account in the ledger")
    unit: UnitForm = Field(description="whose presence is hidden: user:<column>, or row")
    version: Annotated[Text, WithJsonSchema({"type": ["string", "number"]})] = Field(
        "1", description="of the data; name it anew when the data changes"
    )
    tables: dict[Text, TableForm] = Field(description="the tables by name")
    views: dict[Text, ViewForm] = Field({}, description="queries by name, to be read like tables")
    limits: LimitsForm | None = Field(None, description="of queries that give none; left out, an adviser measures them")
    engine: EngineForm | None = Field(None, description="what the engine may use")
    ledger: LedgerForm = Field(
        default_factory=lambda: LedgerForm.model_validate({}), description="where budgets are kept"
    )
    privacy: PrivacyForm = Field(
        default_factory=lambda: PrivacyForm.model_validate({}), description="what every release takes by default"
    )
    budget: BudgetForm = Field(description="what may be spent in all, such as {total: {epsilon: 3, delta: 1e-6}}")
    training: TrainingForm | None = Field(None, description="a model that `sfumato train` trains on the private table")
    about: AboutForm | None = Field(None, description="what reports say beside the numbers")
