"""The ledger: every release is an entry, paid before the data is opened.

One writer at a time reads the accounts on the path, asks their filters, and appends; what one transaction writes
becomes durable together. A refusal changes nothing. Entries hold the plan, its event, what each account was charged and
who paid; what an account has spent is a function of its entries, kept beside them so that the n-th spend costs what the
first one did.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from .. import display
from ..accounting.balance import Balance
from ..errors import BudgetError, LedgerError, UnsupportedEventError
from ..events import Event
from ..plan import Gauge, Plan, Receipt
from .balances import balance_of, balances
from .governing import Governing
from .proof.verify import Report, verify
from .spending import Spending
from .stores.base import Account
from .tree import above, found

if TYPE_CHECKING:
    from ..report.accounts import (
        About,
        Checklist,
        Declared,
        Entry,
        Evidence,
        Exported,
        Forecast,
        Overview,
        Released,
        Statement,
    )


class Ledger(Spending, Governing):
    """Accounts in a store, each with a budget that no adaptive choice can exceed.

    principal  who writes the entries; a claim, unless the store holds it
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.shut()

    def shut(self) -> None:
        """Let go of the store. With an anchor, the last entries get their checkpoint."""
        self._store.close()

    @property
    def continues(self) -> bool:
        """Does it hold what its anchor last saw? Also true where it has none, or is read without it."""
        return bool(getattr(self._store, "continues", True))

    def spent(self, account: str) -> tuple[Gauge, ...]:
        with self._store.reading() as book:
            filter_ = found(book, account).filter
        members = () if filter_ is None else filter_.open
        return tuple(Gauge(m.currency, m.spent, m.limit) for m in members if not m.required)

    def balance(self, account: str, plan: Plan[Any] | None = None) -> Balance | None:
        """What everything so far amounts to, beside the limit; with a plan, what it would be after it, and how many
        more like it fit then. None for an account without a limit of its own."""
        with self._store.reading() as book:
            state = found(book, account)
        return balance_of(state, None if plan is None else (plan.event, plan.delta))

    def left(self, account: str, plan: Plan[Any] | None = None) -> str:
        with self._store.reading() as book:
            state = found(book, account)
        balance = balance_of(state, None if plan is None else (plan.event, plan.delta))
        if balance is None:
            return "no limit of its own"
        text = f"{balance}" + (f", {len(state.held)} hold(s) open" if state.held else "")
        return text + (", closed" if state.closed else "")

    def used(self, account: str, plan: Plan[Any] | None = None) -> float | None:
        """The part of an account's limit that is gone: what everything so far amounts to, over the limit; with a plan,
        what would be gone after it (infinite where it does not fit). None for an account without a limit of its
        own."""
        with self._store.reading() as book:
            state = found(book, account)
        if state.filter is None:
            return None
        if plan is None:
            return float(state.filter.used)
        try:
            return float(state.filter.spend(plan.event, plan.delta, list(state.held.values())).used)
        except (BudgetError, UnsupportedEventError):
            return math.inf

    def refusal(self, account: str, plan: Plan[Any], *, gauges: bool = False) -> str | None:
        """Why an account by itself has no room for a plan: what is asked, spent and left; with `gauges`, in each way
        of adding up that is open. None where it has room."""
        with self._store.reading() as book:
            state = found(book, account)
        if state.filter is None:
            return None
        try:
            state.filter.charge(plan.event, plan.delta, list(state.held.values()))
        except (BudgetError, UnsupportedEventError) as problem:
            return "\n".join(state.filter.gauges(plan.event, plan.delta)) if gauges else str(problem)
        return None

    def held(self, account: str) -> tuple[Receipt, ...]:
        """The receipts under which room is held there. Work that crashed leaves its hold: `ledger.close(receipt)`."""
        with self._store.reading() as book:
            filed = [book.filed(id) for id in found(book, account).held]
        return tuple(each.receipt for each in filed if each is not None)

    def room(self, account: str) -> Room:
        """What the account, and all above it, would still accept: `calibrate(..., account=ledger.room("patients"))`."""
        with self._store.reading() as book:
            found(book, account)
        return Room(self, account)

    def statement(self, account: str, **how: Any) -> Statement:
        """Where an account stands: its limit, which is the guarantee, and what was spent. See
        `report.accounts.statement`."""
        from ..report import accounts

        return accounts.statement(self._store, account, **how)

    def balances(self, accounts: Collection[str] | None = None) -> dict[str, Balance | None]:
        """Where accounts stand, those named or all, and how many more fit of the kind that each was last charged for.
        See `ledger.balances`."""
        return balances(self._store, accounts)

    def overview(self) -> Overview:
        """All accounts, each below the one that it belongs to, and what is spent of them. See
        `report.accounts.overview`."""
        from ..report import accounts

        return accounts.overview(self._store)

    def forecast(self, account: str, **how: Any) -> Forecast:
        """How much more fits, and until when at this rate. See `report.accounts.forecast`."""
        from ..report import accounts

        return accounts.forecast(self._store, account, **how)

    def history(self, **which: Any) -> Iterator[Entry]:
        """The entries, oldest first. See `report.accounts.history`."""
        from ..report import accounts

        return accounts.history(self._store, **which)

    def releases(self, **which: Any) -> Iterator[Released]:
        """One row per release, with everything that its entries tell. See `report.accounts.releases`."""
        from ..report import accounts

        return accounts.releases(self._store, **which)

    def export(self, path: str | Path, **how: Any) -> Exported:
        """Write releases or entries as NDJSON, CSV or Parquet, by the file's ending. See `report.accounts.export`."""
        from ..report import accounts

        return accounts.export(self._store, path, **how)

    def checklist(self, account: str, about: About | None = None, **how: Any) -> Checklist:
        """The NIST SP 800-226 checklist of an account. See `report.accounts.checklist`."""
        from ..report import accounts

        return accounts.checklist(self._store, account, about, **how)

    def registry(self, account: str, about: About | None = None, **how: Any) -> str:
        """The entry of an account for the registry of deployments, as YAML. See `report.accounts.registry`."""
        from ..report import accounts

        return accounts.registry(self._store, account, about, **how)

    def declared(self, **which: Any) -> Iterator[Declared]:
        """What left the data without differential privacy. See `report.accounts.declared`."""
        from ..report import accounts

        return accounts.declared(self._store, **which)

    def entry(self, receipt: str) -> Entry | None:
        """The entry that a receipt was paid with, by its id. See `report.accounts.paid`."""
        from ..report import accounts

        return accounts.paid(self._store, receipt)

    def evidence(self, receipt: str) -> Evidence | None:
        """The stored answer of a receipt, and the checkpoint that covers it. See `report.accounts.evidence`."""
        from ..report import accounts

        return accounts.evidence(self._store, receipt)

    def stored_answers(self, receipts: Iterable[str]) -> dict[str, bytes]:
        """What was released under these receipts, where the ledger stores it. See `report.accounts.stored_answers`."""
        from ..report import accounts

        return accounts.stored_answers(self._store, receipts)

    def verify(self, **how: Any) -> Report:
        """Is the ledger what was written? See `verify.verify`."""
        return verify(self._store, **how)

    def _repr_html_(self) -> str:
        from ..report.accounts import page

        try:
            return page.ledger(self._store)
        except LedgerError as problem:  # closed, or not to be read: a notebook shows the words, not a traceback
            return display.card("Ledger", display.paragraph(problem))

    def _fits(self, account: str, event: Event, delta: Fraction) -> bool:
        with self._store.reading() as book:
            own = found(book, account)
            path: list[Account] = [own, *above(book, own)]
        try:
            for each in path:
                if each.filter is not None:
                    each.filter.charge(event, delta, list(each.held.values()))
        except BudgetError:
            return False
        return not any(each.closed for each in path)


@dataclass(frozen=True)
class Room:
    """An account, to be asked whether an event would fit. Asking costs nothing."""

    _ledger: Ledger
    _account: str

    def fits(self, event: Event, delta: Fraction) -> bool:
        return self._ledger._fits(self._account, event, delta)
