"""Options that many commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Debug = Annotated[bool, typer.Option("--debug", help="Trace errors that happen before any data is opened.")]
Gauges = Annotated[bool, typer.Option("--gauges", help="Show each way in which an account adds up, too.")]
Folder = Annotated[
    Path,
    typer.Option(
        "--project", "-C", metavar="FOLDER", help="The project folder, or its sfumato.yaml.", show_default=False
    ),
]
HERE = Path()

Wait = Annotated[
    float,
    typer.Option(
        metavar="SECONDS",
        min=0,
        max=86400,
        help="How long to wait while another training or run is at work on the project.",
    ),
]
WAIT = 60.0

# The query, and what it may spend.
_SPENT, _COUNTED, _SHOWN = "What to spend", "What counts, and for how much", "The answer"
Query = Annotated[
    str | None, typer.Argument(metavar="SQL", help="The query; `-` reads it from stdin.", show_default=False)
]
QueryOrList = Annotated[
    str | None,
    typer.Argument(
        metavar="SQL", help="The query, or a list such as plan.yaml; `-` reads a query from stdin.", show_default=False
    ),
]
File = Annotated[
    Path | None, typer.Option("--file", "-f", metavar="FILE", help="Read the query from a file.", show_default=False)
]
Epsilon = Annotated[str | None, typer.Option(metavar="NUMBER", help="The epsilon to spend.", rich_help_panel=_SPENT)]
Delta = Annotated[str | None, typer.Option(metavar="NUMBER", help="The delta beside it.", rich_help_panel=_SPENT)]
Rho = Annotated[
    str | None, typer.Option(metavar="NUMBER", help="Instead of epsilon: the rho to spend.", rich_help_panel=_SPENT)
]
Accuracy = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN=WIDTH",
        help="Instead of epsilon: the half-width wanted, such as `n=50`; of a quantile also in rows of rank, "
        "`rank.m=20`. Repeat it for more columns.",
        rich_help_panel=_SPENT,
    ),
]
GroupRows = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER",
        help="About how many rows a group has; an --accuracy of averages and quantiles needs it.",
        rich_help_panel=_SPENT,
    ),
]
Share = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN=WEIGHT", help="Weigh one column's part of the budget.", rich_help_panel=_SPENT),
]
Advice = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER", help="The adviser's part of the budget, where no limits are given.", rich_help_panel=_SPENT
    ),
]
NoiseLaw = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="`gaussian` (with a delta) or `laplace` (for epsilon alone). By default the smaller, without groups.",
        show_default=False,
        rich_help_panel=_SPENT,
    ),
]
Account = Annotated[
    str | None, typer.Option(metavar="NAME", help="The account of whoever asks.", rich_help_panel=_SPENT)
]
Limit = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=NUMBER",
        help="How much one unit counts for at most: `rows=8`, `keys=3`, `values=2`, `reach.total=500`; or `advise`, "
        "which has them measured for a part of the price.",
        rich_help_panel=_COUNTED,
    ),
]
Bounds = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN=LOW:HIGH", help="Bounds of a column: `cost=0:500`.", rich_help_panel=_COUNTED),
]
Keys = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN=VALUES",
        help="The groups of a column: `ward=east,west`; `ward=select` chooses them privately.",
        rich_help_panel=_COUNTED,
    ),
]
Dialect = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Whose SQL the query is: `postgres`, `bigquery`, `snowflake`, `tsql`, `spark`, `databricks` or `mysql`. "
        "By default DuckDB's.",
        show_default=False,
        rich_help_panel=_COUNTED,
    ),
]
Floor = Annotated[bool, typer.Option("--floor", help="Raise numbers below 0 to 0.", rich_help_panel=_SHOWN)]
Unclip = Annotated[
    bool,
    typer.Option("--unclip", help="Raise sums by what the limits are estimated to take.", rich_help_panel=_SHOWN),
]
Alpha = Annotated[
    float,
    typer.Option(
        metavar="NUMBER", help="Error bars hold with probability 1 - alpha, each by itself.", rich_help_panel=_SHOWN
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        metavar="FILE",
        help="Write the answer to a file: .csv, .parquet or .json.",
        rich_help_panel=_SHOWN,
        show_default=False,
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="table, csv, parquet or json; by default a table, or what the file's ending says.",
        rich_help_panel=_SHOWN,
    ),
]
