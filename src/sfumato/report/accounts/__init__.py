"""Reading a ledger: history, releases, statements, forecasts, disclosures and exports. Nothing here writes into it."""

from __future__ import annotations

from .about import About
from .deployments import registry
from .evidence import Evidence, evidence, stored_answers
from .export import Exported, export
from .forecast import Forecast, forecast
from .history import Entry, history
from .nist import Checklist, checklist
from .overview import Overview, overview
from .paid import paid
from .register import Declared, declared
from .releases import Released, releases
from .statement import Statement, statement

__all__ = [
    "About",
    "Checklist",
    "Declared",
    "Entry",
    "Evidence",
    "Exported",
    "Forecast",
    "Overview",
    "Released",
    "Statement",
    "checklist",
    "declared",
    "evidence",
    "export",
    "forecast",
    "history",
    "overview",
    "paid",
    "registry",
    "releases",
    "statement",
    "stored_answers",
]
