"""N5: numbers that are no budgets, limits, bounds, keys or shares are refused before anything is read or charged, in
SQL and its options in comments, and wherever a mechanism, a bound or an account takes one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from sfumato import bounds
from sfumato.accounting.filters import Budget
from sfumato.errors import SfumatoError
from sfumato.mechanisms.exponential import Exponential
from sfumato.mechanisms.gaussian import Gaussian
from sfumato.mechanisms.laplace import Laplace
from sfumato.query import Limits
from sfumato.schema import category, key, real
from sfumato.units import Unit

from ..mutants import queries
from .asking import LIBRARY, Asks, one_table
from .verdict import Verdict

USER = Unit("user:u")
SCHEMA = one_table({"u": key(), "x": real(0, 50), "g": key(), "w": category(["a", "b"])}, "u")
TEXT = "SELECT g, COUNT(*) AS n, SUM(x) AS s, AVG(x) AS m, COUNT(DISTINCT w) AS k, MEDIAN(x) AS d FROM t GROUP BY g"
BAD: tuple[Any, ...] = (0, -1, math.nan, math.inf, -math.inf, 1e-320, "1", True, [], b"1", 1j, object(), 10**400)
COMMENTS = (
    "epsilon=", "epsilon=nan", "epsilon=inf", "epsilon=1e999", "epsilon=0", "rows=nan", "rows=-1", "bounds.s=1..nan",
    "bounds.s=5..1", "keys.g=", "no_such=1", "epsilon=1=2", "epsilon=1, epsilon=2", "keys.g=a|a", "shares.rows=0",
    "accuracy.n=-1", "floor=maybe", "reach.s=0", "limits=3",
)  # fmt: skip


def cases() -> Iterator[tuple[str, dict[str, Any]]]:
    """What is given, and the options that give it."""
    for bad in BAD:
        yield from {
            f"epsilon={bad!r}": {"epsilon": bad},
            f"rho={bad!r}": {"epsilon": None, "rho": bad},
            f"advice={bad!r}": {"limits": None, "advice": bad},
            f"rows={bad!r}": {"limits": {"rows": bad}},
            f"keys limit={bad!r}": {"limits": {"keys": bad}},
            f"values={bad!r}": {"limits": {"values": bad}},
            f"most_keys={bad!r}": {"limits": {"most_keys": bad}},
            f"reach={bad!r}": {"limits": {"reach": {"s": bad}}},
            f"delta={bad!r}": {"delta": bad},
            f"bounds={bad!r}": {"bounds": {"s": bad}},
            f"both bounds={bad!r}": {"bounds": {"s": (bad, bad)}},
            f"keys={bad!r}": {"keys": {"g": bad}},
            f"shares={bad!r}": {"shares": {"rows": bad}},
            f"accuracy={bad!r}": {"epsilon": None, "accuracy": {"n": bad}},
            f"limits={bad!r}": {"limits": bad},
            f"unit={bad!r}": {"unit": bad},
        }.items()
        if bad not in (0, -1):
            yield f"highest={bad!r}", {"bounds": {"s": (1, bad)}}
    yield "delta=1", {"delta": 1}
    yield "lower above upper", {"bounds": {"s": (5, 1)}}
    yield "an unknown limit", {"limits": {"no_such": 1}}
    yield "keys twice", {"keys": {"g": ["a", "a"]}}
    yield "nothing to spend", {"epsilon": None}
    yield "two budgets", {"rho": 1}


def makes() -> Iterator[tuple[str, Callable[[], object]]]:
    """The same without SQL: what is made, and how."""
    one, words = bounds.count(Unit()), bounds.histogram("w", ("a", "b"), Unit())
    for bad in BAD:
        attempts: dict[str, Callable[[], object]] = {
            f"Laplace({bad!r})": partial(Laplace, query=one, epsilon=bad),
            f"Gaussian({bad!r})": partial(Gaussian, query=one, epsilon=bad, delta=1e-6),
            f"Gaussian, delta {bad!r}": partial(Gaussian, query=one, epsilon=1, delta=bad),
            f"Gaussian, multiplier {bad!r}": partial(Gaussian, query=one, multiplier=bad),
            f"Exponential({bad!r})": partial(Exponential, query=words, epsilon=bad),
            f"Budget({bad!r})": partial(Budget, epsilon=bad),
            f"Budget, rho {bad!r}": partial(Budget, rho=bad),
            f"from 1 to {bad!r}": partial(bounds.clipped_sum, "x", 1, bad, Unit()),
            f"per unit {bad!r}": partial(bounds.count, USER, per_unit=bad),
        }
        yield from attempts.items()
        if bad != 0:  # an account without a delta is one
            yield f"Budget, delta {bad!r}", partial(Budget, epsilon=1, delta=bad)
    yield "Budget, delta 1", partial(Budget, epsilon=1, delta=1)
    yield "Gaussian, delta 1", partial(Gaussian, query=one, epsilon=1, delta=1)
    yield "from 5 to 1", partial(bounds.clipped_sum, "x", 5, 1, Unit())


def attack(asks: Asks = LIBRARY) -> Verdict:
    taken: list[str] = []
    wrong: list[str] = []
    tried = 0
    for name, arguments in cases():
        tried += 1
        options = {"unit": USER, "epsilon": 1, "delta": 1e-6, "limits": Limits(), **arguments}
        _try(asks, TEXT, options, name, taken, wrong)
    for comment in COMMENTS:
        spent: dict[str, Any] = {} if comment.startswith(("epsilon", "accuracy")) else {"epsilon": 1}
        tried += 1
        _try(asks, f"{TEXT} -- sfumato: {comment}", {"unit": USER, "delta": 1e-6, **spent}, comment, taken, wrong)
    for name, make in makes():
        tried += 1
        _made(make, name, taken, wrong)
    words = f"{len(taken)} of {tried} were taken {taken[:3]}; {len(wrong)} ended in another error {wrong[:3]}."
    return Verdict("N5", bool(taken or wrong), words, {"taken": len(taken), "wrong": len(wrong), "tried": tried})


def _try(asks: Asks, text: str, options: dict[str, Any], name: str, taken: list[str], wrong: list[str]) -> None:
    _made(lambda: asks(text, SCHEMA, **options), name, taken, wrong)


def _made(make: Callable[[], object], name: str, taken: list[str], wrong: list[str]) -> None:
    try:
        make()
        taken.append(name)
    except SfumatoError:
        return
    except Exception as error:
        wrong.append(f"{name}: {type(error).__name__}")


CONTROL: Asks = queries.as_written
