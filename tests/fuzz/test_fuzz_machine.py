"""One ledger in a file, two data sets, people in a tree, plans of many kinds: whatever is done, in whatever order, the
books are those of a model that only adds up; nothing is released unpaid, and no secret is told."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from sfumato import Budget, Curator, events, record, sequence
from sfumato import mechanisms as m
from sfumato.errors import ArgumentError, BudgetError, DataError, PlanError, ReceiptError, SfumatoError
from sfumato.ledger import open_ledger
from sfumato.plan import Plan, Receipt
from sfumato_referee.mutation import MUTANTS
from tests.fuzz import offices
from tests.fuzz.offices import COUNT, DATA, KINDS, LIMITS, PEOPLE, SIZES, TREE, Paced, Wild, path_of
from tests.helpers import SECRET, everything_said, spent

person, data, size = st.sampled_from(PEOPLE), st.sampled_from(DATA), st.sampled_from(SIZES)
version = st.sampled_from(("1", "1", "2"))
handle = st.integers(0, 1)
Asked = tuple[str, str, str]  # who, data set, version


class Office(RuleBasedStateMachine):
    """The model: what each account has paid, what each receipt is, and the bytes of every answer."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="fuzz-office-"))
        self.place = self.folder / "office.ledger"
        self.ledgers = [open_ledger(self.place, create=True), open_ledger(self.place)]
        for name, parent in TREE.items():
            self.ledgers[0].open_account(name, Budget(epsilon=LIMITS[name]), parent=parent, reason="people, and data")
        self.paid: Counter[str] = Counter()
        self.limits = {name: Fraction(limit) for name, limit in LIMITS.items()}
        self.state: dict[str, str] = {}  # of every receipt
        self.receipts: dict[str, Receipt] = {}
        self.answers: dict[tuple[Asked, str], bytes] = {}  # by who asked of what, and the plan's hash
        self.plans: dict[str, Plan[Any, Any]] = {}
        self.keys: dict[str, tuple[Asked, Plan[Any, Any], str]] = {}
        self.waiting: dict[tuple[Asked, str], Plan[Any, Any]] = {}  # parts of lists that are paid for
        self.number = 0

    def curator(self, asked: Asked, which: int = 0) -> Curator:
        who, name, version = asked
        return Curator(offices.private(name, version), self.ledgers[which], accounts=(who,))

    def pay(self, asked: Asked, cost: Fraction) -> None:
        for name in path_of(asked[0], asked[1]):
            self.paid[name] += cost

    def room(self, asked: Asked, cost: Fraction) -> bool:
        """Would it fit? Nothing is held here between two rules, so the limits alone decide."""
        return all(self.paid[name] + cost <= self.limits[name] for name in path_of(asked[0], asked[1]))

    def serving(self, kept: Iterable[tuple[Asked, str]], asked: Asked, hash_: str) -> list[tuple[Asked, str]]:
        """What was paid by all accounts on this path, and perhaps by more: it serves here too."""
        who, name, version = asked
        return [
            ((payer, name, version), hash_)
            for (payer, of, at), plan in kept
            if (of, at, plan) == (name, version, hash_) and path_of(who, name) <= path_of(payer, name)
        ]

    def filed(self, receipt: Receipt, state: str) -> None:
        assert self.state.get(receipt.id) is None, "one receipt is for one release"
        self.state[receipt.id], self.receipts[receipt.id] = state, receipt

    def refused(self, work: Callable[[], Any], *kinds: type[SfumatoError]) -> Any:
        """What it gives, or the refusal, which tells nothing."""
        expected = kinds or (SfumatoError,)
        try:
            return work()
        except expected as problem:
            assert SECRET not in everything_said(problem)
            return problem

    def newest(self) -> Receipt:
        """The receipt that was filed last, and is not in the model yet."""
        (row,) = [row for row in self.ledgers[0].releases() if row.id not in self.state]
        with self.ledgers[0]._store.reading() as book:
            found = book.filed(row.id)
        assert found is not None
        return found.receipt

    # --- releases ---------------------------------------------------------------------------------------------------

    def release(self, asked: Asked, plan: Plan[Any, Any], which: int, key: str | None = None) -> None:
        cost, spot = plan.price(), (asked, plan.hash)
        known = {self.answers[each] for each in self.serving(self.answers, *spot)}
        waits = self.serving(self.waiting, *spot)
        quoted = self.curator(asked, which).quote(plan).affordable
        assert quoted == (bool(known or waits) or self.room(asked, cost))
        found = self.refused(lambda: self.curator(asked, which).release(plan, key=key), BudgetError)
        if isinstance(found, BudgetError):
            assert not quoted, "the quote said that it fits"
            return
        assert quoted
        raw = record.canonical(found.raw)
        if known:
            assert raw in known, "a stored answer is the same to the last byte"
            return
        self.filed(found.receipt, "answered")
        if waits:
            spot = waits[0]  # the oldest list that serves; its part is on the accounts of the list
            del self.waiting[spot]
        else:
            self.pay(asked, cost)
        self.answers[spot], self.plans[plan.hash] = raw, plan
        if key is not None:
            self.keys[key] = asked, plan, found.receipt.id

    @rule(who=person, data=data, version=version, kind=st.sampled_from(tuple(KINDS)), size=size, which=handle)
    def any_plan(self, who: str, data: str, version: str, kind: str, size: Fraction, which: int) -> None:
        self.release((who, data, version), KINDS[kind](size), which)

    @rule(who=person, data=data, size=size, which=handle)
    def a_query(self, who: str, data: str, size: Fraction, which: int) -> None:
        self.release((who, data, "1"), offices.ENGINE["sql"](size), which)

    @precondition(lambda self: self.answers)
    @rule(draw=st.data(), which=handle)
    def the_same_again(self, draw: st.DataObject, which: int) -> None:
        asked, hash_ = draw.draw(st.sampled_from(sorted(self.answers)))
        self.release(asked, self.plans[hash_], which)

    @rule(who=person, data=data, size=size, which=handle)
    def under_a_key(self, who: str, data: str, size: Fraction, which: int) -> None:
        self.number += 1
        plan = Wild(does="answer", epsilon=size, number=self.number)
        self.release((who, data, "1"), plan, which, key=f"key {self.number}")

    @precondition(lambda self: self.keys)
    @rule(draw=st.data(), which=handle, other=st.booleans())
    def a_retry(self, draw: st.DataObject, which: int, other: bool) -> None:
        key = draw.draw(st.sampled_from(sorted(self.keys)))
        asked, plan, id = self.keys[key]
        if other:
            strange = Wild(does="answer", epsilon=SIZES[0], number=-1)
            found = self.refused(lambda: self.curator(asked, which).release(strange, key=key))
            assert isinstance(found, ReceiptError), "a key is for one plan"
            return
        found = self.curator(asked, which).release(plan, key=key)
        assert found.receipt.id == id and record.canonical(found.raw) == self.answers[asked, plan.hash]

    @rule(
        who=person,
        data=data,
        size=size,
        which=handle,
        does=st.sampled_from(("raise", "interrupt", "exit", "chained", "no value")),
    )
    def it_fails(self, who: str, data: str, size: Fraction, which: int, does: str) -> None:
        self.number += 1
        asked, plan = (who, data, "1"), Wild(does=does, epsilon=size, number=self.number)
        quoted = self.curator(asked, which).quote(plan).affordable
        try:
            self.curator(asked, which).release(plan)
        except BudgetError as problem:
            assert not quoted and SECRET not in everything_said(problem)
            return
        except BaseException as problem:
            assert isinstance(problem, KeyboardInterrupt if does == "interrupt" else DataError)
            assert SECRET not in everything_said(problem)
        else:
            raise AssertionError("it was to fail")
        assert quoted
        self.filed(self.newest(), "failed")
        self.pay(asked, size)
        self.unlock()

    def unlock(self) -> None:
        """An officer looks, whenever failures have locked an account."""
        for name in TREE:
            self.refused(lambda name=name: self.ledgers[0].unlock(name, "looked"), BudgetError, ArgumentError)  # type: ignore[misc]

    # --- paid in other ways -----------------------------------------------------------------------------------------

    @rule(who=person, data=data, sizes=st.lists(size, min_size=1, max_size=3, unique=True), which=handle)
    def prepay(self, who: str, data: str, sizes: list[Fraction], which: int) -> None:
        asked = (who, data, "1")
        parts = {f"p{each.denominator}": m.Geometric(query=COUNT, epsilon=each) for each in sizes}
        spots = {(asked, plan.hash): plan for plan in parts.values()}
        found = self.refused(lambda: self.curator(asked, which).prepay(sequence(**parts)), BudgetError, ReceiptError)
        if isinstance(found, ReceiptError):
            assert any(self.serving((*self.waiting, *self.answers), *spot) for spot in spots)
        elif isinstance(found, BudgetError):
            assert not self.room(asked, sum(sizes, Fraction(0)))
        else:
            self.filed(found, "in parts")
            self.pay(asked, sum(sizes, Fraction(0)))
            self.waiting |= spots

    @precondition(lambda self: self.waiting)
    @rule(draw=st.data(), which=handle)
    def take_a_part(self, draw: st.DataObject, which: int) -> None:
        asked, hash_ = draw.draw(st.sampled_from(sorted(self.waiting)))
        self.release(asked, self.waiting[asked, hash_], which)

    @rule(
        who=person,
        data=data,
        size=size,
        which=handle,
        draws=st.integers(0, 6),
        ends=st.sampled_from(("well", "raises")),
    )
    def an_own_loop(self, who: str, data: str, size: Fraction, which: int, draws: int, ends: str) -> None:
        asked, child = (who, data, "1"), m.Laplace(query=COUNT, epsilon=size / 4)
        done = 0
        try:
            with self.curator(asked, which).supervise(offices.loop(size)) as run:
                self.filed(run.receipt, "answered" if ends == "well" else "failed")
                assert not self.room(asked, size) or all(self.ledgers[0].held(name) for name in path_of(who, data))
                for _ in range(draws):
                    if isinstance(self.refused(lambda: run.release(child), BudgetError), BudgetError):
                        assert done == 4
                        continue
                    done += 1
                if ends == "raises":
                    raise ZeroDivisionError
        except BudgetError:
            assert not self.room(asked, size) and not done
            return
        except ZeroDivisionError:
            assert ends == "raises"
        self.pay(asked, done * size / 4)
        self.unlock()

    @rule(who=person, data=data, size=size, which=handle, questions=st.integers(0, 3))
    def a_session(self, who: str, data: str, size: Fraction, which: int, questions: int) -> None:
        asked = (who, data, "1")
        try:
            with self.curator(asked, which).session(offices.gate(size)) as session:
                self.filed(self.newest(), "answered")
                self.pay(asked, size)
                for _ in range(questions):
                    if not session.over:
                        session.ask(COUNT)
        except BudgetError:
            assert not self.room(asked, size)

    @rule(who=person, data=data, which=handle, times=st.integers(1, 5), until=st.integers(1, 6), fails=st.booleans())
    def in_steps(self, who: str, data: str, which: int, times: int, until: int, fails: bool) -> None:
        asked, each = (who, data, "1"), Fraction(1, 20)
        plan = Paced(epsilon=each, times=times, until=until, fails=fails)
        before = {self.answers[each] for each in self.serving(self.answers, asked, plan.hash)}
        drawn = min(times, until)
        try:
            found = self.curator(asked, which).release(plan)
        except BudgetError as problem:
            assert not self.room(asked, times * each) and SECRET not in everything_said(problem)
            return
        except DataError as problem:
            assert fails and SECRET not in everything_said(problem)
            self.filed(self.newest(), "failed")
            self.pay(asked, drawn * each)
            self.unlock()
            return
        assert not fails
        if before:
            assert record.canonical(found.raw) in before
            return
        self.filed(found.receipt, "answered")
        self.pay(asked, drawn * each)
        self.answers[asked, plan.hash], self.plans[plan.hash] = record.canonical(found.raw), plan

    # --- what must change nothing -----------------------------------------------------------------------------------

    @precondition(lambda self: self.receipts)
    @rule(draw=st.data(), which=handle)
    def a_receipt_twice(self, draw: st.DataObject, which: int) -> None:
        receipt = self.receipts[draw.draw(st.sampled_from(sorted(self.receipts)))]
        for act in (
            self.ledgers[which].open,
            lambda each: self.ledgers[which].settle(each, "answered", b"1"),
            lambda each: self.ledgers[which].settle(each, "failed"),
            lambda each: self.ledgers[which].draw(each, events.Pure(epsilon=SIZES[-1]), Fraction(0)),
            lambda each: self.ledgers[which].draw_steps(each, 1),
        ):
            assert isinstance(self.refused(lambda act=act: act(receipt)), SfumatoError)  # type: ignore[misc]

    @rule(who=person, data=data, which=handle, draw=st.data())
    def a_forged_receipt(self, who: str, data: str, which: int, draw: st.DataObject) -> None:
        ledger, home = self.ledgers[which], offices.private(data, "1")
        forged = Receipt("0" * 32, (who,), "0" * 64, events.Pure(epsilon=1), home.address, offices.UNIT, "exact")
        if self.receipts:
            true = self.receipts[draw.draw(st.sampled_from(sorted(self.receipts)))]
            changes = (
                {"data": "other@1"},
                {"plan_hash": "1" * 64},
                {"loop": "trusted loop"},
                {"accounts": ("ben",)},
                {"note": "x"},
            )
            forged = draw.draw(st.sampled_from((forged, *(replace(true, **each) for each in changes))))
        if forged == self.receipts.get(forged.id):
            return
        for act in (ledger.open, lambda each: ledger.settle(each, "answered", b"1"), ledger.close):
            assert isinstance(self.refused(lambda act=act: act(forged)), SfumatoError)  # type: ignore[misc]

    @rule(who=person, data=data, size=size)
    def what_does_not_fit_the_data(self, who: str, data: str, size: Fraction) -> None:
        from sfumato import Unit, bounds

        strange = (
            m.Laplace(query=bounds.count(Unit()), epsilon=size),
            m.Laplace(query=bounds.clipped_sum("height", 0, 1, offices.UNIT, per_unit=1), epsilon=size),
        )
        for plan in strange:
            found = self.refused(lambda plan=plan: self.curator((who, data, "1")).release(plan))  # type: ignore[misc]
            assert isinstance(found, PlanError)
        nobody = Curator(offices.private(data, "1"), self.ledgers[0], accounts=("nobody",))
        found = self.refused(lambda: nobody.release(m.Laplace(query=COUNT, epsilon=size)))
        assert isinstance(found, BudgetError)

    @rule(
        name=st.sampled_from(tuple(TREE)),
        limit=st.sampled_from((Fraction(1, 2), Fraction(1), Fraction(5, 2), Fraction(6))),
    )
    def another_limit(self, name: str, limit: Fraction) -> None:
        found = self.refused(
            lambda: self.ledgers[0].change_limit(name, Budget(epsilon=limit), reason="as asked"),
            BudgetError,
            ArgumentError,
        )
        if found is None:
            assert limit >= self.paid[name], "a limit below what is spent"
            self.limits[name] = limit

    @rule(which=handle)
    def reopen(self, which: int) -> None:
        self.ledgers[which].shut()
        self.ledgers[which] = open_ledger(self.place)

    @rule(ending=st.sampled_from(("ndjson", "csv")))
    def export(self, ending: str) -> None:
        out = self.folder / f"out.{ending}"
        self.ledgers[1].export(out, overwrite=True)
        assert SECRET not in out.read_text(encoding="utf-8")

    # --- what always holds ------------------------------------------------------------------------------------------

    @invariant()
    def the_books_are_the_model(self) -> None:
        for ledger in self.ledgers:
            for name in TREE:
                assert spent(ledger, name) == [self.paid[name]] and not ledger.held(name)
        assert all(self.paid[name] <= self.limits[name] for name in TREE)

    @invariant()
    def every_receipt_is_what_became_of_it(self) -> None:
        with self.ledgers[1]._store.reading() as book:
            found = {filed.receipt.id: filed for _, filed in book.receipts()}
        told = {id: "spent" if state == "in parts" else state for id, state in self.state.items()}
        assert {id: filed.state for id, filed in found.items()} == told
        kept = Counter(filed.answer for filed in found.values() if filed.answer is not None)
        assert kept == Counter(self.answers.values()), "every answer is kept once, as it was given"

    def teardown(self) -> None:
        try:
            report = self.ledgers[0].verify()
            assert report.ok, report
            rows = {row.id: row.state for row in self.ledgers[1].releases()}
            assert rows == self.state
            for name in TREE:
                self.ledgers[0].statement(name)
        finally:
            for ledger in self.ledgers:
                ledger.shut()
            shutil.rmtree(self.folder)


OTHER = """
import sys
from fractions import Fraction
from sfumato import Curator
from sfumato.errors import BudgetError
from sfumato.ledger import open_ledger
from tests.fuzz import offices
place, who, data, number = sys.argv[1:]
with open_ledger(place) as ledger:
    try:
        plan = offices.Wild(does="answer", epsilon=Fraction(1, 10), number=int(number))
        print(Curator(offices.private(data, "1"), ledger, accounts=(who,)).release(plan).receipt.id)
    except BudgetError:
        print("refused")
"""


class Offices(Office):
    """The same, with another process that spends from the same file."""

    @rule(who=person, data=data)
    def another_process(self, who: str, data: str) -> None:
        self.number += 1
        asked, plan = (who, data, "1"), Wild(does="answer", epsilon=Fraction(1, 10), number=self.number)
        command = [sys.executable, "-c", OTHER, str(self.place), who, data, str(self.number)]
        root = Path(__file__).parents[2]
        search = os.pathsep.join((str(root / "src"), str(root / "referee" / "src"), str(root)))
        ended = subprocess.run(
            command, capture_output=True, text=True, cwd=root, check=True, env={**os.environ, "PYTHONPATH": search}
        )
        told = ended.stdout.strip()
        assert (told == "refused") == (not self.room(asked, Fraction(1, 10)))
        if told != "refused":
            self.filed(self.newest(), "answered")
            self.pay(asked, Fraction(1, 10))
            self.answers[asked, plan.hash], self.plans[plan.hash] = record.canonical(self.number), plan


def test_an_office_in_any_order() -> None:
    run_state_machine_as_test(Office, settings=settings(max_examples=12, stateful_step_count=25, deadline=None))  # type: ignore[no-untyped-call]


@pytest.mark.slow
def test_many_offices_in_any_order() -> None:
    run_state_machine_as_test(Offices, settings=settings(max_examples=150, stateful_step_count=50, deadline=None))  # type: ignore[no-untyped-call]


PLANTED = """
import sys
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from sfumato_referee.mutation import MUTANTS
from tests.fuzz.test_fuzz_machine import Office
for fault in MUTANTS:
    if fault.name in sys.argv[1:]:
        fault.plant()
some = settings(max_examples=60, stateful_step_count=30, deadline=None, derandomize=True, phases=[Phase.generate])
try:
    run_state_machine_as_test(Office, settings=some)
except Exception as problem:
    print("noticed:", type(problem).__name__)
else:
    print("passed")
"""
FAULTS = (
    "a failure gives the charge back",
    "one more passes when the limit is reached",
    "only the first account pays",
    "nothing above an account is charged",
    "a receipt opens again and again",
    "stored answers of other data",
    "a part of a list is taken for good",
    "the chain does not cover its entries",
    "a second key pays for the same request",
    "errors tell what went wrong with the data",
    "answers are not kept",
)


def _told(*faults: str) -> str:
    root = Path(__file__).parents[2]
    search = os.pathsep.join((str(root / "src"), str(root / "referee" / "src"), str(root)))
    command = [sys.executable, "-c", PLANTED, *faults]
    ended = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": search})
    return ended.stdout.strip() or ended.stderr


@pytest.mark.parametrize("fault", [FAULTS[0], *(pytest.param(each, marks=pytest.mark.slow) for each in FAULTS[1:])])
def test_the_machine_notices_a_fault_of_the_ledger(fault: str) -> None:
    assert fault in {each.name for each in MUTANTS}
    assert _told(fault).startswith("noticed: ")


@pytest.mark.slow
def test_and_none_where_there_is_none() -> None:
    assert _told() == "passed"
