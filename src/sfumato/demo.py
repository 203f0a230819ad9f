"""`make demo`: a small private analysis of a made-up hospital, start to end.

The hospital is generated, so the true answers can be shown beside the private ones. With real data nobody would see
them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import bounds, mechanisms, schema
from .accounting.filters import Budget
from .curator import Curator
from .errors import BudgetError
from .ledger import Ledger, open_ledger
from .noise import Noise, SeededBits
from .plan import Plan
from .private import Private
from .schema import Schema
from .units import Unit

PATIENTS, VISITS = 8_000, 20_000
DIAGNOSES = ("asthma", "diabetes", "flu", "fracture", "hypertension", "migraine")
WARDS = ("cardiology", "emergency", "orthopaedics", "paediatrics")

SCHEMA = Schema.of(
    patient=schema.key(),
    age=schema.whole(0, 110, constant=True),
    diagnosis=schema.category(DIAGNOSES),
    ward=schema.category(WARDS),
    unit="patient",
)
UNIT = Unit("user:patient")


def hospital(seed: int = 1) -> dict[str, NDArray[Any]]:
    """One row per visit; a patient comes two or three times."""
    noise = Noise(SeededBits(seed))  # made-up data may repeat itself; releases never do
    patient = noise.integers(PATIENTS, VISITS)
    age = np.clip(noise.integers(60, PATIENTS) + noise.integers(50, PATIENTS), 0, 110)[patient]
    chance = noise.integers(100, VISITS)
    diagnosis = np.searchsorted([12, 27, 55, 70, 90], chance, side="right")
    ward = np.where(diagnosis == 3, 2, np.searchsorted([30, 75, 85], noise.integers(100, VISITS), side="right"))
    return {
        "patient": patient,
        "age": age,
        "diagnosis": np.array(DIAGNOSES)[diagnosis],
        "ward": np.array(WARDS)[ward],
    }


def analysis() -> Iterator[tuple[str, Plan[Any]]]:
    """The questions, each a plan with its price inside."""
    yield "How many patients?", mechanisms.Laplace(query=bounds.count(UNIT), epsilon=0.2)
    yield "Their mean age?", mechanisms.Laplace(query=bounds.mean("age", 0, 110, UNIT), epsilon=0.3)
    quarters = mechanisms.QuantileTree(
        column="age", lower=0, upper=110, leaves=110, q=(0.25, 0.5, 0.75), epsilon=0.3, protects=UNIT
    )
    yield "Its quartiles?", quarters
    diagnoses = bounds.histogram("diagnosis", DIAGNOSES, UNIT, per_unit=4)
    yield "Visits by diagnosis?", mechanisms.Gaussian(query=diagnoses, epsilon=0.8, delta=1e-7)
    busiest = bounds.votes("ward", WARDS, UNIT)
    yield "The busiest ward?", mechanisms.PermuteAndFlip(query=busiest, epsilon=0.1)


def truth(columns: dict[str, NDArray[Any]]) -> list[dict[str, str]]:
    """The exact answers, which only made-up data may show."""
    patients, first = np.unique(columns["patient"], return_index=True)
    counted = {name: int((columns["diagnosis"] == name).sum()) for name in DIAGNOSES}
    wards, visits = np.unique(columns["ward"], return_counts=True)
    return [
        {"": f"{len(patients):,}"},
        {"": f"{columns['age'][first].mean():.2f}"},
        {f"{q:g}": f"{np.quantile(columns['age'][first], q):.2f}" for q in (0.25, 0.5, 0.75)},
        {name: f"{count:,}" for name, count in counted.items()},
        {"": str(wards[visits.argmax()])},
    ]


def main() -> None:
    with TemporaryDirectory() as folder, open_ledger(Path(folder) / "budget.ledger", create=True) as ledger:
        run(ledger)


def run(ledger: Ledger) -> None:
    """Ask, pay, and be refused."""
    columns = hospital()
    visits = Private("visits", columns, unit=UNIT, schema=SCHEMA)
    ledger.open_account("visits", Budget(epsilon=1.8, delta=1e-6), level="data set", unit=UNIT)
    curator = Curator(visits, ledger)

    print("A made-up hospital:", f"{VISITS:,} visits of about {PATIENTS:,} patients.\n")
    print(SCHEMA)
    print(f"\nHidden: {UNIT}.")
    print("Budget: epsilon = 1.8, delta = 1e-06. Every answer below is priced first, then paid, then blurred.\n")
    for (question, plan), exact in zip(analysis(), truth(columns), strict=True):
        print(f"{question}  price {curator.quote(plan).price}")
        for name, value, bar in curator.release(plan).rows():
            print(f"    {name:13}{value:>10}  {bar:32} (truth {exact[name]})")
        print(f"    budget: {ledger.left('visits')}\n")

    print("One more question, for epsilon = 1?")
    try:
        curator.release(mechanisms.Laplace(query=bounds.count(UNIT), epsilon=1))
    except BudgetError as refusal:
        print("    " + str(refusal).replace("\n", "\n    "))
    print("\nThe first question again? It was paid for already, so the stored answer comes back, free:")
    _, first = next(analysis())
    print("    " + str(curator.release(first)).replace("\n", "\n    "))
    print("\nHow the histogram was made:")
    histogram = dict(analysis())["Visits by diagnosis?"]
    print("    " + curator.release(histogram).explain().replace("\n", "\n    "))
    print("\nThe ledger, a file that survives the process, says:")
    print("    " + str(ledger.statement("visits")).replace("\n", "\n    "))
    print("    " + str(ledger.verify()).partition("\n")[0])
    print("\nError bars (95 %) cover the noise. A patient's visits beyond the fourth weigh less; that is not in it.")
    print("Next: README.md has the ten lines to do this with your own columns, docs/ explains what is promised.")


if __name__ == "__main__":
    main()
