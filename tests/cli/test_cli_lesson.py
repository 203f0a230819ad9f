"""`sfumato lesson`."""

from __future__ import annotations

from pathlib import Path

import pytest

from sfumato.audit.lessons import LESSONS
from tests.cli.counting_house import refused, told
from tests.cli.front import sfumato


def test_lessons_are_listed(tmp_path: Path) -> None:
    assert list(told("lesson", at=tmp_path)["lessons"]) == list(LESSONS)
    ran = sfumato("lesson", at=tmp_path)
    assert ran.code == 0 and all(name in ran.out for name in LESSONS)


@pytest.mark.parametrize("name", ["homogeneity", "differencing"])
def test_a_lesson_is_told_and_is_a_document(name: str, tmp_path: Path) -> None:
    ran = sfumato("lesson", name, "--rounds", "20", at=tmp_path)
    assert ran.code == 0 and LESSONS[name]().moral[:40] in ran.out
    body = told("lesson", name, "--rounds", "20", at=tmp_path)
    assert body["rounds"] == 20 and body["attack"] == LESSONS[name]().id
    assert body["right_from_bare_numbers"] > 0.9 and 0.7 < body["allowed"] < 0.74


def test_a_wrong_name_is_told_which_was_meant(tmp_path: Path) -> None:
    assert "did you mean census?" in refused("lesson", "cencus", at=tmp_path, code=2).err
