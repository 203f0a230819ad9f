"""Engines whose words depend on the types of their operands, and whose names are always written in quotes.

Types are inferred in the tree (`inferred_types`), from those of the tables' columns, which a session gives to a copy of
the engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .base import needed
from .inferred_types import KIND, annotate, kind_of
from .lowering import Change, Engine, as_is
from .vocabulary import word_of


@dataclass(frozen=True, eq=False)
class TypedEngine(Engine):
    """The words, and the types of the tables' columns, in lower case: what some words become depends on them."""

    tables: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def name_of(self, name: str) -> str:
        """A name as the engine is told it: upper and lower case are one, as in the vocabulary."""
        return lower_case(name)

    def prepare(self, tree: Any) -> None:
        """What the engine needs to be done to a whole statement before its words are lowered."""

    def settle(self, literal: Any) -> None:
        """Put something else in place of a constant, where the engine would not read it as it is meant."""

    def lowered(self, tree: Any, change: Change | None = None) -> Any:
        exp = needed("sqlglot").exp
        around = exp.Paren(this=tree.copy())
        if change is not None:
            change(around.this)
        annotate(around.this, self.tables)
        self.prepare(around.this)
        for node in reversed(list(around.this.walk())):
            if isinstance(node, exp.Identifier):
                node.set("this", self.name_of(node.name))
                node.set("quoted", True)
                continue
            word = word_of(node)
            lower = as_is if word is None else self.words.get(word.name, as_is)
            if word is None or lower is as_is:
                continue
            own = lower(node) if word.node else lower(*node.expressions)
            if own is not node:
                if kind_of(node) is not None:
                    own.meta[KIND] = kind_of(node)
                node.replace(own)
        for node in list(around.find_all(exp.Literal)):
            self.settle(node)
        return around.this.pop()


def lower_case(name: str) -> str:
    """A name with the letters A to Z made small."""
    return "".join(sign.lower() if sign.isascii() else sign for sign in name)
