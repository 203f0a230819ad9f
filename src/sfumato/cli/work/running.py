"""`sfumato run`: a list of releases, priced as one, paid once, released one by one."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from rich.text import Text

from ...combine import Sequence
from ...curator import Curator
from ...errors import BudgetError, DataError, PolicyError, ReceiptError
from ...ledger import Ledger
from ...plan import price_text
from ...project import Project, open_project
from ...project.plans import Listed, ReleaseList, load_plan
from ...query import Sql
from ...release import Release
from ...sources.base import needed
from ..interrupts import held_back, stoppable
from ..problems import BUDGET, DATA, INTERRUPTED, CommandError, problem_of
from ..progress import counted
from ..telling import Outcome, data_opens, screen
from .answers import encoded
from .budgets import accounts, stands, with_changes
from .out_files import write_out
from .run_state import Item, built, items, key_of_list, unpaid
from .run_words import ReleaseDocument, RunDocument, priced, show_price, show_run
from .shortage import short_of
from .turns import turn

_CODES = {"failed": DATA, "stopped": DATA, "waiting": BUDGET}


def ran(folder: Path, file: Path, *, dry_run: bool, yes: bool, pay_again: bool, wait: float) -> Outcome:
    """Run a list. All that can be refused is refused before it is paid; what is answered is written at once."""
    project = open_project(folder)
    listed = load_plan(file, project)
    plans = built(listed, project)
    if dry_run:
        return _ran(project, listed, plans, file, dry_run=True, yes=yes, pay_again=pay_again)
    project.need_data()
    with held_back():  # an engine that is interrupted while it loads takes the process down
        for name in ("duckdb", "pyarrow"):
            needed(name)
    with turn(project, "run", file, wait):
        return _ran(project, listed, plans, file, dry_run=False, yes=yes, pay_again=pay_again)


def _ran(
    project: Project, listed: ReleaseList, plans: list[tuple[Listed, Sql]], file: Path, *, dry_run: bool, yes: bool,
    pay_again: bool,
) -> Outcome:  # fmt: skip
    with project.ledger(read_only=dry_run) as ledger:
        curator = project.curator(ledger, listed.account)
        found = items(plans, ledger, curator, pay_again=pay_again)
        new = unpaid(found)
        path = ledger.path(curator.accounts, found[0].plan, data=project.private.address)
        before = stands(ledger, path)
        body = RunDocument(
            project=project.name,
            plan=str(file),
            note=listed.note,
            account=listed.account,
            dry_run=dry_run,
            price=priced(new),
            fits=not new or ledger.quote(curator.accounts, _sequence(new), data=project.private.address),
            releases=[_document(each, project) for each in found],
            budget=[],
            alert=None,
        )
        if not dry_run:
            if new:
                _agreed(body, yes)
                again = partial(items, plans, ledger, curator, pay_again=pay_again)
                found = _paid(found, again, listed, ledger, curator, path)
            _release(found, body, listed, project, curator)
        after = stands(ledger, path, _sequence(new) if dry_run and new else None)
        body.budget = with_changes(accounts(ledger, path), before, after)
        body.alert = project.alert(ledger)
    return Outcome(body, lambda console: show_run(console, body), _code(body))


def _code(body: RunDocument) -> int:
    if body.dry_run:
        return 0 if body.fits else BUDGET
    return next((_CODES[each.status] for each in body.releases if each.status in _CODES), 0)


def _sequence(new: list[Item]) -> Sequence:
    return Sequence(plans={each.name: each.plan for each in new})


def _document(item: Item, project: Project) -> ReleaseDocument:
    out = None if item.out is None else str(item.out.resolve().relative_to(project.folder.resolve()))
    return ReleaseDocument(name=item.name, status=item.state, plan=item.plan.hash, price=price_text(item.plan), out=out)


def _agreed(body: RunDocument, yes: bool) -> None:
    """On a terminal, nothing is paid before somebody has seen the price."""
    if yes or not (sys.stdin.isatty() and sys.stderr.isatty()) or not body.fits:
        return
    console = screen(errors=True)
    show_price(console, body)
    try:
        said = console.input(Text("pay for it? [y/N] ")).strip().lower()
    except EOFError:
        said = ""
    if said not in ("y", "yes"):
        why = "nobody said yes"
        raise CommandError("nothing was charged", why, "run it again, or with --yes", INTERRUPTED)


def _paid(
    found: list[Item],
    read: Callable[[], list[Item]],
    listed: ReleaseList,
    ledger: Ledger,
    curator: Curator,
    path: tuple[str, ...],
) -> list[Item]:
    """All new ones as one list, before any of them runs; and where each stands then.

    The list may be paid already: by another process just now, or long ago, and its parts were taken by other commands.
    So what is new is read again, and what is still new then is paid under the next key.
    """
    times = 0
    while new := unpaid(found):
        whole, key = _sequence(new), key_of_list(new, times)
        if ledger.paid(key, curator.accounts, whole, data=curator.private.address) is None:
            try:
                curator.prepay(whole, note=listed.note, key=key)
            except PolicyError:
                raise
            except BudgetError as error:
                less = f"leave a release out of {listed.file.name}, or lower its epsilon or delta there"
                raise short_of(ledger, path, whole, error, less) from None
            return found
        found = read()
        times = times + 1 if [each.key for each in new] == [each.key for each in unpaid(found)] else 0
    return found


def _release(found: list[Item], body: RunDocument, listed: ReleaseList, project: Project, curator: Curator) -> None:
    """One by one. A release that fails is gone; the others go on, unless the account is locked by it."""
    told = {each.name: each for each in body.releases}
    data_opens()
    todo = [each for each in found if each.state != "stopped"]
    done: list[str] = []
    now: str | None = None
    try:
        with stoppable() as stopped:
            for item in counted(todo, "releasing"):
                now = item.name
                if not _one(item, told[item.name], listed, curator, stopped):
                    break
                done.append(item.name)
                now = None
    except BaseException:
        if stopped():
            raise _interrupted(len(done), len(todo), now) from None
        raise
    for each in todo:
        if each.name not in done and told[each.name].status in ("new", "paid"):
            told[each.name].status = "waiting"


def _one(item: Item, told: ReleaseDocument, listed: ReleaseList, curator: Curator, stopped: Callable[[], bool]) -> bool:
    """Release it, and write its answer; False where no more can be released."""
    note = f"{listed.note}: {item.name}" if listed.note else item.name
    try:
        release = curator.release(item.plan, note=note, key=None if item.state == "answered" else item.key)
    except DataError as error:
        if stopped():  # the engine's way of saying that it was interrupted
            raise
        told.status, told.problem = "failed", problem_of(error).why
        return True
    except ReceiptError:
        told.status, told.problem = "stopped", "another process runs it now, or was stopped while it did"
        return True
    except BudgetError as error:  # a lock, or an account that was closed meanwhile
        told.status, told.problem = "waiting", problem_of(error).why
        return False
    told.status = "answered" if item.state == "answered" else "released"
    told.rows, told.receipt = len(release.value), None if release.receipt is None else release.receipt.id
    if item.out is not None:
        told.written = _written(item.out, item, release)
    return True


def _written(out: Path, item: Item, release: Release) -> bool:
    """Was the file written? One that holds the same already is left alone."""
    content = encoded(release.value, out.suffix.lower().removeprefix("."), item.alpha)
    if _holds(out, content):
        return False
    with contextlib.suppress(OSError):  # writing says what is in the way
        out.parent.mkdir(parents=True, exist_ok=True)
    write_out(out, content)
    return True


def _holds(out: Path, content: bytes) -> bool:
    try:
        return out.is_file() and out.read_bytes() == content
    except OSError:
        return False


def _interrupted(done: int, all_: int, now: str | None) -> CommandError:
    lost = "" if now is None else f"; {now!r} was running, and is paid for again only with --pay-again"
    return CommandError(
        "interrupted",
        f"it was stopped by hand after {done} of {all_} releases{lost}",
        "run it again: it goes on where it stopped, and pays nothing twice",
        INTERRUPTED,
    )
