"""What a release costs, as a value: events.

An event says which mechanism ran, with which public parameters and between which neighbours. It knows no epsilon of
its own choosing: accountants price events, and a tighter accountant lowers a price without touching data. Ledgers store
events. The meaning of a name and version never changes; a new meaning is a new version.

>>> from sfumato import epsilon, events
>>> tenfold = events.Repeat(events.Gaussian(multiplier=4), 10)
>>> round(float(epsilon(tenfold, delta=1e-6)), 3)
3.747
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from . import checks
from .checks import Exact
from .errors import ArgumentError
from .record import record
from .units import RELATIONS, Relation


class Event(ABC):
    """One priced happening. Frozen, valid from birth, and JSON by name and version."""

    @property
    @abstractmethod
    def relation(self) -> Relation:
        """The neighbours that the price compares."""


@dataclass(frozen=True, kw_only=True)
class _Leaf(Event):
    relation: Relation = "add-remove"

    def __post_init__(self) -> None:
        checks.one_of(self.relation, "relation", RELATIONS)

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)


@dataclass(frozen=True, kw_only=True)
class PureEvent(_Leaf):
    """An event that is epsilon-differentially private, whatever else is known of it."""

    epsilon: Exact

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("epsilon", checks.epsilon(self.epsilon, warn=False))


@record("laplace/1", kept=True)
@dataclass(frozen=True, kw_only=True)
class Laplace(PureEvent):
    """Independent continuous Laplace noise of scale (L1 sensitivity)/epsilon on every coordinate, or post-processing
    of that (such as rounding to a grid)."""


@record("discrete-laplace/1", kept=True)
@dataclass(frozen=True, kw_only=True)
class DiscreteLaplace(PureEvent):
    """Independent integer noise, P(k) proportional to exp(-|k| epsilon / shift), on whole coordinates of which one unit
    moves at most `shift` in L1."""

    shift: int

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("shift", checks.whole(self.shift, "shift"))


@record("gaussian/1", kept=True)
@dataclass(frozen=True, kw_only=True)
class Gaussian(_Leaf):
    """Independent continuous Gaussian noise of standard deviation (L2 sensitivity) * multiplier on every coordinate, or
    post-processing of that."""

    multiplier: Exact

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("multiplier", checks.positive(self.multiplier, "multiplier"))


@record("discrete-gaussian/1", kept=True)
@dataclass(frozen=True, kw_only=True)
class DiscreteGaussian(_Leaf):
    """Independent integer noise, P(k) proportional to exp(-k^2 / (2 variance)), on `coordinates` whole numbers that one
    unit moves by a vector of squared length at most `shift_squared`."""

    variance: Exact
    shift_squared: int = 1
    coordinates: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("variance", checks.positive(self.variance, "variance"))
        self._set("shift_squared", checks.whole(self.shift_squared, "shift_squared"))
        self._set("coordinates", checks.whole(self.coordinates, "coordinates"))


@record("gaussian-mixture/1", kept=True)
@dataclass(frozen=True, kw_only=True)
class GaussianMixture(_Leaf):
    """Gaussian noise of standard deviation 1 over a unit whose influence is itself drawn at random: `shifts[i]` with
    probability `weights[i]`. (Poisson sampling of a Gaussian is the mixture of 0 and 1/multiplier.)"""

    shifts: tuple[Exact, ...]
    weights: tuple[Exact, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.relation == "replace":
            raise checks.refuse("relation", self.relation, "add-remove or zero-out: who is replaced is not sampled")
        for name in ("shifts", "weights"):
            numbers = getattr(self, name)
            if not isinstance(numbers, tuple | list) or not numbers:
                raise checks.refuse(name, numbers, "a list of numbers")
        shifts = tuple(checks.bound(each, "shifts") for each in self.shifts)
        weights = tuple(checks.positive(each, "weights") for each in self.weights)
        if min(shifts) < 0 or len(set(shifts)) < len(shifts) or not any(shifts):
            raise checks.refuse("shifts", self.shifts, "different shifts, none below 0 and not all 0")
        if len(weights) != len(shifts) or sum(weights) != 1:
            raise checks.refuse("weights", self.weights, "a probability for each shift, together exactly 1")
        order = sorted(range(len(shifts)), key=shifts.__getitem__)
        self._set("shifts", tuple(shifts[i] for i in order))
        self._set("weights", tuple(weights[i] for i in order))


@record("randomized-response/1", kept=True)
@dataclass(frozen=True, kw_only=True)
class RandomizedResponse(PureEvent):
    """One answer out of `categories`, kept with probability e^epsilon / (e^epsilon + categories - 1), otherwise
    exchanged for one of the others, uniformly."""

    categories: int

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("categories", checks.whole(self.categories, "categories", least=2))


@record("exponential/1", kept=True)
@dataclass(frozen=True, kw_only=True)
class Exponential(PureEvent):
    """A selection with P(i) proportional to exp(score_i): epsilon-bounded-range, so any two log-ratios of probabilities
    between neighbours differ by at most epsilon."""


@record("permute-and-flip/1", kept=True)
@dataclass(frozen=True, kw_only=True)
class PermuteAndFlip(PureEvent):
    """A selection by permute-and-flip: epsilon-differentially private. (It is *not* epsilon-bounded-range.)"""


@record("pure/1", kept=True)
@dataclass(frozen=True, kw_only=True)
class Pure(PureEvent):
    """Anything that is epsilon-differentially private, of which no more is known."""


@record("approximate/1", kept=True)
@dataclass(frozen=True, kw_only=True)
class Approximate(_Leaf):
    """Anything that is (epsilon, delta)-differentially private, of which no more is known. With epsilon = 0: something
    that differs between neighbours with probability delta at most."""

    epsilon: Exact
    delta: Exact

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("epsilon", checks.epsilon(self.epsilon, warn=False, zero=True))
        self._set("delta", checks.delta(self.delta))


@record("zero-concentrated/1", kept=True)
@dataclass(frozen=True, kw_only=True)
class ZeroConcentrated(_Leaf):
    """Anything that is rho-zero-concentrated differentially private, of which no more is known."""

    rho: Exact

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("rho", checks.positive(self.rho, "rho"))


@record("poisson/1", kept=True)
@dataclass(frozen=True)
class Poisson(Event):
    """Every unit joins with probability `rate`, independently; then the event happens on those who joined."""

    event: Event
    rate: Exact

    def __post_init__(self) -> None:
        checks.instance(self.event, Event, "event", "an event")
        if self.event.relation == "replace":
            raise checks.refuse("event", self.event, "an add-remove or zero-out event: who is replaced is not sampled")
        rate = checks.positive(self.rate, "rate")
        if rate > 1:
            raise checks.refuse("rate", self.rate, "a probability above 0, at most 1")
        object.__setattr__(self, "rate", rate)

    @property
    def relation(self) -> Relation:
        return self.event.relation


@record("without-replacement/1", kept=True)
@dataclass(frozen=True)
class WithoutReplacement(Event):
    """A sample of exactly `sample` out of `population` units, drawn uniformly; then the event happens on the sample.

    The neighbours replace one unit: the size of the data is public."""

    event: Event
    sample: int
    population: int

    def __post_init__(self) -> None:
        checks.instance(self.event, Event, "event", "an event")
        if self.event.relation != "replace":
            raise checks.refuse("event", self.event, "an event between data sets of one size: relation 'replace'")
        checks.whole(self.population, "population")
        checks.whole(self.sample, "sample", most=self.population)

    @property
    def relation(self) -> Relation:
        return "replace"


@record("random-allocation/1", kept=True)
@dataclass(frozen=True)
class RandomAllocation(Event):
    """The event happens `steps` times; every unit takes part in exactly `picks` of them, drawn uniformly and anew for
    each unit (one pass over data dealt out at random: balls in bins)."""

    event: Event
    steps: int
    picks: int = 1

    def __post_init__(self) -> None:
        checks.instance(self.event, Event, "event", "an event")
        if self.event.relation == "replace":
            raise checks.refuse("event", self.event, "an add-remove or zero-out event")
        checks.whole(self.steps, "steps")
        checks.whole(self.picks, "picks", most=self.steps)

    @property
    def relation(self) -> Relation:
        return self.event.relation


@record("shuffled/1", kept=True)
@dataclass(frozen=True)
class Shuffled(Event):
    """Each of `users` sends one report through the local, epsilon-DP event; only the shuffled reports are seen."""

    event: Event
    users: int

    def __post_init__(self) -> None:
        if not isinstance(self.event, PureEvent) or self.event.relation != "replace":
            raise checks.refuse("event", self.event, "a local event with a pure epsilon and relation 'replace'")
        checks.whole(self.users, "users")

    @property
    def relation(self) -> Relation:
        return "replace"


@record("best-of/1", kept=True)
@dataclass(frozen=True)
class BestOf(Event):
    """The event is tried a random number of times and the best of the answers is released, the others never.

    The number of tries is drawn from the truncated negative binomial law with `shape` > -1 and stopping probability
    `stop` (shape 1: geometric, shape 0: logarithmic), or, with shape None, from a Poisson law of mean `mean`."""

    event: Event
    shape: Exact = None
    stop: Exact = None
    mean: Exact = None

    def __post_init__(self) -> None:
        checks.instance(self.event, Event, "event", "an event")
        if (self.mean is None) == (self.shape is None) or (self.shape is None) != (self.stop is None):
            raise ArgumentError("tries are drawn by shape and stop (negative binomial) or by mean (Poisson): give one.")
        if self.mean is not None:
            object.__setattr__(self, "mean", checks.positive(self.mean, "mean"))
            return
        shape = checks.bound(self.shape, "shape")
        if shape <= -1:
            raise checks.refuse("shape", self.shape, "a number above -1")
        stop = checks.positive(self.stop, "stop")
        if stop >= 1:
            raise checks.refuse("stop", self.stop, "a probability above 0 and below 1")
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "stop", stop)

    @property
    def relation(self) -> Relation:
        return self.event.relation


def _events(listed: Any, name: str) -> tuple[Event, ...]:
    if isinstance(listed, Event) or not isinstance(listed, tuple | list) or not listed:
        raise checks.refuse(name, listed, "a list of at least one event")
    for event in listed:
        if not isinstance(event, Event):
            raise checks.refuse(name, event, "events only")
    if len({event.relation for event in listed}) > 1:
        raise ArgumentError(f"{name} mix neighbour relations: events add up only between the same neighbours.")
    return tuple(listed)


@record("sequence/1", kept=True)
@dataclass(frozen=True)
class Sequence(Event):
    """All of these on the same data, fixed in advance."""

    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "events", _events(self.events, "events"))

    @property
    def relation(self) -> Relation:
        return self.events[0].relation


@record("bundle/1", kept=True)
@dataclass(frozen=True)
class Bundle(Sequence):
    """One mechanism that is no worse than all of these together. Its parts are no mechanisms of their own: what each of
    them is may depend on which neighbours are compared, so what a group costs each part says nothing."""


@record("repeat/1", kept=True)
@dataclass(frozen=True)
class Repeat(Event):
    """The same event, so many times, on the same data."""

    event: Event
    times: int

    def __post_init__(self) -> None:
        _events((self.event,), "event")
        object.__setattr__(self, "times", checks.whole(self.times, "times"))

    @property
    def relation(self) -> Relation:
        return self.event.relation


@record("partition/1", kept=True)
@dataclass(frozen=True)
class Partition(Event):
    """Each event on its own part of the data, split by a public column that is constant per unit.

    A unit lies in one part: adding, removing or zeroing it touches one event, replacing it at most two.
    """

    column: str
    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        checks.label(self.column, "column")
        object.__setattr__(self, "events", _events(self.events, "events"))

    @property
    def relation(self) -> Relation:
        return self.events[0].relation

    @property
    def touched(self) -> int:
        """How many parts one unit's change can reach."""
        return 2 if self.relation == "replace" else 1
