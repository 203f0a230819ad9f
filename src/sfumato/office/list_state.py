"""Where each release of a list stands in the ledger: answered, paid, new, or stopped while it ran.

Each release has a key of its own, made from the data, the accounts, its plan and how often it was paid for. So two
processes that run one list at once pay for it once, and a process that died is taken up where it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from .. import record
from ..curator import Curator
from ..errors import ReceiptError, SfumatoError
from ..ledger import Ledger
from ..plan import Plan
from ..project.plans import ListedRelease, ReleaseList
from ..project.project import Project

# answered before; paid, and not begun; not paid; paid, and stopped while it ran
State = Literal["answered", "paid", "new", "stopped"]


class ListError(SfumatoError):
    """Releases of a list that are refused, each with why."""

    def __init__(self, listed: ReleaseList, refused: Sequence[tuple[ListedRelease, SfumatoError]]) -> None:
        lines = (f"{listed.file.name}:{release.line}: {release.name}: {error}" for release, error in refused)
        super().__init__("\n".join(lines))
        self.listed, self.refused = listed, tuple(refused)


@dataclass(frozen=True)
class Item:
    """One release of the list, built.

    key  the one that it is, or will be, paid under
    """

    name: str
    plan: Plan[Any, Any]
    out: Path | None
    alpha: float
    state: State
    key: str


def built(listed: ReleaseList, project: Project) -> list[tuple[ListedRelease, Plan[Any, Any]]]:
    """Every plan of the list. All that are refused are told together."""
    plans: list[tuple[ListedRelease, Plan[Any, Any]]] = []
    refused: list[tuple[ListedRelease, SfumatoError]] = []
    first_of: dict[tuple[str, str | None], ListedRelease] = {}
    for release in listed.releases:
        try:
            plan = release.plan(project)
        except SfumatoError as error:
            refused.append((release, error))
            continue
        shown = getattr(plan, "written", None)  # one question of SQL may be shown in two ways
        first = first_of.setdefault((plan.hash, shown), release)
        if first is not release:
            cause = f"it asks the same as {first.name!r}, line {first.line}"
            raise listed.text.wrong(release.path, cause, "leave one out: the same plan has one answer")
        plans.append((release, plan))
    if refused:
        raise ListError(listed, refused)
    return plans


def unpaid(items: list[Item]) -> list[Item]:
    """Those that are new, each question once."""
    return list({item.key: item for item in reversed(items) if item.state == "new"}.values())[::-1]


def items(
    plans: list[tuple[ListedRelease, Plan[Any, Any]]], ledger: Ledger, curator: Curator, *, pay_again: bool
) -> list[Item]:
    """The releases, with where each stands."""
    return [_item(release, plan, ledger, curator, pay_again=pay_again) for release, plan in plans]


def _item(release: ListedRelease, plan: Plan[Any, Any], ledger: Ledger, curator: Curator, *, pay_again: bool) -> Item:
    data, accounts = curator.private.address, curator.accounts
    plan = curator.form_of(plan)
    times, state = 0, _state(ledger, curator, plan, 0)
    while state == "stopped" and _state(ledger, curator, plan, times + 1) is not None:
        times += 1
        state = _state(ledger, curator, plan, times)
    if state == "stopped" and (pay_again or ledger.prepaid(accounts, plan, data=data) is not None):
        times, state = times + 1, None
    if ledger.answer(accounts, plan.hash, data) is not None:
        state = "answered"
    elif state is None:
        state = "paid" if ledger.prepaid(accounts, plan, data=data) is not None else "new"
    return Item(release.name, plan, release.out, release.alpha, state, key_of(curator, plan, times))


def _state(ledger: Ledger, curator: Curator, plan: Plan[Any, Any], times: int) -> State | None:
    """What became of the payment under that key; None where there was none."""
    try:
        paid = ledger.paid(key_of(curator, plan, times), curator.accounts, plan, data=curator.private.address)
    except ReceiptError:
        return "stopped"
    return None if paid is None else "paid" if paid[1] is None else "answered"


def key_of(curator: Curator, plan: Plan[Any, Any], times: int) -> str:
    """The key under which a plan of a list is paid for the n-th time."""
    request = {"run": plan.hash, "data": curator.private.address, "accounts": curator.accounts, "times": times}
    return f"run {record.digest(request)[:40]}"


def key_of_list(new: list[Item], times: int) -> str:
    """The key under which the new ones of a list are paid as one, for the n-th time."""
    return f"run list {record.digest([*(item.key for item in new), times])[:40]}"
