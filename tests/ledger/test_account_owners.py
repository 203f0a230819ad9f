"""An account stores which column names its unit in each table, and refuses data that says otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sfumato import Budget, Curator, MemoryLedger, Private, Schema, Unit, bounds, mechanisms, open_ledger, sequence
from sfumato.errors import BudgetError, LedgerError
from sfumato.ledger.ledger import Ledger
from sfumato.plan import Plan
from sfumato.schema import key
from sfumato.sources import Csv

PATIENT = Unit("user:patient")
COLUMNS = {"patient": [1, 1, 2], "visit": [1, 2, 3]}


def people(data: Any = COLUMNS, *names: str) -> Private:
    return Private(
        "people", data, unit=PATIENT, schema=Schema.of(**{name: key() for name in names or ("patient", "visit")})
    )


def count(epsilon: float = 0.25) -> Plan[Any, Any]:
    return mechanisms.Laplace(query=bounds.count(PATIENT, per_unit=3), epsilon=epsilon)


class Edited(Private):
    """Data of a project file that was edited: the rows belong to others."""

    @property
    def owners(self) -> dict[str, str]:
        return dict.fromkeys(super().owners, "visit")


def edited() -> Private:
    return Edited("people", COLUMNS, unit=PATIENT, schema=Schema.of(patient=key(), visit=key()))


def test_the_column_is_named_by_name_or_by_place(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("1,1\n1,2\n2,3\n")
    assert people().owners == {next(iter(people().schema.tables)): "patient"}
    by_place = Csv(str(tmp_path / "people.csv"), header=False)
    assert list(people(by_place, "patient", "visit").owners.values()) == ["patient, column 1"]
    assert list(people(by_place, "visit", "patient").owners.values()) == ["patient, column 2"]
    assert Private("rows", COLUMNS, unit=Unit(), schema=Schema.of(patient=key(), visit=key())).owners == {}


@pytest.fixture(params=["memory", "file"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Ledger:
    if request.param == "memory":
        return MemoryLedger({"people": Budget(epsilon=3)})
    found = open_ledger(tmp_path / "ledger", create=True, principal="dora")
    found.open_account("people", Budget(epsilon=3))
    return found


def test_data_whose_rows_belong_to_others_is_refused(ledger: Ledger) -> None:
    Curator(people(), ledger).release(count())
    before = ledger.spent("people")[0].spent
    door = Curator(edited(), ledger)
    with pytest.raises(BudgetError, match=r"names the unit by column 'visit'.*'patient' names"):
        door.release(count(0.125))
    with pytest.raises(BudgetError, match="was edited"):
        door.prepay(sequence(one=count(0.0625), two=count(0.03125)))
    assert ledger.spent("people")[0].spent == before
    Curator(people(), ledger).release(count(0.125))
    assert ledger.verify().ok, ledger.verify()


def test_it_is_in_the_chain(ledger: Ledger) -> None:
    Curator(people(), ledger).release(count())
    Curator(people(), ledger).release(count(0.125))
    told = [entry.fields.get("owners") for entry in ledger.history(kind="spend")]
    table = next(iter(people().schema.tables))
    assert told == [{"people": {f"user:patient in {table}": "patient"}}, None]


def test_a_list_that_was_paid_is_not_run_on_rows_of_others(ledger: Ledger) -> None:
    Curator(people(), ledger).prepay(sequence(one=count(0.0625), two=count(0.03125)))
    with pytest.raises(BudgetError, match="was edited"):
        Curator(edited(), ledger).release(count(0.0625))


def test_an_officer_says_that_a_column_was_renamed(ledger: Ledger) -> None:
    Curator(people(), ledger).release(count())
    with pytest.raises(BudgetError, match="knows no data set"):
        ledger.change_owners("nobody", PATIENT, edited().owners, reason="renamed")
    ledger.change_owners("people", PATIENT, edited().owners, reason="the column was renamed")
    Curator(edited(), ledger).release(count(0.125))
    with pytest.raises(BudgetError, match="was edited"):
        Curator(people(), ledger).release(count(0.0625))
    assert ledger.verify().ok, ledger.verify()


def test_other_units_have_owners_of_their_own(ledger: Ledger) -> None:
    visit = Unit("user:visit")
    ledger.open_account("visits", Budget(epsilon=1), reason="another unit", unit=visit)
    ledger.register("people", accounts=("visits",), reason="visits are protected apart")
    by_visit = Private("people", COLUMNS, unit=visit, schema=Schema.of(patient=key(), visit=key()))
    Curator(people(), ledger).release(count())
    plan = mechanisms.Laplace(query=bounds.count(visit), epsilon=0.25)
    try:
        Curator(by_visit, ledger).release(plan)
    except BudgetError as problem:
        assert "was edited" not in str(problem)
    assert ledger.verify().ok


def test_a_forged_row_of_owners_is_refused(tmp_path: Path) -> None:
    import sqlite3
    from contextlib import closing

    with open_ledger(tmp_path / "ledger", create=True) as ledger:
        ledger.open_account("people", Budget(epsilon=3))
        Curator(people(), ledger).release(count())
    with closing(sqlite3.connect(tmp_path / "ledger", isolation_level=None)) as connection:
        assert connection.execute("DELETE FROM facts WHERE kind = 'owners'").rowcount == 1
    with open_ledger(tmp_path / "ledger") as ledger, pytest.raises(LedgerError, match="not what the last of them left"):
        Curator(edited(), ledger).release(count(0.125))
