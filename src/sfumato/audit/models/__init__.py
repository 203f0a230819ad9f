"""Audits of training: how much does a model, or its training, give away of one record?

audit.models.one_run(plan, data)       white box: gradient canaries, each put in by a coin, in one training
audit.models.inputs.one_run(plan, ...) black box: odd records, and the loss of the finished model on them
audit.models.membership, lira          membership inference by the loss, and by shadow models
audit.models.epsilon_at_least(...)     the lower bound alone, from counts
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "ModelAudit": "outcome",
    "epsilon_at_least": "one_run_bound",
    "judged": "outcome",
    "mu_at_least": "one_run_tradeoff",
    "one_run": "gradients",
    "plot_roc": "plotting",
}
_MODULES = ("canaries", "gradients", "inputs", "lira", "membership", "one_run_tradeoff", "plotting", "two_sided")

__all__ = [
    "ModelAudit",
    "canaries",
    "epsilon_at_least",
    "gradients",
    "inputs",
    "judged",
    "lira",
    "membership",
    "mu_at_least",
    "one_run",
    "one_run_tradeoff",
    "plot_roc",
    "plotting",
    "two_sided",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name not in _HOMES:
        raise AttributeError(f"module 'sfumato.audit.models' has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
