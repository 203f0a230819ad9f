"""How every command ends: with a document, shown to a person or printed as JSON, or with a problem and its exit code.

0  done                              5  the budget is short: nothing was charged
1  a fault of sfumato itself         6  the policy forbids it: nothing was charged
2  the command line is wrong         7  the ledger cannot be read or written, or does not verify
3  a file of the project is wrong    8  the release failed on the data's side: the charge stays
4  the query or plan is refused      9  a check did not hold (an audit, an attack, a bar)
                                    10  another training or run is at work on the project: nothing was charged
                                   130  interrupted
                                   141  whoever read the output went away
"""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from ..errors import PrivacyWarning
from .interrupts import no_more

if TYPE_CHECKING:
    from rich.console import Console

    from .problems import Problem
    from .screen import Screen

GONE = 141  # what a shell says of a program that wrote to a pipe without a reader


@dataclass(frozen=True)
class Outcome:
    """What a command has to say.

    document  for programs: what `--json` prints, one of cli/documents.py or of the office
    show      for people: prints it to the screen
    code      how the process ends
    """

    document: Any
    show: Callable[[Console], None]
    code: int = 0


class _Door:
    """Has this command opened data? From then on nothing unexpected is quoted or traced: it might hold a cell."""

    opened = False


def data_opens() -> None:
    """Say it before a release begins."""
    _Door.opened = True


def tell(work: Callable[[], Outcome], *, json: bool, debug: bool) -> None:
    """Do a command's work and say how it went. Nothing but a problem that names no data ever leaves here."""
    _Door.opened = False
    try:
        with _warnings_told():
            outcome = work()
    except (typer.Exit, typer.Abort):
        raise
    except BrokenPipeError:
        _end_quietly()
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            no_more()
        from .problems import problem_of

        problem = problem_of(error)
        if debug:
            _trace(error, problem)
        with _reader():
            complain(problem, json=json)
        raise typer.Exit(problem.code) from None
    with _reader():
        if json:
            print_json(outcome.document)
        else:
            outcome.show(screen())
        sys.stdout.flush()
    if outcome.code:
        raise typer.Exit(outcome.code)


def screen(*, errors: bool = False) -> Screen:
    """The terminal, or the plain text that stands for it in a pipe."""
    from .screen import screen as made

    return made(errors=errors)


def print_json(document: Any) -> None:
    """JSON, in ASCII where the reader's encoding is no Unicode: JSON loses nothing by it."""
    from ..plain_text import seen_json
    from .documents import json_text

    plain = not (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")
    sys.stdout.write(seen_json(json_text(document), ascii_only=plain) + "\n")


def complain(problem: Problem, *, json: bool) -> None:
    """The three lines, or their document."""
    if json:
        print_json(problem.document())
        sys.stdout.flush()
    else:
        problem.show(screen(errors=True))


def _trace(error: BaseException, problem: Problem) -> None:
    """Plain lines of code, never the values in them; none once data was opened, unless it surely failed before."""
    if _Door.opened and not problem.before_data:
        sys.stderr.write("(no trace: --debug shows none once data was opened; rehearse the query instead)\n")
        return
    import traceback

    traceback.print_exception(error)


@contextlib.contextmanager
def _reader() -> Iterator[None]:
    """Whoever reads the output may go away before its end; that is no error of ours. A disk may be full."""
    try:
        yield
    except BrokenPipeError:
        _end_quietly()
    except OSError as error:
        raise typer.Exit(unwritten(error)) from None


def unwritten(error: OSError) -> int:
    """The output has no place to go to: says so, and gives the code."""
    from .problems import FILE, Problem

    _let_go()
    why = (error.strerror or "the system refused it").lower()
    fix = "make room, or send it elsewhere; what a query has answered is in the ledger, and free"
    complain(Problem("the output cannot be written", why, fix, FILE), json=False)
    return FILE


def _end_quietly() -> None:
    _let_go()
    raise typer.Exit(GONE) from None


def _let_go() -> None:
    with contextlib.suppress(OSError, ValueError):  # the interpreter flushes once more when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextlib.contextmanager
def _warnings_told() -> Iterator[None]:
    """Warnings of ours are notes on stderr. Those of others are dropped: what they say might hold data."""
    seen: set[str] = set()

    def note(message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
        if issubclass(category, PrivacyWarning) and str(message) not in seen:
            seen.add(str(message))
            from .screen import say
            from .shell_words import in_shell

            say(screen(errors=True), in_shell(str(message)), first="note  ", style="yellow")

    with warnings.catch_warnings():
        warnings.simplefilter("always", PrivacyWarning)
        warnings.showwarning = note
        yield
