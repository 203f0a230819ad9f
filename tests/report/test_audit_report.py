"""The report of an audit: one document as page and as JSON, that names what is broken and reaches nowhere."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sfumato import bounds
from sfumato.accounting.tradeoff import tradeoff
from sfumato.audit.models.outcome import judged
from sfumato.audit.results import Found, Point, Result
from sfumato.errors import ArgumentError
from sfumato.mechanisms import Gaussian, Laplace
from sfumato.plan import Plan
from sfumato.report import Audited, Report, audit_report
from sfumato.report.audit_pages import model_part, number, share
from sfumato.report.svg_audit import curve, rates, share_bar
from sfumato.units import Unit
from tests.report.reading import document, page

LAPLACE = Laplace(query=bounds.clipped_sum("age", 0, 120, Unit("user:id"), per_unit=2), epsilon=1)
GAUSSIAN = Gaussian(query=bounds.count(Unit()), epsilon=1, delta=1e-6)
EVIDENCE = {
    "kind": "Laplace",
    "pair": {
        "change": "[age=120.0] added",
        "tables": [{"columns": {"id": ["unit 0"], "age": [{"number": "inf"}]}}, {"columns": {"id": [], "age": []}}],
    },
    "counts": [1067, 425],
    "runs": [2000, 2000],
}


def result(plan: Plan[Any, Any] = LAPLACE, *, broken: bool = False, **more: Any) -> Result:
    epsilon = 1.3 if broken else 0.6
    ways = (
        Found("histogram", epsilon, 1.0, 0.0, "output[0] >= 220.5", broken),
        Found("renyi", 0.2, 0.5, 0.0, "of order 2", False),
    )
    points = (Point(0.0, 1.0, epsilon), Point(1e-6, 1.0, epsilon / 2), Point(0.1, math.inf, 0.0))
    said: dict[str, Any] = {
        "kind": type(plan).__name__, "hash": plan.hash, "epsilon": epsilon, "claim": 1.0, "delta": 0.0,
        "pair": "[age=120.0] added; beside it no unit", "event": "output[0] >= 220.5", "curve": points, "found": ways,
        "runs": 2000, "pairs": 31, "false_alarm": 1e-6, "seconds": 1.9, "evidence": EVIDENCE,
    }  # fmt: skip
    return Result(**{**said, **more})


def report(*audited: Audited, **more: Any) -> Report:
    return audit_report(audited or (Audited(name="ages", plan=LAPLACE, result=result()),), **more)


def test_a_report_says_what_was_claimed_and_proven_and_how_to_see_it_again() -> None:
    made = report(title="Audit of plan.yaml", command="sfumato audit plan.yaml --seed 7", seed=7)
    found, shown = document(made), page(made)
    (one,) = found["plans"]
    assert found["holds"] and one["verdict"] == "within" and one["shown"]["share"] == 0.6
    for text in (
        "Audit of plan.yaml", "ages", "epsilon = 1", "everything one id ever contributed", "[age=120.0] added",
        "output[0] >= 220.5", "1,067 times in 2,000 runs", "chance at most 1e-6", "sfumato audit plan.yaml --seed 7",
        "seeded with 7", LAPLACE.hash, "no proof that the claim holds", "histogram", "renyi",
    ):  # fmt: skip
        assert text in shown.text, text
    assert {"unit 0", "inf"} <= {each.strip() for each in shown.cells}
    assert "Signatures" not in shown.text


def test_what_is_broken_is_named_and_nothing_holds() -> None:
    made = report(
        Audited(name="ages", plan=LAPLACE, result=result()),
        Audited(name="people", plan=GAUSSIAN, result=result(GAUSSIAN, broken=True)),
        Audited(name="odd", plan=LAPLACE, problem="duckdb is needed for this"),
    )
    found, shown = document(made), page(made)
    assert not found["holds"]
    assert [each["verdict"] for each in found["plans"]] == ["within", "broken", "could not run"]
    assert "Not all held" in shown.text and "duckdb is needed" in shown.text
    assert 'class="dot over"' in made.html() and 'class="this over"' in made.html()


@pytest.mark.parametrize(
    "more",
    [
        {"verified": SimpleNamespace(verdict="broken", broken=True, pairs=3, outputs=4, share=2.0)},
        {"broken_promise": "Laplace fails the check of its noise"},
        {"models": [{"broken": True}]},
    ],
    ids=["verified", "promise", "model"],
)
def test_any_way_of_looking_can_break_a_plan(more: dict[str, Any]) -> None:
    assert Audited(name="ages", plan=LAPLACE, result=result(), **more).verdict == "broken"


def test_nothing_that_did_not_run_passes() -> None:
    assert Audited(name="ages", plan=LAPLACE).verdict == "could not run"
    assert Audited(name="ages", plan=LAPLACE, result=result(), problem="half of it").verdict == "could not run"


def test_verification_promises_and_models_are_told() -> None:
    class Verified(SimpleNamespace):
        def __str__(self) -> str:
            return "every outcome was listed"

    audit = SimpleNamespace(
        canaries=500, broken=False, epsilon=0.4, claim=3.0, delta=1e-5, facts=lambda: [("guesses", "300 of 500")],
        points=((0.001, 0.01), (0.1, 0.3), (1.0, 1.0)),
    )  # fmt: skip
    made = report(
        Audited(
            name="ages",
            plan=GAUSSIAN,
            result=result(GAUSSIAN),
            verified=Verified(verdict="undecided", broken=False, pairs=3, outputs=4, share=math.inf),
            promises=[("noise", "1 words a run")],
            models=[model_part(audit, tradeoff(GAUSSIAN.event))],
        ),
        Audited(name="more", plan=LAPLACE, result=result(), unverified="too many to be listed"),
    )
    found, shown = document(made), page(made)
    part = found["plans"][0]
    assert part["verified"]["share"] is None and part["verdict"] == "within"
    bound = np.array(part["models"][0]["bound"])
    assert (np.diff(bound[:, 1]) >= 0).all() and bound[-1, 1] == 1
    for text in ("every outcome was listed", "undecided", "1 words a run", "500 canaries", "300 of 500", "too many to"):
        assert text in shown.text, text


HOSTILE = "<script>alert(1)</script>\u202e{{ 7 * 7 }}</pre>\"'"


def test_hostile_words_stay_words() -> None:
    evidence = {**EVIDENCE, HOSTILE: HOSTILE, "pair": {"tables": [{"columns": {HOSTILE: [HOSTILE]}}] * 2}}
    texts = {"pair": HOSTILE, "event": HOSTILE, "evidence": evidence}
    ways = (Found(HOSTILE, 0.1, 1.0, 0.0, HOSTILE, False),)
    bad = report(
        Audited(name=HOSTILE, plan=LAPLACE, result=result(found=ways, **texts), notes=[HOSTILE], unverified=HOSTILE),
        title=HOSTILE,
        command=HOSTILE,
    )
    plain = {**EVIDENCE, "pair": {"tables": [{"columns": {"x": ["x"]}}] * 2}}
    good = report(
        Audited(name="x", plan=LAPLACE, result=result(found=ways, evidence=plain), notes=["x"], unverified="x"),
        title="x",
        command="x",
    )
    document(bad)
    assert page(bad).tags == page(good).tags and "\u202e" not in bad.html()


def test_json_has_no_number_without_end(tmp_path: Path) -> None:
    odd = result(epsilon=math.inf, claim=math.inf, evidence={"x": math.inf, "y": [math.nan]})
    made = report(Audited(name="ages", plan=LAPLACE, result=odd))
    assert document(made)["plans"][0]["shown"]["epsilon"] == "infinite"
    made.write(tmp_path / "a.json"), made.write(tmp_path / "a.html")
    assert json.loads((tmp_path / "a.json").read_text()) == made.as_dict()
    page(made)


@pytest.mark.parametrize(
    ("epsilon", "claim", "part"),
    [(0.5, 1.0, 0.5), (0.0, 0.0, 0.0), (0.5, 0.0, None), (1.0, math.inf, None), (math.inf, 1.0, None)],
)
def test_shares(epsilon: float, claim: float, part: float | None) -> None:
    assert share(epsilon, claim) == part
    assert number(epsilon) == ("infinite" if epsilon == math.inf else epsilon)


@pytest.mark.parametrize("audited", [[], "ages", [1], {"a": 1}], ids=["none", "text", "number", "mapping"])
def test_what_is_no_audit_is_refused(audited: Any) -> None:
    with pytest.raises(ArgumentError, match="audited"):
        audit_report(audited)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("name", 3),
        ("plan", None),
        ("plan", "plan.yaml"),
        ("result", 3),
        ("result", {"broken": False}),
        ("verified", "holds"),
        ("models", 3),
        ("models", "one_run"),
        ("models", [3]),
    ],
)
def test_what_was_not_found_by_an_audit_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(ArgumentError, match=f"^{name} = "):
        Audited(**{"name": "ages", "plan": LAPLACE, name: value})


def test_an_audit_of_a_training_is_put_into_a_report_as_it_is() -> None:
    """`Audited(models=[audit.models.one_run(...)])` was an error of Python's own."""
    found = judged(
        np.linspace(-1, 1, 40), np.arange(40) >= 20, way="odd records", claim=8.0, delta=1e-5, confidence=0.95
    )
    report = audit_report([Audited(name="digits", plan=GAUSSIAN, models=[found])])
    document(report)
    (told,) = report.as_dict()["plans"]
    assert told["models"][0]["title"] == "Audit of a training: odd records" and told["models"][0]["bound"]
    shown = page(report)
    for text in ("Audit of a training: odd records", "the attack", "guessing", "the most that the claim allows"):
        assert text in shown.text, text


def test_a_first_look_says_where_the_claim_was_and_that_nothing_was_shown() -> None:
    """The claim at the worst delta stood beside the price at another, without a word."""
    shown = page(audit_report([Audited(name="ages", plan=GAUSSIAN, result=result(GAUSSIAN, delta=1e-9, claim=1.5))]))
    assert "claimed there" in shown.text and "1e-9" in shown.text and "show nothing yet" not in shown.text
    nothing = page(audit_report([Audited(name="ages", plan=GAUSSIAN, result=result(GAUSSIAN, epsilon=0.0))]))
    assert "show nothing yet" in nothing.text


def points(*rows: tuple[float, float, float]) -> list[dict[str, float]]:
    return [dict(zip(("delta", "claim", "shown"), row, strict=True)) for row in rows]


@pytest.mark.parametrize(
    "drawn",
    [
        points((0, 1, 0.5), (1e-9, 1, 0.5), (0.3, 0.5, 0.1)),
        points((0, 0, 0)),
        points((1e-6, 2, 3)),
        points((1e-12, 700, 1e-9), (0.5, 1e-9, 0)),
    ],
    ids=["usual", "nothing lost", "one", "wide"],
)
def test_curves_lie_in_their_drawing(drawn: list[dict[str, float]]) -> None:
    text = curve(drawn)
    for name, most in (("cx", 720), ("cy", 260)):
        for part in text.split(f' {name}="')[1:]:
            assert 0 <= float(part.split('"')[0]) <= most
    assert text.count("<circle") == len(drawn) and "nan" not in text and "aria-label" in text
    assert "<style>" in curve(drawn, alone=True) and "<style>" not in text


def test_where_there_is_nothing_to_draw_nothing_is_drawn() -> None:
    assert curve([]) == curve(points((0, math.inf, 1))) == rates([]) == share_bar(None, False) == ""


def test_more_than_the_claim_is_drawn_beyond_it() -> None:
    def width(text: str) -> float:
        return float(text.rpartition('width="')[2].split('"')[0])

    assert (
        width(share_bar(0.5, False)) == 50 and width(share_bar(1.2, True)) == 120 and width(share_bar(9, True)) == 150
    )
