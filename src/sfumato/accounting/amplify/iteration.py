"""Iteration: only the last iterate is released, and the noise of later steps hides the earlier ones.

These are prices of one kind of training, as functions of its numbers. They hold under conditions that no event can
check, so they are not events, and every condition is an argument or stands in the text.

The setting: w <- Project(w - rate * (gradient + noise)), where the gradient is that of one example (or of all of them,
`full_batch`), the noise is normal with standard deviation `noise` in every coordinate, fresh in every step, and
Project is the projection onto a closed convex set (or none). **Conditions**: every loss is convex, `lipschitz`
(gradients no longer than that by themselves: clipping them need not leave a convex loss) and `smooth` (gradients no
steeper than that), rate <= 2/smooth; the order of the examples is fixed in advance or independent of the data;
**nothing but the last iterate is seen**.

Theorem (Feldman, Mironov, Talwar, Thakurta 2018, Theorem 22). Two runs of T contractive steps with normal noise of
standard deviation s each, whose maps differ by at most d_t in step t and whose starts are at most d_0 apart, have last
iterates with
    Rényi divergence of order a  <=  a (u_1^2 + ... + u_T^2) / (2 s^2),
for any u_t >= 0 with u_1 + ... + u_t <= d_0 + ... + d_t for all t, and equality at T.
Proof sketch: a gradient step with rate <= 2/smooth is a contraction, and so is a projection. Carry a shift z: the two
iterates look as if one of them had been moved by at most z. A step adds d_t to z, its noise lets us take u_t off z at
the price a u_t^2/(2 s^2), and at the end z must be 0.

Since the bound is linear in the order, it is rho-zCDP with rho = (u_1^2 + ... + u_T^2) / (2 s^2). All prices here are
exact fractions.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ... import checks
from ...units import RELATIONS


def single_pass_rho(
    *,
    index: int,
    steps: int,
    lipschitz: Any,
    noise: Any,
    smooth: Any,
    rate: Any,
    relation: str = "replace",
) -> Fraction:
    """rho of the unit that is used in step `index` (from 1) of one pass of `steps` steps, one unit each.

    In its step the two runs differ by rate * 2 lipschitz (rate * lipschitz if the unit is zeroed out); that shift is
    taken off in equal parts by the noise of this step and of all later ones:
        rho = 2 lipschitz^2 / (noise^2 (steps - index + 1))    (a quarter of it under zero-out).
    The last unit gets no amplification, the first one a factor of `steps`.
    """
    number = checks.whole(steps, "steps")
    place = checks.whole(index, "index", most=number)
    shift = _shift(lipschitz, smooth, rate, relation)
    return _energy(shift**2 / (number - place + 1), noise)


def single_pass_rhos(
    *, steps: int, lipschitz: Any, noise: Any, smooth: Any, rate: Any, relation: str = "replace"
) -> tuple[Fraction, ...]:
    """rho of every unit, in the order of use. (What a data set is charged is the largest: the last unit's.)"""
    one = single_pass_rho(
        index=1, steps=1, lipschitz=lipschitz, noise=noise, smooth=smooth, rate=rate, relation=relation
    )
    return tuple(one / left for left in range(checks.whole(steps, "steps"), 0, -1))


def single_pass_divergence(
    *,
    order: Any,
    index: int,
    steps: int,
    lipschitz: Any,
    noise: Any,
    smooth: Any,
    rate: Any,
    relation: str = "replace",
) -> Fraction:
    """The Rényi divergence of that order, order * rho."""
    level = checks.positive(order, "order")
    if level <= 1:
        raise checks.refuse("order", order, "a number above 1")
    return level * single_pass_rho(
        index=index, steps=steps, lipschitz=lipschitz, noise=noise, smooth=smooth, rate=rate, relation=relation
    )


def full_batch_rho(
    *,
    steps: int,
    units: int,
    lipschitz: Any,
    noise: Any,
    smooth: Any,
    rate: Any,
    diameter: Any = None,
    relation: str = "replace",
) -> Fraction:
    """rho of the last iterate of gradient descent on the mean loss of `units` units, projected onto a set of a known
    `diameter` (None: not known): it stops growing with the number of steps (after Altschuler and Talwar 2022).

    All steps differ by d = rate * 2 lipschitz / units (half of it under zero-out, with the same public `units`).
    Without a diameter u_t = d, so rho = steps d^2 / (2 s^2) with s = rate * noise: plain composition. With one, forget
    all but the last k steps: their start is at most `diameter` apart, and u_t = d + diameter/k satisfies the theorem:
        rho = min over k <= steps of k (d + diameter/k)^2 / (2 s^2),
    about 2 d diameter / s^2 at k = diameter/d, however many steps there are.
    """
    number, people = checks.whole(steps, "steps"), checks.whole(units, "units")
    shift = _shift(lipschitz, smooth, rate, relation) / people
    squares = number * shift**2
    if diameter is not None:
        wide = checks.positive(diameter, "diameter") / checks.positive(rate, "rate")
        turn = int(wide / shift)
        for k in {min(max(each, 1), number) for each in (turn, turn + 1)}:  # k (d + D/k)^2 is convex in k
            squares = min(squares, k * (shift + wide / k) ** 2)
    return _energy(squares, noise)


def _shift(lipschitz: Any, smooth: Any, rate: Any, relation: str) -> Fraction:
    """How far apart one step can move two runs, divided by the rate."""
    checks.one_of(relation, "relation", RELATIONS)
    if relation == "add-remove":
        raise checks.refuse("relation", relation, "'replace' or 'zero-out': the number of steps is public here")
    if checks.positive(rate, "rate") * checks.positive(smooth, "smooth") > 2:
        raise checks.refuse("rate", rate, "a step of at most 2/smooth: a longer one is not a contraction")
    return checks.positive(lipschitz, "lipschitz") * (2 if relation == "replace" else 1)


def _energy(squares: Fraction, noise: Any) -> Fraction:
    """rho, given the sum of squared parts divided by the rate: the noise in a step is rate * noise."""
    return squares / (2 * checks.positive(noise, "noise") ** 2)
