"""The report of an account tells every question with its answer, what limits took from it, and what plans know of the
checklist."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any, ClassVar

import pytest

import sfumato as sf
from sfumato import Budget, Curator, MemoryLedger, Unit
from sfumato.ledger import About
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.stores.memory import MemoryStore
from sfumato.plan import Plan
from sfumato.query.released.answer import Answer
from sfumato.record import canonical
from sfumato.report import account_report, biases, listing, release_report
from sfumato.report.accounts.plans import noises, post_processing
from sfumato.report.answers import tables
from tests.helpers import BY_PATIENT
from tests.report.reading import document, page
from tests.report.test_report_release import ages, fields, people, queried, visits

QUESTION = "SELECT ward, COUNT(*) AS n, AVG(cost) AS mean FROM visits GROUP BY ward"
PAID = "SELECT ward, COUNT(*), AVG(cost) FROM visits GROUP BY ward"  # without the names that it is shown under


def stored(plan: Any) -> str:
    """As a ledger keeps it."""
    return canonical(plan).decode()


def both() -> MemoryLedger:
    """An account with a query, and one of a mechanism."""
    ledger = MemoryLedger({"visits": Budget(epsilon=3, delta=1e-6), "people": Budget(epsilon=3)})
    queried(ledger, note="planning of beds")
    Curator(people(), ledger).release(ages(), note="the age of all")
    return ledger


def test_a_query_stands_there_with_its_answer_and_bars() -> None:
    ledger = both()
    report = account_report(ledger, "visits")
    found, shown = document(report), page(report)
    (release,) = found["releases"]
    alone = document(release_report(ledger, release["receipt"]))
    assert release["query"] == PAID and release["answer"] == alone["answer"]
    assert release["answer"]["tables"][0]["rows"][0][1]["error"]
    assert any("weighted down" in note for note in release["answer"]["notes"])
    assert PAID in shown.text and release["answer"]["tables"][0]["rows"][1][2]["text"] in shown.text
    averages = [row[2]["text"] for row in release["answer"]["tables"][0]["rows"]]
    bars = 4 if any(text != "0" for text in averages) else 2  # a column of zeros has no scale to draw bars on
    assert shown.tags.count("circle") >= bars


def test_a_mechanism_stands_there_in_words() -> None:
    report = account_report(both(), "people")
    (release,) = document(report)["releases"]
    assert release["query"] is None and release["steps"] and release["answer"]["shown"]
    assert release["bounds"] == ["age is clamped to 0 ... 120; one patient counts for at most 2 row(s)"]
    text = page(report).text
    assert release["steps"][0] in text and release["bounds"][0] in text


def test_answers_and_questions_can_be_withheld() -> None:
    ledger = both()
    for topic, gone in (("answer", "tables"), ("query", "query"), ("contribution bounds", "bounds")):
        report = account_report(ledger, "visits", redact=[topic])
        (release,) = document(report)["releases"]
        page(report)
        if topic == "answer":
            assert release["answer"]["tables"] == [] and release["answer"]["reason"] == "withheld"
            assert "bias" in document(report)["checklist"]["open"]
        else:
            assert release[gone] == "withheld" and release["answer"]["shown"]
    bare = account_report(ledger, "visits", redact=["contribution bounds", "query"]).json()
    assert "weighted down" not in bare and QUESTION not in bare


def test_what_cannot_be_shown_says_why() -> None:
    ledger = MemoryLedger({"people": Budget(epsilon=3)})
    own = sf.bounds.declared(
        lambda rows: [float(len(rows))], BY_PATIENT, reads={}, labels=["rows"], l1=1, l2=1, linf=1
    )  # fmt: skip
    Curator(people(), ledger).release(sf.mechanisms.Laplace(query=own, epsilon=0.5))
    ledger.spend(("people",), ages(), data="people@1", grade="exact", note="")
    report = account_report(ledger, "people")
    reasons = {each["state"]: each["answer"]["reason"] for each in document(report)["releases"]}
    assert reasons["paid, not run"].startswith("It was paid, and the data has not been opened")
    assert "The plan holds code" in reasons["answered"] and "The plan holds code" in page(report).text


def test_of_many_releases_the_latest_are_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "MOST_ANSWERS", 2)
    monkeypatch.setattr(listing, "MOST_ROWS", 1)
    ledger = MemoryLedger({"visits": Budget(epsilon=3, delta=1e-6)})
    for ward in ("east", "north", "west"):
        question = QUESTION.replace("GROUP", f"WHERE ward <> '{ward}' GROUP")
        plan = sf.sql(question, visits(), epsilon=0.5, delta=1e-7, limits={"rows": 8})
        Curator(visits(), ledger).release(plan)
    found = document(account_report(ledger, "visits"))["releases"]
    assert [each["answer"]["shown"] for each in found] == [True, True, False]
    assert "its own report" in found[2]["answer"]["reason"] and found[2]["query"]
    assert "the answer: the first 1 of 2 rows are shown" in found[0]["answer"]["notes"]


def test_an_answer_that_knows_its_bias_tells_it(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = both()
    known: dict[str, Any] = {"n": [(312.4, 280.0, 350.0), None], "mean": None}
    monkeypatch.setattr(Answer, "bias", lambda self, name: known[name], raising=False)
    report = account_report(ledger, "visits")
    found, shown = document(report), page(report)
    answer = found["releases"][0]["answer"]
    east, north = (row[1]["bias"] for row in answer["tables"][0]["rows"])
    assert (east["amount"], east["low"], east["high"], east["text"]) == (312.4, 280, 350, "312.4 (280.0 to 350.0)")
    assert north is None and "bias" not in answer["tables"][0]["rows"][0][2]
    (told,) = answer["bias"]
    assert told["column"] == "n" and told["known"]
    assert told["words"] == "limits took away what stands beside it; of 1 number(s) that is not known"
    assert "taken by limits" in shown.text and "312.4 (280.0 to 350.0)" in shown.text and "not known" in shown.text
    assert told["words"] in fields(found)["bias"]["account"]
    hidden = document(account_report(ledger, "visits", redact=["bias"]))["releases"][0]["answer"]
    assert hidden["bias"][0]["words"] == "withheld" and hidden["tables"][0]["rows"][0][1]["bias"] is None
    assert page(release_report(ledger, found["releases"][0]["receipt"])).text.count("312.4") == 1


@pytest.mark.parametrize(
    ("given", "known", "words"),
    [
        ([None, None], False, "not known: the true numbers may be larger"),
        ([3, (4.0, 3.0, 5.0)], True, "the interval holds that, too"),
        ([math.nan, "x"], False, "not known"),
        ([], False, "no rows"),
    ],
)
def test_a_bias_in_words(given: list[Any], known: bool, words: str) -> None:
    class Knows:
        def bias(self, name: str) -> Any:
            return given

    taken = biases.taken(Knows(), "n")
    assert taken is not None
    told = biases.sentence("n", taken)
    assert told["known"] is known and words in told["words"]
    assert biases.taken(object(), "n") is None


def test_an_open_interval_is_told_as_at_least() -> None:
    class Open:
        columns = numbers = ("n", "m", "mean")
        notes = ("what that cuts is not known; limits='advise' lets the adviser choose limits",)
        unreliable: ClassVar = {"n": [False], "m": [False], "mean": [False]}

        def __len__(self) -> int:
            return 1

        def __getitem__(self, name: str) -> list[float]:
            return [1000.0]

        def interval(self, name: str, alpha: float) -> list[tuple[float, float]]:
            ends = {"n": (900.0, math.inf), "m": (-math.inf, 1100.0), "mean": (-math.inf, math.inf)}
            return [ends[name]]

        def half_width(self, name: str, alpha: float) -> list[float]:
            return [math.inf]

        def noise_width(self, name: str, alpha: float) -> list[float]:
            return [100.0]

        def bias(self, name: str) -> list[None]:
            return [None]

    (table,) = tables(Open(), None)
    assert [cell["error"] for cell in table["rows"][0]] == ["at least 900", "at most 1,100", "noise ± 100"]
    assert [each["words"].rpartition(": ")[2] for each in table["bias"]] == [
        "the true numbers may be larger", "the true numbers may be smaller", "the true numbers may be larger or smaller"
    ]  # fmt: skip
    assert table["notes"] == ["what that cuts is not known"], "who reads a report writes no Python"
    assert table["rows"][0][0]["low"] == 900 and table["rows"][0][0]["high"] is None


def test_what_is_open_on_both_sides_shows_its_noise() -> None:
    """With given limits: a count is at least what it says, an average may be off to either side."""
    ledger = MemoryLedger({"visits": Budget(epsilon=3, delta=1e-5)})
    text = "SELECT COUNT(*) AS n, AVG(cost) AS mean FROM visits"
    Curator(visits(), ledger).release(sf.sql(text, visits(), epsilon=1, delta=1e-7, limits={"rows": 2}))
    answer = document(account_report(ledger, "visits"))["releases"][0]["answer"]
    count, mean = answer["tables"][0]["rows"][0]
    assert count["error"].startswith("at least ") and mean["error"].startswith("noise ± ")
    assert (mean["low"], mean["high"], count["high"]) == (None, None, None) and "∞" not in mean["error"]
    assert [each["words"].rpartition("may be ")[2] for each in answer["bias"]] == ["larger", "larger or smaller"]


def test_fields_that_plans_know_are_filled_in() -> None:
    found = document(account_report(both(), "visits"))
    told = {name: line["account"] for name, line in fields(found).items()}
    assert told["unit"] == "everything one patient ever contributed, present or absent"
    assert told["neighbours"] == "add-remove (1)" and told["epsilon and delta"] == "epsilon = 3, delta = 1e-06"
    assert told["algorithm"] == "plan-sql/1 (1); noise: gaussian (1)"
    assert "up to 8 row(s)" in told["contribution bounds"] and "cost" in told["contribution bounds"]
    assert told["post-processing"].startswith("by the plans, from noisy numbers alone: SELECT list, HAVING, ORDER BY")
    assert told["utility"].startswith("95 % error bars stand beside 4 of the 4 numbers")
    assert "; 4 have no upper or no lower end, since what limits cut is not known;" in told["utility"]
    assert "weighted down" in told["bias"]
    assert set(found["checklist"]["open"]) == {
        "bounds given by", "query model", "trust", "security", "access control", "data minimisation"
    }  # fmt: skip
    stated = document(account_report(both(), "visits", about=About(utility="within 5 %", postprocessing="rounding")))
    assert fields(stated)["utility"]["account"] == "within 5 %"
    assert fields(stated)["post-processing"]["account"].endswith("by the organisation: rounding")


def test_before_the_first_release_the_unit_tells_the_neighbours() -> None:
    ledger = Ledger(MemoryStore())
    ledger.open_account("a", Budget(epsilon=1), unit=Unit("user:patient", "replace"))
    told = ledger.checklist("a").as_dict()["fields"]
    assert told["neighbours"] == "replace" and told["post-processing"] == "not stated"


def said_and_read(plan: Plan[Any, Any], *steps: str) -> None:
    """A plan says it, and from a plan of before it is read."""
    assert plan.afterwards() == steps == post_processing(stored(plan), None)
    assert post_processing(stored(plan), json.dumps(["another step"])) == ("another step",)


def test_what_plans_do_with_noisy_numbers_is_said_by_them() -> None:
    plan = sf.sql(QUESTION, visits(), epsilon=1, limits={"rows": 8}, floor=True)
    query = "SELECT list, HAVING, ORDER BY and LIMIT of queries"
    said_and_read(plan, query, "numbers below 0 raised to 0")
    said_and_read(replace(plan, floor=False, unclip=True), query, "sums raised by what limits are estimated to take")
    wards = sf.mechanisms.Laplace(query=sf.bounds.histogram("ward", ["a", "b"], BY_PATIENT, per_unit=1), epsilon=1)
    said_and_read(wards)
    tidy = sf.Tidy(plan=wards)
    said_and_read(tidy, "histograms made non-negative, whole and consistent")
    said_and_read(sf.sequence(one=tidy, two=replace(tidy, whole=True)), *tidy.afterwards())
    sampled = sf.events.Repeat(sf.events.Poisson(sf.events.Gaussian(multiplier=2), 0.01), 5)
    assert noises(sampled) == ("gaussian",) and noises(plan.event) == ("laplace",)
