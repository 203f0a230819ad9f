"""The answer of a report: a table whose noisy numbers have simulated error bars."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from ..released.answer import Answer, Output
from ..released.figures import Bounds, Figure, Given, given
from ..released.mixtures import Floats
from ..released.values import Keys, Lists, Value, objects
from ..running import restored
from .shown_rows import SCORES

if TYPE_CHECKING:
    from ..plan import Sql

_NORMAL = NormalDist()
_SIMULATED = (
    "± above the releases is simulated: {} times fresh noise was put on the released numbers, and the SQL above them "
    "run again"
)
_OPEN = "what limits cut from the released numbers is not known, so ± is of noise alone"
_PLAIN = "texts, dates and lists that noise has a part in have no ±"
_FAILED = "the SQL above the releases failed on the released numbers ({}); this is what was released, of {}"


@dataclass(frozen=True, eq=False)
class Simulated(Given):
    """A number whose intervals come from copies with fresh noise."""

    @property
    def exact(self) -> bool:
        return False


def answer(parts: Mapping[str, Sql], raws: Mapping[str, Any], table: Mapping[str, Any]) -> Answer:
    """What people see; where the SQL above failed, what the first release was."""
    notes = _notes(parts, raws)
    if "failed" in table:
        first = next(iter(parts))
        released = parts[first].finish(raws[first])
        released.notes = (_FAILED.format(table["failed"], first), *released.notes)
        return released
    outputs = []
    listed = zip(table["columns"], table["types"], table["noisy"], table["cells"], table["bars"], strict=True)
    plain = False
    for name, kind, is_noisy, cells, bars in listed:
        value = _value(name, kind, is_noisy, cells, bars)
        plain = plain or (is_noisy and not (isinstance(value, Figure) and value.noisy))
        if isinstance(value, Figure) and value.noisy and table["open"]:
            value = replace(value, above=True, below=True)
        outputs.append(Output(name, value, bias=(None,) if isinstance(value, Figure) and value.noisy else ()))
    simulated = [_SIMULATED.format(table["copies"])] if any(bars is not None for bars in table["bars"]) else []
    said_open = [_OPEN] if simulated and table["open"] else []
    size = len(table["cells"][0]) if table["cells"] else 0
    without = [_PLAIN] if plain else []
    return Answer(outputs, {}, np.arange(size), [*simulated, *said_open, *without, *notes])


def _value(name: str, kind: str, is_noisy: bool, cells: Sequence[Any], bars: Sequence[Any] | None) -> Value:
    if kind in ("whole", "real") and is_noisy:
        value = np.array([np.nan if cell is None else float(cell) for cell in cells], dtype=np.float64)
        return _simulated(name, value, bars or [None] * value.size)
    if kind == "list":
        longest = max((len(cell or ()) for cell in cells), default=0)
        places = [[_item(cell, place) for cell in cells] for place in range(longest)]
        return Lists(tuple(Figure(np.array(numbers, dtype=np.float64)) for numbers in places))
    type_: Any = kind
    return Keys(objects([restored(cell) for cell in cells]), type_)


def _item(cell: Sequence[Any] | None, place: int) -> float:
    number = cell[place] if cell is not None and place < len(cell) else None
    return float(number) if isinstance(number, int | float) else np.nan


def _simulated(name: str, value: Floats, bars: Sequence[Any]) -> Figure:
    """A number with the quantiles of how far copies stray from it; a row that hardly any copy has is in doubt."""
    lost = np.array([bar is None for bar in bars], dtype=np.bool_)
    strayed = np.array([[0.0] * len(SCORES) if bar is None else bar for bar in bars]).reshape(value.size, len(SCORES))
    plain = given(f"simulated {name}", value, _within(value, strayed, lost), lost)
    fields = {field: getattr(plain, field) for field in ("value", "slopes", "linear", "jumps", "within", "doubt")}
    return Simulated(**fields)


def _within(value: Floats, strayed: Floats, lost: Any) -> Callable[[float], Bounds]:
    """Between the quantiles that were kept, by the normal scores of their levels; beyond them along the same line."""

    def within(alpha: float) -> Bounds:
        score = _NORMAL.inv_cdf(1 - alpha / 2)
        down, up = _at(strayed, score), _at(strayed, -score)
        low, high = np.minimum(value - down, value), np.maximum(value - up, value)
        return np.where(lost, -np.inf, low), np.where(lost, np.inf, high)

    return within


def _at(strayed: Floats, score: float) -> Floats:
    scores = np.array(SCORES)
    place = int(np.clip(np.searchsorted(scores, score) - 1, 0, scores.size - 2))
    part = (score - scores[place]) / (scores[place + 1] - scores[place])
    return np.asarray(strayed[:, place] + part * (strayed[:, place + 1] - strayed[:, place]))


def _notes(parts: Mapping[str, Sql], raws: Mapping[str, Any]) -> list[str]:
    """What the releases say of themselves; with their names, where they say different things."""
    lines: dict[str, list[str]] = {}
    for name, part in parts.items():
        for note in part.finish(raws[name]).notes:
            lines.setdefault(note, []).append(name)
    return [note if len(names) == len(parts) else f"{', '.join(names)}: {note}" for note, names in lines.items()]
