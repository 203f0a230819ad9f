"""The functions and operators that may be used on rows, one file per family. What is not here is refused."""

from __future__ import annotations

from . import casts, cells, choices, dates, mathematics, numbers, texts
from .operands import Rule, Rules

RULES: Rules = {**numbers.RULES, **mathematics.RULES, **choices.RULES, **texts.RULES, **dates.RULES, **casts.RULES}
"""By the kind of node that sqlglot reads them as."""

NAMED: dict[str, Rule] = {**dates.NAMED, **texts.NAMED, **cells.NAMED}
"""By name, for those that sqlglot does not know."""
