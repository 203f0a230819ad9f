"""Screens of all kinds: narrow ones, those that know no Unicode, pipes that end early, and terminals."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pexpect
import pytest

from sfumato.cli import progress, screen
from sfumato.cli.problems import Problem
from sfumato.cli.screen import Screen, bar, percent, say
from tests.cli.front import BY_WARD, environment, make_project, sfumato


def drawn(width: int, *, encoding: str = "utf-8", terminal: bool = True) -> tuple[Screen, io.BytesIO]:
    held = io.BytesIO()
    file = io.TextIOWrapper(held, encoding=encoding, write_through=True)
    made = Screen(
        file=file, width=width, force_terminal=terminal, color_system=None, highlight=False, markup=False,
        soft_wrap=not terminal,
    )  # fmt: skip
    return made, held


def test_a_problem_is_wrapped_below_itself() -> None:
    console, held = drawn(40)
    Problem("something is wrong", "a reason that takes more than one line on this screen", "mend it", 4).show(console)
    lines = held.getvalue().decode().splitlines()
    assert max(map(len, lines)) <= 40
    assert lines[1].startswith("  why  a reason") and lines[2].startswith("       ") and lines[-1] == "  fix  mend it"


def test_marks_stay_under_their_clause_on_a_narrow_screen() -> None:
    code = "SELECT ward, COUNT(*) AS n, AVG(cost) AS mean, AVG(cots) AS wrong FROM visits GROUP BY ward"
    marks = " " * (4 + code.index("cots")) + "^^^^"
    for width in (30, 40, 60, 79):
        console, held = drawn(width)
        Problem("refused", f"There is no column\n1 | {code}\n{marks}", "use one of: cost", 4).show(console)
        lines = held.getvalue().decode().splitlines()
        assert max(map(len, lines)) <= width
        place = next(number for number, line in enumerate(lines) if "^" in line)
        start = lines[place].index("^")
        assert lines[place - 1][start : start + 4] == "cots", (width, lines)


def test_in_a_pipe_no_line_is_broken() -> None:
    console, held = drawn(20, terminal=False)
    say(console, "a text that is much longer than the screen is wide", first="why  ")
    assert held.getvalue().decode() == "why  a text that is much longer than the screen is wide\n"


def test_text_that_looks_like_markup_stays_text(tmp_path: Path) -> None:
    folder = make_project(tmp_path)
    ran = sfumato("query", 'SELECT AVG("[bold]cost[/bold]") AS n FROM visits', at=folder)
    assert ran.code == 4 and ran.err.count("[bold]cost[/bold]") == 2
    other = sfumato("query", "SELECT COUNT(*) AS n FROM visits", "--account", "[red]:smile:", at=folder)
    assert "'[red]:smile:'" in other.err


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_without_unicode_gets_other_signs(tmp_path: Path, encoding: str) -> None:
    folder = make_project(tmp_path)
    ran = sfumato("query", BY_WARD, at=folder, encoding=encoding)
    assert ran.code == 0 and "+-" in ran.out and "+....." in ran.out and "?" not in ran.out.partition("hides")[2]
    heads = ran.out.splitlines()
    assert heads[1].index("+-") == heads[2].index("+-")  # still in columns
    body = sfumato("query", BY_WARD, "--json", at=folder, encoding=encoding)
    assert json.loads(body.out)["project"] == "hospital"
    assert sfumato("--help", at=folder, encoding=encoding).code == 0


def test_json_loses_nothing_in_ascii(tmp_path: Path) -> None:
    folder = make_project(tmp_path)
    ran = sfumato("query", BY_WARD, "--note", "Grüße 🏥", "--json", at=folder, encoding="ascii")
    assert ran.out.isascii() and json.loads(ran.out)["receipt"]["note"] == "Grüße 🏥"


def test_shares_are_never_rounded_to_all_or_nothing() -> None:
    told = [percent(each) for each in (0, 1e-9, 0.0099, 0.5, 0.994, 0.9999, 1)]
    assert told == ["0 %", "<1 %", "<1 %", "50 %", ">99 %", ">99 %", "100 %"]


def test_a_bar_shows_every_step() -> None:
    assert bar(0).plain == "░" * 20 and bar(1).plain == "█" * 20
    assert bar(0, now=0.0001).plain == "▓" + "░" * 19
    assert bar(0.5, now=0.75).plain == "█" * 10 + "▓" * 5 + "░" * 5
    assert len(bar(0.999, now=2.0).plain) == len(bar(-1.0).plain) == 20


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [("--help",), ("describe",), ("schema", "query"), ("describe", "--json")], ids=" ".join
)
def test_a_reader_that_goes_away_is_no_error(tmp_path: Path, words: tuple[str, ...]) -> None:
    folder = make_project(tmp_path)
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "sfumato.cli", *words],
            cwd=folder, env=environment(), stdout=writing, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    finally:
        os.close(writing)
    assert (done.stderr, done.returncode) == ("", 141)


def _terminal(folder: Path, *words: str, columns: int = 60, **variables: str) -> pexpect.spawn[str]:
    given = {name: text for name, text in environment(**variables).items() if name not in ("COLUMNS", "NO_COLOR")}
    return pexpect.spawn(
        sys.executable, ["-m", "sfumato.cli", *words], cwd=str(folder), env={**given, **variables}, encoding="utf-8",
        dimensions=(50, columns), timeout=120,
    )  # fmt: skip


@pytest.mark.slow
def test_a_terminal_of_sixty_columns_is_enough(tmp_path: Path) -> None:
    folder = make_project(tmp_path)
    for words in (("describe",), ("quote", BY_WARD), ("query", BY_WARD), ("query", BY_WARD, "--epsilon", "9")):
        child = _terminal(folder, *words, TERM="xterm-256color", NO_COLOR="1")
        child.expect(pexpect.EOF)
        shown = str(child.before)
        assert "\x1b[3" not in shown  # no colours
        lines = [line.rstrip("\r") for line in shown.replace("\x1b[1m", "").replace("\x1b[2m", "").split("\n")]
        plain = [line.replace("\x1b[0m", "").replace("\x1b[1;2m", "") for line in lines]
        assert max(map(len, plain)) <= 60, [line for line in plain if len(line) > 60]


@pytest.mark.slow
def test_a_terminal_is_asked_for_colours_and_gets_them(tmp_path: Path) -> None:
    child = _terminal(make_project(tmp_path), "describe", TERM="xterm-256color")
    child.expect(pexpect.EOF)
    assert "\x1b[" in str(child.before)


@pytest.mark.slow
def test_nothing_typed_and_nothing_piped_is_told(tmp_path: Path) -> None:
    child = _terminal(make_project(tmp_path), "query", TERM="dumb")
    child.expect(pexpect.EOF)
    child.close()
    assert "nothing is piped in" in str(child.before) and child.exitstatus == 2


@pytest.mark.slow
def test_parquet_is_not_poured_into_a_terminal(tmp_path: Path) -> None:
    child = _terminal(make_project(tmp_path), "query", BY_WARD, "--format", "parquet", TERM="dumb")
    child.expect(pexpect.EOF)
    child.close()
    assert "Parquet is nothing to look at" in str(child.before) and child.exitstatus == 2


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_shown_only_after_a_while_and_only_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for patience, terminal, seen in ((0.0, True, True), (60.0, True, False), (0.0, False, False)):
        file = _Terminal() if terminal else io.StringIO()
        monkeypatch.setattr(sys, "stderr", file)
        monkeypatch.setattr(progress, "PATIENCE", patience)
        with progress.working("answering"):
            end = time.monotonic() + 30
            while seen and "answering" not in file.getvalue() and time.monotonic() < end:
                time.sleep(0.01)
        assert ("answering" in file.getvalue()) is seen
        counted = _Terminal() if terminal else io.StringIO()
        monkeypatch.setattr(sys, "stderr", counted)
        assert list(progress.counted([1, 2, 3], "attacks")) == [1, 2, 3]
        assert ("attacks" in counted.getvalue()) is seen


def test_a_counted_loop_that_is_left_early_ends_its_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", _Terminal())
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    for _ in range(2):  # a second bar could not start beside one that still runs
        items = progress.counted(range(5), "loop")
        next(items)
        next(items)
        items.close()  # type: ignore[attr-defined]


def test_signs_are_replaced_where_a_stream_cannot_write_them() -> None:
    held = io.BytesIO()
    stream = io.TextIOWrapper(held, encoding="ascii", write_through=True)
    kept = sys.stdout
    sys.stdout = stream
    try:
        screen.plain_signs()
        sys.stdout.write("± ∞ █ 漢\n")
    finally:
        sys.stdout = kept
    assert held.getvalue() == b"+- inf # ?\n"
