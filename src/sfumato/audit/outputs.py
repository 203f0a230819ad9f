"""Outputs of any kind as rows of numbers, in a way that is fixed before the outputs that are judged are seen.

How outputs are read is itself a choice: which parts there are, which text has which number. It is made on the samples
that choose events, and applied to those that judge them. A part or a text that turns up later is read as missing; it
never moves the others.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np

from ..runs import Alike, Place
from .counting import Floats

"""Where in an output a part stands: keys and indices, from the outside in."""

_FEATURES = 64  # looked at together
_SEEN = 4_000  # parts that are compared before the most telling ones are kept
_GRAINS = 2  # columns whose granularity is looked at
_COARSE = 64.0  # the grain of 0, which has no lowest bit
_DEEPEST = 16  # parts of parts: what holds itself has no end
_LARGEST = 1e100


@dataclass(frozen=True)
class OutputReading:
    """How an output becomes a row of numbers.

    places   the parts that are read: a column each
    lacking  places that some outputs lack: a further column each, 1 where the part is not there
    codes    texts and other things that are no numbers, by how they are spelled
    grains   columns of which the lowest set bit is read as well: float arithmetic leaves its traces there
    """

    places: tuple[Place, ...]
    lacking: tuple[int, ...] = ()
    codes: tuple[str, ...] = ()
    grains: tuple[int, ...] = ()

    @classmethod
    def fit(cls, one: Any, other: Any) -> OutputReading:
        """The reading for two samples: of many parts, those that tell the samples apart most."""
        places = _places(one, other)
        if len(places) > _FEATURES:
            first, second = (cls(places).of(sample) for sample in (one, other))
            spread = np.concatenate([first, second]).std(axis=0)
            apart = np.abs(first.mean(axis=0) - second.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
            telling = np.sort(np.argsort(-apart, kind="stable")[:_FEATURES])
            places = tuple(places[i] for i in telling)
        codes = tuple(dict.fromkeys(_spelled_in((one, other), places)))
        raw = np.concatenate([cls(places, codes=codes)._cells(sample) for sample in (one, other)])
        lacking = tuple(np.flatnonzero(np.isnan(raw).any(axis=0)).tolist())
        fine = np.flatnonzero((np.nan_to_num(raw) % 1.0 != 0).any(axis=0))
        return cls(places, lacking, codes, tuple(fine[:_GRAINS].tolist()))

    def of(self, outputs: Any) -> Floats:
        """A row for each output."""
        cells = self._cells(outputs)
        parts = [np.nan_to_num(cells, nan=0.0, posinf=_LARGEST, neginf=-_LARGEST)]
        parts += [np.isnan(cells[:, [i]]).astype(np.float64) for i in self.lacking]
        parts += [grain(parts[0][:, [i]]) for i in self.grains]
        return np.concatenate(parts, axis=1) if len(parts) > 1 else parts[0]

    @property
    def names(self) -> list[str]:
        """What each column is called."""
        names = ["output" + "".join(f"[{part!r}]" for part in place) for place in self.places]
        return [
            *names,
            *(f"({names[i]} is missing)" for i in self.lacking),
            *(f"(lowest bit of {names[i]})" for i in self.grains),
        ]

    def _cells(self, outputs: Any) -> Floats:
        """Numbers, nan where a part is missing."""
        if isinstance(outputs, Alike):
            column = {place: i for i, place in enumerate(outputs.places)}
            wanted = np.array([column.get(place, -1) for place in self.places])
            return np.where(wanted < 0, math.nan, outputs.cells[:, wanted])
        matrix = _matrix(outputs)
        if matrix is not None:
            columns = [place[0] for place in self.places if len(place) == 1 and isinstance(place[0], int)]
            if len(columns) == len(self.places) and set(columns) <= set(range(matrix.shape[1])):
                return matrix[:, columns]
        if matrix is not None and matrix.shape[1] == 1 and self.places == ((),):
            return matrix
        numbers = {text: float(code) for code, text in enumerate(self.codes)}
        cells = np.full((len(outputs), len(self.places)), math.nan)
        for i, output in enumerate(outputs):
            atoms = dict(atoms_of(output))
            for j, place in enumerate(self.places):
                if place in atoms:
                    cells[i, j] = _number(atoms[place], numbers)
        return cells

    def encode(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "places": [[_part(part) for part in place] for place in self.places],
            "lacking": list(self.lacking),
            "codes": list(self.codes),
            "grains": list(self.grains),
        }

    @classmethod
    def decode(cls, data: Mapping[str, Any]) -> OutputReading:
        """What `encode` wrote."""
        places = tuple(tuple(_part(part) for part in place) for place in data["places"])
        marked = [tuple(int(i) for i in data[name]) for name in ("lacking", "grains")]
        if (
            not all(0 <= i < len(places) for each in marked for i in each)
            or len(set(places)) != len(places)
            or not places
        ):
            raise ValueError("columns that are not there")
        codes = tuple(data["codes"])
        if not all(isinstance(text, str) for text in codes):
            raise ValueError("codes that are no texts")
        return cls(places, marked[0], codes, marked[1])


def grain(numbers: Floats) -> Floats:
    """The place of the lowest set bit: log2 of the coarsest power of two that a number is a multiple of."""
    mantissa, exponent = np.frexp(numbers)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    lowest = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    return np.where(numbers == 0, _COARSE, (exponent - 53 + lowest).astype(np.float64))


def atoms_of(output: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """The parts of an output that have no parts, each with where it stands."""
    if len(place) >= _DEEPEST:
        yield place, output
        return
    output = _opened(output)
    if isinstance(output, Mapping):
        for name, item in output.items():
            yield from atoms_of(item, (*place, _part(name)))
    elif isinstance(output, np.ndarray | list | tuple):
        for index, item in enumerate(output.ravel().tolist() if isinstance(output, np.ndarray) else output):
            yield from atoms_of(item, (*place, index))
    else:
        yield place, output


def _opened(output: Any) -> Any:
    """Tables, series, tensors, models and other things as mappings and lists of what they hold: taken for one text
    each, they would never come up twice, or always, and nothing would be seen."""
    if output is None or isinstance(output, str | int | float | Enum | type | Mapping | list | tuple):
        return output
    if isinstance(output, complex | np.complexfloating):
        return {"real": float(output.real), "imaginary": float(output.imag)}
    if hasattr(output, "_repr_html_") and hasattr(output, "columns"):  # a table that shows itself
        names = list(output.columns)
        return {name: output[name] for name in names} if len(set(names)) == len(names) else output.to_numpy()
    if isinstance(output, np.ndarray | np.generic):
        return output
    if hasattr(output, "index") and hasattr(output, "items") and getattr(output.index, "is_unique", False):
        return dict(output.items())  # a series: where a label stands may itself tell
    for name in ("tolist", "to_list"):
        if callable(convert := getattr(output, name, None)):
            return convert()
    if callable(state := getattr(output, "state_dict", None)):  # a model
        return dict(state())
    if is_dataclass(output):
        return {each.name: getattr(output, each.name, None) for each in fields(output)}
    own = getattr(output, "__dict__", None)
    return dict(own) if own and not inspect.isroutine(output) else output  # a thing that holds others


def unreadable(output: Any) -> str | None:
    """The kind of a part that shows nothing of itself, only where in memory it is; None where there is no such part."""
    for _, cell in atoms_of(output):
        try:
            blind = not _is_number(cell) and f"{id(cell):x}" in str(cell).lower()
        except Exception:  # a thing that cannot even be printed
            blind = True
        if blind:
            return type(cell).__name__
    return None


def _part(part: Any) -> Any:
    """A key that JSON can hold."""
    plain = part.item() if isinstance(part, np.generic) else part
    return plain if isinstance(plain, str | int) and not isinstance(plain, bool) else f"{type(plain).__name__} {plain}"


def _matrix(outputs: Any) -> Floats | None:
    """Outputs that are numbers, or arrays of one shape, at once."""
    if isinstance(outputs, np.ndarray) and outputs.dtype.kind in "biuf":
        return np.asarray(outputs.reshape(len(outputs), -1), dtype=np.float64)
    if all(type(x) in (int, float, bool) or isinstance(x, np.integer | np.floating) for x in outputs):
        return np.array([_number(x, {}) for x in outputs]).reshape(-1, 1)
    first = outputs[0] if len(outputs) else None
    if isinstance(first, np.ndarray) and all(
        isinstance(x, np.ndarray) and x.shape == first.shape and x.dtype.kind in "biuf" for x in outputs
    ):
        return np.array(outputs, dtype=np.float64).reshape(len(outputs), -1)
    return None


def _all_places(matrix: Floats) -> list[Place]:
    return [(i,) for i in range(matrix.shape[1])]


def _places(one: Any, other: Any) -> tuple[Place, ...]:
    if isinstance(one, Alike) and isinstance(other, Alike):
        return tuple(dict.fromkeys((*one.places, *other.places)))[:_SEEN] or ((),)
    shapes = [_matrix(sample) for sample in (one, other)]
    if (
        all(shape is not None for shape in shapes)
        and len({shape.shape[1] for shape in shapes if shape is not None}) == 1
    ):
        scalar = all(not isinstance(sample[0], np.ndarray) for sample in (one, other) if len(sample))
        assert shapes[0] is not None
        return ((),) if scalar else tuple(_all_places(shapes[0])[:_SEEN])
    places = dict.fromkeys(place for sample in (one, other) for output in sample for place, _ in atoms_of(output))
    return tuple(islice(places, _SEEN)) or ((),)


def _spelled_in(samples: Sequence[Any], places: tuple[Place, ...]) -> Iterator[str]:
    if all(isinstance(sample, Alike) or _matrix(sample) is not None for sample in samples):
        return
    wanted = set(places)
    for sample in samples:
        for output in sample:
            for place, cell in atoms_of(output):
                if place in wanted and not _is_number(cell):
                    yield _spelled(cell)


def _is_number(cell: Any) -> bool:
    real = isinstance(cell, int | float | Fraction | Decimal | np.number | np.bool_)
    return real and not isinstance(cell, np.complexfloating)


def _spelled(cell: Any) -> str:
    return cell if isinstance(cell, str) else f"{type(cell).__name__} {cell}"[:200]


def _number(cell: Any, codes: Mapping[str, float]) -> float:
    if not _is_number(cell):
        return codes.get(_spelled(cell), -1.0)
    try:
        return float(cell)
    except OverflowError:
        return _LARGEST if cell > 0 else -_LARGEST
