"""The models that come with sfumato: shapes, the same first weights in every process, refusals that say what to do."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from sfumato.errors import ArgumentError, PlanError
from sfumato.learn.builtin import LOSSES, NAMES, builtin, seeded


@pytest.mark.parametrize(
    ("name", "shape", "more"),
    [
        ("linear", (5,), {}),
        ("logistic", (2, 3), {}),
        ("mlp", (5,), {}),
        ("mlp", (1, 4, 4), {"hidden": [7, 3], "activation": "relu"}),
        ("cnn", (1, 28, 28), {}),
        ("cnn", (3, 4, 9), {"hidden": [2]}),
        ("cnn", (2, 17, 5), {"hidden": [2, 2, 2, 2, 2], "activation": "gelu"}),
    ],
)
def test_a_model_tells_what_it_is_asked_for(name: str, shape: tuple[int, ...], more: dict[str, Any]) -> None:
    stream = torch.get_rng_state()
    made = builtin(name, shape, 3, **more)
    assert made(torch.zeros(2, *shape)).shape == (2, 3)
    again, other = builtin(name, shape, 3, **more), builtin(name, shape, 3, seed=2, **more)
    assert torch.equal(torch.get_rng_state(), stream), "nobody's stream moves"
    same = [torch.equal(a, b) for a, b in zip(made.parameters(), again.parameters(), strict=True)]
    assert all(same) and not all(torch.equal(a, b) for a, b in zip(made.parameters(), other.parameters(), strict=True))


@pytest.mark.parametrize(
    ("name", "shape", "more", "told"),
    [
        ("forest", (5,), {}, "model"),
        ("linear", (5,), {"hidden": [3]}, "hidden"),
        ("mlp", (5,), {"hidden": [0]}, "hidden"),
        ("mlp", (5,), {"activation": "sin"}, "activation"),
        ("cnn", (5,), {}, "one tensor column"),
        ("cnn", (1, 3, 9), {}, "sides of 4"),
        ("cnn", (1, 8, 8), {"hidden": []}, "hidden"),
    ],
)
def test_what_cannot_be_made_is_refused(name: str, shape: tuple[int, ...], more: dict[str, Any], told: str) -> None:
    with pytest.raises((ArgumentError, PlanError), match=told):
        builtin(name, shape, 3, **more)


def test_losses_give_one_number_for_each_record() -> None:
    assert set(NAMES) == {"linear", "logistic", "mlp", "cnn"}
    target = torch.tensor([0.5, -1.0, 2.0])
    for name, loss in LOSSES.items():
        output = torch.zeros(3, 4) if name == "cross_entropy" else torch.zeros(3, 1)
        made = loss(output, torch.tensor([0, 1, 3]) if name == "cross_entropy" else target)
        assert made.shape == (3,)
    assert torch.allclose(LOSSES["mse"](torch.zeros(3, 1), target), target.square())


def test_a_function_of_ones_own_is_seeded() -> None:
    one, two = (seeded(lambda: torch.nn.Linear(2, 2), 5) for _ in range(2))
    assert torch.equal(one.weight, two.weight)
    with pytest.raises(PlanError, match=r"return a torch\.nn\.Module"):
        seeded(lambda: 3, 5)
