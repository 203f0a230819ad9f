"""dp-accounting's accountants, timed by its own interpreter (see bench.peers and jobs.py): JSON in, JSON out.

Discrete mechanisms are put on the lattice by connect-the-dots too, the tightest it has, although its default for them
is rounding up. Its lower bounds are always rounded down.
"""

import math

import dp_accounting as dp
import jobs
from dp_accounting.pld import accountant, common
from dp_accounting.pld import privacy_loss_distribution as losses

REPLACE_ONE = dp.NeighboringRelation.REPLACE_ONE


def single(step: float, upper: bool, *, law: str, **given) -> losses.PrivacyLossDistribution:
    side = {"value_discretization_interval": step, "pessimistic_estimate": upper}
    dots = {**side, "use_connect_dots": upper}
    rate = {"sampling_prob": given.get("rate", 1.0)}
    if law == "gaussian":
        return losses.from_gaussian_mechanism(given["sigma"], **dots, **rate)
    if law == "laplace":
        return losses.from_laplace_mechanism(given["scale"], **dots, **rate)
    if law == "discrete_laplace":
        decay = given["epsilon"] / given["shift"]
        return losses.from_discrete_laplace_mechanism(decay, sensitivity=given["shift"], **dots, **rate)
    if law == "discrete_gaussian":
        return losses.from_discrete_gaussian_mechanism(given["sigma"], sensitivity=given["shift"], **dots, **rate)
    if law == "mixture":
        return losses.from_mixture_gaussian_mechanism(1.0, given["shifts"], given["weights"], **dots)
    if law == "randomized_response":
        categories = given["categories"]
        exchange = categories / (math.exp(given["epsilon"]) + categories - 1)
        return losses.from_randomized_response(exchange, categories, neighboring_relation=REPLACE_ONE, **side)
    guarantee = common.DifferentialPrivacyParameters(given["epsilon"], given.get("delta", 0.0))
    return losses.from_privacy_parameters(guarantee, value_discretization_interval=step)


def composed(parts: list, step: float, upper: bool) -> losses.PrivacyLossDistribution:
    whole = None
    for part in parts:
        times = part["times"]
        one = single(step, upper, **{name: value for name, value in part.items() if name != "times"})
        several = one if times == 1 else one.self_compose(times)
        whole = several if whole is None else whole.compose(several)
    return whole


def pld(parts: list, delta: float, step: float, lower: bool = False) -> dict:
    found = {"upper": composed(parts, step, True).get_epsilon_for_delta(delta)}
    return found | {"lower": composed(parts, step, False).get_epsilon_for_delta(delta)} if lower else found


def rdp(parts: list, delta: float) -> dict:
    whole = dp.rdp.RdpAccountant()
    for part in parts:
        if part["law"] == "gaussian":
            event = dp.GaussianDpEvent(part["sigma"])
        elif part["law"] == "discrete_gaussian":
            event = dp.ZCDpEvent(part["shift"] ** 2 / (2 * part["sigma"] ** 2))
        else:  # a pure guarantee as the Laplace noise that gives it: the table of peers does the same
            event = dp.LaplaceDpEvent(part["scale"] if part["law"] == "laplace" else 1 / part["epsilon"])
        if part.get("rate", 1.0) < 1:
            event = dp.PoissonSampledDpEvent(part["rate"], event)
        whole.compose(event, part["times"])
    epsilon, order = whole.get_epsilon_and_optimal_order(delta)
    return {"upper": epsilon, "order": order}


def optimal_composition(epsilon: float, delta_each: float, times: int, delta: float) -> dict:
    guarantee = common.DifferentialPrivacyParameters(epsilon, delta_each)
    return {"upper": accountant.advanced_composition(guarantee, times, delta)}


def gaussian_sigma(epsilon: float, delta: float) -> dict:
    return {"sigma": dp.get_sigma_gaussian(epsilon, delta)}


def calibrate(epsilon: float, delta: float, rate: float, times: int, tolerance: float | None) -> dict:
    def event(sigma: float) -> dp.DpEvent:
        return dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(sigma)), times)

    return {"sigma": dp.calibrate_dp_mechanism(dp.pld.PLDAccountant, event, epsilon, delta, tol=tolerance)}


def smallest(law: str, epsilon: float, delta: float, times: int, rate: float = 1.0, sensitivity: float = 1) -> dict:
    goal = common.DifferentialPrivacyParameters(epsilon, delta)
    if law == "laplace":
        return {"parameter": accountant.get_smallest_laplace_noise(goal, times, sensitivity)}
    if law == "discrete_laplace":
        return {"parameter": accountant.get_smallest_discrete_laplace_noise(goal, times, sensitivity)}
    if law == "gaussian":
        return {"parameter": accountant.get_smallest_gaussian_noise(goal, times, sensitivity)}
    return {"parameter": accountant.get_smallest_subsampled_gaussian_noise(goal, times, sensitivity, rate)}


if __name__ == "__main__":
    jobs.serve(
        {
            "pld": pld,
            "rdp": rdp,
            "optimal_composition": optimal_composition,
            "gaussian_sigma": gaussian_sigma,
            "calibrate": calibrate,
            "smallest": smallest,
        }
    )
