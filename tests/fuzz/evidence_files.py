"""Files of evidence: `audit.reproduce` counts the event again, or refuses the file. What a stranger sends is run on
made-up rows, so a file may be wrong, but all that it can do to its reader is to be refused.

An input is the file. One that begins with a zero byte is a list of choices instead: which of the kept files, and which
of its values become which others.
"""

from __future__ import annotations

import json
import math
import tempfile
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

from sfumato.audit import reproduce
from sfumato.noise import SeededBits
from tests.fuzz.watching import Choices, Finding, attempt

_KEPT = Path(__file__).parent / "corpus" / "evidence"
_VALUES: tuple[Any, ...] = (
    0, 1, -1, 2**53, 10**400, -(10**30), 0.5, -0.0, 1e308, 5e-324, None, True, "", "unit 1", "nan", "\udcff", [], [[]],
    {}, {"number": "inf"}, {"number": "nan"}, {"columns": {}}, {"text": "x"}, {"is": "exact", "value": "1/3"},
    {"is": "exact", "value": "1" + "0" * 300}, [0, 1], [1e308, -1e308], "mix", "trees", ["columns"],
)  # fmt: skip


@cache
def _place() -> Path:
    return Path(tempfile.mkdtemp(prefix="fuzz-evidence-")) / "evidence.json"


def _inner(value: Any) -> list[tuple[Any, Any]]:
    """Every value inside, as what holds it and its key or index there."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [each for key in keys for each in ((value, key), *_inner(value[key]))]


def _changed(data: bytes) -> bytes:
    choices = Choices(data)
    found = json.loads(choices.of(sorted(_KEPT.iterdir())).read_bytes())
    for _ in range(1 + choices.byte() % 3):
        holder, key = choices.of(_inner(found))
        way = choices.byte() % 4
        if way == 0:
            del holder[key]
        elif way == 1:
            other, there = choices.of(_inner(found))
            holder[key] = deepcopy(other[there])
        else:
            holder[key] = deepcopy(choices.of(_VALUES))
    return json.dumps(found).encode()


def fuzz_evidence(data: bytes) -> None:
    """A bound that is a number, or a refusal."""
    _place().write_bytes(_changed(data[1:]) if data[:1] == b"\0" else data)
    found = attempt("reproduce", lambda: reproduce(_place(), runs=20, bits=SeededBits(1)))
    if not isinstance(found, BaseException) and math.isnan(found.epsilon):
        raise Finding("the bound is no number")
