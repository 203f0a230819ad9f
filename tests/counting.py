"""A run of all tests fails where fewer are collected than at the last count: a file that is silently not collected is
noticed. The count stands in counted.json, once for `make test` and once for `make test-all`.

    python -m tests.counting      counts anew and writes it, where tests went or came on purpose
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

COUNTED = Path(__file__).with_name("counted.json")
# What leaves out some of the tests: by these, a run is of a part, and nothing is expected of its number.
PARTIAL = ("keyword", "deselect", "ignore", "ignore_glob", "lf", "stepwise")


def is_whole(config: pytest.Config) -> bool:
    """All of tests/, chosen by nothing but a marker that has a count."""
    whole = list(config.args) == list(config.getini("testpaths"))
    return whole and not any(config.getoption(name, None) for name in PARTIAL)


def too_few(collected: int, marker: str, counted: dict[str, int]) -> str | None:
    """What to say of a whole run that collected so many; None where it is enough."""
    least = counted.get(marker, 0)
    if collected >= least:
        return None
    return (
        f"{collected} tests were collected with -m '{marker}', and {least} at the last count (tests/{COUNTED.name}). "
        "If tests were taken away or merged on purpose, run python -m tests.counting and commit the file"
    )


class Count:
    """Hears how many tests were collected, from this process or from its workers, and says so at the end."""

    def __init__(self, config: pytest.Config, counted: Path = COUNTED) -> None:
        self.config = config
        self.counted = counted
        self.collected = 0

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.collected = max(self.collected, len(session.items))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        self.collected = max(self.collected, len(ids))

    def complaint(self) -> str | None:
        if not is_whole(self.config) or not self.collected:
            return None
        counted = json.loads(self.counted.read_text(encoding="utf-8"))
        return too_few(self.collected, self.config.getoption("markexpr"), counted)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.complaint() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if complaint := self.complaint():
            terminalreporter.section("fewer tests than there were", red=True)
            terminalreporter.write_line(complaint)


def collect(marker: str) -> int:
    """How many tests a whole run with this marker collects."""
    listing = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-p", "no:cacheprovider", "-m", marker],
        cwd=COUNTED.parents[1],
        capture_output=True,
        text=True,
    ).stdout
    return sum("::" in line for line in listing.splitlines())


def main() -> None:
    counted = {marker: collect(marker) for marker in json.loads(COUNTED.read_text(encoding="utf-8"))}
    COUNTED.write_text(json.dumps(counted, indent=2) + "\n", encoding="utf-8")
    print(counted)


if __name__ == "__main__":
    main()
