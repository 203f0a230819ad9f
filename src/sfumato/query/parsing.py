"""The text of a query as a tree: one SELECT, or a refusal in words of SQL."""

from __future__ import annotations

import re

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from .refusal import TYPED, QueryError

_TOKEN = re.compile(r"<Token .*?text: (.*), line: \d+, col: .*?>", re.DOTALL)  # the parser's own name for a word
_LACKING = re.compile(r"Required keyword: '\w+' missing for <class '[\w.]+'>")
_HALF = re.compile("[\ud800-\udfff]")


def too_deep() -> QueryError:
    return QueryError("The query is nested too deeply.", "use fewer levels of brackets")


def parsed(text: str) -> exp.Query:
    """One SELECT."""
    if _HALF.search(text):  # which no terminal, log or engine takes
        raise QueryError("The query holds half of a character.", "write its characters whole, in UTF-8")
    try:
        trees = [tree for tree in sqlglot.parse(text, dialect="duckdb") if tree and not isinstance(tree, exp.Semicolon)]
    except SqlglotError as problem:
        found = getattr(problem, "errors", None) or [{}]
        where = f" at line {found[0]['line']}, column {found[0]['col']}" if "line" in found[0] else ""
        said = _in_words(found[0].get("description", "it cannot be read"))
        raise QueryError(f"This is not SQL{where}: {said}.", "mend the query there, or see docs/sql.md") from None
    except RecursionError:
        raise too_deep() from None
    if len(trees) != 1:
        raise QueryError(f"One query at a time is answered, and there are {len(trees)}.", "ask them one by one")
    if not isinstance(trees[0], exp.Query):
        raise QueryError("Only SELECT reads data here.", "write SELECT ... FROM ...", trees[0])
    for node in trees[0].walk():
        node.comments = None  # they are no part of the text that tells expressions apart
        if isinstance(node, exp.Func) and "start" in node.meta:
            node.meta[TYPED] = text[node.meta["start"] : node.meta["end"] + 1].upper()
    return trees[0]


def _in_words(said: str) -> str:
    """What the parser says, without its names for its own parts."""
    said = _LACKING.sub("something is missing here", said)
    return _TOKEN.sub(lambda token: "the end" if token[1] == "SENTINEL" else token[1], said)
