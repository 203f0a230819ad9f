"""prv-accountant, timed by its own interpreter (see bench.peers and jobs.py): JSON in, JSON out.

It has no discrete laws: for the discrete Gaussian the continuous one stands in.
"""

import jobs
from prv_accountant import (
    GaussianMechanism,
    LaplaceMechanism,
    PoissonSubsampledGaussianMechanism,
    PRVAccountant,
    PureDPMechanism,
)
from prv_accountant.dpsgd import find_noise_multiplier


def single(*, law: str, **given) -> object:
    if law in ("gaussian", "discrete_gaussian"):
        sigma = given["sigma"] / given.get("shift", 1)
        rate = given.get("rate", 1.0)
        if rate == 1:
            return GaussianMechanism(sigma)
        return PoissonSubsampledGaussianMechanism(noise_multiplier=sigma, sampling_probability=rate)
    if law == "laplace":
        return LaplaceMechanism(mu=1 / given["scale"])
    return PureDPMechanism(given["epsilon"])


def prv(parts: list, delta: float, error: float) -> dict:
    times = [part["times"] for part in parts]
    alone = [single(**{name: value for name, value in part.items() if name != "times"}) for part in parts]
    whole = PRVAccountant(prvs=alone, max_self_compositions=times, eps_error=error, delta_error=delta / 1000)
    lower, estimate, upper = whole.compute_epsilon(delta=delta, num_self_compositions=times)
    return {"lower": lower, "estimate": estimate, "upper": upper}


def calibrate(epsilon: float, delta: float, rate: float, times: int, error: float) -> dict:
    return {"sigma": find_noise_multiplier(rate, times, epsilon, delta, eps_error=error)}


if __name__ == "__main__":
    jobs.serve({"prv": prv, "calibrate": calibrate})
