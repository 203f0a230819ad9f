"""How much privacy is lost at least: from samples, with proof, or exactly where the law of the output is known.

A guarantee (epsilon, delta) says P(E) <= e^epsilon P'(E) + delta for every event E and both directions. An audit looks
for an event that breaks it. Events are chosen on one half of the samples and judged on the other, by Clopper-Pearson
bounds, so that whatever the choice was, an honest mechanism is accused with probability at most `false_alarm`. As the
bounds on P(E) and P'(E) hold together, they are compared with the whole curve of claims, not with one point of it.

Black-box audits miss small probabilities. Where the law is in the plan (noise on a grid, a selection among few), the
exact loss is computed instead, and the samples only have to show that what runs follows that law.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from .. import events
from ..accounting import gdp
from ..laws import Law, RoundedGaussian
from ..mechanisms.additive import Additive
from ..mechanisms.selection import Selection
from ..noise.race import Kind
from ..plan import Plan
from ..rows import Rows
from .neighbours import Pair

Floats = NDArray[np.float64]
Claims = Mapping[float, float]
"""delta -> epsilon: what is claimed, at as many points as one likes."""

_FALSE_ALARM = 1e-6
_EVENTS = 4  # judged per direction
_CUTS = 40  # thresholds tried per projection
_ATOMS = 12  # single values tried per projection
_BINS = 24
_COORDINATES = 16  # looked at one by one
_FEATURES = 64  # looked at together
_CANDIDATES = 128  # of a selection whose law is computed
_ROUNDING = 1e-9
_LARGEST_EPSILON = 600.0  # beyond, float64 cannot tell e^-epsilon from 0: nothing is shown


# ------------------------------------------------------------------------------------------------ from samples


def at_least(hits: Any, trials: int, alpha: float) -> Floats:
    """Clopper-Pearson: the probability is below this with chance at most alpha."""
    hits = np.asarray(hits, dtype=np.float64)
    bound = special.betaincinv(np.maximum(hits, 1), trials - np.maximum(hits, 1) + 1, alpha)
    return np.asarray(np.where(hits == 0, 0.0, bound))


def at_most(hits: Any, trials: int, alpha: float) -> Floats:
    """Clopper-Pearson: the probability is above this with chance at most alpha."""
    return np.asarray(1.0 - at_least(trials - np.asarray(hits, dtype=np.float64), trials, alpha))


def epsilon_lower_bound(
    hits: int, trials: int, other_hits: int, other_trials: int, *, delta: float = 0.0, confidence: float = 0.95
) -> float:
    """The least epsilon that fits an event seen `hits` times on one table and `other_hits` times on its neighbour; 0
    where that shows nothing. The true epsilon is below it with chance at most 1 - confidence."""
    alpha = (1 - confidence) / 2
    return float(_shown(at_least(hits, trials, alpha), at_most(other_hits, other_trials, alpha), delta))


@dataclass(frozen=True)
class Finding:
    """The most telling event: how much privacy it shows lost at least, beside what was claimed at the same delta."""

    epsilon: float
    claim: float
    delta: float
    event: str

    @property
    def broken(self) -> bool:
        return self.epsilon > self.claim

    @property
    def lead(self) -> float:
        """By how much the claim is broken; below zero, how near the event comes to breaking it."""
        return float(_lead(np.asarray(self.epsilon), self.claim))

    def __str__(self) -> str:
        verdict = "above" if self.broken else "within"
        return f"epsilon >= {self.epsilon:.3f}, {verdict} {self.claim:.3f} at delta = {self.delta:.3g} ({self.event})"


def audit(one: Any, other: Any, *, claims: Claims, false_alarm: float = _FALSE_ALARM) -> Finding:
    """The most telling event between two samples of the output (numbers, vectors, or any values) on neighbours.

    An honest mechanism is found broken with probability at most `false_alarm`.
    """
    first, second = features(one, other)
    half = min(len(first), len(second)) // 2
    if half < 1:
        raise ValueError("an audit needs at least two samples of each kind")
    views = list(_views(first[:half], second[:half]))
    alpha = false_alarm / (4 * _EVENTS)  # two directions, and two bounds for each event
    findings = []
    for way, (here, there) in (("->", (first, second)), ("<-", (second, first))):
        for view, event in _chosen(views, here[:half], there[:half], claims, alpha):
            hits, others = (int(event.happens(view.of(x[half:])).sum()) for x in (here, there))
            low = at_least(hits, len(here) - half, alpha)
            high = at_most(others, len(there) - half, alpha)
            findings.append(_finding(float(low), float(high), claims, f"{view.name} {event} {way}"))
    return max(findings, key=lambda finding: finding.lead)


def _finding(low: float, high: float, claims: Claims, event: str) -> Finding:
    found = (Finding(float(_shown(low, high, delta)), claims[delta], delta, event) for delta in claims)
    return max(found, key=lambda finding: finding.lead)


def _shown(low: Any, high: Any, delta: float) -> Floats:
    """The epsilon that P(E) >= low and P'(E) <= high prove at delta."""
    return np.asarray(np.maximum(np.log(np.maximum(low - delta, 1e-300) / np.maximum(high, 1e-300)), 0.0))


def _lead(shown: Floats, claim: float) -> Floats:
    """By how much the claim is broken; below zero, how near the event comes to breaking it."""
    return np.asarray(np.where(shown > claim, shown - claim, shown / max(claim, 1e-12) - 1))


@dataclass(frozen=True)
class _Event:
    """A threshold or a single value of one projection."""

    sign: int  # 1: at or above the value, -1: at or below it, 0: the value itself
    value: float

    def happens(self, numbers: Floats) -> NDArray[np.bool_]:
        if self.sign == 0:
            return np.asarray(numbers == self.value)
        return np.asarray(self.sign * numbers >= self.sign * self.value)

    def __str__(self) -> str:
        return f"{ {1: '>=', -1: '<=', 0: '=='}[self.sign] } {self.value:.6g}"


def _chosen(
    views: list[_View], here: Floats, there: Floats, claims: Claims, alpha: float
) -> list[tuple[_View, _Event]]:
    """The events that look worst on this half, of all thresholds and values of all projections."""
    scored: list[tuple[float, _View, _Event]] = []
    for view in views:
        mine, theirs = view.of(here), view.of(there)
        events = list(_events_of(mine, theirs))
        hits = np.array([event.happens(mine).sum() for event in events])
        others = np.array([event.happens(theirs).sum() for event in events])
        low, high = at_least(hits, len(mine), alpha), at_most(others, len(theirs), alpha)
        lead = np.max([_lead(_shown(low, high, delta), claims[delta]) for delta in claims], axis=0)
        scored += [(float(lead[i]), view, events[i]) for i in np.argsort(-lead)[:_EVENTS]]
    scored.sort(key=lambda row: -row[0])
    return [(view, event) for _, view, event in scored[:_EVENTS]]


def _events_of(here: Floats, there: Floats) -> Iterator[_Event]:
    both = np.concatenate([here, there])
    values, counts = np.unique(both, return_counts=True)
    for cut in np.unique(np.quantile(both, np.linspace(0, 1, _CUTS), method="nearest")):
        yield from (_Event(1, float(cut)), _Event(-1, float(cut)))
    for place in np.argsort(-counts, kind="stable")[:_ATOMS]:
        if 20 * counts[place] >= both.size:
            yield _Event(0, float(values[place]))


@dataclass(frozen=True)
class _View:
    """A number made of the output, by which events are cut."""

    name: str
    weights: Floats | None = None
    edges: tuple[Floats, ...] = ()
    scores: tuple[Floats, ...] = ()

    def of(self, sample: Floats) -> Floats:
        if self.weights is not None:
            return np.asarray(sample @ self.weights)
        places = (
            np.searchsorted(edges, column, side="right") for edges, column in zip(self.edges, sample.T, strict=True)
        )
        return np.asarray(sum(score[place] for score, place in zip(self.scores, places, strict=True)))


def _views(first: Floats, second: Floats) -> Iterator[_View]:
    """Coordinates, their sum, neighbouring differences, the best linear direction, and the likelihood ratio."""
    width = first.shape[1]
    eye = np.eye(width)
    for i in range(min(width, _COORDINATES)):
        yield _View(f"output[{i}]", eye[i])
    if width == 1:
        return
    yield _View("sum of outputs", np.ones(width))
    for i in range(min(width, _COORDINATES) - 1):
        yield _View(f"output[{i}] - output[{i + 1}]", eye[i] - eye[i + 1])
    yield _View("best linear mix of outputs", _discriminant(first, second))
    edges = tuple(_edges(np.concatenate([a, b])) for a, b in zip(first.T, second.T, strict=True))
    scores = tuple(map(_log_ratios, edges, first.T, second.T))
    yield _View("likelihood ratio of outputs", edges=edges, scores=scores)


def _discriminant(first: Floats, second: Floats) -> Floats:
    """Fisher's direction. Where noise is shared between coordinates, it finds the mix that the noise leaves alone."""
    spread = np.concatenate([first, second]).std(axis=0)
    spread[spread == 0] = 1.0
    one, other = first / spread, second / spread
    within = np.atleast_2d(np.cov(one.T) + np.cov(other.T))
    ridge = 1e-9 * max(float(np.trace(within)), 1e-9) * np.eye(len(spread))
    return np.asarray(np.linalg.solve(within + ridge, one.mean(axis=0) - other.mean(axis=0)) / spread)


def _edges(column: Floats) -> Floats:
    values = np.unique(column)
    if values.size > _BINS:
        values = np.unique(np.quantile(column, np.linspace(0, 1, _BINS), method="nearest"))
    return np.asarray(values[1:])


def _log_ratios(edges: Floats, here: Floats, there: Floats) -> Floats:
    counts = [np.bincount(np.searchsorted(edges, x, side="right"), minlength=edges.size + 1) for x in (here, there)]
    return np.asarray(np.log((counts[0] + 0.5) / (counts[1] + 0.5)))


def features(one: Any, other: Any) -> tuple[Floats, Floats]:
    """Two samples of any values as two matrices of numbers with the same columns.

    Numbers stay, texts become codes, a part that some outputs lack gets a column that says whether it is there.
    """
    both = [*one, *other]
    if all(isinstance(x, np.ndarray) and x.shape == both[0].shape and x.dtype.kind in "biuf" for x in both):
        matrix = np.array(both, dtype=np.float64).reshape(len(both), -1)[:, :_FEATURES]
    elif all(isinstance(x, int | float | np.number) for x in both):
        matrix = np.array(both, dtype=np.float64).reshape(-1, 1)
    else:
        matrix = _table_of([dict(_atoms((), x)) for x in both])
    return matrix[: len(one)], matrix[len(one) :]


def _table_of(flat: Sequence[Mapping[tuple[Any, ...], Any]]) -> Floats:
    places = list(dict.fromkeys(place for atoms in flat for place in atoms))[:_FEATURES]
    codes: dict[Any, float] = {}
    columns: list[list[float]] = []
    for place in places:
        cells = [atoms.get(place, math.nan) for atoms in flat]
        column = [
            float(cell) if isinstance(cell, int | float | np.number) else codes.setdefault(cell, float(len(codes)))
            for cell in cells
        ]
        lacking = [float(cell != cell) for cell in column]
        columns.append([0.0 if math.isnan(cell) else cell for cell in column])
        if any(lacking):
            columns.append(lacking)
    return np.array(columns, dtype=np.float64).T.reshape(len(flat), -1) if columns else np.zeros((len(flat), 1))


def _atoms(place: tuple[Any, ...], value: Any) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _atoms((*place, name), item)
    elif isinstance(value, np.ndarray | list | tuple):
        for index, item in enumerate(value.ravel().tolist() if isinstance(value, np.ndarray) else value):
            yield from _atoms((*place, index), item)
    else:
        yield place, value


# ------------------------------------------------------------------------------------------------ from the law


def selection_chances(scores: Floats, rate: float, kind: Kind) -> Floats:
    """Who wins with what probability, to about 13 digits.

    gumbel       softmax of rate * score
    exponential  permute-and-flip: p_r int_0^1 prod_{i != r} (1 - p_i t) dt with p_i = exp(rate (s_i - max s)). The
                 candidate r wins if its coin shows and nobody before it (each is so with chance t) has won. The
                 integrand is a polynomial, which Gauss-Legendre integrates exactly; all terms are positive
    """
    weights = np.exp(rate * (scores - scores.max()))
    if kind == "gumbel":
        return np.asarray(weights / weights.sum())
    nodes, steps = np.polynomial.legendre.leggauss(scores.size // 2 + 1)
    times, steps = (nodes + 1) / 2, steps / 2
    left = 1 - np.outer(weights, times)
    others = np.array([np.prod(np.delete(left, r, axis=0), axis=0) for r in range(scores.size)])
    return np.asarray(weights * (others @ steps))


def hockey_stick(one: Floats, other: Floats, epsilon: float) -> float:
    """The least delta at that epsilon between two laws on finitely many values, one direction."""
    return float(np.maximum(one - math.exp(epsilon) * other, 0).sum()) if epsilon < _LARGEST_EPSILON else 0.0


def pure_loss(law: Law, shifts: Sequence[int]) -> float:
    """max ln P(y)/P'(y) over all outputs y, for independent noise whose centre moves by `shifts` steps.

    Coordinates are independent, so the worst output is worst in every coordinate.
    """
    return sum(_pure_loss(law, abs(int(shift))) for shift in shifts)


def _pure_loss(law: Law, shift: int) -> float:
    if shift == 0:
        return 0.0
    far = max(1, int(500 * law.spread))  # beyond, float64 probabilities vanish: go there in several strides
    if shift > far:
        return shift // far * _pure_loss(law, far) + _pure_loss(law, shift % far)
    k = _places(law, shift, 40)
    here, there = law.pmf(k), law.pmf(k - shift)
    seen = (here > 1e-290) & (there > 1e-290)
    if not seen.any() or bool(((here > 1e-100) & (there == 0)).any()):
        return math.inf
    return float(np.max(np.abs(np.log(here[seen]) - np.log(there[seen]))))


def curve_loss(law: Law, shifts: Sequence[int], epsilons: Sequence[float]) -> list[float]:
    """The delta at each epsilon, for independent noise whose centre moves by `shifts` steps.

    In one coordinate the worst events are tails (all laws here are log-concave, so the likelihood ratio is monotone).
    The Gaussian in several coordinates depends on the Euclidean distance alone; other laws are judged coordinate by
    coordinate, which bounds the loss from below.
    """
    moved = sorted({abs(int(shift)) for shift in shifts} - {0})
    if isinstance(law, RoundedGaussian) and len(shifts) > 1 and moved:
        distance = math.sqrt(sum(int(shift) ** 2 for shift in shifts))
        return [gdp.delta(distance / law.sigma, epsilon) for epsilon in epsilons]
    worst = np.zeros(len(epsilons))
    for shift in moved:
        t = _places(law, shift, 12)
        here, there = law.sf(t - shift), law.sf(t)
        found = [float(np.max(here - math.exp(min(e, _LARGEST_EPSILON)) * there)) for e in epsilons]
        worst = np.maximum(
            worst, [delta if e < _LARGEST_EPSILON else 0.0 for e, delta in zip(epsilons, found, strict=True)]
        )
    return [float(delta) for delta in worst]


def _places(law: Law, shift: int, spreads: int) -> Floats:
    """Every whole number that matters where they are few, otherwise a mesh, dense at both centres."""
    reach = math.ceil(spreads * law.spread) + 64
    if reach <= 1 << 15 and shift <= 1 << 15:
        return np.arange(-reach, reach + shift + 1, dtype=np.float64)
    near = np.arange(-64.0, 65.0)
    mesh = np.rint(np.linspace(-reach, reach + shift, 1 << 14))
    return np.unique(np.concatenate([near, near + shift, mesh]))


def leaves(plan: Plan[Any]) -> Iterator[Additive | Selection]:
    """The plan, or its children, whose law is known."""
    if isinstance(plan, Additive | Selection):
        yield plan
    for child in plan.children:
        yield from leaves(child)


@dataclass(frozen=True)
class Loss:
    """What was computed beside what is allowed."""

    found: float
    allowed: float
    words: str

    @property
    def broken(self) -> bool:
        return not self.found <= self.allowed * (1 + _ROUNDING) + 1e-12

    @property
    def share(self) -> float:
        return self.found / self.allowed if self.allowed else 0.0

    def __str__(self) -> str:
        return f"{self.words} is {self.found:.6g}, and at most {self.allowed:.6g} is allowed"


def _values(leaf: Additive | Selection, rows: Rows) -> tuple[int, ...]:
    """The query's value in whole steps."""
    exponent = leaf.exponent if isinstance(leaf, Additive) else leaf._exponent
    return tuple(map(int, leaf.query.steps(rows, exponent)))


def _shift(leaf: Additive | Selection, pair: Pair) -> tuple[int, ...]:
    return tuple(b - a for a, b in zip(*(_values(leaf, rows) for rows in pair), strict=True))


def movements(leaf: Additive | Selection, pair: Pair) -> Iterator[Loss]:
    """How far the pair moves the query, beside what the query declares, in every norm."""
    shift, query = _shift(leaf, pair), leaf.query
    declared = query.in_steps(leaf.exponent if isinstance(leaf, Additive) else leaf._exponent)
    # As exact shares: whole numbers of steps may be too long for float64.
    yield Loss(float(sum(map(abs, shift)) / declared.l1), 1.0, "the L1 movement, in declared ones,")
    yield Loss(
        float(sum(x * x for x in shift) / declared.l2_squared), 1.0, "the squared L2 movement, in declared ones,"
    )
    yield Loss(float(max(map(abs, shift)) / declared.linf), 1.0, "the L-infinity movement, in declared ones,")
    if query.monotone and query.unit.group == 1:
        both_ways = min(max(shift), -min(shift))
        yield Loss(float(max(both_ways, 0)), 0.0, "the movement both ways of a query that says it is monotone")


def losses(leaf: Additive | Selection, pairs: Sequence[Pair], claims: Claims) -> Iterator[tuple[Loss, str]]:
    """The exact loss of every pair beside every claim, with the change that caused it."""
    if isinstance(leaf, Additive):
        shifts = {_shift(leaf, pair): pair.change for pair in pairs}
        for shift, change in shifts.items():
            yield from ((loss, change) for loss in _additive_losses(leaf, shift, claims))
    elif len(leaf.query.names) <= _CANDIDATES:
        scores = {(_values(leaf, pair.rows), _values(leaf, pair.neighbour)): pair.change for pair in pairs}
        for (here, there), change in scores.items():
            yield from ((loss, change) for loss in _selection_losses(leaf, here, there, claims))


def _additive_losses(leaf: Additive, shift: tuple[int, ...], claims: Claims) -> Iterator[Loss]:
    if 0.0 in claims:
        yield Loss(pure_loss(leaf.law, shift), claims[0.0], "the exact epsilon")
    some = {delta: epsilon for delta, epsilon in claims.items() if delta}
    found = curve_loss(leaf.law, shift, list(some.values()))
    for (delta, epsilon), loss in zip(some.items(), found, strict=True):
        yield Loss(loss, delta, f"the exact delta at epsilon = {epsilon:.4g}")


def _selection_losses(leaf: Selection, here: tuple[int, ...], there: tuple[int, ...], claims: Claims) -> Iterator[Loss]:
    one, other = (_chances(leaf, scores) for scores in (here, there))
    ratios = np.log(one) - np.log(other)
    if 0.0 in claims:
        yield Loss(float(np.abs(ratios).max()), claims[0.0], "the exact epsilon")
    if isinstance(leaf.event, events.Exponential):
        yield Loss(float(np.ptp(ratios)), float(leaf.event.epsilon), "the range of the log ratios")
    for delta, epsilon in claims.items():
        if delta:
            loss = max(hockey_stick(one, other, epsilon), hockey_stick(other, one, epsilon))
            yield Loss(loss, delta, f"the exact delta at epsilon = {epsilon:.4g}")


def _chances(leaf: Selection, scores: tuple[int, ...]) -> Floats:
    chances = selection_chances(np.array(scores, dtype=np.float64), float(leaf.rate), leaf.noise)
    return np.maximum(chances, 1e-300)  # what vanishes in float64 cannot be compared


def misfits(plan: Plan[Any], rows: Rows, raws: Sequence[Any], alpha: float) -> Iterator[Loss]:
    """How far runs are from the law in the plan; an honest plan has a broken one with chance at most alpha."""
    if isinstance(plan, Additive):
        steps = np.array(_values(plan, rows), dtype=np.float64)
        noise = np.rint(np.ldexp(np.array(raws), -plan.exponent)) - steps
        for name, column in zip(plan.query.names, noise.T, strict=True):
            gap, allowed = misfit(column, plan.law, alpha / len(plan.query.names))
            yield Loss(gap, allowed, f"the gap between the noise on {name!r} and plan.law")
    elif isinstance(plan, Selection) and len(plan.query.names) <= _CANDIDATES:
        chances, share = _chances(plan, _values(plan, rows)), alpha / (2 * len(plan.query.names))
        wins = np.bincount(raws, minlength=chances.size)
        low, high = at_least(wins, len(raws), share), at_most(wins, len(raws), share)
        for i, name in enumerate(plan.query.names):
            yield Loss(float(low[i]), float(chances[i]), f"the share of wins of {name!r}, given plan.rate,")
            yield Loss(float(1 - high[i]), float(1 - chances[i]), f"the share of losses of {name!r}, given plan.rate,")


def misfit(noise: NDArray[Any], law: Law, alpha: float) -> tuple[float, float]:
    """How far draws are from their law (the largest gap between the cdfs), and the gap that an honest sampler exceeds
    with probability at most alpha (Dvoretzky-Kiefer-Wolfowitz with Massart's constant)."""
    values, counts = np.unique(noise.astype(np.float64), return_counts=True)
    after = np.cumsum(counts) / noise.size
    before = after - counts / noise.size
    gap = max(float(np.max(np.abs(after - law.cdf(values)))), float(np.max(np.abs(before - law.cdf(values - 1)))))
    return gap, math.sqrt(math.log(2 / alpha) / (2 * noise.size))
