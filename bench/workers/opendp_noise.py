"""OpenDP's samplers, timed by OpenDP's own interpreter (see bench.peers): JSON in, JSON out.

OpenDP has no rounded laws; over integers its Laplace and Gaussian are the discrete laws, so those stand beside both.
A whole numpy vector per call is its fastest way in: a list costs one more conversion.
"""

import json
import sys
import time

import numpy as np
import opendp.prelude as dp

dp.enable_features("contrib")


def vector_noise(law: str, scale: float) -> dp.Measurement:
    """The measurement that adds one independent draw to every entry of an integer vector."""
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    if law.endswith("laplace"):
        return dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=scale)
    return dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=scale)


def draw(law: str, scale: float, draws: int, budget: float) -> dict:
    """CPU seconds per draw; the budget is for peers that draw one by one and can stop on the way."""
    zeros = np.zeros(draws, dtype=np.int64)
    start = time.process_time()
    vector_noise(law, scale)(zeros)
    return {"seconds": (time.process_time() - start) / draws, "draws": draws, "unfinished": False}


def select(noise: str, candidates: int, seed: int) -> dict:
    """OpenDP picks the noise by the privacy measure: exponential noise under epsilon, Gumbel noise under rho."""
    measure = {"exponential": dp.max_divergence, "gumbel": dp.zero_concentrated_divergence}[noise]
    scores = np.random.default_rng(seed).normal(size=candidates)
    start = time.process_time()
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False))
    dp.m.make_noisy_max(domain, dp.linf_distance(T=float), measure(), scale=1.0)(scores)
    return {"seconds": time.process_time() - start}


if __name__ == "__main__":
    payload = json.load(sys.stdin)
    answers = {
        "draws": [draw(**case) for case in payload["draws"]],
        "selections": [select(**case) for case in payload["selections"]],
    }
    json.dump(answers, sys.stdout)
