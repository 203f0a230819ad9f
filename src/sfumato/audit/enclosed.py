"""The exact loss of plans that add noise of a known law, in certified arithmetic.

The output is unbounded, so it is not listed. It need not be: noise is log-concave and independent from number to
number. With d the move of the query between neighbours, in steps, and s the scale:

    pure         Laplace noise, rounded or discrete: the largest ratio is exp(sum |d_i| / s), and it is reached in the
                 tails. (Rounding lowers P(0) against the exponential shape by 2/(1 + e^(1/2s)): no ratio exceeds it.)
                 A comparison of two fractions.
    one number   the likelihood ratio rises with the output, so the worst events are tails {y >= t}; the t where the
                 ratio passes e^epsilon is bracketed by certified signs.
    several      Let f_a be the trade-off curve of one number moved by a. Moving one number after the other gives
                 f >= f_b(1 - f_a) (group privacy), and for a log-concave law tails are best for every move at once, so
                 f_b(1 - f_a) = f_(a+b): several moved numbers are never worse than one moved by the sum of all moves.
                 The rounded Gaussian is post-processing of the continuous one, whose curve depends on |d|_2 alone.
                 From below, the worst single number counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from .. import exact, record
from ..laws import DiscreteLaplace, Law, RoundedGaussian, RoundedLaplace
from ..mechanisms import ContinualCount, L2Noise, LInfinityNoise, QuantileTree
from ..mechanisms.additive import Additive
from ..mechanisms.noisy_max import NoisyMaxWithValue
from ..mechanisms.threshold_keys import ThresholdKeys
from ..mechanisms.vector import VectorNoise
from ..plan import Plan
from ..tidy import Tidy
from . import chances
from .chances import BITS, at_or_above, between, ends, exp_ends
from .enumerating import ListedLaw, listed
from .scripted import TooManyError

ZERO, ONE = Fraction(0), Fraction(1)
_TIE = Fraction(1, 2**300)
_FAR = 12  # standard deviations: e^-72 is nothing to any delta, and probabilities have digits enough
Ends = tuple[Fraction, Fraction]


@dataclass(frozen=True)
class Judged:
    """The least delta at one epsilon, from both sides, and the event that comes nearest, with its probability on either
    table. Where only a ratio was computed, `loss` is it."""

    low: Fraction
    high: Fraction
    event: str = ""
    one: Ends = (ZERO, ZERO)
    other: Ends = (ZERO, ZERO)
    loss: float = 0.0


NOTHING = Judged(ZERO, ZERO)


def additive_part(plan: Plan[Any, Any]) -> Additive | None:
    """The noise that the plan's raw output consists of; None where its own code may do something else."""
    if isinstance(plan, Additive) and type(plan)._run is Additive._run:
        return plan
    for kind, name in ((QuantileTree, "noisy"), (ContinualCount, "measured"), (Tidy, "plan")):
        if isinstance(plan, kind) and type(plan)._run is kind._run:
            return additive_part(getattr(plan, name))
    return None


def laplacian(law: Law) -> bool:
    return isinstance(law, RoundedLaplace | DiscreteLaplace)


# ------------------------------------------------------------------------------------------------ one number


def tails(law: Law, shift: int, epsilon: Fraction) -> Judged:
    """The exact delta at epsilon between X and X + shift."""
    shift = abs(shift)
    low_e, high_e = exp_ends(epsilon)
    if shift == 0 or (laplacian(law) and shift <= Fraction(law.spread) * abs(epsilon)):
        # No ratio passes e^epsilon: nothing, or everything, is worst.
        return Judged(max(1 - high_e, ZERO), max(1 - low_e, ZERO))
    far = math.floor(_FAR * Fraction(law.spread))
    if not laplacian(law) and _ratio_below(law, far, shift, low_e):  # what is worse is further out, and rarer than this
        return Judged(ZERO, ends(at_or_above(law, far - shift))[1])
    over = shift / Fraction(law.spread) - epsilon
    if laplacian(law) and over <= _TIE:  # all ratios are at most e^(epsilon + over): P - e^epsilon P' <= over P
        return Judged(ZERO, over)
    left, right = _bracket(law, shift, epsilon, low_e, high_e)
    best = NOTHING
    for t in range(left, right + 2):
        one, other = (ends(at_or_above(law, k)) for k in (t - shift, t))
        low, high = one[0] - high_e * other[1], one[1] - low_e * other[0]
        if high > best.high:
            words = f"the noise is at least {t} steps above the unmoved value"
            best = Judged(max(low, best.low, ZERO), high, words, one, other, _log_ratio(one, other))
    return best


def _bracket(law: Law, shift: int, epsilon: Fraction, low_e: Fraction, high_e: Fraction) -> tuple[int, int]:
    """Certainly P(X = t - shift) <= e^epsilon P(X = t) at the first t, and >= at the last."""
    spread = Fraction(law.spread)
    about = (shift + spread * epsilon) / 2 if laplacian(law) else spread**2 * epsilon / shift + Fraction(shift, 2)
    left = right = math.floor(about)
    width = 2
    while not _ratio_below(law, left, shift, low_e):
        left, width = left - width, 2 * width
    width = 2
    while not _ratio_above(law, right, shift, high_e):
        right, width = right + width, 2 * width
        if width > 1 << 60:
            raise TooManyError("the noise is too far out to be bracketed")
    if right - left > 1 << 12:  # only where a law is so narrow that probabilities vanish: rare enough to say so
        raise TooManyError("the worst tail is not bracketed")
    return left, right


def _ratio_below(law: Law, t: int, shift: int, low_e: Fraction) -> bool:
    return ends(between(law, t - shift, t - shift))[1] <= low_e * ends(between(law, t, t))[0]


def _ratio_above(law: Law, t: int, shift: int, high_e: Fraction) -> bool:
    return ends(between(law, t - shift, t - shift))[0] >= high_e * ends(between(law, t, t))[1]


def _log_ratio(one: Ends, other: Ends) -> float:
    return math.log(one[0]) - math.log(other[1]) if one[0] > 0 and other[1] > 0 else 0.0


# ------------------------------------------------------------------------------------------------ several numbers


def additive(law: Law, shift: Sequence[int], epsilon: Fraction, *, pure: bool = False) -> Judged:
    """The delta at epsilon of independent noise on every number, whose centre moves by `shift`; with `pure`, whether
    any outcome is likelier by more than e^epsilon."""
    moved = [abs(int(each)) for each in shift if each]
    if not moved:
        return NOTHING
    if laplacian(law) and (pure or sum(moved) <= Fraction(law.spread) * epsilon):
        return _pure(law, moved, epsilon)
    worst = tails(law, max(moved), epsilon)
    if pure or len(moved) == 1:
        return worst
    if laplacian(law):
        return Judged(worst.low, tails(law, sum(moved), epsilon).high, worst.event, worst.one, worst.other, worst.loss)
    if isinstance(law, RoundedGaussian):
        high = gaussian(Fraction(sum(each * each for each in moved)) / Fraction(law.sigma) ** 2, epsilon)
        return Judged(worst.low, max(high, worst.low), worst.event, worst.one, worst.other, worst.loss)
    return Judged(worst.low, ONE, worst.event, worst.one, worst.other, worst.loss)


def _pure(law: Law, moved: Sequence[int], epsilon: Fraction) -> Judged:
    loss = Fraction(sum(moved)) / Fraction(law.spread)
    if loss <= epsilon:
        return Judged(ZERO, ZERO, loss=float(loss))
    one = other = chances.certain()
    for shift in moved:
        one, other = one * at_or_above(law, 1), other * at_or_above(law, 1 + shift)
    (low, high), others = ends(one), ends(other)
    low_e, high_e = exp_ends(epsilon)
    words = f"every one of {len(moved)} moved number(s) lies beyond where it was moved to"
    return Judged(
        max(low - high_e * others[1], ZERO), high - low_e * others[0], words, (low, high), others, float(loss)
    )


def gaussian(squared: Fraction, epsilon: Fraction) -> Fraction:
    """At least delta(epsilon) of the continuous Gaussian whose squared distance, in standard deviations, is `squared`:
    Q(epsilon/mu - mu/2) - e^epsilon Q(epsilon/mu + mu/2) (Balle, Wang 2018)."""
    work = 256
    low, high = ends(exact.sqrt(exact.enclose(squared, work)))
    if low <= 0:
        return ONE
    first = epsilon / high - high / 2  # Q falls, and so does this in mu
    second = epsilon / low + high / 2
    _, top = _upper(first)
    bottom, _ = _upper(second)
    return min(max(top - exp_ends(epsilon)[0] * bottom, ZERO), ONE)


def _upper(z: Fraction) -> Ends:
    if z >= 0:
        return ends(exact.gauss_tail(z, BITS))
    low, high = ends(exact.gauss_tail(-z, BITS))
    return 1 - high, 1 - low


# ------------------------------------------------------------------------------------------------ plans


def judge(plan: Plan[Any, Any], one: Any, other: Any, epsilon: Fraction, *, pure: bool) -> Judged | None:
    """The loss of a plan whose law is in its fields, on one pair; None for any other plan."""
    part = additive_part(plan)
    if part is not None:
        return additive(part.law, move_of(part.query, one, other, part.exponent), epsilon, pure=pure)
    if isinstance(plan, VectorNoise) and type(plan)._run is VectorNoise._run:
        return _vector(plan, move_of(plan.query, one, other, plan.exponent), epsilon)
    if isinstance(plan, ThresholdKeys) and type(plan)._run is ThresholdKeys._run:
        ways = (_keys(plan, *sides, epsilon) for sides in ((one, other), (other, one)))
        return max(ways, key=lambda judged: (judged.low, judged.high))
    if isinstance(plan, NoisyMaxWithValue) and type(plan)._run is NoisyMaxWithValue._run:
        return _with_value(plan, one, other, epsilon)
    return None


def move_of(query: Any, one: Any, other: Any, exponent: int) -> list[int]:
    return [int(b) - int(a) for a, b in zip(*(query.steps(rows, exponent) for rows in (one, other)), strict=True)]


def _vector(plan: VectorNoise, shift: list[int], epsilon: Fraction) -> Judged | None:
    """exp(-norm / scale): the ratio is at most exp(norm of the move / scale), by the triangle inequality."""
    scale = Fraction(plan.scale)
    if isinstance(plan, LInfinityNoise):
        loss = max(map(abs, shift)) / scale
    elif isinstance(plan, L2Noise):
        loss = Fraction(exact.sqrt_above(Fraction(sum(each * each for each in shift)))) / scale
    else:
        return None
    return Judged(ZERO, _of_pure(loss, epsilon), loss=float(loss))


def _of_pure(loss: Fraction, epsilon: Fraction) -> Fraction:
    """At most the delta at epsilon of anything that is loss-DP: randomised response is worst (Kairouz, Oh, Viswanath
    2015), with (e^loss - e^epsilon)/(1 + e^loss)."""
    if loss <= epsilon:
        return ZERO
    high, low = exp_ends(loss)[1], exp_ends(epsilon)[0]
    return (high - low) / (1 + high)


def _with_value(plan: NoisyMaxWithValue, one: Any, other: Any, epsilon: Fraction) -> Judged:
    """With p, p' the chances of a winner: sum of p delta(epsilon - ln(p/p')), delta that of the noise on its score.
    For one winner both ratios are largest in the same tail."""
    laws = [listed(plan.selection._run, rows, most=len(plan.query.names) + 1) for rows in (one, other)]
    shift = move_of(plan.query, one, other, plan._exponent)
    ways = (laws, laws[::-1])
    return max((_won(plan.law, a, b, shift, epsilon) for a, b in ways), key=lambda judged: (judged.low, judged.high))


def _won(law: RoundedLaplace, here: ListedLaw, there: ListedLaw, shift: Sequence[int], epsilon: Fraction) -> Judged:
    high_e, high, worst, loss = exp_ends(epsilon)[1], ZERO, NOTHING, 0.0
    for name, chance in here.chances.items():
        moved, beside = abs(shift[int(name)]), there.chances[name]
        mine, theirs = chance * at_or_above(law, 1), beside * at_or_above(law, 1 + moved)
        most = ends(exact.ln(ends(chance)[1] / ends(beside)[0], BITS))[1]
        loss = max(loss, float(most + moved / Fraction(law.scale)))
        high += ends(chance)[1] * tails(law, moved, epsilon - most).high
        low = ends(mine)[0] - high_e * ends(theirs)[1]
        if low > worst.low:
            words = f"candidate {name.decode()} wins, and its value lies beyond where it was moved to"
            worst = Judged(low, ONE, words, ends(mine), ends(theirs))
    return Judged(worst.low, max(high, worst.low), worst.event, worst.one, worst.other, loss)


def _keys(plan: ThresholdKeys, one: Any, other: Any, epsilon: Fraction) -> Judged:
    """Keys that both tables hold: noisy counts, with some left out afterwards. New keys: with p the chance that any new
    key of the first table shows, p' of the second, and delta_A of the keys that both hold, the loss is
        p + (1 - p) delta_A(epsilon - ln((1 - p)/(1 - p'))),
    since what shows a new key has probability 0 on the other side."""
    counts = [_held(plan, rows) for rows in (one, other)]
    step, law, limit = 1 << -plan.exponent, plan.law, plan.threshold_steps
    both = [key for key in counts[0] if key in counts[1]]
    shift = [(counts[1][key] - counts[0][key]) * step for key in both]
    hidden = []
    for mine, theirs in (counts, counts[::-1]):
        left = chances.certain()
        for key in mine:
            if key not in theirs:
                left = left * (chances.certain() - at_or_above(law, limit - mine[key] * step))
        hidden.append(ends(left))
    (low, high), (other_low, _) = hidden
    # -ln((1 - p)/(1 - p')) as a fraction from below: the loss falls with epsilon.
    more = ends(exact.ln(other_low / high, BITS))[0] if high > 0 and other_low > 0 else ZERO
    shared = additive(law, shift, epsilon + more) if epsilon + more >= 0 else Judged(ZERO, ONE)
    # From below: a new key shows; or a key that both hold shows, at or beyond the worst tail.
    event = Judged(1 - high, 1 - low, "a key that only one of the tables holds is shown", (1 - high, 1 - low))
    alone = max(
        (_shown_alone(law, limit, counts[0][key] * step, each, epsilon) for key, each in zip(both, shift, strict=True)),
        key=lambda judged: judged.low,
        default=NOTHING,
    )
    worst = max(event, alone, key=lambda judged: judged.low)
    loss = max(shared.loss, alone.loss)
    return Judged(worst.low, (1 - low) + high * shared.high, worst.event, worst.one, worst.other, loss)


def _held(plan: ThresholdKeys, rows: Any) -> dict[bytes, int]:
    """How many units hold each key, where chance has no part in it."""
    law = listed(lambda data, run: _tallied(plan, data, run), rows, most=5_000)
    if len(law.chances) != 1:
        raise TooManyError("which keys count is drawn at random here, and their noisy counts are shown")
    return dict(_read(next(iter(law.chances))))


def _tallied(plan: ThresholdKeys, rows: Any, run: Any) -> list[Any]:
    tally: dict[int, int] = {}
    for code in plan._held(rows, run)[1].tolist():
        tally[code] = tally.get(code, 0) + 1
    codes = sorted(tally)
    labels = rows[plan.column].label(np.array(codes, dtype=np.int64))
    return sorted([str(label), tally[code]] for code, label in zip(codes, labels, strict=True))


def _read(text: bytes) -> Iterator[tuple[bytes, int]]:
    for label, count in record.parse(text):
        yield str(label).encode(), int(count)


def _shown_alone(law: Law, limit: int, height: int, shift: int, epsilon: Fraction) -> Judged:
    """P(key shown at t or above) here against there, at the t that is worst of those that can show."""
    if shift >= 0:
        return NOTHING  # it is the other direction's
    low_e, high_e = exp_ends(epsilon)
    best = NOTHING
    for t in {limit, limit + 64, height, height + (-shift)}:
        if t < limit:
            continue
        one, other = (ends(at_or_above(law, t - k)) for k in (height, height + shift))
        low = one[0] - high_e * other[1]
        if low > best.low or best is NOTHING:
            words = f"a key that both tables hold is shown, with {t} steps or more"
            best = Judged(max(low, ZERO), one[1] - low_e * other[0], words, one, other, _log_ratio(one, other))
    return best
