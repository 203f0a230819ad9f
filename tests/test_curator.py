"""The one door: order of the steps, refusals, failures, silence about the data."""

from __future__ import annotations

import copy
import io
import logging
import math
import pickle
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
import pytest

from sfumato import Budget, Curator, MemoryLedger, Private, Schema, Unit, bounds, record, repeat, reserve, sequence
from sfumato import mechanisms as m
from sfumato.errors import ArgumentError, BudgetError, DataError, PlanError, ReceiptError
from sfumato.noise import SecureBits, SeededBits
from sfumato.openings import ROWS
from sfumato.plan import Receipt, Run
from sfumato.release import Release
from sfumato.rows import Rows
from sfumato.schema import category, key, real
from tests.helpers import (
    AGES,
    BY_PATIENT,
    PATIENTS,
    SECRET,
    Columns,
    SpyLedger,
    SpyPrivate,
    account_of,
    everything_said,
    filed_in,
    hooked,
    laplace,
    spent,
)

COUNT = m.Laplace(query=bounds.count(BY_PATIENT, per_unit=2), epsilon=1)


class House:
    """A curator whose every step is written down."""

    def __init__(self, budget: Budget | None = None, columns: Any = AGES, schema: Schema = PATIENTS) -> None:
        self.log: list[str] = []
        self.columns = Columns(columns)
        self.ledger = SpyLedger({"patients": budget or Budget(epsilon=10)}, self.log)
        self.private = SpyPrivate("patients", self.columns, unit=BY_PATIENT, schema=schema)
        self.private.log = self.log
        self.curator = Curator(self.private, self.ledger)
        self.at_birth = self.columns.reads

    @property
    def reads(self) -> int:
        return self.columns.reads - self.at_birth

    def plan(self, tag: str, result: Any = 1, problem: BaseException | None = None, **fields: Any) -> Any:
        def hook(rows: Rows, run: Run) -> Any:
            self.log.append("_run")
            if problem is not None:
                raise problem
            return result

        return hooked(tag, hook, **fields)


# The order


def test_a_release_pays_then_opens_then_runs_then_settles() -> None:
    house = House()
    house.curator.release(house.plan("order"))
    assert house.log == ["answer", "spend", "open", "_open", "_run", "settle answered"]


def test_a_failure_keeps_the_order_and_the_charge() -> None:
    house = House()
    with pytest.raises(DataError):
        house.curator.release(house.plan("failing order", problem=ValueError(SECRET)))
    assert house.log == ["answer", "spend", "open", "_open", "_run", "settle failed"]
    assert spent(house.ledger, "patients") == [Fraction(1, 10)]


def test_each_step_happens_while_the_ledger_already_says_so() -> None:
    house = House()
    seen: list[Any] = []

    def hook(rows: Rows, run: Run) -> Any:
        (entry,) = filed_in(house.ledger)
        seen.append((entry.state, spent(house.ledger, "patients")))
        return 1

    house.curator.release(hooked("watching", hook))
    assert seen == [("opened", [Fraction(1, 10)])]


def test_the_same_plan_again_is_the_stored_answer_and_costs_nothing() -> None:
    house = House()
    first = house.curator.release(COUNT)
    house.log.clear()
    reads = house.reads
    for _ in range(1000):  # B1: averaging over repetitions gains nothing
        again = house.curator.release(COUNT)
        assert again.raw.tobytes() == first.raw.tobytes() and again.receipt == first.receipt
    assert set(house.log) == {"answer"} and house.reads == reads
    assert spent(house.ledger, "patients") == [1]
    stored = house.ledger.answer(("patients",), COUNT.hash, house.private.address)
    assert stored is not None and stored[1] == record.canonical(first.raw)


def test_r2_another_plan_or_another_version_pays_again() -> None:
    house = House()
    first = house.curator.release(COUNT)
    for other in (
        m.Laplace(query=bounds.count(BY_PATIENT, per_unit=3), epsilon=1),
        m.Laplace(query=bounds.count(BY_PATIENT, per_unit=2), epsilon=Fraction(999, 1000)),
        sequence(count=COUNT),
        repeat(COUNT, 1),
    ):
        before = spent(house.ledger, "patients")[0]
        house.curator.release(other)
        assert spent(house.ledger, "patients")[0] > before
    newer = Private("patients", AGES, unit=BY_PATIENT, schema=PATIENTS, version="2")
    before = spent(house.ledger, "patients")[0]
    second = Curator(newer, house.ledger).release(COUNT)
    assert spent(house.ledger, "patients")[0] == before + 1 and second.receipt != first.receipt


def test_other_accounts_pay_for_themselves() -> None:
    ledger = MemoryLedger({"patients": Budget(epsilon=10), "other": Budget(epsilon=10)})
    private = Private("patients", AGES, unit=BY_PATIENT, schema=PATIENTS)
    first = Curator(private, ledger).release(COUNT)
    second = Curator(private, ledger, accounts=("patients", "other")).release(COUNT)
    assert second.receipt != first.receipt and spent(ledger, "other") == [1] and spent(ledger, "patients") == [2]
    third = Curator(private, ledger, accounts=("other",)).release(COUNT)
    assert third.receipt == second.receipt and third.value == second.value and spent(ledger, "other") == [1]


def test_data_of_another_name_is_never_answered_from_this_one_s_store() -> None:
    # name "a@1" version "2" and name "a" version "1@2" must not be one address
    ledger = MemoryLedger({"org": Budget(epsilon=10)})
    for name in ("a", "a@1"):
        ledger.register(name, accounts=("org",), reason="the same people")
    first, second = (
        Private(name, {"x": [1.0] * n}, unit=Unit(), schema=Schema.of(x=real(0, 1)), version=version)
        for name, version, n in (("a@1", "2", 5), ("a", "1@2", 5000))
    )
    here = Curator(first, ledger, accounts=("org",)).release(laplace(1))
    there = Curator(second, ledger, accounts=("org",)).release(laplace(1))
    assert there.value != here.value and spent(ledger, "org") == [2]


# Refusals


@pytest.mark.parametrize(
    "plan",
    [
        laplace(1),  # another unit
        laplace(1, Unit("user:patient", "replace")),
        laplace(1, Unit("user:patient", group=2)),
        m.Laplace(query=bounds.clipped_sum("height", 0, 1, BY_PATIENT), epsilon=1),
        m.Laplace(query=bounds.histogram("age", ["a"], BY_PATIENT), epsilon=1),
        reserve(unit=BY_PATIENT, budget=Budget(epsilon=1)),  # without a body: supervise
        reserve(unit=Unit(), budget=Budget(epsilon=1)),
    ],
)
def test_a_plan_that_does_not_fit_is_refused_before_anything_happens(plan: Any) -> None:
    house = House()
    with pytest.raises(PlanError):
        house.curator.release(plan)
    assert house.log == [] and house.reads == 0 and spent(house.ledger, "patients") == [0]


@pytest.mark.parametrize("plan", [None, 5, "count", bounds.count(BY_PATIENT), m.Laplace])
def test_what_is_no_plan_is_refused(plan: Any) -> None:
    house = House()
    for ask in (house.curator.release, house.curator.quote, house.curator.rehearse):
        with pytest.raises(ArgumentError, match="plan = "):
            ask(plan)
    assert house.log == [] and house.reads == 0


def test_a_plan_beyond_the_budget_never_reaches_the_data() -> None:
    house = House(Budget(epsilon=0.5))
    with pytest.raises(BudgetError, match=r"asked 1, spent 0, left 0\.5"):
        house.curator.release(COUNT)
    assert house.log == ["answer", "spend"] and house.reads == 0


def test_an_unknown_account_never_reaches_the_data() -> None:
    house = House()
    curator = Curator(house.private, house.ledger, accounts=("nobody",))
    with pytest.raises(BudgetError, match="no account 'nobody'"):
        curator.release(COUNT)
    assert house.reads == 0


@pytest.mark.parametrize("accounts", [(), [], "patients", ["patients"], 5])
def test_a_curator_needs_a_path_of_accounts(accounts: Any) -> None:
    house = House()
    with pytest.raises(ArgumentError, match="accounts = "):
        Curator(house.private, house.ledger, accounts=accounts)


def test_seeded_bits_are_refused_and_secure_ones_are_not() -> None:
    house = House()
    with pytest.raises(ArgumentError, match="SecureBits only"):
        Curator(house.private, house.ledger, bits=SeededBits(1))
    released = Curator(house.private, house.ledger, bits=SecureBits()).release(COUNT)
    assert released.receipt is not None and released.receipt.grade == "exact"


def test_a_plan_whose_result_is_not_a_value_fails() -> None:
    house = House(Budget(epsilon=10))
    for number, result in enumerate(
        [(i for i in range(3)), iter([1]), object(), range(3), {1, 2}, lambda: 1, math.nan, math.inf, 1j, b"bytes"]
    ):
        house.ledger.unlock("patients", "test")
        with pytest.raises(DataError):
            house.curator.release(house.plan(f"lazy {number}", result))
        assert house.log[-1] == "settle failed"


def test_what_is_released_is_what_was_stored() -> None:
    house = House()
    array = np.array([1.5, 2.5])

    def hook(rows: Rows, run: Run) -> Any:
        return array

    released = house.curator.release(hooked("array", hook))
    array[:] = 0  # the plan's own array changes afterwards
    assert released.value.tolist() == [1.5, 2.5]
    assert house.curator.release(hooked("array", hook)).value.tolist() == [1.5, 2.5]


# Quotes and rehearsals


def test_a_quote_is_free_touches_nothing_and_equals_the_charge() -> None:
    for plan in (COUNT, m.Laplace(query=bounds.mean("age", 0, 120, BY_PATIENT), epsilon=0.3), repeat(COUNT, 2)):
        house = House()
        quoted = house.curator.quote(plan)
        assert house.log == ["answer", "quote"] and house.reads == 0 and spent(house.ledger, "patients") == [0]
        house.curator.release(plan)
        assert float(spent(house.ledger, "patients")[0]) == quoted.epsilon
    gaussian = m.Gaussian(query=bounds.count(BY_PATIENT), epsilon=1, delta=1e-6)
    house = House(Budget(epsilon=3, delta=1e-5))
    quoted = house.curator.quote(gaussian)
    house.curator.release(gaussian)
    assert float(spent(house.ledger, "patients")[0]) == quoted.epsilon == 1 and quoted.delta == 1e-6


def test_a_quote_says_whether_the_release_would_pass() -> None:
    house = House(Budget(epsilon=1))
    assert house.curator.quote(COUNT).affordable
    house.curator.release(COUNT)
    assert not house.curator.quote(m.Laplace(query=bounds.count(BY_PATIENT), epsilon=0.1)).affordable


def test_a_rehearsal_is_free_and_never_opens_the_data() -> None:
    house = House()
    for plan in (COUNT, m.Laplace(query=bounds.mean("age", 0, 120, BY_PATIENT), epsilon=1), sequence(a=COUNT)):
        released = house.curator.rehearse(plan)
        assert released.receipt is None and "made-up rows" in str(released)
    assert house.log == [] and house.reads == 0
    assert abs(house.curator.rehearse(COUNT, rows=3000).value) > 300  # not the four rows of the data


def test_a_rehearsal_shows_full_errors() -> None:
    house = House()
    with pytest.raises(ValueError, match="the cause, in full"):
        house.curator.rehearse(house.plan("rehearsed", problem=ValueError("the cause, in full")))
    assert house.log == ["_run"]
    with pytest.raises(PlanError, match="rehearse its children"):
        house.curator.rehearse(reserve(unit=BY_PATIENT, budget=Budget(epsilon=1)))
    with pytest.raises(ArgumentError, match="rows = 0"):
        house.curator.rehearse(COUNT, rows=0)


# Silence about the data


class LoudError(Exception):
    def __str__(self) -> str:
        return SECRET

    __repr__ = __str__


def nested() -> BaseException:
    try:
        raise KeyError(SECRET)
    except KeyError:
        try:
            raise ValueError(SECRET) from LoudError()
        except ValueError as problem:
            problem.add_note(SECRET)
            return problem


@pytest.mark.parametrize(
    "problem",
    [
        ValueError(SECRET),
        LoudError(),
        nested(),
        ExceptionGroup(SECRET, [ValueError(SECRET)]),
        DataError(),
        MemoryError(SECRET),
    ],
    ids=lambda p: type(p).__name__,
)
def test_a_failure_says_nothing_about_the_data(problem: BaseException) -> None:
    house = House()
    with pytest.raises(DataError) as caught:
        house.curator.release(house.plan(f"loud {type(problem).__name__}", problem=problem))
    assert str(caught.value) == DataError.TEXT
    assert SECRET not in everything_said(caught.value)
    assert caught.value.__cause__ is None and caught.value.__context__ is None


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_interrupt_says_nothing_about_the_data_either(kind: type[BaseException]) -> None:
    # Ctrl-C while a bad cell is being handled: "could not convert string to float: 'SECRET'" is its context.
    house = House()

    def hook(rows: Rows, run: Run) -> Any:
        try:
            raise ValueError(f"could not convert {SECRET}")
        except ValueError:
            raise kind(SECRET)  # noqa: B904

    with pytest.raises((DataError, kind)) as caught:
        house.curator.release(hooked(f"interrupt {kind.__name__}", hook))
    assert SECRET not in everything_said(caught.value)
    ended = "interrupted" if kind is KeyboardInterrupt else "failed"
    assert house.log[-1] == f"settle {ended}" and spent(house.ledger, "patients") == [Fraction(1, 10)]


@pytest.mark.parametrize("committed", [True, False], ids=["after the commit", "before it"])
def test_an_interrupt_right_after_the_payment_settles_and_one_before_it_pays_nothing(committed: bool) -> None:
    house = House()
    transaction = house.ledger.transaction

    def stopped(act: Any) -> Any:
        if committed:
            transaction(act)  # Ctrl-C comes before the curator has the receipt
            raise KeyboardInterrupt

        def cut() -> Any:
            act()
            raise KeyboardInterrupt

        return transaction(cut)

    with mock.patch.object(house.ledger, "transaction", stopped), pytest.raises(KeyboardInterrupt):
        house.curator.release(COUNT)
    assert "_open" not in house.log and house.reads == 0
    if committed:
        assert house.log[-1] == "settle interrupted" and spent(house.ledger, "patients") == [1]
    else:
        assert spent(house.ledger, "patients") == [0] and filed_in(house.ledger) == []


def test_data_that_cannot_be_read_fails_in_the_same_words() -> None:
    class Hostile:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            raise RuntimeError(SECRET)

    said = set()
    for bad in (Hostile(), [1.0], 5, np.zeros((4, 2)), SECRET):
        house = House(columns={**AGES, "age": bad})
        try:
            house.curator.release(COUNT)
        except DataError as problem:
            said.add(str(problem))
            assert SECRET not in everything_said(problem)
    assert said == {DataError.TEXT}


def test_the_repr_of_private_things_shows_no_data() -> None:
    house = House(columns={**AGES, "ward": [SECRET] * 4})
    for thing in (house.private, house.curator):
        assert SECRET not in repr(thing) and "64.25" not in repr(thing) and SECRET not in str(thing)
    assert repr(house.private) == f"<Private patients version 1: patient, age, ward; hides {BY_PATIENT}>"


def test_private_data_is_neither_pickled_nor_copied() -> None:
    house = House()
    for thing in (house.private, Curator(house.private, MemoryLedger({"patients": Budget(epsilon=1)}))):
        for leave in (pickle.dumps, copy.copy, copy.deepcopy):
            if thing is not house.private and leave is copy.copy:
                continue  # a shallow copy of the curator is the same door
            with pytest.raises(TypeError):
                leave(thing)


def test_p1_no_cell_of_the_data_shows_anywhere() -> None:
    rng = np.random.default_rng(8)
    cells = [f"{v:.12f}" for v in rng.uniform(20, 90, 1000)]
    words = [f"w{v}" for v in rng.integers(10**9, 10**10, 1000)]
    schema = Schema.of(patient=key(), age=real(0, 120), ward=category(["north", "south"]), unit="patient")
    data = {
        "patient": words,
        "age": [float(c) for c in cells],
        "ward": [w if i % 3 else "north" for i, w in enumerate(words)],
    }
    out, err, logged = io.StringIO(), io.StringIO(), io.StringIO()
    handler = logging.StreamHandler(logged)
    level = logging.getLogger().level
    logging.getLogger().addHandler(handler)
    logging.getLogger().setLevel(logging.DEBUG)
    shown: list[str] = []
    try:
        with redirect_stdout(out), redirect_stderr(err), warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            house = House(columns=data, schema=schema)
            plans = [
                COUNT,
                m.Laplace(query=bounds.mean("age", 0, 120, BY_PATIENT), epsilon=1),
                m.Laplace(query=bounds.histogram("ward", ["north", "south"], BY_PATIENT), epsilon=1),
                m.Exponential(query=bounds.votes("ward", ["north", "south"], BY_PATIENT), epsilon=1),
            ]
            for plan in plans:
                released = house.curator.release(plan)
                shown += [str(released), released.explain(), released._repr_html_(), repr(released.receipt)]
                shown += [str(house.curator.quote(plan)), repr(released.raw), plan.hash, repr(plan)]
            with pytest.raises(DataError) as caught:
                house.curator.release(house.plan("p1", problem=ValueError(words[0])))
            shown += [everything_said(caught.value), repr(house.private), repr(filed_in(house.ledger))]
    finally:
        logging.getLogger().removeHandler(handler)
        logging.getLogger().setLevel(level)
    everything = "\n".join(
        [*shown, out.getvalue(), err.getvalue(), logged.getvalue(), *(str(w.message) for w in warned)]
    )
    assert not [cell for cell in [*cells, *words] if cell in everything]


def test_p1_a_release_outlives_its_data() -> None:
    columns = {name: list(values) for name, values in AGES.items()}
    house = House(columns=columns)
    plan = sequence(
        n=COUNT,
        mean=m.Laplace(query=bounds.mean("age", 0, 120, BY_PATIENT), epsilon=1),
        wards=m.Laplace(query=bounds.histogram("ward", ["north", "south"], BY_PATIENT), epsilon=1),
    )
    released = house.curator.release(plan)
    value, bars, words = released.value, released.error(), str(released)
    for values in columns.values():
        values[:] = ["garbled"] * len(values)
    house.columns._columns.clear()
    house.private._columns = None  # type: ignore[assignment]
    assert released.value == value and released.error() == bars and str(released) == words
    back = pickle.loads(pickle.dumps(record.canonical(released.raw)))
    assert Release(plan, record.parse(back), None).value == value


def test_a_warning_inside_the_data_s_own_code_is_not_shown() -> None:
    # Whether a warning comes, and what it says, may depend on the data.
    house = House()

    def hook(rows: Rows, run: Run) -> Any:
        warnings.warn(f"odd value {SECRET}", stacklevel=1)
        return 1

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            house.curator.release(hooked("warning", hook))
        except DataError:
            pytest.fail("a warning must not fail a release either")
    assert [str(w.message) for w in caught if SECRET in str(w.message)] == []


def test_a_warning_is_not_shown_either_while_another_release_runs() -> None:
    inside, done = threading.Event(), threading.Event()

    def long(rows: Rows, run: Run) -> Any:
        inside.set()
        return done.wait(60)

    def hook(rows: Rows, run: Run) -> Any:
        warnings.warn(f"odd value {SECRET}", stacklevel=1)
        return 1

    other = threading.Thread(target=House().curator.release, args=(hooked("long", long),))
    other.start()
    assert inside.wait(60)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        House().curator.release(hooked("short", hook))
    done.set()
    other.join()
    assert [str(w.message) for w in caught if SECRET in str(w.message)] == []


def test_two_releases_at_once_leave_the_process_s_warning_filters_as_they_were() -> None:
    # catch_warnings is not made for threads: whoever leaves last would restore the other's filters, for good.
    inside, left = threading.Event(), threading.Event()
    before = list(warnings.filters)
    houses = [House(), House()]

    def first(rows: Rows, run: Run) -> Any:
        return inside.wait(60)

    def second(rows: Rows, run: Run) -> Any:
        inside.set()
        return left.wait(60)

    plans = [hooked("first in", first), hooked("second in", second)]
    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(houses[0].curator.release, plans[0])
        two = pool.submit(houses[1].curator.release, plans[1])
        assert one.result().value is True
        left.set()
        assert two.result().value is True
    changed = list(warnings.filters) != before
    warnings.filters[:] = before  # type: ignore[index]
    assert not changed


# Private


def test_naming_the_data_reads_none_of_it() -> None:
    columns = Columns(AGES)
    Private("patients", columns, unit=BY_PATIENT, schema=PATIENTS)
    assert columns.reads == 0  # "read only when a paid plan runs"


def test_private_data_must_have_the_columns_of_its_schema() -> None:
    for missing in AGES:
        with pytest.raises(PlanError, match=f"no column '{missing}'"):
            Private("p", {k: v for k, v in AGES.items() if k != missing}, unit=BY_PATIENT, schema=PATIENTS)


def test_a_schema_with_a_unit_is_not_read_row_by_row() -> None:
    with pytest.raises(PlanError, match="'patient' names the unit"):
        Private("p", AGES, unit=Unit(), schema=PATIENTS)
    with pytest.raises(PlanError, match="no private table has it"):
        Private("p", AGES, unit=Unit("user:doctor"), schema=PATIENTS)


@pytest.mark.parametrize("column", [real(0, 120), category(["1", "2"], nulls="1")], ids=["real", "stand-in"])
def test_a_column_that_cannot_name_units_is_refused_before_anything_is_charged(column: Any) -> None:
    ledger = SpyLedger({"p": Budget(epsilon=1)})
    with pytest.raises((PlanError, ArgumentError)):
        private = Private("p", {"who": [1]}, unit=Unit("user:who"), schema=Schema.of(who=column))
        Curator(private, ledger).release(laplace(1, Unit("user:who")))
    assert "spend" not in ledger.log


def test_the_data_opens_only_with_a_receipt_for_it() -> None:
    house = House()
    released = house.curator.release(COUNT)
    receipt = released.receipt
    assert receipt is not None and isinstance(house.private._open(receipt, ROWS), Rows)
    other = Private("others", AGES, unit=BY_PATIENT, schema=PATIENTS)
    newer = Private("patients", AGES, unit=BY_PATIENT, schema=PATIENTS, version="2")
    grouped = Private("patients", AGES, unit=Unit("user:patient", group=2), schema=PATIENTS)
    for private in (other, newer, grouped):
        with pytest.raises(ReceiptError, match="only with a receipt"):
            private._open(receipt, ROWS)
    for bad in (None, "receipt", object(), dict(vars(receipt))):
        with pytest.raises(ReceiptError):
            house.private._open(bad, ROWS)  # type: ignore[arg-type]


def test_the_receipt_says_what_was_paid_for() -> None:
    house = House()
    receipt = house.curator.release(COUNT, note="for the report").receipt
    assert isinstance(receipt, Receipt)
    assert (receipt.accounts, receipt.plan_hash, receipt.event) == (("patients",), COUNT.hash, COUNT.event)
    assert (receipt.data, receipt.unit, receipt.grade) == (house.private.address, BY_PATIENT, "exact")
    assert (receipt.note, receipt.loop) == ("for the report", "plan")


# Supervise

RESERVE = reserve(unit=BY_PATIENT, budget=Budget(epsilon=1))


def small(epsilon: Any = 0.25) -> m.Laplace:
    return m.Laplace(query=bounds.count(BY_PATIENT), epsilon=epsilon)


def test_supervise_holds_then_draws_before_each_run_then_frees_the_rest() -> None:
    house = House(Budget(epsilon=1))
    with house.curator.supervise(RESERVE) as run:
        assert house.log == ["hold", "open", "_open"] and spent(house.ledger, "patients") == [0]
        run.release(house.plan("drawn", epsilon=0.25))
        assert house.log[3:] == ["draw", "_run"] and spent(house.ledger, "patients") == [Fraction(1, 4)]
        assert len(run.data) == 4
    assert house.log[5:] == ["close", "settle answered"]
    assert spent(house.ledger, "patients") == [Fraction(1, 4)] and run.receipt.loop == "trusted loop"
    house.curator.release(small(0.75))


def test_after_the_block_the_data_is_closed() -> None:
    house = House()
    with house.curator.supervise(RESERVE) as run:
        pass
    with pytest.raises(PlanError, match="closed again"):
        _ = run.data
    with pytest.raises((PlanError, BudgetError)):
        run.release(small())
    assert spent(house.ledger, "patients") == [0]


def test_a_draw_beyond_the_reserve_is_refused_and_does_not_run() -> None:
    house = House()
    with house.curator.supervise(RESERVE) as run:
        for _ in range(4):
            run.release(small())
        with pytest.raises(BudgetError, match="left 0"):
            run.release(house.plan("too much"))
        assert "_run" not in house.log
    assert spent(house.ledger, "patients") == [1]  # though the account has ten


def test_an_exception_in_the_block_frees_the_hold_and_keeps_what_was_drawn() -> None:
    for problem in (ValueError("mine"), KeyboardInterrupt(), SystemExit(3)):
        house = House(Budget(epsilon=1))
        with pytest.raises(type(problem)), house.curator.supervise(RESERVE) as run:
            run.release(small())
            raise problem
        ended = "interrupted" if isinstance(problem, KeyboardInterrupt) else "failed"
        assert house.log[-2:] == ["close", f"settle {ended}"] and spent(house.ledger, "patients") == [Fraction(1, 4)]
        house.curator.release(small(0.75))


def test_a_child_that_fails_in_the_block_says_nothing_and_stays_paid() -> None:
    house = House()
    with house.curator.supervise(RESERVE) as run:
        with pytest.raises(DataError) as caught:
            run.release(house.plan("loud child", problem=ValueError(SECRET), epsilon=0.25))
        assert SECRET not in everything_said(caught.value)
    assert spent(house.ledger, "patients") == [Fraction(1, 4)]
    assert house.log[-1] == "settle failed"  # one unprotected bit was seen: it counts, though the block caught it


def test_a_block_that_cannot_open_its_data_frees_the_hold() -> None:
    house = House(columns={**AGES, "age": [1.0]})
    with pytest.raises(DataError) as caught, house.curator.supervise(RESERVE):
        pytest.fail("never reached")
    assert SECRET not in everything_said(caught.value)
    assert house.log == ["hold", "open", "_open", "close", "settle failed"]
    assert spent(house.ledger, "patients") == [0] and not account_of(house.ledger, "patients").held


def test_supervise_takes_reserves_without_a_body_only() -> None:
    house = House()
    for plan in (COUNT, reserve(lambda run: 1, unit=BY_PATIENT, budget=Budget(epsilon=1))):
        with pytest.raises(PlanError, match="without a body"), house.curator.supervise(plan):
            pass
    for bad in (reserve(unit=Unit(), budget=Budget(epsilon=1)), 5):
        with pytest.raises((PlanError, ArgumentError)), house.curator.supervise(bad):  # type: ignore[arg-type]
            pass
    assert house.log == [] and house.reads == 0


def test_a_block_beyond_the_budget_is_never_entered() -> None:
    house = House(Budget(epsilon=0.5))
    with pytest.raises(BudgetError), house.curator.supervise(RESERVE):
        pytest.fail("never reached")
    assert house.log == ["hold"] and house.reads == 0


def test_a_block_that_is_dropped_frees_its_hold() -> None:
    house = House()
    block = house.curator.supervise(RESERVE)
    block.__enter__()
    assert account_of(house.ledger, "patients").held
    del block
    if sys.implementation.name == "cpython":
        assert not account_of(house.ledger, "patients").held


# Locks, through the door


def test_three_failures_lock_the_account_until_an_officer_looks() -> None:
    house = House()
    for number in range(3):
        with pytest.raises(DataError):
            house.curator.release(house.plan(f"lock {number}", problem=ValueError("x")))
    with pytest.raises(BudgetError, match="locked after 3 failures"):
        house.curator.release(COUNT)
    assert not house.curator.quote(COUNT).affordable
    house.curator.rehearse(COUNT)  # looking for the cause stays free
    house.ledger.unlock("patients", "a bug of ours, fixed")
    house.curator.release(COUNT)


# Odd data, same shape


def test_the_outcome_does_not_depend_on_how_odd_the_data_is() -> None:
    odd: list[dict[str, Any]] = [
        {"patient": [], "age": [], "ward": []},
        {"patient": [None], "age": [None], "ward": [None]},
        {"patient": [1], "age": ["n/a"], "ward": ["unknown"]},
        {"patient": [math.nan, 1], "age": [math.inf, -math.inf], "ward": [b"\xff", 3]},
        {"patient": np.arange(5), "age": np.arange(5), "ward": np.array(["north"] * 5)},
    ]
    plans = [
        COUNT,
        m.Laplace(query=bounds.mean("age", 0, 120, BY_PATIENT), epsilon=1),
        m.Laplace(query=bounds.clipped_sum("age", 0, 120, BY_PATIENT, per_unit=3), epsilon=1),
        m.Exponential(query=bounds.votes("ward", ["north", "south"], BY_PATIENT), epsilon=1),
        m.Laplace(query=bounds.histogram("ward", ["north", "south"], BY_PATIENT), epsilon=1),
    ]
    shapes = set()
    for columns in odd:
        house = House(columns=columns)
        released = [house.curator.release(plan) for plan in plans]
        shapes.add((tuple(np.shape(r.raw) for r in released), tuple(house.log), spent(house.ledger, "patients")[0]))
    assert len(shapes) == 1


@pytest.mark.parametrize("per_unit", [1, 4])
@pytest.mark.parametrize("kind", [m.ThresholdKeys, m.OptimalKeys, m.WeightedKeys])
def test_rehearsals_show_keys_that_pass_their_threshold(kind: Any, per_unit: int) -> None:
    table = Schema.of(patient=key(), drug=key(), unit="patient")
    private = Private("d", {"patient": [], "drug": []}, unit=BY_PATIENT, schema=table)
    curator = Curator(private, MemoryLedger({"d": Budget(epsilon=1)}))
    plan = kind(column="drug", protects=BY_PATIENT, epsilon=0.2, delta=1e-7, per_unit=per_unit)
    assert plan.rehearsal_rows > 300 and {1, 2, 3} <= set(curator.rehearse(plan).value)
    assert not curator.rehearse(plan, rows=30).value
