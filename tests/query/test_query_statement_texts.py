"""Statements of ours are read once, and mean what their texts say."""

from __future__ import annotations

import pytest

from sfumato.query import statement_texts
from sfumato.sources.duckdb import DUCKDB
from sfumato.sources.vocabulary import read


@pytest.mark.parametrize(
    "text",
    [
        "SELECT _unit, sum(q0) AS s0 FROM _rows WHERE s0 > 12 AND s1 < -12 GROUP BY _unit",
        "SELECT CAST('4096' AS DOUBLE) * 1.5e-05 + 2e10 + 0.25 AS k0, CAST(k1 AS DECIMAL(38, 0)) AS c FROM _rows",
        "SELECT CASE WHEN s0 <= 1048576 THEN 4096 ELSE norm >> 22 END AS w, '12' AS x, 'it''s 7' AS y FROM _rows",
    ],
)
def test_statements_are_read_once_whatever_their_numbers(text: str) -> None:
    before = statement_texts._skeleton.cache_info().misses
    for number in ("12", "13", "340282366920938463463374607431768211456"):
        asked = text.replace("12", number).replace("4096", number)
        assert statement_texts.template(asked) == read(asked)
        assert DUCKDB.text(statement_texts.template(asked)) == DUCKDB.text(read(asked))
    assert statement_texts._skeleton.cache_info().misses <= before + 3  # texts in quotes are words, too
