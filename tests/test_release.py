"""What leaves the house: values, error bars, words."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato import Budget, Curator, MemoryLedger, Private, Schema, Unit, bounds, partition, repeat, reserve, sequence
from sfumato import mechanisms as m
from sfumato.errors import ArgumentError
from sfumato.plan import Plan, Run
from sfumato.release import Release
from sfumato.schema import category, flag, real
from tests.helpers import laplace

UNIT = Unit()
SCHEMA = Schema.of({"<b>w": category(["<i>", "a&b"], constant=True)}, x=real(0, 10), on=flag(), rows=3)
DATA = {"<b>w": ["<i>", "a&b", "<i>"], "x": [1.0, 2.0, 3.0], "on": [True, False, None]}


def curator(budget: Budget | None = None) -> Curator:
    ledger = MemoryLedger({"d": budget or Budget(epsilon=10)})
    return Curator(Private("d", DATA, unit=UNIT, schema=SCHEMA), ledger)


def histogram(epsilon: Any = 1) -> m.Laplace:
    return m.Laplace(query=bounds.histogram("<b>w", ["<i>", "a&b"], UNIT), epsilon=epsilon)


def total(run: Run) -> Any:
    return {"n": run.release(laplace(0.5)), "list": [1, 2.5, None, True], "text": "<script>"}


PLANS: list[tuple[Plan[Any, Any], Budget]] = [
    (laplace(1), Budget(epsilon=1)),
    (histogram(), Budget(epsilon=1)),
    (m.Laplace(query=bounds.mean("x", 0, 10, UNIT), epsilon=1), Budget(epsilon=1)),
    (m.Gaussian(query=bounds.count(UNIT), epsilon=1, delta=1e-6), Budget(epsilon=2, delta=1e-5)),
    (m.Gaussian(query=bounds.count(UNIT), rho=0.1), Budget(rho=1)),
    (m.Gaussian(query=bounds.count(UNIT), multiplier=3), Budget(rho=1)),
    (m.Exponential(query=bounds.votes("<b>w", ["<i>", "a&b"], UNIT), epsilon=1), Budget(epsilon=1)),
    (m.PermuteAndFlip(query=bounds.votes("on", [True, False], UNIT), epsilon=1), Budget(epsilon=1)),
    (sequence(n=laplace(1), h=histogram()), Budget(epsilon=2)),
    (repeat(laplace(0.1), 30), Budget(epsilon=3)),
    (partition("<b>w", ["<i>", "a&b"], laplace(1)), Budget(epsilon=1)),
    (reserve(total, unit=UNIT, budget=Budget(epsilon=1)), Budget(epsilon=1)),
    (reserve(total, unit=UNIT, budget=Budget(rho=0.5)), Budget(rho=1)),
    (sequence(g=m.Gaussian(query=bounds.count(UNIT), rho=0.1), n=laplace(0.1)), Budget(rho=1)),
]


@pytest.mark.parametrize(("plan", "budget"), PLANS, ids=lambda v: type(v).__name__)
def test_every_release_and_quote_can_be_shown(plan: Plan[Any, Any], budget: Budget) -> None:
    asked = curator(budget)
    quoted = asked.quote(plan)
    assert quoted.affordable and "fits the budget" in str(quoted) and "price" in str(quoted)
    for released in (asked.rehearse(plan), asked.release(plan)):
        text, page = str(released), released._repr_html_()
        assert text == repr(released) and "hides one row" in text
        assert "<table " in page and page.count("<tr>") == page.count("</tr>")
        for raw in ("<i>", "<b>", "<script>", "a&b"):
            assert raw not in page
        assert released.explain().startswith("1. ")
        assert released.value is not None and list(released.rows())
    assert "does not fit" not in str(quoted) and "Quote: fits the budget" in quoted._repr_html_()


def test_a_count_prints_with_its_error_bar_price_and_unit() -> None:
    released = Release(laplace(0.5), np.array([1234.5]), None)
    assert str(released) == (
        "1,234.50  ± 5.99\n(rehearsed on made-up rows; epsilon = 0.5; hides one row, present or absent; ± at 95 %)"
    )
    assert released.error() == pytest.approx(2 * np.log(20), abs=0.01)
    assert released.error(0.5) < released.error(0.05) < released.error(0.001)


def test_long_tables_are_cut_and_say_so() -> None:
    plan = repeat(laplace(0.1), 30)
    released = Release(plan, tuple(np.array([float(i)]) for i in range(30)), None)
    assert "... and 10 more" in str(released) and len(released.rows()) == 30
    assert released.rows()[3][0] == "[3]" or "[3]" in released.rows()[3][0]


def test_nested_values_keep_their_names() -> None:
    plan = sequence(n=laplace(1), h=histogram())
    released = Release(plan, {"n": np.array([1.0]), "h": np.array([2.0, 3.0])}, None)
    assert [name for name, _, _ in released.rows()] == ["n", "h / <i>", "h / a&b"]
    assert all(bar.startswith("± ") for _, _, bar in released.rows())


def test_a_winner_prints_with_what_its_error_bar_means() -> None:
    plan = m.Exponential(query=bounds.votes("on", [True, False], UNIT), epsilon=1)
    assert Release(plan, 0, None).rows() == [("", "True", "scores within 3.69 of the best")]


def test_the_explanation_gives_the_numbers_used() -> None:
    text = curator().release(histogram(0.5)).explain()
    assert "at most 1 (L1), 1 (L2)" in text and "epsilon = 0.5" in text and "exact noise, plan" in text
    assert "do not cover values clamped to bounds" in text
    assert "made-up rows, free" in curator().rehearse(laplace(1)).explain()


def test_quotes_give_price_and_error_before_anything_runs() -> None:
    quoted = curator().quote(laplace(0.5))
    assert quoted.epsilon == 0.5 and quoted.delta == 0 and quoted.error() == pytest.approx(5.99, abs=0.01)
    assert quoted.error(0.5) < quoted.error(0.05)  # type: ignore[operator]
    told = "d: 0 of 10 epsilon spent; this one makes it 0.5; room for about 19 more like it"
    assert told in str(quoted) and "± at" not in str(quoted)
    assert curator().quote(m.Laplace(query=bounds.mean("x", 0, 10, UNIT), epsilon=1)).error() is None
    poor = curator(Budget(epsilon=0.1)).quote(laplace(0.5))
    assert not poor.affordable and "does not fit the budget" in str(poor)
    with pytest.raises(ArgumentError, match="alpha"):
        quoted.error(0.0)


def test_the_price_of_a_rho_plan_is_told_in_rho() -> None:
    plan = m.Gaussian(query=bounds.count(UNIT), rho=Fraction(1, 8))
    assert "rho = 0.125" in str(Release(plan, np.array([1.0]), None))


def test_a_value_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Finishing may be long: a table of many groups, a model."""
    calls: list[Any] = []
    finish = m.Laplace.finish

    def counted(plan: Any, raw: Any) -> Any:
        calls.append(plan)
        return finish(plan, raw)

    monkeypatch.setattr(m.Laplace, "finish", counted)
    release = curator().release(histogram())
    assert release.value is release.value and release.figures() and release.rows()
    assert len(calls) == 1
