"""OpenDP's error bars of the discrete laws: the accuracy a with P(|noise| >= a) <= alpha."""

import json
import sys

import opendp.prelude as dp

dp.enable_features("contrib")
asked = json.load(sys.stdin)
rows = [
    [
        scale,
        alpha,
        dp.discrete_laplacian_scale_to_accuracy(scale, alpha),
        dp.discrete_gaussian_scale_to_accuracy(scale, alpha),
    ]
    for scale in asked["scales"]
    for alpha in asked["alphas"]
]
json.dump({"columns": ["scale", "alpha", "discrete_laplace", "discrete_gaussian"], "rows": rows}, sys.stdout)
