"""Attacks that the library must withstand, each with a planted bug that it must break.

    python -m sfumato.audit.attacks F1            exit 0: withstood, 1: broken, 2: could not run
    python -m sfumato.audit.attacks F1 --control  the same attack on its planted bug: must exit 1

An attack is a function from a target to a `Verdict`. A sound target is called broken with chance at most 1e-6 per run.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from . import curves, float_bits, forked, precision, searching, targets, timing, variants
from .verdict import CouldNotRunError, Verdict

__all__ = ["ATTACKS", "CONTROLS", "CouldNotRunError", "Verdict", "attack"]


def _sql(file: str, name: str, **planted: str) -> Callable[[], Verdict]:
    """An attack on SQL; what SQL needs is imported when it runs. `planted` names the file's planted bugs."""

    def run() -> Verdict:
        module = importlib.import_module(f".{file}", __name__)
        given: dict[str, Any] = {argument: getattr(module, bug) for argument, bug in planted.items()}
        verdict: Verdict = getattr(module, name)(**given)
        return verdict

    return run


ATTACKS: dict[str, Callable[[], Verdict]] = {
    "F1": float_bits.attack,
    "F2": precision.attack,
    "F4": timing.attack,
    "F5": forked.attack,
    "V1": variants.attack,
    "V2": searching.attack,
    "V3": curves.attack,
    "N1": _sql("sql_numbers", "rounding"),
    "N2": _sql("sql_numbers", "overflowing"),
    "N3": _sql("sql_numbers", "reordered"),
    "N4": _sql("sql_numbers", "poisoned"),
    "N5": _sql("sql_arguments", "attack"),
    "Q1": _sql("sql_errors", "attack"),
    "Q2": _sql("sql_shapes", "attack"),
    "Q3": _sql("sql_reach", "attack"),
    "Q4": _sql("sql_units", "attack"),
    "Q5": _sql("sql_units", "data_bounds"),
    "B1": _sql("sql_budget", "repeating"),
    "R1": _sql("sql_budget", "reconstruction"),
    "R2": _sql("sql_budget", "differencing"),
}

CONTROLS: dict[str, Callable[[], Verdict]] = {
    "F1": lambda: float_bits.attack(targets.TEXTBOOK),
    "F2": lambda: precision.attack(targets.TEXTBOOK),
    "F4": lambda: timing.attack({"geometric by a loop": timing.looping_geometric}),
    "F5": lambda: forked.attack(forked.copied()),
    "V1": variants.control,
    "V2": searching.control,
    "V3": curves.control,
    "N1": _sql("sql_numbers", "rounding", asks="CONTROL"),
    "N2": _sql("sql_numbers", "overflowing", asks="WRAPPING"),
    "N3": _sql("sql_numbers", "reordered", asks="CONTROL"),
    "N4": _sql("sql_numbers", "poisoned", asks="CONTROL"),
    "N5": _sql("sql_arguments", "attack", asks="CONTROL"),
    "Q1": _sql("sql_errors", "attack", asks="CONTROL"),
    "Q2": _sql("sql_shapes", "attack", asks="CONTROL"),
    "Q3": _sql("sql_reach", "attack", asks="CONTROL"),
    "Q4": _sql("sql_units", "attack", asks="CONTROL", by_row="ROW_CONTROL"),
    "Q5": _sql("sql_units", "data_bounds", asks="WRITTEN"),
    "B1": _sql("sql_budget", "forgetful"),
    "R1": _sql("sql_budget", "nobody_adds_up"),
    "R2": _sql("sql_budget", "one_charge"),
}


def attack(id: str, *, control: bool = False) -> Verdict:
    """Run one attack on the library, or on its planted bug."""
    table = CONTROLS if control else ATTACKS
    if id not in table:
        raise CouldNotRunError(f"there is no attack {id!r}; there are {', '.join(table)}.")
    return table[id]()
