"""One audit on its way: how hard it looks, which events it chooses, and what fresh runs say of them.

Claim: an honest plan is called broken with chance at most `false_alarm`. Proof: pairs and events are functions of runs
that the judging runs are independent of. For each of the m events, P(E) >= low fails with chance at most
false_alarm/2m and P'(E) <= high with chance at most false_alarm/2m (Clopper, Pearson 1934), so all 2m bounds hold
together but for a chance of false_alarm. Where they hold, every epsilon, delta and divergence derived from them is a
true lower bound, at every point of the curve at once.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

from .. import checks
from ..errors import ArgumentError, SfumatoError
from ..noise import Bits, SeededBits
from ..rows import Rows
from . import classifier, evidence, losses, ratios, sql_losses, testers, views
from .claims import claims_of
from .counting import Claims, shown
from .hunting import hunt
from .neighbours import Pair
from .outputs import OutputReading
from .results import Found, Point, Result
from .subjects import Failed, OfPlan, Subject
from .telling import Candidate, Finding, candidates, counted, judged, tally, worst, worst_claim

Progress = Callable[[float, str], None]

_SECONDS = 12.0  # where neither a time nor a number of runs is given
_FEWEST, _USUAL_MOST, _MOST = 400, 200_000, 5_000_000
_CLOSER, _JUDGED = 3, 1  # pairs on which events are chosen; and of these, pairs that are judged
_SHARES = 7.0  # how many times `runs` are run in all
_BLOCK = 20_000
_LOOKED_AT = 4e-7  # seconds for each number of an output, where runs themselves cost next to nothing
_PER_WAY = {"exact law": 3, "histogram": 4, "classifier": 3, "hockey stick": 3, "renyi": 2}


@dataclass(frozen=True)
class _Choice:
    """An event that will be judged, and which way of looking chose it."""

    way: str
    pair: Pair
    reading: OutputReading
    candidate: Candidate


@dataclass(frozen=True)
class _Judgement:
    """What fresh runs say of it: how often it happened on both sides, and the two bounds."""

    choice: _Choice
    counts: tuple[tuple[int, int], tuple[int, int]]
    low: float
    high: float

    def worst(self, claims: Claims) -> Finding:
        return worst_claim(self.low, self.high, claims, str(self.choice.candidate))


class RunningAudit:
    """One audit on its way: what it looks at, how hard, and how far it has come."""

    def __init__(self, subject: Any, false_alarm: float, bits: Bits, progress: Progress | None) -> None:
        if not isinstance(false_alarm, float) or not 0 < false_alarm < 1:
            raise checks.refuse("false_alarm", false_alarm, "a chance above 0 and below 1, such as 1e-6")
        self.subject: Subject = subject
        self.false_alarm, self.bits, self._progress = false_alarm, bits, progress
        self.runs, self.until = _FEWEST, math.inf
        self.started = time.monotonic()

    def report(self, share: float, words: str) -> None:
        if self._progress is not None:
            self._progress(share, words)

    def plan_effort(self, minutes: Any, runs: int | None, first: Sequence[Pair]) -> None:
        """How many runs: as many as were asked for, or as the time allows."""
        if runs is not None:
            if minutes is not None:
                raise ArgumentError("minutes and runs are both given: give one of them.")
            self.runs = checks.whole(runs, "runs", least=20, most=10**9)
            return
        number = isinstance(minutes, Real) and not isinstance(minutes, bool)
        if minutes is not None and not (number and 0 < minutes < 1e5):
            raise checks.refuse("minutes", minutes, "a number of minutes above 0")
        seconds = _SECONDS if minutes is None else 60.0 * float(minutes)
        room = int(seconds / (_SHARES * self._cost(first[0])))
        least, most = (_FEWEST, _USUAL_MOST) if minutes is None else (_FEWEST // 8, _MOST)
        self.runs = min(max(room, least), most)
        self.until = self.started + 0.3 * seconds if minutes is not None else math.inf

    def _cost(self, pair: Pair) -> float:
        """Seconds of work for a run, with what is done with its output."""
        self.subject.outputs(pair.rows, 1, SeededBits(0))  # whatever is opened or worked out once
        start, done = time.process_time(), 0
        size = 4 if not self.subject.in_bulk else _BLOCK // 10
        while (spent := time.process_time() - start) < 0.1 or done < 8:
            outputs = self.subject.outputs(pair.rows, size, SeededBits(done))
            numbers = OutputReading.fit(outputs, outputs).of(outputs).shape[1]
            done += size
            size = min(2 * size, _BLOCK)
        return max(spent / done, _LOOKED_AT * (8 + numbers))

    def hunted(self) -> tuple[list[Pair], int]:
        """Pairs worth a closer look."""
        subject = self.subject
        assert isinstance(subject, OfPlan)
        self.report(0.02, "looking for neighbours")
        until = None if self.until == math.inf else self.until
        return hunt(subject.plan, subject, subject.table, self.bits, runs=3 * self.runs // 2, until=until)

    # -------------------------------------------------------------------------------------------- choosing

    def ranked(self, pairs: Sequence[Pair]) -> list[Pair]:
        """The pairs whose worst event looks worst, on runs of their own."""
        if len(pairs) <= _CLOSER:
            return list(pairs)
        count, scored = min(max(self.runs // 32, 40), 3_000), []
        for number, pair in enumerate(pairs):
            self.report(0.2 + 0.15 * number / len(pairs), "ranking neighbours")
            outputs = [self.subject.outputs(data, count, self.bits) for data in pair]
            reading = OutputReading.fit(*outputs)
            first, second = map(reading.of, outputs)
            learnt = [*views.simple(reading.names), *self._by_law(pair, reading)]
            best = candidates(learnt, first, second, self.subject.claims, self._alpha, runs=self.runs, most=1)[0]
            scored.append((best.score, -number, pair))
        return [pair for *_, pair in sorted(scored, key=lambda row: (-row[0], -row[1]))[:_CLOSER]]

    def _by_law(self, pair: Pair, reading: OutputReading) -> list[views.View]:
        subject = self.subject
        if not isinstance(subject, OfPlan) or not isinstance(pair.rows, Rows):
            return []
        return list(ratios.of_law(subject.plan, pair, reading))

    def choices(self, pair: Pair) -> list[_Choice]:
        """The events that look worst on this pair, by each way of looking. Whatever learns from samples learns on one
        half of them, and is ranked on the other."""
        half = max(self.runs // 5, 10)
        outputs = [self.subject.outputs(data, 2 * half, self.bits) for data in pair]
        if all(isinstance(output, Failed) for sample in outputs for output in sample):
            raise SfumatoError(f"every run failed on made-up rows ({outputs[0][0]['failed']}): nothing can be audited")
        reading = OutputReading.fit(*(sample[:half] for sample in outputs))
        learning = [reading.of(sample[:half]) for sample in outputs]
        first, second = (reading.of(sample[half:]) for sample in outputs)
        trees = classifier.trained(*learning)
        learnt: dict[str, list[views.View]] = {
            "exact law": self._by_law(pair, reading),
            "histogram": [*views.simple(reading.names), *views.fitted(*learning)],
            "classifier": [] if trees is None else [trees],
        }
        tallies_of = {way: [tally(view, first, second) for view in some] for way, some in learnt.items()}
        claims, alpha, runs = self.subject.claims, self._alpha, self.runs
        every = [each for tallies in tallies_of.values() for each in tallies]
        candidates = {
            way: list(worst(tallies, claims, alpha, runs=runs, most=_PER_WAY[way]))
            for way, tallies in tallies_of.items()
        }
        candidates["hockey stick"] = testers.hockey_sticks(
            every, claims, alpha, runs=runs, most=_PER_WAY["hockey stick"]
        )
        candidates["renyi"] = testers.divergences(every, self._divergences, alpha, runs=runs, most=_PER_WAY["renyi"])
        return [_Choice(way, pair, reading, each) for way, some in candidates.items() for each in some]

    @property
    def _alpha(self) -> float:
        """The share of one bound, if all ways of looking find as many events as they may."""
        return self.false_alarm / (2 * sum(_PER_WAY.values()))

    @property
    def _divergences(self) -> dict[float, float]:
        return testers.claimed_divergences(self.subject.plan.event) if isinstance(self.subject, OfPlan) else {}

    def chosen(self, pairs: Sequence[Pair]) -> list[_Choice]:
        """The best of each way, on the pairs that look worst."""
        every: list[_Choice] = []
        closer = self.ranked(list({id(pair): pair for pair in pairs}.values()))  # one reading for each pair
        for number, pair in enumerate(closer):
            self.report(0.35 + 0.2 * number / len(closer), "choosing events")
            every += self.choices(pair)
        told_apart = [choice for choice in every if choice.way in ("exact law", "histogram", "classifier")]
        order: dict[int, int] = {}
        for choice in sorted(told_apart, key=lambda choice: -choice.candidate.score):
            order.setdefault(id(choice.pair), len(order))
        promising = [choice for choice in every if order.get(id(choice.pair), _JUDGED) < _JUDGED]
        best: list[_Choice] = []
        for way, most in _PER_WAY.items():
            mine = (choice for choice in promising if choice.way == way)
            best += sorted(mine, key=lambda choice: -choice.candidate.score)[:most]
        return best

    # -------------------------------------------------------------------------------------------- judging

    def judgements(self, chosen: Sequence[_Choice]) -> list[_Judgement]:
        """Fresh runs, counted."""
        alpha = self.false_alarm / (2 * max(len(chosen), 1))
        by_pair = {id(choice.pair): choice.pair for choice in chosen}
        counts: dict[int, list[int]] = {number: [0, 0] for number in range(len(chosen))}
        done = 0
        for key, pair in by_pair.items():
            mine = [(number, choice) for number, choice in enumerate(chosen) if id(choice.pair) == key]
            for side, data in enumerate(pair):
                for start in range(0, self.runs, _BLOCK):
                    size = min(_BLOCK, self.runs - start)
                    self.report(0.55 + 0.45 * done / (2 * len(by_pair) * self.runs), "counting events")
                    sample = mine[0][1].reading.of(self.subject.outputs(data, size, self.bits))
                    for number, choice in mine:
                        counts[number][side] += counted(choice.candidate, sample)[0]
                    done += size
        judgements = []
        for number, choice in enumerate(chosen):
            one, other = ((hits, self.runs) for hits in counts[number])
            judgements.append(_Judgement(choice, (one, other), *judged(choice.candidate, one, other, alpha)))
        return judgements

    def result(self, pairs: Sequence[Pair], tried: int) -> Result:
        """All of it, from pairs to verdict."""
        claims = self.subject.claims
        judgements = self.judgements(self.chosen(pairs))
        if not judgements:
            raise SfumatoError("no output differs at all between runs or between neighbours: nothing can be audited")
        bounds = [(each.low, each.high) for each in judgements]
        curve = tuple(
            Point(delta, claims.get(delta, math.inf), max(float(shown(*both, delta)) for both in bounds))
            for delta in sorted({0.0, *claims})
        )
        ways = [*self._ways(judgements), testers.sticks_found(bounds, claims)]
        ways += [testers.divergence_found(bounds, self._divergences), self._exactly(pairs)]
        head = max(judgements, key=lambda judgement: judgement.worst(claims).lead)
        finding = head.worst(claims)
        self.report(1.0, "done")
        plan = self.subject.plan if isinstance(self.subject, OfPlan) else None
        return Result(
            kind=self.subject.kind,
            hash=evidence.hash_of(plan),
            epsilon=finding.epsilon,
            claim=finding.claim,
            delta=finding.delta,
            pair=head.choice.pair.change,
            event=finding.event,
            curve=curve,
            found=tuple(each for each in ways if each is not None),
            runs=self.runs,
            pairs=tried,
            false_alarm=self.false_alarm,
            seconds=time.monotonic() - self.started,
            evidence=evidence.written(
                self.subject.kind,
                plan,
                head.choice.pair,
                head.choice.reading,
                head.choice.candidate,
                counts=head.counts,
                claims=claims,
                bounds=(head.low, head.high),
            ),
        )

    def _ways(self, judgements: Sequence[_Judgement]) -> Iterator[Found]:
        claims = self.subject.claims
        for way in ("exact law", "histogram", "classifier"):
            mine = [each.worst(claims) for each in judgements if each.choice.way == way]
            if mine:
                best = max(mine, key=lambda finding: finding.lead)
                yield Found(way, best.epsilon, best.claim, best.delta, best.event, best.broken)

    def _exactly(self, pairs: Sequence[Pair]) -> Found | None:
        """The loss computed from the law, where the plan or a part of it says its law: no runs, so no error."""
        subject = self.subject
        if isinstance(subject, OfPlan) and subject.answers:
            return self._of_query(subject, pairs)
        if not isinstance(subject, OfPlan) or not all(isinstance(pair.rows, Rows) for pair in pairs):
            return None
        rows = []
        for leaf in losses.leaves(subject.plan):
            claims = subject.claims if leaf is subject.plan else claims_of(leaf)
            for delta, epsilon in claims.items():
                for loss, change in losses.of_pairs(leaf, pairs, {delta: epsilon}):
                    rows.append((loss.broken, loss.share, delta, epsilon, loss, change))
        if not rows:
            return None
        broken, _, delta, epsilon, loss, change = max(rows, key=lambda row: row[:2])
        proven = loss.size if loss.words == "the exact epsilon" else epsilon
        return Found(
            "exact loss", float(proven), epsilon, delta if not delta else loss.size, f"{loss} ({change})", broken
        )

    def _of_query(self, subject: OfPlan, pairs: Sequence[Pair]) -> Found | None:
        """The same for a query: how far one unit moves its numbers, beside their noise and the price of all of them."""
        used_shares = [(used, pair.change) for pair in pairs if (used := subject.used(pair)) is not None]
        if not used_shares:
            return None
        share, change = max(used_shares)
        words = f"a unit uses {100 * share:.6g} % of what is paid for ({change})"
        plan = subject.plan
        proven = sql_losses.epsilon(plan, share)
        return Found("exact loss", proven, float(plan.price()), float(plan.delta), words, share > sql_losses.SLACK)
