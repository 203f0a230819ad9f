"""What a plan holds besides numbers: prints of models and losses, optimisers by name."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional

from sfumato import learn
from sfumato.errors import ArgumentError, PlanError
from sfumato.learn.live import Loss, Model, Optimiser, model_fingerprint
from sfumato.record import canonical, fingerprint, parse


def net() -> torch.nn.Module:
    made = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.LayerNorm(3), torch.nn.Linear(3, 1))
    with torch.no_grad():
        for number, each in enumerate(made.parameters()):
            each.copy_(torch.linspace(0, 1, each.numel()).reshape(each.shape) + number)
    return made


def bumped(module: Any) -> Any:
    with torch.no_grad():
        module[2].bias += 2.0**-20
    return module


def frozen(module: Any) -> Any:
    module[0].weight.requires_grad_(False)
    return module


def without_grad(module: Any) -> Any:
    module.eval()
    return module


def with_buffer(module: Any) -> Any:
    module.register_buffer("seen", torch.zeros(1))
    return module


def test_a_print_is_of_tree_names_types_and_values() -> None:
    first = model_fingerprint(net())
    assert model_fingerprint(net()) == first
    changed = [bumped(net()), frozen(net()), without_grad(net()), with_buffer(net()), net().double()]
    prints = {model_fingerprint(each) for each in changed}
    assert len(prints) == len(changed) and first not in prints
    other = net()
    other[1] = torch.nn.LayerNorm(3, eps=1e-3)  # type: ignore[index]
    assert model_fingerprint(other) != first


def test_a_print_is_of_what_modules_do() -> None:
    def made(factor: int) -> torch.nn.Module:
        if factor == 2:

            class Own(torch.nn.Module):
                def forward(self, x: torch.Tensor) -> torch.Tensor:
                    return x * 2
        else:

            class Own(torch.nn.Module):  # type: ignore[no-redef]
                def forward(self, x: torch.Tensor) -> torch.Tensor:
                    return x * 3

        return Own()

    assert model_fingerprint(made(2)) == model_fingerprint(made(2)) != model_fingerprint(made(3))
    assert model_fingerprint(torch.nn.Dropout(0.1)) != model_fingerprint(torch.nn.Dropout(0.2))


def test_a_print_tells_what_is_shared() -> None:
    shared, apart = (torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)) for _ in range(2))
    for each in (shared, apart):
        each.load_state_dict({name: torch.ones_like(value) for name, value in each.state_dict().items()})
    shared[1].weight = shared[0].weight
    assert model_fingerprint(shared) != model_fingerprint(apart)


def test_a_model_is_copied_and_left_alone() -> None:
    given = net()
    model = Model(given)
    copy = model.fresh()
    with torch.no_grad():
        for each in copy.parameters():
            each.zero_()
    assert model_fingerprint(given) == model.print
    loaded = model.loaded({name: each.numpy() * 0 for name, each in given.state_dict().items()})
    assert not any(each.any() for each in loaded.parameters()) and not loaded.training
    assert model_fingerprint(given) == model.print and fingerprint(model) == model.print


def test_a_model_that_changed_is_not_trained() -> None:
    given = net()
    model = Model(given)
    bumped(given)
    with pytest.raises(PlanError, match="changed"):
        model.fresh()


@pytest.mark.parametrize("given", [None, "model", torch.zeros(2), torch.nn.Linear])
def test_what_is_no_model_is_refused(given: Any) -> None:
    with pytest.raises(ArgumentError, match="model"):
        Model(given)


def test_losses_are_known_by_name_or_by_their_source() -> None:
    assert Loss(functional.mse_loss).print == Loss(functional.mse_loss).print != Loss(functional.l1_loss).print
    assert Loss(torch.nn.CrossEntropyLoss()).print != Loss(torch.nn.CrossEntropyLoss(label_smoothing=0.1)).print

    def one(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return (output - target).abs()

    def two(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return (output - target) ** 2

    assert Loss(one).print != Loss(two).print


def test_an_optimiser_survives_json() -> None:
    made = learn.optimiser("AdamW", lr=0.01, betas=(0.9, 0.99), weight_decay=0.1)
    again = parse(canonical(made), Optimiser)
    assert again.name == "AdamW" and canonical(again) == canonical(made)
    parameters = [torch.nn.Parameter(torch.ones(2))]
    assert isinstance(again.build(parameters), torch.optim.AdamW)


@pytest.mark.parametrize(("name", "settings"), [("SGD", {"lr": -1}), ("SGD", {"lr": "fast"}), ("Adam", {"beta": 1})])
def test_settings_are_checked_by_torch_before_anything_is_paid_for(name: str, settings: Any) -> None:
    with pytest.raises((ArgumentError, TypeError), match=r"settings|SGD|Adam|lr"):
        learn.optimiser(name, **settings)
