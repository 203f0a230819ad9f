"""`sfumato ledger`: open, status, history, changes of accounts, exports and papers, on real ledgers."""

from __future__ import annotations

import csv
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from sfumato import Budget
from sfumato.ledger import Policy, open_ledger
from tests.cli.counting_house import SIGNED, failed, refused, released, signed, told
from tests.cli.front import make_project, sfumato
from tests.ledger.stores import new_database, run


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return signed(tmp_path / "hospital")


def accounts(at: Path, *more: str) -> dict[str, dict[str, Any]]:
    return {each["account"]: each for each in told("ledger", "status", *more, at=at)["accounts"]}


def test_open_makes_what_the_file_says_and_nothing_twice(tmp_path: Path) -> None:
    folder = signed(tmp_path, ledger=False)
    assert "sfumato ledger open" in refused("ledger", "status", at=folder, code=3).err
    made = told("ledger", "open", at=folder)["made"]
    assert [line.split()[0] for line in made] == ["key", "anchor", "ledger", "account", "account", "account"]
    assert (folder / "keys" / "signing.key").stat().st_mode & 0o077 == 0
    again = told("ledger", "open", at=folder)
    assert again["made"] == [] == again["differs"]
    assert "as sfumato.yaml says" in sfumato("ledger", "open", at=folder).out
    assert told("ledger", "verify", at=folder)["checkpoints"] > 0


def test_open_tells_what_differs_and_changes_no_limit(project: Path) -> None:
    (project / "sfumato.yaml").write_text(SIGNED.replace("epsilon: 2, delta: 1e-6", "epsilon: 50, delta: 1e-6"))
    found = told("ledger", "open", at=project)
    assert any("'hospital' has epsilon = 2" in line for line in found["differs"])
    assert accounts(project)["hospital"]["limit"]["epsilon"] == 2


def test_status_shows_limits_and_what_is_gone(project: Path) -> None:
    released(project, 0.5)
    found = accounts(project)
    assert found["training"]["parent"] == "hospital" and found["training"]["limit"]["epsilon"] == 1
    top = found["hospital"]
    assert 0 < top["used"] <= 0.25 and top["releases"] == 1 and "patient" in top["hides"]
    gauges = {each["currency"]: each for each in top["gauges"]}
    assert gauges["epsilon"] == {"currency": "epsilon", "spent": 0.5, "left": 1.5, "limit": 2}
    lines = sfumato("ledger", "status", at=project).out.splitlines()
    assert lines[1].startswith("hospital ") and "0.5 of 2 epsilon  1e-06  for about " in lines[1]
    assert top["amount"] == 0.5 and top["room"] >= 3 and top["delta"]["currency"] == "delta"
    gauges_too = sfumato("ledger", "status", "--gauges", at=project).out
    assert "mu^2" not in "".join(lines) and "mu^2" in gauges_too and "one gauge has room" in gauges_too
    assert lines[2].startswith("  evaluation ") and "never exceed it" in lines[-1]


def test_status_of_one_account_says_its_guarantee_and_gauges(project: Path) -> None:
    released(project)
    found = told("ledger", "status", "training", at=project)
    assert [each["account"] for each in found["accounts"]] == ["training"]
    assert found["statement"]["account"] == "training" and found["statement"]["parent"] == "hospital"
    shown = sfumato("ledger", "status", "hospital", at=project).out
    assert "(2, 1e-06)-DP for everything one patient ever contributed" in shown
    assert "epsilon spent at delta 1e-06; room for about" in shown and "mu^2" not in shown
    assert "not a guarantee for adaptive choice" in shown and "  evaluation" in shown
    assert "mu^2" in sfumato("ledger", "status", "hospital", "--gauges", at=project).out
    assert "there is no account 'nobody'" in refused("ledger", "status", "nobody", at=project, code=5).err


def test_failures_lock_and_an_officer_unlocks(project: Path) -> None:
    failed(project, 2)
    assert accounts(project)["hospital"]["failures"] == 2 and not accounts(project)["hospital"]["locked"]
    assert "2 failure(s)" in sfumato("ledger", "status", at=project).out
    failed(project, 1)
    assert accounts(project)["hospital"]["locked"] is True
    assert "locked after 3 failures" in sfumato("ledger", "status", at=project).out
    done = told("ledger", "unlock", "hospital", "--reason", "a full disk", "--principal", "omar", at=project)
    assert accounts(project)["hospital"]["failures"] == 0
    last = told("ledger", "history", "--last", "1", at=project)["entries"][0]
    assert (last["number"], last["kind"], last["by"], last["why"]) == (done["entry"], "unlock", "omar", "a full disk")
    refused("ledger", "unlock", "hospital", "--reason", "again", at=project, code=2)
    refused("ledger", "unlock", "nobody", "--reason", "x", at=project, code=5)


def test_history_is_sieved(project: Path) -> None:
    released(project, note="planning of beds")
    everything = told("ledger", "history", "--last", "1000", at=project)
    count = len(everything["entries"])
    assert everything["left_off"] == 0 and [each["number"] for each in everything["entries"]] == list(
        range(1, count + 1)
    )
    spends = told("ledger", "history", "--kind", "spend", at=project)["entries"]
    assert [each["why"] for each in spends] == ["planning of beds"] and spends[0]["accounts"] == ["hospital"]
    last = told("ledger", "history", "--last", "2", at=project)
    assert [each["number"] for each in last["entries"]] == [count - 1, count] and last["left_off"] == count - 2
    about = told("ledger", "history", "--account", "hospital", "--last", "2", at=project)
    assert [each["kind"] for each in about["entries"]] == ["open", "settle"] and about["left_off"] > 0
    assert told("ledger", "history", "--by", "nobody", at=project)["entries"] == []
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    assert told("ledger", "history", "--since", tomorrow, at=project)["entries"] == []
    assert len(told("ledger", "history", "--since", "2020-01-01", "--last", "1000", at=project)["entries"]) == count
    shown = sfumato("ledger", "history", "--last", "2", at=project).out
    assert f"{count - 2} older ones" in shown and "settle" in shown
    assert "is no date" in refused("ledger", "history", "--since", "yesterday", at=project, code=2).err


def test_accounts_are_opened_changed_and_closed(project: Path) -> None:
    done = told("ledger", "allocate", "ana", "--epsilon", "0.3", "--under", "evaluation", at=project)
    found = accounts(project)["ana"]
    assert (found["parent"], found["level"], found["limit"]["epsilon"]) == ("evaluation", "person", 0.3)
    assert "patient" in found["hides"] and done["entry"] == told("ledger", "verify", at=project)["entries"]
    told("ledger", "allocate", "night", "--epsilon", "1/3", "--delta", "1e-8", "--reason", "a ward", at=project)
    assert accounts(project)["night"]["parent"] == "hospital" and accounts(project)["night"]["level"] == "team"
    told("ledger", "limit", "ana", "--epsilon", "0.2", "--reason", "less", at=project)
    assert accounts(project)["ana"]["limit"]["epsilon"] == 0.2
    told("ledger", "move", "training", "evaluation", "--epsilon", "0.1", "--reason", "more", at=project)
    assert accounts(project)["training"]["limit"]["epsilon"] == 0.9
    assert accounts(project)["evaluation"]["limit"]["epsilon"] == 0.7
    told("ledger", "close", "ana", "--reason", "gone", at=project)
    assert accounts(project)["ana"]["closed"] is True and "closed" in sfumato("ledger", "status", at=project).out
    assert told("ledger", "verify", at=project)["holds"] is True


@pytest.mark.parametrize(
    ("command", "code", "says"),
    [
        ("allocate training --epsilon 0.1", 5, "sfumato ledger limit"),
        ("allocate new", 2, "--epsilon"),
        ("allocate new --epsilon 0.1 --rho 0.1", 2, "both are given"),
        ("allocate new --rho 0.1 --delta 1e-6", 2, "no delta with rho"),
        ("allocate new --epsilon 9", 5, "above what 'hospital' has"),
        ("allocate new --epsilon 0.1 --under nobody", 5, "nobody"),
        ("allocate new --epsilon 0.1 --level block", 2, "level"),
        ("allocate new --epsilon 0.1 --level organisation", 5, "does not stand below"),
        ("allocate new --epsilon 0", 2, "epsilon"),
        ("limit hospital --epsilon 0.5 --reason x", 5, "below it has more"),
        ("limit training --epsilon 3 --reason x", 5, "above what 'hospital' has"),
        ("move training nobody --epsilon 0.1 --reason x", 5, "nobody"),
        ("move training evaluation --epsilon 5 --reason x", 5, "close it instead"),
        ("move training evaluation --reason x", 2, "a part of the limit"),
        ("close nobody --reason x", 5, "nobody"),
    ],
)
def test_what_may_not_be_changed_is_refused_and_leaves_no_entry(
    project: Path, command: str, code: int, says: str
) -> None:
    before = accounts(project)
    assert says in refused("ledger", *command.split(), at=project, code=code).err
    assert accounts(project) == before and told("ledger", "verify", at=project)["holds"]


def test_a_weak_limit_is_warned_of_once_in_plain_words(tmp_path: Path) -> None:
    with open_ledger(tmp_path / "some.ledger", create=True, principal="bea") as ledger:
        ledger.open_account("org", Budget(epsilon=9), level="organisation")
    ran = sfumato("ledger", "limit", "org", "--ledger", "some.ledger", "--epsilon", "20", "--reason", "x", at=tmp_path)
    assert ran.code == 0 and ran.err.count("weak") == 1 and "PrivacyWarning" not in ran.err


def test_exports_are_tied_to_the_chain(project: Path) -> None:
    released(project)
    head = told("ledger", "verify", at=project)["hash"]
    done = told("ledger", "export", "releases.csv", at=project)
    with (project / "releases.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert done["rows"] == 1 == len(rows) and rows[0]["head_hash"] == head == done["hash"]
    assert rows[0]["purpose"] == "beds" and rows[0]["epsilon"] == "1/10"
    entries = told("ledger", "export", "all.ndjson", "--what", "entries", at=project)
    lines = (project / "all.ndjson").read_text().splitlines()
    assert entries["rows"] == len(lines) and json.loads(lines[-1])["hash"] == head
    assert told("ledger", "export", "all.parquet", "--no-price", at=project)["rows"] == 1
    before = (project / "releases.csv").read_bytes()
    assert "--overwrite" in refused("ledger", "export", "releases.csv", at=project, code=3).err
    assert (project / "releases.csv").read_bytes() == before
    assert told("ledger", "export", "releases.csv", "--overwrite", at=project)["rows"] == 1
    refused("ledger", "export", "releases.xlsx", at=project, code=2)
    refused("ledger", "export", "x.csv", "--what", "secrets", at=project, code=2)
    refused("ledger", "export", "nowhere/x.csv", at=project, code=3)


def test_reports_of_an_account_and_of_a_release(project: Path) -> None:
    released(project, 0.5)
    done = told("ledger", "report", at=project)
    text = (project / "report-hospital.html").read_text()
    assert Path(done["path"]).name == "report-hospital.html" and "<html" in text and "patient" in text
    spend = told("ledger", "history", "--kind", "spend", at=project)["entries"][0]
    for which, name in ((str(spend["number"]), "one.json"), (spend["receipt"], "two.json")):
        told("ledger", "report", "--release", which, "--out", name, at=project)
    one, two = (json.loads((project / name).read_text()) for name in ("one.json", "two.json"))
    assert one.keys() == two.keys() and spend["hash"] in json.dumps(one)
    assert "--overwrite" in refused("ledger", "report", "--out", "one.json", at=project, code=3).err
    told("ledger", "report", "--out", "one.json", "--overwrite", at=project)
    assert "two reports" in refused("ledger", "report", "hospital", "--release", "3", at=project, code=2).err
    refused("ledger", "report", "--out", "one.pdf", at=project, code=2)
    refused("ledger", "report", "nobody", at=project, code=5)
    assert sfumato("ledger", "report", "--release", "999999", at=project).code not in (0, 1)
    assert sfumato("ledger", "report", "--release", "../../etc", at=project).code not in (0, 1)


def test_checklist_and_registry(project: Path) -> None:
    released(project)
    found = told("ledger", "checklist", at=project)
    assert "data minimisation" in found["missing"] and "2" in found["checklist"]["fields"]["epsilon and delta"]
    shown = sfumato("ledger", "checklist", at=project).out
    assert (
        "[ ] data minimisation" in shown
        and "[x] post-processing" in shown
        and "[x] unit" in shown
        and "about:" in shown
    )
    hidden = told("ledger", "checklist", "--redact", "purposes", at=project)
    assert hidden["checklist"]["fields"]["purposes"] == "withheld"
    assert "actors" in refused("ledger", "checklist", "--redact", "purpose", at=project, code=2).err
    text = sfumato("ledger", "registry", at=project).out
    assert yaml.safe_load(text) == yaml.safe_load(told("ledger", "registry", at=project)["yaml"])
    assert yaml.safe_load(text)["deployment"]["product"]["name"] == "hospital"


def test_a_forecast_counts_what_still_fits(project: Path) -> None:
    found = told("ledger", "forecast", "--error", "100", at=project)["forecast"]
    assert found["account"] == "hospital" and found["more"][0]["count"] > 0
    fewer = told("ledger", "forecast", "evaluation", "--error", "0.05", "--size", "400", at=project)["forecast"]
    assert fewer["more"][0]["count"] < found["more"][0]["count"]
    assert "An estimate" in sfumato("ledger", "forecast", at=project).out
    refused("ledger", "forecast", "--size", "400", at=project, code=2)


def test_a_ledger_by_its_place_needs_no_project(project: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    place = ["--ledger", str(project / "budget.ledger")]
    proof = ["--anchor", str(project / "proof" / "anchor"), "--key-file", str(project / "keys" / "signing.key")]
    assert accounts(elsewhere, *place) == accounts(project)
    assert told("ledger", "verify", *place, *proof, at=elsewhere)["checkpoints"] > 0
    told("ledger", "allocate", "ana", "--epsilon", "0.1", "--under", "training", *place, *proof, at=elsewhere)
    assert "ana" in accounts(project)
    assert "no account is named" in refused("ledger", "checklist", *place, at=elsewhere, code=2).err
    told("ledger", "report", "hospital", *place, at=elsewhere)
    assert (elsewhere / "report-hospital.html").exists()
    # a signed ledger is not written without its anchor
    refused("ledger", "allocate", "b", "--epsilon", "0.1", "--under", "training", *place, at=elsewhere, code=7)
    refused("ledger", "status", *place, "-C", str(project), at=elsewhere, code=2)
    refused("ledger", "status", *proof, at=project, code=2)
    refused("ledger", "verify", "--ledger", "nowhere.ledger", at=elsewhere, code=7)
    assert not (elsewhere / "nowhere.ledger").exists()


@pytest.mark.slow
def test_a_ledger_on_a_server(tmp_path: Path) -> None:
    address = new_database(create=False)
    text = SIGNED.replace("place: budget.ledger", f"place: '{address}'").replace(", principal: bea", "")
    folder = make_project(tmp_path, text=text, ledger=False)
    made = told("ledger", "open", at=folder)
    assert made["ledger"].startswith("postgresql://") and "@" not in made["ledger"]
    released(folder)
    assert accounts(folder)["hospital"]["releases"] == 1
    told("ledger", "allocate", "ana", "--epsilon", "0.1", "--under", "training", at=folder)
    told("ledger", "close", "ana", "--reason", "gone", "--ledger", address, "--anchor", "proof/anchor", "--key-file",
         "keys/signing.key", at=folder)  # fmt: skip
    assert told("ledger", "verify", at=folder)["holds"] is True
    assert len(told("ledger", "history", "--kind", "spend", at=folder)["entries"]) == 1
    assert told("ledger", "export", "a.csv", at=folder)["rows"] == 1
    told("ledger", "report", at=folder)
    told("ledger", "checklist", at=folder)
    run(
        address,
        "SET session_replication_role = replica",
        "UPDATE sfumato.entries SET body = body || ' '::bytea WHERE number = 3",
    )
    assert told("ledger", "verify", at=folder, code=7)["first_bad"] == 3
    nowhere = address.replace("/ledger_", "/no_such_ledger_")
    ran = refused("ledger", "verify", "--ledger", nowhere, at=folder, code=7)
    assert address not in ran.err


def test_reading_writes_nothing(project: Path) -> None:
    before = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    for command in ("status", "history", "verify", "checklist", "registry", "forecast"):
        assert sfumato("ledger", command, at=project).code == 0
    assert {path: path.read_bytes() for path in project.rglob("*") if path.is_file()} == before


def test_what_the_policy_forbids_ends_with_6(project: Path) -> None:
    officers = dict.fromkeys(("omar", "pia", "rosa"), ("privacy officer",))
    people = {**officers, "adam": ("budget administrator",), "ana": ("analyst",)}
    place, anchor, key = (project / each for each in ("budget.ledger", "proof/anchor", "keys/signing.key"))
    with open_ledger(place, principal="omar", anchor=anchor, key=key) as ledger:
        ledger.adopt(Policy(people=people), reason="first")
    for command in (("close", "training", "--reason", "x"), ("allocate", "new", "--epsilon", "0.1")):
        ran = refused("ledger", *command, "--principal", "ana", at=project, code=6)
        assert "ana" in ran.err
    told("ledger", "close", "training", "--reason", "x", "--principal", "adam", at=project)
    assert told("ledger", "verify", at=project)["holds"] is True
