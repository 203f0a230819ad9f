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

from . import checks, contributions, stand_ins, times
from .errors import PlanError
from .exhibits import Exhibit
from .questions import ANY_ORDER, CLIP, PRICE
from .record import LATER, record

Type = Literal["real", "whole", "category", "flag", "key", "date", "moment"]
TYPES: tuple[Type, ...] = get_args(Type)
DROP = "drop"
INT64 = (-(2**63), 2**63 - 1)
COMMON_KEYS = stand_ins.COMMON_KEYS
DIGITS = 15
"""So many decimal digits a double holds: different decimals of so many digits have different nearest doubles."""
_LARGEST = 2**28  # numbers in one row of a tensor column: a row is held whole

Words = stand_ins.Words
K = TypeVar("K")
V = TypeVar("V")


@record("column/1")
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
        limits, dated = contributions.limits(self), self.type in ("date", "moment")  # in days or microseconds
        shown = {name: times.shown(int(limit), self.type) if dated else limit for name, limit in limits.items()}
        name = path.rpartition(".")[2]
        words = contributions.clamped(name, shown.get("lower"), shown.get("upper")) if shown else {}
        return contributions.own(self, path, shown | words)

    def __post_init__(self) -> None:
        checks.one_of(self.type, "type", TYPES)
        if not isinstance(self.constant, bool):
            raise checks.refuse("constant", self.constant, "True or False")
        if self.type == "key" and self.constant:
            raise checks.refuse("constant", self.constant, "False: a key is not public, so nothing is split by it")
        if self.type in ("real", "whole"):
            self._check_bounds()
        elif self.type in ("date", "moment"):
            self._check_times()
        elif self.lower is not None or self.upper is not None:
            name = "lower" if self.lower is not None else "upper"
            raise checks.refuse(name, getattr(self, name), f"no bounds to a {self.type} column")
        if self.type == "category":
            object.__setattr__(self, "categories", checks.distinct(self.categories, "categories"))
        elif not isinstance(self.categories, tuple) or self.categories:
            raise checks.refuse("categories", self.categories, f"no categories to a {self.type} column")
        object.__setattr__(self, "nulls", self._stand_in())
        if self.decimals is not None:
            self._check_decimals()

    def _check_decimals(self) -> None:
        """A double tells decimals of up to 15 digits apart, so that none is lost on its way through any source."""
        if self.type != "real":
            raise checks.refuse("decimals", self.decimals, f"no decimals to a {self.type} column")
        places = checks.whole(self.decimals, "decimals", least=0, most=DIGITS)
        object.__setattr__(self, "decimals", places)
        ends = {"lower": self.lower, "upper": self.upper} | ({} if self.drops_nulls else {"nulls": self.nulls})
        for name, end in ends.items():
            steps = end * 10**places
            if steps.denominator != 1:
                raise checks.refuse(name, float(end), f"a number with {places} decimals, as decimals={places} says")
            if abs(steps) >= 10**DIGITS:
                raise checks.refuse(name, float(end), f"a number of at most {DIGITS} digits with its {places} decimals")

    def _check_bounds(self) -> None:
        if self.type == "whole":
            _whole_ends(self)
            return
        low, high = checks.interval(self.lower, self.upper)
        object.__setattr__(self, "lower", low)
        object.__setattr__(self, "upper", high)

    def _check_times(self) -> None:
        for name in ("lower", "upper"):
            object.__setattr__(self, name, _time(getattr(self, name), name, self.type))
        if self.lower >= self.upper:  # type: ignore[operator]
            ends = [times.shown(int(end), self.type) for end in (self.lower, self.upper)]  # type: ignore[arg-type]
            raise checks.refuse("lower", ends[0], f"a {self.type} before upper = {ends[1]!r}")

    def _stand_in(self) -> Any:
        if isinstance(self.nulls, str) and self.nulls == DROP:
            return DROP
        if self.type in ("date", "moment"):
            raise checks.refuse("nulls", self.nulls, "'drop' for dates and moments")
        if self.type == "key":
            raise checks.refuse("nulls", self.nulls, "'drop': no key stands in for an unknown one")
        stand_in = self.nulls.item() if isinstance(self.nulls, np.generic) else self.nulls
        if self.type in ("category", "flag"):
            values = self.categories or (False, True)
            if type(stand_in) is not type(values[0]) or stand_in not in values:
                words = "one of the categories" if self.type == "category" else "True or False"
                raise checks.refuse("nulls", self.nulls, f"'drop' or {words}")
            return stand_in
        low, high = self.interval
        allowed = f"'drop' or a {'whole ' * (self.type == 'whole')}number from {_shown(low)} to {_shown(high)}"
        number = checks.rational(stand_in, "nulls", allowed)
        if not low <= number <= high or (self.type == "whole" and number.denominator != 1):
            raise checks.refuse("nulls", self.nulls, allowed)
        return number

    @property
    def drops_nulls(self) -> bool:
        return isinstance(self.nulls, str) and self.nulls == DROP

    @property
    def interval(self) -> tuple[Fraction, Fraction]:
        """Both bounds; a plan that needs them from another type of column does not fit."""
        if self.lower is None or self.upper is None or self.type in ("date", "moment"):
            raise PlanError(f"a {self.type} column has no bounds: use a real or whole column here")
        return self.lower, self.upper

    def __str__(self) -> str:
        words: str = self.type
        if self.lower is not None and self.upper is not None:
            ends = [
                times.shown(int(end), self.type) if self.type in ("date", "moment") else _shown(end)
                for end in (self.lower, self.upper)
            ]
            words += f" in [{ends[0]}, {ends[1]}]"
        if self.decimals is not None:
            words += f" with {self.decimals} decimal{'' if self.decimals == 1 else 's'}"
        if self.categories:
            more = ", ..." if len(self.categories) > 5 else ""
            words += f" of {len(self.categories)}: " + ", ".join(map(repr, self.categories[:5])) + more
        words += ", NULLs dropped" if self.drops_nulls else f", NULLs read as {_shown(self.nulls)}"
        return words + (", constant per unit" if self.constant else "")


@record("tensor-column/1")
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
        if self.whole:
            _whole_ends(self)
        else:
            low, high = checks.interval(self.lower, self.upper)
            most = Fraction(float(np.finfo(np.float32).max))
            for name, bound in (("lower", low), ("upper", high)):
                if abs(bound) > most:
                    raise checks.refuse(name, getattr(self, name), "a number that float32 can hold, up to 3.4e38")
            object.__setattr__(self, "lower", low)
            object.__setattr__(self, "upper", high)
            if self.ends[0] >= self.ends[1]:
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
        return f"tensor of {sides} {kind} in [{_shown(self.lower)}, {_shown(self.upper)}]"


def _whole_ends(column: Column) -> None:
    low, high = checks.interval(column.lower, column.upper)
    for name, bound in (("lower", low), ("upper", high)):
        if bound.denominator != 1 or not INT64[0] <= bound <= INT64[1]:
            raise checks.refuse(name, getattr(column, name), "a whole number from -2**63 to 2**63 - 1")
    object.__setattr__(column, "lower", low)
    object.__setattr__(column, "upper", high)


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


def _time(value: Any, name: str, type: str) -> Fraction:
    """A bound of dates or moments: a date, ISO text, or what it was turned into before."""
    number: Any = value
    if not isinstance(value, Fraction):
        try:
            number = times.days(value) if type == "date" else times.microseconds(value)
        except ValueError:
            number = None
    least, most = times.least_and_most(type)
    if number is None or not least <= number <= most or int(number) != number:
        raise checks.refuse(name, value, "a date or its ISO text, such as '2026-01-31'")
    return Fraction(number)


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


@record("table/1")
@dataclass(frozen=True)
class Table:
    """One table: its columns by name, whether it is private, whose rows it holds.

    unit   the key or category column that names the unit of each row; None where each row is its own unit
    rows   the number of rows, if that is public
    names  the unit's own column, where this table calls it otherwise: with unit="id", names="patient" the cells of `id`
           are names of patients, as the column `patient` of another table has them
    """

    columns: Mapping[str, Column]
    name: str = "data"
    private: bool = True
    unit: str | None = field(default=None, metadata=PRICE)
    rows: int | None = field(default=None, metadata=PRICE)
    names: str | None = field(default=None, metadata=LATER)

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
        if self.rows is not None:
            object.__setattr__(self, "rows", checks.whole(self.rows, "rows", least=0))

    def _check_unit(self) -> None:
        column = self.columns.get(self.unit) if isinstance(self.unit, str) else None
        if column is None:
            raise checks.refuse("unit", self.unit, "one of the columns " + ", ".join(map(repr, self.columns)))
        if column.type not in ("key", "category"):
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
        drawn = stand_ins.drawn_words(words, count) % np.uint64(max(people, 1))
        owner = np.where(places < people, places, drawn.astype(np.int64))  # every unit has at least one row
        columns: dict[str, NDArray[Any]] = {}
        for offset, (name, column) in enumerate(self.columns.items()):
            shared = column.constant and self.unit is not None and name != self.unit
            if name == self.unit:
                values = stand_ins.distinct_values(column, people)[owner]
            elif isinstance(column, TensorColumn):
                values = stand_ins.arrays(column, count, words)
            else:
                values = stand_ins.plain_cells(column, stand_ins.drawn_words(words, people if shared else count))
            if awkward:
                awkward_cells = (
                    stand_ins.awkward_arrays(column)
                    if isinstance(column, TensorColumn)
                    else stand_ins.awkward_cells(column)
                )
                values = stand_ins.mixed(values, awkward_cells, offset)
            columns[name] = values[owner] if shared else values
        return columns

    @property
    def title(self) -> str:
        facts = ["private" if self.private else "public"]
        named = f", which names a {self.names}" if self.names else ""
        facts += [f"unit {self.unit}{named}"] if self.unit else ["each row is a unit"] if self.private else []
        facts += [f"{self.rows} rows"] if self.rows is not None else []
        return f"{self.name} ({', '.join(facts)})"

    def __str__(self) -> str:
        return "\n".join([self.title] + [f"  {name}: {column}" for name, column in self.columns.items()])


@record("schema/1")
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

    def __post_init__(self) -> None:
        if not isinstance(self.tables, Mapping) or not self.tables:
            raise checks.refuse("tables", self.tables, "tables by name, such as {'visits': Table(...)}")
        for name, table in self.tables.items():
            checks.label(name, "the name of a table")
            if not isinstance(table, Table):
                raise checks.refuse(name, table, "a table, such as Table({'age': real(0, 120)})")
        named = {name: replace(table, name=name) for name, table in self.tables.items()}
        object.__setattr__(self, "tables", Named(named))

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

    def __str__(self) -> str:
        return "\n".join(map(str, self.tables.values()))


def _shown(value: Any) -> str:
    """A public value as people write it: 120, 0.1, 1/3, 'north'."""
    if not isinstance(value, Fraction):
        return repr(value)
    if value.denominator == 1 and abs(value) < 10**20:
        return str(value.numerator)
    return repr(float(value)) if Fraction(repr(float(value))) == value else str(value)
