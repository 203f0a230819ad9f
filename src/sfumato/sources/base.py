"""What a source and an opened source are, for whoever asks them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import PlanError, install_line
from ..schema import Table, TensorColumn

if TYPE_CHECKING:
    import sqlglot

CLOSED = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_persistent_secrets": "false",
    "python_enable_replacements": "false",  # a name in a query never means a variable of this process
}
"""What every engine is opened with."""


class Connection(Protocol):
    """An opened source, alive for one release. Every table holds exactly the columns of the schema, already read to
    their declared meaning; nothing else can be reached through it, but for flags of cells that cannot be read, which
    stand beside them under another name of the table (`reading.with_flags`, `reading.flag_of`)."""

    dialect: str
    """The name that sqlglot has for the engine's SQL. What words of the vocabulary become there, its lowering says."""
    gaps: Collection[str]
    """The words that the engine has not."""
    tables: Mapping[str, Mapping[str, str]]
    """The engine's type of each column, by table and column: what the public may know, from the schema and the header
    of the file."""

    def run(self, tree: sqlglot.exp.Query) -> Any:
        """The result of one aggregate statement, as an Arrow table."""

    def bind(self, tree: sqlglot.exp.Query) -> None:
        """Refuse a statement that does not fit the tables' names and types. No cell is read."""

    def fill(self, tables: Mapping[str, tuple[Table, Source]]) -> bool:
        """Hold the rows of tables that are unread so far, from now on; False where that takes another connection."""

    def hand_over(self, table: Table, cells: Any) -> None:
        """One more public table, under its own name: what a stage of a plan released, as an Arrow table. One of that
        name that was handed over before is gone."""

    def close(self) -> None: ...


@dataclass(frozen=True)
class Source:
    """The address of one table. Nothing is read when it is made."""

    def check(self, table: Table) -> None:
        """Refuse what cannot hold this table, as far as that is known without opening anything."""

    @property
    def absent(self) -> bool:
        """Is it a file that is not there, or not yet?"""
        return False

    def compare(self, table: Table) -> None:
        """Refuse what does not hold this table now, as far as that shows without a row: asked before each charge."""

    def emptied(self, table: Table) -> Source:
        """The same without its rows, where the engine would take these over as soon as it opens the source."""
        return self

    def engine(self) -> Callable[..., Connection] | None:
        """The session of the engine that holds the table (a subclass of `session.Session`); None where any engine can
        take it over."""
        return None

    def called(self, table: Table, column: str) -> str:
        """How the source tells this column from others: by its name."""
        return column


def no_arrays(table: Table, what: str) -> None:
    """Refuse a table with tensor columns where no cell is an array."""
    if found := [name for name, column in table.columns.items() if isinstance(column, TensorColumn)]:
        where = "give Parquet, Arrow, or arrays and tensors by column"
        raise PlanError(f"{what} holds no tensor columns, such as {found[0]!r} of table {table.name!r}: {where}")


def needed(name: str) -> Any:
    """A module that only the SQL area needs, on first use."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise PlanError(f"tables in files and SQL need {name}: {install_line('sql')}") from None


def quoted(name: str) -> str:
    """An SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """An SQL text."""
    return "'" + text.replace("'", "''") + "'"
