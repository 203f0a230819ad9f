"""What several test files share: spies, made-up plans, and neighbours counted by hand."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, TypeVar

from hypothesis import settings

from sfumato import Budget, MemoryLedger, Private, Schema, Unit, bounds, events
from sfumato import mechanisms as m
from sfumato.accounting.budget import common_shares
from sfumato.accounting.filters import Failures, PlanSum
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.stores.base import Account, Filed
from sfumato.noise import Noise, SeededBits
from sfumato.openings import D, Opening
from sfumato.plan import Plan, Receipt, Run
from sfumato.record import record
from sfumato.rows import Rows
from sfumato.schema import category, key, real

T = TypeVar("T")

SECRET = "SECRET-4711"

few = settings(deadline=None, max_examples=50)
many = settings(deadline=None, max_examples=200)
soak = settings(deadline=None, max_examples=4000)


def seeded(seed: int = 7) -> Run:
    return Run(Noise(SeededBits(seed)))


def read(schema: Schema, unit: Unit, **columns: Any) -> Rows:
    return Rows.read(schema.table(), columns, unit)


def laplace(epsilon: Any = 1, unit: Unit | None = None) -> m.Laplace:
    """A count: the plainest plan."""
    return m.Laplace(query=bounds.count(unit or Unit()), epsilon=epsilon)


@record("test-bite/1")
@dataclass(frozen=True)
class Bite(Plan[Rows, Any]):
    """A plan with any event and any delta."""

    cost: Any
    fails: Any
    unit = Unit()

    @property
    def event(self) -> Any:
        return self.cost

    @property
    def delta(self) -> Any:
        return self.fails

    def _run(self, rows: Any, run: Any) -> Any:
        raise NotImplementedError


PATIENTS = Schema.of(
    patient=key(), age=real(0, 120), ward=category(["north", "south"], constant=True), unit="patient", rows=10_000
)
BY_PATIENT = Unit("user:patient")
AGES = {"patient": [1, 1, 2, 3], "age": [30.5, 31.5, 64.25, 99.0], "ward": ["north", "north", "south", "north"]}


class Columns(Mapping[str, Any]):
    """Columns that count how often they are read."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self._columns = dict(columns)
        self.reads = 0

    def __getitem__(self, name: str) -> Any:
        self.reads += 1
        return self._columns[name]

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


class SpyLedger(MemoryLedger):
    """A ledger that writes down what it is asked, in a log it may share."""

    def __init__(self, accounts: Mapping[str, Budget], log: list[str] | None = None) -> None:
        super().__init__(accounts)
        self.log: list[str] = [] if log is None else log

    def snapshot(self, ask: Callable[[], T]) -> T:
        return super().snapshot(self._begun_anew(ask))

    def transaction(self, act: Callable[[], T]) -> T:
        return super().transaction(self._begun_anew(act))

    def _begun_anew(self, act: Callable[[], T]) -> Callable[[], T]:
        """What was undone is not written down."""
        length = len(self.log)

        def begun() -> T:
            del self.log[length:]
            return act()

        return begun

    def answer(self, *args: Any, **more: Any) -> Any:
        self.log.append("answer")
        return super().answer(*args, **more)

    def quote(self, *args: Any, **more: Any) -> bool:
        self.log.append("quote")
        return super().quote(*args, **more)

    def spend(self, *args: Any, **more: Any) -> Receipt:
        self.log.append("spend")
        return super().spend(*args, **more)

    def open(self, receipt: Receipt) -> None:
        self.log.append("open")
        super().open(receipt)

    def settle(self, receipt: Receipt, outcome: str, answer: bytes | None = None) -> None:
        self.log.append(f"settle {outcome}")
        super().settle(receipt, outcome, answer)

    def hold(self, *args: Any, **more: Any) -> Receipt:
        self.log.append("hold")
        return super().hold(*args, **more)

    def draw(self, *args: Any, **more: Any) -> None:
        self.log.append("draw")
        super().draw(*args, **more)

    def close(self, receipt: Receipt) -> None:
        self.log.append("close")
        super().close(receipt)


class SpyPrivate(Private):
    log: list[str]

    def _open(self, receipt: Receipt, opens: Opening[D], empty: D | None = None) -> D:
        self.log.append("_open")
        return super()._open(receipt, opens, empty)


@record("test-hooked/1")
@dataclass(frozen=True, kw_only=True)
class Hooked(Plan[Rows, Any]):
    """A plan whose run is the test's own function, kept by tag."""

    tag: str
    epsilon: Any = Fraction(1, 10)
    protects: Unit = BY_PATIENT
    hooks: ClassVar[dict[str, Callable[[Rows, Run], Any]]] = {}

    @property
    def unit(self) -> Unit:
        return self.protects

    @property
    def event(self) -> events.Event:
        return events.Pure(epsilon=self.epsilon, relation=self.protects.change)

    def _run(self, rows: Rows, run: Run) -> Any:
        return self.hooks[self.tag](rows, run)


def hooked(tag: str, hook: Callable[[Rows, Run], Any], **fields: Any) -> Hooked:
    Hooked.hooks[tag] = hook
    return Hooked(tag=tag, **fields)


def account_of(ledger: Ledger, name: str) -> Account:
    with ledger._store.reading() as book:
        found = book.account(name)
    assert found is not None
    return found


def filed_in(ledger: Ledger) -> list[Filed]:
    """Every receipt, as it stands."""
    with ledger._store.reading() as book:
        return [filed for _, filed in book.receipts()]


def spent(ledger: Ledger, account: str) -> list[Fraction]:
    """What each open member of the account has spent; a closed member counts its whole limit."""
    filter_ = account_of(ledger, account).filter
    state = {type(member): member.spent for member in filter_.open}
    return [state.get(type(member), member.limit) for member in filter_.budget.members()]


def delta_spent(ledger: Ledger, account: str) -> Fraction:
    """What the plans' sum has taken of delta, with what failed by itself where that is counted apart."""
    members = account_of(ledger, account).filter.open
    apart = next((member.spent for member in members if isinstance(member, Failures)), Fraction(0))
    return next((member.delta_spent + apart for member in members if isinstance(member, PlanSum)), Fraction(0))


def common(epsilon: Any, delta: Any, *, raisable: bool = False) -> Budget:
    """As budgets were stored before failures were counted apart, and are read for ever."""
    sizes = Budget(epsilon=epsilon, delta=delta)
    return Budget(epsilon, delta, shares=common_shares(sizes.epsilon, sizes.delta), raisable=raisable)


def everything_said(problem: BaseException) -> str:
    """All an exception shows or carries: its text, its traceback, and its chain, hidden links too."""
    seen: set[int] = set()
    texts: list[str] = []
    todo: list[BaseException | None] = [problem]
    while todo:
        each = todo.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        texts += ["".join(traceback.format_exception(each)), repr(each), *map(repr, each.args)]
        texts += getattr(each, "__notes__", [])
        todo += [each.__cause__, each.__context__]
    return "\n".join(texts)
