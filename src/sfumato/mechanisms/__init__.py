"""The mechanisms, one per file.

>>> from sfumato import Unit, bounds, mechanisms
>>> count = mechanisms.Laplace(query=bounds.count(Unit()), epsilon=0.5)
>>> float(count.event.epsilon)
0.5
"""

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
from .private_bounds import PrivateBounds, private_bounds
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
