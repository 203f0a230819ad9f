"""V2, a search for the most telling event: Ding, Wang, Wang, Zhang, Kifer, "Detecting violations of differential
privacy" (2018); Bichsel, Steffen, Bogunovic, Vechev, "DP-Sniper" (2021).

For several pairs of neighbouring tables the plan runs many times on both; on one half of the outcomes the most telling
events are sought (thresholds and values of the outputs, of linear mixtures of them and of their likelihood ratio), on
the other half they are counted, beside every (epsilon, delta) that the plan's event is sold at. Where the law of the
noise is in the plan, its exact loss is computed as well: samples do not see an excess of a few parts in a million.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sfumato import bounds, schema
from sfumato.audit import counting, losses, telling
from sfumato.audit.claims import claims_of
from sfumato.audit.neighbours import Pair, pairs
from sfumato.audit.stages import table_for
from sfumato.bounds import Declared
from sfumato.errors import PrivacyWarning
from sfumato.mechanisms.exponential import Exponential
from sfumato.mechanisms.gaussian import Gaussian
from sfumato.mechanisms.laplace import Laplace
from sfumato.mechanisms.permute_and_flip import PermuteAndFlip
from sfumato.mechanisms.randomized_response import RandomizedResponse
from sfumato.mechanisms.smooth_median import SmoothMedian
from sfumato.mechanisms.vector import LInfinityNoise
from sfumato.noise import Bits, SecureBits
from sfumato.plan import Plan
from sfumato.rows import Rows
from sfumato.units import Unit

from .. import mutants
from .sampling import many
from .verdict import FALSE_ALARM, Verdict, without_warnings

RUNS = 100_000  # on either table of a pair: a million on each side of the ten pairs of a plan
_CONTROL_RUNS = 20_000
_PAIRS = 10
_ROW, _REPLACE = Unit(), Unit(change="replace")
_WARDS = ("a", "b", "c")


@dataclass(frozen=True)
class SearchTarget:
    """A plan, and neighbours that are worth a look beside the usual ones."""

    name: str
    make: Callable[[], Plan[Any, Any]]
    neighbours: tuple[tuple[Mapping[str, Any], Mapping[str, Any]], ...] = ()
    share: float = 1.0  # of the runs: some plans are slow to run one by one
    usual: int = _PAIRS  # of the usual neighbours

    def pairs(self, plan: Plan[Any, Any]) -> list[Pair]:
        table = table_for(plan)
        read = [[Rows.read(table, raw, plan.unit) for raw in each] for each in self.neighbours]
        own = [Pair(one, other, "a pair of its own") for one, other in read]
        usual = list(pairs(plan)) if self.usual else []
        return own + usual[:: max(len(usual) // max(self.usual, 1), 1)][: self.usual]


def _in_all(rows: Rows) -> list[int]:
    return [len(rows)] * 10


def _ten_times() -> Declared:
    """Ten candidates, and every row is for all of them."""
    labels = [f"candidate {i}" for i in range(10)]
    return bounds.declared(_in_all, _ROW, reads={"w": schema.category(_WARDS)}, labels=labels, l1=10, l2=4, linf=1)


_VOTES = ({"w": ["a"] * 5}, {"w": ["a"] * 4 + ["b"]})  # one candidate a little ahead
_NONE: list[str] = []
_ONE_MORE = ({"w": _NONE}, {"w": ["a"]})

LIBRARY = (
    SearchTarget("Laplace, count", lambda: Laplace(query=bounds.count(_ROW), epsilon=1)),
    SearchTarget("Laplace, histogram", lambda: Laplace(query=bounds.histogram("w", _WARDS, _REPLACE), epsilon=1)),
    SearchTarget("Laplace, sum", lambda: Laplace(query=bounds.clipped_sum("x", 0, 10, _ROW), epsilon=1)),
    SearchTarget("Gaussian, histogram", lambda: Gaussian(query=_histogram(), epsilon=1, delta=1e-6)),
    SearchTarget("Gaussian at epsilon 10", lambda: Gaussian(query=bounds.count(_ROW), epsilon=10, delta=1e-5)),
    SearchTarget("Exponential", lambda: Exponential(query=_histogram(), epsilon=1), (_VOTES,), 0.1),
    SearchTarget("PermuteAndFlip", lambda: PermuteAndFlip(query=_histogram(), epsilon=1), (_VOTES,), 0.1),
    SearchTarget("RandomizedResponse", lambda: _responses(), (({"w": ["a"]}, {"w": ["b"]}),), 0.1),
    SearchTarget("LInfinityNoise", lambda: LInfinityNoise(query=_histogram(), epsilon=1), (_VOTES,), 0.1),
    SearchTarget("SmoothMedian", lambda: _median(), (), 0.1),
)

MUTANTS = (
    SearchTarget("noise x 0.5", lambda: mutants.HalfNoise(query=bounds.count(_ROW), epsilon=1), usual=4),
    SearchTarget("sensitivity x 0.5", lambda: Laplace(query=_half_sum(), epsilon=1), usual=4),
    SearchTarget(
        "exponential without the factor 2",
        lambda: mutants.DoubledRate(query=_histogram(), epsilon=1),
        (_VOTES,),
        0.1,
        0,
    ),
    SearchTarget(
        "noisy max with its value",
        lambda: mutants.NoisyMaxWithItsValue(query=_ten_times(), epsilon=1),
        (_ONE_MORE,),
        1,
        0,
    ),
    SearchTarget(
        "classic Gaussian at epsilon 10",
        lambda: mutants.ClassicGaussian(query=bounds.count(_ROW), epsilon=10, delta=1e-5),
        usual=4,
    ),
)


def _histogram() -> bounds.Histogram:
    return bounds.histogram("w", _WARDS, _REPLACE)


def _half_sum() -> mutants.HalfSensitivity:
    return mutants.HalfSensitivity(column="x", lower=0, upper=10, unit=_ROW)


def _responses() -> RandomizedResponse:
    return RandomizedResponse(column="w", categories=_WARDS, epsilon=1, protects=_REPLACE)


def _median() -> SmoothMedian:
    return SmoothMedian(column="x", lower=0, upper=10, epsilon=1, protects=_REPLACE)


@dataclass(frozen=True)
class SearchFinding:
    """What was shown of one target: by the most telling event of the samples, and by the law of its noise."""

    sampled: telling.Finding
    exact: losses.ExactLoss | None

    @property
    def broken(self) -> bool:
        return self.sampled.broken or (self.exact is not None and self.exact.broken)

    def __str__(self) -> str:
        return str(self.exact) if self.exact is not None and self.exact.broken else str(self.sampled)


def attack(targets: Sequence[SearchTarget] = LIBRARY, *, runs: int = RUNS, bits: Bits | None = None) -> Verdict:
    findings = shown(targets, runs=runs, bits=bits)
    broken = [f"{name}: {each}" for name, each in findings.items() if each.broken]
    text = (
        f"{'; '.join(broken)}." if broken else f"No event of {len(findings)} plans proves more than they are sold at."
    )
    return Verdict("V2", bool(broken), text, _figures(findings))


def control(
    targets: Sequence[SearchTarget] = MUTANTS, *, runs: int = _CONTROL_RUNS, bits: Bits | None = None
) -> Verdict:
    """The attack on the planted bugs: broken only if every one of them is."""
    findings = shown(targets, runs=runs, bits=bits)
    missed = [name for name, each in findings.items() if not each.broken]
    text = f"Not caught: {', '.join(missed)}." if missed else f"All {len(findings)} planted bugs are caught."
    return Verdict("V2", not missed, text, _figures(findings))


def _figures(findings: Mapping[str, SearchFinding]) -> dict[str, float]:
    figures = {
        f"{name}: sampled epsilon over the claim": f.sampled.epsilon / f.sampled.claim for name, f in findings.items()
    }
    exact = {f"{name}: exact loss over the claim": f.exact.share for name, f in findings.items() if f.exact is not None}
    return figures | exact


def shown(targets: Sequence[SearchTarget], *, runs: int, bits: Bits | None = None) -> dict[str, SearchFinding]:
    source = SecureBits() if bits is None else bits
    with without_warnings(PrivacyWarning):
        return {target.name: _look(target, runs, source, FALSE_ALARM / len(targets)) for target in targets}


def _look(target: SearchTarget, runs: int, bits: Bits, false_alarm: float) -> SearchFinding:
    plan = target.make()
    tried, claims = target.pairs(plan), claims_of(plan)
    samples = max(int(runs * target.share), 100)
    findings = []
    for pair in tried:
        one, other = (many(plan, rows, samples, bits) for rows in pair)
        findings.append(telling.most_telling(one, other, claims=claims, false_alarm=false_alarm / len(tried)))
    exact = list(_losses(plan, tried, claims))
    return SearchFinding(
        max(findings, key=lambda finding: finding.lead),
        max(exact, key=lambda loss: (loss.broken, loss.share)) if exact else None,
    )


def _losses(plan: Plan[Any, Any], tried: Sequence[Pair], claims: counting.Claims) -> Iterator[losses.ExactLoss]:
    for leaf in losses.leaves(plan):
        yield from (loss for loss, _ in losses.of_pairs(leaf, tried, claims))
