"""Engines whose words depend on types: those of all expressions are inferred from the tables' columns on, and each word
is asked for its own SQL after what stands in it.

Names are written in quotes and in lower case, as upper and lower case are one in the vocabulary. What the columns'
types are, a session says, which gives them to a copy of the engine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from .base import needed
from .inferred_types import KIND, annotate, kind_of
from .lowering import Change, Engine, as_is
from .numbered_rows import as_each_time
from .statements import in_scope
from .vocabulary import word_of

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_ .-")


def lower_case(name: str) -> str:
    """A name with the letters A to Z made small."""
    return "".join(sign.lower() if sign.isascii() else sign for sign in name)


def name_of(name: str, most: int = 63) -> str:
    """A name as a server is told it, of so many bytes at most: a longer one becomes a hash."""
    small = lower_case(name)
    return small if len(small.encode("utf-8", "surrogatepass")) <= most else _hashed(small)


def plain_name_of(name: str) -> str:
    """The same of letters, digits and a few signs alone, where an engine would escape others, or take letters with
    accents for those without: such a name becomes a hash."""
    small = name_of(name)
    return small if set(small) <= _PLAIN and small == small.strip() else _hashed(small)


def _hashed(name: str) -> str:
    return f"long_{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


@dataclass(frozen=True, eq=False)
class TypedEngine(Engine):
    """The words, and the types of the tables' columns, in lower case: what some words become depends on them.

    computes_once  is a table of WITH computed once, however often it is read?
    """

    computes_once: ClassVar[bool] = True
    tables: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def name_of(self, name: str) -> str:
        """A name as the engine is told it: upper and lower case are one, as in the vocabulary."""
        return lower_case(name)

    def lowered(self, tree: Any, change: Change | None = None) -> Any:
        exp = needed("sqlglot").exp
        around = exp.Paren(this=tree.copy())
        if change is not None:
            change(around.this)
        self.prepare(around)
        annotate(around.this, self.tables)
        if not self.computes_once:
            as_each_time(around)
        self.refer(around)
        for node in reversed(list(around.this.walk())):
            if isinstance(node, exp.Identifier):
                node.set("this", self.name_of(node.name))
                node.set("quoted", True)
                continue
            word = word_of(node)
            lower = as_is if word is None else self.words.get(word.name, as_is)
            own = self.other(node) if word is None or lower is as_is else None
            if own is None:
                if word is None or lower is as_is:
                    continue
                own = lower(node) if word.node else lower(*node.expressions)
            if own is not node:
                if kind_of(node) is not None:
                    own.meta[KIND] = kind_of(node)
                node.replace(own)
        for literal in list(around.find_all(exp.Literal)):
            self.settle(literal)
        return around.this.pop()

    def prepare(self, around: Any) -> None:
        """Change what holds words together, before types are inferred; the statement stands in `around`."""

    def refer(self, around: Any) -> None:
        """Call the tables of the schema as the engine does; types are inferred by then."""

    def other(self, node: Any) -> Any | None:
        """What becomes of a node that is no word, or one that is meant as it is; None where it stays."""
        return None

    def settle(self, literal: Any) -> None:
        """Put something else in place of a constant that is left, where the engine would read it otherwise."""


@dataclass(frozen=True, eq=False)
class ServerEngine(TypedEngine):
    """What other engines have as views stands in front of a statement (`server_session`), under names that no table of
    a statement has."""

    def name_of(self, name: str) -> str:
        return name_of(name)

    def view_of(self, name: str) -> str:
        """What the view of a table is called in a statement's WITH, where the statement's own tables may be called
        so."""
        return self.name_of(f"_view_{name}")

    def refer(self, around: Any) -> None:
        exp = needed("sqlglot").exp
        for table in list(around.find_all(exp.Table)):
            if table.name.lower() in self.tables and table.name.lower() not in in_scope(table, exp):
                table.set("alias", table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(table.name)))
                table.set("this", exp.to_identifier(self.view_of(table.name)))
