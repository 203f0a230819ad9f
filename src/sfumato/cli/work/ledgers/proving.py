"""`sfumato ledger verify` and `export`: is it what was written, and all of it for other programs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

from rich.console import Console

from ....report.accounts.export import FORMATS, KINDS
from ...documents import Document, Part
from ...problems import FILE, LEDGER, CommandError
from ...progress import metered
from ...screen import facts, say
from ...telling import Outcome
from .where import Where

_MOST = 20  # problems that are shown one by one


class ProblemPart(Part):
    entry: int | None
    text: str


class VerifyDocument(Document):
    """`first_bad` is the first bad entry; null where all are good, or what is bad is no entry."""

    document: Literal["ledger-verify/1"] = "ledger-verify/1"
    holds: bool
    entries: int
    hash: str
    checkpoints: int
    accounts: int
    receipts: int
    first_bad: int | None
    problems: list[ProblemPart]
    notes: list[str]


class ExportDocument(Document):
    """A file that was written, and the entry that its rows end with."""

    document: Literal["ledger-export/1"] = "ledger-export/1"
    path: str
    what: str
    rows: int
    sha256: str
    entries: int
    hash: str


def verify(where: Where, trusted: list[str], state: bool) -> Outcome:
    """Everything is read again; the process ends with 7 where it does not hold."""
    if strange := [key for key in trusted if not re.fullmatch("[0-9a-f]{64}", key)]:
        raise CommandError(
            "--trust is no public key", f"{strange[0][:70]!r} was given", "give the 64 hex digits of the public key"
        )
    anchor, own = where.proof()
    with where.reading(bare=True) as ledger:
        last = ledger.overview().number
        with metered("verifying", last) as meter:
            verified = ledger.verify(
                anchor=anchor, trusted=[*trusted, *([own] if own else [])], state=state, progress=meter
            )
    body = VerifyDocument(
        holds=verified.ok,
        entries=verified.head.number,
        hash=verified.head.hash.hex(),
        checkpoints=verified.checkpoints,
        accounts=verified.accounts,
        receipts=verified.receipts,
        first_bad=verified.first_bad,
        problems=[ProblemPart(entry=each.entry, text=each.text) for each in verified.problems],
        notes=list(verified.notes),
    )
    return Outcome(body, lambda console: _show(console, body, anchor is not None), 0 if verified.ok else LEDGER)


def _show(console: Console, body: VerifyDocument, anchored: bool) -> None:
    if body.holds:
        say(console, "the ledger holds", style="bold green")
    else:
        first = "" if body.first_bad is None else f", from entry {body.first_bad} on"
        say(console, f"THE LEDGER DOES NOT HOLD{first}", style="bold red")
    lines: list[tuple[str, Any]] = [
        ("entries", f"{body.entries:,}, the last hash {body.hash[:16]}..."),
        ("accounts", f"{body.accounts:,}"),
        ("receipts", f"{body.receipts:,}"),
        ("anchor", f"{body.checkpoints:,} checkpoints" if anchored else "none: an end that was cut off is not seen"),
    ]
    lines += [("wrong", each.text if each.entry is None else f"entry {each.entry}: {each.text}") for each in
              body.problems[:_MOST]]  # fmt: skip
    lines += [("wrong", f"and {len(body.problems) - _MOST} more")] if len(body.problems) > _MOST else []
    facts(console, [*lines, *(("note", note) for note in body.notes)])
    if not body.holds:
        say(console, "Stop: release nothing from it. Restore the last good copy, and verify that against the anchor.")


def export(where: Where, path: Path, what: str, overwrite: bool, price: bool) -> Outcome:
    """Releases or entries in a file."""
    if path.parent != Path() and not path.parent.is_dir():
        raise CommandError(f"there is no folder {path.parent}", "the file would lie in it", "make it first", FILE)
    if path.suffix.lower() not in FORMATS or what not in KINDS:
        strange, choices = (what, KINDS) if what not in KINDS else (path.name, tuple(FORMATS))
        raise CommandError(
            "that cannot be exported", f"{strange[:60]!r} is not known", f"it may be, or end in, {', '.join(choices)}"
        )
    if path.exists() and not overwrite:
        raise CommandError(f"there is a file {path}", "it would be lost", "give another name, or --overwrite", FILE)
    with where.reading(paper=True) as ledger:
        last = ledger.overview().number
        with metered("exporting", last) as meter:
            done = ledger.export(
                path, what=what, overwrite=overwrite, price=price, progress=lambda number, _: meter(number)
            )
    body = ExportDocument(
        path=str(done.path), what=what, rows=done.rows, sha256=done.sha256, entries=done.number, hash=done.hash
    )

    def show(console: Console) -> None:
        lines = [("file", body.path), ("rows", f"{body.rows:,} {what}"), ("sha256", body.sha256)]
        facts(console, [*lines, ("reaches", f"entry {body.entries:,}, hash {body.hash[:16]}...")])

    return Outcome(body, show)
