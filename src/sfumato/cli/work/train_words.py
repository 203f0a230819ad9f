"""What `sfumato train` says: price, time and memory beforehand; the model, its measures and its receipt afterwards."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from ...office.training import GroupDocument, TrainDocument, worse_for
from ..screen import columns, facts, say
from .budgets import show_accounts

_WIDE = len("forecast")


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
    network = f"{model.name}, {model.parameters:,} parameters, tells {model.target} from {', '.join(model.features)}"
    code = [] if model.code is None else [("code", f"{model.code}, a file of your own, ran in this process")]
    count = f"{steps.planned:,}" if steps.done in (None, steps.planned) else f"{steps.done:,} of {steps.planned:,}"
    how = f"{count} of about {steps.batch:,.6g} units each ({steps.slots:,} slots), by {steps.optimizer}"
    noise = (
        f"{steps.deviation:.4g} on each coordinate of a sum (multiplier {steps.multiplier:.4g}), {steps.grade} grade"
    )
    more = f", with {steps.margin:.2%} more for float errors" if steps.margin else ""
    return [
        ("model", network),
        *code,
        ("steps", how),
        ("clip", f"{steps.clip}, to {steps.norm:.6g}{more}"),
        ("noise", noise),
    ]


def _forecast(body: TrainDocument) -> list[tuple[str, Any]]:
    if body.forecast is None:
        return []
    from ...learn.forecasting import duration, size

    outlook = (
        f"about {duration(body.forecast.seconds)} ({duration(body.forecast.step)} a step), {size(body.forecast.bytes)}"
    )
    return [("forecast", Text.assemble(outlook, (" of memory, measured on made-up records", "dim")))]


def _measures(body: TrainDocument) -> list[tuple[str, Any]]:
    measured = body.measured
    if measured is None:
        return []
    on = f" on {measured.records:,} public records"
    if measured.accuracy is None:
        return [("loss", Text.assemble((f"{measured.loss:.4g}", "bold"), on))]
    return [("accuracy", Text.assemble((f"{measured.accuracy:.2%}", "bold"), f"{on}; loss {measured.loss:.4g}"))]


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
