"""What a backward pass leaves: the gradients of all records of a micro-batch, until they are summed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch

from .rules import Rule, Sizes


class Pass:
    """One backward pass over a micro-batch: every record's gradients, as rules, by parameter.

    spare  placeholders that the rules have behind the records
    """

    def __init__(self, rules: Sequence[Rule | None], records: int, spare: int = 0) -> None:
        self.rules = rules
        self.records = records
        self.spare = spare
        self.general = False  # was there a use that needs the graph whole?

    def sizes(self) -> list[Sizes | None]:
        """Of every record, for every parameter. A record whose gradient is not finite is made 0 first, in its own rows:
        it would spoil the sum even with weight 0."""
        measured = self._sizes()
        squares = torch.stack([each.squares for each in measured if each is not None])  # doubts are finite if these are
        if not math.isfinite(float(squares.sum())):
            bad = ~squares.sum(0).isfinite()
            for rule_ in self.rules:
                if rule_ is not None:
                    rule_.drop(self._padded(bad))
            # The others' sizes stay as they are, bit for bit: measured anew, they might be added up in another order.
            return [
                None if each is None else Sizes(*(part.masked_fill(bad, 0.0) for part in each)) for each in measured
            ]
        return measured

    def totals(self, weights: Sequence[torch.Tensor]) -> Iterator[torch.Tensor | None]:
        """The weighted sums, one parameter after the other, with the weights for it; once, as what a sum was made of is
        given up."""
        rules, self.rules = list(self.rules), ()
        for place, factors in enumerate(weights):
            rule_, rules[place] = rules[place], None
            yield None if rule_ is None else rule_.total(self._padded(factors))

    def without_last(self) -> Pass:
        """The same, the last record being a placeholder."""
        done = Pass(self.rules, self.records - 1, self.spare + 1)
        done.general = self.general
        return done

    def _sizes(self) -> list[Sizes | None]:
        measured = [None if each is None else each.sizes() for each in self.rules]
        if not self.spare:
            return measured
        return [None if each is None else Sizes(*(part[: self.records] for part in each)) for each in measured]

    def _padded(self, tensor: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.pad(tensor, (0, self.spare)) if self.spare else tensor
