"""Who pays: the accounts that are named, all above them, and those of the data; each once, or none of them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from sfumato import Budget, Unit, events, reserve
from sfumato.errors import ArgumentError, BudgetError, SfumatoError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.proof.verify import verify
from sfumato.ledger.stores.memory import MemoryStore
from sfumato.ledger.tree import LEVELS
from tests.helpers import account_of, laplace
from tests.ledger.stores import ROW, Stores

USER = Unit("user:patient")


def grown(stores: Stores) -> Ledger:
    """An organisation with two data sets, and two teams of which one has a project with a person."""
    ledger = Ledger(stores.new())
    ledger.open_account("org", Budget(epsilon=10), level="organisation")
    ledger.open_account("visits", Budget(epsilon=4), parent="org", level="data set")
    ledger.open_account("labs", Budget(epsilon=3), parent="org", level="data set")
    ledger.open_account("team", Budget(epsilon=2), parent="visits", level="team")
    ledger.open_account("project", None, parent="team", level="project")
    ledger.open_account("ana", Budget(epsilon=1), parent="project", level="person")
    return ledger


def spend(ledger: Ledger, epsilon: Any, *accounts: str, data: str = "visits@1", unit: Unit = ROW) -> Any:
    return ledger.spend(accounts, laplace(epsilon, unit), data=data, grade="exact", note="")


def totals(ledger: Ledger) -> dict[str, Fraction]:
    with ledger._store.reading() as book:
        names = book.accounts()
    return {name: gauge.spent for name in sorted(names) for gauge in ledger.spent(name) if gauge.spent}


def state(ledger: Ledger) -> Any:
    with ledger._store.reading() as book:
        return book.head, {name: book.account(name) for name in book.accounts()}, book.facts("data")


def test_the_path_is_what_is_named_and_all_above_and_the_data_each_once(ledgers: Stores) -> None:
    ledger = grown(ledgers)
    assert set(ledger.path(("ana",), laplace(1), data="visits@1")) == {"ana", "team", "visits", "org"}
    receipt = spend(ledger, 0.5, "ana", "team", "ana")
    assert sorted(receipt.accounts) == ["ana", "org", "team", "visits"]
    assert totals(ledger) == dict.fromkeys(("ana", "org", "team", "visits"), Fraction(1, 2))
    assert set(spend(ledger, 0.5).accounts) == {"visits", "org"}, "nobody is named: the data's own accounts pay"
    assert verify(ledger._store).ok


def test_a_team_pays_beside_the_other_data_it_reads(ledgers: Stores) -> None:
    ledger = grown(ledgers)
    spend(ledger, 0.5, "ana", data="labs@7")
    assert totals(ledger) == dict.fromkeys(("ana", "team", "visits", "labs", "org"), Fraction(1, 2))
    spend(ledger, 0.5, data="labs@1&visits@1")
    assert totals(ledger) == {"ana": Fraction(1, 2), "team": Fraction(1, 2), "visits": 1, "labs": 1, "org": 1}
    with pytest.raises(BudgetError, match="knows no data set 'pets'"):
        spend(ledger, 0.1, data="labs@1&pets@1")


@pytest.mark.parametrize("full", ["org", "visits", "team"])
def test_a_child_never_passes_what_one_above_it_refuses(ledgers: Stores, full: str) -> None:
    ledger = grown(ledgers)
    for epsilon, data in {"org": [(3, "labs@1")], "visits": [(2, "visits@1")], "team": []}[full]:
        spend(ledger, epsilon, data=data)
    if full == "org":
        for _ in range(2):
            spend(ledger, 3 if _ else 0.5, data="visits@1")  # 6.5 of 10 in all
        ledger.change_limit("org", Budget(epsilon=7), reason="less")
    elif full == "visits":
        spend(ledger, 1.6)
    else:
        spend(ledger, 1.6, "team")
    before = state(ledger)
    with pytest.raises(BudgetError):
        spend(ledger, Fraction(3, 4), "ana")
    with pytest.raises(BudgetError):
        ledger.hold(("ana",), reserve(unit=ROW, budget=Budget(epsilon=0.75)), data="visits@1", grade="exact", note="")
    assert not ledger.quote(("ana",), laplace(0.75), data="visits@1")
    assert not ledger.room("ana").fits(laplace(0.75).event, Fraction(0))
    assert state(ledger) == before, "a refusal changes nothing, also on those that had room"
    spend(ledger, Fraction(1, 4), "ana")


@pytest.mark.parametrize("closed", ["org", "visits", "team", "project", "ana"])
def test_a_closed_account_closes_all_below_it(ledgers: Stores, closed: str) -> None:
    ledger = grown(ledgers)
    ledger.close_account(closed, reason="done")
    before = state(ledger)
    for data in ("visits@1", "labs@1"):
        with pytest.raises(BudgetError, match=f"'{closed}' is closed"):
            spend(ledger, 0.1, "ana", data=data)
    with pytest.raises(BudgetError, match="is closed"):
        ledger.open_account("new", Budget(epsilon=0.1), parent=closed)
    with pytest.raises(BudgetError, match="closed already"):
        ledger.close_account(closed, reason="again")
    assert state(ledger) == before
    if closed in ("team", "project", "ana"):
        spend(ledger, 0.1)
    assert verify(ledger._store).ok


def test_a_draw_on_an_account_that_was_closed_is_refused(ledgers: Stores) -> None:
    ledger = grown(ledgers)
    receipt = ledger.hold(
        ("ana",), reserve(unit=ROW, budget=Budget(epsilon=0.5)), data="visits@1", grade="exact", note=""
    )
    ledger.open(receipt)
    ledger.draw(receipt, events.Laplace(epsilon=0.1), Fraction(0))
    for closed in ("project", "visits"):
        ledger.close_account(closed, reason="done")  # a folder first: it is no party to the hold, and stops it too
        with pytest.raises(BudgetError, match="is closed"):
            ledger.draw(receipt, events.Laplace(epsilon=0.1), Fraction(0))
    ledger.close(receipt)
    assert totals(ledger)["org"] == Fraction(1, 10) and verify(ledger._store).ok


def test_a_folder_takes_no_limit_and_gives_none(ledgers: Stores) -> None:
    ledger = grown(ledgers)
    assert ledger.left("project") == "no limit of its own" and ledger.spent("project") == ()
    assert sorted(spend(ledger, 0.1, "project").accounts) == ["org", "team", "visits"]
    with pytest.raises(BudgetError, match="no limit to change"):
        ledger.change_limit("project", Budget(epsilon=1), reason="x")
    with pytest.raises(BudgetError, match="above what 'team' has"):
        ledger.open_account("more", Budget(epsilon=3), parent="project")
    folder = Ledger(ledgers.new())
    folder.open_account("bare", None)
    with pytest.raises(BudgetError, match="no budget that protects"):
        spend(folder, 0.1, data="bare@1")
    with pytest.raises(SfumatoError):
        folder.hold(("bare",), reserve(unit=ROW, budget=Budget(epsilon=0.5)), data="bare@1", grade="exact", note="")


def test_a_parent_is_not_lowered_below_what_stands_under_its_folders(ledgers: Stores) -> None:
    ledger = grown(ledgers)
    with pytest.raises(BudgetError, match="'ana' below it has more"):
        ledger.change_limit("team", Budget(epsilon=0.5), reason="less")
    ledger.change_limit("ana", Budget(epsilon=0.5), reason="less")
    ledger.change_limit("team", Budget(epsilon=0.5), reason="less")
    assert verify(ledger._store).ok


@pytest.mark.parametrize("upper", [level for level in LEVELS if level != "block"])
@pytest.mark.parametrize("lower", [level for level in LEVELS if level != "block"])
def test_levels_stand_in_their_order(upper: str, lower: str) -> None:
    ledger = Ledger(MemoryStore())
    ledger.open_account("top", Budget(epsilon=1), level=upper)
    ledger.open_account("between", None, parent="top")
    for parent in ("top", "between"):
        if LEVELS.index(lower) > LEVELS.index(upper):
            ledger.open_account(f"below {parent}", Budget(epsilon=1), parent=parent, level=lower)
        else:
            with pytest.raises(BudgetError, match="does not stand below"):
                ledger.open_account(f"below {parent}", Budget(epsilon=1), parent=parent, level=lower)
    for strange in ("kingdom", "block"):
        with pytest.raises(ArgumentError):
            ledger.open_account("strange", Budget(epsilon=1), parent="top", level=strange)


def test_an_account_that_can_be_opened_can_be_paid_from_however_deep() -> None:
    ledger = Ledger(MemoryStore())
    ledger.open_account("0", Budget(epsilon=1))
    depth = 0
    with pytest.raises(BudgetError, match="make the tree flatter"):
        while depth < 100:
            ledger.open_account(str(depth + 1), None, parent=str(depth))
            depth += 1
    assert depth == 63
    assert spend(ledger, 0.5, str(depth), data="0@1").accounts == ("0",)


def test_a_second_fresh_budget_needs_a_reason(ledgers: Stores) -> None:
    ledger = grown(ledgers)
    ledger.open_account("folder", None)
    for parent in (None, "folder"):
        with pytest.raises(BudgetError, match="would be a fresh budget"):
            ledger.open_account("fresh", Budget(epsilon=1), parent=parent)
    with pytest.raises(BudgetError, match="there is no account 'nobody'"):
        ledger.open_account("fresh", Budget(epsilon=1), parent="nobody")
    ledger.open_account("fresh", Budget(epsilon=1), parent="folder", reason="other people")
    with pytest.raises(BudgetError, match="there is an account 'fresh' already"):
        ledger.open_account("fresh", Budget(epsilon=1), parent="org")
    ledger.close_account("fresh", reason="done")
    with pytest.raises(BudgetError, match="already"):
        ledger.open_account("fresh", Budget(epsilon=1), reason="again")
    assert verify(ledger._store).ok


def test_units_do_not_add_up(ledgers: Stores) -> None:
    """An organisation's limit holds for one unit, the first that was asked for; a folder holds for all."""
    ledger = grown(ledgers)
    spend(ledger, 0.1)
    before = state(ledger)
    for data in ("visits@1", "labs@1"):
        with pytest.raises(BudgetError, match="different units do not add up"):
            spend(ledger, 0.1, data=data, unit=USER)
    assert state(ledger) == before and account_of(ledger, "labs").unit is None
    other = Ledger(ledgers.new())
    other.open_account("org", None, level="organisation")
    other.open_account("visits", Budget(epsilon=1), parent="org", level="data set", unit=ROW)
    other.open_account("labs", Budget(epsilon=1), parent="org", level="data set", unit=USER, reason="another unit")
    spend(other, 0.1)
    spend(other, 0.1, data="labs@1", unit=USER)
    for data, unit in (("visits@1", USER), ("labs@1", ROW), ("labs@1&visits@1", ROW)):
        with pytest.raises(BudgetError, match="no budget that protects"):
            spend(other, 0.1, data=data, unit=unit)
    with pytest.raises(BudgetError, match="protects"):
        spend(other, 0.1, "labs", unit=ROW)
    assert verify(other._store).ok


def test_somebody_pays_and_something_is_read(ledgers: Stores) -> None:
    ledger = grown(ledgers)
    before = state(ledger)
    with pytest.raises(BudgetError, match="no data is named"):
        spend(ledger, 0.1, "ana", data="")
    for data in ("visits", "@", "visits@1&", "visits@"):
        with pytest.raises(ArgumentError, match="an address"):
            spend(ledger, 0.1, "ana", data=data)
    with pytest.raises(BudgetError, match="no account 'nobody'"):
        spend(ledger, 0.1, "nobody")
    with pytest.raises(ArgumentError, match="a tuple of names"):
        ledger.spend(["ana"], laplace(0.1), data="visits@1", grade="exact", note="")  # type: ignore[arg-type]
    assert state(ledger) == before


@pytest.mark.parametrize("name", ["team", "ana", "org", "project"])
def test_a_team_or_person_is_no_data_set(ledgers: Stores, name: str) -> None:
    """Else data that is passed off under the name of a team would be read at the cost of that team alone."""
    ledger = grown(ledgers)
    with pytest.raises(BudgetError, match=f"knows no data set '{name}'"):
        spend(ledger, 0.1, data=f"{name}@1")
