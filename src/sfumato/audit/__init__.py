"""Attack what is promised: an audit looks for neighbours and events that prove more privacy lost than was paid for.

audit.check(plan)            neighbours, samples, lower bounds on epsilon, beside the claim
audit.verify(plan)           every output and its exact probability, where the outputs are finitely many
audit.without_noise(plan, table)  the same plan without its noise, on a table of your own: to test pipelines
audit.replay(pipeline, ...)  your own code, recorded on one table and replayed on its neighbours
audit.models                 canaries, one-run audits and membership inference for training

>>> from sfumato import Unit, audit, mechanisms
>>> unit = Unit(change="replace")
>>> plan = mechanisms.RandomizedResponse(column="smokes", categories=("yes", "no"), epsilon=1, protects=unit)
>>> audit.verify(plan).verdict
'holds'
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "Recorder": "replays.foreign",
    "check": "checking",
    "check_mechanism": "checking",
    "check_plan": "conformance",
    "replay": "replays.replaying",
    "reproduce": "evidence",
    "verify": "verifying",
    "without_noise": "silent",
}
_MODULES = ("models",)

__all__ = [
    "Recorder",
    "check",
    "check_mechanism",
    "check_plan",
    "models",
    "replay",
    "reproduce",
    "verify",
    "without_noise",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name not in _HOMES:
        raise AttributeError(f"module 'sfumato.audit' has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
