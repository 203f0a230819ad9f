"""What people type after `sfumato epsilon`, `calibrate` and `explain`: an answer, or an error in the tool's own words.

An input is a command line, its words between spaces.
"""

from __future__ import annotations

import io

from rich.console import Console

from sfumato.cli.problems import CommandError
from sfumato.cli.work.accountant import priced
from sfumato.cli.work.calibrating import Aim, calibrated
from sfumato.cli.work.events_from import TypedEvent
from sfumato.cli.work.explaining import explained
from sfumato.errors import SfumatoError
from tests.fuzz.watching import as_text, attempt

_OPTIONS = (
    "gaussian",
    "laplace",
    "rho",
    "rate",
    "steps",
    "relation",
    "delta",
    "epsilon",
    "prior",
    "rates",
    "sensitivity",
)


def _options(words: list[str]) -> dict[str, str]:
    found, name = {}, ""
    for word in words:
        if word.startswith("--") and word[2:] in _OPTIONS:
            name = word[2:]
        elif name:
            found[name], name = word, ""
    return found


def _steps(text: str | None) -> int | None:
    """As the shell's own reading gives it: a whole number of at least 1."""
    try:
        return max(int(text), 1) if text is not None and len(text) < 400 else None
    except ValueError:
        return None


def fuzz_accountant(data: bytes) -> None:
    """One command: what it shows, and its JSON."""
    words = as_text(data).split(" ")
    given = _options(words[1:])
    get = given.get
    asked = TypedEvent(
        get("gaussian"), get("laplace"), get("rho"), None, get("rate"), _steps(get("steps")), get("relation")
    )

    def work() -> object:
        if words[0] == "explain":
            rates, prior = get("rates", "0.001,0.01,0.05,0.1"), get("prior", "0.5")
            more = "--compare-deployments" in words
            return explained(get("epsilon", "1"), get("delta", "0"), prior, rates, get("relation", "add-remove"), more)
        if words[0] == "calibrate":
            what = words[1] if len(words) > 1 else "gaussian"
            without = TypedEvent(asked.gaussian, asked.laplace, None, None, asked.rate, asked.steps, asked.relation)
            aim = Aim(get("epsilon"), get("delta"), get("rho"), None)
            return calibrated(what, without, aim, get("sensitivity"), None)
        return priced(asked, get("delta"), "--compare" in words, None)

    found = attempt("command", work, allowed=(CommandError, SfumatoError), seconds=20)
    if isinstance(found, BaseException):
        return
    attempt("shown", lambda: found.show(Console(file=io.StringIO(), width=100)))  # type: ignore[attr-defined]
    attempt("json", lambda: found.document.model_dump_json())  # type: ignore[attr-defined]
