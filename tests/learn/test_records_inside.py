"""What is inside a model while it trains: records that begin to move at a later step, modes, buffers, memories."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from sfumato import Budget, Curator, MemoryLedger, Private, Schema, Unit, learn, schema  # noqa: E402
from sfumato.errors import DataError, PlanError  # noqa: E402
from sfumato.learn.aside import measured  # noqa: E402
from sfumato.learn.checking import check, explain, look  # noqa: E402
from sfumato.learn.clipping import Flat  # noqa: E402
from sfumato.learn.engine import Engine  # noqa: E402
from sfumato.learn.metrics import by_group  # noqa: E402
from tests.learn.tiny import Line, columns, curator, plan_for, times  # noqa: E402

ONE = Flat(norm=1)
PEOPLE = 14


class Experts(nn.Module):
    """A mixture of experts: rows are sorted by a router's score, and each expert takes its share of them. The router
    begins at 0, so that everybody ties and nobody moves; `sort` may be left out, to make a plan for the rest."""

    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.router, self.expert, self.head = nn.Linear(width, 1), nn.Linear(width, width), nn.Linear(width, 3)
        for each in self.router.parameters():
            nn.init.zeros_(each)
        self.sort = True

    def forward(self, x: Any) -> Any:
        score = self.router(x).squeeze(1).nan_to_num()
        order = score.argsort(stable=True) if self.sort else torch.arange(len(x))
        return self.head(torch.tanh(self.expert(x[order])) + score.unsqueeze(1))


def cross_entropy(output: Any, target: Any) -> Any:
    return functional.cross_entropy(output, target, reduction="none")


def batch() -> tuple[Any, Any]:
    torch.manual_seed(5)
    return torch.randn(PEOPLE, 6), torch.randint(0, 3, (PEOPLE,))


def test_experts_that_sort_their_batch_are_refused_while_the_router_is_zero() -> None:
    x, y = batch()
    with pytest.raises(PlanError, match="moves them inside the batch, at sort"):
        check(Engine(Experts(), cross_entropy, examples=((x[:4],), y[:4])), clipping=ONE)


def test_records_that_begin_to_move_at_a_later_step_end_it() -> None:
    """What was looked at did not move anybody. In a batch of 64 a record that is not even counted moved the clipped sum
    by 9 clip norms."""
    x, y = batch()
    model = Experts()
    model.sort = False
    made = Engine(model, cross_entropy, examples=((x[:4],), y[:4]))
    made.sums((x,), y, clipping=ONE)
    model.sort = True
    with torch.no_grad():
        model.router.weight.fill_(3.0)
    with pytest.raises(PlanError, match="moves them inside the batch, at sort"):
        made.sums((x,), y, clipping=ONE)


def test_other_steps_than_those_that_were_looked_at_end_it() -> None:
    """The same names in the graph, records along another dimension: only the trace tells."""

    class Turning(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.dims = nn.Linear(2, 3), (1, 0)

        def forward(self, x: Any) -> Any:
            z = x.view(len(x), 3, 2)
            return self.layer(z.transpose(*self.dims).reshape(-1, 2)).tanh().view(3, len(x), 3).sum(0)

    x, y = torch.randn(3, 6), torch.randint(0, 3, (3,))
    model = Turning()
    made = Engine(model, cross_entropy, examples=((x,), y))
    made.sums((x,), y, clipping=ONE)
    model.dims = (0, 0)
    with pytest.raises(PlanError, match=r"moves them inside the batch|do not lie where they lay"):
        made.sums((x,), y, clipping=ONE)


class Waking(nn.Module):
    """Mixes records from its so-many-th run on: no look before can tell."""

    def __init__(self, runs: int) -> None:
        super().__init__()
        self.line, self.left = Line(3), [runs]

    def forward(self, x: Any) -> Any:
        if len(x) == 8:  # the real ones: fewer are looked at before
            self.left[0] -= 1
        return self.line(x.flip(0) if self.left[0] < 0 else x * 1)

    def __deepcopy__(self, memo: Any) -> Any:
        other = Waking(self.left[0])
        other.line = copy.deepcopy(self.line)
        return other


def test_a_release_whose_model_wakes_up_is_paid_for_and_gives_nothing() -> None:
    asks = curator()
    plan = plan_for(Waking(2), data=asks.private, steps=4)
    with pytest.raises(DataError) as told:
        asks.release(plan)
    assert "flip" not in str(told.value), "a fixed text"
    assert asks.ledger.verify().ok


def test_a_loop_whose_loss_sorts_is_refused_at_that_step() -> None:
    asks, model = curator(), Line(3)
    with asks.supervise(plan_for(model, data=asks.private, steps=4)) as run:
        batches = run.batches()
        first = next(batches)
        for x, y in first:
            first.backward(times(model(x), y))
        second = next(batches)
        for x, y in second:
            losses = times(model(x), y)
            total = losses.detach().mean().item()  # a loop's own eyes see the data
            assert total == total
            with pytest.raises(PlanError, match="mixes records, or moves them"):
                second.backward(losses[losses.detach().argsort()])
            break
    assert torch.ones(2).sum().item() == 2, "and nothing is watched any more"


# weights in other states


class Leaning(torch.autograd.Function):
    """Somebody's own operation: its way back leans on everybody's inputs as far as a gate is open."""

    @staticmethod
    def forward(ctx: Any, x: Any, gate: Any) -> Any:
        ctx.save_for_backward(x, gate)
        return x * 1

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        x, gate = ctx.saved_tensors
        return grads[0] * (1 + gate * x.mean(0)), torch.zeros_like(gate)


class Gated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.head, self.gate = nn.Linear(6, 6), nn.Linear(6, 3), nn.Parameter(torch.zeros(()))

    def forward(self, x: Any) -> Any:
        return self.head(Leaning.apply(self.first(x), self.gate))


def test_the_check_looks_at_several_states_of_the_weights() -> None:
    """Nothing is wrong while the gate is closed, and no operation of the forward pass mixes."""
    x, y = batch()
    model = Gated()
    before = {name: each.clone() for name, each in model.state_dict().items()}
    text = explain(look(Engine(model, cross_entropy, examples=((x[:4],), y[:4])), clipping=ONE))
    assert "a record's gradient moves with another record, with weights shaken" in text
    assert all(torch.equal(before[name], each) for name, each in model.state_dict().items())


# modes and buffers


class Running(nn.Module):
    """A running mean of what it sees in train mode, in a buffer; and the modes that it ran in."""

    def __init__(self, persistent: bool = True) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(3), persistent=persistent)
        self.modes: list[bool] = []

    def forward(self, x: Any) -> Any:
        self.modes.append(self.training)
        if self.training:
            self.mean.mul_(0.5).add_(0.5 * x.detach().mean(0))
        return x


def eighty() -> dict[str, Any]:
    """Records whose mean is 0.8."""
    return {"x": np.full((8, 3), 0.8, dtype=np.float32), "y": [0.1] * 8}


@pytest.mark.parametrize("persistent", [True, False])
def test_whoever_follows_the_advice_on_a_buffer_releases_nothing_of_it(persistent: bool) -> None:
    model = nn.Sequential(Running(persistent), Line(3))
    asks = curator(given=eighty())
    with pytest.raises(PlanError, match=r"0: the buffer 'mean' changes in the forward pass.*eval mode"):
        plan_for(model, data=asks.private, steps=3)
    model[0].eval()
    released = asks.release(plan_for(model, data=asks.private, steps=3)).value
    assert ("0.mean" in released.state) == persistent
    assert not np.any(released.state.get("0.mean", 0)) and not released.model[0].mean.any()


def test_a_frozen_part_in_eval_mode_trains_without_dropout(tmp_path: Path) -> None:
    """Also after looks at public data, and after a checkpoint."""
    back = nn.Sequential(Running(), nn.Dropout(0.5)).eval()
    model = nn.Sequential(back, nn.Dropout(0.0), Line(3))
    seen: list[tuple[bool, ...]] = []
    asks = curator()
    plan = plan_for(model, data=asks.private, steps=4, draws=1)
    hook = nn.modules.module.register_module_forward_hook(
        lambda module, args, output: seen.append((isinstance(module, nn.Dropout) and module.p > 0, module.training))
    )
    given = columns(8)
    public = (torch.from_numpy(given["x"]), torch.tensor(given["y"]))
    try:
        asks.release(plan.watched(public=public, every=1, checkpoint=tmp_path / "kept"), key="k")
    finally:
        hook.remove()
    assert (True, False) in seen and (True, True) not in seen
    kept = torch.load(tmp_path / "kept", weights_only=True)["state"]["model"]
    assert not kept["0.0.mean"].any()


def test_measures_on_public_data_leave_every_mode_as_it_was() -> None:
    model = nn.Sequential(nn.Linear(3, 2), nn.Sequential(nn.Dropout(0.5)).eval(), nn.Dropout(0.1))
    modes = [each.training for each in model.modules()]
    x, y = torch.randn(5, 3), torch.randint(0, 2, (5,))
    measured(model, cross_entropy, ((x,), y))
    by_group(model, x, y, ["a"] * 5)
    assert [each.training for each in model.modules()] == modes and len(set(modes)) == 2


def test_a_loop_gets_its_buffers_back_and_is_told() -> None:
    model = nn.Sequential(Running().eval(), Line(3))
    asks = curator(given=eighty())
    with asks.supervise(plan_for(model, data=asks.private, steps=4)) as run:
        for batch in run.batches():
            model.train()  # as loops do
            with pytest.raises(PlanError, match="a buffer of the model changed in a step"):
                for x, y in batch:
                    batch.backward(times(model(x), y))
            break
    assert not model[0].mean.any()


class Kept(nn.Module):
    """Keeps what it saw in a place that is saved with the model, from a later run on."""

    def __init__(self) -> None:
        super().__init__()
        self.line, self.seen, self.runs = Line(3), torch.zeros(3), [0]

    def forward(self, x: Any) -> Any:
        self.runs[0] += len(x) == 8
        now = x.detach()[0] * 1
        if self.runs[0] > 1:
            self.seen = now
        return self.line(x)

    def get_extra_state(self) -> Any:
        return self.seen

    def set_extra_state(self, state: Any) -> None:
        self.seen = state


def test_nothing_but_what_noise_moved_leaves_with_the_weights() -> None:
    asks = curator(given=eighty())
    released = asks.release(plan_for(Kept(), data=asks.private, steps=3)).value
    assert not np.any(released.state["_extra_state"]) and np.any(released.state["line.weight"])


# private accuracy


class Centred(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x: Any) -> Any:
        return self.layer(x - x.mean(0))


@pytest.mark.parametrize("kind", [Centred, lambda: nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))])
def test_private_accuracy_is_told_from_each_record_alone(kind: Any) -> None:
    shape = Schema.of(x=schema.tensor((3,), -1, 1), y=schema.category([0, 1]), rows=20)
    table = {"x": np.random.default_rng(0).uniform(-1, 1, (20, 3)).astype(np.float32), "y": [0, 1] * 10}
    data = Private("people", table, unit=Unit(), schema=shape)
    asks = Curator(data, MemoryLedger({"people": Budget(epsilon=9)}))
    if kind is Centred:
        with pytest.raises(PlanError, match="mixes records"):
            learn.accuracy(kind(), data=data, inputs="x", target="y", epsilon=1)
        assert asks.ledger.verify().ok
        return
    model = kind()
    released = asks.release(learn.accuracy(model, data=data, inputs="x", target="y", epsilon=1))
    assert 0 <= released.value["accuracy"] <= 1, "a BatchNorm in use has fixed statistics"
    recurrent_one = nn.Sequential(nn.Unflatten(1, (3, 1)), Last())
    assert asks.release(learn.accuracy(recurrent_one, data=data, inputs="x", target="y", epsilon=1)).value


class Last(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(1, 4, batch_first=True), nn.Linear(4, 2)

    def forward(self, x: Any) -> Any:
        return self.head(self.lstm(x)[0][:, -1])
