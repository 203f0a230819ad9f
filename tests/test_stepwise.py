"""The one door, for plans that run in steps: held whole, drawn before each step, gone on with after an interrupt."""

from __future__ import annotations

import os
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from sfumato import Budget, Curator, MemoryLedger, Private, events, reserve, sequence
from sfumato.errors import BudgetError, DataError, LedgerError, PlanError, ReceiptError
from sfumato.ledger.ledger import Ledger
from sfumato.noise import Noise, SeededBits
from sfumato.plan import Run
from tests.helpers import AGES, BY_PATIENT, PATIENTS, SECRET, Columns, SpyLedger, everything_said, filed_in, spent
from tests.stepping import STOP, Stepping, stepping

RHO = Fraction(1, 32)  # of one step at multiplier 4
RATE = Fraction(1, 100)


def house(budget: Budget, ledger: Any = None, columns: Any = AGES, version: str = "1") -> Curator:
    private = Private("patients", columns, unit=BY_PATIENT, schema=PATIENTS, version=version)
    return Curator(private, ledger or MemoryLedger({"patients": budget}))


def rho(steps: int = 6) -> Budget:
    return Budget(rho=steps * RHO)


def paid(curator: Curator) -> Fraction:
    return spent(curator.ledger, "patients")[0]  # type: ignore[arg-type]


def sound(curator: Curator) -> None:
    assert isinstance(curator.ledger, Ledger)
    report = curator.ledger.verify()
    assert report.ok, report


def test_every_step_is_drawn_before_it_runs() -> None:
    log: list[str] = []
    ledger = SpyLedger({"patients": rho()}, log)
    told: list[tuple[int, int, Fraction]] = []

    def after(rows: Any, run: Run) -> None:
        log.append("step")
        told.append((run.drawn, run.left, spent(ledger, "patients")[0]))

    plan = stepping(after)
    release = house(rho(), ledger).release(plan)
    assert log == ["answer", "hold", "open", *["step"] * 6, "settle answered"]
    assert told == [(k, 6 - k, k * RHO) for k in range(1, 7)], "the ledger has it before the step runs"
    assert release.raw["steps"] == 6 and release.receipt is not None and release.receipt.loop == "steps"
    assert "exact noise, steps" in release.explain()
    assert ledger.held("patients") == () and ledger.verify().ok
    again = house(rho(), ledger).release(plan)
    assert again.raw == release.raw and len(told) == 6, "asked again: the stored answer"


@pytest.mark.parametrize("fields", [{}, {"rate": RATE}, {"rate": RATE, "tau": Fraction(1, 10**9)}], ids=str)
@pytest.mark.parametrize("at_once", [1, 4, 6])
def test_a_budget_of_exactly_the_plan_s_price_covers_it(fields: Any, at_once: int) -> None:
    plan = stepping(at_once=at_once, **fields)
    curator = house(Budget(epsilon=plan.price(), delta=plan.delta))
    assert curator.quote(plan).affordable
    release = curator.release(plan)
    assert release.raw["steps"] == 6 and paid(curator) == plan.price()
    sound(curator)


def test_a_budget_in_rho_pays_step_by_step_and_a_stop_frees_the_rest() -> None:
    curator = house(rho())

    def stops(rows: Any, run: Run) -> str:
        return STOP if run.drawn == 2 else ""

    assert curator.release(stepping(stops)).raw["steps"] == 2
    assert paid(curator) == 2 * RHO
    sound(curator)
    assert curator.release(stepping(times=4, tag="")).raw["steps"] == 4, "the rest was freed"


def test_where_plans_add_up_a_stop_frees_nothing() -> None:
    plan = stepping(lambda rows, run: STOP, tag="at once", rate=RATE)
    curator = house(Budget(epsilon=plan.price(), delta=plan.delta))
    assert curator.release(plan).raw["steps"] == 1
    assert paid(curator) == plan.price()
    sound(curator)


def failing(rows: Any, run: Run) -> None:
    if run.drawn == 3:
        raise ValueError(SECRET)


@pytest.mark.parametrize("key", [None, "train"])
def test_a_failure_tells_nothing_and_frees_the_rest(key: str | None) -> None:
    curator = house(rho())
    with pytest.raises(DataError) as told:
        curator.release(stepping(failing), key=key)
    assert SECRET not in everything_said(told.value)
    assert paid(curator) == 3 * RHO and [filed.state for filed in filed_in(curator.ledger)] == ["failed"]  # type: ignore[arg-type]
    assert curator.ledger.held("patients") == ()  # type: ignore[attr-defined]
    if key is not None:
        with pytest.raises(ReceiptError, match="a new key pays again"):
            curator.release(stepping(failing), key=key)
    sound(curator)


def interrupting(at: int) -> Callable[[Any, Run], None]:
    calls = []

    def hook(rows: Any, run: Run) -> None:
        calls.append(run.drawn)
        if len(calls) == at:
            raise KeyboardInterrupt

    return hook


def test_an_interrupt_under_a_key_is_gone_on_with(tmp_path: Path) -> None:
    """Step 3 was drawn and is lost: it is drawn again, so five are run for six."""
    curator = house(rho())
    plan = stepping(interrupting(3), tag="interrupted", place=str(tmp_path))
    with pytest.raises(KeyboardInterrupt) as told:
        curator.release(plan, key="train")
    assert "same key goes on" in "".join(told.value.__notes__)
    assert paid(curator) == 3 * RHO and len(curator.ledger.held("patients")) == 1  # type: ignore[attr-defined]
    sound(curator)
    release = house(rho(), curator.ledger).release(plan, key="train")
    assert release.raw["steps"] == 5 and paid(curator) == 6 * RHO
    assert len((tmp_path / "executed").read_text().split()) == 5
    sound(curator)
    assert curator.release(plan, key="train").raw == release.raw


def test_an_interrupt_without_a_key_is_a_failure() -> None:
    curator = house(rho())
    with pytest.raises(KeyboardInterrupt) as told:
        curator.release(stepping(interrupting(3), tag="no key"))
    assert not getattr(told.value, "__notes__", [])
    assert curator.ledger.held("patients") == () and paid(curator) == 3 * RHO  # type: ignore[attr-defined]
    sound(curator)


def test_who_drew_all_steps_ends_without_the_data(tmp_path: Path) -> None:
    columns = Columns(AGES)
    curator = house(rho(), columns=columns)
    plan = stepping(interrupting(6), tag="the last", place=str(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        curator.release(plan, key="train")
    columns.reads = 0
    release = curator.release(plan, key="train")
    assert release.raw["steps"] == 5 and columns.reads == 0 and paid(curator) == 6 * RHO
    sound(curator)


def test_an_officer_may_free_what_a_dead_run_holds_and_it_still_ends(tmp_path: Path) -> None:
    curator = house(rho())
    plan = stepping(interrupting(4), tag="freed", place=str(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        curator.release(plan, key="train")
    ledger = curator.ledger
    assert isinstance(ledger, Ledger)
    ledger.close(ledger.held("patients")[0])
    release = curator.release(plan, key="train")
    assert release.raw["steps"] == 3 and paid(curator) == 4 * RHO
    sound(curator)


def test_nothing_is_drawn_beyond_the_last_step() -> None:
    curator = house(rho(60))
    for greedy in (lambda rows, run: run.draw(6), lambda rows, run: [run.draw() for _ in range(6)]):
        with pytest.raises(DataError):
            curator.release(stepping(greedy, tag=f"greedy {paid(curator)}"))
    assert paid(curator) == RHO + 6 * RHO
    sound(curator)


@pytest.mark.parametrize("steps", [0, -1, 1.5, True, "1", None])
def test_a_draw_takes_a_whole_number(steps: Any) -> None:
    curator = house(rho(60))
    with pytest.raises(DataError):
        curator.release(stepping(lambda rows, run: run.draw(steps), tag=f"draws {steps!r}"))
    assert paid(curator) == RHO
    sound(curator)


class Forgetful(Stepping):
    """Reads the data and draws nothing."""

    def _run(self, rows: Any, run: Run) -> Any:
        return rows.unit_count


class Twice(Stepping):
    """Says that it has fewer steps than its event."""

    @property
    def steps(self) -> int:
        return self.times - 1


class Unlike(Stepping):
    """Has steps, and an event without them."""

    @property
    def event(self) -> Any:
        return events.Sequence((self.step, self.step))


def test_an_answer_for_which_nothing_was_drawn_is_not_given() -> None:
    curator = house(rho())
    with pytest.raises(PlanError, match="drew none"):
        curator.release(_unregistered(Forgetful))
    assert [filed.state for filed in filed_in(curator.ledger)] == ["failed"]  # type: ignore[arg-type]


def _unregistered(kind: type[Stepping]) -> Stepping:
    """A plan of that class under the name of its parent, as the record table allows one name."""
    from sfumato import record

    if kind not in record._FORMS:
        record.record(f"test-{kind.__name__.lower()}/1")(kind)
    return kind()


@pytest.mark.parametrize("kind", [Twice, Unlike])
def test_steps_that_are_not_those_of_the_event_are_refused_unpaid(kind: type[Stepping]) -> None:
    curator = house(rho())
    with pytest.raises(PlanError, match="Repeat"):
        curator.release(_unregistered(kind))
    assert paid(curator) == 0 and filed_in(curator.ledger) == []  # type: ignore[arg-type]


def test_a_ledger_that_cannot_be_written_leaves_the_run_to_be_gone_on_with(tmp_path: Path) -> None:
    class Full(MemoryLedger):
        left = 2

        def draw_steps(self, *args: Any) -> Any:
            if not self.left:
                raise LedgerError("the disk is full")
            self.left -= 1
            return super().draw_steps(*args)

    ledger = Full({"patients": rho()})
    curator, plan = house(rho(), ledger), stepping(place=str(tmp_path))
    with pytest.raises(LedgerError, match="disk is full") as told:
        curator.release(plan, key="train")
    assert "same key goes on" in "".join(told.value.__notes__)
    ledger.left = 99
    release = curator.release(plan, key="train")
    assert release.raw["steps"] == 6 and paid(curator) == 6 * RHO, "no step was lost"
    sound(curator)
    other = house(rho(), Full({"patients": rho()}))
    with pytest.raises(LedgerError):
        other.release(stepping(tag=""))
    assert [filed.state for filed in filed_in(other.ledger)] == ["failed"]  # type: ignore[arg-type]


def test_an_account_that_is_closed_stops_the_steps() -> None:
    curator = house(rho())
    ledger = curator.ledger
    assert isinstance(ledger, Ledger)

    def closes(rows: Any, run: Run) -> None:
        if run.drawn == 2:
            ledger.close_account("patients", reason="enough")

    with pytest.raises(BudgetError, match="closed"):
        curator.release(stepping(closes), key="train")
    assert paid(curator) == 2 * RHO
    sound(curator)


def test_a_refusal_holds_no_frame_of_the_plan() -> None:
    curator = house(rho())
    ledger = curator.ledger
    assert isinstance(ledger, Ledger)

    def closes(rows: Any, run: Run) -> None:
        secret = SECRET
        ledger.close_account("patients", reason="enough")
        assert secret

    with pytest.raises(BudgetError) as told:
        curator.release(stepping(closes, tag="frames"), key="train")
    frames, trace = [], told.value.__traceback__
    while trace is not None:
        frames.append(trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
    assert "__next__" not in frames and "_run" not in frames


# Charged whole, where it is a part of something else


def test_inside_a_sequence_it_is_charged_whole() -> None:
    curator = house(rho(12))
    plans = sequence(a=stepping(), b=stepping(times=4, at_once=4))
    release = curator.release(plans)
    assert release.receipt is not None and release.receipt.loop == "plan"
    assert [release.raw[name]["steps"] for name in "ab"] == [6, 4] and paid(curator) == 10 * RHO
    sound(curator)


def test_a_part_of_a_prepaid_list_draws_nothing_more() -> None:
    curator = house(rho())
    plan = stepping()
    curator.prepay(sequence(train=plan))
    release = curator.release(plan, key="train")
    assert release.receipt is not None and release.receipt.loop == "part"
    assert release.raw["steps"] == 6 and paid(curator) == 6 * RHO
    assert curator.release(plan, key="train").raw == release.raw
    sound(curator)


def test_inside_a_reserve_it_is_charged_whole() -> None:
    plan = stepping(times=3)
    curator = house(rho())
    release = curator.release(reserve(lambda run: run.release(plan), unit=BY_PATIENT, budget=rho(3)))
    assert release.raw["steps"] == 3 and paid(curator) == 3 * RHO
    sound(curator)


def test_a_rehearsal_counts_steps_and_pays_nothing() -> None:
    curator = house(rho())
    assert curator.rehearse(stepping()).raw["steps"] == 6 and paid(curator) == 0
    with pytest.raises(PlanError, match="0 of 6 are left"):
        curator.rehearse(stepping(lambda rows, run: run.left or run.draw(1), tag="too many"))


def test_a_run_that_knows_no_steps_says_what_to_write() -> None:
    run = Run(Noise(SeededBits(1)))
    for ask in (lambda: run.left, lambda: run.draw(1)):
        with pytest.raises(PlanError, match="steps_of"):
            ask()
    assert run.drawn == 0
    mine = run.steps_of(stepping(times=2))
    mine.draw(2)
    assert (mine.drawn, mine.left, run.drawn) == (2, 0, 0)
    with pytest.raises(PlanError):
        mine.draw(1)


# Keys


def test_a_key_is_for_one_way_of_paying(tmp_path: Path) -> None:
    curator = house(rho(30))
    plan = stepping(interrupting(2), tag="one way", place=str(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        curator.release(plan, key="train")
    with pytest.raises(ReceiptError, match="another way"), curator.supervise(plan, key="train"):
        raise AssertionError
    with pytest.raises(ReceiptError, match="another plan"):
        curator.release(stepping(times=5), key="train")
    with pytest.raises(ReceiptError, match="another plan"):
        house(rho(), curator.ledger, version="2").release(plan, key="train")
    with pytest.raises(ReceiptError, match="another way"):
        curator.ledger.spend((), plan, data=curator.private.address, grade="exact", note="", key="train")
    assert curator.release(plan, key="train").raw["steps"] == 5
    sound(curator)


def test_two_runs_under_one_key_draw_no_more_than_was_held(tmp_path: Path) -> None:
    """The second begins while the first is under way, in another process as far as the ledger knows."""
    curator = house(rho())
    told: list[Any] = []

    def both(rows: Any, run: Run) -> None:
        if run.drawn == 2 and not told:
            told.append("begun")
            inner = house(rho(), curator.ledger).release(plan, key="train")
            told.append(inner.raw["steps"])

    plan = stepping(both)
    with pytest.raises(ReceiptError):
        curator.release(plan, key="train")
    assert told == ["begun", 4] and paid(curator) == 6 * RHO
    assert curator.release(plan, key="train").raw["steps"] == 4
    sound(curator)


# The user's own loop


def test_a_loop_of_one_s_own_draws_each_step() -> None:
    curator = house(rho())
    plan = stepping()
    with curator.supervise(plan, note="mine") as loop:
        assert [next(loop) for _ in range(4)] == [1, 2, 3, 4]
        assert paid(curator) == 4 * RHO
    assert paid(curator) == 4 * RHO and loop.run.closed
    with pytest.raises(BudgetError, match="over"):
        next(loop)
    receipt = loop.run.receipt
    assert receipt.loop == "trusted steps" and receipt.trusted and receipt.by_steps
    assert [filed.state for filed in filed_in(curator.ledger)] == ["answered"]  # type: ignore[arg-type]
    assert curator.ledger.held("patients") == ()  # type: ignore[attr-defined]
    sound(curator)


def test_a_loop_goes_on_under_its_key(tmp_path: Path) -> None:
    curator, plan = house(rho()), stepping(place=str(tmp_path))
    with pytest.raises(KeyboardInterrupt), curator.supervise(plan, key="mine") as loop:
        next(loop), next(loop)
        raise KeyboardInterrupt
    with curator.supervise(plan, key="mine") as loop:
        assert (loop.run.drawn, loop.run.left, loop.done) == (2, 4, 2)
        assert list(loop) == [3, 4, 5, 6]
    assert paid(curator) == 6 * RHO
    with pytest.raises(ReceiptError, match="a new key"), curator.supervise(plan, key="mine"):
        raise AssertionError
    sound(curator)


def test_a_loop_that_fails_is_settled_and_freed() -> None:
    curator = house(rho())
    with pytest.raises(ZeroDivisionError), curator.supervise(stepping(), key="mine") as loop:
        next(loop)
        _ = 1 / 0
    assert paid(curator) == RHO and [filed.state for filed in filed_in(curator.ledger)] == ["failed"]  # type: ignore[arg-type]
    sound(curator)


def test_a_plan_without_a_loop_is_not_supervised() -> None:
    class Closed(Stepping):
        _loop = Stepping.__mro__[1]._loop  # type: ignore[attr-defined]

    curator = house(rho())
    with pytest.raises(PlanError, match="by itself"), curator.supervise(_unregistered(Closed)):
        raise AssertionError
    assert filed_in(curator.ledger) == []  # type: ignore[arg-type]


# Grades


def test_fast_noise_is_named_in_the_receipt() -> None:
    curator = house(rho(30))
    release = curator.release(stepping(fast=True))
    assert release.receipt is not None and release.receipt.grade == "float" and "float noise" in release.explain()
    listed = curator.release(sequence(a=stepping(fast=True, times=2), b=stepping(times=2)))
    assert listed.receipt is not None and listed.receipt.grade == "float"
    assert curator.release(stepping()).receipt.grade == "exact"  # type: ignore[union-attr]
    sound(curator)
    now = curator.ledger.statement("patients")  # type: ignore[attr-defined]
    assert now.inexact == 2 and "2 had noise of float grade (secure_noise = false)" in now.guarantee


def test_fast_noise_is_no_child_of_a_reserve_and_no_odd_part_of_a_list() -> None:
    curator = house(rho(30))
    with pytest.raises(PlanError, match="others have not"):
        curator.prepay(sequence(a=stepping(fast=True), b=stepping()))
    with (
        pytest.raises(PlanError, match="release it by itself"),
        curator.supervise(reserve(unit=BY_PATIENT, budget=rho())) as run,
    ):
        run.release(stepping(fast=True))
    with pytest.raises(PlanError, match="cannot say 'exact'"):
        curator.ledger.spend((), stepping(fast=True), data=curator.private.address, grade="exact", note="")


def test_a_fork_draws_from_the_same_hold() -> None:
    """A child process has the run, and memory of its own; the store in memory is copied with it, so only that it may
    not settle for its parent is seen here. Files are in tests/ledger/test_steps_killed.py."""
    curator = house(rho())
    with curator.supervise(stepping()) as loop:
        next(loop)
        child = os.fork()
        if child == 0:
            os._exit(0 if loop.run.left == 5 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert paid(curator) == RHO
