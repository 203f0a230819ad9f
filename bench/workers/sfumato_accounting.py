"""Our accountant, asked and timed exactly as the peers are: a process of its own, JSON in, JSON out (see jobs.py)."""

import gc
import importlib
import statistics
import sys
import time
import tracemalloc
from fractions import Fraction

import jobs

from sfumato import events, record
from sfumato.accounting import pld
from sfumato.accounting.filters import Budget, Filter

ONE_IN_A_BILLION = Fraction(1, 10**9)


class NotThereYetError(Exception):
    """A part of sfumato that this version has not got."""


def part(module: str, name: str) -> object:
    try:
        return getattr(importlib.import_module(f"sfumato.accounting.{module}"), name)
    except (ImportError, AttributeError):
        raise NotThereYetError(f"sfumato.accounting.{module}.{name}") from None


def forget() -> None:
    """Whatever the package remembers of earlier calls, in any of its modules."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "sfumato":
            for value in list(vars(module).values()):
                getattr(value, "cache_clear", lambda: None)()


def decimal(value: float) -> Fraction:
    return Fraction(repr(value))


def ends(found: object) -> dict:
    return {"lower": found.lower, "upper": found.upper}


def epsilon(event: dict, delta: float, accuracy: float | None = None) -> dict:
    """By privacy loss, at the accuracy asked for or the library's own."""
    asked = {} if accuracy is None else {"accuracy": accuracy}
    return ends(pld.epsilon(record.decode(event, events.Event), decimal(delta), **asked))


def as_tight(event: dict, delta: float, upper: float, accuracies: list) -> dict:
    """The first of the accuracies at which our upper end is no higher than theirs; 0 is the library's own."""
    for accuracy in accuracies:
        found = epsilon(event, delta, accuracy or None)
        if found["upper"] <= upper:
            return {"accuracy": accuracy}
    raise ValueError(f"upper end {found['upper']:.8g} above {upper:.8g} at every accuracy")


def price(event: dict, delta: float) -> dict:
    """The public door, which picks the method itself."""
    return ends(part("price", "epsilon")(record.decode(event, events.Event), delta=decimal(delta)))


def calibrate(epsilon: float, delta: float, rate: float, times: int, tolerance: float) -> dict:
    def family(multiplier: float) -> events.Event:
        gaussian = events.Gaussian(multiplier=multiplier)
        sampled = gaussian if rate == 1 else events.Poisson(gaussian, rate)
        return sampled if times == 1 else events.Repeat(sampled, times)

    found = part("calibrate", "calibrate")(family, epsilon=epsilon, delta=delta, tolerance=tolerance)
    return {"sigma": float(found)}


def shuffled(epsilon: float, users: int, delta: float, kind: str) -> dict:
    if kind == "closed form":
        return {"upper": part("amplify.shuffle", "closed_form")(local=epsilon, users=users, delta=delta)}
    local = events.Pure(epsilon=epsilon, relation="replace")
    if kind == "two values":
        local = events.RandomizedResponse(epsilon=epsilon, categories=2, relation="replace")
    return ends(part("amplify.shuffle", "epsilon")(events.Shuffled(local, users), decimal(delta)))


def one_more(spends: int) -> dict:
    """CPU seconds of one more spend on a filter that has seen so many, of a few kinds: a known event, a new one."""
    kinds = (
        events.Laplace(epsilon=Fraction(1, 1000)),
        events.Gaussian(multiplier=300),
        events.RandomizedResponse(epsilon=Fraction(1, 2000), categories=4),
        events.Pure(epsilon=Fraction(1, 997)),
    )
    state = Filter.of(Budget(epsilon=9000, delta=Fraction(1, 10)))
    for number in range(spends):
        state = state.spend(kinds[number % len(kinds)], ONE_IN_A_BILLION)
    laplace = [events.Laplace(epsilon=Fraction(1, 1009 + 2 * number)) for number in range(5)]
    gaussian = [events.Gaussian(multiplier=Fraction(2_000_003 + 2 * number, 7001)) for number in range(5)]
    return {
        "repeated": max(_spending(state, [kind] * 5) for kind in kinds),
        "distinct": max(_spending(state, kind) for kind in (laplace, gaussian)),
    }


def _spending(state: Filter, several: list[events.Event]) -> float:
    """The median over them, each as the one more."""
    seconds = []
    for event in several:
        start = time.process_time()
        state.spend(event, ONE_IN_A_BILLION)
        seconds.append(time.process_time() - start)
    return statistics.median(seconds)


def memory(event: dict, delta: float) -> dict:
    """The most bytes that arrays and objects held at once during one price."""
    forget()
    gc.collect()
    tracemalloc.start()
    pld.epsilon(record.decode(event, events.Event), decimal(delta))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return {"bytes": peak}


if __name__ == "__main__":
    jobs.serve(
        {
            "epsilon": epsilon,
            "as_tight": as_tight,
            "price": price,
            "calibrate": calibrate,
            "shuffled": shuffled,
            "one_more": one_more,
            "memory": memory,
        },
        forget,
    )
