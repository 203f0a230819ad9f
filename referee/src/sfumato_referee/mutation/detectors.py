"""The tools of the audit as detectors: each says what it noticed, or nothing.

None of them knows of the faults. They are what everybody runs: the suite of conformance on plans, the search for events
(`audit.check`), exact verification (`audit.verify`), and the attacks, most of them in their quick form.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sfumato.audit import shipped
from sfumato.audit.checking import check
from sfumato.audit.conformance import ConformanceError, check_plan
from sfumato.audit.verifying import verify
from sfumato.noise import SeededBits

from ..attacks import ATTACKS, CouldNotRunError, attack
from . import plans

Detector = Callable[[], str | None]


def _conformance(name: str) -> str | None:
    try:
        check_plan(PLANS[name]())
    except ConformanceError as problem:
        return str(problem)
    return None


def _checked(name: str) -> str | None:
    result = check(PLANS[name](), runs=_RUNS, bits=SeededBits(9))
    return str(result) if result.broken else None


def _verified(name: str) -> str | None:
    verified = verify(PLANS[name]())
    return str(verified) if verified.verdict == "broken" else None


def _attacked(id: str) -> str | None:
    verdict = attack(id, quick=True)
    return verdict.text if verdict.broken else None


_RUNS = 3_000  # on each side of a pair: enough for faults by half, and some seconds
PLANS = {**shipped.PLANS, **plans.MORE}

DETECTORS: dict[str, Detector] = {
    **{f"check_plan {name}": partial(_conformance, name) for name in PLANS},
    **{f"check {name}": partial(_checked, name) for name in PLANS},
    **{f"verify {name}": partial(_verified, name) for name in PLANS},
    **{f"attack {id}": partial(_attacked, id) for id in ATTACKS if id != "G1"},
}


def look_up(name: str) -> Detector:
    if name not in DETECTORS:
        raise CouldNotRunError(f"there is no detector {name!r}")
    return DETECTORS[name]
