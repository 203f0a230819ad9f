"""Faults of the door: what a curator pays for, opens, stores and says."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from sfumato import curator, errors, openings, private
from sfumato.audit import seams, surface
from sfumato.noise import Noise, SecureBits
from sfumato.plan import Receipt
from sfumato.record import canonical, parse
from sfumato.release import Release

from ...forced import opened, opened_with, tables_of
from ..mutant import Shelf, attacks, plans, plant, swap, swap_everywhere

FAULTS = Shelf("door")


@FAULTS.fault("errors tell what went wrong with the data", by=(*plans("Laplace"), *attacks("P1")))
def told_on() -> None:
    swap_everywhere(errors.guarded, lambda _: lambda work: work())


@FAULTS.fault("the data is opened, and then it is paid", by=(*attacks("L4", "L3"), *plans("Laplace")))
def opened_first() -> None:
    def open_before_paying(release: Any) -> Any:
        def early(self: Any, plan: Any, **named: Any) -> Any:
            receipt = _receipt_of(self, plan)
            answer = canonical(surface.run(plan, opened_with(self.private, receipt, plan.opens), Noise(self._bits)))
            paid = self.ledger.spend(
                self.accounts, plan, data=receipt.data, grade="exact", note="", key=named.get("key")
            )
            self.ledger.open(paid)
            self.ledger.settle(paid, "answered", answer)
            return Release(plan, parse(answer), paid)

        return early

    swap(curator.Curator, "release", open_before_paying)


def _receipt_of(door: Any, plan: Any) -> Any:
    return Receipt(
        id="0", accounts=(), plan_hash="", event=plan.event, data=door.private.address, unit=plan.unit, grade="exact"
    )


@FAULTS.fault("the unit of the data is not compared", by=plans("Laplace", "Gaussian"))
def any_unit() -> None:
    def ignore_unit(_: Any) -> Any:
        return lambda self, plan: plan.check_schema(self.private.schema)

    plant(seams.FITS, ignore_unit)


@FAULTS.fault("answers are not kept", by=(*plans("Laplace"), *attacks("B1")))
def forgetful() -> None:
    from sfumato.ledger.payments import Payments

    swap(Payments, "answer", lambda _: lambda self, accounts, plan_hash, data: None)


@FAULTS.fault("warnings of a run come through", by=attacks("P1"))
def warns() -> None:
    plant(seams.SILENCE, lambda _: nullcontext())


@FAULTS.fault("the data shows when it is printed", by=attacks("P1"))
def shown() -> None:
    swap(private.Private, "__repr__", lambda _: lambda self: f"<Private {self.name}: {_all_of(self)}>")


def _all_of(data_set: private.Private) -> str:
    return "; ".join(str(vars(each)) for each in tables_of(data_set).sources.values())


@FAULTS.fault("the data goes into a pickle", by=attacks("P1"))
def pickled() -> None:
    swap(private.Private, "__reduce__", lambda _: object.__reduce__)
    private.Private.__reduce_ex__ = object.__reduce_ex__  # type: ignore[method-assign]


@FAULTS.fault("a query is tried on the rows before it is paid", by=attacks("O5"))
def tried_on_rows() -> None:
    swap(openings.Tables, "connect", lambda one: lambda self, unread=(): one(self))


@FAULTS.fault("any receipt opens the data", by=attacks("B4"))
def any_receipt() -> None:
    plant(seams.DOOR, lambda _: lambda self, receipt, opens, empty=None: opened(self, opens))


@FAULTS.fault("seeded bits release", by=attacks("F5"))
def seeds() -> None:
    swap(curator.Curator, "__init__", lambda _: _any_bits)


def _any_bits(self: Any, data_set: Any, ledger: Any, *, accounts: Any = None, bits: Any = None) -> None:
    self.private, self.ledger, self.accounts = data_set, ledger, accounts or ()
    self._bits = bits if bits is not None else SecureBits()


@FAULTS.fault("rows of no block are read with the first one", by=attacks("B4"))
def no_block() -> None:
    """A NULL has the code of the first category."""

    def ignore_nulls(rows: Any) -> Any:
        def codes_alone(self: openings.Tables) -> Any:
            everything = rows(replace(self, block=None))
            if self.block is None:
                return everything
            categories = self.schema.table().column(self.block).categories
            return everything.keep(
                np.array([str(block) in self.blocks for block in categories])[everything[self.block].values]
            )

        return codes_alone

    swap(openings.Tables, "rows", ignore_nulls)
