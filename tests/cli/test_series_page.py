"""The page of a series: drawings that say what the table says, and texts that stay texts."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from sfumato.cli.work.series_page import MOST_LINES, drawing, series_page
from sfumato.report.svg_windows import Told, over_time
from tests.query.series_kit import ADS, FIRST, day
from tests.query.test_series_reading import made_up, month_plan


@pytest.fixture(scope="module")
def plan() -> Any:
    return month_plan(days=28, levels={"day": {"limits": {"rows": 400}}})


def reading(plan: Any, **how: Any) -> Any:
    rng = np.random.default_rng(7)
    return plan.read(made_up(plan, np.full((28, 3), (5000, 900, 0)), rng, **how))


def lines_in(page: str) -> list[ElementTree.Element]:
    (drawn,) = re.findall(r'<svg class="plot".*?</svg>', page, flags=re.S)
    return list(ElementTree.fromstring(drawn))


def test_a_page_draws_each_group_with_its_band_and_tells_price_and_unit(plan: Any) -> None:
    page = series_page("clicks <by> ad", plan, reading(plan).by_level("day"))
    assert "clicks &lt;by&gt; ad" in page and "epsilon" in page and "reader" in page and "COUNT(*)" in page
    parts = lines_in(page)
    lines = [part for part in parts if part.tag == "polyline"]
    assert len(lines) == 3 == len([part for part in parts if part.tag == "polygon"])
    assert all(len(line.attrib["points"].split()) == 28 for line in lines)
    assert [line.find("title").text for line in lines] == list(ADS), "the largest first"  # type: ignore[union-attr]
    hollow = [part for part in parts if "hollow" in part.attrib.get("class", "")]
    assert len(hollow) == page.count("<td>hidden ±") > 14, "where nobody clicks, noise may be all"
    assert "script" not in page and "http" not in page.replace("http-equiv", "")


def test_a_window_that_cannot_be_told_leaves_a_gap(plan: Any) -> None:
    missing = f"day {day(9).isoformat()}"
    page = series_page("t", plan, reading(plan, without=(missing,)).by_level("day"))
    lines = [part for part in lines_in(page) if part.tag == "polyline"]
    assert [len(line.attrib["points"].split()) for line in lines] == [9, 18] * 3
    page = series_page("t", plan, reading(plan, without=(missing,)).rolling(2))
    lines = [part for part in lines_in(page) if part.tag == "polyline"]
    assert [len(line.attrib["points"].split()) for line in lines] == [8, 17] * 3
    assert page.count("<td>not told</td>") == 3, "that which ends on the missing day is no window"


def test_one_window_is_a_table_alone_and_the_largest_groups_are_drawn(plan: Any) -> None:
    whole = reading(plan).window(FIRST, day(27))
    page = series_page("t", plan, whole)
    assert 'class="plot"' not in page and page.count("<tr>") == 1 + 3
    assert drawing(whole, 0)["left_out"] == 0 and len(drawing(whole, 0)["names"]) == 3 < MOST_LINES


@pytest.mark.parametrize(
    ("most", "labels"),
    [
        (18_270.0, ["0", "5,000", "10,000", "15,000"]),
        (7e6, ["0", "2 M", "4 M", "6 M"]),
        (0.7, ["0", "0.2", "0.4", "0.6"]),
    ],
)
def test_the_scale_has_round_numbers(most: float, labels: list[str]) -> None:
    drawn = over_time([("a", [Told(FIRST, most / 2, 0.0, most), Told(day(1), most / 2, 0.0, most)])])
    ticks = re.findall(r'text-anchor="end">([^<]*)</text>', drawn)
    assert [tick for tick in ticks if "-" not in tick] == labels


def test_names_of_groups_stay_texts_and_nothing_is_drawn_of_nothing() -> None:
    told = [Told(day(n), 3.0 + n, 2.0, 9.0) for n in range(3)]
    drawn = over_time([("<script>x</script>", told)])
    assert "<script>" not in drawn and "&lt;script&gt;" in drawn
    ElementTree.fromstring(drawn)
    assert over_time([("a", [Told(FIRST, None, 0.0, 0.0)])]) == "" == over_time([])
