"""The closed SQL language: every word that a statement may hold, with its exact meaning and its edge cases.

Statements are built of these words (`call`, `read`), lowered by each engine (`sources.lowering`), and refused at the
door where they hold anything else. A new word is a line in one of the families here and one in each engine's lowering.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..base import needed
from . import choices, dates, folds, numbers, readings, texts
from .grammar import TYPES
from .statements import STATEMENTS
from .words import Edge, Word

if TYPE_CHECKING:
    import sqlglot

__all__ = ["STATEMENTS", "TYPES", "WORDS", "Edge", "Word", "call", "read", "word_of"]

WORDS: Mapping[str, Word] = {
    word.name: word
    for family in (numbers, choices, texts, dates, folds, readings)
    for word in family.WORDS
}  # fmt: skip
"""By name."""
BY_NODE: Mapping[str, Word] = {word.node: word for word in WORDS.values() if word.node}

_READ_AS = {"Sum": "exact_sum", "Least": "least_present", "Greatest": "greatest_present"}
_CALLED = {"hash": "ordering_hash"}


def call(name: str, *arguments: sqlglot.exp.Expression) -> sqlglot.exp.Expression:
    """A word that is a function of ours."""
    word = WORDS[name]
    if word.node or not word.least <= len(arguments) <= word.most:
        raise ValueError(f"{name} is not called so")
    made: sqlglot.exp.Expression = needed("sqlglot").exp.Anonymous(this=name, expressions=list(arguments))
    return made


def read(text: str) -> Any:
    """A statement or expression of ours as a tree of words. SUM, LEAST, GREATEST and HASH are read as what we mean by
    them; the type that a word takes stands last among its arguments."""
    sqlglot = needed("sqlglot")
    exp = sqlglot.exp
    around = exp.Paren(this=sqlglot.parse_one(text, dialect="duckdb"))
    for node in list(around.walk()):
        name = _READ_AS.get(type(node).__name__)
        if name is not None:
            arguments = [node.this, *node.expressions] if node.args.get("expressions") else [node.this]
            node.replace(call(name, *arguments))
        elif isinstance(node, exp.Anonymous):
            name = _CALLED.get(node.name.lower(), node.name.lower())
            node.set("this", name)
            if name in WORDS and WORDS[name].typed and not isinstance(node.expressions[-1], exp.DataType):
                kind = exp.DataType.build(node.expressions[-1].sql(), dialect="duckdb")
                node.set("expressions", [*node.expressions[:-1], kind])
    return around.this.pop()


def word_of(node: Any) -> Word | None:
    """The word that a node of a tree stands for; None where it stands for none."""
    kind = type(node).__name__
    if kind == "Anonymous":
        word = WORDS.get(node.name)
        return None if word is None or word.node else word
    if kind == "CTE" and not node.args.get("materialized"):
        return None
    return BY_NODE.get(kind)
