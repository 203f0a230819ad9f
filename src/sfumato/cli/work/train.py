"""`sfumato train`: quote, agree, train, write the weights; stopped and run again, it goes on where it was."""

from __future__ import annotations

import io
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from ...curator import Curator
from ...errors import BudgetError, PolicyError, ReceiptError
from ...ledger import Ledger
from ...plan import price_text
from ...project import Project
from ...project.training import Training, load_training
from ...release import Release
from ...sources.base import needed
from ..interrupts import held_back, stoppable
from ..problems import BUDGET, INTERRUPTED, CommandError
from ..progress import working
from ..screen import say
from ..telling import Outcome, data_opens, screen
from .asking import receipt_document
from .budgets import accounts, room_for, stands, with_changes
from .out_files import write_out
from .shortage import short_of
from .train_bar import training_bar
from .train_code import is_code
from .train_plan import Public, plan_of, public_of
from .train_state import Asked, Stand, check_file, checkpoint_of, key_of, stand_of
from .train_words import (
    ForecastDocument,
    GroupDocument,
    MeasuredDocument,
    ModelDocument,
    StepsDocument,
    TrainDocument,
    show_plan,
    show_train,
)
from .turns import turn

if TYPE_CHECKING:
    from ...learn import SGD

_LESS = "lower target_epsilon, or give noise_multiplier: auto and fewer epochs or steps"

_LOOKS = 25  # at public data and at the price, while it trains


def trained(asked: Asked) -> Outcome:
    """Quote a training or run it. All that can be refused is refused before it is paid."""
    project, training = load_training(asked.file, asked.project)
    if find_spec("torch") is None:
        raise ModuleNotFoundError("training needs PyTorch", name="torch")
    code_told(training)
    plan = plan_of(project, training)
    public = public_of(project, training, plan)
    if public is not None and public.groups is not None and not _tells_classes(public):
        raise training.wrong("subgroup", "the target is a number, which has no accuracy", "leave subgroup out")
    out = asked.out or training.file.parent / (training.form.out or "model.pt")
    if asked.quote:
        return _trained(asked, project, training, plan, public, out)
    check_file(out, project, training, "--out")
    project.need_data()
    with held_back():  # an engine that is interrupted while it loads takes the process down
        for name in ("duckdb", "pyarrow"):
            needed(name)
    with turn(project, "train", training.file, asked.wait):
        return _trained(asked, project, training, plan, public, out)


def _trained(
    asked: Asked, project: Project, training: Training, plan: SGD, public: Public | None, out: Path
) -> Outcome:
    with project.ledger(read_only=asked.quote) as ledger:
        curator = project.curator(ledger, asked.account or training.account)
        key = asked.key or key_of(curator, plan)
        stand = stand_of(ledger, curator, plan, key)
        body = _document(project, training, plan, key, stand)
        quote = curator.quote(plan)
        body.fits, body.due = not stand.new or quote.affordable, quote.due
        if not stand.answered:
            with working("measuring a micro-batch of made-up records"):
                body.forecast = _forecast(plan)
        if asked.quote:
            now = stands(ledger, quote.used)
            new = stand.new and quote.due is None
            after = stands(ledger, quote.used, plan) if new else now
            room = room_for(ledger, quote.used, plan, paid=not new)
            body.budget = with_changes(accounts(ledger, quote.used), now, after, room)
            body.alert = project.alert(ledger)
            return Outcome(body, lambda console: show_train(console, body), 0 if body.fits else BUDGET)
        checkpoint = checkpoint_of(asked, training, project, plan, stand, key, out)
        _agreed(body, asked, stand)
        before = stands(ledger, quote.used)
        release = _released(
            plan, public, curator, ledger, tuple(quote.used), checkpoint, key, asked.note or training.note
        )
        _ended(body, release, ledger, stand)
        room = room_for(ledger, quote.used, plan, paid=True)
        body.budget = with_changes(accounts(ledger, quote.used), before, stands(ledger, quote.used), room)
        body.alert = project.alert(ledger)
    _write(body, release, out, checkpoint)
    body.measured = None if public is None else _measured(plan, release.value.model, public)
    body.next = _next(body)
    return Outcome(body, lambda console: show_train(console, body))


def code_told(training: Training) -> None:
    """Code of the user's own runs with this user's rights, outside of every guarantee: that is said."""
    names = [name for name in (training.form.model.name, training.form.loss or "") if is_code(name)]
    if names:
        files = ", ".join(dict.fromkeys(name.partition(":")[0].replace(".", "/") + ".py" for name in names))
        text = f"{files} in {training.folder.name}/ is imported and runs: it is your code, and no part of the guarantee"
        say(screen(errors=True), text, first="note  ", style="yellow")


def _forecast(plan: SGD) -> ForecastDocument:
    from ...learn.forecasting import forecast

    found = forecast(plan)
    return ForecastDocument(seconds=found.seconds, step=found.step, bytes=found.bytes)


def _agreed(body: TrainDocument, asked: Asked, stand: Stand) -> None:
    """On a terminal, nothing is paid before somebody has seen the price."""
    if asked.yes or not stand.new or not body.fits or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    console = screen(errors=True)
    show_plan(console, body)
    try:
        said = console.input(Text("train it? [y/N] ")).strip().lower()
    except EOFError:
        said = ""
    if said not in ("y", "yes"):
        raise CommandError("nothing was charged", "nobody said yes", "run it again, or with --yes", INTERRUPTED)


def _released(
    plan: SGD, public: Public | None, curator: Curator, ledger: Ledger, path: tuple[str, ...], checkpoint: Path | None,
    key: str, note: str,
) -> Release:  # fmt: skip
    data_opens()
    try:
        with stoppable() as stopped, training_bar(plan.times) as bar:
            seen = None if public is None else (public.inputs, public.target)
            # What the steps so far cost takes a moment to work out, so it is done a few times only.
            every = max(plan.times // _LOOKS, 1)
            watched = plan.watched(progress=bar or False, public=seen, every=every, checkpoint=checkpoint)
            return curator.release(watched, note=note, key=key)
    except PolicyError:
        raise
    except BudgetError as error:
        raise short_of(ledger, path, plan, error, _LESS) from None
    except BaseException:
        if stopped():
            raise _interrupted(ledger, curator, plan, key) from None
        raise


def _interrupted(ledger: Ledger, curator: Curator, plan: SGD, key: str) -> CommandError:
    """Stopped by hand. What was drawn by then is the ledger's to say, and public."""
    try:
        paid = ledger.paid(key, curator.accounts, plan, data=curator.private.address)
    except ReceiptError:  # the engine's way of saying that it was interrupted counts as a failure
        why = "it was stopped by hand while the data was read; no step was paid for"
        return CommandError("interrupted", why, "run it again with another --key", INTERRUPTED)
    drawn = 0 if paid is None else ledger.steps(paid[0]).drawn
    why = f"it was stopped by hand after {drawn} of {plan.times} steps; these are paid, and the rest is held"
    if not drawn:
        why = "it was stopped by hand before the first step; nothing was charged"
    return CommandError("interrupted", why, "run it again: it goes on from there, and pays nothing twice", INTERRUPTED)


def _ended(body: TrainDocument, release: Release, ledger: Ledger, stand: Stand) -> None:
    assert release.receipt is not None
    body.state = "answered" if stand.answered else "trained"
    body.receipt = receipt_document(release.receipt, ledger.entry(release.receipt.id))
    body.steps.done = release.value.steps


def _write(body: TrainDocument, release: Release, out: Path, checkpoint: Path | None) -> None:
    """The weights; then the checkpoint has served its time: the ledger keeps the answer."""
    held = io.BytesIO()
    release.value.save(held)
    write_out(out, held.getvalue())
    body.out = str(out)
    if checkpoint is not None:
        checkpoint.unlink(missing_ok=True)


def _tells_classes(public: Public) -> bool:
    return not public.target.is_floating_point() and public.target.dim() == 1


def _measured(plan: SGD, model: Any, public: Public) -> MeasuredDocument:
    from ... import learn
    from ...learn.aside import measured

    loss, accuracy = measured(model, plan.loss.call, ((public.inputs,), public.target))
    groups: list[GroupDocument] = []
    if public.groups is not None:
        found = learn.by_group(model, public.inputs, public.target, public.groups)
        groups = [
            GroupDocument(name=str(name), accuracy=share, error=error, records=count)
            for name, (share, error, count) in found.items()
        ]
    return MeasuredDocument(records=len(public), loss=loss, accuracy=accuracy, groups=groups)


def _next(body: TrainDocument) -> list[str]:
    lines = [f"model.load_state_dict(torch.load({str(body.out)!r}, weights_only=True)), in Python"]
    if body.measured is None:
        lines.append("public_test in the file: a public file with the same columns, for accuracy")
    return [*lines, "sfumato ledger report, for whoever must sign"]


def _document(project: Project, training: Training, plan: SGD, key: str, stand: Stand) -> TrainDocument:
    form, norm = training.form, float(plan.clip.norm)
    share = plan.sampling.expected / getattr(plan.sampling, "population", plan.sampling.slots)
    goes_on = stand.drawn if stand.receipt is not None and not stand.answered else None
    return TrainDocument(
        project=project.name,
        file=training.file.name,
        state="quoted",
        price=price_text(plan),
        epsilon=float(plan.price()),
        delta=float(plan.delta),
        hides=plan.hides,
        plan=plan.hash,
        key=key,
        goes_on=goes_on,
        fits=True,
        due=None,
        model=ModelDocument(
            name=form.model.name,
            parameters=plan.blur.parameters,
            code=form.model.name if is_code(form.model.name) else None,
            features=list(form.features),
            target=form.target.column,
        ),
        steps=StepsDocument(
            planned=plan.times,
            done=None,
            rate=float(share),
            batch=float(plan.sampling.expected),
            slots=plan.sampling.slots,
            clip=form.clip.rule,
            norm=norm,
            margin=0.0 if plan.strict else float(plan.eta),
            multiplier=float(plan.multiplier),
            deviation=plan.blur.deviation(norm),
            grade=plan.grade,
            optimizer=plan.optimiser.name,
        ),
        forecast=None,
        measured=None,
        receipt=None,
        budget=[],
        alert=None,
        out=None,
        next=[],
    )
