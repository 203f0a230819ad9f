"""The pages of docs/migration: complete, and both sides of each give answers of one meaning."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from bench import migration, peers
from bench.migration import COUNT, DRUGS, PAGES, REFUSED, TOTALS, Page, Question, right

SECTIONS = (
    "Words", "What becomes simpler", "What has no counterpart here yet", "What differs in the guarantee",
    "Your budget so far",
)  # fmt: skip


def _assigned(side: list[tuple[str, str]]) -> set[str]:
    trees = [ast.walk(ast.parse(text)) for _, text in side]
    return {
        node.id for tree in trees for node in tree if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def test_every_page_is_checked_and_linked() -> None:
    written = {path.stem for path in migration.FOLDER.glob("*.md")} - {"index"}
    index = (migration.FOLDER / "index.md").read_text(encoding="utf-8")
    assert written == set(PAGES) == set(re.findall(r"\]\(([\w-]+)\.md\)", index))


@pytest.mark.parametrize("name", PAGES)
def test_a_page_says_all_that_it_should(name: str) -> None:
    text = (migration.FOLDER / f"{name}.md").read_text(encoding="utf-8")
    assert [section for section in SECTIONS if f"\n## {section}\n" not in text] == []
    version = peers.PEERS[PAGES[name].peer][0].partition("==")[2]
    assert version in text, f"the page is not about {version}, which is what runs"
    assert f"`python -m bench.migration {name}`" in " ".join(text.split())


@pytest.mark.parametrize("name", PAGES)
def test_both_sides_answer_the_same_questions(name: str) -> None:
    theirs, ours = migration.sides(name)
    questions = set(PAGES[name].questions)
    assert len(questions) >= 4
    assert questions <= _assigned(theirs[1:]) and questions <= _assigned(ours[1:])
    assert theirs[0] == ours[0] and not any("sfumato" in text for _, text in theirs)


TRUTH = {"a": 5000.0, "b": 900.0, "c": 3.0, "d": 1.0}


@pytest.mark.parametrize(
    ("question", "found", "truth", "verdict"),
    [
        (COUNT, 1000.0, 1100, True),
        (COUNT, 1000.0, 2000, False),
        (COUNT, None, 100, False),
        (COUNT, True, 1, False),
        (COUNT, {"n": 1000.0}, 1000, False),
        (COUNT, float("nan"), 1000, False),
        (REFUSED, True, True, True),
        (REFUSED, False, True, False),
        (REFUSED, 1.0, True, False),
        (TOTALS, {"e": 1e6, "n": 2e6}, {"e": 1e6 + 9, "n": 2e6}, True),
        (TOTALS, {"e": 1e6}, {"e": 1e6, "n": 2e6}, False),
        (TOTALS, {"e": 1e6, "n": 2e6, "x": 0.0}, {"e": 1e6, "n": 2e6}, False),
        (TOTALS, {"e": 1e6, "n": None}, {"e": 1e6, "n": 2e6}, False),
        (TOTALS, 3e6, {"e": 1e6, "n": 2e6}, False),
        (DRUGS, {"a": 5100.0}, TRUTH, True),
        (DRUGS, {"a": 5100.0, "b": 1000.0, "c": 9.0}, TRUTH, True),
        (DRUGS, {"a": 5100.0, "c": 9.0, "d": 9.0}, TRUTH, False),
        (DRUGS, {"b": 1000.0}, TRUTH, False),
        (DRUGS, {"a": 5100.0, "unheard of": 1.0}, TRUTH, False),
    ],
)
def test_an_answer_is_judged(question: Question, found: Any, truth: Any, verdict: bool) -> None:
    assert right(question, found, truth) is verdict


DATA = """
with open("visits.csv", "w") as file:
    print("patient,ward,drug,cost", *["1,east,D00,5"] * 3000, sep="\\n", file=file)
"""


@pytest.mark.parametrize(
    ("theirs", "ours", "missed"),
    [
        ("count = 3000", "count = 2990", []),
        ("print('{}'); count = 3000", "import decimal; count = decimal.Decimal(3001)", []),
        ("count = 1", "count = 3000", ["made-up: count by peer"]),
        ("count = 3000", "counted = 3000", ["made-up: count by sfumato"]),
        ("count = 3000; open('visits.csv', 'a').write('1,east,D00,5')", "count = 3000", ["made-up: one file for both"]),
    ],
)
def test_a_side_that_is_wrong_is_noticed(
    theirs: str, ours: str, missed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"```python\n{DATA}```\n\n```python no-run\n{theirs}\n```\n\n```python\n{ours}\n```\n"
    (tmp_path / "made-up.md").write_text(text, encoding="utf-8")
    monkeypatch.setattr(migration, "FOLDER", tmp_path)
    monkeypatch.setitem(PAGES, "made-up", Page("peer", {"count": COUNT}))
    monkeypatch.setattr(peers, "run", lambda peer, *asked, **how: peers.run_ours(*asked, **how))
    assert [bar.promise for bar in migration.check("made-up") if not bar.kept] == missed


def test_a_side_that_breaks_off_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "made-up.md").write_text(f"```python\n{DATA}```\n\n```python\n1 / 0\n```\n", encoding="utf-8")
    monkeypatch.setattr(migration, "FOLDER", tmp_path)
    monkeypatch.setitem(PAGES, "made-up", Page("peer", {"count": COUNT}))
    monkeypatch.setattr(peers, "run", lambda peer, *asked, **how: peers.run_ours(*asked, **how))
    with pytest.raises(peers.PeerFailedError, match=r"made-up\.md:"):
        list(migration.check("made-up"))


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_both_sides_of_a_page_are_right(name: str) -> None:
    if not peers.ready(PAGES[name].peer):
        pytest.skip(f"{PAGES[name].peer} is not installed: make bench-setup")
    assert [bar for bar in migration.check(name) if not bar.kept] == []
