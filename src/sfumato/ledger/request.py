"""What somebody asks a ledger to pay for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..plan import Plan
from .owners import Owners

Names = tuple[str, ...]


@dataclass(frozen=True)
class Request:
    """A plan to be paid for.

    accounts  who asks: they pay, all above them, and the data's own
    data      the address of what it reads, version and all
    grade     of the noise that is used
    key       idempotency key: a retry under it never pays again
    owners    the column that names the unit, by table
    """

    accounts: Names
    plan: Plan[Any, Any]
    data: str
    grade: str
    note: str
    key: str | None = None
    owners: Owners | None = None
