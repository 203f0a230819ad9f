"""audit.verify(plan): every outcome and its exact probability on both of two neighbouring tables, beside every claim.

A guarantee says P(S) <= e^epsilon P'(S) + delta for every set S of outcomes. Where outcomes can be listed, the worst S
holds the outcomes with P(y) > e^epsilon P'(y), so the left side minus the right is one sum:
    sum over y of max(0, P(y) - e^epsilon P'(y)) <= delta.
It is computed in certified enclosures, both ways round, for every pair and every claim. "holds" is then a theorem about
those pairs (with `pairs="all"`, about all tables of that size), "broken" comes with the counterexample, and what lies
between is "undecided": nothing is ever guessed from a sample.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from .. import checks, display, record
from ..accounting import approximate, pure
from ..errors import UnsupportedEventError
from ..exact import Enclosure
from ..mechanisms.optimal_keys import OptimalKeys
from ..noise.samplers import Chance
from ..plan import Plan, Run
from . import enclosed, neighbours
from .arguments import table_pair
from .chances import BITS, SLACK, ends, exp_ends, shown
from .enclosed import NOTHING, Ends, Judged
from .enumerating import ListedLaw, listed
from .scripted import TooManyError
from .small_tables import all_pairs, few_pairs
from .stages import table_for

__all__ = ["Counterexample", "TooManyError", "Verified", "all_pairs", "verify"]

Verdict = Literal["holds", "broken", "undecided"]
_DELTAS = tuple(map(Fraction, ("1e-9", "1e-6", "1e-4", "1e-3", "0.01", "0.03", "0.1", "0.3")))
_MOST = 20_000
_LISTED = 6  # outcomes named in a counterexample


@dataclass(frozen=True)
class Claim:
    """One point of a plan's price."""

    delta: Fraction
    epsilon: Fraction

    def __str__(self) -> str:
        return f"epsilon = {float(self.epsilon):.6g}" + (f", delta = {float(self.delta):.3g}" if self.delta else "")


@dataclass(frozen=True)
class Counterexample:
    """A pair and a set of outcomes that break a claim: P(event) >= one[0], P'(event) <= other[1], and the first exceeds
    e^epsilon times the second plus delta."""

    change: str
    event: str
    epsilon: Fraction
    delta: Fraction
    one: Ends
    other: Ends
    first: str  # "with the change" or "without it": which table makes the event likelier

    @property
    def shown(self) -> float:
        """The epsilon that it proves at this delta; infinite where the event never happens on the other side."""
        above = self.one[0] - self.delta
        if not self.other[1]:
            return math.inf
        return math.log(above) - math.log(self.other[1]) if above > 0 else 0.0

    def __str__(self) -> str:
        return (
            f"{self.change}\n  event: {self.event}\n  its probability is {shown(*self.one)} {self.first}, and "
            f"{shown(*self.other)} otherwise: epsilon is at least {self.shown:.6g} at delta = {float(self.delta):.3g}, "
            f"and {float(self.epsilon):.6g} is claimed"
        )


@dataclass(frozen=True)
class Verified:
    """What verification found.

    verdict         "holds": every claim, for every pair; "broken": see `counterexample`; "undecided": see `gap`
    way             "listed": every outcome of the plan's own code; "law": from the law of its noise
    claims          the points (delta, epsilon) of the price that were checked
    share           how much of a claim the worst pair uses: the loss over epsilon, or the delta over the claimed delta
    gap             undecided: by how much the bound on delta may be exceeded, at most
    skipped         pairs whose outcomes were too many to list; nothing is said of them
    """

    kind: str
    verdict: Verdict
    way: str
    pairs: int
    outputs: int
    paths: int
    claims: tuple[Claim, ...]
    share: float
    worst: str
    counterexample: Counterexample | None = None
    gap: float = 0.0
    skipped: int = 0
    seconds: float = field(default=0.0, compare=False)

    @property
    def holds(self) -> bool:
        return self.verdict == "holds"

    @property
    def broken(self) -> bool:
        return self.verdict == "broken"

    def __str__(self) -> str:
        how = (
            f"{self.outputs} outcomes listed, {self.paths} paths" if self.way == "listed" else "by the law of its noise"
        )
        lines = [
            f"{self.kind}: {self.verdict}, on {self.pairs} pairs of neighbours at {len(self.claims)} points of the "
            f"price ({how})",
        ]
        if self.counterexample is not None:
            lines.append(str(self.counterexample))
        elif self.verdict == "undecided":
            lines.append(f"the bounds leave room for a delta that is too large by {self.gap:.3g} ({self.worst})")
        else:
            lines.append(f"the worst pair uses {100 * self.share:.5g} % of what is claimed ({self.worst})")
        if self.skipped:
            lines.append(f"{self.skipped} pairs have too many outcomes to be listed: nothing is said of them")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head, *more = str(self).splitlines()
        return display.card(f"Exact verification of {head}", *map(display.paragraph, more))


def verify(
    plan: Plan[Any, Any],
    *,
    pairs: Iterable[Any] | Literal["all"] | None = None,
    rows: int = 3,
    most: int = _MOST,
) -> Verified:
    """Is the plan's price right, exactly, on these pairs of neighbouring tables?

    pairs  None: the simple and extreme ones of audit.check; "all": every pair of tables of up to `rows` rows (units)
           with the listed values of their columns; or neighbours of your own: (raw columns, raw columns), or a `Pair`
    most   on how many ways the plan may run on one table before it is refused as too many

    Refuses a plan whose outcomes cannot be listed and whose law is not in its fields: audit.check samples those.
    """
    started = time.perf_counter()
    checks.instance(plan, Plan, "plan", "a plan")
    checks.whole(most, "most", least=2, most=10**7)
    checks.whole(rows, "rows", most=8)
    work = _Verification(plan, claims(plan), most)
    if pairs is None:
        work.all_of(few_pairs(plan), patient=False)
    else:
        work.all_of(_asked(plan, pairs, rows), patient=True)
    if not work.pairs:
        raise TooManyError(
            f"{type(plan).__name__} cannot be verified exactly: {work.why or 'there are no pairs'}. Give it fewer "
            "candidates, rows or a coarser grid, or use audit.check(plan), which samples."
        )
    return replace(work.conclude(), seconds=time.perf_counter() - started)


def _asked(plan: Plan[Any, Any], pairs: Any, rows: int) -> Iterator[neighbours.Pair]:
    if isinstance(pairs, str) and pairs == "all":
        yield from all_pairs(plan, rows)
        return
    if isinstance(pairs, str | Mapping) or not isinstance(pairs, Iterable):
        allowed = "'all', or a list of pairs of neighbouring tables as raw columns; or leave it out"
        raise checks.refuse("pairs", pairs if isinstance(pairs, str) else type(pairs).__name__, allowed)
    table, none = table_for(plan), True
    for pair in pairs:
        yield table_pair(plan, table, pair)
        none = False
    if none:
        raise checks.refuse("pairs", [], "at least one pair of neighbours, or leave it out")


def claims(plan: Plan[Any, Any]) -> tuple[Claim, ...]:
    """Every point that the accountants sell the plan at, as exact numbers."""
    sold = []
    with contextlib.suppress(UnsupportedEventError):
        sold.append(Claim(Fraction(0), pure.epsilon(plan.event)))
    for delta in sorted({*_DELTAS, Fraction(plan.delta)} - {Fraction(0)}):
        with contextlib.suppress(UnsupportedEventError):
            sold.append(Claim(delta, approximate.epsilon(plan.event, delta)))
    # A point with the same epsilon at a smaller delta says more.
    least: dict[Fraction, Claim] = {}
    for claim in sold:
        least.setdefault(claim.epsilon, claim)
    return tuple(least.values())


class _Verification:
    """The verdict as it grows, pair by pair."""

    def __init__(self, plan: Plan[Any, Any], points: Sequence[Claim], most: int) -> None:
        self._plan, self._claims, self._most = plan, tuple(points), most
        self._laws: dict[str, ListedLaw] = {}
        self._run = listable(plan)
        self.pairs = self._outputs = self._paths = self._skipped = 0
        self.why, self._way = "", "listed"
        self._share, self._worst = 0.0, "no pair moves anything"
        self._gap, self._open = Fraction(0), ""
        self._broken: Counterexample | None = None

    def all_of(self, pairs: Iterable[neighbours.Pair], *, patient: bool) -> None:
        """Without patience, tables of a base that was too much once are not tried again."""
        tired: set[str] = set()
        for pair in pairs:
            base = pair.change.rpartition("; beside it ")[2]
            try:
                if base in tired and not patient:
                    raise TooManyError(self.why)
                self._one(pair)
                self.pairs += 1
            except TooManyError as problem:
                self.why, self._skipped = str(problem), self._skipped + 1
                tired.add(base)
            if self._broken is not None:
                return

    def _one(self, pair: neighbours.Pair) -> None:
        for claim in self._claims:
            judged = enclosed.judge(self._plan, pair.rows, pair.neighbour, claim.epsilon, pure=not claim.delta)
            if judged is None:
                self._two_ways(pair, claim)
            else:
                self._way = "law"
                self._note(pair, claim, judged, "on one of them")

    def _two_ways(self, pair: neighbours.Pair, claim: Claim) -> None:
        raw = pair.raw or (None, None)
        one, other = self._law(pair.rows, raw[0]), self._law(pair.neighbour, raw[1])
        self._outputs = max(self._outputs, len(one.chances.keys() | other.chances.keys()))
        for here, there, first in ((one, other, "on the first table"), (other, one, "on the second table")):
            self._note(pair, claim, compared(here, there, claim, self._name), first)

    def _name(self, outcome: bytes) -> str:
        raw = record.parse(outcome)
        with contextlib.suppress(Exception):  # a planted bug may leave what nothing finishes
            raw = self._plan.finish(raw)
        text = str(raw)
        return text if len(text) <= 160 else text[:157] + "..."

    def _law(self, rows: Any, raw: Any) -> ListedLaw:
        """The law on one table; tables that come again in other pairs are listed once."""
        law = self._laws.get(repr(raw)) if raw is not None else None
        if law is None:
            law = listed(self._run, rows, most=self._most)
            self._paths += law.paths
            if raw is not None:
                self._laws[repr(raw)] = law
        return law

    def _note(self, pair: neighbours.Pair, claim: Claim, judged: Judged, first: str) -> None:
        if judged.low > claim.delta:
            if self._broken is None or claim.delta < self._broken.delta:
                self._broken = Counterexample(
                    pair.change, judged.event, claim.epsilon, claim.delta, judged.one, judged.other, first
                )
            return
        if judged.high > claim.delta + SLACK:
            if judged.high - claim.delta > self._gap:
                self._gap, self._open = judged.high - claim.delta, f"{pair.change}, at {claim}"
            return
        share = float(judged.high / claim.delta) if claim.delta else judged.loss / max(float(claim.epsilon), 1e-300)
        if share > self._share:
            self._share, self._worst = share, f"{pair.change}, at {claim}"

    def conclude(self) -> Verified:
        verdict: Verdict = "broken" if self._broken else "undecided" if self._gap else "holds"
        return Verified(
            kind=type(self._plan).__name__,
            verdict=verdict,
            way=self._way,
            pairs=self.pairs,
            outputs=self._outputs,
            paths=self._paths,
            claims=self._claims,
            share=self._share,
            worst=self._open or self._worst,
            counterexample=self._broken,
            gap=float(self._gap),
            skipped=self._skipped,
        )


_Outcome = tuple[Fraction, bytes, Ends, Ends]  # its excess, its bytes, and its chances on both sides


def compared(one: ListedLaw, other: ListedLaw, claim: Claim, name: Callable[[bytes], str] = bytes.decode) -> Judged:
    """sum of max(0, P - e^epsilon P') from below and from above, and the set that makes it."""
    low_e, high_e = exp_ends(claim.epsilon, BITS)
    nothing = Enclosure(0, 0, BITS)
    least, most, loss = Fraction(0), one.rest, 0.0
    chosen: list[_Outcome] = []
    for outcome, chance in one.chances.items():
        mine, theirs = ends(chance), ends(other.chances.get(outcome, nothing))
        low, high = mine[0] - high_e * theirs[1], mine[1] - low_e * theirs[0]
        if low > 0:
            least += low
            chosen.append((low, outcome, mine, theirs))
        most += max(high, Fraction(0))
        if theirs[1] > 0 and mine[0] > 0:
            loss = max(loss, math.log(mine[0]) - math.log(theirs[1]))
    least = max(least - high_e * other.rest, Fraction(0))
    if not chosen:
        return replace(NOTHING, high=most, loss=loss)
    if not claim.delta:  # one outcome is enough, and says most
        chosen = [max(chosen, key=_ratio)]
    chosen.sort(key=lambda outcome: -outcome[0])
    sides = [_summed(each[place] for each in chosen) for place in (2, 3)]
    sides[1] = (sides[1][0], sides[1][1] + other.rest)
    return Judged(
        least, most, _named([name(each[1]) for each in chosen[:_LISTED]], len(chosen)), sides[0], sides[1], loss
    )


def _ratio(outcome: _Outcome) -> tuple[bool, Fraction]:
    """How much an outcome tells: most if the other side never has it, else by the ratio of its chances."""
    _, _, mine, theirs = outcome
    return not theirs[1], mine[0] / theirs[1] if theirs[1] else mine[0]


def _summed(parts: Iterator[Any]) -> Ends:
    listed = list(parts)
    return sum((each[0] for each in listed), Fraction(0)), sum((each[1] for each in listed), Fraction(0))


def _named(outcomes: Sequence[str], count: int) -> str:
    more = f" or one of {count - len(outcomes)} more" if count > len(outcomes) else ""
    return ("the output is " if count == 1 else "the output is one of ") + ", ".join(outcomes) + more


def listable(plan: Plan[Any, Any]) -> Callable[[Any, Run], Any]:
    """The plan's own code. OptimalKeys compares a 62-bit number with pi(n) and asks for more bits where that is close:
    by its own words a coin of chance exactly `plan.chance(n)`, and as such it is listed."""
    if isinstance(plan, OptimalKeys) and type(plan)._kept is OptimalKeys._kept:
        flipping: OptimalKeys = type(plan).__new__(type("Flipping", (type(plan),), {"_kept": _flipped}))
        flipping.__dict__.update(vars(plan))
        return flipping._run
    return plan._run


def _flipped(plan: OptimalKeys, counts: Any, run: Run) -> Any:
    heads = [run.noise.coins(_chance(plan, int(n)), 1)[0] for n in counts]
    return np.array(heads, dtype=np.bool_)


def _chance(plan: OptimalKeys, n: int) -> Chance:
    return lambda bits: plan.chance(n, bits)
