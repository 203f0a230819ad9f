"""A clinic whose entries hold what their plans say of themselves: two queries, and a table of counts made tidy. Tests
ask for the very same again."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from sfumato import Curator, Private, Tidy, Unit, bounds, sql
from sfumato.ledger.ledger import Ledger
from sfumato.mechanisms import Laplace
from sfumato.plan import Plan
from sfumato.query.plan import Sql
from sfumato.schema import Schema, Table, category, key, real

PATIENT = Unit("user:patient")
WARDS = ("east", "north")
VISITS = {
    "patient": [number % 40 for number in range(160)],
    "ward": [WARDS[number % 2] for number in range(160)],
    "cost": [float(number % 90) for number in range(160)],
}


def clinic() -> Private:
    columns = {"patient": key(), "ward": category(WARDS), "cost": real(0, 1000)}
    return Private("clinic", VISITS, unit=PATIENT, schema=Schema({"stays": Table(columns, unit="patient")}))


def query(epsilon: Any = Fraction(1, 2)) -> Sql:
    text = "SELECT ward, COUNT(*) AS n, SUM(cost) AS total FROM stays GROUP BY ward"
    return sql(text, clinic(), epsilon=epsilon, limits={"rows": 4}, bounds={"cost": (0, 100)}, floor=True)


def tidy(epsilon: Any = Fraction(1, 4)) -> Tidy:
    return Tidy(plan=Laplace(query=bounds.histogram("ward", WARDS, PATIENT, per_unit=4), epsilon=epsilon))


def asked() -> tuple[Plan[Any, Any], ...]:
    """What was released, in this order; the second query asks the same at another price."""
    return query(), tidy(), replace(query(Fraction(1, 3)), unclip=True)


def release(ledger: Ledger) -> None:
    for plan in asked():
        Curator(clinic(), ledger).release(plan, note="beds of the clinic")
