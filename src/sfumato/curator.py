"""The one door: a Curator pays for a plan, opens the data, runs it.

    release(plan), in this order, always:
      0  a key used before: its stored release, or a refusal; a key never pays twice, and its data opens once
         the same plan on the same data version, already answered and paid on these accounts: the stored release; also
         where an earlier version paid for it in another form
      1  the plan must fit the data (unit, columns), and its files the schema; whatever would fail with
         any rows is refused
      2  the ledger charges every account on the path, or refuses; a part of a list that was prepaid is charged nothing,
         and is taken from the list in the same step (under the key, if one is given: so it is never taken twice)
      3  the ledger marks the receipt opened; a receipt opens once. 2 and 3 are durable together, before 4
      4  the data is opened
      5  the plan runs; noise only from run.noise
      6  the result is made a value and stored with the receipt
      7  the ledger settles the receipt
    Any exception after 2 settles it as failed (or interrupted, which counts towards no lock): the charge stays, and a
    fixed text is raised that holds no data.

    prepay(sequence) does 1 and 2 for a whole list, as one price; then release(part) of each, whenever it is wanted.

    A plan with steps is held whole at 2, draws each step before it runs at 5, and frees at 7 what it did not draw. One
    that died on the way goes on under its key: the data opens again, for the steps that are left.

These guards stop accidents, not hostile code in the same process.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from typing import Any, NamedTuple

from . import checks, record
from .accounting.filters import Filter
from .errors import ArgumentError, BudgetError, LedgerError, PlanError, PrivacyWarning, ReceiptError, ended_by, guarded
from .held import Stepwise, drawing, settling
from .interactive import Interactive, Session
from .noise import Bits, Noise, SecureBits
from .plan import Ledger, Plan, Receipt, Run
from .private import Private
from .release import Quote, Release
from .rows import Rows

_ANSWERED = "nothing: it is answered already, and the stored answer is free"
_PREPAID = "nothing: it is paid already, as a part of a list"


def _has_questions(plan: Plan[Any, Any]) -> None:
    if isinstance(plan, Interactive) and not plan.agenda:
        raise PlanError("this plan names no questions: ask them in curator.session(plan), or give it some")


def _ran(plan: Plan[Any, Any], data: Any, run: Run) -> bytes:
    """What a plan releases, as a value; nothing is left open."""
    try:
        return record.canonical(plan._run(data, run))
    finally:
        plan.opens.close(data)


class _Before(NamedTuple):
    """A plan in the form that the ledger knows, what was paid and answered, and whether it pays step by step."""

    plan: Plan[Any, Any]
    receipt: Receipt | None
    answer: bytes | None
    by_steps: bool

    @property
    def release(self) -> Release | None:
        """The stored one."""
        return None if self.answer is None else Release(self.plan, record.parse(self.answer), self.receipt)


class Curator:
    """Runs plans on private data, and only with a receipt from the ledger.

    >>> from sfumato import Budget, Curator, MemoryLedger, Private, Schema, Unit, bounds, mechanisms, schema
    >>> people = Private("people", {"age": [25, 37, 52]}, unit=Unit(), schema=Schema.of(age=schema.whole(0, 110)))
    >>> curator = Curator(people, MemoryLedger({"people": Budget(epsilon=1)}))
    >>> count = mechanisms.Laplace(query=bounds.count(Unit()), epsilon=0.5)
    >>> print(curator.quote(count))
    price     epsilon = 0.5
    hides     one row, present or absent
    error     ±5.993 at 95 %
    budget    people: 0 of 1 epsilon spent; this one makes it 0.5; room for about 1 more like it
    verdict   fits the budget
    >>> release = curator.release(count)
    >>> curator.release(count).value == release.value  # asked again: the same answer, free
    True

    accounts  who asks: a team's account, a person's. Whatever they are, the accounts above them and those of the data
              pay too; by default only these do
    """

    def __init__(
        self, private: Private, ledger: Ledger, *, accounts: tuple[str, ...] | None = None, bits: Bits | None = None
    ) -> None:
        if not isinstance(private, Private):
            raise checks.refuse("private", type(private).__name__, "a Private")
        self.private = private
        self.ledger = ledger
        self.accounts = accounts if accounts is not None else ()
        if not isinstance(self.accounts, tuple) or accounts == ():
            raise checks.refuse("accounts", accounts, "a tuple of at least one account name")
        self._bits = bits if bits is not None else SecureBits()
        if self._bits.grade != "exact":
            raise ArgumentError("bits is not allowed: a Curator releases with SecureBits only; seeds are for tests.")

    def quote(self, plan: Plan[Any, Any]) -> Quote:
        """Price and expected error, from the plan's own fields. Touches no data and costs nothing."""
        self._check(plan)
        quote = self.ledger.snapshot(lambda: self._quoted(self.form_of(plan)))
        if quote.due is not _ANSWERED:
            self.private.compare(quote.plan, quoting=True)
        return quote

    def _quoted(self, plan: Plan[Any, Any]) -> Quote:
        data = self.private.address
        path = self.ledger.path(self.accounts, plan, data=data)
        due = self._due(plan)
        affordable = due is _ANSWERED or self.ledger.quote(self.accounts, plan, data=data)
        unpaid = plan if due is None else None
        left = tuple(f"{name}: {self.ledger.left(name, unpaid)}" for name in path)
        return Quote(plan, affordable, left, {name: self._used(name, plan, due) for name in path}, due)

    def _due(self, plan: Plan[Any, Any]) -> str | None:
        """Why nothing is to be paid now; None where the price is."""
        data = self.private.address
        with suppress(BudgetError):  # who may not ask is told the price
            if self.ledger.answer(self.accounts, plan.hash, data) is not None:
                return _ANSWERED
        return _PREPAID if self.ledger.prepaid(self.accounts, plan, data=data) is not None else None

    def form_of(self, plan: Plan[Any, Any], key: str | None = None) -> Plan[Any, Any]:
        """The plan as the ledger knows it: an earlier form of it that is answered, prepaid or paid under this key, else
        the plan itself. Both ask the same; nothing is charged here."""
        first, *others = plan.forms
        if not others or self._known(first, key):
            return first
        return next((each for each in others if self._known(each, key)), first)

    def _known(self, plan: Plan[Any, Any], key: str | None) -> bool:
        data = self.private.address
        with suppress(BudgetError, ReceiptError):  # whoever may not ask, or asks otherwise, is told so later
            if key is not None and self.ledger.paid(key, self.accounts, plan, data=data) is not None:
                return True
        with suppress(BudgetError):
            return self._due(plan) is not None
        return False

    def _used(self, account: str, plan: Plan[Any, Any], due: str | None) -> tuple[float | None, float | None]:
        before = self.ledger.used(account)
        return before, before if due is not None else self.ledger.used(account, plan)

    def rehearse(self, plan: Plan[Any, Any], *, rows: int | None = None) -> Release:
        """Run the plan on made-up rows from the schema, with full error texts. Free; tells nothing about the data.

        rows  how many, for each private table; by default as many as show something: 300, or more where keys are to
              pass a threshold
        """
        self._check(plan)
        rows = plan.rehearsal_rows if rows is None else checks.whole(rows, "rows", most=10**7)
        if plan.supervised is not None:
            raise PlanError("a plan without a body runs in your own loop: rehearse its children one by one")
        _has_questions(plan)
        made_up = self.private.rehearsal(rows, self._bits.words, plan.opens)
        raw = record.parse(_ran(plan, made_up, Run(Noise(self._bits), rehearsal=True, steps=plan.steps)))
        return Release(plan, raw, None)

    def release(self, plan: Plan[Any, Any], *, note: str = "", key: str | None = None) -> Release:
        """Pay for the plan, run it on the data, return the answer.

        key  names this request: a retry with the same key, after a time-out or a crash, gets the stored answer and
             never pays again; a plan with steps goes on with those that were not drawn
        """
        self._check(plan)
        if plan.supervised is not None:
            raise PlanError("a plan without a body runs in your own loop: use curator.supervise(plan)")
        _has_questions(plan)
        before = self._before(plan, key)
        if before.release is not None:
            return before.release
        with self.private.compared(before.plan) as empty:
            if before.by_steps:
                return self._stepwise(before.plan, note, key)
            return self._at_once(before.plan, note, key, empty)

    def _at_once(self, plan: Plan[Any, Any], note: str, key: str | None, empty: Any) -> Release:
        """Pay, open what was `compared`, run, settle."""
        opened: list[Receipt] = []
        try:
            receipt = self.ledger.transaction(lambda: self._paid_and_opened(plan, note, key, opened))
        except KeyboardInterrupt:  # perhaps between the commit and the line above, which then never ends
            if opened and key is None:  # under a key it may be a retry's; nobody else has this one
                self._settle_if_filed(opened[-1], "interrupted")
            raise
        try:
            run = Run(Noise(self._bits), steps=plan.steps)
            answer = guarded(lambda: _ran(plan, self.private._open(receipt, plan.opens, empty), run))
        except (ReceiptError, LedgerError, BudgetError):
            raise  # not opened, or by another request with this key, whose outcome it is: no data was touched here
        except BaseException as problem:  # an interrupt settles too
            self._settle_if_filed(receipt, ended_by(problem))
            raise
        self.ledger.settle(receipt, "answered", answer)
        return Release(plan, record.parse(answer), receipt)

    def _settle_if_filed(self, receipt: Receipt, outcome: str) -> None:
        """A ledger that cannot be written keeps it as opened, which never answers; one that was stopped before its
        commit does not know it."""
        with suppress(LedgerError, ReceiptError):
            self.ledger.settle(receipt, outcome)

    def _before(self, plan: Plan[Any, Any], key: str | None) -> _Before:
        """What the ledger knows of a plan before it is paid for, of one state of it."""
        return self.ledger.snapshot(lambda: self._known_before(plan, key))

    def _known_before(self, plan: Plan[Any, Any], key: str | None) -> _Before:
        plan, data = self.form_of(plan, key), self.private.address
        paid = None if key is None else self.ledger.paid(key, self.accounts, plan, data=data)
        receipt, answer = paid or self.ledger.answer(self.accounts, plan.hash, data) or (None, None)
        by_steps = plan.steps is not None and answer is None
        if by_steps and paid is not None:
            by_steps = paid[0].by_steps
        elif by_steps:  # as a part of a list it was paid whole
            by_steps = self.ledger.prepaid(self.accounts, plan, data=data) is None
        return _Before(plan, receipt, answer, by_steps)

    def _paid_and_opened(self, plan: Plan[Any, Any], note: str, key: str | None, opened: list[Receipt]) -> Receipt:
        """In this order, and durable as one step before data is touched. What was opened is noted for interrupts."""
        data, grade, owners = self.private.address, self._grade(plan), self.private.owners
        receipt = self.ledger.spend(self.accounts, plan, data=data, grade=grade, note=note, key=key, owners=owners)
        self.ledger.open(receipt)
        opened.append(receipt)
        return receipt

    def _stepwise(self, plan: Plan[Any, Any], note: str, key: str | None) -> Release:
        """Hold all steps, draw each before it runs, free the rest; or go on where an earlier process ended."""
        receipt = self._hold(plan, note, key, trusted=False)
        with settling(Noise(self._bits), self.ledger, receipt, key) as run:
            answer = guarded(lambda: _ran(plan, self._rows_left(plan, run), run))
            run.answer(answer)
        return Release(plan, record.parse(answer), receipt)

    def _hold(self, plan: Plan[Any, Any], note: str, key: str | None, *, trusted: bool) -> Receipt:
        data, grade = self.private.address, self._grade(plan)
        return self.ledger.hold(
            self.accounts, plan, data=data, grade=grade, note=note, key=key, trusted=trusted, owners=self.private.owners
        )

    def _rows_left(self, plan: Plan[Any, Any], run: Stepwise) -> Any:
        """The data; none of it where every step was drawn, and the plan ends from what they released."""
        if run.left:
            return self.private._open(run.receipt, plan.opens)
        return self.private.rehearsal(0, self._bits.words, plan.opens)

    def prepay(self, plan: Plan[Any, Any], *, note: str = "", key: str | None = None) -> Receipt:
        """Pay for a list of releases as one, `sequence(...)`; `release` of each of its parts then costs nothing more.

        The list has one price, below the sum of its parts' where composition gives that. Each part is released once,
        on this version of the data; a part whose data was opened and that has no answer is gone, and pays anew.

        key  names this request: a retry with the same key gets the same receipt and never pays again
        """
        checks.instance(plan, Plan, "plan", "a list of releases: sequence(...)")
        for part in plan.compared:
            self._check(part)
            _has_questions(part)
        self._small(plan)
        for part in plan.compared:
            self.private.compare(part)
        data, grade, owners = self.private.address, self._grade(plan), self.private.owners
        return self.ledger.prepay(self.accounts, plan, data=data, grade=grade, note=note, key=key, owners=owners)

    @contextmanager
    def supervise(self, plan: Plan[Any, Any], *, note: str = "", key: str | None = None) -> Iterator[Any]:
        """Your own loop: room for the whole plan is held, each child is drawn before it runs, leaving frees the rest.

        The data is open inside the block, and the receipt says "trusted loop": the promise covers what `run.release`
        emits, not what your code does with `run.data`. Of a plan with steps the block gets the plan's own loop, and
        each step is drawn before it runs ("trusted steps"); under a key it goes on after a crash.
        """
        self._check(plan)
        self.private.compare(plan)
        if plan.steps is not None:
            if type(plan)._loop is Plan._loop:
                raise PlanError("this plan runs its steps by itself: use curator.release(plan)")
            if key is not None:  # refused where it is over
                self.ledger.paid(key, self.accounts, plan, data=self.private.address)
            receipt = self._hold(plan, note, key, trusted=True)
            with settling(Noise(self._bits), self.ledger, receipt, key) as steps:
                loop = plan._loop(guarded(lambda: self._rows_left(plan, steps)), steps)
                try:
                    yield loop
                    steps.answer(None)
                finally:
                    loop.close()  # it lets go of the data
            return
        if plan.supervised is None:
            raise PlanError("only a plan made by reserve(...) without a body runs in your own loop: use release")
        receipt = self._receipt(self.ledger.hold, plan, note, key)
        self._mark_opened(receipt, key)
        reserve = Filter.of(plan.supervised)
        with drawing(
            Noise(self._bits), self.ledger, receipt, reserve, lambda: self.private._open(receipt, plan.opens)
        ) as run:
            yield run

    @contextmanager
    def session(self, plan: Interactive, *, note: str = "", key: str | None = None) -> Iterator[Session]:
        """Ask one question after another, each chosen after seeing the answers before it, for the plan's one price.

        The price is charged whole when the session opens; leaving the block ends it.
        """
        self._check(plan)
        if not isinstance(plan, Interactive):
            raise PlanError("this plan takes no questions: use curator.release(plan)")
        self.private.compare(plan)
        receipt = self._receipt(self.ledger.spend, plan, note, key)
        outcome: str | None = None
        self._mark_opened(receipt, key)
        try:
            rows = self._reader(plan, receipt)
            session = Session(plan, Run(Noise(self._bits)), receipt, self.private.table, rows)
            del rows  # what a traceback through this frame holds is the session, which lets go of the data
            try:
                yield session
            finally:
                session.close()
                outcome = session.ended
        except BaseException as problem:
            outcome = outcome or ended_by(problem)
            raise
        finally:
            self.ledger.settle(receipt, outcome or "failed")

    def _receipt(self, pay: Callable[..., Receipt], plan: Plan[Any, Any], note: str, key: str | None) -> Receipt:
        """Pay for work whose answers are not stored: a retry under its key goes on only if the data was not opened."""
        data = self.private.address
        before = None if key is None else self.ledger.paid(key, self.accounts, plan, data=data)
        if before is not None:
            return before[0]
        grade, owners = self._grade(plan), self.private.owners
        return pay(self.accounts, plan, data=data, grade=grade, note=note, key=key, owners=owners)

    def _grade(self, plan: Plan[Any, Any]) -> str:
        """Of the noise that is used: the weaker of what the bits and the plan allow."""
        return self._bits.grade if plan.grade == "exact" else plan.grade

    def _mark_opened(self, receipt: Receipt, key: str | None) -> None:
        """Before data is touched. Under a key, another request may have opened it, or a retry still will: whatever
        stands in the way then, the receipt is not ours to close."""
        try:
            self.ledger.open(receipt)
        except BaseException as problem:
            if key is None:
                if receipt.loop == "trusted loop":
                    self.ledger.close(receipt)
                self.ledger.settle(receipt, ended_by(problem))
            raise

    def _reader(self, plan: Interactive, receipt: Receipt) -> Callable[[], Rows]:
        """How a session gets at the rows: as they were when it opened, or anew each time."""
        opened = guarded(lambda: self.private._open(receipt, plan.opens))
        return (lambda: self.private._open(receipt, plan.opens)) if plan.rereads else (lambda: opened)

    def _check(self, plan: Plan[Any, Any]) -> None:
        if not isinstance(plan, Plan):
            raise checks.refuse("plan", type(plan).__name__, "a plan, such as mechanisms.Laplace(...)")
        if plan.unit != self.private.unit:
            raise PlanError(
                f"the plan protects [{plan.unit}], the data protects [{self.private.unit}]: build the plan with the "
                "data's own unit"
            )
        plan.opens.check_unit(plan.unit)
        plan.check_schema(self.private.schema)
        self._small(plan, stacklevel=4)

    def _small(self, plan: Plan[Any, Any], *, stacklevel: int = 3) -> None:
        rows = self.private.size
        if rows and plan.delta > Fraction(1, rows):
            warnings.warn(
                f"delta = {float(plan.delta):g} is above 1/n with n = {rows} rows: that allows publishing somebody.",
                PrivacyWarning,
                stacklevel=stacklevel,
            )
