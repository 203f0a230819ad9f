"""What went wrong, why, and how to mend it, in three lines; and the code that the process ends with."""

from __future__ import annotations

import difflib
import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

from .. import errors
from ..errors import SfumatoError
from ..office.problems import OfficeError
from .documents import Document
from .shell_words import Place, fix_of, in_shell

if TYPE_CHECKING:
    from rich.console import Console

    from ..query.refusal import QueryError

FAULT, USAGE, FILE, REFUSED, BUDGET, POLICY, LEDGER, DATA, CHECK, BUSY, INTERRUPTED = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 130


class CommandError(SfumatoError):
    """A command cannot go on; says what, why and how to mend it."""

    def __init__(self, what: str, why: str, fix: str, code: int = USAGE) -> None:
        super().__init__(f"{what}: {why}; {fix}", cause=why, fix=fix, code="command")
        self.what, self.why, self.exit_code = what, why, code


class ProblemDocument(Document):
    """What `--json` prints where a command fails."""

    document: Literal["problem/1"] = "problem/1"
    what: str
    why: str
    fix: str
    code: int
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True)
class Problem:
    """Three lines and a code.

    before_data  is it known that no data was open when it happened?
    file, line   where in a file of the project it is
    """

    what: str
    why: str
    fix: str
    code: int
    before_data: bool = False
    file: str | None = None
    line: int | None = None

    def show(self, console: Console) -> None:
        from rich.text import Text

        from .screen import say

        say(console, self.what, style="bold red")
        for name, text in (("why", self.why), ("fix", self.fix)):
            for number, line in enumerate(_fitting(text.splitlines() or [""], console)):
                say(console, line, first=Text(f"  {name}  " if number == 0 else "       ", style="dim"))

    def document(self) -> ProblemDocument:
        return ProblemDocument(
            what=self.what, why=self.why, fix=self.fix, code=self.code, file=self.file, line=self.line
        )


_HELP = "see --help of this command"

# The most particular first: what happened, what to do where the error does not say it, the code.
_KINDS: tuple[tuple[type[BaseException], str, str, int], ...] = (
    (errors.PolicyError, "the policy forbids it", "ask somebody with that duty, or ask for an approval", POLICY),
    (
        errors.BudgetError,
        "the budget refuses it; nothing was charged",
        "ask for less, or have it raised: `sfumato ledger limit`",
        BUDGET,
    ),
    (errors.ReceiptError, "the ledger refuses it; nothing was charged", "see `sfumato ledger history`", REFUSED),
    (errors.BusyError, "the project is busy; nothing was charged", "try again, or wait: --wait SECONDS", BUSY),
    (errors.LedgerError, "the ledger cannot be used", "see `sfumato ledger verify`", LEDGER),
    (errors.DataError, "the release failed", "`sfumato rehearse` runs the query on made-up rows, free", DATA),
    (errors.PlanError, "the query is refused; nothing was charged", "see docs/sql.md for what can be asked", REFUSED),
    (errors.ArgumentError, "that is not allowed", _HELP, USAGE),
    (errors.UnsupportedEventError, "that has no price", "ask for another notion, or another mechanism", REFUSED),
    (errors.RecordError, "that cannot be read", "give JSON that sfumato wrote", FILE),
    (SfumatoError, "it cannot be done", _HELP, REFUSED),
)

_REASONS = {"usage": USAGE, "file": FILE, "refused": REFUSED, "budget": BUDGET, "interrupted": INTERRUPTED}
_LESS = "ask for less (smaller --epsilon, --delta or --rho, wider --accuracy)"
# What helps at a command line, by the office's word for the case.
_SHELL_FIXES = {
    "out-unwritable": "give --out a file in a folder that exists; for a pipe, leave it out and give --format",
    "out-own": "give --out another name",
    "rehearsal": "change the query; --debug shows where it failed",
    "one-file": "give --out or --checkpoint another name",
    "checkpoint": "remove it, or give another --checkpoint",
    "out-read": "give --out another name",
    "checkpoint-read": "give --checkpoint another name",
    "not-agreed": "run it again: the price is shown anew",
}

_EXTRAS = {
    **dict.fromkeys(("sqlglot", "pyarrow", "duckdb", "pandas"), "sql"),
    **dict.fromkeys(("jinja2", "markupsafe"), "report"),
    "matplotlib": "plots",
    "psycopg": "postgres",
    "pyspark": "spark",
    "torch": "learn",
}


def problem_of(error: BaseException, place: Place = "options") -> Problem:
    """The three lines for an error, in the words of where one stands. Only errors of ours are quoted: theirs never hold
    a value of the data."""
    if isinstance(error, CommandError):
        early = error.exit_code in (USAGE, REFUSED, BUDGET, POLICY)
        return Problem(error.what, error.why, error.fix or "", error.exit_code, early)
    if isinstance(error, OfficeError):
        code = _REASONS[error.reason]
        return Problem(error.what, in_shell(error.why), _shell_fix(error), code, code in (USAGE, REFUSED, BUDGET))
    if isinstance(error, SfumatoError) and hasattr(error, "what"):  # a file of the project: project.ProjectError
        file, line = getattr(error, "file", None), getattr(error, "line", None)
        why, fix = (in_shell(getattr(error, part, ""), "file") for part in ("why", "fix"))
        return Problem(error.what, why, fix, FILE, True, file, line)
    if isinstance(error, KeyboardInterrupt):
        return Problem("interrupted", "it was stopped by hand", "run it again", INTERRUPTED)
    if isinstance(error, RecursionError | MemoryError):
        return Problem("sfumato gave up", "it is too large to work on", "ask for less at once", REFUSED)
    for kind, what, fix, code in _KINDS:
        if isinstance(error, kind) and isinstance(error, SfumatoError):
            early = isinstance(error, errors.BudgetError | errors.PlanError | errors.ArgumentError | errors.BusyError)
            why, fix = (in_shell(part, place) for part in _why_and_fix(error, fix, place))
            return Problem(what, why, fix, code, early)
    if isinstance(error, ModuleNotFoundError) and error.name:
        return Problem("a package is not installed", *lacking(error.name), FILE, True)
    if isinstance(error, OSError) and getattr(error, "filename", None) is not None:
        return _of_system(error)
    return Problem(
        "sfumato itself failed",
        f"an unexpected {type(error).__name__}, whose text is not shown because it might hold data",
        "please report it, with what --debug shows in `sfumato rehearse`",
        FAULT,
    )


def _shell_fix(error: OfficeError) -> str:
    """How to mend it, by options and commands."""
    from ..office.shortage import LESS, ShortageError
    from .work.raising import raise_command

    if isinstance(error, ShortageError):
        less = _LESS if error.less == LESS else error.less
        return f"{less}, or raise the limit:\n{raise_command(error.account, error.enough)}"
    return _SHELL_FIXES.get(error.case, in_shell(error.fix or ""))


def lacking(module: str) -> tuple[str, str]:
    """Which package is needed, and how to install it: with all that its extra brings, so that nobody asks thrice."""
    name = module.partition(".")[0]
    fix = errors.install_line(_EXTRAS[name]) if name in _EXTRAS else f"pip install {name}"
    return f"{name} is needed for this", fix


def misuse(error: Any) -> Problem:
    """What the reader of the command line did not understand."""
    text = str(error.format_message()).strip().rstrip(".")
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "sfumato"
    why, _, hint = text.replace(" (Possible options: ", ". Did you mean one of ").partition(". Did you mean ")
    names = hint.rstrip("?)").removeprefix("one of ")
    guess = f"did you mean {'one of ' if ', ' in names else ''}{names}? " if names else ""
    return Problem("the command line is wrong", why[:1].lower() + why[1:], f"{guess}see `{path} --help`", USAGE)


def meant(name: str, names: list[str]) -> str | None:
    """The known name that a wrong one was probably meant to be."""
    lower = {each.lower(): each for each in names}
    close = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.6)
    return lower[close[0]] if close else None


def _why_and_fix(error: SfumatoError, fix: str, place: Place) -> tuple[str, str]:
    """Our errors say the cause and then the fix; here each gets a line of its own."""
    if error.code == "query":  # its kind is imported with the engine's parser, which most commands do without
        return error.cause, _closest(cast("QueryError", error))
    if isinstance(error, errors.DataError):
        return error.cause, fix
    if isinstance(error, errors.PolicyError) and error.act is not None:
        return error.cause, _ask(error.act)
    return error.cause, fix_of(error.code, place) or error.fix or fix


def _ask(act: Any) -> str:
    """An act is three texts, which whoever approves it reads, too."""
    words = " ".join(shlex.quote(part) for part in (act.do, act.on, act.what))
    return (
        f"ask: `sfumato ledger ask {words} --reason TEXT`\n"
        "others approve it by the name that this gives: `sfumato ledger approve NAME --reason TEXT`; then try again"
    )


def _closest(error: QueryError) -> str:
    """Names that exist, the one that was probably meant before them."""
    guess = meant(error.name, list(error.choices)) if error.name else None
    return f"did you mean {guess}? There are: {', '.join(error.choices)}" if guess else error.rewrite


def _of_system(error: OSError) -> Problem:
    """A file that cannot be read or written. Its name is public; what is in it was not read."""
    from pathlib import Path

    name = Path(str(error.filename)).name
    if isinstance(error, FileNotFoundError):
        return Problem(f"{name} is not there", "there is no such file or folder", "give the right path", FILE)
    if isinstance(error, PermissionError):
        return Problem(f"{name} cannot be used", "this user may not", "give this user the right to it", FILE)
    if isinstance(error, IsADirectoryError | NotADirectoryError | FileExistsError):
        return Problem(
            f"{name} cannot be used", "there is something else at that path", "give another path", FILE, True
        )
    why = (error.strerror or "the system refused it").lower()
    return Problem(f"{name} cannot be used", why, "see to the disk, then try again", FILE)


def _fitting(lines: list[str], console: Console) -> list[str]:
    """The clause of a query and the marks below it, cut on both sides where the terminal is narrower: wrapped, the
    marks would stand under the wrong words."""
    room = console.width - 7
    fitting = list(lines)
    for place, marks in enumerate(lines):
        code = lines[place - 1] if place else ""
        if console.soft_wrap or not re.fullmatch(r" +\^+", marks) or max(len(code), len(marks)) <= room:
            continue
        head = re.match(r"\d+ \| ", code)
        margin = head.end() if head else 0
        start = max(min(marks.index("^") - 8, len(code) - room + margin), margin)
        left = "..." if start > margin else ""
        cut = code[start + len(left) : start + room - margin]
        fitting[place - 1] = code[:margin] + left + cut
        fitting[place] = " " * margin + marks[start : start + room - margin]
    return fitting
