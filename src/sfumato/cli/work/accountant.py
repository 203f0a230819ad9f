"""`sfumato epsilon`: what an event costs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.text import Text

from ... import checks, record
from ...accounting.compare import Comparison, compare
from ...accounting.interval import Interval
from ...accounting.price import epsilon as price
from ...errors import UnsupportedEventError
from ...events import Event
from ...report.explanations import explain
from ..documents import Document, Part
from ..problems import REFUSED, CommandError
from ..screen import columns, facts
from ..telling import Outcome
from .event_words import words
from .events_from import TypedEvent
from .numbers import Number, exact_or_none
from .planned_training import training

_ENDS = checks.EPSILON_RANGE


class Between(Part):
    """A number known from both sides. `upper` is the one to report."""

    lower: float
    upper: float


class Method(Part):
    """What one accountant says; `guarantee` false: an approximation that must not be reported."""

    method: str
    epsilon: float | None
    lower: float | None
    guarantee: bool
    milliseconds: float
    note: str


class EpsilonDocument(Document):
    """The price of an event at a delta, from both sides."""

    document: Literal["epsilon/1"] = "epsilon/1"
    epsilon: Between
    delta: float
    relation: str
    event: Any
    words: str
    sentences: list[str]
    accountants: list[Method] | None = None


def priced(typed: TypedEvent, delta: str | None, side_by_side: bool, project: Path | None) -> Outcome:
    """The price of the event that the options describe."""
    at = exact_or_none(delta, "--delta")
    planned = None if project is None else training(project)
    at = planned.delta if at is None and planned is not None else at
    event = typed.built() if planned is None or typed.noises not in ([], ["--gaussian"]) else planned.event(typed)
    price = _price(event, at or 0)
    beside = _compared(event, at) if side_by_side else None
    body = EpsilonDocument(
        epsilon=Between(lower=price.lower, upper=price.upper),
        delta=float(at or 0),
        relation=event.relation,
        event=record.encode(event),
        words=words(event),
        sentences=sentences_of(price.upper, at, event.relation),
        accountants=None if beside is None else _methods(beside),
    )

    def show(console: Console) -> None:
        lines = [
            ("event", body.words),
            ("neighbours", body.relation),
            ("epsilon", price_in_words(body.epsilon, body.delta)),
        ]
        facts(console, [*lines, *(("means", sentence) for sentence in body.sentences)])
        if body.accountants is not None:
            console.print()
            _side_by_side(console, body.accountants)

    return Outcome(body, show)


def sentences_of(epsilon: float, delta: Number | None, relation: str) -> list[str]:
    """The odds of an epsilon; none where it is out of any sane size, and nothing can be said."""
    if not float(_ENDS[0]) <= epsilon <= float(_ENDS[1]):
        return []
    return list(explain(epsilon, delta=delta or None, relation=relation).sentences())[:2]


def price_in_words(epsilon: Between, delta: float) -> Text:
    """A price for the screen: the end to report first."""
    shown = Text(f"{epsilon.upper:.6g}", style="bold")
    shown.append(f" at delta = {delta:g}" if delta else "", style="not bold")
    return shown.append(f", and at least {epsilon.lower:.6g}", style="not bold")


def _price(event: Event, delta: Number) -> Interval:
    try:
        return price(event, delta=delta)
    except UnsupportedEventError as problem:
        if not delta:
            raise CommandError(
                "it has no epsilon without a delta",
                problem.cause,
                "give --delta, such as --delta 1e-6: well below one over the number of people",
            ) from None
        raise CommandError("no accountant can price it", str(problem), "describe it by other events", REFUSED) from None


def _compared(event: Event, delta: Number | None) -> Comparison:
    if not delta:
        raise CommandError("--compare needs a delta", "accountants differ only above delta = 0", "give --delta 1e-6")
    return compare(event, delta=delta)


def _methods(comparison: Comparison) -> list[Method]:
    return [
        Method(
            method=row.method,
            epsilon=row.epsilon,
            lower=row.lower,
            guarantee=row.guarantee,
            milliseconds=1e3 * row.seconds,
            note=row.note,
        )
        for row in comparison
    ]


def _side_by_side(console: Console, rows: list[Method]) -> None:
    lines = []
    for row in rows:
        size = "–" if row.epsilon is None else f"{row.epsilon:.6g}"
        least = "" if row.lower is None else f"{row.lower:.6g}"
        style = "" if row.guarantee else "dim"
        note = re.split(r"[.:] ", row.note.removeprefix("cannot: "))[0].rstrip(".")
        lines.append([Text(cell, style=style) for cell in (row.method, size, least, f"{row.milliseconds:.1f}", note)])
    columns(console, ("accountant", "epsilon", "at least", "ms", ""), lines, right=(1, 2, 3))
