"""N1-N5, Q1-Q5, B1, R1 and R2 through SQL: each is withstood, and breaks its planted bug for the reason it names."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from sfumato import record
from sfumato.errors import ArgumentError
from sfumato.query import Limits, sql
from sfumato.schema import real
from sfumato.units import Unit
from sfumato_referee import attacks
from sfumato_referee.attacks import (
    series_days,
    sql_arguments,
    sql_budget,
    sql_errors,
    sql_numbers,
    sql_reach,
    sql_shapes,
    sql_stages,
    sql_units,
)
from sfumato_referee.attacks.asking import before_noise, moved, one_table
from sfumato_referee.mutants import queries
from sfumato_referee.mutants.ledgers import ReusedParts


def test_every_sql_attack_has_a_control() -> None:
    wanted = {"N1", "N2", "N3", "N4", "N5", "Q1", "Q2", "Q3", "Q4", "Q5", "Q7", "B1", "B5", "R1", "R2"}
    assert wanted <= attacks.ATTACKS.keys() and wanted <= attacks.CONTROLS.keys()


def test_no_planted_bug_can_be_stored() -> None:
    kinds = [queries.AsWritten, queries.WrappingSums, queries.RowsForUsers, queries.EveryGroup, queries.NumbersChoose]
    kinds.append(queries.ExactStages)
    assert not set(kinds) & set(record.kinds(object).values())


# N1 to N4: numbers


@pytest.mark.parametrize("kinds", [("arrow", "parquet", "duckdb"), ("columns", "pandas", "polars")])
def test_n1_rounding_is_withstood_by_every_source(kinds: tuple[str, ...]) -> None:
    verdict = sql_numbers.rounding(half=2**16, kinds=kinds, orders=4)
    assert not verdict.broken and verdict.figures["moved"] == 1, verdict


@pytest.mark.slow
def test_n1_at_the_published_size_in_twenty_orders() -> None:
    assert not sql_numbers.rounding(half=2**22, kinds=("arrow", "parquet"), orders=6).broken
    assert not sql_numbers.rounding(half=2**18, orders=20).broken  # csv, too


def test_n1_breaks_sums_of_doubles() -> None:
    verdict = sql_numbers.rounding(sql_numbers.CONTROL, half=2**18, kinds=("arrow",), orders=0)
    assert verdict.broken and 1 + 1e-6 < verdict.figures["moved"] < 1.1


def test_n2_no_integer_type_overflows() -> None:
    verdict = sql_numbers.overflowing(kinds=("int8", "int64", "uint64"))
    assert not verdict.broken and verdict.figures["refused unread"] < 10, verdict


@pytest.mark.slow
def test_n2_for_every_integer_type() -> None:
    assert not sql_numbers.overflowing().broken


def test_n2_breaks_sums_that_wrap_around() -> None:
    verdict = sql_numbers.overflowing(sql_numbers.WRAPPING, kinds=("int64",))
    assert verdict.broken and verdict.figures["failed"] == 0 and verdict.figures["moved"] > 1.9


def test_n3_orders_and_threads_show_nowhere_and_break_sums_of_doubles() -> None:
    assert not sql_numbers.reordered(orders=9).broken
    verdict = sql_numbers.reordered(sql_numbers.CONTROL, orders=6)
    assert verdict.broken and verdict.figures["sets"] > 2


def test_n4_poison_moves_no_more_than_a_row() -> None:
    verdict = sql_numbers.poisoned(every=6)
    assert not verdict.broken and 0.5 < verdict.figures["moved"] <= 1 + 1e-9, verdict


@pytest.mark.slow
def test_n4_every_poison_in_every_question() -> None:
    assert not sql_numbers.poisoned().broken


def test_n4_breaks_the_text_as_written() -> None:
    verdict = sql_numbers.poisoned(sql_numbers.CONTROL, kinds=("arrow",), every=9)
    assert verdict.broken and verdict.figures["odd"] > 0  # infinities came out


def test_n4_statistics_of_files_decide_nothing() -> None:
    """Parquet's least and largest leave NaN out, and the engine folds tests for NaN: the control moves by 90."""
    assert sql_numbers.folding() > 10
    verdict = sql_numbers.poisoned(kinds=("parquet",), every=1000)
    assert not verdict.broken, verdict


# N5


def test_n5_bad_arguments_are_refused_and_the_control_takes_them() -> None:
    verdict = sql_arguments.attack()
    assert not verdict.broken and verdict.figures["tried"] > 200, verdict
    assert sql_arguments.attack(sql_arguments.CONTROL).broken


def test_n5_a_reach_is_refused_where_no_weight_holds_it() -> None:
    """Rows that are units are not weighted, so noise for a smaller reach would be too little."""
    schema, text = one_table({"x": real(0, 50)}), "SELECT SUM(x) AS s FROM t"
    with pytest.raises(ArgumentError, match="give bounds"):
        sql(text, schema, unit=Unit(), epsilon=1, limits=Limits(reach={"s": 1}))
    wrong: Any = queries.making(queries.ReachWithoutWeights, smaller={'sum of "t"."x"': 1})
    plan = wrong(text, schema, unit=Unit(), epsilon=1)
    pair = [before_noise(plan, {"t": {"x": np.full(n, 50.0)}}) for n in (10, 9)]
    assert moved(plan, *pair) > 49
    right = sql(text, schema, unit=Unit(), epsilon=1)
    assert moved(right, *(before_noise(right, {"t": {"x": np.full(n, 50.0)}}) for n in (10, 9))) <= 1 + 1e-9


# Q1 to Q5


def test_q1_no_cell_ends_a_query_otherwise() -> None:
    verdict = sql_errors.attack()
    assert not verdict.broken and verdict.figures["answered"] >= 12, verdict


def test_q1_breaks_the_text_as_written() -> None:
    verdict = sql_errors.attack(sql_errors.CONTROL)
    assert verdict.broken and verdict.figures["differ"] >= 10


def test_q2_shapes_are_public_and_lone_keys_rare() -> None:
    verdict = sql_shapes.attack(runs=200_000, releases=40)
    assert not verdict.broken and verdict.figures["orders"] == 1, verdict


@pytest.mark.slow
def test_q2_a_million_times() -> None:
    assert not sql_shapes.attack().broken


def test_q2_breaks_where_every_group_shows() -> None:
    verdict = sql_shapes.attack(sql_shapes.CONTROL, runs=10_000, releases=20)
    assert verdict.broken and verdict.figures["shown"] == 20


def test_q2_control_the_engine_shows_the_first_zero() -> None:
    seen = set()
    for cells in ([0.0, -0.0], [-0.0, 0.0]):
        table = pa.table({"x": cells})
        with duckdb.connect() as opened:
            opened.register("given", table)
            (row,) = opened.sql("SELECT x, count(*) FROM given GROUP BY x").fetchall()
        seen.add(math.copysign(1, row[0]))
    assert seen == {1, -1}


def test_q3_nothing_but_the_tables_is_reached() -> None:
    verdict = sql_reach.attack()
    assert not verdict.broken, verdict
    assert sql_reach.attack(sql_reach.CONTROL).broken


@pytest.mark.slow
def test_q4_one_unit_counts_for_one() -> None:
    verdict = sql_units.attack(heavy=300)
    assert not verdict.broken and max(verdict.figures.values()) > 0.99, verdict


def test_q4_breaks_rows_for_users_and_numbers_that_choose() -> None:
    by_user = sql_units.attack(sql_units.CONTROL, sql_units.LIBRARY, heavy=300, questions=sql_units.QUESTIONS[:3])
    assert by_user.broken and max(by_user.figures.values()) > 50
    by_row = sql_units._row(sql_units.ROW_CONTROL, sql_units.BY_ROW[0])
    assert by_row > 1.5


def test_q5_bounds_out_of_the_data_are_refused() -> None:
    verdict = sql_units.data_bounds()
    assert not verdict.broken, verdict
    assert sql_units.data_bounds(sql_units.WRITTEN).broken


def test_q7_a_later_stage_reads_what_was_released() -> None:
    verdict = sql_stages.attack(runs=60)
    assert not verdict.broken, verdict
    assert sql_stages.attack(sql_stages.CONTROL, runs=60).broken


# B1, R1, R2


def test_b1_repeats_are_free_and_equal_and_other_questions_are_charged() -> None:
    assert not sql_budget.repeating(repeats=200).broken
    assert sql_budget.repeating(repeats=5, stores=False).broken


@pytest.mark.slow
def test_b1_a_thousand_times() -> None:
    assert not sql_budget.repeating().broken


@pytest.mark.slow
def test_r1_reconstruction_under_one_budget() -> None:
    verdict = sql_budget.reconstruction(people=48, queries=90, per_query=Fraction(1, 60))
    assert not verdict.broken and verdict.figures["answered"] == 60, verdict
    assert sql_budget.reconstruction(people=48, queries=110, per_query=5, budget=550).broken


@pytest.mark.slow
def test_r1_at_the_published_size() -> None:
    assert not sql_budget.reconstruction().broken
    assert sql_budget.nobody_adds_up().broken


def test_r2_a_pair_is_two_charges() -> None:
    assert not sql_budget.differencing().broken
    assert sql_budget.one_charge().broken


# B5: a series


def test_a_day_of_a_series_is_drawn_once_and_each_planted_bug_is_found() -> None:
    assert not series_days.attack(repeats=12).broken
    again = series_days.attack(ReusedParts, repeats=12)
    assert again.broken and again.figures["twice"] > 0 and again.figures["moved"] == series_days.MOST
    often = series_days.attack(parts=series_days._unlimited, repeats=6)
    assert often.broken and often.figures["twice"] == 0 and often.figures["moved"] == series_days.DAYS
