"""What readings say of lists and their parts: each price once, each release once."""

from __future__ import annotations

import csv
import json
from fractions import Fraction
from pathlib import Path

import pytest

from sfumato import Budget
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.stores.memory import MemoryStore
from sfumato.report.accounts import About
from tests.helpers import laplace
from tests.ledger.stores import Stores, answered
from tests.ledger.test_prepaying import FOUR, LIST, ONE, PRICE, TWO, prepay, take


def lived(ledger: Ledger) -> Ledger:
    """A list of three: one part is answered, one failed, one waits; and a release beside it."""
    prepay(ledger)
    for plan, outcome in ((TWO, "answered"), (ONE, "failed")):
        part = take(ledger, plan)
        ledger.open(part)
        ledger.settle(part, outcome, b"1" if outcome == "answered" else None)
    answered(ledger, laplace(Fraction(1, 3)))
    return ledger


@pytest.fixture
def ledger() -> Ledger:
    made = Ledger(MemoryStore())
    made.open_account("a", Budget(epsilon=5, delta=1e-6))
    return lived(made)


def test_a_row_for_the_list_and_one_for_each_part_that_was_taken(ledgers: Stores) -> None:
    made = lived(ledgers({"a": Budget(epsilon=5)}))
    rows = list(made.releases())
    assert [(row.loop, row.state) for row in rows] == [
        ("parts", "in parts"), ("part", "answered"), ("part", "failed"), ("plan", "answered")
    ]  # fmt: skip
    listed, two, one, beside = rows
    assert (listed.part_of, beside.part_of) == (None, None) and two.part_of == one.part_of == listed.number
    assert two.charged == one.charged == {} and two.before == two.after == listed.after
    assert listed.epsilon == PRICE and (two.epsilon, one.epsilon) == (Fraction(1, 5), Fraction(1, 10))
    assert (two.plan_hash, one.plan_hash) == (TWO.hash, ONE.hash) and two.answer is not None is not two.words
    assert two.library == listed.library and two.purpose == "a list" and two.number > listed.number
    charged = [price for row in rows for _, price, _ in row.charged.get("a") or ()]
    assert sum(charged) == made.spent("a")[0].spent == PRICE + Fraction(1, 3), "each price once"


def test_rows_are_found_by_account_data_and_person(ledger: Ledger) -> None:
    ledger.open_account("b", Budget(epsilon=5), reason="other people")
    prepay(ledger, LIST, "b", data="b@1")
    take(ledger, ONE, "b", data="b@1")
    for which in ({"account": "b"}, {"data": "b"}, {"data": "b@1"}):
        assert [row.loop for row in ledger.releases(**which)] == ["parts", "part"]
        assert {row.part_of for row in ledger.releases(**which)} == {None, next(ledger.releases(account="b")).number}
    assert list(ledger.releases(by="nobody")) == []
    kinds = [entry.kind for entry in ledger.history(account="b")]
    assert kinds == ["open account", "spend", "part"]
    assert [entry.kind for entry in ledger.history(data="a")].count("part") == 2


def test_a_list_s_parts_are_the_releases_of_a_statement(ledger: Ledger) -> None:
    told = ledger.statement("a")
    assert told.releases == 3 and told.failures == 1
    basic, in_advance = told.beside
    assert basic.epsilon == pytest.approx(float(PRICE + Fraction(1, 3)))
    assert in_advance.epsilon is not None and in_advance.epsilon == pytest.approx(basic.epsilon, rel=1e-3)
    take(ledger, FOUR)
    assert ledger.statement("a").releases == 4
    assert ledger.statement("a").beside[0].epsilon == basic.epsilon


def test_the_disclosures_count_each_release_once(ledger: Ledger) -> None:
    fields = ledger.checklist("a").as_dict()["fields"]
    assert fields["releases"].startswith("3 (")
    assert "1 list(s) of releases were fixed in advance and paid as one" in fields["composition"]
    assert "3 releases" in ledger.registry("a", About())
    other = Ledger(MemoryStore())
    other.open_account("a", Budget(epsilon=5))
    answered(other, ONE)
    assert "list(s)" not in other.checklist("a").as_dict()["fields"]["composition"]


def test_a_list_whose_parts_wait_is_no_release_yet() -> None:
    made = Ledger(MemoryStore())
    made.open_account("a", Budget(epsilon=5))
    prepay(made)
    assert made.statement("a").releases == 0 and made.checklist("a").as_dict()["fields"]["releases"] == "none yet"
    assert [row.state for row in made.releases()] == ["in parts"]
    assert made.forecast("a", plan=ONE, data="a@1").more[0].count == (5 - PRICE) // Fraction(1, 10)


@pytest.mark.parametrize("ending", ["csv", "ndjson", "parquet"])
def test_exports_say_what_paid_for_a_part(ledger: Ledger, tmp_path: Path, ending: str) -> None:
    place = ledger.export(tmp_path / f"out.{ending}").path
    if ending == "parquet":
        from pyarrow import parquet

        rows = parquet.read_table(place).to_pylist()
    else:
        text = place.read_text(encoding="utf-8")
        rows = list(csv.DictReader(text.splitlines())) if ending == "csv" else list(map(json.loads, text.splitlines()))
    listed = str(rows[0]["number"])
    assert [row["state"] for row in rows] == ["in parts", "answered", "failed", "answered"]
    assert [str(row["part_of"] or "").replace("None", "") for row in rows] == ["", listed, listed, ""]


def test_a_limit_is_raised_by_what_was_charged() -> None:
    """The past of an account is what it paid: the list, not its parts."""
    made = Ledger(MemoryStore())
    made.open_account("a", Budget(epsilon=2, delta=1e-6, raisable=True))
    lived(made)
    before = made.spent("a")[0].spent
    made.change_limit("a", Budget(epsilon=3, delta=4e-6, raisable=True), reason="more")
    assert made.spent("a")[0].spent == before
    assert take(made, FOUR).loop == "part"
    assert made.verify().ok, made.verify()
