"""Plots of answers, of budgets and of accuracy, drawn for real and read back from the axes."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato import Budget, Curator, MemoryLedger, Private, Schema, Unit, bounds
from sfumato import mechanisms as m
from sfumato.errors import ArgumentError, BudgetError, SfumatoError
from sfumato.laws import RoundedLaplace
from sfumato.query.released import formulas
from sfumato.query.released.answer import Answer, Output
from sfumato.query.released.figures import constant, measured
from sfumato.query.released.values import Lists, keys
from sfumato.release import Release
from sfumato.report import plot_accuracy, plot_answer, plot_budget
from sfumato.schema import category, real
from tests.helpers import laplace

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::PendingDeprecationWarning")

UNIT = Unit()
SPREADS = {"n": (RoundedLaplace(10.0), 1.0)}
EVIL = "$\\frac{$ <b> _^ \x00\nline"


@pytest.fixture
def ax(tmp_path: Path) -> Iterator[Any]:
    """Axes that are drawn in the end: what matplotlib cannot draw fails there."""
    import_module("matplotlib").use("Agg")
    pyplot = import_module("matplotlib.pyplot")
    figure, made = pyplot.subplots()
    yield made
    figure.savefig(tmp_path / "drawn.png")
    assert (tmp_path / "drawn.png").stat().st_size > 3000
    pyplot.close(figure)


def answer(labels: list[Any], values: list[float], kind: str = "text", name: str = "n") -> Answer:
    return Answer([Output("k", keys(labels, kind)), Output(name, measured("n", values))], SPREADS, range(len(labels)))


def dots(ax: Any) -> dict[str, tuple[list[Any], list[Any]]]:
    return {line.get_label(): (list(line.get_xdata()), list(line.get_ydata())) for line in ax.get_lines()}


def bars(ax: Any) -> list[Any]:
    return [np.asarray(segment) for collection in ax.collections for segment in collection.get_segments()]


def names(ax: Any) -> list[str]:
    return [label.get_text() for label in ax.get_yticklabels()]


def test_a_point_and_an_error_bar_for_each_row(ax: Any) -> None:
    found = answer(["east", "north"], [50.0, 90.0])
    assert plot_answer(found, ax=ax) is ax
    assert dots(ax)["released"] == ([50.0, 90.0], [0, 1]) and names(ax) == ["east", "north"]
    for bar, (low, high), place in zip(bars(ax), found.interval("n"), (0, 1), strict=True):
        assert bar.tolist() == [[pytest.approx(low), place], [pytest.approx(high), place]]
    assert ax.get_title() == "n (± at 95 %)" and ax.get_xlabel() == "n" and ax.get_legend() is None
    assert ax.get_ylim()[0] > ax.get_ylim()[1], "the first row is on top"


def test_open_intervals_have_no_end_on_the_open_side(ax: Any) -> None:
    """What limits cut is not known: the number is at least so much, and hollow."""
    figure = replace(measured("n", [50.0, 90.0]), above=True)
    found = Answer([Output("k", keys(["east", "north"], "text")), Output("n", figure)], SPREADS, range(2))
    plot_answer(found, ax=ax)
    assert dots(ax) == {"open: what limits cut is not known": ([50.0, 90.0], [0, 1])} and ax.get_legend() is not None
    assert [bar[:, 0].tolist() for bar in bars(ax)] == [
        [low, value] for (low, _), value in zip(found.interval("n"), found["n"], strict=True)
    ]


def test_the_confidence_can_be_chosen(ax: Any) -> None:
    found = answer(["east"], [50.0])
    plot_answer(found, alpha=0.5, ax=ax)
    low, high = found.interval("n", 0.5)[0]
    assert bars(ax)[0][:, 0].tolist() == pytest.approx([low, high]) and "± at 50 %" in ax.get_title()
    with pytest.raises(ArgumentError, match="alpha"):
        plot_answer(found, alpha=1.5, ax=ax)


def test_what_noise_hides_is_hollow(ax: Any) -> None:
    n, s = measured("n", [1000.0, 1.0]), measured("n", [5000.0, 3.0])
    mean = formulas.mean(n, s, 0.0, 0.0, 100.0)
    found = Answer([Output("k", keys(["full", "empty"], "text")), Output("mean", mean)], SPREADS, [0, 1])
    assert found.unreliable["mean"] == [False, True]
    plot_answer(found, ax=ax)
    assert dots(ax)["released"][1] == [0] and dots(ax)["hidden by noise"][1] == [1]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["released", "hidden by noise"]
    hollow = next(line for line in ax.get_lines() if line.get_label() == "hidden by noise")
    assert hollow.get_markerfacecolor() == "none"


def test_keys_that_are_dates_or_numbers_make_an_axis(ax: Any) -> None:
    days = [datetime.date(2026, 1, 1) + datetime.timedelta(days=i) for i in range(40)]
    plot_answer(answer(days, [float(i) for i in range(40)], "date"), ax=ax)
    across, up = dots(ax)["released"]
    assert len(across) == 40 and up == [float(i) for i in range(40)] and "largest" not in ax.get_title()
    assert ax.get_ylabel() == "n"


def test_numbers_make_an_axis_and_a_single_one_does_not(ax: Any) -> None:
    plot_answer(answer([10, 20, 40], [1.0, 2.0, 3.0], "whole"), ax=ax)
    assert dots(ax)["released"] == ([10, 20, 40], [1.0, 2.0, 3.0])
    ax.clear()
    plot_answer(answer([10], [1.0], "whole"), ax=ax)
    assert names(ax) == ["10"]


def test_of_large_tables_the_largest_are_drawn_in_their_order(ax: Any) -> None:
    values = [float((7 * i) % 100) for i in range(100)]
    plot_answer(answer([f"k{i}" for i in range(100)], values), ax=ax)
    drawn = dots(ax)["released"][0]
    assert sorted(drawn) == [float(i) for i in range(70, 100)] and drawn == [each for each in values if each >= 70]
    assert "the 30 largest of 100" in ax.get_title() and len(names(ax)) == 30


def test_equal_numbers_are_cut_too(ax: Any) -> None:
    plot_answer(answer([f"k{i}" for i in range(100)], [5.0] * 100), ax=ax)
    assert len(dots(ax)["released"][0]) == 30


def test_hostile_keys_and_columns_are_drawn_as_they_are(ax: Any) -> None:
    plot_answer(answer([EVIL, "x" * 500], [1.0, 2.0], name="$\\frac{$"), ax=ax)
    first, second = names(ax)
    assert first == "$\\frac{$ <b> _^ \\x00\\nline" and second == "x" * 37 + "..."


def test_null_keys_and_null_numbers(ax: Any) -> None:
    found = Answer(
        [Output("k", keys([None, "b", "c"], "text")), Output("n", measured("n", [1.0, np.nan, 3.0]))],
        SPREADS,
        [0, 1, 2],
    )
    plot_answer(found, ax=ax)
    assert names(ax) == ["NULL", "c"] and "1 without a number left out" in ax.get_title()


def test_columns_are_chosen_by_name_and_refused_in_words(ax: Any) -> None:
    n = measured("n", [1.0, 2.0])
    found = Answer(
        [
            Output("k", keys(["a", "b"], "text")),
            Output("j", keys(["c", "d"], "text")),
            Output("n", n),
            Output("double", n * constant(2.0, 2)),
            Output("bins", Lists((n, n))),
        ],
        SPREADS,
        [0, 1],
    )
    plot_answer(found, "double", ax=ax)
    assert dots(ax)["released"][0] == [2.0, 4.0] and names(ax) == ["a, c", "b, d"]
    for column, match in (("bins", "not a list"), ("k", "a column of numbers"), ("none", "one of 'k'")):
        with pytest.raises(ArgumentError, match=match):
            plot_answer(found, column, ax=ax)
    only_keys = Answer([Output("k", keys(["a"], "text"))], SPREADS, [0])
    for nothing, match in ((only_keys, "column of numbers"), (answer([], []), "holds a number"), (3, "a Release")):
        with pytest.raises(ArgumentError, match=match):
            plot_answer(nothing, ax=ax)


def test_releases_of_mechanisms_and_parts_of_sequences(ax: Any) -> None:
    plan = sf.sequence(n=laplace(1), h=m.Laplace(query=bounds.histogram("w", ["a", "b"], UNIT), epsilon=1))
    released = Release(plan, {"n": np.array([4.5]), "h": np.array([2.0, 30.0])}, None)
    plot_answer(released, ax=ax)
    assert names(ax) == ["n", "h / a", "h / b"] and dots(ax)["released"][0] == [4.5, 2.0, 30.0]
    error = released.figures()[0].error
    assert error is not None and bars(ax)[0][:, 0].tolist() == pytest.approx([4.5 - error, 4.5 + error])
    ax.clear()
    plot_answer(released, "h", ax=ax)
    assert names(ax) == ["h / a", "h / b"] and ax.get_xlabel() == "h"
    with pytest.raises(ArgumentError, match="'n', 'h'"):
        plot_answer(released, "none", ax=ax)
    with pytest.raises(ArgumentError, match="no column"):
        plot_answer(Release(laplace(1), np.array([1.0]), None), "x", ax=ax)


def test_a_query_in_a_sequence_is_a_part(ax: Any) -> None:
    schema = Schema.of(ward=category(["a", "b"]), x=real(0, 9))
    private = Private("d", {"ward": ["a"], "x": [1.0]}, unit=UNIT, schema=schema)
    plan = sf.sequence(wards=sf.sql("SELECT ward, COUNT(*) AS n FROM data GROUP BY ward", private, epsilon=1))
    released = Curator(private, MemoryLedger({"d": Budget(epsilon=2)})).release(plan)
    plot_answer(released, "wards", ax=ax)
    assert names(ax) == ["a", "b"] and ax.get_xlabel() == "n"


# budgets


def test_a_budget_over_time_rises_to_what_was_spent(ax: Any) -> None:
    ledger = MemoryLedger({EVIL[:9]: Budget(epsilon=4, delta=1e-6)})
    data = f"{EVIL[:9]}@1"
    for number in range(1, 6):
        ledger.spend((), laplace(number / 10), data=data, grade="exact", note="")
    assert plot_budget(ledger, EVIL[:9], ax=ax) is ax
    _, shares = dots(ax)["epsilon"]
    assert shares == pytest.approx([0, 2.5, 7.5, 15, 25, 37.5])
    assert dots(ax)["limit: the guarantee"][1] == [100, 100]
    gauges = {gauge.currency: 100 * float(gauge.spent / gauge.limit) for gauge in ledger.spent(EVIL[:9])}
    drawn = {name: ys[-1] for name, (_, ys) in dots(ax).items() if name in gauges}
    assert drawn == pytest.approx(gauges) and len(gauges) > 1
    assert all(line.get_drawstyle() == "steps-post" for line in ax.get_lines()[:-1])
    assert ax.get_ylabel() == "spent, % of the limit" and EVIL[:9] in ax.get_title()


def test_a_gauge_that_closes_says_so(ax: Any) -> None:
    ledger = MemoryLedger({"d": Budget(epsilon=1, delta=1e-6)})
    ledger.spend((), laplace(0.1), data="d@1", grade="exact", note="")
    ledger.spend((), laplace(0.85), data="d@1", grade="exact", note="")
    plot_budget(ledger, "d", ax=ax)
    closed = [name for name in dots(ax) if name.endswith("(closed)")]
    assert closed and "epsilon" in dots(ax)


def test_an_account_that_spent_nothing_and_one_that_is_none(ax: Any) -> None:
    ledger = MemoryLedger({"d": Budget(rho=1)})
    plot_budget(ledger, "d", ax=ax)
    assert dots(ax)["rho"][1] == [0.0]
    with pytest.raises(BudgetError, match="no account"):
        plot_budget(ledger, "e", ax=ax)
    with pytest.raises(ArgumentError, match="ledger"):
        plot_budget(3, "d", ax=ax)  # type: ignore[arg-type]


# accuracy


def test_accuracy_against_epsilon_of_a_function(ax: Any) -> None:
    assert plot_accuracy(laplace, [0.1, 1.0, 0.5], ax=ax) is ax
    ((across, up),) = dots(ax).values()
    assert across == [0.1, 0.5, 1.0]
    assert up == [laplace(each).expected_error(0.05) for each in (0.1, 0.5, 1.0)] and up[0] > up[1] > up[2]
    assert (ax.get_xscale(), ax.get_yscale(), ax.get_xlabel()) == ("log", "log", "epsilon")
    assert "95 %" in ax.get_ylabel() and ax.get_legend() is None


def test_accuracy_of_given_plans_and_of_several_numbers(ax: Any) -> None:
    plan = sf.sequence(n=laplace(0.5), h=laplace(0.1))
    plot_accuracy([plan, sf.sequence(n=laplace(1), h=laplace(0.2))], ax=ax)
    found = dots(ax)
    assert set(found) == {"n", "h"} and found["n"][0] == pytest.approx([0.6, 1.2])
    assert found["h"][1] == [laplace(0.1).expected_error(0.05), laplace(0.2).expected_error(0.05)]
    assert {text.get_text() for text in ax.get_legend().get_texts()} == {"n", "h"}


def test_a_default_range_of_epsilons(ax: Any) -> None:
    plot_accuracy(laplace, ax=ax)
    ((across, _),) = dots(ax).values()
    assert across[0] == 0.05 and across[-1] == 3 and len(across) == 12
    labels = [label.get_text() for label in ax.get_xticklabels()]
    assert "0.1" in labels and "1" in labels


def test_plans_without_a_known_error_are_refused(ax: Any) -> None:
    mean = m.Laplace(query=bounds.mean("x", 0, 10, UNIT), epsilon=1)
    for plans, epsilons, match in (
        ([mean], None, "know their error"),
        ([], None, "no plans"),
        ([laplace(1)], [1.0], "no epsilons"),
        (laplace, [-1.0], "epsilons"),
        (lambda epsilon: epsilon, [1.0], "a function that makes a plan"),
    ):
        with pytest.raises(ArgumentError, match=match):
            plot_accuracy(plans, epsilons, ax=ax)  # type: ignore[arg-type]


def test_new_axes_are_made_where_none_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    import_module("matplotlib").use("Agg")
    made = plot_accuracy(laplace, [0.1, 1.0])
    assert made.figure.axes == [made]
    import_module("matplotlib.pyplot").close(made.figure)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(SfumatoError, match=r"pip install '\.\[plots\]'"):
        plot_accuracy(laplace, [0.1])
