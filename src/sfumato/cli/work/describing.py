"""`sfumato describe`: a project in words. Reads its file and its ledger, never its data."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.text import Text

from ...errors import BudgetError, LedgerError
from ...office.budgets import accounts
from ...office.documents import AccountDocument
from ...project import Project, ProjectError, open_project
from ...query.cell_words import checkable
from ...schema import Column, Table
from ...sources import DatabaseTable, PostgresTable, SparkTable
from ..documents import Document, Part
from ..problems import problem_of
from ..screen import columns, facts, say
from ..telling import Outcome
from .budgets import show_accounts


class ColumnDocument(Part):
    """A column as sfumato.yaml declares it, in words; `unit` where it names whose row it is."""

    name: str
    type: str
    meaning: str
    unit: bool


class TableDocument(Part):
    """A table. `found` says whether its file is there; it is not opened."""

    name: str
    private: bool
    source: str
    found: bool
    columns: list[ColumnDocument]


class DescribeDocument(Document):
    """A project.

    hides     the unit in words
    limits    how much one unit counts for in a query that gives none; null: the adviser measures it
    releases  how many the data set's account has paid for; null where there is no ledger
    ledger    what is wrong with the ledger, where it cannot be read
    """

    document: Literal["describe/1"] = "describe/1"
    project: str
    file: str
    version: str
    hides: str
    tables: list[TableDocument]
    views: dict[str, str]
    limits: str | None
    spends: str | None
    budget: list[AccountDocument]
    releases: int | None
    alert: str | None
    ledger: str | None


def described(folder: Path) -> Outcome:
    """What there is to know about a project without paying."""
    project = open_project(folder)
    missing = set(project.missing())
    body = DescribeDocument(
        project=project.name,
        file=str(project.file),
        version=project.private.version,
        hides=project.hides,
        tables=[_table(project, name, name not in missing) for name in project.schema.tables],
        views=dict(project.schema.views),
        limits=None if project.limits is None else str(project.limits),
        spends=_usual_price(project),
        budget=[],
        releases=None,
        alert=None,
        ledger=None,
    )
    try:
        with project.ledger(read_only=True) as ledger:
            body.budget = accounts(ledger)
            body.alert = project.alert(ledger)
            body.releases = next((each.releases for each in body.budget if each.account == project.account), None)
    except (LedgerError, BudgetError, ProjectError) as error:
        problem = problem_of(error)
        body.ledger = problem.what if isinstance(error, ProjectError) else problem.why
        return Outcome(body, lambda console: _show(console, body, project, fix=problem.fix))
    return Outcome(body, lambda console: _show(console, body, project))


def _place(project: Project, name: str) -> str:
    """The file of a table, or where its server's address stands."""
    source = project.sources[name]
    if isinstance(source, PostgresTable):
        return f"{source.table or name} on the server of {Path(source.address).name}"
    if isinstance(source, SparkTable):
        return f"{source.table or source.path} in the Spark of {Path(source.address).name}"
    if isinstance(source, DatabaseTable):
        return f"{source.table or name} in the {source.dialect} database of {source.connect}"
    path, folder = Path(str(getattr(source, "path", ""))).absolute(), project.folder.absolute()
    return str(path.relative_to(folder) if path.is_relative_to(folder) else path)


def _table(project: Project, name: str, there: bool) -> TableDocument:
    table = project.schema.table(name)
    shown = _place(project, name)
    return TableDocument(
        name=name,
        private=table.private,
        source=shown,
        found=there,
        columns=[
            ColumnDocument(
                name=each,
                type=column.type,
                meaning=_led(table, each) or _meaning(column),
                unit=each == table.unit,
            )
            for each, column in table.columns.items()
        ],
    )


def _led(table: Table, column: str) -> str:
    """Where a key leads, in words."""
    if table.leads is not None and table.leads.column == column:
        return f"whose the row is: leads to {table.leads.target}"
    return next((f"leads to {link.target}" for link in table.refers if link.column == column), "")


def _meaning(column: Column) -> str:
    """Bounds, categories and what a NULL is, without the type."""
    words = str(column).removeprefix(column.type).strip(" ,")
    return words.removeprefix("in ").removesuffix(", NULLs dropped").removesuffix("NULLs dropped").replace("'", "")


def _usual_price(project: Project) -> str | None:
    privacy = project.privacy
    if privacy.target_epsilon is None:
        return None
    delta = f" at delta = {float(privacy.target_delta):.3g}" if privacy.target_delta else ""
    return f"epsilon = {float(privacy.target_epsilon):g}{delta}"


def _show(console: Console, body: DescribeDocument, project: Project, fix: str = "") -> None:
    say(console, Text.assemble((body.project, "bold"), f"  version {body.version} of the data"))
    lines: list[tuple[str, Any]] = [("hides", body.hides)]
    one = project.unit.column or "row"
    if body.limits is not None:
        lines.append(("limits", f"{body.limits} for one {one}, unless a query says otherwise"))
    elif project.unit.column is not None:
        lines.append(("limits", f"how much one {one} counts for is measured for each query, as a part of its price"))
    if body.spends is not None:
        lines.append(("spends", f"{body.spends}, unless a query says otherwise"))
    facts(console, lines)
    for table in body.tables:
        console.print()
        kind = "private" if table.private else "public"
        source = Text(f"  {table.source}", style="dim") if table.found else Text(f"  {table.source} is missing", "red")
        say(console, Text.assemble((table.name, "bold"), f"  {kind}", source))
        rows = [
            (f"  {each.name}", "key, names the unit" if each.unit else each.type, Text(each.meaning, style="dim"))
            for each in table.columns
        ]
        columns(console, ("", "", ""), rows, head=False)
    for name, text in body.views.items():
        console.print()
        say(console, Text.assemble((name, "bold"), "  view"))
        say(console, " ".join(text.split()), first="  ", style="dim")
    console.print()
    if body.ledger is not None:
        say(console, body.ledger, first=Text("budget  ", style="dim"), style="yellow")
        say(console, fix, first=" " * 8, style="dim")
        return
    show_accounts(console, body.budget)
    guarantee = next((each.guarantee for each in body.budget if each.account == body.project), None)
    if guarantee is not None:
        many = f"{body.releases} release{'' if body.releases == 1 else 's'} so far"
        say(console, f"{many}; all together never more than {guarantee}", first=" " * 8, style="dim")
    if body.alert is not None:
        say(console, body.alert, first=Text("alert   ", style="bold yellow"), style="yellow")
    if any(table.private and checkable(table, project.unit) for table in project.schema.tables.values()):
        offer = "cells that cannot be read count as missing: `sfumato describe --check` tells about how many, for "
        say(console, f"{offer}a small price", first=Text("check   ", style="dim"), style="dim")
