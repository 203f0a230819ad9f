"""What the numbers mean: explanations, deployments to compare with, plots, and reports to sign."""

from __future__ import annotations

from .account_report import account_report
from .audit_report import Audited, audit_report
from .deployments import DEPLOYMENTS, Deployment, place
from .explain import explain
from .plots import plot_accuracy, plot_answer, plot_budget, plot_epsilon, plot_tradeoff
from .release_report import release_report
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
