"""Workers whose system calls are struck: killed, or failed, at the N-th."""

from __future__ import annotations

import functools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ledger.workers.releasing import prepare

ROOT = Path(__file__).parents[2]
MOST = 160  # above the number of calls of one kind that a worker makes
ENVIRONMENT = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "1"}
ENVIRONMENT["PYTHONPATH"] = os.pathsep.join((str(ROOT / "src"), str(ROOT)))


@functools.cache
def tracer() -> list[str] | None:
    """strace, if it may be used here."""
    command = ["strace", "-f", "-qq", "-o", os.devnull]
    sync = "import os, sys; os.fsync(os.open(sys.executable, os.O_RDONLY))"
    try:
        probe = subprocess.run(
            [*command, "-e", "trace=fsync", "-e", "inject=fsync:signal=KILL:when=1", sys.executable, "-c", sync],
            capture_output=True,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return command if probe.returncode == -signal.SIGKILL else None


def strike(folder: Path, call: str, fault: str, design: str, numbers: list[int]) -> dict[int, int]:
    """Run workers whose N-th such call is struck, for every N. Returns how each of them ended."""
    command = tracer()
    if command is None:
        pytest.skip("strace is missing or may not trace here (install it, as root: apt install strace)")
    template = prepare(folder / "template")
    for number in numbers:
        shutil.copytree(template, folder / str(number))
    worker = [sys.executable, "-m", "tests.ledger.workers.releasing", call, str(MOST), str(folder), design]
    traced = [*command, "-e", f"trace={call}", "-e", f"inject={call}:{fault}:when={MOST}"]
    return {int(number): int(code) for number, code in map(str.split, said([*traced, *worker, *map(str, numbers)]))}


def worker(*words: object) -> dict[str, int]:
    """A worker that needs no tracer. Returns how each of its children ended."""
    lines = said([sys.executable, "-m", "tests.ledger.workers.releasing", *map(str, words)])
    return {name: int(code) for name, code in (line.rsplit(" ", 1) for line in lines)}


def said(command: list[str]) -> list[str]:
    """The lines of a process that ends well."""
    done = subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def quick() -> Iterator[Path]:
    """A folder in memory where there is one: the system calls are the same, and a sync costs nothing."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        yield Path(folder)
