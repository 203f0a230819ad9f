"""The distributional audit: neighbours are sought, events are chosen, and fresh runs judge them beside the claim.

    hunting   pairs of neighbours from the plan's unit and schema, ranked on cheap runs of their own
    choosing  on the best pairs, events: by the law's likelihood ratio, by histograms, by a trained classifier, and
              those at which the hockey-stick and Rényi curves look worst
    judging   fresh runs on both sides count the events that were chosen; nothing else is looked at

looking.py does it, and proves that an honest plan is hardly ever called broken.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from .. import checks
from ..errors import ArgumentError, PrivacyWarning
from ..noise import Bits, Noise
from ..plan import Plan
from . import evidence
from .arguments import bits_of, check_progress, listed, table_pair
from .looking import Progress, RunningAudit
from .neighbours import Pair, pair_of, scenes
from .results import Result
from .subjects import MakeNoise, OfCode, OfPlan


def check(
    plan: Plan[Any, Any],
    *,
    minutes: float | None = None,
    runs: int | None = None,
    false_alarm: float = 1e-6,
    noise: MakeNoise = Noise,
    bits: Bits | None = None,
    progress: Progress | None = None,
    pairs: Sequence[Any] | None = None,
) -> Result:
    """Look for neighbours and events that prove more privacy lost than the plan is sold at.

    minutes      how long to look; by default some ten seconds, for plans that are quick to run
    runs         instead: runs on each side of a pair that is judged; all else follows from it. With seeded `bits` the
                 result is then the same every time
    false_alarm  the chance that an honest plan is called broken, at most
    noise        what makes the noise of a run out of bits: a planted bug in the noise is given here
    pairs        neighbours of your own instead of a search: (raw columns, raw columns), or a `Pair`
    """
    if not isinstance(plan, Plan):
        raise checks.refuse("plan", plan, "a plan, such as Laplace(query=bounds.count(Unit()), epsilon=1)")
    if plan.supervised is not None:
        raise ArgumentError("plan is not allowed: its loop is the user's own, so there is nothing here to run.")
    check_progress(progress)
    subject = OfPlan(plan, noise)
    with _quiet():
        audit = RunningAudit(subject, false_alarm, bits_of(bits), progress)
        chosen = None if pairs is None else [table_pair(subject.plan, subject.table, each) for each in listed(pairs)]
        if chosen == []:
            raise checks.refuse("pairs", [], "at least one pair of neighbours, or leave it out for a search")
        first = chosen[:1] if chosen else [_first_pair(subject)]
        audit.plan_effort(minutes, runs, first)
        worth_a_look, tried = (chosen, len(chosen)) if chosen else audit.hunted()
        return audit.result(worth_a_look, tried)


def check_mechanism(
    run: Callable[..., Any],
    pairs: Sequence[tuple[Any, Any]],
    claims: Mapping[float, float] | float,
    *,
    minutes: float | None = None,
    runs: int | None = None,
    false_alarm: float = 1e-6,
    noise: MakeNoise = Noise,
    bits: Bits | None = None,
    progress: Progress | None = None,
) -> Result:
    """The same for code of your own: `run(data)` or `run(data, noise)` gives one output.

    pairs   neighbouring inputs [(D, D'), ...]: that they are neighbours is yours to say
    claims  {delta: epsilon, ...}, or one epsilon at delta = 0
    """
    if not callable(run):
        raise checks.refuse("run", run, "a function of the data, or of the data and the noise")
    check_progress(progress)
    subject = OfCode(run, evidence.claims_from(claims), noise)
    chosen = [Pair(*_two(each), f"pair {number}") for number, each in enumerate(listed(pairs))]
    if not chosen:
        raise checks.refuse("pairs", [], "at least one pair of neighbouring inputs, such as [(0.0, 1.0)]")
    audit = RunningAudit(subject, false_alarm, bits_of(bits), progress)
    subject.check_runs(*chosen[0])
    audit.plan_effort(minutes, runs, chosen[:1])
    return audit.result(chosen, len(chosen))


def _two(pair: Any) -> tuple[Any, Any]:
    if not isinstance(pair, tuple | list | Pair) or len(tuple(pair)) != 2:
        raise checks.refuse("pairs", "...", "pairs of neighbouring inputs, such as [(0.0, 1.0)]")
    one, other = pair
    return one, other


def _first_pair(subject: OfPlan) -> Pair:
    for words, scene in scenes(subject.plan, subject.table):
        return pair_of(subject.plan, subject.table, scene, words)
    raise ArgumentError(
        "plan is not allowed: its unit's column has fewer categories than units that change, so it has no neighbours."
    )


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Made-up data and small budgets: a person would be warned of both."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        yield
