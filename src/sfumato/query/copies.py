"""Many answers to one query at once: as many copies of its groups as there are runs.

A query whose groups are public measures each of them by itself: exact sums come from the engine, and every number gets
noise of its own. So n runs are one run with n times the groups, each copy with the same exact sums. The code that runs
is `running.answer`, with its statements, laws, grid and sampler; only the groups are written down n times.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..noise import Noise
from ..runs import Alike, Place, sizes
from . import running
from .design import Design
from .running import Groups

if TYPE_CHECKING:
    from .front import Front

Floats = NDArray[np.float64]

_KEYS = ("groups", "keys", "written")  # what an answer says of its groups and query: public, the same in every run


def answers(front: Front, design: Design, connection: Any, noise: Noise, runs: int) -> Alike:
    """What so many runs answer: the numbers of each, in a row."""
    once = running.given(front, connection)
    first = _at_once(front, design, connection, noise, 1, once)  # says how many numbers an answer has
    rest = sizes(runs - 1, len(first.places))
    return Alike.joined([first, *(_at_once(front, design, connection, noise, size, once) for size in rest)])


def _at_once(front: Front, design: Design, connection: Any, noise: Noise, runs: int, once: Groups) -> Alike:
    groups = _Copies(tuple(once.rows) * runs, once.by_label, runs)
    repeated: Any = _Repeated(connection, runs)
    found = running.answer(front, design, repeated, noise, groups)
    places: list[Place] = []
    columns: list[Floats] = []
    for place, numbers in _numbers({name: part for name, part in found.items() if name not in _KEYS}):
        table = np.asarray(numbers, dtype=np.float64).reshape(runs, len(once.rows), -1)
        for group in range(table.shape[1]):
            for i in range(table.shape[2]):
                places.append((*place, group) if np.ndim(numbers) == 1 else (*place, group, i))
                columns.append(table[:, group, i])
    return Alike(tuple(places), np.stack(columns, axis=1) if columns else np.zeros((runs, 0)))


def _numbers(part: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """The lists of an answer, each with a cell, or a list of cells, for every group."""
    if not isinstance(part, Mapping):
        yield place, part
        return
    for name, inner in part.items():
        yield from _numbers(inner, (*place, name))


@dataclass(frozen=True)
class _Copies(Groups):
    """The same groups so many times over."""

    copies: int = 1

    def places(self, table: Any, keys: int) -> NDArray[np.int64]:
        """Of a result that comes as many times."""
        once = Groups(self.rows[: len(self.rows) // self.copies], self.by_label)
        first = once.places(table.slice(0, table.num_rows // self.copies), keys)
        start = len(once.rows) * np.arange(self.copies, dtype=np.int64)
        return np.where(first >= 0, first + start[:, None], -1).ravel()


class _Repeated:
    """A connection whose results come so many times over."""

    def __init__(self, connection: Any, copies: int) -> None:
        self._connection, self._copies = connection, copies

    def run(self, tree: Any) -> Any:
        table = self._connection.run(tree)
        return table.take(np.tile(np.arange(table.num_rows), self._copies))
