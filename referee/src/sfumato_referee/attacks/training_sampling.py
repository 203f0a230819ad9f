"""T1, shuffled batches sold as Poisson samples: Chua et al., "How private are DP-SGD implementations?" (ICML 2024).

The price of a step says that every unit joins by its own coin. A loader that shuffles once an epoch hands out other
batches, whose privacy is far worse: at sigma = 1/2 and 1,000 steps Poisson sampling costs epsilon 3.24, and shuffling
at least 9.99. So the library draws for itself and refuses loaders. The attack looks at many draws: are batch sizes
those of Binomial(n, q), is a unit in two batches in a row as often as q^2 says, is every slot as likely; and do empty
batches occur, add noise like all others, and count as steps?
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from sfumato import events, schema
from sfumato.accounting import approximate
from sfumato.audit import surface
from sfumato.errors import SfumatoError
from sfumato.laws import Integers, Law, RoundedGaussian
from sfumato.learn.sampling import FREE, Fixed, Poisson, Sampling
from sfumato.noise import Noise, SecureBits
from sfumato.plan import Run
from sfumato.private import Private
from sfumato.rows import Rows
from sfumato.schema import Schema
from sfumato.units import Unit

from .verdict import FALSE_ALARM, Verdict

BATCHES = 10_000
_UNITS = 400
_RATE = Fraction(1, 20)
_STEPS, _DELTA = 1_000, Fraction(1, 10**5)
_TAIL = FALSE_ALARM / 1000  # chi-square is itself approximate: far out in its tail it may be wrong by a factor


def library() -> Sampling:
    return Poisson.of(_RATE, _UNITS, Fraction(1, 10**12))


def attack(sampling: Sampling | None = None, *, batches: int = BATCHES) -> Verdict:
    """The library's own sampling, or a planted one."""
    own = sampling is None
    sampler = sampling or library()
    noise = Noise(SecureBits())
    drawn = [sampler.draw(_UNITS, noise) for _ in range(batches)]
    chances = {
        "batch sizes are binomial": _sizes(np.array([np.count_nonzero(slots != FREE) for slots in drawn])),
        "a unit joins twice in a row as often as chance says": _twice(drawn),
        "every slot is as likely": _slots(drawn),
    }
    problems = [f"that {name} has a chance of {chance:.3g}" for name, chance in chances.items() if chance < _TAIL]
    figures = {f"chance that {name}": chance for name, chance in chances.items()}
    for sigma in (Fraction(1, 2), Fraction(1)):
        figures[f"sigma {float(sigma):g}, {_STEPS} steps: Poisson epsilon"] = poisson_price(sigma)
        figures[f"sigma {float(sigma):g}, {_STEPS} steps: shuffling costs at least"] = shuffled_at_least(float(sigma))
    if own:
        problems += _empty() + _fixed(noise)
        problems += [f"{name} is taken as data" for name, made in loaders().items() if not _refused(made)]
    text = (
        f"Batches are no Poisson samples, and were sold as such: {'; '.join(problems)}."
        if problems
        else f"{batches} batches are Poisson samples"
        + ("; empty ones add noise and count; loaders are refused." if own else ".")
    )
    return Verdict("T1", bool(problems), text, figures)


def control() -> Verdict:
    """Batches of a shuffled order, at the price of Poisson sampling."""
    from ..mutants.training import ShuffledSampling

    like = library()
    assert isinstance(like, Poisson)
    return attack(ShuffledSampling(rate=like.rate, population=like.population, room=like.room), batches=1000)


def poisson_price(sigma: Fraction, steps: int = _STEPS, delta: Fraction = _DELTA) -> float:
    """One epoch of so many steps, by our accountant."""
    step = events.Poisson(events.Gaussian(multiplier=sigma), Fraction(1, steps))
    return float(approximate.epsilon(events.Repeat(step, steps), delta))


def shuffled_at_least(sigma: float, steps: int = _STEPS, delta: float = float(_DELTA)) -> float:
    """An epsilon that one epoch of shuffled batches certainly exceeds: everybody's gradient is -1, but one person's is
    1 or nothing; the event is that some batch's noisy sum is above a threshold."""
    above = np.linspace(0, 3 + 8 * sigma, 4001)
    others = (steps - 1) * stats.norm.logcdf(above / sigma)
    there, gone = (-np.expm1(others + stats.norm.logcdf((above - mean) / sigma)) for mean in (2, 1))
    telling = there > delta
    return float(np.log((there[telling] - delta) / gone[telling]).max(initial=0.0))


def _sizes(sizes: NDArray[np.int64]) -> float:
    law = stats.binom(_UNITS, float(_RATE))
    return _fits(np.bincount(sizes, minlength=_UNITS + 1), law.pmf(np.arange(_UNITS + 1)) * len(sizes))


def _fits(seen: NDArray[Any], expected: NDArray[np.float64]) -> float:
    """Chi-square, rare outcomes taken together."""
    rare = expected < 10
    a = np.append(seen[~rare], seen[rare].sum()).astype(float)
    b = np.append(expected[~rare], expected[rare].sum())
    a, b = (a, b) if b[-1] > 1 else (a[:-1], b[:-1])
    return float(stats.chi2.sf(((a - b) ** 2 / b).sum(), len(b) - 1))


def _twice(drawn: list[Integers]) -> float:
    """Over pairs of batches that do not overlap, so that all of them are independent."""
    both = sum(
        len(np.intersect1d(one[one != FREE], two[two != FREE]))
        for one, two in zip(drawn[::2], drawn[1::2], strict=False)
    )
    return float(stats.binomtest(both, _UNITS * (len(drawn) // 2), float(_RATE) ** 2).pvalue)


def _slots(drawn: list[Integers]) -> float:
    """Where the first of those that were drawn sits: uniform, whoever else was."""
    places = [int(np.flatnonzero(slots == slots[slots != FREE].min())[0]) for slots in drawn if (slots != FREE).any()]
    room = len(drawn[0])
    return _fits(np.bincount(places, minlength=room), np.full(room, len(places) / room))


class CountingNoise(Noise):
    """Counts the vectors of noise that are drawn, and how many batches nobody joined."""

    def __init__(self) -> None:
        super().__init__(SecureBits())
        self.vectors: list[Integers] = []
        self.empty = 0

    def draw(self, law: Law, count: int) -> Integers:
        drawn = super().draw(law, count)
        if isinstance(law, RoundedGaussian):
            self.vectors.append(drawn)
        return drawn

    def coins(self, chance: Any, count: int) -> Any:
        tosses = super().coins(chance, count)
        self.empty += not tosses.any()
        return tosses


def _empty() -> list[str]:
    """Three people, and forty batches that most often nobody joins."""
    from .training import Line, times

    private = Private(
        "three", {"x": np.ones((3, 4), dtype=np.float32), "y": [1.0] * 3}, unit=Unit(),
        schema=Schema.of(x=schema.tensor((4,), -1, 1), y=schema.real(-1, 1), rows=3),
    )  # fmt: skip
    from sfumato import learn

    fields: dict[str, Any] = {"rate": Fraction(1, 20), "steps": 40, "clip": 1, "multiplier": 1, "delta": 1e-6}
    plan = learn.sgd(Line(4), times, data=private, inputs="x", target="y", **fields)
    rows = Rows.read(private.schema.table(), {"x": np.ones((3, 4), dtype=np.float32), "y": [1.0] * 3}, Unit())
    noise = CountingNoise()
    raw = surface.run(plan, rows, Run(noise, steps=plan.steps))
    if not noise.empty:  # its chance is below 10^-30
        return ["no batch is ever empty"]
    silent = sum(not vector.any() for vector in noise.vectors)
    if len(noise.vectors) != 40 or silent or raw["steps"] != 40:
        return ["a batch that nobody joined is skipped, or gets no noise"]
    return []


def _fixed(noise: Noise) -> list[str]:
    """Batches of a fixed size hold so many different units, and over many batches each of them as often."""
    drawn = [Fixed(size=20, population=40).draw(40, noise) for _ in range(400)]
    if any(len(np.unique(slots)) != 20 or len(slots) != 20 for slots in drawn):
        return ["a batch of a fixed size holds somebody twice, or too few"]
    joined = np.bincount(np.concatenate(drawn), minlength=40)
    # A unit joins each batch by a coin of its own chance, 1/2, anew each time.
    least = min(float(stats.binomtest(int(count), len(drawn), 0.5).pvalue) for count in joined)
    return ["somebody is in batches of a fixed size too often"] if least < _TAIL else []


def loaders() -> dict[str, Callable[[], Any]]:
    """What others batch with."""
    import torch
    from torch.utils import data

    whole = data.TensorDataset(torch.ones(6, 4), torch.ones(6))
    weighted = data.WeightedRandomSampler([1.0] * 6, 6)
    return {
        "a shuffled loader": lambda: data.DataLoader(whole, batch_size=2, shuffle=True),
        "a loader in order": lambda: data.DataLoader(whole, batch_size=2),
        "a loader with weights": lambda: data.DataLoader(whole, batch_size=2, sampler=weighted),
        "an iterator of batches": lambda: iter(data.DataLoader(whole, batch_size=2)),
        "a sampler": lambda: data.RandomSampler(whole),
    }


def _refused(load: Callable[[], Any]) -> bool:
    try:
        shape = Schema.of(x=schema.tensor((4,), -1, 1), y=schema.real(-1, 1), rows=6)
        Private("six", load(), unit=Unit(), schema=shape)
    except SfumatoError:
        return True
    return False
