"""What a word of the vocabulary is: a name, what it takes and gives, its exact meaning, and its edge cases as data.

No word is written as SQL of an engine. A statement is a sqlglot tree in which only declared words occur: nodes of
sqlglot's where all engines can be told to mean the same by them (`node`), functions under names of our own where they
would not. What a word becomes is said by the engine's lowering, or the engine refuses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Row = tuple[Any, ...]

NAN, INFINITY = float("nan"), float("inf")
LEAST, MOST = -(2**63), 2**63 - 1
"""The ends of BIGINT."""


@dataclass(frozen=True)
class Edge:
    """Edge cases of a word in one form, each a row of arguments with the exact result behind them.

    form   the word as text: {0}, {1}, ... are its arguments
    takes  their types
    gives  the type of the result
    rows   (argument, ..., result); of an aggregate: (the rows of the group, result)
    """

    form: str
    takes: tuple[str, ...]
    gives: str
    rows: Sequence[Row]


@dataclass(frozen=True)
class Word:
    """One word.

    name     ours; the function's name in a tree, unless `node` says which node stands for it
    takes    what it is asked of, in words
    gives    the type of its result
    meaning  exactly what it gives
    edges    its edge cases
    node     the sqlglot node that stands for it
    least    how many arguments a function takes
    most
    typed    is its last argument a type?
    fold     is it asked of the rows of a group?
    """

    name: str
    takes: str
    gives: str
    meaning: str
    edges: tuple[Edge, ...] = ()
    node: str = ""
    least: int = 1
    most: int = 1
    typed: bool = False
    fold: bool = False


def edge(form: str, takes: str, gives: str, *rows: Row) -> Edge:
    """Edge cases; `takes` is the types of the arguments, with blanks between."""
    return Edge(form, tuple(takes.split()), gives, rows)
