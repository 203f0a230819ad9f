"""What the public may know about the data before anything is spent: tables, columns, bounds, categories, NULLs.

Every field here is public: it may be printed, goes into plans and the ledger, and is enough to make up rows that look
like the data without touching the data.

>>> from sfumato import schema
>>> schema.category(["east", "west"]).categories
('east', 'west')
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import Any, Generic, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from . import checks, column_kinds, contributions, tensors
from .column_kinds import KINDS, ColumnKind, shown
from .errors import PlanError
from .exhibits import Exhibit
from .foreign_keys import ForeignKey, check_keys, in_order, is_key, read_owner, read_reference
from .questions import ANY_ORDER, CLIP, PRICE
from .record import LATER, record

Type = Literal["real", "whole", "category", "flag", "key", "date", "moment"]
TYPES: tuple[Type, ...] = get_args(Type)
DROP = column_kinds.DROP
INT64 = tensors.INT64
COMMON_KEYS = column_kinds.COMMON_KEYS
DIGITS = column_kinds.DIGITS
Words = column_kinds.Words
_LARGEST = 2**28  # numbers in one row of a tensor column: a row is held whole

K = TypeVar("K")
V = TypeVar("V")


@record("column/1", kept=True)
@dataclass(frozen=True)
class Column:
    """One column.

    type        "real", "whole", "category", "flag" (yes or no), "key" (an opaque name such as a user id), "date", or
                "moment" (date and time of day)
    lower       the bounds of a real, whole, date or moment column; values outside are clamped to them. Dates count in
    upper       days, moments in microseconds, since 1970-01-01
    categories  the public values of a category column; any other value counts as NULL
    nulls       "drop" leaves a NULL out of the aggregate (also where a category is called "drop"); a number, category
                or boolean stands in for it
    constant    every row of one unit holds the same value here, so `partition` may split by this column
    decimals    of a real column of decimal numbers, such as amounts of money: how many digits stand after the point.
                Cells are rounded to them, and SQL computes with them exactly, as with DECIMAL
    """

    type: Type
    lower: Fraction | None = field(default=None, metadata=CLIP)
    upper: Fraction | None = field(default=None, metadata=CLIP)
    categories: tuple[Any, ...] = field(default=(), metadata=ANY_ORDER)
    nulls: Any = field(default=DROP, metadata=PRICE)
    constant: bool = False
    decimals: int | None = field(default=None, metadata=LATER)

    def _contribution_bounds(self, path: str) -> Iterator[contributions.Bound]:
        limits = {name: self.of_kind.shown(limit) for name, limit in contributions.limits(self).items()}
        name = path.rpartition(".")[2]
        words = contributions.clamped(name, limits.get("lower"), limits.get("upper")) if limits else {}
        return contributions.own(self, path, limits | words)

    @property
    def of_kind(self) -> ColumnKind:
        """All that is special about columns of this type."""
        return KINDS[self.type]

    def __post_init__(self) -> None:
        kind = KINDS.get(self.type) if isinstance(self.type, str) else None
        if kind is None or kind.own_record:
            words = [word for word, other in KINDS.items() if not other.own_record]
            raise checks.refuse("type", self.type, "one of " + ", ".join(map(repr, words)))
        if not isinstance(self.constant, bool):
            raise checks.refuse("constant", self.constant, "True or False")
        if self.constant and not kind.is_public:
            raise checks.refuse("constant", self.constant, "False: a key is not public, so nothing is split by it")
        lower, upper = kind.bounds(self)
        if kind.has_bounds:
            object.__setattr__(self, "lower", lower)
            object.__setattr__(self, "upper", upper)
        object.__setattr__(self, "categories", kind.categories(self))
        object.__setattr__(self, "nulls", DROP if self.drops_nulls else kind.stand_in(self))
        if self.decimals is not None:
            if not kind.has_decimals:
                raise checks.refuse("decimals", self.decimals, f"no decimals to a {self.type} column")
            object.__setattr__(self, "decimals", kind.decimals(self))

    @property
    def drops_nulls(self) -> bool:
        return isinstance(self.nulls, str) and self.nulls == DROP

    @property
    def interval(self) -> tuple[Fraction, Fraction]:
        """Both bounds; a plan that needs them from another type of column does not fit."""
        if self.lower is None or self.upper is None or not self.of_kind.is_number:
            raise PlanError(f"a {self.type} column has no bounds: use a real or whole column here")
        return self.lower, self.upper

    def __str__(self) -> str:
        words: str = self.type
        if self.lower is not None and self.upper is not None:
            ends = [self.of_kind.shown(end) for end in (self.lower, self.upper)]
            ends = [end if isinstance(end, str) else shown(end) for end in ends]
            words += f" in [{ends[0]}, {ends[1]}]"
        if self.decimals is not None:
            words += f" with {self.decimals} decimal{'' if self.decimals == 1 else 's'}"
        if self.categories:
            more = ", ..." if len(self.categories) > 5 else ""
            words += f" of {len(self.categories)}: " + ", ".join(map(repr, self.categories[:5])) + more
        words += ", NULLs dropped" if self.drops_nulls else f", NULLs read as {shown(self.nulls)}"
        return words + (", constant per unit" if self.constant else "")


@record("tensor-column/1", kept=True)
@dataclass(frozen=True)
class TensorColumn(Column):
    """A column of type "tensor": every row holds an array of one public shape, such as an image, a row of token ids or
    an embedding.

    lower  the bounds of every number in the array; numbers outside are clamped to them, and one that is missing (nan)
    upper  reads as `rest`, the number within the bounds that is nearest to 0
    shape  the shape of one row's array: (1, 28, 28)
    whole  int64 numbers (token ids, classes of pixels) rather than float32

    A row that holds no such array is NULL, and full of `rest`. Engines hold no arrays: SQL reads the other columns.
    """

    type: Any = field(default="tensor", init=False)
    categories: tuple[Any, ...] = field(default=(), init=False)
    nulls: Any = field(default=DROP, init=False)
    constant: bool = field(default=False, init=False)
    decimals: int | None = field(default=None, init=False)
    shape: tuple[int, ...] = ()
    whole: bool = False

    def __post_init__(self) -> None:
        checks.flag(self.whole, "whole")
        allowed = "the shape of one row's array: a tuple of 1 to 8 whole numbers from 1 on, such as (1, 28, 28)"
        if not isinstance(self.shape, tuple | list) or not 1 <= len(self.shape) <= 8:
            raise checks.refuse("shape", self.shape, allowed)
        shape = tuple(checks.whole(side, "shape", most=_LARGEST) for side in self.shape)
        if prod(shape) > _LARGEST:
            raise checks.refuse("shape", self.shape, f"a shape of at most {_LARGEST} numbers")
        object.__setattr__(self, "shape", shape)
        low, high = column_kinds.whole_bounds(self) if self.whole else checks.interval(self.lower, self.upper)
        if not self.whole:
            most = Fraction(float(np.finfo(np.float32).max))
            for name, bound in (("lower", low), ("upper", high)):
                if abs(bound) > most:
                    raise checks.refuse(name, getattr(self, name), "a number that float32 can hold, up to 3.4e38")
        object.__setattr__(self, "lower", low)
        object.__setattr__(self, "upper", high)
        if not self.whole and self.ends[0] >= self.ends[1]:
            raise checks.refuse("lower", self.lower, "bounds further apart: float32 holds no two numbers between")

    @cached_property
    def size(self) -> int:
        """How many numbers a row holds."""
        return prod(self.shape)

    @property
    def dtype(self) -> type[np.int64 | np.float32]:
        return np.int64 if self.whole else np.float32

    @cached_property
    def ends(self) -> tuple[Any, Any]:
        """The least and the largest number of this type within the bounds."""
        assert self.lower is not None and self.upper is not None
        if self.whole:
            return np.int64(int(self.lower)), np.int64(int(self.upper))
        low, high = np.float32(float(self.lower)), np.float32(float(self.upper))
        low = np.nextafter(low, np.float32(np.inf)) if Fraction(float(low)) < self.lower else low
        high = np.nextafter(high, np.float32(-np.inf)) if Fraction(float(high)) > self.upper else high
        return low, high

    @cached_property
    def rest(self) -> Any:
        """What stands where there is no number: 0, or the bound that is nearest to it."""
        low, high = self.ends
        return min(max(self.dtype(0), low), high)

    @property
    def interval(self) -> tuple[Fraction, Fraction]:
        raise PlanError("a tensor column has no single number per row: use a real or whole column here")

    def __str__(self) -> str:
        sides = " x ".join(map(str, self.shape))
        kind = "whole numbers" if self.whole else "reals"
        return f"tensor of {sides} {kind} in [{shown(self.lower)}, {shown(self.upper)}]"


def real(lower: Any, upper: Any, *, nulls: Any = DROP, constant: bool = False, decimals: int | None = None) -> Column:
    """A column of numbers; real(0, 5000, decimals=2) is one of decimal numbers, such as amounts of money."""
    return Column("real", lower, upper, nulls=nulls, constant=constant, decimals=decimals)


def whole(lower: Any, upper: Any, *, nulls: Any = DROP, constant: bool = False) -> Column:
    return Column("whole", lower, upper, nulls=nulls, constant=constant)


def category(values: Any, *, nulls: Any = DROP, constant: bool = False) -> Column:
    return Column("category", categories=values, nulls=nulls, constant=constant)


def flag(*, nulls: Any = DROP, constant: bool = False) -> Column:
    return Column("flag", nulls=nulls, constant=constant)


def key() -> Column:
    return Column("key")


def date(lower: Any, upper: Any, *, constant: bool = False) -> Column:
    """A column of dates: date("2020-01-01", "2030-12-31")."""
    return Column("date", lower, upper, constant=constant)


def moment(lower: Any, upper: Any, *, constant: bool = False) -> Column:
    """A column of timestamps, from a first to a last moment."""
    return Column("moment", lower, upper, constant=constant)


def tensor(shape: Any, lower: Any, upper: Any, *, whole: bool = False) -> TensorColumn:
    """A column of arrays of one shape: tensor((1, 28, 28), 0, 1), or tensor((128,), 0, 999, whole=True)."""
    return TensorColumn(lower, upper, shape=shape, whole=whole)


class Named(Mapping[K, V], Generic[K, V]):
    """A mapping that never changes, so records can hold it. Order counts, as it does in the record's JSON and hash."""

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[K, V]) -> None:
        self._items = dict(items)

    def __getitem__(self, name: K) -> V:
        return self._items[name]

    def __iter__(self) -> Iterator[K]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Named) and tuple(self.items()) == tuple(other.items())

    def __hash__(self) -> int:
        return hash(tuple(self.items()))

    def __repr__(self) -> str:
        return repr(self._items)


def columns_read(given: Any, what: str = "reads") -> Named[str, Column]:
    """Columns by name."""
    checks.instance(given, Mapping, what, "columns by name, such as {'age': real(0, 120)}")
    for name, column in given.items():
        checks.label(name, "the name of a column")
        checks.instance(column, Column, name, "a column, such as real(0, 120) or category(['a', 'b'])")
    return Named(given)


@record("table/1", kept=True)
@dataclass(frozen=True)
class Table:
    """One table: its columns by name, whether it is private, whose rows it holds.

    unit   the key or category column that names the unit of each row; None where each row is its own unit
    rows   the number of rows, if that is public
    names  the unit's own column, where this table calls it otherwise: with unit="id", names="patient" the cells of `id`
           are names of patients, as the column `patient` of another table has them
    owner  the key by which its rows belong to whoever owns rows of another table: "order -> orders.id"
    references  other columns that hold keys of tables, which own nothing by it: {"receiver": "accounts.id"}
    """

    columns: Mapping[str, Column]
    name: str = "data"
    private: bool = True
    unit: str | None = field(default=None, metadata=PRICE)
    rows: int | None = field(default=None, metadata=PRICE)
    names: str | None = field(default=None, metadata=LATER)
    owner: str | None = field(default=None, metadata=LATER)
    references: Mapping[str, str] = field(default=Named({}), metadata=LATER)

    def _contribution_bounds(self, path: str) -> Iterator[contributions.Bound]:
        return contributions.of_fields(self, path) if self.private else iter(())  # who is not hidden is not bounded

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", columns_read(self.columns, "columns"))
        if not self.columns:
            raise checks.refuse("columns", self.columns, "at least one column")
        checks.label(self.name, "name")
        if not isinstance(self.private, bool):
            raise checks.refuse("private", self.private, "True or False")
        if self.unit is not None:
            self._check_unit()
        if self.names is not None:
            self._check_names()
        if self.owner is not None:
            object.__setattr__(self, "owner", str(self._checked_owner()))
        object.__setattr__(self, "references", self._checked_references())
        if self.rows is not None:
            object.__setattr__(self, "rows", checks.whole(self.rows, "rows", least=0))

    def _check_unit(self) -> None:
        column = self.columns.get(self.unit) if isinstance(self.unit, str) else None
        if column is None:
            raise checks.refuse("unit", self.unit, "one of the columns " + ", ".join(map(repr, self.columns)))
        if not column.of_kind.names_units:
            raise checks.refuse("unit", self.unit, "a key or category column: clamped values would mix units up")
        if not column.drops_nulls:
            raise checks.refuse("unit", self.unit, "a column with nulls='drop': a row of nobody is not somebody's")
        if not self.private:
            raise checks.refuse("unit", self.unit, "None for a public table: it hides nobody")

    def _check_names(self) -> None:
        checks.label(self.names, "names")
        if self.unit is None:
            raise checks.refuse("names", self.names, "it together with unit, the column that holds these names")
        if self.names in self.columns:
            # Two columns for one unit: the rows of a visit would be hidden, and a patient promised.
            raise checks.refuse("names", self.names, f"unit={self.names!r} alone, as the table has that column itself")

    def _checked_owner(self) -> ForeignKey:
        link = read_owner(self.owner)
        column = self.columns.get(link.column)
        if column is None:
            raise checks.refuse("owner", self.owner, "one of the columns " + ", ".join(map(repr, self.columns)))
        if not is_key(column):
            raise checks.refuse("owner", self.owner, "a key column: values that are clamped would mix rows up")
        if self.unit is not None:
            raise checks.refuse("owner", self.owner, f"unit={self.unit!r} alone, as that column says whose rows are")
        if not self.private:
            raise checks.refuse("owner", self.owner, "None for a public table: its rows belong to nobody")
        return link

    def _checked_references(self) -> Named[str, str]:
        checks.instance(self.references, Mapping, "references", "targets by column, such as {'sender': 'accounts.id'}")
        links = [read_reference(column, target, "references") for column, target in self.references.items()]
        for link in links:
            if link.column not in self.columns or not is_key(self.columns[link.column]):
                names = [name for name, column in self.columns.items() if is_key(column)]
                raise checks.refuse("references", link.column, f"key columns of the table: {', '.join(names)}")
        return Named({link.column: link.target for link in links})

    @cached_property
    def leads(self) -> ForeignKey | None:
        """The key by which its rows belong to owners of another table's."""
        return None if self.owner is None else read_owner(self.owner)

    @cached_property
    def refers(self) -> tuple[ForeignKey, ...]:
        """The other columns that hold keys of tables."""
        return tuple(read_reference(column, target, "references") for column, target in self.references.items())

    def column(self, name: str) -> Column:
        if name not in self.columns:
            names = ", ".join(map(repr, self.columns))
            raise PlanError(f"table {self.name!r} has no column {name!r}: its columns are {names}")
        return self.columns[name]

    def make_up(self, count: int, words: Words, *, awkward: bool = True) -> dict[str, NDArray[Any]]:
        """Raw rows from the schema alone. `words(n)` gives n uniform 64-bit words; the same words give the same rows.

        A unit has three rows on average, and a column declared constant is constant per unit. Of other keys a few are
        common (COMMON_KEYS), so that a query that looks for keys finds some. `awkward` mixes in what
        real tables hold: the bounds and beyond, nan, infinities, NULLs, unknown categories, text among numbers.
        """
        checks.whole(count, "count", least=0, most=10**9)
        # A unit that is a category can only be one of its categories; a unit key can be anything.
        most = len(self.columns[self.unit].categories) or count if self.unit else count
        people = min(max(count // 3, 1), most) if self.unit else count
        places = np.arange(count)
        drawn = np.asarray(words(count), dtype=np.uint64) % np.uint64(max(people, 1))
        owner = np.where(places < people, places, drawn.astype(np.int64))  # every unit has at least one row
        columns: dict[str, NDArray[Any]] = {}
        for offset, (name, column) in enumerate(self.columns.items()):
            kind, shared = column.of_kind, column.constant and self.unit is not None and name != self.unit
            if name == self.unit:
                values = kind.names(column, people)[owner]
            else:
                values = kind.made_up(column, people if shared else count, words)
            if awkward:
                values = _mixed(values, kind.awkward(column), offset)
            columns[name] = values[owner] if shared else values
        return columns

    @property
    def title(self) -> str:
        facts = ["private" if self.private else "public"]
        named = f", which names a {self.names}" if self.names else ""
        if self.unit:
            facts.append(f"unit {self.unit}{named}")
        elif self.leads is not None:
            facts.append(f"owned by {self.leads}")
        elif self.private:
            facts.append("each row is a unit")
        facts += [f"{link.column} refers to {link.target}" for link in self.refers]
        facts += [f"{self.rows} rows"] if self.rows is not None else []
        return f"{self.name} ({', '.join(facts)})"

    def __str__(self) -> str:
        return "\n".join([self.title] + [f"  {name}: {column}" for name, column in self.columns.items()])


@record("schema/1", kept=True)
@dataclass(frozen=True)
class Schema(Exhibit):
    """A set of tables by name; a table takes the name it has here.

    >>> from sfumato import Schema, schema
    >>> visits = Schema.of(age=schema.whole(0, 110), ward=schema.category(["east", "west"]))
    >>> visits.table().column("ward").categories
    ('east', 'west')
    """

    _card = "sfumato.cards:schema"

    tables: Mapping[str, Table]
    views: Mapping[str, str] = field(default=Named({}), metadata=LATER)
    """Queries by name, which queries may read as they read tables. They are unfolded: the unit is tracked through."""

    def __post_init__(self) -> None:
        if not isinstance(self.tables, Mapping) or not self.tables:
            raise checks.refuse("tables", self.tables, "tables by name, such as {'visits': Table(...)}")
        for name, table in self.tables.items():
            checks.label(name, "the name of a table")
            if not isinstance(table, Table):
                raise checks.refuse(name, table, "a table, such as Table({'age': real(0, 120)})")
        named = {name: replace(table, name=name) for name, table in self.tables.items()}
        object.__setattr__(self, "tables", Named(named))
        check_keys(self.tables)
        object.__setattr__(self, "views", self._checked_views())

    def _checked_views(self) -> Named[str, str]:
        """Names and texts. What the texts say is compiled with the query that reads them."""
        checks.instance(self.views, Mapping, "views", "queries by name, such as {'stays': 'SELECT ... FROM visits'}")
        taken = {name.lower() for name in self.tables}
        for name, text in self.views.items():
            checks.label(name, "the name of a view")
            if not isinstance(text, str) or not text.strip():
                raise checks.refuse(f"views of {name}", text, "the text of a query, such as 'SELECT ... FROM visits'")
            if name.lower() in taken:
                raise checks.refuse("views", name, "a name that no table and no other view has")
            taken.add(name.lower())
        return Named({name: text.strip().rstrip("; \n") for name, text in self.views.items()})

    @cached_property
    def stored(self) -> Schema:
        """The tables alone. A plan holds these: what its query reads of views is unfolded in its text."""
        return Schema(self.tables) if self.views else self

    @classmethod
    def of(
        cls,
        columns: Mapping[str, Column] | None = None,
        *,
        unit: str | None = None,
        rows: int | None = None,
        **more: Column,
    ) -> Schema:
        """One private table called "data". Columns whose names are taken here (unit, rows) go into the mapping."""
        if twice := sorted(set(columns or {}) & set(more)):
            raise checks.refuse("columns", twice, "each column once")
        return cls({"data": Table({**(columns or {}), **more}, unit=unit, rows=rows)})

    def table(self, name: str | None = None) -> Table:
        """The named table; without a name, the only private one."""
        names = ", ".join(map(repr, self.tables))
        if name is not None:
            if name not in self.tables:
                raise PlanError(f"the schema has no table {name!r}: its tables are {names}")
            return self.tables[name]
        private = [table for table in self.tables.values() if table.private]
        if len(private) != 1:
            raise PlanError(f"the schema has {len(private)} private tables: name the one you mean, out of {names}")
        return private[0]

    def make_up(self, count: int, words: Words) -> dict[str, dict[str, NDArray[Any]]]:
        """Raw rows of every private table, from the schema alone. Where a table is owned through a key, most of its
        rows hold one that the other table has; every eighth holds whatever it may be."""
        private = {name: table for name, table in self.tables.items() if table.private}
        cells = {name: table.make_up(count, words) for name, table in private.items()}
        for link_of, link in in_order(private):
            home, column = private[link.table], private[link.table].columns[link.key]
            if link.key != home.unit and (home.leads is None or link.key != home.leads.column):
                cells[link.table][link.key] = column.of_kind.names(column, count)
            keys = cells[link.table][link.key]
            drawn = np.asarray(words(count), dtype=np.uint64) % np.uint64(max(count, 1))
            followed = np.arange(count) % 8 != 7
            cells[link_of][link.column] = np.where(followed, keys[drawn.astype(np.int64)], cells[link_of][link.column])
        return cells

    def __str__(self) -> str:
        views = [f"{name} (view)\n  {' '.join(text.split())}" for name, text in self.views.items()]
        return "\n".join([*map(str, self.tables.values()), *views])


def _mixed(values: NDArray[Any], awkward: list[Any], offset: int) -> NDArray[Any]:
    """At most every second row is awkward, at best every eighth; columns start at different rows."""
    step = max(2, min(8, len(values) // len(awkward)))
    mixed = np.fromiter(values.tolist() if values.ndim == 1 else values, dtype=object)  # an array is a cell, too
    for turn, place in enumerate(range((offset + 1) % step, len(values), step)):
        mixed[place] = awkward[turn % len(awkward)]
    return mixed
