"""diffprivlib's samplers, timed by diffprivlib's own interpreter (see bench.peers): JSON in, JSON out.

diffprivlib draws one value per call. The Gaussians get their scale directly instead of through epsilon and delta:
calibrating the discrete one takes longer than drawing from it, fails for a large sigma, and is no part of the sampler.
"""

import json
import signal
import sys
import time

import numpy as np
from diffprivlib.mechanisms import Exponential, Gaussian, GaussianDiscrete, Geometric, Laplace, PermuteAndFlip
from diffprivlib.mechanisms.base import DPMechanism


class OutOfTimeError(Exception):
    """The time is up, perhaps in the middle of a draw."""


def mechanism(law: str, scale: float) -> DPMechanism:
    """The sampler nearest to the law; of the rounded laws there are only the unrounded floats."""
    if law == "discrete_laplace":
        return Geometric(epsilon=1 / scale, sensitivity=1)
    if law == "rounded_laplace":
        return Laplace(epsilon=1 / scale, sensitivity=1)
    gaussian = (GaussianDiscrete if law == "discrete_gaussian" else Gaussian)(epsilon=0.5, delta=0.1, sensitivity=1)
    gaussian._scale = scale
    return gaussian


def draw(law: str, scale: float, draws: int, budget: float) -> dict:
    """CPU seconds per draw, stopped within a draw if need be: the discrete Gaussian's takes time O(sigma).

    The budget is in seconds on the wall: a timer on the CPU would make Linux count CPU time in whole ticks.
    """
    done = 0
    start = time.process_time()
    signal.setitimer(signal.ITIMER_REAL, budget)
    try:
        sampler = mechanism(law, scale)
        while done < draws:
            sampler.randomise(0)
            done += 1
    except OutOfTimeError:
        pass
    signal.setitimer(signal.ITIMER_REAL, 0)
    spent = time.process_time() - start
    return {"seconds": spent / max(done, 1), "draws": done, "unfinished": done == 0}


def select(noise: str, candidates: int, seed: int) -> dict:
    selection = {"gumbel": Exponential, "exponential": PermuteAndFlip}[noise]
    scores = np.random.default_rng(seed).normal(size=candidates).tolist()
    start = time.process_time()
    selection(epsilon=2.0, sensitivity=1.0, utility=scores).randomise()
    return {"seconds": time.process_time() - start}


def out_of_time(*_: object) -> None:
    raise OutOfTimeError


if __name__ == "__main__":
    signal.signal(signal.SIGALRM, out_of_time)
    payload = json.load(sys.stdin)
    answers = {
        "draws": [draw(**case) for case in payload["draws"]],
        "selections": [select(**case) for case in payload["selections"]],
    }
    json.dump(answers, sys.stdout)
