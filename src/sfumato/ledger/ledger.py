"""The ledger: every release is an entry, paid before the data is opened.

One writer at a time reads the accounts on the path, asks their filters, and appends; what one transaction writes
becomes durable together. A refusal changes nothing. Entries hold the plan, its event, what each account was charged and
who paid; what an account has spent is a function of its entries, kept beside them so that the n-th spend costs what the
first one did.

What a ledger does is done by its parts, which share one desk: the store, and who writes. This is their front.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from ..accounting.balance import Balance
from ..accounting.filters import Budget
from ..events import Event
from ..exhibits import Exhibit
from ..plan import Gauge, Plan, Receipt, Steps
from ..units import Unit
from . import parts
from .balances import balances
from .charges import Charges
from .counting import WINDOW
from .data_sets import DataSets
from .desk import Desk
from .governance import Governance
from .grants import Grants
from .holds import Holds
from .owners import Owners
from .payments import Payments
from .policy.approvals import Act, Approvals
from .policy.policy import Policy
from .proof.anchor import Anchor
from .proof.chain import Link
from .proof.verify import Progress, Report, verify
from .request import Names, Request
from .standing import Room, Standing
from .stores.base import Store

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


T = TypeVar("T")


class Ledger(Exhibit):
    """Accounts in a store, each with a budget that no adaptive choice can exceed.

    principal  who writes the entries; a claim, unless the store holds it
    """

    _card = "sfumato.cards:ledger"

    # The parts that attacks on ourselves replace by faulty ones.
    _desk_type: ClassVar[type[Desk]] = Desk
    _charges_type: ClassVar[type[Charges]] = Charges
    _payments_type: ClassVar[type[Payments]] = Payments

    def __init__(self, store: Store, *, principal: str | None = None) -> None:
        self._desk = self._desk_type(store, principal=principal)
        self._store = store
        self._charges = self._charges_type(self._desk)
        self._holds = Holds(self._desk, self._charges)
        self._payments = self._payments_type(self._desk, self._charges, self._holds)
        self._grants = Grants(self._desk)
        self._data_sets = DataSets(self._desk, self._grants)
        self._governance = Governance(self._desk, self._grants)
        self._standing = Standing(self._desk)

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

    def snapshot(self, ask: Callable[[], T]) -> T:
        """Ask several things of one state of the ledger, in one transaction. `ask` may be begun more than once."""
        return self._desk.snapshot(ask)

    def transaction(self, act: Callable[[], T]) -> T:
        """Do several things that become durable together, or not at all. `act` may be begun more than once."""
        return self._desk.transaction(act)

    # Paying: what a curator asks for. The promises are those of `plan.Ledger`.

    def path(self, accounts: Names, plan: Plan[Any, Any], *, data: str) -> Names:
        """Every account that the plan would be charged to: those named, all above them, and the data's own."""
        return self._charges.path(accounts, plan, data=data)

    def answer(self, accounts: Names, plan_hash: str, data: str) -> tuple[Receipt, bytes] | None:
        """The stored answer to the same plan on the same data version, paid on all accounts of the path."""
        return self._payments.answer(accounts, plan_hash, data)

    def quote(self, accounts: Names, plan: Plan[Any, Any], *, data: str = "") -> bool:
        """Would a spend be accepted now? Without data, by the named accounts and those above them."""
        return self._payments.quote(accounts, plan, data=data)

    def paid(
        self, key: str, accounts: Names, plan: Plan[Any, Any], *, data: str
    ) -> tuple[Receipt, bytes | None] | None:
        """What a retry under this key gets: its receipt, and the stored answer if there is one."""
        return self._payments.paid(key, accounts, plan, data=data)

    def prepaid(self, accounts: Names, plan: Plan[Any, Any], *, data: str) -> Receipt | None:
        """The receipt of the list that this plan was paid with, while it is not taken."""
        return self._payments.prepaid(accounts, plan, data=data)

    def spend(
        self,
        accounts: Names,
        plan: Plan[Any, Any],
        *,
        data: str,
        grade: str,
        note: str,
        key: str | None = None,
        owners: Owners | None = None,
    ) -> Receipt:
        """Charge every account on the path, or none; nothing for a part of a list that was prepaid."""
        return self._payments.pay(Request(accounts, plan, data, grade, note, key, owners))

    def prepay(
        self,
        accounts: Names,
        plan: Plan[Any, Any],
        *,
        data: str,
        grade: str,
        note: str,
        key: str | None = None,
        owners: Owners | None = None,
    ) -> Receipt:
        """Charge a list of releases as one; a later `spend` for one of its parts, on the same data, is paid with it."""
        return self._payments.pay(Request(accounts, plan, data, grade, note, key, owners), parts.LIST)

    def open(self, receipt: Receipt) -> None:
        """Mark the receipt opened, before data is touched. A receipt opens once."""
        self._payments.open(receipt)

    def settle(self, receipt: Receipt, outcome: str, answer: bytes | None = None) -> None:
        """Close the receipt as "answered" (with the stored bytes), "failed" or "interrupted". The charge stays."""
        self._payments.settle(receipt, outcome, answer)

    # Room for long work.

    def hold(
        self,
        accounts: Names,
        plan: Plan[Any, Any],
        *,
        data: str,
        grade: str,
        note: str,
        key: str | None = None,
        trusted: bool = True,
        owners: Owners | None = None,
    ) -> Receipt:
        """Set room aside for long work: all steps of a plan that has them, else what its loop will draw."""
        return self._holds.hold(Request(accounts, plan, data, grade, note, key, owners), trusted=trusted)

    def draw(self, receipt: Receipt, event: Event, delta: Fraction) -> None:
        """Spend a part of what is held, before that part runs."""
        self._holds.draw(receipt, event, delta)

    def draw_steps(self, receipt: Receipt, steps: int) -> Steps:
        """Spend so many steps of what is held, before they run; refused beyond the last one."""
        return self._holds.draw_steps(receipt, steps)

    def steps(self, receipt: Receipt) -> Steps:
        """How many steps were drawn, and how many can be."""
        return self._holds.steps(receipt)

    def close(self, receipt: Receipt) -> None:
        """Free what was held and not drawn."""
        self._holds.close(receipt)

    # Accounts and data sets. Each change is an entry with a reason.

    def open_account(
        self,
        name: str,
        budget: Budget | None,
        *,
        parent: str | None = None,
        level: str = "",
        unit: Unit | None = None,
        reason: str = "",
    ) -> None:
        """A new account. Its members and their shares of delta are fixed from now on.

        budget  None makes a folder: a name that others stand under, without a limit of its own
        parent  the account that it is a part of: whatever it spends is spent there too
        level   "organisation", "data set", "team", "project" or "person"; blocks have `open_block`
        unit    what it protects; without one, the first spend fixes it, where no policy says more
        """
        self._grants.open_account(name, budget, parent=parent, level=level, unit=unit, reason=reason)

    def change_limit(self, account: str, budget: Budget, *, reason: str) -> None:
        """Raise an account's limit, which takes a fresh share of delta, or lower it. Never above its parent's."""
        self._grants.change_limit(account, budget, reason=reason)

    def move(self, source: str, target: str, *, epsilon: Any = None, rho: Any = None, reason: str) -> None:
        """Take a part of one account's limit and give it to another one under the same parent."""
        self._grants.move(source, target, epsilon=epsilon, rho=rho, reason=reason)

    def close_account(self, account: str, *, reason: str) -> None:
        """Nothing more is paid from it, nor from what stands below it. What was spent stays spent."""
        self._grants.close_account(account, reason=reason)

    def register(self, data: str, *, accounts: tuple[str, ...] = (), same_as: str = "", reason: str) -> None:
        """The people of this data set have their budget in these accounts, or where that of another data set is.

        For a view or a copy under a new name, and for data about people who are in other data too. Accounts are only
        ever added: nothing that was charged before goes free.
        """
        self._data_sets.register(data, accounts=accounts, same_as=same_as, reason=reason)

    def change_owners(self, data: str, unit: Unit, owners: Owners, *, reason: str) -> None:
        """From now on these columns name the unit in the tables of a data set: for a column that was renamed or moved.
        Whoever does it answers for it that they name the same units."""
        self._data_sets.change_owners(data, unit, owners, reason=reason)

    def open_block(self, data: str, block: str, budget: Budget, *, account: str = "", reason: str = "") -> None:
        """A budget for one block of a data set (a day, a month): it protects what a unit has in that block.

        The data set's own account is charged too, and sums the blocks: its limit is that of a unit's whole life.
        """
        self._data_sets.open_block(data, block, budget, account=account, reason=reason)

    # What officers do.

    def policy(self) -> Policy | None:
        """The policy in force."""
        return self._governance.policy()

    def adopt(self, policy: Policy, *, reason: str) -> None:
        """From now on every process obeys this policy. The first one is adopted by a person whom it names an adopter;
        another one takes approvals under the policy before it."""
        self._governance.adopt(policy, reason=reason)

    def provision(self) -> tuple[str, ...]:
        """Bring the accounts to what the policy lists: open those that are missing, change limits that differ. All of
        it, or, where one is refused or needs approvals, none. Says what was done."""
        return self._governance.provision()

    def ask(self, act: Act, *, reason: str) -> str:
        """Ask others for approval; the name that they answer with."""
        return self._governance.ask(act, reason=reason)

    def pending(self) -> dict[str, Approvals]:
        """What was asked for, by name, with the approvals so far."""
        return self._governance.pending()

    def approve(self, name: str, *, reason: str) -> None:
        """Approve what was asked for under that name. An approval serves once, and runs out."""
        self._governance.approve(name, reason=reason)

    def declare(self, data: str, kind: str, text: str, *, recipients: str, reason: str) -> None:
        """Enter what leaves this data without differential privacy: a release "without DP", or an "invariant" that is
        published exactly. It costs nothing, and no guarantee covers it: reports list it beside what they promise."""
        self._governance.declare(data, kind, text, recipients=recipients, reason=reason)

    def unlock(self, account: str, reason: str) -> None:
        """An officer has looked at the failures and found them harmless."""
        self._governance.unlock(account, reason)

    def accept_restore(self, reason: str, principals: tuple[str, ...]) -> None:
        """Go on from this copy of the ledger, though its anchor or its head saw another: two persons answer for it."""
        self._governance.accept_restore(reason, principals)

    # Where accounts stand.

    def spent(self, account: str) -> tuple[Gauge, ...]:
        """What was spent on an account, in each currency that is still open. The limit is the guarantee."""
        return self._standing.spent(account)

    def balance(self, account: str, plan: Plan[Any, Any] | None = None) -> Balance | None:
        """What everything so far amounts to, beside the limit; with a plan, what it would be after it, and how many
        more like it fit then. None for an account without a limit of its own."""
        return self._standing.balance(account, plan)

    def balances(self, accounts: Collection[str] | None = None) -> dict[str, Balance | None]:
        """Where accounts stand, those named or all, and how many more fit of the kind that each was last charged
        for."""
        return balances(self._store, accounts)

    def left(self, account: str, plan: Plan[Any, Any] | None = None) -> str:
        """The same in words."""
        return self._standing.left(account, plan)

    def used(self, account: str, plan: Plan[Any, Any] | None = None) -> float | None:
        """The part of an account's limit that is gone: what everything so far amounts to, over the limit; with a plan,
        what would be gone after it (infinite where it does not fit). None for an account without a limit of its
        own."""
        return self._standing.used(account, plan)

    def refusal(self, account: str, plan: Plan[Any, Any], *, gauges: bool = False) -> str | None:
        """Why an account by itself has no room for a plan: what is asked, spent and left; with `gauges`, in each way
        of adding up that is open. None where it has room."""
        return self._standing.refusal(account, plan, gauges=gauges)

    def would_fit(self, account: str, budget: Budget, plan: Plan[Any, Any]) -> bool:
        """Would an account by itself have room for a plan, were its limit raised to that budget? Changes nothing, and
        does not ask who may raise it."""
        return self._standing.would_fit(account, budget, plan)

    def held(self, account: str) -> tuple[Receipt, ...]:
        """The receipts under which room is held there. Work that crashed leaves its hold: `ledger.close(receipt)`."""
        return self._standing.held(account)

    def room(self, account: str) -> Room:
        """What the account, and all above it, would still accept: `calibrate(..., account=ledger.room("patients"))`."""
        return self._standing.room(account)

    # What its entries say: `report.accounts`, imported when somebody asks.

    def statement(self, account: str, *, delta: Any = None) -> Statement:
        """Where an account stands: its limit, which is the guarantee, and what was spent. Reads the whole chain once.

        delta  at which the list of releases is priced beside; the account's own by default (1e-6 for budgets in rho)
        """
        from ..report import accounts

        return accounts.statement(self._store, account, delta=delta)

    def overview(self) -> Overview:
        """All accounts, each below the one that it belongs to, and what is spent of them."""
        from ..report import accounts

        return accounts.overview(self._store)

    def forecast(
        self,
        account: str,
        *,
        plan: Plan[Any, Any] | None = None,
        data: str | None = None,
        alpha: float = 0.05,
        error: float | None = None,
        size: float | None = None,
        window: timedelta = WINDOW,
        now: datetime | None = None,
    ) -> Forecast:
        """How much more fits, and until when at this rate. See `report.accounts.forecast`."""
        from ..report import accounts

        return accounts.forecast(
            self._store, account, plan=plan, data=data, alpha=alpha, error=error, size=size, window=window, now=now
        )

    def history(
        self,
        *,
        account: str | None = None,
        data: str | None = None,
        by: str | None = None,
        kind: str | None = None,
        first: int = 1,
        last: int | None = None,
    ) -> Iterator[Entry]:
        """The entries, oldest first. See `report.accounts.history`."""
        from ..report import accounts

        return accounts.history(self._store, account=account, data=data, by=by, kind=kind, first=first, last=last)

    def releases(
        self,
        *,
        account: str | None = None,
        data: str | None = None,
        by: str | None = None,
        price: bool = True,
        last: int | None = None,
        progress: Callable[[int], None] | None = None,
        also: Callable[[Link, Mapping[str, Any]], None] | None = None,
    ) -> Iterator[Released]:
        """One row per release, with everything that its entries tell. See `report.accounts.releases`."""
        from ..report import accounts

        return accounts.releases(
            self._store, account=account, data=data, by=by, price=price, last=last, progress=progress, also=also
        )

    def export(
        self,
        path: str | Path,
        *,
        what: str = "releases",
        format: str | None = None,
        overwrite: bool = False,
        price: bool = True,
        progress: Callable[[int, int], None] | None = None,
    ) -> Exported:
        """Write releases or entries as NDJSON, CSV or Parquet, by the file's ending. See `report.accounts.export`."""
        from ..report import accounts

        return accounts.export(
            self._store, path, what=what, format=format, overwrite=overwrite, price=price, progress=progress
        )

    def checklist(self, account: str, about: About | None = None, *, redact: Collection[str] = ()) -> Checklist:
        """The NIST SP 800-226 checklist of an account. See `report.accounts.checklist`."""
        from ..report import accounts

        return accounts.checklist(self._store, account, about, redact=redact)

    def registry(self, account: str, about: About | None = None, *, redact: Collection[str] = ()) -> str:
        """The entry of an account for the registry of deployments, as YAML. See `report.accounts.registry`."""
        from ..report import accounts

        return accounts.registry(self._store, account, about, redact=redact)

    def declared(self, *, data: str | None = None, last: int | None = None) -> Iterator[Declared]:
        """What left the data without differential privacy. See `report.accounts.declared`."""
        from ..report import accounts

        return accounts.declared(self._store, data=data, last=last)

    def entry(self, receipt: str) -> Entry | None:
        """The entry that a receipt was paid with, by its id."""
        from ..report import accounts

        return accounts.paid(self._store, receipt)

    def evidence(self, receipt: str) -> Evidence | None:
        """The stored answer of a receipt, and the checkpoint that covers it."""
        from ..report import accounts

        return accounts.evidence(self._store, receipt)

    def stored_answers(self, receipts: Iterable[str]) -> dict[str, bytes]:
        """What was released under these receipts, where the ledger stores it."""
        from ..report import accounts

        return accounts.stored_answers(self._store, receipts)

    def verify(
        self,
        anchor: Anchor | None = None,
        *,
        trusted: Collection[str] = (),
        state: bool = True,
        progress: Progress | None = None,
    ) -> Report:
        """Is the ledger what was written? See `verify.verify`."""
        return verify(self._store, anchor, trusted=trusted, state=state, progress=progress)
