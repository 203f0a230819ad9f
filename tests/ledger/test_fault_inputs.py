"""Odd times and odd values on a ledger in a file: interrupts (L4), moved clocks (L8), exactness across restarts (L11),
fuzzed costs and names (L12), and keys used by many at once (L3)."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import pytest

from sfumato import Budget, Curator, Private, Unit
from sfumato.errors import ArgumentError, BudgetError, DataError, LedgerError, ReceiptError, SfumatoError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.proof.chain import first_broken
from sfumato.ledger.stores.sqlite import SQLiteStore
from sfumato.plan import Plan
from sfumato.record import record
from sfumato_referee.attacks.ledger import arithmetic, refunds
from sfumato_referee.attacks.ledger.ground import Choices, entries_of
from sfumato_referee.attacks.ledger.racing import both_spend
from sfumato_referee.attacks.ledger.rights import NASTY
from sfumato_referee.mutants.stores import ReadThenInsert
from tests.helpers import AGES, BY_PATIENT, PATIENTS, hooked, laplace, spent


@contextmanager
def ledger_in(
    path: Path, kind: type[SQLiteStore] = SQLiteStore, *, epsilon: Any = 10, delta: Any = 0
) -> Iterator[Ledger]:
    """A ledger in a file, made if it is not there."""
    new = not path.exists()
    store = kind(path, create=new)
    ledger = Ledger(store)
    if new:
        ledger.open_account("patients", Budget(epsilon=epsilon, delta=delta))
    try:
        yield ledger
    finally:
        store.close()


def curator_of(ledger: Ledger) -> Curator:
    return Curator(Private("patients", AGES, unit=BY_PATIENT, schema=PATIENTS), ledger)


# L2, L3: two at once


def test_l2_one_of_two_spenders_is_refused_and_read_then_insert_is_caught(tmp_path: Path) -> None:
    assert both_spend(tmp_path / "right", SQLiteStore) == 1
    assert both_spend(tmp_path / "wrong", ReadThenInsert) == 2


def test_l3_many_requests_with_one_key_draw_once(tmp_path: Path) -> None:
    start, draws = threading.Barrier(6), []

    def draw(rows: Any, run: Any) -> int:
        draws.append(1)
        return len(draws)

    plan = hooked("one-key", draw, epsilon=1)

    def ask(_: int) -> str:
        with ledger_in(tmp_path / "ledger") as ledger:
            start.wait()
            try:
                return str(curator_of(ledger).release(plan, key="the key").raw)
            except ReceiptError as problem:
                return str(problem)

    with ledger_in(tmp_path / "ledger") as ledger:
        with ThreadPoolExecutor(6) as pool:
            told = list(pool.map(ask, range(6)))
        assert draws == [1] and spent(ledger, "patients") == [1]
        assert told.count("1") >= 1, "the one who opened it gets the answer, whatever the others do"
        assert all(text == "1" or "opened before" in text or "a new key pays again" in text for text in told)
        assert curator_of(ledger).release(plan, key="the key").raw == 1
        failed = hooked("fails", lambda rows, run: 1 / 0, epsilon=1)
        with pytest.raises(DataError):
            curator_of(ledger).release(failed, key="second")
        with pytest.raises(ReceiptError, match="a new key pays again"):
            curator_of(ledger).release(failed, key="second")
        assert spent(ledger, "patients") == [2]
        with pytest.raises(DataError):
            curator_of(ledger).release(failed, key="third")
        assert spent(ledger, "patients") == [3]


def test_l3_a_key_may_meet_a_stored_answer_but_never_replaces_one(tmp_path: Path) -> None:
    with ledger_in(tmp_path / "ledger") as ledger:
        curator = curator_of(ledger)
        first = curator.release(laplace(1, BY_PATIENT), key="a")
        assert curator.release(laplace(1, BY_PATIENT), key="b").raw == first.raw
        assert curator.release(laplace(1, BY_PATIENT)).receipt == first.receipt
        assert spent(ledger, "patients") == [1]
        with pytest.raises(ReceiptError, match="a key pays for one release"):
            curator.release(laplace(2, BY_PATIENT), key="a")
        for bad in ("", "x" * 201, "a\nb", 7):
            with pytest.raises(ArgumentError):
                curator.release(laplace(2, BY_PATIENT), key=bad)  # type: ignore[arg-type]
        assert spent(ledger, "patients") == [1]


# L4: an interrupt at any time


def test_l4_an_interrupt_at_any_time_leaves_a_ledger_that_goes_on(quick: Path) -> None:
    hits, falls = refunds.interrupted(quick, 150, seed=5)
    assert hits >= 10 and not falls


# L8: the clock is told, and decides nothing


@pytest.mark.parametrize("years", [-10, 10, -50, 1000])
def test_l8_a_clock_that_is_moved_changes_nothing(quick: Path, monkeypatch: pytest.MonkeyPatch, years: int) -> None:
    class Moved(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) + timedelta(days=365 * years)

    with ledger_in(quick / "ledger", epsilon=1) as ledger:
        curator_of(ledger).release(laplace(Fraction(9, 10), BY_PATIENT))
        before = ledger.spent("patients"), ledger.left("patients")
    modules = [module for name, module in sys.modules.items() if name.startswith("sfumato.ledger")]
    moved = [module for module in modules if getattr(module, "datetime", None) is datetime]
    assert moved
    for module in moved:
        monkeypatch.setattr(module, "datetime", Moved)
    monkeypatch.setattr("time.time", lambda: 0.0)
    with ledger_in(quick / "ledger") as ledger:
        assert (ledger.spent("patients"), ledger.left("patients")) == before
        with pytest.raises(BudgetError):
            curator_of(ledger).release(laplace(Fraction(1, 5), BY_PATIENT))
        curator_of(ledger).release(laplace(Fraction(1, 10), BY_PATIENT))
        with pytest.raises(BudgetError):
            curator_of(ledger).release(laplace(1e-9, BY_PATIENT))
        assert first_broken(ledger._store.entries()) is None
        years_told = {datetime.fromisoformat(entry["at"]).year for entry in entries_of(ledger._store)}
        assert len(years_told) == 2, "the moved clock was in use"


# L11: exact, also when every spend opens the ledger anew


@pytest.mark.parametrize(("part", "parts"), arithmetic.SUMS)
def test_l11_exact_across_restarts(quick: Path, part: Any, parts: int) -> None:
    assert arithmetic.across_restarts(quick / "ledger", part, parts) == []


# L12: odd costs and names


@record("test-priced/1")
@dataclass(frozen=True, kw_only=True)
class Priced(Plan[Any, Any]):
    """A plan by hand: whatever is given, as its cost."""

    costs: ClassVar[list[Any]] = [None, None]

    @property
    def unit(self) -> Unit:
        return BY_PATIENT

    @property
    def event(self) -> Any:
        return self.costs[0]

    @property
    def delta(self) -> Any:
        return self.costs[1]

    def _run(self, rows: Any, run: Any) -> Any:
        raise AssertionError("never opened")


def offered(ledger: Ledger, event: Any, delta: Any, hold: bool) -> bool:
    """Was it taken?"""
    Priced.costs[:] = event, delta
    ask = ledger.hold if hold else ledger.spend
    try:
        ask(("patients",), Priced(), data="patients@1", grade="exact", note="")
    except Exception:
        return False
    return True


def fuzzed(path: Path, times: int, seed: int) -> None:
    """The costs of the attack, which draws them from held room, as plans that are spent and held."""
    choose = Choices(seed)
    with ledger_in(path, delta=1e-5) as ledger:
        taken = [offered(ledger, event, Fraction(1, 10**7), False) for event, _ in arithmetic.GOOD]
        assert all(taken), "what is right is taken"
        before = len(entries_of(ledger._store)), spent(ledger, "patients")
        for event, delta in arithmetic.odd_offers(choose, times):
            assert not offered(ledger, event, delta, choose.share() < 0.3), (event, delta)
        assert (len(entries_of(ledger._store)), spent(ledger, "patients")) == before


def test_l12_odd_costs_buy_nothing(quick: Path) -> None:
    fuzzed(quick / "ledger", 300, 1)


@pytest.mark.slow
def test_l12_a_hundred_thousand_odd_costs_buy_nothing(quick: Path) -> None:
    fuzzed(quick / "ledger", 100_000, 2)


def test_l12_names_are_stored_or_refused_and_never_run(quick: Path) -> None:
    plan, stored = laplace(Fraction(1, 1000), BY_PATIENT), 0
    with ledger_in(quick / "ledger") as ledger:
        for number, nasty in enumerate(NASTY):
            for use in (
                lambda nasty=nasty: ledger.open_account(nasty, Budget(epsilon=1)),
                lambda nasty=nasty, n=number: ledger.open_account(f"account {n}", Budget(epsilon=1), reason=nasty),
                lambda nasty=nasty: ledger.open_account("child", Budget(epsilon=1), parent=nasty),
                lambda nasty=nasty: ledger.spend((nasty,), plan, data="patients@1", grade="exact", note=""),
                lambda nasty=nasty: ledger.spend(("patients",), plan, data=nasty, grade="exact", note=""),
                lambda nasty=nasty: ledger.spend(("patients",), plan, data="patients@1", grade=nasty, note=""),
                lambda nasty=nasty: ledger.spend(("patients",), plan, data="patients@1", grade="exact", note=nasty),
                lambda nasty=nasty: ledger.spend(("patients",), plan, data="d", grade="exact", note="", key=nasty),
                lambda nasty=nasty: ledger.answer(("patients",), nasty, nasty),
                lambda nasty=nasty: ledger.unlock("patients", nasty),
                lambda nasty=nasty: ledger.left(nasty),
            ):
                try:
                    use()
                    stored += 1
                except LedgerError:
                    raise
                except SfumatoError as problem:
                    assert len(str(problem)) < 1000
        for bad in (None, 7, [], ("a", "b"), b"x", {}):
            for path in ((bad,), bad):
                with pytest.raises(SfumatoError):
                    ledger.spend(path, plan, data="patients@1", grade="exact", note="")  # type: ignore[arg-type]
            with pytest.raises(SfumatoError):
                ledger.open(bad)  # type: ignore[arg-type]
    assert stored > 20
    with ledger_in(quick / "ledger") as ledger:
        assert first_broken(ledger._store.entries()) is None
        for entry in entries_of(ledger._store):
            if entry["kind"] == "open account" and entry["account"] in NASTY:
                ledger.spend((entry["account"],), plan, data="patients@1", grade="exact", note="")
                assert spent(ledger, entry["account"])[0] > 0
