"""From rows to what a model reads: tensors, by public fields and the schema alone.

Nothing is learned from the data: a number is scaled by its bounds, a category has a place for each of its public
values. So encoding costs nothing, every row is encoded by itself, and public data is encoded the same way.

Torch is imported when a tensor is made: a ledger reads stored features, and needs none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from .. import checks
from ..errors import PlanError
from ..questions import COARSE
from ..record import record
from ..rows import Rows
from ..schema import Column, Table, TensorColumn, Words
from ..units import Unit
from .encodings import Part, encoding_of

if TYPE_CHECKING:
    import torch

Places = NDArray[np.int64]
_MOST_CLASSES = 10**6


@record("features/1")
@dataclass(frozen=True)
class Features:
    """The columns that a model reads, as one tensor with a row for each record.

    columns     their names. A tensor column stands alone and keeps its shape, float32 or int64. Of others, each row is
                one vector: real, whole, date and moment columns are scaled from their bounds to [-1, 1], a flag is -1
                or 1, a category is one-hot. A NULL is 0: the middle of the bounds, and no category at all
    indicators  a further number for each column of numbers or flags that may hold NULLs: 1 where it is NULL, else 0
    scale       (mean, deviation) of a tensor column, public numbers such as (0.1307, 0.3081), or one tuple each with a
                number for every channel, its first side: x becomes (x - mean) / deviation, in float32
    """

    columns: tuple[str, ...]
    indicators: bool = False
    scale: tuple[Any, Any] | None = field(default=None, metadata=COARSE)

    def __post_init__(self) -> None:
        columns: Any = self.columns
        columns = [columns] if isinstance(columns, str) else columns
        names = checks.texts(tuple(columns) if isinstance(columns, list) else columns, "columns")
        if not names or len(set(names)) < len(names):
            raise checks.refuse("columns", self.columns, "at least one column, each once")
        object.__setattr__(self, "columns", names)
        checks.flag(self.indicators, "indicators")
        if self.scale is not None:
            object.__setattr__(self, "scale", _scale(self.scale))

    def check(self, table: Table) -> None:
        """Refuse a table whose columns cannot be read so."""
        read = self._read(table)
        arrays = {name: column for name, column in read.items() if isinstance(column, TensorColumn)}
        array = next(iter(arrays), "")
        if arrays and len(read) > 1:
            raise PlanError(f"the tensor column {array!r} stands alone: give the other columns Features of their own")
        if keys := [name for name, column in read.items() if not column.of_kind.is_public]:
            raise PlanError(
                f"column {keys[0]!r} is a key, which means nothing but who it is: leave it out of the features"
            )
        if self.scale is not None and not arrays:
            raise PlanError("scale is for a tensor column: others are scaled by their bounds")
        if arrays and self.indicators:
            raise PlanError(
                "indicators are for columns of single values: a record without its array counts for nothing"
            )
        if arrays and self.scale is not None:
            sides = arrays[array].shape
            if any(isinstance(part, tuple) and len(part) != sides[0] for part in self.scale):
                raise PlanError(f"scale needs one number, or {sides[0]}: one for each channel of {array!r}")

    def shape(self, table: Table) -> tuple[int, ...]:
        """The shape of one record."""
        array = self._array(table)
        return (len(self.names(table)),) if array is None else array.shape

    def width(self, table: Table) -> int:
        """How many numbers one record is."""
        return int(np.prod(self.shape(table)))

    def names(self, table: Table) -> tuple[str, ...]:
        """What each number of a vector is: 'age', 'age is NULL', 'ward=north'."""
        if self._array(table) is not None:
            raise PlanError("the numbers of a tensor column have no names")
        return tuple(name for part in self._parts(table) for name in part.names)

    def _array(self, table: Table) -> TensorColumn | None:
        self.check(table)
        column = table.column(self.columns[0])
        return column if isinstance(column, TensorColumn) else None

    def _read(self, table: Table) -> dict[str, Column]:
        return {name: table.column(name) for name in self.columns}

    def _parts(self, table: Table) -> list[Part]:
        return [encoding_of(column).part(name, column, self.indicators) for name, column in self._read(table).items()]

    def tensor(self, rows: Rows, places: Places | None = None) -> torch.Tensor:
        """All rows, or those at `places`, encoded.

        All rows of a tensor column that is not scaled are not copied: read from the tensor, and never write into it.
        """
        array = self._array(rows.table)
        if array is not None:
            values = _taken(rows[self.columns[0]].values, places)
            return shared(values) if self.scale is None else self._scaled(values)
        count = len(rows) if places is None else len(places)
        parts = self._parts(rows.table)
        out = np.zeros((count, sum(len(part.names) for part in parts)), dtype=np.float32)
        start = 0
        for name, part in zip(self.columns, parts, strict=True):
            series, end = rows[name], start + len(part.names)
            part.write(_taken(series.values, places), _taken(series.valid, places), out[:, start:end])
            start = end
        return shared(out)

    def _scaled(self, values: NDArray[Any]) -> torch.Tensor:
        assert self.scale is not None
        mean, deviation = (np.array(part, dtype=np.float32) for part in self.scale)
        beside = (-1, *[1] * (values.ndim - 2))
        scaled = values.astype(np.float32)
        scaled -= mean.reshape(beside)
        scaled /= deviation.reshape(beside)
        return shared(scaled)

    def readable(self, rows: Rows, places: Places | None = None) -> NDArray[np.bool_]:
        """Which rows count: all, but those of a tensor column that hold no array."""
        if self._array(rows.table) is None:
            return np.ones(len(rows) if places is None else len(places), dtype=np.bool_)
        return _taken(rows[self.columns[0]].valid, places)

    def placeholder(self, table: Table) -> torch.Tensor:
        """One record's worth of nothing, for a slot that is free: the same for every data set."""
        array = self._array(table)
        if array is None:
            return shared(np.zeros(self.shape(table), dtype=np.float32))
        full = np.full((1, *array.shape), array.rest, dtype=array.dtype)
        return (shared(full) if self.scale is None else self._scaled(full))[0]

    def made_up(self, table: Table, count: int, words: Words) -> torch.Tensor:
        """Clean records from the schema alone."""
        return self.tensor(made_up(table, self.columns, count, words))


@record("target/1")
@dataclass(frozen=True)
class Target:
    """The column that a model is to tell.

    type    "class": a place among the classes, int64; "number": float32. None takes classes for a category and a flag,
            numbers for real and whole columns, and a tensor column as it is. A flag may be a number, 0 or 1, and a
            whole column classes, of which its lower bound is class 0
    scaled  numbers from the bounds to [-1, 1], needed for dates and moments

    A record whose target is NULL gets the weight 0. It is drawn like any other, and adds exactly nothing to a sum: less
    than any record may, so the guarantee covers it. Nobody sees how many there are.
    """

    column: str
    type: Literal["class", "number"] | None = None
    scaled: bool = False

    def __post_init__(self) -> None:
        checks.label(self.column, "column")
        if self.type is not None:
            checks.one_of(self.type, "type", ("class", "number"))
        checks.flag(self.scaled, "scaled")

    def check(self, table: Table) -> None:
        """Refuse a table whose column cannot be told so."""
        column = table.column(self.column)
        if not column.of_kind.is_public:
            raise PlanError(f"column {self.column!r} is a key: a model that tells it tells who people are")
        encoding = encoding_of(column)
        kind = self._kind(column)
        if isinstance(column, TensorColumn) and (self.type is not None or self.scaled):
            raise PlanError(f"the tensor column {self.column!r} is a target as it is: leave type and scaled out")
        if (kind == "class" and encoding.classes is None) or (kind == "number" and encoding.ends is None):
            raise PlanError(f"column {self.column!r} is {column.type} in the schema, and cannot be a {kind}")
        if self.scaled and kind != "number":
            raise PlanError(f"column {self.column!r} is told by class: leave scaled out, or give type='number'")
        if not encoding.unscaled and not self.scaled:
            raise PlanError(f"column {self.column!r} counts in days or microseconds: give scaled=True")
        if kind == "class" and self._classes(column)[1] > _MOST_CLASSES:
            raise PlanError(f"column {self.column!r} has more than {_MOST_CLASSES} classes: give type='number'")

    def tells_classes(self, table: Table) -> bool:
        """Is it told by class, rather than as a number or an array?"""
        self.check(table)
        return self._kind(table.column(self.column)) == "class"

    def classes(self, table: Table) -> int:
        """How many classes there are: the width of a model's last layer."""
        if not self.tells_classes(table):
            raise PlanError(f"column {self.column!r} is a number, which has no classes")
        return self._classes(table.column(self.column))[1]

    def _kind(self, column: Column) -> str | None:
        return self.type or encoding_of(column).usual

    @staticmethod
    def _classes(column: Column) -> tuple[int, int]:
        """The first of them, and how many there are."""
        classes = encoding_of(column).classes
        assert classes is not None
        return classes(column)

    def tensor(self, rows: Rows, places: Places | None = None) -> torch.Tensor:
        """All rows, or those at `places`. Where the target is NULL there is a 0, or `rest` in a tensor column."""
        self.check(rows.table)
        column, series = rows.table.column(self.column), rows[self.column]
        values, valid = _taken(series.values, places), _taken(series.valid, places)
        if isinstance(column, TensorColumn):
            return shared(values)
        encoding = encoding_of(column)
        if self._kind(column) == "class":
            first, _ = self._classes(column)
            return shared(np.where(valid, values - np.int64(first), np.int64(0)))
        assert encoding.scaled is not None and encoding.ends is not None
        if self.scaled:
            return shared(np.where(valid, encoding.scaled(column, values), np.float32(0)))
        numbers = np.clip(values, *encoding.ends(column))
        return shared(np.where(valid, numbers, 0.0).astype(np.float32))

    def readable(self, rows: Rows, places: Places | None = None) -> NDArray[np.bool_]:
        """Which rows have a target."""
        return _taken(rows[self.column].valid, places)

    def placeholder(self, table: Table) -> torch.Tensor:
        """A target for a slot that is free: the same for every data set."""
        self.check(table)
        column = table.column(self.column)
        if isinstance(column, TensorColumn):
            return shared(np.full(column.shape, column.rest, dtype=column.dtype))
        kind: type[Any] = np.int64 if self._kind(column) == "class" else np.float32
        return shared(np.zeros((), dtype=kind))

    def made_up(self, table: Table, count: int, words: Words) -> torch.Tensor:
        """Clean targets from the schema alone."""
        return self.tensor(made_up(table, (self.column,), count, words))


def made_up(table: Table, names: tuple[str, ...], count: int, words: Words) -> Rows:
    """Clean rows of these columns, each a unit of its own."""
    part = Table({name: table.column(name) for name in names}, name=table.name)
    return Rows.read(part, part.make_up(count, words, awkward=False), Unit())


def _scale(given: Any) -> tuple[Any, Any]:
    allowed = "(mean, deviation), such as (0.1307, 0.3081), or a tuple of numbers for each of them"
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise checks.refuse("scale", given, allowed)
    mean, deviation = given
    many = isinstance(mean, tuple | list), isinstance(deviation, tuple | list)
    means = tuple(checks.bound(each, "scale") for each in (mean if many[0] else (mean,)))
    spreads = tuple(checks.positive(each, "scale") for each in (deviation if many[1] else (deviation,)))
    if (
        not means
        or not spreads
        or any(not 1e-30 < each < 1e30 for each in spreads)
        or any(abs(m) > 1e30 for m in means)
    ):
        raise checks.refuse("scale", given, allowed)
    return means if many[0] else means[0], spreads if many[1] else spreads[0]


def _taken(values: NDArray[Any], places: Places | None) -> NDArray[Any]:
    return values if places is None else values[places]


class _Window:
    """Memory of an array that numpy may not write to, for torch, which has no such arrays and warns of them."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array
        self.__array_interface__ = array.__array_interface__ | {"data": (array.__array_interface__["data"][0], False)}


def shared(values: NDArray[Any]) -> torch.Tensor:
    """The same memory as a tensor."""
    import torch

    if values.flags.writeable or not values.size:
        return torch.from_numpy(values if values.flags.writeable else values.copy())
    return torch.from_numpy(np.asarray(_Window(values)))
