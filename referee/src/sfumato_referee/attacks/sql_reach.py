"""Q3: what a query may reach. Files, settings, the catalogue, other tables, clocks, user functions and statements that
are no SELECT are refused when the text is read; and the engine, asked past that lock, cannot reach files either, nor
does its door take a word that is not of the vocabulary.
"""

from __future__ import annotations

import contextlib
import logging
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sfumato.audit import surface
from sfumato.errors import SfumatoError
from sfumato.query import Limits
from sfumato.schema import category, key, real
from sfumato.sources import connect
from sfumato.sources.base import needed
from sfumato.units import Unit

from ..mutants import queries
from .asking import LIBRARY, Asks, here, one_table, source_of
from .verdict import Verdict

USER = Unit("user:u")
SCHEMA = one_table({"u": key(), "x": real(0, 9), "w": category(["a", "b"]), "tag": key()}, "u")

REFUSED = tuple(
    line.strip()
    for line in """
    SELECT COUNT(*) FROM read_text('{file}')
    SELECT COUNT(*) FROM read_csv('{file}')
    SELECT COUNT(*) FROM read_parquet('{file}')
    SELECT COUNT(*) FROM '{file}'
    SELECT COUNT(*) FROM "{file}"
    SELECT COUNT(*) FROM glob('*')
    SELECT COUNT(*) FROM t, read_text('{file}')
    SELECT COUNT(*) FROM t WHERE tag IN (SELECT content FROM read_text('{file}'))
    COPY t TO '{file}'
    COPY (SELECT * FROM t) TO '{file}'
    ATTACH '{file}' AS other
    INSTALL httpfs
    LOAD httpfs
    PRAGMA database_list
    SET threads = 1
    RESET threads
    CALL pragma_version()
    CHECKPOINT
    SELECT COUNT(getvariable('x')) FROM t
    SELECT COUNT(*) FROM t WHERE getenv('HOME') = 'x'
    SELECT COUNT(current_setting('threads')) FROM t
    WITH RECURSIVE r AS (SELECT u FROM t UNION ALL SELECT u FROM r) SELECT COUNT(*) FROM r
    SELECT COUNT(*) FROM t, LATERAL (SELECT 1) AS l
    SELECT SUM(my_function(x)) FROM t
    SELECT SUM(list_transform([x], y -> y)[1]) FROM t
    SELECT COUNT(*) FROM information_schema.tables
    SELECT COUNT(*) FROM duckdb_tables()
    SELECT COUNT(*) FROM duckdb_tables
    SELECT COUNT(*) FROM sqlite_master
    SELECT COUNT(*) FROM pg_catalog.pg_tables
    SELECT COUNT(*) FROM other.t
    SELECT COUNT(*) FROM memory.other.t
    SELECT COUNT(*) FROM query('SELECT 1')
    SELECT COUNT(*) FROM query_table('t')
    SELECT x FROM t LIMIT 1
    SELECT x FROM t ORDER BY x
    SELECT * FROM t
    FROM t
    TABLE t
    SELECT COUNT(*) FROM t; SELECT COUNT(*) FROM t
    SELECT COUNT(*) FROM t; DROP TABLE t
    SELECT COUNT(*) FROM t /* */ ; -- nothing \\n DROP TABLE t
    DROP TABLE t
    DELETE FROM t
    INSERT INTO t SELECT * FROM t
    UPDATE t SET x = 1
    CREATE TABLE z AS SELECT * FROM t
    CREATE MACRO f(a) AS a
    EXPLAIN SELECT COUNT(*) FROM t
    EXPLAIN ANALYZE SELECT COUNT(*) FROM t
    DESCRIBE t
    SUMMARIZE t
    SHOW TABLES
    PIVOT t ON w USING SUM(x)
    SELECT COUNT(*) FROM (PIVOT t ON w USING SUM(x)) AS p
    SELECT COUNT(*) FROM t USING SAMPLE 10%
    SELECT COUNT(*) FROM t TABLESAMPLE 10%
    SELECT COUNT(*) INTO z FROM t
    SELECT COUNT(*) FROM t FOR UPDATE
    SELECT COUNT(*) FROM t AT (VERSION => 1)
    SELECT COUNT(*) FROM t WHERE x > random()
    SELECT COUNT(*) FROM t WHERE now() > DATE '2020-01-01'
    SELECT COUNT(*) FROM t WHERE rowid = 3
    SELECT COUNT(*) FROM t WHERE error(tag)
    SELECT COUNT(*) FROM t WHERE $1 = 1
    SELECT COUNT(*) FROM t WHERE ? = 1
    SELECT SUM(COLUMNS(*)) FROM t
    SELECT COUNT(*) FROM range(10)
    SELECT COUNT(*) FROM (VALUES (1)) AS v
    SELECT SUM(x) FROM t CROSS JOIN generate_series(1, 100000)
    SELECT SUM(unnest([x, x])) FROM t
    SELECT u, COUNT(*) FROM t GROUP BY u
    SELECT string_agg(tag) FROM t
    SELECT list(x) FROM t
    SELECT any_value(tag) FROM t
    SELECT first(x) FROM t
    SELECT arg_max(tag, x) FROM t
    SELECT mode(tag) FROM t
    SELECT MAX(tag) FROM t
    SELECT COUNT(*) AS _unit FROM t
    SELECT COUNT(DISTINCT "_unit") FROM t
    SELECT COUNT(*) FROM t AS _pairs
    WITH _rows AS (SELECT * FROM t) SELECT COUNT(*) FROM _rows
    SELECT COUNT(*) FROM (SELECT u FROM t LIMIT 10) AS q
    SELECT COUNT(*) FROM (SELECT u FROM t UNION SELECT u FROM t) AS q
    SELECT COUNT(*) FROM (SELECT DISTINCT w FROM t) AS q
    SELECT COUNT(*) FROM (SELECT DISTINCT ON (u) u, x FROM t) AS q
    SELECT COUNT(*) FROM t POSITIONAL JOIN t AS z
    SELECT COUNT(*) FROM t POSITIONAL JOIN t AS z
    """.splitlines()
    if line.strip()
)

PAST_THE_LOCK = (
    "SELECT * FROM read_text('{file}')",
    "SELECT * FROM read_csv('{file}')",
    "SELECT * FROM '{file}'",
    "COPY t TO '{file}'",
    "ATTACH '{file}' AS other",
    "INSTALL httpfs",
    "SET enable_external_access = true",
    "SET allowed_paths = ['{file}']",
)
STRANGE_WORDS = (
    "SELECT current_setting('threads') FROM t",
    "SELECT current_database() FROM t",
    "SELECT getvariable('x') FROM t",
    "SELECT random() FROM t",
    "SELECT now() FROM t",
    "SELECT list(x) FROM t",
    "SELECT string_agg(tag) FROM t",
    "SELECT SUM(x) FROM t",
    "SELECT CAST(tag AS BIGINT[]) FROM t",
    "SELECT x FROM t USING SAMPLE 10%",
    "SELECT {{'a': x}} FROM t",
)
"""What DuckDB knows and the vocabulary does not. They name no file and no other table: only the words are wrong."""


def attack(asks: Asks = LIBRARY) -> Verdict:
    taken, reached = [], []
    with tempfile.TemporaryDirectory() as folder, _quiet():
        file = Path(folder) / "other.csv"
        file.write_text("a\n1\n")
        for text in REFUSED:
            written = text.replace("\\n", "\n").format(file=file)
            try:
                asks(written, SCHEMA, unit=USER, epsilon=1, delta=1e-6, limits=Limits())
                taken.append(text)
            except SfumatoError:
                continue
        with connect({"t": (SCHEMA.table("t"), source_of(_ROW))}) as session:  # type: ignore[attr-defined]
            for text in PAST_THE_LOCK:
                if here() and _ran(lambda t=text: surface.engine_of(session).execute(t.format(file=file)).fetchall()):
                    reached.append(text)
                if _ran(lambda t=text: session.run(needed("sqlglot").parse_one(t.format(file=file), dialect="duckdb"))):
                    reached.append(f"run: {text}")
            for text in STRANGE_WORDS:
                if _ran(lambda t=text: session.run(needed("sqlglot").parse_one(t.format(), dialect="duckdb"))):
                    reached.append(f"run: {text}")
        reached += ["the file was changed"] if file.read_text() != "a\n1\n" else []
    words = f"{len(taken)} of {len(REFUSED)} were taken {taken[:2]}; past the lock went {len(reached)} {reached[:1]}."
    return Verdict("Q3", bool(taken or reached), words, {"taken": len(taken), "reached": len(reached)})


_ROW = {"u": ["a"], "x": [1.0], "w": ["a"], "tag": ["p"]}


def _ran(work: Any) -> bool:
    try:
        work()
    except Exception:
        return False
    return True


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """sqlglot says on the log what it cannot read."""
    log = logging.getLogger("sqlglot")
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before


CONTROL: Asks = queries.as_written
