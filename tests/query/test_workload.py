"""Workloads: what is measured and told, what one unit can move, what is chosen, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato import events, record, strategies
from sfumato.accounting import approximate
from sfumato.audit.conformance import check_plan
from sfumato.errors import ArgumentError, PlanError, SfumatoError
from sfumato.noise import Noise, SeededBits
from sfumato.plan import Run
from sfumato.query import SqlWorkload, front
from sfumato.query.tabled import asked_tables, cell_statement, measured_cells
from sfumato.query.tabled.choosing import total_error
from sfumato.query.tabled.measured_cells import MeasuredCells
from sfumato.query.tabled.told_tables import _values
from sfumato.schema import Schema, Table, category, date, key, real, whole
from sfumato.sources import connect, source
from sfumato.units import Unit
from tests.query.workload_kit import (
    KINDS,
    PERSON,
    QUERY,
    SCHEMA,
    STAYS,
    TABLES,
    Rows,
    exactly,
    lost,
    oracle,
    random_rows,
    with_one_more,
    without,
    workload_of,
)

BUDGETS: tuple[dict[str, Any], ...] = ({"epsilon": 1, "delta": 0}, {"epsilon": 1, "delta": 1e-6})
ROWS_ALONE = Table({name: column for name, column in STAYS.columns.items() if name != "person"})


def test_a_small_workload_keeps_every_promise() -> None:
    check_plan(SqlWorkload.sample())


def told(plan: SqlWorkload, raw: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """By table, its numbers by column."""
    answer = plan.finish(raw)
    names = np.array(answer["table"])
    return {
        table.name: {c.title: np.array(answer[c.title])[names == table.name] for c in plan.told_columns}
        for table in plan.tables
    }


@pytest.mark.parametrize("budget", BUDGETS, ids=["laplace", "gaussian"])
@pytest.mark.parametrize("kind", KINDS)
def test_without_noise_tables_are_those_of_the_rows(kind: str, budget: dict[str, Any]) -> None:
    rows = random_rows(np.random.default_rng(5), 60, people=40)
    plan = workload_of(strategy=kind, limits={"rows": 60}, **budget)
    numbers = told(plan, exactly(plan, rows))
    for name, table in TABLES.items():
        forms = dict.fromkeys(table, "values") if isinstance(table, list) else table
        rows_of = oracle(rows, forms, np.ones(60))
        assert np.allclose(numbers[name]["n"], rows_of, atol=0.02), name
        assert np.allclose(numbers[name]["paid"], oracle(rows, forms, np.clip(rows["cost"], -2, 9)), atol=0.5), name


@pytest.mark.parametrize("kind", KINDS)
def test_totals_and_parts_agree_whatever_the_noise(kind: str) -> None:
    rows = random_rows(np.random.default_rng(6), 60, people=40)
    plan = workload_of(strategy=kind, epsilon=0.1)
    connection = connect({"stays": (STAYS, source(dict(rows)))}, threads=1)
    numbers = told(plan, plan._run(connection, Run(Noise(SeededBits(3)))))
    connection.close()
    for title in ("n", "paid"):
        total = numbers["total"][title][0]
        assert np.isclose(numbers["ward"][title].sum(), total, rtol=0, atol=1e-7 * max(abs(total), 100))
        assert np.isclose(numbers["by age"][title][-1], total, rtol=0, atol=1e-7 * max(abs(total), 100))
        by_ward = numbers["old by ward"][title].reshape(5, 3)
        assert np.allclose(by_ward.sum(axis=0), numbers["ward"][title], rtol=0, atol=1e-6)
        ranges = numbers["ranges"][title]
        assert np.allclose(by_ward.sum(axis=1), ranges[[0, 5, 9, 12, 14]], rtol=0, atol=1e-6)
        assert np.isclose(ranges[4], total, rtol=0, atol=1e-6)
        bands = numbers["bands"][title].reshape(3, 3)
        assert np.allclose(bands[:, 0] + bands[:, 1], numbers["ward"][title], rtol=0, atol=1e-6)


def people(rows: Rows) -> list[str]:
    return sorted(set(rows["person"]))


@pytest.mark.parametrize("budget", BUDGETS, ids=["laplace", "gaussian"])
@pytest.mark.parametrize("kind", KINDS)
def test_no_person_moves_what_is_measured_by_more_than_is_paid(kind: str, budget: dict[str, Any]) -> None:
    """Heavy people, people in many cells, values beyond the bounds; the limit is nearly used."""
    rng, most = np.random.default_rng(7), 0.0
    plan = workload_of(strategy=kind, **budget)
    for rows in (
        *(random_rows(rng, 40, heavy=heavy) for heavy in (0, 4, 400)),
        *(with_one_more(random_rows(rng, 20), spread) for spread in (False, True)),
    ):
        whole_ = exactly(plan, rows)
        for person in people(rows)[:3]:
            most = max(most, lost(plan, whole_, exactly(plan, without(rows, person))))
    assert 0.85 < most <= 1 + 1e-9


@pytest.mark.parametrize("budget", BUDGETS, ids=["laplace", "gaussian"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("of", ["row", "user:person"])
def test_no_exchange_moves_what_is_measured_by_more_than_is_paid(kind: str, budget: dict[str, Any], of: str) -> None:
    rng, most = np.random.default_rng(8), 0.0
    table = STAYS if of != "row" else ROWS_ALONE
    query = QUERY.replace("COUNT(*) AS n, SUM(cost) AS paid", "COUNT(*) AS n")
    limits = {"limits": {"rows": 3} if of != "row" else None}
    plan = workload_of(query, schema=Schema({"stays": table}), unit=Unit(of, change="replace"), strategy=kind,
                       **budget, **limits)  # fmt: skip
    for _ in range(4):
        rows = random_rows(rng, 30, heavy=0 if of == "row" else 20)
        other = {name: list(cells) for name, cells in rows.items()}
        moved = [29] if of == "row" else [place for place, who in enumerate(rows["person"]) if who == "p0"]
        for place in moved:
            other["age"][place], other["old"][place], other["ward"][place] = 11, 0, "west"
        pair = [{name: cells for name, cells in side.items() if name in table.columns} for side in (rows, other)]
        most = max(most, lost(plan, *(exactly(plan, side, table) for side in pair)))
    assert 0.4 < most <= 1 + 1e-9


def _half(moved: Any) -> Any:
    return property(lambda self: moved.func(self) / 4)


def _plainly(sums: Any) -> Any:
    return lambda *given: replace(sums(*given), units=False)


def _of_squares(sums: Any) -> Any:
    """As private SQL limits one table, in the length of its cells."""
    return lambda *given: replace(sums(*given), blur=replace(given[1].blur, kind="gaussian"))


def _all_shares(tables: Any) -> Any:
    return property(lambda self: tuple(replace(table, share=Fraction(1)) for table in tables.func(self)))


@pytest.mark.parametrize(
    ("where", "name", "fault"),
    [
        (MeasuredCells, "_moved", _half),
        (MeasuredCells, "tables", _all_shares),
        ("sums_of", "sums_of", _plainly),
        ("sums_of", "sums_of", _of_squares),
    ],
    ids=["half the reach", "all of the budget for each table", "no limits", "the limits of one table"],
)
def test_planted_faults_are_found(
    where: Any, name: str, fault: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person with many rows, in one cell and in many."""
    if where == "sums_of":
        from sfumato.query.tabled import workload_plan

        monkeypatch.setattr(workload_plan, name, fault(cell_statement.sums_of))
    else:
        monkeypatch.setattr(where, name, fault(where.__dict__[name]))
    plan = workload_of(strategy="tables")
    few = random_rows(np.random.default_rng(9), 30)
    pairs = [(exactly(plan, rows), exactly(plan, without(rows, "p0"))) for rows in (
        with_one_more(few, spread) for spread in (False, True)
    )]  # fmt: skip
    assert max(lost(plan, *pair) for pair in pairs) > 1.4


def test_cells_that_are_too_many_together_are_asked_table_by_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one statement all the same, and with the same numbers."""
    rows = random_rows(np.random.default_rng(10), 80, heavy=50)
    tables = {"one": ["ward", "old"], "two": {"old": "values", "age": "cumulative"}, "three": ["ward"]}
    plan = workload_of(tables=tables, strategy="tables")
    (together,) = plan.numbers[0].sets
    assert together == (0, 1, 2)
    monkeypatch.setattr(measured_cells, "MOST", 100)
    apart = workload_of(tables=tables, strategy="tables")
    assert apart.numbers[0].sets == ((0, 2), (1, 2))
    assert exactly(plan, rows) == exactly(apart, rows)
    assert all("CROSS JOIN" in text for text in apart.statements().values())


def test_many_columns_are_measured_in_their_pairs() -> None:
    """A domain of 10^12 cells, of which the pairs have 6,600."""
    columns = {f"c{place}": whole(0, 9) for place in range(12)}
    schema = Schema({"answers": Table(columns)})
    names = ", ".join(columns)
    plan = sf.workload(f"SELECT {names}, COUNT(*) AS n FROM answers GROUP BY {names}", schema, unit=Unit(), ways=2,
                       rho=0.1)  # fmt: skip
    assert len(plan.tables) == 79 and plan.strategy.measurements <= 6_721 and len(plan.numbers[0].sets) == 66
    rng = np.random.default_rng(11)
    rows = {name: rng.integers(10, size=300).tolist() for name in columns}
    connection = connect({"answers": (schema.tables["answers"], source(rows))}, threads=1)
    connection.bind(next(iter(plan._statements.values())))
    from sfumato.audit.silent import Silent

    numbers = told(plan, plan._run(connection, Run(Silent(SeededBits(0)))))
    connection.close()
    assert np.isclose(numbers["total"]["n"][0], 300)
    pair = np.zeros((10, 10))
    np.add.at(pair, (rows["c3"], rows["c7"]), 1)
    assert np.allclose(numbers["c3 by c7"]["n"].reshape(10, 10), pair)


@pytest.mark.parametrize(
    ("budget", "factor"), [({"rho": 0.5}, 12.0), ({"epsilon": 1}, 2.6)], ids=["gaussian", "laplace"]
)
def test_cumulative_tables_beat_measured_cells_by_the_known_factor(budget: dict[str, Any], factor: float) -> None:
    """128 prefixes: a mean squared error of 5.341 beside 64.5 with Gaussian noise (docs/mechanisms/workloads.md)."""
    schema = Schema({"data": Table({"age": whole(0, 127)})})
    query = "SELECT age, COUNT(*) AS n FROM data GROUP BY age"
    asked = {"tables": {"up": {"age": "cumulative"}}, "unit": Unit(), **budget}
    best = sf.workload(query, schema, **asked)
    plain = sf.workload(query, schema, **asked, strategy="cells")
    error = {plan: total_error(plan.strategy, plan.tables, plan.columns_by_name, plan.cells.blur.kind, "add-remove")
             for plan in (best, plain)}  # fmt: skip
    law = 1 if "rho" in budget else 2
    assert error[plain] / 128 == pytest.approx(64.5 * law)
    assert error[plain] / error[best] > factor
    if law == 1:
        assert error[best] / 128 == pytest.approx(5.341, rel=0.01)
    widths = [next(iter(plan.expected_errors(0.05).values())) for plan in (best, plain)]
    assert widths[0] < widths[1] / (3 if law == 1 else 1.3)


def test_what_is_chosen_is_the_least_of_all_and_depends_on_no_row() -> None:
    for budget in BUDGETS:
        chosen = workload_of(**budget)
        totals = [
            total_error(plan.strategy, plan.tables, plan.columns_by_name, plan.cells.blur.kind, "add-remove")
            for plan in (chosen, *(workload_of(strategy=kind, **budget) for kind in KINDS))
        ]
        assert totals[0] == min(totals)
        assert workload_of(**budget) == chosen and workload_of(**budget).hash == chosen.hash


@pytest.mark.parametrize("budget", BUDGETS, ids=["laplace", "gaussian"])
@pytest.mark.parametrize("kind", KINDS)
def test_expected_errors_are_those_of_the_noise(kind: str, budget: dict[str, Any]) -> None:
    coverage(kind, budget, runs=150, room=0.12)


@pytest.mark.slow
@pytest.mark.parametrize("budget", BUDGETS, ids=["laplace", "gaussian"])
@pytest.mark.parametrize("kind", KINDS)
def test_error_bars_hold_as_often_as_they_say(kind: str, budget: dict[str, Any]) -> None:
    coverage(kind, budget, runs=4000, room=0.02)


def coverage(kind: str, budget: dict[str, Any], *, runs: int, room: float) -> None:
    """Of every answer at 90 %: as often as they say, and of Gaussian noise hardly more often (Laplace: bounds)."""
    plan = workload_of(strategy=kind, **budget, limits={"rows": 30})
    rows = random_rows(np.random.default_rng(12), 50, people=50)
    truth = plan.finish(exactly(plan, rows))
    connection = connect({"stays": (STAYS, source(dict(rows)))}, threads=1)
    exact_ = plan._exactly(connection)
    connection.close()
    noise = Run(Noise(SeededBits(13)))
    blurred = plan._blurred(exact_, noise, runs)
    for column in plan.told_columns:
        width = np.array(truth.noise_width(column.title, 0.1))
        estimate = partial(_estimated, plan, column, blurred)
        held = np.mean([np.abs(estimate(run) - np.array(truth[column.title])) <= width for run in range(runs)], axis=0)
        assert held.min() > 0.9 - room and held.mean() > 0.9 - room / 5
        assert held.mean() < (0.9 + room / 2 if budget["delta"] else 0.99)


def _estimated(plan: SqlWorkload, column: Any, blurred: dict[str, list[Any]], run: int) -> Any:
    raw = {"numbers": {name: [table[run] for table in tables] for name, tables in blurred.items()}}
    return np.concatenate([_values(plan, table, column, raw) for table in plan.tables])


def test_a_workload_is_priced_and_stored_as_its_cells_are() -> None:
    for budget in ({"epsilon": 1, "delta": 1e-6}, {"rho": Fraction(1, 50), "epsilon": None, "delta": 0}):
        plan = workload_of(**budget)
        assert record.parse(record.canonical(plan)) == plan
        assert plan.event == plan.cells.event and isinstance(plan.event, events.Gaussian)
    assert approximate.epsilon(workload_of().event, workload_of().delta) <= 1
    limits = [bound for bound in workload_of().contribution_bounds() if bound.get("lengths")]
    assert [bound["lengths"] for bound in limits] == ["add up"]
    assert "in one group" not in str(limits)


def test_a_release_goes_through_the_door_and_tells_what_it_is() -> None:
    rows = random_rows(np.random.default_rng(14), 400, people=100)
    ledger = sf.MemoryLedger({"stays": sf.Budget(epsilon=3, delta=1e-5)})
    curator = sf.Curator(sf.Private("stays", rows, unit=PERSON, schema=SCHEMA), ledger)
    plan = workload_of()
    quote = curator.quote(plan)
    assert quote.affordable and "measures" in quote.plan.expected_work() and set(quote.errors()) == {
        f"{name}: {title}" for name in TABLES for title in ("n", "paid")
    }  # fmt: skip
    release = curator.release(plan)
    assert curator.release(plan).raw == release.raw  # nothing is drawn twice
    answer = release.value
    assert answer.columns == ("table", "ward", "age", "old", "n", "paid") and len(answer) == 1 + 3 + 12 + 15 + 9 + 15
    assert answer.rows[0]["ward"] is None and answer.rows[0]["table"] == "total"
    assert "up to 11" in answer["age"] and "4 to 11" in answer["age"] and "0 to 4" in answer["old"]
    assert release.error()["n"][0] == float("inf")  # what limits cut is not known
    assert any("not known" in note for note in answer.notes)
    assert answer.to_pandas().shape == (55, 14)
    assert any("least squares" in line for line in plan.explain())


def test_rows_that_are_units_are_not_limited_and_their_bars_are_closed() -> None:
    plan = workload_of(schema=Schema({"stays": ROWS_ALONE}), unit=Unit(), limits=None)
    raw = exactly(
        plan, {k: v for k, v in random_rows(np.random.default_rng(1), 9).items() if k != "person"}, ROWS_ALONE
    )
    errors = plan.error(raw, 0.05)
    expected = plan.expected_errors(0.05)
    assert max(errors["n"]) == pytest.approx(max(w for name, w in expected.items() if name.endswith(": n")))
    assert plan.error_words == "" and workload_of().error_words != ""


def test_dates_and_given_groups_are_columns_too() -> None:
    table = Table({"person": key(), "day": date("2026-01-01", "2026-01-31"), "code": key()}, unit="person")
    plan = sf.workload(
        "SELECT day, code, COUNT(*) AS n FROM stays GROUP BY day, code", Schema({"stays": table}), unit=PERSON,
        tables=[{"day": "cumulative", "code": "values"}, {"day": [("2026-01-05", "2026-01-11")]}],
        keys={"code": ["a", "b"]}, epsilon=1, limits={"rows": 2},
    )  # fmt: skip
    rows = {"person": ["p1", "p2", "p2"], "day": ["2026-01-03", "2026-01-06", "2026-01-31"], "code": ["a", "b", "a"]}
    answer = plan.finish(exactly(plan, rows, table))
    numbers = {(row["day"], row["code"]): row["n"] for row in answer.rows}
    assert numbers["up to 2026-01-31", "a"] == pytest.approx(2)
    assert numbers["up to 2026-01-05", "b"] == pytest.approx(0)
    assert numbers["2026-01-05 to 2026-01-11", None] == pytest.approx(1)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"tables": {"x": ["street"]}}, "street"),
        ({"tables": {"x": ["ward"]}}, "no table has the column 'age'"),
        ({"tables": None}, "ways=2"),
        ({"tables": {"x": {"age": "prefix"}}}, "form of age"),
        ({"tables": {**TABLES, "x": {"age": [(3, 99)]}}}, "ranges of age"),
        ({"tables": {**TABLES, "x": {"age": [(5, 3)]}}}, "first value"),
        ({"tables": {**TABLES, "x": {"age": []}}}, "form of age"),
        ({"tables": {**TABLES, "x": "ward"}}, "a list of columns"),
        ({"tables": {**TABLES, "x": ["ward", "ward"]}}, "no column twice"),
        ({"tables": []}, "no table has"),
        ({"strategy": "best"}, "strategy"),
        ({"limits": None}, "limits that are known beforehand"),
        ({"query": "SELECT ward, COUNT(DISTINCT person) AS n FROM stays GROUP BY ward", "ways": 1, "tables": None},
         "does not add up from cell to cell"),
        ({"query": "SELECT ward, COUNT(*) AS n FROM stays GROUP BY ward HAVING COUNT(*) > 3", "ways": 1,
          "tables": None}, "HAVING"),
        ({"query": "SELECT cost, COUNT(*) AS n FROM stays GROUP BY cost", "ways": 1, "tables": None}, "cost"),
        ({"query": QUERY + " -- sfumato: epsilon=2"}, "comment"),
    ],
)  # fmt: skip
def test_what_is_no_workload_is_refused(changed: dict[str, Any], words: str) -> None:
    with pytest.raises(SfumatoError, match=words.replace("(", r"\(")):
        workload_of(**changed)


def test_what_is_too_large_is_refused_by_name() -> None:
    columns = {f"c{place}": whole(0, 99) for place in range(4)}
    schema, names = Schema({"answers": Table(columns)}), ", ".join(columns)
    query = f"SELECT {names}, COUNT(*) AS n FROM answers GROUP BY {names}"
    with pytest.raises(ArgumentError, match=r"table 'all of it' has 100,000,000 cells"):
        sf.workload(query, schema, unit=Unit(), tables={"all of it": list(columns)}, epsilon=1)
    with pytest.raises(ArgumentError, match=r"'c0 by c1 by c2' has 1,000,000|more than 1,000,000 numbers"):
        sf.workload(query, schema, unit=Unit(), ways=3, epsilon=1)
    assert asked_tables.MOST == 10**6


def test_a_strategy_that_does_not_fit_is_refused() -> None:
    plan = workload_of(strategy="tables")
    with pytest.raises(ArgumentError, match="strategy"):
        replace(plan, strategy=strategies.Product.of([strategies.Identity(cells=3)]))
    assert isinstance(plan.strategy, strategies.Nested)
    only = strategies.Nested(groups=plan.strategy.groups, tables=((0, 0, 0),), shares=(1,))
    with pytest.raises(ArgumentError, match="determine table 'ward'"):
        replace(plan, strategy=only)
    with pytest.raises(PlanError):
        plan.check(STAYS)
    with pytest.raises(PlanError, match="another schema"):
        plan.check_schema(Schema({"stays": Table({"ward": category(["east"]), "cost": real(0, 1)})}))
    front.forget()
