"""Tables that a Spark reads, from a quote to a receipt: the same integers before noise as in DuckDB."""

from __future__ import annotations

import contextlib
import itertools
import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from sfumato import Budget, Curator, MemoryLedger, Private, record, sql
from sfumato.errors import PlanError
from sfumato.schema import Schema, Table, category, key, whole
from sfumato.sources import Source, SparkTable, connect, source, spark_session
from sfumato.sources.spark_session import SparkSession
from sfumato.units import Unit
from tests.query.fuzzing import worlds
from tests.query.fuzzing.trial import PER_WORLD, plan_of, users_in
from tests.query.still import Still
from tests.sources.engines.test_second_engine import QUERIES, ROWS, SCHEMA, WHO, by_column
from tests.sources.spark import kit

_TYPES = {
    "who": pa.int64(), "ward": pa.string(), "size": pa.int32(), "days": pa.float64(), "cost": pa.int64(),
    "home": pa.int32(),
}  # fmt: skip


REFUSALS = ("Spark has no word for", "too long for Spark", "Spark looks one query out alone")


def stored(folder: Path) -> SparkTable:
    columns = {name: pa.array(cells, _TYPES[name]) for name, cells in by_column(ROWS).items()}
    return kit.store(folder, pa.table(columns), files=3)


def before_noise(plan: Any, tables: dict[str, tuple[Table, Source]]) -> bytes:
    with contextlib.closing(connect(tables, threads=1)) as opened:
        return _run(plan, opened)


@kit.NEEDS_JAVA
def test_a_release_from_quote_to_receipt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one test of Spark that every run has."""
    visits, asked = stored(tmp_path), []
    honest = SparkSession._bound
    monkeypatch.setattr(SparkSession, "_bound", lambda self, text: asked.append(text) or honest(self, text))
    clinic = Private("clinic", visits, unit=WHO, schema=SCHEMA)
    ledger = MemoryLedger({"clinic": Budget(epsilon=10)})
    curator, unspent = Curator(clinic, ledger), ledger.spent("clinic")
    plan = sql(QUERIES[1], clinic, epsilon=8, limits={"rows": 10})
    assert "8" in str(curator.quote(plan)) and ledger.spent("clinic") == unspent
    release = curator.release(plan)
    answer = dict(zip(release.value["ward"], release.value["n"], strict=True))
    assert all(abs(answer[ward] - 200) < 60 for ward in ("a", "b", "it's"))
    assert release.receipt.data == clinic.address and str(tmp_path) not in str(release.receipt)
    assert ledger.spent("clinic") != unspent
    assert all("DECIMAL(38, 0)" in text for text in asked)
    table = SCHEMA.table("visits")
    there = before_noise(plan, {"visits": (table, visits)})
    assert there == before_noise(plan, {"visits": (table, source(by_column(ROWS)))})


@pytest.mark.slow
@kit.NEEDS_JAVA
@pytest.mark.parametrize("text", QUERIES)
def test_the_same_integers_before_noise(text: str, tmp_path: Path) -> None:
    plan = sql(text, SCHEMA, unit=WHO, epsilon=1, limits={"rows": 4}, bounds={"m": (0, 9)} if "AS m" in text else {})
    table = SCHEMA.table("visits")
    there = before_noise(plan, {"visits": (table, stored(tmp_path))})
    assert there == before_noise(plan, {"visits": (table, source(by_column(ROWS)))})


@pytest.mark.slow
@kit.NEEDS_JAVA
def test_the_adviser_asks_it_too(tmp_path: Path) -> None:
    plan = sql(QUERIES[1], SCHEMA, unit=WHO, epsilon=1)
    table = SCHEMA.table("visits")
    there = before_noise(plan, {"visits": (table, stored(tmp_path))})
    assert there == before_noise(plan, {"visits": (table, source(by_column(ROWS)))})


@pytest.mark.slow
@kit.NEEDS_JAVA
def test_public_frames_are_joined_to_it(tmp_path: Path) -> None:
    """They go along, odd texts among them."""
    wards = Table({"ward": category(["a", "b", "it's"]), "beds": whole(0, 99), "word": key()}, private=False)
    schema = Schema({"visits": SCHEMA.table("visits"), "wards": wards})
    public = pa.table({"ward": ["a", "b", "it's", None], "beds": [3, 90, None, 4], "word": ['\\"{}', "NULL", "", "é"]})
    text = "SELECT word, SUM(beds) AS s, COUNT(*) AS n FROM visits JOIN wards ON visits.ward = wards.ward GROUP BY word"
    plan = sql(text, schema, unit=WHO, epsilon=1, limits={"rows": 4}, keys={"word": ['\\"{}', "NULL", ""]})
    tables = {"wards": (wards, source(public))}
    there = before_noise(plan, {"visits": (SCHEMA.table("visits"), stored(tmp_path)), **tables})
    assert there == before_noise(plan, {"visits": (SCHEMA.table("visits"), source(by_column(ROWS))), **tables})


@pytest.mark.slow
@kit.NEEDS_JAVA
def test_private_rows_in_memory_are_not_sent_to_a_cluster(tmp_path: Path) -> None:
    more = Table({"who": key(), "ward": category(["a"])}, unit="who")
    schema = Schema({"visits": SCHEMA.table("visits"), "more": more})
    tables = {"visits": stored(tmp_path), "more": {"who": [1], "ward": ["a"]}}
    clinic = Private("clinic", tables, unit=WHO, schema=schema)
    plan = sql("SELECT COUNT(*) AS n FROM more", clinic, epsilon=1, limits={"rows": 4})
    with pytest.raises(PlanError, match="is private and in memory, and is not sent to a cluster"):
        clinic.compare(plan)


def compared(seeds: Iterable[int], folder: Path) -> tuple[int, int]:
    """How many random queries of these seeds gave the same in both engines, and how many Spark refused. Which rows a
    hash keeps is each engine's own affair: such queries are run and not compared. A world has one session in each."""
    same = refused = 0
    for number, these in itertools.groupby(seeds, lambda seed: seed // PER_WORLD):
        draw, users = random.Random(number), users_in(number * PER_WORLD)
        schema = worlds.schema_of(draw, users)
        frames = {
            name: pa.table({each: pa.array(v, worlds._TYPES.get(each, pa.string())) for each, v in columns.items()})
            for name, columns in worlds.tables_of(draw, 60).items()
        }
        world = worlds.World(schema, Unit("user:patient" if users else "row"), {})
        stores = {name: kit.store(folder / str(number) / name, rows) for name, rows in frames.items()}
        with _opened(schema, stores) as there, _opened(schema, frames) as here:
            for seed in these:
                try:
                    _, plan = plan_of(seed, world)
                except Exception:
                    continue
                try:
                    answer = _run(plan, there)
                except PlanError as refusal:
                    assert any(word in str(refusal) for word in REFUSALS), (seed, plan.text)
                    refused += 1
                    continue
                hashed = any("ordering_hash" in str(part) for part in (plan.explain() or ())) or "DISTINCT" in plan.text
                assert hashed or answer == _run(plan, here), (seed, plan.text)
                same += 1
    return same, refused


def _opened(schema: Schema, tables: Mapping[str, Any]) -> Any:
    return contextlib.closing(connect({name: (schema.table(name), source(each)) for name, each in tables.items()}))


def _run(plan: Any, opened: Any) -> bytes:
    return record.canonical(plan._run(opened, SimpleNamespace(noise=Still())))


@pytest.mark.slow
@kit.NEEDS_JAVA
@pytest.mark.parametrize("part", range(5))
def test_a_hundred_random_queries_give_the_same_integers(part: int, tmp_path: Path) -> None:
    same, refused = compared(range(25 + 25 * part, 50 + 25 * part), tmp_path)
    assert same >= 18 and refused <= 2


@pytest.mark.slow
@kit.NEEDS_JAVA
def test_many_groups_come_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each group in one of them, and nothing is left behind in the cluster."""
    plan = sql(kit.QUERY, SCHEMA, unit=WHO, epsilon=1, delta=1e-3, limits={"rows": 4}, keys={"ward": "select"})
    table, visits = SCHEMA.table("visits"), stored(tmp_path)
    here = before_noise(plan, {"visits": (table, source(by_column(ROWS)))})
    sizes: list[int] = []
    honest = SparkSession._part
    monkeypatch.setattr(SparkSession, "_part", lambda self, *given: sizes.append(1) or honest(self, *given))
    for most in (1, 1 << 20):
        monkeypatch.setattr(spark_session, "_AT_ONCE", most)
        assert before_noise(plan, {"visits": (table, visits)}) == here
    assert len(sizes) == 3 + 1
    assert kit.spark().sparkContext._jsc.getPersistentRDDs().isEmpty()
