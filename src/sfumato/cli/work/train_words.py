"""What `sfumato train` says: price, time and memory beforehand; the model, its measures and its receipt afterwards."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any, Literal

from rich.console import Console
from rich.text import Text

from ..documents import Document, Part
from ..screen import columns, facts, say
from .asking import ReceiptDocument
from .budgets import AccountDocument, show_accounts

_WIDE = len("forecast")


class ModelDocument(Part):
    """What is trained. `code` names the file of the user's own that made it; null for models that come with sfumato."""

    name: str
    parameters: int
    code: str | None
    features: list[str]
    target: str


class StepsDocument(Part):
    """How it learns.

    planned   steps that the price is for; `done` those behind the weights, null before they are there
    rate      how likely a unit is in a step, `batch` how many are expected, `slots` how many there is room for
    norm      gradients are clipped to it; `margin` is the share that is set aside for float errors
    deviation of the noise on each coordinate of a step's sum
    """

    planned: int
    done: int | None
    rate: float
    batch: float
    slots: int
    clip: str
    norm: float
    margin: float
    multiplier: float
    deviation: float
    grade: str
    optimizer: str


class ForecastDocument(Part):
    """Measured on made-up records, on this machine."""

    seconds: float
    step: float
    bytes: int


class GroupDocument(Part):
    """One subgroup of the public data; `error` is the half-width at 95 % that its size allows."""

    name: str
    accuracy: float
    error: float
    records: int


class MeasuredDocument(Part):
    """How good the model is, on public data. `accuracy` is null where the target is a number."""

    records: int
    loss: float
    accuracy: float | None
    groups: list[GroupDocument]


class TrainDocument(Document):
    """A training.

    state     "quoted" (nothing was paid), "trained", or "answered": it was trained before, and the weights are free
    goes_on   steps that an earlier process had paid for already; null where there was none
    fits      does the ledger accept it?
    due       why nothing would be paid now: it was trained before; else null
    measured  on the public data; null without any, and in a quote
    out       the file that the weights were written to
    """

    document: Literal["train/1"] = "train/1"
    project: str
    file: str
    state: Literal["quoted", "trained", "answered"]
    price: str
    epsilon: float
    delta: float
    hides: str
    plan: str
    key: str
    goes_on: int | None
    fits: bool
    due: str | None
    model: ModelDocument
    steps: StepsDocument
    forecast: ForecastDocument | None
    measured: MeasuredDocument | None
    receipt: ReceiptDocument | None
    budget: list[AccountDocument]
    alert: str | None
    out: str | None
    next: list[str]


def show_plan(console: Console, body: TrainDocument) -> None:
    """What is to be trained, and what it takes."""
    facts(console, [*_price(body), *_training(body), *_forecast(body)], wide=_WIDE)


def show_train(console: Console, body: TrainDocument) -> None:
    """The end of a training, or a quote."""
    if body.state == "quoted":
        show_plan(console, body)
        show_accounts(console, body.budget, label=f"{'budget':{_WIDE}}", now=True)
        _show_verdict(console, body)
    else:
        lines = [*_measures(body), *_price(body), *_training(body)]
        facts(console, [*lines, *_receipt(body), *_written(body)], wide=_WIDE)
        show_accounts(console, body.budget, label=f"{'budget':{_WIDE}}")
        if body.measured is not None and body.measured.groups:
            _show_groups(console, body.measured.groups)
    if body.alert is not None:
        say(console, body.alert, first=Text(f"{'alert':{_WIDE}}  ", style="bold yellow"), style="yellow")
    for number, line in enumerate(body.next):
        say(console, line, first=Text(f"{'next' if number == 0 else '':{_WIDE}}  ", style="dim"))


def _price(body: TrainDocument) -> list[tuple[str, Any]]:
    price = Text(body.price, style="bold")
    if body.state == "answered":
        price.append("  trained before: free", style="green")
    return [("price", price), ("hides", body.hides)]


def _training(body: TrainDocument) -> list[tuple[str, Any]]:
    model, steps = body.model, body.steps
    made = f"{model.name}, {model.parameters:,} parameters, tells {model.target} from {', '.join(model.features)}"
    code = [] if model.code is None else [("code", f"{model.code}, a file of your own, ran in this process")]
    count = f"{steps.planned:,}" if steps.done in (None, steps.planned) else f"{steps.done:,} of {steps.planned:,}"
    how = f"{count} of about {steps.batch:,.6g} units each ({steps.slots:,} slots), by {steps.optimizer}"
    noise = (
        f"{steps.deviation:.4g} on each coordinate of a sum (multiplier {steps.multiplier:.4g}), {steps.grade} grade"
    )
    more = f", with {steps.margin:.2%} more for float errors" if steps.margin else ""
    return [
        ("model", made),
        *code,
        ("steps", how),
        ("clip", f"{steps.clip}, to {steps.norm:.6g}{more}"),
        ("noise", noise),
    ]


def _forecast(body: TrainDocument) -> list[tuple[str, Any]]:
    if body.forecast is None:
        return []
    from ...learn.forecasting import duration, size

    told = (
        f"about {duration(body.forecast.seconds)} ({duration(body.forecast.step)} a step), {size(body.forecast.bytes)}"
    )
    return [("forecast", Text.assemble(told, (" of memory, measured on made-up records", "dim")))]


def _measures(body: TrainDocument) -> list[tuple[str, Any]]:
    found = body.measured
    if found is None:
        return []
    on = f" on {found.records:,} public records"
    if found.accuracy is None:
        return [("loss", Text.assemble((f"{found.loss:.4g}", "bold"), on))]
    return [("accuracy", Text.assemble((f"{found.accuracy:.2%}", "bold"), f"{on}; loss {found.loss:.4g}"))]


def _receipt(body: TrainDocument) -> list[tuple[str, Any]]:
    receipt = body.receipt
    if receipt is None:
        return []
    if receipt.entry is None or receipt.hash is None:
        return [("receipt", receipt.id)]
    return [("receipt", f"entry {receipt.entry} of the ledger, hash {receipt.hash[:16]}…")]


def _written(body: TrainDocument) -> list[tuple[str, Any]]:
    return [] if body.out is None else [("wrote", body.out)]


def _show_verdict(console: Console, body: TrainDocument) -> None:
    if body.due is not None:
        verdict = Text(body.due, style="bold green")
    elif body.goes_on is not None:
        paid = f"{body.goes_on:,} of {body.steps.planned:,} steps are paid for: running it goes on from there"
        verdict = Text(paid, style="bold green")
    elif body.fits:
        verdict = Text("fits the budget", style="bold green")
    else:
        verdict = Text(
            "does not fit the budget: ask for less, or have the account raised (`sfumato ledger limit`)",
            style="bold red",
        )
    facts(console, [("verdict", verdict)], wide=_WIDE)


def _show_groups(console: Console, groups: list[GroupDocument]) -> None:
    console.print()
    rows = [[each.name, f"{each.accuracy:.1%} ± {each.error:.1%}", f"{each.records:,}"] for each in groups]
    columns(console, ["subgroup", "accuracy", "records"], rows, (1, 2))
    if (text := worse_for(groups)) is not None:
        say(console, text, style="yellow")
    console.print()


def worse_for(groups: list[GroupDocument]) -> str | None:
    """Which subgroup the model is worse for, where chance does not explain it: the two farthest apart of all pairs are
    compared, so the level of 5 % is for all pairs together. That the small are hit by noise and clipping is said of a
    group that is smaller than the other, and as far as public records tell."""
    if len(groups) < 2:
        return None
    least, most = min(groups, key=lambda each: each.accuracy), max(groups, key=lambda each: each.accuracy)
    pairs = math.comb(len(groups), 2)
    wider = NormalDist().inv_cdf(1 - 0.05 / (2 * pairs)) / NormalDist().inv_cdf(0.975)
    if most.accuracy - least.accuracy <= wider * math.hypot(least.error, most.error):
        return None
    text = f"the model is worse for {least.name} than for {most.name}"
    if least.records >= most.records:
        return text
    return f"{text}: noise and clipping cost small groups most, and it may be as small in the private data"
