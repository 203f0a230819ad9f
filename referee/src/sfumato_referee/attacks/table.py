"""The attacks, one line each. What an attack needs (an engine, PyTorch) is imported when it runs."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sfumato.errors import install_line

from .verdict import CouldNotRunError, Verdict

_TORCH = f"attacks on training need PyTorch: {install_line('learn')}"


@dataclass(frozen=True)
class Of:
    """A value of some file of this package, looked up when it is needed."""

    place: str
    called: bool = False  # is it a function, and the value what it gives?

    def value(self) -> Any:
        file, _, name = self.place.rpartition(".")
        target = getattr(importlib.import_module(f".{file}", __package__), name)
        return target() if self.called else target


@dataclass(frozen=True)
class Attack:
    """One attack.

    run      the function, as file.name
    fixed    arguments of every call
    quick    its arguments where less effort is asked for. Chances of a false alarm are as they were: the bounds hold
             for any number of runs
    control  the function that tries it on its planted bug, where that is another one
    planted  the arguments of the control: most often the planted bug itself
    needs    a package that it cannot do without, with what to say where it is lacking
    """

    id: str
    title: str
    run: str
    quick: Mapping[str, Any] = field(default_factory=dict)
    control: str | None = None
    planted: Mapping[str, Any] = field(default_factory=dict)
    needs: str | None = None
    fixed: Mapping[str, Any] = field(default_factory=dict)

    def on_library(self, *, quick: bool = False) -> Verdict:
        return self._called(self.run, self.quick if quick else {})

    def on_planted_bug(self) -> Verdict:
        return self._called(self.control or self.run, self.planted)

    def _called(self, function: str, more: Mapping[str, Any]) -> Verdict:
        try:
            called = Of(function).value()
        except ImportError:
            if self.needs is None:
                raise
            raise CouldNotRunError(self.needs) from None
        verdict: Verdict = called(**_values({**self.fixed, **more}))
        return verdict


def _values(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: each.value() if isinstance(each, Of) else _values(each) if isinstance(each, Mapping) else each
        for name, each in arguments.items()
    }


LIST: tuple[Attack, ...] = (
    # numbers that noise is made of
    Attack("F1", "the lowest bits of float noise (Mironov 2012)", "float_bits.attack",
           quick={"releases": 20_000}, planted={"targets": Of("targets.TEXTBOOK")}),
    Attack("F2", "the precision of an answer tells its size (Haney et al. 2022)", "precision.attack",
           quick={"releases": 20_000}, planted={"targets": Of("targets.TEXTBOOK")}),
    Attack("F3", "the lowest bits of a noisy gradient (Jin et al. 2022)", "training_noise.attack",
           quick={"releases": 20_000}, planted={"noise": "fast"}, needs=_TORCH),
    Attack("F4", "the time that a draw takes (Jin et al. 2022)", "timing.attack",
           quick={"draws": 1_000}, planted={"samplers": {"geometric by a loop": Of("timing.looping_geometric")}}),
    Attack("F5", "noise that repeats after a fork or a copy", "forked.attack",
           quick={"children": 8, "spawned": 1}, planted={"source": Of("forked.copied", called=True), "spawned": 1}),
    # mechanisms, beside what they are sold at
    Attack("V1", "sparse vectors that tell too much (Lyu, Su, Li 2017)", "variants.attack",
           quick={"trials": 40_000}, control="variants.control"),
    Attack("V2", "a search for the most telling event", "searching.attack",
           quick={"runs": 4_000}, control="searching.control"),
    Attack("V3", "the whole curve of epsilon and delta, not one point", "curves.attack", control="curves.control"),
    Attack("A1", "accountants that sell below cost", "prices.attack", control="prices.control"),
    # sums
    Attack("N1", "sums that round by more than one row (Casacuberta et al. 2022)", "sql_numbers.rounding",
           quick={"half": 2**14, "orders": 3},
           planted={"asks": Of("sql_numbers.CONTROL"), "half": 2**18, "kinds": ("arrow",), "orders": 3}),
    Attack("N2", "integers at the end of their type", "sql_numbers.overflowing",
           quick={"kinds": ("int8", "uint64")}, planted={"asks": Of("sql_numbers.WRAPPING")}),
    Attack("N3", "sums that depend on the order of rows", "sql_numbers.reordered",
           quick={"orders": 5}, planted={"asks": Of("sql_numbers.CONTROL")}),
    Attack("N4", "cells that are no numbers: NaN, infinity, NULL", "sql_numbers.poisoned",
           quick={"every": 5}, planted={"asks": Of("sql_numbers.CONTROL")}),
    Attack("N5", "numbers that are no budgets, bounds or limits", "sql_arguments.attack",
           planted={"asks": Of("sql_arguments.CONTROL")}),
    # SQL
    Attack("Q1", "SQL errors that tell a cell", "sql_errors.attack", planted={"asks": Of("sql_errors.CONTROL")}),
    Attack("Q2", "groups and shapes of an answer that tell of one person", "sql_shapes.attack",
           quick={"runs": 10**5, "releases": 40}, planted={"asks": Of("sql_shapes.CONTROL")}),
    Attack("Q3", "SQL that reaches files, settings or other tables", "sql_reach.attack",
           planted={"asks": Of("sql_reach.CONTROL")}),
    Attack("Q4", "a unit that counts for more than one", "sql_units.attack",
           quick={"heavy": 100},
           planted={"asks": Of("sql_units.CONTROL"), "by_row": Of("sql_units.ROW_CONTROL"), "heavy": 1000}),
    Attack("Q5", "bounds that the data itself sets", "sql_units.data_bounds",
           planted={"asks": Of("sql_units.WRITTEN")}),
    Attack("Q6", "queries that one row makes slow", "sql_time.attack",
           quick={"length": 10**5}, planted={"asks": Of("sql_time.CONTROL"), "length": 10**4, "seconds": 2.0}),
    Attack("Q7", "a later stage of a query that reads the exact number", "sql_stages.attack",
           quick={"runs": 60}, planted={"asks": Of("sql_stages.CONTROL"), "runs": 60}),
    # whose rows are whose
    Attack("O1", "columns by place: a file without names, one column left out", "columns_by_place.attack",
           quick={"patients": 10, "visits": 10, "written": 2}, planted={"read": Of("columns_by_place.CONTROL")}),
    Attack("O2", "two units in one schema", "owners.two_units", planted={"asks": Of("owners.CONTROL")}),
    Attack("O3", "a source's collation that makes two people one", "owners.collated",
           quick={"collations": ("NOCASE", "NOACCENT")}, planted={"opens": Of("owners.TRUSTING")}),
    Attack("O4", "a view that computes over all rows", "owners.views", planted={"opens": Of("owners.TRUSTING")}),
    Attack("O5", "private rows before they are paid for", "unpaid.attack",
           quick={"rows": 50}, planted={"door": Of("unpaid.CONTROL")}),
    Attack("O6", "rows that are owned through keys", "chains.attack",
           quick={"orders": 60}, planted={"asks": Of("chains.CONTROL")}),
    # cells
    Attack("C1", "one cell that changes how others are read", "cells.attack",
           quick={"quick": True}, control="cells.control"),
    # budgets
    Attack("B1", "the same question a thousand times", "sql_budget.repeating",
           quick={"repeats": 50}, control="sql_budget.forgetful"),
    Attack("R1", "everybody's bit from many counts (Dinur, Nissim 2003)", "sql_budget.reconstruction",
           quick={"people": 64, "queries": 192}, control="sql_budget.nobody_adds_up"),
    Attack("R2", "the difference of two counts", "sql_budget.differencing", control="sql_budget.one_charge"),
    Attack("B2", "a budget by race, crash, retry or replay", "ledger.together.attack",
           control="ledger.together.control"),
    Attack("B3", "stopping when one is lucky", "ledger.stopping.attack", control="ledger.stopping.control"),
    Attack("B4", "budgets by the side doors: trees, holds, lists, closed and locked accounts", "side_doors.attack",
           control="side_doors.control"),
    Attack("B5", "a day of a series that is drawn twice", "series_days.attack",
           quick={"repeats": 24}, control="series_days.control"),
    # the ledger
    Attack("L1", "a release that was never recorded", "ledger.crashing.attack",
           quick={"whole": False, "times": 8}, control="ledger.crashing.control"),
    Attack("L2", "more spent than there is, by many at once", "ledger.racing.attack",
           quick={"processes": 8, "times": 15, "room": 60}, control="ledger.racing.control"),
    Attack("L3", "one charge, two draws: retries and replays", "ledger.retrying.attack",
           quick={"rounds": 2}, control="ledger.retrying.control"),
    Attack("L4", "charges that come back", "ledger.refunds.attack",
           quick={"interrupts": 60}, control="ledger.refunds.control"),
    Attack("L5", "entries changed, dropped, moved or put in", "ledger.chain.attack",
           quick={"every": 19}, control="ledger.chain.control"),
    Attack("L6", "no ledger, a full disk, a broken file", "ledger.disks.attack", control="ledger.disks.control"),
    Attack("L7", "histories that no order explains", "ledger.histories.attack",
           quick={"seeds": 6}, control="ledger.histories.control"),
    Attack("L8", "clocks that are set", "ledger.clocks.attack", control="ledger.clocks.control"),
    Attack("L9", "an old copy put back", "ledger.backups.attack", control="ledger.backups.control"),
    Attack("L10", "two writers on two copies", "ledger.backups.two_copies",
           control="ledger.backups.two_copies_control"),
    Attack("L11", "tenths that do not add up to one", "ledger.arithmetic.attack",
           quick={"times": 2_000, "small": 50_000}, control="ledger.arithmetic.control"),
    Attack("L12", "costs below nothing, or that are no numbers", "ledger.arithmetic.odd_costs",
           quick={"times": 2_000}, control="ledger.arithmetic.odd_costs_control"),
    Attack("L13", "parts that overlap, at the price of one", "ledger.parallel.attack",
           control="ledger.parallel.control"),
    Attack("L14", "an upgrade that forgets", "ledger.migrating.attack", control="ledger.migrating.control"),
    Attack("L15", "orders without rights", "ledger.rights.attack", control="ledger.rights.control"),
    Attack("L16", "one budget in many forks", "ledger.forking.attack",
           quick={"forks": 2}, control="ledger.forking.control"),
    Attack("L17", "an end of the ledger that is lost after a crash", "ledger.window.attack",
           quick={"every": 499}, control="ledger.window.control"),
    Attack("L18", "totals that were changed by hand", "ledger.edited.attack", control="ledger.edited.control"),
    Attack("L19", "a project edited to say whose rows are whose", "ledger.owning.attack",
           control="ledger.owning.control"),
    # releases without privacy, and what is left of the attack on ours
    Attack("R3", "a block of people, rebuilt from the tables about it (Garfinkel et al. 2018)",
           "without_privacy.attack", fixed={"name": "census"}, quick={"rounds": 200},
           control="without_privacy.control"),
    Attack("R4", "a file without names beside a list with names (Sweeney 2002)",
           "without_privacy.attack", fixed={"name": "linkage"}, quick={"rounds": 200},
           control="without_privacy.control"),
    Attack("R5", "film ratings without names (Narayanan, Shmatikov 2008)",
           "without_privacy.attack", fixed={"name": "ratings"}, quick={"rounds": 200},
           control="without_privacy.control"),
    Attack("R6", "a k-anonymous table whose groups are all alike (Machanavajjhala et al. 2007)",
           "without_privacy.attack", fixed={"name": "homogeneity"}, quick={"rounds": 200},
           control="without_privacy.control"),
    # training
    Attack("T1", "shuffled batches sold as Poisson samples (Chua et al. 2024)", "training_sampling.attack",
           quick={"batches": 2_000}, control="training_sampling.control", needs=_TORCH),
    Attack("T2", "a gradient that counts for more than the clip norm", "training.attack",
           control="training.control", needs=_TORCH),
    Attack("T3", "canaries in one training (Steinke, Nasr, Jagielski 2023)", "training_one_run.attack",
           quick={"seeds": 3}, control="training_one_run.control", needs=_TORCH),
    Attack("T4", "who was in the training data (Carlini et al. 2022)", "training_membership.attack",
           quick={"shadows": 32, "targets": 12, "lone": 200}, control="training_membership.control", needs=_TORCH),
    Attack("T5", "records that move inside a batch", "training_records.moving",
           quick={"seeds": 1}, control="training_records.moving_control", needs=_TORCH),
    Attack("T6", "buffers that remember the records", "training_records.remembering",
           control="training_records.remembering_control", needs=_TORCH),
    # synthetic data
    Attack("S1", "synthetic tables that copy a row", "synthetic.attack",
           quick={"runs": 200}, control="synthetic.control"),
    # what is left over
    Attack("P1", "what a release shows after the data is gone: words, logs, pickles", "post_processing.attack",
           quick={"cells": 200}, control="post_processing.control"),
    Attack("P2", "what a killed process leaves on disk", "spilled.attack", planted={"opens": Of("spilled.forgetful")}),
    # the audit itself
    Attack("G1", "small faults planted in the library, that the audit must notice", "mutation.attack",
           quick={"quick": True}, control="mutation.control"),
    Attack("G2", "code of your own between releases", "glue.attack", quick={"most": 10}, control="glue.control"),
)  # fmt: skip
