"""The one door: a Curator pays for a plan, opens the data, runs it.

    release(plan), in this order, always:
      0  the same plan on the same data version, already answered and paid on these accounts: the stored release
      1  the plan must fit the data (unit, columns), else it is refused
      2  the ledger charges every account on the path, or refuses
      3  the ledger marks the receipt opened; a receipt opens once
      4  the data is opened
      5  the plan runs; noise only from run.noise
      6  the result is made a value and stored with the receipt
      7  the ledger settles the receipt
    Any exception after 2 settles it as failed: the charge stays, and a fixed text is raised that holds no data.

These guards stop accidents, not hostile code in the same process.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

from . import checks, record
from .accounting.filters import Filter
from .errors import ArgumentError, PlanError, PrivacyWarning, ReceiptError, guarded
from .interactive import Interactive, Session
from .noise import Bits, Noise, SecureBits
from .plan import Drawn, Ledger, Plan, Receipt, Run
from .release import Quote, Release
from .rows import Rows, check_unit
from .schema import Schema, Table
from .units import Unit


class Private:
    """Sensitive data behind the door: its name, unit and schema are public, its rows are not.

    columns  numpy arrays, lists, or a frame, by column name; read only when a paid plan runs
    version  name it anew when the data changes: the same plan on the same version is answered from the store
    """

    def __init__(
        self, name: str, columns: Mapping[str, Any], *, unit: Unit, schema: Schema, version: str = "1"
    ) -> None:
        self.name = checks.label(name, "name")
        self.version = checks.label(version, "version")
        if not isinstance(unit, Unit):
            raise checks.refuse("unit", unit, "a Unit, such as Unit() or Unit('user:patient')")
        if not isinstance(schema, Schema):
            raise checks.refuse("schema", schema, "a Schema, such as Schema.of(age=real(0, 120))")
        self.unit = unit
        self.schema = schema
        self.table: Table = schema.table()
        if self.table.unit is not None and unit.column is None:
            raise PlanError(
                f"the schema says that {self.table.unit!r} names the unit, but the unit given is a row: use "
                f"Unit('user:{self.table.unit}'), or leave the unit out of the schema to protect single rows"
            )
        check_unit(self.table, unit)
        given = _names(columns)
        for column in self.table.columns:
            if column not in given:
                raise PlanError(f"the data has no column {column!r}, which the schema names")
        self._columns = columns

    def _open(self, receipt: Receipt) -> Rows:
        """The only way to the data. Called by a Curator, with a receipt for this data."""
        if not isinstance(receipt, Receipt) or receipt.data != self.address or receipt.unit != self.unit:
            raise ReceiptError("the data opens only with a receipt that was paid for it")
        return Rows.read(self.table, self._columns, self.unit)

    @property
    def address(self) -> str:
        """Name and version in one text that no other name and version share."""
        return self.name.replace("%", "%25").replace("@", "%40") + "@" + self.version

    def __repr__(self) -> str:
        return f"<Private {self.name} version {self.version}: {', '.join(self.table.columns)}; hides {self.unit}>"

    def __reduce__(self) -> Any:
        raise TypeError("private data is not pickled or copied: pass the source it came from")


def _names(columns: Any) -> Collection[Any]:
    """The column names of a mapping or a frame (Arrow, Polars), without a look at the columns."""
    for attribute in ("column_names", "columns"):
        if hasattr(columns, attribute):
            return tuple(getattr(columns, attribute))
    return tuple(columns)


def _has_questions(plan: Plan[Any]) -> None:
    if isinstance(plan, Interactive) and not plan.agenda:
        raise PlanError("this plan names no questions: ask them in curator.session(plan), or give it some")


class Curator:
    """Runs plans on private data, and only with a receipt from the ledger.

    accounts  the path of accounts that pay, all of them; by default the one that bears the data's name
    """

    def __init__(
        self, private: Private, ledger: Ledger, *, accounts: tuple[str, ...] | None = None, bits: Bits | None = None
    ) -> None:
        if not isinstance(private, Private):
            raise checks.refuse("private", type(private).__name__, "a Private")
        self.private = private
        self.ledger = ledger
        self.accounts = accounts if accounts is not None else (private.name,)
        if not isinstance(self.accounts, tuple) or not self.accounts:
            raise checks.refuse("accounts", accounts, "a tuple of at least one account name")
        self._bits = bits if bits is not None else SecureBits()
        if self._bits.grade != "exact":
            raise ArgumentError("bits is not allowed: a Curator releases with SecureBits only; seeds are for tests.")

    def quote(self, plan: Plan[Any]) -> Quote:
        """Price and expected error, from the plan's own fields. Touches no data and costs nothing."""
        self._check(plan)
        affordable = self.ledger.quote(self.accounts, plan)
        return Quote(plan, affordable, tuple(f"{name}: {self.ledger.left(name)}" for name in self.accounts))

    def rehearse(self, plan: Plan[Any], *, rows: int = 300) -> Release:
        """Run the plan on made-up rows from the schema, with full error texts. Free; tells nothing about the data."""
        self._check(plan)
        made_up = self.private.table.make_up(checks.whole(rows, "rows", most=10**7), self._bits.words)
        data = Rows.read(self.private.table, made_up, self.private.unit)
        if plan.supervised is not None:
            raise PlanError("a plan without a body runs in your own loop: rehearse its children one by one")
        _has_questions(plan)
        raw = record.parse(record.canonical(plan._run(data, Run(Noise(self._bits), rehearsal=True))))
        return Release(plan, raw, None)

    def release(self, plan: Plan[Any], *, note: str = "") -> Release:
        """Pay for the plan, run it on the data, return the answer."""
        self._check(plan)
        if plan.supervised is not None:
            raise PlanError("a plan without a body runs in your own loop: use curator.supervise(plan)")
        _has_questions(plan)
        stored = self.ledger.answer(self.accounts, plan.hash, self.private.address)
        if stored is not None:
            return Release(plan, record.parse(stored[1]), stored[0])
        receipt = self.ledger.spend(self.accounts, plan, data=self.private.address, grade=self._bits.grade, note=note)
        try:
            self.ledger.open(receipt)
            run = Run(Noise(self._bits))
            answer = guarded(lambda: record.canonical(plan._run(self.private._open(receipt), run)))
        except BaseException:  # an interrupt settles too
            self.ledger.settle(receipt, "failed")
            raise
        self.ledger.settle(receipt, "answered", answer)
        return Release(plan, record.parse(answer), receipt)

    @contextmanager
    def supervise(self, plan: Plan[Any], *, note: str = "") -> Iterator[Drawn]:
        """Your own loop: room for the whole plan is held, each child is drawn before it runs, leaving frees the rest.

        The data is open inside the block, and the receipt says "trusted loop": the promise covers what `run.release`
        emits, not what your code does with `run.data`.
        """
        self._check(plan)
        if plan.supervised is None:
            raise PlanError("only a plan made by reserve(...) without a body runs in your own loop: use release")
        receipt = self.ledger.hold(self.accounts, plan, data=self.private.address, grade=self._bits.grade, note=note)
        outcome = "failed"
        try:
            self.ledger.open(receipt)
            run = Drawn(
                Noise(self._bits),
                guarded(lambda: self.private._open(receipt)),
                self.ledger,
                receipt,
                Filter.of(plan.supervised),
            )
            try:
                yield run
                outcome = "failed" if run.failed else "answered"
            finally:
                run.finish()
        finally:
            self.ledger.close(receipt)
            self.ledger.settle(receipt, outcome)

    @contextmanager
    def session(self, plan: Interactive, *, note: str = "") -> Iterator[Session]:
        """Ask one question after another, each chosen after seeing the answers before it, for the plan's one price.

        The price is charged whole when the session opens; leaving the block ends it.
        """
        self._check(plan)
        if not isinstance(plan, Interactive):
            raise PlanError("this plan takes no questions: use curator.release(plan)")
        receipt = self.ledger.spend(self.accounts, plan, data=self.private.address, grade=self._bits.grade, note=note)
        outcome = "failed"
        try:
            self.ledger.open(receipt)
            rows = self._reader(plan, receipt)
            session = Session(plan, Run(Noise(self._bits)), receipt, self.private.table, rows)
            del rows  # what a traceback through this frame holds is the session, which lets go of the data
            try:
                yield session
            finally:
                session.close()
                outcome = "failed" if session.failed else "answered"
        finally:
            self.ledger.settle(receipt, outcome)

    def _reader(self, plan: Interactive, receipt: Receipt) -> Callable[[], Rows]:
        """How a session gets at the rows: as they were when it opened, or anew each time."""
        opened = guarded(lambda: self.private._open(receipt))
        return (lambda: self.private._open(receipt)) if plan.rereads else (lambda: opened)

    def _check(self, plan: Plan[Any]) -> None:
        if not isinstance(plan, Plan):
            raise checks.refuse("plan", type(plan).__name__, "a plan, such as mechanisms.Laplace(...)")
        if plan.unit != self.private.unit:
            raise PlanError(
                f"the plan protects [{plan.unit}], the data protects [{self.private.unit}]: build the plan with the "
                "data's own unit"
            )
        plan.check(self.private.table)
        rows = self.private.table.rows
        if rows and plan.delta > Fraction(1, rows):
            warnings.warn(
                f"delta = {float(plan.delta):g} is above 1/n with n = {rows} rows: that allows publishing somebody.",
                PrivacyWarning,
                stacklevel=3,
            )
