"""Attacks that the library must withstand, each with a planted bug that it must break.

    sfumato attack F1             runs one, and the same attack on its planted bug
    sfumato attack --all --quick  runs all of them with less effort: a small fault may stay unseen

An attack is a function from a target to a `Verdict`. A sound target is called broken with chance at most 1e-6 per run.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from . import curves, float_bits, forked, precision, searching, targets, timing, variants
from .verdict import CouldNotRunError, Verdict

__all__ = ["ATTACKS", "CONTROLS", "TITLES", "CouldNotRunError", "Verdict", "attack"]

TITLES = {
    "F1": "the lowest bits of float noise (Mironov 2012)",
    "F2": "the precision of an answer tells its size (Haney et al. 2022)",
    "F3": "the lowest bits of a noisy gradient (Jin et al. 2022)",
    "F4": "the time that a draw takes (Jin et al. 2022)",
    "F5": "noise that repeats after a fork or a copy",
    "V1": "sparse vectors that tell too much (Lyu, Su, Li 2017)",
    "V2": "a search for the most telling event",
    "V3": "the whole curve of epsilon and delta, not one point",
    "N1": "sums that round by more than one row (Casacuberta et al. 2022)",
    "N2": "integers at the end of their type",
    "N3": "sums that depend on the order of rows",
    "N4": "cells that are no numbers: NaN, infinity, NULL",
    "N5": "numbers that are no budgets, bounds or limits",
    "Q1": "SQL errors that tell a cell",
    "Q2": "groups and shapes of an answer that tell of one person",
    "Q3": "SQL that reaches files, settings or other tables",
    "Q4": "a unit that counts for more than one",
    "Q5": "bounds that the data itself sets",
    "B1": "the same question a thousand times",
    "R1": "everybody's bit from many counts (Dinur, Nissim 2003)",
    "R2": "the difference of two counts",
    "T1": "shuffled batches sold as Poisson samples (Chua et al. 2024)",
    "T2": "a gradient that counts for more than the clip norm",
}


def _sql(file: str, name: str, effort: Mapping[str, Any] | None = None, **planted: str) -> Callable[[], Verdict]:
    """An attack on SQL; what SQL needs is imported when it runs. `planted` names the file's planted bugs."""

    def run() -> Verdict:
        module = importlib.import_module(f".{file}", __name__)
        given: dict[str, Any] = {argument: getattr(module, bug) for argument, bug in planted.items()}
        verdict: Verdict = getattr(module, name)(**given, **(effort or {}))
        return verdict

    return run


def _learn(file: str, name: str, **effort: Any) -> Callable[[], Verdict]:
    """An attack on training; torch is imported when it runs."""

    def run() -> Verdict:
        try:
            module = importlib.import_module(f".{file}", __name__)
        except ImportError:
            raise CouldNotRunError("attacks on training need PyTorch: pip install 'sfumato[learn]'") from None
        verdict: Verdict = getattr(module, name)(**effort)
        return verdict

    return run


ATTACKS: dict[str, Callable[[], Verdict]] = {
    "F1": float_bits.attack,
    "F2": precision.attack,
    "F3": _learn("training_noise", "attack"),
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
    "T1": _learn("training_sampling", "attack"),
    "T2": _learn("training", "attack"),
}

# With less effort. Chances of a false alarm are as they were: the bounds hold for any number of runs.
_QUICK: dict[str, Callable[[], Verdict]] = {
    "F1": lambda: float_bits.attack(releases=20_000),
    "F2": lambda: precision.attack(releases=20_000),
    "F3": _learn("training_noise", "attack", releases=20_000),
    "F4": lambda: timing.attack(draws=1_000),
    "F5": lambda: forked.attack(children=8, spawned=1),
    "V1": lambda: variants.attack(trials=40_000),
    "V2": lambda: searching.attack(runs=4_000),
    "V3": lambda: curves.attack(runs=20_000),
    "N1": _sql("sql_numbers", "rounding", {"half": 2**14, "orders": 3}),
    "N2": _sql("sql_numbers", "overflowing", {"kinds": ("int8", "uint64")}),
    "N3": _sql("sql_numbers", "reordered", {"orders": 5}),
    "N4": _sql("sql_numbers", "poisoned", {"every": 5}),
    "Q2": _sql("sql_shapes", "attack", {"runs": 10**5, "releases": 40}),
    "Q4": _sql("sql_units", "attack", {"heavy": 100}),
    "B1": _sql("sql_budget", "repeating", {"repeats": 50}),
    "R1": _sql("sql_budget", "reconstruction", {"people": 64, "queries": 192}),
    "T1": _learn("training_sampling", "attack", batches=2_000),
}

CONTROLS: dict[str, Callable[[], Verdict]] = {
    "F1": lambda: float_bits.attack(targets.TEXTBOOK),
    "F2": lambda: precision.attack(targets.TEXTBOOK),
    "F3": _learn("training_noise", "attack", noise="fast"),
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
    "T1": _learn("training_sampling", "control"),
    "T2": _learn("training", "control"),
}


def attack(id: str, *, control: bool = False, quick: bool = False) -> Verdict:
    """Run one attack on the library, or on its planted bug; `quick` takes less effort on the library."""
    table = CONTROLS if control else ATTACKS
    if id not in table:
        raise CouldNotRunError(f"there is no attack {id!r}; there are {', '.join(table)}.")
    run = _QUICK.get(id, table[id]) if quick and not control else table[id]
    return run()
