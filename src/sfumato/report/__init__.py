"""What the numbers mean: explanations, deployments to compare with, plots, and reports to sign."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .account_pages import account_report
    from .audit_pages import Audited, audit_report
    from .deployments import DEPLOYMENTS, Deployment, place
    from .explanations import explain
    from .plots import plot_accuracy, plot_answer, plot_budget, plot_epsilon, plot_tradeoff
    from .release_pages import release_report
    from .reports import Report, json_schema

__all__ = [
    "DEPLOYMENTS",
    "Audited",
    "Deployment",
    "Report",
    "account_report",
    "audit_report",
    "explain",
    "json_schema",
    "place",
    "plot_accuracy",
    "plot_answer",
    "plot_budget",
    "plot_epsilon",
    "plot_tradeoff",
    "release_report",
]

_HOMES = {
    "Audited": "audit_pages",
    "DEPLOYMENTS": "deployments",
    "Deployment": "deployments",
    "Report": "reports",
    "account_report": "account_pages",
    "audit_report": "audit_pages",
    "explain": "explanations",
    "json_schema": "reports",
    "place": "deployments",
    "plot_accuracy": "plots",
    "plot_answer": "plots",
    "plot_budget": "plots",
    "plot_epsilon": "plots",
    "plot_tradeoff": "plots",
    "release_report": "release_pages",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'sfumato.report' has no attribute {name!r}")
    value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
