"""Several uses of one parameter, and uses of a part of it: their gradients add up before anything is measured."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch

from .affine import Affine
from .base import Known, Rule, Sizes
from .embedding import Embedding, Tied


class Block(Rule):
    """Rows of a parameter, from `start` on, which have rules of their own; disjoint ones: squares add up.

    parts  by the rows (start, stop) that they are about
    """

    def __init__(self, parts: dict[tuple[int, int], Rule], shape: tuple[int, ...]) -> None:
        self.parts, self.shape = parts, shape

    def sizes(self) -> Sizes:
        measured = [each.sizes() for each in self.parts.values()]
        if len(measured) == 1:
            return measured[0]
        return Sizes(
            torch.stack([s.squares for s in measured]).sum(0), torch.stack([s.doubts for s in measured]).sum(0)
        )

    def total(self, weights: torch.Tensor) -> torch.Tensor:
        totals = {rows: each.total(weights) for rows, each in self.parts.items()}
        out = next(iter(totals.values())).new_zeros(self.shape)
        for (start, stop), part in totals.items():
            out[start:stop] = part
        return out

    def by_record(self) -> torch.Tensor:
        gradients = {rows: each.by_record() for rows, each in self.parts.items()}
        one = next(iter(gradients.values()))
        out = one.new_zeros(len(one), *self.shape)
        for (start, stop), part in gradients.items():
            out[:, start:stop] = part
        return out

    def drop(self, which: torch.Tensor) -> None:
        for part in self.parts.values():
            part.drop(which)


def both(rules: Sequence[Rule]) -> Rule:
    """One parameter, used more than once."""
    if len(rules) == 1:
        return rules[0]
    blocks = [each for each in rules if isinstance(each, Block)]
    if len(blocks) == len(rules):
        return _joined_blocks(blocks)
    looked = [each for each in rules if isinstance(each, Embedding)]
    multiplied = [each for each in rules if isinstance(each, Affine)]
    if len(looked) + len(multiplied) == len(rules):
        if not multiplied:
            return _joined_looks(looked)
        product = _joined_products(multiplied)
        return Tied(_joined_looks(looked), product) if looked else product
    return _summed(rules)


def _summed(rules: Sequence[Rule]) -> Rule:
    total = rules[0].by_record()
    for use in rules[1:]:
        total = total + use.by_record()
    return Known(total)


def _joined_blocks(blocks: Sequence[Block]) -> Rule:
    parts: dict[tuple[int, int], list[Rule]] = {}
    for block in blocks:
        for rows, part in block.parts.items():
            parts.setdefault(rows, []).append(part)
    ordered = sorted(parts)
    if any(second[0] < first[1] for first, second in pairwise(ordered)):
        return _summed(blocks)
    return Block({rows: both(parts[rows]) for rows in ordered}, blocks[0].shape)


def _joined_looks(rules: Sequence[Embedding]) -> Embedding:
    if len(rules) == 1:
        return rules[0]
    return Embedding(torch.cat([r.ids for r in rules], 1), torch.cat([r.g for r in rules], 1), rules[0].rows)


def _joined_products(rules: Sequence[Affine]) -> Affine:
    if len(rules) == 1:
        return rules[0]
    return Affine(torch.cat([r.a for r in rules], 1), torch.cat([r.g for r in rules], 1))
