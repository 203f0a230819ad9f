"""Fuzz one target, or all of them:

    python -m tests.fuzz.run sql --minutes 10

With atheris installed the inputs are steered by which branches of sfumato they reach; without it they are changed at
random, which finds less. An input that the library does not take as it should is written to tests/fuzz/found/<target>/
and told; the tests replay every file there.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import io
import logging
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

WORDS = {
    "sql": "SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT JOIN ON COUNT(*) SUM( AVG( MEDIAN( visits patients days ward",
    "json": '"is" "exact" "value" "map" "items" "array" "events" "event" "times" "rate" 1e308 [[[[ {"is": "gaussian/1"',
    "yaml": "sfumato: tables: columns: unit: budget: epsilon: delta: privacy: source: [a,b] &a *a !!str |- >+ <<: ~",
    "typed": "--gaussian --laplace --rho --rate --steps --delta --epsilon --relation explain calibrate 1e-300",
}
_MEMORY = 8 << 30
_KINDS = {
    "sql": "sql", "sql_run": "sql", "events": "json", "evidence": "json", "record": "json", "anchor": "json",
    "ledger": "json", "yaml": "yaml", "project": "yaml", "plan_file": "yaml", "policy": "yaml", "accountant": "typed",
}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", help="one of the targets, or all")
    parser.add_argument("--minutes", type=float, default=1.0, help="for each target")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument(
        "--keep", type=Path, default=None, help="a folder where inputs that reach something new are kept"
    )
    parser.add_argument("--plain", action="store_true", help="do not use atheris")
    given = parser.parse_args()
    if given.target == "all":
        return _each(given)
    steered = not given.plain and importlib.util.find_spec("atheris") is not None
    if not steered:
        print("atheris is not used: inputs are changed at random, not steered by coverage (pip install '.[fuzz]')")
    return _steered(given) if steered else _unsteered(given)


def _each(given: argparse.Namespace) -> int:
    """Each in a process of its own: a fuzzer owns its process."""
    worst = 0
    for target in _KINDS:
        print(f"== {target}", flush=True)
        more = ["--plain"] * given.plain + ([] if given.keep is None else ["--keep", str(given.keep / target)])
        more += [] if given.seed is None else ["--seed", str(given.seed)]
        command = [sys.executable, "-m", "tests.fuzz.run", target, "--minutes", str(given.minutes), *more]
        worst = max(worst, subprocess.run(command, check=False).returncode)
    return worst


class Found:
    """The findings of a run: each kind once, written to a file."""

    def __init__(self, target: str) -> None:
        from tests.fuzz import targets

        self.target, self.work = target, targets.TARGETS[target]
        self.folder = targets.HERE / "found" / target
        self.runs, self.kinds = 0, set[str]()

    def __call__(self, data: bytes) -> None:
        from tests.fuzz.watching import Finding

        self.runs += 1
        try:
            self.work(data)
        except Finding as finding:
            self._told(data, finding)

    def _told(self, data: bytes, finding: BaseException) -> None:
        kind = _kind(finding)
        if kind in self.kinds:
            return
        self.kinds.add(kind)
        self.folder.mkdir(parents=True, exist_ok=True)
        place = self.folder / hashlib.sha256(data).hexdigest()[:12]
        place.write_bytes(data)
        print(f"FOUND {self.target} {place.name}: {str(finding)[:1500]}\n  at {kind}", flush=True)


def _kind(finding: BaseException) -> str:
    """Where in the library it came from, so that one fault is told once."""
    cause, frames = finding.__cause__, []
    trace = None if cause is None else cause.__traceback__
    while trace is not None:
        frames.append(f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}")
        trace = trace.tb_next
    return (
        f"{type(cause).__name__} {' '.join(frames[-3:])}" if frames else re.split(r" of | shows |: ", str(finding))[0]
    )


def _quiet() -> None:
    logging.getLogger("sqlglot").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))  # what asks for more gets a MemoryError: a finding


def _seeds(target: str, folder: Path) -> None:
    from tests.fuzz import ledger_files, targets

    for file in (*targets.inputs("corpus", target), *targets.inputs("found", target)):
        (folder / file.name).write_bytes(file.read_bytes())
    if target == "anchor":
        for name, data in ledger_files.seeds().items():
            (folder / name).write_bytes(data)
    draw = random.Random(target)
    for number in range(20):  # choices, for those that take them
        (folder / f"choices-{number}").write_bytes(b"\0" + draw.randbytes(40))


def _steered(given: argparse.Namespace) -> int:
    """By atheris. Only sfumato is instrumented: that is what should be reached, and the rest stays fast."""
    import atheris  # type: ignore[import-not-found,unused-ignore]

    if given.target not in _KINDS:
        raise SystemExit(f"no target {given.target!r}: there are {', '.join(_KINDS)}")
    with redirect_stderr(io.StringIO()), atheris.instrument_imports(include=["sfumato"]):
        found: Any = Found(given.target)
    _quiet()
    until = time.monotonic() + 60 * given.minutes
    folder = given.keep or Path(tempfile.mkdtemp(prefix=f"fuzz-{given.target}-"))
    folder.mkdir(parents=True, exist_ok=True)
    _seeds(given.target, folder)
    words = folder.parent / f"{folder.name}.dict"
    quoted = [word.replace("\\", "\\\\").replace('"', '\\"') for word in WORDS[_KINDS[given.target]].split(" ")]
    words.write_text("".join(f'"{word}"\n' for word in quoted), encoding="utf-8")
    flags = [f"-max_total_time={int(60 * given.minutes) + 120}", "-timeout=120", "-rss_limit_mb=0", "-max_len=2000"]
    flags += [f"-artifact_prefix={folder.parent}/{folder.name}-", "-report_slow_units=600"]
    flags += [f"-dict={words}", "-print_final_stats=1", "-verbosity=0", "-close_fd_mask=0"]
    flags += [] if given.seed is None else [f"-seed={given.seed}"]
    began = time.monotonic()

    def one(data: bytes) -> None:
        found(data)
        if time.monotonic() > until:
            _ended(found, time.monotonic() - began)

    atheris.Setup([sys.argv[0], *flags, str(folder)], one)
    atheris.Fuzz()
    return 0


def _ended(found: Found, seconds: float) -> None:
    import os

    print(f"{found.target}: {found.runs} inputs in {seconds:.0f} s, {len(found.kinds)} kinds of findings", flush=True)
    os._exit(1 if found.kinds else 0)  # a fuzzer's loop has no other end


def _unsteered(given: argparse.Namespace) -> int:
    """Changes of the kept inputs, at random."""
    from tests.fuzz.mutating import mutated

    found = Found(given.target)
    _quiet()
    folder = Path(tempfile.mkdtemp(prefix=f"fuzz-{given.target}-"))
    _seeds(given.target, folder)
    pool = [file.read_bytes() for file in sorted(folder.iterdir())]
    draw = random.Random(given.seed)
    began = time.monotonic()
    while time.monotonic() - began < 60 * given.minutes:
        found(mutated(draw, pool))
    print(f"{given.target}: {found.runs} inputs in {60 * given.minutes:.0f} s, {len(found.kinds)} kinds of findings")
    return 1 if found.kinds else 0


if __name__ == "__main__":
    raise SystemExit(main())
