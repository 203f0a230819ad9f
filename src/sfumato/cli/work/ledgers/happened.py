"""`sfumato ledger history`: what happened, entry by entry."""

from __future__ import annotations

from collections import deque
from datetime import UTC, datetime
from typing import Any, Literal

from rich.console import Console
from rich.text import Text

from ....ledger import Ledger
from ....plan import Receipt
from ....report.accounts import Entry
from ...documents import Document, Part
from ...problems import CommandError
from ...screen import columns, say
from ...telling import Outcome
from .where import Where

_SHORT = 60  # letters of a reason or purpose on the screen


class EntryPart(Part):
    """One entry of the ledger, with the fields that it has in words. `outcome` is how a receipt was settled."""

    number: int
    hash: str
    kind: str
    by: str | None
    at: str | None
    accounts: list[str]
    receipt: str | None
    why: str | None
    outcome: str | None = None
    fields: dict[str, Any]


class HistoryDocument(Document):
    """`left_off` counts entries that fit what was asked and are older than those shown."""

    document: Literal["ledger-history/1"] = "ledger-history/1"
    entries: list[EntryPart]
    left_off: int


def history(
    where: Where, account: str | None, by: str | None, kind: str | None, last: int, since: str | None
) -> Outcome:
    """The last entries, oldest first."""
    start = None if since is None else _moment(since)
    with where.reading() as ledger:
        entries, count = _last(ledger, {"account": account, "by": by, "kind": kind}, last, start)
    body = HistoryDocument(entries=[_part(each) for each in entries], left_off=count - len(entries))

    def show(console: Console) -> None:
        if not entries:
            say(console, "No entry fits that.")
            return
        rows = [_row(each) for each in body.entries]
        columns(console, ("entry", "when (UTC)", "what", "by", "accounts", ""), rows, right=(0,))
        if body.left_off:
            say(console, f"{body.left_off} older ones: --last {last + body.left_off} shows them too.", style="dim")

    return Outcome(body, show)


def _last(ledger: Ledger, which: dict[str, str | None], last: int, since: datetime | None) -> tuple[list[Entry], int]:
    head = ledger.overview().number
    if since is None and not any(which.values()):  # no need to read what is not shown
        first = max(head - last + 1, 1)
        return list(ledger.history(first=first, last=head)), head
    entries: deque[Entry] = deque(maxlen=last)
    count = 0
    for entry in ledger.history(account=which["account"], by=which["by"], kind=which["kind"]):
        if since is None or (entry.time is not None and entry.time >= since):
            entries.append(entry)
            count += 1
    return list(entries), count


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise CommandError(
            "--since is no date", f"{text[:60]!r} was given", "write 2026-11-30, or 2026-11-30T08:00"
        ) from None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _part(entry: Entry) -> EntryPart:
    receipt = entry.fields.get("receipt")
    note = receipt.note if isinstance(receipt, Receipt) and receipt.note else None
    return EntryPart(
        number=entry.number,
        hash=entry.hash,
        kind=entry.kind,
        by=entry.by,
        at=entry.at,
        accounts=list(entry.accounts),
        receipt=entry.receipt,
        why=entry.reason or note,
        outcome=entry.outcome,
        fields=entry.as_dict()["fields"],
    )


def _row(entry: EntryPart) -> tuple[Any, ...]:
    when = (entry.at or "")[:16]
    more = [_cut(entry.why)] if entry.why else []
    more += [f"receipt {entry.receipt[:8]}"] if entry.receipt else []
    more += [entry.outcome] if entry.outcome else []
    return entry.number, when, entry.kind, entry.by or "", ", ".join(entry.accounts), Text("; ".join(more), style="dim")


def _cut(text: str) -> str:
    return text if len(text) <= _SHORT else text[: _SHORT - 1] + "…"
