"""The law of the noise is the smaller one, where nothing else depends on it; and whoever wants another says so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato import Budget, Curator, Limits, MemoryLedger, Private, Unit, events, sql
from sfumato.accounting import gdp
from sfumato.audit.conformance import check_plan
from sfumato.cli.work.typed_query import TypedQuery
from sfumato.errors import ArgumentError
from sfumato.noise import Noise, SeededBits
from sfumato.project.plans import QueryForm
from sfumato.query import copies
from sfumato.query.finish import expected
from sfumato.query.plan import Sql
from sfumato.schema import Schema, Table, category, key, real
from sfumato.sources import connect, source
from tests.query.still import answered

COLUMNS = {"patient": key(), "ward": category(["a", "b"]), "cost": real(0, 100, nulls=0), "days": real(0, 30, nulls=0)}
SCHEMA = Schema({"visits": Table(COLUMNS, unit="patient")})
COUNT = "SELECT COUNT(*) AS n FROM visits"
BOTH = "SELECT COUNT(*) AS n, SUM(cost) AS s FROM visits"
EIGHT = "SELECT COUNT(*) AS n, " + ", ".join(f"SUM(cost + {i}) AS s{i}" for i in range(7)) + " FROM visits"
DATA = {
    "visits": {
        "patient": [1, 1, 1, 1, 2, 2, 3, 4], "ward": list("aabbabab"),
        "cost": [90.0, 80, 70, 60, 5, 6, 100, 0], "days": [1.0] * 8,
    }
}  # fmt: skip


def plan(text: str = COUNT, **options: Any) -> Sql:
    made: Any = sql(
        text, SCHEMA, unit=Unit("user:patient"), **{"epsilon": 1, "delta": 1e-6, "limits": Limits(rows=1), **options}
    )
    return made


def test_a_count_takes_the_smaller_noise_and_leaves_delta_alone() -> None:
    small, wide = plan(), plan(noise="gaussian")
    assert small.event == events.Laplace(epsilon=1, relation="add-remove") and small.delta == 0
    assert expected(small, 0.05)["n"] == pytest.approx(3.0, abs=0.01)
    assert isinstance(wide.event, events.Gaussian) and expected(wide, 0.05)["n"] == pytest.approx(8.28, abs=0.01)
    assert small.hash == plan(delta=None).hash == plan(noise="laplace").hash
    assert "delta was not needed" in " ".join(small.explain()) and "delta was" not in " ".join(wide.explain())


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (COUNT, {"noise": "gaussian"}),
        (EIGHT, {}),
        ("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", {}),
        (COUNT, {"epsilon": None, "rho": 0.1}),
        (BOTH, {"limits": None}),  # what limits cut would be measured with more noise
    ],
)
def test_elsewhere_noise_is_what_the_budget_says(text: str, options: dict[str, Any]) -> None:
    assert plan(text, **options).blur.kind == "gaussian"


@pytest.mark.parametrize("epsilon", [0.1, 2])
@pytest.mark.parametrize(
    "text",
    [
        COUNT, BOTH, EIGHT, "SELECT COUNT(DISTINCT patient) AS p, AVG(cost) AS m FROM visits",
        "SELECT MEDIAN(cost) AS q, COUNT(*) AS n FROM visits", "SELECT COUNT(DISTINCT ward) AS d FROM visits",
    ],
)  # fmt: skip
def test_no_number_is_wider_than_with_gaussian_noise(text: str, epsilon: float) -> None:
    """Whichever is chosen; and where Gaussian noise stays, some number would be."""
    chosen = plan(text, epsilon=epsilon)
    laplace, gaussian = (expected(plan(text, epsilon=epsilon, noise=law), 0.05) for law in ("laplace", "gaussian"))
    smaller = all(laplace[name] <= width for name, width in gaussian.items())
    assert chosen.blur.kind == ("laplace" if smaller else "gaussian")


def test_limits_weigh_no_more_down() -> None:
    """Without noise: what units count for is the same for one number, and at least as much for several."""
    for text in (COUNT, "SELECT SUM(cost) AS s FROM visits", BOTH):
        limits = Limits(rows=2, reach={"s": 120} if "SUM" in text else {})
        one, two = (answered(plan(text, limits=limits, noise=law), DATA) for law in ("laplace", "gaussian"))
        for name in one.numbers:
            if text == BOTH:
                assert one[name][0] >= two[name][0] - 0.01
            else:
                assert one[name][0] == pytest.approx(two[name][0], abs=0.05)


def test_what_was_paid_for_before_is_still_an_answer() -> None:
    """Earlier versions took Gaussian noise for this budget."""
    private = Private("visits", DATA["visits"], unit=Unit("user:patient"), schema=SCHEMA)
    curator = Curator(private, MemoryLedger({"visits": Budget(epsilon=10, delta=1e-3)}))
    first = curator.release(plan(noise="gaussian"))
    again = curator.release(plan())
    assert again.receipt == first.receipt
    assert curator.release(plan(noise="laplace")).receipt != first.receipt  # that is another question of the price
    quote = str(curator.quote(plan(BOTH)))
    assert "delta was not needed: Laplace noise is smaller here" in quote and "at delta = 1e-06" not in quote


def test_for_an_accuracy_the_cheaper_law_is_taken() -> None:
    small = plan(epsilon=None, accuracy={"n": 5})
    wide = plan(epsilon=None, accuracy={"n": 5}, noise="gaussian")
    assert small.blur.kind == "laplace" and wide.rho is not None
    assert small.epsilon < gdp.least_epsilon(1 / wide.blur.amount**2, wide.delta)
    many = {f"s{i}": 4000 for i in range(7)}
    assert plan(EIGHT, epsilon=None, accuracy=many).blur.kind == "gaussian"


def test_it_is_said_in_comments_in_the_shell_and_in_files() -> None:
    assert plan(f"-- sfumato: noise=gaussian\n{COUNT}").blur.kind == "gaussian"
    with pytest.raises(ArgumentError, match="noise is given twice"):
        plan(f"-- sfumato: noise=gaussian\n{COUNT}", noise="laplace")
    assert TypedQuery(sql=COUNT, noise="gaussian").options() == {"noise": "gaussian"}
    form = QueryForm.model_validate({"name": "count", "sql": COUNT, "noise": "gaussian"})
    assert form.options() == {"noise": "gaussian"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise": "cauchy"}, "give 'gaussian' or 'laplace'"),
        ({"noise": "gaussian", "delta": None}, "takes a delta beside epsilon, or rho"),
        ({"noise": "laplace", "epsilon": None, "rho": 0.1}, "has no rho"),
    ],
)
def test_a_law_that_the_budget_does_not_buy_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        plan(**options)


def test_groups_that_the_data_choose_take_a_delta() -> None:
    drugs = Schema({"visits": Table({"patient": key(), "drug": key()}, unit="patient")})
    with pytest.raises(ArgumentError, match="delta is missing"):
        sql("SELECT drug, COUNT(*) AS n FROM visits GROUP BY drug", drugs, unit=Unit("user:patient"), epsilon=1,
            delta=1e-6, noise="laplace", limits={"rows": 1})  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_single_rows_hold_every_promise(law: Any) -> None:
    text = "SELECT COUNT(*) AS n, SUM(c) AS s FROM (SELECT patient, MAX(cost) AS c FROM visits GROUP BY patient)"
    check_plan(plan(text, noise=law, limits=Limits(rows=1, reach={"s": 40})))


def test_error_bars_of_the_smaller_noise_hold() -> None:
    """Nobody has more than four of the eight rows."""
    made = plan(limits=Limits(rows=4))
    assert made.fixed is not None
    opened = connect({"visits": (SCHEMA.table("visits"), source(DATA["visits"]))}, threads=1)
    runs = copies.answers(made.front, made.fixed, opened, Noise(SeededBits(3)), 4000)
    opened.close()
    assert np.mean(np.abs(runs.cells[:, 0] - 8) <= expected(made, 0.05)["n"]) == pytest.approx(0.95, abs=0.015)
