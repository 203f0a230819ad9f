"""The weights of the statement against a slow reference in fractions, on small random tables."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp

from sfumato import Unit, exact
from sfumato.errors import ArgumentError
from sfumato.query import bounding
from sfumato.query.blur import Blur, Kind
from sfumato.query.bounding import ROOM, Sums, Votes
from sfumato.query.measures import Coordinate, Measure, count_rows
from sfumato.sources.duckdb import DUCKDB

KINDS: tuple[Kind, ...] = ("gaussian", "laplace")
BITS = 12
Row = tuple[int | None, int | None, int | None]
"""Unit, group, and what the row adds in steps."""


def blur(kind: Kind) -> Blur:
    return Blur(kind, Fraction(1), Unit("user:patient"))


def counts(rows: Any = 1, share: Any = 1) -> Coordinate:
    return Coordinate(count_rows(), Fraction(rows), Fraction(share), Fraction(4), BITS)


def sums(reach: Any, low: int, high: int, share: Any = 1, *, nullable: bool = False) -> Coordinate:
    measure = Measure("total", exp.column("x"), Fraction(low), Fraction(high), True, "total", nullable)
    return Coordinate(measure, Fraction(reach), Fraction(share), Fraction(4), BITS)


@cache
def engine() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})


def run(statement: exp.Query, table: Sequence[Row]) -> list[tuple[Any, ...]]:
    columns = zip(*table, strict=True) if table else ((), (), ())
    named = zip(("u", "k", "q"), columns, strict=True)
    engine().register("base", pa.table({name: pa.array(cells, pa.int64()) for name, cells in named}))
    return sorted(engine().execute(DUCKDB.text(statement)).fetchall())


def statement(coordinates: Sequence[Coordinate], kind: Kind, *, votes: Votes | None = None, **more: Any) -> Sums:
    """Grouped by the unit, too: that changes no unit's vector, and shows what each of them adds."""
    quanta = ", ".join(f"q AS q{i}" for i, each in enumerate(coordinates) if each.measure.row is not None)
    rows = sqlglot.parse_one(f"SELECT u AS _unit, k AS k0, u AS k1{', ' if quanta else ''}{quanta} FROM base")
    assert isinstance(rows, exp.Query)
    return Sums(rows, 2, coordinates, votes, blur(kind), True, **more)


def held(table: Sequence[Row], coordinates: Sequence[Coordinate]) -> dict[int, dict[int, list[int]]]:
    """By unit and group: the sums, as plain integers. Rows without a unit or group are left out."""
    found: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(lambda: [0] * len(coordinates)))
    for unit, group, steps in table:
        if unit is None or group is None:
            continue
        for i, each in enumerate(coordinates):
            found[unit][group][i] += 1 if each.measure.row is None else (steps or 0)
    return found


def length(vectors: dict[int, list[int]], coordinates: Sequence[Coordinate], kind: Kind) -> Fraction:
    """Of a unit's vector where the limit is 1; squared for Gaussian noise."""
    total = sum((each.share for each in coordinates), Fraction(0))
    power = 2 if kind == "gaussian" else 1
    parts = (
        each.share / total * (abs(vector[i]) * Fraction(2) ** each.exponent / each.reach) ** power
        for vector in vectors.values()
        for i, each in enumerate(coordinates)
    )
    return sum(parts, Fraction(0))


def check_weights(table: Sequence[Row], coordinates: Sequence[Coordinate], made: Sums) -> list[Fraction]:
    """Every unit has one weight, within the limit and hardly below what it could be."""
    found = {(unit, group): numbers for group, unit, *numbers in run(made.statement, table)}
    weights = []
    kind = made.blur.kind
    for unit, vectors in held(table, coordinates).items():
        seen = {
            Fraction(found[unit, group][i], vector[i])
            for group, vector in vectors.items()
            for i in range(len(coordinates))
            if vector[i]
        }
        if not seen:
            continue
        (weight,) = seen  # the same in all groups, for all coordinates
        assert weight.denominator == 1 and 0 <= weight <= 2**BITS
        part, norm = weight / 2**BITS, length(vectors, coordinates, kind)
        power = 2 if kind == "gaussian" else 1
        assert part**power * norm <= 1
        most = Fraction(1) if norm <= 1 else Fraction(1 / float(norm) ** (1 / power))
        assert part >= most * (1 - Fraction(1, 2**13)) - Fraction(1, 2**BITS)
        weights.append(part)
    return weights


def made_up(seed: int, low: int, high: int, *, nulls: bool = True) -> list[Row]:
    """Units of one row up to heavy ones, some in many groups."""
    draw = random.Random(seed)
    table: list[Row] = []
    for unit in range(12):
        for _ in range(draw.choice([1, 1, 2, 3, 10, 40])):
            steps = None if nulls and draw.random() < 0.1 else draw.choice([low, high, draw.randint(low, high)])
            table.append((unit, draw.randrange(draw.choice([1, 3, 9])), steps))
    if nulls:
        table += [(None, 1, high), (3, None, high)]
    draw.shuffle(table)
    return table


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_weights_keep_units_within_their_limits_and_waste_little(kind: Kind, seed: int) -> None:
    for rows, reach, low, high, share in ((1, 7, 0, 7, 1), (5, 30, -20, 11, 3), (Fraction(7, 3), 100, -3, 900, 9)):
        table = made_up(seed, low, high)
        coordinates = (counts(rows), sums(reach, low, high, share, nullable=True))
        weights = check_weights(table, coordinates, statement(coordinates, kind))
        assert min(weights) < 1  # somebody is weighted down
    alone = (counts(6),)
    weights = check_weights(table, alone, statement(alone, kind))
    assert min(weights) < 1 == max(weights)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [1, 2, 4, 64])
def test_a_unit_just_at_its_limit_counts_in_full(kind: Kind, rows: int) -> None:
    table: list[Row] = [(1, 1, None)] * rows + [(2, 1, None)] * (rows + 1)
    (_, _, full), (_, _, less) = run(statement((counts(rows),), kind).statement, table)
    assert full == rows << BITS
    assert less < (rows + 1) << BITS
    assert Fraction(less, rows << BITS) > 1 - Fraction(2 * rows + 2, 2**BITS)


@pytest.mark.parametrize("kind", KINDS)
def test_with_room_any_limit_is_reached_in_full(kind: Kind) -> None:
    """What a unit counts for is rounded up; the room that reaches have makes up for it, in several groups, too. (With
    Laplace noise what was rounded adds up: from some thirty parts on it is more than the room.)"""
    for rows in (1, 3, 10, 100, Fraction(10, 3)):
        whole = math.floor(rows)
        for groups in {1, min(whole, 10)}:
            reach = rows if kind == "laplace" or groups == 1 else Fraction(exact.sqrt_above(Fraction(whole**2, groups)))
            for coordinates in (
                (counts(reach * ROOM),),
                (counts(reach * ROOM), sums(reach * ROOM, 0, 1)),
                (counts(reach * ROOM, 2), sums(9 * reach * ROOM, 0, 9, 3), sums(reach * ROOM, 0, 1)),
            ):
                table: list[Row] = [(1, i % groups, 1) for i in range(whole)]
                found = run(statement(coordinates, kind).statement, table)
                assert sum(row[2] for row in found) == whole << BITS


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("low", "high"), [(0, 9), (-9, 9), (-2000, -5), (3, 4)])
def test_packed_and_plain_sums_are_equal(kind: Kind, low: int, high: int, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made_up(7, low, high, nulls=False)
    for coordinates in ((counts(3), sums(40, low, high)), (sums(40, low, high), counts(3))):
        packed = statement(coordinates, kind)
        assert "AS p" in DUCKDB.text(packed.statement)
        found = run(packed.statement, table)
        check_weights(table, coordinates, packed)
        with monkeypatch.context() as patch:
            patch.setattr(bounding, "_PACKED_WIDTH", 0)
            plain = statement(coordinates, kind)
            assert "AS p" not in DUCKDB.text(plain.statement)
            assert run(plain.statement, table) == found


@pytest.mark.parametrize("kind", KINDS)
def test_what_may_be_null_or_wide_is_not_packed(kind: Kind) -> None:
    for other in (sums(9, 0, 9, nullable=True), sums(9, 0, 2**24), sums(9, -(2**25), -(2**25) + 3)):
        assert "AS p" not in DUCKDB.text(statement((counts(3), other), kind).statement)


@pytest.mark.parametrize("kind", KINDS)
def test_a_huge_pair_keeps_its_limit_packed_or_not(kind: Kind) -> None:
    """Packed parts mix above 2^16 rows of one unit in a group: whatever is read back is within the limits."""
    quick = "SELECT 1 AS _unit, 0 AS k0, 1 AS k1, {q} AS q1 FROM range({n})"
    for low, high, n in ((0, 2**24 - 3, 70_000), (-(2**23), 2**22, 200_000), (-5, 5, 70_000)):
        coordinates = (counts(3), sums(50, low, high))
        made = statement(coordinates, kind)
        rows = sqlglot.parse_one(quick.format(q=high, n=n))
        assert isinstance(rows, exp.Query)
        ((_, _, *numbers),) = engine().execute(DUCKDB.text(replace(made, rows=rows).statement)).fetchall()
        norm = length({0: [int(each) for each in numbers]}, coordinates, kind)
        assert norm <= (2**BITS) ** (2 if kind == "gaussian" else 1)


@pytest.mark.parametrize("kind", KINDS)
def test_units_beyond_all_measure_count_for_nothing(kind: Kind) -> None:
    """A sum is held at 2^42 steps: there the weight is 0."""
    far = 2**62
    coordinates = (sums(10, -far, far),)
    found = run(statement(coordinates, kind).statement, [(1, 1, far), (1, 1, far), (2, 1, -far), (3, 1, 7)])
    assert [int(row[2]) for row in found] == [0, 0, 7 << BITS]


@pytest.mark.parametrize("kind", KINDS)
def test_sums_of_all_units_are_sums_of_each(kind: Kind) -> None:
    table = made_up(3, -4, 9)
    coordinates = (counts(4), sums(20, -4, 9, nullable=True))
    each = run(statement(coordinates, kind).statement, table)
    rows = sqlglot.parse_one("SELECT u AS _unit, k AS k0, q AS q1 FROM base")
    assert isinstance(rows, exp.Query)
    together = run(Sums(rows, 1, coordinates, None, blur(kind), True).statement, table)
    for group, *numbers in together:
        assert numbers == [sum(row[2 + i] for row in each if row[0] == group) for i in range(2)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("keys", [1, 2, 3, 7])
def test_votes_of_the_engine_are_those_of_the_threshold(kind: Kind, keys: int) -> None:
    """The threshold relies on Votes.weight: the engine must never give a unit more."""
    reach = Fraction(keys) if kind == "laplace" else Fraction(exact.sqrt_above(Fraction(keys)))
    voting = Votes(replace(counts(1), reach=reach), most_keys=40)
    table: list[Row] = [(t, group, None) for t in (1, 2, 3, 5, 7, 8, 39, 40, 41, 60) for group in range(t)]
    found = run(statement((), kind, votes=voting).statement, table)
    assert {unit for _, unit, _ in found} == {1, 2, 3, 5, 7, 8, 39, 40}  # a group whose weights are all 0 is not there
    for _, unit, vote in found:
        assert voting.weight(unit, blur(kind)) - 1 <= vote <= voting.weight(unit, blur(kind))
        assert (vote == 1 << BITS) == (unit <= keys)
        squares = unit * Fraction(int(vote), 1 << BITS) ** (2 if kind == "gaussian" else 1)
        assert squares <= reach ** (2 if kind == "gaussian" else 1)


def held_at(number: Any, reach: Any) -> int:
    """Steps of the weighted sums."""
    most = int(Fraction(reach) * 2**BITS)
    return max(min(number * 2**BITS, most), -most)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reaches", [(1, 4), (1, 6), (Fraction(1, 2), Fraction(9, 2)), (3, Fraction(1, 3))])
def test_numbers_of_single_rows_are_held_at_their_own_reaches(kind: Kind, reaches: tuple[Any, Any]) -> None:
    """No number pays for the size of another; together they are no longer than a weighted unit may be."""
    table: list[Row] = [(unit, unit % 3, unit - 5 if unit else None) for unit in range(12)]
    half = Fraction(1, 2)
    coordinates = (counts(reaches[0], half), sums(reaches[1], -5, 6, half, nullable=True))
    for group, unit, *numbers in run(statement(coordinates, kind, single=True).statement, table):
        assert group == unit % 3
        assert numbers == [held_at(1, reaches[0]), held_at(unit - 5 if unit else 0, reaches[1])]
        assert length({0: [Fraction(each, 2**BITS) for each in numbers]}, coordinates, kind) <= 1  # type: ignore[list-item]


def test_what_reaches_cut_from_single_rows_is_what_is_missing() -> None:
    table: list[Row] = [(unit, unit % 3, unit - 5 if unit else None) for unit in range(12)]
    coordinates = (counts(Fraction(1, 2)), sums(4, -5, 6, nullable=True))
    made = statement(coordinates, "gaussian", single=True, most=(2**30, 3 * 2**11))
    ((count, total),) = run(made.cut, table)
    assert count == 12 * 2 ** (BITS - 1)
    assert total == 2**BITS + 3 * 2**11  # 5 is held at 4, and 6 at 4 counts for no more than a step and a half


def test_limits_that_no_weight_can_keep_are_refused() -> None:
    tiny = replace(sums(Fraction(1, 2**30), 0, 1), share=Fraction(1))
    with pytest.raises(ArgumentError, match="a limit is too small beside what one row holds"):
        statement((tiny,), "gaussian").check()
    vast = counts(Fraction(2) ** 70)
    with pytest.raises(ArgumentError, match="the noise would be too small for the limits"):
        statement((vast,), "gaussian").check()


@pytest.mark.parametrize("keys", [0, 1])
def test_no_rows_are_no_sums(keys: int) -> None:
    rows = sqlglot.parse_one("SELECT u AS _unit" + ", k AS k0" * keys + " FROM base")
    assert isinstance(rows, exp.Query)
    found = run(Sums(rows, keys, (counts(3),), None, blur("gaussian"), True).statement, [])
    assert [tuple(map(int, row)) for row in found] == ([(0,)] if not keys else [])


@pytest.mark.parametrize("kind", KINDS)
def test_leaves_add_up_weights_of_rows(kind: Kind) -> None:
    table: list[Row] = [(1, 0, 4), (1, 0, 5), (1, 1, 4), (2, 0, 4), (3, 1, None)]
    rows = sqlglot.parse_one("SELECT u AS _unit, k AS k0, q AS leaf FROM base")
    assert isinstance(rows, exp.Query)
    found = run(Sums(rows, 1, (counts(2),), None, blur(kind), True, leaves=True).statement, table)
    norm = 5**0.5 if kind == "gaussian" else 3
    weight = int(2**BITS * min(1.0, 2 / norm))
    cells = {(group, leaf): int(number) for group, leaf, number in found}
    assert abs(cells[0, 5] - weight) <= 1 and cells[0, 5] == cells[1, 4] == cells[0, 4] - 2**BITS
    assert len(cells) == 3
