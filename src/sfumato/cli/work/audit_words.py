"""What `sfumato audit` says: a table of claims and lower bounds, the worst pair of each plan, and what that proves."""

from __future__ import annotations

from typing import Any, Literal

from rich.console import Console
from rich.text import Text

from ...report.words import figure, near
from ..documents import Document, Part
from ..screen import columns, facts, percent, say

Figure = float | Literal["infinite"]
_STYLES = {"within": "green", "broken": "bold red", "could not run": "bold yellow"}


class MadePart(Part):
    """When it was written, and with what."""

    at: str
    by: str
    libraries: dict[str, str]


class PointPart(Part):
    """One point of the curve."""

    delta: float
    claim: Figure
    shown: Figure


class WayPart(Part):
    """The best that one way of looking has shown; `share` is of the claim."""

    way: str
    epsilon: Figure
    claim: Figure
    delta: float
    share: float | None
    words: str
    broken: bool


class TablePart(Part):
    """One side of the worst pair: made-up rows, the first of `count`."""

    title: str
    columns: list[str]
    rows: list[list[str]]
    count: int


class CountPart(Part):
    """How often the event happened on one side."""

    hits: int
    runs: int


class ShownPart(Part):
    """What was proven at least, where it was most.

    curve     the same at every delta that was looked at
    counts    how often the event happened on the table and on its neighbour
    tables    the worst pair, as made-up rows
    evidence  what `sfumato audit --reproduce` counts again
    """

    epsilon: Figure
    claim: Figure
    delta: float
    share: float | None
    pair: str
    event: str
    curve: list[PointPart]
    ways: list[WayPart]
    runs: int
    pairs: int
    false_alarm: float
    seconds: float
    counts: list[CountPart]
    tables: list[TablePart]
    evidence: dict[str, Any]


class VerifiedPart(Part):
    """What listing every outcome, with its exact probability, has shown on so many pairs."""

    verdict: Literal["holds", "broken", "undecided"]
    broken: bool
    pairs: int
    outcomes: int
    share: float | None
    words: str


class PromisePart(Part):
    promise: str
    figure: str


class ModelPart(Part):
    """An audit of trained models; `roc` and `bound` are pairs of false-positive and true-positive rates."""

    title: str
    broken: bool
    epsilon: Figure
    claim: Figure
    delta: float
    share: float | None
    words: str
    roc: list[tuple[float, float]]
    bound: list[tuple[float, float]]


class AuditedPart(Part):
    """One plan.

    verdict   "could not run" proves nothing either way; `problem` says why
    shown     null where nothing was shown
    verified  null where the outputs are not finitely many; `unverified` says why
    """

    name: str
    kind: str
    hash: str | None
    price: str
    hides: str
    neighbours: str
    verdict: Literal["within", "broken", "could not run"]
    problem: str | None
    shown: ShownPart | None
    verified: VerifiedPart | None
    unverified: str | None
    promises: list[PromisePart]
    broken_promise: str | None
    models: list[ModelPart]
    notes: list[str]


class ReproducedDocument(Document):
    """The evidence of an audit, counted again on fresh runs."""

    document: Literal["audit-reproduced/1"] = "audit-reproduced/1"
    file: str
    kind: str
    pair: str
    event: str
    epsilon: Figure
    claim: Figure
    delta: float
    broken: bool


class AuditDocument(Document):
    """How each plan ended.

    holds     are all of them within their claims?
    command   the line that does it again
    out       the report that was written; `evidence` the files
    """

    document: Literal["audit/1"] = "audit/1"
    title: str
    made: MadePart
    command: str | None
    seed: int | None
    holds: bool
    proves: str
    plans: list[AuditedPart]
    out: str | None
    evidence: list[str]


def show_audit(console: Console, body: AuditDocument) -> None:
    """The table, the worst pair of each, and what it proves."""
    columns(
        console,
        ("plan", "claim", "proven at least", "share", "exactly", "ways", "verdict", "time"),
        [_row(each) for each in body.plans],
        right=(2, 3, 4, 5, 7),
    )
    for plan in body.plans:
        console.print()
        _details(console, plan)
    console.print()
    say(console, body.proves, style="dim")
    if not body.holds:
        say(console, "NOT ALL HELD: pay for none of these before it is known why.", style="bold red")
    for path in (*([body.out] if body.out is not None else []), *body.evidence):
        say(console, path, first="written  ")


def _row(plan: AuditedPart) -> list[Any]:
    verdict = Text(plan.verdict, style=_STYLES[plan.verdict])
    shown = plan.shown
    if shown is None:
        if not plan.models:
            return [plan.name, plan.price, "", "", "", "", verdict, ""]
        model = plan.models[0]
        part = "" if model.share is None else percent(model.share)
        return [plan.name, plan.price, figure(model.epsilon), part, "", str(len(plan.models)), verdict, ""]
    claim, ways = f"{figure(shown.claim)} at delta = {near(shown.delta)}", str(len(shown.ways))
    part = "" if shown.share is None else percent(shown.share)
    shares = [way.share for way in shown.ways if way.way == "exact loss" and way.share is not None]
    exact = percent(shares[0]) if shares else ""
    return [plan.name, claim, figure(shown.epsilon), part, exact, ways, verdict, f"{shown.seconds:.1f} s"]


def _details(console: Console, plan: AuditedPart) -> None:
    say(console, Text(plan.name, style="bold"))
    lines: list[tuple[str, Any]] = [("price", plan.price), ("hides", plan.hides)]
    shown = plan.shown
    if shown is not None:
        if shown.epsilon == 0:
            lines.append(("shown", "nothing by samples yet: so few runs do not tell these apart. --minutes shows more"))
        lines += [("pair", shown.pair), ("event", shown.event)]
        if shown.counts:
            lines.append(("counts", " against ".join(f"{each.hits:,} of {each.runs:,}" for each in shown.counts)))
        tried = f"{shown.runs:,} on each side; {shown.pairs:,} pairs tried; false alarm {near(shown.false_alarm)}"
        lines.append(("runs", tried))
        lines += [("exactly", way.words) for way in shown.ways if way.way == "exact loss" and not way.broken]
        lines += [("broken", Text(_told(way), style="red")) for way in shown.ways if way.broken]
    if plan.verified is not None:
        lines.append(("exactly", Text(plan.verified.words, style="red" if plan.verified.broken else "")))
    elif plan.unverified is not None:
        lines.append(("exactly", Text(f"not verified: {plan.unverified}", style="dim")))
    lines += [
        ("model", Text(f"{model.title}: {model.words}", style="red" if model.broken else "")) for model in plan.models
    ]
    if plan.promises:
        lines.append(("promises", f"{len(plan.promises)} hold"))
    if plan.broken_promise is not None:
        lines.append(("promises", Text(plan.broken_promise, style="red")))
    if plan.problem is not None:
        lines.append(("problem", Text(plan.problem, style="yellow")))
    lines += [("note", Text(note, style="dim")) for note in plan.notes]
    facts(console, lines)


def _told(way: WayPart) -> str:
    at = f"at least {figure(way.epsilon)}, claimed {figure(way.claim)} at delta = {near(way.delta)}"
    return f"{way.way}: {at}; {way.words}"


def show_reproduced(console: Console, body: ReproducedDocument) -> None:
    """What the event shows now."""
    at = f"at least {figure(body.epsilon)}, claimed {figure(body.claim)} at delta = {near(body.delta)}"
    verdict = Text("broken again", style="bold red") if body.broken else Text("within the claim", style="green")
    facts(
        console,
        [("kind", body.kind), ("pair", body.pair), ("event", body.event), ("proven", at), ("verdict", verdict)],
    )
