"""Training as a plan: what it costs is what it does."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sfumato import Unit, events, learn, schema
from sfumato.accounting import approximate
from sfumato.errors import ArgumentError, PlanError
from sfumato.laws import RoundedGaussian
from sfumato.learn.sampling import Fixed, Poisson
from sfumato.record import canonical
from tests.learn.tiny import Line, Told, curator, plan_for, rows_of, shape, stepped, times

QUARTER = Fraction(1, 4)


# the law of a step, exactly


def sums_of(plan: Any, people: list[float]) -> dict[tuple[int, ...], int]:
    """The sum in steps before noise, for every set of people that may be drawn."""
    everybody = replace(plan, sampling=Poisson.of(Fraction(1), 4, Fraction(1, 10**9)))
    out = {}
    for many in range(len(people) + 1):
        for some in itertools.combinations(range(len(people)), many):
            given = {"x": np.ones((many, 1), dtype=np.float32), "y": [people[i] for i in some]}
            whole = stepped(everybody, rows_of(given, plan, 4, 1))[0] * 4 * 2.0 ** -plan.blur.exponent(1.0)
            assert abs(whole - round(whole)) < 1e-6
            out[some] = round(whole)
    return out


def law_of(sums: dict[tuple[int, ...], int], people: int, rate: float, law: RoundedGaussian, span: Any) -> Any:
    return sum(
        rate ** len(some) * (1 - rate) ** (people - len(some)) * law.pmf(span - mean)
        for some, mean in sums.items()
        if all(i < people for i in some)
    )


@pytest.mark.parametrize("people", [[-9.0, -9.0, 9.0], [0.25, 9.0], [-1.0, -1.0, -1.0]])
@pytest.mark.parametrize(("rate", "multiplier"), [(Fraction(1, 2), 1), (Fraction(1, 10), Fraction(1, 2))])
def test_neighbours_are_as_close_as_the_price_says(people: list[float], rate: Fraction, multiplier: Any) -> None:
    """Both laws are known to the last digit: hockey-stick divergences against every claim."""
    plan = plan_for(Line(1), people=4, width=1, rate=rate, multiplier=multiplier, delta=1e-3)
    sums, law = sums_of(plan, people), plan.blur.law(1.0)
    reach = max(map(abs, sums.values())) + int(12 * law.sigma)
    span = np.arange(-reach, reach + 1)
    last = len(people)
    with_it = law_of(sums, last, float(rate), law, span)
    without = law_of(sums, last - 1, float(rate), law, span)
    assert with_it.sum() == pytest.approx(1, abs=1e-9)
    tightest = 0.0
    for delta in (1e-5, 1e-4, 1e-3, 1e-2, 0.1):
        epsilon = float(approximate.epsilon(plan.event, Fraction(str(delta))))
        for one, two in ((with_it, without), (without, with_it)):
            lost = np.maximum(one - np.exp(epsilon) * two, 0).sum()
            assert lost <= delta
            tightest = max(tightest, lost / delta)
    if people == [-9.0, -9.0, 9.0]:
        assert tightest > 0.3, "the price is not far above what is lost"


# the price


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), 3])
def test_the_price_is_at_most_what_was_asked_and_near_it(epsilon: Any) -> None:
    plan = plan_for(people=1000, rate=QUARTER, steps=10, epsilon=epsilon, delta=1e-5)
    assert epsilon * Fraction(995, 1000) <= plan.price() <= epsilon
    assert plan.delta == Fraction(1, 10**5)


@pytest.mark.parametrize(("epsilon", "theirs"), [(1, 4.4531), (3, 1.8408), (8, 0.9973)])
def test_noise_is_no_more_than_the_best_peer_adds(epsilon: int, theirs: float) -> None:
    """Opacus with its PRV accountant, 80 steps at rate 1/8. Ours has the chance of overfull batches in it."""
    plan = plan_for(people=4000, rate=Fraction(1, 8), steps=80, epsilon=epsilon, delta=1e-5)
    assert float(plan.multiplier) <= theirs


@pytest.mark.parametrize(
    ("sigma", "epochs", "epsilon"), [("1.3", 15, 0.864459), ("1.1", 60, 2.381686), ("0.7", 45, 5.639447)]
)
def test_published_trainings_cost_what_a_tight_accountant_says(sigma: str, epochs: int, epsilon: float) -> None:
    plan = plan_for(people=60_000, batch_size=256, epochs=epochs, multiplier=Fraction(sigma), delta=1e-5)
    assert plan.sampling.rate == Fraction(256, 60_000)
    assert epsilon * 0.999 <= float(plan.price()) <= epsilon * 1.005


def test_the_event_is_one_step_so_many_times() -> None:
    plan = plan_for(people=1000, rate=QUARTER, steps=7)
    assert plan.event == events.Repeat(plan.step, 7) and plan.steps == 7
    assert isinstance(plan.step, events.Sequence) and plan.step.events[0] == events.Poisson(
        events.Gaussian(multiplier=2), QUARTER
    )
    late = plan.step.events[1]
    assert isinstance(late, events.Approximate) and 7 * late.delta <= plan.delta / 1000


def test_batches_of_a_fixed_size_have_an_event_of_their_own() -> None:
    replaced = Unit(change="replace")
    plan = plan_for(unit=replaced, people=40, sampling="fixed", batch_size=4)
    assert isinstance(plan.sampling, Fixed) and plan.divisor == 4
    assert plan.step == events.WithoutReplacement(events.Gaussian(multiplier=2, relation="replace"), 4, 40)
    assert plan.blur.changes == 2
    with pytest.raises(ArgumentError, match="replace"):
        plan_for(people=40, sampling="fixed", batch_size=4)


def test_public_numbers_come_from_public_fields() -> None:
    """The divisor is rate times the public number, and batch_size needs one."""
    assert plan_for(people=100, batch_size=10).divisor == 10
    assert plan_for(people=100, rate=QUARTER, population=400).divisor == 100
    unknown = Told(Unit(), schema.Schema.of(x=schema.tensor((3,), -1, 1), y=schema.real(-1, 1)))
    with pytest.raises(ArgumentError, match="population"):
        plan_for(data=unknown, batch_size=10)
    with pytest.raises(ArgumentError, match="population"):
        plan_for(data=unknown, rate=QUARTER)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"epsilon": 1, "multiplier": 1}, "epsilon"),
        ({"rate": QUARTER, "batch_size": 4}, "rate"),
        ({"steps": 1, "epochs": 1}, "steps"),
        ({"clip": 0}, "clip"),
        ({"clip": float("nan")}, "clip"),
        ({"clip": float("inf")}, "clip"),
        ({"clip": 2.0**40}, "norm"),
        ({"multiplier": -1}, "multiplier"),
        ({"delta": 0}, "delta"),
        ({"delta": 1}, "delta"),
        ({"rate": 0}, "rate"),
        ({"steps": 0}, "steps"),
        ({"micro": 0}, "micro"),
        ({"per_unit": 2}, "per_unit"),
        ({"noise": "quick"}, "noise"),
        ({"strict": True, "noise": "fast"}, "strict"),
        ({"average": 1}, "average"),
        ({"count": -1}, "count"),
        ({"sampling": "shuffled"}, "sampling"),
        ({"unit": Unit(group=2)}, "group"),
    ],
    ids=str,
)
def test_arguments_are_refused_by_name_before_anything_is_paid(fields: dict[str, Any], named: str) -> None:
    with pytest.raises(ArgumentError, match=named):
        plan_for(**fields)


def test_data_that_says_nothing_of_itself_is_refused() -> None:
    for given in ({"x": [1]}, [1, 2], torch.utils.data.TensorDataset(torch.zeros(2))):
        with pytest.raises(ArgumentError, match="data"):
            plan_for(data=given)


# what is written down


def test_the_plan_as_json_has_prints_and_no_weights() -> None:
    model = Line(300)
    with torch.no_grad():
        model.weight.fill_(0.123456789)
    text = canonical(plan_for(model, width=300)).decode()
    assert len(text) < 4000 and "0.1234" not in text and text.count('"fingerprint":"') >= 2
    json.loads(text)


def test_the_hash_follows_what_decides() -> None:
    first = plan_for()
    assert plan_for().hash == first.hash
    other = Line(3)
    with torch.no_grad():
        other.weight[0, 0] = 2.0**-20
    changed = {
        "weights": plan_for(other),
        "loss": plan_for(loss=lambda output, target: output * target * 2),
        "optimiser": plan_for(optimiser=learn.optimiser("Adam")),
        "clip": plan_for(clip=2),
        "steps": plan_for(steps=2),
        "noise": plan_for(noise="fast"),
        "schedule": plan_for(schedule=lambda o: torch.optim.lr_scheduler.StepLR(o, 1)),
    }
    hashes = {name: plan.hash for name, plan in changed.items()} | {"first": first.hash}
    assert len(set(hashes.values())) == len(hashes)


def test_what_goes_on_beside_changes_nothing(tmp_path: Path) -> None:
    plan = plan_for()
    beside = plan.watched(progress=True, checkpoint=tmp_path / "run.pt", stop=lambda seen: True)
    assert beside.hash == plan.hash and beside == plan and beside.aside.checkpoint and not plan.aside.checkpoint


_ELSEWHERE = """
import torch
from tests.learn.tiny import Line, plan_for
model = Line(3)
with torch.no_grad():
    model.weight.fill_(0.5)
print(plan_for(model).hash)
"""


@pytest.mark.slow
def test_the_hash_is_the_same_in_another_process() -> None:
    model = Line(3)
    with torch.no_grad():
        model.weight.fill_(0.5)
    here = Path(__file__).parents[2]
    searched = os.pathsep.join(map(str, (here, here / "src", here / "referee" / "src")))
    env = {**os.environ, "PYTHONPATH": searched, "PYTHONHASHSEED": "77"}
    told = subprocess.run([sys.executable, "-c", _ELSEWHERE], env=env, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == plan_for(model).hash


def test_a_model_that_changed_is_refused_unpaid() -> None:
    asks = curator()
    model = Line(3)
    plan = plan_for(model, data=asks.private)
    with torch.no_grad():
        model.weight += 1
    with pytest.raises(PlanError, match="changed since the plan was made"):
        plan.model.fresh()


def test_explain_says_what_is_done() -> None:
    text = " ".join(plan_for(people=100, rate=QUARTER, steps=5, average=0.9).explain())
    for part in ("5 steps", "norm 1", "exact Gaussian noise", "divide by 25", "SGD", "running average"):
        assert part in text
    assert "float-grade" in " ".join(plan_for(noise="fast").explain())


def test_a_quote_costs_nothing_and_knows_the_price() -> None:
    asks = curator()
    plan = plan_for(data=asks.private, rate=QUARTER)
    quote = asks.quote(plan)
    assert quote.affordable and plan.hash == quote.plan.hash
    assert shape(8).table().rows == 8 and times is not None
