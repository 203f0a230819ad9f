"""What peer accountants answer on a grid, for tests/golden/: kept with the event, so that tests need no peer.

A peer that raises, takes too long or answers with no number is kept as {"failed": why}.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sfumato import record

from . import peers
from .parts import (
    Part,
    approximate,
    discrete_gaussian,
    discrete_laplace,
    event,
    gaussian,
    laplace,
    mixture,
    pure,
    randomized_response,
)

DP_ACCOUNTING = ("dp-accounting", "dp_accounting_accounting")
PRV_ACCOUNTANT = ("prv-accountant", "prv_accountant_accounting")
OPACUS = ("opacus", "opacus_accounting")

LIMIT = 60.0
LOWER_UP_TO = 10_000  # steps: beyond, dp-accounting's lower bound says nothing
LATTICE = 250_000  # points of one mechanism's loss that dp-accounting is asked for: it visits them one by one


@dataclass(frozen=True)
class Point:
    """Some mechanisms, a delta, and the lattice step at which dp-accounting is asked."""

    parts: tuple[Part, ...]
    delta: float
    step: float


# (rate, sigma, steps): every corner of rate and sigma once, then what keeps epsilon between 0.001 and 60
ONCE = [(rate, sigma, 1) for rate in (0.1, 0.999, 1.0) for sigma in (0.3, 1.0, 10.0, 100.0)]
ONCE += [(1e-6, 0.3, 1), (1e-5, 0.5, 1), (1e-3, 0.3, 1), (1e-3, 1.0, 1)]
FEW = [(1e-3, 0.3, 10), (0.1, 0.5, 10), (0.5, 1.0, 10), (0.999, 1.0, 10), (1.0, 2.0, 10), (1.0, 10.0, 10)]
MANY = [
    (1e-6, 0.3, 1000),
    (1e-5, 0.5, 1000),
    (1e-3, 0.7, 1000),
    (0.01, 1.0, 1000),
    (0.01, 2.0, 1000),
    (0.004266, 1.0, 600),
    (0.1, 5.0, 1000),
    (0.5, 20.0, 1000),
    (0.999, 100.0, 1000),
    (1.0, 30.0, 1000),
    (256 / 60000, 1.3, 3516),
    (256 / 60000, 0.7, 10547),
    (256 / 60000, 1.1, 14063),
]
VERY_MANY = [
    (1e-6, 0.5, 100_000),
    (1e-5, 0.5, 100_000),
    (1e-3, 1.0, 100_000),
    (0.01, 5.0, 100_000),
    (0.1, 50.0, 100_000),
    (1.0, 100.0, 100_000),
    (1e-6, 0.4, 1_000_000),
    (1e-5, 0.5, 1_000_000),
    (1e-4, 0.6, 1_000_000),
    (1e-3, 2.0, 1_000_000),
    (0.01, 20.0, 1_000_000),
    (0.1, 100.0, 1_000_000),
]
FINE = [(0.01, 4.0, 10_000), (0.01, 4.0, 40_000)]  # at 1e-4 dp-accounting's lattice is too coarse to see the 4th digit


def sampled_gaussian() -> list[Point]:
    points = [_sgd(*one, delta) for one in ONCE for delta in (1e-5, 1e-12)]
    points += [_sgd(*one, delta) for one in FEW for delta in (1e-3, 1e-9)]
    points += [_sgd(*one, delta) for one in MANY for delta in (1e-5,)]
    points += [_sgd(*one, delta) for one, delta in zip(MANY[:10], [1e-3, 1e-9, 1e-12, 1e-12, 1e-9] * 2, strict=True)]
    points += [_sgd(*one, 1e-5) for one in VERY_MANY]
    points += [_sgd(*one, delta) for one, delta in zip(VERY_MANY, [1e-7, 1e-9, 1e-12] * 4, strict=True)]
    return points + [Point((gaussian(sigma, steps, rate),), 1e-5, 1e-5) for rate, sigma, steps in FINE]


def _sgd(rate: float, sigma: float, steps: int, delta: float) -> Point:
    """The finest decimal step, from 1e-4 up, that keeps the loss of one Gaussian within so many points."""
    reach = 20 / sigma + 0.5 / sigma**2
    step = next(step for step in (1e-4, 1e-3, 1e-2) if reach / step <= LATTICE)
    return Point((gaussian(sigma, steps, rate),), delta, step)


def mechanisms() -> list[Point]:
    mixed = (
        gaussian(2.0, 500, 0.01),
        gaussian(1.5, 1000, 0.005),
        gaussian(4.0, 300, 0.02),
        gaussian(0.8, 2000, 0.001),
        gaussian(1.1, 1500, 0.004),
    )
    return [
        *(Point((laplace(scale, times),), delta, 1e-4) for scale, times, delta in LAPLACE),
        *(Point((laplace(scale, times, rate),), delta, 1e-4) for scale, times, rate, delta in SAMPLED_LAPLACE),
        *(Point((discrete_laplace(*one),), delta, 1e-4) for *one, delta in DISCRETE_LAPLACE),
        *(Point((discrete_gaussian(*one),), delta, 1e-4) for *one, delta in DISCRETE_GAUSSIAN),
        *(Point((randomized_response(*one),), delta, 1e-3) for *one, delta in RESPONSE),
        *(Point((mixture(*one),), delta, 1e-2) for *one, delta in MIXTURES),
        *(Point((pure(epsilon, times),), delta, epsilon) for epsilon, times, delta in PURE),
        *(Point((approximate(epsilon, own, times),), delta, epsilon) for epsilon, own, times, delta in APPROXIMATE),
        Point(mixed, 1e-5, 1e-4),
        Point((*mixed, laplace(5.0, 20), discrete_gaussian(10.0, 1, 20)), 1e-5, 1e-4),
        Point((gaussian(0.8, 100, 5e-3), gaussian(8.0, 200), laplace(10.0, 100)), 1e-6, 1e-4),
        Point((laplace(1.0), gaussian(1.0), pure(1.0)), 1e-6, 1e-3),
    ]


LAPLACE = [(1.0, 1, 1e-5), (10.0, 100, 1e-6), (1.0, 20, 1e-4), (0.5, 10, 1e-9), (100.0, 1000, 1e-12)]
SAMPLED_LAPLACE = [(1.0, 1, 0.1, 1e-5), (1.0, 1000, 0.01, 1e-6), (0.2, 10, 1e-3, 1e-9)]
DISCRETE_LAPLACE = [(1.0, 1, 1, 1e-5), (1.0, 3, 10, 1e-6), (0.1, 1, 100, 1e-6), (2.0, 2, 5, 1e-12)]
DISCRETE_GAUSSIAN = [
    (0.5, 1, 1, 1e-3),
    (1.0, 1, 1, 1e-5),
    (4.0, 1, 10, 1e-6),
    (10.0, 1, 20, 1e-5),
    (2.0, 3, 4, 1e-9),
    (20.0, 5, 100, 1e-12),
]
RESPONSE = [(1.0, 2, 1, 1e-5), (0.5, 2, 20, 1e-5), (1.0, 10, 30, 1e-6), (3.0, 100, 5, 1e-9)]
MIXTURES = [
    ((0.0, 1.0), (0.99, 0.01), 100, 1e-6),
    ((0.0, 0.5, 1.0), (0.5, 0.25, 0.25), 1, 1e-5),
    ((0.0, 0.25, 0.5, 1.0), (0.9, 0.05, 0.03, 0.02), 50, 1e-9),
]
PURE = [(0.1, 100, 1e-6), (0.01, 1000, 1e-6), (0.5, 20, 1e-5), (1.0, 2, 0.3), (0.1, 10_000, 1e-12)]
APPROXIMATE = [(0.1, 1e-9, 30, 1e-6), (0.5, 1e-7, 10, 1e-5)]


# The small theorems: KOV's epsilon is only ever epsilon times a whole number

OPTIMAL = [
    (1.0, 0.001, 30, 0.06),
    (1.0, 0.001, 30, 0.1),
    (1.0, 0.01, 30, 0.26),
    (0.1, 0.0, 100, 1e-6),
    (0.1, 1e-9, 30, 1e-6),
    (0.5, 0.0, 20, 1e-5),
    (1.0, 0.0, 2, 0.1),
    (0.01, 0.0, 1000, 1e-6),
]
SMALLEST = [
    {"law": "laplace", "epsilon": 1.0, "delta": 1e-4, "times": 20},
    {"law": "laplace", "epsilon": 1.0, "delta": 1e-4, "times": 500},
    {"law": "discrete_laplace", "epsilon": 1.0, "delta": 1e-4, "times": 20},
    {"law": "gaussian", "epsilon": 1.0, "delta": 1e-5, "times": 1},
    {"law": "gaussian", "epsilon": 0.1, "delta": 1e-9, "times": 100},
    {"law": "sampled_gaussian", "epsilon": 1.0, "delta": 1e-5, "times": 1, "rate": 0.01},
    {"law": "sampled_gaussian", "epsilon": 1.0, "delta": 1e-5, "times": 25, "rate": 0.001, "sensitivity": 6},
    {"law": "sampled_gaussian", "epsilon": 2.0, "delta": 1e-6, "times": 100, "rate": 0.05},
]


def files() -> Iterable[tuple[str, dict]]:
    yield "accounting_sampled_gaussian", {"peers": _names(), "rows": _rows(sampled_gaussian(), everybody=True)}
    yield "accounting_mechanisms", {"peers": _names(), "rows": _rows(mechanisms(), everybody=False)}
    yield "accounting_theorems", {"peers": [peers.PEERS["dp-accounting"][0]], **_theorems()}


def _names() -> list[str]:
    return [peers.PEERS[peer][0] for peer, _ in (DP_ACCOUNTING, PRV_ACCOUNTANT, OPACUS)]


def _rows(points: Sequence[Point], *, everybody: bool) -> list[dict]:
    ours = [record.encode(event(point.parts)) for point in points]
    asked = [{"parts": list(point.parts), "delta": point.delta} for point in points]
    tight = _asked(
        DP_ACCOUNTING,
        [
            {"do": "pld", "step": point.step, "lower": _has_lower(point), **one}
            for point, one in zip(points, asked, strict=True)
        ],
    )
    columns = {"pld": [{"step": point.step, **each} for point, each in zip(points, tight, strict=True)]}
    if everybody:
        columns["rdp"] = _asked(DP_ACCOUNTING, [{"do": "rdp", **one} for one in asked])
        columns["opacus_rdp"] = _asked(OPACUS, [{"do": "spent", "accountant": "rdp", **one} for one in asked])
        errors = [0.01 if _steps(point) <= LOWER_UP_TO else 0.1 for point in points]
        found = _asked(PRV_ACCOUNTANT, [{"do": "prv", "error": e, **one} for e, one in zip(errors, asked, strict=True)])
        columns["prv"] = [{"error": error, **each} for error, each in zip(errors, found, strict=True)]
    return [
        {"event": each, "delta": point.delta} | {name: column[i] for name, column in columns.items()}
        for i, (each, point) in enumerate(zip(ours, points, strict=True))
    ]


def _theorems() -> dict:
    columns = ("epsilon", "delta_each", "times", "delta")
    optimal = [dict(zip(columns, each, strict=True)) for each in OPTIMAL]
    found = _asked(DP_ACCOUNTING, [{"do": "optimal_composition", **one} for one in optimal])
    smallest = _asked(DP_ACCOUNTING, [{"do": "smallest", **one} for one in SMALLEST])
    return {
        "optimal_composition": [one | each for one, each in zip(optimal, found, strict=True)],
        "smallest": [one | each for one, each in zip(SMALLEST, smallest, strict=True)],
    }


def _has_lower(point: Point) -> bool:
    """Generic guarantees are only ever rounded up."""
    return _steps(point) <= LOWER_UP_TO and not any(part["law"] in ("pure", "approximate") for part in point.parts)


def _steps(point: Point) -> int:
    return max(part["times"] for part in point.parts)


def _asked(who: tuple[str, str], jobs: list[dict]) -> list[dict]:
    answers = peers.run(*who, {"jobs": [{"limit": LIMIT, **job} for job in jobs]})["answers"]
    return [{name: value for name, value in each.items() if name != "seconds"} for each in answers]
