"""What `sfumato run` says: the price of a list as one and one by one, and what became of each release."""

from __future__ import annotations

from typing import Any, Literal

from rich.console import Console
from rich.text import Text

from ...combine import Sequence
from ...errors import UnsupportedEventError
from ...plan import price_text
from ..documents import Document, Part
from ..screen import columns, facts, say
from .budgets import AccountDocument, show_accounts
from .run_state import Item

Status = Literal["new", "paid", "answered", "stopped", "released", "failed", "waiting"]

_WORDS: dict[str, tuple[str, str]] = {
    "new": ("to be paid", ""),
    "paid": ("paid, not yet released", "green"),
    "answered": ("answered before: free", "green"),
    "stopped": ("stopped while it ran: needs --pay-again", "red"),
    "released": ("released", "bold green"),
    "failed": ("failed: needs --pay-again", "bold red"),
    "waiting": ("not run", "yellow"),
}


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


def priced(new: list[Item]) -> PriceDocument | None:
    """The price of these as one list, and one by one."""
    if not new:
        return None
    whole = Sequence(plans={each.name: each.plan for each in new})
    epsilon = _epsilon(whole)
    apart = [_epsilon(each.plan) for each in new]
    known = [each for each in apart if each is not None]
    delta = float(whole.delta)
    at = f" at delta = {delta:.3g}" if delta else ""
    summed = f"epsilon = {sum(known):.6g}{at}" if len(known) == len(new) else None
    return PriceDocument(
        releases=len(new),
        together=price_text(whole),
        one_by_one=summed,
        epsilon=epsilon,
        delta=delta,
    )


def _epsilon(plan: Any) -> float | None:
    try:
        return float(plan.price())
    except UnsupportedEventError:
        return None


def show_price(console: Console, body: RunDocument) -> None:
    """What is to be paid, before it is."""
    price = body.price
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
    for each in body.releases:
        words, style = _WORDS[each.status]
        out = each.out or ""
        if each.written is False:
            out += " (unchanged)"
        rows.append([each.name, Text(words, style=style), each.price, out])
    columns(console, ["release", "", "alone", "file"], rows)
    for each in body.releases:
        if each.problem is not None:
            say(console, each.problem, first=f"{each.name}: ", style="red")
    console.print()
    show_price(console, body)
    show_accounts(console, body.budget, label=f"{'budget':7}", now=body.dry_run)
    if body.dry_run:
        _verdict(console, body)
    if body.alert is not None:
        say(console, body.alert, first=Text(f"{'alert':7}  ", style="bold yellow"), style="yellow")


def _verdict(console: Console, body: RunDocument) -> None:
    if body.price is None:
        verdict = Text("free: running it charges nothing", style="bold green")
    elif body.fits:
        verdict = Text("fits the budget", style="bold green")
    else:
        verdict = Text(
            "does not fit the budget: leave something out, or have the account raised (`sfumato ledger limit`)",
            style="bold red",
        )
    facts(console, [("verdict", verdict)])
