"""Events and other records as JSON: read or refused; and what is read has a price, or is refused, within a time.

An input is the JSON. One that begins with a zero byte is a list of choices instead, from which an event is made: the
numbers are extreme, and the nesting is any.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from sfumato import record
from sfumato.accounting import compare, price
from sfumato.accounting.filters import Budget, Filter
from sfumato.accounting.interval import Interval
from sfumato.cli.work.event_words import words
from sfumato.errors import RecordError
from sfumato.events import Event
from tests.fuzz.watching import Choices, Finding, attempt

EPSILONS: tuple[Any, ...] = (1, 0.5, 0.1, "1/3", 1e-9, 10_000, "1/1000000000", 30, 700, 800, 0.001, 0, -1, None, True)
SIZES: tuple[Any, ...] = (
    1, 2, 0.5, 1e-100, 1e100, "1/3", 1e-20, 1e20, 1e-8, 100, 0.01,
    "999999999999999999999/1000000000000000000001", 10**100
)  # fmt: skip
RATES: tuple[Any, ...] = (0.01, 1, 0.5, 1e-100, 1e-12, "999999999/1000000000", "1/3", 2)
WHOLES: tuple[Any, ...] = (1, 2, 10, 1000, 10**6, 10**9, 2**53, 2**53 + 1, 0, -1, 1.0, "1", 10**400)
SLOW = 30.0  # seconds: prices of the oddest events take ten
DELTAS = (Fraction(1, 10**6), Fraction(1, 10**100), Fraction(999, 1000), Fraction(1, 2), Fraction(1, 10**18))
RELATIONS = ("add-remove", "add-remove", "add-remove", "replace", "zero-out", "other")
LEAVES: dict[str, dict[str, tuple[Any, ...]]] = {
    "gaussian/1": {"multiplier": SIZES}, "laplace/1": {"epsilon": EPSILONS}, "pure/1": {"epsilon": EPSILONS},
    "discrete-laplace/1": {"epsilon": EPSILONS, "shift": WHOLES}, "exponential/1": {"epsilon": EPSILONS},
    "discrete-gaussian/1": {"variance": SIZES, "shift_squared": WHOLES, "coordinates": WHOLES},
    "randomized-response/1": {"epsilon": EPSILONS, "categories": WHOLES}, "zero-concentrated/1": {"rho": SIZES},
    "approximate/1": {"epsilon": EPSILONS, "delta": RATES}, "permute-and-flip/1": {"epsilon": EPSILONS},
}  # fmt: skip
BUDGETS = {"epsilon": Budget(epsilon=1), "delta": Budget(epsilon=10, delta=1e-6), "rho": Budget(rho=1)}
_DEEPEST = 5


def _number(value: Any) -> Any:
    return {"is": "exact", "value": value} if isinstance(value, str) and "/" in value else value


def _event(choices: Choices, relation: str, depth: int = 0) -> dict[str, Any]:
    kind = choices.byte() % 12
    if depth >= _DEEPEST or kind < 4:
        name = choices.of(tuple(LEAVES))
        fields = {field: _number(choices.of(values)) for field, values in LEAVES[name].items()}
        return {"is": name, "relation": relation, **fields}
    if kind == 4:
        return {"is": "repeat/1", "event": _event(choices, relation, depth + 1), "times": choices.of(WHOLES)}
    if kind in (5, 6):
        parts = [_event(choices, relation, depth + 1) for _ in range(1 + choices.byte() % 3)]
        return {"is": choices.of(("sequence/1", "bundle/1")), "events": parts}
    if kind == 7:
        parts = [_event(choices, relation, depth + 1) for _ in range(1 + choices.byte() % 3)]
        return {"is": "partition/1", "column": "ward", "events": parts}
    if kind == 8:
        inner = _event(choices, relation, depth + 1)
        if relation == "replace":
            return {"is": "without-replacement/1", "event": inner, "sample": choices.of(WHOLES), "population": 10**6}
        return {"is": "poisson/1", "event": inner, "rate": _number(choices.of(RATES))}
    if kind == 9:
        inner = _event(choices, relation, depth + 1)
        if relation == "replace":
            return {"is": "shuffled/1", "event": inner, "users": choices.of(WHOLES)}
        return {
            "is": "random-allocation/1",
            "event": inner,
            "steps": choices.of(WHOLES),
            "picks": choices.of((1, 1, 2)),
        }
    if kind == 10:
        inner = _event(choices, relation, depth + 1)
        if choices.byte() % 2:
            return {"is": "best-of/1", "event": inner, "mean": choices.of(SIZES)}
        return {"is": "best-of/1", "event": inner, "shape": choices.of((1, 0, -0.5, 3)), "stop": choices.of(RATES)}
    return {
        "is": "gaussian-mixture/1", "relation": relation, "shifts": [0, _number(choices.of(SIZES))],
        "weights": [_number({"is": "exact", "value": "1/2"}), {"is": "exact", "value": "1/2"}],
    }  # fmt: skip


def json_of(data: bytes) -> bytes:
    """The JSON that an input stands for."""
    if data[:1] != b"\0":
        return data
    choices = Choices(data[1:])
    relation = choices.of(RELATIONS)
    return json.dumps(_event(choices, relation)).encode()


def fuzz_record(data: bytes) -> None:
    """Any record: read and written again, it is the same; or it is refused."""
    found = attempt("parse", lambda: record.parse(json_of(data)))
    if isinstance(found, BaseException):
        if not isinstance(found, RecordError):
            raise Finding(f"parse: a {type(found).__name__} instead of a RecordError: {str(found)[:200]}")
        return
    text = attempt("canonical", lambda: record.canonical(found))
    if isinstance(text, bytes) and attempt("again", lambda: record.canonical(record.parse(text))) != text:
        raise Finding(f"read again, it is another: {text[:300]!r}")


def fuzz_events(data: bytes) -> None:
    """An event: every accountant prices it or says why not, within a time; so do the members of an account. Which of
    them is asked, and at which delta, the bytes decide: all of them for each input would be too slow."""
    event = attempt("parse", lambda: record.parse(json_of(data), Event), allowed=(RecordError,))
    if not isinstance(event, Event):
        return
    shown = record.canonical(event)[:600].decode()
    attempt(f"words of {shown}", lambda: words(event))
    delta = DELTAS[len(data) % len(DELTAS)]
    ways: dict[str, Callable[[], Any]] = {
        name: lambda method=method: method(event, delta) for name, method in compare.METHODS.items()
    }
    for name, budget in BUDGETS.items():
        ways[f"the charge to {name}"] = lambda budget=budget: Filter.of(budget).spend(event, delta)
    ways |= {
        "epsilon": lambda: price.epsilon(event, delta=delta),
        "epsilon at 0": lambda: price.epsilon(event),
        "delta": lambda: price.delta(event, epsilon=1),
    }
    name = tuple(ways)[zlib.crc32(data) % len(ways)]
    found = attempt(f"{name} at {float(delta)} of {shown}", ways[name], seconds=SLOW)
    if isinstance(found, Interval) and not 0 <= found.lower <= found.upper:
        raise Finding(f"the price is from {found.lower} to {found.upper}: {shown}")
