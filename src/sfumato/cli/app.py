"""The commands of `sfumato`, by the part of the work they belong to."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

import typer
from typer.main import get_command

from .._version import VERSION
from .commands import (
    accountant,
    auditing,
    beginning,
    checking,
    data,
    ledger_papers,
    ledger_rules,
    lessons,
    running,
    series_commands,
    training,
    workload_commands,
)


def _named() -> typer.Typer:
    return typer.Typer(
        name="sfumato",
        help="Differential privacy: every release is priced before it runs, paid for in one ledger, and blurred with "
        "exact noise.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )


app = _named()


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sfumato {VERSION}")
        raise typer.Exit


@app.callback()
def _sfumato(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version, and end.")
    ] = False,
) -> None: ...


app.command("init", rich_help_panel="Begin")(beginning.init)
app.command("demo", rich_help_panel="Begin")(beginning.demo)
app.command("describe", rich_help_panel="Questions to the data")(data.describe)
app.command("quote", rich_help_panel="Questions to the data")(data.quote)
app.command("query", rich_help_panel="Questions to the data")(data.query)
app.command("rehearse", rich_help_panel="Questions to the data")(data.rehearse)
app.command("run", rich_help_panel="Questions to the data")(running.run)
app.add_typer(series_commands.series, name="series", rich_help_panel="Questions to the data")
app.add_typer(workload_commands.workload, name="workload", rich_help_panel="Questions to the data")
app.command("train", rich_help_panel="Questions to the data")(training.train)
app.command("schema", rich_help_panel="Files and formats")(data.schema)
assert ledger_rules.ledger is ledger_papers.ledger  # one group, in two files
app.add_typer(ledger_papers.ledger, name="ledger", rich_help_panel="The ledger")
app.command("explain", rich_help_panel="The accountant")(accountant.explain)
app.command("epsilon", rich_help_panel="The accountant")(accountant.epsilon)
app.command("calibrate", rich_help_panel="The accountant")(accountant.calibrate)
app.command("audit", rich_help_panel="Checks")(auditing.audit)
app.command("attack", rich_help_panel="Checks")(checking.attack)
app.command("lesson", rich_help_panel="Checks")(lessons.lesson)
app.command("bench", rich_help_panel="Checks")(checking.bench)

_OF_ALL = ("schema",)  # what looks at the other commands


@cache
def command_of(word: str | None) -> Any:
    """What reads a command line that begins with this word: the whole, or the one command that it names. The options of
    all commands together take longer to prepare than the rest of a short one does."""
    named = [command for command in app.registered_commands if command.name == word]
    groups = [group for group in app.registered_groups if group.name == word]
    if word in _OF_ALL or not named + groups:
        return get_command(app)
    alone = _named()
    alone.registered_callback = app.registered_callback
    alone.registered_commands, alone.registered_groups = named, groups
    return get_command(alone)
