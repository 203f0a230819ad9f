"""Sentences of reports that would be easy to get nearly right: each is held against what the release did."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

import sfumato as sf
from sfumato import Budget, Curator, MemoryLedger, Private, Unit, bounds, mechanisms
from sfumato.accounting import gdp
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.stores.memory import MemoryStore
from sfumato.query import finish
from sfumato.query.advice import Advice
from sfumato.query.limits import Limits
from sfumato.report import account_report, release_report
from sfumato.schema import Schema, Table, category, key, real
from tests.report.reading import document, page

DATA = {
    "patient": [n % 400 for n in range(1600)],
    "ward": [("east", "north")[n % 2] for n in range(1600)],
    "town": [("Ulm", "Bonn")[n % 2] for n in range(1600)],
    "cost": [float(n % 90) for n in range(1600)],
}
COLUMNS = {"patient": key(), "ward": category(["east", "north"]), "town": key(), "cost": real(0, 1000)}
DELTA = Fraction(1, 10**6)


def visits(unit: str = "user:patient", change: Any = "add-remove", group: int = 1) -> Private:
    named = None if unit == "row" else "patient"
    schema = Schema({"visits": Table(COLUMNS, unit=named)})
    return Private("visits", DATA, unit=Unit(unit, change=change, group=group), schema=schema)


def told(text: str, data: Private | None = None, budget: Budget | None = None, **how: Any) -> tuple[Any, str, Ledger]:
    """The report of a query's release, as a document and as a page."""
    data = data or visits()
    ledger = MemoryLedger({"visits": budget or Budget(epsilon=9, delta=DELTA)})
    paid = Curator(data, ledger).release(sf.sql(text, data, **how))
    assert paid.receipt is not None
    report = release_report(ledger, paid.receipt.id)
    return document(report), page(report).text, ledger


def test_limits_that_an_adviser_measured_are_named_as_such() -> None:
    found, text, _ = told("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=2, delta=1e-7)
    assert any("one patient counts in full was measured" in bound for bound in found["bounds"])
    assert found["release"]["statements"]
    assert all("with the chosen limits in place of 1" in each for each in found["release"]["statements"])
    assert "The statement that ran: sums, with the chosen limits in place of 1" in text


def test_statements_under_given_limits_are_the_ones_that_ran() -> None:
    found, _, _ = told("SELECT COUNT(*) AS n FROM visits", epsilon=2, delta=1e-7, limits={"rows": 4})
    assert not any("in place of" in each for each in found["release"]["statements"])
    assert not any("measured" in bound for bound in found["bounds"])


def test_bounds_of_the_query_come_before_those_of_the_schema() -> None:
    how: dict[str, Any] = {"epsilon": 2, "limits": {"rows": 4}}
    own, _, _ = told("SELECT SUM(cost) AS s FROM visits", bounds={"cost": (0, 50)}, **how)
    clamped = [bound for bound in own["bounds"] if "clamped" in bound]
    assert clamped == ["cost, where it is added up or ranked, is clamped to 0 ... 50"]
    wide, _, _ = told("SELECT SUM(cost) AS s FROM visits", **how)
    assert any("is clamped to 0 ... 1000" in bound for bound in wide["bounds"])


@pytest.mark.parametrize(
    ("how", "over"),
    [({"delta": 1e-7}, "in one group, or a vector of row counts 4 long over several"), ({}, "over all groups")],
)
def test_rows_are_a_length_under_gaussian_noise_and_a_sum_under_laplace(how: Any, over: str) -> None:
    found, _, _ = told(
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=2, limits={"rows": 4, "keys": 2}, **how
    )
    assert found["bounds"][0].startswith(f"one patient counts in full up to 4 row(s) {over};")


def test_a_row_is_not_a_person() -> None:
    found, text, ledger = told("SELECT COUNT(*) AS n FROM visits", visits("row"), epsilon=1)
    assert "that a certain row is in the data" in found["guarantee"]["odds"][1] and "that a person" not in text
    assert not any("measured" in bound for bound in found["bounds"])
    account = account_report(ledger, "visits")
    assert "that a certain row is in the data" in document(account)["guarantee"]["odds"][1]
    assert "that a person" not in page(account).text


def test_groups_and_secrets_are_named() -> None:
    found, _, _ = told("SELECT COUNT(*) AS n FROM visits", visits(group=3), epsilon=1, limits={"rows": 4})
    assert "that a group of 3 patients is in the data" in found["guarantee"]["odds"][1]
    found, _, _ = told("SELECT COUNT(*) AS n FROM visits", visits(change="replace"), epsilon=1, limits={"rows": 4})
    assert "that a certain patient has a certain secret" in found["guarantee"]["odds"][1]


@pytest.mark.parametrize(
    ("how", "rare"),
    [({"epsilon": 1}, False), ({"epsilon": 1, "delta": 1e-7, "noise": "gaussian"}, True), ({"rho": 0.01}, True)],
)
def test_rare_outcomes_are_told_of_whatever_is_not_pure(how: Any, rare: bool) -> None:
    """Of Gaussian noise, the probability that an outcome tells more than epsilon is far above delta."""
    found, text, _ = told("SELECT COUNT(*) AS n FROM visits", limits={"rows": 4}, **how)
    assert ("rare outcomes" in [gap["what"] for gap in found["not_protected"]]) == rare
    assert found["guarantee"]["odds"][1].endswith("and no further, rare outcomes aside." if rare else "and no further.")
    assert "With that probability" not in text


@pytest.mark.slow
@pytest.mark.parametrize(("budget", "rare"), [(Budget(epsilon=3), False), (Budget(rho=1), True)])
def test_rare_outcomes_of_an_account(budget: Budget, rare: bool) -> None:
    found = document(account_report(MemoryLedger({"a": budget}), "a"))
    assert ("rare outcomes" in [gap["what"] for gap in found["not_protected"]]) == rare


@pytest.mark.parametrize("how", [{"epsilon": 1, "delta": 1e-7}, {"rho": Fraction(1, 100), "delta": 1e-7}])
def test_unknown_groups_cost_a_delta_beside_the_noise(how: Any) -> None:
    """The delta of the groups alone is not the price."""
    found, _, ledger = told("SELECT town, COUNT(*) AS n FROM visits GROUP BY town", limits={"rows": 4}, **how)
    (row,) = ledger.releases()
    original = {each["name"]: Fraction(each["exact"]) for each in found["guarantee"]["original"]}
    assert row.variant == "approximate" and set(original) == {"mu^2", "rho", "delta"}
    assert original["rho"] == original["mu^2"] / 2
    if "rho" in how:
        assert float(original["rho"]) == pytest.approx(0.01) and original["rho"] <= Fraction(1, 100)
        return
    rest = row.delta - original["delta"] if row.delta else Fraction(0)
    needed = gdp.least_multiplier(Fraction(1), rest)
    assert float(original["mu^2"]) == pytest.approx(1 / float(needed) ** 2, rel=1e-6)


def test_of_several_gauges_one_holds() -> None:
    ledger = MemoryLedger({"a": Budget(epsilon=3, delta=DELTA)})
    report = account_report(ledger, "a")
    (said,) = [line for line in document(report)["checklist"]["fields"] if line["field"] == "original parameters"]
    assert said["account"].startswith("at least one of epsilon <= 3, mu^2 <= ")
    assert "at least one of epsilon ≤ 3, mu^2 ≤ " in page(report).text
    for each in document(report)["guarantee"]["original"]:
        assert f"{each['name']} <= {each['value']}" in said["account"]


def test_an_account_without_a_limit_is_not_called_pure() -> None:
    ledger = Ledger(MemoryStore(), principal="ada")
    ledger.open_account("folder", None, level="organisation")
    assert document(account_report(ledger, "folder"))["guarantee"]["variant"].startswith("none")


def test_delta_that_plans_take_counts_as_spent() -> None:
    """A gauge whose delta is gone takes nothing more, however little epsilon it has seen."""
    ledger = MemoryLedger({"a": Budget(epsilon=10, delta=DELTA, shares={"plans": 1})})
    count = bounds.count(Unit(), per_unit=1)
    curator = Curator(Private("a", {"x": [1, 2, 3]}, unit=Unit(), schema=Schema.of(x=key())), ledger)
    curator.release(mechanisms.Gaussian(query=count, epsilon=0.1, delta=DELTA * 9 / 10))
    found = document(account_report(ledger, "a"))
    assert found["account"]["used"] == pytest.approx(0.9)
    assert any("90 % of the limit is spent" in each["words"] for each in found["alerts"])


def test_an_adviser_that_saw_nothing_says_so() -> None:
    """Its limits are then the narrowest there are, and sums may be a part of what they were."""
    plan = sf.sql("SELECT ward, COUNT(*) AS n, COUNT(DISTINCT patient) AS p FROM visits GROUP BY ward", visits(),
                  epsilon=1, delta=1e-7)  # fmt: skip
    raw = {"numbers": {}}
    blind = finish.notes(plan, plan.design(Limits()), Advice(Limits(), {}, {}), raw)
    assert any("noise hid from the adviser how much units hold" in note for note in blind)
    given = sf.sql("SELECT COUNT(*) AS n FROM visits", visits(), epsilon=1, delta=1e-7, limits={"rows": 4})
    assert given.fixed is not None
    assert not any("noise hid" in note for note in finish.notes(given, given.fixed, None, raw))


def test_a_part_of_a_budget_names_the_whole() -> None:
    ledger = Ledger(MemoryStore(), principal="ada")
    ledger.open_account("visits", Budget(epsilon=3, delta=DELTA), level="data set")
    ledger.open_account("tuning", Budget(epsilon=1, delta=DELTA / 10), parent="visits")
    part, whole = (document(account_report(ledger, name))["not_protected"] for name in ("tuning", "visits"))
    assert any("part of account visits" in gap["why"] for gap in part)
    assert not any("part of account" in gap["why"] for gap in whole)
