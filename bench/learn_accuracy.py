"""Recipes for private training on real data, through the front door: a plan, a curator, a ledger, exact noise.

Nothing is tuned on the private data in the run. But the settings below were found before, on these data sets, and by
their test parts, in some 75 tries, as were those of the papers and peers that they are held against (in fewer tries):
all such figures are a little too good. What is better than the peer's is mostly the features. Features are fixed
functions of one record. Noise cannot be seeded, so each training is simply repeated.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from sfumato import Budget, Curator, MemoryLedger, Private, Schema, Unit, learn
from sfumato.schema import category, tensor

from . import learn_data, learn_features, peers
from .learn_data import Split
from .learn_models import cnn
from .learn_pipe import Worker

DELTA = 1e-5
REPEATS = 3
FEATURES = learn_features.CHANNELS * 49
KEPT = peers.HOME / "learn"


@dataclass(frozen=True)
class Recipe:
    """What is trained, and how: SGD with momentum, on a rate that falls to 0 in a straight line."""

    network: str  # "linear" on fixed features, or "cnn" on pixels
    batch: int
    steps: int
    clip: float
    lr: float
    momentum: float = 0.9
    average: float | None = None  # the decay of a running average of the weights
    falls: bool = True

    def __str__(self) -> str:
        told = f"{self.network}, batch {self.batch}, {self.steps} steps, clip {self.clip:g}, lr {self.lr:g}"
        return told if self.average is None else f"{told}, average {self.average:g}"


@dataclass(frozen=True)
class Task:
    """A promise on one data set at one epsilon."""

    data: str
    epsilon: float
    recipe: Recipe
    bar: float  # percent of the test records, or points below training without privacy
    opacus: tuple[dict[str, Any], ...] = ()  # its settings: the best of them must be beaten in the same run

    @property
    def within(self) -> bool:
        return self.data == "adult"


def _digits(network: str, lr: float, epochs: int = 10) -> dict[str, Any]:
    return {"network": network, "lr": lr, "epochs": epochs}


TASKS = {
    "MNIST, CNN, ε 1.19": Task("mnist", 1.19, Recipe("cnn", 1024, 600, 0.1, 2), 95.0),
    "MNIST, CNN, ε 3.01": Task("mnist", 3.01, Recipe("cnn", 1024, 900, 0.1, 4), 96.6),
    "MNIST, CNN, ε 7.10": Task("mnist", 7.10, Recipe("cnn", 1024, 900, 0.1, 4), 97.0),
    "MNIST, scattering, ε 3": Task("mnist", 3.0, Recipe("linear", 2048, 500, 0.25, 96), 98.0),
    "first 5 000 digits, ε 1": Task(
        "first",
        1.0,
        Recipe("linear", 1000, 100, 0.5, 4, average=0.95, falls=False),
        78.7,
        (_digits("cnn", 1), _digits("linear", 2)),
    ),
    "first 5 000 digits, ε 3": Task("first", 3.0, Recipe("linear", 1000, 200, 0.5, 16), 90.8, (_digits("cnn", 3),)),
    "first 5 000 digits, ε 8": Task("first", 8.0, Recipe("linear", 1000, 400, 0.5, 16), 92.6, (_digits("cnn", 4),)),
    "Adult, ε 1": Task("adult", 1.0, Recipe("linear", 2400, 200, 1.0, 16, average=0.98), 1.0),
}


@dataclass
class Scores:
    """Percent right of the test records, one figure for each training."""

    task: Task
    ours: list[float] = field(default_factory=list)
    opacus: dict[str, list[float]] = field(default_factory=dict)
    ordinary: float | None = None
    seconds: float = 0.0

    @property
    def figure(self) -> float | None:
        if not self.ours:
            return None
        mean = statistics.mean(self.ours)
        return mean if self.ordinary is None else self.ordinary - mean

    @property
    def best(self) -> float | None:
        """Of Opacus, in this run."""
        return max((statistics.mean(each) for each in self.opacus.values() if each), default=None)

    @property
    def promise(self) -> str:
        if self.task.within:
            return f"within {self.task.bar:g} point of no privacy"
        return f"above {self.task.bar:g} % and Opacus" if self.task.opacus else f"at least {self.task.bar:.1f} %"

    def kept(self, figure: float) -> bool:
        if self.task.within:
            return self.ordinary is not None and figure <= self.task.bar
        if self.task.opacus:
            return figure > max(self.task.bar, self.best or 0.0)
        return figure >= self.task.bar

    def told(self, figure: float) -> str:
        return f"{figure:.2f} points below" if self.task.within else f"{figure:.2f} %"

    @property
    def recipe(self) -> str:
        return str(self.task.recipe)

    @property
    def mean(self) -> str:
        return f"{statistics.mean(self.ours):.2f}" if self.ours else "–"

    @property
    def spread(self) -> str:
        return f"{min(self.ours):.2f}–{max(self.ours):.2f}" if self.ours else "–"

    @property
    def beside(self) -> str:
        if self.ordinary is not None:
            return f"{self.ordinary:.2f} without privacy"
        return "–" if self.best is None else f"{self.best:.2f} Opacus"

    @property
    def minutes(self) -> str:
        return f"{self.seconds / 60 / max(1, len(self.ours)):.1f}"


def scores(folder: Path, say: Callable[[str], object], names: tuple[str, ...] = tuple(TASKS)) -> dict[str, Scores]:
    found = {name: Scores(TASKS[name]) for name in names}
    with_pixels = [name for name in names if TASKS[name].recipe.network == "cnn"]
    wanted = {name: _data(TASKS[name], folder, say) for name in names if name not in with_pixels}
    digits = _pixels(learn_data.mnist(folder)) if with_pixels else None
    for name, score in found.items():
        split = digits if name in with_pixels else wanted.pop(name)
        assert split is not None
        for repeat in range(REPEATS):
            say(f"{name}: training {repeat + 1} of {REPEATS}")
            start = time.process_time()
            score.ours.append(trained(score.task, split, repeat))
            score.seconds += time.process_time() - start
        if score.task.within:
            score.ordinary = ordinary(split)
        if score.task.opacus:
            _beside(score, folder, say)
    return found


def _beside(score: Scores, folder: Path, say: Callable[[str], object]) -> None:
    try:
        with Worker("learn_opacus", "opacus") as opacus:
            for settings in score.task.opacus:
                named = f"{settings['network']}, lr {settings['lr']:g}"
                for seed in range(REPEATS):
                    say(f"Opacus at epsilon {score.task.epsilon:g}: {named}, seed {seed}")
                    answer = opacus.ask("train", folder=str(folder), epsilon=score.task.epsilon, seed=seed, **settings)
                    if "accuracy" in answer:
                        score.opacus.setdefault(named, []).append(answer["accuracy"])
    except peers.PeerMissingError:
        return  # the bar of the earlier measurement still stands


# Training


def trained(task: Task, split: Split, repeat: int) -> float:
    """Percent of the test records that a freshly and privately trained model gets right."""
    recipe, (count, *shape) = task.recipe, split.train.shape
    classes = 2 if task.within else 10
    torch.manual_seed(repeat)  # the first weights are public
    model = cnn(nn.Tanh) if recipe.network == "cnn" else _zero(nn.Linear(shape[0], classes))
    bound = 4.0 if recipe.network == "cnn" else 1.0  # of every number of a record, by how it was scaled
    schema = Schema.of(x=tensor(tuple(shape), -bound, bound), y=category(list(range(classes))))
    data = Private("records", {"x": split.train.numpy(), "y": split.train_labels.numpy()}, unit=Unit(), schema=schema)
    plan = learn.sgd(
        model,
        nn.functional.cross_entropy,
        data=data,
        inputs="x",
        target="y",
        clip=recipe.clip,
        epsilon=task.epsilon,
        delta=DELTA,
        batch_size=recipe.batch,
        population=count,
        steps=recipe.steps,
        optimiser=learn.optimiser("SGD", lr=recipe.lr, momentum=recipe.momentum),
        schedule=_falling(recipe.steps) if recipe.falls else None,
        average=recipe.average,
    )
    ledger = MemoryLedger({"records": Budget(epsilon=task.epsilon, delta=DELTA)})
    released = Curator(data, ledger).release(plan).value.model
    return _right(released, split)


def ordinary(split: Split) -> float:
    """The same linear model without privacy, to the optimum."""
    model = _zero(nn.Linear(split.train.shape[1], 2))
    optimiser = torch.optim.LBFGS(model.parameters(), max_iter=300)

    def loss() -> torch.Tensor:
        optimiser.zero_grad()
        value = nn.functional.cross_entropy(model(split.train), split.train_labels)
        value.backward()
        return value

    optimiser.step(loss)
    return _right(model, split)


def _right(model: nn.Module, split: Split) -> float:
    with torch.no_grad():
        hits = [
            (model(part).argmax(1) == labels).sum()
            for part, labels in zip(split.test.split(1000), split.test_labels.split(1000), strict=True)
        ]
    return 100 * float(sum(hits)) / len(split.test)


def _zero(linear: nn.Linear) -> nn.Linear:
    nn.init.zeros_(linear.weight)
    nn.init.zeros_(linear.bias)
    return linear


def _falling(steps: int) -> Callable[[torch.optim.Optimizer], Any]:
    def schedule(optimiser: torch.optim.Optimizer) -> Any:
        return torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.0, total_iters=steps)

    return schedule


# Data as the models read it


def _data(task: Task, folder: Path, say: Callable[[str], object]) -> Split:
    if task.data == "adult":
        split = learn_data.adult(folder)
        scale = learn_data.GROUPS**-0.5  # every record has as many ones as there are groups: length 1
        return Split(split.train * scale, split.train_labels, split.test * scale, split.test_labels)
    whole = _scattering(folder, say)
    return whole.first(4000, 1000) if task.data == "first" else whole


_scattered: dict[Path, Split] = {}


def _scattering(folder: Path, say: Callable[[str], object]) -> Split:
    """Features of length 1, worked out once and kept under .bench."""
    if folder not in _scattered:
        path = KEPT / "scattering-1.pt"
        if not path.exists():
            say("scattering features")
            path.parent.mkdir(parents=True, exist_ok=True)
            digits = learn_data.mnist(folder)
            torch.save(tuple(learn_features.features(each).half() for each in (digits.train, digits.test)), path)
        digits, (train, test) = learn_data.mnist(folder), torch.load(path)
        _scattered[folder] = Split(_unit_length(train), digits.train_labels, _unit_length(test), digits.test_labels)
    return _scattered[folder]


def _unit_length(features: torch.Tensor) -> torch.Tensor:
    return features.flatten(1).float() / FEATURES**0.5


def _pixels(digits: Split) -> Split:
    shift, scale = learn_data.MEAN, learn_data.SPREAD
    return Split((digits.train - shift) / scale, digits.train_labels, (digits.test - shift) / scale, digits.test_labels)
