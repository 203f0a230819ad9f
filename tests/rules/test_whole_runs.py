"""What a run of everything says at its end: whether tests are missing, and what each folder cost."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.counting import too_few
from tests.seconds import AREA, SHARES, WHOLE, Seconds, folder_of

ROOT = Path(__file__).parents[2]

CONFTEST = """
from pathlib import Path
from tests.counting import Count
from tests.seconds import Seconds

def pytest_configure(config):
    config.pluginmanager.register(Count(config, Path(__file__).with_name("counted.json")))
    config.pluginmanager.register(Seconds())
"""
SETTINGS = """
[tool.pytest.ini_options]
testpaths = ["tests"]
addopts = "-q -m 'not slow'"
markers = ["slow: slow"]
"""
BUSY = """
import subprocess, sys, time, pytest

def test_in_a_child():
    subprocess.run([sys.executable, "-c", "import time\\nwhile time.process_time() < 0.3: pass"], check=True)

def test_waiting():
    time.sleep(0.3)

@pytest.mark.slow
def test_slow():
    pass
"""


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three tests that `make test` would run, in two folders, and a slow one."""
    folder = tmp_path_factory.mktemp("house")
    (folder / "pyproject.toml").write_text(SETTINGS)
    for name, text in {
        "conftest.py": CONFTEST,
        "busy/test_busy.py": BUSY,
        "quiet/test_quiet.py": "def test_quiet(): pass",
    }.items():
        (folder / "tests" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "tests" / name).write_text(text)
    return folder


def _run(house: Path, least: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    (house / "tests" / "counted.json").write_text(f'{{"not slow": {least}, "slow or not slow": {least}}}')
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=house, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True)


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_whole_run_with_too_few_tests_fails_and_says_how_to_change_the_number(house: Path, workers: str) -> None:
    run = _run(house, 4, "-n", workers)
    assert run.returncode == 1
    assert "3 tests were collected with -m 'not slow', and 4 at the last count" in run.stdout
    assert "python -m tests.counting" in run.stdout


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_whole_run_with_enough_tests_passes_and_says_what_folders_cost(house: Path, workers: str) -> None:
    run = _run(house, 3, "-n", workers)
    assert run.returncode == 0
    assert "last count" not in run.stdout
    rows = {line.split()[0]: line.split() for line in run.stdout.splitlines() if line.startswith(("busy", "quiet"))}
    assert [rows[name][1] for name in ("busy", "quiet")] == ["2", "1"]
    clock, processor = (float(figure.rstrip("s")) for figure in rows["busy"][2:4])
    assert clock > 0.3
    assert processor > 0.2, "what a program computed that a test started is the test's"
    assert rows["busy"][4] == f"{AREA}s"


@pytest.mark.parametrize("arguments", [("tests/quiet",), ("-k", "quiet"), ("--deselect", "tests/busy"), ("-m", "slow")])
def test_nothing_is_expected_of_the_number_of_a_partial_run(house: Path, arguments: tuple[str, ...]) -> None:
    run = _run(house, 100, "-n", "0", *arguments)
    assert run.returncode == 0, run.stdout
    assert "last count" not in run.stdout


def test_all_tests_have_a_count_of_their_own(house: Path) -> None:
    assert (
        "4 tests were collected with -m 'slow or not slow'"
        in _run(house, 5, "-n", "0", "-m", "slow or not slow").stdout
    )
    assert too_few(4, "slow or not slow", {"not slow": 9, "slow or not slow": 4}) is None


def test_the_dearest_files_and_tests_are_named() -> None:
    seconds = Seconds()
    seconds.by_test |= {"tests/a/test_x.py::one": 2.0, "tests/a/test_x.py::two": 1.0, "tests/b/test_y.py::one": 2.5}
    assert [line.split() for line in seconds.dearest(1)] == [
        ["3.00s", "tests/a/test_x.py"],
        ["2.50s", "tests/b/test_y.py::one"],
    ]


def test_tests_belong_to_the_first_folder() -> None:
    assert folder_of("tests/ledger/test_lock.py::test_one[a/b]") == "ledger"
    assert folder_of("tests/sources/engines/test_words.py::test_one") == "sources"
    assert folder_of("tests/test_plan.py::test_one") == "."


def test_the_shares_fit_eight_minutes_of_two_cores() -> None:
    folders = {path.parent.relative_to(ROOT / "tests").parts[0] for path in (ROOT / "tests").glob("*/**/test_*.py")}
    folders.add(".")
    assert set(SHARES) <= folders
    assert WHOLE < 2 * 8 * 60
    assert sum(SHARES.get(folder, AREA) for folder in folders) <= WHOLE - AREA, "there is room for one area more"
