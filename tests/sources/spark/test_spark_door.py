"""What a Spark and its other users can do to a release: nothing that changes it, and nothing that tells."""

from __future__ import annotations

import datetime
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sfumato import Budget, Curator, MemoryLedger, Private, sql
from sfumato.errors import DataError, PlanError
from sfumato.schema import Schema, Table, key, moment, real
from sfumato.sources import SparkFrame, SparkTable, connect, source, spark_session
from sfumato.sources.spark_session import SparkSession
from sfumato.sources.vocabulary import read
from sfumato.units import Unit
from tests.sources.spark import kit

pytestmark = kit.SLOW
TABLE = Table({"who": key(), "cost": real(0, 100)}, unit="who", name="visits")
SCHEMA = Schema({"visits": TABLE})
QUERY = "SELECT SUM(cost) AS s, COUNT(*) AS n FROM visits"
SECRET = "SECRET-4711"
ROWS = pa.table({"Who": [f"{SECRET} {i}" for i in range(500)], "cost": [float(i % 100) for i in range(500)]})
TOTAL = [{"Total": 24750, "n": 500}]
STATEMENT = "SELECT SUM(CAST(cost AS BIGINT)) AS Total, count(*) AS n FROM visits WHERE who >= ''"


@pytest.fixture(scope="module")
def visits(tmp_path_factory: pytest.TempPathFactory) -> SparkTable:
    return kit.store(tmp_path_factory.mktemp("visits") / "rows", ROWS, files=2)


def total(given: Any) -> Any:
    opened = connect({"visits": (TABLE, source(given))})
    try:
        return opened.run(read(STATEMENT)).to_pylist()
    finally:
        opened.close()


def silent(problem: BaseException) -> None:
    """No cell, no path, no word of Spark's, also not in what the error holds on to."""
    link: BaseException | None = problem
    while link is not None:
        assert not any(word in str(link) for word in (SECRET, "SQLSTATE", "org.apache", "Exception", "file:/"))
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def unspent(given: Any, message: str) -> None:
    """Refused at a quote and at a release, for nothing."""
    table = Private("clinic", given, unit=Unit("user:who"), schema=SCHEMA)
    ledger = MemoryLedger({"clinic": Budget(epsilon=5)})
    before = ledger.spent("clinic")
    plan = sql(QUERY, table, epsilon=1, limits={"rows": 1})
    for ask in (Curator(table, ledger).quote, Curator(table, ledger).release):
        with pytest.raises(PlanError, match=message) as caught:
            ask(plan)
        silent(caught.value)
    assert ledger.spent("clinic") == before


def failed(given: Any, **more: Any) -> None:
    """A release that fails after it was paid for: the charge stays, and the text is the one of all failures."""
    table = Private("clinic", given, unit=Unit("user:who"), schema=SCHEMA, **more)
    ledger = MemoryLedger({"clinic": Budget(epsilon=5)})
    before = ledger.spent("clinic")
    with pytest.raises(DataError) as caught:
        Curator(table, ledger).release(sql(QUERY, table, epsilon=1, limits={"rows": 1}))
    assert str(caught.value) == DataError.TEXT
    silent(caught.value)
    assert ledger.spent("clinic") != before


def test_what_others_set_and_registered_has_no_say(visits: SparkTable, tmp_path: Path) -> None:
    """Settings, views and functions of the session that is handed over, but for how many parts it shuffles into."""
    theirs = kit.spark().newSession()
    settings = {
        "ansi.enabled": "false", "caseSensitive": "true", "session.timeZone": "Asia/Kathmandu",
        "parser.escapedStringLiterals": "true", "ansi.doubleQuotedIdentifiers": "true",
        "legacy.timeParserPolicy": "LEGACY", "decimalOperations.allowPrecisionLoss": "false",
        "timestampType": "TIMESTAMP_NTZ", "shuffle.partitions": "3",
    }  # fmt: skip
    for name, value in settings.items():
        theirs.conf.set(f"spark.sql.{name}", value)
    theirs.sql("CREATE TEMPORARY FUNCTION try_add(a BIGINT, b BIGINT) RETURNS BIGINT RETURN 666")
    theirs.sql("CREATE TEMPORARY VIEW visits AS SELECT 'x' AS who, 666D AS cost")
    assert total(SparkTable(theirs, visits.path)) == TOTAL
    table = Table({"at": moment("2024-01-01", "2024-12-31")}, name="t", private=False)
    stored = kit.store(
        tmp_path, pa.table({"at": pa.array([datetime.datetime(2024, 3, 1, 12, 30)], pa.timestamp("us", "UTC"))})
    )
    opened = connect({"t": (table, SparkTable(theirs, stored.path))})
    assert opened._opened.conf.get("spark.sql.shuffle.partitions") == "3"  # type: ignore[attr-defined]
    tree = read(
        "SELECT extract(HOUR FROM at) AS h, CAST(at AS VARCHAR) AS s FROM t WHERE CAST(at AS VARCHAR) <> 'it''s'"
    )
    assert opened.run(tree).to_pylist() == [{"h": 12, "s": "2024-03-01 12:30:00"}]
    opened.close()


def test_a_frame_that_scans_files_is_taken_and_one_that_computes_is_not(visits: SparkTable) -> None:
    frame = kit.spark().read.parquet(visits.path)
    assert isinstance(source(frame), SparkFrame)
    assert total(frame) == TOTAL
    assert total(frame.select("cost", "Who")) == TOTAL
    frame.createOrReplaceTempView("theirs")
    for computed in (
        frame.selectExpr("Who", "cost / MAX(cost) OVER () AS cost"),
        frame.selectExpr("Who", "RAND() AS cost"),
        frame.limit(5), frame.sample(0.5), frame.distinct(), frame.filter("cost > 5"),
        kit.spark().createDataFrame([("x", 1.0)], "Who string, cost double"),
    ):  # fmt: skip
        unspent(computed, "is no plain scan of Parquet files")


def test_tables_of_the_catalogue_are_read_and_views_are_not(visits: SparkTable) -> None:
    spark = kit.spark()
    spark.sql("CREATE DATABASE IF NOT EXISTS clinic")
    spark.sql("DROP TABLE IF EXISTS clinic.visits")
    spark.sql(f"CREATE TABLE clinic.visits USING parquet LOCATION 'file:{visits.path}'")
    assert total(SparkTable(spark, table="clinic.visits")) == TOTAL
    spark.sql("CREATE OR REPLACE VIEW clinic.shares AS SELECT Who, cost / MAX(cost) OVER () AS cost FROM clinic.visits")
    unspent(SparkTable(spark, table="clinic.shares"), "is a view, which may compute over all rows")
    spark.sql("CREATE TABLE IF NOT EXISTS clinic.texts (Who STRING, cost DOUBLE) USING csv")
    unspent(SparkTable(spark, table="clinic.texts"), "is stored as 'csv'")
    unspent(SparkTable(spark, table="clinic.nothing"), "has no table 'clinic.nothing'")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"who": pa.array(["x"])}, "has no column 'cost'"),
        ({"who": pa.array(["x"]), "cost": pa.array([[1.0]])}, "is of the type 'array<double>', which is not read"),
        (
            {"who": pa.array(["x"]), "cost": pa.array([1.0]), "COST": pa.array([1.0])},
            "or two of their columns have one name",
        ),
    ],
)
def test_columns_that_are_not_as_the_schema_says_are_refused(columns: Any, message: str, tmp_path: Path) -> None:
    unspent(kit.store(tmp_path, pa.table(columns)), message)


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    unspent(SparkTable(kit.spark(), str(tmp_path / "nowhere")), "finds no Parquet files")


def test_a_delta_table_is_its_live_files(tmp_path: Path) -> None:
    stored = kit.store(tmp_path, ROWS, files=2)
    kit.store(tmp_path / "gone", ROWS)
    (tmp_path / "gone" / "part-0.parquet").rename(tmp_path / "removed.parquet")
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in
              (("Who", "string"), ("cost", "double"))]  # fmt: skip
    start = [
        {"protocol": {"minReaderVersion": 1}},
        {"metaData": {"schemaString": json.dumps({"type": "struct", "fields": fields}), "partitionColumns": []}},
        {"add": {"path": "removed.parquet", "partitionValues": {}}},
    ]
    later = [
        {"remove": {"path": "removed.parquet"}},
        *({"add": {"path": f"part-{i}.parquet", "partitionValues": {}}} for i in range(2)),
    ]
    (tmp_path / "_delta_log").mkdir()
    for number, commit in enumerate((start, later)):
        (tmp_path / "_delta_log" / f"{number:020d}.json").write_text("\n".join(map(json.dumps, commit)))
    assert total(stored) == TOTAL
    (tmp_path / "_delta_log" / f"{2:020d}.json").write_text(json.dumps({"protocol": {"minReaderVersion": 9}}))
    unspent(stored, "version 9 of the format")


def test_files_that_come_later_are_of_another_session(tmp_path: Path) -> None:
    stored = kit.store(tmp_path, ROWS)
    opened = connect({"visits": (TABLE, stored)})
    assert opened.run(read(STATEMENT)).to_pylist() == TOTAL
    (tmp_path / "more.parquet").write_bytes((tmp_path / "part-0.parquet").read_bytes())
    assert opened.run(read(STATEMENT)).to_pylist() == TOTAL
    opened.close()
    assert total(stored)[0]["n"] == 1000


def broken(monkeypatch: pytest.MonkeyPatch, before: Callable[[Any], None]) -> None:
    """Something happens just before the first statement of a release runs."""
    honest = SparkSession._read_to_the_end

    def reading(self: SparkSession, text: str, bound: Any) -> Any:
        with spark_session._unlogged(), self._in_time():
            before(self)
        return honest(self, text, bound)

    monkeypatch.setattr(SparkSession, "_read_to_the_end", reading)


def test_what_spark_says_of_a_cell_is_not_passed_on(
    visits: SparkTable,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    broken(monkeypatch, lambda session: session._opened.sql("SELECT CAST(who AS INT) FROM `_raw_0`").toArrow())
    with caplog.at_level(logging.DEBUG):
        failed(visits)
    shown = capfd.readouterr()
    assert not any(SECRET in text for text in (caplog.text, shown.out, shown.err))


def test_a_file_that_vanished_is_a_paid_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = kit.store(tmp_path, ROWS, files=2)
    broken(monkeypatch, lambda _: (tmp_path / "part-1.parquet").unlink())
    failed(stored)


def test_a_job_that_takes_too_long_is_killed_and_paid(visits: SparkTable, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(session: Any) -> None:
        text = "SELECT COUNT(*) FROM RANGE(100000) AS a CROSS JOIN RANGE(100000000) AS b WHERE a.id * b.id % 7 = 8"
        session._opened.sql(text).toArrow()

    broken(monkeypatch, slow)
    failed(visits, engine={"seconds": 2})
    assert not kit.spark().sparkContext.statusTracker().getActiveJobsIds()
