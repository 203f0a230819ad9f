"""The user's own loop: batches are paid for before they are given out, and what comes back is noisy."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from sfumato import Budget
from sfumato.errors import BudgetError, PlanError
from sfumato.learn.looping import Loop
from sfumato.noise import SeededBits
from sfumato.plan import Run
from tests.helpers import filed_in, spent
from tests.learn.tiny import Line, Recording, Silent, columns, curator, plan_for, rows_of, times, trained

HALF = Fraction(1, 2)
RHO = Fraction(1, 8)  # of a step at multiplier 2, where everybody takes part


def house(steps: int = 4) -> Any:
    return curator(budget=Budget(rho=steps * RHO))


def paid(asks: Any) -> Fraction:
    return spent(asks.ledger, "people")[0] / RHO


def ran(asks: Any, plan: Any, model: torch.nn.Module, *optimisers: torch.optim.Optimizer) -> int:
    steps = 0
    with asks.supervise(plan) as run:
        for batch in run.batches():
            for x, y in batch:
                batch.backward(times(model(x), y))
            for each in optimisers:
                each.step()
            steps += 1
    return steps


def test_three_lines_change() -> None:
    asks, model = house(), Line(3)
    plan = plan_for(model, data=asks.private, steps=4)
    assert ran(asks, plan, model, torch.optim.Adam(model.parameters(), lr=0.1)) == 4
    assert model.weight.any() and paid(asks) == 4 and asks.ledger.verify().ok
    assert {filed.receipt.loop for filed in filed_in(asks.ledger)} == {"trusted steps"}


def test_it_does_what_a_release_does() -> None:
    """The same bits give the same weights."""
    model = Line(3)
    plan = plan_for(model, rate=HALF, steps=3)
    rows = rows_of(columns(8), plan)
    raw = trained(plan, rows, Recording(5))
    loop = Loop(plan, rows, Run(Recording(5), steps=3))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in loop.batches():
        for x, y in batch:
            batch.backward(times(model(x), y))
        optimiser.step()
    loop.close()
    assert np.array_equal(model.weight.detach().numpy(), raw["state"]["weight"])


def test_two_optimisers_share_the_gradient() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 1), torch.nn.Flatten(0))
    asks = house()
    plan = plan_for(model, data=asks.private, steps=2)
    before = {name: each.clone() for name, each in model.state_dict().items()}
    halves = [torch.optim.SGD(model[0].parameters(), lr=0.1), torch.optim.AdamW(model[1].parameters(), lr=0.1)]
    ran(asks, plan, model, *halves)
    assert all(not torch.equal(each, before[name]) for name, each in model.state_dict().items())


def test_leaving_early_frees_the_rest() -> None:
    asks, model = house(), Line(3)
    plan = plan_for(model, data=asks.private, steps=4)
    with asks.supervise(plan) as run:
        for batch in run.batches():
            assert run.left == 3
            for x, y in batch:
                batch.backward(times(model(x), y))
            break
    assert paid(asks) == 1 and asks.ledger.held("people") == () and asks.ledger.verify().ok


def test_a_batch_is_paid_for_before_it_is_given_out() -> None:
    asks, model = house(), Line(3)
    with asks.supervise(plan_for(model, data=asks.private, steps=4)) as run:
        for number, batch in enumerate(run.batches(), 1):
            assert paid(asks) == number
            for x, y in batch:
                batch.backward(times(model(x), y))


@pytest.mark.parametrize("micro", [24, 4])
def test_a_part_that_never_comes_back_is_refused(micro: int) -> None:
    asks, model = house(), Line(3)
    with (
        pytest.raises(PlanError, match="never came back"),
        asks.supervise(plan_for(model, data=asks.private, steps=4, micro=micro)) as run,
    ):
        for batch in run.batches():
            for x, _ in batch:
                model(x)


def test_a_batch_that_is_not_looked_at_is_refused() -> None:
    asks, model = house(), Line(3)
    with (
        pytest.raises(PlanError, match="not summed"),
        asks.supervise(plan_for(model, data=asks.private, steps=4)) as run,
    ):
        for _ in run.batches():
            pass


@pytest.mark.parametrize(
    "wrong",
    [lambda losses: losses.mean(), lambda losses: losses[:3], lambda losses: losses.sum().reshape(1)],
    ids=["mean", "some", "sum"],
)
def test_one_loss_for_each_record_or_none(wrong: Any) -> None:
    asks, model = house(), Line(3)
    with (
        pytest.raises(PlanError, match="one loss for each record"),
        asks.supervise(plan_for(model, data=asks.private, steps=4)) as run,
    ):
        for batch in run.batches():
            for x, y in batch:
                batch.backward(wrong(times(model(x), y)))


MIXTURES = {
    "divided by the mean": lambda losses: losses / losses.mean(),
    "divided by a mean that is held": lambda losses: losses / losses.detach().mean(),
    "ranked": lambda losses: losses.sort().values,
    "turned round": lambda losses: losses.flip(0),
    "smoothed": lambda losses: torch.cumsum(losses, 0),
}


@pytest.mark.parametrize("name", MIXTURES)
def test_losses_that_mix_records_are_refused(name: str) -> None:
    """The plan's own loss was looked at; what a loop makes of it must be the same computation."""
    asks, model = house(), Line(3)
    with (
        pytest.raises(PlanError, match="mixes records"),
        asks.supervise(plan_for(model, data=asks.private, steps=4)) as run,
    ):
        for batch in run.batches():
            for x, y in batch:
                batch.backward(MIXTURES[name](times(model(x), y)))


def test_backward_is_called_once_for_each_part() -> None:
    asks, model = house(), Line(3)
    with (
        pytest.raises(PlanError, match="once for each part"),
        asks.supervise(plan_for(model, data=asks.private, steps=4)) as run,
    ):
        for batch in run.batches():
            for x, y in batch:
                batch.backward(times(model(x), y))
                batch.backward(times(model(x), y))


def test_nothing_is_given_out_after_the_block() -> None:
    asks, model = house(), Line(3)
    with asks.supervise(plan_for(model, data=asks.private, steps=4)) as run:
        pass
    with pytest.raises((PlanError, BudgetError), match="over"):
        next(iter(run.batches()))
    assert paid(asks) == 0


def test_the_data_is_let_go() -> None:
    asks, model = house(), Line(3)
    with asks.supervise(plan_for(model, data=asks.private, steps=4)) as run:
        pass
    assert run._stepper is None


def test_the_sum_is_that_of_all_parts() -> None:
    """Silent noise: the gradient over the expected batch, wherever the parts are cut."""
    found = []
    for micro in (24, 5):
        model = Line(3)
        plan = plan_for(model, micro=micro)
        loop = Loop(plan, rows_of(columns(8), plan), Run(Silent(SeededBits(2)), steps=1))
        for batch in loop.batches():
            for x, y in batch:
                assert len(x) == len(y) == micro
                batch.backward(times(model(x), y))
        loop.close()
        assert model.weight.grad is not None
        found.append(model.weight.grad.numpy().copy())
    assert np.abs(found[0] - found[1]).max() < 0.002


def test_a_model_that_changed_since_the_plan_is_refused() -> None:
    asks, model = house(), Line(3)
    plan = plan_for(model, data=asks.private, steps=4)
    with torch.no_grad():
        model.weight += 1
    with pytest.raises(PlanError, match="changed"), asks.supervise(plan):
        pass
    assert paid(asks) == 0


def test_the_graph_of_a_step_is_not_what_the_user_trains_elsewhere() -> None:
    """Gradients of a user's own public loss may be added: they read no private data."""
    asks, model = house(), Line(3)
    plan = plan_for(model, data=asks.private, steps=1)
    with asks.supervise(plan) as run:
        for batch in run.batches():
            for x, y in batch:
                batch.backward(times(model(x), y))
            assert model.weight.grad is not None
            noisy = model.weight.grad.clone()
            model(torch.ones(2, 3)).sum().backward()
            assert torch.allclose(model.weight.grad, noisy + 2)
