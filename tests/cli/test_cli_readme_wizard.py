"""The README's screen of the wizard is what a reader sees who types what it shows, and its flags give the same file."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest

from tests.cli.front import environment
from tests.pages import ROOT, blocks, commands

_ASKS = re.compile(r" *(?P<shown>\[.*\] >) ?(?P<typed>.*)")


def _typed(*, having: str) -> str:
    """The one command of the README that has these words."""
    found = [
        command.text
        for block in blocks(ROOT / "README.md")
        if block.kind == "console"
        for command in commands(block)
        if having in command.text
    ]
    assert len(found) == 1, f"the README has {len(found)} commands with {having!r}"
    return found[0]


def _screen() -> list[str]:
    (shown,) = [block.text for block in blocks(ROOT / "README.md") if block.text.startswith("$ sfumato init\n")]
    return [line.strip() for line in shown.splitlines()[1:] if line.strip()]


def _seen(line: str) -> str:
    """A line as a terminal shows it: styles begin and end between words."""
    return r"(?:\s|\x1b\[[0-9;]*m)+".join(re.escape(word) for word in line.split())


def _shell(text: str, place: Path) -> None:
    program = f'sfumato() {{ "{sys.executable}" -m sfumato.cli "$@"; }}\npython() {{ "{sys.executable}" "$@"; }}\n'
    subprocess.run(["sh", "-c", program + text], cwd=place, env=environment(LOGNAME="bea"), check=True)


@pytest.mark.slow
def test_the_wizard_looks_as_the_readme_shows_it(tmp_path: Path) -> None:
    asked, flagged = tmp_path / "asked" / "clinic", tmp_path / "flagged" / "clinic"
    for place in (asked, flagged):
        place.mkdir(parents=True)
        (program,) = [block for block in blocks(ROOT / "README.md") if block.title == "make_visits.py"]
        (place / program.title).write_text(program.text, encoding="utf-8")
        _shell(_typed(having=program.title), place)
    variables = environment(COLUMNS="100", TERM="xterm", LOGNAME="bea")
    command = ["-m", "sfumato.cli", "init"]
    terminal = pexpect.spawn(
        sys.executable, command, cwd=str(asked), env=variables, encoding="utf-8", timeout=60, dimensions=(60, 100)
    )
    for line in _screen():
        question = _ASKS.fullmatch(line)
        terminal.expect(_seen(question["shown"] if question else line))
        if question:
            terminal.sendline(question["typed"])
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 0

    _shell(_typed(having="sfumato init --yes"), flagged)
    by_questions, by_flags = ((place / "sfumato.yaml").read_text(encoding="utf-8") for place in (asked, flagged))
    assert by_questions == by_flags
