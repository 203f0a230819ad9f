"""What a training releases: a model, and how it went."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from ..record import canonical

if TYPE_CHECKING:
    from .live import Model


class Trained:
    """A model trained with differential privacy. `model` is ready for use; `state` are its weights by name."""

    def __init__(self, model: Model, raw: Mapping[str, Any]) -> None:
        self._model, self._raw = model, raw

    @property
    def model(self) -> torch.nn.Module:
        return self._model.loaded(self.state)

    @property
    def state(self) -> Mapping[str, Any]:
        """The weights, by the names that the user's model gives them."""
        state: Mapping[str, Any] = self._raw["state"]
        return state

    @property
    def steps(self) -> int:
        """How many steps went into it."""
        return int(self._raw["steps"])

    @property
    def norm(self) -> float:
        """The clip norm at the end."""
        return float(self._raw["norm"])

    @property
    def unclipped(self) -> tuple[float, ...]:
        """The noisy shares of records that were not clipped, step by step, where they were counted."""
        return tuple(self._raw["unclipped"])

    def save(self, path: Any) -> None:
        """The weights into a file, as `torch.save(model.state_dict(), path)` writes them."""
        torch.save(self.model.state_dict(), path)

    def __eq__(self, other: object) -> bool:
        """The same release: of the same model, with the same weights, bit by bit."""
        if not isinstance(other, Trained):
            return NotImplemented
        return self._model.print == other._model.print and canonical(self._raw) == canonical(other._raw)

    def __hash__(self) -> int:
        return hash((self._model.print, canonical(self._raw)))

    def __repr__(self) -> str:
        count = sum(each.size for each in self.state.values())
        return f"<{type(self._model.original).__name__} trained for {self.steps} steps, {count:,} numbers>"
