"""Lower bounds from the scores of canaries, beside jax-privacy's: the same made-up scores, given to both.

Part of `python -m bench.audit_models`. Where the threshold is given, both prove the same from the same counts, or one
of them is wrong. Where each chooses its own, ours guesses a public list of shares, or chooses on one half; jax-privacy
divides the error over the corners of the curve that it has seen (by default), or chooses on one half.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from sfumato.audit.models import ModelAudit, judged, one_run_bound, one_run_tradeoff, two_sided

from . import peers, table
from .bars import Bar, times
from .workers.samples import canary_scores

PEER, WORKER = "jax-privacy", "jax_privacy_audit"
APART, SEED, DELTA, ERROR = 2.0, 9, 1e-5, 0.05
NEAR = 1e-5


@dataclass(frozen=True)
class Job:
    """One bound, by us and by the peer."""

    name: str
    canaries: int
    ours: Callable[[np.ndarray, np.ndarray], float]
    bound: str
    way: str = "given"
    threshold: float = 1.5

    def asked(self) -> dict:
        given = {"canaries": self.canaries, "apart": APART, "seed": SEED, "delta": DELTA, "error": ERROR}
        return {"do": "scores", "bound": self.bound, "way": self.way, "threshold": self.threshold, **given}


@dataclass
class Compared:
    """Bounds, and CPU seconds of every round; the peer's are empty where it is not there."""

    job: Job
    ours: float = 0.0
    theirs: float | None = None
    seconds: list[float] = field(default_factory=list)
    their_seconds: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float | None:
        if not self.their_seconds:
            return None
        return statistics.median(self.their_seconds) / statistics.median(self.seconds)


def jobs(quick: bool) -> list[Job]:
    sizes = (400,) if quick else (1000, 5000)
    return [job for canaries in sizes for job in _jobs(canaries, chosen=canaries <= 1000)]


def _jobs(canaries: int, *, chosen: bool) -> Iterator[Job]:
    yield Job("one run", canaries, _one_run, "one run")
    yield Job("one run, Gaussian curve", canaries, _curve, "one run, curve")
    yield Job("both kinds of error", canaries, _two_sided, "two sided")
    if chosen:  # the peer's search over curves takes minutes beyond
        yield Job("one run, own guesses", canaries, lambda s, c: _judged(s, c).epsilon, "one run", "all")
        yield Job("one run, Gaussian curve, own guesses", canaries, _own_curve, "one run, curve", "all")
        yield Job("both kinds of error, own threshold", canaries, _own_threshold, "two sided", "all")
        yield Job("both kinds of error, chosen on a half", canaries, _own_threshold, "two sided", "half")


def _counts(scores: np.ndarray, coins: np.ndarray) -> tuple[int, int, int]:
    guessed = scores >= Job.threshold
    return len(scores), int(guessed.sum()), int((guessed & coins).sum())


def _one_run(scores: np.ndarray, coins: np.ndarray) -> float:
    return one_run_bound.least_epsilon(*_counts(scores, coins), delta=DELTA, error=ERROR)


def _curve(scores: np.ndarray, coins: np.ndarray) -> float:
    return one_run_tradeoff.epsilon_of(one_run_tradeoff.least_mu(*_counts(scores, coins), error=ERROR), DELTA)


def _two_sided(scores: np.ndarray, coins: np.ndarray) -> float:
    given = {"delta": DELTA, "confidence": 1 - ERROR, "threshold": Job.threshold}
    return two_sided.bounds(scores[coins], scores[~coins], **given).epsilon


def _own_threshold(scores: np.ndarray, coins: np.ndarray) -> float:
    return two_sided.bounds(scores[coins], scores[~coins], delta=DELTA, confidence=1 - ERROR).epsilon


def _judged(scores: np.ndarray, coins: np.ndarray) -> ModelAudit:
    return judged(scores, coins, way="made-up scores", claim=8.0, delta=DELTA, confidence=1 - ERROR)


def _own_curve(scores: np.ndarray, coins: np.ndarray) -> float:
    return _judged(scores, coins).gaussian


def compare(quick: bool, say: Callable[[str], object]) -> tuple[list[Compared], str | None]:
    """Every round measures everybody once; and why the peer is missing, where it is."""
    found, absent = [Compared(job) for job in jobs(quick)], None
    rounds = 2 if quick else 3
    for number in range(rounds):
        for each in found:
            say(f"round {number + 1} of {rounds}: {each.job.name}, {each.job.canaries} canaries")
            given = canary_scores(each.job.canaries, APART, SEED)
            each.job.ours(*given)  # nobody's first time is measured
            began = time.process_time()
            each.ours = float(each.job.ours(*given))
            each.seconds.append(time.process_time() - began)
            absent = absent or _asked(each)
    return found, absent


def _asked(each: Compared) -> str | None:
    try:
        answer = peers.run(PEER, WORKER, {"jobs": [each.job.asked() | {"limit": 120.0, "warm": True}]})["answers"][0]
    except (peers.PeerMissingError, peers.PeerFailedError) as problem:
        return str(problem)
    if "failed" in answer:
        return f"{PEER}, {each.job.name}: {answer['failed']}"
    each.theirs = answer["epsilon"]
    each.their_seconds.append(answer["seconds"])
    return None


def bars(found: list[Compared], absent: str | None) -> Iterator[Bar]:
    if absent and peers.ready(PEER):  # it is there, and did not answer
        yield Bar(f"{PEER} measured", absent, kept=False)
    same = [each for each in found if each.theirs is not None and each.job.way == "given"]
    if same:
        apart = max(abs(each.ours - each.theirs) for each in same if each.theirs is not None)
        yield Bar(f"the same scores and threshold prove the same, to {NEAR:g}", f"{apart:.1e}", apart <= NEAR)


def report(found: list[Compared], absent: str | None) -> str:
    name = peers.PEERS[PEER][0].replace("==", " ")
    head = ("epsilon at least, at 95 % and delta 1e-5", "canaries", "sfumato", name, "CPU", "CPU there", "ratio")
    rows = [
        (
            each.job.name,
            f"{each.job.canaries:,}",
            f"{each.ours:.3f}",
            "–" if each.theirs is None else f"{each.theirs:.3f}",
            table.duration(statistics.median(each.seconds)),
            table.duration(statistics.median(each.their_seconds)) if each.their_seconds else "–",
            times(each.ratio),
        )
        for each in found
    ]
    notes = [f"  {absent}"] if absent else []
    return "\n".join((table.aligned([head, *rows]), *notes))
