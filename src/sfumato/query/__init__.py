"""Private SQL: ordinary queries, answered for people rather than rows."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .above.public_query import public
    from .above.report_plan import SqlReport
    from .above.stages_plan import SqlStages
    from .ask import sql
    from .ask_series import series
    from .ask_workload import workload
    from .dated.series_plan import SqlSeries
    from .limits import Limits
    from .odd_cells import unreadable
    from .plan import Sql
    from .tabled.workload_plan import SqlWorkload
    from .unowned import orphans

__all__ = [
    "Limits",
    "Sql",
    "SqlReport",
    "SqlSeries",
    "SqlStages",
    "SqlWorkload",
    "orphans",
    "public",
    "series",
    "sql",
    "unreadable",
    "workload",
]

_HOMES = {
    "Limits": "limits",
    "Sql": "plan",
    "SqlReport": "above.report_plan",
    "SqlSeries": "dated.series_plan",
    "SqlStages": "above.stages_plan",
    "SqlWorkload": "tabled.workload_plan",
    "orphans": "unowned",
    "public": "above.public_query",
    "series": "ask_series",
    "sql": "ask",
    "unreadable": "odd_cells",
    "workload": "ask_workload",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'sfumato.query' has no attribute {name!r}")
    value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
