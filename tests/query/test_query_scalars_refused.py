"""What is refused, and what is offered instead."""

from __future__ import annotations

from fractions import Fraction

import pytest
import sqlglot
from sqlglot import exp

from sfumato.query.expressions.scalars import NAMES, translate
from sfumato.query.kinds import Kind
from sfumato.query.refusal import QueryError
from sfumato.query.relation import Relation, Scope

COLUMNS = {
    "x": Kind("real", Fraction(0), Fraction(9)),
    "w": Kind("whole", Fraction(0), Fraction(9)),
    "f": Kind("flag", values=(False, True)),
    "c": Kind("text", values=("a", "b")),
    "k": Kind("key"),
    "d": Kind("date"),
    "m": Kind("moment"),
}
SCOPE = Scope({"t": Relation(exp.select("*").from_("t"), COLUMNS, True)})


def refusal(text: str) -> str:
    with pytest.raises(QueryError) as caught:
        translate(sqlglot.parse_one(text, dialect="duckdb"), SCOPE)
    return str(caught.value.within(text))


@pytest.mark.parametrize(
    ("text", "rule", "instead"),
    [
        ("nope", "There is no column 'nope'", "use one of: x, w"),
        ("_unit", "There is no column '_unit'", "use one of"),
        ("a.b.c", "named by itself or after its table", "write b.c"),
        ("x + c", "A number is needed here, and this is text", "use CAST(c AS DOUBLE)"),
        ("k * 2", "A number is needed here, and this is a key", "use CAST(k AS BIGINT)"),
        ("SQRT(d)", "A number is needed here, and this is a date", "DATE_DIFF('day', DATE '2020-01-01', d)"),
        ("x AND f", "A condition is needed here", "x <> 0"),
        ("LOWER(x)", "Text is needed here", "use CAST(x AS VARCHAR)"),
        ("YEAR(c)", "A date or timestamp is needed here", "use CAST(c AS DATE)"),
        ("x = 'a'", "A number and text do not go together", "write a number here"),
        ("x = '7.5'", "A number and text do not go together", "write 7.5 without quotes"),
        ("c = 1", "Text and a whole number do not go together", "write '1', with quotes"),
        ("d = c", "A date and text do not go together", "use CAST(c AS DATE)"),
        ("d = '2020-02-30'", "This is no date", "'2024-01-31'"),
        ("d > 5", "A date and a whole number do not go together", "write a date there, such as DATE '2024-01-31'"),
        ("k < k", "Keys have no order", "CAST(k AS BIGINT)"),
        ("f = 'perhaps'", "A condition and text do not go together", "use CAST"),
        ("f = c", "A condition and text do not go together", "use CAST(c AS BOOLEAN)"),
        ("CASE WHEN f THEN 1 ELSE 'a' END", "A whole number and text do not go together", "write a number"),
        ("DATE '2020-13-01'", "This is no date", "DATE '2024-01-31'"),
        ("TIMESTAMP '2020-01-01 00:00:00+02'", "no timestamp without a time zone", "TIMESTAMP '2024-01-31 12:00:00'"),
        ("CAST(x AS DECIMAL(39, 2))", "up to 38 digits", "write DECIMAL(38, 2)"),
        ("CAST(x AS DECIMAL(3, 4))", "no more places than digits", "write DECIMAL(3, 2)"),
        ("CAST(d AS DECIMAL)", "a date, which cannot be made a decimal", "DATE_DIFF('day'"),
        ("CAST(c AS TIMESTAMPTZ)", "Times are UTC here", "use CAST(c AS TIMESTAMP)"),
        (
            "m AT TIME ZONE 'Europe/Berlin'",
            "lead into it or out of it",
            "m AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Berlin'",
        ),
        ("m AT TIME ZONE 'UTC' AT TIME ZONE '+02:00'", "no time zone of this name", "+ INTERVAL 1 HOUR"),
        ("m AT TIME ZONE 'UTC' AT TIME ZONE '../zones'", "no time zone of this name", "'Europe/Berlin'"),
        ("CAST(x AS INT[])", "not to INT[]", "use CAST(x AS DOUBLE)"),
        ("CAST(d AS INT)", "This is a date, which cannot be made a whole number", "DATE_DIFF"),
        ("CURRENT_DATE", "The clock and random numbers", "give the date as a literal, such as DATE '2024-01-31'"),
        ("NOW()", "The clock and random numbers", "DATE '2024-01-31'"),
        ("d < CURRENT_TIMESTAMP", "The clock and random numbers", "DATE '2024-01-31'"),
        ("RANDOM()", "The clock and random numbers", "leave it out"),
        ("UUID()", "The clock and random numbers", "leave it out"),
        ("REGEXP_MATCHES(c, 'a')", "Regular expressions are not read here", "use LIKE"),
        ("c SIMILAR TO 'a'", "Regular expressions are not read here", "use LIKE"),
        ("c LIKE k", "The pattern must be a text in the query", "CONTAINS(s, t)"),
        ("c LIKE 'a!' ESCAPE '!'", "The pattern ends with its escape character", "ESCAPE '!'"),
        ("c LIKE 'a' ESCAPE '!!'", "The escape has more than 1 characters", "shorter"),
        ("SUBSTR(c, w)", "The start must be a number in the query", "SUBSTR(s, 1, 3)"),
        ("SUBSTR(c, 1, -1)", "The length must be a whole number from 0", "SUBSTR(s, 1, 3)"),
        ("LEFT(c, 99999999999)", "The number of characters must be a whole number", "LEFT(s, 2)"),
        ("ROUND(x, 99)", "The number of decimals must be a whole number from -15 to 15", "ROUND(x, 2)"),
        ("ROUND(x, w)", "The number of decimals must be a number in the query", "ROUND(x, 2)"),
        ("LOG(1, x)", "The base of a logarithm is positive and not 1", "LOG(2, x)"),
        ("WIDTH_BUCKET(x, 5, 5, 3)", "The lower end of the bins is not below", "WIDTH_BUCKET(x, 0, 100, 10)"),
        ("WIDTH_BUCKET(x, 0, 5, 5000)", "The number of bins must be a whole number", "WIDTH_BUCKET(x, 0, 100, 10)"),
        ("DATE_TRUNC('fortnight', d)", "The unit is one of year", "DATE_TRUNC('month', d)"),
        ("DATE_PART('era', d)", "There is no part 'era'", "use one of: year"),
        ("d + INTERVAL '1 day 2 hours'", "The unit is one of", "INTERVAL 3 MONTH"),
        ("d + INTERVAL (w) DAY", "must be a number in the query", "d + w for a column w of whole days"),
        ("d + INTERVAL 99999999 YEAR", "no date is left", "INTERVAL 3 MONTH"),
        ("d * 2", "This cannot be computed with dates", "date + INTERVAL 3 DAY"),
        ("m - m", "This cannot be computed with dates", "DATE_DIFF('hour', a, b)"),
        ("m + 1", "Whole days are added to dates", "CAST(m AS DATE)"),
        ("1e999", "The number is too large or too small", "1e300"),
        ("x BETWEEN SYMMETRIC 2 AND 1", "BETWEEN SYMMETRIC", "smaller end first"),
        ("x IN (SELECT 1)", "A subquery cannot stand here", "join"),
        ("EXISTS (SELECT 1)", "A subquery cannot stand here", "join"),
        ("(SELECT 1)", "A subquery cannot stand here", "join"),
        ("SUM(x)", "An aggregate cannot stand here", "per unit in a subquery"),
        ("HISTOGRAM(x, [1, 2])", "An aggregate cannot stand here", "per unit in a subquery"),
        ("ROW_NUMBER() OVER ()", "A window function cannot stand here", "per unit in a subquery"),
        ("SQROOT(x)", "The function SQROOT is not one of those", "use SQRT"),
        ("STARTSWIT(c, 'a')", "The function STARTSWIT is not one of those", "use STARTSWITH"),
        ("GETENV('HOME')", "The function GETENV is not one of those", "use one of: ABS"),
        ("READ_TEXT('a')", "The function READ_TEXT is not one of those", "use"),
        ("ERROR(c)", "The function ERROR is not one of those", "use"),
        ("MD5(c)", "The function MD5 is not one of those", "use"),
        ("TRY(x)", "The function TRY is not one of those", "use"),
        ("[x, w]", "is not", "use"),
        ("{'a': x}", "is not", "use"),
        ("c[1]", "Parts in square brackets are not read here", "SUBSTRING(x, 1, 1)"),
        ("x & w", "Bitwise and is not read here", "use columns"),
        ("c COLLATE nocase", "The function COLLATE is not one of those", "use"),
        ("?", "A parameter has no value here", "write the value"),
        ("(x, w) = (1, 2)", "Tuple is not read here", "use columns"),
        ("t.*", "A star cannot stand here", "name the column"),
        ("*", "A star stands for no value here", "name the column"),
        (" OR ".join(["f"] * 1001), "more than 1000 conditions", "use IN"),
        ("w IN (" + ", ".join(["1"] * 1001) + ")", "at most 1000 values", "public table"),
    ],
)
def test_refused(text: str, rule: str, instead: str) -> None:
    said = refusal(text)
    assert rule in said
    assert instead in said.split("Instead:")[1]


def test_the_clause_is_underlined() -> None:
    assert refusal("x + LOWER(w) || 'a'").splitlines()[1:3] == ["1 | x + LOWER(w) || 'a'", "              ^"]


def nested(node: type[exp.Expression], depth: int) -> exp.Expression:
    tree: exp.Expression = exp.column("x")
    for _ in range(depth):
        tree = node(this=tree)
    return tree


def test_what_is_too_deep_or_grows_too_long_is_refused_before_the_engine_sees_it() -> None:
    with pytest.raises(QueryError, match="nested too deeply"):
        translate(nested(exp.Sqrt, 120), SCOPE)
    with pytest.raises(QueryError, match="too long"):
        translate(nested(exp.Ln, 60), SCOPE)


def test_the_list_of_functions_is_offered_where_none_is_near() -> None:
    assert all(name.upper() in refusal("GETENV('HOME')") for name in NAMES)


def test_a_nul_in_a_text_is_refused() -> None:
    with pytest.raises(QueryError, match="character number 0"):
        translate(exp.EQ(this=exp.column("c"), expression=exp.Literal.string("a\0b")), SCOPE)
