"""jax-privacy's lower bounds from canary scores, timed by its own interpreter (see bench.peers and jobs.py).

Counts are handed over as scores of 1 and 0 that are cut at 1/2: its public methods take scores. They ask for a delta
above 0; the least one stands in for none.
"""

import jobs
import numpy as np
from jax_privacy.auditing import Bonferroni, CanaryScoreAuditor, Explicit, Split
from samples import canary_scores

LEAST = 1e-300


def counts(bound: str, canaries: int, guesses: int, correct: int, delta: float, error: float) -> dict:
    """`guesses` of the canaries are guessed to be in, and `correct` of them are."""
    inside = np.append(np.ones(correct), np.zeros((canaries - guesses) // 2))
    outside = np.append(np.ones(guesses - correct), np.zeros(canaries - guesses - (canaries - guesses) // 2))
    auditor = CanaryScoreAuditor(inside, outside)
    return {"epsilon": _bound(auditor, bound, delta, error, Explicit(0.5))}


def scores(
    bound: str, canaries: int, apart: float, seed: int, delta: float, error: float, threshold: float | None, way: str
) -> dict:
    values, coins = canary_scores(canaries, apart, seed)
    auditor = CanaryScoreAuditor(values[coins], values[~coins])
    ways = {"all": Bonferroni(), "half": Split(seed=seed), "given": Explicit(threshold)}
    return {"epsilon": _bound(auditor, bound, delta, error, ways[way])}


def _bound(auditor: CanaryScoreAuditor, bound: str, delta: float, error: float, strategy: object) -> float:
    if bound == "two sided":
        return auditor.epsilon_clopper_pearson(error, delta, one_sided=False, threshold_strategy=strategy)
    method = {"one run": auditor.epsilon_one_run, "one run, curve": auditor.epsilon_one_run_fdp}[bound]
    return method(error, max(delta, LEAST), threshold_strategy=strategy)


if __name__ == "__main__":
    jobs.serve({"counts": counts, "scores": scores})
