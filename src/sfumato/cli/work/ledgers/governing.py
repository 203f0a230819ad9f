"""What officers do, from the shell: adopt a policy, ask for approvals and give them, accept a ledger that was restored.
Each is an entry with a reason."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from rich.console import Console

from ....errors import PolicyError
from ....ledger import Ledger, compare, load_policy
from ....ledger.policy.approvals import Act
from ...documents import Document, Part
from ...problems import POLICY, CommandError
from ...screen import columns, facts, say
from ...telling import Outcome
from .where import Where

Kind = Literal[
    "ledger-adopt/1", "ledger-provision/1", "ledger-ask/1", "ledger-approve/1", "ledger-accept-restore/1"
]  # fmt: skip


class RuledDocument(Document):
    """What was done, line by line, and the last entry that says so.

    name  what was asked for, and is approved by: of an asking and an approval
    """

    document: Kind
    done: list[str]
    name: str | None = None
    entry: int
    hash: str


class AskedPart(Part):
    """What was asked for: the act in three texts, and who has approved it so far, until when."""

    name: str
    do: str
    on: str
    what: str
    approved: dict[str, str]


class PendingDocument(Document):
    """What waits for approvals, by the names that these are given with."""

    document: Literal["ledger-pending/1"] = "ledger-pending/1"
    asked: list[AskedPart]


def adopt(where: Where, file: Path, reason: str) -> Outcome:
    """From now on this policy is obeyed."""
    policy = load_policy(file)

    def act(ledger: Ledger) -> list[str]:
        before = ledger.policy()
        ledger.adopt(policy, reason=reason)
        if before is None:
            return [f"the policy of {file.name} is in force: it is the ledger's first"]
        return [f"the policy of {file.name} is in force", *compare(before, policy)]

    return _ruled(where, "ledger-adopt/1", act)


def provision(where: Where) -> Outcome:
    """Bring the accounts to what the policy lists."""

    def act(ledger: Ledger) -> list[str]:
        return list(ledger.provision()) or ["the accounts are as the policy lists them"]

    return _ruled(where, "ledger-provision/1", act)


def ask(where: Where, do: str, on: str, what: str, reason: str) -> Outcome:
    """Ask others for approval of an act, as a refusal names it."""
    name = ""

    def act(ledger: Ledger) -> list[str]:
        nonlocal name
        name = ledger.ask(Act(do=do, on=on, what=what), reason=reason)
        return [
            f"it is asked for under the name {name}",
            f"others approve it: `sfumato ledger approve {name[:12]} --reason WHY`",
        ]

    return _ruled(where, "ledger-ask/1", act, lambda: name)


def pending(where: Where) -> Outcome:
    """What was asked for, with the approvals so far."""
    with where.reading() as ledger:
        waiting = ledger.pending()
    parts = [
        AskedPart(
            name=name,
            do=each.act.do,
            on=each.act.on,
            what=each.act.what,
            approved={approval.by: approval.until for approval in each.given},
        )
        for name, each in sorted(waiting.items())
    ]

    def show(console: Console) -> None:
        if not parts:
            say(console, "Nothing was asked for.")
            return
        rows = [(each.name[:12], each.do, each.on, each.what[:12], ", ".join(each.approved)) for each in parts]
        columns(console, ("name", "to do", "on", "what", "approved by"), rows)

    return Outcome(PendingDocument(asked=parts), show)


def approve(where: Where, name: str, reason: str) -> Outcome:
    """Approve what was asked for; the first signs of its name do, where they are nobody else's."""
    whole = name

    def act(ledger: Ledger) -> list[str]:
        nonlocal whole
        whole = _named(name, list(ledger.pending()))
        ledger.approve(whole, reason=reason)
        return [f"{whole[:12]} is approved"]

    return _ruled(where, "ledger-approve/1", act, lambda: whole)


def _named(name: str, names: list[str]) -> str:
    matches = [each for each in names if name and each.startswith(name)]
    if len(matches) == 1:
        return matches[0]
    if not matches:
        raise PolicyError(
            "nobody asked for that: look at ledger.pending()", cause="nobody asked for that", code="nothing-asked"
        )
    raise CommandError(
        "that is more than one", f"{len(matches)} names begin with {name!r}", "give more of the name", POLICY
    )


def accept_restore(where: Where, persons: tuple[str, ...], reason: str) -> Outcome:
    """Go on from this copy of the ledger, though its anchor or its head saw another."""
    if len(persons) != 2 or len(set(persons)) != 2:
        raise CommandError(
            "two persons answer for that",
            f"{len(set(persons))} different name(s) are given",
            "give two names: --person A --person B",
        )

    def act(ledger: Ledger) -> list[str]:
        ledger.accept_restore(reason, persons)
        return [f"the ledger goes on from this copy: {' and '.join(persons)} answer for it"]

    return _ruled(where, "ledger-accept-restore/1", act)


def _ruled(
    where: Where, kind: Kind, act: Callable[[Ledger], list[str]], name: Callable[[], str | None] = lambda: None
) -> Outcome:
    with where.writing() as ledger:
        done = act(ledger)
        now = ledger.overview()
    body = RuledDocument(document=kind, done=done, name=name(), entry=now.number, hash=now.hash)

    def show(console: Console) -> None:
        for line in body.done:
            say(console, line)
        facts(console, [("entry", f"{body.entry}, hash {body.hash[:16]}...")])

    return Outcome(body, show)
