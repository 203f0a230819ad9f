"""One law of ownership: for every plan and every source, the column that names the unit is the one that the receipt
prints. What is taken keeps it, and what is edited so that it would not is refused."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sfumato import owners
from sfumato.accounting.filters import Budget
from sfumato.audit import shipped, stages
from sfumato.audit.sql_losses import SLACK
from sfumato.curator import Curator
from sfumato.errors import SfumatoError
from sfumato.interactive import Interactive
from sfumato.ledger.memory import MemoryLedger
from sfumato.noise import SeededBits
from sfumato.openings import ENGINE, ROWS
from sfumato.plan import Plan
from sfumato.private import Private
from sfumato.query import SqlReport, SqlSeries, SqlWorkload
from sfumato.sources import catalogue, duckdb_tables
from sfumato.sources.base import quoted
from sfumato_referee.attacks.asking import moved
from tests.ownership import SOURCES, answer, apart, source_of, tried

FITTING = [source for source in SOURCES if "view" not in source]


def test_no_world_that_is_taken_moves_further_than_it_says(tmp_path: Path) -> None:
    taken, refused, wrong = tried(range(90), tmp_path)
    assert not wrong
    assert taken > 20 and refused > 20  # the law is asked both ways


@pytest.mark.slow
def test_nor_do_thousands_of_them(tmp_path: Path) -> None:
    taken, refused, wrong = tried(range(1000, 3000), tmp_path)
    assert not wrong and taken > 400 and refused > 400


def _any_owner(patch: pytest.MonkeyPatch) -> None:
    def lax(table: Any, unit: Any) -> Any:
        return table.unit or unit.column if table.private and unit.column is not None else None

    patch.setattr(owners, "owner", lax)


def _collated(patch: pytest.MonkeyPatch) -> None:
    cell = duckdb_tables.cell_of

    def with_collation(raw: str, physical: str, present: str = "") -> Any:
        honest = cell(raw, physical, present)
        return replace(honest, sql=raw) if physical == "VARCHAR" else honest

    patch.setattr(duckdb_tables, "cell_of", with_collation)


def _any_name(patch: pytest.MonkeyPatch) -> None:
    from sfumato.sources import files

    assert files.stored is catalogue.stored
    patch.setattr(files, "stored", lambda engine, alias, called, *_: f"{quoted(alias)}.main.{quoted(called)}")


@pytest.mark.parametrize(
    ("plant", "source", "seeds"),
    [
        (_any_owner, "columns", (6, 27)),
        (_collated, "duckdb with a collation", (35, 72)),
        (_any_name, "duckdb with a view", (2, 8)),
    ],
)
def test_a_law_that_is_broken_is_seen(
    plant: Callable[[pytest.MonkeyPatch], None],
    source: str,
    seeds: tuple[int, ...],  # of worlds that show it: the first of hundreds, which all were tried
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert not any(tried(range(seed, seed + 1), tmp_path / "whole", source)[2] for seed in seeds)
    plant(monkeypatch)
    assert all(tried(range(seed, seed + 1), tmp_path / "broken", source)[2] for seed in seeds)


def _cells(plan: Plan[Any, Any], seed: int) -> tuple[Any, dict[str, list[Any]]]:
    table = replace(stages.table_for(plan), rows=None)
    made = table.make_up(24, SeededBits(seed).words, awkward=False)
    return table, {name: values.tolist() for name, values in made.items()}


def _held(name: str, source: str, folder: Path) -> None:
    plan = shipped.PLANS[name]()
    table, cells = _cells(plan, 7)
    column = plan.unit.column
    victim = 0 if column is None else cells[column][0]
    keep = [place if column is None else cells[column][place] for place in range(24)]
    less = {each: [c for c, k in zip(values, keep, strict=True) if k != victim] for each, values in cells.items()}
    schema = plan.schema if plan.opens is ENGINE else None  # type: ignore[attr-defined]
    pair = []
    for number, each in enumerate((cells, less)):
        given = source_of(source, folder / str(number), table.name, each)
        pair.append(Private("d", given, unit=plan.unit, schema=schema or _schema(table)))
    assert str(plan.unit) in plan.hides and (column is None or f"one {column} " in plan.hides)
    parts = list(plan.parts.values()) if isinstance(plan, SqlSeries) else [plan]
    parts = [plan.cells] if isinstance(plan, SqlWorkload) else parts
    queries = plan.children if isinstance(plan, SqlReport) else parts  # later stages read what earlier ones released
    for query in [query for query in queries if not query.released] if plan.opens is ENGINE else []:  # type: ignore[attr-defined]
        assert moved(query, *(answer(query, each) for each in pair)) <= SLACK
    whole, other = (ROWS._open(each._tables) for each in pair)
    assert apart(whole, other) is None
    assert whole.unit == plan.unit and whole.unit_count == (24 if column is None else len(set(cells[column])))


def _schema(table: Any) -> Any:
    from sfumato.schema import Schema

    return Schema({table.name: table})


@pytest.mark.parametrize("name", [name for name in shipped.PLANS if name != "SGD"])  # torch is slow to come
def test_every_kind_of_plan_reads_the_units_that_it_prints(name: str, tmp_path: Path) -> None:
    _held(name, FITTING[list(shipped.PLANS).index(name) % len(FITTING)], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("source", FITTING)
@pytest.mark.parametrize("name", shipped.PLANS)
def test_every_kind_of_plan_does_from_every_source(name: str, source: str, tmp_path: Path) -> None:
    _held(name, source, tmp_path)


@pytest.mark.parametrize("name", ["Sql", "Laplace", "OptimalKeys", "TopK", "Sequence"])
def test_the_receipt_names_the_unit_of_the_plan(name: str) -> None:
    plan = shipped.PLANS[name]()
    assert not isinstance(plan, Interactive)
    table, cells = _cells(plan, 3)
    schema = plan.schema if plan.opens is ENGINE else _schema(table)  # type: ignore[attr-defined]
    curator = Curator(
        Private("d", cells, unit=plan.unit, schema=schema), MemoryLedger({"d": Budget(epsilon=10, delta=0.1)})
    )
    release = curator.release(plan)
    assert release.receipt is not None and release.receipt.unit == plan.unit
    assert plan.hides in str(release) and f"hide {plan.hides}" in release.explain()


def _edited(draw: random.Random) -> str:
    """A project file with a few words changed, lines left out or said twice."""
    columns = ["patient", "visit", "home", "id"]
    names = draw.sample(columns, 3)
    lines = ["sfumato: 1", "name: d", f"unit: user:{names[0]}", "tables:"]
    for table in ("visits", "people")[: draw.choice((1, 2))]:
        own = draw.choice((names[0], names[0], names[1], names[2]))
        lines += [f"  {table}:", f"    source: {table}.csv"]
        lines += [f"    unit: {own}"] if draw.random() < 0.7 else []
        lines += [f"    names: {draw.choice((names[0], names[1]))}"] if draw.random() < 0.4 else []
        lines += ["    public: true"] if draw.random() < 0.1 else []
        held = draw.sample([own, *names], draw.choice((2, 3, 4)))
        lines += ["    columns:", *(f"      {each}: key" for each in dict.fromkeys(held))]
        lines += ["      cost: {type: real, lower: 0, upper: 1}"]
    lines.append("budget: {total: {epsilon: 1}}")
    return "\n".join(lines)


def test_a_project_that_opens_prints_the_columns_that_it_reads(tmp_path: Path) -> None:
    pytest.importorskip("pydantic")
    from sfumato.project import open_project

    opened = refused = 0
    for seed in range(200):
        (tmp_path / "sfumato.yaml").write_text(_edited(random.Random(seed)), encoding="utf-8")
        try:
            project = open_project(tmp_path)
        except SfumatoError:
            refused += 1
            continue
        opened += 1
        table = next(name for name, each in project.schema.tables.items() if each.private)
        plan = project.plan(f"SELECT SUM(cost) AS s FROM {table}", epsilon=1, limits={"rows": 1})
        statement = " ".join(plan.statements()["sums"].split())
        column = plan.other_names.get(table, project.unit.column)
        assert f'"{column}" AS "_unit"' in statement
        assert f"one {column} ever" in plan.hides or f"in {table} {column} names it" in plan.hides
    assert opened > 20 and refused > 50
