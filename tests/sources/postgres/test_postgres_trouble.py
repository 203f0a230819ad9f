"""What may befall a PostgreSQL server, or the line to it, in the middle of a release: it is a failure that is paid,
told by the text of all failures; and the same question asked again is a new release, paid again and right."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from sfumato import Budget, Curator, MemoryLedger, Private, sql
from sfumato.errors import DataError
from sfumato.schema import Schema, Table, key, real
from tests.ledger.servers import TestServer
from tests.ledger.stores import run
from tests.sources.postgres import kit
from tests.sources.postgres.cut_line import CutLine
from tests.sources.postgres.test_postgres_door import SECRET, broken, clinic, silent

GROUPED = "SELECT place, SUM(cost) AS s, COUNT(*) AS n FROM visits GROUP BY place"
UNITS, PLACES, ROWS = 300, 400, 12000
KEYS = {"place": [f"{SECRET} {i}" for i in range(PLACES)]}
SCHEMA = Schema({"visits": Table({"who": key(), "place": key(), "cost": real(0, 100)}, unit="who")})


@pytest.fixture(scope="module")
def server() -> Iterator[TestServer]:
    """Of these tests alone: others share theirs."""
    opened = TestServer()
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def reader(server: TestServer) -> str:
    place: str = server.get_uri()
    rows = f"SELECT i % {UNITS}, '{SECRET} ' || i % {PLACES}, i % 100 FROM generate_series(1, {ROWS}) AS i"
    run(place, "CREATE TABLE visits (who int, place text, cost float)", f"INSERT INTO visits {rows}")
    return kit.role(place, "SELECT ON ALL TABLES IN SCHEMA public", name="door")


def asked(table: Private) -> Any:
    return sql(GROUPED, table, epsilon=5, limits={"rows": 40}, keys=KEYS)


def trouble(table: Private, *, again: bool = True) -> None:
    """A release fails after it was paid for; the question asked again is paid again, and answered."""
    ledger = MemoryLedger({"clinic": Budget(epsilon=10)})
    curator, plan = Curator(table, ledger), asked(table)
    spent = [str(ledger.spent("clinic"))]
    with pytest.raises(DataError) as caught:
        curator.release(plan)
    assert str(caught.value) == DataError.TEXT
    silent(caught.value)
    spent.append(str(ledger.spent("clinic")))
    states = ["failed"]
    if again:
        assert abs(sum(curator.release(plan).value["n"]) - ROWS) < 5000
        spent.append(str(ledger.spent("clinic")))
        states.append("answered")
    assert [each.state for each in ledger.releases(price=False)] == states
    assert len(set(spent)) == len(states) + 1


def once(act: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The first time alone."""
    done: list[Any] = []

    def acting(session: Any) -> None:
        if not done:
            done.append(True)
            act(session)

    return acting


def ready(server: TestServer) -> None:
    """Wait until it has come back."""
    end = time.monotonic() + 30
    while True:
        try:
            run(server.get_uri(), "SELECT 1")
            return
        except psycopg.OperationalError:
            assert time.monotonic() < end
            time.sleep(0.2)


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder with a short name, as those of sockets are."""
    with tempfile.TemporaryDirectory(prefix="line-") as folder:
        yield Path(folder)


def during_a_statement(act: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Half a second into a statement of the session."""

    def acting(session: Any) -> None:
        acted = threading.Timer(0.5, act, [session])
        acted.start()
        try:
            session._opened.execute("SELECT pg_sleep(20)")
        finally:
            acted.join()

    return acting


@pytest.mark.slow
def test_a_server_that_is_restarted_before_a_statement(
    server: TestServer, reader: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch, once(lambda _: server.restart()))
    trouble(clinic(reader, schema=SCHEMA))


@pytest.mark.slow
def test_a_server_that_is_restarted_in_the_middle_of_a_statement(
    server: TestServer, reader: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch, once(during_a_statement(lambda _: server.restart())))
    trouble(clinic(reader, schema=SCHEMA))


@pytest.mark.slow
def test_a_process_of_the_server_that_is_killed(
    server: TestServer, reader: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a machine that has no memory left: the server ends all others as well, and comes back."""

    def kill(session: Any) -> None:
        os.kill(session._opened.info.backend_pid, signal.SIGKILL)
        server.handle.ensure_postgres_running()

    broken(monkeypatch, once(during_a_statement(kill)))
    trouble(clinic(reader, schema=SCHEMA), again=False)
    ready(server)


def test_a_statement_that_is_cancelled(server: TestServer, reader: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def cancel(session: Any) -> None:
        run(server.get_uri(), f"SELECT pg_cancel_backend({session._opened.info.backend_pid})")

    broken(monkeypatch, once(during_a_statement(cancel)))
    trouble(clinic(reader, schema=SCHEMA))


def test_a_statement_that_takes_too_long(reader: str, monkeypatch: pytest.MonkeyPatch) -> None:
    broken(monkeypatch, once(lambda session: session._opened.execute("SELECT pg_sleep(20)")))
    trouble(clinic(reader, schema=SCHEMA, engine={"seconds": 2}))


@pytest.mark.parametrize("after", [0, 1, 3000, 9000])
def test_a_line_that_is_cut(after: int, reader: str, short: Path) -> None:
    """Half of the rows are no answer."""
    with CutLine(reader, short, after) as line:
        trouble(clinic(line.place, schema=SCHEMA), again=False)
        assert line.cut


def test_a_line_that_holds(reader: str, short: Path) -> None:
    with CutLine(reader, short, None) as line:
        table = clinic(line.place, schema=SCHEMA)
        answer = Curator(table, MemoryLedger({"clinic": Budget(epsilon=10)})).release(asked(table)).value
        assert len(answer) == PLACES
        assert not line.cut


def test_a_server_without_room_on_its_disk(server: TestServer, reader: str) -> None:
    """What a statement has no memory for goes to disk, where this role may write nothing."""
    scarce = {"work_mem": "'64kB'", "hash_mem_multiplier": "1", "temp_file_limit": "0"}
    run(server.get_uri(), *(f"ALTER ROLE door SET {name} = {value}" for name, value in scarce.items()))
    try:
        trouble(clinic(reader, schema=SCHEMA), again=False)
    finally:
        run(server.get_uri(), "ALTER ROLE door RESET ALL")
