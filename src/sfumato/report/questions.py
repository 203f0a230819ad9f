"""What a release asked: the text of a query, or the steps of a plan in words."""

from __future__ import annotations

import re
from typing import Any

from . import trainings, words
from .accounts.releases import Released
from .redaction import Redaction

QUERY = "plan-sql/1"
_STEPS = ("query", "contribution bounds", "algorithm")  # topics that the steps of a plan tell of
_STATEMENT = re.compile(r"(.*: )?run, for .*:\n")  # what an engine was asked, word for word


def question(row: Released, hide: Redaction) -> dict[str, Any]:
    """The query in the form that is paid for once (None of a plan that is none), the steps, and what the engine was
    asked."""
    text = str((row.parameters or {}).get("text"))
    explained = row.words or trainings.steps(row)
    statements = [step for step in explained if _STATEMENT.match(step)]
    steps = [step for step in explained if step not in statements]
    return {
        "query": hide("query", words.cut(text, words.MOST) if row.mechanism == QUERY else None),
        "steps": words.WITHHELD if hide.any(*_STEPS) else [words.cut(step, words.MOST) for step in steps],
        "statements": words.WITHHELD if hide.any(*_STEPS) else [words.cut(each, words.MOST) for each in statements],
    }
