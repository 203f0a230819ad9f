"""A Spark of several processes: a master, two workers and a driver that is none of the tests' own. What a worker that
is killed may do to a release: nothing, or make it a failure that is paid."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sfumato import sql
from sfumato.errors import DataError
from sfumato.sources import connect, source
from tests.sources.engines.test_second_engine import QUERIES, ROWS, SCHEMA, WHO, by_column
from tests.sources.spark import kit
from tests.sources.spark.cluster import Cluster
from tests.sources.spark.kit import LIMITS, QUERY, numbers
from tests.sources.spark.test_spark_release import _TYPES, before_noise

pytestmark = kit.SLOW
DRIVER = "tests.sources.spark.driver"
WORDS = ("SQLSTATE", "org.apache", "file:/", "Py4J", "Executor", "it's")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    opened = Cluster()
    yield opened
    opened.close()


def stored(folder: Path, files: int) -> str:
    """Each file is a task."""
    kit.write(folder, pa.table({name: pa.array(cells, _TYPES[name]) for name, cells in by_column(ROWS).items()}), files)
    return str(folder)


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> str:
    return stored(tmp_path_factory.mktemp("few") / "visits", 4)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> str:
    return stored(tmp_path_factory.mktemp("many") / "visits", 60)


def in_duckdb() -> list[list[list[Any]]]:
    """The integers of the one statement of a release."""
    plan = sql(QUERY, SCHEMA, unit=WHO, epsilon=4, limits=LIMITS)
    with connect({"visits": (SCHEMA.table("visits"), source(by_column(ROWS)))}) as opened:
        return [numbers(opened.run(tree)) for tree in plan._statements.values()]


def right_or_failed(found: dict[str, Any]) -> str:
    """What every release in trouble owes: one answer, of the right integers, or a failure with the text of all
    failures; paid once either way, and the ledger knows which."""
    assert found["killed"], "nobody was killed in the middle"
    assert found["charged"] and not found["charged again"]
    first, *more = found["said"]
    if "error" in first:
        assert (first["error"], first["text"]) == ("DataError", DataError.TEXT)
        assert not any(word in first["told"] for word in WORDS)
        assert found["states"] == ["failed"]
        return "failed"
    assert found["measured"] == in_duckdb()
    assert more == [first]
    assert found["states"] == ["answered"]
    return "answered"


def asked(text: str) -> Any:
    bounds = {"m": (0, 9)} if "AS m" in text else {}
    return sql(text, SCHEMA, unit=WHO, epsilon=1, limits=LIMITS, bounds=bounds)


def plan() -> Any:
    return asked(QUERY)


def in_memory() -> Any:
    return {"visits": (SCHEMA.table("visits"), source(by_column(ROWS)))}


def test_a_release_on_a_cluster_has_the_integers_of_duckdb(cluster: Cluster, few: str) -> None:
    there = cluster.renewed().drive(DRIVER, "integers", few)["answers"]
    assert there == [before_noise(asked(text), in_memory()).decode() for text in QUERIES]


def test_a_worker_that_is_killed_changes_no_answer(cluster: Cluster, many: str) -> None:
    """The other one does its work again."""
    found = cluster.renewed().drive(DRIVER, "release", many, "90", str(cluster.workers[0]))
    assert right_or_failed(found) == "answered"


def test_where_all_workers_are_killed_the_clock_ends_it(cluster: Cluster, many: str) -> None:
    """A cluster without workers lets a statement wait for others to come."""
    found = cluster.renewed().drive(DRIVER, "release", many, "12", *map(str, cluster.workers))
    assert right_or_failed(found) == "failed"


def test_tables_of_a_catalogue_of_hive(cluster: Cluster, few: str) -> None:
    """By how they are stored: text files are refused."""
    found = cluster.renewed().drive(DRIVER, "catalogue", few)
    assert "is stored as" in found.pop("STORED AS TEXTFILE")
    assert found == dict.fromkeys(kit.STORED[:-1], before_noise(plan(), in_memory()).decode())


def test_over_spark_connect(cluster: Cluster, few: str, many: str) -> None:
    """By its address and by a session that is handed over; and a server that is killed is a paid failure."""
    address, server = cluster.renewed().connect_server()
    there = cluster.drive(DRIVER, "integers", few, SFUMATO_TEST_SPARK=address)["answers"]
    assert there == [before_noise(asked(text), in_memory()).decode() for text in QUERIES]
    handed = cluster.drive(DRIVER, "handed_over", few, SFUMATO_TEST_SPARK=address)["answer"]
    assert handed == before_noise(plan(), in_memory()).decode()
    found = cluster.drive(DRIVER, "release", many, "90", str(server), SFUMATO_TEST_SPARK=address)
    assert right_or_failed(found) == "failed"
