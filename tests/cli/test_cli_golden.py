"""What help and errors look like, word for word. `python -m tests.cli.golden_regen` writes the files anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli import golden_regen as golden

COMMANDS = list(golden.commands())


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: "-".join(words) or "sfumato")
def test_help_is_as_it_was(words: tuple[str, ...], tmp_path: Path) -> None:
    assert golden.help_of(words, tmp_path) == golden.file_of(words).read_text(encoding="utf-8")


def test_there_is_a_file_for_each_command_and_no_other() -> None:
    assert {path.name for path in golden.HELP.glob("*")} == {golden.file_of(words).name for words in COMMANDS}


def test_errors_are_as_they_were(tmp_path: Path) -> None:
    told = golden.ERRORS.read_text(encoding="utf-8").split("\n$ ")
    assert "\n".join(golden.errors(tmp_path)).split("\n$ ") == told


def test_an_error_has_three_parts_and_no_trace() -> None:
    for each in golden.ERRORS.read_text(encoding="utf-8").split("\n$ "):
        lines = each.splitlines()
        assert [line[:7] for line in lines if line.startswith("  ") and line[2:5].strip()] == ["  why  ", "  fix  "]
        assert "Traceback" not in each and "Error:" not in each
        assert lines[-1].startswith("[") and lines[-1] not in ("[0]", "[1]")
