"""The report of an account, from one without a single release to one that is locked, exhausted or in rho."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato import Budget, Curator, MemoryLedger, Private, Unit, bounds, mechanisms, reserve
from sfumato.errors import ArgumentError, BudgetError, DataError, SfumatoError
from sfumato.ledger import About
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.stores.memory import MemoryStore
from sfumato.report import account_report, release_report
from sfumato.report.account_pages import MOST
from sfumato.report.over_time import OverTime
from sfumato.report.redaction import TOPICS
from tests.helpers import AGES, BY_PATIENT, PATIENTS, hooked, laplace
from tests.ledger.offices import QUIET, governed, policy
from tests.ledger.stores import Stores
from tests.report.reading import document, page


def people(version: str = "1") -> Private:
    return Private("people", AGES, unit=BY_PATIENT, schema=PATIENTS, version=version)


def ages(epsilon: Any = 0.5) -> Any:
    return mechanisms.Laplace(query=bounds.clipped_sum("age", 0, 120, BY_PATIENT, per_unit=2), epsilon=epsilon)


def alerts(found: dict[str, Any]) -> dict[str, str]:
    return {each["words"]: each["level"] for each in found["alerts"]}


def test_an_account_without_a_release() -> None:
    ledger = MemoryLedger({"people": Budget(epsilon=3, delta=1e-6)})
    report = account_report(ledger, "people")
    found, shown = document(report), page(report)
    assert found["releases"] == [] and found["over_time"]["gauges"] == [] and found["account"]["used"] == 0
    assert found["guarantee"]["headline"] == "epsilon = 3 at delta = 1e-6"
    assert "Nothing was released on this account yet." in shown.text and "None yet." in shown.text
    assert found["guarantee"]["hides"] == "a unit that the first release will fix"
    assert "svg" in shown.tags and found["alerts"] == []


def test_a_folder_has_no_limit_of_its_own() -> None:
    ledger = Ledger(MemoryStore())
    ledger.open_account("org", None, level="organisation")
    ledger.open_account("people", Budget(epsilon=1), parent="org", level="data set", unit=BY_PATIENT)
    report = account_report(ledger, "org")
    found = document(report)
    assert found["guarantee"]["headline"] == "no limit of its own" and found["account"]["used"] is None
    assert [each["name"] for each in found["allocations"]] == ["people"]
    assert "no limit of its own" in page(report).text


def test_releases_are_listed_with_who_why_and_price() -> None:
    ledger = MemoryLedger({"people": Budget(epsilon=3)})
    curator = Curator(people(), ledger)
    for number in range(1, 4):
        curator.release(ages(Fraction(number, 10)), note=f"purpose {number}")
    report = account_report(ledger, "people")
    found, shown = document(report), page(report)
    assert [each["purpose"] for each in found["releases"]] == ["purpose 3", "purpose 2", "purpose 1"]
    assert [each["price"] for each in found["releases"]] == ["epsilon = 0.3", "epsilon = 0.2", "epsilon = 0.1"]
    line = found["over_time"]["gauges"][0]
    assert [point[1] for point in line["points"]] == pytest.approx([0.1 / 3, 0.3 / 3, 0.6 / 3]) and line["open"]
    assert [point[0] for point in line["points"]] == sorted(point[0] for point in line["points"])
    assert found["states"] == {"answered": 3} and "3 in all: 3 answered" in shown.text
    assert found["standing"][0]["exact"] == {"spent": "3/5", "limit": "3"}
    assert found["evidence"]["verify"]["holds"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("budget", "headline"),
    [
        (Budget(epsilon=1), "epsilon = 1"),
        (Budget(epsilon=1, delta=1e-6), "epsilon = 1 at delta = 1e-6"),
        (Budget(rho=0.5), "rho = 0.5"),
    ],
)
def test_every_kind_of_budget(budget: Budget, headline: str) -> None:
    ledger = MemoryLedger({"people": budget})
    Curator(people(), ledger).release(ages(0.25))
    report = account_report(ledger, "people")
    found, shown = document(report), page(report)
    assert found["guarantee"]["headline"] == headline in shown.text
    assert found["guarantee"]["odds"] and found["guarantee"]["attacks"]
    assert (found["guarantee"]["told_at"] is not None) == (budget.rho is not None)
    assert found["registry"] and headline.split()[0] in found["registry"]


def test_an_exhausted_budget() -> None:
    ledger = MemoryLedger({"people": Budget(epsilon=1)})
    curator = Curator(people(), ledger)
    curator.release(ages(1))
    with pytest.raises(BudgetError):
        curator.release(ages(0.25))
    report = account_report(ledger, "people")
    found, shown = document(report), page(report)
    assert found["account"]["used"] == 1 and "exhausted" in shown.text
    assert alerts(found)["the budget is exhausted: nothing more can be released on this account"] == "urgent"


def test_a_gauge_that_closed_ends_in_the_plot() -> None:
    ledger = MemoryLedger({"people": Budget(epsilon=2, delta=1e-6)})
    curator = Curator(people(), ledger)
    for number in range(1, 9):
        curator.release(ages(Fraction(2 * number, 100)))
    curator.release(ages(1))
    found = document(account_report(ledger, "people"))
    assert found["closed_gauges"]
    open_ = {each["currency"]: each["open"] for each in found["over_time"]["gauges"]}
    assert {name for name, still in open_.items() if not still} == set(found["closed_gauges"])
    assert "closed</title>" in account_report(ledger, "people").html()


def test_failures_and_a_lock() -> None:
    ledger = MemoryLedger({"people": Budget(epsilon=3)})

    def fails(rows: Any, run: Any) -> Any:
        raise RuntimeError("SECRET-4711")

    for number in range(3):
        with pytest.raises(DataError):
            Curator(people(), ledger).release(hooked(f"account-{number}", fails, epsilon=Fraction(1, 10 + number)))
        words = alerts(document(account_report(ledger, "people")))
        assert any("failed on the data's side" in each or "locked" in each for each in words)
    report = account_report(ledger, "people")
    found = document(report)
    assert found["account"]["locked"] and found["states"] == {"failed": 3}
    assert "SECRET" not in report.html() + report.json() and "locked" in page(report).text


def test_allocations_holds_and_what_is_over() -> None:
    ledger = MemoryLedger({"people": Budget(epsilon=1)})
    ledger.open_account("training", Budget(epsilon=0.75), parent="people", level="project")
    ledger.open_account("tuning", Budget(epsilon=0.5), parent="people", level="project")
    Curator(people(), ledger, accounts=("training",)).release(ages(0.25))
    ledger.hold(("tuning",), ages(0.25), data="people@1", grade="exact", note="")
    ledger.close_account("tuning", reason="over")
    report = account_report(ledger, "people")
    found, shown = document(report), page(report)
    below = {each["name"]: each for each in found["allocations"]}
    assert below["training"]["used"] == pytest.approx(1 / 3) and below["tuning"]["closed"]
    assert found["account"]["holds"] == 1 and any("hold(s) are open" in each for each in alerts(found))
    assert found["states"] == {"answered": 1, "room held": 1} and "(closed)" in shown.text


def test_overcommitted_accounts_are_told() -> None:
    ledger = MemoryLedger({"people": Budget(epsilon=1)})
    for name in ("one", "two"):
        ledger.open_account(name, Budget(epsilon=0.75), parent="people", level="project")
    found = document(account_report(ledger, "people"))
    assert found["allocated"] == {"sum": "epsilon = 1.5", "over": True}
    assert any("more than this one" in each for each in alerts(found))


def test_a_limit_that_was_lowered() -> None:
    ledger = MemoryLedger({"people": Budget(epsilon=3)})
    Curator(people(), ledger).release(ages(0.5))
    ledger.change_limit("people", Budget(epsilon=1), reason="less")
    report = account_report(ledger, "people")
    found = document(report)
    assert found["guarantee"]["headline"] == "epsilon = 3" and found["account"]["lowered_to"] == "epsilon = 1"
    assert "lowered to epsilon = 1" in page(report).text


def test_blocks_are_told_apart() -> None:
    ledger = MemoryLedger({"people": Budget(epsilon=3)})
    ledger.open_block("people", "2026-01", Budget(epsilon=1), reason="a month")
    found = document(account_report(ledger, "people"))
    assert found["blocks"][0]["level"] == "block" and not found["allocations"]
    inner = document(account_report(ledger, found["blocks"][0]["name"]))
    assert any(gap["what"] == "what a unit has in other blocks" for gap in inner["not_protected"])


@pytest.mark.parametrize("threshold", [None, 0.1, 0.5, 1])
def test_the_mark_of_a_project(threshold: float | None) -> None:
    ledger = MemoryLedger({"people": Budget(epsilon=1)})
    Curator(people(), ledger).release(ages(0.25))
    found = document(account_report(ledger, "people", alert_threshold=threshold))
    assert found["over_time"]["marks"] == ([0.5, 0.8, 0.95] if threshold is None else [threshold])
    assert any("passes the mark" in each for each in alerts(found)) == (threshold == 0.1)


@pytest.mark.parametrize("threshold", [0, -1, 1.5, True, "0.8", float("nan")])
def test_a_mark_must_be_a_share(threshold: Any) -> None:
    with pytest.raises(ArgumentError, match="alert_threshold"):
        account_report(MemoryLedger({"people": Budget(epsilon=1)}), "people", alert_threshold=threshold)


def test_the_marks_of_a_policy() -> None:
    office = governed(alerts=QUIET)
    assert document(account_report(office["rita"], "visits"))["over_time"]["marks"] == [0.5, 0.8, 0.95]
    assert "roles of the policy" not in account_report(office["rita"], "visits").html()


def test_approvals_and_roles_are_told() -> None:
    office = governed(bands=policy().bands)
    office["ana"].spend(("visits",), laplace(0.5), data="visits@1", grade="exact", note="a test")
    found = document(account_report(office["rita"], "visits"))
    assert found["releases"][0]["actor"] == "ana" and found["checklist"]["fields"][20]["account"].startswith("roles of")


@pytest.mark.parametrize("account", ["", "nobody", 5, None])
def test_an_account_that_is_none(account: Any) -> None:
    with pytest.raises(Exception, match="account") as refused:
        account_report(MemoryLedger({"people": Budget(epsilon=1)}), account)
    assert isinstance(refused.value, SfumatoError)


def test_marks_of_redaction_are_nowhere() -> None:
    ledger = MemoryLedger({"people": Budget(epsilon=3)})
    ledger._desk.principal = "MARK-actor"
    Curator(people("MARK-version"), ledger).release(ages(), note="MARK-purpose", key="MARK-key")
    ledger.declare("people@MARK-version", "without DP", "MARK-declared", recipients="MARK-reader", reason="MARK-why")
    about = About(trust="MARK-trust", security="MARK-security", access="MARK-access")
    whole = account_report(ledger, "people", about=about)
    assert whole.html().count("MARK-") > 8
    hidden = account_report(ledger, "people", about=about, redact=sorted(TOPICS))
    document(hidden), page(hidden)
    assert "MARK-" not in hidden.html() + hidden.json()
    assert document(hidden)["guarantee"] == document(whole)["guarantee"]


def test_a_broken_chain_is_the_first_thing_that_is_told(tmp_path: Path) -> None:
    with sf.open_ledger(tmp_path / "ledger", create=True) as ledger:
        ledger.open_account("people", Budget(epsilon=3))
        Curator(people(), ledger).release(ages())
        spent = next(ledger.history(kind="spend")).number
    with sqlite3.connect(tmp_path / "ledger") as file:
        tables = [name for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        entries = next(name for name in tables if "entr" in name)
        for (trigger,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            file.execute(f'DROP TRIGGER "{trigger}"')
        columns = [row[1] for row in file.execute(f"PRAGMA table_info({entries})")]
        body = next(name for name in columns if "body" in name)
        changed = f"CAST(replace(CAST({body} AS TEXT), 'people', 'peopel') AS BLOB)"
        file.execute(f"UPDATE {entries} SET {body} = {changed} WHERE number = ?", [spent])
    file.close()
    with sf.open_ledger(tmp_path / "ledger", read_only=True) as ledger:
        report = account_report(ledger, "people")
        found, shown = document(report), page(report)
    assert not found["evidence"]["verify"]["holds"] and found["alerts"][0]["level"] == "urgent"
    assert "do not sign this report" in shown.text and f"entry {spent}" in shown.text


def test_many_releases_are_cut_to_the_latest() -> None:
    ledger = MemoryLedger({"people": Budget(epsilon=10)})
    many = MOST + 7
    for number in range(many):
        ledger.spend(
            ("people",), laplace(Fraction(1, 100 + number % 5)), data="people@1", grade="exact", note=str(number)
        )
    report = account_report(ledger, "people")
    found, shown = document(report), page(report)
    assert found["releases_in_all"] == many and len(found["releases"]) == MOST
    assert found["releases"][0]["purpose"] == str(many - 1) and f"The latest {MOST} are listed" in shown.text
    points = found["over_time"]["gauges"][0]["points"]
    assert len(points) <= 402 and points[-1][1] == pytest.approx(found["standing"][0]["share"])


def test_on_every_store(ledgers: Stores) -> None:
    ledger = ledgers({"people": Budget(epsilon=3, delta=1e-6)})
    curator = Curator(people(), ledger)
    release = curator.release(ages(), note="on every store")
    with curator.supervise(reserve(unit=BY_PATIENT, budget=Budget(epsilon=1))) as run:
        run.release(ages(0.25))
    found = document(account_report(ledger, "people"))
    assert found["account"]["releases"] == 2 and found["evidence"]["verify"]["holds"]
    told = document(release_report(ledger, release.receipt.id))
    assert told["answer"]["tables"][0]["rows"][0][0]["value"] == release.value
    assert told["evidence"]["answer_hash"] is not None


def rows_at(times: list[str | None]) -> Iterator[Any]:
    ledger = MemoryLedger({"people": Budget(epsilon=3)})
    for number in range(len(times)):
        ledger.spend(("people",), laplace(Fraction(1, 10 + number)), data="people@1", grade="exact", note="")
    for row, at in zip(ledger.releases(), times, strict=True):
        object.__setattr__(row, "at", at)
        yield row


@pytest.mark.parametrize(
    ("times", "by"),
    [
        (["2026-01-01T00:00:00+00:00", "2026-01-02T00:00:00+00:00", "2026-01-03T00:00:00+00:00"], "time"),
        (["2026-01-03T00:00:00+00:00", "2026-01-02T00:00:00+00:00", "2026-01-01T00:00:00+00:00"], "entry"),
        (["2026-01-01T00:00:00+00:00", None, "2026-01-03T00:00:00+00:00"], "entry"),
        (["2026-01-01T00:00:00+00:00"] * 3, "time"),
        (["yesterday", "today", "tomorrow"], "entry"),
    ],
)
def test_clocks_that_went_back_are_not_believed(times: list[str | None], by: str) -> None:
    course = OverTime("people")
    for row in rows_at(times):
        course.take(row)
    lines = course.lines()
    assert lines["by"] == by
    shares = [point[1] for point in lines["gauges"][0]["points"]]
    assert shares == sorted(shares) and len(shares) == 3


def test_the_relation_is_read_from_the_units_own_words() -> None:
    for change in ("add-remove", "replace", "zero-out"):
        ledger = Ledger(MemoryStore())
        ledger.open_account(
            "people", Budget(epsilon=1), level="data set", unit=Unit("user:a, b", change=change, group=3)
        )  # type: ignore[arg-type]
        found = document(account_report(ledger, "people"))
        assert found["guarantee"]["neighbours"] == change


def test_a_ledger_is_asked_for() -> None:
    with pytest.raises(ArgumentError, match="ledger"):
        account_report("budget.ledger", "people")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="ledger"):
        release_report("budget.ledger", 1)  # type: ignore[arg-type]
