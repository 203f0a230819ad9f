"""sfumato: every release is priced before it runs, paid for in one ledger, and blurred with exact noise."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import VERSION

if TYPE_CHECKING:
    from . import audit, bounds, events, frames, learn, mechanisms, schema, strategies
    from .accounting.calibrate import calibrate
    from .accounting.compare import compare
    from .accounting.filters import Budget
    from .accounting.price import delta, epsilon
    from .accounting.tradeoff import tradeoff
    from .combine import partition, repeat, reserve, sequence
    from .curator import Curator
    from .frames import col, frame
    from .jointly import joint
    from .ledger import MemoryLedger, open_ledger
    from .private import Private
    from .project import open_project
    from .query import Limits, orphans, public, series, sql, unreadable, workload
    from .report.explanations import explain
    from .schema import Schema
    from .tidy import Tidy
    from .units import Unit

__version__ = VERSION

__all__ = [
    "Budget",
    "Curator",
    "Limits",
    "MemoryLedger",
    "Private",
    "Schema",
    "Tidy",
    "Unit",
    "audit",
    "bounds",
    "calibrate",
    "col",
    "compare",
    "delta",
    "epsilon",
    "events",
    "explain",
    "frame",
    "frames",
    "joint",
    "learn",
    "mechanisms",
    "open_ledger",
    "open_project",
    "orphans",
    "partition",
    "public",
    "repeat",
    "reserve",
    "schema",
    "sequence",
    "series",
    "sql",
    "strategies",
    "tradeoff",
    "unreadable",
    "workload",
]

_HOMES = {
    "Budget": "accounting.filters",
    "Curator": "curator",
    "Limits": "query",
    "MemoryLedger": "ledger",
    "Private": "private",
    "Schema": "schema",
    "Tidy": "tidy",
    "Unit": "units",
    "calibrate": "accounting.calibrate",
    "col": "frames",
    "compare": "accounting.compare",
    "delta": "accounting.price",
    "epsilon": "accounting.price",
    "explain": "report.explanations",
    "frame": "frames",
    "joint": "jointly",
    "open_ledger": "ledger",
    "open_project": "project",
    "orphans": "query",
    "public": "query",
    "partition": "combine",
    "repeat": "combine",
    "reserve": "combine",
    "sequence": "combine",
    "series": "query",
    "sql": "query",
    "tradeoff": "accounting.tradeoff",
    "unreadable": "query",
    "workload": "query",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'sfumato' has no attribute {name!r}")
    home = _HOMES.get(name)
    value = import_module(f".{name}", __name__) if home is None else getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
