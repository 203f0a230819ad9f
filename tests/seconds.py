"""What each folder of tests costs, printed at the end of every run: tests, seconds on the clock, seconds of the
processor, and the share of `make test` that the folder has. Nothing fails by it: times are the machine's, not ours.

The processor's seconds are the ones to compare between machines: they hold what a test and the programs that it
started have computed, and no waiting for others.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Generator
from pathlib import PurePosixPath

import pytest

AREA = 40  # seconds of one core in `make test`; what takes longer is marked slow and runs in `make test-all`
WHOLE = 900  # of both cores in 8 minutes, less what it takes to start and to collect
# Folders that stand for more than an area, or for less. Together they fit, with room to add an area.
SHARES = {
    "query": 100, "cli": 100, "rules": 85, "audit": 75, "sources": 75, "ledger": 60, "accounting": 60, "learn": 50,
    ".": 50, "mechanisms": 35, "attacks": 35, "report": 25, "noise": 25, "bounds": 20, "golden": 15, "project": 15,
    "fuzz": 15, "office": 10, "strategies": 10,
}  # fmt: skip


def folder_of(nodeid: str) -> str:
    """`ledger` for tests/ledger/test_lock.py::test_one, `.` for tests that stand in tests/ itself."""
    parts = PurePosixPath(nodeid.partition("::")[0]).parts
    inside = parts[parts.index("tests") + 1 :] if "tests" in parts else parts
    return inside[0] if len(inside) > 1 else "."


def processor_seconds() -> float:
    """What this process and the children that it waited for have computed so far."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


class Seconds:
    """Adds up reports by folder, in the process that hears of all of them; workers only measure."""

    def __init__(self) -> None:
        self.tests: defaultdict[str, set[str]] = defaultdict(set)
        self.clock: defaultdict[str, float] = defaultdict(float)
        self.processor: defaultdict[str, float] = defaultdict(float)
        self.by_test: defaultdict[str, float] = defaultdict(float)
        self._before = processor_seconds()

    def pytest_collection_finish(self) -> None:
        self._before = processor_seconds()  # what it takes to read all tests is no folder's

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        now = processor_seconds()
        report.processor = now - self._before  # a report's attributes travel from worker to controller
        self._before = now
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        folder = folder_of(report.nodeid)
        self.tests[folder].add(report.nodeid)
        self.clock[folder] += report.duration
        self.processor[folder] += getattr(report, "processor", 0.0)
        self.by_test[report.nodeid] += getattr(report, "processor", 0.0)

    def lines(self) -> list[str]:
        table = [f"{'tests/':<14}{'tests':>7}{'clock':>9}{'processor':>11}{'share':>7}"]
        for folder in sorted(self.tests, key=lambda name: -self.processor[name]):
            share = SHARES.get(folder, AREA)
            figures = f"{len(self.tests[folder]):>7}{self.clock[folder]:>8.1f}s{self.processor[folder]:>10.1f}s"
            over = "  over" if self.processor[folder] > share else ""
            table.append(f"{folder:<14}{figures}{share:>6}s{over}")
        if len(self.tests) > 1:
            clock, processor = sum(self.clock.values()), sum(self.processor.values())
            count = sum(len(nodeids) for nodeids in self.tests.values())
            table.append(f"{'together':<14}{count:>7}{clock:>8.1f}s{processor:>10.1f}s")
        return table

    def dearest(self, count: int) -> list[str]:
        """The files and the tests that computed longest."""
        by_file: defaultdict[str, float] = defaultdict(float)
        for nodeid, seconds in self.by_test.items():
            by_file[nodeid.partition("::")[0]] += seconds
        dear = [sorted(seconds.items(), key=lambda item: -item[1])[:count] for seconds in (by_file, self.by_test)]
        return [f"{seconds:>8.2f}s  {name}" for name, seconds in dear[0] + dear[1]]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.tests:
            terminalreporter.section("seconds by folder")
            for line in self.lines():
                terminalreporter.write_line(line)
        if count := terminalreporter.config.getoption("dearest", 0):
            terminalreporter.section("dearest files and tests, in seconds of the processor")
            for line in self.dearest(count):
                terminalreporter.write_line(line)
