"""The desk: one project, its ledger and its curator, and the way of a release over it.

    with at_desk(project, account) as desk:
        offer = desk.quote(plan)                                   # price, error, budget before and after: free
        paid = desk.release(plan, Agreement.to(plan), note=...)    # pay, open, run, store; the budget afterwards

Nothing here prints, asks or ends a process: what must be agreed to is a value that comes back in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from ..accounting.budget import Budget
from ..curator import Curator
from ..errors import BudgetError, PolicyError, SfumatoError
from ..ledger import Ledger, MemoryLedger
from ..plan import Plan, Receipt
from ..project.project import Project
from ..release import Quote, Release
from ..sources.base import needed
from .budgets import Stand, accounts, room_for, stands, with_changes
from .documents import AccountDocument, Agreement, ReceiptDocument, receipt_document
from .problems import OfficeError
from .shortage import LESS, enough_for, refused_in_words, short_of
from .watch import SILENT, Watch


@dataclass(frozen=True)
class Offer:
    """What a release would cost, and what it would leave.

    short  the accounts that have no room for it, with a budget that would be enough
    """

    quote: Quote
    budget: list[AccountDocument]
    short: Mapping[str, Budget | None]


@dataclass(frozen=True)
class Paid:
    """A release that was paid for, now or before, and where its accounts stand after it.

    why_free  in words, where nothing was paid this time
    """

    release: Release
    receipt: ReceiptDocument
    free: bool
    why_free: str
    budget: list[AccountDocument]
    alert: str | None


@dataclass(frozen=True)
class Desk:
    """A project that is open for releases, with its ledger."""

    project: Project
    ledger: Ledger
    curator: Curator
    watch: Watch = SILENT

    def path(self, plan: Plan[Any, Any]) -> tuple[str, ...]:
        """Every account that pays for the plan."""
        return self.ledger.path(self.curator.accounts, plan, data=self.curator.private.address)

    def stands(self, path: tuple[str, ...], plan: Plan[Any, Any] | None = None) -> dict[str, Stand]:
        """Where these accounts stand, or would stand after a plan."""
        return stands(self.ledger, path, plan)

    def budget(
        self,
        before: Mapping[str, Stand],
        after: Mapping[str, Stand] | None = None,
        room: Mapping[str, int | None] | None = None,
    ) -> list[AccountDocument]:
        """The accounts as they stand now, beside how they stood before."""
        end = stands(self.ledger, before) if after is None else after
        return with_changes(accounts(self.ledger, before), before, end, room)

    def room(self, path: tuple[str, ...], plan: Plan[Any, Any]) -> dict[str, int | None]:
        """How many more like the plan, which was paid, fit on each of these accounts."""
        return room_for(self.ledger, path, plan, paid=True)

    def quote(self, plan: Plan[Any, Any], *, gauges: bool = False, repeats: bool = False) -> Offer:
        """Price, expected error and what the accounts would say. Charges nothing, reads no data.

        gauges   say of each way to add up why it refuses
        repeats  tell how many more like it fit also where nothing is due for this one
        """
        quote = self.curator.quote(plan)
        path = tuple(quote.used)
        due = quote.due is None
        room = room_for(self.ledger, path, plan, paid=not due) if due or repeats else None
        now = self.stands(path)
        after = now if quote.due is not None else self.stands(path, plan)
        budget, short = [], {}
        for account in self.budget(now, after, room):
            if account.fits is False:
                why = refused_in_words(self.ledger, account.account, plan, gauges=gauges)
                short[account.account] = enough_for(self.ledger, account.account, plan)
                account = replace(account, refusal="\n".join(why))
            budget.append(account)
        return Offer(quote, budget, short)

    def release(
        self, plan: Plan[Any, Any], agreement: Agreement, *, note: str = "", key: str | None = None, work: str = ""
    ) -> Paid:
        """Release a plan. What goes wrong before it is paid says so, and so does what is stopped by hand."""
        agreement.covers(plan)
        path = self.path(plan)
        before = self.stands(path)
        head = self.ledger.overview().number

        def stopped() -> Exception:
            return self._interrupted(plan, head)

        release = self.run(plan, path, note=note, key=key, work=work, stopped=stopped)
        assert release.receipt is not None
        entry = self.ledger.entry(release.receipt.id)
        in_part = entry is not None and entry.kind == "part"
        return Paid(
            release,
            receipt_document(release.receipt, entry),
            in_part or (entry is not None and entry.number <= head),
            "paid as a part of a list" if in_part else "answered before: free",
            self.budget(before, room=self.room(path, plan)),
            self.project.alert(self.ledger),
        )

    def run(
        self,
        plan: Plan[Any, Any],
        path: tuple[str, ...],
        *,
        note: str,
        key: str | None,
        stopped: Callable[[], Exception],
        work: str = "",
        less: str = LESS,
        stepwise: Callable[[Callable[[Any], None] | None], Plan[Any, Any]] | None = None,
    ) -> Release:
        """Pay and run. A budget that is short, and a stop by hand, are told in words of their own.

        stepwise  the same plan, with what takes the progress of its steps
        """
        self.watch.opens()
        try:
            with self.watch.stops() as was_stopped:
                if stepwise is not None:
                    with self.watch.steps(plan.steps or 0) as bar:
                        return self.curator.release(stepwise(bar), note=note, key=key)
                with self.watch.works(work):
                    return self.curator.release(plan, note=note, key=key)
        except PolicyError:
            raise
        except BudgetError as error:
            raise short_of(self.ledger, path, plan, error, less) from None
        except BaseException:
            if was_stopped():
                raise stopped() from None
            raise

    def _interrupted(self, plan: Plan[Any, Any], head: int) -> OfficeError:
        """Stopped by hand. Whether it was paid by then is the ledger's to say, and public."""
        receipts = (entry.fields.get("receipt") for entry in self.ledger.history(first=head + 1))
        paid = any(isinstance(receipt, Receipt) and receipt.plan_hash == plan.hash for receipt in receipts)
        if not paid:
            why = "it was stopped by hand; nothing was charged"
            return OfficeError("interrupted", why, "ask again", "interrupted")
        return OfficeError(
            "interrupted",
            "it was stopped by hand after it was paid; the charge stays, since when it was stopped may tell of the "
            "data",
            "ask again: that is a new release, and pays again",
            "interrupted",
        )


@contextmanager
def at_desk(
    project: Project, account: str | None = None, *, read_only: bool = False, watch: Watch = SILENT
) -> Iterator[Desk]:
    """Open a project for releases; `read_only` for quotes."""
    with project.ledger(read_only=read_only) as ledger:
        yield Desk(project, ledger, project.curator(ledger, account), watch)


def ready(project: Project, watch: Watch = SILENT) -> None:
    """Before anything is paid: the data is there, and so is what reads it. A release would pay, and then fail."""
    project.need_data()
    with watch.loads():
        for name in ("duckdb", "pyarrow"):
            needed(name)


def rehearse(project: Project, plan: Plan[Any, Any], *, rows: int | None = None, watch: Watch = SILENT) -> Release:
    """Run a plan of a project on made-up rows. The ledger is not asked, and need not be there."""
    curator = Curator(project.private, MemoryLedger({project.name: Budget(epsilon=1)}))
    try:
        with watch.works("rehearsing the query"):
            return curator.rehearse(plan, rows=rows)
    except (SfumatoError, OSError):
        raise
    except Exception as error:  # no data was read, so all may be told
        raise OfficeError(
            "the rehearsal failed", f"{type(error).__name__}: {error}", "change the query", "refused", "rehearsal"
        ) from error
