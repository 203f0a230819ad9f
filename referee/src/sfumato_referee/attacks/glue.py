"""G2, glue code: a pipeline recorded, and replayed on its neighbours.

Most violations that audits of libraries found were not in mechanisms but in what stands around them (arXiv 2602.17454).
The pipelines here are what a user of this package writes: releases one after the other, bounds chosen privately, SQL, a
reserve, a loop of one's own, a session, a training. None may show more than its mechanisms give out. The planted ones
must all be caught, each for what it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import numpy as np

from sfumato import bounds, events, schema
from sfumato.accounting.filters import Budget
from sfumato.audit.replays.recording import KINDS
from sfumato.audit.replays.replayed import Replayed
from sfumato.audit.replays.replaying import replay
from sfumato.combine import partition, reserve, sequence
from sfumato.mechanisms import ContinualCount, Gaussian, Laplace, PermuteAndFlip, PrivateBounds, SparseVector
from sfumato.schema import Schema
from sfumato.units import Unit

from ..mutants.pipelines import PLANTED, ROW, VISITS, WARDS, Planted, blurred
from .verdict import Verdict

_USER = Unit("user:id")
_ORDERS = Schema.of(
    id=schema.key(), ward=schema.category(WARDS), days=schema.real(0, 9), day=schema.whole(0, 6), unit="id"
)
_POINTS = Schema.of(x=schema.real(-1, 1), y=schema.real(-3, 3), rows=60)
_WIDE = Budget(epsilon=9, delta=1e-3)


@dataclass(frozen=True)
class Honest:
    """A pipeline that tells nothing more than it pays for. `needs` is the library without which it cannot run."""

    name: str
    pipeline: Callable[..., Any]
    more: Mapping[str, Any] = field(default_factory=dict)
    needs: str = ""


def summary(curator: Any) -> Any:
    """A count, a mean and a histogram, as in the first pages."""
    rows = curator.release(Laplace(query=bounds.count(_USER, per_unit=2), epsilon=1))
    mean = curator.release(Laplace(query=bounds.mean("days", 0, 9, _USER, per_unit=2), epsilon=1))
    wards = curator.release(Gaussian(query=bounds.histogram("ward", WARDS, _USER, per_unit=2), epsilon=1, delta=1e-6))
    return {"rows": rows, "mean": mean.value, "wards": wards.value, "bars": wards.error()}


def chosen_bounds(curator: Any) -> Any:
    """Bounds from a private release, then a sum within them; what comes next depends on the noisy answer."""
    powers = bounds.Powers(column="age", lowest=0, highest=7, unit=ROW)
    ends = curator.release(PrivateBounds(query=powers, epsilon=1, failure=0.01)).value
    low, high = ends["lower"], ends["upper"]
    total = curator.release(Laplace(query=bounds.clipped_sum("age", low, high, ROW), epsilon=1)).value
    if total > 500:
        return total, curator.release(PermuteAndFlip(query=bounds.votes("ward", WARDS, ROW), epsilon=1)).value
    return total, None


def paid_list(curator: Any) -> Any:
    """A list that is paid as one and released part by part; then one part again, which is free."""
    count = Laplace(query=bounds.count(ROW), epsilon=0.5)
    split = partition("ward", WARDS[:2], count)
    curator.prepay(sequence(rows=count, wards=split), note="monthly")
    first = curator.release(count).value
    return first, curator.release(split).value, curator.release(count).value - first


def _ask_until_enough(run: Any) -> Any:
    total = 0.0
    for ward in ("east", "north", "west"):
        query = bounds.count_where(Unit(), {"ward": [ward]})
        total += run.release(Laplace(query=query, epsilon=0.3))
        if total > 20:
            break
    return total


def adaptive_reserve(curator: Any) -> Any:
    """Children that are chosen after earlier answers, inside one price."""
    reads = {"ward": schema.category(WARDS)}
    return curator.release(reserve(_ask_until_enough, unit=ROW, budget=Budget(epsilon=1), reads=reads)).value


def own_loop(curator: Any) -> Any:
    """A loop of the user's own, which stops by what it was told."""
    answers: list[float] = []
    with curator.supervise(reserve(unit=ROW, budget=Budget(epsilon=2))) as run:
        while len(answers) < 4 and (not answers or answers[-1] > 10):
            query = bounds.clipped_sum("age", 0, 100 if not answers else min(100, max(1, answers[-1])), ROW)
            answers.append(round(run.release(Laplace(query=query, epsilon=0.5)), 1))
    return answers


def conversations(curator: Any) -> Any:
    """A sparse vector whose next question depends on the last answer, and a count that goes on."""
    answers: list[Any] = []
    with curator.session(SparseVector(epsilon=1, protects=_USER, threshold=3, count=2)) as session:
        for number in range(6):
            if session.over:
                break
            ward = WARDS[(number + len(answers)) % 3]
            answers.append(session.ask(bounds.count_where(_USER, {"ward": [ward]})))
    plan = ContinualCount(query=bounds.increments("day", 7, _USER), epsilon=1, delta=1e-6)
    with curator.session(plan) as session:
        return answers, [session.ask() for _ in range(3)]


def dashboard(curator: Any) -> Any:
    """SQL, and a second statement that depends on the first answer."""
    from sfumato.query import Limits, sql

    how: dict[str, Any] = {"unit": _USER, "epsilon": 1, "delta": 1e-6, "limits": Limits(rows=2)}
    text = "SELECT ward, COUNT(*) AS n, SUM(days) AS total FROM data GROUP BY ward"
    schema = curator.private.schema
    first = curator.release(sql(text, schema, **how)).to_csv()
    most = max(first.splitlines()[1:], key=lambda line: float(line.split(",")[1])).split(",")[0]
    again = f"SELECT AVG(days) AS mean FROM data WHERE ward = '{most}'"
    return first, curator.release(sql(again, schema, **how)).to_csv()


def training(curator: Any) -> Any:
    """A model, trained by one release."""
    from sfumato.learn.samples import line

    return dict(curator.release(_sgd(curator.private, line())).value.state)


def training_loop(curator: Any) -> Any:
    """The same in a loop of the user's own, with an optimiser of their own."""
    import torch

    from sfumato.learn.samples import line

    model = line()
    optimiser = torch.optim.Adam(model.parameters(), lr=0.1)
    with curator.supervise(_sgd(curator.private, model)) as run:
        for batch in run.batches():
            for x, y in batch:
                batch.backward(_off(model(x), y))
            optimiser.step()
    return {name: each.detach().numpy().copy() for name, each in model.named_parameters()}


def _off(output: Any, target: Any) -> Any:
    return (output[:, 0] - target) ** 2


def _sgd(data: Any, model: Any) -> Any:
    from sfumato.learn import sgd

    more: dict[str, Any] = {"clip": 1, "multiplier": 1, "delta": 1e-3, "micro": 76, "rate": 0.5, "steps": 2}
    return sgd(model, _off, data=data, inputs="x", target="y", **more)


def own_noise(data: Any, recorder: Any) -> Any:
    """Glue with noise of its own, and a budget that is booked."""
    ages = np.clip(np.nan_to_num(data["age"], nan=0.0), 0, 100)
    recorder.charge(events.Repeat(events.Laplace(epsilon=1), 2))
    event, scale = events.Laplace(epsilon=1), 1.0
    rows = recorder.mechanism("rows", len(ages), sensitivity=1, event=event, scale=scale, noise=blurred(scale))
    clip = 50.0 if rows < 20 else 100.0
    value = np.minimum(ages, clip).sum()
    total = recorder.mechanism("sum", value, sensitivity=clip, event=event, scale=clip, noise=blurred(clip), clip=clip)
    return total / max(rows, 1.0)


_ROWS, _OWNED = {"schema": VISITS, "unit": ROW}, {"schema": _ORDERS, "unit": _USER}
_TRAINED = {"schema": _POINTS, "unit": ROW, "budget": _WIDE, "most": 8}
HONEST: tuple[Honest, ...] = (
    Honest("count, mean and histogram", summary, {**_OWNED, "claim": Budget(epsilon=3, delta=1e-6)}),
    Honest("bounds, then a sum", chosen_bounds, {**_ROWS, "claim": 3}),
    Honest("a list that is prepaid", paid_list, {**_ROWS, "claim": 1}),
    Honest("a reserve", adaptive_reserve, {**_ROWS, "claim": 1}),
    Honest("a loop of one's own", own_loop, {**_ROWS, "claim": 2}),
    Honest("sessions", conversations, {**_OWNED, "claim": Budget(epsilon=2, delta=1e-6)}),
    Honest("SQL", dashboard, {**_OWNED, "most": 12}, "duckdb"),
    Honest("a training", training, _TRAINED, "torch"),
    Honest("a training loop of one's own", training_loop, _TRAINED, "torch"),
    Honest("noise of one's own", own_noise, {**_ROWS, "claim": 2}),
)


def attack(pipelines: Sequence[Honest] = HONEST, *, most: int = 40) -> Verdict:
    """Replay every pipeline; one that shows anything breaks it."""
    figures: dict[str, float] = {}
    problems = []
    for honest in pipelines:
        if honest.needs and find_spec(honest.needs) is None:
            continue
        replayed = replay(honest.pipeline, **{**honest.more, "most": min(most, honest.more.get("most", most))})
        figures[f"{honest.name}: calls"] = len(replayed.calls)
        figures[f"{honest.name}: findings"] = len(replayed.findings)
        if replayed.findings:
            problems.append(f"{honest.name}: {replayed.findings[0]}")
        elif replayed.verdict != "nothing found":
            problems.append(f"{honest.name}: {replayed.verdict}")
    text = problems[0] if problems else "No pipeline tells more than its mechanisms give out."
    return Verdict("G2", bool(problems), text, figures)


def control(pipelines: Sequence[Planted] | None = None) -> Verdict:
    """The replay of the planted bugs: broken only if every one of them is found, for what it is."""
    tried = PLANTED if pipelines is None else pipelines
    figures: dict[str, float] = {}
    missed = []
    for planted in tried:
        replayed: Replayed = replay(planted.pipeline, **planted.more)
        figures[f"{planted.name}: findings"] = len(replayed.findings)
        if planted.kind not in replayed.kinds:
            missed.append(planted.name)
    named = len({each.kind for each in tried})
    summary = f"All {len(tried)} planted pipelines are found, of {named} of {len(KINDS)} kinds."
    return Verdict("G2", not missed, f"Not found: {', '.join(missed)}." if missed else summary, figures)
