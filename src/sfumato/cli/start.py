"""Where `sfumato` starts, and where a command line that cannot be read ends."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from ..errors import install_line

_NEEDED = ("typer", "rich", "pydantic", "yaml")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and end the process with its code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if missing := [name for name in _NEEDED if find_spec(name) is None]:
        sys.stderr.write(
            "the command line is not installed\n"
            f"  why  its packages are an extra, and some are not there: {', '.join(missing)}\n"
            f"  fix  {install_line('cli')}\n"
        )
        sys.exit(3)
    try:
        code = _run(words)
    except KeyboardInterrupt:
        from .interrupts import no_more

        no_more()
        sys.stderr.write("interrupted\n  why  it was stopped by hand\n  fix  run it again\n")
        code = 130
    sys.exit(code)


def _run(words_typed: Sequence[str]) -> int:
    _encodings()
    from .loading import loading

    with loading():
        import typer

        from .app import command_of
        from .telling import GONE, unwritten

    # A query may begin with a comment: two dashes and a blank are no option.
    words = [f" {each}" if each[:2] == "--" and each[2:3].isspace() else each for each in words_typed]
    try:
        code = command_of(words[0] if words else None)(args=words, prog_name="sfumato", standalone_mode=False)
    except _misuses() as error:
        return _misused(error, words_typed)
    except typer.Abort:
        return 130
    except BrokenPipeError:  # of help that nobody reads to its end
        return GONE
    except OSError as error:  # of help on a full disk: commands tell theirs themselves
        return unwritten(error)
    except SystemExit as end:  # rich ends so, with 1, where its reader has gone
        return GONE if end.code == 1 else int(end.code or 0)
    return code if isinstance(code, int) else 0


def _encodings() -> None:
    """Where output is no Unicode, signs are replaced rather than refused; where it is closed, it goes nowhere."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
    if any((getattr(each, "encoding", None) or "utf-8").lower() != "utf-8" for each in (sys.stdout, sys.stderr)):
        from .screen import plain_signs

        plain_signs()


def _misuses() -> tuple[type[Exception], ...]:
    """What the parser of the command line raises: click's, which newer typers bring along and older ones import."""
    import typer

    parents = typer.BadParameter.__mro__
    return tuple(each for each in parents if issubclass(each, Exception) and each.__name__ == "ClickException")


def _misused(error: Any, words: Sequence[str]) -> int:
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        return 2
    from .problems import misuse
    from .telling import complain

    problem = misuse(error)
    complain(problem, json="--json" in words)
    return problem.code
