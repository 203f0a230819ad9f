"""What a database, its other users and its driver can do to a release: nothing that changes it or tells of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from sfumato import Budget, Curator, MemoryLedger, Private, sql
from sfumato.errors import ArgumentError, DataError, PlanError
from sfumato.schema import Schema, Table, key, real
from sfumato.sources import DatabaseTable, connect
from sfumato.sources.dbapi_session import DatabaseSession
from sfumato.sources.vocabulary import read
from sfumato.units import Unit
from tests.sources.dbapi import clickhouse_engine, kit, mariadb_server

SCHEMA = Schema({"visits": Table({"who": key(), "cost": real(0, 100)}, unit="who")})
QUERY = "SELECT SUM(cost) AS s, COUNT(*) AS n FROM visits"
SECRET = "SECRET-4711"
COLUMNS = ["who varchar(200)", "cost double"]
ROWS = [(f"{SECRET} {i}", i % 100) for i in range(1, 501)]


@pytest.fixture(scope="module")
def place() -> str:
    place = kit.database()
    kit.create(place, "visits", COLUMNS, ROWS)
    return place


@pytest.fixture(scope="module")
def in_clickhouse() -> DatabaseTable:
    table = kit.clickhouse_table("door_visits", "who String, cost Float64")
    clickhouse_engine.run(
        "INSERT INTO door_visits SELECT concat('SECRET-4711 ', toString(number)), number % 100 FROM numbers(1, 500)"
    )
    return table


def reader(place: str, table: str = "visits", grant: str | None = None, name: str = "door") -> DatabaseTable:
    return DatabaseTable(kit.account(grant or f"SELECT ON {place}.{table}", name=name), f"{place}.{table}")


def clinic(table: DatabaseTable, **more: Any) -> Private:
    return Private("clinic", table, unit=Unit("user:who"), schema=more.pop("schema", SCHEMA), **more)


def total(table: DatabaseTable) -> Any:
    opened = connect({"visits": (SCHEMA.table("visits"), table)})
    try:
        return opened.run(read("SELECT SUM(CAST(cost AS BIGINT)) AS Total, count(*) AS n FROM visits")).to_pylist()[0]
    finally:
        opened.close()


def silent(problem: BaseException) -> None:
    """No cell, no address, no word of the server's, also not in what the error holds on to."""
    link: BaseException | None = problem
    while link is not None:
        assert not any(word in str(link) for word in (SECRET, "socket", "localhost", "Exception:", "1054", "denied"))
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def unspent(table: Private, message: str) -> None:
    """Refused at a quote and at a release, for nothing."""
    ledger = MemoryLedger({"clinic": Budget(epsilon=5)})
    before, plan = ledger.spent("clinic"), sql(QUERY, table, epsilon=1, limits={"rows": 1})
    for ask in (Curator(table, ledger).quote, Curator(table, ledger).release):
        with pytest.raises(PlanError, match=message) as caught:
            ask(plan)
        silent(caught.value)
    assert ledger.spent("clinic") == before


def failed(table: Private) -> None:
    """A release that fails after it was paid for: the charge stays, and the text is the one of all failures."""
    ledger = MemoryLedger({"clinic": Budget(epsilon=5)})
    before = ledger.spent("clinic")
    with pytest.raises(DataError) as caught:
        Curator(table, ledger).release(sql(QUERY, table, epsilon=1, limits={"rows": 1}))
    assert str(caught.value) == DataError.TEXT
    silent(caught.value)
    assert ledger.spent("clinic") != before


def test_it_is_read(place: str, in_clickhouse: DatabaseTable) -> None:
    assert total(reader(place)) == {"Total": 24750, "n": 500} == total(in_clickhouse)


@pytest.mark.parametrize("place", ["mysql://me:pass@host/db", "host=here dbname=x", "", 7, "a.b", "a:b:c"])
def test_an_address_itself_is_refused_and_not_shown(place: Any) -> None:
    with pytest.raises(ArgumentError) as caught:
        DatabaseTable(place)
    assert "me:" not in str(caught.value) and "=here" not in str(caught.value)


def test_what_opens_may_be_named_by_a_variable(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = reader(place)
    monkeypatch.setenv("SFUMATO_TEST_CONNECT", table.connect)
    assert total(DatabaseTable("SFUMATO_TEST_CONNECT", table.table))["n"] == 500
    monkeypatch.setitem(os.environ, "SFUMATO_TEST_CONNECT", "mysql://me:SECRET-4711@host/db")
    unspent(clinic(DatabaseTable("SFUMATO_TEST_CONNECT", table.table)), "names no function")
    for nothing in ("no_such_module:f", "tests.sources.dbapi.kit:no_such_function", f"{__name__}:broken"):
        unspent(clinic(DatabaseTable(nothing, table.table)), "gives no connection")


def broken() -> Any:
    raise OSError(f"cannot reach {SECRET} over the socket")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        ("CREATE VIEW {0} AS SELECT * FROM visits", "is a view, which may compute over all rows"),
        ("CREATE SEQUENCE {0}", "is a sequence"),
        ("CREATE TABLE {0} (who varchar(9), cost double) ENGINE=MyISAM", "which has no snapshots"),
        ("CREATE TABLE {0} (who varchar(9))", "has no column 'cost'"),
        ("CREATE TABLE {0} (who varchar(9), cost blob)", "is of the type 'blob', which is not read"),
        ("CREATE TABLE {0} (who varchar(9), cost double AS (1.0) VIRTUAL)", "computed when it is read"),
        ("SELECT '{0}'", "has no table"),
    ],
)
def test_what_is_no_table_of_stored_cells_is_refused_before_a_charge(make: str, message: str, place: str) -> None:
    name = f"odd_{abs(hash(make))}"
    mariadb_server.run(f"USE {place}", make.format(name))
    unspent(clinic(DatabaseTable(kit.account(f"SELECT ON {place}.*", name="all_door"), f"{place}.{name}")), message)


@pytest.mark.parametrize(
    ("columns", "more", "message"),
    [
        ("who String, cost Float64", "ENGINE = ReplacingMergeTree ORDER BY who", "merges them later"),
        ("who String, cost Float64", "ENGINE = Merge(default, 'door_visits')", "computes rows when they are read"),
        ("who String, cost Float64, x Array(Int8)", "ENGINE = MergeTree ORDER BY who", ""),
        ("who String, a Float64, cost Float64 ALIAS a + 1", "ENGINE = MergeTree ORDER BY who", "computed when it is"),
        ("who String, cost Array(Float64)", "ENGINE = MergeTree ORDER BY who", "which is not read"),
        ("who String", "ENGINE = MergeTree ORDER BY who", "has no column 'cost'"),
    ],
)
def test_tables_of_clickhouse_that_are_no_rows_as_they_were_written(
    columns: str, more: str, message: str, in_clickhouse: DatabaseTable
) -> None:
    table = kit.clickhouse_table(f"odd_{abs(hash(columns + more))}", columns, more)
    if message:
        unspent(clinic(table), message)
    else:
        assert total(table) == {"Total": None, "n": 0}


def test_an_account_that_may_not_read_a_column_is_told_so(place: str) -> None:
    table = reader(place, grant=f"SELECT (who) ON {place}.visits", name="half")
    unspent(clinic(table), "has no column 'cost', which the schema names, or the account may not read it")


def test_it_sees_one_snapshot_and_writes_nothing_whatever_the_account_may(place: str) -> None:
    kit.create(place, "moving", COLUMNS, ROWS)
    table = reader(place, "moving", f"ALL ON {place}.moving", "mighty")
    opened: Any = connect({"visits": (SCHEMA.table("visits"), table)})
    tree = read("SELECT count(*) AS n FROM visits")
    assert opened.run(tree).to_pylist() == [{"n": 500}]
    mariadb_server.run(f"DELETE FROM {place}.moving")
    assert opened.run(tree).to_pylist() == [{"n": 500}]
    with pytest.raises(Exception, match="READ ONLY"):
        opened._ask(f"INSERT INTO {place}.moving VALUES ('x', 1)")
    opened.close()


def test_a_column_whose_type_changed_between_quote_and_release(place: str) -> None:
    kit.create(place, "changing", COLUMNS, ROWS)
    table, ledger = clinic(reader(place, "changing")), MemoryLedger({"clinic": Budget(epsilon=10)})
    curator, plan = Curator(table, ledger), sql(QUERY, table, epsilon=8, limits={"rows": 1})
    curator.quote(plan)
    mariadb_server.run(f"ALTER TABLE {place}.changing MODIFY cost varchar(20)")
    assert abs(curator.release(plan).value["n"][0] - 500) < 50  # read as what it is now
    mariadb_server.run(f"ALTER TABLE {place}.changing MODIFY cost varbinary(20)")
    unspent(clinic(reader(place, "changing")), "of the type 'varbinary'")


def interrupted(monkeypatch: pytest.MonkeyPatch, before: Callable[[Any], None]) -> None:
    """Something happens to the database just before the first statement of a release runs."""
    for owner in (DatabaseSession, *DatabaseSession.__subclasses__()):
        if "_read_to_the_end" in vars(owner):
            honest = owner._read_to_the_end

            def reading(self: Any, text: str, bound: Any, honest: Any = honest) -> Any:
                before(self)
                return honest(self, text, bound)

            monkeypatch.setattr(owner, "_read_to_the_end", reading)


def test_a_connection_that_is_ended_in_the_middle_is_a_paid_failure(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(monkeypatch, lambda session: mariadb_server.run(f"KILL {session._opened.thread_id()}"))
    failed(clinic(reader(place)))


def test_a_statement_that_takes_too_long_is_a_paid_failure(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # A SLEEP that is ended by the time-out gives 1, and no error: a benchmark is computed to its end, or not.
    slow = (
        "SELECT COUNT(*) FROM information_schema.COLUMNS a, information_schema.COLUMNS b, information_schema.COLUMNS c"
    )
    interrupted(monkeypatch, lambda session: session._ask(slow))
    failed(clinic(reader(place), engine={"seconds": 0.2}))


@pytest.mark.parametrize("engine", ["mariadb", "clickhouse"])
def test_what_the_database_says_of_a_cell_is_not_passed_on(
    engine: str, place: str, in_clickhouse: DatabaseTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = {
        "mariadb": f"SELECT ST_GeomFromText(who) + 9223372036854775807 * 2 FROM {place}.visits",
        "clickhouse": "SELECT toInt64(who) FROM door_visits",
    }
    interrupted(monkeypatch, lambda session: session._ask(wrong[engine]))
    failed(clinic(reader(place) if engine == "mariadb" else in_clickhouse))


def test_binding_reads_no_cell(in_clickhouse: DatabaseTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """ClickHouse computes scalar subqueries when it is asked for types; the views that it is asked over have no rows,
    also once the rows were paid for."""
    opened: Any = connect({"visits": (SCHEMA.table("visits"), in_clickhouse)})
    asked: list[str] = []
    monkeypatch.setattr(type(opened), "_describe", lambda self, text: asked.append(text))
    opened.bind(read("SELECT count(*) AS n FROM visits WHERE cost < (SELECT max(cost) FROM visits)"))
    opened.close()
    assert asked and all("WHERE false) AS _none" in text for text in asked)
    assert asked[0].count("door_visits") == asked[0].count("WHERE false")


def test_settings_of_an_account_change_nothing(place: str) -> None:
    mariadb_server.run(
        "SET GLOBAL sql_select_limit = 3", "SET GLOBAL sql_mode = 'NO_BACKSLASH_ESCAPES,PAD_CHAR_TO_FULL_LENGTH'",
        "SET GLOBAL max_sort_length = 64", "SET GLOBAL autocommit = 0",
    )  # fmt: skip
    try:
        assert total(reader(place)) == {"Total": 24750, "n": 500}
        opened = connect({"visits": (SCHEMA.table("visits"), reader(place))})
        rows = opened.run(read("SELECT who, count(*) AS n FROM visits WHERE who <> '\\' GROUP BY who"))
        assert rows.num_rows == 500
        opened.close()
    finally:
        mariadb_server.run(
            "SET GLOBAL sql_select_limit = DEFAULT", "SET GLOBAL sql_mode = DEFAULT",
            "SET GLOBAL max_sort_length = DEFAULT", "SET GLOBAL autocommit = 1",
        )  # fmt: skip
