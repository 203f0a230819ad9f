"""The true epsilon of some compositions, each by a way of its own: no rounding up or down, no lattice over real losses.

With L the sum of the losses and K(s) = E[e^(sL)], for every c > 0
    delta(e) = E[(1 - e^(e - L))+] = 1/(2 pi) * integral over u of K(s) e^(-es) / (s (s + 1)),  s = c + iu
because the transform of (1 - e^(e - l))+ in e is e^(sl) / (s (s + 1)). K of one Poisson-sampled Gaussian is a normal
integral. Both integrals are taken by the trapezoidal rule, which converges exponentially for them: the points in z are
dense enough for the turns of e^(iuL) and for the zeros of r, pi * sigma off the line; the points in u are doubled until
nothing changes. At c near the saddle point nothing cancels: delta is found to about 1e-10 of itself, however small.
"""

import math
from collections.abc import Callable

import mpmath
import numpy as np
from scipy import optimize

BEYOND = 14.0  # standard deviations: 1e-44 lies outside

LogMoment = Callable[[np.ndarray], np.ndarray]


def sampled_gaussian(rate: float, sigma: float, times: int, delta: float) -> float:
    """Good to about eight digits. K falls off, and the integral settles, where a unit takes part at least once or so:
    rate * times >= 1."""
    if times == 1:
        return _one_sampled_gaussian(rate, sigma, delta)
    directions = (True,) if rate == 1 else (True, False)
    return max(
        _inverted(lambda s, remove=remove: times * _log_moment(rate, sigma, s, remove), delta) for remove in directions
    )


def laplace(epsilon: float, times: int, delta: float) -> float:
    """Atoms at both ends and, between them, cells whose masses under both neighbours are shared out to their ends: too
    high by less than times * cell^2."""
    cells = math.ceil(epsilon / 2e-5)
    nodes = np.arange(-cells, cells + 1)
    h = epsilon / cells
    left = h * nodes[:-1]
    ours = np.exp((left - epsilon) / 2) * np.expm1(h / 2) / 2
    theirs = -np.exp(-(left + epsilon) / 2) * np.expm1(-h / 2) / 2
    to_right = (ours - theirs * np.exp(left)) / -np.expm1(-h)
    mass = np.zeros(nodes.size)
    mass[1:] += to_right
    mass[:-1] += ours - to_right
    mass[0] += math.exp(-epsilon) / 2
    mass[-1] += 0.5
    return _of_integers(nodes, mass, h, 0.0, times, delta)


def discrete_gaussian(sigma: float, shift: int, times: int, delta: float) -> float:
    """The loss is linear in the noise, so only the law of a sum of integers is needed."""
    noise = np.arange(-math.ceil(BEYOND * sigma), math.ceil(BEYOND * sigma) + 1)
    mass = np.exp(-0.5 * (noise / sigma) ** 2)
    slope = shift / sigma**2
    return _of_integers(noise, mass / mass.sum(), slope, times * shift**2 / (2 * sigma**2), times, delta)


def _of_integers(values: np.ndarray, mass: np.ndarray, slope: float, offset: float, times: int, delta: float) -> float:
    """For a loss of slope * (sum of integers) + offset: the law of the sum by a discrete transform of its tilted
    generating function, without wrap-around worth mentioning."""
    spread = math.sqrt(times * float((mass * values**2).sum() - (mass * values).sum() ** 2))
    tilt = math.sqrt(-2 * math.log(delta)) / spread
    tilted = mass * np.exp(tilt * values)
    total = float(tilted.sum())
    centre = round(times * float((tilted * values).sum()) / total)
    size = 1 << math.ceil(math.log2(2 * BEYOND * spread + 2 * int(values[-1])))
    sums = centre - size // 2 + np.arange(size)
    circle = np.zeros(size)
    np.add.at(circle, values % size, tilted / total)
    law = np.roll(np.fft.ifft(np.fft.fft(circle) ** times).real, -(int(sums[0]) % size))
    losses = slope * sums + offset
    weight = np.maximum(law, 0.0) * np.exp(times * math.log(total) - tilt * sums)

    def excess(e: float) -> float:
        above = losses > e
        return float((weight[above] * -np.expm1(e - losses[above])).sum()) / delta - 1

    return optimize.brentq(excess, 0.0, float(losses[-1]), xtol=1e-12)


def pure(epsilon: float, times: int, delta: float) -> float:
    """Optimal composition: randomized response is the worst of its kind, so a binomial law, in 50 digits."""
    with mpmath.workdps(50):
        step, target = mpmath.mpf(repr(epsilon)), mpmath.mpf(repr(delta))
        odds = mpmath.exp(step)
        mass = (odds / (1 + odds)) ** times
        ours = theirs = mpmath.mpf(0)
        for fewer in range(times + 1):
            loss = (times - 2 * fewer) * step
            if ours - mpmath.exp(loss) * theirs > target:
                return float(mpmath.log((ours - target) / theirs))
            ours, theirs = ours + mass, theirs + mass * mpmath.exp(-loss)
            mass *= mpmath.mpf(times - fewer) / (fewer + 1) / odds
    return 0.0


def _inverted(log_k: LogMoment, delta: float) -> float:
    def chernoff(log_c: float) -> float:
        c = math.exp(log_c)
        return (log_k(np.array([c + 0j]))[0].real - math.log(delta)) / c

    best = optimize.minimize_scalar(chernoff, bounds=(-6.0, 9.0), method="bounded", options={"xatol": 1e-3})
    c = math.exp(best.x)
    near = log_k(c * np.array([0.999, 1.0, 1.001], dtype=complex)).real
    spread = math.sqrt(max(near[0] - 2 * near[1] + near[2], 1e-18)) / (1e-3 * c)
    found = [math.nan]
    for width in (20.0, 40.0, 80.0, 160.0, 320.0):  # spreads until the integral repeats itself
        found.append(_crossing(log_k, c, 2 * math.pi / (width * spread), delta, float(best.fun)))
        if math.isclose(found[-1], found[-2], rel_tol=1e-8, abs_tol=1e-10):
            return found[-1]
    raise ArithmeticError(f"not settled: {found}")


def _crossing(log_k: LogMoment, c: float, step: float, delta: float, above: float) -> float:
    points = 64
    while True:
        s = c + 1j * step * np.arange(points)
        logs = log_k(s) - np.log(s * (s + 1))
        if logs[-1].real < logs[0].real - 33:
            break
        points *= 2
        if points > 1 << 14:
            raise ArithmeticError("the integrand does not fall off")

    def excess(e: float) -> float:
        """ln delta(e) - ln delta."""
        terms = np.exp(logs - logs[0].real - 1j * e * s.imag).real
        integral = (terms.sum() - terms[0] / 2) * step / math.pi
        return math.log(max(integral, 1e-300)) + logs[0].real - e * c - math.log(delta)

    if excess(0.0) <= 0:
        return 0.0
    return optimize.brentq(excess, 0.0, above * (1 + 1e-9), xtol=1e-13, rtol=1e-13)


def _log_moment(rate: float, sigma: float, s: np.ndarray, remove: bool) -> np.ndarray:
    """ln E[e^(sL)] of one step: of r^(1+s) under the normal law when removing, of r^(-s) when adding,
    r = 1 - rate + rate * e^(z/sigma - 1/(2 sigma^2))."""
    reach = max(float(s.real.max()) + 1, 1.0) / sigma if remove else 0.0
    step = 2 * math.pi / (20 + 20 / sigma + 1.1 * float(s.imag.max()) / sigma)
    z = np.arange(-BEYOND, BEYOND + reach, step)
    staying = math.log1p(-rate) if rate < 1 else -math.inf
    loss = np.logaddexp(staying, math.log(rate) + z / sigma - 0.5 / sigma**2)
    weight = -0.5 * z * z - 0.5 * math.log(2 * math.pi) + math.log(step)
    logs = np.empty(s.shape, dtype=complex)
    for start in range(0, s.size, 256):
        order = s[start : start + 256, None]
        exponent = weight + (1 + order if remove else -order) * loss
        top = exponent.real.max(axis=1)
        logs[start : start + 256] = top + np.log(np.exp(exponent - top[:, None]).sum(axis=1))
    return logs


def _one_sampled_gaussian(rate: float, sigma: float, delta: float) -> float:
    """From the closed form of delta, to 30 digits."""
    with mpmath.workdps(60):
        q, s, target = mpmath.mpf(rate), mpmath.mpf(sigma), mpmath.mpf(delta)

        def excess(e: mpmath.mpf) -> mpmath.mpf:
            """The larger of the two directions' deltas at e, less the target."""
            worth = mpmath.exp(e)
            place = s * mpmath.log((worth - 1 + q) / q) + 1 / (2 * s)  # where r = e^e
            with_unit, without = mpmath.ncdf(1 / s - place), mpmath.ncdf(-place)
            found = q * with_unit + (1 - q - worth) * without
            if 1 / worth > 1 - q:
                place = s * mpmath.log((1 / worth - 1 + q) / q) + 1 / (2 * s)
                with_unit, without = mpmath.ncdf(place - 1 / s), mpmath.ncdf(place)
                found = max(found, without - worth * (q * with_unit + (1 - q) * without))
            return found - target

        low, high = mpmath.mpf(0), mpmath.mpf(1)
        if excess(low) <= 0:
            return 0.0
        while excess(high) > 0:
            low, high = high, 2 * high
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if excess(middle) > 0 else (low, middle)
        return float(high)
