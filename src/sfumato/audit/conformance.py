"""The one-line test of any mechanism: `check_plan(TheMechanism(...))`.

What is written in a plan's fields, what it costs and what it does are one object, so one suite can hold every plan to
every promise: fields and event survive JSON, data of another unit is refused, noise comes only from `run.noise`, the
output is a value, odd data changes neither shape nor outcome, and privacy lost stays under the price. All runs are on
made-up rows with seeded bits: the same plan always gets the same verdict.
"""

from __future__ import annotations

import contextlib
import io
import math
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import events, record, schema
from ..accounting import pure, zcdp
from ..accounting.filters import Budget
from ..curator import Curator
from ..errors import (
    ArgumentError,
    DataError,
    PlanError,
    PrivacyWarning,
    RecordError,
    SfumatoError,
    UnsupportedEventError,
)
from ..ledger import MemoryLedger
from ..noise import Bits, Noise, SeededBits
from ..plan import Plan, Receipt, Run
from ..private import Private
from ..release import Release
from ..rows import Rows
from ..schema import Column, Schema, Table
from ..units import Unit
from . import losses, telling
from .claims import claims_of
from .losses import ExactLoss
from .neighbours import Pair, oddities, ordinary, pairs
from .outputs import OutputReading
from .stages import data_for, table_for

_PARTS = ("Guarantee:", "Needs:", "Paper:")
_SECRET = "SECRET-4711"
_ALPHA = 0.05
_RANKED = 150  # pairs tried before the most telling ones are chosen
_FALSE_ALARM = 1e-6 / 2  # half for the audit, half for the fit to the law


class ConformanceError(SfumatoError, AssertionError):
    """A plan breaks a promise; `check` names which."""

    def __init__(self, check: str, plan: Plan[Any, Any], text: str) -> None:
        super().__init__(f"{type(plan).__name__} fails the check of its {check}: {text}")
        self.check = check


class _BrokenError(Exception):
    """Inside a check: what is wrong."""


def _require(condition: bool, text: str) -> None:
    if not condition:
        raise _BrokenError(text)


@dataclass(frozen=True)
class Report:
    """The checks that a plan passed, each with its figure."""

    kind: str
    passed: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        width = max(len(name) for name, _ in self.passed)
        return "\n".join([self.kind] + [f"  {name:{width}}  {figure}" for name, figure in self.passed])


def check_plan(plan: Plan[Any, Any], *, quick: bool = True) -> Report:
    """Hold the plan to every promise, or raise a ConformanceError that names the broken one.

    quick  2,000 runs on each side of 3 pairs of neighbours; otherwise 50,000 on 8. A twentieth of that for a plan with
           steps, each run of which is a whole training (what one step does, the attacks look at more closely), and for
           one that asks an engine anew in each run

    A plan that derives from Additive or Selection has its loss computed exactly, from `plan.law` or `plan.rate`, and
    its runs must follow that law. A plan whose loop is the user's own (a reserve without a body) is not run.
    """
    if not isinstance(plan, Plan):
        raise ArgumentError("check_plan needs a plan, such as Laplace(query=bounds.count(Unit()), epsilon=1).")
    runs = (2_000 if quick else 50_000) // (20 if plan.dear or plan.steps is not None else 1)
    case = _Case(plan, runs=runs, pairs_sampled=3 if quick else 8)
    names = list(_CHECKS) if plan.supervised is None else _AT_REST
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        return Report(type(plan).__name__, tuple((name, _checked(name, case)) for name in names))


def _checked(name: str, case: _Case) -> str:
    try:
        return _CHECKS[name](case)
    except _BrokenError as problem:
        raise ConformanceError(name, case.plan, str(problem)) from None
    except Exception as problem:
        raise ConformanceError(name, case.plan, f"{type(problem).__name__}: {problem}") from problem


@dataclass
class _Case:
    """One plan under test, with what the checks share."""

    plan: Plan[Any, Any]
    runs: int
    pairs_sampled: int
    shape_is_random: bool = False

    @cached_property
    def table(self) -> Table:
        return table_for(self.plan)

    @cached_property
    def pairs(self) -> list[Pair]:
        return list(pairs(self.plan))

    @cached_property
    def claims(self) -> dict[float, float]:
        return claims_of(self.plan)

    @cached_property
    def ordinary(self) -> dict[str, NDArray[Any]]:
        return ordinary(self.table)

    def rows(self, raw: Mapping[str, Any]) -> Any:
        return data_for(self.plan, self.table, raw)

    def run(self, rows: Any, bits: Bits) -> Any:
        return self.plan._run(rows, Run(Noise(bits)))


# ------------------------------------------------------------------------------------------------ at rest


def _docstring(case: _Case) -> str:
    text = vars(type(case.plan)).get("__doc__") or ""
    lacking = [part for part in _PARTS if part not in text]
    _require(not lacking, f"the class's own docstring has no {' and no '.join(lacking)}")
    return "says guarantee, needs and paper"


def _record(case: _Case) -> str:
    plan, cls = case.plan, type(case.plan)
    _require(record.is_frozen(cls), "the class is not a frozen dataclass")
    _require(all(f.kw_only for f in fields(plan) if f.init), "a field is not keyword-only")
    _require(cls in record.kinds(object).values(), "the class is not registered: put @record('plan-<name>/1') above it")
    text = record.canonical(plan)
    _require(replace(plan).hash == plan.hash == record.digest(plan), "the plan's hash is not a function of its fields")
    if b'"is":"live"' in text:
        _require(b'"fingerprint":"' in text, "a live field has no fingerprint in the JSON")
        with contextlib.suppress(RecordError):
            record.parse(text)
            raise _BrokenError("a live field was rebuilt from JSON")
        return f"hash {plan.hash[:12]}, with live fields"
    again = record.parse(text)
    _require(again == plan and record.canonical(again) == text, "the plan does not survive JSON")
    return f"hash {plan.hash[:12]}, {len(text)} bytes of JSON"


def _priced(plan: Plan[Any, Any]) -> bool:
    prices: list[Callable[[], Fraction]] = [lambda: pure.epsilon(plan.event), plan.price, lambda: zcdp.rho(plan.event)]
    for price in prices:
        with contextlib.suppress(UnsupportedEventError):
            return price() >= 0
    return False


def _event(case: _Case) -> str:
    plan, event = case.plan, case.plan.event
    _require(isinstance(event, events.Event), "the event is not an Event")
    _require(plan.event == event and replace(plan).event == event, "the event is not a function of the fields")
    _require(record.parse(record.canonical(event), events.Event) == event, "the event does not survive JSON")
    _require(
        event.relation == plan.unit.change,
        f"the event compares {event.relation} neighbours, the plan protects {plan.unit.change} ones",
    )
    _require(_priced(plan), "no accountant can price the event at the plan's own delta")
    delta, epsilon = min(case.claims.items())
    return f"{type(event).__name__}, epsilon = {epsilon:.6g} at delta = {delta:.3g}"


class _Watched(dict[str, Any]):
    """Columns that notice when they are read."""

    reads = 0

    def __getitem__(self, name: str) -> Any:
        self.reads += 1
        return super().__getitem__(name)


class _Watching(MemoryLedger):
    """A ledger that notices charges."""

    charges = 0

    def spend(self, *arguments: Any, **named: Any) -> Receipt:
        receipt = super().spend(*arguments, **named)
        self.charges += 1
        return receipt

    def hold(self, *arguments: Any, **named: Any) -> Receipt:
        receipt = super().hold(*arguments, **named)
        self.charges += 1
        return receipt


def _door(
    case: _Case, table: Table, unit: Unit, raw: Mapping[str, Any], bits: Bits | None = None
) -> tuple[Curator, _Watching, _Watched]:
    """A curator of made-up data, with a budget that covers the plan twice."""
    ledger, columns = _Watching({"made-up": _budget(case)}), _Watched(raw)
    private = Private("made-up", columns, unit=unit, schema=Schema({table.name: table}))
    columns.reads = 0
    return Curator(private, ledger, bits=bits), ledger, columns


def _budget(case: _Case) -> Budget:
    plan = case.plan
    if 0.0 in case.claims:
        return Budget(epsilon=min(2 * pure.epsilon(plan.event), Fraction(10**4)))
    if plan.delta > 0:
        epsilon = max(2 * plan.price(), Fraction(1, 1000))
        return Budget(epsilon=min(epsilon, Fraction(10**4)), delta=min(4 * plan.delta, Fraction(99, 100)))
    return Budget(rho=2 * zcdp.rho(plan.event))


def _ask(curator: Curator, plan: Plan[Any, Any]) -> Release | None:
    if plan.supervised is None:
        return curator.release(plan)
    with curator.supervise(plan):
        return None


def _refusals(case: _Case) -> str:
    """Data that the plan does not fit is refused before anything is charged or read; data that it fits is answered."""
    plan, refused = case.plan, 0
    for what, table, unit in _misfits(plan, case.table):
        raw = table.make_up(6, SeededBits(2).words, awkward=False)
        curator, ledger, columns = _door(case, table, unit, raw)
        try:
            _ask(curator, plan)
        except PlanError:
            _require(not ledger.charges and not columns.reads, f"{what} was charged or read before it was refused")
            refused += 1
        except Exception as problem:
            raise _BrokenError(f"{what} was not refused, and then {type(problem).__name__}: {problem}") from problem
        else:
            raise _BrokenError(f"{what} was not refused")
    curator, ledger, _ = _door(case, case.table, plan.unit, case.ordinary)
    answer = _ask(curator, plan)
    _require(ledger.charges == 1, "a release was not charged once")
    if answer is not None:
        again = curator.release(plan)
        _require(_same(again.raw, answer.raw) and ledger.charges == 1, "a stored answer was not given again for free")
        _require(bool(answer.explain()), "explain() has no text")
    return f"{refused} misfits refused, uncharged"


def _misfits(plan: Plan[Any, Any], table: Table) -> Iterator[tuple[str, Table, Unit]]:
    for change in plan.unit.of_kind.changes:
        if change != plan.unit.change:
            yield f"data under {change}", table, replace(plan.unit, change=change)
    yield "data of larger groups", table, replace(plan.unit, group=plan.unit.group + 1)
    stranger = "who else"
    more = Table({**table.columns, stranger: schema.key()}, unit=stranger)
    yield "data of another unit", more, replace(plan.unit, of=f"user:{stranger}")
    for name, column in plan.columns.items():
        if name in plan.unit.naming:
            continue
        fewer = {x: c for x, c in table.columns.items() if x != name} or {"present": schema.flag()}
        yield f"a table without column {name!r}", replace(table, columns=fewer), plan.unit
        yield f"a table with another {name!r}", _with(table, name, _unlike(column)), plan.unit
        if plan.unit.change == "zero-out" and column.of_kind.fills_nulls:
            yield f"a table that fills NULLs of {name!r}", _with(table, name, _filled(column)), plan.unit


def _with(table: Table, name: str, column: Column) -> Table:
    return replace(table, columns={**table.columns, name: column})


def _filled(column: Column) -> Column:
    """Blanking a unit would be replacing it, where NULLs are read as a value."""
    return replace(column, nulls=column.of_kind.clean(column)[-1])


def _unlike(column: Column) -> Column:
    kind = column.of_kind
    return schema.category(("x", "y")) if kind.is_number or not kind.is_public else schema.real(0, 1)


# ------------------------------------------------------------------------------------------------ running


class _Counted:
    """Seeded bits that count the words drawn."""

    grade = "seeded"

    def __init__(self, seed: int) -> None:
        self._bits, self.drawn = SeededBits(seed), 0

    def words(self, count: int) -> NDArray[np.uint64]:
        self.drawn += count
        return self._bits.words(count)


def _global_states() -> list[Any]:
    """The generators that no plan may touch; looked at by name, as nothing in this package imports them."""
    python, numpy = import_module("random"), import_module("numpy.random")
    return [python.getstate(), _plain(numpy.get_state())]


def _noise(case: _Case) -> str:
    """All randomness comes from run.noise, and it reaches the output."""
    rows, bits = case.rows(case.ordinary), _Counted(5)
    before = _global_states()
    raw = case.run(rows, bits)
    _require(before == _global_states(), "a run moved the global random state of Python or numpy")
    _require(bits.drawn > 0, "a run drew nothing from run.noise")
    _require(_same(raw, case.run(rows, SeededBits(5))), "two runs with the same bits differ: noise from elsewhere")
    for _, made_up in oddities(case.table, case.plan.unit):
        some = case.rows(made_up)
        first = case.run(some, SeededBits(0))
        if any(not _same(first, case.run(some, SeededBits(seed))) for seed in range(1, 40)):
            return f"{bits.drawn} words a run, from run.noise alone"
    raise _BrokenError("40 runs with different bits all gave the same: the noise does not reach the output")


def _value(case: _Case) -> str:
    """What a run returns is a value: it survives JSON, and everything shown is made from it alone."""
    plan, rows = case.plan, case.rows(case.ordinary)
    data, hash_before = _copy(rows), plan.hash
    raw = case.run(rows, SeededBits(6))
    _require(_same(data, _copy(rows)), "a run changed the data")
    _require(plan.hash == hash_before, "a run changed the plan")
    try:
        text = record.canonical(raw)
    except RecordError as problem:
        raise _BrokenError(f"the output is not a value: {problem}") from None
    parsed = record.parse(text)
    _require(_same(parsed, raw), "the output does not survive JSON")
    finished = plan.finish(parsed)
    _require(_same(finished, plan.finish(raw)), "finish() differs on the stored output")
    _require(_same(finished, plan.finish(parsed)), "finish() differs from call to call")
    bars = plan.error(parsed, _ALPHA)
    _require(_fits(_shape(bars), _shape(finished)), "error() is not shaped like finish()")
    expected = plan.expected_error(_ALPHA)
    _require(expected is None or (math.isfinite(expected) and expected >= 0), "expected_error() is not finite")
    return f"{len(text)} bytes of JSON"


def _odd_data(case: _Case) -> str:
    """Whatever the cells hold, the plan answers, with finite numbers and always the same shape."""
    shapes: dict[str, set[Any]] = {}
    for what, raw in oddities(case.table, case.plan.unit):
        rows = case.rows(raw)
        shapes[what] = {_answered(case, rows, seed, what) for seed in range(3)}
    case.shape_is_random = any(len(seen) > 1 for seen in shapes.values())
    if not case.shape_is_random:
        usual = shapes["ordinary rows"]
        for what, seen in shapes.items():
            _require(seen == usual, f"the shape of the answer on {what} differs from the usual one")
    return f"answers on {len(shapes)} odd tables" + (", of random shape" if case.shape_is_random else "")


def _answered(case: _Case, rows: Any, seed: int, what: str) -> Any:
    printed = io.StringIO()
    with (
        warnings.catch_warnings(record=True) as warned,
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
    ):
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", PrivacyWarning)
        try:
            raw = case.run(rows, SeededBits(seed))
            finished = case.plan.finish(record.parse(record.canonical(raw)))
        except Exception as problem:
            raise _BrokenError(f"{what}: {type(problem).__name__}: {problem}") from problem
    _require(not warned, f"a run on {what} warns, which tells something about the data")
    _require(not printed.getvalue(), f"a run on {what} prints")
    _require(_finite(raw) and _finite(finished), f"the answer on {what} is not finite")
    return _shape(finished)


class _Failing:
    """Bits that fail in the middle of a run, with a text that must not get out."""

    grade = "exact"

    def words(self, count: int) -> NDArray[np.uint64]:
        raise ValueError(_SECRET)


def _failure(case: _Case) -> str:
    """A run that fails keeps its charge and tells nothing."""
    curator, ledger, _ = _door(case, case.table, case.plan.unit, case.ordinary, _Failing())
    before = ledger.spent("made-up")
    try:
        curator.release(case.plan)
    except DataError as problem:
        text = "".join(traceback.format_exception(problem))
        _require(_SECRET not in text and str(problem) == DataError.TEXT, "the text of a failure holds data")
        _require(ledger.charges == 1 and ledger.spent("made-up") != before, "a failure was refunded")
        return "charged, and tells nothing"
    raise _BrokenError("the run went on although no noise could be drawn")


def _neighbouring_shapes(case: _Case) -> str:
    """Between neighbours even the shape of the raw output must agree, unless noise decides it."""
    if case.shape_is_random:
        return "random: left to the audit"
    for pair in case.pairs:
        one, other = (_shape(record.parse(record.canonical(case.run(rows, SeededBits(9))))) for rows in pair)
        _require(one == other, f"the output's shape tells neighbours apart ({pair.change})")
    return f"equal on {len(case.pairs)} pairs of neighbours"


# ------------------------------------------------------------------------------------------------ privacy lost


def _held(loss: ExactLoss, change: str) -> float:
    """The share of what is allowed that was found."""
    _require(not loss.broken, f"{change}: {loss}")
    return loss.share


def _sensitivity(case: _Case) -> str:
    """No pair of neighbours moves a query further than it declares, in any norm."""
    shares = [
        _held(loss, pair.change)
        for leaf in losses.leaves(case.plan)
        for pair in case.pairs
        for loss in losses.movements(leaf, pair)
    ]
    return f"{100 * max(shares):.0f} % of the declared one reached" if shares else "no query of a known kind"


def _exact_loss(case: _Case) -> str:
    """Where the law is known: the loss of every pair, computed, is within every claim of the price."""
    shares = [
        _held(loss, change)
        for leaf in losses.leaves(case.plan)
        for loss, change in losses.of_pairs(leaf, case.pairs, case.claims if leaf is case.plan else claims_of(leaf))
    ]
    return f"{100 * max(shares):.4g} % of the price reached" if shares else "no law known: left to the audit"


def _sampled_loss(case: _Case) -> str:
    """The audited lower bound on the most telling pairs is within the price, and runs follow the law of the plan."""
    tried = _telling(case)
    alpha = _FALSE_ALARM / len(tried)
    worst: telling.Finding | None = None
    for number, pair in enumerate(tried):
        samples = []
        for side, rows in enumerate(pair):
            bits = SeededBits(1_000 + 2 * number + side)
            samples.append([case.run(rows, bits) for _ in range(case.runs)])
            for loss in losses.misfits(case.plan, rows, samples[-1], alpha / 2):
                _held(loss, pair.change)
        finding = telling.most_telling(*samples, claims=case.claims, false_alarm=alpha)
        _require(not finding.broken, f"{pair.change}: {finding}")
        if worst is None or finding.lead > worst.lead:
            worst = finding
    return f"{case.runs} runs on {len(tried)} pairs: {worst}"


def _telling(case: _Case) -> list[Pair]:
    """The pairs whose outputs differ most when both sides run on the same bits; the last by how widely they spread."""
    tried = [(pair, *_distances(case, pair)) for pair in case.pairs[:: len(case.pairs) // _RANKED + 1]]
    by_place = sorted(tried, key=lambda row: -row[1])[: case.pairs_sampled - 1]
    by_width = sorted(tried, key=lambda row: -row[2])[:1]
    return [row[0] for row in (*by_place, *by_width)]


def _distances(case: _Case, pair: Pair) -> tuple[float, float]:
    """How far the outputs are moved, in widths of their noise, and how much the width differs."""
    outputs = [[case.run(rows, SeededBits(seed)) for seed in range(6)] for rows in pair]
    one, other = map(replace(OutputReading.fit(*outputs), grains=()).of, outputs)
    width = np.concatenate([one, other]).std(axis=0)
    width[width == 0] = 1.0
    moved = (one - other).mean(axis=0) / width
    widened = np.abs(one.std(axis=0) - other.std(axis=0)) / width
    return float(np.sqrt(np.sum(moved**2))), float(widened.max())


# ------------------------------------------------------------------------------------------------ comparing values


def _plain(value: Any) -> Any:
    """A value without the difference between lists and tuples, arrays and their contents."""
    value = _listed(value)
    if isinstance(value, np.ndarray):
        return ("array", value.dtype.kind, value.shape, value.tobytes() if value.dtype != object else value.tolist())
    if isinstance(value, Mapping):
        return ("map", [(key, _plain(item)) for key, item in value.items()])
    if isinstance(value, list | tuple):
        return ("list", [_plain(item) for item in value])
    return value.item() if isinstance(value, np.generic) else value


def _same(one: Any, other: Any) -> bool:
    return bool(_plain(one) == _plain(other))


def _copy(rows: Any) -> Any:
    if not isinstance(rows, Rows):  # behind an engine, which opens it read-only
        return None
    series = {name: (each.values.copy(), each.valid.copy()) for name, each in rows.series.items()}
    return [series, rows.units.copy(), rows.unit_count]


def _shape(value: Any) -> Any:
    """Keys in their order, lengths, and what kind of thing stands at the end; not the numbers."""
    value = _listed(value)
    if isinstance(value, Mapping):
        return ("map", tuple((key, _shape(item)) for key, item in value.items()))
    if isinstance(value, list | tuple):
        return ("list", tuple(map(_shape, value)))
    if isinstance(value, np.ndarray):
        return ("array", value.dtype.kind, value.shape)
    if value is None or isinstance(value, bool | str):
        return type(value).__name__
    return "number"


def _fits(bars: Any, values: Any) -> bool:
    """Error bars have the values' keys, or there is None. A text has a bar too: how far the winner is from the best."""
    if bars == "NoneType" or (bars == "number" and isinstance(values, str)):
        return True
    if not isinstance(bars, tuple) or not isinstance(values, tuple) or bars[0] != values[0]:
        return False
    if bars[0] == "array":
        return bool(bars[2] == values[2])
    if bars[0] == "list":
        return len(bars[1]) == len(values[1]) and all(map(_fits, bars[1], values[1]))
    return [key for key, _ in bars[1]] == [key for key, _ in values[1]] and all(
        _fits(bar, item) for (_, bar), (_, item) in zip(bars[1], values[1], strict=True)
    )


def _listed(value: Any) -> Any:
    """A table that shows itself, as its columns."""
    return {name: value[name] for name in value.columns} if hasattr(value, "_repr_html_") else value


def _finite(value: Any) -> bool:
    value = _listed(value)
    if isinstance(value, Mapping):
        return all(map(_finite, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_finite, value))
    if isinstance(value, np.ndarray):
        return value.dtype.kind not in "fc" or bool(np.isfinite(value).all())
    return not isinstance(value, float | np.floating) or math.isfinite(value)


_CHECKS: dict[str, Callable[[_Case], str]] = {
    "docstring": _docstring,
    "record": _record,
    "event": _event,
    "output": _value,
    "refusals": _refusals,
    "noise": _noise,
    "odd data": _odd_data,
    "failure": _failure,
    "shape between neighbours": _neighbouring_shapes,
    "sensitivity": _sensitivity,
    "exact loss": _exact_loss,
    "sampled loss": _sampled_loss,
}
_AT_REST = ("docstring", "record", "event", "refusals")
