"""An engine for what is public by now: it holds the tables that it is handed and reaches nothing else. No private table
was ever in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from .base import CLOSED, needed, quoted

if TYPE_CHECKING:
    import pyarrow


class Rowset(NamedTuple):
    """What a statement gave: names and types of the columns, and the rows."""

    names: tuple[str, ...]
    types: tuple[str, ...]
    rows: list[tuple[Any, ...]]


class ReleasedError(ValueError):
    """The engine does not take a statement, or fails on it; `words` is what it says, of released numbers alone."""

    def __init__(self, words: str) -> None:
        super().__init__(words)
        self.words = words.removeprefix("Binder Error: ").rstrip(".")


class ReleasedEngine:
    """One DuckDB in memory, on one thread, so that the same statement on the same tables gives the same rows."""

    def __init__(self, tables: Mapping[str, pyarrow.Table]) -> None:
        settings: dict[str, Any] = {**CLOSED, "threads": 1}
        self._checked: set[str] = set()
        self._engine = needed("duckdb").connect(":memory:", config=settings)
        self._engine.execute("SET TimeZone = 'UTC'; SET enable_progress_bar = false")
        for name, table in tables.items():
            self._engine.register("handed over", table)
            self._engine.execute(f'CREATE TABLE {quoted(name)} AS SELECT * FROM "handed over"')
            self._engine.unregister("handed over")
        self._engine.execute("SET enable_external_access = false; SET lock_configuration = true")

    def ask(self, text: str, values: Sequence[Any] = ()) -> Rowset:
        """Run one SELECT. What the engine says where it fails is of public numbers, and may be told."""
        engine = needed("duckdb")
        try:
            if text not in self._checked:
                kinds = [each.type for each in self._engine.extract_statements(text)]
                if kinds != [engine.StatementType.SELECT]:
                    raise ReleasedError("one SELECT is asked for")
                self._checked.add(text)
            result = self._engine.execute(text, list(values))
            names, types = zip(*((each[0], str(each[1])) for each in result.description), strict=True)
            return Rowset(names, types, result.fetchall())
        except engine.Error as problem:
            words = str(problem).splitlines()[0]
        raise ReleasedError(words)  # outside the handler, so that the engine's error is not its context

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._engine.close()
