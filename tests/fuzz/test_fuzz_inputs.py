"""Every kept input, every input that once was a finding, and random ones: none of them is a finding now."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import DataError, SfumatoError
from tests.fuzz import targets
from tests.fuzz.mutating import mutated
from tests.fuzz.sql import planned, tables, written
from tests.fuzz.targets import TARGETS, all_inputs
from tests.fuzz.watching import CANARY, CANARY_NUMBER, Choices, Finding, attempt, limited

SLOW = {"sql_run", "events", "accountant", "ledger"}  # a tenth of a second or more for each input
_IDS = [f"{target}-{file.name}" for kind in ("corpus", "found") for target, file in all_inputs(kind)]
_FILES = [each for kind in ("corpus", "found") for each in all_inputs(kind)]


@pytest.mark.parametrize(("target", "file"), _FILES, ids=_IDS)
def test_a_kept_input_is_no_finding(target: str, file: Path) -> None:
    TARGETS[target](file.read_bytes())


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_changed_inputs_are_no_finding(target: str) -> None:
    draw = random.Random(target)
    pool = [file.read_bytes() for file in targets.inputs("corpus", target)]
    for _ in range(3 if target in SLOW else 40):
        TARGETS[target](mutated(draw, pool))


@pytest.mark.slow
@pytest.mark.parametrize("target", sorted(TARGETS))
def test_many_changed_inputs_are_no_finding(target: str) -> None:
    pool = [file.read_bytes() for file in targets.inputs("corpus", target)]
    for _ in range(150 if target in SLOW else 3000):
        TARGETS[target](mutated(random.Random(), pool))


@pytest.mark.parametrize("target", sorted(set(TARGETS) - SLOW))
def test_any_bytes_are_no_finding(target: str) -> None:
    @settings(max_examples=25, deadline=None)
    @given(st.binary(max_size=60) | st.text(max_size=40).map(lambda text: text.encode("utf-8", "surrogatepass")))
    def any_bytes(data: bytes) -> None:
        TARGETS[target](data)

    any_bytes()


def test_the_grammar_writes_queries_that_are_understood() -> None:
    """Or the fuzzer would never get past the parser."""
    draw = random.Random(5)
    found = sum(planned(b"\0" + draw.randbytes(60))[1] is not None for _ in range(60))
    assert found >= 12
    assert "{" not in written(Choices(b"\0" * 50)) and written(Choices(b"")) == written(Choices(b"\0"))


def test_the_canary_is_in_the_data_and_nowhere_else() -> None:
    shown = str(tables(True)["visits"].to_pydict())
    assert CANARY in shown and str(CANARY_NUMBER) in shown
    assert CANARY not in str(tables(False)["visits"].to_pydict())


def test_the_watch_finds_what_it_is_for() -> None:
    def strays() -> None:
        raise KeyError("x")

    def tells() -> None:
        raise DataError from ValueError(f"{CANARY} is no number")

    def half() -> None:
        raise SfumatoError("\udcff")

    for work in (strays, tells, half):
        with pytest.raises(Finding):
            attempt("work", work, secrets=(CANARY,))
    with pytest.raises(Finding, match="processor time"), limited("work", 0.05):
        while True:
            pass
