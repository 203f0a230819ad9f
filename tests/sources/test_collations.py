"""What two units, keys or groups are is decided by us: texts are compared and shown byte by byte, whatever the file's
collation says, and every type has one way to be a key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
import sqlglot

from sfumato import bounds
from sfumato.accounting.filters import Budget
from sfumato.curator import Curator
from sfumato.errors import PlanError
from sfumato.ledger.memory import MemoryLedger
from sfumato.mechanisms import Laplace
from sfumato.private import Private
from sfumato.query import Limits, sql
from sfumato.rows import Rows
from sfumato.schema import Column, Schema, Table, category, flag, key, real
from sfumato.sources import DuckDBTable, columns_of, connect
from sfumato.sources.vocabulary import read
from sfumato.units import Unit
from sfumato_referee.attacks.asking import before_noise, moved

PERSON = Unit("user:who")
SCHEMA = Schema({"t": Table({"who": key(), "tag": key(), "x": real(-1, 1)}, unit="who")})


def written(file: Path, columns: str, rows: list[tuple[Any, ...]], before: str = "SELECT 1") -> DuckDBTable:
    with duckdb.connect(str(file)) as base:
        base.execute(before)
        base.execute(f"CREATE TABLE t ({columns})")
        base.register("given", pa.table({f"c{i}": list(cells) for i, cells in enumerate(zip(*rows, strict=True))}))
        base.execute("INSERT INTO t SELECT * FROM given")
    return DuckDBTable(file, "t")


def test_a_group_is_not_shown_in_one_persons_spelling(tmp_path: Path) -> None:
    """Which spelling stood for a group was a matter of luck: FLU came with the victim alone, and never without."""
    groups = [f"flu {i}" for i in range(40)]
    rows = [(f"v{place}", group.upper(), 0.5) for place, group in enumerate(groups)]
    rows += [(f"p{i} of {group}", group, 0.5) for group in groups for i in range(6)]
    file = written(tmp_path / "a.duckdb", "who VARCHAR, tag VARCHAR COLLATE NOCASE, x DOUBLE", rows)
    private = Private("d", file, unit=PERSON, schema=SCHEMA)
    plan = sql("SELECT tag, COUNT(*) AS n FROM t GROUP BY tag", private, epsilon=10, delta=1e-6, limits=Limits())
    release = Curator(private, MemoryLedger({"d": Budget(epsilon=10, delta=1e-6)})).release(plan)
    shown = set(release.value["tag"])
    assert shown and shown <= set(groups)


@pytest.mark.parametrize("before", ["SELECT 1", "SET default_collation = 'NOCASE'"])
@pytest.mark.parametrize("collation", ["", "COLLATE NOCASE", "COLLATE NOCASE.NOACCENT"])
def test_units_that_a_collation_takes_for_one_are_two(collation: str, before: str, tmp_path: Path) -> None:
    """Merged, the victim's hundred rows weigh the other's one row down: a sum moved by 1.98 of its sensitivity."""
    columns = f"who VARCHAR {collation}, tag VARCHAR {collation}, x DOUBLE"
    own, victim = [("anna", "a", 1.0)], [("ANNA", "A", -1.0)] * 100
    files = [written(tmp_path / f"{i}.duckdb", columns, rows, before) for i, rows in enumerate((own + victim, own))]
    plan = sql("SELECT SUM(x) AS s FROM t", SCHEMA, unit=PERSON, epsilon=1, limits=Limits())
    assert moved(plan, *(before_noise(plan, {"t": file}) for file in files)) <= 1
    rows = Rows.read(SCHEMA.table(), columns_of(SCHEMA.table(), files[0]), PERSON)
    assert rows.unit_count == 2 and rows["tag"].keys is not None and len(rows["tag"].keys) == 2
    query = bounds.clipped_sum("x", -1, 1, PERSON)
    steps = [query.steps(Rows.read(SCHEMA.table(), columns_of(SCHEMA.table(), file), PERSON), 0) for file in files]
    assert abs(steps[0] - steps[1]).sum() <= query.in_steps(0).l1
    curator = Curator(Private("d", files[0], unit=PERSON, schema=SCHEMA), MemoryLedger({"d": Budget(epsilon=1)}))
    assert curator.release(Laplace(query=query, epsilon=1)) is not None


QUESTIONS = {
    "SELECT COUNT(DISTINCT tag) AS n FROM t": 2,
    "SELECT COUNT(*) AS n FROM t WHERE tag = 'A'": 1,
    "SELECT COUNT(*) AS n FROM t WHERE tag IN ('A', 'B')": 1,
    "SELECT COUNT(*) AS n FROM t WHERE tag BETWEEN 'A' AND 'Z'": 1,
    "SELECT COUNT(*) AS n FROM t AS a JOIN t AS b ON a.tag = b.tag": 2,
    "SELECT COUNT(*) AS n FROM t AS a JOIN t AS b ON a.tag || '' = b.tag || ''": 2,
    "SELECT COUNT(*) AS n FROM t AS a JOIN t AS b ON part(a.tag, 1) = part(b.tag, 1)": 2,
    "SELECT COUNT(*) AS n FROM (SELECT DISTINCT tag FROM t)": 2,
    "SELECT COUNT(*) AS n FROM (SELECT CASE WHEN tag IS NULL THEN 'z' ELSE tag END AS tag FROM t GROUP BY 1)": 2,
    "SELECT COUNT(*) AS n FROM t WHERE tag LIKE 'A'": 1,
}


@pytest.mark.parametrize("text", QUESTIONS)
def test_every_comparison_is_of_bytes(text: str, tmp_path: Path) -> None:
    file = written(
        tmp_path / "a.duckdb", "who VARCHAR, tag VARCHAR COLLATE NOCASE, x DOUBLE", [("1", "a", 0.0), ("2", "A", 0.0)]
    )
    session = connect({"t": (SCHEMA.table(), file)})
    try:
        answer = session.run(read(text))
        assert answer.column("n").to_pylist() == [QUESTIONS[text]]
        union = "SELECT COUNT(*) AS n FROM (SELECT tag FROM t UNION SELECT tag FROM t)"
        assert session._engine.sql(union).fetchall() == [(2,)]  # type: ignore[attr-defined]
        with pytest.raises(PlanError, match="no word of the vocabulary"):
            session.run(read(union))
        ends = session.run(sqlglot.parse_one("SELECT MIN(tag) AS a, MAX(tag) AS b FROM t", dialect="duckdb"))
        assert ends.to_pylist() == [{"a": "A", "b": "a"}]
    finally:
        session.close()


@pytest.mark.parametrize(
    ("column", "collation", "cells", "values"),
    [
        (category(["anna", "bo"]), "NOCASE", ["anna", "ANNA", "Bo"], ["anna", None, None]),
        (category(["anna", "bo"]), "NOACCENT", ["ánna", "bo", "bö"], [None, "bo", None]),
        (category([1, 2]), "NOCASE", ["1", "2", "x"], [1, 2, None]),
        (flag(), "NOACCENT", ["yes", "yés", "NO"], [True, None, False]),
        (real(0, 9), "NOCASE", ["1e0", "1E0", "x"], [1.0, 1.0, None]),
    ],
)
def test_a_collation_changes_how_no_column_is_read(
    column: Column, collation: str, cells: list[str], values: list[Any], tmp_path: Path
) -> None:
    file = written(tmp_path / "a.duckdb", f"x VARCHAR COLLATE {collation}", [(cell,) for cell in cells])
    session = connect({"t": (Table({"x": column}), file)})
    try:
        answer = session.run(sqlglot.parse_one("SELECT x FROM t", dialect="duckdb")).column("x").to_pylist()
        assert sorted(map(str, answer)) == sorted(map(str, values))
    finally:
        session.close()


@pytest.mark.parametrize(
    ("kind", "cells", "count"),
    [
        ("CHAR(5)", ["'a'", "'a  '", "'A'"], 3),  # nothing is padded
        ("VARCHAR", ["'\u00e9'", "'e\u0301'", "'E\u0301'"], 3),  # nothing is composed
        ("VARCHAR COLLATE NFC", ["'\u00e9'", "'e\u0301'"], 2),
        ("ENUM('a', 'A', 'b')", ["'a'", "'A'", "'b'"], 3),
        ("BLOB", ["'a'::BLOB", "'A'::BLOB", "'\\xFF'::BLOB"], 2),  # what is no text names nobody
        ("DOUBLE", ["0.0", "'-0.0'::DOUBLE", "'nan'::DOUBLE", "'-nan'::DOUBLE", "1.5"], 2),
        ("FLOAT", ["0.0", "'-0.0'::FLOAT", "'nan'::FLOAT", "12"], 2),
        ("DECIMAL(9, 4)", ["1.5", "1.5000", "0", "-0.0", "15"], 3),
        ("HUGEINT", ["1", "170141183460469231731687303715884105727", "170141183460469231731687303715884105726"], 3),
        ("UUID", ["'00000000-0000-0000-0000-00000000000A'", "'00000000-0000-0000-0000-00000000000a'"], 1),
        ("TIMESTAMPTZ", ["'2026-01-01 12:00:00+00'", "'2026-01-01 14:00:00+02'", "'2026-01-01 12:00:00+01'"], 2),
        ("BOOLEAN", ["true", "false", "true"], 2),
        ("DATE", ["'2026-01-01'", "'2026-1-1'"], 1),
    ],
)
def test_what_two_units_are_is_the_same_in_the_engine_and_in_rows(
    kind: str, cells: list[str], count: int, tmp_path: Path
) -> None:
    table = Table({"who": key()}, name="t", unit="who")
    with duckdb.connect(str(tmp_path / "a.duckdb")) as base:
        base.execute(f"CREATE TABLE t (who {kind})")
        for cell in cells:
            base.execute(f"INSERT INTO t VALUES ({cell})")
    file = DuckDBTable(tmp_path / "a.duckdb")
    session = connect({"t": (table, file)})
    try:
        found = session.run(sqlglot.parse_one("SELECT COUNT(DISTINCT who) AS n FROM t", dialect="duckdb"))
        assert found.column("n").to_pylist() == [count]
    finally:
        session.close()
    assert Rows.read(table, columns_of(table, file), PERSON).unit_count == count


def test_no_query_brings_a_collation_of_its_own() -> None:
    for text in ("SELECT tag COLLATE NOCASE AS g, COUNT(*) AS n FROM t GROUP BY g",
                 "SELECT COUNT(*) AS n FROM t WHERE tag COLLATE NOACCENT = 'a'"):  # fmt: skip
        with pytest.raises(PlanError):
            sql(text, SCHEMA, unit=PERSON, epsilon=1, delta=1e-6, limits=Limits())
