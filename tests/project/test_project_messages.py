"""What is wrong with a sfumato.yaml is told in words of ours, with its line: a folder of wrong files, and their texts.

`python -m tests.project.test_project_messages` writes the texts anew; read them before you keep them.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest

pytest.importorskip("pydantic")
pytest.importorskip("yaml")

from sfumato.project import ProjectError, open_project

BAD = Path(__file__).parent / "bad"


def refusal(file: Path, folder: Path) -> ProjectError:
    """The error for a file, in a folder of its own."""
    shutil.copy(file, folder / "sfumato.yaml")
    with pytest.raises(ProjectError) as caught:
        open_project(folder)
    return caught.value


def told(error: ProjectError) -> str:
    return f"what: {error.what}\nwhy: {error.why}\nfix: {error.fix}\n\n{error}\n"


@pytest.mark.parametrize("file", sorted(BAD.glob("*.yaml")), ids=lambda file: file.stem)
def test_a_wrong_file_is_refused_in_these_words(file: Path, tmp_path: Path) -> None:
    error = refusal(file, tmp_path)
    assert told(error) == file.with_suffix(".txt").read_text(encoding="utf-8")
    assert error.file == "sfumato.yaml"
    assert str(error).startswith("sfumato.yaml:")


@pytest.mark.parametrize("file", sorted(BAD.glob("*.yaml")), ids=lambda file: file.stem)
def test_no_message_speaks_pydantic(file: Path, tmp_path: Path) -> None:
    text = told(refusal(file, tmp_path)).lower()
    for word in ("pydantic", "validation", "input should", "extra inputs", "type=", "fraction(", "nonetype", "form("):
        assert word not in text


def test_every_wrong_file_has_its_text() -> None:
    assert {file.stem for file in BAD.glob("*.yaml")} == {file.stem for file in BAD.glob("*.txt")}
    assert len(list(BAD.glob("*.yaml"))) > 90


def _write() -> None:
    for file in sorted(BAD.glob("*.yaml")):
        with tempfile.TemporaryDirectory() as folder:
            file.with_suffix(".txt").write_text(told(refusal(file, Path(folder))), encoding="utf-8")


if __name__ == "__main__":
    _write()
