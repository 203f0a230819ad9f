"""Policies, approvals and restored copies from the shell; limits by epsilon alone; accounts by their names."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from sfumato.project import open_project
from tests.cli.front import YAML, make_project, sfumato

COUNT = "SELECT COUNT(*) AS n FROM visits"
POLICY = """\
policy: 1
people:
  ana: [analyst]
  bea: [budget administrator]
  omar: [privacy officer]
  pia: [privacy officer]
  paul: [privacy officer]
  dora: [data owner]
accounts:
  hospital: {level: data set, unit: "user:patient", limit: {epsilon: 2, delta: 1e-6}}
  research: {parent: hospital, level: project, limit: {epsilon: 1, delta: 5e-7}, people: [ana]}
bands:
  - {above: 0.2, approvals: 1}
"""


def did(*words: str, at: Path, code: int = 0) -> str:
    ran = sfumato(*words, at=at)
    assert ran.code == code, ran
    return re.sub(r"\s+", " ", ran.out + ran.err)


def read(*words: str, at: Path) -> Any:
    ran = sfumato(*words, "--json", at=at)
    assert ran.code == 0, ran
    return json.loads(ran.out)


@pytest.fixture
def hospital(tmp_path: Path) -> Path:
    """A project in which Ana asks, with a policy beside it that nobody has adopted."""
    here = make_project(tmp_path)
    (here / "sfumato.yaml").write_text(YAML.replace("principal: bea", "principal: ana"), encoding="utf-8")
    (here / "policy.yaml").write_text(POLICY, encoding="utf-8")
    return here


def test_a_policy_is_adopted_and_its_accounts_are_opened(hospital: Path) -> None:
    adopt = ("ledger", "adopt", "policy.yaml", "--reason", "first policy")
    assert "first" in did(*adopt, "--principal", "omar", at=hospital)
    assert "opened research" in did("ledger", "provision", "--principal", "bea", at=hospital)
    assert "as the policy lists them" in did("ledger", "provision", "--principal", "bea", at=hospital)
    assert "research" in did("ledger", "status", at=hospital)
    with open_project(hospital).ledger() as ledger:
        assert ledger.policy() is not None
    assert "ana" in did(*adopt, at=hospital, code=6)


def test_what_a_refusal_tells_to_type_is_what_leads_to_the_answer(hospital: Path) -> None:
    """The commands are taken from the words of the refusals themselves."""
    did("ledger", "adopt", "policy.yaml", "--reason", "first policy", "--principal", "omar", at=hospital)
    did("ledger", "provision", "--principal", "bea", at=hospital)
    query = ("query", COUNT, "--epsilon", "0.3", "--account", "research", "--note", "planning of beds")
    refused = did(*query, at=hospital, code=6)
    assert "it needs 1 approval(s) of others, and has 0" in refused and "ledger.ask" not in refused
    typed = re.search(r"`sfumato (ledger ask .*?) --reason TEXT`", refused)
    assert typed is not None
    asked = read(*shlex.split(typed[1]), "--reason", "planning", at=hospital)
    assert f"`sfumato ledger approve {asked['name'][:12]} --reason WHY`" in " ".join(asked["done"])
    pending = read("ledger", "pending", at=hospital)["asked"]
    assert [(each["name"], each["do"], each["approved"]) for each in pending] == [(asked["name"], "spend", {})]
    did(*query, at=hospital, code=6)
    who = ("--principal", "pia")
    assert "approve" in did("ledger", "approve", asked["name"][:12], "--reason", "no", at=hospital, code=6)
    assert (
        read("ledger", "approve", asked["name"][:12], "--reason", "a count", *who, at=hospital)["name"] == asked["name"]
    )
    assert list(read("ledger", "pending", at=hospital)["asked"][0]["approved"]) == ["pia"]
    assert "n" in did(*query, at=hospital)
    with open_project(hospital).ledger() as ledger:
        assert ledger.verify().ok


def test_another_policy_takes_approvals_and_says_what_changed(hospital: Path) -> None:
    adopt = ("ledger", "adopt", "policy.yaml", "--reason", "a policy", "--principal", "omar")
    did(*adopt, at=hospital)
    (hospital / "policy.yaml").write_text(POLICY.replace("above: 0.2", "above: 0.1"), encoding="utf-8")
    refused = did(*adopt, at=hospital, code=6)
    typed = re.search(r"`sfumato (ledger ask adopt .*?) --reason TEXT`", refused)
    assert typed is not None
    name = read(*shlex.split(typed[1]), "--reason", "stricter", "--principal", "omar", at=hospital)["name"]
    for who in ("pia", "paul"):
        did("ledger", "approve", name, "--reason", "stricter", "--principal", who, at=hospital)
    done = read(*adopt, at=hospital)["done"]
    assert "in force" in done[0] and any("0.1" in line for line in done[1:])


def test_a_limit_above_the_policys_names_the_command_that_adopts_another(hospital: Path) -> None:
    did("ledger", "adopt", "policy.yaml", "--reason", "a policy", "--principal", "omar", at=hospital)
    raising = ("ledger", "limit", "hospital", "--epsilon", "30", "--reason", "r", "--principal", "bea")
    assert "`sfumato ledger adopt FILE --reason WHY`" in did(*raising, at=hospital, code=6)


def test_names_that_nobody_asked_for_or_that_are_several_are_told(hospital: Path) -> None:
    did("ledger", "adopt", "policy.yaml", "--reason", "a policy", "--principal", "omar", at=hospital)
    for number in range(40):
        did("ledger", "ask", "spend", "hospital@1", f"{number}", "--reason", "r", at=hospital)
    names = [each["name"] for each in read("ledger", "pending", at=hospital)["asked"]]
    twice = next(name[0] for name in names if sum(other[0] == name[0] for other in names) > 1)
    who = ("--reason", "r", "--principal", "pia")
    assert "names begin with" in did("ledger", "approve", twice, *who, at=hospital, code=6)
    assert "sfumato ledger pending" in did("ledger", "approve", "xyz", *who, at=hospital, code=6)
    assert "sfumato ledger pending" in did("ledger", "approve", "", *who, at=hospital, code=6)


def test_a_copy_that_was_put_back_is_accepted_by_two(tmp_path: Path) -> None:
    here = make_project(tmp_path)
    did("query", COUNT, "--epsilon", "0.1", at=here)
    old = tmp_path / "old"
    shutil.copy(here / "budget.ledger", old)
    did("query", f"{COUNT} WHERE cost > 5", "--epsilon", "0.1", at=here)
    for rest in ("-wal", "-shm"):
        (here / f"budget.ledger{rest}").unlink(missing_ok=True)
    shutil.copy(old, here / "budget.ledger")
    refused = did("query", f"{COUNT} WHERE cost > 7", "--epsilon", "0.1", at=here, code=7)
    assert "`sfumato ledger accept-restore`" in refused and "accept_restore" not in refused
    accept = ("ledger", "accept-restore", "--reason", "the disk broke")
    alone = did(*accept, "--person", "omar", "--person", "omar", at=here, code=2)
    assert "1 different name(s) are given" in alone and "--person A --person B" in alone
    assert "omar and pia answer for it" in did(*accept, "--person", "omar", "--person", "pia", at=here)
    did("query", f"{COUNT} WHERE cost > 7", "--epsilon", "0.1", at=here)
    assert "nothing to accept" in did(*accept, "--person", "omar", "--person", "pia", at=here, code=7)


# Limits


def test_a_limit_by_epsilon_alone_keeps_the_delta(tmp_path: Path) -> None:
    here = make_project(tmp_path)
    limit = ("ledger", "limit", "hospital", "--reason", "r", "--epsilon")
    assert "epsilon = 3, delta = 1e-06 now" in did(*limit, "3", at=here)
    did("query", COUNT, "--epsilon", "0.1", at=here)
    assert "epsilon = 1.5, delta = 1e-06 now" in did(*limit, "1.5", at=here)
    refused = did(*limit, "4", at=here, code=5)  # its delta is divided already
    typed = re.search(r"sfumato (ledger limit hospital --epsilon 4 --delta 2e-06 --reason) WHY", refused)
    assert typed is not None, refused
    assert "epsilon = 4, delta = 2e-06 now" in did(*typed[1].split(), "r", at=here)
    assert "epsilon = 5, delta = 2e-06 now" in did(*limit, "5", at=here)


def test_a_limit_without_a_delta_stays_without_one(tmp_path: Path) -> None:
    here = make_project(tmp_path, text=YAML.replace("total: {epsilon: 2, delta: 1e-6}", "total: {epsilon: 2}"))
    assert "epsilon = 3 now" in did("ledger", "limit", "hospital", "--epsilon", "3", "--reason", "r", at=here)


@pytest.mark.parametrize(
    "words",
    [
        ("ledger", "limit", "nobody", "--epsilon", "1", "--reason", "r"),
        ("ledger", "close", "nobody", "--reason", "r"),
        ("ledger", "unlock", "nobody", "--reason", "r"),
        ("ledger", "status", "nobody"),
        ("ledger", "move", "nobody", "training", "--epsilon", "1", "--reason", "r"),
        ("query", COUNT, "--account", "nobody"),
    ],
)
def test_an_account_that_is_not_there_is_told_beside_those_that_are(words: tuple[str, ...], tmp_path: Path) -> None:
    told = did(*words, at=make_project(tmp_path), code=5)
    assert "no account 'nobody' (there are evaluation, hospital, training)" in told


def test_a_budget_that_is_short_is_raised_by_the_command_that_the_refusal_names(tmp_path: Path) -> None:
    here = make_project(tmp_path)
    refused = did("query", COUNT, "--epsilon", "2.5", at=here, code=5)
    typed = re.search(
        r"raise the limit: sfumato (ledger limit hospital --epsilon 4 --delta 2e-06 --reason) WHY", refused
    )
    assert typed is not None, refused
    did(*typed[1].split(), "more is needed", at=here)
    did("query", COUNT, "--epsilon", "2.5", at=here)
