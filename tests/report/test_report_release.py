"""The report of one release says what happened, in every state that a release can be in."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato import Budget, Curator, MemoryLedger, Private, Unit, bounds, mechanisms, record, reserve, sequence
from sfumato.errors import ArgumentError, DataError
from sfumato.ledger import About, Key
from sfumato.ledger.ledger import Ledger
from sfumato.release import Release
from sfumato.report import Report, release_report
from sfumato.report.redaction import TOPICS
from sfumato.schema import Schema, Table, category, key, real
from tests.helpers import AGES, BY_PATIENT, PATIENTS, hooked
from tests.report.reading import document, page

NIST = (
    "epsilon and delta", "original parameters", "variant", "unit", "neighbours", "contribution bounds", "total budget",
    "composition", "releases", "other releases", "post-processing", "algorithm", "library", "bounds given by",
    "utility", "bias", "query model", "trust", "side channels", "security", "access control", "data minimisation",
    "actors", "purposes",
)  # fmt: skip
WARDS = Schema({
    "visits": Table({"patient": key(), "ward": category(["east", "north"]), "cost": real(0, 1000)}, unit="patient")
})  # fmt: skip
VISITS = {
    "patient": [n % 400 for n in range(1600)],
    "ward": [("east", "north")[n % 2] for n in range(1600)],
    "cost": [float(n % 90) for n in range(1600)],
}


def visits(version: str = "1") -> Private:
    return Private("visits", VISITS, unit=BY_PATIENT, schema=WARDS, version=version)


def people() -> Private:
    return Private("people", AGES, unit=BY_PATIENT, schema=PATIENTS)


def ages(epsilon: Any = 0.5) -> Any:
    return mechanisms.Laplace(query=bounds.clipped_sum("age", 0, 120, BY_PATIENT, per_unit=2), epsilon=epsilon)


def queried(ledger: Ledger, **more: Any) -> Release:
    plan = sf.sql(
        "SELECT ward, COUNT(*) AS n, AVG(cost) AS mean FROM visits GROUP BY ward",
        visits(),
        epsilon=1,
        delta=1e-7,
        limits={"rows": 8},
    )
    return Curator(visits(), ledger).release(plan, **more)


def of(ledger: Ledger, paid: Release, /, **how: Any) -> Report:
    assert paid.receipt is not None
    return release_report(ledger, paid.receipt.id, **how)


def fields(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {line["field"]: line for line in found["checklist"]["fields"]}


def test_a_query_is_told_with_its_answer_price_unit_and_hashes() -> None:
    ledger = MemoryLedger({"visits": Budget(epsilon=3, delta=1e-6)})
    release = queried(ledger, note="planning of beds")
    found, shown = document(of(ledger, release)), page(of(ledger, release))
    row = next(iter(ledger.releases()))
    assert found["evidence"]["hash"] == row.hash and found["evidence"]["previous"] == row.previous
    assert found["evidence"]["plan_hash"] == release.plan.hash and found["evidence"]["entry"] == row.number
    assert found["evidence"]["verify"]["holds"] is True
    assert found["guarantee"]["headline"] == "epsilon = 1 at delta = 1e-7"
    assert found["guarantee"]["hides"] == "everything one patient ever contributed, present or absent"
    assert [each["name"] for each in found["guarantee"]["original"]] == ["mu^2", "rho"]
    assert found["release"]["query"] == release.plan.text
    assert found["account"]["headline"] == "epsilon = 3 at delta = 1e-6"
    table = found["answer"]["tables"][0]
    assert [column["name"] for column in table["columns"]] == ["ward", "n", "mean"]
    for place, name in ((1, "n"), (2, "mean")):
        for line, (low, high) in zip(table["rows"], release.value.interval(name), strict=True):
            if name == "n":  # limits are given: it is not known what they cut, nor to which side averages are off
                assert line[place]["low"] == pytest.approx(low)
            assert line[place]["high"] is None and high == float("inf")
    assert [line[1]["value"] for line in table["rows"]] == release.value["n"]
    assert {note.partition("; limits=")[0] for note in release.value.notes} <= set(found["answer"]["notes"])
    assert any("1000" in bound and "cost" in bound for bound in found["bounds"])
    assert any("in full up to 8 row(s) in one group" in bound for bound in found["bounds"])
    for text in ("planning of beds", row.hash, release.plan.hash, "may come to think 73.11 %", "Hides everything one"):
        assert text in shown.text, text
    assert shown.tags.count("circle") == 4  # an error bar for each number


def test_every_field_of_the_checklist_is_there_with_how_to_state_it() -> None:
    ledger = MemoryLedger({"visits": Budget(epsilon=3, delta=1e-6)})
    report = of(ledger, queried(ledger, note="beds"))
    lines, shown = fields(document(report)), page(report)
    assert tuple(lines) == NIST
    for name, line in lines.items():
        assert name in shown.text
        assert line["stated"] or line["how"], name
    assert "about: {security: ...} in sfumato.yaml" in shown.text
    assert lines["utility"]["release"] and lines["utility"]["account"] == "not stated"
    assert set(document(report)["checklist"]["open"]) >= {"security", "trust", "data minimisation"}
    assert {each["number"] for each in document(report)["checklist"]["hazards"]} >= {3, 8, 9, 10, 12, 21, 24}


def test_about_closes_what_is_open() -> None:
    ledger = MemoryLedger({"visits": Budget(epsilon=3, delta=1e-6)})
    about = About(
        postprocessing="none", utility="within 5 %", bias="small wards", trust="the hospital", asked=True,
        security="disk", access="three people", minimisation="no names", bounds_by="tariffs", justification="as usual",
    )  # fmt: skip
    found = document(of(ledger, queried(ledger, note="beds"), about=about))
    assert found["checklist"]["open"] == []
    assert "as usual" in found["registry"]
    assert {each["field"] for each in found["still_open"]} >= {"region", "sector"}
    assert "utility" not in {each["field"] for each in found["still_open"]}


def test_numbers_of_a_mechanism_have_their_bars() -> None:
    ledger = MemoryLedger({"people": Budget(epsilon=3)})
    release = Curator(people(), ledger).release(ages())
    found = document(of(ledger, release))
    cell = found["answer"]["tables"][0]["rows"][0][0]
    assert cell["value"] == release.value and cell["high"] - cell["value"] == pytest.approx(release.error())
    assert found["guarantee"]["variant"].startswith("pure") and found["guarantee"]["delta"] == "0"
    assert found["bounds"] == ["age is clamped to 0 ... 120; one patient counts for at most 2 row(s)"]
    assert "SQL" not in page(of(ledger, release)).text


def test_a_list_of_plans_has_a_line_for_each_number() -> None:
    ledger = MemoryLedger({"people": Budget(epsilon=3)})
    plan = sequence(total=ages(), wards=mechanisms.Laplace(
        query=bounds.histogram("ward", ["north", "south"], BY_PATIENT, per_unit=1), epsilon=0.5
    ))  # fmt: skip
    found = document(of(ledger, Curator(people(), ledger).release(plan)))
    rows = found["answer"]["tables"][0]["rows"]
    assert [row[0]["text"] for row in rows] == ["total", "wards / north", "wards / south"]


def test_a_selection_says_how_good_it_is() -> None:
    ledger = MemoryLedger({"people": Budget(epsilon=3)})
    plan = mechanisms.Exponential(query=bounds.votes("ward", ["north", "south"], BY_PATIENT), epsilon=1)
    report = of(ledger, Curator(people(), ledger).release(plan))
    cell = document(report)["answer"]["tables"][0]["rows"][0][0]
    assert cell["value"] in ("north", "south") and "of the best" in cell["error"] and cell["low"] is None
    page(report)


def test_it_is_found_by_any_of_its_entries_and_by_how_its_id_begins() -> None:
    ledger = MemoryLedger({"people": Budget(epsilon=3)})
    curator = Curator(people(), ledger)
    release = curator.release(ages())
    curator.release(ages(0.25))
    numbers = [entry.number for entry in ledger.history() if entry.receipt == release.receipt.id]
    assert len(numbers) == 3
    for which in (*numbers, *map(str, numbers), release.receipt.id, release.receipt.id[:12]):
        assert document(release_report(ledger, which))["evidence"]["receipt"] == release.receipt.id


@pytest.mark.parametrize("which", [0, -1, 10**9, 1, True, None, 1.5, "", "abc", "f" * 32, "é" * 8, "9" * 40])
def test_what_names_no_release_is_refused(which: Any) -> None:
    ledger = MemoryLedger({"people": Budget(epsilon=3)})
    Curator(people(), ledger).release(ages())
    with pytest.raises(ArgumentError, match="which"):
        release_report(ledger, which)


def test_a_failed_release_says_that_the_charge_stays() -> None:
    ledger = MemoryLedger({"people": Budget(epsilon=3)})

    def fails(rows: Any, run: Any) -> Any:
        raise RuntimeError("SECRET-4711")

    with pytest.raises(DataError):
        Curator(people(), ledger).release(hooked("report-fails", fails))
    report = release_report(ledger, next(iter(ledger.releases())).id)
    found, shown = document(report), page(report)
    assert found["release"]["state"] == "failed" and not found["answer"]["shown"]
    assert "the charge stays" in shown.text and "SECRET" not in report.html() + report.json()
    assert found["charged"][0]["gauges"][0]["after"] == "0.1"
    assert found["evidence"]["answer_hash"] is None


def test_a_release_that_was_paid_and_never_opened() -> None:
    ledger = MemoryLedger({"people": Budget(epsilon=3)})
    receipt = ledger.spend(("people",), ages(), data="people@1", grade="exact", note="")
    found = document(release_report(ledger, receipt.id))
    assert found["release"]["state"] == "spent" and found["release"]["opened_at"] is None
    ledger.open(receipt)
    report = release_report(ledger, receipt.id)
    assert document(report)["release"]["state"] == "opened" and "no answer is stored" in page(report).text


def test_a_hold_its_draws_and_its_own_loop() -> None:
    ledger = MemoryLedger({"people": Budget(epsilon=3)})
    curator = Curator(people(), ledger)
    with curator.supervise(reserve(unit=BY_PATIENT, budget=Budget(epsilon=1))) as run:
        row = next(iter(ledger.releases()))
        held = document(release_report(ledger, row.id))
        assert held["release"]["state"] == "opened" and held["charged"][0]["gauges"][0]["price"] is None
        run.release(ages(0.25))
        run.release(ages(0.5))
    report = release_report(ledger, row.id)
    found, shown = document(report), page(report)
    assert found["release"]["draws"] == 2 and found["charged"][0]["gauges"][0]["after"] == "0.75"
    assert any("own loop" in gap["what"] for gap in found["not_protected"])
    assert "not stored" in found["release"]["state_words"] and "in the user's own loop" in shown.text
    receipt = ledger.hold(("people",), ages(), data="people@1", grade="exact", note="")
    assert document(release_report(ledger, receipt.id))["release"]["state"] == "held"


def test_a_list_that_was_paid_as_one_and_its_parts() -> None:
    ledger = MemoryLedger({"people": Budget(epsilon=3, delta=1e-6)})
    curator = Curator(people(), ledger)
    parts = {
        name: mechanisms.Gaussian(
            query=bounds.histogram("ward", wards, BY_PATIENT, per_unit=1), epsilon=0.5, delta=1e-7
        )
        for name, wards in {"one": ["north"], "two": ["south"]}.items()
    }
    paid = curator.prepay(sequence(**parts), note="dashboard")
    release = curator.release(parts["one"], note="first")
    whole = release_report(ledger, paid.id)
    assert document(whole)["release"]["state"] == "in parts" and "paid as a list" in page(whole).text
    report = of(ledger, release)
    found, shown = document(report), page(report)
    number = document(whole)["evidence"]["entry"]
    assert found["release"]["part_of"] == number and f"with entry {number}" in shown.text
    assert found["answer"]["shown"] and all(gauge["price"] is None for gauge in found["charged"][0]["gauges"])


def test_a_budget_in_rho_is_told_in_rho_and_as_an_epsilon_at_a_delta() -> None:
    ledger = MemoryLedger({"visits": Budget(rho=0.5)})
    plan = sf.sql("SELECT COUNT(*) AS n FROM visits", visits(), rho=0.02, limits={"rows": 4})
    report = of(ledger, Curator(visits(), ledger).release(plan))
    found, shown = document(report), page(report)
    assert found["guarantee"]["epsilon"] is None and found["guarantee"]["told_at"].endswith("at delta = 1e-6")
    assert found["account"]["headline"] == "rho = 0.5" and "No delta was named" in shown.text
    assert found["guarantee"]["attacks"]


def test_the_price_before_and_after_is_that_of_the_accounts() -> None:
    ledger = MemoryLedger({"people": Budget(epsilon=3)})
    ledger.open_account("team", Budget(epsilon=1), parent="people", level="team")
    curator = Curator(people(), ledger, accounts=("team",))
    curator.release(ages(0.25))
    found = document(of(ledger, curator.release(ages(0.5))))
    told = {paid["account"]: paid["gauges"][0] for paid in found["charged"]}
    assert set(told) == {"team", "people"}
    assert (told["team"]["before"], told["team"]["price"], told["team"]["after"]) == ("0.25", "0.5", "0.75")
    assert told["team"]["share_after"] == 0.75 and told["people"]["share_after"] == 0.25
    assert found["account"]["name"] == "people"  # the data set's own guarantee, not the team's


def test_what_left_without_protection_comes_first() -> None:
    ledger = MemoryLedger({"people": Budget(epsilon=3)})
    release = Curator(people(), ledger).release(ages())
    ledger.declare("people@1", "without DP", "a list of names", recipients="the press", reason="by mistake")
    found = document(of(ledger, release))
    assert found["not_protected"][0]["what"] == "a list of names (left without differential privacy)"
    assert "the press" in found["not_protected"][0]["why"]


@pytest.mark.parametrize("change", ["replace", "zero-out"])
def test_relations_that_tell_the_number_of_units(change: Any) -> None:
    unit = Unit("user:patient", change=change, group=2)
    ledger = MemoryLedger({"people": Budget(epsilon=3)})
    plan = mechanisms.Laplace(query=bounds.histogram("ward", ["north", "south"], unit, per_unit=1), epsilon=1)
    private = Private("people", AGES, unit=unit, schema=PATIENTS)
    found = document(of(ledger, Curator(private, ledger).release(plan)))
    gaps = [gap["what"] for gap in found["not_protected"]]
    assert "how many units there are" in gaps and found["guarantee"]["neighbours"] == change
    assert any("Any 2 together" in gap["why"] for gap in found["not_protected"])


def test_rows_as_units_do_not_hide_people() -> None:
    ledger = MemoryLedger({"people": Budget(epsilon=3)})
    plan = mechanisms.Laplace(query=bounds.count(Unit()), epsilon=1)
    private = Private("people", {"age": [30.5]}, unit=Unit(), schema=Schema.of(age=real(0, 120)))
    found = document(of(ledger, Curator(private, ledger).release(plan)))
    assert found["not_protected"][0]["what"] == "a person with several rows"


def test_the_checkpoint_that_covers_it(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    Key.make(tmp_path / "signing.key")
    how: dict[str, Any] = {"anchor": tmp_path / "elsewhere" / "anchor", "key": tmp_path / "signing.key"}
    with sf.open_ledger(tmp_path / "ledger", create=True, principal="bea", **how) as ledger:
        ledger.open_account("people", Budget(epsilon=3))
        release = Curator(people(), ledger).release(ages())
        first = document(of(ledger, release))["evidence"]["checkpoint"]
    with sf.open_ledger(tmp_path / "ledger", principal="bea", **how) as ledger:
        later = document(of(ledger, release))["evidence"]["checkpoint"]
        assert later["covered"] and later["key"] == Key.load(tmp_path / "signing.key").public
        assert not first["covered"] and "waits for the next" in first["words"]
    with sf.open_ledger(tmp_path / "ledger", read_only=True) as ledger:
        report = of(ledger, release)
        assert not document(report)["evidence"]["checkpoint"]["covered"]
        assert "no anchor is open" in page(report).text


def test_an_answer_that_was_exchanged_in_the_store_is_not_shown() -> None:
    ledger = MemoryLedger({"people": Budget(epsilon=3)})
    release = Curator(people(), ledger).release(ages())
    with ledger._store.writing() as book:
        filed = book.filed(release.receipt.id)
        assert filed is not None
        book.file(filed._replace(answer=record.canonical(record.parse(filed.answer or b"") * 0 + 4711)))
    report = of(ledger, release)
    found = document(report)
    assert not found["answer"]["shown"] and "hash differs" in found["answer"]["reason"]
    assert found["evidence"]["verify"]["holds"] is False and "4,711" not in report.html()
    assert "the ledger does not hold" in page(report).text and "Do not sign this report" in page(report).text


def test_a_plan_with_code_needs_the_release_itself() -> None:
    ledger = MemoryLedger({"people": Budget(epsilon=3)})
    query = bounds.declared(
        lambda rows: [float(len(rows))], BY_PATIENT, reads={}, labels=["rows"], l1=1, l2=1, linf=1
    )  # fmt: skip
    release = Curator(people(), ledger).release(mechanisms.Laplace(query=query, epsilon=1))
    bare = document(of(ledger, release))
    assert not bare["answer"]["shown"] and "release=" in bare["answer"]["reason"]
    given = document(of(ledger, release, release=release))
    assert given["answer"]["shown"] and bare["evidence"] | {"verify": 0} == given["evidence"] | {"verify": 0}


def test_another_release_than_the_one_named_is_refused() -> None:
    ledger = MemoryLedger({"people": Budget(epsilon=3)})
    curator = Curator(people(), ledger)
    one, other = curator.release(ages()), curator.release(ages(0.25))
    for wrong in (other, Release(one.plan, one.raw * 0 + 1, one.receipt), curator.rehearse(ages())):
        with pytest.raises(ArgumentError, match="release"):
            of(ledger, one, release=wrong)
    with pytest.raises(ArgumentError, match="release"):
        of(ledger, one, release=one.value)


def test_a_large_answer_is_cut_and_says_so() -> None:
    ledger = MemoryLedger({"people": Budget(epsilon=3)})
    wards = [f"ward {number}" for number in range(5000)]
    private = Private(
        "people", {"patient": [1], "ward": ["ward 1"]}, unit=BY_PATIENT,
        schema=Schema.of(patient=key(), ward=category(wards), unit="patient"),
    )  # fmt: skip
    plan = mechanisms.Laplace(query=bounds.histogram("ward", wards, BY_PATIENT, per_unit=1), epsilon=1)
    report = of(ledger, Curator(private, ledger).release(plan))
    table = document(report)["answer"]["tables"][0]
    assert len(table["rows"]) == 200 and table["rows_in_all"] == 5000
    assert "the first 200 of 5000 rows are shown" in page(report).text


MARKS = {
    "actors": "MARK-actor", "purposes": "MARK-purpose", "key": "MARK-key", "data": "MARK-version",
    "query": "MARK-query", "other releases": "MARK-declared", "trust": "MARK-trust", "security": "MARK-security",
    "utility": "MARK-utility", "bias": "MARK-bias", "access control": "MARK-access",
    "data minimisation": "MARK-minimisation", "post-processing": "MARK-post", "bounds given by": "MARK-bounds",
}  # fmt: skip


@pytest.fixture(scope="module")
def marked() -> tuple[Ledger, Release, About]:
    """A release in which every topic has a word of its own."""
    ledger = MemoryLedger({"visits": Budget(epsilon=3, delta=1e-6)})
    ledger._desk.principal = MARKS["actors"]
    private = visits(MARKS["data"])
    plan = sf.sql(
        "SELECT COUNT(*) AS n FROM visits WHERE ward <> 'MARK-query'", private, epsilon=1, limits={"rows": 8642}
    )
    release = Curator(private, ledger).release(plan, note=MARKS["purposes"], key=MARKS["key"])
    ledger.declare(private.address, "invariant", MARKS["other releases"], recipients="all", reason="known")
    about = About(
        trust=MARKS["trust"], security=MARKS["security"], utility=MARKS["utility"], bias=MARKS["bias"],
        access=MARKS["access control"], minimisation=MARKS["data minimisation"],
        postprocessing=MARKS["post-processing"], bounds_by=MARKS["bounds given by"],
    )  # fmt: skip
    return ledger, release, about


def test_marks_are_told_where_nothing_is_withheld(marked: tuple[Ledger, Release, About]) -> None:
    ledger, release, about = marked
    report = of(ledger, release, about=about)
    html, text = report.html(), report.json()
    for topic, mark in MARKS.items():
        assert mark in html and mark in text, topic
    assert "at most 8642 rows" in html and 'class="answer"' in html and document(report)["redacted"] == []


@pytest.mark.parametrize("topic", sorted(TOPICS))
def test_what_is_withheld_is_nowhere(topic: str, marked: tuple[Ledger, Release, About]) -> None:
    ledger, release, about = marked
    report = of(ledger, release, about=about, redact=[topic])
    found, html = document(report), report.html()
    page(report)
    assert found["redacted"] == [topic] and f"Withheld in this report: {topic}" in html
    if topic in MARKS:
        gone = MARKS[topic]
        where = [text for text in (html, report.json()) if gone in text]
        assert where == [], topic
    if topic == "contribution bounds":
        assert "8642 rows" not in html + report.json() and found["bounds"] == "withheld"
    if topic == "answer":
        assert not found["answer"]["shown"] and found["answer"]["tables"] == []
        assert 'class="answer"' not in html and "The answer is withheld" in html
    if topic == "algorithm":
        assert "plan-sql" not in html + report.json()
    if topic == "library":
        assert "sfumato 0." not in html + report.json()
    if topic == "registry":
        assert found["registry"] is None and "url_slug" not in html


@pytest.mark.parametrize("redact", [["epsilon and delta"], ["unit"], ["purpose"], "purposes", [1], None])
def test_a_slip_in_what_to_withhold_is_refused(redact: Any, marked: tuple[Ledger, Release, About]) -> None:
    with pytest.raises(ArgumentError, match="redact"):
        of(*marked[:2], redact=redact)


def test_about_must_be_one(marked: tuple[Ledger, Release, About]) -> None:
    with pytest.raises(ArgumentError, match="about"):
        of(*marked[:2], about={"utility": "high"})


def test_written_files_are_whole_and_tied_to_one_another(tmp_path: Path, marked: tuple[Ledger, Release, About]) -> None:
    report = of(*marked[:2])
    target = tmp_path / "report.HTML"
    target.write_text("old")
    assert report.write(target) == target and target.read_text(encoding="utf-8") == report.html()
    body = report.write(str(tmp_path / "report.json")).read_bytes()
    assert json.loads(body) == report.as_dict()
    assert hashlib.sha256(body).hexdigest() == report.fingerprint and report.fingerprint in report.html()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["report.HTML", "report.json"]
    for path in (tmp_path / "report.pdf", tmp_path / "nowhere" / "report.html", tmp_path / "report.html" / "x.html", 5):
        with pytest.raises(ArgumentError, match="path"):
            report.write(path)  # type: ignore[arg-type]


def test_a_document_that_is_changed_does_not_change_the_report(marked: tuple[Ledger, Release, About]) -> None:
    report = of(*marked[:2])
    before = report.json()
    report.as_dict()["release"]["purpose"] = "another"
    assert report.json() == before and "sandbox" in report._repr_html_() and "report-release/2" in repr(report)


@pytest.mark.slow
def test_another_process_reads_a_query_back_from_the_file(tmp_path: Path) -> None:
    """Nobody has made a query there: its kind must be known all the same."""
    with sf.open_ledger(tmp_path / "ledger", create=True) as ledger:
        ledger.open_account("visits", Budget(epsilon=3, delta=1e-6))
        release = queried(ledger)
    script = (
        "import sys\nfrom sfumato.ledger import open_ledger\nfrom sfumato.report import release_report\n"
        "with open_ledger(sys.argv[1], read_only=True) as ledger:\n"
        "    print(release_report(ledger, sys.argv[2]).json())\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script, str(tmp_path / "ledger"), release.receipt.id],
        capture_output=True, text=True, check=True, env={"PYTHONPATH": str(Path(sf.__file__).parents[1])},
    )  # fmt: skip
    found = json.loads(done.stdout)
    assert [row[1]["value"] for row in found["answer"]["tables"][0]["rows"]] == release.value["n"]
    assert found["release"]["statements"] and found["release"]["steps"]


def test_evidence_of_a_receipt_that_is_not_there() -> None:
    ledger = MemoryLedger({"people": Budget(epsilon=3)})
    assert ledger.evidence("f" * 32) is None and ledger.evidence("é") is None and ledger.evidence("") is None
    with pytest.raises(ArgumentError, match="receipt"):
        ledger.evidence(5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (
            {"rows": 3},
            "one patient counts in full up to 3 row(s) over all groups; where patients are counted, in as many",
        ),
        ({"rows": 3, "keys": 2, "reach": {"s": 9}}, "in up to 2 group(s); in sum(cost) up to 9; one that holds more"),
    ],
)
def test_limits_of_a_query_are_told_in_words(limits: Any, said: str) -> None:
    ledger = MemoryLedger({"visits": Budget(epsilon=3)})
    plan = sf.sql("SELECT SUM(cost) AS s FROM visits", visits(), epsilon=1, limits=limits)
    report = of(ledger, Curator(visits(), ledger).release(plan))
    assert any(said in bound for bound in document(report)["bounds"])
    assert said in fields(document(report))["contribution bounds"]["account"]
