"""A plan runs many times at once as it runs once: the same law, from the same code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato import Unit, bounds
from sfumato.audit import stages
from sfumato.mechanisms import Exponential, Gaussian, Geometric, Laplace, PermuteAndFlip, SparseVector
from sfumato.noise import Noise, SeededBits
from sfumato.plan import Plan, Run
from sfumato.runs import Alike, sizes
from tests.rules.test_kind_rules import EXAMPLES

IN_BULK = {
    "Laplace": "steady", "Gaussian": "steady", "Geometric": "steady", "PrivateBounds": "steady", "Sql": "steady",
    "SqlWorkload": "steady",
    "SparseVector": "fresh",
}  # fmt: skip
ROW = Unit()
WARDS = ("east", "north", "west")


def run(seed: int) -> Run:
    return Run(Noise(SeededBits(seed)))


def data(plan: Plan[Any, Any]) -> Any:
    raw = {"ward": ["east", "east", "west"], "age": [3.0, 9.0, 70.0], "present": [True] * 3}
    return stages.data_for(plan, stages.table_for(plan), raw)


@pytest.mark.parametrize("cls", EXAMPLES, ids=lambda cls: cls.__name__)
def test_a_plan_says_whether_many_runs_cost_little(cls: type[Plan[Any, Any]]) -> None:
    assert EXAMPLES[cls]().bulk == IN_BULK.get(cls.__name__, "no")


PLANS: tuple[Plan[Any, Any], ...] = (
    Laplace(query=bounds.histogram("ward", WARDS, ROW), epsilon=1),
    Gaussian(query=bounds.clipped_sum("age", 0, 120, ROW), rho=1),
    Geometric(query=bounds.count(ROW), epsilon=1),
)


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: type(plan).__name__)
def test_one_of_many_is_the_run_itself(plan: Plan[Any, Any]) -> None:
    rows = data(plan)
    assert plan._runs(rows, run(3), 1)[0].tolist() == plan._run(rows, run(3)).tolist()
    many = plan._runs(rows, run(3), 500)
    assert many.shape == (500, len(plan._run(rows, run(3)))) and len(np.unique(many, axis=0)) > 5
    assert np.median(many, axis=0) == pytest.approx(plan._run(rows, Run(_still())), abs=40)


def _still() -> Noise:
    from sfumato.audit.silent import Silent

    return Silent(SeededBits(0))


class _Otherwise(Laplace):
    """Its own code runs, once for each run: nothing that is inherited stands in for it."""

    def _run(self, data: Any, run: Run) -> Any:
        return super()._run(data, run) + 1000


class _Begins(SparseVector):
    def _begin(self, run: Run) -> Any:
        return super()._begin(run)


def test_a_plan_that_runs_otherwise_is_run_one_by_one() -> None:
    plan = _Otherwise(query=bounds.count(ROW), epsilon=1)
    found = plan._runs(data(plan), run(1), 4)
    assert plan.bulk == "no" and isinstance(found, list) and len(found) == 4
    assert all(each[0] > 900 for each in found)
    assert _Begins(epsilon=1, protects=ROW, questions=(bounds.count(ROW),)).bulk == "no"


@pytest.mark.parametrize("kind", [Exponential, PermuteAndFlip])
def test_by_default_it_is_a_loop(kind: Any) -> None:
    plan = kind(query=bounds.votes("ward", WARDS, ROW), epsilon=1)
    found = plan._runs(data(plan), run(1), 40)
    assert isinstance(found, list) and set(found) <= {0, 1, 2} and len(set(found)) > 1


def test_a_sparse_vector_tells_as_often_as_one_by_one() -> None:
    plan = SparseVector(epsilon=1, protects=ROW, threshold=2, questions=(bounds.count(ROW),))
    rows = data(plan)
    at_once = plan._runs(rows, run(1), 3000)
    alone = [plan._run(rows, run(seed))[0]["above"] for seed in range(300)]
    assert at_once.shape == (3000, 1)
    assert np.mean(at_once) == pytest.approx(np.mean(alone), abs=0.1)


def test_blocks_add_up_and_fit_into_memory() -> None:
    assert list(sizes(0)) == [] and list(sizes(45_000)) == [20_000, 20_000, 5_000]
    assert max(sizes(10_000, 1_000_000)) == 4 and sum(sizes(10_000, 1_000_000)) == 10_000
    assert list(sizes(2, 10**9)) == [1, 1]


def test_outputs_that_are_alike_are_joined_and_sliced() -> None:
    one, two = (Alike((("a",),), np.full((2, 1), value)) for value in (1.0, 2.0))
    both = Alike.joined([one, two])
    assert len(both) == 4 and [row.tolist() for row in both] == [[1.0], [1.0], [2.0], [2.0]]
    assert both[1:3].cells.tolist() == [[1.0], [2.0]] and both[3].tolist() == [2.0]
