"""Pipelines gone wrong in the usual ways, each with what a replay must find in it.

Their mechanisms are sound; the glue around them is not. Most are bugs that libraries had: arXiv 2602.17454, and the
issues of opacus, tensorflow-privacy, diffprivlib, smartnoise, synthcity and others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sfumato import bounds, events
from sfumato.accounting.filters import Budget
from sfumato.audit.replays.recording import (
    EXCEPTION,
    LESS_NOISE,
    MOVES,
    NUMBER,
    ORDER,
    OUTSIDE,
    OVERSPENT,
    PUBLIC,
    RESULT,
    SHAPE,
    TWICE,
    UNUSED,
)
from sfumato.combine import reserve
from sfumato.laws import RoundedLaplace
from sfumato.mechanisms import Laplace, SparseVector
from sfumato.noise import Noise, SecureBits
from sfumato.schema import Schema, category, key, real
from sfumato.units import Unit

WARDS = ("east", "north", "west")
ROW, USER = Unit(), Unit("user:who")
VISITS = Schema.of(age=real(0, 100), ward=category(WARDS))
OWNED = Schema.of(who=key(), age=real(0, 100), unit="who")
_STEP = 2.0**-20
_CLIP = 100.0


@dataclass(frozen=True)
class Planted:
    """A pipeline with a bug. `kind` is what the replay must call it; `more` goes to the replay as well."""

    name: str
    pipeline: Callable[..., Any]
    kind: str
    more: Mapping[str, Any] = field(default_factory=lambda: {"schema": VISITS, "unit": ROW})


PLANTED: list[Planted] = []


def _plant(name: str, kind: str, **more: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def keep(pipeline: Callable[..., Any]) -> Callable[..., Any]:
        PLANTED.append(Planted(name, pipeline, kind, {"schema": VISITS, "unit": ROW, **more}))
        return pipeline

    return keep


def blurred(scale: float) -> Callable[[Any], Any]:
    """A function that adds Laplace noise, as a program of one's own would have it."""

    def add(value: Any) -> Any:
        drawn = Noise(SecureBits()).draw(RoundedLaplace(scale / _STEP), int(np.size(value)))
        noisy = np.asarray(value, dtype=np.float64) + _STEP * drawn.reshape(np.shape(value))
        return float(noisy) if np.ndim(value) == 0 else noisy

    return add


def _sum(recorder: Any, name: str, value: Any, sensitivity: float = _CLIP, epsilon: float = 1.0, **public: Any) -> Any:
    """A sum, released by a mechanism that is sound."""
    event, scale = events.Laplace(epsilon=epsilon), sensitivity / epsilon
    return recorder.mechanism(
        name, value, sensitivity=sensitivity, event=event, scale=scale, noise=blurred(scale), **public
    )


def _ages(data: Any) -> Any:
    """Every age within the bounds; NULL counts as 0."""
    return np.clip(np.nan_to_num(data["age"], nan=0.0), 0, _CLIP)


def _count(epsilon: float = 1) -> Laplace:
    return Laplace(query=bounds.count(ROW), epsilon=epsilon)


# What the data itself decides


@_plant("bounds from the data", PUBLIC)
def bounds_from_the_data(curator: Any, data: Any) -> Any:
    """diffprivlib, dpmm, dpart: minimum and maximum are read off the rows."""
    top = float(np.nan_to_num(_ages(data)).max(initial=1.0)) or 1.0
    return curator.release(Laplace(query=bounds.clipped_sum("age", 0, top, ROW), epsilon=1)).value


@_plant("categories from the data", PUBLIC)
def categories_from_the_data(curator: Any, data: Any) -> Any:
    """reprosyn: the domain is whatever occurs."""
    wards = tuple(sorted({str(ward) for ward in data["ward"] if ward is not None})) or ("none",)
    return curator.release(Laplace(query=bounds.histogram("ward", wards, ROW), epsilon=1)).value


@_plant("clipping at the data's own percentile", PUBLIC)
def percentile_clipping(data: Any, recorder: Any) -> Any:
    """Clip at the 95th percentile, and call that the sensitivity."""
    ages = _ages(data)
    clip = float(np.percentile(ages, 95)) if ages.size else 1.0
    return _sum(recorder, "sum", np.minimum(ages, clip).sum(), max(clip, 1e-3))


@_plant("a note that tells the number of rows", PUBLIC)
def telling_note(curator: Any, data: Any) -> Any:
    """What is written into the ledger is public."""
    return curator.release(_count(), note=f"{len(data['age'])} rows").value


@_plant("an expected batch of int(n * rate)", PUBLIC)
def batch_from_the_size(data: Any, recorder: Any) -> Any:
    """opacus: gradients are divided by int(len(data) * rate), which is told and used as if it were public."""
    expected = max(1, int(len(data["age"]) * 0.1))
    return _sum(recorder, "gradient", _ages(data).sum() / expected, _CLIP / expected, batch=expected)


@_plant("only the groups that are there", NUMBER)
def present_groups(curator: Any, data: Any) -> Any:
    """A loop over the wards that occur."""
    wards = sorted({ward for ward in data["ward"] if ward in WARDS})
    queries = {ward: bounds.count_where(ROW, {"ward": [ward]}) for ward in wards}
    return [curator.release(Laplace(query=query, epsilon=1)).value for query in queries.values()]


@_plant("the largest group first", ORDER)
def largest_first(data: Any, recorder: Any) -> Any:
    """Releases are made in the order of the true counts."""
    counts = {ward: int((data["ward"] == ward).sum()) for ward in WARDS}
    for ward in sorted(WARDS, key=lambda name: -counts[name]):
        _sum(recorder, ward, counts[ward], 1)


@_plant("a histogram as long as the data has groups", SHAPE)
def ragged_histogram(data: Any, recorder: Any) -> Any:
    """One release whose length is the number of wards that occur."""
    wards = [ward for ward in WARDS if (data["ward"] == ward).any()]
    return _sum(recorder, "histogram", np.array([float((data["ward"] == ward).sum()) for ward in wards]), 1)


@_plant("an empty batch is skipped", NUMBER)
def skipped_batch(data: Any, recorder: Any) -> Any:
    """opacus: a step whose batch is empty does not happen, so that it did tells that somebody came."""
    batches = [_ages(data)[start::3] for start in range(3)]
    return [_sum(recorder, "step", batch.sum()) for batch in batches if batch.size]


@_plant("an empty batch raises", EXCEPTION)
def raising_batch(data: Any, recorder: Any) -> Any:
    """The same, with an error."""
    ages = _ages(data)
    if not ages.size:
        raise ValueError("need at least one array to stack")
    return _sum(recorder, "step", ages.sum())


@_plant("stops when the true loss is small", NUMBER)
def stops_on_the_truth(curator: Any, data: Any) -> Any:
    """A loop of one's own, which looks at the data to see whether to go on."""
    answers: list[float] = []
    with curator.supervise(reserve(unit=ROW, budget=Budget(epsilon=3))) as run:
        while len(answers) < 3:
            answers.append(run.release(_count()))
            if abs(answers[-1] - len(run.data)) < 1 or len(run.data) > 15:
                break
    return answers


@_plant("asks again where the true count is high", NUMBER)
def asks_on_the_truth(curator: Any, data: Any) -> Any:
    """A session of the sparse vector, steered by the data."""
    answers = []
    with curator.session(SparseVector(epsilon=1, protects=ROW, threshold=10**6)) as session:
        for ward in WARDS:
            if (data["ward"] == ward).sum() > 2:
                answers.append(session.ask(bounds.count_where(ROW, {"ward": [ward]})))
    return answers


# What comes out beside the mechanisms


@_plant("divided by the true number of rows", RESULT)
def divided_by_the_truth(curator: Any, data: Any) -> Any:
    """A noisy sum over a size that nobody paid for."""
    total = curator.release(Laplace(query=bounds.clipped_sum("age", 0, 100, ROW), epsilon=1)).value
    return total / max(1, len(data["age"]))


@_plant("a true metric in the log", RESULT)
def raw_metric(curator: Any, data: Any) -> Any:
    """The loss that is printed has no noise."""
    answer = curator.release(_count()).value
    print(f"loss {abs(answer - len(data['age'])):.6f}")
    return answer


@_plant("a model that keeps training rows", SHAPE)
def kept_rows(data: Any, recorder: Any) -> Any:
    """CTGAN's sampler, by way of synthcity: what is saved holds the rows it was made from."""
    return {"mean": _sum(recorder, "sum", _ages(data).sum()), "sampler": _ages(data)[:50]}


@_plant("noise of one's own in a trusted loop", OUTSIDE)
def noise_outside(curator: Any) -> Any:
    """The data is open in the block, and noise is added to it that no ledger saw."""
    with curator.supervise(reserve(unit=ROW, budget=Budget(epsilon=1))) as run:
        noisy = blurred(1.0)(len(run.data))
        return run.release(_count()), noisy


# Sensitivities that do not hold


@_plant("a clipped copy that is not used", MOVES)
def unused_copy(data: Any, recorder: Any) -> Any:
    """smartnoise #622: clipped = clip(x), and then sum(x)."""
    ages = np.nan_to_num(data["age"], posinf=1e9, neginf=-1e9)
    clipped = np.clip(ages, 0, _CLIP)
    assert clipped.shape == ages.shape
    return _sum(recorder, "sum", ages.sum())


@_plant("the same, vouched for in a plan", MOVES)
def false_vouching(curator: Any) -> Any:
    """A function of one's own whose declared sensitivity is wished for."""
    reads = {"age": real(0, 100)}
    query = bounds.declared(_squares, ROW, reads=reads, labels=("squares",), l1=100, l2=100, linf=100)
    return curator.release(Laplace(query=query, epsilon=1)).value


def _squares(rows: Any) -> Any:
    return [float(np.square(np.clip(rows["age"].values, 0, 100)).sum())]


@_plant("nan goes through the clipping", MOVES)
def nan_through(data: Any, recorder: Any) -> Any:
    """np.clip(nan) is nan, and one of them makes the sum nan."""
    return _sum(recorder, "sum", np.clip(data["age"], 0, _CLIP).sum())


@_plant("a sensitivity of the lower bound, twice", MOVES)
def lower_twice(data: Any, recorder: Any) -> Any:
    """diffprivlib #104: a product in [1, 100]^2 is given the sensitivity 1 * 1."""
    ages = np.clip(_ages(data), 1, _CLIP)
    return _sum(recorder, "products", np.square(ages).sum(), 1.0)


@_plant("microbatches that are clipped and averaged", MOVES)
def microbatches(data: Any, recorder: Any) -> Any:
    """tensorflow-privacy #620: each chunk is averaged, then clipped; one row more moves all chunks that follow."""
    ages = _ages(data)
    chunks = [ages[start : start + 4].mean() for start in range(0, len(ages), 4)]
    signs = [chunk if place % 2 else -chunk for place, chunk in enumerate(chunks)]
    return _sum(recorder, "gradient", float(np.sum(signs)), _CLIP / 4)


@_plant("users counted by their rows", MOVES, schema=OWNED, unit=USER)
def rows_of_a_user(data: Any, recorder: Any) -> Any:
    """A count of rows with sensitivity 1, where a user may have many."""
    return _sum(recorder, "count", len(data["age"]), 1)


@_plant("every teacher sees every row", MOVES)
def same_partition(data: Any, recorder: Any) -> Any:
    """PATE-GAN: all teachers train on the first partition, so one row moves all votes."""
    old = float(_ages(data).max(initial=0.0)) > 50
    votes = np.array([10.0, 0.0]) if old else np.array([0.0, 10.0])
    return _sum(recorder, "votes", votes, 2)


@_plant("a sensitivity cut to a whole number", LESS_NOISE)
def truncated(data: Any, recorder: Any) -> Any:
    """opendp #314: int(2.5) is 2, and so the noise is too small."""
    value = np.clip(_ages(data), 0, 2.5).sum()
    event = events.Laplace(epsilon=1)
    scale = float(int(2.5))
    return recorder.mechanism("sum", value, sensitivity=2.5, event=event, scale=scale, noise=blurred(scale))


# Books that are wrong


@_plant("two queries on one charge", TWICE)
def double_spend(data: Any, recorder: Any) -> Any:
    """MOSTLY AI: each of two queries takes the whole epsilon."""
    recorder.charge(events.Laplace(epsilon=1))
    return _sum(recorder, "sum", _ages(data).sum()), _sum(recorder, "sum", _ages(data).sum())


@_plant("adaptive clipping that nobody books", OVERSPENT)
def unbooked_quantile(data: Any, recorder: Any) -> Any:
    """opacus 1.6: the count that moves the clip norm is released, and only the gradient is paid."""
    recorder.charge(events.Laplace(epsilon=1))
    share = _sum(recorder, "unclipped", float((_ages(data) < 50).sum()), 1, 0.5)
    clip = 50.0 if share > 3 else 100.0
    return _sum(recorder, "gradient", np.minimum(_ages(data), clip).sum())


@_plant("an epsilon that is divided by the rounds", OVERSPENT, claim=1)
def divided_epsilon(data: Any, recorder: Any) -> Any:
    """epsilon += epsilon / rounds in every round: it adds up to the epsilon of one."""
    return [_sum(recorder, f"round {number}", _ages(data).sum()) for number in range(4)]


@_plant("a plan that costs more than it is sold for", OVERSPENT, claim=Budget(epsilon=1, delta=1e-6))
def sold_too_cheap(curator: Any) -> Any:
    """The report says epsilon = 1; the ledger was charged 1 three times."""
    return [curator.release(Laplace(query=bounds.count_where(ROW, {"ward": [ward]}), epsilon=1)) for ward in WARDS]


@_plant("a charge for nothing", UNUSED)
def paid_for_nothing(data: Any, recorder: Any) -> Any:
    """Harmless, and a waste: more is booked than runs."""
    recorder.charge(events.Laplace(epsilon=1))
    recorder.charge(events.Laplace(epsilon=1))
    return _sum(recorder, "sum", _ages(data).sum())
