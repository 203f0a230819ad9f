"""Exports: whole or not there, tied to the chain, exact, and harmless in a spreadsheet."""

from __future__ import annotations

import csv
import hashlib
import json
import stat
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from sfumato import Budget, Unit, events, record
from sfumato import mechanisms as m
from sfumato.bounds import Count
from sfumato.errors import ArgumentError, LedgerError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.stores.memory import MemoryStore
from sfumato.report.accounts import export, history, releases
from sfumato.report.accounts.export import from_cell
from tests.helpers import laplace
from tests.ledger.stores import Stores, answered, held, pay

FORMULAS = ['=HYPERLINK("http://x","y")', "+1", "-1", "@SUM(A1)", "\t=1", "'=1", "'", "＝1", "\r\n=1"]
NASTY = 'Robert\'); DROP TABLE entries;--\nline two, "quoted", 😀 = ü'


def _ledger(*notes: str) -> Ledger:
    ledger = Ledger(MemoryStore(), principal="=cmd")
    ledger.open_account("a", Budget(epsilon=1, delta=Fraction(1, 10**6)))
    for note in notes:
        plan = laplace(Fraction(1, 100))
        receipt = ledger.spend(("a",), plan, data="a@1", grade="exact", note=note)
        ledger.open(receipt)
        ledger.settle(receipt, "answered", b"1")
    return ledger


def _csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _ndjson(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="ascii").splitlines()]


def test_every_store_and_every_format(ledgers: Stores, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    ledger = ledgers({"a": Budget(epsilon=1)})
    answered(ledger, laplace(Fraction(1, 10)))
    pay(ledger, laplace(Fraction(1, 3)))
    last = list(history(ledger._store))[-1]
    for ending in ("ndjson", "csv", "parquet"):
        for what, count in (("releases", 2), ("entries", 6)):
            done = export(ledger._store, tmp_path / f"{what}.{ending}", what=what)
            assert (done.rows, done.number, done.hash) == (count, last.number, last.hash)
            assert done.sha256 == hashlib.sha256(done.path.read_bytes()).hexdigest()
    assert len(list(tmp_path.iterdir())) == 6  # nothing else is left


def test_ndjson_is_exact_and_tied_to_the_chain(tmp_path: Path) -> None:
    ledger = _ledger(NASTY, *FORMULAS)
    done = export(ledger._store, tmp_path / "r.jsonl")
    rows = _ndjson(done.path)
    assert [row["purpose"] for row in rows] == [NASTY, *FORMULAS]
    chain = {entry.number: entry.hash for entry in history(ledger._store)}
    for row, release in zip(rows, releases(ledger._store), strict=True):
        assert chain[row["number"]] == row["hash"] and chain[row["number"] - 1] == row["previous"]
        assert (row["head_number"], row["head_hash"]) == (max(chain), chain[max(chain)])
        assert row["epsilon"] == "1/100" and row["epsilon_float"] == 0.01
        assert record.decode(row["event"]) == release.event and row["accounts"] == ["a"]
        assert record.parse(row["plan"]) == laplace(Fraction(1, 100))
        assert Fraction(row["after"]["a"][0]["spent"]) - Fraction(row["before"]["a"][0]["spent"]) == Fraction(1, 100)


def test_csv_comes_back_as_it_was_and_holds_no_formula(tmp_path: Path) -> None:
    ledger = _ledger(NASTY, *FORMULAS)
    rows = _csv(export(ledger._store, tmp_path / "r.csv").path)
    assert [from_cell(row["purpose"]) for row in rows] == [NASTY, *FORMULAS]
    for row in rows:
        assert from_cell(row["actor"]) == "=cmd"
        for cell in row.values():
            assert not cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n", "＝"))
    assert rows[0]["epsilon"] == "1/100" and float(rows[0]["epsilon_float"]) == 0.01
    assert json.loads(rows[0]["accounts"]) == ["a"]


def test_parquet_has_types_and_the_head(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = import_module("pyarrow.parquet")
    ledger = _ledger(NASTY, *FORMULAS)
    done = export(ledger._store, tmp_path / "r.parquet")
    table = parquet.read_table(done.path)
    assert table.column("purpose").to_pylist() == [NASTY, *FORMULAS]
    assert table.schema.field("number").type == arrow.int64()
    assert table.schema.field("epsilon_float").type == arrow.float64()
    assert table.schema.field("at").type == arrow.timestamp("us", tz="UTC")
    assert table.schema.field("accounts").type == arrow.list_(arrow.string())
    assert table.column("at").to_pylist() == [row.time for row in releases(ledger._store)]
    assert table.schema.metadata[b"head_hash"].decode() == done.hash
    empty = Ledger(MemoryStore())
    empty.open_account("a", Budget(epsilon=1))
    assert parquet.read_table(export(empty._store, tmp_path / "none.parquet").path).num_rows == 0


def test_parquet_in_several_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    parquet = import_module("pyarrow.parquet")
    monkeypatch.setattr(import_module("sfumato.report.accounts.export"), "_GROUP", 3)
    ledger = _ledger(*map(str, range(7)))
    file = parquet.ParquetFile(export(ledger._store, tmp_path / "r.parquet").path)
    assert file.metadata.num_row_groups == 3
    assert file.read().column("purpose").to_pylist() == list(map(str, range(7)))


def test_parquet_without_arrow_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(import_module("sfumato.report.accounts.export"), "import_module", missing)
    with pytest.raises(ArgumentError, match=r"install '\.\[parquet\]'"):
        export(_ledger("x")._store, tmp_path / "r.parquet")
    assert not list(tmp_path.iterdir())


def test_what_is_there_is_not_overwritten(tmp_path: Path) -> None:
    ledger = _ledger("x")
    path = tmp_path / "r.csv"
    path.write_text("mine")
    with pytest.raises(ArgumentError, match="overwrite=True"):
        export(ledger._store, path)
    assert path.read_text() == "mine"
    export(ledger._store, path, overwrite=True)
    assert len(_csv(path)) == 1 and [each.name for each in tmp_path.iterdir()] == ["r.csv"]


def test_a_file_that_appears_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"

    def somebody(number: int, last: int) -> None:
        path.write_text("theirs")

    with pytest.raises(ArgumentError, match="overwrite=True"):
        export(_ledger("x")._store, path, progress=somebody)
    assert path.read_text() == "theirs" and [each.name for each in tmp_path.iterdir()] == ["r.csv"]


@pytest.mark.parametrize("ending", ["ndjson", "csv", "parquet"])
@pytest.mark.parametrize("there", [True, False])
def test_an_export_that_breaks_off_leaves_nothing(tmp_path: Path, ending: str, there: bool) -> None:
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    path = tmp_path / f"r.{ending}"
    if there:
        path.write_text("before")

    def stop(number: int, last: int) -> None:
        if number == last:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export(_ledger("x", "y")._store, path, overwrite=there, progress=stop)
    assert [each.read_text() for each in tmp_path.iterdir()] == (["before"] if there else [])


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="could not be written"):
        export(_ledger("x")._store, tmp_path / "no" / "r.csv")


def test_only_the_owner_may_read_it(tmp_path: Path) -> None:
    done = export(_ledger("x")._store, tmp_path / "r.csv")
    assert stat.S_IMODE(done.path.stat().st_mode) == 0o600


def test_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> None:
        raise PermissionError(1, "no links here")

    monkeypatch.setattr("os.link", refused)
    done = export(_ledger("x")._store, tmp_path / "r.csv")
    assert len(_csv(done.path)) == 1 and [each.name for each in tmp_path.iterdir()] == ["r.csv"]


def test_progress_is_told(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    for what in ("releases", "entries"):
        seen.clear()
        export(_ledger("x")._store, tmp_path / f"{what}.csv", what=what, progress=lambda *told: seen.append(told))
        assert seen == [(number, 5) for number in range(1, 6)]


def test_what_comes_after_the_head_is_not_in_it(tmp_path: Path) -> None:
    ledger = _ledger("x", "y")

    def more(number: int, last: int) -> None:
        if number == 1:
            pay(ledger, laplace(Fraction(1, 100)))

    done = export(ledger._store, tmp_path / "r.ndjson", progress=more)
    assert (done.rows, done.number) == (2, 8)


def test_entries_with_every_kind_of_field(tmp_path: Path) -> None:
    ledger = _ledger()
    receipt = held(ledger, Budget(epsilon=Fraction(1, 2)))
    ledger.draw(receipt, events.Laplace(epsilon=Fraction(1, 10)), Fraction(0))
    pay(ledger, m.Gaussian(query=Count(unit=Unit()), multiplier=20))
    ledger.declare("a@1", "invariant", NASTY.replace("\n", " "), recipients="=all", reason="law")
    with ledger._store.writing() as book:
        book.append(b'{"is":"map","items":[["kind","moonshot"],["thing",{"is":"from-2099/1"}],["half","\\ud800"]]}')
    rows = _ndjson(export(ledger._store, tmp_path / "e.ndjson", what="entries").path)
    assert [row["kind"] for row in rows][-2:] == ["declare", "moonshot"]
    assert rows[-1]["fields"]["thing"] == {"is": "from-2099/1"}
    cells = _csv(export(ledger._store, tmp_path / "e.csv", what="entries").path)
    assert len(cells) == len(rows) and cells[-2]["kind"] == "declare"
    pytest.importorskip("pyarrow")
    assert export(ledger._store, tmp_path / "e.parquet", what="entries").rows == len(rows)


@pytest.mark.parametrize("wrong", [{"what": "everything"}, {"format": "xlsx"}])
def test_bad_arguments_are_named(tmp_path: Path, wrong: dict[str, str]) -> None:
    with pytest.raises(ArgumentError, match=next(iter(wrong))):
        export(_ledger()._store, tmp_path / "r.csv", **wrong)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="format"):
        export(_ledger()._store, tmp_path / "r.txt")
    assert export(_ledger("x")._store, tmp_path / "r.txt", format="csv").rows == 1
