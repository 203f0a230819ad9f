"""The core's data: numpy columns with null masks, read so that every row speaks only for itself.

Reading is total: whatever a cell holds, it becomes a value or a NULL. It never raises (a failure is one bit about the
data) and never changes how another row is read (that would make one row move many, and no sensitivity would hold).
So nothing is inferred from a column as a whole: what the cells are is decided by the column's type (`sfumato.cells`),
arrays that numpy holds as numbers are read as one block, and everything else cell by cell, each different one once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache, partial
from numbers import Integral, Rational, Real
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import tensors, times
from .cells import Raw, raw_column
from .errors import ArgumentError, DataError, PlanError
from .owners import owner
from .schema import INT64, Column, Table, TensorColumn
from .units import Unit

Number = int | float | Fraction | Decimal
Cells = tuple[NDArray[Any], NDArray[np.bool_]]

YES = frozenset({"true", "t", "yes", "y", "1"})
NO = frozenset({"false", "f", "no", "n", "0"})
_BYTES = (bytes, bytearray)
_HALVES = re.compile("[\ud800-\udfff]")  # of characters
_TEXT = (str, *_BYTES)
_WHOLE = (int, np.bool_, Integral)
_SPARSE = 2**20  # whole-number categories that lie further apart are searched, not tabled
_LONG, _SMALL, _LARGE = 10**39, Fraction(1, 10**400), 10**400  # of numbers that are keys


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Series:
    """One column: `values` (float64 for real, else int64) and `valid`; a slot that is not valid holds 0.

    A tensor column's values are an array of float32, or int64, in which the rows come first; all of them are within the
    bounds, and a row that is not valid is full of the column's `rest`. They may be the memory that the data came in.

    A real is not clamped yet and may be infinite, never nan. A whole is within its bounds. A category is its place
    among the categories, a flag 0 or 1, a key a code that is equal where keys are equal and means nothing else: even
    the order of codes is data. `keys` are the different cells of a key column, by code; `label` names them.
    """

    values: NDArray[Any]
    valid: NDArray[np.bool_]
    keys: NDArray[Any] | None = None

    def __post_init__(self) -> None:
        for name in ("values", "valid") if self.keys is None else ("values", "valid", "keys"):
            frozen = getattr(self, name).view()
            frozen.flags.writeable = False
            object.__setattr__(self, name, frozen)

    def keep(self, mask: NDArray[np.bool_]) -> Series:
        return Series(self.values[mask], self.valid[mask], self.keys)

    def label(self, codes: NDArray[np.int64]) -> list[int | float | str]:
        """The keys with these codes as plain values: 12 for 12, 12.0 and '12', whoever spelt it how; a float that is
        not whole; text for all else. Different keys have different labels, and no label depends on other rows."""
        if self.keys is None:
            raise PlanError("only a key column has keys")
        return [_label(cell) for cell in self.keys[codes]]

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"<Series of {self.values.dtype}>"


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """The rows of one table: a Series by column name, and for each row the code 0..unit_count-1 of its unit."""

    table: Table
    unit: Unit
    series: Mapping[str, Series]
    units: NDArray[np.int64]
    unit_count: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "series", MappingProxyType(dict(self.series)))

    @classmethod
    def read(cls, table: Table, raw: Mapping[str, Any], unit: Unit) -> Rows:
        """Raw columns that the schema does not name are left alone. A row whose unit is NULL is nobody's: dropped."""
        check_unit(table, unit)
        cells = {name: _found(raw, name, column) for name, column in table.columns.items()}
        lengths = {_length(each) for each in cells.values()}
        if len(lengths) != 1:
            raise DataError
        series = {name: _read(column, cells[name]) for name, column in table.columns.items()}
        count = lengths.pop()
        if unit.column is None:
            return cls(table, unit, series, _each_its_own(count), count)
        named = series[unit.column]
        # keep() makes the codes dense, so they may be anything here.
        return cls(table, unit, series, named.values, count).keep(named.valid)

    def keep(self, mask: Any) -> Rows:
        """The rows where `mask` is True. Rows of one unit stay rows of one unit; codes are dense again."""
        chosen = np.asarray(mask)
        if chosen.dtype != np.bool_ or chosen.ndim != 1:
            raise ArgumentError("mask is not allowed: give a one-dimensional array of booleans.")
        if len(chosen) != len(self):
            raise DataError
        series = {name: each.keep(chosen) for name, each in self.series.items()}
        if self.unit.column is None:
            count = int(chosen.sum())
            return Rows(self.table, self.unit, series, _each_its_own(count), count)
        present, units = np.unique(self.units[chosen], return_inverse=True)
        return Rows(self.table, self.unit, series, _frozen(units.reshape(-1).astype(np.int64)), len(present))

    def __getitem__(self, name: str) -> Series:
        self.table.column(name)
        return self.series[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.series)

    def __contains__(self, name: object) -> bool:
        return name in self.series

    def __len__(self) -> int:
        """The number of rows (not of columns)."""
        return len(self.units)

    def __repr__(self) -> str:
        return f"<Rows of table {self.table.name!r}: columns {', '.join(self.series)}>"


def check_unit(table: Table, unit: Unit) -> None:
    """Refuse a unit that the table does not name by its own column: compares public things only."""
    if owner(table, unit) != unit.column:
        raise PlanError(
            f"the rows of table {table.name!r} are named by {table.unit!r}: plans that read rows need the unit's own "
            f"column {unit.column!r} there"
        )


_USUAL = 2**20  # up to so many rows share one array of what is the same for all tables


@lru_cache(maxsize=1)
def _usual() -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    return _frozen(np.arange(_USUAL)), _frozen(np.ones(_USUAL, dtype=np.bool_))


def _each_its_own(count: int) -> NDArray[np.int64]:
    """The units of rows that are units: 0, 1, 2, ..."""
    return _usual()[0][:count] if count <= _USUAL else _frozen(np.arange(count))


def _all_there(count: int) -> NDArray[np.bool_]:
    return _usual()[1][:count] if count <= _USUAL else np.ones(count, dtype=np.bool_)


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array


def _length(raw: tensors.Block | Raw) -> int:
    return len(raw) if isinstance(raw, Raw) else len(raw.cells)


def _found(raw: Mapping[str, Any], name: str, column: Column) -> tensors.Block | Raw:
    """One raw column as numpy holds it."""
    try:
        cells = raw[name]
    except Exception:  # frames of different makers raise different errors here
        raise PlanError(f"the data has no column {name!r}, which the schema names") from None
    try:
        if not isinstance(column, TensorColumn):
            return raw_column(cells)
        block = tensors.block(column, cells)
        len(block.cells)  # a single number is no column
        return block
    except Exception:
        raise DataError from None


def _read(column: Column, raw: tensors.Block | Raw) -> Series:
    if isinstance(raw, tensors.Block):
        assert isinstance(column, TensorColumn)
        return Series(*tensors.read(column, raw))
    cells, hidden, places = raw
    keys = None
    with np.errstate(all="ignore"):
        if column.type == "key":
            values, valid, keys = _keys(cells)
        else:
            values, valid = _reader(column)(cells)
    if places is not None and not len(cells):
        values, valid = np.zeros(len(places), dtype=values.dtype), np.zeros(len(places), dtype=np.bool_)
    elif places is not None:
        values, valid = values[places], valid[places]
    if hidden is not None:
        valid = valid & ~hidden
    if valid.all():
        return Series(values, valid, keys)
    values = np.where(valid, values, values.dtype.type(0))
    if not column.drops_nulls:
        if column.type == "category":
            stand_in: float = column.categories.index(column.nulls)
        else:
            stand_in = float(column.nulls) if column.type == "real" else int(column.nulls)
        values = np.where(valid, values, values.dtype.type(stand_in))
        valid = np.ones_like(valid)
    return Series(values, valid, keys)


def _reader(column: Column) -> Callable[[NDArray[Any]], Cells]:
    if column.type == "real":
        return _reals if column.decimals is None else partial(_decimals, places=column.decimals)
    if column.type == "whole":
        low, high = column.interval
        return partial(_wholes, low=int(low), high=int(high))
    if column.type in ("date", "moment"):
        return partial(_times, column=column)
    return partial(_coded, column=column)


def _reals(cells: NDArray[Any]) -> Cells:
    if cells.dtype.kind not in "biuf":
        return _each(cells, _real, np.float64)
    values = cells.astype(np.float64)
    values += 0.0  # -0.0 becomes 0.0
    return values, ~np.isnan(values)


def _decimals(cells: NDArray[Any], places: int) -> Cells:
    """Rounded half away from 0, as engines round: k / 10^places is the double nearest to that decimal. What is too
    large for that stays as it is; bounds are nearer."""
    values, valid = _reals(cells)
    steps = np.trunc(np.abs(values) * 10.0**places + 0.5)
    near = np.copysign(steps / 10.0**places, values) + 0.0
    return np.where(steps < 2.0**52, near, values), valid


def _wholes(cells: NDArray[Any], low: int, high: int) -> Cells:
    """Clamped to the bounds, then rounded to even; as the bounds are whole, a block may round first."""
    if cells.dtype.kind not in "biuf":
        return _each(cells, partial(_whole, low=low, high=high), np.int64)
    values, valid = tensors.rounded(cells)
    clamped = np.clip(values, np.int64(low), np.int64(high))
    return clamped, _all_there(len(cells)) if valid is None else valid


def _times(cells: NDArray[Any], column: Column) -> Cells:
    """Days or microseconds since 1970-01-01, clamped to the bounds."""
    assert column.lower is not None and column.upper is not None
    low, high = int(column.lower), int(column.upper)
    if cells.dtype.kind == "M":
        valid = ~np.isnat(cells)
        return np.clip(times.counted(np.where(valid, cells, np.zeros(1, cells.dtype)), column.type), low, high), valid
    read = times.days if column.type == "date" else times.microseconds

    def clamped(cell: Any) -> int | None:
        number = read(_text(cell) or cell)
        return None if number is None else min(max(number, low), high)

    return _each(cells, clamped, np.int64)


def _coded(cells: NDArray[Any], column: Column) -> Cells:
    """Categories and flags: whole numbers are looked up, each different cell of another plain array is read once."""
    kind = cells.dtype.kind
    if kind in "iu" or (kind == "b" and type(next(iter(column.categories), True)) is not str):
        return _looked_up(cells, column)
    read = _category_of(column)
    if kind not in "bfUS":
        return _each(cells, read, np.int64)
    different, place = np.unique(cells, return_inverse=True)
    codes, valid = _each(different, read, np.int64)
    return codes[place.reshape(-1)], valid[place.reshape(-1)]


def _category_of(column: Column) -> Callable[[Any], int | None]:
    if column.type == "flag":
        return _flag
    places = {value: place for place, value in enumerate(column.categories)}
    cast = {str: _name, int: _number, bool: _flag}[type(column.categories[0])]
    return lambda cell: places.get(cast(cell))


def _looked_up(cells: NDArray[Any], column: Column) -> Cells:
    """The place of each whole number. Differences are taken modulo 2^64, where they are small for known numbers only,
    so nothing wraps unseen."""
    unsigned = cells.dtype.kind == "u"
    wide = cells.astype(np.uint64 if unsigned else np.int64, copy=False)
    numbers, places, dense = _lookup(column, unsigned)
    if not numbers.size:
        return np.zeros(len(wide), dtype=np.int64), np.zeros(len(wide), dtype=np.bool_)
    if dense is None:
        place = np.minimum(np.searchsorted(numbers, wide), numbers.size - 1)
        return places[place], numbers[place] == wide
    ahead = wide.view(np.uint64) - numbers[:1].view(np.uint64)
    valid = ahead < np.uint64(dense)
    codes = (ahead if valid.all() else np.where(valid, ahead, np.uint64(0))).view(np.int64)
    if places.size:
        codes = places[codes]
        valid &= codes >= 0
    return codes, valid


@lru_cache(maxsize=8)
def _lookup(column: Column, unsigned: bool) -> tuple[NDArray[Any], NDArray[np.int64], int | None]:
    """The whole numbers that a category or flag column knows, rising, and the place of each. Where they lie close
    together, the places are of all numbers from the first on (-1: unknown), how many of those there are comes with it,
    and no places mean 0, 1, 2, ..."""
    values = column.categories or (False, True)
    if type(values[0]) is str:  # a whole number stands for its digits
        tokens = ((_token(text), place) for place, text in enumerate(values))
        by_number = {number: place for number, place in tokens if type(number) is int and number <= INT64[1]}
    else:
        by_number = {int(value): place for place, value in enumerate(values)}
    low, high = (0, 2**64 - 1) if unsigned else INT64
    rising = sorted(number for number in by_number if low <= number <= high)
    numbers = np.array(rising, dtype=np.uint64 if unsigned else np.int64)
    places = np.array([by_number[number] for number in rising], dtype=np.int64)
    span = rising[-1] - rising[0] + 1 if rising else 0
    if span > max(_SPARSE, 4 * len(rising)):
        return numbers, places, None
    table = np.full(span, -1, dtype=np.int64)
    table[(numbers - numbers[:1]).astype(np.int64)] = places
    return numbers, np.zeros(0, dtype=np.int64) if np.array_equal(table, np.arange(span)) else table, span


def _keys(cells: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[Any]]:
    kind = cells.dtype.kind
    if kind not in "biufcmMUS":
        codes: dict[Any, int] = {}
        values, valid = _each(cells, lambda cell: _code(codes, cell), np.int64)
        return values, valid, np.fromiter(codes, dtype=object, count=len(codes))
    if kind in "fc":  # long doubles whose labels are the same are the same key
        cells = cells.astype(np.float64 if kind == "f" else np.complex128, copy=False)
    valid = np.ones(len(cells), dtype=np.bool_)
    if kind == "M":
        valid = times.in_calendar(cells)
    elif kind in "fcm":
        valid = ~(np.isnat(cells) if kind == "m" else np.isnan(cells))
    different, place = np.unique(cells, return_inverse=True)
    place = place.reshape(-1).astype(np.int64, copy=False)
    if kind in "US":
        valid = np.fromiter((_text(cell) is not None for cell in different.tolist()), np.bool_, len(different))[place]
    return place, valid, different


def _each(cells: NDArray[Any], read: Callable[[Any], Any], dtype: type[Any]) -> Cells:
    """The slow way. A cell that cannot be read is NULL; numbers of time have no place on a number line."""
    values, valid = np.zeros(len(cells), dtype=dtype), np.zeros(len(cells), dtype=np.bool_)
    if cells.dtype.kind in "mMc":
        return values, valid
    for place, cell in enumerate(cells.tolist()):
        try:
            value = read(cell)
            if value is not None:
                values[place] = value
                valid[place] = True
        except Exception:
            valid[place] = False
    return values, valid


def _text(cell: Any) -> str | None:
    """Plain text of text or bytes; None for other cells, and for what no UTF-8 can hold: no file, engine or ledger
    could take it, and whether a release fails must not depend on a row."""
    if isinstance(cell, str):
        text = str.__str__(cell)
        return text if text.isascii() or not _HALVES.search(text) else None
    try:
        return bytes(cell).decode() if isinstance(cell, _BYTES) else None
    except UnicodeDecodeError:
        return None


def _number(cell: Any) -> Number | None:
    """The number a cell holds, exactly; None for nan and for what is no number. Text counts if all of it is one."""
    if isinstance(cell, float):
        return None if cell != cell else cell
    if isinstance(cell, _TEXT):
        return _parsed(_text(cell) or "")
    if isinstance(cell, np.timedelta64):  # numpy files it under whole numbers
        return None
    if isinstance(cell, _WHOLE):
        return int(cell)
    if isinstance(cell, Decimal):
        return None if cell.is_nan() else cell
    if isinstance(cell, Rational):
        return Fraction(cell)
    return _number(float(cell)) if isinstance(cell, Real) else None


def _parsed(text: str) -> Number | None:
    if "_" in text:  # Python reads 1_000 as a number, databases do not
        return None
    if text.strip().lstrip("+-").isdecimal() and len(text) <= 400:  # exact; a longer one saturates anyway
        return int(text)
    return _number(float(text))


def _real(cell: Any) -> float | None:
    number = _number(cell)
    if number is None:
        return None
    try:
        return float(number) + 0.0
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


def _whole(cell: Any, low: int, high: int) -> int | None:
    number = _number(cell)
    if number is None:
        return None
    # Clamped first: int(Decimal("1e999999999")) would fill the memory.
    return low if number <= low else high if number >= high else round(number)


def _flag(cell: Any) -> bool | None:
    text = _text(cell)
    if text is not None:
        word = text.strip().lower()
        return True if word in YES else False if word in NO else None
    number = _number(cell)
    return bool(number) if number in (0, 1) else None


def _name(cell: Any) -> str | None:
    """A text category. A whole number stands for its digits: frames hold 12 as 12, 12.0 or '12' as it suits them."""
    text = _text(cell)
    if text is not None or isinstance(cell, bool | np.bool_):
        return text
    number = _number(cell)
    if number is None or not INT64[0] <= number <= INT64[1] or number != int(number):
        return None
    return str(int(number))


def _code(codes: dict[Any, int], cell: Any) -> int | None:
    token = _token(cell)
    return None if token is None else codes.setdefault(token, len(codes))


def _token(cell: Any) -> Any:
    """What makes two keys equal, and what they are called: an int, a float or a text; None for no key. 12, 12.0 and
    '12' are one key: a person split in two would be hidden half as well."""
    text = _text(cell)
    if text is not None:
        # Only the plain digits of a number, so that different texts always stay different keys.
        digits = text.removeprefix("-")
        plain = digits.isascii() and digits.isdigit() and len(digits) < 40 and str(int(text)) == text
        return int(text) if plain else text
    if cell is None or isinstance(cell, np.ndarray):
        return None
    number = _number(cell)
    if number is not None:
        return _plain(number)
    # Every NULL of every maker (nan, NaT, NA) differs from itself or refuses to say.
    if cell != cell:
        return None
    if isinstance(cell, complex | np.complexfloating):
        return str(complex(cell) + 0)
    return times.written(cell) or _text(str(cell))


def _plain(number: Number) -> int | float | str:
    """One value of all equal numbers: whole as int, else float, else text. Whole numbers of 40 digits or more are text,
    as such texts are no numbers to `_token`; what is too long to write is told by its hash, the same for equals."""
    if isinstance(number, float):
        if not number.is_integer():
            return float(number) if math.isfinite(number) else str(float(number))
        number = int(number)
    if isinstance(number, int) and -_LONG < number < _LONG:
        return number
    if number in (math.inf, -math.inf):
        return str(float(number))
    size: Any = abs(number)
    if size and not _SMALL < size < _LARGE:
        return f"number {hash(number)}"
    exact = Fraction(number)
    if exact.denominator == 1:
        return int(exact) if abs(exact) < _LONG else str(int(exact))
    near = float(exact) if abs(exact) < 10**300 else math.inf
    if near == exact:
        return near
    if (digits := _decimal(exact)) is not None:
        return digits
    return str(exact) if exact.denominator.bit_length() < 4000 else f"number {hash(exact)}"


def _decimal(exact: Fraction) -> str | None:
    """All digits of a number that has finitely many, up to 400, as engines write decimals; None for others."""
    places = max(exact.denominator.bit_length(), 1)
    if places > 400 or 10**places % exact.denominator:
        return None
    sign, digits = "-" * (exact < 0), str(abs(exact.numerator) * (10**places // exact.denominator)).zfill(places + 1)
    return f"{sign}{digits[:-places]}.{digits[-places:]}".rstrip("0")


def _label(cell: Any) -> int | float | str:
    """A label for a cell that numpy holds and that is a key."""
    label: int | float | str = _token(cell)
    return label
