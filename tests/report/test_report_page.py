"""Nothing that a name, a note, a category or a query holds can become more than text on a page."""

from __future__ import annotations

import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato import Budget, Curator, MemoryLedger, Private, Unit, bounds, mechanisms
from sfumato.errors import ArgumentError
from sfumato.ledger import About
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.stores.memory import MemoryStore
from sfumato.report import account_report, answers, json_schema, release_report, svg, words
from sfumato.report.pages import _environment
from sfumato.schema import Schema, category, key
from tests.helpers import few
from tests.report.reading import document, page

HOSTILE = [
    "<script>alert(1)</script>",
    "\"' onmouseover='alert(1)' x=\"",
    "</title></style></pre><img src=x onerror=alert(1)>",
    "{{ 7 * 7 }}{% for x in y %}{# #}",
    "\u202egnp.exe\u2066\u200f\u200b",
    "&lt;b&gt; &amp; &#x3C;",
    "line one\nline two\n\n<b>three</b>",
    "]]><!-- --> <![CDATA[",
    "x" * 3000,
    "javascript:alert(1) url(http://example.com)",
    "𝕳ello 𐍈 ﷽ naïve 中文",
]


def printable(text: str) -> str:
    """As much of it as a name may hold."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)[:120]


def hostile(text: str) -> tuple[Ledger, str]:
    """A ledger in which that text stands wherever somebody could put it."""
    label = printable(text)
    unit = Unit(f"user:{label}")
    ledger = Ledger(MemoryStore(), principal=label)
    ledger.open_account(label, Budget(epsilon=3), level="data set", unit=unit, reason=text)
    ledger.open_account(label + "2", Budget(epsilon=1), parent=label, level="team")
    private = Private(
        label, {label: [1, 2, 3], "ward": [text, "b", text]}, unit=unit, version=label[:50],
        schema=Schema.of(**{label: key(), "ward": category([text, "b"]), "unit": label}),
    )  # fmt: skip
    plan = mechanisms.Laplace(query=bounds.histogram("ward", [text, "b"], unit, per_unit=1), epsilon=1)
    release = Curator(private, ledger).release(plan, note=text, key=label)
    ledger.declare(private.address, "without DP", label, recipients=label, reason=label)
    assert release.receipt is not None
    return ledger, release.receipt.id


ABOUT = (
    "name",
    "intended_use",
    "trust",
    "security",
    "utility",
    "bias",
    "access",
    "minimisation",
    "justification",
    "sources",
)


@pytest.fixture(scope="module")
def harmless() -> dict[str, list[str]]:
    """The tags of the same reports where every word is a plain one."""
    ledger, id = hostile("plain")
    about = About(**dict.fromkeys(ABOUT, "plain"), curators=("plain", "plain"))
    reports = (release_report(ledger, id, about=about), account_report(ledger, "plain", about=about))
    return {report.document["report"]: page(report).tags for report in reports}


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_words_stay_words(text: str, harmless: dict[str, list[str]]) -> None:
    ledger, id = hostile(text)
    account = printable(text)
    about = About(**dict.fromkeys(ABOUT, text), curators=(text, text))
    for report in (release_report(ledger, id, about=about), account_report(ledger, account, about=about)):
        found, shown, html = document(report), page(report), report.html()
        assert shown.tags == harmless[found["report"]]
        assert not any(mark in html for mark in "\u202e\u2066\u200f\u200b")
        if text.isprintable() and len(text) < 1000:
            assert text in shown.text
        assert json.loads(report.json()) == found
        assert report.json().isascii()


def test_a_category_keeps_every_letter_in_the_json_form() -> None:
    text = "\u202e<b>\u200b\n"
    ledger, id = hostile(text)
    cells = [row[0]["value"] for row in document(release_report(ledger, id))["answer"]["tables"][0]["rows"]]
    assert cells == [text, "b"]


def test_halves_of_letters_can_be_written(tmp_path: Path) -> None:
    """No ledger takes them, but somebody may say them."""
    ledger = MemoryLedger({"a": Budget(epsilon=1)})
    report = account_report(ledger, "a", about=About(utility="half \ud800 a letter"))
    report.write(tmp_path / "a.html"), report.write(tmp_path / "a.json")
    assert "\\ud800" in (tmp_path / "a.html").read_text(encoding="utf-8")


@pytest.mark.slow
@few
@given(text=st.text(max_size=80))
def test_any_text_is_only_text(text: str) -> None:
    ledger = MemoryLedger({"a": Budget(epsilon=1)})
    report = account_report(ledger, "a", about=About(utility=text, security=text, name=text or None))
    document(report)
    page(report)


def test_no_template_turns_escaping_off() -> None:
    folder = Path(words.__file__).with_name("templates")
    for template in folder.glob("*.j2"):
        text = template.read_text(encoding="utf-8")
        assert "autoescape" not in text and "<script" not in text and "http://" not in text and "https://" not in text
        assert text.count("| safe") <= 1  # a constant of the template's own
    assert _environment().autoescape is True


def test_without_jinja_the_json_form_is_there_and_the_page_says_what_to_install(tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['jinja2'] = None\n"
        "import sfumato as sf\nfrom sfumato.report import account_report\n"
        "report = account_report(sf.MemoryLedger({'a': sf.Budget(epsilon=1)}), 'a')\n"
        "report.write('a.json')\n"
        "try:\n    report.write('a.html')\n"
        "except sf.errors.ArgumentError as problem:\n    print(problem)\n"
    ).replace("sf.errors", "__import__('sfumato.errors', fromlist=['x'])")
    source = str(Path(sf.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path,
        env={"PYTHONPATH": source},
    )  # fmt: skip
    assert "pip install '.[report]'" in done.stdout
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.json"]


def test_the_schema_is_strict() -> None:
    schema = json_schema()

    def strict(part: Any) -> None:
        if isinstance(part, dict):
            if part.get("type") == "object" and "properties" in part:
                assert part["additionalProperties"] is False
            for each in part.values():
                strict(each)
        elif isinstance(part, list):
            for each in part:
                strict(each)

    strict(schema)
    report = account_report(MemoryLedger({"a": Budget(epsilon=1)}), "a")
    broken = report.as_dict() | {"more": 1}
    with pytest.raises(AssertionError):
        document(type(report)(broken))
    lacking = report.as_dict()
    del lacking["not_protected"]
    with pytest.raises(AssertionError):
        document(type(report)(lacking))


def cell(value: Any, low: Any, high: Any, hidden: bool = False) -> dict[str, Any]:
    return {"text": "", "value": value, "low": low, "high": high, "error": "± 1", "hidden": hidden}


@pytest.mark.parametrize(
    "cells",
    [
        [cell(5, 4, 6), cell(-3, -4, -2)],
        [cell(1e300, -1e300, 1.7e308), cell(0, 0, 0)],
        [cell(5, None, None), cell(6, 5, None), cell(0, -1, 1, True)],
        [cell("2026-01-31", "2026-01-30", "2026-02-02"), cell("2026-03-01", "2026-02-01", "2026-04-01")],
        [cell("2026-01-31T10:00:00", "2026-01-30T10:00:00", "2026-02-02T10:00:00"), cell(None, None, None)],
        [cell(1e-300, 0.5e-300, 2e-300), cell(3e-300, 2e-300, 4e-300)],
    ],
)
def test_error_bars_lie_in_their_drawing(cells: list[dict[str, Any]]) -> None:
    drawn = svg.error_bars(cells)
    assert any(drawn) and len(drawn) == len(cells)
    for each in filter(None, drawn):
        for place in ("x1", "x2", "cx"):
            for part in each.split(f' {place}="')[1:]:
                assert 0 <= float(part.split('"')[0]) <= 132
        assert "nan" not in each and "inf" not in each


@pytest.mark.parametrize(
    "cells", [[], [cell(5, 5, 5)], [cell(None, None, None)], [cell("a", None, None)], [cell(True, 0, 1)]]
)
def test_where_there_is_nothing_to_draw_nothing_is_drawn(cells: list[dict[str, Any]]) -> None:
    assert svg.error_bars(cells) == [""] * len(cells)


def test_a_wider_bar_is_drawn_wider() -> None:
    narrow, wide = svg.error_bars([cell(10, 9, 11), cell(10, 5, 15)])

    def width(drawn: str) -> float:
        part = drawn.split('class="span" x1="')[1]
        return float(part.split('x2="')[1].split('"')[0]) - float(part.split('"')[0])

    assert width(wide) == pytest.approx(5 * width(narrow), rel=0.05)


@pytest.mark.parametrize(
    ("before", "after"), [(0, 0), (0.5, 0.75), (None, 0.5), (0.5, None), (1, 1), (0.9, 1.7), (2, 3)]
)
def test_a_meter_stays_within_its_limit(before: float | None, after: float | None) -> None:
    drawn = svg.meter(before, after)
    widths = [float(part.split('"')[0]) for part in drawn.split('width="')[1:]]
    assert sum(widths[1:]) <= 100.001 and min(widths) >= 0
    assert svg.meter(None, None) == ""


@pytest.mark.parametrize("value", [
    3, 2.5, True, "north", None, {"a": 1, "b": {"c": 2.0}}, [1, [2, 3]], {}, [], float("nan"), float("inf"), (1, None),
    {"a": None}, 10**400,
], ids=lambda value: str(value)[:20])  # fmt: skip
@pytest.mark.parametrize("error", [None, 1.0, {"a": 2.0}, [1.0], float("inf"), "odd"])
def test_any_shape_of_answer_becomes_a_table(value: Any, error: Any) -> None:
    for table in answers.tables(value, error):
        json.dumps(table, allow_nan=False)
        assert all(len(row) == len(table["columns"]) for row in table["rows"])


@pytest.mark.parametrize(
    ("given", "said"),
    [("1e-7", "1e-7"), ("0.1", "0.1"), ("123456.7", "123457"), ("1/3", "0.333334"), ("1e-300", "1e-300"), ("2", "2")],
)
def test_prices_are_rounded_up(given: str, said: str) -> None:
    assert words.above(Fraction(given)) == said and Fraction(said) >= Fraction(given)


def test_an_answer_of_sql_inside_a_list_has_a_table_of_its_own() -> None:
    class Table:
        columns, numbers, notes = ("n",), ("n",), ("a note",)
        unreliable = {"n": [True]}  # noqa: RUF012

        def __getitem__(self, name: str) -> list[float]:
            return [5.0]

        def __len__(self) -> int:
            return 1

        def interval(self, name: str, alpha: float) -> list[tuple[float, float]]:
            return [(4.0, 6.0)]

        def half_width(self, name: str, alpha: float) -> list[float]:
            return [1.0]

        noise_width = half_width

    found = answers.tables({"one": Table(), "two": 3.0}, None)
    assert [table["title"] for table in found] == ["one", "two"] and found[0]["rows"][0][0]["hidden"]


def test_path_of_a_report_is_checked_before_it_is_drawn() -> None:
    report = account_report(MemoryLedger({"a": Budget(epsilon=1)}), "a")
    with pytest.raises(ArgumentError, match="path"):
        report.write("a.pdf")
