"""What to measure so that the answers come out best: strategies and workloads of the matrix mechanism.

>>> from sfumato import strategies
>>> strategies.Tree(cells=16, branching=2).measurements  # sums of 1, 2, 4, 8 and 16 cells
31
"""

from .base import Mixing, Reach, Strategy, Workload
from .causal import Causal
from .dense import Dense
from .identity import Identity
from .optimise import best_strategy, expected_squared_error, optimised
from .ordered import best_tree, ordered_strategy
from .step_tree import StepTree, best_step_tree
from .toeplitz import Banded, SquareRoot
from .tree import Tree
from .workloads import Cells, Listed, Prefixes, Ranges

__all__ = [
    "Banded",
    "Causal",
    "Cells",
    "Dense",
    "Identity",
    "Listed",
    "Mixing",
    "Prefixes",
    "Ranges",
    "Reach",
    "SquareRoot",
    "StepTree",
    "Strategy",
    "Tree",
    "Workload",
    "best_step_tree",
    "best_strategy",
    "best_tree",
    "expected_squared_error",
    "optimised",
    "ordered_strategy",
]
