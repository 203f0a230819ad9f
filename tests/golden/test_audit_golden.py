"""Lower bounds from guesses beside jax-privacy's on the same counts. `python -m bench.golden` regenerates the file."""

import json
from pathlib import Path

import numpy as np
import pytest

from sfumato.audit.models import one_run_tradeoff, two_sided
from sfumato.audit.models.one_run_bound import least_epsilon

ROWS = json.loads((Path(__file__).parent / "audit_bounds.json").read_text())["rows"]
THEIRS = 2e-6  # the width of their search, which may end on either side


def rows(bound: str) -> list[tuple[dict, tuple[int, int, int]]]:
    found = [row for row in ROWS if row["bound"] == bound]
    return [(row, (row["canaries"], row["guesses"], row["correct"])) for row in found]


def test_one_run_bounds_agree():
    assert sum(row["epsilon"] > 0 for row, _ in rows("one run")) > 80
    for row, counts in rows("one run"):
        ours = least_epsilon(*counts, delta=row["delta"], error=row["error"])
        assert ours == pytest.approx(row["epsilon"], abs=THEIRS), row


def test_one_run_bounds_of_gaussian_curves_agree():
    assert sum(row["epsilon"] > 0 for row, _ in rows("one run, curve")) > 60
    for row, counts in rows("one run, curve"):
        mu = one_run_tradeoff.least_mu(*counts, error=row["error"])
        ours = one_run_tradeoff.epsilon_of(mu, row["delta"])
        assert ours == pytest.approx(row["epsilon"], abs=THEIRS, rel=3e-6), row


def test_bounds_from_both_kinds_of_error_agree():
    assert sum(row["epsilon"] > 0 for row, _ in rows("two sided")) > 80
    for row, (canaries, guesses, correct) in rows("two sided"):
        left = canaries - guesses
        inside = np.repeat([1.0, 0.0], [correct, left // 2])
        outside = np.repeat([1.0, 0.0], [guesses - correct, left - left // 2])
        ours = two_sided.bounds(inside, outside, delta=row["delta"], confidence=1 - row["error"], threshold=0.5)
        assert ours.epsilon == pytest.approx(row["epsilon"], abs=1e-9, rel=1e-9), row
