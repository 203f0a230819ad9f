"""L19: a budget goes with the column that names its unit.

Claim. With the first release the ledger writes down, in the chain, which column of each table names the unit, with its
place where columns are told by place. Data of the same name whose rows belong to others is refused, uncharged.

The attack edits a project after its first release: the columns of a file without a header in another order, a table
whose unit is another column, in a fresh process and in the one that runs. The planted bug takes the project's word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import permutations
from pathlib import Path

from sfumato import bounds
from sfumato.accounting.filters import Budget
from sfumato.curator import Curator
from sfumato.errors import BudgetError
from sfumato.ledger import owners
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.memory import MemoryLedger
from sfumato.ledger.opening import open_ledger
from sfumato.mechanisms import Laplace
from sfumato.private import Private
from sfumato.schema import Schema, key
from sfumato.sources import Csv
from sfumato.units import Unit

from ..verdict import Verdict
from .ground import folder

PATIENT = Unit("user:patient")
COLUMNS = ("patient", "visit", "ward")


def attack(*, believing: bool = False) -> Verdict:
    answered, refused = 0, 0
    with folder() as home, _the_project_is_right(believing):
        path = home / "visits.csv"
        path.write_text("".join(f"{row // 100},{row},{row % 7}\n" for row in range(1000)), encoding="ascii")
        for storage in (_in_memory, _in_a_file):
            opened = storage(home)
            Curator(_data(path, COLUMNS), opened()).release(_count(1))
            for number, order in enumerate(permutations(COLUMNS)):
                right = order.index("patient") == 0
                try:
                    Curator(_data(path, order), opened()).release(_count(2 + number))
                    answered += not right
                except BudgetError:
                    refused += 1
                    assert not right
    words = f"{answered + refused} edits of a project whose rows belong to others: "
    words += f"{answered} were answered on the old budget." if answered else "each was refused, uncharged."
    return Verdict("L19", answered > 0 or not refused, words, {"answered": answered, "refused": refused})


def control() -> Verdict:
    return attack(believing=True)


@contextmanager
def _the_project_is_right(planted: bool) -> Iterator[None]:
    from sfumato.ledger import holds, payments

    original = owners.new_owners
    if planted:
        for module in (holds, payments):
            module.new_owners = lambda book, data, plan, owners: {}  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for module in (holds, payments):
            module.new_owners = original  # type: ignore[attr-defined]


def _data(path: Path, columns: tuple[str, ...]) -> Private:
    schema = Schema.of({name: key() for name in columns})
    return Private("visits", Csv(str(path), header=False), unit=PATIENT, schema=schema)


def _count(number: int) -> Laplace:
    return Laplace(query=bounds.count(PATIENT, per_unit=number), epsilon=0.01)


def _in_memory(home: Path) -> Callable[[], Ledger]:
    ledger = MemoryLedger({"visits": Budget(epsilon=1)})
    return lambda: ledger


def _in_a_file(home: Path) -> Callable[[], Ledger]:
    with open_ledger(home / "ledger", create=True) as ledger:
        ledger.open_account("visits", Budget(epsilon=1))
    return lambda: open_ledger(home / "ledger")
