"""The documents of a release: what was opened, offered, agreed to, paid, answered and is left. Plain values, which the
command line prints and a service can send. A document names its kind and version, and a field's meaning never changes
within one; a field more is a new version's business."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ..plan import Plan, Receipt
from .problems import OfficeError

Json = Any
"""Whatever JSON has a form for."""


class Part:
    """A part of a document. Whoever validates it refuses fields that it does not know."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}


class Document(Part):
    """The parent of those that stand for themselves: their field `document` is a name and a version."""


@dataclass(frozen=True, kw_only=True)
class Agreement(Part):
    """What somebody agreed to pay for: the hashes of the plans. It comes back in with the order, and nothing else is
    paid."""

    plans: tuple[str, ...]

    @classmethod
    def to(cls, *plans: Plan[Any, Any]) -> Agreement:
        return cls(plans=tuple(plan.hash for plan in plans))

    def covers(self, *plans: Plan[Any, Any]) -> None:
        """Refuse where one of these was not agreed to."""
        if not {plan.hash for plan in plans} <= set(self.plans):
            raise OfficeError(
                "nothing was charged",
                "what is to be paid is not what was agreed to",
                "look at the price again, and agree to that",
                "interrupted",
                "not-agreed",
            )


@dataclass(frozen=True, kw_only=True)
class ReceiptDocument(Part):
    """What was paid: `entry` is the ledger's, `hash` that of it and everything before it."""

    id: str
    entry: int | None
    hash: str | None
    accounts: list[str]
    data: str
    grade: str
    note: str


def receipt_document(receipt: Receipt, entry: Any | None) -> ReceiptDocument:
    """A receipt, with its entry in the ledger."""
    return ReceiptDocument(
        id=receipt.id,
        entry=None if entry is None else entry.number,
        hash=None if entry is None else entry.hash,
        accounts=list(receipt.accounts),
        data=receipt.data,
        grade=receipt.grade,
        note=receipt.note,
    )


@dataclass(frozen=True, kw_only=True)
class Limit(Part):
    """A budget: epsilon with delta, or rho."""

    epsilon: float | None
    delta: float | None
    rho: float | None


@dataclass(frozen=True, kw_only=True)
class Gauge(Part):
    """One currency of an account. The account accepts a release while one of its gauges has room."""

    currency: str
    spent: float
    left: float
    limit: float


@dataclass(frozen=True, kw_only=True)
class AccountDocument(Part):
    """An account.

    limit     what may be spent in all: the guarantee, `guarantee` in words; null for a folder
    amount    what everything so far amounts to: an epsilon at the account's delta, or a rho
    used      the part of the limit that is gone
    before    the same before this release, or in a quote: now, where `used` is what would be gone after it; and so
              `amount_before` beside `amount`
    room      how many more like this release fit after it; null where that was not asked
    fits      in a quote: has this account room for it?
    refusal   in a quote: what is asked, spent and left, where it has none
    delta     what releases take of the delta for themselves, counted once for all gauges; null where there is none
    """

    account: str
    level: str
    limit: Limit | None
    guarantee: str | None
    amount: float | None = None
    amount_before: float | None = None
    used: float | None
    before: float | None = None
    room: int | None = None
    fits: bool | None = None
    refusal: str | None = None
    gauges: list[Gauge]
    delta: Gauge | None = None
    releases: int
    locked: bool
    closed: bool


@dataclass(frozen=True, kw_only=True)
class Number(Part):
    """A released number.

    error     how far the farther end of the interval is; null where there is none, or where it is open
    low, high the interval at confidence 1 - alpha; null where it is open
    bias      by how much the number was raised for what limits cut; null where nobody knows what that is
    reliable  false where noise, or what limits cut, hides the number
    """

    value: Json
    error: Json
    low: Json
    high: Json
    std: Json
    bias: Json
    reliable: bool


@dataclass(frozen=True, kw_only=True)
class Column(Part):
    """A column: a key as it is, or a number with its error.

    exact  do the intervals hold as stated? Otherwise to first order: well, where noise is small beside the numbers
    """

    name: str
    kind: str
    exact: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Expected(Part):
    """The half-width of a column that is known before anything runs; null where it depends on the data, with `why`. Of
    a quantile in rows of rank, and about what that is in its own unit, where `why` is what that assumes. Of noise
    alone: what limits cut is not in it."""

    column: str
    error: float | None
    why: str | None = None
