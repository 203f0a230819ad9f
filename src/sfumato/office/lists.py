"""A list of releases: priced as one, paid once, released one by one, each written as soon as it is answered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from ..combine import Sequence
from ..errors import BudgetError, DataError, PolicyError, ReceiptError, SfumatoError, UnsupportedEventError
from ..plain_text import printable
from ..plan import Plan, price_text
from ..project.plans import ListedRelease, ReleaseList
from ..project.project import Project
from .answers import count_of, encoded
from .desk import Desk, at_desk, ready
from .documents import AccountDocument, Agreement, Document, Part
from .files import write_changed
from .list_state import Item, built, items, key_of_list, unpaid
from .problems import OfficeError
from .shortage import short_of
from .watch import SILENT, Watch

Status = Literal["new", "paid", "answered", "stopped", "released", "failed", "waiting"]
_LONGEST = 100  # letters of a file's name, as others read it who wait


@dataclass(frozen=True, kw_only=True)
class PriceDocument(Part):
    """What the new releases cost.

    together        as one list, which is what is paid
    one_by_one      the sum of what each costs alone; null where that of some is in rho
    epsilon, delta  of the list; epsilon is null where it has none at its delta
    """

    releases: int
    together: str
    one_by_one: str | None
    epsilon: float | None
    delta: float


@dataclass(frozen=True, kw_only=True)
class ReleaseDocument(Part):
    """One release of the list.

    status   "released" now, "answered" before, "failed", "waiting" (not run), "stopped" (paid, and without an answer);
             in a dry run also "new" and "paid"
    written  was its file written now? Null where it has none
    """

    name: str
    status: Status
    plan: str
    price: str
    out: str | None
    written: bool | None = None
    rows: int | None = None
    receipt: str | None = None
    problem: str | None = None


@dataclass(frozen=True, kw_only=True)
class RunDocument(Document):
    """What became of a list.

    price  of what had to be paid; null where nothing had
    fits   does the ledger accept it?
    """

    document: Literal["run/1"] = "run/1"
    project: str
    plan: str
    note: str
    account: str | None
    dry_run: bool
    price: PriceDocument | None
    fits: bool
    releases: list[ReleaseDocument]
    budget: list[AccountDocument]
    alert: str | None


@dataclass(frozen=True)
class ListOrder:
    """A list that somebody asks for.

    file       as whoever asks calls it
    pay_again  pay anew for releases that were stopped while they ran
    wait       seconds, while another list or training is at work on the project
    """

    listed: ReleaseList
    file: Path
    pay_again: bool = False
    wait: float = 0.0
    plans: list[tuple[ListedRelease, Plan[Any, Any]]] = field(default_factory=list)

    @classmethod
    def of(cls, listed: ReleaseList, project: Project, file: Path, **more: Any) -> ListOrder:
        """All plans are built, and what is refused is told together."""
        return cls(listed, file, plans=built(listed, project), **more)


def quoted_list(project: Project, order: ListOrder) -> RunDocument:
    """Price a list, and end: nothing is charged."""
    with at_desk(project, order.listed.account, read_only=True) as desk:
        opened = _Opened(desk, order)
        new = unpaid(opened.items)
        after = desk.stands(opened.path, _sequence(new)) if new else None
        return replace(
            opened.document(dry_run=True),
            budget=desk.budget(opened.before, after),
            alert=project.alert(desk.ledger),
        )


def ran(
    project: Project,
    order: ListOrder,
    agree: Callable[[RunDocument], Agreement],
    *,
    watch: Watch = SILENT,
    wording: Callable[[SfumatoError], str] = str,
) -> RunDocument:
    """Run a list. All that can be refused is refused before it is paid; what is answered is written at once.

    agree    gets the offer, before anything is paid, and gives back what was agreed to
    wording  how an error is told to whoever asked
    """
    ready(project, watch)
    work = f"sfumato run {printable(order.file.name)[:_LONGEST]}"
    with (
        project.alone(work, wait=order.wait, waits=watch.waits),
        at_desk(project, order.listed.account, watch=watch) as desk,
    ):
        opened = _Opened(desk, order)
        offer = opened.document(dry_run=False)
        if offer.price is not None:
            opened.pay(agree(offer))
        releases = opened.release(offer.releases, wording)
        return replace(offer, releases=releases, budget=desk.budget(opened.before), alert=project.alert(desk.ledger))


def agreed(document: RunDocument) -> Agreement:
    """To all that a list has to pay for."""
    return Agreement(plans=tuple(release.plan for release in document.releases if release.status == "new"))


class _Opened:
    """A list at the desk: where each of its releases stands, and the accounts before anything is paid."""

    def __init__(self, desk: Desk, order: ListOrder) -> None:
        self.desk, self.order = desk, order
        self.items = self._read()
        self.path = desk.path(self.items[0].plan)
        self.before = desk.stands(self.path)

    def _read(self) -> list[Item]:
        return items(self.order.plans, self.desk.ledger, self.desk.curator, pay_again=self.order.pay_again)

    def document(self, *, dry_run: bool) -> RunDocument:
        """The offer: what is new, what that costs, and whether it fits."""
        desk, listed, new = self.desk, self.order.listed, unpaid(self.items)
        data = desk.curator.private.address
        return RunDocument(
            project=desk.project.name,
            plan=str(self.order.file),
            note=listed.note,
            account=listed.account,
            dry_run=dry_run,
            price=priced(new),
            fits=not new or desk.ledger.quote(desk.curator.accounts, _sequence(new), data=data),
            releases=[_release_document(item, desk.project) for item in self.items],
            budget=[],
            alert=None,
        )

    def pay(self, agreement: Agreement) -> None:
        """All new ones as one list, before any of them runs.

        The list may be paid already: by another process just now, or long ago, and its parts were taken by other
        commands. So what is new is read again, and what is still new then is paid under the next key.
        """
        desk, times = self.desk, 0
        while new := unpaid(self.items):
            agreement.covers(*(item.plan for item in new))
            whole, key = _sequence(new), key_of_list(new, times)
            if desk.ledger.paid(key, desk.curator.accounts, whole, data=desk.curator.private.address) is None:
                try:
                    desk.curator.prepay(whole, note=self.order.listed.note, key=key)
                except PolicyError:
                    raise
                except BudgetError as error:
                    file = self.order.listed.file.name
                    less = f"leave a release out of {file}, or lower its epsilon or delta there"
                    raise short_of(desk.ledger, self.path, whole, error, less) from None
                return
            self.items = self._read()
            times = times + 1 if [item.key for item in new] == [item.key for item in unpaid(self.items)] else 0

    def release(self, offered: list[ReleaseDocument], wording: Callable[[SfumatoError], str]) -> list[ReleaseDocument]:
        """One by one. A release that fails is gone; the others go on, unless the account is locked by it."""
        watch, results = self.desk.watch, {release.name: release for release in offered}
        watch.opens()
        due = [item for item in self.items if item.state != "stopped"]
        done: list[str] = []
        running: str | None = None
        try:
            with watch.stops() as stopped:
                for item in watch.counts(due, "releasing"):
                    running = item.name
                    results[item.name] = self._one(item, results[item.name], stopped, wording)
                    if results[item.name].status == "waiting":
                        break
                    done.append(item.name)
                    running = None
        except BaseException:
            if stopped():
                raise _interrupted(len(done), len(due), running) from None
            raise
        for item in due:
            if item.name not in done and results[item.name].status in ("new", "paid"):
                results[item.name] = replace(results[item.name], status="waiting")
        return list(results.values())

    def _one(
        self, item: Item, result: ReleaseDocument, stopped: Callable[[], bool], wording: Callable[[SfumatoError], str]
    ) -> ReleaseDocument:
        """Release it, and write its answer; it is waiting where no more can be released."""
        listed = self.order.listed
        note = f"{listed.note}: {item.name}" if listed.note else item.name
        key = None if item.state == "answered" else item.key
        try:
            release = self.desk.curator.release(item.plan, note=note, key=key)
        except DataError as error:
            if stopped():  # the engine's way of saying that it was interrupted
                raise
            return replace(result, status="failed", problem=wording(error))
        except ReceiptError:
            problem = "another process runs it now, or was stopped while it did"
            return replace(result, status="stopped", problem=problem)
        except BudgetError as error:  # a lock, or an account that was closed meanwhile
            return replace(result, status="waiting", problem=wording(error))
        written = None
        if item.out is not None:
            written = write_changed(item.out, encoded(release, item.out.suffix.lower().removeprefix("."), item.alpha))
        return replace(
            result,
            status="answered" if item.state == "answered" else "released",
            rows=count_of(release),
            receipt=None if release.receipt is None else release.receipt.id,
            written=written,
        )


def priced(new: list[Item]) -> PriceDocument | None:
    """The price of these as one list, and one by one."""
    if not new:
        return None
    whole = _sequence(new)
    apart = [_epsilon(item.plan) for item in new]
    priceable = [epsilon for epsilon in apart if epsilon is not None]
    delta = float(whole.delta)
    at = f" at delta = {delta:.3g}" if delta else ""
    return PriceDocument(
        releases=len(new),
        together=price_text(whole),
        one_by_one=f"epsilon = {sum(priceable):.6g}{at}" if len(priceable) == len(new) else None,
        epsilon=_epsilon(whole),
        delta=delta,
    )


def _epsilon(plan: Plan[Any, Any]) -> float | None:
    try:
        return float(plan.price())
    except UnsupportedEventError:
        return None


def _sequence(new: list[Item]) -> Sequence:
    return Sequence(plans={item.name: item.plan for item in new})


def _release_document(item: Item, project: Project) -> ReleaseDocument:
    out = None if item.out is None else str(item.out.resolve().relative_to(project.folder.resolve()))
    return ReleaseDocument(name=item.name, status=item.state, plan=item.plan.hash, price=price_text(item.plan), out=out)


def _interrupted(done: int, due: int, running: str | None) -> OfficeError:
    lost = "" if running is None else f"; {running!r} was running, and is paid for again only with pay_again=True"
    return OfficeError(
        "interrupted",
        f"it was stopped by hand after {done} of {due} releases{lost}",
        "run it again: it goes on where it stopped, and pays nothing twice",
        "interrupted",
    )
