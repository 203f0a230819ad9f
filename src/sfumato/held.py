"""Runs that draw on room held for them in the ledger: in the user's own loop, or step by step.

A draw is durable in the ledger before it returns, so whatever ran is paid for, wherever the process died.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from .accounting.filters import Filter
from .errors import BudgetError, LedgerError, PlanError, ReceiptError, ended_by, guarded
from .noise import Noise
from .plan import Ledger, Plan, Receipt, Run
from .rows import Rows

_REFUSALS = (BudgetError, LedgerError, ReceiptError)
_GOES_ON = "What was drawn is paid, and the rest is still held: the same call with the same key goes on from there."
_OVER = "this block is over: what was held is freed, and nothing more can be drawn"


class Drawn(Run):
    """A run in the user's own loop: each child is drawn from the hold before it runs."""

    def __init__(self, noise: Noise, rows: Rows, ledger: Ledger, receipt: Receipt, reserve: Filter) -> None:
        super().__init__(noise, rows=rows, reserve=reserve)
        self.receipt = receipt
        self._ledger = ledger
        self._closed = False

    @property
    def data(self) -> Rows:
        """The data itself, for code that keeps its own loop. The promise covers what `release` emits, nothing else."""
        if self._closed or self._rows is None:
            raise PlanError("this block is over: the data is closed again")
        return self._rows

    def _pay(self, child: Plan[Any, Any]) -> None:
        if self._closed:
            raise BudgetError(_OVER)
        super()._pay(child)
        self._ledger.draw(self.receipt, child.event, child.delta)

    def finish(self) -> None:
        self._closed = True
        self._rows = None


@contextmanager
def drawing(
    noise: Noise, ledger: Ledger, receipt: Receipt, reserve: Filter, opened: Callable[[], Rows]
) -> Iterator[Drawn]:
    """A run in the user's own loop, on the data that is opened for it; leaving frees what was not drawn."""
    outcome, run = "failed", None
    try:
        run = Drawn(noise, guarded(opened), ledger, receipt, reserve)
        yield run
        outcome = run.ended
    except BaseException as problem:
        outcome = ended_by(problem) if run is None or not run.failed else run.ended
        raise
    finally:
        if run is not None:
            run.finish()
        ledger.close(receipt)
        ledger.settle(receipt, outcome)


class Stepwise(Run):
    """A run whose steps are drawn from the hold before they run. It may go on with what an earlier process began.

    refusal  what the ledger said where it would not let a step be drawn: no word about the data, so it may be told
    """

    def __init__(self, noise: Noise, ledger: Ledger, receipt: Receipt) -> None:
        drawn, left = ledger.steps(receipt)
        super().__init__(noise, steps=drawn + left)
        self._taken = drawn
        self.receipt = receipt
        self.refusal: Exception | None = None
        self.closed = False
        self._ledger = ledger

    def steps_of(self, plan: Plan[Any, Any]) -> Run:
        if plan.steps is None or plan.event != self.receipt.event:
            raise PlanError("these steps are held for another plan")
        return self

    def _take(self, steps: int) -> None:
        if self.closed:
            raise BudgetError(_OVER)
        try:
            ledger_steps = self._ledger.draw_steps(self.receipt, steps)
        except _REFUSALS as refusal:
            self.refusal = refusal.anew()
            raise
        self.refusal = None
        # Another process may draw under the same key: what the ledger says counts.
        self._taken, self._steps = ledger_steps.drawn, ledger_steps.drawn + ledger_steps.left

    def answer(self, answer: bytes | None) -> None:
        """Store what was released, if it is stored; what was not drawn is freed."""
        if answer is not None and not self.drawn:
            raise PlanError("this plan has steps and drew none: call run.draw(k) before each k steps")
        self.closed = True
        self._ledger.settle(self.receipt, self.ended, answer)


@contextmanager
def settling(noise: Noise, ledger: Ledger, receipt: Receipt, key: str | None) -> Iterator[Stepwise]:
    """A run of steps, which ends with `run.answer`. Whatever ends it before settles it as failed, but for what a retry
    under its key outlives: an interrupt, and a ledger that did not let a step be drawn. Neither depends on the data,
    nor counts towards the lock of an account."""
    run: Stepwise | None = None
    try:
        run = Stepwise(noise, ledger, receipt)
        if run.left:
            ledger.open(receipt)
        yield run
    except BaseException as problem:
        refused = isinstance(problem, _REFUSALS)
        raised = problem if refused or run is None or run.refusal is None else run.refusal
        from_outside = refused or raised is not problem or isinstance(problem, KeyboardInterrupt)
        if key is None or not from_outside:
            outcome = "interrupted" if from_outside and not (run is not None and run.failed) else "failed"
            with suppress(*_REFUSALS):  # a ledger that cannot be written keeps it as opened, which never answers
                ledger.settle(receipt, outcome)
        elif not isinstance(raised, ReceiptError):
            raised.add_note(_GOES_ON)
        if raised is problem:
            raise
        raise raised from None
    finally:
        if run is not None:
            run.closed = True
