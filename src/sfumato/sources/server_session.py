"""What sessions in servers share: nothing is made there, and names of the schema's tables can mean nothing else.

What other engines have as views stands in front of each statement, as WITH, which the server writes out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar

from ..errors import PlanError
from ..schema import Table
from .base import Source, needed, quoted
from .frames import Frame
from .session import Settings
from .typed_engine import ServerEngine
from .typed_session import TypedSession

_WITH = "WITH "


class ServerSession(TypedSession):
    """A session whose views are part of each statement.

    written_out  what a view's name is followed by in WITH, so that the server writes it out
    """

    lowering: ClassVar[ServerEngine]
    written_out: ClassVar[str] = "AS"

    def __init__(
        self,
        tables: Mapping[str, tuple[Table, Source]],
        settings: Settings,
        only: Mapping[str, tuple[str, Sequence[str]]],
        unread: Collection[str],
    ) -> None:
        self._texts: dict[str, str] = {}
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

    def _own_quotes(self, name: str) -> str:
        shown: str = needed("sqlglot").exp.to_identifier(name, quoted=True).sql(dialect=self.dialect)
        return shown

    def _make_view(self, name: str, text: str, lists: Mapping[str, Sequence[str]]) -> None:
        self._texts[name] = text

    def _with_views(self, text: str, views: Mapping[str, str] | None = None) -> str:
        """The statement with the views that it may mean in front of it."""
        called = {self._own_quotes(self.lowering.view_of(name)): view for name, view in (views or self._texts).items()}
        before = [f"{name} {self.written_out} ({view})" for name, view in called.items() if name in text]
        if not before:
            return text
        own = text.removeprefix(_WITH)
        return f"{_WITH}{', '.join(before)}{' ' if own == text else ', '}{own}"
