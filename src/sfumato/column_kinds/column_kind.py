"""A kind of column: everything that differs between columns of numbers, times, categories and so on, in one place.

Who has a column asks its kind (`column.of_kind.is_number`, `column.of_kind.read(...)`) and never compares its word, so
that a new kind is one class here. What only an upper layer can say (SQL, features of a model, words of a file) stands
in one table of that layer, with a line for every kind; tests/test_column_kinds.py looks for a line that is missing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from .. import checks
from ..cells import Raw, raw_column

Words = Callable[[int], NDArray[np.uint64]]
Read = tuple[NDArray[Any], NDArray[np.bool_], NDArray[Any] | None]
DROP = "drop"


class AnyColumn(Protocol):
    """The public fields of a column. `schema.Column` has them; it imports this module, so it is not named here."""

    @property
    def lower(self) -> Fraction | None: ...
    @property
    def upper(self) -> Fraction | None: ...
    @property
    def categories(self) -> tuple[Any, ...]: ...
    @property
    def nulls(self) -> Any: ...
    @property
    def decimals(self) -> int | None: ...
    @property
    def drops_nulls(self) -> bool: ...


class Chance(Protocol):
    """Choices out of random words, as an audit draws them."""

    def below(self, count: int) -> int: ...
    def share(self) -> float: ...
    def words(self, count: int) -> NDArray[np.uint64]: ...


class ColumnKind(ABC):
    """A kind of column. Its methods take the column, whose fields are public; none of them knows another row.

    word            what `Column.type` says; stored, so its meaning never changes
    own_record      are its columns a record of their own, rather than Column(word, ...)?
    is_number       a number in every row, within bounds: what sums, means and quantiles take
    is_whole        a whole one: values are within the bounds as soon as they are read
    is_time         a day or a moment, within bounds
    is_listed       one of a few public values: what histograms and votes take
    is_array        an array in every row
    is_public       may values be named in public? A key may not: nothing is split by it, and no model reads it
    names_units     may it say whose a row is? A value that is clamped would mix units up
    has_bounds      lower and upper belong to it
    has_categories  its public values are listed
    has_decimals    its digits behind the point may be declared
    fills_nulls     may a value stand in for a NULL?
    takes_days      does it read Arrow's days (date32) as an engine does, so that they go there uncopied?
    """

    word: ClassVar[str]
    own_record: ClassVar[bool] = False
    is_number: ClassVar[bool] = False
    is_whole: ClassVar[bool] = False
    is_time: ClassVar[bool] = False
    is_listed: ClassVar[bool] = False
    is_array: ClassVar[bool] = False
    is_public: ClassVar[bool] = True
    names_units: ClassVar[bool] = False
    has_bounds: ClassVar[bool] = False
    has_categories: ClassVar[bool] = False
    has_decimals: ClassVar[bool] = False
    fills_nulls: ClassVar[bool] = False
    takes_days: ClassVar[bool] = False

    # ------------------------------------------------------------------------------------------------ at birth

    def bounds(self, column: AnyColumn) -> tuple[Fraction | None, Fraction | None]:
        """Both bounds, checked and exact."""
        for name in ("lower", "upper"):
            if getattr(column, name) is not None:
                raise checks.refuse(name, getattr(column, name), f"no bounds to a {self.word} column")
        return None, None

    def categories(self, column: AnyColumn) -> tuple[Any, ...]:
        """The public values, checked."""
        if not isinstance(column.categories, tuple) or column.categories:
            raise checks.refuse("categories", column.categories, f"no categories to a {self.word} column")
        return ()

    def stand_in(self, column: AnyColumn) -> Any:
        """What stands in for a NULL, checked; asked only where NULLs are not dropped."""
        raise checks.refuse("nulls", column.nulls, "'drop'")

    def decimals(self, column: AnyColumn) -> int:
        """How many digits stand behind the point, checked; asked only where `has_decimals` and somebody says."""
        raise NotImplementedError

    def shown(self, end: Any) -> Any:
        """A bound as people know it."""
        return end

    @property
    def alike(self) -> tuple[str, ...]:
        """The words of the kinds that do where a plan needs this one."""
        if self.is_number:
            return tuple(kind.word for kind in KINDS.values() if kind.is_number)
        return tuple(kind.word for kind in KINDS.values() if kind.is_listed) if self.is_listed else (self.word,)

    # ------------------------------------------------------------------------------------------------ cells

    @abstractmethod
    def raw(self, column: AnyColumn, cells: Any) -> Any:
        """What somebody gives as such a column, as numpy holds it. Raises where it is no column at all."""

    @abstractmethod
    def read(self, column: AnyColumn, raw: Any) -> Read:
        """A value for every row, which of them are there, and the keys that codes stand for, where there are any."""

    def arrow(self, column: AnyColumn, values: NDArray[Any], hidden: NDArray[np.bool_], arrow: Any) -> Any:
        """What was read, as an Arrow column of one type; `arrow` is pyarrow, which only who needs it imports."""
        return arrow.array(values, mask=hidden, from_pandas=False)

    # ------------------------------------------------------------------------------------------------ made-up cells

    def names(self, column: AnyColumn, count: int) -> NDArray[Any]:
        """Made-up units, all different."""
        return np.arange(1, count + 1)

    @abstractmethod
    def made_up(self, column: AnyColumn, count: int, words: Words) -> NDArray[Any]:
        """Clean cells; `words(n)` gives n uniform 64-bit words."""

    @abstractmethod
    def awkward(self, column: AnyColumn) -> list[Any]:
        """What real tables hold where a value of this column should be."""

    @abstractmethod
    def extremes(self, column: AnyColumn) -> list[Any]:
        """Raw cells at the ends of what a column allows, beyond them, and NULL."""

    def allowed(self, column: AnyColumn) -> list[Any]:
        """Those of the extremes that lie within the column's description."""
        return self.extremes(column)[:2]

    @abstractmethod
    def clean(self, column: AnyColumn) -> list[Any]:
        """Clean cells that span the column: every category, the ends of ranges."""

    @abstractmethod
    def drawn(self, column: AnyColumn, chance: Chance) -> Any:
        """A clean cell by chance."""


class SingleValue(ColumnKind):
    """A kind of column with one value in every row, which is a number once it is read: itself, its place or a code."""

    @abstractmethod
    def read_cells(self, column: AnyColumn, cells: NDArray[Any]) -> Read:
        """What the cells are read as, where numpy holds one for each row."""

    @abstractmethod
    def code(self, column: AnyColumn, value: Any) -> float:
        """The number that a value is read as."""

    @abstractmethod
    def of_words(self, column: AnyColumn, words: NDArray[np.uint64]) -> NDArray[Any]:
        """A clean cell for each word; even enough for made-up rows (the bias of a remainder does not matter here)."""

    def raw(self, column: AnyColumn, cells: Any) -> Any:
        return raw_column(cells)

    def read(self, column: AnyColumn, raw: Any) -> Read:
        assert isinstance(raw, Raw)
        cells, hidden, places = raw
        with np.errstate(all="ignore"):
            values, valid, keys = self.read_cells(column, cells)
        if places is not None and not len(cells):
            values, valid = np.zeros(len(places), dtype=values.dtype), np.zeros(len(places), dtype=np.bool_)
        elif places is not None:
            values, valid = values[places], valid[places]
        if hidden is not None:
            valid = valid & ~hidden
        if valid.all():
            return values, valid, keys
        values = np.where(valid, values, values.dtype.type(0))
        if not column.drops_nulls:
            values = np.where(valid, values, values.dtype.type(self.code(column, column.nulls)))
            valid = np.ones_like(valid)
        return values, valid, keys

    def made_up(self, column: AnyColumn, count: int, words: Words) -> NDArray[Any]:
        return self.of_words(column, np.asarray(words(count), dtype=np.uint64))


KINDS: dict[str, ColumnKind] = {}


def register(kind: ColumnKind) -> ColumnKind:
    """From now on, columns may be of this kind. What a word means never changes: it is stored."""
    if KINDS.setdefault(kind.word, kind) is not kind:
        raise checks.refuse("kind", kind.word, "a word that no other kind of column has")
    return kind


def ends(column: AnyColumn) -> tuple[Fraction, Fraction]:
    """Both bounds of a column that has them."""
    assert column.lower is not None and column.upper is not None
    return column.lower, column.upper


def whole_numbers(column: AnyColumn, words: NDArray[np.uint64]) -> NDArray[np.int64]:
    """A whole number within the bounds for each word."""
    low, high = ends(column)
    span = int(high - low) + 1  # up to 2**64, so Python's own integers
    return np.array([int(low) + word % span for word in words.tolist()], dtype=np.int64)


def drawn_whole(column: AnyColumn, chance: Chance) -> int:
    low, high = ends(column)
    return int(low) + chance.below(min(int(high - low) + 1, 2**63))


def shown(value: Any) -> str:
    """A public value as people write it: 120, 0.1, 1/3, 'north'."""
    if not isinstance(value, Fraction):
        return repr(value)
    if value.denominator == 1 and abs(value) < 10**20:
        return str(value.numerator)
    return repr(float(value)) if Fraction(repr(float(value))) == value else str(value)


def plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
