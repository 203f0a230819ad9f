"""What a driver of its own process does for the tests: it asks a cluster, while somebody may be killed, and writes what
came of it as one line of JSON.

    python -m tests.sources.spark.driver integers FOLDER
    python -m tests.sources.spark.driver release FOLDER SECONDS PID...
    python -m tests.sources.spark.driver catalogue FOLDER
    python -m tests.sources.spark.driver handed_over FOLDER

The processes are killed once some tasks of the release are through and others are not; by Spark Connect, which tells a
client nothing of tasks, a second after its first statement.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from sfumato import Budget, Curator, Private, open_ledger, sql
from sfumato.errors import PlanError
from sfumato.sources import SparkTable
from sfumato.sources.session import Session
from tests.sources.engines.test_second_engine import QUERIES, SCHEMA, WHO
from tests.sources.spark.kit import LIMITS, QUERY, STORED, numbers
from tests.sources.spark.test_spark_release import before_noise

PLACE = "SFUMATO_TEST_SPARK"


def integers(folder: str) -> dict[str, Any]:
    """What comes before noise, of each query."""
    tables: Any = {"visits": (SCHEMA.table("visits"), SparkTable(PLACE, folder))}
    answers = []
    for text in QUERIES:
        plan = sql(text, SCHEMA, unit=WHO, epsilon=1, limits=LIMITS, bounds={"m": (0, 9)} if "AS m" in text else {})
        answers.append(before_noise(plan, tables).decode())
    return {"answers": answers}


def catalogue(folder: str) -> dict[str, Any]:
    """What comes before noise, of tables of a catalogue of Hive's, by how they are stored; or why they are refused."""
    spark = SparkSession.builder.master(os.environ[PLACE]).enableHiveSupport().getOrCreate()
    spark.read.parquet(folder).createOrReplaceTempView("loose")
    found = {}
    for number, stored in enumerate(STORED):
        name = f"clinic.visits_{number}"
        spark.sql("CREATE DATABASE IF NOT EXISTS clinic")
        spark.sql(f"CREATE TABLE {name} {stored} AS SELECT * FROM loose")
        found[stored] = _answer(SparkTable(spark, table=name))
    return found


def handed_over(folder: str) -> dict[str, Any]:
    """The same of the folder, in a session that somebody has; for Spark Connect, on its server."""
    return {"answer": _answer(SparkTable(SparkSession.builder.remote(os.environ[PLACE]).getOrCreate(), folder))}


def _answer(table: SparkTable) -> str:
    plan = sql(QUERY, SCHEMA, unit=WHO, epsilon=1, limits=LIMITS)
    try:
        return before_noise(plan, {"visits": (SCHEMA.table("visits"), table)}).decode()
    except PlanError as refusal:
        return str(refusal)


def release(folder: str, seconds: str, *pids: str) -> dict[str, Any]:
    """A release in the middle of which processes are killed: what was measured, what was paid, what came out."""
    table = Private("clinic", SparkTable(PLACE, folder), unit=WHO, schema=SCHEMA, engine={"seconds": float(seconds)})
    measured: list[Any] = []
    began, over, killed = threading.Event(), threading.Event(), threading.Event()
    honest = Session.run

    def run(self: Session, tree: Any) -> Any:
        began.set()
        rows = honest(self, tree)
        measured.append(numbers(rows))
        return rows

    Session.run = run  # type: ignore[method-assign]
    with open_ledger(Path(folder).parent / f"{os.getpid()}.ledger", create=True) as ledger:
        ledger.open_account("clinic", Budget(epsilon=10))
        curator, before = Curator(table, ledger), str(ledger.spent("clinic"))
        plan = sql(QUERY, table, epsilon=4, limits=LIMITS)
        threading.Thread(target=_kill, args=(list(map(int, pids)), began, over, killed), daemon=True).start()
        said = [_asked(curator, plan)]
        over.set()
        paid = str(ledger.spent("clinic"))
        if "answer" in said[0]:
            said.append(_asked(curator, plan))  # once more: the answer that was stored, for nothing
        return {
            "said": said, "killed": killed.is_set(), "measured": measured, "charged": paid != before,
            "charged again": str(ledger.spent("clinic")) != paid,
            "states": [each.state for each in ledger.releases(price=False)],
        }  # fmt: skip


def _asked(curator: Curator, plan: Any) -> dict[str, Any]:
    try:
        answer = curator.release(plan)
    except Exception as problem:
        told = "".join(traceback.format_exception(problem))
        return {"error": type(problem).__name__, "text": str(problem), "told": told}
    return {"answer": answer.value.table()}


def _kill(pids: list[int], began: threading.Event, over: threading.Event, killed: threading.Event) -> None:
    remote = os.environ[PLACE].startswith("sc://")
    while remote and not began.wait(1):
        pass
    if remote and not over.wait(1):
        _end(pids, killed)
    while not over.is_set() and not killed.is_set():
        stages: list[Any] = []
        with contextlib.suppress(Exception):  # there is none yet, or it is halfway there
            tracker = SparkContext._active_spark_context.statusTracker()  # type: ignore[union-attr]
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        if any(stage is not None and 3 <= stage.numCompletedTasks < stage.numTasks - 3 for stage in stages):
            _end(pids, killed)
        time.sleep(0.02)


def _end(pids: list[int], killed: threading.Event) -> None:
    for pid in pids:
        os.killpg(pid, signal.SIGKILL)
    killed.set()


if __name__ == "__main__":
    orders: Any = {"integers": integers, "release": release, "catalogue": catalogue, "handed_over": handed_over}
    found = orders[sys.argv[1]](*sys.argv[2:])
    print(json.dumps(found, default=str))
