"""What the adviser asks is shown to an engine before anything is paid: by its words, which follow from the query."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from sfumato.query.advice_statements import statements
from sfumato.sources.lowering import type_of
from sfumato.sources.vocabulary import word_of
from tests.query.still import Still
from tests.query.test_query_rewrites import Listening, plan_in


def spoken(trees: Iterable[Any]) -> set[str]:
    """The words and types of statements."""
    nodes = [node for tree in trees for node in tree.walk()]
    types = {type_of(node) for node in nodes if type(node).__name__ == "DataType"}
    return types | {word.name for node in nodes if (word := word_of(node)) is not None}


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) AS n FROM visits",
        "SELECT ward, COUNT(*) AS n, SUM(cost) AS s, AVG(days) AS m FROM visits GROUP BY ward",
        "SELECT drug, COUNT(*) AS n FROM visits GROUP BY drug",
        "SELECT ward, COUNT(DISTINCT drug) AS d FROM visits GROUP BY ward",
        "SELECT ward, COUNT(DISTINCT patient) AS d, MEDIAN(days) AS m FROM visits GROUP BY ward",
    ],
)
def test_no_word_comes_up_that_was_not_shown(text: str) -> None:
    plan = plan_in(f"-- sfumato: epsilon=1, delta=1e-6\n{text}")
    assert plan.fixed is None
    connection = Listening()
    try:
        plan._run(connection, SimpleNamespace(noise=Still()))  # type: ignore[arg-type]
    finally:
        connection.close()
    shown = spoken([*plan._statements.values(), *statements(plan)])
    assert spoken(connection.asked) - shown <= {"among"}  # groups that were chosen are listed
    assert "octaves" in shown
