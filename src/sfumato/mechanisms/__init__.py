"""The mechanisms, one per file."""

from .exponential import Exponential
from .gaussian import Gaussian
from .laplace import Laplace
from .permute_and_flip import PermuteAndFlip
from .randomized_response import RandomizedResponse

__all__ = ["Exponential", "Gaussian", "Laplace", "PermuteAndFlip", "RandomizedResponse"]
