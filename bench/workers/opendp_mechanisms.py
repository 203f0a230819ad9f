"""OpenDP's histogram, tree and quantiles, timed by OpenDP's own interpreter (see bench.peers): JSON in, JSON out.

Its data go in as numpy vectors, its fastest way. Quantiles come from its b-ary tree over binned counts, all at once.
"""

import jobs
import numpy as np
import opendp.prelude as dp
from samples import real_numbers, whole_numbers

dp.enable_features("contrib")


def counts(cells: int) -> dp.Transformation:
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.symmetric_distance()
    return space >> dp.t.then_count_by_categories(list(range(cells)), null_category=False)


def histogram(rows: int, cells: int, seed: int) -> dict:
    release = counts(cells) >> dp.m.then_laplace(scale=1.0)
    return {"cells": len(release(whole_numbers(rows, cells, seed)))}


def quantiles(rows: int, leaves: int, asked: int, seed: int) -> dict:
    edges = np.linspace(0, 4096, leaves + 1)
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    binned = (
        space
        >> dp.t.then_find_bin(edges=edges[1:-1].tolist())
        >> dp.t.then_count_by_categories(list(range(leaves)), null_category=False, TOA="i64")
        >> dp.t.then_b_ary_tree(leaf_count=leaves, branching_factor=16)
        >> dp.m.then_laplace(scale=4.0)
    )
    tidy = dp.t.make_consistent_b_ary_tree(branching_factor=16)
    levels = (np.arange(asked) + 1) / (asked + 1)
    read = dp.t.make_quantiles_from_counts(edges.tolist(), levels.tolist(), F=float)
    noisy = binned(real_numbers(rows, seed))
    found = read([max(count, 0.0) for count in tidy(noisy)[-leaves:]])
    return {"median": found[asked // 2]}


def continual(rows: int, steps: int, seed: int) -> dict:
    """Its tree over the steps' counts, then the running totals of the consistent leaves."""
    tree = (
        counts(steps)
        >> dp.t.then_b_ary_tree(leaf_count=steps, branching_factor=2)
        >> dp.m.then_laplace(scale=11.0)
        >> dp.t.make_consistent_b_ary_tree(branching_factor=2)
    )
    return {"last": float(np.cumsum(tree(whole_numbers(rows, steps, seed))[-steps:])[-1])}


if __name__ == "__main__":
    jobs.serve({"histogram": histogram, "quantiles": quantiles, "continual": continual})
