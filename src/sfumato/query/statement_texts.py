"""Statements of ours, written as texts in words of the vocabulary, with the rows put in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from sqlglot import exp

from ..sources.vocabulary import read
from .relation import UNIT

_TOKEN = re.compile(r"'[^']*'|\.?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\w+")
_FIRST = 10**30  # numbers from here on stand for those of a text


@lru_cache(maxsize=128)
def _skeleton(text: str) -> exp.Expr:
    tree: exp.Expr = read(text)
    return tree


def template(text: str) -> exp.Expr:
    """A statement of ours. Its words are read once: of the same question, only the numbers differ."""
    numbers: list[str] = []

    def place(token: re.Match[str]) -> str:
        if not token[0].isdigit():
            return token[0]
        numbers.append(token[0])
        return str(_FIRST + len(numbers) - 1)

    tree = _skeleton(_TOKEN.sub(place, text)).copy()
    for node in list(tree.find_all(exp.Literal)):
        if not node.is_string and len(node.name) == len(str(_FIRST)):
            node.set("this", numbers[int(node.name) - _FIRST])
    return tree


def filled(text: str, rows: exp.Query, shown: exp.Query | None = None) -> exp.Query:
    """A statement of ours with the rows put in, and those of the groups that are shown."""
    tree, sources = template(text), {"_rows": rows, "_shown": shown}
    for node in list(tree.find_all(exp.Table)):
        source = sources.get(node.name)
        if source is not None:
            node.replace(source.subquery(node.name))
    assert isinstance(tree, exp.Query)
    return tree


def with_steps(steps: Mapping[str, str]) -> str:
    """What is read twice is kept: it comes first."""
    first = next(iter(steps))
    made = (f"{name} AS {'MATERIALIZED ' * (name == first)}({text})" for name, text in steps.items())
    return "WITH " + ", ".join(made)


def pair(keys: int) -> tuple[str, str]:
    """What makes a unit and a group, and the condition that both are there."""
    names = [UNIT, *(f"k{i}" for i in range(keys))]
    return ", ".join(names), " AND ".join(f"{name} IS NOT NULL" for name in names)
