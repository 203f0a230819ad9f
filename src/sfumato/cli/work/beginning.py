"""`sfumato init`: from questions or flags to a project folder."""

from __future__ import annotations

import getpass
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text

from ... import checks
from ...errors import ArgumentError
from ...example import FILES, write_example
from ..documents import Document, Part
from ..problems import FILE, CommandError
from ..screen import say, screen
from ..telling import Outcome
from . import wizard_words as words
from .draft import Draft, in_sql, plain_name
from .flags import Flags, drafted, say_columns
from .making import IGNORED, YAML, NewParts, ignore, open_ledger_of, whole_or_nothing, write_yaml
from .numbers import exact
from .prompts import Prompts
from .wizard import ask_bounds, ask_budget, ask_unit
from .wizard_files import ask_dates, ask_kinds, ask_tables
from .wizard_views import ask_views, fitting_views
from .writing_yaml import Todo, written

_NUMBER = re.compile(r"(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?")


class TodoPart(Part):
    line: int
    what: str


class InitDocument(Document):
    """What `sfumato init --json` prints. `ready` is false while something is to be filled in."""

    document: Literal["init/1"] = "init/1"
    folder: str
    files: list[str]
    accounts: list[str]
    ready: bool
    todo: list[TodoPart]
    notes: list[str]
    next: list[str]


@dataclass(frozen=True)
class _Result:
    folder: Path
    parts: NewParts
    todos: tuple[Todo, ...]
    notes: tuple[str, ...]
    next: tuple[str, ...]

    def outcome(self) -> Outcome:
        body = InitDocument(
            folder=str(self.folder),
            files=list(self.parts.files),
            accounts=list(self.parts.changes),
            ready=not self.todos,
            todo=[TodoPart(line=each.line, what=each.what) for each in self.todos],
            notes=list(self.notes),
            next=list(self.next),
        )
        return Outcome(body, self.show)

    def show(self, console: Console) -> None:
        where = "here" if self.folder.resolve() == Path.cwd() else f"in {self.folder}"
        say(console, ", ".join(self.parts.files), first=Text(f"Made {where}: ", style="bold green"))
        for note in (*self.notes, *self.parts.changes):
            say(console, note, first="- ", style="dim")
        if self.todos:
            say(console, Text(f"Still to fill in, in {YAML}:", style="bold yellow"))
            for todo in self.todos:
                say(console, todo.what, first=f"  line {todo.line:<3} ")
        say(console, Text("Next:", style="bold"))
        for line in self.next:
            console.print(Text(f"  {line}", style="cyan"), soft_wrap=True)


def begin(folder: Path | None, flags: Flags, *, example: bool, asking: bool) -> Outcome:
    """Make a project: the example, or by questions where somebody can answer them, or by flags."""
    if example:
        if flags != Flags():
            raise CommandError(
                "the example is whole as it is", "other flags stand beside --example", "leave them, or --example, out"
            )
        return begin_example(Path("hospital") if folder is None else folder)
    place = Path() if folder is None else folder
    if place.exists() and not place.is_dir():
        raise CommandError(f"{place} is no folder", "a file of that name is in the way", "give another folder", FILE)
    if asking and sys.stdin.isatty() and sys.stdout.isatty():
        return _by_questions(place, flags)
    if not flags.sources:
        raise CommandError(
            "no data is named",
            "questions can only be asked in a terminal",
            "give --source FILE (and --unit COLUMN), or --example for a made-up hospital",
        )
    _refuse_to_replace(place)
    draft, notes = drafted(_empty(place, flags), flags)
    draft.views, more = fitting_views(draft)
    return _made(draft, [*notes, *more])


def begin_example(folder: Path) -> Outcome:
    """The made-up hospital as a project. Files that are there already are never replaced."""
    if there := [name for name in FILES if (folder / name).exists()]:
        raise CommandError(
            f"{folder / there[0]} is there already", "nothing is overwritten", "give another folder, or remove it", FILE
        )
    with whole_or_nothing(folder, "data", "plan.yaml"):
        write_example(folder)
        ignore(folder, [folder / name for name in FILES if name.startswith("data/")])
        parts = open_ledger_of(folder)
    query = 'sfumato query "SELECT ward, COUNT(*) AS n, AVG(cost) AS mean FROM visits GROUP BY ward"'
    more = NewParts((*parts.files, *(name for name in FILES if name != YAML)), parts.changes)
    return _Result(
        folder, more, (), (), (*_enter(folder), "sfumato describe", query, "sfumato run plan.yaml")
    ).outcome()


def _by_questions(folder: Path, flags: Flags) -> Outcome:
    prompts = Prompts(screen())
    prompts.heading("sfumato init")
    prompts.say(words.WELCOME)
    draft = prompts.talk(lambda: _asked(prompts, folder, flags))
    prompts.console.print()
    return _made(draft, [])


def _asked(prompts: Prompts, folder: Path, flags: Flags) -> Draft:
    """All questions, from the first file to the last word."""
    if (folder / YAML).exists() and not prompts.sure(
        f"Replace {folder / YAML}?", why=words.OVERWRITE_WHY, more=words.OVERWRITE_MORE, default=False
    ):
        _refuse_to_replace(folder)
    draft = _empty(folder, flags)
    draft.tables = ask_tables(prompts, folder, flags)
    say_columns(draft, flags)
    for table in draft.tables:
        ask_kinds(prompts, table)
        ask_dates(prompts, table, flags)
    ask_unit(prompts, draft, next((unit for unit in flags.units if "=" not in unit), None))
    ask_bounds(prompts, draft)
    ask_budget(prompts, draft, number)
    draft.views = ask_views(prompts, draft)
    text, _ = written(draft)
    prompts.heading(f"6  {folder / YAML}")
    prompts.console.print(Syntax(text, "yaml", background_color="default", word_wrap=True))
    if not prompts.sure("Write it?", why=words.WRITE_WHY, more=words.WRITE_MORE, default=True):
        raise CommandError("nothing was written", "you said no", "run `sfumato init` again")
    return draft


def _empty(folder: Path, flags: Flags) -> Draft:
    name = flags.name or plain_name(folder.resolve().name, "project")
    draft = Draft(folder, name, [], principal=_user())
    for field, typed in (("epsilon", flags.epsilon), ("delta", flags.delta), ("rows", flags.rows)):
        if typed is not None:
            setattr(draft, field, _checked_number(field, typed))
    draft.share()
    return draft


def _made(draft: Draft, notes: Sequence[str]) -> Outcome:
    text, todos = written(draft)
    data = [table.look.path for table in draft.tables]
    with whole_or_nothing(draft.folder):
        write_yaml(draft.folder, text)
        ignore(draft.folder, data)
        parts = NewParts((YAML, IGNORED)) if todos else open_ledger_of(draft.folder)
    after = (f"fill in {YAML}, then: sfumato ledger open",) if todos else _queries(draft)
    return _Result(draft.folder, parts, tuple(todos), tuple(notes), (*_enter(draft.folder), *after)).outcome()


def _enter(folder: Path) -> list[str]:
    return [] if folder.resolve() == Path.cwd() else [f"cd {folder}"]


def _queries(draft: Draft) -> tuple[str, ...]:
    """Commands that work on this very project."""
    table = next(table for table in draft.tables if not table.public)
    group = next((column.name for column in table.used if column.kind in ("category", "flag")), None)
    question = f"SELECT COUNT(*) AS n FROM {table.name}"
    if group is not None:
        sql = in_sql(group).replace('"', '\\"')
        question = f"SELECT {sql}, COUNT(*) AS n FROM {table.name} GROUP BY {sql}"
    return "sfumato describe", f'sfumato quote "{question}"', f'sfumato query "{question}"'


def _refuse_to_replace(folder: Path) -> None:
    if (folder / YAML).exists():
        raise CommandError(
            f"{folder / YAML} is there already",
            "nothing is overwritten without your word",
            "give another folder, edit the file, or run `sfumato init` in a terminal and say so",
            FILE,
        )


def number(name: str, text: str) -> str:
    """A number of the budget, or a name, as sfumato.yaml will hold it; refused as its use would refuse it."""
    if name == "principal":
        return checks.label(text, name)
    if not _NUMBER.fullmatch(text):
        raise checks.refuse(name, text, "a number such as 8, 0.5 or 1e-6")
    number = exact(text, f"--{name}")
    if name == "epsilon":
        checks.epsilon(number, name, warn=False)
    elif name == "delta":
        checks.delta(number, name, zero=True)
    else:
        checks.positive(number, name)
    return text


def _checked_number(name: str, text: str) -> str:
    try:
        return number(name, text)
    except ArgumentError as error:
        raise CommandError(f"--{name} {text} is not allowed", error.cause, error.fix or "") from None


def _user() -> str:
    try:
        return checks.label(getpass.getuser(), "principal")
    except (ArgumentError, OSError, KeyError, ImportError):
        return "me"
