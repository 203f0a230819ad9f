"""What an account has to show to others: report, NIST checklist, registry of deployments, forecast."""

from __future__ import annotations

import re
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.text import Text

from ...documents import Document
from ...problems import FILE, CommandError
from ...progress import working
from ...screen import facts, say
from ...telling import Outcome
from ..numbers import exact_or_none
from .where import Where


class ReportDocument(Document):
    document: Literal["ledger-report/1"] = "ledger-report/1"
    path: str
    account: str | None
    release: str | None


class ChecklistDocument(Document):
    document: Literal["ledger-checklist/1"] = "ledger-checklist/1"
    checklist: dict[str, Any]
    missing: list[str]


class RegistryDocument(Document):
    document: Literal["ledger-registry/1"] = "ledger-registry/1"
    account: str
    yaml: str


class ForecastDocument(Document):
    document: Literal["ledger-forecast/1"] = "ledger-forecast/1"
    forecast: dict[str, Any]


def report(
    where: Where, account: str | None, release: str | None, out: Path | None, redact: list[str], overwrite: bool
) -> Outcome:
    """An account, or one release, as a page to sign or as JSON."""
    from ....report import account_report, release_report  # brings what draws pages

    if account is not None and release is not None:
        raise CommandError("that is two reports", "an account and --release are given", "give one of the two")
    account = where.account(account) if release is None else None
    target = _target(where, account or f"release-{(release or '')[:16]}", out, overwrite)
    about, hidden = where.about, tuple(redact)
    with where.reading(paper=True) as ledger, working("writing the report"):
        if release is not None:
            which = int(release) if re.fullmatch("[0-9]{1,15}", release) else release
            page = release_report(ledger, which, about=about, redact=hidden)
        else:
            page = account_report(
                ledger, account or "", about=about, redact=hidden, alert_threshold=where.alert_threshold
            )
        page.write(target)
    body = ReportDocument(path=str(target), account=account, release=release)

    def show(console: Console) -> None:
        say(console, f"{target}", first="report  ")

    return Outcome(body, show)


def _target(where: Where, what: str, out: Path | None, overwrite: bool) -> Path:
    """Where the report goes, refused before anything is read. One without a name of its own is written anew."""
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", what).strip("-.") or "account"
    target = out or where.folder / f"report-{name}.html"
    if target.suffix.lower() not in (".html", ".json"):
        raise CommandError(
            f"{target} has no ending that is known", "a report is HTML or JSON", "let it end in .html or .json"
        )
    if out is not None and target.exists() and not overwrite:
        raise CommandError(f"there is a file {target}", "it would be lost", "give another --out, or --overwrite", FILE)
    if target.suffix.lower() == ".html" and find_spec("jinja2") is None:
        raise ModuleNotFoundError("the page of a report needs jinja2", name="jinja2")
    return target


def checklist(where: Where, account: str | None, redact: list[str]) -> Outcome:
    """The fields of NIST SP 800-226 that a claim must state."""
    with where.reading(paper=True) as ledger:
        form = ledger.checklist(where.account(account), where.about, redact=tuple(redact))
    body = ChecklistDocument(checklist=form.as_dict(), missing=list(form.missing))

    def show(console: Console) -> None:
        title = f"NIST SP 800-226 checklist of account {form.account!r}, as of entry {form.number}"
        say(console, title, style="bold")
        for line in form.lines:
            open_ = line.field in form.missing
            mark = Text(f"[{' ' if open_ else 'x'}] {line.field}  ", style="yellow" if open_ else "")
            say(console, f"{line.text} ({line.section})", first=mark, style="dim" if open_ else "")
        console.print()
        say(console, "Hazards that apply, and what is done about them", style="bold")
        for hazard in form.hazards:
            say(console, f"{hazard.text} → {hazard.control}", first=f"{hazard.number:>2}  ")
        if form.missing:
            say(console, f"{len(form.missing)} fields are open: say them under `about:` in sfumato.yaml.", style="dim")

    return Outcome(body, show)


def registry(where: Where, account: str | None, redact: list[str]) -> Outcome:
    """The entry for the registry of deployments, as YAML and nothing else, for a file."""
    name = where.account(account)
    with where.reading(paper=True) as ledger:
        text = ledger.registry(name, where.about, redact=tuple(redact))

    def show(console: Console) -> None:
        console.print(Text(text.rstrip("\n")), soft_wrap=True)

    return Outcome(RegistryDocument(account=name, yaml=text), show)


def forecast(where: Where, account: str | None, error: str | None, size: str | None, days: int) -> Outcome:
    """When the account is used up at the present rate, and how many more counts within an error it has room for."""
    within, people = exact_or_none(error, "--error"), exact_or_none(size, "--size")
    if people is not None and within is None:
        raise CommandError("--size stands beside --error", "--error is not given", "give it, as a part: --error 0.05")
    how: dict[str, Any] = {} if within is None else {"error": float(within)}
    how |= {} if people is None else {"size": float(people)}
    with where.reading() as ledger:
        outlook = ledger.forecast(where.account(account), window=timedelta(days=days), **how)
    body = ForecastDocument(forecast=outlook.as_dict())

    def show(console: Console) -> None:
        _, *lines = str(outlook).splitlines()
        facts(console, [("account", outlook.account), *(("forecast", line.strip()) for line in lines)])
        say(console, "An estimate: what counts is what the account says when a release is asked for.", style="dim")

    return Outcome(body, show)
