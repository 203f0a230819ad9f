"""What people type, and what nobody should: whatever it is, it ends with words and a code of the table."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sfumato import checks
from sfumato.cli.problems import CommandError, meant, problem_of
from sfumato.cli.work.typed_query import TypedQuery
from tests.cli.front import make_project, sfumato

TEXT = st.text(max_size=30)
PAIRS = st.lists(TEXT | st.from_regex(r"\A[a-z.]{0,6}=[a-z0-9.,:\"]{0,10}\Z"), max_size=4)
CODES = {0, 2, 3, 4, 5}


@given(TEXT, TEXT, PAIRS, PAIRS, PAIRS, PAIRS, PAIRS)
@example("1e999999999", "1/0", ["rows=1e400"], ["a=1:"], ["a=,"], ["a=b"], ["=1"])
def test_options_are_read_or_refused_in_words(
    epsilon: str,
    delta: str,
    limit: list[str],
    bounds: list[str],
    keys: list[str],
    share: list[str],
    accuracy: list[str],
) -> None:
    asked = TypedQuery(
        "SELECT 1", epsilon=epsilon, delta=delta, limit=limit, bounds=bounds, keys=keys, share=share, accuracy=accuracy
    )
    try:
        asked.options()
    except CommandError as refused:
        problem = problem_of(refused)
        assert problem.what and problem.why and problem.fix and problem.code == 2


def test_numbers_are_exact() -> None:
    given_ = TypedQuery("q", epsilon="0.1", delta="1e-7", rho="1/3", limit=["rows=2.5", "keys=3", "reach.total=1e3"])
    found = given_.options()
    read = [checks.positive(found[name], name) for name in ("epsilon", "delta", "rho")]
    assert read == [Fraction(1, 10), Fraction(1, 10**7), Fraction(1, 3)]
    assert found["limits"] == {"rows": Fraction(5, 2), "keys": 3, "reach": {"total": 1000}}


def test_columns_bounds_and_groups_are_read() -> None:
    asked = TypedQuery(
        "q", bounds=["cost=-5:1e3"], keys=['ward="a, b",c,12', "day=select"], accuracy=["n=50"], alpha=0.1
    )
    found = asked.options()
    assert found["bounds"] == {"cost": (-5, 1000)} and found["keys"] == {"ward": ["a, b", "c", 12], "day": "select"}
    assert found["accuracy"] == {"n": 50} and found["alpha"] == 0.1
    assert TypedQuery("q", accuracy=["rank.m=20", "n=5"]).options()["accuracy"] == {"m": {"rank": 20}, "n": 5}
    with pytest.raises(CommandError, match="not understood"):
        TypedQuery("q", accuracy=["rank.m=20", "m=5"]).options()
    assert TypedQuery("q", limit=["advise"]).options()["limits"] == "advise"
    assert TypedQuery("q").options() == {}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_project(tmp_path_factory.mktemp("typed"))


WORDS = st.sampled_from(
    ["quote", "describe", "schema", "-C", ".", "--json", "--debug", "SELECT COUNT(*) AS n FROM visits", "--epsilon",
     "1", "--delta", "0", "--limit", "rows=3", "--keys", "ward=select", "--explain", "-", "--", "-h", "",
     "\u202e", "[red]"]
)  # fmt: skip


@pytest.mark.slow
@settings(max_examples=60)
@given(st.lists(WORDS | st.text(st.characters(blacklist_categories=("Cs",)), max_size=12), max_size=6))
@example(["-- ", "quote"])
@example(["quote", "--"])
def test_any_command_line_ends_in_words(folder: Path, words: list[str]) -> None:
    if {"init", "demo", "bench", "attack", "--install-completion", "--show-completion"} & set(words):
        return
    ran = sfumato(*words, at=folder)
    assert ran.code in CODES, (words, ran)
    if "--debug" not in words:
        assert "Traceback" not in ran.err
    assert ran.code == 0 or ran.err or ran.out


def test_a_name_that_was_meant() -> None:
    assert meant("Cots", ["cost", "ward"]) == "cost"
    assert meant("zzz", ["cost", "ward"]) is None
    assert meant("", []) is None


def test_texts_for_the_ledger_are_checked_before_anything_is_paid(folder: Path) -> None:
    for words in (("--note", "x" * 5000), ("--key", ""), ("--note", "a\0b")):
        ran = sfumato("query", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "0.01", *words, at=folder)
        assert ran.code == 2 and "nothing was charged" not in ran.out and "fix" in ran.err, words
    from sfumato.project import open_project

    with open_project(folder).ledger(read_only=True) as ledger:
        assert not list(ledger.history(kind="spend"))
