"""Sessions of engines whose words depend on types: what those share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from ..schema import Table
from .base import Source, needed
from .lean import Lean
from .mentions import mentions
from .reading import RAW, Reading, flag_of, with_flags
from .session import Session, Settings
from .statements import checked
from .typed_engine import TypedEngine


class TypedSession(Session):
    """Names are written in lower case and in quotes, and results get the statement's own names."""

    lowering: ClassVar[TypedEngine]

    def __init__(
        self,
        tables: Mapping[str, tuple[Table, Source]],
        settings: Settings,
        only: Mapping[str, tuple[str, Sequence[str]]],
        unread: Collection[str],
    ) -> None:
        self._typed: dict[str, TypedEngine] = {}
        super().__init__(tables, settings, only, unread)

    @abstractmethod
    def _own_quotes(self, name: str) -> str:
        """A name in the engine's quotes."""

    def _called(self, name: str) -> str:
        return self._own_quotes(self.lowering.name_of(name))

    def _cell(self, read: Reading, raw: str) -> str:
        return raw if read.cell == RAW else self._words(read.cell).replace(self._own_quotes(RAW), raw)

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
        """With the columns' names as the statement writes them: the engine is told them in lower case."""
        return self._named(tree, super().run(tree))

    def _named(self, tree: Any, rows: Any) -> Any:
        names = list(tree.named_selects)
        return rows if "*" in names or len(names) != rows.num_columns else rows.rename_columns(names)
