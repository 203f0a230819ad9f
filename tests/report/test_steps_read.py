"""What readers of a ledger say of work in steps, and of noise that is not exact."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import pytest

from sfumato import Budget, events
from sfumato.errors import PolicyError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.stores.memory import MemoryStore
from sfumato.report.account_pages import account_report
from sfumato.report.release_pages import release_report
from tests.helpers import laplace
from tests.ledger.offices import governed
from tests.ledger.stores import ROW, answered
from tests.ledger.test_steps import begin, holds, work

PLAN = work(times=10, rate=Fraction(1, 50), tau=Fraction(1, 10**9))
FAST = work(times=10, rate=Fraction(1, 50), fast=True)


def made(budget: Budget | None = None) -> Ledger:
    ledger = Ledger(MemoryStore())
    ledger.open_account("a", budget or Budget(epsilon=3, delta=1e-5))
    return ledger


def drawn(ledger: Ledger, *blocks: int, end: bool = True) -> str:
    receipt = begin(ledger, PLAN)
    for block in blocks:
        ledger.draw_steps(receipt, block)
    if end:
        ledger.settle(receipt, "answered", b"1")
    return receipt.id


def test_a_run_is_one_release_with_its_steps() -> None:
    ledger = made()
    drawn(ledger, 4, 1, 3)
    (row,) = ledger.releases()
    assert (row.loop, row.state, row.draws, row.steps) == ("steps", "answered", 3, 8)
    assert row.epsilon == PLAN.price() and row.delta == PLAN.delta and row.event == PLAN.event
    prices = {currency: price for currency, price, _ in row.charged["a"] or ()}
    assert prices["epsilon"] == PLAN.price() and row.as_dict()["steps"] == 8
    gauges = {gauge.currency: gauge.spent for gauge in row.after["a"] or ()}
    assert gauges == {gauge.currency: gauge.spent for gauge in ledger.spent("a")}


def test_it_is_counted_once_at_the_price_of_the_whole() -> None:
    ledger = made()
    drawn(ledger, 4, 1, 3)
    answered(ledger, laplace(Fraction(1, 10)))
    now = ledger.statement("a")
    assert now.releases == 2 and now.inexact == 0 and "float" not in now.guarantee
    basic, tight = now.beside
    assert basic.epsilon == pytest.approx(float(PLAN.price() + Fraction(1, 10))) and tight.epsilon is not None
    assert tight.epsilon <= basic.epsilon and "2, as of entry" in str(now)


def test_what_is_held_and_not_drawn_is_no_release() -> None:
    ledger = made()
    drawn(ledger, end=False)
    now = ledger.statement("a")
    assert now.releases == 0 and now.holds == 1


def test_a_forecast_takes_the_run_for_one_release() -> None:
    ledger = made()
    for _ in range(2):
        drawn(ledger, 5, 5)
    answered(ledger, laplace(Fraction(1, 10)))
    ahead = ledger.forecast("a", now=datetime.now(UTC) + timedelta(hours=2), plan=PLAN)
    assert ahead.releases == 3 and ahead.more[0].count > 0
    assert ahead.exhausted is not None


def test_exports_have_the_steps(tmp_path: Path) -> None:
    ledger = made()
    drawn(ledger, 4, 6)
    path = tmp_path / "releases.csv"
    ledger.export(path)
    head, line = path.read_text(encoding="utf-8").splitlines()[:2]
    assert "steps" in head.split(",") and "trusted" not in line


def test_float_grade_is_said_wherever_the_guarantee_is() -> None:
    ledger = made()
    receipt = ledger.hold(("a",), FAST, data="a@1", grade="float", note="", trusted=True)
    ledger.open(receipt)
    ledger.draw_steps(receipt, 10)
    ledger.settle(receipt, "answered", b"1")
    holds(ledger)
    now = ledger.statement("a")
    assert "secure_noise = false" in now.guarantee and now.as_dict()["inexact_releases"] == 1
    (row,) = ledger.releases()
    assert row.grade == "float" and "secure_noise = false" in str(row.randomness)
    told = str(ledger.checklist("a"))
    assert told.count("secure_noise = false") >= 2, "in the guarantee, and with the bits"
    report = release_report(ledger, receipt.id)
    assert report.document["guarantee"]["secure_noise"] is False and report.document["noise"]["secure"] is False
    gaps = [each["what"] for each in report.document["not_protected"]]
    assert "what floating-point noise shows" in gaps and "what the user's own loop did" in gaps
    account = account_report(ledger, "a").document
    assert account["guarantee"]["secure_noise"] is False
    assert "what floating-point noise shows" in [each["what"] for each in account["not_protected"]]


def test_exact_noise_is_said_to_be_so() -> None:
    ledger = made()
    id = drawn(ledger, 10)
    report = release_report(ledger, id).document
    assert report["guarantee"]["secure_noise"] is True
    assert "what floating-point noise shows" not in [each["what"] for each in report["not_protected"]]
    assert report["release"]["steps_drawn"] == 10 and "10 step(s) drawn" in release_report(ledger, id).html()


@pytest.mark.parametrize("grades", [("exact",), ("exact", "float")], ids=str)
def test_a_policy_refuses_fast_noise_unless_it_lists_it(grades: tuple[str, ...]) -> None:
    office = governed(grades=grades)
    office.fresh("labs", Budget(epsilon=2, delta=1e-6), level="data set", unit=ROW)
    plan, ana = work(times=3, multiplier=40, fast=True, fails=Fraction(1, 10**9)), office["ana"]
    if "float" in grades:
        receipt = ana.hold((), plan, data="labs@1", grade="float", note="training", trusted=False)
        assert receipt.grade == "float"
    else:
        with pytest.raises(PolicyError, match="grade exact"):
            ana.hold((), plan, data="labs@1", grade="float", note="training", trusted=False)
        more = ana.forecast("labs", plan=plan).more[0]
        assert more.count == 0 and "grade exact" in str(more.reason)
    office.check()


def test_the_event_of_a_draw_is_so_many_steps() -> None:
    ledger = made()
    drawn(ledger, 4, 6)
    entries = [entry.fields for entry in ledger.history(kind="draw")]
    assert [(entry["before"], entry["event"]) for entry in entries] == [
        (0, events.Repeat(PLAN.step, 4)),
        (4, events.Repeat(PLAN.step, 6)),
    ]
