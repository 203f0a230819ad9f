"""Where to begin: a project of one's own, or the made-up hospital."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..options import Debug, Json
from ..telling import Outcome, tell


def init(
    folder: Annotated[
        Path | None, typer.Argument(help="The project's folder. Default: this one.", show_default=False)
    ] = None,
    source: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="A file of data (csv, tsv, parquet, duckdb). Repeatable.", show_default=False
        ),
    ] = None,
    unit: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Whom to hide: a column, or row. TABLE=COLUMN where a table calls it otherwise.",
            show_default=False,
        ),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=KIND",
            help="cost=real:0:5000, ward=category:east,north, note=out. Repeatable.",
            show_default=False,
        ),
    ] = None,
    public: Annotated[
        list[str] | None,
        typer.Option(metavar="TABLE", help="A table that hides nobody. Repeatable.", show_default=False),
    ] = None,
    header: Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header", help="Does the first line of CSV files name the columns?", show_default=False
        ),
    ] = None,
    trim: Annotated[
        bool | None,
        typer.Option("--trim/--no-trim", help="Leave blanks around the cells of CSV files away?", show_default=False),
    ] = None,
    decimal: Annotated[
        str | None,
        typer.Option(metavar="SIGN", help="The decimal sign of numbers in CSV files: . or ,", show_default=False),
    ] = None,
    thousands: Annotated[
        str | None, typer.Option(metavar="SIGN", help="The sign between thousands in them.", show_default=False)
    ] = None,
    dates: Annotated[
        str | None,
        typer.Option(
            metavar="FORM", help="The last day of 2026 as they write it: 31.12.2026, or %d.%m.%Y.", show_default=False
        ),
    ] = None,
    null: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="What stands in them where a cell is missing: NA, ?", show_default=False),
    ] = None,
    encoding: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Of their text: utf-8, latin-1 or utf-16.", show_default=False),
    ] = None,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of the project. Default: the folder's.", show_default=False)
    ] = None,
    epsilon: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="All that may be spent. Default: 1.", show_default=False)
    ] = None,
    delta: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="The delta beside it. Default: 1e-6.", show_default=False)
    ] = None,
    rows: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER",
            help="How many rows one unit counts for. Default: an adviser measures it.",
            show_default=False,
        ),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Ask nothing; take proposals where flags say nothing.")
    ] = False,
    example: Annotated[bool, typer.Option("--example", help="Make the made-up hospital, to try things on.")] = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Make a project: sfumato.yaml, and a ledger. Asks questions in a terminal; reads no row of the data."""

    def work() -> Outcome:
        from ..work.beginning import begin
        from ..work.flags import Flags

        flags = Flags(
            sources=tuple(source or ()), units=tuple(unit or ()), columns=tuple(column or ()),
            public=tuple(public or ()), header=header, trim=trim, decimal=decimal, thousands=thousands, dates=dates,
            null=null, encoding=encoding, name=name, epsilon=epsilon, delta=delta, rows=rows,
        )  # fmt: skip
        return begin(folder, flags, example=example, asking=not (yes or json))

    tell(work, json=json, debug=debug)


def demo(
    folder: Annotated[
        Path | None, typer.Argument(help="Where to put it. Default: hospital-demo, made anew.", show_default=False)
    ] = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """A private analysis of a made-up hospital, start to end, in under a minute."""

    def work() -> Outcome:
        from ..work.showing import FOLDER, demo

        return demo(folder or FOLDER, quiet=json)

    tell(work, json=json, debug=debug)
