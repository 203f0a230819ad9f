"""What statements become in Spark's SQL, and what is refused before there is a Spark: no Java is needed here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import ArgumentError, PlanError
from sfumato.project import open_project
from sfumato.project.problems import ProjectError
from sfumato.schema import Table, key
from sfumato.sources import SparkTable, source
from sfumato.sources.lowering import as_is
from sfumato.sources.spark import SPARK
from sfumato.sources.vocabulary import WORDS, read

TYPES = {"t": {"n": "BIGINT", "x": "DOUBLE", "s": "VARCHAR", "d": "DATE"}}


def text(words: str) -> str:
    engine = type(SPARK)(SPARK.name, SPARK.dialect, SPARK.words, SPARK.types, TYPES)
    return engine.text(read(words)).removeprefix("SELECT ").removesuffix(" FROM `t`")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("exact_sum(n)", "SUM(CAST(`n` AS DECIMAL(38, 0)))"),
        ("n + 1", "TRY_ADD(`n`, 1)"),
        ("x + 1.5", "`x` + 1.5"),
        ("x * 1e3", "`x` * CAST('1e3' AS DOUBLE)"),
        ("n % 7", "TRY_MOD(`n`, 7)"),
        ("n // 7", "(`n` DIV 7)"),
        ("s = 'it''s'", "`s` = CAST(X'69742773' AS STRING)"),
        ("s = '${env:HOME}'", "`s` = CAST(X'247B656E763A484F4D457D' AS STRING)"),
        ("s LIKE 'a\\%!'", "`s` LIKE CAST(X'615C252121' AS STRING) ESCAPE '!'"),
        ("s LIKE 'a~%%~b' ESCAPE '~'", "`s` LIKE 'a!%%b' ESCAPE '!'"),
        ("row_number() OVER (PARTITION BY s ORDER BY n)", "COUNT(*) OVER (PARTITION BY `s` ORDER BY `n` ROWS BETWEEN "
         "UNBOUNDED PRECEDING AND CURRENT ROW)"),
        ("d + INTERVAL '1' QUARTER", "TRY_ADD(CAST(`d` AS TIMESTAMP_NTZ), MAKE_YM_INTERVAL(0, 3))"),
    ],
)  # fmt: skip
def test_words_become(words: str, expected: str) -> None:
    assert text(f"SELECT {words} FROM t").replace(" NULLS LAST", "") == expected.replace(" NULLS LAST", "")


def test_it_has_every_word() -> None:
    assert not SPARK.gaps
    assert all(SPARK.words[name] is not as_is for name in ("sum_of_two", "product", "exact_sum", "row_number"))
    assert set(WORDS) == set(SPARK.words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("exact_sum(x)", "no word for 'exact_sum' of values that are no integers"),
        ("d + INTERVAL '999999999' YEAR", "no word for 'interval' of more than 100000 years"),
        ("s LIKE 'a!' ESCAPE '!'", "ends on its escape character"),
    ],
)
def test_what_it_lacks_is_refused_by_name(words: str, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        text(f"SELECT {words} FROM t")


def test_what_grows_too_long_is_refused() -> None:
    words = "x"
    for _ in range(9):
        words = f"floor({words})"
    with pytest.raises(PlanError, match="too long for Spark"):
        text(f"SELECT {words} FROM t")


def test_a_subquery_sees_one_query_out() -> None:
    """Tables in FROM are no step: a query there sees nothing around it."""
    inner = "SELECT 1 FROM t AS b WHERE b.n = a.n"
    assert text(f"SELECT n FROM (SELECT n FROM t AS a WHERE EXISTS ({inner})) AS c")
    assert text(f"SELECT n FROM t AS a WHERE EXISTS (SELECT 1 FROM t AS c WHERE c.n = a.n AND c.x IN ({inner[:-3]}1))")
    with pytest.raises(PlanError, match="column 'n' of 'a' is used in a subquery within a subquery"):
        text(f"SELECT n FROM t AS a WHERE EXISTS (SELECT 1 FROM t AS c WHERE NOT EXISTS ({inner}))")


@pytest.mark.parametrize("address", ["sc://host:15002/;token=SECRET", "spark://host:7077", "local[4]", "local", "", 7])
def test_an_address_itself_is_refused_and_not_shown(address: Any) -> None:
    with pytest.raises(ArgumentError, match="not the address itself") as caught:
        SparkTable(address, "/visits")
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize("more", [{}, {"path": "/visits", "table": "visits"}, {"table": "a..b"}, {"path": 7}])
def test_a_table_is_a_path_or_a_name(more: Any) -> None:
    with pytest.raises(ArgumentError):
        SparkTable("CLINIC_SPARK", **more)


def test_an_address_that_is_nowhere_is_told_by_its_name(tmp_path: Path) -> None:
    table = Table({"who": key()}, unit="who", name="visits")
    with pytest.raises(PlanError, match="the environment variable 'NO_SUCH_SPARK' holds no address"):
        SparkTable("NO_SUCH_SPARK", "/visits").compare(table)
    with pytest.raises(PlanError, match=r"the file 'spark\.url' holds no address"):
        SparkTable(str(tmp_path / "spark.url"), "/visits").compare(table)


def test_other_objects_are_no_frames_of_spark() -> None:
    with pytest.raises(ArgumentError, match="a Spark frame that scans Parquet files"):
        source(object())


FILE = """\
sfumato: 1
name: clinic
unit: user:patient
tables:
  visits:
    source: {source}
    columns: {{patient: key, cost: {{type: real, lower: 0, upper: 100}}}}
budget: {{total: {{epsilon: 3, delta: 1e-6}}}}
"""


def project(folder: Path, place: str) -> Path:
    (folder / "sfumato.yaml").write_text(FILE.format(source=place))
    return folder / "sfumato.yaml"


def test_a_table_is_named_in_a_project(tmp_path: Path) -> None:
    def named(place: str) -> Any:
        return open_project(project(tmp_path, place)).sources["visits"]

    assert named("{spark: CLINIC_SPARK, table: clinic.visits}") == SparkTable("CLINIC_SPARK", table="clinic.visits")
    assert named("{spark: CLINIC_SPARK, path: 's3a://clinic/visits'}") == SparkTable(
        "CLINIC_SPARK", "s3a://clinic/visits"
    )
    filed = named("{spark: secrets/spark.url, path: visits}")
    assert filed == SparkTable(str(tmp_path / "secrets" / "spark.url"), str(tmp_path / "visits"))


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("{spark: 'sc://me:SECRET@host', table: visits}", "the address itself does not belong here"),
        ("{spark: CLINIC_SPARK}", "a table in Spark is a path or a name"),
        ("{spark: CLINIC_SPARK, table: visits, delimiter: ';'}", "a table in Spark has no delimiter"),
    ],
)
def test_what_does_not_belong_into_a_project_is_refused(place: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match=message) as caught:
        open_project(project(tmp_path, place))
    assert "SECRET" not in str(caught.value)
