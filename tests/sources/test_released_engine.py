"""The engine above releases: one SELECT, and errors of its own words."""

from __future__ import annotations

import pyarrow as pa
import pytest

from sfumato.sources.released_engine import ReleasedEngine, ReleasedError


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT 1; SELECT 2", "one SELECT"),
        ("DROP TABLE released", "one SELECT"),
        ("SELECT FROM WHERE", "syntax error"),
        ("SELECT missing FROM released", "missing"),
    ],
)
def test_what_it_cannot_run_is_an_error_of_its_own(text: str, words: str) -> None:
    with ReleasedEngine({"released": pa.table({"n": [1]})}) as engine:
        with pytest.raises(ReleasedError, match=words):
            engine.ask(text)
        assert engine.ask("SELECT n + ? AS m FROM released", [1]).rows == [(2,)]
