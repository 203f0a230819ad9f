"""Deployments: their figures against what can be recomputed, and a warning for whatever cannot be compared."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction

import pytest

from sfumato import Unit
from sfumato.accounting import zcdp
from sfumato.errors import ArgumentError, PrivacyWarning
from sfumato.report import DEPLOYMENTS, Deployment, place
from sfumato.units import RELATIONS

NAMED = {each.name: each for each in DEPLOYMENTS}


def test_the_census_figure_is_the_published_rho() -> None:
    census = NAMED["US Census 2020, redistricting, persons"]
    rho = 1 / Fraction(339, 542) ** 2
    assert rho == Fraction(293764, 114921)
    assert float(zcdp.epsilon(rho, Fraction(1, 10**10))) == pytest.approx(17.143551, abs=2e-6)
    assert census.epsilon == 17.14 and census.delta == 1e-10 and census.trust == "central"
    assert census.epsilon + NAMED["US Census 2020, redistricting, housing units"].epsilon == pytest.approx(19.61)


def test_the_chrome_figures_follow_from_its_settings() -> None:
    h, f, p, q = 2, 0.5, 0.25, 0.75
    once = f / 2 * (p + q) + (1 - f) * q, f / 2 * (p + q) + (1 - f) * p
    one = h * math.log(once[0] * (1 - once[1]) / (once[1] * (1 - once[0])))
    assert NAMED["Google Chrome, RAPPOR, one report"].epsilon == pytest.approx(one, abs=1e-4)
    always = 2 * h * math.log((1 - f / 2) / (f / 2))
    assert NAMED["Google Chrome, RAPPOR, all reports of one value"].epsilon == pytest.approx(always, abs=1e-4)


def test_the_keyboard_figure_is_its_rho() -> None:
    keyboard = NAMED["Gboard, Spanish next-word model"]
    assert float(zcdp.epsilon(Fraction(81, 100), Fraction(1, 10**10))) == pytest.approx(keyboard.epsilon, abs=0.06)


def test_every_entry_is_whole() -> None:
    assert len(NAMED) == len(DEPLOYMENTS) >= 10
    for each in DEPLOYMENTS:
        assert 0 < each.epsilon < 100 and 0 <= each.delta < 1e-4
        assert each.trust in ("central", "local") and each.relation in (None, *RELATIONS)
        assert each.unit and each.period and each.source and each.note and 2010 < each.year < 2030
        assert each.trust == "central" or each.delta == 0


def caught(epsilon: float, **arguments: object) -> tuple[object, list[str]]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        placed = place(epsilon, **arguments)  # type: ignore[arg-type]
    assert all(each.category is PrivacyWarning for each in found)
    return placed, [str(each.message) for each in found]


def test_local_and_central_other_units_and_other_deltas_warn() -> None:
    _, texts = caught(1, delta=1e-10, unit="person", trust="central")
    assert len(texts) == 3
    assert any("local and central" in text for text in texts)
    assert any("units differ" in text for text in texts)
    assert any("deltas differ" in text for text in texts)


@pytest.mark.parametrize("trust", ["central", "local"])
def test_each_difference_warns_by_itself(monkeypatch: pytest.MonkeyPatch, trust: str) -> None:
    from sfumato.report import deployments

    one = Deployment(
        name="one", epsilon=2, delta=1e-6, unit="person", period="once", trust="central", source="none", year=2020
    )
    monkeypatch.setattr(deployments, "DEPLOYMENTS", (one,))
    _, texts = caught(1, delta=1e-6, trust=trust)
    assert len(texts) == (trust == "local")
    _, texts = caught(1, delta=1e-7, trust="central")
    assert len(texts) == 1 and "another delta" in texts[0]
    _, texts = caught(1, delta=1e-6, unit="row")
    assert len(texts) == 1 and "another unit" in texts[0]


def test_comparable_ones_only() -> None:
    placed = place(1, delta=1e-10, comparable=True)  # no warning: warnings are errors here
    assert placed.comparable and all(each.delta == 1e-10 and each.unit == "person" for each in placed.comparable)
    assert len(placed.rows) == len(placed.comparable)
    assert not place(1, delta=1e-3, comparable=True).rows


def test_the_table_is_in_order_with_the_figure_in_it() -> None:
    placed, _ = caught(3, delta=1e-10)
    lines = str(placed).splitlines()
    sizes = [float(line.split()[0]) for line in lines[1:]]
    assert sizes == sorted(sizes) and len(sizes) == len(DEPLOYMENTS) + 1
    (own,) = [line for line in lines if "-> this one" in line]
    assert own.split()[0] == "3"
    assert sum("other" in line for line in lines) == sum(bool(differs) for _, differs in placed.rows)  # type: ignore[attr-defined]
    assert placed._repr_html_().count("<tr>") == len(DEPLOYMENTS) + 2  # type: ignore[attr-defined]
    last, _ = caught(100)
    assert "-> this one" in str(last).splitlines()[-1]


def test_a_unit_of_the_package_will_do() -> None:
    assert place(1, delta=1e-10, unit=Unit("user:id"), comparable=True).comparable
    assert not place(1, delta=1e-10, unit=Unit(), comparable=True).comparable
    assert not place(1, delta=1e-10, unit=Unit("user:id", group=2), comparable=True).comparable


@pytest.mark.parametrize(
    ("arguments", "match"),
    [({"epsilon": 0}, "epsilon"), ({"epsilon": 1, "trust": "none"}, "trust"), ({"epsilon": 1, "unit": ""}, "unit")],
)
def test_refusals(arguments: dict[str, object], match: str) -> None:
    with pytest.raises(ArgumentError, match=match):
        place(**arguments)  # type: ignore[arg-type]
