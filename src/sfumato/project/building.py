"""From a form to what it stands for: unit, schema, sources, limits, engine. All of it is public; no data is read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from .. import checks
from ..column_kinds import KINDS
from ..foreign_keys import ARROW
from ..owners import owners
from ..plain_yaml import Path as Place
from ..query import Limits
from ..report.accounts.about import About
from ..schema import Column, Schema, Table, tensor
from ..sources import Csv, DatabaseTable, DuckDBTable, PostgresTable, Source, SparkTable, engine_settings, source
from ..units import Unit
from .checking import Form, meant
from .columns import ColumnForm
from .faults import Faults
from .fields import said
from .form import AUTO, EngineForm, PrivacyForm, ProjectForm, SourceForm, SpendForm, TableForm
from .privacy import Privacy, Wrong

_KINDS = (".csv", ".tsv", ".data", ".txt", ".parquet", ".duckdb")
_SIZES = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
_INEXACT = "without exact noise the answers' lowest digits tell what the data holds, so there is no such mode"


def unit_of(form: ProjectForm, faults: Faults) -> Unit | None:
    of = form.unit.of
    if of != "row" and not of.startswith("user:"):
        cause = f"{of[:60]!r} is no unit"
        faults.add(("unit",), cause, f"write user:{of[:60]} for everything one {of[:60]} ever contributed, or row")
        return None
    return faults.trying(("unit",), lambda: Unit(of, form.unit.change, form.unit.group))


def schema_of(form: ProjectForm, unit: Unit, faults: Faults) -> Schema | None:
    """The tables. A private one says whose its rows are: by a column of the unit's own name, by `unit` with `names`
    where it calls that otherwise, or by `owner`, a key that leads to a table that says so."""
    tables: dict[str, Table | None] = {}
    for name, table in form.tables.items():
        tables[name] = _table(("tables", name), table, form, unit, faults)
    complete = {name: table for name, table in tables.items() if table is not None}
    if not tables or (len(complete) == len(tables) and not any(table.private for table in complete.values())):
        cause = "there is no private table" if tables else "there is no table"
        faults.add(("tables",), cause, "give one, without public: true: a project is for what is to be hidden")
    if len(complete) < len(tables) or not complete:
        return None
    schema = faults.trying(("tables",), lambda: _owned(Schema(complete), unit))
    return schema if schema is None or not form.views else _with_views(schema, form, unit, faults)


def _with_views(schema: Schema, form: ProjectForm, unit: Unit, faults: Faults) -> Schema | None:
    """The views, each read as a query would read it."""
    views = {name: view.query for name, view in form.views.items()}
    complete = faults.trying(("views",), lambda: Schema(schema.tables, views=views))
    if complete is not None and views:
        from ..query.view_checks import check_view

        for name in views:
            faults.trying(("views", name), partial(check_view, name, complete, unit))
    return complete


def _owned(schema: Schema, unit: Unit) -> Schema:
    owners(schema, unit)
    return schema


def _table(path: Place, form: TableForm, project: ProjectForm, unit: Unit, faults: Faults) -> Table | None:
    columns: dict[str, Column | None] = {}
    for name, column in form.columns.items():
        columns[name] = _column((*path, "columns", name), column, faults)
    complete = {name: column for name, column in columns.items() if column is not None}
    if not columns:
        faults.add((*path, "columns"), "there is no column", "give those that queries may use")
    if len(complete) < len(columns) or not complete:
        return None
    owner = form.unit
    if form.owner is not None:
        return _keyed(path, form, complete, unit, faults)
    if not form.public:
        if unit.column is None and owner is not None:
            faults.add((*path, "unit"), "the unit is a row, so no column names it", "leave unit out here")
            return None
        owner = unit.column if owner is None and unit.column in complete else owner
        if unit.column is not None and owner is None:
            cause = f"unit is missing; there is no column {unit.column!r} that would say whose row it is"
            faults.add(path, cause, _whose(form))
            return None
        if owner is not None and owner not in complete:
            faults.add((*path, "unit"), f"there is no column {owner[:60]!r}", meant(owner, list(complete)))
            return None
        if owner is not None and not (complete[owner].of_kind.names_units and complete[owner].drops_nulls):
            cause = f"{owner!r} says whose row it is, so its values may not be changed"
            faults.add((*path, "columns", owner), cause, "make it a key, or a category whose nulls are dropped")
            return None
        if owner != unit.column and form.names != unit.column:
            cause = f"the unit is named by {owner!r} here, but the project's unit is user:{unit.column}"
            faults.add((*path, "unit"), cause, _one_unit(project, unit, owner, complete))
            return None
    elif owner is not None:
        faults.add((*path, "unit"), "a public table hides nobody", "leave unit out, or public: true")
        return None
    return faults.trying(path, lambda: _made_of(form, complete, owner))


def _made_of(form: TableForm, columns: Mapping[str, Column], unit: str | None) -> Table:
    more: dict[str, Any] = {"names": form.names, "owner": form.owner, "references": form.references or {}}
    return Table(columns, private=not form.public, unit=unit, rows=form.rows, **more)


def _keyed(path: Place, form: TableForm, columns: Mapping[str, Column], unit: Unit, faults: Faults) -> Table | None:
    """A table that is owned through a key. Where that leads, the schema as a whole says."""
    at = (*path, "owner")
    if form.unit is not None:
        faults.add(at, "unit and owner both say whose a row is", "leave one of them out")
    elif form.public:
        faults.add(at, "a public table hides nobody", "leave owner out, or public: true")
    elif unit.column is None:
        faults.add(at, "the unit is a row, so nobody owns several", "leave owner out here")
    else:
        return faults.trying(at, lambda: _made_of(form, columns, None))
    return None


def _whose(form: TableForm) -> str:
    """What a table may say of whose its rows are."""
    keys = form.references or {}
    if len(keys) > 1:
        column, target = next(iter(keys.items()))
        return (
            f"say which of the references is the owner, such as owner: {column} {ARROW} {target}; whom the others lead "
            "to is then not hidden by this table"
        )
    return (
        "add unit: the column that does, or owner: a key that leads to a table that knows, such as order -> orders.id, "
        "or public: true if the table hides nobody"
    )


def _one_unit(form: ProjectForm, unit: Unit, owner: str | None, columns: Mapping[str, Column]) -> str:
    """How to name one unit and no other."""
    if unit.column in columns:
        return f"write unit: {unit.column} here, or unit: user:{owner} for the project"
    if sum(not each.public for each in form.tables.values()) == 1:
        return f"with one private table both are the same: write unit: user:{owner} for the project"
    return (
        f"if {owner} holds the same names, say so with names: {unit.column}; if a key leads to a table that says whose "
        f"a row is, write owner: {owner} -> table.key in place of unit"
    )


def _column(path: Place, form: ColumnForm, faults: Faults) -> Column | None:
    """Each word is read at its own line, then the column as a whole."""
    read: dict[str, Any] = {}
    for name in sorted(form.model_fields_set & {"lower", "upper", "nulls"}):
        read[name] = faults.trying((*path, name), partial(form.read, name))
    if None in read.values():
        return None
    if KINDS[form.type].is_array:
        shape = tuple(form.shape or ())
        return faults.trying(path, lambda: tensor(shape, read["lower"], read["upper"], whole=form.whole))
    word: Any = form.type
    values = tuple(form.values or ())
    more = {"categories": values, "constant": form.constant, "decimals": form.decimals}
    return faults.trying(path, lambda: Column(word, **more, **read))


def sources_of(form: ProjectForm, folder: Path, faults: Faults) -> dict[str, Source]:
    """Where the tables are. Nothing is opened, and nothing needs to be there yet."""
    sources: dict[str, Source] = {}
    for name, table in form.tables.items():
        path: Place = ("tables", name, "source")
        built = faults.trying(path, partial(_source, table.source, folder))
        if built is not None:
            sources[name] = built
    return sources


def view_files_of(form: ProjectForm, folder: Path, faults: Faults) -> dict[str, DuckDBTable]:
    """The files that have some of the views, too."""
    files: dict[str, DuckDBTable] = {}
    for name, view in form.views.items():
        if view.source is not None:
            path: Place = ("views", name, "source")
            built = faults.trying(path, partial(_source, view.source, folder))
            if isinstance(built, DuckDBTable):
                files[name] = built
            elif built is not None:
                faults.add(path, "only DuckDB files have views", "leave source out: the query alone is the view")
    return files


def _source(form: SourceForm, folder: Path) -> Source:
    """What is written about cells belongs to CSV, and a table's name to DuckDB."""
    if form.postgres is not None:
        return _on_a_server(form, form.postgres, folder)
    if form.spark is not None:
        return _in_spark(form, form.spark, folder)
    if form.connect is not None:
        return _in_a_database(form, form.connect)
    if form.path is None:
        raise said(
            "path is missing", "give the file that holds the table, or postgres: or spark: the address of a server"
        )
    kind = Path(form.path).suffix.lower()
    if kind not in _KINDS:
        raise said(f"{form.path[:60]!r} is no kind of file that is read", f"give one of {', '.join(_KINDS)}")
    if kind != ".parquet" and any(sign in form.path for sign in "*?["):
        raise said(f"* ? and [ stand for several files, and a {kind} table is one", "give the path of one file")
    if kind != ".duckdb" and any(sign in str(folder) for sign in "*?["):
        raise said("the project's folder has * ? or [ in its path, which would stand for others too", "rename it")
    file = source(str(folder / form.path))
    options = {name: getattr(form, name) for name in form.model_fields_set - {"path"}}
    if isinstance(file, Csv) and "table" not in options:
        return Csv(file.path, **{"delimiter": file.delimiter, **options})
    if isinstance(file, DuckDBTable) and set(options) <= {"table"}:
        return DuckDBTable(file.path, form.table)
    if options:
        raise said(f"a {kind} file has no {min(options)}", f"leave {min(options)} out")
    return file


def _on_a_server(form: SourceForm, address: str, folder: Path) -> Source:
    """The name of an environment variable, or a file beside sfumato.yaml."""
    if more := sorted(form.model_fields_set - {"postgres", "table"}):
        raise said(f"a table on a server has no {more[0]}", f"leave {more[0]} out")
    return PostgresTable(_place(address, folder), form.table)


def _in_spark(form: SourceForm, address: str, folder: Path) -> Source:
    """A table of its catalogue, or a folder as Spark reaches it: where there is no scheme, relative to sfumato.yaml."""
    if more := sorted(form.model_fields_set - {"spark", "path", "table"}):
        raise said(f"a table in Spark has no {more[0]}", f"leave {more[0]} out")
    if (form.path is None) == (form.table is None):
        raise said("a table in Spark is a path or a name", "give one of path and table")
    path = form.path if form.path is None or ":/" in form.path else str(folder / form.path)
    return SparkTable(_place(address, folder), path, form.table)


def _place(address: str, folder: Path) -> str:
    """The name of an environment variable, or a file beside sfumato.yaml."""
    if "://" in address or address.startswith("local["):  # not shown: it may hold a password
        raise said(
            "the address itself does not belong here", "give the environment variable, or the file, that holds it"
        )
    return address if address.isidentifier() else str(folder / address)


def _in_a_database(form: SourceForm, connect: str) -> Source:
    """What opens a connection, by name."""
    own = {"connect", "dialect", "table", "untested"}
    if more := sorted(form.model_fields_set - own):
        raise said(f"a table in a database has no {more[0]}", f"leave {more[0]} out")
    if not (connect.isidentifier() or connect.replace(":", ".", 1).replace(".", "").isidentifier()) or "://" in connect:
        raise said(  # not shown: it may be an address with a password
            "connect names no function", "give package.module:function, or the environment variable that holds that"
        )
    return DatabaseTable(connect, form.table, form.dialect or "mariadb", untested=bool(form.untested))


def limits_of(form: ProjectForm, faults: Faults) -> Limits | None:
    if form.limits is None:
        return None
    fields = _given(form.limits)
    return faults.trying(("limits",), lambda: Limits(**fields))


def engine_of(form: EngineForm | None, folder: Path, faults: Faults) -> dict[str, Any]:
    """What the engine may use, as Private takes it."""
    if form is None:
        return {}
    settings = _given(form)
    if form.memory is not None:
        size = re.fullmatch(r"([0-9]{1,6}(?:\.[0-9]{1,6})?) ?([KMGT]?)i?B", form.memory)
        if size is None:
            faults.add(("engine", "memory"), f"{form.memory[:60]!r} is no size", "write one such as 4GB or 500MB")
            return {}
        settings["memory"] = int(Fraction(size.group(1)) * 2 ** _SIZES[size.group(2)])
    if form.seconds is not None:
        settings["seconds"] = float(max(0, min(form.seconds, 10**9)))  # 0, and more than a day, are refused
    if form.temp is not None:
        settings["temp"] = str(folder / form.temp)
    fits = faults.trying(("engine",), lambda: engine_settings(**settings))
    return {} if fits is None else settings


def privacy_of(form: PrivacyForm, unit: Unit, faults: Faults, wrong: Wrong) -> Privacy:
    """The defaults of releases and training; `wrong` is for what turns out to be missing when it is asked for."""
    path: Place = ("privacy",)
    if not form.secure_mode:
        faults.add((*path, "secure_mode"), _INEXACT, "write secure_mode: true, or leave it out")
    multiplier = checked_spend(form, faults)
    return Privacy(
        target_epsilon=form.target_epsilon, target_delta=form.target_delta, accounting_mode=form.accounting_mode,
        secure_mode=True, noise_multiplier=multiplier, max_grad_norm=form.max_grad_norm, sample_rate=form.sample_rate,
        steps=form.steps, relation=unit.change, _wrong=wrong,
    )  # fmt: skip


def checked_spend(form: SpendForm, faults: Faults) -> Fraction | None:
    """Are these numbers what they have to be? Gives the noise multiplier; None for auto."""
    path: Place = ("privacy",)
    if form.target_epsilon is not None:
        faults.trying(path, lambda: checks.epsilon(form.target_epsilon, "target_epsilon", warn=False))
    if form.target_delta is not None:
        faults.trying(path, lambda: checks.delta(form.target_delta, "target_delta", zero=True))
    multiplier = None if form.noise_multiplier == AUTO else form.noise_multiplier
    for name, value in (("noise_multiplier", multiplier), ("max_grad_norm", form.max_grad_norm)):
        if value is not None:
            faults.trying(path, partial(checks.positive, value, name))
    if form.sample_rate is not None and not 0 < form.sample_rate <= 1:
        faults.add((*path, "sample_rate"), "it is no probability", "give a number above 0, at most 1")
    if form.steps is not None:
        faults.trying(path, lambda: checks.whole(form.steps, "steps"))
    fixed: Fraction | None = multiplier
    return fixed


def about_of(form: ProjectForm, faults: Faults) -> About:
    if form.about is None:
        return About()
    fields: dict[str, Any] = _given(form.about)
    fields |= {name: tuple(each) for name, each in fields.items() if isinstance(each, list)}
    return faults.trying(("about",), lambda: About(**fields)) or About()


def _given(form: Form) -> dict[str, Any]:
    """The fields that a file gives."""
    return {name: getattr(form, name) for name in form.model_fields_set}
