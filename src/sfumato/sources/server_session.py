"""What sessions in servers share: nothing is made there, and names of the schema's tables can mean nothing else.

What other engines have as views stands in front of each statement, as WITH, which the server writes out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from ..errors import PlanError
from ..schema import Table
from .base import Source, needed, quoted
from .frames import Frame
from .lean import Lean
from .mentions import mentions
from .reading import RAW, Reading, flag_of, with_flags
from .session import Session, Settings
from .statements import checked
from .typed_engine import TypedEngine

_WITH = "WITH "


class ServerSession(Session):
    """A session whose views are part of each statement.

    written_out  what a view's name is followed by in WITH, so that the server writes it out
    """

    lowering: ClassVar[TypedEngine]
    written_out: ClassVar[str] = "AS"

    def __init__(
        self,
        tables: Mapping[str, tuple[Table, Source]],
        settings: Settings,
        only: Mapping[str, tuple[str, Sequence[str]]],
        unread: Collection[str],
    ) -> None:
        self._texts: dict[str, str] = {}
        self._typed: dict[str, TypedEngine] = {}
        super().__init__(tables, settings, only, unread)

    def _no_private_frames(self) -> None:
        for name, (table, source) in self._given.items():
            if table.private and isinstance(source, Frame) and name in self._unread:
                raise PlanError(
                    f"table {name!r} is private and in memory, and is not sent to a server, which may log it: bring it "
                    "into the database, or give all tables as files or frames"
                )

    def _called(self, name: str) -> str:
        return quoted(self.lowering.name_of(name))

    def _cell(self, read: Reading, raw: str) -> str:
        return raw if read.cell == RAW else self._words(read.cell).replace(self._name(RAW), raw)

    def _name(self, name: str) -> str:
        """A name as the engine's own texts have it."""
        shown: str = needed("sqlglot").exp.to_identifier(name, quoted=True).sql(dialect=self.dialect)
        return shown

    def _make_view(self, name: str, text: str, lists: Mapping[str, Sequence[str]]) -> None:
        self._texts[name] = text

    def _with_views(self, text: str, views: Mapping[str, str] | None = None) -> str:
        """The statement with the views that it may mean in front of it."""
        called = {self._name(self.lowering.view_of(name)): view for name, view in (views or self._texts).items()}
        before = [f"{name} {self.written_out} ({view})" for name, view in called.items() if name in text]
        if not before:
            return text
        own = text.removeprefix(_WITH)
        return f"{_WITH}{', '.join(before)}{' ' if own == text else ', '}{own}"

    def _checked(self, tree: Any, change: Lean | None = None) -> str:
        names = [*self.tables, *map(with_flags, self.tables), *self._kept]
        return checked(tree, names, self._engine_of(tree), change)

    def _engine_of(self, tree: Any) -> TypedEngine:
        """The words, as they are for the types of the tables that a statement mentions."""
        if not isinstance(tree, needed("sqlglot").exp.Query):
            return self.lowering
        mentioned = {name.lower() for name in mentions(tree).tables}
        types: dict[str, dict[str, str]] = {}
        for name, (table, _) in self._given.items():
            if {name.lower(), with_flags(name).lower()} & mentioned:
                columns = {column.lower(): kind for column, kind in self._types_of(name).items()}
                flags = {flag.lower(): "BOOLEAN" for column in table.columns if (flag := flag_of(table, column))}
                types |= {name.lower(): columns, with_flags(name).lower(): columns | flags}
        key = str(types)
        if key not in self._typed:
            self._typed[key] = replace(self.lowering, tables=types)
        return self._typed[key]

    def run(self, tree: Any) -> Any:
        """With the columns' names as the statement writes them: the server tells upper from lower case."""
        rows = super().run(tree)
        names = list(tree.named_selects)
        return rows if "*" in names or len(names) != rows.num_columns else rows.rename_columns(names)
