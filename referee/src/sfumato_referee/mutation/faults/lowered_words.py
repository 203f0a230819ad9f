"""Faults of engines: words that are lowered to something else than they mean, and doors that take other words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sfumato.openings import Tables
from sfumato.sources import lowering
from sfumato.sources.base import needed
from sfumato.sources.duckdb import DUCKDB
from sfumato.sources.lowering import Engine

from ..mutant import Shelf, attacks, swap, swap_everywhere

FAULTS = Shelf("SQL", needs="duckdb")


def _lower(word: str, lowered: Any) -> None:
    """Everybody shares the one table of an engine's words."""
    words = DUCKDB.words
    assert isinstance(words, dict) and word in words
    words[word] = lowered


@FAULTS.fault("exact sums are lowered to sums of doubles", by=attacks("N1"))
def rounded_sums() -> None:
    exp = needed("sqlglot").exp
    _lower("exact_sum", lambda x: exp.Sum(this=exp.cast(x, "DOUBLE")))


@FAULTS.fault("exact sums are lowered to sums of 64 bits that wrap", by=attacks("Q4"))
def wrapping_sums() -> None:
    """As an engine without wider integers would sum them: the remainder by 2^64, and from 2^63 on it counts below 0."""
    half, whole = 2**63, 2**64
    shape = f"CAST(((SUM(_x) % {whole} + {whole} + {half}) % {whole}) - {half} AS BIGINT)"

    def wrapped(x: Any) -> Any:
        sums = needed("sqlglot").parse_one(shape, dialect="duckdb")
        return sums.transform(lambda node: x if node.name == "_x" else node)

    _lower("exact_sum", wrapped)


@FAULTS.fault("cells that cannot be read are lowered to a cast that raises", by=attacks("Q1"))
def raising_casts() -> None:
    exp = needed("sqlglot").exp
    for word in ("read_or_null", "nearest_or_null", "narrowed_or_null", "decimal_or_null"):
        _lower(word, lambda x, to: exp.Cast(this=x, to=to))


@FAULTS.fault("the door takes words that no vocabulary has", by=attacks("Q3"))
def open_vocabulary() -> None:
    swap(Engine, "check", lambda _: lambda self, tree: None)
    swap_everywhere(lowering.check_node, lambda _: lambda node: None)


@FAULTS.fault("an opening reads the blocks that nobody paid for", by=attacks("B4"))
def all_blocks() -> None:
    for name in ("rows", "connect"):
        swap(
            Tables, name, lambda read: lambda self, *unread, **named: read(replace(self, block=None), *unread, **named)
        )
