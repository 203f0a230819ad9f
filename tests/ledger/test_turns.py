"""Blocks of a series whose units count in few of them are taken in their order or not at all. On every store."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sfumato import Budget
from sfumato.errors import ReceiptError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.proof.in_turn import chains_of, in_turn
from sfumato.ledger.stores.memory import MemoryStore
from sfumato.plan import Receipt
from sfumato.query import SqlSeries
from sfumato.record import canonical, parse
from sfumato_referee.mutants.ledgers import AnyTurn
from tests.ledger.stores import Stores
from tests.ledger.test_replay_rules import chained, found_wrong
from tests.query.series_kit import SCHEMA, UNIT, day, exactly, series_of

BUDGET = {"epsilon": 3, "delta": 1e-5}
QUERY = "SELECT ad, COUNT(*) AS clicks FROM clicks GROUP BY ad"
SERIES = series_of(QUERY, days=4, levels={"day": {"most": 2, "limits": {"rows": 2}}})
ANY_ORDER = series_of(QUERY, days=4, levels={"day": {"limits": {"rows": 2}}})
LEVELS = series_of(QUERY, days=14, levels={"day": {"most": 3, "limits": {"rows": 2}}, "week": {"limits": {"rows": 2}}})


def paid(ledger: Ledger, plan: SqlSeries = SERIES, *, data: str = "a@1") -> Receipt:
    return ledger.prepay(("a",), plan, data=data, grade="exact", note="")


def take(ledger: Ledger, plan: Any, *, data: str = "a@1", **more: Any) -> Receipt:
    return ledger.spend(("a",), plan, data=data, grade="exact", note="", **more)


def parts(plan: SqlSeries = SERIES) -> list[Any]:
    return list(plan.parts.values())


def whole(ledgers: Stores) -> Ledger:
    return ledgers({"a": Budget(**BUDGET)})


def released(ledger: Ledger, plan: Any) -> str:
    receipt = take(ledger, plan)
    ledger.open(receipt)
    ledger.settle(receipt, "answered", b"1")
    return receipt.loop


def test_a_chain_goes_forward() -> None:
    chains = chains_of([["a", "b", "c"], ["x", "y"]])
    after, passed, over = in_turn(chains, "b", "first")
    assert (after, passed, over) == ((("first", ("c",)), ("", ("x", "y"))), ("a",), "")
    assert in_turn(after, "c", "second") == ((("second", ()), ("", ("x", "y"))), (), "first")
    assert in_turn(after, "x", "third")[1:] == ((), "")
    assert in_turn(after, "z", "fourth") == (after, (), ""), "it has no turn"


def test_only_levels_with_fewer_blocks_than_there_are_have_turns() -> None:
    assert SERIES.turns == (tuple(SERIES.parts),) and ANY_ORDER.turns == ()
    assert LEVELS.turns == (tuple(name for name in LEVELS.parts if name.startswith("day")),)


def test_what_was_passed_over_is_paid_no_more(ledgers: Stores) -> None:
    ledger = whole(ledgers)
    paid(ledger)
    one, two, three, four = parts()
    assert released(ledger, two) == "part"
    assert ledger.prepaid(("a",), one, data="a@1") is None and ledger.prepaid(("a",), four, data="a@1") is not None
    before = ledger.used("a")
    assert released(ledger, four) == "part" and ledger.used("a") == before
    assert [ledger.prepaid(("a",), plan, data="a@1") for plan in (one, three)] == [None, None]
    assert released(ledger, three) == "plan" and ledger.used("a") > before, "it pays for itself"
    assert ledger.verify().ok


def test_in_their_order_all_are_paid(ledgers: Stores) -> None:
    ledger = whole(ledgers)
    paid(ledger)
    assert [released(ledger, plan) for plan in parts()] == ["part"] * 4
    assert ledger.verify().ok


def test_without_most_any_order_will_do(ledgers: Stores) -> None:
    ledger = whole(ledgers)
    paid(ledger, ANY_ORDER)
    assert [released(ledger, plan) for plan in reversed(parts(ANY_ORDER))] == ["part"] * 4
    assert ledger.verify().ok


def test_levels_have_turns_of_their_own(ledgers: Stores) -> None:
    ledger = whole(ledgers)
    paid(ledger, LEVELS)
    last_day, *weeks = [LEVELS.parts[name] for name in ("day 2026-01-18", "week 2026-01-12", "week 2026-01-05")]
    assert [released(ledger, plan) for plan in (last_day, *weeks)] == ["part"] * 3
    assert ledger.prepaid(("a",), LEVELS.parts["day 2026-01-05"], data="a@1") is None
    assert ledger.verify().ok


@pytest.mark.parametrize("opened", [False, True])
def test_an_answer_that_is_not_stored_when_the_next_one_is_taken_never_is(ledgers: Stores, opened: bool) -> None:
    """It may read the data after the later one did."""
    ledger = whole(ledgers)
    paid(ledger)
    one, two, *_ = parts()
    slow = take(ledger, one, key="slow")
    if opened:
        ledger.open(slow)
    fast = take(ledger, two)
    if not opened:
        with pytest.raises(ReceiptError, match="pays for itself"):
            ledger.open(slow)
    with pytest.raises(ReceiptError, match="settled once"):
        ledger.settle(slow, "answered", b"late")
    with pytest.raises(ReceiptError):
        ledger.paid("slow", ("a",), one, data="a@1")
    ledger.open(fast)
    ledger.settle(fast, "answered", b"1")
    assert ledger.answer(("a",), one.hash, "a@1") is None
    assert ledger.answer(("a",), two.hash, "a@1") == (fast, b"1")
    assert ledger.verify().ok


def test_lists_keep_their_turns_apart(ledgers: Stores) -> None:
    ledger = whole(ledgers)
    paid(ledger)
    paid(ledger, data="a@2")
    one, two, *_ = parts()
    assert take(ledger, two).loop == "part"
    assert take(ledger, one, data="a@2").loop == "part" and take(ledger, one).loop == "plan"
    assert ledger.verify().ok


def test_a_ledger_that_was_opened_anew_knows_the_turns(durable: Stores) -> None:
    place = durable.place()
    ledger = Ledger(durable.again(place))
    ledger.open_account("a", Budget(**BUDGET))
    paid(ledger)
    take(ledger, parts()[1])
    again = Ledger(durable.again(place))
    assert [take(again, plan).loop for plan in parts()] == ["plan", "plan", "part", "part"]
    assert again.verify().ok


def test_a_part_out_of_its_turn_is_named() -> None:
    store = MemoryStore()
    ledger = Ledger(store)
    ledger.open_account("a", Budget(**BUDGET))
    paid(ledger)
    for plan in parts()[1:3]:
        take(ledger, plan)
    entries: list[dict[str, Any]] = [parse(body, dict) for _, body in store.entries()]
    assert chained(entries).first_bad is None
    *before, second, third = entries
    early = parts()[0]
    forged = {
        **third,
        "plan": canonical(early).decode(),
        "receipt": replace(third["receipt"], plan_hash=early.hash, event=early.event),
    }
    assert "had to come before" in found_wrong(chained([*before, second, forged]), len(entries))
    assert "had to come before" in found_wrong(chained([*before, third, second]), len(entries))


def test_a_ledger_without_turns_counts_a_reader_too_often() -> None:
    """Who comes on two days counts twice. Rows that come late bring a third day forward, where an earlier block may be
    released after a later one."""
    late = [("r", "north", 1.0, day(number).isoformat()) for number in (0, 1, 2)]
    early = late[1:]
    blocks = parts()[:3]
    history = [(blocks[1], early), (blocks[2], early), (blocks[0], late)]  # released in this order, as the table grew
    times = {True: 0, False: 0}
    for kind in (Ledger, AnyTurn):
        ledger = kind(MemoryStore())
        ledger.open_account("a", Budget(**BUDGET))
        paid(ledger)
        for plan, rows in history:
            if ledger.prepaid(("a",), plan, data="a@1") is not None and released(ledger, plan) == "part":
                times[kind is Ledger] += sum(exactly(plan, rows)["numbers"]["rows"]) > 0
        assert ledger.verify().ok == (kind is Ledger)
    assert times == {True: 2, False: 3}, "`most` is 2"
    assert SERIES.unit == UNIT and SERIES.schema == SCHEMA.stored
