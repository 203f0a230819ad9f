"""L13: the largest part, instead of the sum, is charged only where the ledger itself knows that parts are disjoint.

Claim. Parallel composition (McSherry 2009) holds for parts that no unit is in twice. A filter is the analyst's word for
that, so releases with filters are charged as a sum, whatever the filters say. A `partition` splits by a public column
that the schema declares constant per unit, and reads a unit's rows of its first key only, so that the price holds even
where the data breaks that promise; under replace a unit may leave one part for another, and two parts are charged.

The attack asks with filters that overlap, with filters that do not, by a column that is not constant, with a unit in
two parts and with NULL keys, and looks at the charges and at how far one unit moves all parts together. The planted bug
believes whoever asks.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato import bounds
from sfumato.accounting.filters import Budget
from sfumato.audit import surface
from sfumato.combine import partition, sequence
from sfumato.curator import Curator
from sfumato.errors import SfumatoError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.stores.memory import MemoryStore
from sfumato.mechanisms import Laplace
from sfumato.noise import Noise, SeededBits
from sfumato.plan import Plan
from sfumato.private import Private
from sfumato.rows import Rows
from sfumato.units import Unit

from ...mutants.ledgers import BelievesDisjoint
from ..verdict import Verdict
from .ground import PATIENT, TABLE, count, patients

Kind = Callable[[Any], Ledger]
EACH = Fraction(1, 10)
REPLACED = Unit("user:patient", change="replace")
WARDS = ("north", "south")


def _where(unit: Unit = PATIENT, **conditions: Any) -> Laplace:
    return Laplace(query=bounds.count_where(unit, conditions), epsilon=EACH)


def _all() -> Laplace:
    return count(EACH, PATIENT)


def _by_ward(unit: Unit = PATIENT) -> Plan[Any, Any]:
    return partition("ward", WARDS, count(EACH, unit))


ASKED: dict[str, tuple[tuple[Callable[[], Plan[Any, Any]], ...], int, Unit]] = {  # with how often EACH is to be charged
    "filters that overlap": ((lambda: _where(ward=WARDS[:1]), lambda: _where(age=(18, None)), _all), 3, PATIENT),
    "filters that do not overlap": ((lambda: _where(ward=WARDS[:1]), lambda: _where(ward=WARDS[1:])), 2, PATIENT),
    "the two halves of an age": ((lambda: _where(age=(None, 50)), lambda: _where(age=(50, None))), 2, PATIENT),
    "filters in one list": ((lambda: sequence(a=_where(ward=WARDS[:1]), b=_where(ward=WARDS[1:])),), 2, PATIENT),
    "a partition": ((_by_ward,), 1, PATIENT),
    "a partition, and the whole": ((_by_ward, _all), 2, PATIENT),
    "two partitions": ((_by_ward, lambda: partition("ward", WARDS[::-1], count(EACH, PATIENT))), 2, PATIENT),
    "a partition under replace": ((lambda: _by_ward(REPLACED),), 2, REPLACED),
}  # fmt: skip


def attack(*, kind: Kind = Ledger) -> Verdict:
    wrong: list[str] = []
    for name, (plans, times, unit) in ASKED.items():
        charged = charged_for(kind(MemoryStore()), plans, unit)
        if charged != times * EACH:
            wrong.append(f"{name}: {float(charged):g} was charged, and {float(times * EACH):g} is right")
    wrong += _refused(kind) + _blocks(kind) + _moved()
    tried = len(ASKED) + 5
    words = f"{tried} ways to ask for parts: " + (f"{wrong[0]}." if wrong else "each was charged what it may cost.")
    return Verdict("L13", bool(wrong), words, {"asked": tried, "wrong": len(wrong)})


def control() -> Verdict:
    return attack(kind=BelievesDisjoint)


def charged_for(ledger: Ledger, plans: tuple[Callable[[], Plan[Any, Any]], ...], unit: Unit) -> Fraction:
    """What a ledger without accounts charges for these, one after the other."""
    ledger.open_account("patients", Budget(epsilon=1))
    private = patients() if unit == PATIENT else Private("patients", _rows(False), unit=unit, schema=TABLE)
    asking = Curator(private, ledger)
    for plan in plans:
        asking.release(plan())
    return ledger.spent("patients")[0].spent


def _refused(kind: Kind) -> list[str]:
    """What is no partition is refused before anything is charged."""
    ledger = kind(MemoryStore())
    ledger.open_account("patients", Budget(epsilon=1))
    asking, found = Curator(patients(), ledger), []
    ways: dict[str, Callable[[], Plan[Any, Any]]] = {
        "a column that is not constant per unit": lambda: partition("age", (30.5, 64.25), count(EACH, PATIENT)),
        "a key that is given twice": lambda: partition("ward", ("north", "north"), count(EACH, PATIENT)),
        "no column of the data": lambda: partition("floor", WARDS, count(EACH, PATIENT)),
    }
    for name, make in ways.items():
        try:
            asking.release(make())
            found.append(f"a partition by {name} was answered")
        except SfumatoError:
            if ledger.spent("patients")[0].spent:
                found.append(f"a partition by {name} was charged and refused")
    return found


def _blocks(kind: Kind) -> list[str]:
    """A unit may be in every block: its data set's own account adds them up."""
    ledger = kind(MemoryStore())
    ledger.open_account("visits", Budget(epsilon=1), level="data set")
    for month in ("jan", "feb"):
        ledger.open_block("visits", month, Budget(epsilon=1))
        ledger.spend((), count(EACH), data=f"visits@1#{month}", grade="exact", note="")
    ledger.spend((), count(2 * EACH), data="visits@1#jan,feb,jan", grade="exact", note="")
    names = ("visits", "visits#jan", "visits#feb")
    charged = [ledger.spent(name)[0].spent / EACH for name in names]
    return [] if charged == [4, 3, 3] else [f"blocks: {charged} were charged, and [4, 3, 3] is right"]


def _rows(with_one: bool) -> dict[str, list[Any]]:
    """Twenty patients; with one more who is in both wards, and whose ward is missing here and there."""
    patient = [*range(20), *([99] * 90 if with_one else [])]
    ward = [*(["north", "south"] * 10), *(["north", None, "south"] * 30 if with_one else [])]
    return {"patient": patient, "age": [40.0] * len(patient), "ward": ward}


def _moved() -> list[str]:
    """How far one unit moves all parts together: no further than a single part may be moved."""
    plan = partition("ward", WARDS, Laplace(query=bounds.count(PATIENT), epsilon=10))
    parts = []
    for with_one in (True, False):
        rows = Rows.read(TABLE.table(), _rows(with_one), PATIENT)
        parts.append(surface.run(plan, rows, Noise(SeededBits(1))))  # the same noise for both
    moved = sum(float(np.abs(np.subtract(parts[0][ward], parts[1][ward])).sum()) for ward in WARDS)
    return [] if moved <= 1.5 else [f"one unit in two parts moved them by {moved:g}, and 1 is paid for"]
