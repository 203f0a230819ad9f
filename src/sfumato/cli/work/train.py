"""`sfumato train`: quote, agree, train, write the weights; stopped and run again, it goes on where it was."""

from __future__ import annotations

from pathlib import Path

from ...office.documents import Agreement
from ...office.training import TrainDocument, prepared, quoted_training
from ...office.training import trained as train
from ...office.training_state import TrainingOrder
from ...project.training import load_training
from ..problems import BUDGET
from ..telling import Outcome
from ..watching import Terminal
from .agreeing import agree
from .train_words import show_plan, show_train


def trained(
    file: Path,
    folder: Path | None,
    *,
    quote: bool,
    yes: bool,
    account: str | None,
    note: str,
    key: str | None,
    out: Path | None,
    checkpoint: Path | None,
    wait: float,
) -> Outcome:
    """Quote a training or run it. All that can be refused is refused before it is paid."""
    project, training = load_training(file, folder)
    watch = Terminal(wait)
    order = TrainingOrder(training, account, note, key, out, checkpoint, wait)
    ready_made = prepared(project, order, watch=watch)

    def agreement(offer: TrainDocument) -> Agreement:
        agree(lambda console: show_plan(console, offer), "train it?", yes=yes or not offer.fits)
        return Agreement.to(ready_made.plan)

    if quote:
        body = quoted_training(project, ready_made, watch=watch)
        return Outcome(body, lambda console: show_train(console, body), 0 if body.fits else BUDGET)
    body = train(project, ready_made, agreement, watch=watch)
    return Outcome(body, lambda console: show_train(console, body))
