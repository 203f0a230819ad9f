"""Statements that MariaDB gets in another form than they were written in: the same rows as in DuckDB."""

from __future__ import annotations

import pytest

from sfumato.errors import PlanError
from sfumato.sources.clickhouse import CLICKHOUSE
from sfumato.sources.mariadb import MARIADB
from sfumato.sources.sql_texts import writer
from sfumato.sources.vocabulary import read
from tests.sources.engines.kit import MEMBERS

_U = "(SELECT 1 AS i UNION ALL SELECT 2 UNION ALL SELECT 3) AS u"
_T = "(SELECT 1 AS i, 7 AS x UNION ALL SELECT 2, NULL UNION ALL SELECT 3, 5) AS t"

STATEMENTS = [
    # What folds rows stays, though nobody reads what it gives.
    f"SELECT 1 AS a FROM (SELECT count(*) AS n FROM {_T}) AS s",
    f"SELECT n + 1 AS a, 2 AS b FROM (SELECT count(*) AS n, max(x) AS m FROM {_T}) AS s",
    f"SELECT i FROM {_T} WHERE EXISTS(SELECT 1 FROM (SELECT count(*) AS n FROM {_T} WHERE x > 99) AS s) ORDER BY i",
    # One level further out, the server would not find t.
    f"SELECT i, (SELECT s.n + 0 AS n FROM (SELECT count(*) AS n FROM {_U} WHERE u.i < t.i) AS s) AS n "
    f"FROM {_T} ORDER BY i",
    # A name of the query around is not one of the subquery.
    f"SELECT i, (SELECT max(t.x) AS m FROM (SELECT 9 AS x) AS s) AS m FROM {_T} GROUP BY i ORDER BY i",
    f"SELECT i FROM {_T} QUALIFY row_number() OVER (ORDER BY x NULLS LAST) <= 2 ORDER BY i DESC",
    f"SELECT DISTINCT x IS NULL AS n FROM {_T} ORDER BY n",
    f"SELECT i, lag(x, 1, NULL) OVER (ORDER BY i) AS a, lead(x, 1, 9) OVER (ORDER BY i) AS b FROM {_T} ORDER BY i",
]


@pytest.mark.parametrize("text", STATEMENTS)
@pytest.mark.parametrize("engine", ["mariadb", "clickhouse"])
def test_the_same_rows_as_in_duckdb(engine: str, text: str) -> None:
    if engine == "clickhouse" and ("t.x" in text or "s.n + 0" in text):
        pytest.skip("refused there, or a count that looks at the row around it, of which the next test speaks")
    tree, member, honest = read(text), MEMBERS[engine], MEMBERS["duckdb"]
    rows = member.asks(member.engine.text(tree))
    assert [tuple(map(_plain, row)) for row in rows] == [
        tuple(map(_plain, row)) for row in honest.asks(honest.engine.text(tree))
    ]


def _plain(cell: object) -> object:
    return int(cell) if isinstance(cell, bool) else cell


def test_a_count_of_nothing_around_a_row_is_no_null_in_clickhouse() -> None:
    text = STATEMENTS[3].replace("s.n + 0", "s.n")
    member = MEMBERS["clickhouse"]
    assert member.asks(member.engine.text(read(text))) == [(1, 0), (2, 1), (3, 2)]
    with pytest.raises(PlanError, match="ClickHouse has no word for 'count' of rows of a subquery that looks"):
        CLICKHOUSE.text(read(STATEMENTS[3]))


def test_texts_of_people_are_no_operands() -> None:
    """A category called like an operand, with quotes and backslashes in it, stays what it is."""
    odd = ["v_x", "v_l", "it's", "a\\", "\\' OR 1 = 1 -- "]
    for name in ("mariadb", "clickhouse"):
        member = MEMBERS[name]
        for each in odd:
            joined = "|".join([*odd, "x"]).replace("'", "''")
            shown = each.replace("'", "''")
            tree = read(f"SELECT listed_or_null('{shown}', '{joined}', '|') AS a, trimmed('{shown}', 'v_x') AS b")
            ((a, b),) = member.asks(member.engine.text(tree))
            assert a == each and b == each.strip("v_x")
    assert writer("mysql")("v_a + v_b", a="v_b", b="1").name == "(v_b + 1)"


def test_what_they_have_no_word_for_is_named() -> None:
    for engine in (MARIADB, CLICKHOUSE):
        with pytest.raises(PlanError, match=f"{engine.name} has no frames by RANGE of values"):
            engine.check(
                read(f"SELECT count(*) OVER (ORDER BY i RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS n FROM {_T}")
            )
    with pytest.raises(PlanError, match="MariaDB has no FULL JOIN"):
        MARIADB.check(read(f"SELECT 1 AS a FROM {_T} FULL JOIN {_U} USING (i)"))
    with pytest.raises(PlanError, match="MariaDB has no word for 'value_at'"):
        MARIADB.check(read(f"SELECT value_at(x, 0.5) AS m FROM {_T}"))
    with pytest.raises(PlanError, match="ClickHouse has no word for 'remainder' of doubles"):
        CLICKHOUSE.text(read("SELECT CAST(x AS DOUBLE) % CAST(2 AS DOUBLE) AS m FROM (SELECT 1 AS x) AS t"))
