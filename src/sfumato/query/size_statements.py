"""What the adviser asks: how many units hold how much, and what limits cut of that."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from .blur import Blur
from .bounding import Votes, vote
from .held_rows import clamped
from .measures import LARGEST_SUM
from .relation import UNIT
from .statement_texts import filled, pair, with_steps


def profile(pairs: exp.Query, *, sums: Sequence[str], squares: bool, masses: bool = False) -> exp.Query:
    """How many units have a vector of which length: (which measure, half octave of the length, units), and last, where
    `masses` are asked for, how much of the first measure they hold in sum. A length is taken of exact integers, so a
    unit's bin is its own affair. `sums` are those of `added_up`."""
    columns = [f"CAST({clamped(each, LARGEST_SUM)} AS INT128) AS s{i}" for i, each in enumerate(sums)]
    lengths = [(f"exact_sum(s{i} * s{i})", 1) if squares else (f"exact_sum(abs(s{i}))", 2) for i in range(len(sums))]
    sized = f"SELECT {', '.join([UNIT, *columns])} FROM _rows"
    return filled(_by_bin(sized, [*lengths, *[("exact_sum(abs(s0))", 2)] * masses]), pairs)


def pair_profile(pairs: exp.Query) -> exp.Query:
    """How many units are in how many groups."""
    return filled(_by_bin(f"SELECT {UNIT} FROM _rows", [("count(*)", 2)]), pairs)


def value_profile(rows: exp.Query, *, keys: int) -> exp.Query:
    """How many units bring how many different values x to the groups."""
    names, there = pair(keys)
    listed = f"SELECT DISTINCT {names}, x FROM _rows WHERE {there} AND x IS NOT NULL"
    return filled(_by_bin(listed, [("count(*)", 2)]), rows)


def _by_bin(pairs: str, sizes: Sequence[tuple[str, int]]) -> str:
    """Units by half octave of their sizes; log2 of a square is twice that of the length."""
    bins = [
        f"CASE WHEN {each} > 0 THEN nearest(floor({times} * log(2, CAST({each} AS DOUBLE))), BIGINT) END"
        for each, times in sizes
    ]
    listed = ", ".join(f"{each} AS b{i}" for i, each in enumerate(bins))
    units = f"SELECT {listed} FROM _pairs GROUP BY {UNIT}"
    parts = [
        f"SELECT {i} AS which, b{i} AS bin, count(*) AS units FROM _units WHERE b{i} IS NOT NULL GROUP BY b{i}"
        for i in range(len(bins))
    ]
    return f"{with_steps({'_pairs': pairs, '_units': units})} {' UNION ALL '.join(parts)}"


def cut_pairs(pairs: exp.Query, shown: exp.Query, *, votes: Votes, blur: Blur, most: int) -> exp.Query:
    """What weights take from the numbers of units of the shown groups, added up over the units: of no unit more than
    `most` (in steps of the weights). Weights come from all pairs of a unit and a group."""
    full = 1 << votes.coordinate.bits

    def groups(table: str, of: str) -> str:
        return f"SELECT {UNIT}, count(*) AS {table} FROM {of} GROUP BY {UNIT}"

    joined = f"({groups('t', '_rows')}) AS _all JOIN ({groups('shown', '_shown')}) AS _some USING ({UNIT})"
    weight = vote(votes, blur)
    cut = f"least_present(CAST({full} - ({weight}) AS INT128) * shown, {most})"
    return filled(f"SELECT coalesce(exact_sum({cut}), 0) AS s0 FROM {joined}", pairs, shown)


def cut_values(rows: exp.Query, *, keys: int, most_values: int, most: int) -> exp.Query:
    """How many different values units hold beyond the limit, added up; of no unit more than `most`."""
    names, there = pair(keys)
    pairs = f"SELECT DISTINCT {names}, x FROM _rows WHERE {there} AND x IS NOT NULL"
    held = f"SELECT count(*) AS d FROM ({pairs}) AS _held GROUP BY {UNIT}"
    cut = f"least_present(greatest_present(d - {most_values}, 0), {most})"
    return filled(f"SELECT coalesce(exact_sum({cut}), 0) AS s0 FROM ({held}) AS _units", rows)
