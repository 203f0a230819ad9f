"""diffprivlib's analytic Gaussian: the noise scale for sensitivity 1 at every (epsilon, delta)."""

import json
import sys

from diffprivlib.mechanisms import GaussianAnalytic

asked = json.load(sys.stdin)
rows = [
    [epsilon, delta, GaussianAnalytic(epsilon=epsilon, delta=delta, sensitivity=1)._scale]
    for epsilon in asked["epsilons"]
    for delta in asked["deltas"]
]
json.dump({"columns": ["epsilon", "delta", "sigma"], "rows": rows}, sys.stdout)
