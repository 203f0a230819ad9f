"""diffprivlib's histogram and percentiles, timed by diffprivlib's own interpreter (see bench.peers): JSON in, JSON out.

It has no continual count. Percentiles are released one by one, each by an exponential mechanism of its own.
"""

import jobs
import numpy as np
from diffprivlib import tools
from samples import real_numbers, whole_numbers


def histogram(rows: int, cells: int, seed: int) -> dict:
    found, _ = tools.histogram(whole_numbers(rows, cells, seed), epsilon=1.0, bins=cells, range=(0, cells))
    return {"cells": len(found)}


def quantiles(rows: int, leaves: int, asked: int, seed: int) -> dict:
    levels = (np.arange(asked) + 1) / (asked + 1)
    found = tools.quantile(real_numbers(rows, seed), levels, epsilon=1.0, bounds=(0, 4096))
    return {"median": float(np.atleast_1d(found)[asked // 2])}


if __name__ == "__main__":
    jobs.serve({"histogram": histogram, "quantiles": quantiles})
