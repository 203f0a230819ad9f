"""The wizard's further questions, into a draft: whom to hide, what columns may hold, and the budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...checks import WEAK_EPSILON
from ...errors import ArgumentError
from ...foreign_keys import ARROW
from ..problems import CommandError
from . import wizard_words as words
from .column_words import bounded, checked, listed
from .draft import Draft, TableDraft, led_nowhere, put_keys, read_key
from .prompts import Prompts
from .proposing import BOUNDED, SURE, ColumnDraft


def ask_unit(prompts: Prompts, draft: Draft, proposed: str | None = None) -> None:
    """Whom to hide, and which column of each table says whose row it is."""
    prompts.heading("3  Whom to hide")
    draft.tables.sort(
        key=lambda table: -_likely(table)
    )  # the table whose column names a person gives the unit its name
    first = draft.tables[0]
    likely = proposed or sure_unit(first)
    while True:
        draft.unit = prompts.ask(
            "Whose presence is to be hidden?",
            why=words.UNIT_WHY if likely else words.NO_UNIT_WHY,
            more=words.UNIT_MORE,
            read=lambda text: _unit(text, first),
            default=likely or "",
            shown=likely or "no default",
        )
        people = [column.name for column in first.columns if column.unit == SURE]
        if (
            draft.unit is not None
            or not people
            or prompts.sure(
                f"{people[0]} seems to name a person. Hide single rows all the same?",
                why=words.SURE_WHY,
                more=words.SURE_MORE,
                default=False,
            )
        ):
            break
    if draft.unit is None:
        prompts.say(words.ROW_WARNING, "yellow")
        return
    for table in list(draft.tables):
        own = draft.unit if table.column(draft.unit) else None
        if not table.public:
            table.unit = own if table is first else _owner(prompts, draft, table, own)
        if table.unit is None and table.owner is None and not table.public:
            prompts.say(f"{table.name} is left out.", "yellow")
            draft.tables.remove(table)
        elif table.unit is not None:
            table.put(ColumnDraft(table.unit, "key", why="names the unit"))
    for table in led_nowhere(draft.tables):
        prompts.say(f"{table.name} is left out: {table.owner} leads to nobody.", "yellow")
        draft.tables.remove(table)
    for table in draft.tables:
        put_keys(table, draft.tables)


def sure_unit(table: TableDraft) -> str | None:
    """The one column whose name says that it names a person. What merely may (an id, of a visit perhaps) is nobody's
    default, and neither is a row: Enter must not hide less than the data suggests."""
    people = [column.name for column in table.columns if column.unit == SURE]
    return people[0] if len(people) == 1 else None


def _likely(table: TableDraft) -> int:
    return -1 if table.public else max((column.unit for column in table.columns), default=0)


def _unit(text: str, table: TableDraft) -> str | None:
    if text == "row" and table.column("row") is None:
        return None
    if table.column(text) is None:
        names = ", ".join(column.name for column in table.columns)
        why = f"{table.name} has no column {text[:40]!r}" if text else "nobody can know that but you"
        raise CommandError("no unit", why, f"type row, or one of {names}")
    return text


def _owner(prompts: Prompts, draft: Draft, table: TableDraft, own: str | None) -> str | None:
    def read(text: str) -> str | None:
        if text in ("public", "out"):
            table.public = text == "public"
            return None
        if ARROW in text and own is None:
            table.owner = read_key(text, table, draft.tables)
            return None
        if own is not None and text != own:
            raise CommandError("two units", f"{table.name} has a column {own!r} itself", f"type {own}, public or out")
        return _unit(text, table) or _unit("", table)

    names = ", ".join(column.name for column in table.columns)
    return prompts.ask(
        f"Which column of {table.name} names the {draft.unit}?",
        why=words.OWNER_WHY.format(names=names),
        more=words.OWNER_MORE,
        read=read,
        default=own or sure_unit(table) or "out",
    )


def ask_bounds(prompts: Prompts, draft: Draft) -> None:
    """Bounds of numbers and dates, values of categories. What was said of one table is proposed for the next."""
    prompts.heading("4  What the columns may hold")
    prompts.say(words.BOUNDS_SAY)
    answered: dict[tuple[str, str], ColumnDraft] = {}
    for table in draft.tables:
        for column in table.columns:
            before = answered.get((column.name, column.kind))
            likely = (
                column
                if before is None
                else replace(column, lower=before.lower, upper=before.upper, values=before.values)
            )
            if column.kind == "category" and table.public:
                table.put(likely if likely.values else replace(likely, kind="key"))  # its groups are public anyway
            elif column.kind == "category":
                table.put(_ask_values(prompts, f"{table.name}.{column.name}", likely))
            elif column.kind in BOUNDED:
                table.put(_ask_bounds(prompts, f"{table.name}.{column.name}", likely))
            answered.setdefault((column.name, column.kind), table.column(column.name) or column)


def _ask_values(prompts: Prompts, place: str, column: ColumnDraft) -> ColumnDraft:
    def read(text: str) -> ColumnDraft:
        if text == "unknown":
            return replace(column, kind="key", values=())
        return checked(replace(column, values=listed(text)))

    values = ", ".join(column.values)
    return prompts.ask(
        f"{place}: which values are there?",
        why=words.VALUES_WHY,
        more=words.VALUES_MORE,
        read=read,
        default=values or "unknown",
    )


def _ask_bounds(prompts: Prompts, place: str, column: ColumnDraft) -> ColumnDraft:
    def read(text: str) -> ColumnDraft:
        return replace(column, kind="out", why="it has no bounds") if text == "out" else bounded(column, text)

    times = column.kind in ("date", "moment")
    ends = None if column.missing else f"{column.lower} {column.upper}"
    return prompts.ask(
        f"{place}: the {'first and last day' if times else 'smallest and largest number'} that may count?",
        why=words.DATES_WHY if times else words.BOUNDS_WHY,
        more=words.BOUNDS_MORE,
        read=read,
        default=ends or "out",
    )


def ask_budget(prompts: Prompts, draft: Draft, number: Callable[[str, str], str]) -> None:
    """How much may be spent; how much one unit counts for; who asks."""
    prompts.heading("5  The budget")

    def of(name: str) -> Callable[[str], str]:
        def read(text: str) -> str:
            try:
                return number(name, text)
            except ArgumentError as error:
                raise CommandError(name, str(error).rstrip("."), "type another number") from None

        return read

    draft.epsilon = prompts.ask(
        "How much may all releases together cost, in epsilon?",
        why=words.EPSILON_WHY,
        more=words.EPSILON_MORE,
        read=of("epsilon"),
        default=draft.epsilon,
    )
    if float(draft.epsilon) > WEAK_EPSILON:
        prompts.say(words.WEAK_WARNING, "yellow")
    draft.delta = prompts.ask(
        "And in delta?", why=words.DELTA_WHY, more=words.DELTA_MORE, read=of("delta"), default=draft.delta
    )
    draft.share()
    draft.release_epsilon = prompts.ask(
        "How much may one release cost that does not say otherwise?",
        why=words.RELEASE_WHY,
        more=words.RELEASE_MORE,
        read=of("epsilon"),
        default=draft.release_epsilon,
    )
    if draft.unit is not None:
        draft.rows = prompts.ask(
            f"For how many rows may one {draft.unit} count?",
            why=words.LIMITS_WHY,
            more=words.LIMITS_MORE,
            read=lambda text: None if text == "adviser" else of("rows")(text),
            default=draft.rows or "adviser",
        )
    draft.principal = prompts.ask(
        "Under which name do you ask?",
        why=words.PRINCIPAL_WHY,
        more=words.PRINCIPAL_MORE,
        read=of("principal"),
        default=draft.principal,
    )
