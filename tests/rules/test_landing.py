"""The first page: five lines that run (every block of a page does), and a picture of what they answer."""

from __future__ import annotations

import math
import re

import pytest

from bench.plots import landing
from sfumato.example import hospital
from tests.pages import ROOT, blocks

PAGES = {"README.md": "docs/assets/landing.svg", "docs/index.md": "assets/landing.svg"}


@pytest.mark.parametrize("page", PAGES)
def test_a_first_page_has_five_lines_and_their_picture(page: str) -> None:
    first = next(block for block in blocks(ROOT / page) if block.kind == "python")
    lines = [line for line in first.text.splitlines() if line.strip()]
    assert len(lines) == 5 and first.mark != "no-run"
    assert landing.QUESTION in first.text and f'epsilon={landing.EPSILON}, limits="advise")' in first.text
    text = (ROOT / page).read_text(encoding="utf-8")
    (picture,) = re.findall(r"!\[[^\]]{40,}\]\(([^)]+)\)", text)
    assert picture == PAGES[page] and ((ROOT / page).parent / picture).is_file()


def test_the_picture_is_of_this_question() -> None:
    drawn = (ROOT / "docs" / "assets" / "landing.svg").read_text(encoding="utf-8")
    assert landing.QUESTION in drawn
    for ward in set(hospital().visits["ward"].tolist()):
        assert ward in drawn


def test_its_bars_hold_the_truth() -> None:
    """All but by chance: the noise is of a fixed seed, so that is known."""
    answer, wards = landing.answered(), hospital().visits["ward"].tolist()
    ends = dict(zip(answer["ward"], answer.interval("n"), strict=True))
    held = [ward for ward, (low, high) in ends.items() if low <= wards.count(ward) <= high]
    assert len(ends) == 5 and len(held) >= 4
    assert all(math.isfinite(high) for _, high in ends.values()), "a picture of error bars needs both of their ends"
    drawn = (ROOT / "docs" / "assets" / "landing.svg").read_text(encoding="utf-8")
    for ward, value in zip(answer["ward"], answer["n"], strict=True):
        assert f"{value:,.0f} ±" in drawn, f"draw it anew, {ward} changed: python -m bench.plots landing"
