"""`sfumato run`: priced as one, paid once, resumable; an edited list pays for what is new."""

from __future__ import annotations

import csv
import json
import stat
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow.parquet
import pytest

from sfumato.combine import Sequence
from sfumato.ledger.proof.rules_parts import part_hashes
from sfumato.office.list_state import built, items, key_of_list
from sfumato.project import open_project
from sfumato.project.plans import load_plan
from tests.cli.front import Ran, make_project, sfumato

COUNTS = """\
sfumato-plan: 1
note: monthly dashboard
releases:
  - name: by_ward
    sql: SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward
    epsilon: 0.2
    delta: 1e-8
    out: out/by_ward.csv
  - name: total
    sql: SELECT SUM(cost) AS total FROM visits
    epsilon: 0.2
    delta: 1e-8
    out: out/deep/total.json
  - name: mean
    sql: SELECT AVG(cost) AS mean FROM visits
    epsilon: 0.2
    delta: 1e-8
    out: out/mean.parquet
"""
MORE = """\
  - {name: more, sql: SELECT COUNT(*) AS n FROM visits, epsilon: 0.1, delta: 1e-8}
"""


def project_with(tmp_path: Path, text: str = COUNTS) -> Path:
    folder = make_project(tmp_path)
    (folder / "plan.yaml").write_text(text, encoding="utf-8")
    return folder


def entries(folder: Path, *kinds: str) -> list[Any]:
    """The ledger holds; its entries of these kinds."""
    with open_project(folder).ledger(read_only=True) as ledger:
        report = ledger.verify()
        assert report.ok, report
        return [entry for entry in ledger.history() if entry.kind in kinds]


def spent(folder: Path, account: str = "hospital") -> list[Fraction]:
    with open_project(folder).ledger(read_only=True) as ledger:
        return [gauge.spent for gauge in ledger.spent(account)]


def price(folder: Path, *names: str) -> Sequence:
    """The list of these releases of plan.yaml."""
    project = open_project(folder)
    plans = {each.name: each.plan(project) for each in load_plan(folder / "plan.yaml", project).releases}
    return Sequence(plans={name: plans[name] for name in names})


def run(folder: Path, *flags: str) -> dict[str, Any]:
    ran = sfumato("run", "plan.yaml", "--json", *flags, at=folder)
    assert ran.err == "", ran.err
    body: dict[str, Any] = json.loads(ran.out)
    schema = json.loads(sfumato("schema", "run", at=folder).out)
    jsonschema.validate(body, schema)
    assert body.pop("document") == "run/1"
    body["code"] = ran.code
    return body


def states(body: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each["status"] for each in body["releases"]}


def test_a_list_is_paid_as_one_and_written(tmp_path: Path) -> None:
    folder = project_with(tmp_path)
    body = run(folder)
    assert body["code"] == 0 and states(body) == dict.fromkeys(("by_ward", "total", "mean"), "released")
    listed = price(folder, "by_ward", "total", "mean")
    (paid,) = entries(folder, "spend")
    assert paid.fields["receipt"].plan_hash == listed.hash and paid.fields["receipt"].note == "monthly dashboard"
    assert len(entries(folder, "part")) == 3
    assert next(part.fields["receipt"].note for part in entries(folder, "part")) == "monthly dashboard: by_ward"
    assert body["price"]["epsilon"] == pytest.approx(float(listed.price())) and body["price"]["releases"] == 3
    assert body["price"]["epsilon"] < 0.6, "less than one by one"
    assert body["price"]["one_by_one"] == "epsilon = 0.6 at delta = 1e-08"
    with (folder / "out/by_ward.csv").open(encoding="utf-8") as file:
        assert [row["ward"] for row in csv.DictReader(file)] == ["east", "north", "west"]
    assert set(json.loads((folder / "out/deep/total.json").read_text())[0]) >= {"total", "total_low", "total_high"}
    assert pyarrow.parquet.read_table(folder / "out/mean.parquet").num_rows == 1
    assert not list(folder.rglob("*.part")), "nothing half-written is left"
    assert body["budget"][0]["before"] < body["budget"][0]["used"]


def test_run_again_it_is_free_and_puts_back_what_is_missing(tmp_path: Path) -> None:
    folder = project_with(tmp_path)
    run(folder)
    before, files = spent(folder), {each: each.read_bytes() for each in (folder / "out").rglob("*.*")}
    (folder / "out/by_ward.csv").unlink()
    (folder / "out/mean.parquet").write_bytes(b"something else")
    body = run(folder)
    assert body["price"] is None and set(states(body).values()) == {"answered"}
    assert {each["name"]: each["written"] for each in body["releases"]} == {
        "by_ward": True, "total": False, "mean": True
    }  # fmt: skip
    assert {each: each.read_bytes() for each in (folder / "out").rglob("*.*")} == files
    assert spent(folder) == before and len(entries(folder, "spend", "part")) == 4


def test_an_edited_list_pays_for_what_is_new(tmp_path: Path) -> None:
    folder = project_with(tmp_path)
    run(folder)
    before = spent(folder)
    text = COUNTS.replace("AVG(cost) AS mean", "AVG(cost + 1) AS mean").replace("name: total", "name: sum") + MORE
    text = text.replace("SUM(cost) AS total", "sum(v.cost) AS costs").replace("FROM visits\n", "FROM visits AS v\n", 1)
    (folder / "plan.yaml").write_text(text, encoding="utf-8")
    body = run(folder)
    assert states(body) == {"by_ward": "answered", "sum": "answered", "mean": "released", "more": "released"}
    first, second = entries(folder, "spend")
    assert part_hashes(second.fields["plan"]) == [each.hash for each in price(folder, "mean", "more").children]
    assert all(now > then for now, then in zip(spent(folder), before, strict=True))
    assert first.number < second.number and body["price"]["releases"] == 2
    (folder / "plan.yaml").write_text(COUNTS, encoding="utf-8")
    assert run(folder)["price"] is None, "the old list is answered too"


def test_one_question_that_is_shown_in_two_ways_is_paid_once(tmp_path: Path) -> None:
    most = """\
  - name: most
    sql: select v.ward as station, count(*) as visits from visits v group by 1 order by visits desc limit 1
    epsilon: 0.2
    delta: 1e-8
"""
    folder = project_with(tmp_path, COUNTS + most)
    body = run(folder)
    assert body["price"]["releases"] == 3
    assert states(body) == dict.fromkeys(("by_ward", "total", "mean", "most"), "released")
    receipts = {each["name"]: each["receipt"] for each in body["releases"]}
    assert receipts["most"] == receipts["by_ward"] != receipts["total"]
    assert {each["name"]: each["rows"] for each in body["releases"]}["most"] == 1


def test_what_was_queried_before_is_not_paid_again(tmp_path: Path) -> None:
    folder = project_with(tmp_path)
    asked = ("query", "SELECT SUM(cost) AS total FROM visits", "--epsilon", "0.2", "--delta", "1e-8")
    assert sfumato(*asked, at=folder).code == 0
    assert states(run(folder)) == {"by_ward": "released", "total": "answered", "mean": "released"}
    assert len(entries(folder, "spend")) == 2


def test_what_the_list_answered_is_free_in_a_query(tmp_path: Path) -> None:
    folder = project_with(tmp_path)
    run(folder)
    before = spent(folder)
    ran = sfumato("query", "SELECT SUM(cost) AS total FROM visits", "--epsilon", "0.2", "--delta", "1e-8", at=folder)
    assert ran.code == 0 and spent(folder) == before


def test_a_dry_run_charges_and_writes_nothing(tmp_path: Path) -> None:
    folder = project_with(tmp_path)
    body = run(folder, "--dry-run")
    assert body["code"] == 0 and body["fits"] and set(states(body).values()) == {"new"}
    assert entries(folder, "spend", "part") == [] and not (folder / "out").exists()
    run(folder)
    free = sfumato("run", "plan.yaml", "--dry-run", at=folder)
    assert free.code == 0 and "free: running it charges nothing" in free.out


def test_a_budget_that_is_short_charges_nothing(tmp_path: Path) -> None:
    folder = project_with(tmp_path, COUNTS.replace("epsilon: 0.2", "epsilon: 3"))
    dry = sfumato("run", "plan.yaml", "--dry-run", at=folder)
    assert dry.code == 5 and "does not fit the budget" in dry.out
    ran = sfumato("run", "plan.yaml", at=folder)
    assert ran.code == 5 and ran.out == "" and "nothing was charged" in ran.err and "asked" in ran.err
    assert entries(folder, "spend", "part") == [] and not (folder / "out").exists()


def test_the_list_s_account_pays_too(tmp_path: Path) -> None:
    folder = project_with(tmp_path, COUNTS.replace("note:", "account: evaluation\nnote:"))
    assert run(folder)["code"] == 0
    assert spent(folder, "evaluation")[0] > 0 and spent(folder, "training")[0] == 0
    assert {each["account"] for each in run(folder)["budget"]} == {"hospital", "evaluation"}


def test_people_see_a_table(tmp_path: Path) -> None:
    folder = project_with(tmp_path)
    ran = sfumato("run", "plan.yaml", at=folder)
    assert ran.code == 0 and ran.err == ""
    lines = ran.out.splitlines()
    assert lines[0].split() == ["release", "alone", "file"]
    assert [line.split()[:2] for line in lines[1:4]] == [[n, "released"] for n in ("by_ward", "total", "mean")]
    assert "for 3 releases as one list; one by one epsilon = 0.6 at delta = 1e-08" in ran.out


def wrong(ran: Ran, code: int, *words: str) -> None:
    assert ran.code == code and ran.out == "" and "Traceback" not in ran.err, ran
    for each in words:
        assert each in ran.err, (each, ran.err)


def test_what_is_wrong_is_told_with_its_line_before_anything_is_paid(tmp_path: Path) -> None:
    folder = project_with(tmp_path, COUNTS.replace("SUM(cost)", "SUM(cots)"))
    wrong(sfumato("run", "plan.yaml", at=folder), 4, "plan.yaml:10: total: the query is refused", "did you mean cost")
    (folder / "plan.yaml").write_text(COUNTS.replace("cost", "cots"), encoding="utf-8")
    wrong(sfumato("run", "plan.yaml", at=folder), 4, "2 releases are refused", "plan.yaml:10", "plan.yaml:15")
    (folder / "plan.yaml").write_text(COUNTS.replace("out/mean.parquet", "../mean.parquet"), encoding="utf-8")
    wrong(sfumato("run", "plan.yaml", at=folder), 3, "plan.yaml:18: releases[2].out", "leads out of")
    twice = COUNTS + "  - {name: again, sql: SELECT SUM(cost) AS total FROM visits, epsilon: 0.2, delta: 1e-8}\n"
    (folder / "plan.yaml").write_text(twice, encoding="utf-8")
    wrong(sfumato("run", "plan.yaml", at=folder), 3, "plan.yaml:19", "it asks the same as 'total', line 10")
    wrong(sfumato("run", "nothing.yaml", at=folder), 3, "there is no nothing.yaml")
    (folder / "plan.yaml").write_text(COUNTS, encoding="utf-8")
    (folder / "data/visits.csv").unlink()
    wrong(sfumato("run", "plan.yaml", at=folder), 3, "visits.csv")
    assert sfumato("run", "plan.yaml", "--dry-run", at=folder).code == 0, "a price needs no data"
    assert entries(folder, "spend", "part") == []


def test_an_unknown_account_is_refused(tmp_path: Path) -> None:
    folder = project_with(tmp_path, COUNTS.replace("note:", "account: nobody\nnote:"))
    wrong(sfumato("run", "plan.yaml", at=folder), 5, "nobody")


def test_a_file_that_cannot_be_written_loses_no_answer(tmp_path: Path) -> None:
    folder = project_with(tmp_path)
    (folder / "out").write_text("no folder")
    ran = sfumato("run", "plan.yaml", at=folder)
    wrong(ran, 3, "by_ward.csv cannot be written", "the answer itself is in the ledger")
    before = spent(folder)
    (folder / "out").unlink()
    body = run(folder)
    assert states(body) == {"by_ward": "answered", "total": "released", "mean": "released"} and spent(folder) == before
    assert all(stat.S_ISREG(each.stat().st_mode) for each in (folder / "out").rglob("*.*"))


def test_one_release_alone_and_more_than_the_first(tmp_path: Path) -> None:
    folder = project_with(tmp_path, "sfumato-plan: 1\nreleases:\n" + MORE)
    assert states(run(folder)) == {"more": "released"}
    assert spent(folder)[0] == pytest.approx(0.1)
    assert [entry.kind for entry in entries(folder, "spend", "part")] == ["spend", "part"]


def test_the_schema_of_lists_is_published(tmp_path: Path) -> None:
    folder = make_project(tmp_path, ledger=False)
    assert json.loads(sfumato("schema", "plan", at=folder).out)["title"] == "plan.yaml"


def test_a_list_whose_parts_went_elsewhere_is_paid_as_one_again(tmp_path: Path) -> None:
    """Parts that other commands took, and that never answered, are new; they cost what was quoted, not one by one."""
    folder = project_with(tmp_path)
    project = open_project(folder)
    listed = price(folder, "by_ward", "total", "mean")
    with project.ledger() as ledger:
        curator = project.curator(ledger)
        found = items(built(load_plan(folder / "plan.yaml", project), project), ledger, curator, pay_again=False)
        curator.prepay(listed, key=key_of_list(found, 0))
        for part in listed.plans.values():  # taken without a key, and gone
            ledger.open(ledger.spend((), part, data=project.private.address, grade="exact", note=""))
    once = spent(folder)
    body = run(folder)
    assert set(states(body).values()) == {"released"}
    assert [float(each) for each in spent(folder)] == pytest.approx([2 * float(each) for each in once])
    assert [each.fields["receipt"].plan_hash for each in entries(folder, "spend")] == [listed.hash] * 2


def test_a_list_that_does_not_fit_says_what_to_change_in_the_list(tmp_path: Path) -> None:
    folder = project_with(tmp_path, COUNTS.replace("epsilon: 0.2", "epsilon: 3"))
    ran = sfumato("run", "plan.yaml", "--yes", at=folder)
    assert ran.code == 5 and "nothing was charged" in ran.err
    assert "leave a release out of plan.yaml" in ran.err
    assert "--epsilon" not in ran.err.replace("sfumato ledger limit hospital --epsilon 16", "")
    assert entries(folder, "spend") == []
