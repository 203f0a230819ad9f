"""What a release left as a table of an engine, and copies of it with fresh noise.

Copies are for error bars: each is what might have been released if the released numbers were the truth, drawn from the
laws of the noise and of what is not known of cuts. They are made of released numbers alone, so they cost nothing and
say nothing more. Their draws come from a hash of what was released, not from the noise: the same release always has the
same error bars, and nothing here is secret.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from ...laws import RoundedLaplace
from ..advice import Advice
from ..aggregates import Aggregate, Binned, Ranked, Statistic
from ..canonical import text_of
from ..finish import aggregate_columns, floored
from ..raised import doubts, raised
from ..released.figures import Figure, measured
from ..released.mixtures import Floats, Spreads
from ..released.values import Lists, Value
from ..running import restored

if TYPE_CHECKING:
    import pyarrow

    from ..plan import Sql

COPY = "_copy"
"""The column that says which copy a row is of: 0 is what was released."""
_TYPES = {"date": "date32", "moment": "timestamp", "flag": "bool_", "whole": "int64", "real": "float64"}
_ONE = 1 - 0.6827  # of one standard deviation
_COMMON = 0.5
"""The part (of the variance) of what is not known of cuts that all groups share; the rest is each group's own."""


@dataclass(frozen=True)
class ReleasedColumn:
    """A column of a released table: its values in every copy, after one another, as an Arrow array.

    open_  may the truth be any amount off, since nobody knows what limits cut?
    """

    name: str
    values: pyarrow.Array
    open_: bool = False


def noisy_columns(part: Sql, raw: Mapping[str, Any]) -> dict[str, bool]:
    """Of a released table: which columns are measured, by their names in lower case. Keys are not."""
    front = part.as_shown(raw).front
    return {name.lower(): text_of(node) in front.aggregates for name, node in front.outermost.outputs}


def released(part: Sql, raw: Mapping[str, Any], copies: int) -> list[ReleasedColumn]:
    """The columns of a release as it was made, and behind them those of so many copies."""
    part, size = part.as_shown(raw), int(raw["groups"])
    advice = None if raw.get("limits") is None else Advice.read(raw["limits"])
    design = part.fixed if advice is None else part.design(advice.limits, advice.reaches)
    assert design is not None
    draws = _Draws(_seed(raw), {**design.spreads, **doubts(part.questions)}, copies)
    real = aggregate_columns(part, design, advice, raw, size, raises=True)
    sums = {name: draws.figure(figure) for name, figure in raised(part, design, advice, raw).items()}
    columns: list[ReleasedColumn] = []
    for name, node in part.front.outermost.outputs:
        text = text_of(node)
        if text not in part.front.aggregates:
            columns.append(_key(part, name, part.front.outermost.named[text], raw, copies))
            continue
        aggregate, value = part.front.aggregates[text], real[text]
        again: Value = aggregate.formula(sums) if isinstance(aggregate, Statistic) else draws.value(value, text)
        if part.floor:
            value, again = floored(value), floored(again)
        columns.append(_numbers(name, value, again, aggregate))
    return columns


def arrow(columns: list[ReleasedColumn], copies: int, size: int) -> pyarrow.Table:
    """As a table that an engine takes."""
    import pyarrow

    arrays = {column.name: column.values for column in columns}
    arrays[COPY] = pyarrow.array(np.repeat(np.arange(copies + 1), size), type=pyarrow.int32())
    return pyarrow.table(arrays)


def key_type(kind: str, values: list[Any]) -> Any:
    """The type of a key above: what the schema says; of a key that may be anything, whole numbers or text."""
    import pyarrow

    if kind in _TYPES:
        return getattr(pyarrow, _TYPES[kind])(*(["us"] if kind == "moment" else []))
    numbers = kind == "key" and values and all(type(value) is int and abs(value) < 2**63 for value in values)
    return pyarrow.int64() if numbers else pyarrow.string()


def number_type(aggregate: Aggregate) -> Any:
    """The type of an aggregate above."""
    import pyarrow

    plain = pyarrow.float64()
    if isinstance(aggregate, Ranked):
        if aggregate.leaves.origin is not None:
            plain = key_type(aggregate.leaves.type, [])
        return pyarrow.list_(plain) if aggregate.listed else plain
    return pyarrow.list_(plain) if isinstance(aggregate, Binned) else plain


def _key(part: Sql, name: str, key: str, raw: Mapping[str, Any], copies: int) -> ReleasedColumn:
    kind = next(each.typed.kind.type for each in part.front.keys if each.name == key)
    values = [restored(value) for value in raw["keys"][key]]
    type_ = key_type(kind, values)
    if str(type_) == "string":
        values = [None if value is None else str(value) for value in values]
    import pyarrow

    return ReleasedColumn(name, pyarrow.concat_arrays([pyarrow.array(values, type=type_)] * (copies + 1)))


def _numbers(name: str, value: Value, again: Value, aggregate: Aggregate) -> ReleasedColumn:
    """An aggregate; quantiles of dates are dates."""
    leaves = aggregate.leaves if isinstance(aggregate, Ranked) and aggregate.leaves.origin is not None else None

    def cells(figure: Figure) -> list[Any]:
        numbers = np.asarray(figure.value, dtype=np.float64)
        if leaves is not None:
            return [leaves.shown(np.array([number]))[0].item() if np.isfinite(number) else None for number in numbers]
        return [number if np.isfinite(number) else None for number in numbers.tolist()]

    import pyarrow

    type_ = number_type(aggregate)
    if isinstance(value, Lists) and isinstance(again, Lists):
        rows = [list(row) for lists in (value, again) for row in zip(*map(cells, lists.places), strict=True)]
        return ReleasedColumn(name, pyarrow.array(rows, type=type_), any(_is_open(figure) for figure in value.places))
    assert isinstance(value, Figure) and isinstance(again, Figure)
    if leaves is not None:
        return ReleasedColumn(name, pyarrow.array(cells(value) + cells(again), type=type_), _is_open(value))
    numbers = np.concatenate([np.asarray(figure.value, dtype=np.float64) for figure in (value, again)])
    return ReleasedColumn(name, pyarrow.array(numbers, mask=~np.isfinite(numbers), type=type_), _is_open(value))


def _is_open(figure: Figure) -> bool:
    return bool(np.any(figure.above) or np.any(figure.below))


def _seed(raw: Mapping[str, Any]) -> bytes:
    return hashlib.sha256(repr(sorted(raw.items(), key=lambda item: item[0])).encode()).digest()


class _Draws:
    """Fresh noise for every measured number, the same for the same release. A number that several columns are made of
    has the same draws in all of them."""

    def __init__(self, seed: bytes, spreads: Spreads, copies: int) -> None:
        self.seed, self.spreads, self.copies = seed, spreads, copies

    def figure(self, figure: Figure, place: str = "") -> Figure:
        """A measured number in every copy: its own noise, and what is not known of it."""
        value = np.tile(figure.value, (self.copies, 1))
        for name, slope in figure.slopes.items():
            value = value + slope * self._draw(name, place, figure.value.size)
        return measured("a copy", value.reshape(-1))

    def value(self, value: Value, text: str) -> Value:
        """Numbers that are measured by themselves: different values, bars of a histogram, quantiles."""
        if isinstance(value, Lists):
            return Lists(tuple(self._alone(figure, f"{text} {place}") for place, figure in enumerate(value.places)))
        assert isinstance(value, Figure)
        return self._alone(value, text)

    def _alone(self, figure: Figure, place: str) -> Figure:
        if not figure.jumps:
            return self.figure(figure, place)
        low, high = figure.noise_interval(self.spreads, _ONE)
        normal = self._normal(place, (self.copies, figure.value.size))
        with np.errstate(all="ignore"):
            moved = np.where(normal > 0, high - figure.value, figure.value - low) * normal
        moved = np.where(np.isfinite(moved), moved, 0.0)
        return measured("a copy", (figure.value + moved).reshape(-1))

    def _draw(self, name: str, place: str, size: int) -> Floats:
        """Draws of one coordinate, by its law. What is not known of cuts is shared by all groups in part."""
        law, step = self.spreads[name]
        shape = self.copies, size
        if name in self._doubtful:
            common = self._normal(name, (self.copies, 1))
            own = self._normal(f"{name} of each", shape)
            return np.asarray(np.sqrt(_COMMON) * common + np.sqrt(1 - _COMMON) * own)
        if not isinstance(law, RoundedLaplace):
            return self._normal(name + place, shape) * law.std * step
        uniform = self._uniform(name + place, shape) - 0.5
        return np.asarray(-np.sign(uniform) * np.log1p(-2 * np.abs(uniform)) * np.sqrt(0.5) * law.std * step)

    @property
    def _doubtful(self) -> frozenset[str]:
        return frozenset(doubts(self.spreads)) & frozenset(self.spreads)

    def _normal(self, name: str, shape: tuple[int, ...]) -> Floats:
        return np.asarray(ndtri(self._uniform(name, shape)))

    def _uniform(self, name: str, shape: tuple[int, ...]) -> Floats:
        many = int(np.prod(shape))
        words = np.frombuffer(hashlib.shake_256(self.seed + name.encode()).digest(8 * many), dtype=np.uint64)
        return ((words >> 11).astype(np.float64) + 0.5).reshape(shape) / 2.0**53
