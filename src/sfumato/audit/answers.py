"""Many answers to one query at once: as many copies of its groups as there are runs.

A query whose groups are public measures each of them by itself: exact sums come from the engine, and every number gets
noise of its own. So n runs are one run with n times the groups, each copy with the same exact sums. The code that runs
is `query.running.answer`, with its statements, laws, grid and sampler; only the groups are written down n times.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..noise import Noise
from ..plan import Plan
from ..query import running
from ..query.plan import Sql
from ..query.running import Groups
from .counting import Floats
from .outputs import Alike, Place

_KEYS = ("groups", "keys", "written")  # what an answer says of its groups and query: public, the same in every run


def repeats(plan: Plan[Any, Any]) -> bool:
    """Is it a query whose groups and limits are known before anything runs, answered by the code that all of them
    share?"""
    return isinstance(plan, Sql) and type(plan)._run is Sql._run and plan.fixed is not None and not plan.front.selects


def answers(plan: Any, connection: Any, runs: int, noise: Noise) -> Alike:
    """What so many runs answer: the numbers of each, in a row."""
    once = running.given(plan.front, connection)
    groups = _Copies(tuple(once.rows) * runs, once.by_label, runs)
    repeated: Any = _Repeated(connection, runs)
    found = running.answer(plan.front, plan.fixed, repeated, noise, groups)
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
