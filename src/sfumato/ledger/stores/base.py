"""Where a ledger writes: a chain of entries that only grows, and beside it the state that they amount to.

A store knows nothing of budgets. It opens one writing transaction at a time, in which the ledger reads the state of the
accounts and receipts it needs, appends entries, and puts the new state; all of it becomes durable together, or none.
The state is a cache: replaying the entries gives it again, and `verify` does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Sequence as Several
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

from ...accounting.filters import Budget, Filter, HeldSteps, Hold
from ...errors import RecordError
from ...plan import Receipt
from ...record import canonical, moved, parse, record
from ...units import Unit
from ..proof.chain import Link


@record("account-state/1")
@dataclass(frozen=True, kw_only=True)
class Account:
    """What an account has come to.

    filter    its budget and what was spent of it; None for a folder, which has no limit of its own
    unit      what it protects; fixed when it is opened, or by the first spend
    promised  the largest budget that it ever had: the guarantee
    granted   who opened it or raised its limit
    """

    name: str
    filter: Filter | None
    parent: str | None = None
    level: str = ""
    unit: Unit | None = None
    promised: Budget | None = None
    granted: tuple[str, ...] = ()
    held: Mapping[str, Hold | HeldSteps] = field(default_factory=dict)
    failures: int = 0
    closed: bool = False


# An account moves with every spend, and only in a few numbers: these are stored beside the rest of it.


def totals(account: Account) -> bytes:
    """What moves: the number of releases and failures, and what each member has spent."""
    members = () if account.filter is None else account.filter.open
    count = 0 if account.filter is None else account.filter.count
    return canonical([count, account.failures, [m.spent for m in members], [m.delta_spent for m in members]])


_NOTHING = Fraction(0)


def rest(account: Account) -> bytes:
    """What stays: the account with nothing spent."""
    members = () if account.filter is None else account.filter.open
    return canonical(_at(account, 0, 0, [_NOTHING] * len(members), [_NOTHING] * len(members)))


def whole(stored_rest: bytes, stored_totals: bytes) -> Account:
    """The account, from the two."""
    account, numbers = parse(stored_rest, Account), parse(stored_totals, tuple)
    try:
        if rest(account) != stored_rest:
            raise RecordError("a stored account holds numbers that do not belong there")
        _check_totals(*numbers)
        return _at(account, *numbers)
    except (TypeError, ValueError) as problem:
        raise RecordError("a stored account is malformed") from problem


def _check_totals(count: Any, failures: Any, spent: Several[Any], failed: Several[Any]) -> None:
    counts = all(type(number) is int and number >= 0 for number in (count, failures))
    if not counts or not all(type(number) is Fraction and number >= 0 for number in (*spent, *failed)):
        raise RecordError("the numbers of a stored account are malformed")


def _at(account: Account, count: int, failures: int, spent: Several[Any], failed: Several[Any]) -> Account:
    if account.filter is None:
        return moved(account, failures=failures)
    pairs = zip(account.filter.open, spent, failed, strict=True)
    members = tuple([moved(member, spent=s, delta_spent=f) for member, s, f in pairs])
    return moved(account, failures=failures, filter=moved(account.filter, open=members, count=count))


def only_moved(before: Account | None, after: Account) -> bool:
    """Do they differ in nothing but what moves? By identity: a spend hands on what it does not change."""
    if before is None or before.unit is not after.unit or before.held is not after.held:
        return False
    if before.promised is not after.promised or before.granted is not after.granted or before.closed != after.closed:
        return False
    if before.parent != after.parent or before.level != after.level:
        return False
    one, other = before.filter, after.filter
    if one is None or other is None or len(one.open) != len(other.open):
        return one is other
    if one.budget is not other.budget or one.version != other.version or one.shared is not other.shared:
        return False
    return all(
        a.limit is b.limit and a.delta_limit is b.delta_limit and a.terms == b.terms
        for a, b in zip(one.open, other.open, strict=True)
    )


class Filed(NamedTuple):
    """A receipt as the store keeps it."""

    receipt: Receipt
    state: str  # "spent" or "held", then "opened", then "answered" or "failed"
    key: str | None = None
    answer: bytes | None = None

    def row(self) -> tuple[str, bytes, str, str | None, str, str, bytes | None]:
        """As a table keeps it."""
        receipt = self.receipt
        return (
            receipt.id, canonical(receipt), self.state, self.key, receipt.plan_hash, receipt.data, self.answer
        )  # fmt: skip


def under_way(remembered: dict[str, Filed], filed: Filed) -> None:
    """Remember a receipt until it is settled: whoever paid it opens it next."""
    if filed.state in ("answered", "failed"):
        remembered.pop(filed.receipt.id, None)
        return
    if len(remembered) >= _MOST_UNDER_WAY:
        remembered.clear()
    remembered[filed.receipt.id] = filed


_MOST_UNDER_WAY = 256


def keep_fact(remembered: dict[tuple[str, str], Any], kind: str, name: str, value: Any) -> Any:
    """Remember a fact, or that there is none. A process that asks for ever new names forgets the old ones."""
    if len(remembered) >= _MOST_FACTS:
        remembered.clear()
    remembered[kind, name] = value
    return value


_MOST_FACTS = 256


class Book(Protocol):
    """An open transaction.

    lazy  set by whoever writes what nothing is released on the strength of: its head outside need not be synced yet
    """

    lazy: bool

    @property
    def head(self) -> Link:
        """The last entry."""

    def append(self, body: bytes) -> Link:
        """One more entry."""

    def entry(self, number: int) -> tuple[Link, bytes] | None:
        """One entry, as it is stored."""

    def account(self, name: str) -> Account | None: ...

    def accounts(self) -> tuple[str, ...]:
        """The names of all of them."""

    def put_account(self, account: Account) -> None: ...

    def filed(self, receipt: str) -> Filed | None:
        """By the receipt's id."""

    def filed_under(self, key: str) -> Filed | None:
        """By the idempotency key that it was paid under."""

    def answered(self, plan_hash: str, data: str) -> Iterator[Filed]:
        """Receipts of that plan on that version of the data which have a stored answer, by their ids."""

    def file(self, filed: Filed) -> None:
        """Put a receipt, new or changed."""

    def receipts(self) -> Iterator[tuple[tuple[str, str, str], Filed]]:
        """All of them, each with the id, plan hash and data that it is looked up by."""

    def fact(self, kind: str, name: str) -> Any:
        """Whatever else the entries amount to: a record, or None."""

    def facts(self, kind: str) -> dict[str, Any]:
        """All of that kind, by name."""

    def put_fact(self, kind: str, name: str, value: Any) -> None: ...


class Store(Protocol):
    """A place for one ledger."""

    @property
    def principal(self) -> str | None:
        """Who writes, where the store itself knows and holds it; None where that is a claim."""

    def reading(self) -> AbstractContextManager[Book]:
        """A consistent view."""

    def writing(self) -> AbstractContextManager[Book]:
        """The one writer's view: made durable when the block ends, undone if it raises."""

    def entries(self, first: int = 1) -> Iterator[tuple[Link, bytes]]:
        """The chain from an entry on, as it is stored."""

    def close(self) -> None: ...
