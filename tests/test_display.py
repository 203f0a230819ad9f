"""What notebooks show: whole HTML that needs nothing else, where nothing that a name holds comes alive."""

from __future__ import annotations

import csv
import math
import re
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato import Budget, Curator, MemoryLedger, Private, Schema, Unit, bounds, display, plain_text
from sfumato import mechanisms as m
from sfumato.accounting.compare import compare
from sfumato.audit.stages import table_for
from sfumato.errors import ArgumentError
from sfumato.events import Gaussian
from sfumato.plan import Plan
from sfumato.query import Sql, SqlReport, SqlSeries, SqlWorkload
from sfumato.release import Quote, Release
from sfumato.report import explain, place
from sfumato.schema import Table, category, key, real
from tests.helpers import SECRET, laplace
from tests.rules.test_kind_rules import EXAMPLES

EVIL = '"><script>alert(1)</script><img src=x onerror=alert(2)>&lt;$\\href{javascript:x}{y}$'
WORSE = EVIL + "\u202e\x00"  # a key of the data may hold anything; names must be printable
USER = Unit("user:id")
VOID = {"br", "img", "line", "rect", "circle"}
ALLOWED = {
    "div", "p", "span", "small", "br", "table", "caption", "thead", "tbody", "tr", "th", "td", "ol", "li", "details",
    "summary", "pre", "svg", "rect", "line", "circle",
}  # fmt: skip


class Page(HTMLParser):
    """Reads HTML as a browser would, and refuses what should not be in it."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(page)
        self.close()
        assert not self.open, f"left open: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ALLOWED, tag
        for name, value in attrs:
            assert not name.startswith("on") and name not in ("href", "src"), name
            assert name != "style" or "url" not in (value or ""), value
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, tag

    def handle_data(self, data: str) -> None:
        self.words += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.seen if name == tag]


def shown(what: Any) -> Page:
    """Every display is one block that MathJax keeps out of."""
    html = what._repr_html_()
    page = Page(html)
    first, attributes = page.seen[0]
    assert first == "div" and attributes["class"] == "tex2jax_ignore mathjax_ignore"
    assert html.endswith("</div>") and "http" not in html and html.encode()
    assert all(each.isprintable() or each == "\n" for each in html)
    return page


def private(unit: Unit = USER, **more: Any) -> Private:
    wards = ["north", WORSE]
    schema = Schema({EVIL: Table({"id": key(), EVIL: category(wards), "x": real(0, 10)}, unit="id")})
    data = {"id": [1, 2, SECRET], EVIL: ["north", WORSE, SECRET], "x": [1.0, 2.0, 7.77]}
    return Private(EVIL, data, unit=unit, schema=schema, **more)


def by_ward(epsilon: float = 1.0) -> m.Laplace:
    return m.Laplace(query=bounds.histogram(EVIL, ["north", WORSE], USER), epsilon=epsilon)


def desk(budget: Budget | None = None) -> tuple[Curator, MemoryLedger]:
    ledger = MemoryLedger({EVIL: budget or Budget(epsilon=8, delta=1e-5)})
    return Curator(private(), ledger), ledger


def everything() -> dict[str, Any]:
    curator, ledger = desk()
    ledger.open_account(EVIL + "2", Budget(epsilon=1), parent=EVIL, level="team", reason=EVIL)
    ledger.open_account("folder" + EVIL, None, reason=EVIL)
    both = sf.sequence(n=m.Laplace(query=bounds.count(USER), epsilon=0.5), wards=by_ward())
    return {
        "private": private(),
        "schema": private().schema,
        "plan": by_ward(),
        "sequence": both,
        "quote": curator.quote(by_ward()),
        "refused": curator.quote(by_ward(9.0)),
        "rehearsal": curator.rehearse(by_ward()),
        "release": curator.release(by_ward(), note=EVIL),
        "releases": curator.release(both),
        "winner": curator.release(m.Exponential(query=bounds.votes(EVIL, ["north", WORSE], USER), epsilon=1)),
        "ledger": ledger,
        "statement": ledger.statement(EVIL),
        "folder": ledger.statement("folder" + EVIL),
        "budget": Budget(epsilon=1, delta=1e-6),
        "pure": Budget(epsilon=1),
        "rho": Budget(rho=0.1),
        "explanation": explain(1, delta=1e-6),
        "comparison": compare(Gaussian(multiplier=2), delta=1e-6),
        "placement": place(1, delta=1e-10, comparable=True),
    }


EVERYTHING = everything()


@pytest.mark.parametrize("name", EVERYTHING)
def test_hostile_names_stay_words(name: str) -> None:
    page = shown(EVERYTHING[name])
    assert SECRET not in page.words and "7.77" not in page.words
    if "javascript" in page.words:
        assert "<script>alert(1)</script>" in page.words


def test_the_hostile_name_is_in_most_of_them() -> None:
    """Otherwise the test above tests nothing."""
    told = {name for name, what in EVERYTHING.items() if "javascript" in shown(what).words}
    assert told >= set(EVERYTHING) - {"budget", "pure", "rho", "explanation", "comparison", "placement"}


@given(st.text(st.characters(exclude_categories=()), max_size=30))
def test_any_text_is_shown_as_it_is_or_spelled_out(text: str) -> None:
    page = Page(display.card(text, display.table((text,), [(text,)]), display.paragraph(text), note=text))
    assert plain_text.printable(text, lines=True) in page.words
    assert plain_text.printable(text).isprintable()
    assert all(line.isprintable() for line in plain_text.printable(text, lines=True).split("\n"))
    if text.isprintable() and not plain_text._SHAPELESS.intersection(text):
        assert plain_text.printable(text) == text


def test_only_html_made_here_is_taken_as_it_is() -> None:
    assert display.text("<b>") == "&lt;b&gt;" and display.text(display.Html("<b>")) == "<b>"
    assert "&lt;b&gt;" in display.table((), [("<b>",)]) and "&quot;" in display.text('"')
    assert "&lt;b&gt;" in display.card("", "<b>"), "a part that is plain text is escaped, too"


def test_keys_that_cannot_be_printed_are_spelled_out() -> None:
    curator, _ = desk()
    assert "\\u202e\\x00" in shown(curator.release(by_ward())).words


def test_long_cells_are_cut_and_say_so() -> None:
    page = Page(display.table(("k",), [("x" * 10_000,)]))
    assert page.words.endswith("x...") and len(page.words) < 300


# bars


def widths(html: str) -> list[float]:
    return [float(each) for each in re.findall(r'<rect[^>]* ?width="([\d.]+)"', html)]


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_bar_never_shows_more_room_than_there_is(used: float, now: float) -> None:
    html = display.bar(used, now)
    Page(html)
    *fills, frame = widths(html)
    fits = used + now <= 1
    assert frame == 219 and sum(fills) <= 220 + 3
    if fits:
        assert abs(sum(fills) - 220 * (used + now)) <= 2.5 and display.SHORT not in html
    elif used + now > 1 + 1e-9:
        assert display.SHORT in html and "more than is left" in html
    assert (used > 0) == (f'fill="{display.SPENT}"' in html), "a little that is spent can be seen"


@pytest.mark.parametrize(
    ("used", "now", "words"),
    [
        (0, 0, "0 % spent, 100 % left"),
        (0.25, 0.5, "25 % spent, this 50 %, 25 % left"),
        (1, 0, "100 % spent, 0 % left"),
        (1, 0.1, "100 % spent, this 10 %, more than is left"),
        (0.3, math.inf, "30 % spent, this does not fit, more than is left"),
        (math.nan, 0, "100 % spent, 0 % left"),
        (-3, -3, "0 % spent, 100 % left"),
        (5, 0, "100 % spent, 0 % left"),
        (1e-9, 0, "under 0.001 % spent, over 99.9 % left"),
        (1 - 1e-9, 0, "over 99.9 % spent, under 0.001 % left"),
    ],
)
def test_a_bar_in_words(used: float, now: float, words: str) -> None:
    page = Page(display.bar(used, now))
    assert page.words.strip() == words and page.all("svg")[0]["aria-label"] == words


# error bars

FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(FINITE, st.floats(min_value=0, allow_nan=False), st.lists(st.tuples(FINITE, st.floats(0, 1e300)), max_size=5))
def test_error_bars_stay_inside_their_picture(value: float, width: float, others: list[tuple[float, float]]) -> None:
    html = display.error_bar(value, width, display.span([(value, width), *others]), doubt=True)
    page = Page(html)
    numbers = [float(line[name] or "nan") for line in page.all("line") for name in ("x1", "x2")]
    numbers += [float(dot["cx"] or "nan") for dot in page.all("circle")]
    assert all(0 <= each <= 120 for each in numbers), html
    if html:
        left, right = sorted(numbers)[0], sorted(numbers)[-1]
        assert all(left <= float(dot["cx"] or "nan") <= right for dot in page.all("circle"))


def test_error_bars_are_drawn_to_one_scale() -> None:
    within = display.span([(0.0, 10.0), (100.0, 10.0)])
    assert within == (-10.0, 110.0)
    first, second = (Page(display.error_bar(value, 10.0, within)) for value in (0.0, 100.0))
    at = [float(page.all("circle")[0]["cx"] or "nan") for page in (first, second)]
    assert at[1] - at[0] == pytest.approx(112 * 100 / 120, abs=0.2)
    assert len(first.all("line")) == 4, "the line at 0, the bar and its two ends"


def test_error_bars_of_what_is_not_known() -> None:
    assert display.error_bar(1.0, None, (0.0, 1.0)) == "" and display.error_bar(math.nan, 1.0, (0.0, 1.0)) == ""
    assert display.error_bar(1.0, 1.0, None) == "" and display.span([]) is None
    assert display.span([(math.inf, 1.0), (1.0, math.inf)]) is None
    open_ = display.error_bar(1.0, math.inf, (0.0, 2.0))
    assert "stroke-dasharray" in open_ and len(Page(open_).all("line")) == 1


@pytest.mark.parametrize(
    ("sides", "words", "caps"),
    [
        ({"above": True}, "50, at least 40", [40.0]),
        ({"below": True}, "50, at most 60", [60.0]),
        ({"above": True, "below": True}, "50, noise ± 10", []),
        ({}, "50 ± 10", [40.0, 60.0]),
    ],
)
def test_open_bars_have_no_end_and_lead_out_of_sight(sides: dict[str, bool], words: str, caps: list[float]) -> None:
    """An end that is drawn is one that is known."""
    page = Page(display.error_bar(50.0, 10.0, (1.0, 101.0), **sides))
    lines = [{name: float(line[name] or "nan") for name in ("x1", "x2", "y1", "y2")} for line in page.all("line")]
    assert [line["x1"] for line in lines if line["x1"] == line["x2"]] == pytest.approx(
        [4 + 112 * (cap - 1) / 100 for cap in caps], abs=0.1
    )
    reach = min(line["x1"] for line in lines), max(line["x2"] for line in lines)
    assert (reach[0] == 4) == sides.get("below", False) and (reach[1] == 116) == sides.get("above", False)
    assert page.all("svg")[0]["aria-label"] == words
    outside = Page(display.error_bar(50.0, 100.0, (0.0, 2.0), doubt=True))
    assert not outside.all("circle") and len(outside.all("line")) == 1, "a point out of sight is not put elsewhere"


# what is shown of each thing


def test_a_plan_shows_its_steps_price_unit_and_hash() -> None:
    plan = by_ward(0.5)
    words = shown(plan).words
    for part in ("Plan: Laplace", "epsilon = 0.5", "everything one id ever contributed", "±", plan.hash[:16]):
        assert part in words


def test_statements_of_a_query_open_on_a_click() -> None:
    schema = Schema({"visits": Table({"id": key(), "x": real(0, 9)}, unit="id")})
    plan = sf.sql("SELECT COUNT(*) AS n FROM visits", schema, unit=USER, epsilon=1, limits={"rows": 2})
    page = shown(plan)
    assert page.all("details") and "SELECT" in page.words


def test_a_quote_shows_the_budget_before_and_after() -> None:
    curator, _ = desk(Budget(epsilon=4))
    quote = curator.quote(by_ward(1.0))
    assert quote.used == {EVIL: (0.0, 0.25)}
    assert "0 % spent, this 25 %, 75 % left" in shown(quote).words and "Quote: fits the budget" in shown(quote).words
    curator.release(by_ward(1.0))
    poor = curator.quote(by_ward(3.5))
    assert poor.used == {EVIL: (0.25, math.inf)} and not poor.affordable
    words = shown(poor).words
    assert "25 % spent, this does not fit, more than is left" in words and "does not fit the budget" in words


def test_a_quote_without_accounts_that_have_limits() -> None:
    assert "Quote: fits" in shown(Quote(laplace(1), True)).words
    assert "no limit" in shown(Quote(laplace(1), True, ("top: no limit of its own",), {"top": (None, None)})).words


def test_a_release_has_an_error_bar_for_each_number_and_says_what_was_paid() -> None:
    curator, _ = desk()
    released = curator.release(by_ward())
    page = shown(released)
    assert released.receipt is not None
    assert len(page.all("svg")) == 2 and released.receipt.id[:8] in page.words and "exact noise" in page.words
    assert "hides everything one id ever contributed" in page.words and "Rehearsed" not in page.words
    assert "Rehearsed on made-up rows" in shown(curator.rehearse(by_ward())).words


def test_parts_of_a_sequence_have_scales_of_their_own() -> None:
    plan = sf.sequence(n=laplace(1), h=m.Laplace(query=bounds.histogram("w", ["a", "b"], Unit()), epsilon=1))
    page = shown(Release(plan, {"n": np.array([1e9]), "h": np.array([2.0, 30.0])}, None))
    at = [float(dot["cx"] or "nan") for dot in page.all("circle")]
    assert len(at) == 3 and at[2] - at[1] > 50, "beside a thousand millions, 2 and 30 would be one point"


def test_long_releases_are_cut_and_say_so() -> None:
    plan = sf.repeat(laplace(0.1), 30)
    page = shown(Release(plan, tuple(np.array([float(i)]) for i in range(30)), None))
    assert len(page.all("svg")) == 20 and "... and 10 more" in page.words


def test_queries_in_a_sequence_show_their_tables() -> None:
    released, _ = queried()
    page, text = shown(released), str(released)
    assert page.words.count("hidden by noise") <= 2 and len(page.all("table")) == 2
    assert "first:\nward" in text and "second:\n" in text
    assert text.count("at least, at 95 %") == 2 and text.count("± at 95 %") == 1
    assert len(page.all("svg")) == 3


def queried() -> tuple[Release, Curator]:
    table = Table({"id": key(), "ward": category(["a", "b"]), "x": real(0, 9)}, unit="id")
    data = {"id": [1, 2, 3], "ward": ["a", "b", "a"], "x": [1.0, 2.0, 3.0]}
    held = Private("visits", data, unit=USER, schema=Schema({"visits": table}))
    curator = Curator(held, MemoryLedger({"visits": Budget(epsilon=9)}))
    first = sf.sql("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", held, epsilon=1, limits={"rows": 2})
    second = sf.sql("SELECT SUM(x) AS total FROM visits", held, epsilon=1, limits={"rows": 2})
    return curator.release(sf.sequence(first=first, second=second)), curator


def test_a_budget_says_what_it_promises() -> None:
    words = shown(Budget(epsilon=1, delta=1e-6)).words
    assert "stays within epsilon = 1, delta = 1e-06" in words and "mu^2" in words and "one gauge has room" in words
    assert "rho = 0.1" in shown(Budget(rho=0.1)).words and "one gauge" not in shown(Budget(rho=0.1)).words


def test_a_statement_has_a_bar_for_each_gauge() -> None:
    curator, ledger = desk(Budget(epsilon=4, delta=1e-6))
    curator.release(by_ward(1.0))
    told = ledger.statement(EVIL)
    page = shown(told)
    html = told._repr_html_()
    above, _, gauges = html.partition("<details>")
    gauges, _, below = gauges.partition("</details>")
    assert len(told.standing) > 1 and told.failures_delta is not None and told.balance is not None
    assert above.count("<svg") == 1 and str(told.balance) in page.words, "the one number, with its bar"
    assert gauges.count("<svg") == len(told.standing) + 1, "and one for the delta of the releases themselves"
    assert all(each.currency in gauges for each in told.standing) and "delta of the releases themselves" in gauges
    assert len(page.all("svg")) == html.count("<svg") and "<svg" not in below
    assert "25 % spent, 75 % left" in page.words and told.guarantee.split("\n")[0][:60] in page.words


def test_a_ledger_shows_accounts_below_their_own() -> None:
    ledger = MemoryLedger({"top": Budget(epsilon=2)})
    ledger.open_account("left", Budget(epsilon=1), parent="top", level="team", reason="a team")
    ledger.open_account("other", Budget(epsilon=1), reason="another")
    ledger.open_account("right", Budget(epsilon=1), parent="top", level="team", reason="a team")
    ledger.close_account("right", reason="over")
    page = shown(ledger)
    order = [page.words.index(name) for name in ("top", "left", "right", "other")]
    assert order == sorted(order) and "closed" in page.words and len(page.all("svg")) == 4
    for number in range(60):
        ledger.open_account(f"more {number}", Budget(epsilon=1), reason="many")
    assert "... and 14 more accounts" in shown(ledger).words


def test_a_ledger_that_was_closed_says_so(tmp_path: Path) -> None:
    with sf.open_ledger(tmp_path / "budget.ledger", create=True, principal="bea") as ledger:
        ledger.open_account("d", Budget(epsilon=1), reason="first")
        assert "epsilon = 1" in shown(ledger).words
    assert "closed: open it anew" in shown(ledger).words


def test_an_account_that_is_locked_or_held_says_so() -> None:
    ledger = MemoryLedger({"d": Budget(epsilon=2)})
    plan = laplace(0.1)
    receipt = ledger.hold((), plan, data="d@1", grade="exact", note="")
    assert "1 held" in shown(ledger).words and "1 open" in shown(ledger.statement("d")).words
    ledger.close(receipt)
    for number in range(3):
        failed = ledger.spend((), laplace((number + 1) / 100), data="d@1", grade="exact", note="")
        ledger.open(failed)
        ledger.settle(failed, "failed")
    assert "locked" in shown(ledger).words and "locked" in shown(ledger.statement("d")).words


def test_how_much_of_an_account_is_used() -> None:
    ledger = MemoryLedger({"d": Budget(epsilon=4, delta=1e-6)})
    ledger.open_account("folder", None, reason="a folder")
    assert ledger.used("d") == 0 and ledger.used("folder") is None and ledger.used("folder", laplace(1)) is None
    assert ledger.used("d", laplace(1)) == pytest.approx(0.25) and ledger.used("d", laplace(4.5)) == math.inf
    many = m.Gaussian(query=bounds.count(Unit()), epsilon=1, delta=4e-8)
    for _ in range(2):
        ledger.spend((), many, data="d@1", grade="exact", note="")
    told = ledger.statement("d")
    gone = {each.currency: each.used for each in told.standing}
    assert gone["epsilon"] == pytest.approx(0.8) and ledger.used("d") == told.balance.used
    assert ledger.used("d") < 0.4, "most of the delta for plans is gone, but Gaussian releases go on without it"
    expected = ledger.used("d", many)
    ledger.spend((), many, data="d@1", grade="exact", note="")
    assert ledger.statement("d").closed == ("epsilon",) and ledger.used("d") == expected < 0.5

    ledger = MemoryLedger({"d": Budget(epsilon=4, delta=1e-6, shares={"plans": 1})})
    ledger.spend((), m.Gaussian(query=bounds.count(Unit()), epsilon=1, delta=4e-7), data="d@1", grade="exact", note="")
    assert ledger.used("d") == pytest.approx(0.4), "nothing goes on without the delta for plans"


# every kind of plan


def rehearsed(plan: Plan[Any, Any]) -> Release:
    asks = isinstance(plan, Sql | SqlReport | SqlSeries | SqlWorkload)
    schema = plan.schema if asks else Schema({"data": table_for(plan)})  # type: ignore[attr-defined]
    table = schema.table()
    data: dict[str, list[Any]] = {name: [] for name in table.columns}
    budget = Budget(epsilon=100, delta=0.5) if plan.delta else Budget(rho=100)
    return Curator(Private("d", data, unit=plan.unit, schema=schema), MemoryLedger({"d": budget})).rehearse(plan)


@pytest.mark.filterwarnings("ignore::sfumato.errors.PrivacyWarning")
@pytest.mark.parametrize("kind", EXAMPLES, ids=lambda kind: kind.__name__)
def test_every_kind_of_plan_and_its_release_can_be_shown_and_taken_along(kind: type[Plan[Any, Any]]) -> None:
    plan = EXAMPLES[kind]()
    assert f"Plan: {kind.__name__}" in shown(plan).words
    released = rehearsed(plan)
    assert shown(released).words and str(released) and released.rows() is not None
    figures = released.figures()
    assert all(isinstance(each.name, str) for each in figures)
    pandas, polars, arrow = released.to_pandas(), released.to_polars(), released.to_arrow()
    assert len(pandas) == len(polars) == arrow.num_rows
    assert list(pandas.columns) == polars.columns == arrow.column_names
    if not isinstance(plan, Sql | SqlReport | SqlWorkload):
        assert polars.columns == ["name", "value", "error"] and len(polars) == len(figures)


# frames


def test_frames_hold_name_value_and_error(tmp_path: Path) -> None:
    plan = sf.sequence(n=laplace(1), h=m.Laplace(query=bounds.histogram("w", ["a", "b"], Unit()), epsilon=1))
    released = Release(plan, {"n": np.array([4.5]), "h": np.array([2.0, 30.0])}, None)
    frame = released.to_polars()
    assert frame["name"].to_list() == ["n", "h / a", "h / b"] and frame["value"].to_list() == [4.5, 2.0, 30.0]
    assert frame["error"].to_list() == pytest.approx([each.error for each in released.figures()])
    assert released.to_pandas().to_dict("list") == frame.to_dict(as_series=False)
    assert released.to_arrow().to_pydict() == frame.to_dict(as_series=False)
    assert released.to_pandas(0.5)["error"][0] < frame["error"][0]
    path = tmp_path / "taken.csv"
    assert released.to_csv(path) is None and path.read_text(encoding="utf-8") == released.to_csv()
    rows = csv.DictReader(path.read_text(encoding="utf-8").splitlines())
    assert [row["name"] for row in rows] == ["n", "h / a", "h / b"]
    with pytest.raises(ArgumentError, match="alpha"):
        released.to_polars(2.0)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": 1, "b": 2}, [1, 2]),
        ({"a": 1, "b": 2.5}, [1.0, 2.5]),
        ({"a": 1, "b": None}, [1, None]),
        ({"a": True, "b": False}, [True, False]),
        ({"a": True, "b": 2}, ["True", "2"]),
        ({"a": "x", "b": 2.5}, ["x", "2.5"]),
        ({"a": 2**80, "b": 1}, [float(2**80), 1.0]),
        ({"a": {"x": [1, 2]}, "b": []}, [1, 2]),
        ({}, []),
    ],
    ids=str,
)
def test_a_column_of_a_frame_has_one_type(value: Any, expected: list[Any]) -> None:
    plan = sf.reserve(lambda run: value, unit=Unit(), budget=Budget(epsilon=1))
    released = Release(plan, value, None)
    assert released.to_polars()["value"].to_list() == expected
    assert released.to_arrow()["value"].to_pylist() == expected
    assert len(released.to_pandas()) == len(expected)


def test_the_release_of_a_query_is_its_table() -> None:
    released, curator = queried()
    assert [each.name for each in released.figures()] == ["first / a / n", "first / b / n", "second / total"]
    assert all(each.error is not None and each.error > 0 for each in released.figures())
    assert released.to_pandas()["name"].tolist() == [each.name for each in released.figures()]
    alone = curator.rehearse(released.plan.parts["first"])
    assert list(alone.to_pandas().columns) == ["ward", "n", "n_std", "n_low", "n_high", "n_bias"]
    assert alone.to_polars().columns == alone.to_arrow().column_names == list(alone.to_pandas().columns)
    assert [row[0] for row in alone.rows()] == ["a / n", "b / n"]
    assert (alone.to_csv() or "").startswith("ward,n,n_std,n_low,n_high,n_bias\n")


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("pandas", lambda released: released.to_pandas()),
        ("polars", lambda released: released.to_polars()),
        ("pyarrow", lambda released: released.to_arrow()),
    ],
)
def test_a_missing_library_is_named(
    name: str, taken: Callable[[Release], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ArgumentError, match=f"{name} is not installed: pip install {name}"):
        taken(Release(laplace(1), np.array([1.0]), None))
