"""autodp's Renyi accountant, timed by its own interpreter (see bench.peers and jobs.py): JSON in, JSON out."""

import jobs
from autodp.calibrator_zoo import ana_gaussian_calibrator, eps_delta_calibrator
from autodp.mechanism_zoo import (
    DiscreteGaussianMechanism,
    ExactGaussianMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    PureDP_Mechanism,
)
from autodp.transformer_zoo import AmplificationBySampling, Composition


def single(*, law: str, **given) -> object:
    if law == "gaussian":
        alone = GaussianMechanism(sigma=given["sigma"])
        rate = given.get("rate", 1.0)
        return AmplificationBySampling()(alone, rate, improved_bound_flag=True) if rate < 1 else alone
    if law == "discrete_gaussian":
        return DiscreteGaussianMechanism(given["sigma"] / given["shift"])
    return LaplaceMechanism(b=given["scale"]) if law == "laplace" else PureDP_Mechanism(given["epsilon"])


def rdp(parts: list, delta: float) -> dict:
    alone = [single(**{name: value for name, value in part.items() if name != "times"}) for part in parts]
    return {"upper": Composition()(alone, [part["times"] for part in parts]).get_approxDP(delta)}


def gaussian_sigma(epsilon: float, delta: float) -> dict:
    return {"sigma": ana_gaussian_calibrator()(ExactGaussianMechanism, epsilon, delta).params["sigma"]}


def calibrate(epsilon: float, delta: float, rate: float, times: int) -> dict:
    def family(sigma: float) -> object:
        each = AmplificationBySampling()(GaussianMechanism(sigma=sigma), rate, improved_bound_flag=True)
        whole = Composition()([each], [times])
        whole.params["sigma"] = sigma
        return whole

    return {"sigma": eps_delta_calibrator()(family, epsilon, delta, [0.3, 10]).params["sigma"]}


if __name__ == "__main__":
    jobs.serve({"rdp": rdp, "gaussian_sigma": gaussian_sigma, "calibrate": calibrate})
