"""Reading a ledger: history, releases, statements, forecasts, disclosures and exports. Nothing here writes into it."""

from __future__ import annotations

from .about import About
from .deployments import registry
from .export import Exported, export
from .forecast import Forecast, forecast
from .history import Entry, history
from .nist import Checklist, checklist
from .register import Declared, declared
from .releases import Released, releases
from .statement import Statement, statement

__all__ = [
    "About",
    "Checklist",
    "Declared",
    "Entry",
    "Exported",
    "Forecast",
    "Released",
    "Statement",
    "checklist",
    "declared",
    "export",
    "forecast",
    "history",
    "registry",
    "releases",
    "statement",
]
