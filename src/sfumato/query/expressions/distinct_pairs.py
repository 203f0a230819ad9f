"""Several values as one: COUNT(DISTINCT (a, b)).

They become a text that no other values become: of each the number of its characters, a colon and its own text, one
after the other. Whoever reads it from the left knows where each ends, so different values never give the same text. A
missing value is written as no text is, `-`.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from ...sources.vocabulary import call
from ..kinds import Kind, Typed
from ..refusal import QueryError
from . import trees
from .functions.operands import nothing

_MOST = 20
Translate = Callable[[exp.Expression], Typed]


def counted(
    node: exp.Distinct, translate: Translate, steady: Callable[[exp.Expression, Kind], exp.Expression]
) -> Typed:
    """What COUNT(DISTINCT ...) counts: one value, or a row of several, which is there whatever is missing in it."""
    if len(node.expressions) != 1:  # of several, spellings.py made a row
        raise QueryError("COUNT(DISTINCT) counts something.", "write COUNT(DISTINCT x)", node)
    (counted_values,) = node.expressions
    if not isinstance(counted_values, exp.Tuple):
        return translate(counted_values)
    parts = list(counted_values.expressions)
    if len(parts) > _MOST or any(isinstance(part, exp.Tuple) for part in parts):
        raise QueryError(f"COUNT(DISTINCT) takes up to {_MOST} columns.", "write COUNT(DISTINCT (a, b))", node)
    codes = [_code(_text(translate(part), part, steady)) for part in parts]
    joined = codes[0]
    for code in codes[1:]:
        joined = trees.binary(exp.DPipe, joined, code, safe=True)
    return Typed(joined, Kind("text", nullable=False))


def _code(text: exp.Expression) -> exp.Expression:
    size = trees.cast(call("characters", text), "VARCHAR")
    code = trees.binary(exp.DPipe, size, trees.text(":"), safe=True)
    code = trees.binary(exp.DPipe, code, text.copy(), safe=True)
    return exp.Coalesce(this=code, expressions=[trees.text("-")])


def _text(
    value: Typed, node: exp.Expression, steady: Callable[[exp.Expression, Kind], exp.Expression]
) -> exp.Expression:
    """Equal values have one text, and different ones two."""
    if nothing(value.kind):
        return trees.null("VARCHAR")
    if value.kind.type == "span":
        raise QueryError("An interval is no value of a row.", "leave it out", node)
    return value.tree if value.kind.type == "text" else trees.cast(steady(value.tree, value.kind), "VARCHAR")
