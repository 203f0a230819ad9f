"""What `sfumato run` says: the price of a list as one and one by one, and what became of each release."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from ...office.lists import PriceDocument, RunDocument
from ..screen import columns, facts, say
from .budgets import show_accounts

WORDS: dict[str, tuple[str, str]] = {
    "new": ("to be paid", ""),
    "paid": ("paid, not yet released", "green"),
    "answered": ("answered before: free", "green"),
    "stopped": ("stopped while it ran: needs --pay-again", "red"),
    "released": ("released", "bold green"),
    "failed": ("failed: needs --pay-again", "bold red"),
    "waiting": ("not run", "yellow"),
}


def show_price(console: Console, price: PriceDocument | None) -> None:
    """What is to be paid, before it is."""
    if price is None:
        facts(console, [("price", "nothing: all of it is paid")], wide=len("verdict"))
        return
    lines: list[tuple[str, Any]] = [("price", Text(price.together, style="bold"))]
    if price.releases > 1:
        apart = "" if price.one_by_one is None else f"; one by one {price.one_by_one}"
        lines.append(("", Text(f"for {price.releases} releases as one list{apart}", style="dim")))
    facts(console, lines, wide=len("verdict"))


def show_run(console: Console, body: RunDocument) -> None:
    """The table of releases, the price and the budget."""
    rows = []
    for release in body.releases:
        words, style = WORDS[release.status]
        out = release.out or ""
        if release.written is False:
            out += " (unchanged)"
        rows.append([release.name, Text(words, style=style), release.price, out])
    columns(console, ["release", "", "alone", "file"], rows)
    for release in body.releases:
        if release.problem is not None:
            say(console, release.problem, first=f"{release.name}: ", style="red")
    console.print()
    show_price(console, body.price)
    show_accounts(console, body.budget, label=f"{'budget':7}", now=body.dry_run)
    if body.dry_run:
        show_verdict(console, body.price, fits=body.fits)
    if body.alert is not None:
        say(console, body.alert, first=Text(f"{'alert':7}  ", style="bold yellow"), style="yellow")


def show_verdict(console: Console, price: PriceDocument | None, *, fits: bool) -> None:
    """Would it be paid?"""
    if price is None:
        verdict = Text("free: running it charges nothing", style="bold green")
    elif fits:
        verdict = Text("fits the budget", style="bold green")
    else:
        verdict = Text(
            "does not fit the budget: leave something out, or have the account raised (`sfumato ledger limit`)",
            style="bold red",
        )
    facts(console, [("verdict", verdict)])
