"""Outputs of code of one's own: each is looked into, or refused. One that nobody reads would be called within."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from types import SimpleNamespace
from typing import Any

import pytest

from sfumato import audit
from sfumato.audit.outputs import atoms_of, unreadable
from sfumato.errors import ArgumentError
from sfumato.noise import SeededBits


@dataclass
class Answer:
    text: str
    value: float


class Fitted:
    """As estimators are: what was learnt is in them, and not in how they print."""

    def __init__(self, value: float) -> None:
        self.coef_ = [value]

    def __repr__(self) -> str:
        return "Fitted()"


class Colour(Enum):
    RED = 0
    BLUE = 1


def _lazily(data: int) -> Iterator[int]:
    yield data


def _model(data: int) -> Any:
    torch = pytest.importorskip("torch")
    made = torch.nn.Linear(1, 1)
    torch.nn.init.constant_(made.weight, float(data))
    torch.nn.init.constant_(made.bias, 0.0)
    return made


def _ends(data: int) -> int:
    return sys.exit(data) if data else 0


@pytest.mark.parametrize(
    "run",
    [
        lambda data: Answer("the mean", 1.0 * data),
        lambda data: Fitted(1.0 * data),
        lambda data: {"model": SimpleNamespace(of=Fitted(1.0 * data))},
        lambda data: list(Colour)[data],
        _lazily,
        lambda data: map(float, [data]),
        _model,
        _ends,
    ],
    ids=["dataclass", "estimator", "nested", "enum", "generator", "map", "model", "exit"],
)
def test_what_an_output_holds_is_read(run: Callable[[int], Any]) -> None:
    """Generators, models and objects were texts with an address in them, or without what they hold: the raw data could
    be in them, and the verdict was "within"."""
    assert audit.check_mechanism(run, [(0, 1)], 1, runs=200, bits=SeededBits(1)).broken


async def _later(data: int) -> int:
    return data


class Silent:
    def __str__(self) -> str:
        raise ValueError("no")

    __slots__ = ()


@pytest.mark.parametrize(
    ("run", "says"),
    [
        (_later, "not async"),
        (lambda data: object(), "holds a object"),
        (lambda data: [data, lambda: data], "holds a function"),
        (lambda data: {"a": Silent()}, "holds a Silent"),
    ],
    ids=["async", "object", "function", "silent"],
)
def test_an_output_that_nobody_can_read_is_refused(run: Callable[[int], Any], says: str) -> None:
    with pytest.raises(ArgumentError, match=f"run .*{says}"):
        audit.check_mechanism(run, [(0, 1)], 1, runs=100)


def test_an_output_that_holds_itself_has_an_end() -> None:
    held: dict[str, Any] = {"x": 1}
    held["me"] = held
    places = [place for place, _ in atoms_of(SimpleNamespace(held=held))]
    assert ("held", "x") in places and max(map(len, places)) < 40
    assert unreadable({"x": 1, "t": "text", "none": None}) is None
