"""The comparison: every method that can price an event does, in the order that must always hold."""

from __future__ import annotations

import math
import re
from fractions import Fraction

import pytest

from sfumato.accounting import compare as module
from sfumato.accounting.compare import METHODS, Comparison, compare
from sfumato.accounting.interval import Interval
from sfumato.errors import ArgumentError, UnsupportedEventError
from sfumato.events import Approximate, Event, Gaussian, Laplace, Partition, Poisson, Pure, Repeat, Sequence, Shuffled

SGD = Repeat(Poisson(Gaussian(multiplier=2), 0.01), 1000)


@pytest.fixture(scope="module")
def sgd() -> Comparison:
    return compare(SGD, delta=1e-5)


def test_a_textbook_training_run(sgd: Comparison) -> None:
    assert sgd.best.method == "privacy loss"
    assert sgd["privacy loss"].epsilon == pytest.approx(0.62203, abs=2e-4)
    assert sgd["Rényi"].epsilon == pytest.approx(0.686, abs=2e-4)
    assert sgd["basic composition"].epsilon == pytest.approx(81.82, rel=1e-3)
    assert sgd["strong composition"].epsilon == pytest.approx(20.9, abs=0.03)


def test_the_order_that_must_hold(sgd: Comparison) -> None:
    names = ["privacy loss", "Rényi", "Rényi, older conversion", "strong composition", "basic composition"]
    values = [sgd[name].epsilon for name in names]
    assert None not in values and values == sorted(values)  # type: ignore[type-var]
    lower = sgd["privacy loss"].lower
    assert lower is not None and lower <= values[0]  # type: ignore[operator]


def test_the_central_limit_is_labelled_and_comes_after_every_guarantee(sgd: Comparison) -> None:
    row = sgd["central limit"]
    assert row.epsilon == pytest.approx(0.602, abs=1e-3) and not row.guarantee
    assert row.epsilon < sgd.best.epsilon  # type: ignore[operator]
    assert "not a guarantee" in row.note
    order = [each.guarantee for each in sgd if each.epsilon is not None]
    assert order == sorted(order, reverse=True)
    line = next(line for line in str(sgd).splitlines() if line.startswith("central limit"))
    assert "approximation, not a guarantee" in line
    assert "approximation, not a guarantee" in sgd._repr_html_()
    assert [row.method for row in sgd if row.epsilon is not None and not row.guarantee] == ["central limit"]


def test_what_cannot_price_it_says_why(sgd: Comparison) -> None:
    row = sgd["pure sum"]
    assert row.epsilon is None and not row.guarantee and "has no pure epsilon" in row.note
    assert "is not Gaussian noise alone" in sgd["Gaussian curve"].note
    unable = [each.epsilon is None for each in sgd]
    assert unable == sorted(unable)
    assert {row.method for row in sgd} == set(METHODS)


def test_optimal_composition() -> None:
    table = compare(Repeat(Pure(epsilon=0.1), 100), delta=1e-6)
    assert table["optimal composition"].epsilon == pytest.approx(4.774568, abs=2e-6)
    assert table["privacy loss"].epsilon == pytest.approx(4.774568, abs=2e-6)
    assert table["strong composition"].epsilon == pytest.approx(6.308231, abs=2e-6)
    assert table["closed-form composition"].epsilon == pytest.approx(5.756106, abs=2e-6)
    assert table["zCDP"].epsilon == pytest.approx(5.221534, abs=2e-6)
    assert table["basic composition"].epsilon == table["pure sum"].epsilon == 10
    assert table["optimal composition"].lower is not None
    assert compare(Repeat(Laplace(epsilon=0.1), 100), delta=1e-6)["optimal composition"].lower is None


def test_gaussians_have_their_exact_curve() -> None:
    table = compare(Repeat(Gaussian(multiplier=2), 4), delta=1e-5)  # mu = 1, rho = 1/2
    assert table["Gaussian curve"].epsilon == pytest.approx(4.377178, abs=2e-6)
    assert table["zCDP"].epsilon == pytest.approx(4.728387, abs=2e-6)
    assert table["zCDP, older conversion"].epsilon == pytest.approx(5.298526, abs=2e-6)
    assert "is not known by one (epsilon, delta)" in table["optimal composition"].note


@pytest.mark.parametrize(
    "event",
    [
        Laplace(epsilon=0.5),
        Sequence((Laplace(epsilon=0.5), Gaussian(multiplier=3))),
        Partition("ward", (Laplace(epsilon=0.5), Laplace(epsilon=0.25))),
        Repeat(Approximate(epsilon=0.1, delta=1e-9), 30),
        Poisson(Laplace(epsilon=1), 0.1),
    ],
)
def test_no_guarantee_is_below_the_certified_lower_end(event: Event) -> None:
    table = compare(event, delta=1e-6)
    lower = max((row.lower for row in table if row.lower is not None), default=0.0)
    for row in table:
        if row.guarantee:
            assert row.epsilon is not None and math.isfinite(row.epsilon) and row.epsilon >= lower - 1e-9
            assert row.seconds >= 0
    assert table.best.epsilon == min(row.epsilon for row in table if row.guarantee)  # type: ignore[type-var]


def test_the_table_reads_well(sgd: Comparison) -> None:
    lines = str(sgd).splitlines()
    assert lines[0] == "epsilon at delta = 1e-05"
    assert lines[1].split() == ["method", "epsilon", "at", "least", "ms"]
    assert re.match(r"privacy loss +0\.622\d+ +0\.62\d+ +\d+\.\d\d$", lines[2])
    assert len(lines) == 2 + len(METHODS)
    page = sgd._repr_html_()
    assert page.count("<tr>") == 1 + len(METHODS) and "epsilon at delta = 1e-05" in page


def test_a_broken_method_would_stand_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interval, a fraction and a float are all read as upper ends; a refusal is a note, an error is an error."""
    monkeypatch.setattr(
        module,
        "METHODS",
        {
            "interval": lambda event, delta: Interval(1.0, 2.0),
            "fraction": lambda event, delta: Fraction(1, 3),
            "float": lambda event, delta: 0.5,
        },
    )
    table = compare(SGD, delta=1e-5)
    assert [(row.method, row.epsilon) for row in table] == [
        ("fraction", math.nextafter(1 / 3, 1)),
        ("float", 0.5),
        ("interval", 2.0),
    ]
    monkeypatch.setattr(module, "METHODS", {"broken": lambda event, delta: 1 / 0})
    with pytest.raises(ZeroDivisionError):
        compare(SGD, delta=1e-5)


def test_refusals(sgd: Comparison) -> None:
    with pytest.raises(ArgumentError, match="event"):
        compare(0.5, delta=1e-5)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="delta"):
        compare(SGD, delta=0)
    with pytest.raises(KeyError, match="no method 'magic'"):
        sgd["magic"]


def test_nothing_to_report_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(event: Event, delta: Fraction) -> float:
        raise UnsupportedEventError(f"{type(event).__name__} is too much for this method")

    monkeypatch.setattr(module, "METHODS", {"one": refuse})
    table = compare(Shuffled(Pure(epsilon=1, relation="replace"), 100), delta=1e-5)
    with pytest.raises(UnsupportedEventError, match="no method prices this Shuffled: cannot: Shuffled is too much"):
        _ = table.best
