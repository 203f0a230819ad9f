"""A series at the desk: paid whole, then each block released once, after it is over, in order.

    paid    one receipt for all blocks, before the first of them
    block   over -> its part is taken and opened, in one durable step -> answered and stored
            a crash or failure after that: the block is empty for ever, and says so; it is never drawn again

Which blocks are released follows from the ledger and from what day it is, and nothing else. A clock that goes back, a
second process and a second run find what is released, and draw nothing. Rows that come late for a released block are
never added to it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from .. import record
from ..errors import BudgetError, DataError, PolicyError, ReceiptError, SfumatoError
from ..plain_text import printable
from ..plan import Receipt, price_text
from ..project.project import Project
from ..project.series_file import SeriesFile
from ..query.dated.series_reading import SeriesReading
from ..query.dated.time_blocks import TimeBlock
from .desk import Desk, at_desk, ready
from .documents import AccountDocument, Agreement, Document, Part
from .list_state import key_of
from .problems import OfficeError
from .shortage import short_of
from .watch import SILENT, Watch

Status = Literal["answered", "released", "failed", "stopped", "passed", "due", "ahead"]
_LONGEST = 100
_LESS = "take fewer days or levels, let a unit count in fewer blocks (most), or lower epsilon"


@dataclass(frozen=True, kw_only=True)
class BlockDocument(Part):
    """One block.

    status  "answered" before, "released" now, "failed" now and "stopped" before (paid, and empty for ever), "passed" (a
            later block was released, and a unit's first blocks count: it stays empty), "due" (over, not yet released),
            "ahead" (not over yet)
    """

    name: str
    first: str
    last: str
    status: Status
    receipt: str | None = None
    problem: str | None = None


@dataclass(frozen=True, kw_only=True)
class SeriesDocument(Document):
    """Where a series stands.

    price   of all of it: what a unit loses that is there every day
    prices  what one loses with rows on no more than so many days
    paid    is it paid?
    fits    does the ledger accept it, or is it paid?
    """

    document: Literal["series-blocks/1"] = "series-blocks/1"
    project: str
    series: str
    note: str
    account: str | None
    plan: str
    price: str
    prices: dict[str, str]
    hides: str
    paid: bool
    fits: bool
    blocks: list[BlockDocument]
    budget: list[AccountDocument]
    alert: str | None


def quoted_series(project: Project, order: SeriesFile, now: dt.datetime) -> SeriesDocument:
    """Where it stands, and what it costs. Nothing is charged."""
    with at_desk(project, order.account, read_only=True) as desk:
        return _Stand(desk, order, now).document()


def ran_series(
    project: Project,
    order: SeriesFile,
    now: dt.datetime,
    agree: Callable[[SeriesDocument], Agreement],
    *,
    wait: float = 0.0,
    watch: Watch = SILENT,
    wording: Callable[[SfumatoError], str] = str,
) -> SeriesDocument:
    """Pay for it if nobody has, and release every block that is over and was not released.

    agree  gets the offer before anything is paid, and gives back what was agreed to
    wait   seconds, while another run or training is at work on the project
    """
    ready(project, watch)
    work = f"sfumato series run {printable(order.file.name)[:_LONGEST]}"
    with (
        project.alone(work, wait=wait, waits=watch.waits),
        at_desk(project, order.account, watch=watch) as desk,
    ):
        stand = _Stand(desk, order, now)
        if not stand.paid:
            stand.pay(agree(stand.document()))
            stand = _Stand(desk, order, now)
        fresh = dict(stand.released(wording))
        body = _Stand(desk, order, now).document()
        return replace(body, blocks=[fresh.get(block.name, block) for block in body.blocks])


def reading(project: Project, order: SeriesFile) -> SeriesReading:
    """What was released so far, to be read in any window. Nothing is charged, no data is read."""
    with at_desk(project, order.account, read_only=True) as desk:
        raws = _Stand(desk, order, dt.datetime.min.replace(tzinfo=dt.UTC)).raws()
    if not raws:
        raise OfficeError(
            "there is nothing to read",
            f"no block of {order.name!r} is released yet",
            f"release those that are over: sfumato series run {order.file.name}",
            "refused",
            "series-empty",
        )
    return order.plan.read(raws)


def over(block: TimeBlock, wait: int, now: dt.datetime) -> bool:
    """Is a block over, and has its time for late rows passed? Days end at midnight by UTC."""
    if now.tzinfo is None:
        raise ValueError("now needs a time zone: datetime.now(UTC)")
    end = dt.datetime.combine(block.after, dt.time(), dt.UTC)
    return now >= end + dt.timedelta(hours=wait)


class _Stand:
    """Where each block stands in the ledger."""

    def __init__(self, desk: Desk, order: SeriesFile, now: dt.datetime) -> None:
        self.desk, self.order, self.now = desk, order, now
        self.plan = order.plan
        self.data = desk.curator.private.address
        self.key = key_of(desk.curator, self.plan, 0)
        self.path = desk.path(self.plan)
        paid = desk.ledger.paid(self.key, desk.curator.accounts, self.plan, data=self.data)
        self.receipt: Receipt | None = None if paid is None else paid[0]
        self._answers: dict[str, tuple[Receipt, bytes]] = {}
        self._gone: dict[str, Status] = {}
        if self.paid:
            self._look()
        else:
            self._refuse_other_versions()

    @property
    def paid(self) -> bool:
        return self.receipt is not None

    def _look(self) -> None:
        ledger, accounts = self.desk.ledger, self.desk.curator.accounts
        taken = {entry.fields["receipt"].plan_hash for entry in ledger.history(kind="part")}
        for name, part in self.plan.parts.items():
            answer = ledger.answer(accounts, part.hash, self.data)
            if answer is not None:
                self._answers[name] = answer
            elif ledger.prepaid(accounts, part, data=self.data) is None:  # taken and nothing came of it, or passed over
                self._gone[name] = "stopped" if part.hash in taken else "passed"

    def _refuse_other_versions(self) -> None:
        """The version of the data names the stream, for as long as the series runs."""
        for entry in self.desk.ledger.history(kind="spend"):
            receipt = entry.fields.get("receipt")
            if isinstance(receipt, Receipt) and receipt.plan_hash == self.plan.hash and receipt.data != self.data:
                raise OfficeError(
                    "the series is paid for other data; nothing was charged",
                    f"it was paid on {receipt.data}, and the project's data is {self.data} now",
                    "give sfumato.yaml the version that it had: it names the growing table while the series runs",
                    "refused",
                    "series-version",
                )

    def status(self, name: str) -> Status:
        if name in self._answers:
            return "answered"
        if name in self._gone:
            return self._gone[name]
        return "due" if over(self.plan.blocks[name], self.order.wait, self.now) else "ahead"

    def document(self) -> SeriesDocument:
        offer = self.desk.quote(self.plan) if not self.paid else None
        blocks = [
            BlockDocument(
                name=name,
                first=block.first.isoformat(),
                last=(block.after - dt.timedelta(days=1)).isoformat(),
                status=self.status(name),
                receipt=self._answers[name][0].id if name in self._answers else None,
            )
            for name, block in self.plan.blocks.items()
        ]
        budget = self.desk.budget(self.desk.stands(self.path)) if offer is None else offer.budget
        return SeriesDocument(
            project=self.desk.project.name,
            series=self.order.name,
            note=self.order.note,
            account=self.order.account,
            plan=self.plan.hash,
            price=price_text(self.plan),
            prices=dict(self.plan.expected_work()),
            hides=self.plan.hides,
            paid=self.paid,
            fits=self.paid or (offer is not None and offer.quote.affordable),
            blocks=blocks,
            budget=budget,
            alert=self.desk.project.alert(self.desk.ledger),
        )

    def pay(self, agreement: Agreement) -> None:
        """All blocks, before the first of them."""
        agreement.covers(self.plan)
        curator = self.desk.curator
        try:
            curator.prepay(self.plan, note=self.order.note or self.order.name, key=self.key)
        except PolicyError:
            raise
        except BudgetError as error:
            raise short_of(self.desk.ledger, self.path, self.plan, error, _LESS) from None

    def released(self, wording: Callable[[SfumatoError], str]) -> Iterator[tuple[str, BlockDocument]]:
        """Every block that is due, in order. One that fails is empty for ever; the others go on, unless the account is
        locked by it."""
        watch = self.desk.watch
        watch.opens()
        due = [name for name in self.plan.blocks if self.status(name) == "due"]
        before = {block.name: block for block in self.document().blocks}
        for name in watch.counts(due, "releasing"):
            part = self.plan.parts[name]
            note = f"{self.order.note or self.order.name}: {name}"
            if self.desk.ledger.prepaid(self.desk.curator.accounts, part, data=self.data) is None:
                continue  # taken meanwhile, past the lock of the project: it would be charged anew
            try:
                release = self.desk.curator.release(part, note=note, key=key_of(self.desk.curator, part, 0))
            except (DataError, ReceiptError) as error:
                yield name, replace(before[name], status="failed", problem=wording(error))
            except BudgetError as error:  # a lock, or an account that was closed meanwhile
                yield name, replace(before[name], problem=wording(error))
                return
            else:
                receipt = None if release.receipt is None else release.receipt.id
                yield name, replace(before[name], status="released", receipt=receipt)

    def raws(self) -> Mapping[str, Any]:
        return {name: record.parse(answer) for name, (_, answer) in self._answers.items()}


def agreed(document: SeriesDocument) -> Agreement:
    """To the whole series."""
    return Agreement(plans=(document.plan,))
