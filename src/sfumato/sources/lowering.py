"""How a statement of words becomes one of an engine: checked against the vocabulary, lowered word by word, written.

An engine is a file that says of every word what it becomes, or leaves it out. A statement that holds a word which its
engine leaves out is refused by the word's name, before anything is paid: `bind` asks the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ..errors import PlanError
from .base import needed
from .vocabulary import WORDS, Word, read, word_of
from .vocabulary.grammar import NAME, NODES, NUMBER, SPELLED, TYPES, WORD_PARTS

if TYPE_CHECKING:
    import sqlglot

Lowered = Callable[..., Any]
Change = Callable[[Any], None]
"""What becomes of a word: of a function, from its arguments; of a node, from the node."""


def as_is(node: Any) -> Any:
    """The engine means by the node what the word says."""
    return node


def named(function: str) -> Lowered:
    """The engine has a function that does what the word says."""

    def lower(*arguments: Any) -> Any:
        return needed("sqlglot").exp.Anonymous(this=function, expressions=list(arguments))

    return lower


@dataclass(frozen=True, eq=False)
class Engine:
    """The words that an engine has. It is one of a kind: two are the same where they are one object.

    name     of the engine, for people
    dialect  the name that sqlglot has for its SQL
    words    by word: what it becomes
    types    by type of the vocabulary: what the engine calls it
    """

    name: str
    dialect: str
    words: Mapping[str, Lowered]
    types: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if strange := sorted({*self.words} - {*WORDS} | {*self.types} - {*TYPES}):
            raise ValueError(f"the vocabulary has no word {strange[0]!r}")

    @property
    def gaps(self) -> frozenset[str]:
        """The words and types that the engine refuses."""
        return frozenset(WORDS) - frozenset(self.words) | frozenset(TYPES) - frozenset(self.types)

    def check(self, tree: sqlglot.exp.Expr) -> None:
        """Refuse a tree that holds anything else than words which this engine has."""
        for node in tree.walk():
            check_node(node)
            for name in _spoken(node):
                if name not in self.words and name not in self.types:
                    known = WORDS[name].meaning if name in WORDS else TYPES[name]
                    raise PlanError(f"{self.name} has no word for {name!r} ({known}): the statement is not run there")

    def text(self, tree: sqlglot.exp.Expr, *, pretty: bool = False, change: Change | None = None) -> str:
        """The tree in the engine's own SQL; `change` is done to the copy that is written."""
        written: str = self.lowered(tree, change).sql(dialect=self.dialect, comments=False, copy=False, pretty=pretty)
        return written

    def words_in(self, text: str) -> str:
        """A text of words in the engine's own SQL; refuses what the engine has no word for. What was asked before is
        remembered, as sessions read the same columns again and again."""
        return _in_its_own_words(self, text)

    def lowered(self, tree: sqlglot.exp.Expr, change: Change | None = None) -> Any:
        """The tree in the engine's own words; the given one stays as it is."""
        exp = needed("sqlglot").exp
        around = exp.Paren(this=tree.copy())
        if change is not None:
            change(around.this)
        for node in reversed(list(around.this.walk())):  # arguments first: a word may become one that has them twice
            if isinstance(node, exp.DataType):
                own = self.types.get(type_of(node), type_of(node))
                if own != type_of(node):
                    node.set("this", exp.DataType.build(own, dialect=self.dialect).this)
                continue
            word = word_of(node)
            lower = None if word is None else self.words.get(word.name)
            if word is None or lower is None or lower is as_is:
                continue
            made = lower(node) if word.node else lower(*node.expressions)
            if made is not node:
                node.replace(made)
        return around.this.pop()


@lru_cache(maxsize=2048)
def _in_its_own_words(engine: Engine, text: str) -> str:
    tree = read(text)
    engine.check(tree)
    return engine.text(tree)


def _spoken(node: Any) -> Iterator[str]:
    word = word_of(node)
    if word is not None:
        yield word.name
    elif type(node).__name__ == "DataType":
        yield type_of(node)


def type_of(node: Any) -> str:
    """The vocabulary's name of a type in a tree."""
    name = str(node.this.name if hasattr(node.this, "name") else node.this)
    return {"TEXT": "VARCHAR", "TIMESTAMPNTZ": "TIMESTAMP"}.get(name, name)


def check_node(node: Any) -> None:
    """Refuse a node that is no part of the vocabulary, or has a part that it does not know."""
    kind, word = type(node).__name__, word_of(node)
    if kind == "Anonymous":
        _check_call(node, word)
        return
    if word is None and kind not in NODES:
        exp = needed("sqlglot").exp
        what = f"the function {node.sql_name().lower()}" if isinstance(node, exp.Func) else kind.upper()
        raise _strange(what)
    parts = NODES.get(kind, WORD_PARTS)
    for part, value in node.args.items():
        if value is None or value is False or value == []:
            continue
        if part not in parts:
            raise _strange(f"{kind.upper()} with {part.strip('_').upper()}")
        if isinstance(value, str):
            _check_text(node, kind, part, value)
    if kind == "DataType":
        _check_type(node)


def _check_call(node: Any, word: Word | None) -> None:
    if word is None:
        raise _strange(f"the function {str(node.name)[:40].lower()}")
    count = len(node.expressions)
    if not word.least <= count <= word.most or word.typed != (type(node.expressions[-1]).__name__ == "DataType"):
        raise _strange(f"{word.name} of {count} arguments")


def _check_text(node: Any, kind: str, part: str, value: str) -> None:
    if kind == "Literal":
        fits = bool(node.args.get("is_string")) or NUMBER.fullmatch(value) is not None
    elif kind == "Identifier":
        fits = bool(node.args.get("quoted")) or NAME.fullmatch(value) is not None
    else:
        fits = value.upper() in SPELLED.get((kind, part), ())
    if not fits:
        raise _strange(f"{kind.upper()} of this form")


def _check_type(node: Any) -> None:
    name = type_of(node)
    if name not in TYPES or node.args.get("nested") or (node.expressions and name != "DECIMAL"):
        raise _strange(f"the type {node.sql()[:40]}")


def _strange(what: str) -> PlanError:
    return PlanError(f"a statement that holds {what} is not run: it is no word of the vocabulary")
