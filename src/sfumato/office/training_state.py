"""Where a training stands in the ledger, and the files that it writes: all that is looked at before it is paid."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from .. import record
from ..curator import Curator
from ..errors import PlanError
from ..ledger import Ledger
from ..plan import Receipt
from ..project.code import file_of, is_code
from ..project.project import Project
from ..project.training import Training
from .files import check_out
from .problems import OfficeError
from .watch import Watch

if TYPE_CHECKING:
    from ..learn import SGD


@dataclass(frozen=True)
class TrainingOrder:
    """A training that somebody asks for.

    out, checkpoint  files; by default what the training's own file says
    wait             seconds, while another is at work on the project
    """

    training: Training
    account: str | None = None
    note: str = ""
    key: str | None = None
    out: Path | None = None
    checkpoint: Path | None = None
    wait: float = 0.0

    @property
    def weights(self) -> Path:
        """Where the weights go."""
        return self.out or self.training.file.parent / (self.training.form.out or "model.pt")


@dataclass(frozen=True)
class TrainingStand:
    """Where a training stands in the ledger.

    receipt   of the payment under its key, if there was one
    answered  are its weights stored?
    drawn     steps that were paid for by an earlier process; `left` those that are still held
    """

    receipt: Receipt | None
    answered: bool
    drawn: int = 0
    left: int = 0

    @property
    def new(self) -> bool:
        return self.receipt is None and not self.answered


def key_of(curator: Curator, plan: SGD) -> str:
    """The same training on the same data and accounts has the same key: run again, it goes on."""
    request = {"train": plan.hash, "data": curator.private.address, "accounts": curator.accounts}
    return f"train {record.digest(request)[:40]}"


def stand_of(ledger: Ledger, curator: Curator, plan: SGD, key: str) -> TrainingStand:
    data = curator.private.address
    before = ledger.paid(key, curator.accounts, plan, data=data)
    if before is None:
        return TrainingStand(None, ledger.answer(curator.accounts, plan.hash, data) is not None)
    receipt, answer = before
    if answer is not None or not receipt.by_steps:
        return TrainingStand(receipt, answer is not None)
    drawn, left = ledger.steps(receipt)
    return TrainingStand(receipt, False, drawn, left)


def checkpoint_of(
    order: TrainingOrder, project: Project, plan: SGD, stand: TrainingStand, key: str, watch: Watch
) -> Path | None:
    """The file that keeps what is done. One of another training is refused here, before anything is paid or drawn."""
    if stand.answered:
        return None
    from ..learn import checkpoints

    training = order.training
    usual = f"{training.file.stem}-{record.digest(key)[:12]}.checkpoint"
    path = order.checkpoint or training.file.parent / (training.form.checkpoint or usual)
    check_file(path, project, training, "checkpoint")
    if path.resolve() == order.weights.resolve():
        raise OfficeError(
            "weights and checkpoint cannot be one file; nothing was charged",
            f"both go to {path.name}",
            "give one of them another name",
            "file",
            "one-file",
        )
    what, fix = "the checkpoint cannot be used; nothing was charged", "remove it, or give another name"
    if stand.receipt is None:
        if path.exists():
            why = f"{path.name} is there already, and belongs to another training"
            raise OfficeError(what, why, fix, "file", "checkpoint")
        return path
    try:
        stored = checkpoints.load(path, plan=plan.hash, receipt=stand.receipt.id)
    except PlanError as problem:
        raise OfficeError(what, problem.cause, fix, "file", "checkpoint") from None
    if stored is None and stand.drawn:
        if not stand.left:
            raise OfficeError(
                "the training cannot go on; nothing was charged",
                f"all of its steps were paid for and run, and its checkpoint {path.name} is not there",
                "bring the checkpoint back, or give a key of another name: it pays again",
                "file",
            )
        watch.notes(f"{path.name} is not there: {stand.drawn} paid steps are lost, and it begins anew with the rest")
    return path


def check_file(path: Path, project: Project, training: Training, purpose: str) -> None:
    """Refuse a file that cannot be written, or one that the project or this training lives by."""
    check_out(path, project)
    form, folder = training.form, training.folder
    own = [training.file, *([] if form.public_test is None else [folder / form.public_test])]
    own += [
        file_of(name, training.file, partial(training.wrong, "model"))
        for name in (form.model.name, form.loss or "")
        if is_code(name)
    ]
    if path.resolve() in {file.resolve() for file in own}:
        raise OfficeError(
            f"{'--' + purpose} cannot be written there; nothing was charged",
            f"{path.name} is a file that the training reads",
            "give another name",
            "file",
            f"{purpose}-read",
        )
