"""Processes of the tests, beside those of the attacks on ledgers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sfumato_referee.attacks.ledger import ground, striking

ROOT = Path(__file__).parents[2]
SEARCHED = (ROOT / "src", ROOT / "referee" / "src", ROOT)
ENVIRONMENT = {**striking.ENVIRONMENT, "PYTHONPATH": os.pathsep.join(map(str, SEARCHED))}


def traced() -> None:
    """Skip where no tracer may run."""
    if striking.tracer() is None:
        pytest.skip("strace is missing or may not trace here (install it, as root: apt install strace)")


def said(command: list[str]) -> list[str]:
    """The lines of a process that ends well."""
    return striking.said(command, ENVIRONMENT, cwd=ROOT)


@pytest.fixture
def quick() -> Iterator[Path]:
    """A folder in memory where there is one: the system calls are the same, and a sync costs nothing."""
    with ground.folder() as folder:
        yield folder
