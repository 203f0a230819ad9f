"""Opacus' accountants, timed by its own interpreter (see bench.peers and jobs.py): JSON in, JSON out.

They know one mechanism, the Poisson-sampled Gaussian. "gdp" is the central limit: an estimate, not a bound.
"""

import jobs
from opacus.accountants import create_accountant
from opacus.accountants.utils import get_noise_multiplier


def history(parts: list) -> list:
    if any(part["law"] != "gaussian" for part in parts):
        raise ValueError("Gaussians only")
    return [(part["sigma"], part.get("rate", 1.0), part["times"]) for part in parts]


def spent(accountant: str, parts: list, delta: float) -> dict:
    whole = create_accountant(mechanism=accountant)
    whole.history = history(parts)
    if accountant == "rdp":
        epsilon, order = whole.get_privacy_spent(delta=delta)
        return {"upper": epsilon, "order": order}
    return {"upper": whole.get_epsilon(delta=delta)}


def calibrate(accountant: str, epsilon: float, delta: float, rate: float, times: int) -> dict:
    target = {"target_epsilon": epsilon, "target_delta": delta, "sample_rate": rate, "steps": times}
    return {"sigma": get_noise_multiplier(accountant=accountant, **target)}


if __name__ == "__main__":
    jobs.serve({"spent": spent, "calibrate": calibrate})
