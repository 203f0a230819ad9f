"""Processes of attacks, and system calls of theirs that are struck: killed, or failed, at the N-th."""

from __future__ import annotations

import functools
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import sfumato

from ..verdict import CouldNotRunError
from .releasing import prepare

MOST = 160  # above the number of calls of one kind that a worker makes
_SOURCES = (Path(sfumato.__file__).parents[1], Path(__file__).parents[3])  # where library and referee lie
_PATH = os.pathsep.join(filter(None, (*map(str, _SOURCES), os.environ.get("PYTHONPATH"))))
ENVIRONMENT = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": _PATH}
WORKER = (sys.executable, "-m", "sfumato_referee.attacks.ledger")


@functools.cache
def tracer() -> tuple[str, ...] | None:
    """strace, if it may be used here."""
    command = ("strace", "-f", "-qq", "-o", os.devnull)
    sync = "import os, sys; os.fsync(os.open(sys.executable, os.O_RDONLY))"
    strike = ("-e", "trace=fsync", "-e", "inject=fsync:signal=KILL:when=1", sys.executable, "-c", sync)
    try:
        probe = subprocess.run([*command, *strike], capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return command if probe.returncode == -signal.SIGKILL else None


def strike(folder: Path, call: str, fault: str, design: str, numbers: list[int]) -> dict[int, int]:
    """Run workers whose N-th such call is struck, each in a folder of that name. How each of them ended."""
    if (command := tracer()) is None:
        raise CouldNotRunError("strace is missing or may not trace here (install it, as root: apt install strace).")
    prepared(folder, numbers)
    traced = [*command, "-e", f"trace={call}", "-e", f"inject={call}:{fault}:when={MOST}"]
    words = ("releasing", call, MOST, folder, design, *numbers)
    return {int(number): int(code) for number, code in map(str.split, said([*traced, *WORKER, *map(str, words)]))}


def prepared(folder: Path, names: Iterable[object]) -> None:
    """The same new ledger, once for each of them."""
    template = prepare(folder / "template")
    for name in names:
        shutil.copytree(template, folder / str(name))


def worker(*words: object) -> dict[str, int]:
    """A worker that needs no tracer. How each of its children ended."""
    lines = said([*WORKER, *map(str, words)])
    return {name: int(code) for name, code in (line.rsplit(" ", 1) for line in lines)}


def said(command: list[str], environment: Mapping[str, str] = ENVIRONMENT, cwd: Path | None = None) -> list[str]:
    """The lines of a process that ends well."""
    done = subprocess.run(command, cwd=cwd, env=dict(environment), capture_output=True, text=True, check=False)
    if done.returncode:
        raise CouldNotRunError(f"a process of the attack ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout.splitlines()
