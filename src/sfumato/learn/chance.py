"""The one place that touches torch's own generators. None of them makes noise that a guarantee of exact grade rests on:
they shake models that are looked at on made-up records, hold dropout still, and draw what `noise="fast"` names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from ..noise import Noise


@contextmanager
def apart(seed: int | None = None) -> Iterator[None]:
    """Whatever is drawn inside moves nobody's stream; with a seed, it is the same every time."""
    with torch.random.fork_rng(devices=[]):
        if seed is not None:
            torch.manual_seed(seed)
        yield


def seeded(seed: int) -> torch.Generator:
    """For what is public and shall be the same every time."""
    return torch.Generator().manual_seed(seed)


def shaken(like: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Normal numbers of the same shape, to move public weights by."""
    return torch.randn(like.shape, generator=generator).to(like.dtype)


def normal(like: torch.Tensor, deviation: float, generator: torch.Generator) -> torch.Tensor:
    """Float-grade noise, for `noise="fast"` alone."""
    return torch.normal(0.0, deviation, like.shape, generator=generator)


def fast(noise: Noise) -> torch.Generator:
    """Float-grade noise: torch's generator, seeded by 62 bits from the secure source."""
    return seeded(int(noise.integers(2**62, 1)[0]))
