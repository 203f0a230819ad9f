"""What a PostgreSQL server and its other users can do to a release: nothing that changes it, and nothing that tells."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sfumato import Budget, Curator, MemoryLedger, Private, sql
from sfumato.errors import ArgumentError, DataError, PlanError
from sfumato.schema import Column, Schema, Table, key, real
from sfumato.sources import connect
from sfumato.sources.postgres_session import PostgresSession
from sfumato.sources.postgres_tables import PostgresTable
from sfumato.sources.vocabulary import read
from sfumato.units import Unit
from tests.ledger.stores import run
from tests.sources.postgres import kit

TABLE = Table({"who": key(), "cost": real(0, 100)}, unit="who")
SCHEMA = Schema({"visits": TABLE})
QUERY = "SELECT SUM(cost) AS s, COUNT(*) AS n FROM visits"
SECRET = "SECRET-4711"
MAKE = "CREATE TABLE {0} (who text, cost double precision)"
FILL = "INSERT INTO {0} SELECT 'SECRET-4711 ' || i, i % 100 FROM generate_series(1, 500) AS i"


@pytest.fixture(scope="module")
def place() -> str:
    place = kit.database()
    run(place, MAKE.format("visits"), FILL.format("visits"))
    return place


@pytest.fixture(scope="module")
def reader(place: str) -> str:
    return kit.role(place, "SELECT ON ALL TABLES IN SCHEMA public", name="door")


def clinic(address: str, table: str = "public.visits", **more: Any) -> Private:
    place = PostgresTable(kit.variable(address), table)
    return Private("clinic", place, unit=Unit("user:who"), schema=more.pop("schema", SCHEMA), **more)


def total(address: str, table: str = "visits") -> Any:
    opened = connect({"visits": (SCHEMA.table("visits"), PostgresTable(kit.variable(address), table))})
    try:
        return opened.run(read("SELECT SUM(CAST(cost AS BIGINT)) AS Total, count(*) AS n FROM visits")).to_pylist()[0]
    finally:
        opened.close()


def unspent(table: Any, message: str) -> None:
    """Refused at a quote and at a release, for nothing."""
    ledger = MemoryLedger({"clinic": Budget(epsilon=5)})
    before = ledger.spent("clinic")
    plan = sql(QUERY, table, epsilon=1, limits={"rows": 1})
    for ask in (Curator(table, ledger).quote, Curator(table, ledger).release):
        with pytest.raises(PlanError, match=message) as caught:
            ask(plan)
        silent(caught.value)
    assert ledger.spent("clinic") == before


def silent(problem: BaseException) -> None:
    """No cell, no address, no word of the server's, also not in what the error holds on to."""
    link: BaseException | None = problem
    while link is not None:
        assert not any(word in str(link) for word in (SECRET, "host=", "postgres:", "relation", 'column "', "ERROR"))
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def failed(table: Private, error: type[BaseException] = DataError) -> None:
    """A release that fails after it was paid for: the charge stays, and the text is the one of all failures."""
    ledger = MemoryLedger({"clinic": Budget(epsilon=5)})
    before = ledger.spent("clinic")
    with pytest.raises(error) as caught:
        Curator(table, ledger).release(sql(QUERY, table, epsilon=1, limits={"rows": 1}))
    assert error is not DataError or str(caught.value) == DataError.TEXT
    silent(caught.value)
    assert ledger.spent("clinic") != before


def test_it_is_read(reader: str) -> None:
    assert total(reader) == {"Total": 24750, "n": 500}


@pytest.mark.parametrize("address", ["postgresql://me:pass@host/db", "host=here dbname=x", "", 7])
def test_an_address_itself_is_refused_and_not_shown(address: Any) -> None:
    with pytest.raises(ArgumentError) as caught:
        PostgresTable(address)
    assert "pass" not in str(caught.value) and "here" not in str(caught.value)


def test_an_address_may_stand_in_a_file(reader: str, tmp_path: Path) -> None:
    (tmp_path / "clinic.url").write_text(reader + "\n")
    table = PostgresTable(str(tmp_path / "clinic.url"), "visits")
    assert reader not in repr(table)
    table.compare(SCHEMA.table("visits"))
    for missing in (str(tmp_path / "no.url"), "SFUMATO_NOT_SET"):
        with pytest.raises(PlanError, match="holds no address"):
            PostgresTable(missing, "visits").compare(SCHEMA.table("visits"))


def test_a_server_that_is_not_there_is_told_without_its_address(tmp_path: Path) -> None:
    unspent(clinic(f"postgresql://me:{SECRET}@/db?host={tmp_path}"), "is not reached")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        ("CREATE VIEW {0} AS SELECT * FROM visits", "is a view, which may compute over all rows"),
        ("CREATE MATERIALIZED VIEW {0} AS SELECT * FROM visits", "is a materialized view"),
        (MAKE + "; ALTER TABLE {0} ENABLE ROW LEVEL SECURITY", "has policies on rows"),
        ("CREATE TABLE {0} (who text)", "has no column 'cost'"),
        ("CREATE TABLE {0} (who text, cost money)", "is of the type 'money', which is not read"),
        ("CREATE TABLE {0} (who text, cost float GENERATED ALWAYS AS (1.0) VIRTUAL)", "computed when it is read"),
        (MAKE + "; REVOKE SELECT ON {0} FROM door", "may not read column 'who'"),
        ("SELECT '{0}'", "has no table"),
    ],
)
def test_what_is_no_table_of_stored_cells_is_refused_before_a_charge(
    make: str, message: str, place: str, reader: str, request: pytest.FixtureRequest
) -> None:
    name = f"odd_{abs(hash(make))}"
    run(place, make.format(name))
    if "REVOKE" not in make and make.startswith("CREATE"):
        run(place, f"GRANT SELECT ON {name} TO door")
    unspent(clinic(reader, name), message)


def test_what_others_made_under_names_of_the_servers_own_is_never_called(place: str, reader: str) -> None:
    run(
        place,
        "CREATE FUNCTION public.evil(float8, float8) RETURNS float8 LANGUAGE sql AS 'SELECT 666.0::float8'",
        "CREATE AGGREGATE public.sum(bigint) (SFUNC = int8_sum, STYPE = numeric, INITCOND = '666')",
        "CREATE FUNCTION public.abs(float8) RETURNS float8 LANGUAGE sql AS 'SELECT 666.0::float8'",
        "CREATE FUNCTION public.same(text, text) RETURNS bool LANGUAGE sql AS 'SELECT true'",
        "CREATE OPERATOR public.* (FUNCTION = public.evil, LEFTARG = float8, RIGHTARG = float8)",
        "CREATE OPERATOR public.< (FUNCTION = public.same, LEFTARG = text, RIGHTARG = text)",
        "CREATE TABLE public.pg_class (x int)",
        "ALTER ROLE door SET search_path = public, pg_catalog",
    )
    assert total(reader) == {"Total": 24750, "n": 500}
    opened = connect({"visits": (SCHEMA.table("visits"), PostgresTable(kit.variable(reader), "visits"))})
    tree = read("SELECT count(*) AS n, SUM(CAST(cost * cost AS BIGINT)) AS s FROM visits WHERE who < 'SECRET-4711 2'")
    assert opened.run(tree).to_pylist()[0]["n"] == sum(str(i) < "2" for i in range(1, 501))
    opened.close()


def test_it_sees_one_snapshot_and_writes_nothing(place: str, reader: str) -> None:
    run(place, MAKE.format("moving"), FILL.format("moving"), "GRANT ALL ON moving TO door")
    opened = connect({"visits": (SCHEMA.table("visits"), PostgresTable(kit.variable(reader), "moving"))})
    tree = read("SELECT count(*) AS n FROM visits")
    assert opened.run(tree).to_pylist() == [{"n": 500}]
    run(place, "DELETE FROM moving")
    assert opened.run(tree).to_pylist() == [{"n": 500}]
    with pytest.raises(Exception, match="read-only"):
        opened._opened.execute("INSERT INTO public.moving VALUES ('x', 1)")  # type: ignore[attr-defined]
    opened.close()


def test_a_table_may_change_between_a_quote_and_a_release(place: str, reader: str) -> None:
    run(place, MAKE.format("changing"), "GRANT SELECT ON changing TO door")
    table, ledger = clinic(reader, "changing"), MemoryLedger({"clinic": Budget(epsilon=10)})
    curator, plan = Curator(table, ledger), sql(QUERY, table, epsilon=8, limits={"rows": 1})
    curator.quote(plan)
    run(place, FILL.format("changing"))
    assert abs(curator.release(plan).value["n"][0] - 500) < 50
    run(place, "ALTER TABLE changing ALTER COLUMN cost TYPE money USING NULL")
    unspent(clinic(reader, "changing"), "of the type 'money'")


def broken(monkeypatch: pytest.MonkeyPatch, before: Callable[[Any], None]) -> None:
    """Something happens to the server just before the first statement of a release runs."""
    honest = PostgresSession._read_to_the_end

    def reading(self: PostgresSession, text: str, bound: Any) -> Any:
        before(self)
        return honest(self, text, bound)

    monkeypatch.setattr(PostgresSession, "_read_to_the_end", reading)


def test_a_server_that_is_gone_in_the_middle_is_a_paid_failure(
    place: str, reader: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end(session: Any) -> None:
        run(place, f"SELECT pg_terminate_backend({session._opened.info.backend_pid})")

    broken(monkeypatch, end)
    failed(clinic(reader))


def test_a_statement_that_takes_too_long_is_a_paid_failure(
    place: str, reader: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch, lambda session: session._opened.execute("SELECT pg_sleep(10)"))
    start = time.monotonic()
    failed(clinic(reader, engine={"seconds": 0.2, "threads": 1}))
    assert time.monotonic() - start < 8


def test_what_the_server_says_of_a_cell_is_not_passed_on(
    place: str, reader: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch, lambda session: session._opened.execute("SELECT CAST(who AS INT) FROM public.visits"))
    failed(clinic(reader))


def test_ctrl_c_stops_the_server_too(place: str, reader: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(session: Any) -> None:
        clock = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
        clock.start()
        session._opened.execute("SELECT pg_sleep(30)")

    broken(monkeypatch, slow)
    start = time.monotonic()
    failed(clinic(reader), KeyboardInterrupt)
    assert time.monotonic() - start < 15
    time.sleep(0.2)
    assert run(
        place, "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(30)%' AND usename = 'door'"
    ) == [(0,)]


def test_names_are_one_in_upper_and_lower_case_and_may_be_long(place: str, reader: str) -> None:
    long = "how much it was " * 5
    run(
        place,
        f'CREATE TABLE "Odd Names" ("Who" text, cost float, "{long[:60]}" int)',
        "INSERT INTO \"Odd Names\" VALUES ('a', 3, 5)",
        'GRANT SELECT ON "Odd Names" TO door',
    )
    columns: dict[str, Column] = {"Who": key(), "Cost": real(0, 100), long[:60]: real(0, 9)}
    table = Table(columns, unit="Who", name="visits")
    opened = connect({"Visits": (table, PostgresTable(kit.variable(reader), "public.Odd Names"))})
    tree = read(
        f'SELECT SUM(CAST(COST AS BIGINT)) AS Total, SUM(CAST("{long[:60]}" AS BIGINT)) AS "{long}" FROM visits'
    )
    assert opened.run(tree).to_pylist() == [{"Total": 3, long: 5}]
    opened.close()
