"""A list is paid as one; its parts run one by one, each once, and charge nothing more. On every store."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from sfumato import Budget, Unit, bounds, partition, repeat, reserve, sequence
from sfumato import mechanisms as m
from sfumato.combine import Sequence
from sfumato.errors import ArgumentError, BudgetError, PlanError, PolicyError, ReceiptError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.policy.policy import AccountRule
from sfumato.ledger.proof.rules_parts import part_hashes
from sfumato.plan import Plan, Receipt
from sfumato.record import canonical
from tests.helpers import BY_PATIENT, account_of, delta_spent, filed_in, laplace, spent
from tests.ledger.offices import act_of, governed
from tests.ledger.stores import ROW, Stores, login, pay
from tests.ledger.test_approvals import BANDS

ONE, TWO, FOUR = (laplace(Fraction(1, n)) for n in (10, 5, 4))
LIST = sequence(one=ONE, two=TWO, four=FOUR)
PRICE = Fraction(1, 10) + Fraction(1, 5) + Fraction(1, 4)


def prepay(ledger: Ledger, plan: Plan[Any, Any] = LIST, *accounts: str, data: str = "a@1", **more: Any) -> Receipt:
    return ledger.prepay(accounts or ("a",), plan, **{"data": data, "grade": "exact", "note": "a list", **more})


def take(ledger: Ledger, plan: Plan[Any, Any] = ONE, *accounts: str, data: str = "a@1", **more: Any) -> Receipt:
    return ledger.spend(accounts or ("a",), plan, **{"data": data, "grade": "exact", "note": "", **more})


def whole(ledgers: Stores, epsilon: Any = 5) -> Ledger:
    return ledgers({"a": Budget(epsilon=epsilon)})


def counted(ledger: Ledger) -> tuple[Fraction, int]:
    """What is spent, and how many parts wait."""
    with ledger._store.reading() as book:
        waiting = book.fact("part", "") or 0
    return spent(ledger, "a")[0], waiting


def sound(ledger: Ledger) -> None:
    report = ledger.verify()
    assert report.ok, report


# Exact sums


def test_the_list_is_charged_once_and_its_parts_nothing(ledgers: Stores) -> None:
    ledger = whole(ledgers)
    paid = prepay(ledger)
    assert (paid.loop, paid.accounts, paid.event) == ("parts", ("a",), LIST.event)
    assert counted(ledger) == (PRICE, 3)
    for number, plan in enumerate((FOUR, ONE, TWO), 1):  # in any order
        assert ledger.quote(("a",), plan, data="a@1")
        assert ledger.prepaid(("a",), plan, data="a@1") == paid
        receipt = take(ledger, plan)
        assert (receipt.loop, receipt.plan_hash, receipt.event) == ("part", plan.hash, plan.event)
        assert (receipt.accounts, receipt.unit, receipt.data) == (paid.accounts, paid.unit, paid.data)
        assert receipt.id != paid.id and receipt.note == "a list"
        assert counted(ledger) == (PRICE, 3 - number)
        assert ledger.prepaid(("a",), plan, data="a@1") is None
        ledger.open(receipt)
        ledger.settle(receipt, "answered", b"%d" % number)
        assert ledger.answer(("a",), plan.hash, "a@1") == (receipt, b"%d" % number)
    sound(ledger)
    with pytest.raises(ReceiptError, match="answered already"):
        prepay(ledger)
    assert counted(ledger) == (PRICE, 0)


def test_a_list_of_gaussians_costs_less_than_its_parts(ledgers: Stores) -> None:
    plans = {
        f"n{k}": m.Gaussian(query=bounds.count(ROW), epsilon=Fraction(1, 4 + k), delta=Fraction(1, 10**8))
        for k in range(8)
    }
    whole_list = sequence(**plans)
    assert whole_list.delta == Fraction(8, 10**8)
    assert float(whole_list.price()) < 0.6 * sum(float(plan.price()) for plan in plans.values())
    ledger, other = (ledgers({"a": Budget(epsilon=5, delta=1e-6)}) for _ in range(2))
    prepay(ledger, whole_list)
    pay(other, whole_list)
    before = spent(ledger, "a"), delta_spent(ledger, "a")
    assert before == (spent(other, "a"), delta_spent(other, "a")), "exactly what the whole costs at once"
    for plan in plans.values():
        take(ledger, plan)
    assert before == (spent(ledger, "a"), delta_spent(ledger, "a"))
    assert account_of(ledger, "a").filter.count == 1
    sound(ledger)


def test_parts_run_though_the_budget_is_gone(ledgers: Stores) -> None:
    ledger = whole(ledgers, PRICE)
    prepay(ledger)
    assert not ledger.quote(("a",), laplace(Fraction(1, 1000)), data="a@1")
    assert ledger.quote(("a",), ONE, data="a@1")
    take(ledger, ONE)
    assert not ledger.quote(("a",), ONE, data="a@1")
    with pytest.raises(BudgetError):
        take(ledger, ONE)
    assert counted(ledger) == (PRICE, 2)
    sound(ledger)


def test_a_list_that_does_not_fit_charges_nothing(ledgers: Stores) -> None:
    ledger = whole(ledgers, PRICE - Fraction(1, 1000))
    with pytest.raises(BudgetError):
        prepay(ledger)
    assert counted(ledger) == (0, 0) and ledger.prepaid(("a",), ONE, data="a@1") is None
    sound(ledger)


# One payment, one run


def test_a_part_is_taken_once(ledgers: Stores) -> None:
    ledger = whole(ledgers)
    prepay(ledger)
    first, second = take(ledger, ONE), take(ledger, ONE)
    assert (first.loop, second.loop) == ("part", "plan")
    assert counted(ledger) == (PRICE + Fraction(1, 10), 2)
    sound(ledger)


@pytest.mark.parametrize("opened", [False, True])
def test_a_part_that_failed_is_gone(ledgers: Stores, opened: bool) -> None:
    ledger = whole(ledgers)
    prepay(ledger)
    receipt = take(ledger, ONE)
    if opened:
        ledger.open(receipt)
        ledger.settle(receipt, "failed")
    assert take(ledger, ONE).loop == "plan"
    assert counted(ledger)[0] == PRICE + Fraction(1, 10)
    sound(ledger)


def test_the_list_itself_opens_nothing(ledgers: Stores) -> None:
    ledger = whole(ledgers)
    paid = prepay(ledger)
    for use in (ledger.open, lambda r: ledger.settle(r, "failed"), lambda r: ledger.settle(r, "answered", b"1")):
        with pytest.raises(ReceiptError, match="whose parts run one by one"):
            use(paid)
    assert {filed.state for filed in filed_in(ledger)} == {"spent"}
    assert account_of(ledger, "a").failures == 0
    assert take(ledger, LIST).loop == "plan", "the list, released as a whole, is another payment"
    assert counted(ledger) == (2 * PRICE, 3)
    sound(ledger)


def test_a_receipt_cannot_be_turned_into_a_list(ledgers: Stores) -> None:
    ledger = whole(ledgers)
    paid, plain = prepay(ledger), pay(ledger, laplace())
    for forged in (replace(paid, loop="plan"), replace(plain, loop="part"), replace(paid, plan_hash=ONE.hash)):
        with pytest.raises(ReceiptError, match="did not write"):
            ledger.open(forged)
    sound(ledger)


def test_another_version_of_the_data_pays(ledgers: Stores) -> None:
    ledger = whole(ledgers)
    prepay(ledger)
    for data in ("a@2", "a@11"):
        assert ledger.prepaid(("a",), ONE, data=data) is None
        assert take(ledger, ONE, data=data).loop == "plan"
    assert counted(ledger) == (PRICE + Fraction(2, 10), 3)
    sound(ledger)


def test_another_plan_unit_or_noise_pays_or_is_refused(ledgers: Stores) -> None:
    ledger = ledgers({"a": Budget(epsilon=5)})
    prepay(ledger)
    near = laplace(Fraction(1, 10) + Fraction(1, 10**9))
    assert take(ledger, near).loop == "plan"
    assert take(ledger, repeat(ONE, 1)).loop == "plan"
    with pytest.raises(BudgetError, match="no budget that protects"):
        take(ledger, laplace(Fraction(1, 10), BY_PATIENT))
    assert take(ledger, ONE, grade="float").loop == "plan", "the list was paid for exact noise"
    assert counted(ledger)[1] == 3
    sound(ledger)


def test_who_names_other_accounts_pays_there(ledgers: Stores) -> None:
    ledger = ledgers({"a": Budget(epsilon=5), "b": Budget(epsilon=5)})
    prepay(ledger, LIST, "a", "b")
    assert take(ledger, ONE, "b").accounts == ("a", "b"), "the data's own account is on every path"
    ledger.open_account("c", Budget(epsilon=1), parent="a")
    receipt = take(ledger, TWO, "c")
    assert (receipt.loop, receipt.accounts) == ("plan", ("c", "a"))
    assert spent(ledger, "b") == [PRICE] and spent(ledger, "a") == [PRICE + Fraction(1, 5)]
    assert take(ledger, TWO, "a").loop == "part"
    sound(ledger)


def test_two_lists_with_the_same_part_on_different_accounts(ledgers: Stores) -> None:
    ledger = ledgers({"a": Budget(epsilon=5)})
    for team in ("t", "u"):
        ledger.open_account(team, Budget(epsilon=2), parent="a")
    first = prepay(ledger, LIST, "t")
    second = prepay(ledger, sequence(again=ONE), "u")
    assert ledger.prepaid(("u",), ONE, data="a@1") == second
    assert take(ledger, ONE, "u").accounts == second.accounts
    assert take(ledger, ONE, "u").loop == "plan"
    assert ledger.prepaid(("t",), ONE, data="a@1") == first
    assert take(ledger, ONE, "t").accounts == first.accounts
    assert counted(ledger) == (PRICE + Fraction(2, 10), 2)
    sound(ledger)


def test_an_account_that_joins_the_data_later_makes_it_pay(ledgers: Stores) -> None:
    ledger = ledgers({"a": Budget(epsilon=5)})
    prepay(ledger)
    ledger.open_account("people", Budget(epsilon=5), reason="the same people, counted elsewhere")
    ledger.register("a", accounts=("people",), reason="their budget is there too")
    assert ledger.prepaid(("a",), ONE, data="a@1") is None
    receipt = take(ledger, ONE)
    assert receipt.loop == "plan" and set(receipt.accounts) == {"a", "people"}
    sound(ledger)


# What stops a spend stops a part


def test_a_closed_account_stops_its_parts(ledgers: Stores) -> None:
    ledger = ledgers({"a": Budget(epsilon=5)})
    ledger.open_account("t", Budget(epsilon=2), parent="a")
    prepay(ledger, LIST, "t")
    ledger.close_account("t", reason="over")
    assert not ledger.quote(("t",), ONE, data="a@1")
    with pytest.raises(BudgetError, match="'t' is closed"):
        take(ledger, ONE, "t")
    with pytest.raises(BudgetError, match="'t' is closed"):
        take(ledger, ONE)  # it was paid there too
    sound(ledger)


def test_a_lock_stops_parts_until_somebody_looks(ledgers: Stores) -> None:
    ledger = whole(ledgers)
    plans = {f"p{k}": laplace(Fraction(1, k)) for k in range(10, 15)}
    prepay(ledger, sequence(**plans))
    several = list(plans.values())
    for plan in several[:3]:
        receipt = take(ledger, plan)
        assert receipt.loop == "part"
        ledger.open(receipt)
        ledger.settle(receipt, "failed")
    assert not ledger.quote(("a",), several[3], data="a@1")
    before = counted(ledger)
    for refused in (lambda: take(ledger, several[3]), lambda: prepay(ledger, sequence(x=laplace(Fraction(1, 99))))):
        with pytest.raises(BudgetError, match="locked after 3 failures"):
            refused()
    assert counted(ledger) == before
    ledger.unlock("a", "looked")
    assert take(ledger, several[3]).loop == "part"
    sound(ledger)


# Refused lists


SUPERVISED = reserve(unit=ROW, budget=Budget(epsilon=0.1))
BAD: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no list": (lambda: ONE, PlanError, "only a list of releases"),
    "a repetition": (lambda: repeat(ONE, 3), PlanError, "only a list of releases"),
    "a partition": (lambda: partition("w", ["x"], ONE), PlanError, "only a list of releases"),
    "a part twice": (lambda: sequence(x=ONE, y=TWO, z=laplace(Fraction(1, 10))), PlanError, "'x' and 'z' are the same"),
    "a loop of one's own": (lambda: sequence(x=ONE, loop=SUPERVISED), PlanError, "'loop' runs in your own loop"),
    "no plan": (lambda: "SELECT 1", ArgumentError, "plan"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_lists_are_refused(ledgers: Stores, what: str) -> None:
    ledger = whole(ledgers)
    make, error, words = BAD[what]
    with pytest.raises(error, match=words):
        prepay(ledger, make())
    assert counted(ledger) == (0, 0)
    sound(ledger)


def test_nobody_pays_for_what_they_have(ledgers: Stores) -> None:
    ledger = whole(ledgers)
    prepay(ledger)
    with pytest.raises(ReceiptError, match="part 'b' is paid for already"):
        prepay(ledger, sequence(a=laplace(), b=TWO))
    receipt = take(ledger, TWO)
    ledger.open(receipt)
    ledger.settle(receipt, "answered", b"1")
    with pytest.raises(ReceiptError, match="part 'b' is answered already"):
        prepay(ledger, sequence(a=laplace(), b=TWO))
    assert counted(ledger) == (PRICE, 2)
    prepay(ledger, sequence(a=laplace(), b=TWO), data="a@2")
    sound(ledger)


def test_a_list_within_a_list_is_one_part(ledgers: Stores) -> None:
    ledger = whole(ledgers)
    inner = sequence(one=ONE, two=TWO)
    prepay(ledger, sequence(inner=inner, four=FOUR))
    assert take(ledger, ONE).loop == "plan", "the inner list is one release"
    assert take(ledger, inner).loop == "part"
    sound(ledger)


# Keys


def test_a_key_pays_for_a_list_once(ledgers: Stores) -> None:
    ledger = whole(ledgers)
    paid = prepay(ledger, key="monthly")
    assert prepay(ledger, key="monthly") == paid
    receipt = take(ledger, ONE)
    ledger.open(receipt)
    ledger.settle(receipt, "answered", b"1")
    assert prepay(ledger, key="monthly") == paid, "a retry gets its receipt, whatever was taken since"
    with pytest.raises(ReceiptError, match="another plan"):
        prepay(ledger, sequence(one=ONE), key="monthly")
    with pytest.raises(ReceiptError, match="in another way"):
        take(ledger, LIST, key="monthly")
    take(ledger, sequence(x=laplace(1)), key="whole")
    with pytest.raises(ReceiptError, match="in another way"):
        prepay(ledger, sequence(x=laplace(1)), key="whole")
    assert counted(ledger) == (PRICE + 1, 2)
    sound(ledger)


def test_a_key_takes_a_part_once(ledgers: Stores) -> None:
    ledger = whole(ledgers)
    prepay(ledger)
    receipt = take(ledger, ONE, key="k")
    assert receipt.loop == "part" and take(ledger, ONE, key="k") == receipt
    assert ledger.paid("k", ("a",), ONE, data="a@1") == (receipt, None), "it was not opened: a retry goes on"
    assert counted(ledger) == (PRICE, 2)
    with pytest.raises(ReceiptError, match="another plan"):
        take(ledger, TWO, key="k")
    ledger.open(receipt)
    with pytest.raises(ReceiptError, match="a new key pays again"):
        ledger.paid("k", ("a",), ONE, data="a@1")
    assert take(ledger, ONE, key="k2").loop == "plan"
    sound(ledger)


# Many at once


def test_one_of_many_takes_the_part(ledgers: Stores) -> None:
    place = None if ledgers.kind == "memory" else ledgers.place()
    stores = [ledgers.new()] * 6 if place is None else [ledgers.again(place) for _ in range(6)]
    desks = [Ledger(store) for store in stores]
    desks[0].open_account("a", Budget(epsilon=10))
    prepay(desks[0])
    with ThreadPoolExecutor(len(desks)) as pool:
        loops = [receipt.loop for receipt in pool.map(take, desks)]
    assert sorted(loops) == ["part", *["plan"] * 5]
    assert counted(desks[0]) == (PRICE + Fraction(5, 10), 2)
    sound(desks[0])


def test_one_of_many_pays_for_the_list(ledgers: Stores) -> None:
    place = None if ledgers.kind == "memory" else ledgers.place()
    stores = [ledgers.new()] * 6 if place is None else [ledgers.again(place) for _ in range(6)]
    desks = [Ledger(store) for store in stores]
    desks[0].open_account("a", Budget(epsilon=10))

    def pays(ledger: Ledger) -> bool:
        try:
            prepay(ledger)
        except ReceiptError:
            return False
        return True

    with ThreadPoolExecutor(len(desks)) as pool:
        assert sum(pool.map(pays, desks)) == 1
    assert counted(desks[0]) == (PRICE, 3)


def test_another_process_s_list_is_seen(durable: Stores) -> None:
    place = durable.place()
    one, other = Ledger(durable.again(place)), Ledger(durable.again(place))
    one.open_account("a", Budget(epsilon=5))
    assert take(other, laplace(Fraction(1, 50))).loop == "plan"  # it remembers that nothing waits
    prepay(one)
    assert take(other, ONE).loop == "part"
    assert take(one, ONE).loop == "plan"
    assert take(one, TWO).loop == "part" and take(other, FOUR).loop == "part"
    sound(other)


def test_many_names_are_not_remembered_for_ever(durable: Stores) -> None:
    ledger = Ledger(durable.new())
    ledger.open_account("a", Budget(epsilon=5))
    prepay(ledger, sequence(**{f"p{k}": laplace(Fraction(1, 1000 + k)) for k in range(300)}))
    with ledger._store.reading() as book:
        assert len(book._facts) <= 256  # type: ignore[attr-defined]
    for k in (0, 1, 299):
        assert take(ledger, laplace(Fraction(1, 1000 + k))).loop == "part"
        assert take(ledger, laplace(Fraction(1, 1000 + k))).loop == "plan"
    sound(ledger)


# Duties


def test_who_may_not_spend_neither_prepays_nor_takes(ledgers: Stores) -> None:
    office = governed(ledgers)
    for who in ("rita", "paula", "adam"):
        with pytest.raises(PolicyError):
            prepay(office[who], LIST, "visits", data="visits@1")
    prepay(office["ana"], LIST, "visits", data="visits@1")
    for who in ("rita", "paula", "adam"):
        with pytest.raises(PolicyError):
            take(office[who], ONE, "visits", data="visits@1")
    assert take(office["max"], ONE, "visits", data="visits@1").loop == "part"
    office.check()


def test_a_part_is_taken_only_by_who_may_pay_from_all_accounts_of_its_list(ledgers: Stores) -> None:
    """A part bears the accounts of its list, also those that whoever takes it did not name."""
    rules = (AccountRule(name="visits", people=("ana", "max")), AccountRule(name="team", people=("ana",)))
    office = governed(ledgers, accounts=rules)
    office["adam"].open_account("team", Budget(epsilon=1), parent="visits", level="team", reason="theirs")
    prepay(office["ana"], LIST, "team", data="visits@1")
    assert office["max"].prepaid(("visits",), ONE, data="visits@1") is None
    own = take(office["max"], ONE, "visits", data="visits@1")
    assert own.loop == "plan" and set(own.accounts) == {"visits", "org"}
    prepay(office["max"], sequence(two=TWO), "visits", data="visits@1")  # nor is it answered or paid for, to him
    assert take(office["ana"], ONE, "team", data="visits@1").loop == "part"
    assert take(office["ana"], TWO, "team", data="visits@1").accounts == ("team", "visits", "org")
    office.check()


def test_approvals_are_for_the_list(ledgers: Stores) -> None:
    office = governed(ledgers, bands=BANDS)
    big = sequence(x=laplace(Fraction(2, 5)), y=laplace(Fraction(3, 5)))
    with pytest.raises(PolicyError) as refused:
        prepay(office["ana"], big, "visits", data="visits@1")
    office.approve(act_of(refused), "ana", "paula", "dora")
    prepay(office["ana"], big, "visits", data="visits@1")
    for part in big.parts.values():
        assert take(office["ana"], part, "visits", data="visits@1").loop == "part"
    office.check()


def test_writers_need_no_more_rights_than_before(tmp_path: Path) -> None:
    stores = Stores("postgres", tmp_path)
    try:
        place = stores.place()
        Ledger(stores.again(place)).open_account("a", Budget(epsilon=5))
        writer = Ledger(stores.again(login(place, "ana", "sfumato_writer")))
        prepay(writer)
        assert take(writer, ONE).loop == "part"
        sound(writer)
    finally:
        stores.done()


# What the text of a list says


@pytest.mark.parametrize(
    "plan",
    [
        LIST,
        sequence(x=sequence(a=ONE, b=TWO), y=repeat(FOUR, 3)),
        sequence(live=reserve(lambda run: run.release(ONE), unit=Unit(), budget=Budget(epsilon=1)), ü=ONE),
        sequence(f=m.Gaussian(query=bounds.clipped_sum("é", -1.5, 1e100, Unit()), rho=Fraction(1, 3))),
    ],
    ids=["counts", "nested", "live", "floats"],
)
def test_the_text_of_a_list_names_its_parts(plan: Sequence) -> None:
    assert part_hashes(canonical(plan).decode()) == [part.hash for part in plan.parts.values()]


def test_other_plans_have_no_parts() -> None:
    for plan in (ONE, repeat(ONE, 2), SUPERVISED):
        assert part_hashes(canonical(plan).decode()) == [] and plan.parts == {}
