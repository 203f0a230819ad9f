"""The people and visits of a hospital that does not exist. The same seed makes the same hospital, on every machine.

Nobody is described here, so the true answers may be shown beside private ones. With real data nobody would see them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import checks
from ..noise import SeededBits

PATIENTS = 20_000
MOST_VISITS = 80
WARDS = ("cardiology", "emergency", "maternity", "orthopaedics", "paediatrics")
FLOORS = ("second", "ground", "second", "first", "first")
BEDS = (24, 36, 18, 30, 22)
DIAGNOSES = ("asthma", "diabetes", "flu", "fracture", "hypertension", "migraine", "pregnancy")
SEXES = ("female", "male", "unknown")
REGIONS = ("coast", "hills", "plain", "town")
FIRST_DAY = np.datetime64("2026-01-01")
DAYS = 365

_WARD_OF = (  # for each diagnosis, the chances of the wards, in percent
    (0, 55, 0, 0, 45),
    (40, 40, 0, 0, 20),
    (0, 60, 0, 0, 40),
    (0, 35, 0, 65, 0),
    (70, 30, 0, 0, 0),
    (0, 90, 0, 0, 10),
    (0, 10, 90, 0, 0),
)
_COST_OF = (90.0, 160.0, 60.0, 420.0, 140.0, 70.0, 380.0)  # half of the usual cost

Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Hospital:
    """Three tables, each with its columns by name.

    patients  one row for each: id, born, sex, region
    visits    several for each patient, for some very many: patient, ward, day, cost, diagnosis
    wards     public: ward, floor, beds
    """

    patients: Columns
    visits: Columns
    wards: Columns


class _Chance:
    """Even numbers between 0 and 1 out of a repeatable stream. Made-up data may repeat itself; releases never do."""

    def __init__(self, seed: int) -> None:
        self._bits = SeededBits(seed)

    def even(self, count: int) -> NDArray[np.float64]:
        """Above 0 and at most 1, so that logarithms exist."""
        return ((self._bits.words(count) >> np.uint64(11)).astype(np.float64) + 1.0) * 2.0**-53

    def places(self, percent: tuple[int, ...], count: int) -> NDArray[np.intp]:
        """Which of several, with these chances."""
        return np.searchsorted(np.cumsum(percent)[:-1], 100 * self.even(count), side="right")


def hospital(seed: int = 1, patients: int = PATIENTS) -> Hospital:
    """A year of visits. Most patients are seen once or twice, a few every week."""
    chance = _Chance(seed)
    count = checks.whole(patients, "patients", most=10**6)
    names = np.array([f"P{number:05}" for number in range(1, count + 1)])
    born = 2026 - (100 * (chance.even(count) * 0.7 + chance.even(count) * 0.3)).astype(np.int64)
    sex = chance.places((51, 48, 1), count)
    region = chance.places((22, 13, 25, 40), count)

    # P(visits >= k) = (1.5/k)^2.4: most come once or twice, the busiest every week. This is what limits are for.
    visits = np.minimum(1.5 * chance.even(count) ** (-1 / 2.4), MOST_VISITS).astype(np.int64)
    patient = np.repeat(np.arange(count), visits)
    diagnosis = _diagnoses(chance, 2026 - born[patient], sex[patient])
    ward = np.zeros(patient.size, dtype=np.intp)
    for place, percent in enumerate(_WARD_OF):
        chosen = diagnosis == place
        ward[chosen] = chance.places(percent, int(chosen.sum()))
    cost = np.array(_COST_OF)[diagnosis] * -np.log(chance.even(patient.size) * chance.even(patient.size))
    day = FIRST_DAY + (DAYS * (1 - chance.even(patient.size))).astype(np.int64)
    order = np.argsort(day, kind="stable")  # as they came in, so that a patient's visits lie apart

    return Hospital(
        patients={
            "id": names,
            "born": born,
            "sex": np.array(SEXES)[sex],
            "region": np.array(REGIONS)[region],
        },
        visits={
            "patient": names[patient][order],
            "ward": np.array(WARDS)[ward][order],
            "day": day[order],
            "cost": np.round(cost, 2)[order],
            "diagnosis": np.array(DIAGNOSES)[diagnosis][order],
        },
        wards={"ward": np.array(WARDS), "floor": np.array(FLOORS), "beds": np.array(BEDS)},
    )


def _diagnoses(chance: _Chance, age: NDArray[np.int64], sex: NDArray[np.intp]) -> NDArray[np.intp]:
    """The young have asthma and fractures, the old diabetes and hypertension."""
    young, old = chance.places((22, 3, 34, 28, 1, 12, 0), age.size), chance.places((5, 24, 18, 15, 30, 8, 0), age.size)
    diagnoses = np.where(100 * chance.even(age.size) < np.clip(age * 1.6 - 20, 0, 100), old, young)
    expecting = (sex == 0) & (age >= 18) & (age <= 45) & (chance.even(age.size) < 0.25)
    return np.where(expecting, DIAGNOSES.index("pregnancy"), diagnoses)
