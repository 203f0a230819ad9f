"""Two `sfumato run` or `sfumato train` on one project: the second says who is at work, and waits or leaves with 10."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.cli.clinic import make_clinic
from tests.cli.front import make_project, sfumato, started
from tests.cli.test_cli_run import entries, states
from tests.cli.test_cli_run_stopped import FAST, slow_project, until_opened
from tests.cli.test_cli_train_stopped import LONG, until_drawn


def test_a_second_run_leaves_or_waits_until_the_first_is_gone(tmp_path: Path) -> None:
    folder = slow_project(tmp_path)
    quick = f"sfumato-plan: 1\nreleases:\n  - {{name: other, sql: {FAST}, epsilon: 0.2, delta: 1e-8}}\n"
    (folder / "quick.yaml").write_text(quick, encoding="utf-8")
    with started("run", "plan.yaml", "--yes", at=folder) as first:
        until_opened(folder, 2, first)
        paid = len(entries(folder, "spend"))
        second = sfumato("run", "quick.yaml", "--yes", "--wait", "0", at=folder)
        assert second.code == 10 and second.out == ""
        assert f"sfumato run plan.yaml, process {first.pid} on " in second.err and "--wait SECONDS" in second.err
        assert "nothing was charged" in second.err and len(entries(folder, "spend")) == paid
        problem = json.loads(sfumato("run", "quick.yaml", "--wait", "0", "--json", at=folder).out)
        assert problem["document"] == "problem/1" and problem["code"] == 10
        assert sfumato("run", "quick.yaml", "--dry-run", at=folder).code == 0, "a price is no work"
        assert sfumato("query", FAST, "--epsilon", "0.1", at=folder).code == 0, "a query waits for nobody"
        with started("run", "quick.yaml", "--json", "--wait", "120", at=folder) as third:
            assert third.stderr is not None
            said = third.stderr.readline()
            assert said.startswith("note  sfumato run plan.yaml, process") and "120 seconds at most" in said
            assert third.poll() is None
            first.send_signal(signal.SIGKILL)
            out, _ = third.communicate(timeout=120)
        assert third.returncode == 0 and states(json.loads(out)) == {"other": "released"}
        first.communicate(timeout=60)


def test_the_python_door_and_the_command_exclude_each_other(tmp_path: Path) -> None:
    from sfumato.project import open_project

    folder = make_project(tmp_path)
    (folder / "plan.yaml").write_text(
        f"sfumato-plan: 1\nreleases:\n  - {{name: n, sql: {FAST}, epsilon: 0.2, delta: 1e-8}}\n", encoding="utf-8"
    )
    with open_project(folder).alone("notebook of bea"):
        with started("run", "plan.yaml", "--yes", "--wait", "0.2", at=folder) as ran:
            _, said = ran.communicate(timeout=120)
        assert ran.returncode == 10 and "notebook of bea, process" in said
    assert sfumato("run", "plan.yaml", "--yes", "--wait", "0", at=folder).code == 0


def test_a_second_training_leaves(tmp_path: Path) -> None:
    folder = make_clinic(tmp_path, LONG)
    with started("train", "sfumato.yaml", at=folder) as first:
        until_drawn(folder, first)
        holds = len(entries(folder, "hold"))
        second = sfumato("train", "sfumato.yaml", "--wait", "0", at=folder)
        assert second.code == 10 and f"sfumato train sfumato.yaml, process {first.pid}" in second.err
        assert len(entries(folder, "hold")) == holds
        assert sfumato("train", "sfumato.yaml", "--quote", at=folder).code == 0
        first.send_signal(signal.SIGKILL)
        first.communicate(timeout=60)


@pytest.mark.parametrize("given", ["-1", "soon", "100000"])
def test_an_odd_wait_is_refused(tmp_path: Path, given: str) -> None:
    ran = sfumato("run", "plan.yaml", "--wait", given, at=tmp_path)
    assert ran.code == 2 and "wait" in ran.err
