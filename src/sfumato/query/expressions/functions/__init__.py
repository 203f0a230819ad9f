"""The functions and operators that may be used on rows, one file per family. What is not here is refused."""

from __future__ import annotations

from . import casts, cells, choices, dates, mathematics, numbers, padding, texts, written_dates, zones
from .operands import Rule, Rules

RULES: Rules = {
    **numbers.RULES, **mathematics.RULES, **choices.RULES, **texts.RULES, **dates.RULES, **written_dates.RULES,
    **casts.RULES, **padding.RULES, **zones.RULES,
}  # fmt: skip
"""By the kind of node that sqlglot reads them as."""

NAMED: dict[str, Rule] = {**dates.NAMED, **texts.NAMED, **cells.NAMED}
"""By name, for those that sqlglot does not know."""
