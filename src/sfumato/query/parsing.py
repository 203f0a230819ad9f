"""The text of a query as a tree: one SELECT, or a refusal in words of SQL."""

from __future__ import annotations

import re
from functools import lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from .refusal import TYPED, QueryError, typed_name
from .spellings import spelt_alike

_TOKEN = re.compile(r"<Token .*?text: (.*), line: \d+, col: .*?>", re.DOTALL)  # the parser's own name for a word
_LACKING = re.compile(r"Required keyword: '\w+' missing for <class '[\w.]+'>")
_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?")  # what the engine reads; the parser takes 0.e too
_HALF = re.compile("[\ud800-\udfff]")
UNREAD = (SqlglotError, AssertionError, AttributeError, IndexError, KeyError, TypeError, ValueError)
"""What sqlglot raises where a function has other operands than it knows, in reading a text and in writing one."""


def too_deep() -> QueryError:
    return QueryError("The query is nested too deeply.", "use fewer levels of brackets")


def parsed(text: str) -> exp.Query:
    """One SELECT: a tree of the caller's own."""
    return read_only(text).copy()


@lru_cache(maxsize=64)
def read_only(text: str) -> exp.Query:
    """The same, which others read too: a release parses its query a dozen times."""
    if _HALF.search(text):  # which no terminal, log or engine takes
        raise QueryError("The query holds half of a character.", "write its characters whole, in UTF-8")
    try:
        trees = [tree for tree in sqlglot.parse(text, dialect="duckdb") if tree and not isinstance(tree, exp.Semicolon)]
    except UNREAD as problem:
        raise not_sql(problem) from None
    except RecursionError:
        raise too_deep() from None
    if not trees:
        raise QueryError("There is no query in this text.", "write SELECT ... FROM ...")
    if len(trees) != 1:
        raise QueryError(f"One query at a time is answered, and there are {len(trees)}.", "ask them one by one")
    if not isinstance(trees[0], exp.Query):
        raise QueryError("Only SELECT reads data here.", "write SELECT ... FROM ...", trees[0])
    for node in trees[0].walk():
        node.comments = None  # they are no part of the text that tells expressions apart
        if isinstance(node, exp.Literal) and not node.is_string and not _NUMBER.fullmatch(node.name):
            raise QueryError("A number cannot be read.", "write it like 12, 0.5 or 1e-3", node)
        if isinstance(node, exp.Func) and "start" in node.meta:
            node.meta[TYPED] = text[node.meta["start"] : node.meta["end"] + 1].upper()
        if isinstance(node, exp.Func) and node.error_messages():
            name = typed_name(node)
            raise QueryError(f"{name} lacks an operand here.", "give it all that it takes, or leave it out", node)
    tree = spelt_alike(trees[0])
    try:
        tree.sql("duckdb")
    except UNREAD as problem:
        raise not_sql(problem) from None
    except RecursionError:
        raise too_deep() from None
    return tree


def not_sql(problem: Exception, dialect: str = "") -> QueryError:
    """The refusal of what the parser could not read, as SQL or as that of a dialect; the caller raises it."""
    first = (getattr(problem, "errors", None) or [{}])[0]
    where = f" at line {first['line']}, column {first['col']}" if "line" in first else ""
    cause = _in_words(first.get("description", "it cannot be read"))
    whose = f" of {dialect}" if dialect else ""
    return QueryError(f"This is not SQL{whose}{where}: {cause}.", "mend the query there, or see docs/sql.md")


def _in_words(said: str) -> str:
    """What the parser says, without its names for its own parts."""
    said = _LACKING.sub("something is missing here", said)
    return _TOKEN.sub(lambda token: "the end" if token[1] == "SENTINEL" else token[1], said)
