"""What the parts of a ledger share: the store, who writes, and whether the policy lets them."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

from .. import checks, record
from .._version import PRICES, VERSION
from ..errors import LedgerError, PolicyError
from .policy.alerts import Alert
from .policy.alerts import tell as send
from .policy.approvals import Act, Approvals, latest, ledger_time
from .policy.policy import Policy
from .pricing import priced_before
from .proof.birth import begin, entry_bytes
from .stores.base import Book, Store

T = TypeVar("T")

LIBRARY = f"sfumato {VERSION}, prices {PRICES}"  # what priced an entry's events
_LONGEST = 4000  # characters of a free text
_STRANGE = re.compile("[\0\ud800-\udfff]")


@dataclass
class _Joint:
    """A transaction that several calls of one thread share, and the alerts that are told after it."""

    book: Book
    writes: bool
    alerts: list[tuple[Policy | None, tuple[Alert, ...]]] = field(default_factory=list)


class Desk:
    """A place at which one person writes into one ledger.

    principal  who writes the entries; a claim, unless the store holds it
    """

    def __init__(self, store: Store, *, principal: str | None = None) -> None:
        if not hasattr(store, "writing"):
            raise checks.refuse("store", store, "a store: open a ledger by its path with sf.open_ledger")
        self.store = store
        signs = store.principal
        if principal is None:
            principal = signs or "somebody"
        elif signs not in (None, principal):
            raise checks.refuse("principal", principal, "the role that is logged in: leave it out")
        self.principal = checks.label(principal, "principal")
        self._begun = getattr(store, "anchored", False)  # an anchored store begins by itself
        self._thread = threading.local()

    @contextmanager
    def reading(self) -> Iterator[Book]:
        """A book to read: that of the snapshot or transaction which this thread is in, or one for this alone."""
        if (joint := self._joint) is not None:
            yield joint.book
        else:
            with self.store.reading() as book:
                yield book

    @contextmanager
    def writing(self) -> Iterator[Book]:
        """A book to write into: that of the transaction which this thread is in, or one for this alone."""
        if (joint := self._joint) is None:
            with self.store.writing() as book:
                yield book
        elif joint.writes:
            yield joint.book
        else:
            raise LedgerError("the ledger is being read by this thread: end that first")

    @priced_before
    def snapshot(self, ask: Callable[[], T]) -> T:
        """All that is asked within is read from one state of the ledger, in one transaction."""
        if self._joint is not None:
            return ask()
        with self.store.reading() as book, self._joined(_Joint(book, writes=False)):
            return ask()

    @priced_before
    def transaction(self, act: Callable[[], T]) -> T:
        """All that is written within becomes durable together, or not at all."""
        if self._joint is not None:
            return act()
        with self.store.writing() as book, self._joined(_Joint(book, writes=True)) as joint:
            result = act()
        for policy, alerts in joint.alerts:
            self.tell(policy, alerts)
        return result

    @property
    def _joint(self) -> _Joint | None:
        joint: _Joint | None = getattr(self._thread, "joint", None)
        return joint

    @contextmanager
    def _joined(self, joint: _Joint) -> Iterator[_Joint]:
        self._thread.joint = joint
        try:
            yield joint
        finally:
            self._thread.joint = None

    def write(self, book: Book, kind: str, fields: Mapping[str, Any]) -> int:
        """One more entry; its number."""
        if not self._begun:
            self._begun = begin(book, self.principal)
        if book.fact("policy", "") is not None and (last := latest(book)) > datetime.now(UTC).isoformat():
            fields = {**fields, "latest": last}  # approvals run out by it
        return book.append(entry_bytes(kind, self.principal, fields)).number

    def policy(self, book: Book, duty: str) -> Policy | None:
        """The policy in force; refused where it does not give this duty to whoever asks."""
        policy: Policy | None = book.fact("policy", "")
        if policy is not None and (refusal := policy.refusal(self.principal, duty)) is not None:
            raise PolicyError(refusal)
        return policy

    def approved(self, book: Book, policy: Policy | None, act: Act, needed: int, why: str) -> tuple[int, ...]:
        """The numbers of the approvals that are used up by the act; refused where there are too few."""
        if policy is None or not needed:
            return ()
        name = record.digest(act)
        given: Approvals = book.fact("approval", name) or Approvals(act=act)
        valid = given.valid(policy, self.principal, ledger_time(book))
        if len(valid) < needed:
            cause = f"{why}: it needs {needed} approval(s) of others, and has {len(valid)}"
            raise PolicyError(
                f"{cause}; ask with "
                f"name = ledger.ask(error.act, reason=...), they answer with ledger.approve(name, reason=...)",
                act,
                cause=cause,
            )
        book.put_fact("approval", name, Approvals(act=act))
        return tuple(given.number for given in valid[:needed])

    def tell(self, policy: Policy | None, alerts: tuple[Alert, ...]) -> None:
        """After the commit: what cannot be told never holds up what was decided."""
        if (joint := self._joint) is not None:
            joint.alerts.append((policy, alerts))
        elif policy is not None and alerts:
            send(alerts, policy)


def short(text: str, name: str) -> str:
    """A text that goes into the ledger. Zero bytes and halves of surrogate pairs are no text to a database."""
    if not isinstance(text, str) or len(text) > _LONGEST or _STRANGE.search(text) is not None:
        raise checks.refuse(name, text, f"a text of at most {_LONGEST} characters")
    return text
