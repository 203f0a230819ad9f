"""A workload in a file, ages.yaml: the cells, the tables that are told of them, and what they may spend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from ..errors import SfumatoError
from ..plain_yaml import Bare
from ..query import SqlWorkload, workload
from .checking import Form, filled
from .fields import Category, Number, Text, Whole, said, shown
from .form import LimitsForm
from .lines import load
from .project import Project
from .published import schema_of

_FORM_SCHEMA = {
    "oneOf": [
        {"enum": ["values", "cumulative", "ranges"]},
        {"type": "array", "items": {"type": "array", "minItems": 2, "maxItems": 2}},
    ]
}
_TABLE_SCHEMA = {
    "oneOf": [
        {"type": "array", "items": {"type": "string"}},
        {"type": "object", "additionalProperties": _FORM_SCHEMA},
    ]
}
_TABLES_SCHEMA = {
    "oneOf": [
        {"type": "array", "items": _TABLE_SCHEMA},
        {"type": "object", "additionalProperties": _TABLE_SCHEMA},
    ]
}


def _version(value: Any) -> int:
    if value != "1":
        raise said(f"{shown(value)} is no version of this form", "write sfumato-workload: 1")
    return 1


def _plain(value: Any) -> Any:
    """Lists, mappings and texts as they stand: the tables say themselves what is wrong with them."""
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, str | Bare) else value


class WorkloadForm(Form):
    """Many tables of the same cells."""

    sfumato_workload: Annotated[Any, BeforeValidator(_version), WithJsonSchema({"const": 1})] = Field(
        alias="sfumato-workload", description="1, the version of this form"
    )
    name: Text = Field(description="what it is called: receipts and reports bear it")
    sql: Text = Field(description="the query of the finest cells: COUNT and SUM by public groups")
    dialect: Text | None = Field(None, description="whose SQL the query is, such as postgres; DuckDB's if left out")
    tables: Annotated[Any, BeforeValidator(_plain), WithJsonSchema(_TABLES_SCHEMA)] = Field(
        None,
        description="what is told, by name or as a list: [sex, age], {age: cumulative}, {age: [[0, 17], [18, 99]]}",
    )
    ways: Whole = Field(None, description="beside them, every table of at most so many columns")
    strategy: Text | None = Field(None, description="what is measured: auto (the default), cells, columns or tables")
    epsilon: Number = Field(None, description="what to spend on all of it; by default what sfumato.yaml says")
    delta: Number = Field(None, description="the delta beside it")
    rho: Number = Field(None, description="instead of epsilon")
    limits: LimitsForm | None = Field(None, description="how much one unit counts for, in all of its rows: {rows: 3}")
    keys: dict[Text, list[Category]] | None = Field(None, description="the groups of columns: [east, west]")
    bounds: dict[Text, list[Number]] | None = Field(None, description="[lowest, highest] by column")
    account: Text | None = Field(None, description="the account that pays beside the data set's own")
    note: Text = Field("", description="what it is for: receipts and reports bear it")


@dataclass(frozen=True, kw_only=True)
class WorkloadFile:
    """What such a file says, with the plan that it makes."""

    file: Path
    name: str
    plan: SqlWorkload
    account: str | None
    note: str


def load_workload(path: str | Path, project: Project) -> WorkloadFile:
    """Read a workload for a project. Raises ProjectError with the lines of all that is wrong."""
    written = load(Path(path))
    form = filled(WorkloadForm, written)
    if not form.name.strip() or len(form.name) > 200 or not form.name.isprintable():
        raise written.wrong(("name",), "this is no name", "write one of 1 to 200 letters")
    budget = {name: getattr(form, name) for name in ("epsilon", "delta", "rho")}
    if form.epsilon is None and form.rho is None:
        budget = {"epsilon": project.privacy.target_epsilon, "delta": project.privacy.target_delta, **_given(budget)}
    own = form.limits
    limits = None if own is None else {name: getattr(own, name) for name in own.model_fields_set}
    try:
        plan = workload(
            form.sql,
            project.private,
            tables=form.tables,
            ways=form.ways,
            limits=limits or project.limits,
            keys=form.keys,
            bounds=None if form.bounds is None else {name: tuple(ends) for name, ends in form.bounds.items()},
            strategy=form.strategy or "auto",
            dialect=form.dialect or "duckdb",
            **_given(budget),
        )
    except SfumatoError as problem:
        problem.add_note(f"in {Path(path).name}")
        raise
    return WorkloadFile(file=Path(path), name=form.name, plan=plan, account=form.account, note=form.note)


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a workload file, for editors."""
    return schema_of(WorkloadForm, "a workload file")


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}
