"""Edge cases of what holds words together: grouping, joins, order, windows, tables that are computed once."""

from __future__ import annotations

from dataclasses import dataclass

from .words import NAN, Row


@dataclass(frozen=True)
class Whole:
    """A statement whose rows are known.

    text      in words
    rows      what it gives, in this order where the statement has one
    words     that it is an edge case of
    meaning   what it shows
    """

    text: str
    rows: tuple[Row, ...]
    words: tuple[str, ...]
    meaning: str


_NUMBERS = "(SELECT 1 AS i, 2 AS x UNION ALL SELECT 2, NULL UNION ALL SELECT 3, 1 UNION ALL SELECT 4, 2) AS t"
_DOUBLES = (
    "(SELECT CAST('0.0' AS DOUBLE) AS x UNION ALL SELECT CAST('-0.0' AS DOUBLE) UNION ALL SELECT CAST('nan' AS DOUBLE) "
    "UNION ALL SELECT CAST('nan' AS DOUBLE) UNION ALL SELECT CAST(NULL AS DOUBLE) "
    "UNION ALL SELECT CAST('inf' AS DOUBLE)) AS t"
)
_LEFT = "(SELECT 1 AS k, 'a' AS l UNION ALL SELECT NULL, 'b' UNION ALL SELECT 3, 'c') AS p"
_RIGHT = "(SELECT 1 AS k, 'x' AS r UNION ALL SELECT NULL, 'y' UNION ALL SELECT 1, 'z') AS q"
_FRAME = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"

STATEMENTS = (
    Whole(
        f"SELECT i FROM {_NUMBERS} ORDER BY x NULLS LAST, i", ((3,), (1,), (4,), (2,)), (), "NULL after all values",
    ),
    Whole(
        f"SELECT i FROM {_NUMBERS} ORDER BY x DESC NULLS LAST, i DESC", ((4,), (1,), (3,), (2,)), (),
        "NULL after all values, also where these fall",
    ),
    Whole(
        f"SELECT i FROM {_NUMBERS} ORDER BY x NULLS FIRST, i", ((2,), (3,), (1,), (4,)), (), "NULL before all values",
    ),
    Whole(
        f"SELECT count(*) AS n FROM {_DOUBLES} GROUP BY x ORDER BY x NULLS LAST", ((2,), (1,), (2,), (1,)), ("count",),
        "-0.0 and 0.0 are one group, NaN is one above all numbers, NULL is one",
    ),
    Whole(f"SELECT DISTINCT x IS NULL AS n FROM {_DOUBLES} ORDER BY n", ((False,), (True,)), (), "rows that differ"),
    Whole(
        f"SELECT l, r FROM {_LEFT} JOIN {_RIGHT} USING (k) ORDER BY r", (("a", "x"), ("a", "z")), (),
        "NULL meets nothing, not even NULL",
    ),
    Whole(
        f"SELECT l, r FROM {_LEFT} LEFT JOIN {_RIGHT} ON p.k = q.k ORDER BY l, r NULLS LAST",
        (("a", "x"), ("a", "z"), ("b", None), ("c", None)), (), "rows without a partner stay",
    ),
    Whole(
        "SELECT x FROM (SELECT 1 AS x UNION ALL SELECT 1 UNION ALL SELECT 2) AS t ORDER BY x", ((1,), (1,), (2,)), (),
        "UNION ALL keeps what is there twice",
    ),
    Whole(
        f"SELECT count(*) AS n, exact_sum(x) AS s FROM {_NUMBERS} WHERE x > 5", ((0, None),), ("exact_sum", "count"),
        "without rows there is one row",
    ),
    Whole(
        f"SELECT x, count(*) AS n FROM {_NUMBERS} WHERE x > 5 GROUP BY x", (), (), "without rows there are no groups",
    ),
    Whole(
        f"SELECT i FROM {_NUMBERS} WHERE x IN (SELECT k FROM {_RIGHT} WHERE k IS NOT NULL)", ((3,),), ("among",), "",
    ),
    Whole(
        f"SELECT l FROM {_LEFT} WHERE EXISTS(SELECT 1 FROM {_RIGHT} WHERE q.k = p.k)", (("a",),), ("exists",), "",
    ),
    Whole(
        f"SELECT i, row_number() OVER (ORDER BY x NULLS LAST, i) AS n FROM {_NUMBERS} ORDER BY i",
        ((1, 2), (2, 4), (3, 1), (4, 3)), ("row_number",), "",
    ),
    Whole(
        f"SELECT i, rank() OVER (ORDER BY x NULLS LAST) AS n, dense_rank() OVER (ORDER BY x NULLS LAST) AS d "
        f"FROM {_NUMBERS} ORDER BY i",
        ((1, 2, 2), (2, 4, 3), (3, 1, 1), (4, 2, 2)), ("rank", "dense_rank"), "",
    ),
    Whole(
        f"SELECT i, ntile(3) OVER (ORDER BY i) AS n FROM {_NUMBERS} ORDER BY i",
        ((1, 1), (2, 1), (3, 2), (4, 3)), ("tile",), "the first parts are the longer ones",
    ),
    Whole(
        f"SELECT i, lag(x, 1) OVER (ORDER BY i) AS a, lead(i, 1, 9) OVER (ORDER BY i) AS b FROM {_NUMBERS} ORDER BY i",
        ((1, None, 2), (2, 2, 3), (3, None, 4), (4, 1, 9)), ("earlier", "later"), "NULLs are values, too",
    ),
    Whole(
        f"SELECT i, first_value(x) OVER (ORDER BY i {_FRAME}) AS a, last_value(i) OVER (ORDER BY i {_FRAME}) AS b, "
        f"nth_value(x, 2) OVER (ORDER BY i {_FRAME}) AS c FROM {_NUMBERS} ORDER BY i",
        ((1, 2, 4, None), (2, 2, 4, None), (3, 2, 4, None), (4, 2, 4, None)), ("first_of", "last_of", "nth_of"), "",
    ),
    Whole(
        f"SELECT i, count(*) OVER (ORDER BY i RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS a, "
        f"count(*) OVER (ORDER BY x NULLS LAST RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS b, "
        f"count(*) OVER (ORDER BY x DESC NULLS LAST RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS c "
        f"FROM {_NUMBERS} ORDER BY i",
        ((1, 1, 3, 4), (2, 2, 1, 1), (3, 2, 1, 2), (4, 2, 3, 4)), ("count",),
        "a frame by values holds all rows whose values are so near, and equal ones together; NULLs are by themselves",
    ),
    Whole(
        f"WITH once AS MATERIALIZED (SELECT i, x FROM {_NUMBERS}) "
        "SELECT a.i AS i FROM once AS a JOIN once AS b USING (x) ORDER BY i, b.i",
        ((1,), (1,), (3,), (4,), (4,)), ("table_once",), "it may be read twice",
    ),
    Whole(
        "SELECT i FROM (SELECT 1 AS i, 'b' AS x UNION ALL SELECT 2, 'c' UNION ALL SELECT 3, '') AS t "
        "WHERE x IN (SELECT texts_of('a|b||', '|')) ORDER BY i",
        ((1,), (3,)), ("texts_of",), "empty parts are texts, too",
    ),
    Whole(
        f"SELECT i FROM {_NUMBERS} WHERE i IN (SELECT wholes_of('4|-9223372036854775808|1', '|')) ORDER BY i",
        ((1,), (4,)), ("wholes_of",), "",
    ),
    Whole(
        "SELECT x FROM (SELECT 'a' AS x UNION ALL SELECT 'Z' UNION ALL SELECT 'é' UNION ALL SELECT '') AS t ORDER BY x",
        (("",), ("Z",), ("a",), ("é",)), ("less",), "texts in the order of their bytes",
    ),
    Whole(
        f"SELECT max(x) AS x FROM {_DOUBLES}", ((NAN,),), ("maximum",), "NaN is the largest",
    ),
)  # fmt: skip
