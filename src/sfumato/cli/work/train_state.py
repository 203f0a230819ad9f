"""Where a training stands in the ledger, and the files that it writes: all that is looked at before it is paid."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ... import record
from ...curator import Curator
from ...errors import PlanError
from ...ledger import Ledger
from ...plan import Receipt
from ...project import Project
from ...project.training import Training
from ..problems import FILE, CommandError
from ..screen import say
from ..telling import screen
from .out_files import check_out
from .train_code import file_of, is_code

if TYPE_CHECKING:
    from ...learn import SGD


@dataclass(frozen=True)
class Asked:
    """What the command line says about a training; see `sfumato train --help`."""

    file: Path
    project: Path | None = None
    quote: bool = False
    yes: bool = False
    account: str | None = None
    note: str = ""
    key: str | None = None
    out: Path | None = None
    checkpoint: Path | None = None
    wait: float = 0.0


@dataclass(frozen=True)
class Stand:
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
    asked = {"train": plan.hash, "data": curator.private.address, "accounts": curator.accounts}
    return f"train {record.digest(asked)[:40]}"


def stand_of(ledger: Ledger, curator: Curator, plan: SGD, key: str) -> Stand:
    data = curator.private.address
    before = ledger.paid(key, curator.accounts, plan, data=data)
    if before is None:
        return Stand(None, ledger.answer(curator.accounts, plan.hash, data) is not None)
    receipt, answer = before
    if answer is not None or not receipt.by_steps:
        return Stand(receipt, answer is not None)
    drawn, left = ledger.steps(receipt)
    return Stand(receipt, False, drawn, left)


def checkpoint_of(
    asked: Asked, training: Training, project: Project, plan: SGD, stand: Stand, key: str, out: Path
) -> Path | None:
    """The file that keeps what is done. One of another training is refused here, before anything is paid or drawn."""
    if stand.answered:
        return None
    from ...learn import checkpoints

    usual = f"{training.file.stem}-{record.digest(key)[:12]}.checkpoint"
    path = asked.checkpoint or training.file.parent / (training.form.checkpoint or usual)
    check_file(path, project, training, "--checkpoint")
    if path.resolve() == out.resolve():
        raise CommandError(
            "weights and checkpoint cannot be one file; nothing was charged",
            f"both go to {path.name}",
            "give --out or --checkpoint another name",
            FILE,
        )
    what, fix = "the checkpoint cannot be used; nothing was charged", "remove it, or give another --checkpoint"
    if stand.receipt is None:
        if path.exists():
            raise CommandError(what, f"{path.name} is there already, and belongs to another training", fix, FILE)
        return path
    try:
        found = checkpoints.load(path, plan=plan.hash, receipt=stand.receipt.id)
    except PlanError as problem:
        raise CommandError(what, str(problem).partition(": ")[0], fix, FILE) from None
    if found is None and stand.drawn:
        if not stand.left:
            raise CommandError(
                "the training cannot go on; nothing was charged",
                f"all of its steps were paid for and run, and its checkpoint {path.name} is not there",
                "bring the checkpoint back, or give another --key: it pays again",
                FILE,
            )
        text = f"{path.name} is not there: {stand.drawn} paid steps are lost, and it begins anew with the rest"
        say(screen(errors=True), text, first="note  ", style="yellow")
    return path


def check_file(path: Path, project: Project, training: Training, option: str) -> None:
    """Refuse a file that cannot be written, or one that the project or this training lives by."""
    check_out(path, project)
    form, folder = training.form, training.folder
    own = [training.file, *([] if form.public_test is None else [folder / form.public_test])]
    own += [file_of(name, training, "model") for name in (form.model.name, form.loss or "") if is_code(name)]
    if path.resolve() in {each.resolve() for each in own}:
        raise CommandError(
            f"{option} cannot be written there; nothing was charged",
            f"{path.name} is a file that the training reads",
            f"give {option} another name",
            FILE,
        )
