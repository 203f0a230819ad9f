"""Planted bugs: mechanisms that claim a price they do not hold. An audit that does not catch them is broken itself.

Each is a plan like those of the library, and wrong in one known way, most of them as once published. None is
registered: it has no JSON, so no curator releases with it and no ledger can store it.
"""

from .noisy import (
    ClassicGaussian,
    DoubledRate,
    HalfNoise,
    HalfSensitivity,
    LaplaceSoldAsGaussian,
    NoisyMaxWithItsValue,
)
from .sparse_vector import NeverEnding, NoiseWithoutCount, NoisyValueShown, NoQueryNoise, Resuming

__all__ = [
    "ClassicGaussian",
    "DoubledRate",
    "HalfNoise",
    "HalfSensitivity",
    "LaplaceSoldAsGaussian",
    "NeverEnding",
    "NoQueryNoise",
    "NoiseWithoutCount",
    "NoisyMaxWithItsValue",
    "NoisyValueShown",
    "Resuming",
]
