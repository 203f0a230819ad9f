"""Private SQL: ordinary queries, answered for people rather than rows."""

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
