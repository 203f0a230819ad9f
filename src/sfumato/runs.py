"""Many runs of one plan on the same data: what audits look at, a hundred thousand at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Bulk = Literal["no", "fresh", "steady"]
"""How a plan runs many times at once: "no", one run after the other. "fresh", hardly dearer than once. "steady", and
the noise of a run is the same on the same random bits, whatever the data."""

Place = tuple[Any, ...]

_BLOCK = 20_000  # runs at once
_NUMBERS = 4_000_000  # or fewer, where each of them has many numbers


def sizes(count: int, numbers: int = 1) -> Iterator[int]:
    """So many runs, of so many numbers each, in blocks that fit into memory."""
    block = max(1, min(_BLOCK, _NUMBERS // max(numbers, 1)))
    return (min(block, count - start) for start in range(0, count, block))


@dataclass(frozen=True, eq=False)
class Alike:
    """Outputs that all have the same parts, and these are numbers: where they stand, and a row for each output."""

    places: tuple[Place, ...]
    cells: NDArray[np.float64]

    @classmethod
    def joined(cls, parts: Sequence[Alike]) -> Alike:
        return cls(parts[0].places, np.concatenate([part.cells for part in parts]))

    def __len__(self) -> int:
        return len(self.cells)

    def __iter__(self) -> Iterator[NDArray[np.float64]]:
        return iter(self.cells)

    def __getitem__(self, which: Any) -> Any:
        return Alike(self.places, self.cells[which]) if isinstance(which, slice) else self.cells[which]
