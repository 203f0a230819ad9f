"""Audits of SQL: many answers at once are many answers, and how far a unit moves them is known exactly."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato import Schema, Unit, audit, schema
from sfumato.audit import neighbours, shipped, sql_losses, stages
from sfumato.audit.outputs import Alike, OutputReading, atoms_of
from sfumato.audit.silent import Silent
from sfumato.audit.subjects import OfPlan
from sfumato.noise import Noise, SeededBits
from sfumato.plan import Run
from sfumato.query import Limits, running, sql
from sfumato.query.design import Design

USER = Unit("user:id")
VISITS = schema.Table(
    {"id": schema.key(), "ward": schema.category(("east", "north", "west")), "days": schema.real(0, 9)}, unit="id"
)
WARDS = schema.Table({"ward": schema.category(("east", "north", "west")), "floor": schema.key()}, private=False)
ONE, TWO = Schema({"visits": VISITS}), Schema({"visits": VISITS, "wards": WARDS})
TEXTS = (
    "SELECT COUNT(*) AS n FROM visits",
    "SELECT ward, COUNT(*) AS n, AVG(days) AS mean FROM visits GROUP BY ward",
    "SELECT ward, MEDIAN(days) AS m, COUNT(DISTINCT id) AS k FROM visits GROUP BY ward",
    "SELECT HISTOGRAM(days, [0, 3, 9]) AS h FROM visits",
)


def _plan(text: str, given: Schema = ONE, **more: Any) -> Any:
    options: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "limits": Limits(rows=2, keys=2)}
    return sql(text, given, unit=USER, **(options | more))


def _pair(plan: Any) -> neighbours.Pair:
    """One with rows in several groups."""
    raw = {"id": ["a", "b", "b", "c"], "ward": ["east", "east", None, "west"], "days": [1.0, 9.0, 3.0, 4.5]}
    return audit.arguments.table_pair(plan, stages.table_for(plan), (raw, {name: raw[name][:3] for name in raw}))


@pytest.mark.parametrize("text", TEXTS)
def test_one_answer_of_many_is_the_answer(text: str) -> None:
    """With the same bits, to the last digit."""
    plan = _plan(text)
    rows = _pair(plan).rows
    found = plan._runs(rows, Run(Noise(SeededBits(7))), 1)
    alone = plan._run(rows, Run(Noise(SeededBits(7))))
    parts = {place: cell for place, cell in atoms_of(alone) if place[0] not in ("groups", "keys", "written")}
    assert dict(zip(found.places, found.cells[0].tolist(), strict=True)) == {
        place: float(cell) for place, cell in parts.items()
    }


@pytest.mark.parametrize("text", TEXTS)
def test_many_answers_have_the_same_numbers_and_noise_of_their_own(text: str) -> None:
    plan = _plan(text)
    rows = _pair(plan).rows
    still = plan._runs(rows, Run(Silent(SeededBits(0))), 5).cells
    assert (still == still[0]).all()
    noisy = plan._runs(rows, Run(Noise(SeededBits(1))), 400).cells[:, : still.shape[1]]
    assert len(np.unique(noisy, axis=0)) > 100
    moved = noisy - still[0]
    wide = moved.std(axis=0) > 0
    together = np.corrcoef(moved[:-1, wide][:, 0], moved[1:, wide][:, 0])[0, 1]
    assert abs(together) < 0.25  # copies of a group do not share their noise


def test_which_queries_are_answered_at_once() -> None:
    assert OfPlan(_plan(TEXTS[1])).in_bulk and OfPlan(_plan(TEXTS[1])).steady
    assert not OfPlan(_plan(TEXTS[1], limits=None)).in_bulk  # the adviser looks first
    by_key = Schema({"visits": replace(VISITS, columns={**VISITS.columns, "tag": schema.key()})})
    assert not OfPlan(_plan("SELECT tag, COUNT(*) AS n FROM visits GROUP BY tag", by_key)).in_bulk

    class Other(type(_plan(TEXTS[0]))):  # type: ignore[misc]
        def _run(self, rows: Any, run: Run) -> Any:
            return super()._run(rows, run)

    other = Other.__new__(Other)
    other.__dict__.update(vars(_plan(TEXTS[0])))
    assert not OfPlan(other).in_bulk


def test_public_tables_are_joined_for_every_copy() -> None:
    plan = _plan("SELECT floor, COUNT(*) AS n FROM visits JOIN wards USING (ward) GROUP BY floor", TWO)
    pair = next(iter(neighbours.pairs(plan)))
    assert len(OfPlan(plan).outputs(pair.rows, 50, SeededBits(1))) == 50


def test_outputs_alike_are_read_by_place_and_in_parts() -> None:
    cells = np.arange(12.0).reshape(4, 3)
    some = Alike((("n", 0), ("n", 1), ("m",)), cells)
    reading = OutputReading.fit(some, some[:2])
    assert reading.places == some.places and np.array_equal(reading.of(some[1:3]), cells[1:3])
    assert reading.names[0] == "output['n'][0]" and len(some) == 4 and np.array_equal(some[0], cells[0])
    fewer = Alike((("m",),), cells[:, 2:])
    assert np.array_equal(OutputReading.fit(some, fewer).of(fewer)[:, 2], cells[:, 2])
    joined = Alike.joined([some, some])
    assert len(joined) == 8 and joined.places == some.places


def test_a_query_says_how_much_of_its_price_a_unit_uses() -> None:
    found = audit.check(_plan(TEXTS[1]), runs=2_000, bits=SeededBits(3))
    (exact,) = (each for each in found.found if each.way == "exact loss")
    assert not found.broken and 0.99 < exact.epsilon / exact.claim <= 1 + 1e-6, exact.words
    assert "% of what is paid for" in exact.words


def test_laplace_queries_do_as_well() -> None:
    plan = _plan(TEXTS[0], delta=0)
    pair = _pair(plan)
    assert OfPlan(plan).used(pair) == pytest.approx(0.5, rel=1e-3)  # one row of the two that count
    assert sql_losses.epsilon(plan, 0.5) == pytest.approx(0.5) and sql_losses.epsilon(plan, 0) == 0
    assert OfPlan(shipped.PLANS["Laplace"]()).used(pair) is None


def test_reaches_that_are_too_small_are_found_without_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nine tenths of the noise: some thousand samples at this epsilon would never show it."""
    right = Design.law
    monkeypatch.setattr(Design, "law", lambda self, each: _narrower(right(self, each)))
    found = audit.check(_plan(TEXTS[1], epsilon=0.1), runs=500, bits=SeededBits(3))
    assert found.broken and {each.way for each in found.found if each.broken} == {"exact loss"}
    (exact,) = (each for each in found.found if each.way == "exact loss")
    assert 1.05 < exact.epsilon / exact.claim < 1.2


def _narrower(law: Any) -> Any:
    return replace(law, sigma=float(Fraction(law.sigma) * Fraction(9, 10)))


def test_what_fails_in_bulk_fails_run_by_run(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = _plan(TEXTS[0])
    rows = _pair(plan).rows
    monkeypatch.setattr(running, "sums", _fails)
    found = OfPlan(plan).outputs(rows, 3, SeededBits(1))
    assert found == [{"failed": "ValueError"}] * 3 and OfPlan(plan).used(_pair(plan)) is None


def _fails(*given: Any, **named: Any) -> Any:
    raise ValueError("of the data")
