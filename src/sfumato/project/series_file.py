"""A series in a file, clicks.yaml: one query of a table that grows, what is released of it, and what it may spend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from ..errors import SfumatoError
from ..plain_yaml import Bare
from ..query import SqlSeries, series
from .checking import Form, filled
from .fields import Category, Number, Text, Whole, said, shown
from .form import LimitsForm
from .lines import load
from .project import Project
from .published import schema_of

_WAIT = 6
_LONGEST_WAIT = 24 * 366


def _version(value: Any) -> int:
    if value != "1":
        raise said(f"{shown(value)} is no version of this form", "write sfumato-series: 1")
    return 1


def _levels(value: Any) -> Any:
    """One level by its name, several as a list, or each with what it is given."""
    if isinstance(value, str | Bare):
        return {str(value): {}}
    if isinstance(value, list):
        return {str(level): {} for level in value}
    if isinstance(value, Mapping):
        return {level: {} if options == "" else options for level, options in value.items()}
    return value


class LevelForm(Form):
    """What is given to one level."""

    share: Number = Field(None, description="its part of the budget, beside those of other levels; 1 by default")
    most: Whole = Field(None, description="in how many of its blocks a unit counts; in all of them if left out")
    limits: LimitsForm | None = Field(None, description="how much one unit counts for in one block: {rows: 3}")


class SeriesForm(Form):
    """One query, asked of each block of time once."""

    sfumato_series: Annotated[Any, BeforeValidator(_version), WithJsonSchema({"const": 1})] = Field(
        alias="sfumato-series", description="1, the version of this form"
    )
    name: Text = Field(description="what it is called: receipts and reports bear it")
    sql: Text = Field(description="the query of the whole table: COUNT and SUM by public groups")
    dialect: Text | None = Field(None, description="whose SQL the query is, such as postgres; DuckDB's if left out")
    column: Text = Field(description="the column of dates or moments that says which block a row is in")
    start: Text = Field(description="the first day, such as 2026-01-01")
    days: Whole = Field(description="how long the series is at most: it is paid for that")
    levels: Annotated[dict[Text, LevelForm], BeforeValidator(_levels)] = Field(
        description="what is released: day, [day, week], or with options: {day: {most: 30}, month: {limits: {rows: 9}}}"
    )
    wait: Whole = Field(
        _WAIT, description="hours after the end of a block, by UTC, until it is released: for late rows"
    )
    epsilon: Number = Field(None, description="what to spend on all of it; by default what sfumato.yaml says")
    delta: Number = Field(None, description="the delta beside it")
    rho: Number = Field(None, description="instead of epsilon")
    limits: LimitsForm | None = Field(None, description="how much one unit counts for in one block, of a single level")
    keys: dict[Text, list[Category]] | None = Field(None, description="the groups of columns: [east, west]")
    bounds: dict[Text, list[Number]] | None = Field(None, description="[lowest, highest] by column")
    account: Text | None = Field(None, description="the account that pays beside the data set's own")
    note: Text = Field("", description="what it is for: receipts and reports bear it")


@dataclass(frozen=True, kw_only=True)
class SeriesFile:
    """What such a file says, with the plan that it makes.

    wait  hours from the end of a block until it is released
    """

    file: Path
    name: str
    plan: SqlSeries
    wait: int
    account: str | None
    note: str


def load_series(path: str | Path, project: Project) -> SeriesFile:
    """Read a series for a project. Raises ProjectError with the lines of all that is wrong."""
    written = load(Path(path))
    form = filled(SeriesForm, written)
    if not form.name.strip() or len(form.name) > 200 or not form.name.isprintable():
        raise written.wrong(("name",), "this is no name", "write one of 1 to 200 letters")
    wait = _WAIT if form.wait is None else form.wait
    if not 0 <= wait <= _LONGEST_WAIT:
        raise written.wrong(("wait",), "this is no time to wait", "write hours, such as wait: 6")
    budget = {name: getattr(form, name) for name in ("epsilon", "delta", "rho")}
    if form.epsilon is None and form.rho is None:
        budget = {"epsilon": project.privacy.target_epsilon, "delta": project.privacy.target_delta, **_given(budget)}
    try:
        plan = series(
            form.sql,
            project.private,
            column=form.column,
            start=str(form.start),
            days=form.days,
            levels={
                level: _given({**dict(options), "limits": _limits(options.limits)})
                for level, options in form.levels.items()
            },
            limits=_limits(form.limits) or _project_limits(form, project),
            keys=form.keys,
            bounds=None if form.bounds is None else {name: tuple(ends) for name, ends in form.bounds.items()},
            dialect=form.dialect or "duckdb",
            **_given(budget),
        )
    except SfumatoError as problem:
        problem.add_note(f"in {Path(path).name}")
        raise
    return SeriesFile(file=Path(path), name=form.name, plan=plan, wait=wait, account=form.account, note=form.note)


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a series file, for editors."""
    return schema_of(SeriesForm, "a series file")


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _limits(form: LimitsForm | None) -> dict[str, Any] | None:
    return None if form is None else {name: getattr(form, name) for name in form.model_fields_set}


def _project_limits(form: SeriesForm, project: Project) -> Any:
    """Those that the project has for queries, where there is one level that has none of its own."""
    return project.limits if all(options.limits is None for options in form.levels.values()) else None
