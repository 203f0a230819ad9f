"""From a node of the graph to the gradients of each record: a rule for each operation that people's layers are made of,
and one for everything else."""

from __future__ import annotations

from .affine import Affine, affine
from .base import Known, Rule, Sizes
from .blocks import Block, both
from .embedding import Embedding, Tied
from .general import Kept, Use, anything, sent_back
from .table import keep, looked, rule

__all__ = [
    "Affine", "Block", "Embedding", "Kept", "Known", "Rule", "Sizes", "Tied", "Use", "affine", "anything", "both",
    "keep", "looked", "rule", "sent_back",
]  # fmt: skip
