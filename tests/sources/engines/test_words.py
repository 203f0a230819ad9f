"""Every word on every engine: its edge cases give exactly what the vocabulary says, or the engine declares a gap."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlglot import exp

from sfumato.errors import PlanError
from sfumato.sources.duckdb import DUCKDB
from sfumato.sources.lowering import Engine, named
from sfumato.sources.vocabulary import STATEMENTS, TYPES, WORDS, Word, read
from sfumato.sources.vocabulary.grammar import NODES
from sfumato.sources.vocabulary.statements import Whole
from tests.query.test_query_rewrites import FILES, halves, trees
from tests.sources.engines.kit import MEMBERS, RUN, Member, same, statement
from tests.sources.engines.sqlite import SQLITE


def refused(member: Member, tree: Any) -> bool:
    try:
        member.engine.check(tree)
    except PlanError as refusal:
        assert member.engine.name in str(refusal)
        return True
    return False


@pytest.mark.parametrize("word", WORDS.values(), ids=list(WORDS))
@pytest.mark.parametrize("name", RUN)
def test_edge_cases_are_what_the_word_says(name: str, word: Word) -> None:
    member = MEMBERS[name]
    asked = 0
    for edge in word.edges:
        if word.name not in member.engine.words:
            assert all(refused(member, statement(word, edge, row)) for row in edge.rows)
            continue
        rows = [row for row in edge.rows if not refused(member, statement(word, edge, row))]
        assert len(rows) == len(edge.rows) or member.engine.gaps  # another word or type in the form is a gap
        asked += len(rows)
        for row, value in zip(rows, member.values(word, edge, rows), strict=True):
            declared = (edge.form, *row) in member.wrong.get(word.name, ())
            assert same(value, row[-1]) is not declared, (edge.form, row, value)
    if name == "duckdb":
        assert asked == sum(len(edge.rows) for edge in word.edges)


def test_every_word_is_declared_in_full() -> None:
    for word in WORDS.values():
        assert word.takes and word.gives and word.meaning, word.name
        assert word.node or word.least >= 1
        assert word.node not in NODES or word.name == "table_once"
    assert all(TYPES.values())


def test_every_word_has_edge_cases() -> None:
    shown = {name for whole in STATEMENTS for name in whole.words}
    within = {"escaped": "like", "branch": "case"}  # parts of another word
    bare = {word.name for word in WORDS.values() if not word.edges} - shown - set(within)
    assert not bare
    assert all(WORDS[name].edges for name in within.values())
    assert sum(len(edge.rows) for word in WORDS.values() for edge in word.edges) >= 350


@pytest.mark.parametrize("whole", STATEMENTS, ids=lambda whole: whole.text[:60])
@pytest.mark.parametrize("name", RUN)
def test_statements_give_what_they_must(name: str, whole: Whole) -> None:
    member = MEMBERS[name]
    tree = read(whole.text)
    if refused(member, tree):
        assert member.engine.gaps or " RANGE BETWEEN " in whole.text
        return
    rows = member.asks(member.engine.text(tree))
    declared = (whole.text,) in member.wrong.get("", ())
    alike = len(rows) == len(whole.rows) and all(
        same(bool(cell) if member.flags and isinstance(expected, bool) else cell, expected)
        for row, right_row in zip(rows, whole.rows, strict=False)
        for cell, expected in zip(row, right_row, strict=True)
    )
    assert alike is not declared, (rows, whole.rows)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
@pytest.mark.parametrize("name", MEMBERS)
def test_golden_rewrites_run_or_are_refused_by_a_word(name: str, file: Path) -> None:
    """As each engine declares it; one that starts to work is declared from then on."""
    member = MEMBERS[name]
    runs = not any(refused(member, tree) for tree in trees(halves(file)[0]))
    assert runs == (file.stem in member.rewrites)


def test_a_gap_that_starts_to_work_fails() -> None:
    word = WORDS["floor"]
    (edge,) = word.edges
    claims = Member(DUCKDB, MEMBERS["duckdb"].asks, {"floor": [(edge.form, *edge.rows[0])]})
    with pytest.MonkeyPatch.context() as patch, pytest.raises(AssertionError):
        patch.setitem(MEMBERS, "claims", claims)
        test_edge_cases_are_what_the_word_says("claims", word)


def test_an_engine_that_means_something_else_fails() -> None:
    """A cast that cuts off, and a sum of 64 bits: what the issue of a second engine would be."""
    cuts = replace(DUCKDB, words={**DUCKDB.words, "nearest": lambda x, to: exp.Cast(this=named("TRUNC")(x), to=to)})
    narrow = replace(DUCKDB, words={**DUCKDB.words, "exact_sum": named("SUM_NO_OVERFLOW")})
    for engine, word in ((cuts, "nearest"), (narrow, "exact_sum")):
        with pytest.MonkeyPatch.context() as patch, pytest.raises(AssertionError):
            patch.setitem(MEMBERS, "other", Member(engine, MEMBERS["duckdb"].asks))
            test_edge_cases_are_what_the_word_says("other", WORDS[word])


def test_an_engine_without_exact_sums_refuses_them_by_name() -> None:
    words = {word: lowered for word, lowered in SQLITE.words.items() if word != "exact_sum"}
    types = {name: own for name, own in SQLITE.types.items() if name != "INT128"}
    narrow = replace(SQLITE, words=words, types=types)
    tree = read("SELECT SUM(x) AS s FROM t")
    with pytest.raises(PlanError, match=r"SQLite has no word for 'exact_sum' \(the sum of those that are not NULL"):
        narrow.check(tree)
    assert DUCKDB.text(tree) == "SELECT SUM(x) AS s FROM t"
    with pytest.raises(PlanError, match="SQLite has no word for 'INT128'"):
        narrow.check(read("SELECT CAST(x AS INT128) AS s FROM t"))


def test_words_that_an_engine_invents_are_refused() -> None:
    with pytest.raises(ValueError, match="no word 'median'"):
        Engine("mine", "duckdb", {"median": named("MEDIAN")})
