"""The waist: a Plan is public fields, the Event they cost, and the code that runs.

Fields are public, arguments are sensitive: everything in a plan's fields may be printed and goes into the ledger; data
reaches a plan only as the argument of `_run`, which only a Curator calls, and only with a Receipt. Cost and code are
read from the same fields, so they cannot disagree.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from . import checks, contributions, questions, record
from .accounting import approximate
from .accounting.filters import Budget, Filter
from .accounting.price_text import event_text as event_text  # plans that tell of several events have it from here
from .bounds import Bounded
from .errors import DataError, PlanError, ended_by, guarded
from .events import Event
from .exhibits import Exhibit
from .noise import Noise
from .process import Home
from .rows import Rows
from .runs import Bulk
from .schema import Column, Schema, Table, TensorColumn
from .units import Unit

if TYPE_CHECKING:
    from .openings import Opening

D = TypeVar("D")
R = TypeVar("R")
T = TypeVar("T")
_ALPHA = 0.05  # of the error bars that are shown
REHEARSED, MOST_REHEARSED = 300, 100_000
"""Made-up rows: of most plans, and where a threshold asks for more."""


def rehearsed_above(units: float, groups: int) -> int:
    """How many made-up rows it takes until groups of so many units come out, where the rows that share common keys are
    in so many groups. A unit that is in several counts for less in each, some cells are awkward, and limits that an
    adviser chooses may be wide: ten times."""
    return int(min(max(10 * units * groups, REHEARSED), MOST_REHEARSED))


class Run:
    """What a running plan may touch: the noise, and, inside a reserve, children that draw on that reserve.

    A child that fails on the data's side ends the run: whether it failed is one bit, and no loop may collect more.

    A plan with steps begins with `run = run.steps_of(self)` and calls `run.draw(k)` before each k steps. Here, where
    the plan was charged whole or runs on made-up rows, that only counts.
    """

    def __init__(
        self,
        noise: Noise,
        *,
        rows: Rows | None = None,
        reserve: Filter | None = None,
        rehearsal: bool = False,
        steps: int | None = None,
    ) -> None:
        self.noise = noise
        self.rehearsal = rehearsal
        self._steps, self._taken = steps, 0
        self.ended = "answered"
        self._rows = rows
        self._reserve = reserve
        self._lock = threading.Lock()  # a body may ask from several threads
        self._home = Home()

    @property
    def failed(self) -> bool:
        """Did a child end without an answer?"""
        return self.ended != "answered"

    def release(self, child: Plan[Rows, Any]) -> Any:
        """Run a child plan on the same data, paid from this run's reserve; refused where the reserve is short."""
        if self._reserve is None or self._rows is None:
            raise PlanError("this plan has no reserve: only a plan made by reserve(...) may release children")
        if child.unit != self._rows.unit:
            raise PlanError(f"the child protects [{child.unit}], the reserve protects [{self._rows.unit}]")
        child.check(self._rows.table)
        if child.opens is not _rows():
            raise PlanError(f"the children of a reserve read rows, others {child.opens.does}: release it by itself")
        if child.supervised is not None:
            raise PlanError("a reserve without a body is for curator.supervise: it cannot be a child")
        if child.grade != "exact":
            raise PlanError("the receipt of a reserve says exact noise, and this child's is not: release it by itself")
        self._at_home()
        if self.failed:
            raise DataError
        self._pay(child)
        return child.finish(self._run(child, self._rows))

    def steps_of(self, plan: Plan[Any, Any]) -> Run:
        """The run of this plan's steps alone: whatever else shares the run counts its own."""
        return Run(self.noise, rehearsal=self.rehearsal, steps=plan.steps)

    @property
    def drawn(self) -> int:
        """How many steps were drawn so far, also by a run that this one goes on with."""
        return self._taken

    @property
    def left(self) -> int:
        """How many steps can still be drawn."""
        return self._known() - self._taken

    def draw(self, steps: int = 1) -> None:
        """Pay for the next steps, before any of them runs. A step that is run again is drawn again."""
        self._at_home()
        with self._lock:
            most, wanted = self._known(), checks.whole(steps, "steps")
            if wanted > most - self._taken:
                raise PlanError(f"{wanted} more step(s) are asked for, and {most - self._taken} of {most} are left")
            self._take(wanted)

    def _at_home(self) -> None:
        """A fork copies what is left of the reserve, and of the steps: each process would spend it for itself."""
        if self._home.left:
            raise PlanError(
                "this run belongs to the process that began it, and draws nothing in a fork of it: ask there, and hand "
                "on the answers"
            )

    def _take(self, steps: int) -> None:
        self._taken += steps

    def _known(self) -> int:
        if self._steps is None:
            raise PlanError("whose steps these are is not known: begin _run with `run = run.steps_of(self)`")
        return self._steps

    def _run(self, child: Plan[Rows, R], rows: Rows) -> R:
        inner = Run(self.noise, rehearsal=self.rehearsal, steps=child.steps)
        if self.rehearsal:
            return child._run(rows, inner)  # with its full error text
        try:
            return guarded(lambda: child._run(rows, inner))
        except BaseException as problem:
            self.ended = ended_by(problem)
            raise

    def _pay(self, child: Plan[Any, Any]) -> None:
        assert self._reserve is not None
        with self._lock:
            self._reserve = self._reserve.spend(child.event, child.delta)


@dataclass(frozen=True, kw_only=True)
class Plan(Exhibit, ABC, Generic[D, R]):
    """A release that has not happened yet: of R, from D. Subclasses are frozen keyword-only dataclasses, and records.

    family  the mechanisms that answer the same question by other means: "value", "best", "quantile", "keys",
            "synthetic"; empty for one that nothing else stands in for
    wraps   has it no noise of its own? All that it releases, its parts do, and it asks what they ask
    dear    does every run take long? Checks then make do with fewer
    boxes   the privacy hazards of NIST SP 800-226 that this kind brings along, by the number of their box
    """

    _card = "sfumato.cards:plan"

    family: ClassVar[str] = ""
    wraps: ClassVar[bool] = False
    dear: ClassVar[bool] = False
    boxes: ClassVar[tuple[int, ...]] = ()

    @classmethod
    def sample(cls) -> Plan[Any, Any]:
        """A small plan of this kind, which audits run a hundred thousand times. Every registered kind has its own."""
        raise PlanError(f"{cls.__name__} has no sample: give it a classmethod `sample`, and audits find it")

    @classmethod
    def counting(cls, unit: Unit, noise: Fraction) -> Plan[Any, Any] | None:
        """A count of all rows with so much noise, in sensitivities; None for a kind that is not asked for one so."""
        return None

    @property
    @abstractmethod
    def unit(self) -> Unit:
        """Whose presence is hidden."""

    @property
    def hides(self) -> str:
        """Whose presence is hidden, in words, with every table that calls the unit otherwise."""
        return self.unit.hiding(self.other_names, self.paths)

    @property
    def other_names(self) -> Mapping[str, str]:
        """The column that names the unit, by table, where it is not called as in the unit."""
        return {table: column for child in self.children for table, column in child.other_names.items()}

    @property
    def paths(self) -> Mapping[str, str]:
        """What else there is to say of whose rows are, in words, by table: see `owners.paths`."""
        return {table: words for child in self.children for table, words in child.paths.items()}

    @property
    @abstractmethod
    def event(self) -> Event:
        """What it costs; a function of the fields alone."""

    @property
    def delta(self) -> Fraction:
        """The delta at which an (epsilon, delta) account prices this plan, fixed in the plan."""
        return sum((child.delta for child in self.children), Fraction(0))

    @property
    def needs_whole(self) -> bool:
        """Must it run on the whole data? Where the number of rows is public, that of a part's rows is still private."""
        vouched = self.unit.change != "add-remove" and any(query.vouched for query in _within(self, Bounded))
        return vouched or any(child.needs_whole for child in self.children)

    @property
    def opens(self) -> Opening[D]:
        """What it runs on: rows of the private table, where neither it nor its parts say otherwise."""
        openings: set[Opening[Any]] = {child.opens for child in self.children} or {_rows()}
        if len(openings) > 1:
            one, other = sorted(opening.does for opening in openings)[:2]
            raise PlanError(f"some parts of this plan {one}, others {other}: release them apart")
        return openings.pop()

    @property
    def lists(self) -> frozenset[str]:
        """The public tables whose rows say which groups there are: they may be read before anything is paid."""
        return frozenset(name for child in self.children for name in child.lists)

    def bind(self, connection: Any) -> None:
        """Refuse what an engine would not take, before anything is paid: its tables have no rows but those of lists."""
        for child in self.children:
            child.bind(connection)

    @property
    def supervised(self) -> Budget | None:
        """The reserve of a plan whose loop is the user's own; None for a plan that runs by itself."""
        return None

    @property
    def steps(self) -> int | None:
        """Of how many equal steps it consists: its event is `events.Repeat(step, steps)`. Then room for all of them is
        held, `run.draw` pays for each before it runs, and what was not drawn is freed. None: it is paid whole."""
        return None

    @property
    def block(self) -> int:
        """How many steps are drawn at once, where it has steps. Public, like every field."""
        return 1

    @property
    def grade(self) -> str:
        """The grade of its noise: "exact", or "float" where a field asks for fast noise. The weakest part counts."""
        return "float" if any(child.grade != "exact" for child in self.children) else "exact"

    @abstractmethod
    def _run(self, data: D, run: Run) -> R:
        """The release itself, raw. Noise comes only from `run.noise`; what is returned is a value with a JSON form."""

    @property
    def bulk(self) -> Bulk:
        """Can `_runs` do better than a loop? From fields alone."""
        return "no"

    def _runs(self, data: D, run: Run, count: int) -> Any:
        """So many runs on the same data, each with noise of its own: a list, an array with a row for each, or
        `runs.Alike`. What audits call; where `bulk` says so, all at once, through the code that a single run takes."""
        return [self._run(data, Run(run.noise)) for _ in range(count)]

    def _loop(self, data: D, run: Run) -> Any:
        """What `curator.supervise` hands to a loop of the user's own: it draws steps by `run.draw`, and is closed."""
        raise PlanError("this plan runs by itself: use curator.release(plan)")

    def finish(self, raw: R) -> Any:
        """What people want to see, from the raw release alone (post-processing, free)."""
        return raw

    def error(self, raw: R, alpha: float) -> Any:
        """Half-widths of error bars at confidence 1 - alpha, shaped like `finish(raw)`; None where there are none."""
        return None

    @property
    def rehearsal_rows(self) -> int:
        """How many made-up rows a rehearsal takes where nobody says: enough to show something. From fields alone."""
        return max((child.rehearsal_rows for child in self.children), default=REHEARSED)

    def expected_error(self, alpha: float) -> float | None:
        """The half-width known before anything runs, where the fields alone give it."""
        return None

    def expected_errors(self, alpha: float) -> Mapping[str, float]:
        """The same by name, for a plan with several answers."""
        return {}

    @property
    def error_words(self) -> str:
        """What is to be said behind these widths: what they do not cover. Nothing by default."""
        return ""

    def expected_work(self) -> Mapping[str, str]:
        """What running it takes (time, memory), in words for a quote. From public fields and made-up rows alone."""
        return {}

    def explain(self) -> list[str]:
        """The steps in plain words, with the numbers used."""
        return [type(self).__name__]

    @property
    def children(self) -> tuple[Plan[Any, Any], ...]:
        return tuple(_within(self, Plan))

    @property
    def parts(self) -> Mapping[str, Plan[Any, Any]]:
        """The releases of a list that may be paid as one and run one by one, by name; none for any other plan."""
        return {}

    @property
    def turns(self) -> tuple[tuple[str, ...], ...]:
        """Chains of parts by name, where the price rests on their order: none runs after one that stands behind it."""
        return ()

    @property
    def compared(self) -> tuple[Plan[Any, Any], ...]:
        """The parts of a list that are compared with the data before it is paid: all, unless some speak for others."""
        return tuple(self.parts.values())

    @property
    def columns(self) -> dict[str, Column]:
        """The columns it reads, as far as it needs to know them."""
        columns: dict[str, Column] = {}
        for part in (*_within(self, Bounded), *self.children):
            columns.update(part.columns)
        return columns

    def check(self, table: Table) -> None:
        """Refuse a table that lacks what the plan reads. Compares public things only."""
        fits(self.unit, self.columns, table)
        for child in self.children:
            if child.supervised is not None:
                raise PlanError("a reserve without a body is for curator.supervise: it cannot be a part of a plan")
            child.check(table)

    def check_schema(self, schema: Schema) -> None:
        """The same, for data of these tables."""
        self.opens.check(self, schema)

    @property
    def forms(self) -> tuple[Plan[Any, Any], ...]:
        """The plan, and after it those of earlier versions that ask the very same: their answers are its answers."""
        most = max((len(child.forms) for child in self.children), default=1)
        return self, *(_in_form(self, place) for place in range(1, most))

    def asks(self) -> list[Any]:
        """The questions, each without price and noise, as a JSON value: equal for the same question asked at another
        price or by another mechanism of the family, different for another column, key or filter. What the fields are
        to it their classes say (`questions`); a field of which nothing is said is part of the question."""
        return questions.listed(self._questions())

    def _questions(self) -> Iterator[Any]:
        if not self.wraps:
            yield self._question()
        for child in self.children if self.wraps else ():
            yield from child._questions()

    def _question(self) -> dict[str, Any]:
        """Of a plan that asks one thing."""
        return questions.of_fields(self) | ({"is": self.family} if self.family else {})

    def contribution_bounds(self) -> tuple[contributions.Bound, ...]:
        """What bounds one unit: each place that does, with its limits by name, as a JSON value."""
        return tuple(self._contribution_bounds(""))

    def _contribution_bounds(self, path: str) -> Iterator[contributions.Bound]:
        return contributions.of_fields(self, path)

    def afterwards(self) -> tuple[str, ...]:
        """What it does with noisy numbers (post-processing, free), in words: its own steps, then those of its parts."""
        return tuple(dict.fromkeys(step for child in self.children for step in child.afterwards()))

    @property
    def hash(self) -> str:
        """SHA-256 of the plan's canonical JSON."""
        return record.digest(self)

    def price(self) -> Fraction:
        """Its (epsilon, delta) price at its own delta."""
        return approximate.epsilon(self.event, self.delta)


def _rows() -> Opening[Rows]:
    """What most plans run on. Found on first use: a ledger reads plans that nobody opens, and needs no engine."""
    from .openings import ROWS

    return ROWS


def price_text(plan: Plan[Any, Any]) -> str:
    """What it costs, in words."""
    return event_text(plan.event, plan.delta)


def told_before(plan: Plan[Any, Any]) -> Iterator[tuple[str, str]]:
    """What is known before anything runs: the price, whom it hides, and how exact it will be."""
    yield "price", price_text(plan)
    yield "hides", plan.hides
    named = plan.expected_errors(_ALPHA)  # first: a name may say that it is in ranks, or that other columns have none
    width = plan.expected_error(_ALPHA)
    if not named and width is not None:
        yield "error", f"±{width:.4g} at 95 %{plan.error_words}"
    for name, half_width in named.items():
        yield "error", f"{name}: ±{half_width:.4g} at 95 %{plan.error_words}"


def _within(owner: Any, kind: type[Any]) -> Iterator[Any]:
    """Fields of that kind, also inside tuples and mappings."""
    for f in fields(owner):
        value = getattr(owner, f.name)
        parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, tuple) else (value,)
        yield from (part for part in parts if isinstance(part, kind))


def _in_form(owner: Plan[Any, Any], place: int) -> Plan[Any, Any]:
    """A plan of plans, with each of these in an earlier form."""

    def swapped(value: Any) -> Any:
        if isinstance(value, Plan):
            return value.forms[min(place, len(value.forms) - 1)]
        if isinstance(value, Mapping) and any(isinstance(each, Plan) for each in value.values()):
            return {name: swapped(each) for name, each in value.items()}
        return tuple(map(swapped, value)) if isinstance(value, tuple) else value

    changes = {f.name: swapped(getattr(owner, f.name)) for f in fields(owner) if f.init}
    return replace(owner, **{name: each for name, each in changes.items() if each is not getattr(owner, name)})


def fits(unit: Unit, columns: Mapping[str, Column], table: Table) -> None:
    """Refuse a table that lacks a column, or has another kind of it. Compares public things only."""
    for name, needed in columns.items():
        given = table.column(name)
        _compatible(name, needed, given)
        if unit.change == "zero-out" and not given.drops_nulls:
            raise PlanError(
                f"column {name!r} reads NULLs as a value, so a zeroed-out unit would count: use nulls='drop', "
                "or another relation"
            )


def _compatible(name: str, needed: Column, given: Column) -> None:
    family = needed.of_kind.alike
    if given.type not in family:
        raise PlanError(f"column {name!r} is {given.type} in the schema, and the plan needs one of {', '.join(family)}")
    if isinstance(needed, TensorColumn) and given != needed:
        raise PlanError(f"column {name!r} is a {given} in the schema, and the plan needs a {needed}")


@record.record("receipt/1", kept=True)
@dataclass(frozen=True)
class Receipt:
    """Proof of payment for one plan on one version of one data set."""

    id: str
    accounts: tuple[str, ...]
    plan_hash: str
    event: Event
    data: str
    unit: Unit
    grade: str
    note: str = ""
    loop: str = "plan"  # "trusted loop": the user's own code ran between private parts
    # "parts": a list that runs part by part, and opens nothing itself; "part": one of them, paid with its list
    # "steps": held whole and drawn step by step; "trusted steps": the same, in the user's own loop

    @property
    def by_steps(self) -> bool:
        """Is it for work that is drawn step by step, and goes on after a crash?"""
        return self.loop in ("steps", "trusted steps")

    @property
    def trusted(self) -> bool:
        """Did the user's own code see the data?"""
        return self.loop.startswith("trusted ")


class Steps(NamedTuple):
    """How far work that is drawn step by step has come."""

    drawn: int
    left: int


class Gauge(NamedTuple):
    """One currency of an account."""

    currency: str
    spent: Fraction
    limit: Fraction


class Ledger(Protocol):
    """Where budgets live. Every method is one durable step; a refusal changes nothing."""

    def snapshot(self, ask: Callable[[], T]) -> T:
        """What is asked within is answered from one state of the ledger; begun again where a price is missing."""

    def transaction(self, act: Callable[[], T]) -> T:
        """What is done within becomes durable as one step, or not at all; `act` is begun again in the same way."""

    def path(self, accounts: tuple[str, ...], plan: Plan[Any, Any], *, data: str) -> tuple[str, ...]:
        """Every account that the plan would be charged to: those named, all above them, and the data's own."""

    def answer(self, accounts: tuple[str, ...], plan_hash: str, data: str) -> tuple[Receipt, bytes] | None:
        """The stored answer to the same plan on the same data version, paid on all accounts of the path."""

    def quote(self, accounts: tuple[str, ...], plan: Plan[Any, Any], *, data: str = "") -> bool:
        """Would a spend be accepted now? Without data, by the named accounts and those above them."""

    def paid(
        self, key: str, accounts: tuple[str, ...], plan: Plan[Any, Any], *, data: str
    ) -> tuple[Receipt, bytes | None] | None:
        """What a retry gets: the receipt that was paid under this key, with its stored answer, or with None where it
        was never opened, or goes on step by step; None for a new key. Refused where the data was opened and no answer
        is stored, and where the key was used for something else."""

    def spend(
        self,
        accounts: tuple[str, ...],
        plan: Plan[Any, Any],
        *,
        data: str,
        grade: str,
        note: str,
        key: str | None = None,
        owners: Mapping[str, str] | None = None,
    ) -> Receipt:
        """Charge every account on the path, or none; nothing for a part of a list that was prepaid. The same key is
        charged once. `owners` is the column that names the unit in each private table of the data: others than at the
        first time are refused."""

    def prepay(
        self,
        accounts: tuple[str, ...],
        plan: Plan[Any, Any],
        *,
        data: str,
        grade: str,
        note: str,
        key: str | None = None,
        owners: Mapping[str, str] | None = None,
    ) -> Receipt:
        """Charge a list of releases as one; a later `spend` for one of its parts, on the same data, is paid with it."""

    def prepaid(self, accounts: tuple[str, ...], plan: Plan[Any, Any], *, data: str) -> Receipt | None:
        """The receipt of the list that this plan was paid with, while it is not taken."""

    def open(self, receipt: Receipt) -> None:
        """Mark the receipt opened, before data is touched. It opens once; by steps again until it is settled."""

    def settle(self, receipt: Receipt, outcome: str, answer: bytes | None = None) -> None:
        """Close the receipt as "answered" (with the stored bytes), "failed", or "interrupted", by hand. The charge
        stays either way; only what failed after the data was opened counts towards the lock of an account. What a
        receipt by steps still holds is freed in the same step."""

    def hold(
        self,
        accounts: tuple[str, ...],
        plan: Plan[Any, Any],
        *,
        data: str,
        grade: str,
        note: str,
        key: str | None = None,
        trusted: bool = True,
        owners: Mapping[str, str] | None = None,
    ) -> Receipt:
        """Set room aside for long work, which draws spend; `close` frees the rest. `trusted`: a user's own loop."""

    def draw_steps(self, receipt: Receipt, steps: int) -> Steps:
        """Spend so many steps of what is held, before they run; refused beyond the last one."""

    def steps(self, receipt: Receipt) -> Steps:
        """How many steps were drawn, and how many can be."""

    def draw(self, receipt: Receipt, event: Event, delta: Fraction) -> None:
        """Spend a part of what is held, before that part runs."""

    def close(self, receipt: Receipt) -> None:
        """Free what was held and not drawn."""

    def spent(self, account: str) -> tuple[Gauge, ...]:
        """What was spent on an account, in each currency that is still open: a gauge, where the limit guarantees."""

    def left(self, account: str, plan: Plan[Any, Any] | None = None) -> str:
        """What everything so far amounts to beside the limit, in words; with a plan, what that would make of it."""

    def used(self, account: str, plan: Plan[Any, Any] | None = None) -> float | None:
        """The part of an account's limit that is gone, or would be after a plan (infinite: no room), or None."""
