"""One row per release: everything that its entries tell, joined.

A release is paid (or room is held for it), opened, drawn on, closed and settled, each an entry. Its row is given when
it is settled; those that never were come last. So rows come in the order in which releases ended, and no more of them
are in memory than are under way. What is not known is None.

A list that was prepaid has a row of its own, which bears the price; it never ends. Each part that was taken has a row
too, which charged nothing and names the entry that paid for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from typing import Any

from ... import checks, record
from ...events import Event
from ...ledger.parts import LIST
from ...ledger.proof.chain import Link
from ...ledger.stores.base import Store
from ...plan import Receipt
from ...units import Unit
from .course import Course, Gauges, Price
from .history import Place, asked_for, deep, links, moment, places, plan_of, shallow
from .plans import contribution_bounds, parameters, post_processing, question, steps
from .variants import at_own_delta, proven

ADAPTIVITY = "filter, adaptively chosen"
_RANDOMNESS = {
    "exact": "AES-256-CTR keyed by the operating system (the library's only source of this grade)",
    "float": "a fast generator in floating point, not of cryptographic strength (secure_noise = false)",
}
_UNDER_WAY = 10_000  # rows kept back for their ends; beyond, the oldest spend is given as it stands
_ENDS = ("answered", "failed")
_OUTCOMES = (*_ENDS, "interrupted", "unopened")  # the last two have no answer either

Charged = Mapping[str, tuple[Price, ...] | None]
Totals = Mapping[str, Gauges | None]


@dataclass(frozen=True, kw_only=True)
class Released:
    """A release, as the ledger knows it. Numbers are exact.

    charged        per account, for each member that was open: currency, price, failures
    before, after  what each account had spent in all when it was paid, and after it (of a hold: after its last draw)
    variant        what is proven of the event, and `native` its parameter there
    afterwards     what the plan does with noisy numbers, in words
    question       the digest of what it asks: equal for the same question at another price
    epsilon        its price at its own delta, as priced today; of a part, what it would cost alone
    draws, steps   of a hold: how often something was drawn; of work in steps, how many of them
    part_of        of a part, the number of the entry that paid for it: `charged` is empty here, and full there
    state          "spent" or "held", "opened", "answered" or "failed"; a list is "in parts"
    """

    number: int
    hash: str
    previous: str | None
    id: str
    at: str | None
    actor: str | None
    role: str | None
    purpose: str
    data: str
    places: tuple[Place, ...]
    unit: Unit
    bounds: tuple[Mapping[str, Any], ...] | None
    afterwards: tuple[str, ...]
    question: str | None
    plan_hash: str
    plan: str | None
    mechanism: str | None
    parameters: Mapping[str, Any] | None
    library: str | None
    grade: str
    randomness: str | None
    loop: str
    event: Event
    epsilon: Fraction | None
    delta: Fraction | None
    variant: str
    native: Mapping[str, Fraction]
    adaptivity: str = ADAPTIVITY
    accounts: tuple[str, ...]
    charged: Charged
    before: Totals
    after: Totals
    draws: int = 0
    steps: int | None = None
    part_of: int | None = None
    key: str | None = None
    approvals: tuple[Any, ...] | None = None
    state: str
    opened: str | None = None
    settled: str | None = None
    answer: str | None = None

    @property
    def time(self) -> datetime | None:
        return moment(self.at)

    @property
    def words(self) -> tuple[str, ...] | None:
        """What the plan does, step by step. Made when asked for: a query is taken apart again for it."""
        plan = None if self.plan is None else plan_of(self.plan)
        return None if plan is None else steps(plan)

    @property
    def neighbours(self) -> str:
        """What the neighbouring relation is, in words."""
        return str(self.unit)

    def as_dict(self) -> dict[str, Any]:
        """JSON: exact numbers as text, records as they are stored."""
        found: dict[str, Any] = {}
        for name in self.__dataclass_fields__:
            found[name] = plain(getattr(self, name))
        found["places"] = [place._asdict() | {"blocks": list(place.blocks)} for place in self.places]
        found["words"] = plain(self.words)
        found["neighbours"] = self.neighbours
        found["relation"] = self.unit.change
        return found


def plain(value: Any) -> Any:
    """JSON that other programs read: exact numbers as text such as "1/10"."""
    if value is None or type(value) in (str, int, bool):
        return value
    if type(value) is Fraction:
        return str(value)
    if type(value) is float and not math.isfinite(value):
        return str(value)  # no ledger writes one; an entry that somebody put there may hold it
    if hasattr(value, "_asdict"):
        return {name: plain(item) for name, item in value._asdict().items()}
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return record.encode(value)


def releases(
    store: Store,
    *,
    account: str | None = None,
    data: str | None = None,
    by: str | None = None,
    price: bool = True,
    last: int | None = None,
    progress: Callable[[int], None] | None = None,
    also: Callable[[Link, Mapping[str, Any]], None] | None = None,
) -> Iterator[Released]:
    """The releases, those that were paid on an account, of a data set or by somebody where that is asked.

    price     price each event at its own delta (sampled training may take seconds)
    last      read no entry after this one
    progress  is told the number of the entry that was read
    also      is given every entry, as bare JSON: for a reader who wants more of the same pass
    """
    asked_for(account=account, data=data, by=by)
    if progress is not None and not callable(progress):
        raise checks.refuse("progress", progress, "a function of one number, or leave it out")
    course, under_way, lists = Course(), dict[str, Released](), dict[str, int]()
    for link, previous, body in links(store, 1, last):
        told = shallow(body)
        kind = told.get("kind")
        if also is not None:
            also(link, told)
        if kind in ("spend", "hold", "part"):
            row = _paid(told, link, previous, course, price)
            if row is not None and kind == "part":
                row = replace(row, part_of=lists.get(str(told.get("of"))))
            elif row is not None and row.loop == LIST:
                lists[row.id] = row.number
                row = replace(row, state="in parts")
            if row is not None and _asked(row, account, data, by):
                if row.state == "in parts":  # nothing of its own follows
                    yield row
                else:
                    under_way[row.id] = row
        elif kind in ("open", "draw", "close", "settle"):
            row = _next(told, under_way.get(str(told.get("receipt"))), course, store)
            if row is not None and row.state in _ENDS:
                del under_way[row.id]
                yield row
            elif row is not None:
                under_way[row.id] = row
        else:
            course.take(told)
        if len(under_way) > _UNDER_WAY and (oldest := _oldest_spend(under_way)) is not None:
            yield _as_filed(store, under_way.pop(oldest))
        if progress is not None:
            progress(link.number)
    yield from under_way.values()


def _asked(row: Released, account: str | None, data: str | None, by: str | None) -> bool:
    if account is not None and account not in row.accounts:
        return False
    if by is not None and row.actor != by:
        return False
    return data is None or data == row.data or any(place.name == data for place in row.places)


def _paid(told: Mapping[str, Any], link: Link, previous: bytes | None, course: Course, price: bool) -> Released | None:
    receipt, delta = deep(told.get("receipt")), deep(told.get("delta"))
    if not isinstance(receipt, Receipt) or not isinstance(delta, Fraction):
        course.take({"kind": "unreadable"})
        return None
    held, free = told.get("kind") == "hold", told.get("kind") == "part"
    text = told["plan"] if isinstance(told.get("plan"), str) else None
    if held:
        course.take(told)
    before = course.gauges(receipt.accounts)
    charged: Charged = {} if held or free else course.charge(told, receipt, receipt.event, delta)
    variant, native = proven(receipt.event)
    approvals = deep(told.get("approvals"))
    return Released(
        number=link.number,
        hash=link.hash.hex(),
        previous=None if previous is None else previous.hex(),
        id=receipt.id,
        at=told.get("at"),
        actor=told.get("by"),
        role=_role(course.policy, told.get("by")),
        purpose=receipt.note,
        data=receipt.data,
        places=places(receipt.data),
        unit=receipt.unit,
        bounds=contribution_bounds(text, told.get("limits")),
        afterwards=post_processing(text, told.get("afterwards")),
        question=question(text, told.get("question")),
        plan_hash=receipt.plan_hash,
        plan=text,
        mechanism=None if text is None else parameters(text)[0],
        parameters=None if text is None else parameters(text)[1],
        library=told.get("library"),
        grade=receipt.grade,
        randomness=_RANDOMNESS.get(receipt.grade),
        loop=receipt.loop,
        event=receipt.event,
        epsilon=at_own_delta(receipt.event, delta) if price else None,
        delta=delta,
        variant=variant,
        native=native,
        accounts=tuple(dict.fromkeys((*receipt.accounts, *charged))),
        charged=charged,
        before=before,
        after=course.gauges(tuple(dict.fromkeys((*receipt.accounts, *charged)))),
        key=told.get("key"),
        approvals=approvals if isinstance(approvals, tuple) else None,
        state="held" if held else "spent",
    )


def _next(told: Mapping[str, Any], row: Released | None, course: Course, store: Store) -> Released | None:
    kind = told["kind"]
    if kind == "draw":
        return _drawn(told, row, course, store)
    if row is None:
        return None
    if kind == "open":
        return replace(row, state="opened", opened=told.get("at"))
    if kind == "settle" and told.get("outcome") in _OUTCOMES:
        ended = "answered" if told["outcome"] == "answered" else "failed"
        return replace(row, state=ended, settled=told.get("at"), answer=told.get("answer"))
    return row


def _drawn(told: Mapping[str, Any], row: Released | None, course: Course, store: Store) -> Released | None:
    event, delta = deep(told.get("event")), deep(told.get("delta"))
    if row is None:  # not asked for, but it charges accounts all the same
        with store.reading() as book:
            filed = book.filed(str(told.get("receipt")))
        receipt = None if filed is None else filed.receipt
    else:
        receipt = Receipt(row.id, row.accounts, row.plan_hash, row.event, row.data, row.unit, row.grade)
    if receipt is None or not isinstance(event, Event) or not isinstance(delta, Fraction):
        course.take({"kind": "unreadable"})
        return row
    charged = course.charge(told, receipt, event, delta)
    if row is None:
        return None
    return replace(
        row,
        draws=row.draws + 1,
        steps=row.steps if told.get("before") is None else (row.steps or 0) + getattr(event, "times", 0),
        charged={name: _sum(row.charged.get(name, ()), prices) for name, prices in charged.items()},
        after=course.gauges(tuple(charged)),
    )


def _sum(so_far: tuple[Price, ...] | None, prices: tuple[Price, ...] | None) -> tuple[Price, ...] | None:
    """Per currency; a member that closed on the way keeps what it was charged."""
    if so_far is None or prices is None:
        return None
    found: dict[str, Price] = {price[0]: price for price in so_far}
    for currency, price, failed in prices:
        _, old, old_failed = found.get(currency, (currency, Fraction(0), Fraction(0)))
        known = price is not None and old is not None
        found[currency] = (
            currency,
            old + price if known and old is not None and price is not None else None,
            old_failed + failed if known and old_failed is not None and failed is not None else None,
        )
    return tuple(found.values())


def _oldest_spend(under_way: Mapping[str, Released]) -> str | None:
    return next((id for id, row in under_way.items() if row.state in ("spent", "opened") and not row.draws), None)


def _as_filed(store: Store, row: Released) -> Released:
    """A row whose end was not waited for: its state is the one that the store has now."""
    with store.reading() as book:
        filed = book.filed(row.id)
    return row if filed is None else replace(row, state=filed.state)


def _role(policy: Any, principal: Any) -> str | None:
    """Of the policy in force then."""
    people = policy.get("people") if isinstance(policy, Mapping) else getattr(policy, "people", None)
    pairs = dict(people) if isinstance(people, Mapping | tuple) else {}
    roles = pairs.get(principal)
    if not roles:
        return None
    return roles if isinstance(roles, str) else ", ".join(map(str, roles))
