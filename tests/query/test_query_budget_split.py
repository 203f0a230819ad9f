"""The budget of several aggregates is split so that their errors are least together; what was split evenly stays so."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato import Budget, Curator, Limits, MemoryLedger, Private, Unit, record, sql
from sfumato.query.aggregates import Statistic
from sfumato.query.plan import Sql
from sfumato.query.released import figures
from sfumato.schema import Schema, Table, category, key, real
from tests.query.still import answered, raw_of

COLUMNS = {"patient": key(), "ward": category(["a", "b"]), "drug": key()}
NUMBERS = {"x": real(0, 100, nulls=0), "y": real(0, 10, nulls=0)}
SCHEMA = Schema({"visits": Table({**COLUMNS, **NUMBERS}, unit="patient")})
LAWS = ("gaussian", "laplace")


def plan(text: str, **options: Any) -> Sql:
    fields: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "limits": Limits(rows=1), "noise": "gaussian", **options}
    made: Any = sql(text, SCHEMA, unit=Unit("user:patient"), **fields)
    return made


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    draw = np.random.default_rng(2)
    x = draw.gamma(2, 12, 4000).clip(0, 100)
    return {"visits": {"patient": np.arange(4000), "ward": ["a"] * 4000, "drug": ["d"] * 4000, "x": x,
                       "y": (x / 20 + draw.uniform(0, 5, 4000)).clip(0, 10)}}  # fmt: skip


def errors(made: Sql, of: dict[str, Any]) -> np.ndarray[Any, Any]:
    answer = answered(made, of)
    return np.array([answer.std[name][0] for name in answer.numbers])


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(
    ("columns", "at_most"), [("AVG(x)", 1.02), ("VARIANCE(x)", 0.99), ("COVAR_POP(x, y)", 0.93), ("CORR(x, y)", 0.93)]
)
def test_less_noise_for_the_same_budget(data: dict[str, Any], law: str, columns: str, at_most: float) -> None:
    made = plan(f"SELECT {columns} FROM visits", noise=law)
    even = replace(made, shares={})
    assert made.shares and made.event == even.event
    assert np.max(errors(made, data) / errors(even, data)) < at_most


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) AS n, SUM(x) AS s FROM visits",
        "SELECT COUNT(*) AS n, AVG(x) AS m FROM visits",  # a hundredth better, which is not worth another plan
        "SELECT drug, COUNT(*) AS n, COUNT(DISTINCT patient) AS p FROM visits GROUP BY drug",
        "SELECT MEDIAN(x) AS q, COUNT(*) AS n FROM visits",
    ],
)
def test_where_an_even_split_does_it_stays(text: str) -> None:
    assert not plan(text).shares


def test_who_says_how_to_split_is_heard() -> None:
    made = plan("SELECT AVG(x) AS m, VARIANCE(y) AS v FROM visits", shares={"m": 3})
    assert set(made.shares.values()) == {Fraction(3)}


def test_votes_keep_their_part() -> None:
    made = plan("SELECT drug, CORR(x, y) AS r FROM visits GROUP BY drug")
    assert made.fixed is not None and made.shares and "units" not in made.shares
    shares = made.fixed.shares
    assert shares["units"] / shares['sum of "visits"."x" - 50'] == 2 / made.shares['sum of "visits"."x" - 50']
    assert sum(shares.values()) == 1


def test_a_column_that_is_called_like_a_question_gets_nobodys_share(data: dict[str, Any]) -> None:
    """What is shown under which name is no part of the plan, nor of its noise."""
    one, two = (
        plan("SELECT AVG(x) AS m, VARIANCE(y) AS v FROM visits"),
        plan("SELECT AVG(x) AS rows, VARIANCE(y) AS units FROM visits"),
    )
    assert one.hash == two.hash and one.fixed is not None and two.fixed is not None
    assert one.fixed.shares == two.fixed.shares
    raw = raw_of(one, data)
    assert one.finish(raw).std["m"] == two.finish(raw).std["rows"]
    again = record.parse(record.canonical(one))
    assert again == one and again.fixed.shares == one.fixed.shares


def test_stored_plans_are_split_as_they_were(data: dict[str, Any]) -> None:
    """A plan says how it is split: without a word, evenly. Their answers are answers to the same question."""
    text = "SELECT AVG(x) AS m FROM visits"
    made = plan(text)
    old = replace(made, shares={})
    assert old.fixed is not None and set(old.fixed.shares.values()) == {Fraction(1, 2)}
    private = Private("visits", data["visits"], unit=Unit("user:patient"), schema=SCHEMA)
    curator = Curator(private, MemoryLedger({"visits": Budget(epsilon=10, delta=1e-3)}))
    first = curator.release(old)
    assert curator.release(plan(text)).receipt == first.receipt
    assert curator.release(plan(text, epsilon=2)).receipt != first.receipt


@pytest.mark.parametrize("columns", ["AVG(x)", "VARIANCE(x)", "STDDEV_POP(x)", "COVAR_POP(x, y)", "COVAR_SAMP(x, y)"])
def test_pulls_are_the_squares_of_slopes(columns: str) -> None:
    """On average over means, evenly between the bounds, where rows lie at their mean."""
    (each,) = plan(f"SELECT {columns} FROM visits").front.aggregates.values()
    assert isinstance(each, Statistic)
    many, draw, last = 1e9, np.random.default_rng(1), each.measures[-1]
    ends = {m.name: (float(m.lower), float(m.upper)) for m in each.measures}
    means = {m.name: draw.uniform(*ends[m.name], 20_000) for m in each.measures if m.name.startswith('sum of "')}
    parts = list(means.values())
    square = parts[0] * parts[-1] if columns.startswith("COVAR") else parts[0] ** 2 + 1e-9
    rest = {m.name: square for m in each.measures if m.name.startswith("sum of (")}
    values = {m.name: many * (means | rest).get(m.name, np.ones(20_000)) for m in each.measures}
    found = each.formula({name: figures.measured(name, value) for name, value in values.items()})
    sizes = {m.name: float(m.largest) * found.slopes[m.name] for m in each.measures}
    for measure, pull in zip(each.measures, each.pulls, strict=True):
        with np.errstate(all="ignore"):
            ratio = (sizes[measure.name] / sizes[last.name]) ** 2
        assert np.nanmean(ratio[np.isfinite(ratio)]) == pytest.approx(float(pull), rel=0.05)
