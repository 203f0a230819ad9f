"""All methods side by side: what each of them says of one event, whether that is a guarantee, and how long it took.

The first row is what to report. The others show what a looser method would have cost, or, for the central limit, what
a number looks like that must not be reported at all.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from typing import Any

from .. import checks
from ..checks import Exact
from ..errors import ArgumentError, UnsupportedEventError
from ..events import Approximate, Event, Gaussian, Partition, Pure, PureEvent, Repeat, Sequence
from ..exact import float_above
from ..exhibits import Exhibit
from .composition import total
from .interval import Interval

_NO_GUARANTEE = "approximation, not a guarantee"


@dataclass(frozen=True)
class Row:
    """One method. `epsilon` is None where it cannot price the event; `note` then says why."""

    method: str
    epsilon: float | None
    lower: float | None
    guarantee: bool
    seconds: float
    note: str = ""


@dataclass(frozen=True)
class Comparison(Exhibit):
    """The rows, tightest guarantee first; then what is no guarantee; then what cannot price the event."""

    _card = "sfumato.cards:comparison"

    event: Event
    delta: Fraction
    rows: tuple[Row, ...]

    @property
    def best(self) -> Row:
        """The tightest guarantee."""
        if not self.rows[0].guarantee:
            raise UnsupportedEventError(f"no method prices this {type(self.event).__name__}: {self.rows[0].note}")
        return self.rows[0]

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __getitem__(self, method: str) -> Row:
        for row in self.rows:
            if row.method == method:
                return row
        raise KeyError(f"no method {method!r}: there are {', '.join(row.method for row in self.rows)}")

    @property
    def title(self) -> str:
        return f"epsilon at delta = {float(self.delta):g}"

    def cells(self) -> Iterator[tuple[str, str, str, str, str]]:
        for row in self.rows:
            shown = "-" if row.epsilon is None else f"{row.epsilon:.6g}"
            least = "" if row.lower is None else f"{row.lower:.6g}"
            yield row.method, shown, least, f"{1e3 * row.seconds:.2f}", row.note

    HEAD = ("method", "epsilon", "at least", "ms", "")

    def __str__(self) -> str:
        lines = [self.HEAD, *self.cells()]
        widths = [max(len(line[i]) for line in lines) for i in range(4)]
        rows = []
        for method, *numbers, note in lines:
            cells = [cell.rjust(width) for cell, width in zip(numbers, widths[1:], strict=True)]
            rows.append("  ".join((method.ljust(widths[0]), *cells, note)))
        return "\n".join(row.rstrip() for row in (self.title, *rows))


def compare(event: Event, *, delta: Exact) -> Comparison:
    """Every method's epsilon of this event at delta, tightest first, with the time taken.

    >>> from sfumato import compare, events
    >>> compare(events.Gaussian(multiplier=2), delta=1e-5).rows[0].method
    'Gaussian curve'
    """
    checks.instance(event, Event, "event", "an event")
    own = checks.delta(delta)
    rows = [_row(name, method, event, own) for name, method in METHODS.items()]
    return Comparison(event, own, tuple(sorted(rows, key=_order)))


def _order(row: Row) -> tuple[int, float]:
    if row.epsilon is None:
        return 2, 0.0
    return (0 if row.guarantee else 1), row.epsilon


def _row(name: str, method: Callable[[Event, Fraction], Any], event: Event, delta: Fraction) -> Row:
    began = time.perf_counter()
    try:
        result = method(event, delta)
    except (UnsupportedEventError, ArgumentError) as problem:
        return Row(name, None, None, False, time.perf_counter() - began, f"cannot: {problem}")
    took = time.perf_counter() - began
    if isinstance(result, Interval):
        return Row(name, result.upper, result.lower, True, took)
    if hasattr(result, "estimate"):
        return Row(name, float(result.estimate), None, False, took, _NO_GUARANTEE)
    upper = float_above(result) if isinstance(result, Fraction) else float(result)
    return Row(name, upper, None, True, took)


def _module(name: str) -> Any:
    return import_module(f".{name}", __package__)


def _gaussian(event: Event, delta: Fraction) -> Fraction:
    def mu_squared(single: Event) -> Fraction:
        if isinstance(single, Gaussian):
            return 1 / single.multiplier**2
        raise UnsupportedEventError(f"{type(single).__name__} is not Gaussian noise alone")

    return _module("gdp").least_epsilon(total(event, mu_squared), delta)


def _optimal(event: Event, delta: Fraction) -> Interval | float:
    """Nothing is taken to be known of the mechanisms but their (epsilon, delta), and these must be the same. The lower
    end is that of the worst such mechanism: where more is known of the event, it is no lower bound for it."""
    promises: Counter[tuple[Fraction, Fraction]] = Counter()
    worst = True
    for single, times in _singles(event):
        worst = worst and isinstance(single, Pure | Approximate)
        if isinstance(single, Approximate):
            promises[single.epsilon, single.delta] += times
        elif isinstance(single, PureEvent):
            promises[single.epsilon, Fraction(0)] += times
        else:
            raise UnsupportedEventError(f"{type(single).__name__} is not known by one (epsilon, delta)")
    if len(promises) > 1:
        raise UnsupportedEventError("the mechanisms have different (epsilon, delta): the formula is for equal ones")
    ((epsilon0, delta0), times) = promises.popitem()
    if not epsilon0:
        raise UnsupportedEventError("nothing but failures: there is nothing to compose")
    interval: Interval = _module("optimal").epsilon(epsilon0=epsilon0, delta0=delta0, times=times, delta=delta)
    return interval if worst else interval.upper


def _singles(event: Event, times: int = 1) -> Iterator[tuple[Event, int]]:
    if isinstance(event, Sequence):
        for part in event.events:
            yield from _singles(part, times)
    elif isinstance(event, Repeat):
        yield from _singles(event.event, times * event.times)
    elif isinstance(event, Partition):
        raise UnsupportedEventError("a partition is not a list of equal mechanisms")
    else:
        yield event, times


def _concentrated(event: Event, delta: Fraction) -> Fraction:
    zcdp = _module("zcdp")
    return zcdp.epsilon(zcdp.rho(event), delta)


def _concentrated_old(event: Event, delta: Fraction) -> float:
    rho = float_above(_module("zcdp").rho(event))
    return float(_module("textbook").zcdp_epsilon(rho=rho, delta=delta) * (1 + 1e-12))  # a plain float64 formula


METHODS: dict[str, Callable[[Event, Fraction], Any]] = {
    "privacy loss": lambda event, delta: _module("pld").epsilon(event, delta),
    "Gaussian curve": _gaussian,
    "optimal composition": _optimal,
    "Rényi": lambda event, delta: _module("renyi").epsilon(event, delta),
    "zCDP": _concentrated,
    "zCDP, older conversion": _concentrated_old,
    "pure sum": lambda event, delta: _module("pure").epsilon(event),
    "basic composition": lambda event, delta: _module("advanced").over(event, delta=delta, rule="basic"),
    "strong composition": lambda event, delta: _module("advanced").over(event, delta=delta, rule="strong"),
    "closed-form composition": lambda event, delta: _module("advanced").over(event, delta=delta, rule="closed"),
    "Rényi, older conversion": lambda event, delta: _module("moments").epsilon(event, delta=delta, orders="best"),
    "moments accountant": lambda event, delta: _module("moments").epsilon(event, delta=delta),
    "central limit": lambda event, delta: _module("clt").epsilon(event, delta=delta),
}
"""What can price an event, by name. Only the central limit is no guarantee."""
