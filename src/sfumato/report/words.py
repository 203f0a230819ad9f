"""The words of reports: numbers, times, states and limits as a reader without training takes them in."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Any

from ..plain_text import percent, printable
from .accounts.about import UNKNOWN, WITHHELD
from .accounts.history import moment
from .accounts.releases import Released
from .accounts.statement import digits_above

_TOGETHER = re.compile(r"(?<=\d) (?=%)|(?<=±) (?=\d)")  # no line ends there
LONGEST = 4000  # letters of one text on a page
MOST = 20_000  # letters of one text in a document

__all__ = [
    "LONGEST", "MOST", "UNKNOWN", "WITHHELD", "above", "bar", "cut", "day", "exponent", "figure", "mechanism", "near",
    "number", "percent", "price", "state_words", "visible",
]  # fmt: skip

STATES = {
    "answered": ("answered", "It was paid, it ran, and the answer was stored."),
    "failed": (
        "failed",
        "It was paid and failed. No answer left; the charge stays, because that a run fails may depend on the data.",
    ),
    "spent": ("paid, not run", "It was paid, and the data has not been opened under this receipt."),
    "held": ("room held", "Room was set aside for it. Nothing is paid before a part of it is drawn."),
    "opened": (
        "opened, no answer",
        "The data was opened and no answer is stored: it still runs, or its process ended. The charge stays, and this "
        "receipt will give no other answer.",
    ),
    "in parts": (
        "paid as a list",
        "A list of releases was paid as one. Its parts run one by one, at no further charge.",
    ),
}


def state_words(row: Released) -> tuple[str, str]:
    """A short word for the state of a release, and a sentence."""
    short, sentence = STATES.get(row.state, (row.state, "This version of sfumato does not know that state."))
    if row.state == "answered" and row.answer is None:
        sentence = "It was paid, and answered in a session or in the user's own loop. Such answers are not stored."
    if row.part_of is not None:
        sentence += f" It was paid as part of a list, with entry {row.part_of}, and charged nothing by itself."
    return short, sentence


def exponent(text: str) -> str:
    """1e-07 as 1e-7."""
    return re.sub(r"e([+-])0+(?=\d)", r"e\1", text)


def above(value: Fraction) -> str:
    """Six digits, rounded up: a price is never told smaller than it is."""
    return exponent(digits_above(value))


def near(value: Fraction | float | None) -> str:
    """Four digits."""
    return "unknown" if value is None else exponent(f"{float(value):.4g}")


def figure(value: float | str) -> str:
    """A number of an audit, or the word that stands for one without end."""
    return value if isinstance(value, str) else near(value)


def price(epsilon: Fraction | None, delta: Fraction | None, native: Mapping[str, Fraction]) -> str:
    """The price in one line: epsilon at its delta, or the native parameters where no delta was named (rho, in which
    budgets are told, for mu^2)."""
    if epsilon is not None:
        return f"epsilon = {above(epsilon)}" + (f" at delta = {above(delta)}" if delta else "")
    sizes = {
        "rho" if name == "mu^2" else name: value / 2 if name == "mu^2" else value for name, value in native.items()
    }
    return ", ".join(f"{name} = {above(value)}" for name, value in sizes.items()) or UNKNOWN


def day(text: str | None) -> str:
    """A time of the ledger, to the minute."""
    time = moment(text)
    return UNKNOWN if time is None else f"{time.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def number(value: Any, width: float | None = None) -> str:
    """With three digits of the error bar, as the answer itself prints them."""
    if value is None:
        return "NULL"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value.isoformat(sep=" ") if isinstance(value, datetime) else printable(value)
    if width is None or width == 0 or not math.isfinite(width):
        return f"{value:,.0f}" if float(value).is_integer() and abs(value) < 1e15 else exponent(f"{value:,.6g}")
    if not 1e-9 < width < 1e15 or abs(value) >= 1e15:
        return exponent(f"{value:.6g}")
    return f"{value:,.{max(0, 2 - math.floor(math.log10(width)))}f}"


def bar(width: float | None, of: Any = None) -> str:
    """How far off, in words."""
    if width is None or width == 0:
        return ""
    if not math.isfinite(width):
        return "± ∞"
    if isinstance(of, datetime):
        return f"± {width / 3.6e9:,.3g} hours"
    return f"± {number(width, width)}" + (" days" if isinstance(of, date) else "")


def without_advice(note: str) -> str:
    """A note of an answer, without what whoever asks could write in Python next time: a report has other readers."""
    return note.partition("; limits='advise' ")[0]


def mechanism(name: str) -> str:
    """The kind of a plan: plan-laplace/1 as "laplace"."""
    kind = name.removeprefix("plan-").partition("/")[0].replace("-", " ") if name.startswith("plan-") else name
    return "SQL query" if kind == "sql" else kind


def cut(text: str, most: int, more: str = "") -> str:
    """No longer than that, and it says so."""
    return text if len(text) <= most else f"{text[:most]} ... (cut: {len(text)} letters in all{more})"


def visible(text: str) -> str:
    """For a page: marks that turn the direction of letters or hide them are written out, and long texts are cut."""
    return _TOGETHER.sub("\u00a0", printable(cut(text, LONGEST, "; the JSON form has more"), lines=True))
