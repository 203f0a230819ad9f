"""What plans run on: the rows of a private table, or an engine that holds all tables; later edges, reports, models.

An opening is all that the door knows of it: how it is opened, checked and looked at before anything is paid, made up
for a rehearsal, and closed. A new one is a subclass and its one instance, in a file of its own; its plans name it:

    class Edges(Opening[list[tuple[str, str]]]): ...
    EDGES = Edges()

    class Triangles(Plan[list[tuple[str, str]], float]):
        opens = EDGES

An audit reads made-up columns through `of`, and finds neighbours by the owners of the plan's unit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from .errors import PlanError
from .rows import Rows
from .schema import Schema, Table, Words
from .sources import Connection, Source, columns_of, compare_columns, connect, engine_of, source
from .units import ROW, USER, Kind, Unit

D = TypeVar("D")


class Asking(Protocol):
    """What an opening needs to know of a plan: public things."""

    @property
    def children(self) -> Iterable[Asking]: ...
    @property
    def lists(self) -> Collection[str]: ...
    def bind(self, connection: Any) -> None: ...
    def check(self, table: Table) -> None: ...
    def check_schema(self, schema: Schema) -> None: ...


@dataclass(frozen=True, eq=False, repr=False)
class Tables:
    """Where tables lie, behind a Private or made up: an opening reads them, and of data with blocks those alone that
    are charged."""

    schema: Schema
    unit: Unit
    sources: Mapping[str, Source]
    block: str | None = None
    blocks: tuple[str, ...] = ()
    engine: Mapping[str, Any] = field(default_factory=dict)
    session: Callable[..., Connection] | None = None

    def rows(self) -> Rows:
        """The rows of the one private table; whose they are where none is one unit's alone, `unit.owners` says."""
        table = self.schema.table()
        unit = self.unit if self.unit.takes_rows else Unit()
        rows = Rows.read(table, columns_of(table, self.sources[table.name]), unit)
        if self.block is None:
            return rows
        # A row whose block is NULL, or none that is known, is in no block: nobody is charged for it.
        charged = np.array([str(block) in self.blocks for block in table.column(self.block).categories])
        cells = rows[self.block]
        return rows.keep(cells.valid & charged[cells.values])

    def connect(self, unread: Collection[str] = ()) -> Connection:
        """An engine's connection to all tables; of those that are unread it holds the columns, and no row."""
        only = {} if self.block is None else {self.schema.table().name: (self.block, self.blocks)}
        return connect(self.placed(), only=only, unread=unread, session=self.session, **self.engine)

    def placed(self) -> dict[str, tuple[Table, Source]]:
        """Each table, and where it lies."""
        return {name: (self.schema.table(name), place) for name, place in self.sources.items()}

    def made_up(self, rows: int, words: Words) -> Tables:
        """Made-up rows in every private table, from the schema alone; public tables are as they are. They are asked in
        the engine that holds the real ones, so that a rehearsal refuses what it has no word for."""
        invented = {name: source(cells) for name, cells in self.schema.make_up(rows, words).items()}
        return replace(self, sources={**self.sources, **invented}, session=engine_of(self.sources.values()))


class Opening(ABC, Generic[D]):
    """One kind of thing that plans run on.

    does         what its plans do, in words for refusals: "read rows"
    hides        the kinds of units that its plans can hide
    indivisible  why a partition cannot split it, and what to do; empty where it can: then it is rows
    """

    does: str
    hides: Collection[Kind] = (ROW, USER)
    indivisible: str = "these plans are not split by partition: use a sequence."

    @abstractmethod
    def _open(self, tables: Tables) -> D:
        """What a plan is handed. A Private calls it, with a receipt or with made-up tables; all else holds no data."""

    def check_unit(self, unit: Unit) -> None:
        """Refuse a unit that no plan of this opening can hide."""
        if unit.of_kind not in self.hides:
            words = " and ".join(f"{kind.word}s" for kind in self.hides)
            raise PlanError(
                f"plans that {self.does} hide {words} so far, and the unit is {unit.of!r}: use another Unit"
            )

    def close(self, data: D) -> None:
        """Let go of what was opened, after the plan ran or failed."""

    def check(self, plan: Asking, schema: Schema) -> None:
        """Refuse data of another schema than the plan reads. Compares public things only."""
        plan.check(schema.table())

    def compare(self, plan: Asking, tables: Tables) -> D | None:
        """Refuse what would fail whatever the private rows are, before anything is paid. None of them is read. What was
        opened for that holds none; it may be given back, to be filled once the plan is paid for, or closed."""
        for name, table in tables.schema.tables.items():
            compare_columns(table, tables.sources[name])
        return None

    def _filled(self, empty: D, tables: Tables) -> D:
        """What a plan is handed, from what `compare` gave back. Called as `_open` is, and with the same right."""
        self.close(empty)
        return self._open(tables)

    def make_up(self, tables: Tables, rows: int, words: Words) -> D:
        """The same as `_open`, of made-up data: what a rehearsal runs on."""
        return self._open(tables.made_up(rows, words))

    def of(self, table: Table, raw: Mapping[str, Any], unit: Unit) -> D:
        """The same of these raw columns, which are nobody's: what an audit runs on."""
        schema = Schema({table.name: table})
        return self._open(Tables(schema, unit, {table.name: source(dict(raw))}))


class _OfRows(Opening[Rows]):
    """The rows of the one private table, as numpy columns."""

    does = "read rows"
    indivisible = ""

    def _open(self, tables: Tables) -> Rows:
        return tables.rows()

    def compare(self, plan: Asking, tables: Tables) -> None:
        table = tables.schema.table()
        compare_columns(table, tables.sources[table.name])

    def of(self, table: Table, raw: Mapping[str, Any], unit: Unit) -> Rows:
        return Rows.read(table, raw, unit)


class _OfEngine(Opening[Connection]):
    """A connection to an engine that holds all tables."""

    does = "run in an engine"
    indivisible = "a query is not split by partition: use GROUP BY, or WHERE and a sequence."

    def _open(self, tables: Tables) -> Connection:
        return tables.connect()

    def close(self, data: Connection) -> None:
        data.close()

    def check(self, plan: Asking, schema: Schema) -> None:
        for child in plan.children:
            child.check_schema(schema)

    def compare(self, plan: Asking, tables: Tables) -> Connection:
        """The engine takes the statements. It holds no rows but of public tables that say which groups there are."""
        public = {name for name in plan.lists if not tables.schema.table(name).private}
        opened = tables.connect(unread=set(tables.sources) - public)
        try:
            plan.bind(opened)
        except BaseException:
            opened.close()
            raise
        return opened

    def _filled(self, empty: Connection, tables: Tables) -> Connection:
        if empty.fill(tables.placed()):
            return empty
        return super()._filled(empty, tables)


ROWS: Opening[Rows] = _OfRows()
ENGINE: Opening[Connection] = _OfEngine()
