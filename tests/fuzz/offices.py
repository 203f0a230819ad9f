"""What the state machine plays with: data with a secret in it, plans of many kinds with a known price, and accounts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sfumato import Budget, Private, Schema, Unit, bounds, events, partition, repeat, reserve, sequence
from sfumato import mechanisms as m
from sfumato.plan import Plan, Run
from sfumato.query import Limits, sql
from sfumato.record import record
from sfumato.rows import Rows
from sfumato.schema import category, key, real
from sfumato.tidy import Tidy
from tests.helpers import SECRET

UNIT = Unit("user:patient")
WARDS = ("north", "south")
SCHEMA = Schema.of(
    patient=key(), age=real(0, 120), ward=category(WARDS, constant=True), unit="patient", rows=10_000
)  # fmt: skip
ROWS = {
    "patient": [SECRET, SECRET, "b", "c"],
    "age": [30.5, 31.5, 64.25, 99.0],
    "ward": ["north", "north", "south", "north"],
}
COUNT = bounds.count(UNIT)
AGES = bounds.clipped_sum("age", 0, 120, UNIT, per_unit=2)
TREE: dict[str, str | None] = {
    "org": None,
    "clinic": "org",
    "school": "org",
    "team": None,
    "ana": "team",
    "ben": "team",
}
LIMITS: dict[str, Any] = {"org": 4, "clinic": 3, "school": 3, "team": 3, "ana": 2, "ben": 1}
DATA = ("clinic", "school")
PEOPLE = ("ana", "ben", "team")
SIZES = tuple(Fraction(1, n) for n in (2, 5, 10, 20, 50))


def private(name: str, version: str) -> Private:
    return Private(name, ROWS, unit=UNIT, schema=SCHEMA, version=version)


def path_of(person: str, data: str) -> set[str]:
    """Every account that pays: those above are found by hand here."""
    found: set[str] = set()
    for name in (person, data):
        each: str | None = name
        while each is not None:
            found.add(each)
            each = TREE[each]
    return found


@record("test-fuzz-hooked/1")
@dataclass(frozen=True, kw_only=True)
class Wild(Plan[Rows, Any]):
    """A plan whose run does what its field says: answers, raises with data in the text, interrupts, exits."""

    does: str
    epsilon: Any
    number: int = 0

    @property
    def unit(self) -> Unit:
        return UNIT

    @property
    def event(self) -> events.Event:
        return events.Pure(epsilon=self.epsilon)

    def _run(self, rows: Rows, run: Run) -> Any:
        secret = f"{SECRET} {rows.table}"
        if self.does == "raise":
            raise ValueError(secret)
        if self.does == "interrupt":
            raise KeyboardInterrupt(secret)
        if self.does == "exit":
            raise SystemExit(secret)
        if self.does == "chained":
            try:
                raise KeyError(secret)
            except KeyError as problem:
                raise RuntimeError(secret) from problem
        return object() if self.does == "no value" else self.number


@record("test-fuzz-paced/1")
@dataclass(frozen=True, kw_only=True)
class Paced(Plan[Rows, Any]):
    """Equal steps, each of a known price. It runs `until` of them and then ends, or fails."""

    epsilon: Any
    times: int
    until: int
    fails: bool = False

    @property
    def unit(self) -> Unit:
        return UNIT

    @property
    def event(self) -> events.Event:
        return events.Repeat(events.Pure(epsilon=self.epsilon), self.times)

    @property
    def steps(self) -> int:
        return self.times

    def _run(self, rows: Rows, run: Run) -> Any:
        own = run.steps_of(self)
        while own.left and own.drawn < self.until:
            own.draw(1)
        if self.fails:
            raise ValueError(SECRET)
        return own.drawn


def _twice(run: Any) -> float:
    return float(run.release(m.Laplace(query=COUNT, epsilon=Fraction(1, 100))))


KINDS: dict[str, Callable[[Fraction], Plan[Any, Any]]] = {
    "laplace": lambda size: m.Laplace(query=COUNT, epsilon=size),
    "sum": lambda size: m.Laplace(query=AGES, epsilon=size),
    "geometric": lambda size: m.Geometric(query=COUNT, epsilon=size),
    "exponential": lambda size: m.Exponential(query=bounds.votes("ward", WARDS, UNIT), epsilon=size),
    "tidy": lambda size: Tidy(plan=m.Laplace(query=bounds.histogram("ward", WARDS, UNIT), epsilon=size)),
    "sequence": lambda size: sequence(
        rows=m.Laplace(query=COUNT, epsilon=size / 2), age=m.Laplace(query=AGES, epsilon=size / 2)
    ),
    "repeat": lambda size: repeat(m.Laplace(query=COUNT, epsilon=size / 4), 4),
    "partition": lambda size: partition("ward", WARDS, m.Laplace(query=COUNT, epsilon=size)),
    "reserve": lambda size: reserve(_twice, unit=UNIT, budget=Budget(epsilon=size)),
    "quantile": lambda size: m.Quantile(
        column="age", lower=0, upper=120, q=0.5, epsilon=size, protects=UNIT, per_unit=1
    ),
    "wild": lambda size: Wild(does="answer", epsilon=size, number=7),
}  # fmt: skip
ENGINE: dict[str, Callable[[Fraction], Plan[Any, Any]]] = {
    "sql": lambda size: sql(
        "SELECT COUNT(*) AS n FROM data", SCHEMA, unit=UNIT, epsilon=size, limits=Limits(rows=2)
    )
}  # fmt: skip


def gate(size: Fraction) -> m.SparseVector:
    return m.SparseVector(epsilon=size, protects=UNIT, threshold=2)


def loop(size: Fraction) -> Plan[Any, Any]:
    return reserve(unit=UNIT, budget=Budget(epsilon=size))
