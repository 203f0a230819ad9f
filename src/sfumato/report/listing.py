"""The releases of an account, each with its question, its answer and what changed the numbers besides noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from ..ledger.ledger import Ledger
from . import questions, stored, words
from .accounts.plans import bound_words
from .accounts.releases import Released
from .accounts.variants import at_own_delta
from .redaction import Redaction

MOST_ANSWERS = 100  # releases whose answers are shown, the latest first
MOST_ROWS = 20  # of an answer; the report of a release shows more
_MOST_NOTES = 12
_LATER = f"The answers of the latest {MOST_ANSWERS} releases are shown here: this one has its own report."


def listed(ledger: Ledger, rows: Sequence[Released], hide: Redaction) -> list[dict[str, Any]]:
    """The latest release first."""
    stored.know_queries()
    latest = list(reversed(rows))
    shown = {row.id for row in latest[:MOST_ANSWERS]}
    stored_answers = ledger.stored_answers(row.id for row in latest if row.id in shown and row.answer is not None)
    lines = []
    for row in latest:
        if row.id in shown:
            answer = stored.shown(row, stored.answered(row, stored_answers.get(row.id)), hide, MOST_ROWS)
        else:
            answer = stored.nothing(_LATER)
        lines.append(_line(row, hide) | _question(row, hide) | {"answer": answer})
    return lines


def _line(row: Released, hide: Redaction) -> dict[str, Any]:
    """A release in one line."""
    short, _ = words.state_words(row)
    epsilon = None if row.delta is None else at_own_delta(row.event, row.delta)
    return {
        "number": row.number,
        "at": row.at,
        "actor": hide("actors", row.actor or words.UNKNOWN),
        "purpose": hide("purposes", row.purpose or words.UNKNOWN),
        "price": words.price(epsilon, row.delta, row.native),
        "part_of": row.part_of,
        "mechanism": hide("algorithm", row.mechanism or words.UNKNOWN),
        "state": short,
        "receipt": row.id,
    }


def _question(row: Released, hide: Redaction) -> dict[str, Any]:
    """The query, or of a plan that is none its steps; and how far one unit can reach in it."""
    question = questions.question(row, hide)
    bounds = (bound_words(each, row.unit.noun) for each in row.bounds or ())
    return {
        "query": question["query"],
        "steps": question["steps"] if row.mechanism != questions.QUERY else [],
        "bounds": hide("contribution bounds", list(dict.fromkeys(filter(None, bounds)))),
    }


def fields_by_answers(releases: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Fields of the checklist that questions and answers tell by themselves, for where nobody stated them."""
    answers = [each["answer"] for each in releases if each["answer"]["shown"]]
    tables = [table for answer in answers for table in answer["tables"]]
    numbers = [cell for table in tables for row in table["rows"] for cell in row if "error" in cell]
    if not numbers:
        return {}
    bars, hidden = sum(bool(cell["error"]) for cell in numbers), sum(cell["hidden"] for cell in numbers)
    open_ = sum(bool(cell["error"]) and None in (cell["low"], cell["high"]) for cell in numbers if "items" not in cell)
    without = f"; {open_} have no upper or no lower end, since what limits cut is not known" if open_ else ""
    measured = (f"{each['column']}: {each['words']}" for answer in answers for each in answer["bias"])
    notes = (note for table in tables for note in table["notes"])
    reach = (each for one in releases if one["bounds"] != words.WITHHELD for each in one["bounds"])
    moved = list(dict.fromkeys(chain(measured, notes, reach)))
    more = [f"and {len(moved) - _MOST_NOTES} more: see the answers"] if len(moved) > _MOST_NOTES else []
    return {
        "utility": f"95 % error bars stand beside {bars} of the {len(numbers)} numbers of the answers shown, and "
        f"{hidden} of these are hidden by noise{without}; whether that is exact enough for their use is not stated",
        "bias": "\n".join([*moved[:_MOST_NOTES], *more]),
    }
