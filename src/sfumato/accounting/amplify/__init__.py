"""Amplification: what randomness outside the mechanism saves. One theorem family per file."""

from . import allocation, iteration, sampling, shuffle
from .iteration import full_batch_rho, single_pass_divergence, single_pass_rho, single_pass_rhos
from .sampling import amplified, fixed_batches, shuffled_batches_at_least, shuffled_batches_warning

__all__ = [
    "allocation",
    "amplified",
    "fixed_batches",
    "full_batch_rho",
    "iteration",
    "sampling",
    "shuffle",
    "shuffled_batches_at_least",
    "shuffled_batches_warning",
    "single_pass_divergence",
    "single_pass_rho",
    "single_pass_rhos",
]
