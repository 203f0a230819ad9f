"""The mechanisms, one per file.

>>> from sfumato import Unit, bounds, mechanisms
>>> count = mechanisms.Laplace(query=bounds.count(Unit()), epsilon=0.5)
>>> float(count.event.epsilon)
0.5
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .continual import ContinualCount
    from .exponential import Exponential
    from .gaussian import Gaussian
    from .geometric import Geometric
    from .laplace import Laplace
    from .multiplicative_weights import PrivateMultiplicativeWeights
    from .mwem import MWEM
    from .noisy_max import NoisyMaxWithValue, report_noisy_max
    from .optimal_keys import OptimalKeys
    from .permute_and_flip import PermuteAndFlip
    from .power_bounds import PrivateBounds, private_bounds
    from .private_limit import ContributionLimit
    from .propose_test_release import ProposeTestRelease
    from .quantile import Quantile, maximum, median, minimum
    from .quantile_tree import QuantileTree
    from .randomized_response import RandomizedResponse
    from .smooth_median import SmoothMedian
    from .sparse_vector import SparseVector
    from .threshold_keys import ThresholdKeys
    from .thresholdout import Thresholdout
    from .top_k import TopK
    from .vector import L2Noise, LInfinityNoise
    from .weighted_keys import WeightedKeys

__all__ = [
    "MWEM",
    "ContinualCount",
    "ContributionLimit",
    "Exponential",
    "Gaussian",
    "Geometric",
    "L2Noise",
    "LInfinityNoise",
    "Laplace",
    "NoisyMaxWithValue",
    "OptimalKeys",
    "PermuteAndFlip",
    "PrivateBounds",
    "PrivateMultiplicativeWeights",
    "ProposeTestRelease",
    "Quantile",
    "QuantileTree",
    "RandomizedResponse",
    "SmoothMedian",
    "SparseVector",
    "ThresholdKeys",
    "Thresholdout",
    "TopK",
    "WeightedKeys",
    "maximum",
    "median",
    "minimum",
    "private_bounds",
    "report_noisy_max",
]

_HOMES = {
    "ContinualCount": "continual",
    "ContributionLimit": "private_limit",
    "Exponential": "exponential",
    "Gaussian": "gaussian",
    "Geometric": "geometric",
    "L2Noise": "vector",
    "LInfinityNoise": "vector",
    "Laplace": "laplace",
    "MWEM": "mwem",
    "NoisyMaxWithValue": "noisy_max",
    "OptimalKeys": "optimal_keys",
    "PermuteAndFlip": "permute_and_flip",
    "PrivateBounds": "power_bounds",
    "PrivateMultiplicativeWeights": "multiplicative_weights",
    "ProposeTestRelease": "propose_test_release",
    "Quantile": "quantile",
    "QuantileTree": "quantile_tree",
    "RandomizedResponse": "randomized_response",
    "SmoothMedian": "smooth_median",
    "SparseVector": "sparse_vector",
    "ThresholdKeys": "threshold_keys",
    "Thresholdout": "thresholdout",
    "TopK": "top_k",
    "WeightedKeys": "weighted_keys",
    "maximum": "quantile",
    "median": "quantile",
    "minimum": "quantile",
    "private_bounds": "power_bounds",
    "report_noisy_max": "noisy_max",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'sfumato.mechanisms' has no attribute {name!r}")
    value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
