"""Checkpoints: whole or not at all, of this training or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from sfumato.errors import PlanError
from sfumato.learn import checkpoints
from tests.learn.tiny import Recording, columns, plan_for, rows_of, trained

STATE: dict[str, Any] = {"done": 3, "model": {"weight": torch.ones(2)}}


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "run.pt"
    assert checkpoints.load(path, plan="p", receipt="r") is None
    checkpoints.save(path, plan="p", receipt="r", state=STATE)
    found = checkpoints.load(path, plan="p", receipt="r")
    assert found is not None and found["done"] == 3 and torch.equal(found["model"]["weight"], torch.ones(2))
    assert [each.name for each in tmp_path.iterdir()] == ["run.pt"]


def test_the_old_one_stands_until_the_new_one_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.pt"
    checkpoints.save(path, plan="p", receipt="r", state=STATE)

    def torn(what: Any, file: Any) -> None:
        file.write(b"half")
        raise OSError("no space left")

    monkeypatch.setattr(torch, "save", torn)
    with pytest.raises(OSError, match="no space"):
        checkpoints.save(path, plan="p", receipt="r", state={**STATE, "done": 4})
    found = checkpoints.load(path, plan="p", receipt="r")
    assert found is not None and found["done"] == 3


@pytest.mark.parametrize(("plan", "receipt"), [("q", "r"), ("p", "s"), ("q", "s")])
def test_another_training_s_is_refused(tmp_path: Path, plan: str, receipt: str) -> None:
    path = tmp_path / "run.pt"
    checkpoints.save(path, plan="p", receipt="r", state=STATE)
    with pytest.raises(PlanError, match="another training"):
        checkpoints.load(path, plan=plan, receipt=receipt)


@pytest.mark.parametrize("content", [b"", b"nothing", b"PK\x03\x04broken"])
def test_what_cannot_be_read_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "run.pt"
    path.write_bytes(content)
    with pytest.raises(PlanError, match="cannot be read"):
        checkpoints.load(path, plan="p", receipt="r")


class Harmful:
    def __reduce__(self) -> Any:
        return (print, ("a checkpoint ran code",))


def test_a_checkpoint_runs_no_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.pt"
    torch.save({"is": "sfumato checkpoint/1", "plan": "p", "receipt": "r", "state": Harmful()}, path)
    with pytest.raises(PlanError, match="cannot be read"):
        checkpoints.load(path, plan="p", receipt="r")
    assert "ran code" not in capsys.readouterr().out


def test_one_of_a_later_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.pt"
    torch.save({"is": "sfumato checkpoint/2", "plan": "p", "receipt": "r", "state": STATE}, path)
    with pytest.raises(PlanError, match="kind"):
        checkpoints.load(path, plan="p", receipt="r")


def test_one_of_another_plan_is_refused_before_anything_is_paid_for(tmp_path: Path) -> None:
    plan, other = plan_for(steps=2), plan_for(steps=3)
    trained(plan.watched(checkpoint=tmp_path / "run.pt"), rows_of(columns(8), plan), Recording())
    assert (tmp_path / "run.pt").exists()
    plan.watched(checkpoint=tmp_path / "run.pt")
    with pytest.raises(PlanError, match="another training"):
        other.watched(checkpoint=tmp_path / "run.pt")


def test_a_rehearsal_writes_none(tmp_path: Path) -> None:
    from tests.learn.tiny import curator

    asks = curator()
    asks.rehearse(plan_for(data=asks.private, steps=2).watched(checkpoint=tmp_path / "run.pt"))
    assert list(tmp_path.iterdir()) == []
