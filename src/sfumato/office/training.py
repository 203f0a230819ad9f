"""A training: quoted, agreed to, trained step by step, measured, written; stopped and ordered again, it goes on."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal

from ..errors import ReceiptError
from ..plain_text import printable
from ..plan import price_text
from ..project.code import is_code
from ..project.project import Project
from ..project.training import Training
from ..release import Release
from .code import code_runs
from .desk import Desk, at_desk, ready
from .documents import AccountDocument, Agreement, Document, Part, ReceiptDocument, receipt_document
from .files import write_out
from .problems import OfficeError
from .training_plan import Public, plan_of, public_of
from .training_state import TrainingOrder, TrainingStand, check_file, checkpoint_of, key_of, stand_of
from .watch import SILENT, Watch

if TYPE_CHECKING:
    from ..learn import SGD

_LESS = "lower target_epsilon, or give noise_multiplier: auto and fewer epochs or steps"
_LOOKS = 25  # at public data and at the price, while it trains
_LONGEST = 100  # letters of a file's name, as others read it who wait


@dataclass(frozen=True, kw_only=True)
class ModelDocument(Part):
    """What is trained. `code` names the file of the user's own that made it; null for models that come with sfumato."""

    name: str
    parameters: int
    code: str | None
    features: list[str]
    target: str


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
class ForecastDocument(Part):
    """Measured on made-up records, on this machine."""

    seconds: float
    step: float
    bytes: int


@dataclass(frozen=True, kw_only=True)
class GroupDocument(Part):
    """One subgroup of the public data; `error` is the half-width at 95 % that its size allows."""

    name: str
    accuracy: float
    error: float
    records: int


@dataclass(frozen=True, kw_only=True)
class MeasuredDocument(Part):
    """How good the model is, on public data. `accuracy` is null where the target is a number."""

    records: int
    loss: float
    accuracy: float | None
    groups: list[GroupDocument]


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True)
class Prepared:
    """A training whose plan is built: all that is wrong with its files was told."""

    order: TrainingOrder
    plan: SGD
    public: Public | None


def prepared(project: Project, order: TrainingOrder, *, watch: Watch = SILENT) -> Prepared:
    """Build the plan, and read the public data."""
    training = order.training
    plan = training_plan(project, training, watch=watch)
    public = public_of(project, training, plan)
    if public is not None and public.groups is not None and not _tells_classes(public):
        raise training.wrong("subgroup", "the target is a number, which has no accuracy", "leave subgroup out")
    return Prepared(order, plan, public)


def training_plan(project: Project, training: Training, *, watch: Watch = SILENT) -> SGD:
    """The plan of a training. Code of the user's own runs with this user's rights, outside of every guarantee: that is
    said."""
    if find_spec("torch") is None:
        raise ModuleNotFoundError("training needs PyTorch", name="torch")
    names = [name for name in (training.form.model.name, training.form.loss or "") if is_code(name)]
    if names:
        watch.notes(code_runs(names, training.folder))
    return plan_of(project, training)


def quoted_training(project: Project, ready_made: Prepared, *, watch: Watch = SILENT) -> TrainDocument:
    """Price, time and memory, and end: nothing is charged."""
    account = ready_made.order.account or ready_made.order.training.account
    with at_desk(project, account, read_only=True, watch=watch) as desk:
        opened = _Opened(desk, ready_made)
        budget = [replace(account, refusal=None) for account in opened.offered]
        return replace(opened.offer(), budget=budget, alert=project.alert(desk.ledger))


def trained(
    project: Project,
    ready_made: Prepared,
    agree: Callable[[TrainDocument], Agreement],
    *,
    watch: Watch = SILENT,
) -> TrainDocument:
    """Train, and write the weights. All that can be refused is refused before it is paid.

    agree  gets the offer, before anything is paid, and gives back what was agreed to
    """
    order, plan, public = ready_made.order, ready_made.plan, ready_made.public
    training, out = order.training, order.weights
    check_file(out, project, training, "out")
    ready(project, watch)
    work = f"sfumato train {printable(training.file.name)[:_LONGEST]}"
    with (
        project.alone(work, wait=order.wait, waits=watch.waits),
        at_desk(project, order.account or training.account, watch=watch) as desk,
    ):
        opened = _Opened(desk, ready_made)
        offer = opened.offer()
        checkpoint = checkpoint_of(order, project, plan, opened.stand, opened.key, watch)
        if opened.stand.new:
            agree(offer).covers(plan)
        before = desk.stands(opened.path)
        release = opened.release(checkpoint)
        assert release.receipt is not None
        document = replace(
            offer,
            state="answered" if opened.stand.answered else "trained",
            receipt=receipt_document(release.receipt, desk.ledger.entry(release.receipt.id)),
            steps=replace(offer.steps, done=release.value.steps),
            budget=desk.budget(before, room=desk.room(opened.path, plan)),
            alert=project.alert(desk.ledger),
            out=str(out),
        )
    _write(release, out, checkpoint)
    document = replace(document, measured=None if public is None else _measured(plan, release.value.model, public))
    return replace(document, next=_next(document))


class _Opened:
    """A training at the desk: its key, and where it stands in the ledger."""

    def __init__(self, desk: Desk, ready_made: Prepared) -> None:
        self.desk, self.ready_made = desk, ready_made
        self.key = ready_made.order.key or key_of(desk.curator, ready_made.plan)
        self.stand = stand_of(desk.ledger, desk.curator, ready_made.plan, self.key)
        quote = desk.quote(ready_made.plan, repeats=True)
        self.quote, self.path = quote.quote, tuple(quote.quote.used)
        self.offered = quote.budget
        if not self.stand.new:
            now = desk.stands(self.path)
            self.offered = desk.budget(now, now, desk.room(self.path, ready_made.plan))

    def offer(self) -> TrainDocument:
        desk, plan = self.desk, self.ready_made.plan
        forecast = None
        if not self.stand.answered:
            with desk.watch.works("measuring a micro-batch of made-up records"):
                forecast = _forecast(plan)
        document = _document(desk.project, self.ready_made.order.training, plan, self.key, self.stand)
        fits = not self.stand.new or self.quote.affordable
        return replace(document, fits=fits, due=self.quote.due, forecast=forecast)

    def release(self, checkpoint: Path | None) -> Release:
        desk, plan, public = self.desk, self.ready_made.plan, self.ready_made.public
        note = self.ready_made.order.note or self.ready_made.order.training.note
        seen = None if public is None else (public.inputs, public.target)
        # What the steps so far cost takes a moment to work out, so it is done a few times only.
        every = max(plan.times // _LOOKS, 1)

        def watched(bar: Callable[[Any], None] | None) -> SGD:
            return plan.watched(progress=bar or False, public=seen, every=every, checkpoint=checkpoint)

        return desk.run(
            plan, self.path, note=note, key=self.key, stopped=self._interrupted, less=_LESS, stepwise=watched
        )

    def _interrupted(self) -> OfficeError:
        """Stopped by hand. What was drawn by then is the ledger's to say, and public."""
        desk, plan = self.desk, self.ready_made.plan
        try:
            paid = desk.ledger.paid(self.key, desk.curator.accounts, plan, data=desk.curator.private.address)
        except ReceiptError:  # the engine's way of saying that it was interrupted counts as a failure
            why = "it was stopped by hand while the data was read; no step was paid for"
            return OfficeError("interrupted", why, "run it again with a key of another name", "interrupted")
        drawn = 0 if paid is None else desk.ledger.steps(paid[0]).drawn
        why = f"it was stopped by hand after {drawn} of {plan.times} steps; these are paid, and the rest is held"
        if not drawn:
            why = "it was stopped by hand before the first step; nothing was charged"
        fix = "run it again: it goes on from there, and pays nothing twice"
        return OfficeError("interrupted", why, fix, "interrupted")


def _forecast(plan: SGD) -> ForecastDocument:
    from ..learn.forecasting import forecast

    measured = forecast(plan)
    return ForecastDocument(seconds=measured.seconds, step=measured.step, bytes=measured.bytes)


def _write(release: Release, out: Path, checkpoint: Path | None) -> None:
    """The weights; then the checkpoint has served its time: the ledger keeps the answer."""
    buffer = io.BytesIO()
    release.value.save(buffer)
    write_out(out, buffer.getvalue())
    if checkpoint is not None:
        checkpoint.unlink(missing_ok=True)


def _tells_classes(public: Public) -> bool:
    return not public.target.is_floating_point() and public.target.dim() == 1


def _measured(plan: SGD, model: Any, public: Public) -> MeasuredDocument:
    from .. import learn
    from ..learn.aside import measured

    loss, accuracy = measured(model, plan.loss.call, ((public.inputs,), public.target))
    groups: list[GroupDocument] = []
    if public.groups is not None:
        by_group = learn.by_group(model, public.inputs, public.target, public.groups)
        groups = [
            GroupDocument(name=str(name), accuracy=share, error=error, records=count)
            for name, (share, error, count) in by_group.items()
        ]
    return MeasuredDocument(records=len(public), loss=loss, accuracy=accuracy, groups=groups)


def _next(document: TrainDocument) -> list[str]:
    lines = [f"model.load_state_dict(torch.load({str(document.out)!r}, weights_only=True)), in Python"]
    if document.measured is None:
        lines.append("public_test in the file: a public file with the same columns, for accuracy")
    return [*lines, "sfumato ledger report, for whoever must sign"]


def _document(project: Project, training: Training, plan: SGD, key: str, stand: TrainingStand) -> TrainDocument:
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


def worse_for(groups: list[GroupDocument]) -> str | None:
    """Which subgroup the model is worse for, where chance does not explain it: the two farthest apart of all pairs are
    compared, so the level of 5 % is for all pairs together. That the small are hit by noise and clipping is said of a
    group that is smaller than the other, and as far as public records tell."""
    if len(groups) < 2:
        return None
    least, most = min(groups, key=lambda group: group.accuracy), max(groups, key=lambda group: group.accuracy)
    pairs = math.comb(len(groups), 2)
    wider = NormalDist().inv_cdf(1 - 0.05 / (2 * pairs)) / NormalDist().inv_cdf(0.975)
    if most.accuracy - least.accuracy <= wider * math.hypot(least.error, most.error):
        return None
    text = f"the model is worse for {least.name} than for {most.name}"
    if least.records >= most.records:
        return text
    return f"{text}: noise and clipping cost small groups most, and it may be as small in the private data"
