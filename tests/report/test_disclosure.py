"""What is told to the outside: all fields, nothing made up, and what is to be left out is."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import Budget, Unit
from sfumato import mechanisms as m
from sfumato.bounds import Count
from sfumato.errors import ArgumentError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.policy.policy import Policy
from sfumato.ledger.stores.memory import MemoryStore
from sfumato.report.accounts import About, checklist, declared, registry
from sfumato.report.accounts.yaml_text import dump
from tests.helpers import few, laplace
from tests.ledger.stores import Stores, answered, pay

yaml = pytest.importorskip("yaml", reason="PyYAML reads what is written here")

DELTA = Fraction(1, 10**6)
PATIENT = Unit("user:patient")
ABOUT = About(
    name='Visits: "open" #1',
    curators=("A hospital",),
    intended_use="Planning",
    product_type="Summary statistics",
    region="Nowhere",
    sector="Healthcare",
    description="Counts\nby month",
    trust="The hospital holds the data.\nReaders need not be trusted.",
    changing=True,
    asked=False,
    bounds_by="a physician, from the literature",
    authors=("Ada",),
)
NIST = {  # section 7 A of the checklist that we hold ourselves to
    "epsilon and delta", "original parameters", "variant", "unit", "neighbours", "contribution bounds", "total budget",
    "composition", "releases", "other releases", "post-processing", "algorithm", "library", "bounds given by",
    "utility", "bias", "query model", "trust", "side channels", "security", "access control", "data minimisation",
}  # fmt: skip


def _ledger() -> Ledger:
    ledger = Ledger(MemoryStore(), principal="ada@example.org")
    ledger.open_account("visits", Budget(epsilon=3, delta=DELTA), level="data set")
    answered(ledger, laplace(Fraction(1, 4), PATIENT), "visits", data="visits@1")
    gaussian = m.Gaussian(query=Count(unit=PATIENT), epsilon=Fraction(1, 2), delta=Fraction(1, 10**8))
    ledger.spend(("visits",), gaussian, data="visits@1", grade="exact", note="a study")
    return ledger


def test_the_checklist_has_every_field(ledgers: Stores) -> None:
    ledger = ledgers({"a": Budget(epsilon=1)})
    pay(ledger, laplace(Fraction(1, 2)))
    found = checklist(ledger._store, "a")
    fields = found.as_dict()["fields"]
    assert set(fields) >= NIST
    assert fields["epsilon and delta"] == "epsilon = 1"
    assert fields["library"].startswith("sfumato ") and fields["algorithm"] == "plan-laplace/1 (1); noise: laplace (1)"
    assert fields["unit"] == "one row, present or absent"
    assert "counts for at most" in fields["contribution bounds"]
    assert set(found.missing) >= {"utility", "bias", "trust", "security"} and "unit" not in found.missing
    json.dumps(found.as_dict())
    assert "[ ] utility: not stated" in str(found) and "[x] unit" in str(found)


def test_the_organisation_fills_in_the_rest() -> None:
    ledger = _ledger()
    fields = checklist(ledger._store, "visits", ABOUT).as_dict()["fields"]
    assert fields["trust"].startswith("Central: The hospital")
    assert fields["query model"] == "data release" and fields["bounds given by"] == ABOUT.bounds_by
    assert fields["variant"] == "account: Approximate DP; releases: pure (1), GDP (1)"
    assert "mu^2 <=" in fields["original parameters"]
    assert "not a guarantee for adaptive choice" in fields["composition"]
    assert fields["releases"] == "2 (answered (1), spent (1))"
    with pytest.raises(ArgumentError, match="model"):
        About(model="Magic")


def test_hazards_are_those_that_apply_and_controls_those_that_are_there() -> None:
    ledger = _ledger()
    found = {each.number: each.control for each in checklist(ledger._store, "visits").hazards}
    assert {1, 2, 3, 5, 7, 8, 13, 19, 21} <= set(found)
    assert 4 not in found and 11 not in found and 14 not in found
    assert found[1] == found[23] == "none: no policy was adopted"
    rows = Ledger(MemoryStore())
    rows.open_account("a", Budget(epsilon=Fraction(1, 2)))
    pay(rows, laplace(Fraction(1, 10)))
    plain = {each.number for each in checklist(rows._store, "a").hazards}
    assert 4 in plain and not plain & {1, 2, 5, 7, 13}
    people = {"o": ("privacy officer",), "p": ("privacy officer",), "d": ("data owner",)}
    Ledger(rows._store, principal="o").adopt(Policy(people=people), reason="start")
    assert "none" not in {each.number: each.control for each in checklist(rows._store, "a").hazards}[23]


def test_noise_of_another_grade_is_not_called_exact() -> None:
    ledger = _ledger()
    ledger.spend(("visits",), laplace(Fraction(1, 9), PATIENT), data="visits@1", grade="float", note="")
    found = checklist(ledger._store, "visits")
    assert "float (1)" in found.as_dict()["fields"]["side channels"]
    assert "exact" not in {each.number: each.control for each in found.hazards}[21]
    assert "secure_noise = false" in found.as_dict()["fields"]["side channels"]
    assert "1 had noise of float grade (secure_noise = false)" in found.as_dict()["fields"]["total budget"]


def test_the_register_of_what_left_without_dp() -> None:
    ledger = _ledger()
    ledger.open_account("other", Budget(epsilon=1), reason="other people")
    ledger.register("copy", same_as="visits", reason="a view of the same people")
    ledger.declare("visits@1", "invariant", "the number of wards", recipients="the public", reason="law")
    ledger.declare("copy@2", "without DP", "a table for the ministry", recipients="the ministry", reason="law")
    ledger.declare("other@1", "invariant", "something else", recipients="nobody", reason="law")
    found = list(declared(ledger._store, data="visits"))
    assert [(each.of, each.text) for each in found] == [
        ("invariant", "the number of wards"),
        ("without DP", "a table for the ministry"),
    ]
    assert found[1].recipients == "the ministry" and found[1].by == "ada@example.org" and found[1].reason == "law"
    assert [each.text for each in declared(ledger._store, data="copy")] == [each.text for each in found]
    assert len(list(declared(ledger._store))) == 3
    fields = checklist(ledger._store, "visits").as_dict()["fields"]
    assert "the number of wards" in fields["other releases"] and "ministry" in fields["other releases"]
    assert "something else" not in fields["other releases"]
    flavour = yaml.safe_load(registry(ledger._store, "visits"))["deployment"]["dp_flavor"]
    assert "the number of wards" in flavour["unprotected_quantities"]


def test_the_registry_file_is_yaml_in_its_own_words() -> None:
    ledger = _ledger()
    found = yaml.safe_load(registry(ledger._store, "visits", ABOUT))
    assert (found["status"], found["tier"], found["url_slug"]) == ("Draft", 3, "visits-open-1")
    deployment = found["deployment"]
    assert list(deployment) == [
        "product", "dp_flavor", "privacy_loss", "model", "accounting", "implementation", "resources"
    ]  # fmt: skip
    assert deployment["product"]["name"] == ABOUT.name and deployment["product"]["data_curators"] == ["A hospital"]
    assert deployment["product"]["description"] == ABOUT.description
    assert deployment["dp_flavor"]["name"] == "Approximate DP"
    assert deployment["privacy_loss"]["privacy_parameters"] == {"epsilon": 3.0, "delta": 1e-6}
    assert deployment["model"]["model_name"] == "Central" and deployment["model"]["actors"] == ABOUT.trust
    assert deployment["model"]["release_type"] == "Many releases"
    assert deployment["model"]["data_source_type"] == "Dynamic"
    assert deployment["model"]["access_type"] == "Non-interactive"
    assert "plan-gaussian/1 (1)" in deployment["implementation"]["mechanisms"]
    assert deployment["implementation"]["justification"] == "not stated"


def test_flavours() -> None:
    for budget, name, parameters in (
        (Budget(epsilon=1), "Pure DP", {"epsilon": 1.0}),
        (Budget(rho=Fraction(1, 4)), "Zero-concentrated DP", {"rho": 0.25}),
    ):
        ledger = Ledger(MemoryStore())
        ledger.open_account("a", budget)
        found = yaml.safe_load(registry(ledger._store, "a"))["deployment"]
        assert found["dp_flavor"]["name"] == name
        assert found["privacy_loss"]["privacy_parameters"] == parameters


def test_what_is_redacted_is_gone() -> None:
    ledger = _ledger()
    text = registry(ledger._store, "visits", ABOUT, redact=["actors", "data_curators", "resources"])
    assert "hospital" not in text and "registry_authors" not in text and "intended_use" in text
    found = checklist(ledger._store, "visits", ABOUT, redact=["purposes", "actors"])
    assert "a study" not in str(found) and "ada@" not in str(found)
    assert found.as_dict()["fields"]["purposes"] == "withheld" and "purposes" not in found.missing
    for wrong in (["purpose"], "actors"):
        with pytest.raises(ArgumentError, match="redact"):
            checklist(ledger._store, "visits", redact=wrong)
        with pytest.raises(ArgumentError, match="redact"):
            registry(ledger._store, "visits", redact=wrong if wrong != "actors" else "actors")


_TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)


@settings(few, derandomize=True)
@given(st.dictionaries(st.from_regex(r"[a-z_]{1,8}x", fullmatch=True), st.one_of(
    _TEXT, st.lists(_TEXT, max_size=3), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.booleans(),
    st.none(), st.dictionaries(st.just("inner"), _TEXT))))  # fmt: skip
def test_any_text_survives_yaml(value: dict[str, object]) -> None:
    if value:
        assert yaml.safe_load(dump(value)) == value


@pytest.mark.parametrize(
    "text", ["yes", "1e3", "- a\n- b", "a: b", " lead\nsecond", "one\n\ntwo", "end\n", "\x85", "#", "😀\u2028"]
)
def test_texts_that_yaml_would_take_for_something_else(text: str) -> None:
    assert yaml.safe_load(dump({"field": text})) == {"field": text}
