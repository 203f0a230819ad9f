"""An audit of a training: canaries in one whole training on made-up records; and one step run many times, given time.

A run of a step takes as long as a step does, so a sampled audit of it needs thousands of them. One training with a
thousand canaries, each put in by a coin, shows more in a moment: see audit/models/one_run_bound.py.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import islice
from typing import Any

from ... import audit as auditor
from ...errors import ArgumentError
from ...noise import Noise, SecureBits, SeededBits
from ...plan import Plan
from ...report.audit_pages import model_part

_CANARIES = 1_000
_FEWEST = 400  # runs a side: with fewer, nothing is shown
_PAIRS = 3
_SHARES = 8  # how many times that many are run in all
_TRIED = 3  # runs that are timed


def audited_training(
    plan: Any, step: Plan[Any, Any] | None, effort: Mapping[str, Any], how: Mapping[str, Any]
) -> dict[str, Any]:
    """What was found, by the names that a report has for it.

    effort  runs, or minutes; `how` as audit.check takes it
    """
    assert step is not None
    notes: list[str] = []
    how = {**how, "false_alarm": how["false_alarm"] / 2}  # a training is judged twice: by canaries, and step by step
    how["progress"](0.0, "a training with canaries")
    try:
        models = [_canaries(plan, how)]
    except ArgumentError as problem:
        if plan.unit.column is None:
            notes.append(f"No canaries: {problem}")
        else:
            notes.append(f"No canaries: a canary is one record, and this training hides {plan.unit}.")
        models = []
    began = time.monotonic()
    result = None
    with_runs = effort.get("runs") or _affordable(step, 60 * effort["minutes"])
    if with_runs >= _FEWEST or "runs" in effort or not models:
        result = auditor.check(step, runs=max(with_runs, 20), pairs=_pairs(step), **how)
        notes.append(f"Sampled: one step of {plan.times}, held to the price of one step. Steps compose by proof.")
    else:
        needed = (time.monotonic() - began) / _TRIED * _FEWEST * _SHARES / 60
        notes.append(f"One step was not sampled: about {needed:.2g} minutes would be needed (--minutes).")
    return {"result": result, "models": models, "notes": notes}


def _canaries(plan: Any, how: Mapping[str, Any]) -> dict[str, Any]:
    """One whole training on made-up records, in which canaries are put by coins."""
    from ...accounting.tradeoff import tradeoff
    from ...audit.models import one_run

    bits = SecureBits() if how["bits"] is None else how["bits"]
    records = plan.table.make_up(max(int(plan.sampling.population), 1), bits.words, awkward=False)
    audit = one_run(plan, records, canaries=_CANARIES, confidence=1 - how["false_alarm"], noise=Noise(bits))
    return model_part(audit, tradeoff(plan.event))


def _affordable(step: Plan[Any, Any], seconds: float) -> int:
    """How many runs on each side the time is enough for."""
    from ...audit.subjects import OfPlan

    rows, began = _pairs(step)[0].rows, time.monotonic()
    OfPlan(step).outputs(rows, _TRIED, SeededBits(0))
    return int(seconds / (_SHARES * (time.monotonic() - began) / _TRIED))


def _pairs(step: Plan[Any, Any]) -> list[Any]:
    """Extreme records, with nobody beside them who would blur what is added."""
    from ...audit.neighbours import pairs

    return list(islice(pairs(step), _PAIRS))
