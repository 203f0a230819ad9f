"""Accounts from the shell: opened, given more or less, closed, unlocked. Each is an entry with a reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

from rich.console import Console

from ....accounting.budget import Budget
from ....accounting.filters import SHORT_OF_DELTA
from ....errors import BudgetError
from ....ledger import Ledger
from ....ledger.grants import SHARING
from ....report.accounts.overview import unit_of
from ...documents import Document
from ...problems import BUDGET, FILE, LEDGER, CommandError
from ...screen import say
from ...telling import Outcome
from ..numbers import exact, exact_or_none
from .where import Where

Kind = Literal["ledger-allocate/1", "ledger-limit/1", "ledger-move/1", "ledger-close/1", "ledger-unlock/1"]


class ChangeDocument(Document):
    """What was done, and the entry that says so."""

    document: Kind
    done: str
    account: str
    entry: int
    hash: str


class OpenDocument(Document):
    """`made` is what was missing; `differs` is what the ledger has otherwise than sfumato.yaml, and was left so."""

    document: Literal["ledger-open/1"] = "ledger-open/1"
    ledger: str
    made: list[str]
    differs: list[str]


def _budget(epsilon: str | None, delta: str | None, rho: str | None, raisable: bool) -> Budget:
    if (epsilon is None) == (rho is None):
        raise CommandError(
            "a limit is an epsilon or a rho",
            "neither is given" if rho is None else "both are given",
            "give --epsilon, with --delta or without, or --rho",
        )
    size = {"epsilon": exact(epsilon, "--epsilon")} if epsilon is not None else {"rho": exact(rho or "", "--rho")}
    return Budget(**size, delta=exact_or_none(delta, "--delta") or 0, raisable=raisable)


def allocate(
    where: Where,
    name: str,
    limit: tuple[str | None, str | None, str | None, bool],
    under: str | None,
    level: str | None,
    reason: str,
) -> Outcome:
    """A new account below another: by default the project's own."""
    budget = _budget(*limit)
    parent = under if under is not None or where.home is None else where.home.account

    def act(ledger: Ledger) -> str:
        placed = {each.account.name: each.account for each in ledger.overview().accounts}
        if (there := placed.get(name)) is not None:
            raise CommandError(
                f"there is an account {name!r} already",
                f"it has {'no limit of its own' if there.filter is None else there.filter.budget}",
                "change its limit with `sfumato ledger limit`, or take another name",
                BUDGET,
            )
        kind = level if level is not None else _level(placed[parent].level if parent in placed else None)
        unit = unit_of(placed, parent) or (None if where.home is None else where.home.unit)
        ledger.open_account(name, budget, parent=parent, level=kind, unit=unit, reason=reason)
        below = f", below {parent}" if parent is not None else ""
        return f"account {name} has {budget}{below}"

    return _changed(where, "ledger-allocate/1", name, act)


def _level(above: str | None) -> str:
    """One step below the account that it is a part of; an account below none holds data."""
    if above is None:
        return "data set"
    after = SHARING.index(above) + 1 if above in SHARING else 0
    if after == len(SHARING):
        raise BudgetError("a person's account has none below it: give another --under")
    return SHARING[after]


def limit(where: Where, name: str, numbers: tuple[str | None, str | None, str | None, bool], reason: str) -> Outcome:
    """Raise or lower the limit of an account. A delta that is not named stays as it is."""
    wanted, delta_given = _budget(*numbers), numbers[1] is not None

    def act(ledger: Ledger) -> str:
        budget = wanted if delta_given or wanted.epsilon is None else _with_delta_of(ledger, name, wanted)
        try:
            ledger.change_limit(name, budget, reason=reason)
        except BudgetError as problem:
            if delta_given or problem.code != SHORT_OF_DELTA:
                raise
            raise _short_of_delta(name, budget, problem) from None
        return f"account {name} has {budget} now"

    return _changed(where, "ledger-limit/1", name, act)


def _short_of_delta(name: str, budget: Budget, problem: BudgetError) -> CommandError:
    """An account that was used is raised with some delta more; who did not speak of delta is told how much does."""
    more = f"--epsilon {float(budget.epsilon):g} --delta {float(2 * budget.delta):g}"
    return CommandError(
        f"the limit of {name} stays as it is",
        problem.cause,
        f"sfumato ledger limit {name} {more} --reason WHY",
        BUDGET,
    )


def _with_delta_of(ledger: Ledger, name: str, budget: Budget) -> Budget:
    placed = next((each.account for each in ledger.overview().accounts if each.account.name == name), None)
    now = None if placed is None or placed.filter is None else placed.filter.budget
    if now is None or now.epsilon is None:
        return budget
    return replace(now, epsilon=budget.epsilon, raisable=budget.raisable or now.raisable)


def move(where: Where, source: str, target: str, epsilon: str | None, rho: str | None, reason: str) -> Outcome:
    """A part of one account's limit goes to another under the same parent."""
    sizes = {"epsilon": exact_or_none(epsilon, "--epsilon"), "rho": exact_or_none(rho, "--rho")}

    def act(ledger: Ledger) -> str:
        ledger.move(source, target, reason=reason, **sizes)
        part = f"epsilon = {epsilon}" if rho is None else f"rho = {rho}"
        return f"{part} of the limit of {source} went to {target}"

    return _changed(where, "ledger-move/1", target, act)


def close(where: Where, name: str, reason: str) -> Outcome:
    def act(ledger: Ledger) -> str:
        ledger.close_account(name, reason=reason)
        return f"account {name} is closed: nothing more is paid from it, nor from what stands below it"

    return _changed(where, "ledger-close/1", name, act)


def unlock(where: Where, name: str, reason: str) -> Outcome:
    def act(ledger: Ledger) -> str:
        locked = next((each for each in ledger.overview().accounts if each.account.name == name), None)
        if locked is not None and not locked.account.failures:
            raise CommandError(f"account {name!r} is not locked", "it has no failures", "there is nothing to do")
        ledger.unlock(name, reason)
        return f"account {name} is unlocked"

    return _changed(where, "ledger-unlock/1", name, act)


def _changed(where: Where, kind: Kind, account: str, act: Callable[[Ledger], str]) -> Outcome:
    with where.writing() as ledger:
        done = act(ledger)
        now = ledger.overview()
    body = ChangeDocument(document=kind, done=done, account=account, entry=now.number, hash=now.hash)

    def show(console: Console) -> None:
        say(console, done)
        say(console, f"entry {body.entry}, hash {body.hash[:16]}...", style="dim")

    return Outcome(body, show)


def opened(where: Where) -> Outcome:
    """Make what sfumato.yaml says and is not there: key, anchor, ledger and accounts."""
    project = where.home
    if project is None:
        raise CommandError(
            "only a project's ledger is opened so",
            "sfumato.yaml says which accounts it has, and --ledger names none",
            "leave --ledger out, and give --project",
            FILE,
        )
    place = project.place
    parts = [("key", place.key), ("anchor", place.anchor), ("ledger", None if place.served else Path(place.place))]
    missing = [(what, path) for what, path in parts if path is not None and not path.exists()]
    with project.ledger(create=True, principal=where.principal) as ledger:
        if not ledger.continues:
            raise CommandError(
                "nothing was made",
                "the ledger does not continue its anchor, or the anchor is gone",
                "bring back the copy that belongs to it: see `sfumato ledger verify`",
                LEDGER,
            )
        done = project.open_accounts(ledger)
    lines = [f"{what} {_beside(path)} was made" for what, path in missing] + list(done.opened)
    body = OpenDocument(
        ledger=str(place) if place.served else _beside(place.place), made=lines, differs=list(done.differs)
    )

    def show(console: Console) -> None:
        for line in body.made:
            say(console, line)
        for line in body.differs:
            say(console, line, style="yellow")
        if not body.made and not body.differs:
            say(console, "the ledger is as sfumato.yaml says")
        elif body.differs:
            say(
                console,
                "What differs was left as it is: change it with `sfumato ledger limit`, or change sfumato.yaml.",
                style="dim",
            )

    return Outcome(body, show)


def _beside(place: str | Path) -> str:
    """A place as it is seen from here."""
    path = Path(place)
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
