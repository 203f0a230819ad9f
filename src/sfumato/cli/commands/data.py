"""Questions to the data of a project: what there is, what an answer would cost, the answer."""

from __future__ import annotations

from typing import Annotated

import typer

from ..loading import loading
from ..options import (
    HERE,
    Account,
    Accuracy,
    Advice,
    Alpha,
    Bounds,
    Debug,
    Delta,
    Dialect,
    Epsilon,
    File,
    Floor,
    Folder,
    Format,
    Gauges,
    GroupRows,
    Json,
    Keys,
    Limit,
    NoiseLaw,
    Out,
    Query,
    QueryOrList,
    Rho,
    Share,
    Unclip,
)
from ..telling import Outcome, tell


def describe(
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Count cells that cannot be read, and so count as missing: a release, with a price."
        ),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="With --check: only say what it would cost.")] = False,
    table: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="With --check: this table. Default: all private ones.", show_default=False),
    ] = None,
    epsilon: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER",
            help="With --check: the epsilon to spend on a table. Default: a fifth of a release's.",
            show_default=False,
        ),
    ] = None,
    account: Account = None,
    project: Folder = HERE,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """What the project holds, whom it hides, and what is left to spend. Reads no data, unless --check is paid for."""

    def work() -> Outcome:
        if check:
            from ..work.checking_cells import checked

            return checked(project, table=table, epsilon=epsilon, account=account, dry_run=dry_run)
        with loading(numbers=True):
            from ..problems import CommandError
            from ..work.describing import described

        if dry_run or table is not None or epsilon is not None or account is not None:
            option = "--dry-run" if dry_run else "--table" if table else "--epsilon" if epsilon else "--account"
            raise CommandError(
                f"{option} goes with --check", "a description alone costs nothing", f"leave {option} out"
            )
        return described(project)

    tell(work, json=json, debug=debug)


def quote(
    sql: QueryOrList = None,
    file: File = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Add the steps, and the SQL that the engine runs.")
    ] = False,
    gauges: Gauges = False,
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    accuracy: Accuracy = None,
    group_rows: GroupRows = None,
    share: Share = None,
    advice: Advice = None,
    noise: NoiseLaw = None,
    account: Account = None,
    limit: Limit = None,
    bounds: Bounds = None,
    keys: Keys = None,
    dialect: Dialect = None,
    floor: Floor = False,
    unclip: Unclip = False,
    alpha: Alpha = 0.05,
    project: Folder = HERE,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """What a query or a list would cost, and how exact it would be. Free; ends with 5 where the budget is short."""

    def work() -> Outcome:
        with loading(numbers=True):
            from ..work.list_looks import list_of, quoted_list
            from ..work.quoting import quoted
            from ..work.typed_query import TypedQuery

        question = TypedQuery(
            sql, file, epsilon, delta, rho, accuracy, group_rows, share, advice, limit, bounds, keys, floor, unclip,
            alpha, dialect, noise,
        )  # fmt: skip
        if (listed := list_of(question)) is not None:
            return quoted_list(project, listed, account=account, more=explain or gauges)
        return quoted(project, question, account=account, explain=explain, gauges=gauges)

    tell(work, json=json, debug=debug)


def query(
    sql: Query = None,
    file: File = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what it would cost: the same as quote.")] = False,
    note: Annotated[
        str, typer.Option(metavar="TEXT", help="What it is for; the ledger keeps it.", show_default=False)
    ] = "",
    key: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="A name for this request: asked again under it, it never pays twice."),
    ] = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    accuracy: Accuracy = None,
    group_rows: GroupRows = None,
    share: Share = None,
    advice: Advice = None,
    noise: NoiseLaw = None,
    account: Account = None,
    limit: Limit = None,
    bounds: Bounds = None,
    keys: Keys = None,
    dialect: Dialect = None,
    floor: Floor = False,
    unclip: Unclip = False,
    alpha: Alpha = 0.05,
    out: Out = None,
    format: Format = None,
    project: Folder = HERE,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Pay for a query, run it, and show the answer with its error bars. The same query asked again is free."""

    def work() -> Outcome:
        with loading(numbers=True):
            from ..work.asking import answered
            from ..work.typed_query import TypedQuery

        question = TypedQuery(
            sql, file, epsilon, delta, rho, accuracy, group_rows, share, advice, limit, bounds, keys, floor, unclip,
            alpha, dialect, noise,
        )  # fmt: skip
        if dry_run:
            from ..work.quoting import quoted

            return quoted(project, question, account=account, explain=False)
        return answered(project, question, account=account, note=note, key=key, out=out, format=format, json=json)

    tell(work, json=json, debug=debug)


def rehearse(
    sql: QueryOrList = None,
    file: File = None,
    rows: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            help="How many rows to make up for each private table. Default: 300, or as many as groups need to show.",
            show_default=False,
        ),
    ] = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    accuracy: Accuracy = None,
    group_rows: GroupRows = None,
    share: Share = None,
    advice: Advice = None,
    noise: NoiseLaw = None,
    limit: Limit = None,
    bounds: Bounds = None,
    keys: Keys = None,
    dialect: Dialect = None,
    floor: Floor = False,
    unclip: Unclip = False,
    alpha: Alpha = 0.05,
    project: Folder = HERE,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Run a query or a list on made-up rows, with full errors. Free, and says nothing about the data."""

    def work() -> Outcome:
        with loading(numbers=True):
            from ..work.list_looks import list_of, rehearsed_list
            from ..work.rehearsing import rehearsed
            from ..work.typed_query import TypedQuery

        question = TypedQuery(
            sql, file, epsilon, delta, rho, accuracy, group_rows, share, advice, limit, bounds, keys, floor, unclip,
            alpha, dialect, noise,
        )  # fmt: skip
        if (listed := list_of(question)) is not None:
            return rehearsed_list(project, listed, rows=rows)
        return rehearsed(project, question, rows=rows)

    tell(work, json=json, debug=debug)


def schema(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="`project`, `plan`, or a document of --json, such as `query`.")
    ] = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """The JSON Schema of sfumato.yaml, plan.yaml, training files, or of what --json prints; without a name, a list."""

    def work() -> Outcome:
        from ..work.schemas import published

        return published(name, context.find_root().command)

    tell(work, json=json, debug=debug)
