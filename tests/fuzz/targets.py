"""The fuzz targets by name, and the inputs that are kept for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from tests.fuzz.event_json import fuzz_events, fuzz_record
from tests.fuzz.evidence_files import fuzz_evidence
from tests.fuzz.ledger_files import fuzz_anchor, fuzz_ledger
from tests.fuzz.sql import fuzz_sql, fuzz_sql_run
from tests.fuzz.typed import fuzz_accountant
from tests.fuzz.yaml_files import fuzz_plan_file, fuzz_policy, fuzz_project, fuzz_yaml

TARGETS: dict[str, Callable[[bytes], None]] = {
    "accountant": fuzz_accountant,
    "anchor": fuzz_anchor,
    "events": fuzz_events,
    "evidence": fuzz_evidence,
    "ledger": fuzz_ledger,
    "plan_file": fuzz_plan_file,
    "policy": fuzz_policy,
    "project": fuzz_project,
    "record": fuzz_record,
    "sql": fuzz_sql,
    "sql_run": fuzz_sql_run,
    "yaml": fuzz_yaml,
}

HERE = Path(__file__).parent
_SHARED = {"sql_run": "sql"}  # inputs of one target that serve another too


def inputs(kind: str, target: str) -> list[Path]:
    """The files kept for a target: the "corpus" it begins with, or what was "found" by it."""
    folders = [HERE / kind / each for each in (target, _SHARED.get(target, target))]
    return sorted({file for folder in folders if folder.is_dir() for file in folder.iterdir() if file.is_file()})


def all_inputs(kind: str) -> Iterator[tuple[str, Path]]:
    for target in TARGETS:
        yield from ((target, file) for file in inputs(kind, target))
