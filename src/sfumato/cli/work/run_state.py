"""Where each release of a list stands in the ledger: answered, paid, new, or stopped while it ran.

Each release has a key of its own, made from the data, the accounts, its plan and how often it was paid for. So two
processes that run one list at once pay for it once, and a process that died is taken up where it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ... import record
from ...curator import Curator
from ...errors import ReceiptError, SfumatoError
from ...ledger import Ledger
from ...project import Project
from ...project.plans import Listed, ReleaseList
from ...query import Sql
from ..problems import REFUSED, CommandError, problem_of

# answered before; paid, and not begun; not paid; paid, and stopped while it ran
State = Literal["answered", "paid", "new", "stopped"]


@dataclass(frozen=True)
class Item:
    """One release of the list, built.

    key  the one that it is, or will be, paid under
    """

    name: str
    plan: Sql
    out: Path | None
    alpha: float
    state: State
    key: str


def built(listed: ReleaseList, project: Project) -> list[tuple[Listed, Sql]]:
    """Every plan of the list. All queries that are refused are told together, each with its line."""
    found: list[tuple[Listed, Sql]] = []
    refused: list[tuple[Listed, SfumatoError]] = []
    hashes: dict[tuple[str, str | None], Listed] = {}
    for each in listed.releases:
        try:
            plan = each.plan(project)
        except SfumatoError as error:
            refused.append((each, error))
            continue
        first = hashes.setdefault((plan.hash, plan.written), each)  # one question may be shown in two ways
        if first is not each:
            cause = f"it asks the same as {first.name!r}, line {first.line}"
            raise listed.text.wrong(each.path, cause, "leave one out: the same plan has one answer")
        found.append((each, plan))
    if refused:
        raise _refused(listed, refused)
    return found


def _refused(listed: ReleaseList, refused: list[tuple[Listed, SfumatoError]]) -> CommandError:
    told = [(each, problem_of(error, "file")) for each, error in refused]
    name = listed.file.name
    if len(told) == 1:
        (each, problem) = told[0]
        return CommandError(f"{name}:{each.line}: {each.name}: {problem.what}", problem.why, problem.fix, problem.code)
    why = "\n".join(f"{name}:{each.line}: {each.name}: {problem.why}\n  {problem.fix}" for each, problem in told)
    return CommandError(f"{len(told)} releases are refused; nothing was charged", why, f"correct {name}", REFUSED)


def unpaid(found: list[Item]) -> list[Item]:
    """Those that are new, each question once."""
    return list({each.key: each for each in reversed(found) if each.state == "new"}.values())[::-1]


def items(plans: list[tuple[Listed, Sql]], ledger: Ledger, curator: Curator, *, pay_again: bool) -> list[Item]:
    """The releases, with where each stands."""
    return [_item(each, plan, ledger, curator, pay_again=pay_again) for each, plan in plans]


def _item(each: Listed, plan: Sql, ledger: Ledger, curator: Curator, *, pay_again: bool) -> Item:
    data, accounts = curator.private.address, curator.accounts
    form = curator.form_of(plan)
    assert isinstance(form, Sql)
    plan = form
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
    return Item(each.name, plan, each.out, each.alpha, state, key_of(curator, plan, times))


def _state(ledger: Ledger, curator: Curator, plan: Sql, times: int) -> State | None:
    """What became of the payment under that key; None where there was none."""
    try:
        paid = ledger.paid(key_of(curator, plan, times), curator.accounts, plan, data=curator.private.address)
    except ReceiptError:
        return "stopped"
    return None if paid is None else "paid" if paid[1] is None else "answered"


def key_of(curator: Curator, plan: Sql, times: int) -> str:
    """The key under which a plan of a list is paid for the n-th time."""
    asked = {"run": plan.hash, "data": curator.private.address, "accounts": curator.accounts, "times": times}
    return f"run {record.digest(asked)[:40]}"


def key_of_list(new: list[Item], times: int) -> str:
    """The key under which the new ones of a list are paid as one, for the n-th time."""
    return f"run list {record.digest([*(each.key for each in new), times])[:40]}"
