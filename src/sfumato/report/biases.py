"""What limits took from the numbers of an answer, as far as the answer itself knows.

An answer to SQL may have a method `bias(name)`: None, or all 0, for a column that no limit touches, else for each row
what limits took away, as (amount, low, high) or a plain number, and None where nobody knows. An answer without it says
nothing.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from . import words


class Taken(NamedTuple):
    """What limits took from a number: an estimate and its interval."""

    amount: float
    low: float
    high: float


def taken(answer: Any, name: str) -> list[Taken | None] | None:
    """Of every row of a column, None where nobody knows; None of a column that no limit touches."""
    ask = getattr(answer, "bias", None)
    amounts = ask(name) if callable(ask) else None
    return None if amounts is None or all(each == 0 for each in amounts or [1]) else [_of(each) for each in amounts]


def _of(value: Any) -> Taken | None:
    parts = tuple(value) if isinstance(value, list | tuple) else (value,) * 3
    if len(parts) != 3 or not all(isinstance(each, int | float) and math.isfinite(each) for each in parts):
        return None
    return Taken(*map(float, parts))


def as_json(taken: Taken | None) -> dict[str, Any] | None:
    """For a document: numbers, and a text."""
    if taken is None:
        return None
    width = max(taken.high - taken.amount, taken.amount - taken.low)
    between = f" ({words.number(taken.low, width)} to {words.number(taken.high, width)})" if width else ""
    return taken._asdict() | {"text": f"{words.number(taken.amount, width or None)}{between}"}


def sentence(name: str, taken: list[Taken | None], sides: str = "larger") -> dict[str, Any]:
    """What is known of a column, in words; sides: where the truth may lie, if that is not known."""
    measured = sum(each is not None for each in taken)
    if not taken:
        text = "there are no rows, so nothing was taken from them"
    elif not measured:
        text = f"what limits took away is not known: the true numbers may be {sides}"
    elif measured < len(taken):
        text = f"limits took away what stands beside it; of {len(taken) - measured} number(s) that is not known"
    else:
        text = "limits took away what stands beside it, and the interval holds that, too"
    return {"column": name, "known": measured > 0, "words": text}


def without(table: dict[str, Any]) -> dict[str, Any]:
    """A table where what limits took is withheld."""
    rows = [[cell | {"bias": None} if "bias" in cell else cell for cell in row] for row in table["rows"]]
    return table | {"rows": rows}
