"""A list of releases that is paid as one and run part by part: which parts are paid for, and not yet taken.

The list is fixed when it is paid. What its parts answer later, in whatever order and between whatever other releases,
could as well have been computed at once and handed out piece by piece: who sees the pieces knows no more than who sees
the whole list, which is what was charged. So a part is taken at most once, on the very data that the list was paid on,
and the rest of the protocol (open once, settle once) is that of any receipt. See docs/decisions/0019.

    fact ("part", digest of data and plan hash)  the receipts of the lists in which this part waits, oldest first
    fact ("part", "")                            how many parts wait in all: a ledger without any looks no further
    fact ("turns", receipt of a list)            of parts that are taken in their turn: see proof/in_turn.py
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from .. import record
from ..errors import PlanError, ReceiptError
from ..plan import Plan, Receipt
from .proof.in_turn import chains_of, in_turn
from .stores.base import Book
from .stores.digest import LIVE

LIST, PART = "parts", "part"  # the loop of the list's receipt, and of its parts'
_KIND, _ALL, _TURNS = "part", "", "turns"


def check(plan: Plan[Any, Any]) -> None:
    """Refuse what cannot be paid as a list, and a list in which a part stands twice."""
    if not plan.parts:
        raise PlanError("only a list of releases is paid in advance: use sequence(...), or release the plan itself")
    seen: dict[str, str] = {}
    for name, part in plan.parts.items():
        if part.supervised is not None:
            raise PlanError(f"part {name!r} runs in your own loop, which holds room of its own: leave it out")
        if (first := seen.setdefault(part.hash, name)) != name:
            raise PlanError(f"parts {first!r} and {name!r} are the same plan, which is answered once: leave one out")
    if (
        len({part.grade for part in plan.parts.values()}) > 1
    ):  # a part runs with noise of the grade its list was paid for
        raise PlanError("some parts have exact noise and others have not: prepay them apart")


def remember(book: Book, receipt: Receipt, plan: Plan[Any, Any]) -> None:
    """The parts of a list that was paid just now wait to be taken."""
    for part in plan.parts.values():
        name = _name(receipt.data, part.hash)
        book.put_fact(_KIND, name, (*(book.fact(_KIND, name) or ()), receipt.id))
    book.put_fact(_KIND, _ALL, (book.fact(_KIND, _ALL) or 0) + len(plan.parts))
    if plan.turns:
        book.put_fact(_TURNS, receipt.id, chains_of([plan.parts[name].hash for name in chain] for chain in plan.turns))


def waiting(
    book: Book, paying: Collection[str], plan: Plan[Any, Any], data: str, grade: str | None = None
) -> Iterator[Receipt]:
    """The receipts of the lists that this plan waits in, the oldest first: paid on all these accounts, for noise of
    this grade."""
    if not any_wait(book):
        return
    for id in book.fact(_KIND, _name(data, plan.hash)) or ():
        filed = book.filed(id)
        if filed is None:
            raise ReceiptError("a list that was paid is missing from the ledger: run `verify`")
        receipt = filed.receipt
        if set(paying) <= set(receipt.accounts) and receipt.unit == plan.unit and grade in (None, receipt.grade):
            yield receipt


def any_wait(book: Book) -> bool:
    return bool(book.fact(_KIND, _ALL))


def take(book: Book, of: Receipt, part: Receipt) -> None:
    """It waits no more, nor do those that are passed over by it."""
    passed: tuple[str, ...] = ()
    if chains := book.fact(_TURNS, of.id):
        after, passed, over = in_turn(chains, part.plan_hash, part.id)
        book.put_fact(_TURNS, of.id, after)
        if over and (filed := book.filed(over)) is not None and filed.state in LIVE:
            book.file(filed._replace(state="failed"))
    for plan_hash in (part.plan_hash, *passed):
        name = _name(of.data, plan_hash)
        book.put_fact(_KIND, name, tuple(id for id in book.fact(_KIND, name) if id != of.id))
    book.put_fact(_KIND, _ALL, book.fact(_KIND, _ALL) - 1 - len(passed))


def _name(data: str, plan_hash: str) -> str:
    return record.digest((data, plan_hash))
