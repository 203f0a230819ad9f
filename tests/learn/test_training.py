"""Training from end to end: what leaves, what is paid, what nobody may learn."""

from __future__ import annotations

import struct
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sfumato import Budget, Curator, MemoryLedger, Private, Unit, learn
from sfumato.errors import ArgumentError, DataError, PlanError
from sfumato.learn import stepping
from sfumato.learn.aside import Progress
from sfumato.learn.sampling import Poisson
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.stores.sqlite import SQLiteStore
from sfumato.noise import SeededBits
from tests.helpers import everything_said, spent
from tests.learn.tiny import (
    ROW,
    Line,
    Recording,
    Silent,
    by_user,
    columns,
    curator,
    plan_for,
    rows_of,
    shape,
    stepped,
    trained,
)

HALF = Fraction(1, 2)
TENTH = Fraction(1, 10)


def norm(vector: Any) -> float:
    return float(np.linalg.norm(vector))


# the sum


def test_nothing_public_depends_on_how_many_there_are() -> None:
    """T1 of the bugs seen elsewhere: the same slots, divisor and noise for 0 to 4 people."""
    plan = plan_for(rate=HALF, steps=3)
    told = []
    for people in range(5):
        noise = Recording()
        raw = trained(plan, rows_of(columns(people), plan), noise)
        told.append((noise.laws, raw["steps"], raw["norm"], raw["state"]["weight"].shape))
    assert all(each == told[0] for each in told)
    assert told[0][0] == [(plan.blur.law(1.0).sigma, 3)] * 3, "noise once a step, for every parameter"


@pytest.mark.parametrize("micro", [1, 3, 8, 24])
def test_the_sum_does_not_depend_on_micro_batches(micro: int) -> None:
    """T4: only by rounding to the grid, half a step for each part."""
    usual, other = plan_for(micro=8), plan_for(micro=micro)
    rows = rows_of(columns(8), usual)
    step = 2.0 ** usual.blur.exponent(1.0) / 8
    parts = -(-other.sampling.slots // micro) + 3
    assert np.abs(stepped(usual, rows) - stepped(other, rows)).max() <= parts * step / 2 + 1e-6


def test_the_sum_is_that_of_clipped_gradients() -> None:
    plan = plan_for()
    given = columns(8)
    given["x"] *= 3
    each = given["x"] * np.array(given["y"])[:, None]
    clipped = each / np.maximum(np.linalg.norm(each, axis=1, keepdims=True), 1)
    assert norm(stepped(plan, rows_of(given, plan)) * 8 - clipped.sum(0)) < 0.02


def test_an_empty_batch_is_a_step_like_any_other() -> None:
    """T7."""
    plan = plan_for(rate=Fraction(1, 1000), steps=4)
    for people in (0, 1):
        noise = Recording()
        raw = trained(plan, rows_of(columns(people), plan), noise)
        assert raw["steps"] == 4 and len(noise.laws) == 4 and raw["state"]["weight"].any()


def test_the_divisor_is_what_is_expected() -> None:
    plan = plan_for(people=8)
    alone = {"x": np.array([[0.5, 0, 0]], dtype=np.float32), "y": [1.0]}
    assert stepped(plan, rows_of(alone, plan))[0] * 8 == pytest.approx(0.5, abs=0.005)


def test_noise_drawn_beside_the_passes_is_the_same_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_for(rate=HALF, steps=4)
    rows = rows_of(columns(8), plan)
    after = trained(plan, rows, Recording(3))
    monkeypatch.setattr(stepping, "_MANY", 1)
    beside = Recording(3)
    assert np.array_equal(trained(plan, rows, beside)["state"]["weight"], after["state"]["weight"])
    assert [many for _, many in beside.laws] == [3] * 4


def poisoned(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return output / (target - 7)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("clip", [1, learn.Automatic(norm=1), learn.PerLayer(norm=1)], ids=["flat", "auto", "layer"])
def test_a_gradient_that_is_no_number_counts_for_nothing(clip: Any, strict: bool) -> None:
    plan = plan_for(loss=poisoned, clip=clip, strict=strict)
    given = columns(8)
    fine = stepped(plan, rows_of({"x": given["x"][:7], "y": given["y"][:7]}, plan))
    given["y"][7] = 7.0
    assert np.array_equal(stepped(plan, rows_of(given, plan)), fine) and np.isfinite(fine).all()


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_cells_that_are_no_numbers_move_nobody(odd: float) -> None:
    plan = plan_for()
    given = columns(8)
    rest = stepped(plan, rows_of({"x": given["x"][:7], "y": given["y"][:7]}, plan))
    given["x"][7, 1] = odd
    moved = stepped(plan, rows_of(given, plan))
    assert np.isfinite(moved).all() and norm(moved - rest) * 8 <= 1.02


def test_a_bad_record_does_not_fail_a_release() -> None:
    given = columns(8)
    given["y"][3] = 7.0
    asks = curator(given=given)
    release = asks.release(plan_for(loss=poisoned, data=asks.private, rate=HALF, steps=5))
    assert np.isfinite(release.value.state["weight"]).all() and release.value.steps == 5


# users


def test_a_user_with_a_thousand_rows_counts_once() -> None:
    random = np.random.default_rng(1)
    few = {"x": random.uniform(-1, 1, (5, 3)).astype(np.float32), "y": [1.0] * 5, "who": ["a", "b", "c", "d", "e"]}
    heavy = {
        "x": np.concatenate([few["x"], np.full((1000, 3), 9, dtype=np.float32)]),
        "y": few["y"] + [9.0] * 1000,
        "who": few["who"] + ["z"] * 1000,
    }
    for most in (1, 4, 32):
        told, rows = by_user(few)
        plan = plan_for(data=told, population=8, per_unit=most)
        assert plan.divisor == 8
        moved = norm(stepped(plan, by_user(heavy)[1]) - stepped(plan, rows)) * 8
        assert 0.9 < moved <= 1.01
    assert plan.blur.sensitivity < Fraction(11, 10)


def test_a_user_is_the_mean_of_the_rows_that_are_read() -> None:
    given = {"x": np.array([[0.2, 0, 0], [0, 0.4, 0], [0, 0, 0.6]], dtype=np.float32), "y": [1.0] * 3, "who": ["a"] * 3}
    told, rows = by_user(given)
    assert stepped(plan_for(data=told, population=8, per_unit=3), rows) * 8 == pytest.approx(
        [0.2 / 3, 0.4 / 3, 0.2], abs=0.01
    )
    two = stepped(plan_for(data=told, population=8, per_unit=2), rows) * 8
    assert np.count_nonzero(np.abs(two) > 0.05) == 2


def test_users_join_together_with_all_their_rows() -> None:
    """Drawn by user: how often anybody joins does not depend on how many rows there are."""
    told, rows = by_user({"x": np.ones((60, 3), dtype=np.float32), "y": [1.0] * 60, "who": ["a"] * 59 + ["b"]})
    plan = plan_for(data=told, population=8, per_unit=2, rate=HALF)
    noise = Silent(SeededBits(1))
    stepper = stepping.Stepper(plan, rows, noise, plan.model.fresh())
    try:
        came = [len([u for u in stepper.drawn().tolist() if u >= 0]) for _ in range(30)]
    finally:
        stepper.close()
    assert max(came) == 2


# batches of a fixed size


def test_a_replaced_unit_moves_the_sum_by_twice_the_norm_at_most() -> None:
    plan = plan_for(unit=Unit(change="replace"), people=8, sampling="fixed", batch_size=8)
    given = columns(8)
    one = stepped(plan, rows_of(given, plan))
    given["x"][7], given["y"][7] = -given["x"][7] * 10, 10.0
    two = stepped(plan, rows_of(given, plan))
    assert norm(one - two) * 8 <= 2.02
    assert plan.blur.law(1.0).sigma * 2.0 ** plan.blur.exponent(1.0) >= 4, "multiplier times 2 C"
    with pytest.raises(DataError):
        stepped(plan, rows_of(columns(7), plan))


# the release


def test_a_training_is_a_release_like_any_other() -> None:
    asks = curator()
    model = torch.nn.Sequential(Line(3))
    before = {name: each.clone() for name, each in model.state_dict().items()}
    plan = plan_for(model, data=asks.private, rate=HALF, steps=4)
    release = asks.release(plan, key="train-1")
    assert release.value.steps == 4 and list(release.value.state) == list(before) == ["0.weight"]
    assert list(release.value.model.state_dict()) == list(before)
    assert all(torch.equal(each, before[name]) for name, each in model.state_dict().items()), (
        "the user's own is as it was"
    )
    assert not torch.equal(release.value.model.state_dict()["0.weight"], before["0.weight"])
    assert release.receipt.grade == "exact" and release.receipt.loop == "steps"  # type: ignore[union-attr]
    again = asks.release(plan)
    assert again.value == release.value and asks.release(plan, key="train-1").value == release.value
    ledger: Any = asks.ledger
    assert ledger.verify().ok and spent(ledger, "people")[0] == plan.price()


def test_a_rehearsal_is_free_and_short() -> None:
    asks = curator()
    made = asks.rehearse(plan_for(data=asks.private, rate=HALF, steps=1000, multiplier=100))
    assert made.value.steps == 3 and made.receipt is None
    assert spent(asks.ledger, "people")[0] == 0  # type: ignore[arg-type]


def test_batches_of_a_fixed_size_are_rehearsed_too() -> None:
    private = Private("people", columns(40), unit=Unit(change="replace"), schema=shape(40))
    asks = Curator(private, MemoryLedger({"people": Budget(epsilon=9, delta=Fraction(1, 10**5))}))
    plan = plan_for(data=private, sampling="fixed", batch_size=4, steps=5)
    assert asks.rehearse(plan).value.steps == 3
    assert asks.rehearse(plan, rows=5).value.steps == 3


def test_a_failure_in_the_middle_tells_nothing() -> None:
    given = columns(8)
    armed: list[bool] = []

    def failing(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        if armed and len(target) == 8:  # real records: fewer are looked at before
            raise ValueError(f"SECRET {given['y'][2]}")
        return output * target

    asks = curator(given=given)
    plan = plan_for(loss=failing, data=asks.private)
    armed.append(True)
    with pytest.raises(DataError) as told:
        asks.release(plan)
    said = everything_said(told.value)
    assert "SECRET" not in said and str(given["y"][2]) not in said
    assert spent(asks.ledger, "people")[0] == plan.price()  # type: ignore[arg-type]


def test_fast_noise_is_of_float_grade() -> None:
    asks = curator()
    release = asks.release(plan_for(data=asks.private, rate=HALF, steps=2, noise="fast"))
    assert release.receipt.grade == "float"  # type: ignore[union-attr]


def rho(plan: Any, steps: int) -> Budget:
    return Budget(rho=Fraction(steps, 2) / plan.multiplier**2)


def test_an_early_stop_frees_the_rest_where_steps_add_up() -> None:
    plan = plan_for(steps=6)
    asks = curator(budget=rho(plan, 6))
    seen: list[list[Progress]] = []

    def enough(progress: list[Progress]) -> bool:
        seen.append(list(progress))
        return len(progress) == 2

    release = asks.release(plan.watched(stop=enough))
    assert release.value.steps == 2 and [len(each) for each in seen] == [1, 2]
    assert spent(asks.ledger, "people")[0] == 2 * rho(plan, 1).rho  # type: ignore[arg-type,operator]
    assert asks.release(plan_for(steps=4)).value.steps == 4, "the rest was free"
    assert asks.ledger.verify().ok  # type: ignore[attr-defined]


def test_steps_are_paid_in_blocks() -> None:
    plan = plan_for(steps=7, draws=3)
    asks = curator(budget=rho(plan, 7))
    drawn: list[Any] = []
    asks.release(plan.watched(progress=lambda p: drawn.append(spent(asks.ledger, "people")[0])))  # type: ignore[arg-type]
    one = rho(plan, 1).rho
    assert one is not None and drawn == [3 * one] * 3 + [6 * one] * 3 + [7 * one], "before they run"


@pytest.mark.parametrize(
    "name",
    sorted(
        n
        for n in vars(torch.optim)
        if isinstance(getattr(torch.optim, n), type) and n not in ("Optimizer", "SparseAdam")
    ),
)
def test_any_optimiser_by_name(name: str) -> None:
    """Those that ask for losses again, or for sparse gradients, are refused before anything is paid for."""
    if name in ("LBFGS", "SparseAdam"):
        with pytest.raises(ArgumentError, match="optimiser"):
            plan_for(optimiser=learn.optimiser(name))
        return
    plan = plan_for(steps=2, optimiser=learn.optimiser(name, lr=0.1))
    raw = trained(plan, rows_of(columns(8), plan), Recording())
    assert raw["steps"] == 2 and np.isfinite(raw["state"]["weight"]).all() and raw["state"]["weight"].any()


def test_an_optimiser_that_does_not_fit_the_model_is_refused_unpaid() -> None:
    if hasattr(torch.optim, "Muon"):
        with pytest.raises(ArgumentError, match="2D"):
            plan_for(torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.Flatten(0)), optimiser=learn.optimiser("Muon"))


def test_a_schedule_that_reads_a_loss_is_refused() -> None:
    with pytest.raises(ArgumentError, match="schedule"):
        plan_for(schedule=torch.optim.lr_scheduler.ReduceLROnPlateau)


def test_an_optimiser_that_is_none_is_refused() -> None:
    for name in ("Optimizer", "nothing", "lr_scheduler"):
        with pytest.raises(ValueError, match="optimiser"):
            learn.optimiser(name)
    with pytest.raises(ValueError, match="settings"):
        learn.optimiser("SGD", speed=3)


def test_a_schedule_is_followed() -> None:
    still = plan_for(
        steps=3, schedule=lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda step: 1.0 if step < 1 else 0.0)
    )
    once = plan_for(steps=1)
    rows = rows_of(columns(8), once)
    one, three = (trained(p, rows, Recording())["state"]["weight"] for p in (once, still))
    assert np.array_equal(one, three)


def test_an_average_of_the_weights_is_released() -> None:
    rows = rows_of(columns(8), plan_for())
    plain, mean = (
        trained(plan_for(steps=5, **more), rows, Recording())["state"]["weight"] for more in ({}, {"average": 0.9})
    )
    assert not np.array_equal(plain, mean) and np.isfinite(mean).all()


# what nobody may learn


def test_progress_tells_released_values_alone() -> None:
    """T29: two data sets, the same noise. What is told differs in noisy values only."""
    told: list[list[Progress]] = []
    plan = plan_for(rate=HALF, steps=3, optimiser=learn.optimiser("SGD", lr=0.0), count=2)
    public = (torch.ones(4, 3), torch.ones(4))
    for seed in (1, 2):
        seen: list[Progress] = []
        rows = rows_of(columns(seed * 4, seed=seed), plan)
        trained(plan.watched(progress=seen.append, public=public, every=1), rows, Recording())
        told.append(seen)
    for one, two in zip(*told, strict=True):
        hidden = {"signal": None, "unclipped": None, "seconds": None}
        assert one._replace(**hidden) == two._replace(**hidden)
        assert one.epsilon is not None and one.loss == 0.0


def test_the_signal_is_the_length_of_what_was_released() -> None:
    plan = plan_for()
    seen: list[Progress] = []
    raw = trained(plan.watched(progress=seen.append), rows_of(columns(8), plan), Recording())
    gradient = -raw["state"]["weight"] / 0.1
    alone = plan.blur.deviation(1.0) * 3**0.5 / 8
    assert seen[0].signal == pytest.approx(norm(gradient) / alone, rel=1e-5)


def test_no_artefact_holds_a_row(tmp_path: Path) -> None:
    """T20: a planted record is nowhere in the model's file, the checkpoint, the ledger or the release."""
    canary, told = np.array([0.71830102, -0.33127311, 0.5519377], dtype=np.float32), 0.918273645546
    given = columns(8)
    given["x"][4], given["y"][4] = canary, told
    private = Private("people", given, unit=ROW, schema=shape(8))
    ledger = Ledger(SQLiteStore(tmp_path / "ledger.db", create=True))
    ledger.open_account("people", Budget(epsilon=9, delta=1e-5))
    asks = Curator(private, ledger)
    plan = plan_for(data=private, rate=HALF, steps=4)
    release = asks.release(plan.watched(checkpoint=tmp_path / "run.pt"), key="k")
    release.value.save(tmp_path / "model.pt")
    (tmp_path / "release.txt").write_text(f"{release} {release.value} {release.explain()} {plan} {release.receipt}")
    wanted = [canary.tobytes(), struct.pack("<d", told), f"{told:.9f}"[:10].encode(), b"0.7183010", b"0.5519377"]
    wanted += [struct.pack("<d", float(each)) for each in canary]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {"ledger.db", "run.pt", "model.pt"} <= {path.name for path in files}
    for path in files:
        held = path.read_bytes()
        assert not [each for each in wanted if each in held], path.name


def test_more_people_than_the_public_number_allows_fail_without_a_word() -> None:
    given = columns(100)
    asks = curator(given=given)
    with pytest.raises(DataError):
        asks.release(plan_for(data=asks.private, rate=HALF))


def test_plans_of_another_unit_are_refused_unpaid() -> None:
    asks = curator()
    with pytest.raises(PlanError, match="protects"):
        asks.release(plan_for(unit=Unit(change="replace")))
    assert spent(asks.ledger, "people")[0] == 0  # type: ignore[arg-type]


def test_a_memory_ledger_keeps_what_a_training_cost() -> None:
    ledger = MemoryLedger({"people": Budget(epsilon=2, delta=1e-5)})
    asks = curator(ledger=ledger)
    plan = plan_for(data=asks.private, rate=TENTH, steps=20, epsilon=1, delta=1e-6)
    assert isinstance(plan.sampling, Poisson)
    asks.release(plan)
    assert ledger.verify().ok and ledger.left("people")
