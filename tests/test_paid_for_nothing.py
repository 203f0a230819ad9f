"""What would fail whatever the private rows are is refused before anybody pays; and no private row is read for that."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlglot

from sfumato import Budget, Curator, MemoryLedger, Private, Schema, Unit, bounds, sequence
from sfumato import mechanisms as m
from sfumato.errors import ArgumentError, BudgetError, DataError, PlanError
from sfumato.openings import ENGINE
from sfumato.plan import Plan
from sfumato.query import Limits, sql
from sfumato.query.keys import MOST
from sfumato.query.plan import Sql
from sfumato.query.refusal import QueryError
from sfumato.record import record
from sfumato.schema import Table, category, key, real, whole
from sfumato.sources import Csv, Parquet, connect, source
from sfumato.sources.duckdb_session import DuckDBSession
from sfumato.sources.session import Session
from sfumato_referee import attacks
from tests.helpers import SpyLedger

WHO = Unit("user:who")
TABLE = Table({"who": key(), "x": real(0, 9), "ward": category(["A", "B"])}, unit="who")
SCHEMA = Schema({"t": TABLE})
ROWS: dict[str, list[Any]] = {"who": ["Violetta", "Gilda"], "x": [1.0, 2.0], "ward": ["A", "B"]}
SUM = m.Laplace(query=bounds.clipped_sum("x", 0, 9, WHO), epsilon=1)


def query(text: str = "SELECT ward, SUM(x) AS s FROM t GROUP BY ward", schema: Schema = SCHEMA, **more: Any) -> Sql:
    return sql(text, schema, unit=WHO, epsilon=1, **{"limits": Limits(), **more})


def door(data: Any, schema: Schema = SCHEMA) -> tuple[Curator, MemoryLedger]:
    ledger = MemoryLedger({"d": Budget(epsilon=10, delta=1e-6)})
    return Curator(Private("d", data, unit=WHO, schema=schema), ledger), ledger


def refused(curator: Curator, ledger: MemoryLedger, plan: Plan[Any, Any], words: str) -> None:
    """At every door that would pay, and nothing is charged, counted or told of a row."""
    before, entries = ledger.left("d"), len(list(ledger.history()))
    doors: list[Callable[[], Any]] = [
        lambda: curator.release(plan),
        lambda: curator.release(plan, key="a key"),
        lambda: curator.prepay(sequence(one=plan)),
    ]
    for ask in doors:
        with pytest.raises(PlanError, match=words) as caught:
            ask()
        assert "Violetta" not in str(caught.value)
    assert ledger.left("d") == before and len(list(ledger.history())) == entries
    assert ledger.statement("d").failures == 0


def csv(folder: Path, text: str, encoding: str = "utf-8") -> Path:
    file = folder / "t.csv"
    file.write_text(text, encoding=encoding)
    return file


def parquet(folder: Path, columns: Mapping[str, Any], name: str = "t") -> Path:
    pq.write_table(pa.table(dict(columns)), folder / f"{name}.parquet")
    return folder / f"{name}.parquet"


def base(folder: Path, *statements: str) -> Path:
    with duckdb.connect(str(folder / "t.duckdb")) as engine:
        for each in statements:
            engine.execute(each)
    return folder / "t.duckdb"


def lost(name: str) -> dict[str, list[Any]]:
    return {("y" if each == name else each): cells for each, cells in ROWS.items()}


def _two(folder: Path) -> Path:
    parquet(folder, ROWS, "one")
    parquet(folder, {**ROWS, "x": ["1", "2"]}, "two")
    return folder / "*.parquet"


WRONG: dict[str, tuple[Callable[[Path], Any], str]] = {
    "csv, not there": (lambda at: at / "t.csv", "there is no file"),
    "csv, a folder": (lambda at: (at / "t.csv").mkdir() or at / "t.csv", "there is no file"),
    "csv, empty": (lambda at: csv(at, ""), "no column 'who'"),
    "csv, no text": (lambda at: (at / "t.csv").write_bytes(b"\xff\xfe\x00\xff" * 99) and at / "t.csv", "header"),
    "csv, lost a column": (lambda at: csv(at, "who,y,ward\nVioletta,1,A\n"), "no column 'x'"),
    "csv, utf-16, lost a column": (
        lambda at: Csv(csv(at, "who,y,ward\nVioletta,1,A\n", "utf-16"), encoding="utf-16"),
        "no column 'x'",
    ),
    "parquet, not there": (lambda at: at / "t.parquet", "there is no file"),
    "parquet, none fits": (lambda at: at / "*.parquet", "no file fits"),
    "parquet, no parquet": (lambda at: (at / "t.parquet").write_text("who,x") and at / "t.parquet", "read as Parquet"),
    "parquet, lost a column": (lambda at: parquet(at, lost("x")), "no column 'x'"),
    "parquet, other letters": (lambda at: parquet(at, {"WHO": ["Gilda"], "x": [1.0], "ward": ["A"]}), "'who'"),
    "parquet, two types": (_two, "same types"),
    "duckdb, not there": (lambda at: at / "t.duckdb", "there is no file"),
    "duckdb, no duckdb": (lambda at: (at / "t.duckdb").write_text("who,x") and at / "t.duckdb", "cannot be opened"),
    "duckdb, lost a column": (lambda at: base(at, "CREATE TABLE t (who VARCHAR, y DOUBLE, ward VARCHAR)"), "'x'"),
    "duckdb, a view that binds itself": (
        lambda at: base(
            at,
            "CREATE TABLE one (who VARCHAR, x DOUBLE, ward VARCHAR)",
            "CREATE VIEW t AS SELECT * FROM one",
            "CREATE VIEW other AS SELECT * FROM t",
            "CREATE OR REPLACE VIEW t AS SELECT * FROM other",
        ),
        "is a view",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_file_that_cannot_hold_the_table_is_refused_unpaid(name: str, tmp_path: Path) -> None:
    written, words = WRONG[name]
    data = written(tmp_path)
    for plan in (query(), query(limits=None), SUM):
        refused(*door(data), plan, words)


def test_a_file_that_nobody_may_read_is_refused_unpaid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: Any, **__: Any) -> Any:
        raise PermissionError("Violetta")

    for how in ({}, {"encoding": "utf-16"}):
        curator, ledger = door(Csv(csv(tmp_path, "who,x,ward\n"), **how))
        with monkeypatch.context() as patch:
            patch.setattr(Path, "open", forbidden)
            refused(curator, ledger, query(), "cannot be read")


@pytest.mark.parametrize("kind", ["parquet", "duckdb", "frame"])
def test_a_header_that_changed_meanwhile_is_refused_unpaid(kind: str, tmp_path: Path) -> None:
    frame = dict(ROWS)
    stored = "CREATE OR REPLACE TABLE t (who VARCHAR, {} DOUBLE, ward VARCHAR)"
    first: dict[str, Callable[[], Any]] = {
        "parquet": lambda: parquet(tmp_path, ROWS),
        "duckdb": lambda: base(tmp_path, stored.format("x")),
        "frame": lambda: frame,
    }
    then: dict[str, Callable[[], Any]] = {
        "parquet": lambda: parquet(tmp_path, lost("x")),
        "duckdb": lambda: base(tmp_path, stored.format("y")),
        "frame": lambda: frame.pop("x"),
    }
    curator, ledger = door(first[kind]())
    curator.release(query())
    then[kind]()
    for plan in (query(limits=None), SUM):
        refused(curator, ledger, plan, "no column 'x'")


def test_a_quote_needs_no_file_and_refuses_one_that_does_not_fit(tmp_path: Path) -> None:
    curator, _ = door(tmp_path / "t.csv")
    assert curator.quote(query()).affordable and curator.quote(SUM).affordable
    csv(tmp_path, "who,y,ward\n")
    with pytest.raises(PlanError, match="no column 'x'"):
        curator.quote(SUM)


@pytest.mark.parametrize("name", ["a.b", 'q"x', "order", "my table"])
def test_any_name_of_a_table_is_read(name: str, tmp_path: Path) -> None:
    """A name with a dot was charged, and then taken for a table of another schema."""
    file = csv(tmp_path, "who,x,ward\nVioletta,1,A\n")
    curator, _ = door(file, Schema({name: TABLE}))
    assert isinstance(curator.release(SUM).value, float)


@pytest.mark.parametrize("columns", [("X", "x"), ("who", "WHO")])
def test_columns_that_are_one_name_in_sql_are_refused_unpaid(columns: tuple[str, str], tmp_path: Path) -> None:
    table = Table({"who": key(), **{name: real(0, 9) for name in columns if name != "who"}}, unit="who")
    file = csv(tmp_path, ",".join(table.columns) + "\n")
    plan = m.Laplace(query=bounds.clipped_sum(columns[-1], 0, 9, WHO), epsilon=1)
    refused(*door(file, Schema({"t": table})), plan, "one name in SQL")


# Groups


def test_a_key_that_a_category_does_not_have_is_refused_at_birth() -> None:
    for wrong in (["nowhere"], ["A", "nowhere"], ["A", 7], ["a"]):
        for limits in (Limits(), None):
            with pytest.raises(ArgumentError, match=r"keys of ward = .* values that ward can have: 'A', 'B'"):
                query(keys={"ward": wrong}, limits=limits)
    assert query(keys={"ward": ["B"]}).front.keys[0].values == ("B",)


def test_a_plan_that_was_stored_with_such_a_key_is_read_and_not_asked() -> None:
    fields = {"text": query().text, "schema": SCHEMA, "protects": WHO, "epsilon": 1, "limits": Limits()}
    curator, ledger = door(ROWS)
    plan = Sql(**fields, keys={"ward": ["nowhere"]})
    with pytest.raises(ArgumentError, match="values that ward can have"):
        curator.release(plan)
    assert not [entry for entry in ledger.history() if entry.kind == "spend"]


def test_more_than_a_million_groups_of_the_schema_are_refused_at_birth() -> None:
    schema = Schema({"t": Table({"who": key(), **{name: whole(0, 999) for name in "xyz"}}, unit="who")})
    for limits in (Limits(), None):
        with pytest.raises(QueryError, match=f"more than {MOST} combinations"):
            query("SELECT x, y, z, COUNT(*) AS n FROM t GROUP BY x, y, z", schema, limits=limits)
    query("SELECT x, y, COUNT(*) AS n FROM t GROUP BY x, y", schema)
    query("SELECT x, y, z, COUNT(*) AS n FROM t GROUP BY x, y, z", schema, delta=1e-6, keys={"z": "select"})


@pytest.mark.parametrize("kind", ["frames", "files"])
def test_more_than_a_million_groups_of_public_tables_are_refused_unpaid(kind: str, tmp_path: Path) -> None:
    """Which groups there are, public rows tell; they are read before the charge, and private ones are not."""
    public = Table({"id": key(), "k": key()}, private=False)
    schema = Schema({"t": Table({"who": key(), "p": key(), "q": key()}, unit="who"), "a": public, "b": public})
    many: dict[str, list[Any]] = {"id": list(range(1100)), "k": list(range(1100))}
    data: dict[str, Any] = {"t": {"who": ["Violetta"], "p": [1], "q": [1]}, "a": many, "b": many}
    if kind == "files":
        data = {name: parquet(tmp_path, columns, name) for name, columns in data.items()}
    text = "SELECT a.k AS i, b.k AS j, COUNT(*) AS n FROM t JOIN a ON t.p = a.id JOIN b ON t.q = b.id GROUP BY i, j"
    for limits in (Limits(), None):
        refused(*door(data, schema), query(text, schema, limits=limits), f"more than {MOST} combinations")


# No private row is read


def _seen(columns: Any, name: str = "t", unread: tuple[str, ...] = ("t",)) -> int:
    with connect({"t": (TABLE, source(columns))}, unread=unread) as session:  # type: ignore[attr-defined]
        return int(session.run(sqlglot.parse_one(f"SELECT COUNT(*) FROM {name}")).column(0)[0].as_py())


def test_a_table_that_is_unread_has_no_rows_whatever_it_is_asked(tmp_path: Path) -> None:
    arrow = pa.table(ROWS)
    base(tmp_path, "CREATE TABLE t (who VARCHAR, x DOUBLE, ward VARCHAR)", "INSERT INTO t VALUES ('Gilda', 1, 'A')")
    given: list[Any] = [
        csv(tmp_path, "who,x,ward\nVioletta,1,A\n"), parquet(tmp_path, ROWS), tmp_path / "t.duckdb", ROWS, arrow,
        pd.DataFrame(ROWS), pl.DataFrame(ROWS), {name: np.array(cells) for name, cells in ROWS.items()},
    ]  # fmt: skip
    for each in given:
        assert _seen(each, unread=()) > 0 and _seen(each) == 0


def _forms(folder: Path) -> list[Any]:
    """The same two rows, each way that a table may lie."""
    base(folder, "CREATE TABLE t (who VARCHAR, x DOUBLE, ward VARCHAR)")
    base(folder, "INSERT INTO t VALUES ('Violetta', 1, 'A'), ('Gilda', 2, 'B')")
    text = "who,x,ward\nVioletta,1,A\nGilda,2,B\n"
    (folder / "wide.csv").write_text(text, encoding="utf-16")
    return [
        csv(folder, text), Csv(folder / "wide.csv", encoding="utf-16"), parquet(folder, ROWS), folder / "t.duckdb",
        ROWS, pa.table(ROWS), pd.DataFrame(ROWS), pl.DataFrame(ROWS),
        {name: np.array(cells) for name, cells in ROWS.items()},
    ]  # fmt: skip


ALL = "SELECT ward, MAX(x) AS s, MIN(who) AS w FROM t GROUP BY ward ORDER BY ward"


def test_what_was_compared_holds_the_rows_once_it_is_filled(tmp_path: Path) -> None:
    asked = sqlglot.parse_one(ALL, dialect="duckdb")
    for form in _forms(tmp_path):
        given = {"t": (TABLE, source(form))}
        with connect(given) as fresh, connect(given, unread={"t"}) as session:  # type: ignore[attr-defined]
            session.bind(asked)
            assert session.run(asked).num_rows == 0
            assert session.fill(given)
            assert session.run(asked).to_pylist() == fresh.run(asked).to_pylist() != []
            assert dict(session.tables["t"]) == dict(fresh.tables["t"])


def test_a_file_that_is_new_takes_another_session(tmp_path: Path) -> None:
    """The engine may read the files alone that were there when it was opened."""
    parquet(tmp_path, ROWS, "one")
    given = {"t": (TABLE, source(tmp_path / "*.parquet"))}
    asked = sqlglot.parse_one("SELECT COUNT(*) AS n FROM t")
    with connect(given, unread={"t"}) as session:  # type: ignore[attr-defined]
        session.bind(asked)
        parquet(tmp_path, ROWS, "two")
        assert not session.fill(given)
        assert session.run(asked).column(0)[0].as_py() == 0


@pytest.mark.parametrize("new", [False, True])
def test_a_release_opens_one_engine_and_fills_it_after_it_is_paid(
    new: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log: list[str] = []
    for name in ("_start", "fill", "close"):
        monkeypatch.setattr(DuckDBSession, name, _logged(log, name, getattr(DuckDBSession, name)))
    parquet(tmp_path, ROWS, "one")
    ledger = SpyLedger({"d": Budget(epsilon=1)}, log)
    if new:
        spend = ledger.spend
        monkeypatch.setattr(
            ledger, "spend", lambda *args, **more: (parquet(tmp_path, ROWS, "two"), spend(*args, **more))[1]
        )
    curator = Curator(Private("d", tmp_path / "*.parquet", unit=WHO, schema=SCHEMA), ledger)
    curator.release(query())
    again = ["close", "_start"] if new else []
    assert _steps(log) == ["_start", "spend", "open", "fill", *again, "close", "settle answered", "close"]
    log.clear()
    with pytest.raises(BudgetError):
        curator.release(query("SELECT COUNT(*) AS n FROM t"))
    assert _steps(log) == ["_start", "spend", "close"]


def _steps(log: list[str]) -> list[str]:
    return [word for word in log if word != "answer"]


def _logged(log: list[str], name: str, act: Callable[..., Any]) -> Callable[..., Any]:
    def logged(*args: Any) -> Any:
        log.append(name)
        return act(*args)

    return logged


@record("test-nosy/1")
@dataclass(frozen=True, kw_only=True)
class Nosy(m.Laplace):
    """A plan that says of a private table that its groups are public, and looks at it before it is paid."""

    seen: ClassVar[list[int]] = []

    @property
    def opens(self) -> Any:
        return ENGINE

    @property
    def lists(self) -> frozenset[str]:
        return frozenset({"t"})

    def check_schema(self, schema: Schema) -> None: ...

    def bind(self, connection: Any) -> None:
        self.seen.append(connection.run(sqlglot.parse_one("SELECT COUNT(*) FROM t")).column(0)[0].as_py())


def test_what_a_plan_is_shown_before_it_is_paid_holds_no_private_row(tmp_path: Path) -> None:
    for data in (csv(tmp_path, "who,x,ward\nVioletta,1,A\n"), parquet(tmp_path, ROWS), ROWS):
        curator, _ = door(data)
        curator.quote(Nosy(query=SUM.query, epsilon=1))
    assert Nosy.seen == [0, 0, 0]


@pytest.mark.parametrize("kind", [RuntimeError, OSError, DataError])
def test_what_an_engine_says_before_the_charge_is_not_told(
    kind: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise kind() if kind is DataError else kind("Violetta")

    monkeypatch.setattr(Session, "bind", broken)
    for plan in (query(), SUM):
        refused(*door(csv(tmp_path, "who,x,ward\n")), plan, "cannot be opened as the schema says")


def test_o5_is_withstood_and_the_planted_fault_is_seen() -> None:
    assert not attacks.attack("O5", quick=True).broken
    assert attacks.attack("O5", quick=True, control=True).broken


@pytest.mark.parametrize("plan", [query(), query(limits=None), SUM], ids=["limits", "adviser", "rows"])
def test_what_is_said_before_the_charge_is_the_same_for_any_rows(plan: Plan[Any, Any], tmp_path: Path) -> None:
    """Files with one header, and rows that cannot be read, are cut off, or are of other types in every cell."""
    odd = [b"", b"Violetta,1,A\n", b"\xff\xfe,,,,,\n", b'"open quote,1\n', b"\x00\x00\n" * 9, os.urandom(999), b"1\n2"]
    for rows in odd:
        file = tmp_path / "t.csv"
        file.write_bytes(b"who,x,ward\n" + rows)
        assert door(file)[0].quote(plan).affordable
    for frame in (ROWS, {name: [] for name in ROWS}, {**ROWS, "x": [float("nan"), 1e300]}):
        columns = {**frame, "x": pa.array(frame["x"], pa.float64()), "who": pa.array(frame["who"], pa.string())}
        columns["ward"] = pa.array(frame["ward"], pa.string())
        assert door(parquet(tmp_path, columns))[0].quote(plan).affordable


def test_headers_are_all_that_is_used_of_a_parquet_file(tmp_path: Path) -> None:
    """Statistics of its columns are data: written or not, and whatever they say, nothing changes."""
    said = []
    for statistics, cells in ((True, [1.0, 2.0]), (False, [1.0, 2.0]), (True, [None, None]), (True, [9e99, -1.0])):
        file = tmp_path / "t.parquet"
        table = pa.table({**ROWS, "x": pa.array(cells, pa.float64())})
        pq.write_table(table, file, write_statistics=statistics)
        curator, _ = door(Parquet(file))
        said.append(str(curator.quote(query(limits=None))))
    assert len(set(said)) == 1
