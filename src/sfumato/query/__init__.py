"""Private SQL: ordinary queries, answered for people rather than rows."""

from .ask import sql
from .limits import Limits
from .odd_cells import unreadable
from .plan import Sql

__all__ = ["Limits", "Sql", "sql", "unreadable"]
