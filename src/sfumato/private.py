"""Sensitive data behind the door. Only a Curator opens it, and only with a receipt."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from . import checks
from .address import Address
from .errors import DataError, PlanError, ReceiptError, SfumatoError
from .exhibits import Exhibit
from .foreign_keys import ARROW, ForeignKey
from .openings import D, Opening, Tables
from .owners import naming, other_names, paths
from .plan import Plan, Receipt
from .schema import Schema, Table, Words
from .sources import DuckDBTable, Source, compare_view, engine_settings, source, with_views_of_files
from .units import Unit

_UNREADABLE = (
    "the tables cannot be opened as the schema says, whatever their rows: compare the types of their columns with it"
)


class Private(Exhibit):
    """Sensitive data behind the door: its name, unit and schema are public, its rows are not.

    >>> from sfumato import Private, Schema, Unit, schema
    >>> people = Private("people", {"age": [25, 37, 52]}, unit=Unit(), schema=Schema.of(age=schema.whole(0, 110)))
    >>> people
    <Private people version 1: age; hides one row, present or absent>

    data     numpy arrays or lists by column name, a frame (pandas, polars, Arrow), or the path of a file (.csv, .tsv,
             .parquet, .duckdb); where the schema has several tables, one of these for each of them. Read only when a
             paid plan runs. Of a view in a DuckDB file, which is named beside the tables, the definition is read now
    version  name it anew when the data changes: the same plan on the same version is answered from the store
    block    the column that says which block (a day, a month) a row belongs to, where blocks have budgets of their own
    engine   how much the engine may use: {"threads": 2, "memory": 4 * 2**30, "seconds": 60, "temp": "/scratch"}. A
             statement that takes longer fails like any other failure: paid, and without a word about why
    """

    _card = "sfumato.cards:private"

    def __init__(
        self,
        name: str,
        data: Any,
        *,
        unit: Unit,
        schema: Schema,
        version: str = "1",
        block: str | None = None,
        engine: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = checks.label(name, "name")
        self.version = checks.label(version, "version")
        if not isinstance(unit, Unit):
            raise checks.refuse("unit", unit, "a Unit, such as Unit() or Unit('user:patient')")
        if not isinstance(schema, Schema):
            raise checks.refuse("schema", schema, "a Schema, such as Schema.of(age=real(0, 120))")
        self.unit = unit
        naming(schema, unit)
        tables, views = _by_name(schema, data)
        self._sources = {name: source(given) for name, given in tables.items()}
        self.schema, self._views = with_views_of_files(schema, self._sources, views)
        for table in schema.tables.values():
            self._sources[table.name].check(table)
        self._engine = dict(engine or {})
        if unknown := sorted(set(self._engine) - {"threads", "memory", "seconds", "temp"}):
            raise checks.refuse("engine", unknown[0], "threads, memory, seconds or temp")
        engine_settings(**self._engine)
        self._block = block
        self.blocks = () if block is None else _categories(self.table, block)
        if block is not None and unit.change != "add-remove":
            # A replaced or blanked row may leave its block, so that rows would come and go.
            raise checks.refuse("unit", unit, "a unit that is added or removed, where data has blocks")

    @property
    def table(self) -> Table:
        """The private table; a plan that reads rows needs it to be the only one."""
        return self.schema.table()

    @property
    def size(self) -> int | None:
        """How many rows the largest private table has, where that is public."""
        sizes = [table.rows for table in self.schema.tables.values() if table.private and table.rows is not None]
        return max(sizes, default=None)

    @property
    def owners(self) -> dict[str, str]:
        """The columns that name the unit in each private table, or lead to who does, with their places where columns
        are told by place; none where rows are units. The ledger remembers it: data whose rows belong to others does not
        get the same budget."""
        links = {name: table.leads for name, table in self.schema.tables.items()}
        return {
            name: ", ".join(self._called(name, column) for column in columns) + self._target(links[name])
            for name, columns in naming(self.schema, self.unit).items()
        }

    def _called(self, name: str, column: str) -> str:
        return self._sources[name].called(self.schema.tables[name], column)

    def _target(self, link: ForeignKey | None) -> str:
        return "" if link is None else f" {ARROW} {link.table}.{self._called(link.table, link.key)}"

    def of_blocks(self, *blocks: str) -> Private:
        """The same data, rows of these blocks only: a release on it is charged to them, and to no other block."""
        if not blocks or self._block is None or not set(blocks) <= set(self.blocks):
            raise checks.refuse("blocks", blocks, f"blocks of this data: {', '.join(self.blocks) or 'it has none'}")
        part = object.__new__(type(self))  # not copy.copy: private data is not copied
        part.__dict__ |= self.__dict__
        part.blocks = tuple(block for block in self.blocks if block in blocks)
        return part

    def compare(self, plan: Plan[Any, Any], *, quoting: bool = False) -> None:
        """Refuse what would fail whatever the private rows are: files that are not there or do not hold the schema's
        columns any more, statements that the engine does not take, too many groups in public tables. Asked before each
        charge; no private row is read. A quote does without files that are not there.
        """
        with self.compared(plan, quoting=quoting):
            pass

    @contextmanager
    def compared(self, plan: Plan[Any, Any], *, quoting: bool = False) -> Iterator[Any]:
        """The same, with what was opened for it, which holds no private row: `_open` fills it. None where nothing was.
        It is closed in the end."""
        empty = self._compared(plan, quoting)
        try:
            yield empty
        finally:
            if empty is not None:
                plan.opens.close(empty)

    def _compared(self, plan: Plan[Any, Any], quoting: bool) -> Any:
        sources = self._sources
        if quoting and any(source.absent for source in sources.values()):
            return None
        for table in self.schema.tables.values():
            sources[table.name].compare(table)
        for name, place in self._views.items():
            compare_view(name, place, self.schema, sources)
        try:
            return plan.opens.compare(plan, self._tables)
        except DataError:  # whose words say that the charge stays, and there was none
            refusal = PlanError(_UNREADABLE)
        except SfumatoError:
            raise
        except Exception:  # the words of an engine, or of whoever made a frame, are not ours to tell
            refusal = PlanError(_UNREADABLE)
        raise refusal  # outside the handlers, so that their error is not its context

    def _open(self, receipt: Receipt, opens: Opening[D], empty: D | None = None) -> D:
        """The only way to the data. Called by a Curator, with a receipt for this data: whatever the plan runs on. What
        `compared` opened is filled, if it is given."""
        if not isinstance(receipt, Receipt) or receipt.data != self.address or receipt.unit != self.unit:
            raise ReceiptError("the data opens only with a receipt that was paid for it")
        return opens._open(self._tables) if empty is None else opens._filled(empty, self._tables)

    def rehearsal(self, rows: int, words: Words, opens: Opening[D]) -> D:
        """The same of made-up rows, from the schema alone; public tables are as they are."""
        return opens.make_up(self._tables, rows, words)

    @property
    def _tables(self) -> Tables:
        return Tables(self.schema, self.unit, self._sources, self._block, self.blocks, self._engine)

    @property
    def address(self) -> str:
        """Name, version and blocks in one text that no others share."""
        return str(Address(self.name, self.version, self.blocks))

    @property
    def hides(self) -> str:
        """Whose presence is hidden, in words."""
        return self.unit.hiding(other_names(self.schema, self.unit), paths(self.schema, self.unit))

    @property
    def _shown(self) -> Collection[str]:
        tables = self.schema.tables
        return (*tables, *self.schema.views) if len(tables) > 1 or self.schema.views else self.table.columns

    def __repr__(self) -> str:
        return f"<Private {self.name} version {self.version}: {', '.join(self._shown)}; hides {self.hides}>"

    def __reduce__(self) -> Any:
        raise TypeError("private data is not pickled or copied: pass the source it came from")


def _by_name(schema: Schema, data: Any) -> tuple[dict[str, Any], dict[str, DuckDBTable]]:
    """The data of each table, and the files that have views."""
    if len(schema.tables) == 1 and not _is_by_name(data):
        return {next(iter(schema.tables)): data}, {}
    if not isinstance(data, Mapping) or not set(schema.tables) <= set(data):
        raise checks.refuse("data", type(data).__name__, "data for each table: " + ", ".join(map(repr, schema.tables)))
    views: dict[str, DuckDBTable] = {}
    for name in data:
        if name not in schema.tables:
            place = source(data[name]) if isinstance(data[name], str | Path | Source) else None
            if not isinstance(place, DuckDBTable):
                names = ", ".join(map(repr, schema.tables))
                raise checks.refuse("data", name, f"tables of the schema ({names}), and views of DuckDB files")
            views[name] = place
    return {name: data[name] for name in data if name in schema.tables}, views


def _is_by_name(data: Any) -> bool:
    """Are these places by table, of one table and of views? Columns by name hold cells; others may read them."""
    return isinstance(data, dict) and any(isinstance(place, str | Path | Source) for place in data.values())


def _categories(table: Table, column: str) -> tuple[str, ...]:
    """The blocks that a column tells apart: its public categories."""
    category = table.column(column)
    if not category.categories:
        raise checks.refuse("block", column, "a column with public categories, one for each block")
    return tuple(str(each) for each in category.categories)
