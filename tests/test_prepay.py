"""The one door, for lists that are paid as one: what is released, what is charged, and what an attacker tries."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from sfumato import Budget, Curator, MemoryLedger, Private, Schema, Unit, bounds, reserve, sequence
from sfumato import mechanisms as m
from sfumato.combine import Sequence
from sfumato.errors import ArgumentError, BudgetError, DataError, PlanError, PrivacyWarning, ReceiptError
from sfumato.ledger.ledger import Ledger
from sfumato.plan import Receipt
from sfumato.schema import key, real
from tests.helpers import AGES, BY_PATIENT, PATIENTS, SECRET, everything_said, filed_in, hooked, spent
from tests.talking import talking

THIRD = Fraction(1, 3)
COUNT = m.Laplace(query=bounds.count(BY_PATIENT, per_unit=2), epsilon=THIRD)
MEAN = m.Laplace(query=bounds.mean("age", 0, 120, BY_PATIENT, per_unit=2), epsilon=THIRD)


def data(version: str = "1", columns: Any = AGES) -> Private:
    return Private("patients", columns, unit=BY_PATIENT, schema=PATIENTS, version=version)


def house(epsilon: Any = 1, **how: Any) -> Curator:
    return Curator(data(**how), MemoryLedger({"patients": Budget(epsilon=epsilon)}))


def left(curator: Curator) -> Fraction:
    return spent(curator.ledger, "patients")[0]  # type: ignore[arg-type]


def sound(curator: Curator) -> None:
    assert isinstance(curator.ledger, Ledger)
    report = curator.ledger.verify()
    assert report.ok, report


def test_a_list_is_paid_once_and_released_part_by_part() -> None:
    curator = house(2 * THIRD)
    receipt = curator.prepay(sequence(count=COUNT, mean=MEAN), note="monthly")
    assert isinstance(receipt, Receipt) and left(curator) == 2 * THIRD
    count = curator.release(COUNT)
    mean = curator.release(MEAN, note="the mean")
    assert left(curator) == 2 * THIRD, "the budget was gone, and both ran"
    assert count.receipt is not None and mean.receipt is not None
    assert (count.receipt.note, mean.receipt.note) == ("monthly", "the mean")
    assert curator.release(COUNT).raw == count.raw, "asked again: the stored answer"
    assert "exact noise, part" in count.explain()
    with pytest.raises(BudgetError):
        curator.release(sequence(count=COUNT, mean=MEAN))
    sound(curator)


def test_a_quote_says_what_is_due() -> None:
    curator = house(2 * THIRD)
    assert curator.quote(COUNT).due is None and "due now" not in str(curator.quote(COUNT))
    curator.prepay(sequence(count=COUNT, mean=MEAN))
    quote = curator.quote(COUNT)
    assert quote.affordable and quote.verdict == "free now" and "paid already" in str(quote)
    assert quote.used["patients"][0] == quote.used["patients"][1] and "paid already" in quote._repr_html_()
    curator.release(COUNT)
    assert "answered already" in str(curator.quote(COUNT)) and curator.quote(COUNT).affordable
    assert "does not fit" in str(curator.quote(m.Laplace(query=bounds.count(BY_PATIENT, per_unit=2), epsilon=1)))
    assert "paid already" in str(curator.quote(MEAN))


def failing(rows: Any, run: Any) -> Any:
    raise ValueError(SECRET)


def test_a_part_that_fails_is_gone_and_tells_nothing() -> None:
    curator = house()
    bad = hooked("prepay-fails", failing)
    curator.prepay(sequence(bad=bad, count=COUNT))
    before = left(curator)
    with pytest.raises(DataError) as told:
        curator.release(bad)
    assert SECRET not in everything_said(told.value)
    assert left(curator) == before and [f.state for f in filed_in(curator.ledger)].count("failed") == 1  # type: ignore[arg-type]
    with pytest.raises(DataError):
        curator.release(bad)
    assert left(curator) == before + Fraction(1, 10), "the second run paid for itself"
    curator.release(COUNT)
    sound(curator)


def test_three_failures_lock_the_parts_that_wait() -> None:
    """Otherwise a list of failing plans would be a list of free bits."""
    curator = house()
    bad = {f"bad{k}": hooked(f"prepay-bit-{k}", failing, epsilon=Fraction(1, 100)) for k in range(6)}
    curator.prepay(sequence(**bad))
    told = []
    for plan in bad.values():
        try:
            curator.release(plan)
        except (DataError, BudgetError) as problem:
            told.append(type(problem))
    assert told == [DataError] * 3 + [BudgetError] * 3
    sound(curator)


def test_the_noise_of_one_payment_is_drawn_once() -> None:
    """Averaging attack: ask for the part again and again, with and without keys."""
    curator = house(10)
    draws: list[int] = []

    def drawn(rows: Any, run: Any) -> int:
        draws.append(1)
        return len(draws)

    plan = hooked("prepay-drawn", drawn, epsilon=THIRD)
    curator.prepay(sequence(plan=plan, count=COUNT), key="list")
    answers = {curator.release(plan, key=each).raw for each in (None, "k", None, "k", "l")}
    for _ in range(3):
        curator.prepay(sequence(plan=plan, count=COUNT), key="list")
        answers.add(curator.release(plan).raw)
    assert answers == {1} and len(draws) == 1
    paid = left(curator)
    newer = Curator(data("2"), curator.ledger)
    newer.release(plan)
    assert left(curator) == paid + THIRD and len(draws) == 2, "another version of the data pays"
    sound(curator)


def test_a_list_paid_on_one_data_set_is_not_run_on_another() -> None:
    ledger = MemoryLedger({"patients": Budget(epsilon=1), "others": Budget(epsilon=1)})
    Curator(data(), ledger).prepay(sequence(count=COUNT))
    other = Curator(Private("others", AGES, unit=BY_PATIENT, schema=PATIENTS), ledger)
    other.release(COUNT)
    assert spent(ledger, "patients") == spent(ledger, "others") == [THIRD]


def bad_column() -> Sequence:
    return sequence(count=COUNT, mean=m.Laplace(query=bounds.mean("height", 0, 3, BY_PATIENT), epsilon=THIRD))


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "a plan that is no list": (lambda: COUNT, PlanError, "only a list"),
    "no plan at all": (lambda: [COUNT, MEAN], ArgumentError, "sequence"),
    "a part that does not fit the data": (bad_column, PlanError, "height"),
    "another unit": (lambda: sequence(n=m.Laplace(query=bounds.count(Unit()), epsilon=THIRD)), PlanError, "unit"),
    "the same plan twice": (lambda: sequence(a=COUNT, b=MEAN, c=COUNT), PlanError, "'a' and 'c'"),
    "a loop of one's own": (
        lambda: sequence(a=COUNT, b=reserve(unit=BY_PATIENT, budget=Budget(epsilon=THIRD))), PlanError, "'b'"
    ),
    "a conversation without questions": (lambda: sequence(a=COUNT, t=talking("mute")), PlanError, "no questions"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_lists_that_could_not_run_charge_nothing(what: str) -> None:
    curator = house()
    make, error, words = REFUSED[what]
    with pytest.raises(error, match=words):
        curator.prepay(make())
    assert left(curator) == 0
    sound(curator)


def test_a_large_delta_of_the_whole_list_is_warned_of() -> None:
    ledger = MemoryLedger({"patients": Budget(epsilon=5, delta=Fraction(1, 100))})
    schema = Schema.of(patient=key(), age=real(0, 120), unit="patient", rows=10_000)
    columns = {"patient": AGES["patient"], "age": AGES["age"]}
    curator = Curator(Private("patients", columns, unit=BY_PATIENT, schema=schema), ledger)
    plans = {
        f"g{k}": m.Gaussian(query=bounds.count(BY_PATIENT, per_unit=k), epsilon=THIRD, delta=Fraction(6, 10**5))
        for k in (1, 2)
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for plan in plans.values():
            curator.quote(plan)
    with pytest.warns(PrivacyWarning, match="above 1/n"):
        curator.prepay(sequence(**plans))


def test_a_key_of_a_list_releases_nothing() -> None:
    curator = house()
    plans = sequence(count=COUNT)
    curator.prepay(plans, key="k")
    for _ in range(2):
        with pytest.raises(ReceiptError):
            curator.release(plans, key="k")
    with pytest.raises(ReceiptError):
        curator.release(COUNT, key="k")
    assert left(curator) == THIRD
    assert curator.release(COUNT, key="l").receipt.loop == "part"  # type: ignore[union-attr]
    sound(curator)


def test_a_conversation_of_a_list_is_held_once() -> None:
    curator = house()
    talk = talking("listed", questions=(1, 2))
    curator.prepay(sequence(talk=talk, count=COUNT))
    before = left(curator)
    with curator.session(talk) as session:
        assert session.receipt.loop == "part" and session.ask(7) == ("said", 0)
        curator.release(COUNT)  # another part, in between
    assert left(curator) == before
    with curator.session(talk):
        assert left(curator) == before + Fraction(1, 10)
    sound(curator)
