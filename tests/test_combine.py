"""Plans made of plans."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import (
    Budget,
    Curator,
    MemoryLedger,
    Private,
    Schema,
    Unit,
    bounds,
    events,
    partition,
    repeat,
    reserve,
    sequence,
)
from sfumato import mechanisms as m
from sfumato.accounting import pure
from sfumato.accounting.filters import Filter
from sfumato.errors import ArgumentError, BudgetError, DataError, PlanError
from sfumato.plan import Plan, Run
from sfumato.record import record
from sfumato.rows import Rows
from sfumato.schema import category, flag, key, real, whole
from sfumato.units import RELATIONS
from tests.helpers import (
    AGES,
    BY_PATIENT,
    PATIENTS,
    SECRET,
    Columns,
    SpyLedger,
    few,
    filed_in,
    hooked,
    laplace,
    many,
    read,
    seeded,
    spent,
)

WARDS = ("a", "b", "c")
SCHEMA = Schema.of(
    u=key(), w=category(WARDS, constant=True), x=real(0, 10), free=category(WARDS), on=flag(constant=True)
)
BY_USER = Unit("user:u")


def rows_of(unit: Unit, given_: list[tuple[Any, Any, Any]]) -> Rows:
    u, w, x = (list(column) for column in zip(*given_, strict=True)) if given_ else ([], [], [])
    return read(SCHEMA, unit, u=u, w=w, x=x, free=w, on=[None] * len(u))


@record("test-reading/1")
@dataclass(frozen=True, kw_only=True)
class Reading(Plan[Rows, Any]):
    """Says, without noise, which rows it was given: what parts hold what."""

    protects: Unit = BY_USER
    epsilon: Any = Fraction(1)

    @property
    def unit(self) -> Unit:
        return self.protects

    @property
    def event(self) -> events.Event:
        return events.Pure(epsilon=self.epsilon, relation=self.protects.change)

    def _run(self, rows: Rows, run: Run) -> list[float]:
        return sorted(rows["x"].values.tolist())


# Sequence


def test_a_sequence_runs_each_part_on_the_same_rows_and_costs_the_sum() -> None:
    plan = sequence(first=Reading(), second=Reading(epsilon=0.5))
    rows = rows_of(BY_USER, [(1, "a", 1.0), (2, "b", 2.0)])
    assert plan._run(rows, seeded()) == {"first": [1.0, 2.0], "second": [1.0, 2.0]}
    assert pure.epsilon(plan.event) == Fraction(3, 2) and plan.unit == BY_USER
    assert isinstance(plan.event, events.Sequence) and plan.delta == 0


def test_the_parts_of_a_sequence_draw_their_own_noise() -> None:
    count = laplace(1)
    raw = sequence(a=count, b=count)._run(read(SCHEMA, Unit(), u=[], w=[], x=[], free=[], on=[]), seeded())
    assert raw["a"][0] != raw["b"][0]


def test_a_sequence_adds_the_deltas_of_its_parts() -> None:
    one = m.Gaussian(query=bounds.count(Unit()), epsilon=1, delta=1e-6)
    plan = sequence(a=one, b=one, c=laplace(1))
    assert plan.delta == Fraction(2, 10**6)
    assert 1 + Fraction(1) < plan.price() < 3


def test_a_sequence_refuses_what_does_not_add_up() -> None:
    for make in (
        lambda: sequence(),
        lambda: sequence(a=5),  # type: ignore[arg-type]
        lambda: sequence(a=laplace(1), b=laplace(1, Unit(change="replace"))),
        lambda: sequence(a=laplace(1), b=laplace(1, BY_USER)),
        lambda: sequence(a=laplace(1), b=laplace(1, Unit(group=2))),
        lambda: sequence(**{"": laplace(1)}),
    ):
        with pytest.raises(ArgumentError):
            make()


def test_finished_values_keep_the_names() -> None:
    plan = sequence(total=laplace(1), share=m.Laplace(query=bounds.histogram("w", WARDS, Unit()), epsilon=1))
    raw = plan._run(rows_of(Unit(), [(1, "a", 1.0)]), seeded())
    assert set(plan.finish(raw)) == {"total", "share"} and set(plan.finish(raw)["share"]) == set(WARDS)
    assert plan.error(raw, 0.05)["share"]["a"] > 0
    assert plan.explain()[0].startswith("total: ")


# Repeat


def test_a_repeat_draws_fresh_noise_each_time_and_costs_each_time() -> None:
    plan = repeat(laplace(0.1), 10)
    raw = plan._run(rows_of(Unit(), [(1, "a", 1.0)]), seeded())
    assert len({float(each[0]) for each in raw}) == 10
    assert pure.epsilon(plan.event) == 1 and isinstance(plan.event, events.Repeat)
    gaussian = m.Gaussian(query=bounds.count(Unit()), epsilon=1, delta=1e-7)
    assert repeat(gaussian, 5).delta == Fraction(5, 10**7) and repeat(gaussian, 5).price() < 5


# Partition


def test_a_partition_reads_each_row_in_its_own_part() -> None:
    rows = rows_of(
        BY_USER, [(1, "a", 1.0), (1, "a", 1.5), (2, "b", 2.0), (3, None, 3.0), (4, "zz", 4.0), (None, "a", 5.0)]
    )
    raw = partition("w", WARDS, Reading())._run(rows, seeded())
    assert raw == {"a": [1.0, 1.5], "b": [2.0], "c": []}  # NULL and unknown keys are nobody's part
    some = partition("w", ["b", "zz"], Reading())._run(rows, seeded())
    assert some == {"b": [2.0], "zz": []}


def test_l13_a_unit_in_two_parts_is_read_in_one() -> None:
    rows = rows_of(BY_USER, [(1, "b", 1.0), (1, "a", 2.0), (1, None, 3.0), (2, "c", 4.0), (2, "b", 5.0)])
    assert partition("w", WARDS, Reading())._run(rows, seeded()) == {"a": [2.0], "b": [5.0], "c": []}
    turned = partition("w", ["c", "b", "a"], Reading())._run(rows, seeded())
    assert turned == {"c": [4.0], "b": [1.0], "a": []}  # its first key in the order given


@many
@given(
    st.lists(
        st.tuples(st.sampled_from([1, 2, 3]), st.sampled_from([*WARDS, None, "zz"]), st.floats(0, 10)), max_size=12
    ),
    st.sampled_from([1, 2, 3]),
)
def test_l13_one_unit_s_change_reaches_no_more_parts_than_are_paid_for(given_: list[Any], who: int) -> None:
    for unit in (Unit("user:u"), Unit("user:u", "replace")):
        plan = partition("w", WARDS, Reading(protects=unit))
        before = plan._run(rows_of(unit, given_), seeded())
        others = [row for row in given_ if row[0] != who]
        changed = others if unit.change == "add-remove" else [*others, (who, "c", 9.5), (who, "b", 9.25)]
        after = plan._run(rows_of(unit, changed), seeded())
        touched = [key_ for key_ in WARDS if before[key_] != after[key_]]
        assert len(touched) <= plan.event.touched  # type: ignore[attr-defined]


def test_the_price_of_a_partition() -> None:
    def cost(change: Any, *epsilons: float) -> Fraction:
        unit = Unit("user:u", change)
        plans = {w: laplace(e, unit) for w, e in zip(WARDS, epsilons, strict=False)}
        return pure.epsilon(type(partition("w", WARDS, laplace(1)))(column="w", plans=plans).event)

    assert cost("add-remove", 1, 3, 2) == cost("zero-out", 1, 3, 2) == 3
    assert cost("replace", 1, 3, 2) == 5 and cost("replace", 2) == 2
    swap = m.Gaussian(query=bounds.count(Unit(change="replace")), epsilon=1, delta=1e-6)
    assert partition("w", WARDS, swap).delta == Fraction(2, 10**6)
    stay = m.Gaussian(query=bounds.count(Unit()), epsilon=1, delta=1e-6)
    assert partition("w", WARDS, stay).delta == Fraction(1, 10**6) and partition("w", WARDS, stay).price() == 1


def test_a_partition_needs_a_column_that_is_constant_per_unit() -> None:
    table = SCHEMA.table()
    partition("w", WARDS, laplace(1, BY_USER)).check(table)
    partition("on", [True, False], laplace(1, BY_USER)).check(table)
    partition("free", WARDS, laplace(1)).check(table)  # each row is its own unit
    with pytest.raises(PlanError, match="'free' is not declared constant per unit"):
        partition("free", WARDS, laplace(1, BY_USER)).check(table)
    for column in ("x", "u", "nothing"):
        with pytest.raises(PlanError):
            partition(column, ["a"], laplace(1, BY_USER)).check(table)
    by_category = Schema.of(school=category(["s", "t"]), x=real(0, 1), unit="school").table()
    partition("school", ["s", "t"], laplace(1, Unit("user:school"))).check(by_category)


def test_a_partition_refuses_what_it_cannot_price() -> None:
    for make in (
        lambda: partition("w", [], laplace(1)),
        lambda: partition("w", ["a", "a"], laplace(1)),
        lambda: partition("w", [0.5], laplace(1)),
        lambda: partition("w", "ab", laplace(1)),
        lambda: partition("w", ["a"], 5),  # type: ignore[arg-type]
        lambda: partition("w", WARDS, laplace(1, Unit(group=2))),
        lambda: type(partition("w", WARDS, laplace(1)))(column="w", plans={"a": laplace(1), "b": 5}),  # type: ignore[dict-item]
        lambda: type(partition("w", WARDS, laplace(1)))(column="w", plans={"a": laplace(1), "b": laplace(1, BY_USER)}),
    ):
        with pytest.raises(ArgumentError):
            make()


def test_nested_partitions_are_priced_level_by_level() -> None:
    inner = partition("on", [True, False], laplace(1, Unit("user:u", "replace")))
    assert pure.epsilon(partition("w", WARDS, inner).event) == 4  # out of two, into two


def _rows_in(rows: Rows) -> int:
    return len(rows)


@pytest.mark.parametrize("change", ["replace", "zero-out"])
def test_a_vouched_query_is_not_split_where_units_only_change_places(change: Any) -> None:
    # Under replace the number of rows is public, so anyone may vouch that it moves by next to nothing; in a part of a
    # partition it moves by one. A split must refuse what is vouched for rows that never leave.
    unit = Unit(change=change)
    still = bounds.declared(_rows_in, unit, reads={}, labels=["n"], l1=1e-6, l2=1e-6, linf=1e-6)
    try:
        plan = partition("free", WARDS, m.Laplace(query=still, epsilon=1))
        plan.check(SCHEMA.table())
    except (ArgumentError, PlanError):
        return
    before, after = (rows_of(unit, [(1, w, 1.0), (2, "a", 1.0)]) for w in ("a", "b" if change == "replace" else None))
    law = plan.plans["a"].law  # type: ignore[attr-defined]
    a, b = (plan._run(rows, seeded(1))["a"] for rows in (before, after))
    assert abs(float(a[0] - b[0])) < 100 * law.scale * 2.0 ** plan.plans["a"].exponent  # type: ignore[attr-defined]


# Reserve


def reserve_for(body: Any, budget: Budget | None = None) -> Plan[Any, Any]:
    return reserve(body, unit=BY_PATIENT, budget=budget or Budget(epsilon=1))


def curated(ledger: MemoryLedger | None = None) -> tuple[Curator, MemoryLedger]:
    ledger = ledger or MemoryLedger({"patients": Budget(epsilon=10)})
    return Curator(Private("patients", AGES, unit=BY_PATIENT, schema=PATIENTS), ledger), ledger


def count(epsilon: Any) -> m.Laplace:
    return m.Laplace(query=bounds.count(BY_PATIENT, per_unit=2), epsilon=epsilon)


def test_a_reserve_is_charged_whole_and_children_draw_on_it() -> None:
    curator, ledger = curated()

    def body(run: Run) -> Any:
        first = run.release(count(0.5))
        return [first, run.release(count(0.25 if first > 0 else 0.125))]  # chosen after seeing the first

    released = curator.release(reserve_for(body))
    assert len(released.value) == 2 and spent(ledger, "patients") == [1]


def test_a_child_beyond_the_reserve_is_refused_inside() -> None:
    curator, ledger = curated()

    def body(run: Run) -> Any:
        taken = []
        for _ in range(20):
            try:
                taken.append(run.release(count(0.15)))
            except BudgetError as problem:
                return {"answers": len(taken), "why": str(problem)}
        return None

    released = curator.release(reserve_for(body))
    assert released.value["answers"] == 6 and "left 0.1" in released.value["why"]
    assert spent(ledger, "patients") == [1]


@few
@given(st.lists(st.sampled_from([0.05, 0.1, 0.3, 0.7]), max_size=15), st.booleans())
def test_no_choice_of_children_exceeds_the_reserve(picks: list[float], delta: bool) -> None:
    budget = Budget(epsilon=1, delta=1e-6) if delta else Budget(epsilon=1)
    taken: list[Fraction] = []

    def hook(run: Run) -> Any:
        for epsilon in picks:
            with contextlib.suppress(BudgetError):
                run.release(count(epsilon))
                taken.append(Fraction(repr(epsilon)))
        return len(taken)

    table = PATIENTS.table()
    rows = Rows.read(table, AGES, BY_PATIENT)
    assert reserve_for(hook, budget)._run(rows, seeded()) == len(taken)
    if not delta:
        assert sum(taken) <= 1


def test_children_of_a_reserve_must_fit_the_data_before_they_are_paid() -> None:
    curator, _ = curated()
    asked = [
        laplace(0.1),  # another unit
        m.Laplace(query=bounds.clipped_sum("height", 0, 1, BY_PATIENT), epsilon=0.1),  # no such column
        m.Laplace(query=bounds.histogram("age", ["a"], BY_PATIENT), epsilon=0.1),  # the wrong type
    ]

    bodied = reserve(body_with(asked), unit=BY_PATIENT, budget=Budget(epsilon=1))
    assert curator.release(bodied).value == (3, True)


def body_with(asked: list[Any]) -> Any:
    def body(run: Run) -> Any:
        refused = 0
        for child in asked:
            try:
                run.release(child)
            except PlanError:
                refused += 1
        return [refused, run.release(count(1)) is not None]  # all of the reserve is still there

    return body


def test_a_plan_without_a_reserve_releases_no_children() -> None:
    curator, _ = curated()

    def hook(rows: Rows, run: Run) -> Any:
        with pytest.raises(PlanError, match="no reserve"):
            run.release(count(0.1))
        return 1

    assert curator.release(hooked("no-reserve", hook)).value == 1


def test_a_child_of_a_child_has_its_own_reserve_and_no_more() -> None:
    curator, ledger = curated()

    def inner(run: Run) -> Any:
        run.release(count(0.5))
        try:
            run.release(count(0.1))
        except BudgetError:
            return "inner is spent"

    def outer(run: Run) -> Any:
        said = run.release(reserve(inner, unit=BY_PATIENT, budget=Budget(epsilon=0.5)))
        run.release(count(0.5))
        try:
            run.release(count(0.1))
        except BudgetError:
            return [said, "outer is spent"]

    assert curator.release(reserve_for(outer)).value == ("inner is spent", "outer is spent")
    assert spent(ledger, "patients") == [1]


def _boom(rows: Rows) -> Any:
    raise ValueError(f"cannot read {SECRET}")


def failing() -> m.Laplace:
    query = bounds.declared(_boom, BY_PATIENT, reads={}, labels=["x"], l1=1, l2=1, linf=1)
    return m.Laplace(query=query, epsilon=0.01)


def test_a_body_cannot_publish_the_text_or_the_bit_of_a_failure() -> None:
    curator, ledger = curated()

    def body(run: Run) -> Any:
        bits = []
        for _ in range(50):
            try:
                run.release(failing())
                bits.append("fine")
            except Exception as problem:
                bits.append(str(problem))
        return bits

    with pytest.raises(DataError):
        curator.release(reserve_for(body))
    assert spent(ledger, "patients") == [1]
    assert [entry.state for entry in filed_in(ledger)] == ["failed"]


def _interrupt(rows: Rows) -> Any:
    raise KeyboardInterrupt(SECRET)


def test_a_body_cannot_collect_the_bit_of_an_interrupt_either() -> None:
    curator, _ = curated()
    query = bounds.declared(_interrupt, BY_PATIENT, reads={}, labels=["x"], l1=1, l2=1, linf=1)

    def body(run: Run) -> Any:
        try:
            return run.release(m.Laplace(query=query, epsilon=0.01))
        except BaseException as problem:
            return str(problem)

    with pytest.raises((DataError, KeyboardInterrupt)):
        curator.release(reserve_for(body))


def test_a_rehearsal_shows_the_full_error_of_a_child() -> None:
    curator, _ = curated()

    def body(run: Run) -> Any:
        return run.release(failing())

    with pytest.raises(ValueError, match=SECRET):
        curator.rehearse(reserve_for(body))


@record("test-slow/1")
@dataclass(frozen=True, kw_only=True)
class Slow(Plan[Rows, int]):
    """Its price is asked for by two threads at the same moment."""

    number: int

    @property
    def unit(self) -> Unit:
        return BY_PATIENT

    @property
    def event(self) -> events.Event:
        with contextlib.suppress(threading.BrokenBarrierError):
            MEETING.wait(0.5)
        return events.Pure(epsilon=0.75)

    def _run(self, rows: Rows, run: Run) -> int:
        return self.number


MEETING = threading.Barrier(2)


def test_threads_inside_a_body_cannot_spend_the_same_room_twice() -> None:
    MEETING.reset()
    run = Run(seeded().noise, rows=Rows.read(PATIENTS.table(), AGES, BY_PATIENT), reserve=Filter.of(Budget(epsilon=1)))

    def ask(number: int) -> bool:
        try:
            run.release(Slow(number=number))
        except BudgetError:
            return False
        return True

    with ThreadPoolExecutor(2) as pool:
        assert sum(pool.map(ask, range(2))) == 1  # 0.75 twice does not fit into 1


@pytest.mark.parametrize(
    "wrap",
    [
        lambda plan: sequence(a=plan),
        lambda plan: repeat(plan, 2),
        lambda plan: partition("ward", ["north", "south"], plan),
    ],
    ids=["sequence", "repeat", "partition"],
)
def test_a_plan_that_can_never_run_by_itself_is_refused_before_it_is_charged(wrap: Any) -> None:
    ledger = SpyLedger({"patients": Budget(epsilon=10)})
    columns = Columns(AGES)
    curator = Curator(Private("patients", columns, unit=BY_PATIENT, schema=PATIENTS), ledger)
    before = columns.reads
    with pytest.raises((PlanError, ArgumentError)):
        curator.release(wrap(reserve(unit=BY_PATIENT, budget=Budget(epsilon=1))))
    assert "spend" not in ledger.log and columns.reads == before


def test_a_reserve_without_a_body_is_refused_as_a_child_before_it_is_paid() -> None:
    def body(run: Run) -> Any:
        try:
            run.release(reserve(unit=BY_PATIENT, budget=Budget(epsilon=1)))
        except (PlanError, ArgumentError):
            return run.release(count(1)) is not None

    curator, _ = curated()
    assert curator.release(reserve_for(body)).value is True


def test_a_reserve_in_rho_takes_many_small_children() -> None:
    ledger = MemoryLedger({"patients": Budget(rho=1)})
    curator, _ = curated(ledger)

    def body(run: Run) -> Any:
        return len([run.release(m.Gaussian(query=bounds.count(BY_PATIENT), multiplier=10)) for _ in range(100)])

    assert curator.release(reserve_for(body, Budget(rho=0.5))).value == 100
    assert spent(ledger, "patients") == [Fraction(1, 2)]


def test_every_relation_can_be_combined() -> None:
    for change in RELATIONS:
        unit = Unit("user:u", change)
        plan = sequence(a=repeat(partition("w", WARDS, laplace(1, unit)), 2), b=laplace(1, unit))
        plan.check(SCHEMA.table())
        assert plan.event.relation == change
        raw = plan._run(rows_of(unit, [(1, "a", 1.0)]), seeded())
        assert np.isfinite([plan.finish(raw)["b"], plan.finish(raw)["a"][0]["a"]]).all()
    whole_column = Schema.of(u=key(), w=whole(0, 3, constant=True)).table()
    with pytest.raises(PlanError):
        partition("w", [0, 1], laplace(1, BY_USER)).check(whole_column)
