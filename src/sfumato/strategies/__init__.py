"""What to measure so that the answers come out best: strategies and workloads of the matrix mechanism.

>>> from sfumato import strategies
>>> strategies.Tree(cells=16, branching=2).measurements  # sums of 1, 2, 4, 8 and 16 cells
31
"""

from .base import Mixing, Reach, Strategy, Workload
from .causal import Causal
from .dense import Dense
from .identity import Identity
from .nested import Nested, NestedColumn, levels_of
from .nested_weights import best_shares, total_squared
from .optimise import best_strategy, expected_squared_error, optimised
from .ordered import best_tree, ordered_strategy
from .product import Product
from .step_tree import StepTree, best_step_tree
from .toeplitz import Banded, SquareRoot
from .tree import Tree
from .workloads import Cells, Intervals, Listed, Prefixes, Ranges

__all__ = [
    "Banded",
    "Causal",
    "Cells",
    "Dense",
    "Identity",
    "Intervals",
    "Listed",
    "Mixing",
    "Nested",
    "NestedColumn",
    "Prefixes",
    "Product",
    "Ranges",
    "Reach",
    "SquareRoot",
    "StepTree",
    "Strategy",
    "Tree",
    "Workload",
    "best_shares",
    "best_step_tree",
    "best_strategy",
    "best_tree",
    "expected_squared_error",
    "levels_of",
    "optimised",
    "ordered_strategy",
    "total_squared",
]
