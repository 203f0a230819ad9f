"""What raw cells are read by: words that only the views of a session need. None raises, whatever the cell."""

from __future__ import annotations

from .words import INFINITY, LEAST, MOST, NAN, Word, edge

WORDS = (
    Word(
        "not_a_number", "a DOUBLE", "BOOLEAN", "is it no number? NULL for NULL",
        (edge("not_a_number({0})", "DOUBLE", "BOOLEAN", (NAN, True), (INFINITY, False), (-0.0, False), (None, None)),),
    ),
    Word(
        "is_digits", "a text", "BOOLEAN",
        "is it a whole number in plain digits: blanks, a sign or none, digits 0 to 9, blanks? NULL for NULL",
        (
            edge(
                "is_digits({0})", "VARCHAR", "BOOLEAN",
                ("12", True), (" +7 ", True), ("-0", True), ("9" * 40, True), ("", False), ("-", False), ("1.0", False),
                ("1e3", False), ("1_000", False), ("1 2", False), ("x1", False), ("٣", False), (None, None),
            ),
        ),
    ),
    Word(
        "listed_or_null", "a text, and two constant ones", "VARCHAR",
        "the text where it is one of the parts of the second between occurrences of the third, to the byte; else NULL",
        (
            edge(
                "listed_or_null({0}, 'a|Z||é', '|')", "VARCHAR", "VARCHAR",
                ("a", "a"), ("A", None), ("Z", "Z"), ("", ""), ("é", "é"), ("a ", None), ("a|Z", None), (None, None),
            ),
            edge("listed_or_null({0}, 'it''s', '|')", "VARCHAR", "VARCHAR", ("it's", "it's"), ("its", None)),
        ),
        least=3, most=3,
    ),
    Word(
        "moment_or_null", "a text", "TIMESTAMP",
        "the moment that it writes as ISO 8601 does, in UTC where it has a zone; NULL where it writes none",
        (
            edge(
                "CAST(moment_or_null({0}) AS VARCHAR)", "VARCHAR", "VARCHAR",
                ("2024-02-29", "2024-02-29 00:00:00"), ("2024-02-29 23:59:58", "2024-02-29 23:59:58"),
                ("2024-01-01T00:30:00+01:00", "2023-12-31 23:30:00"), ("2023-02-29", None), ("soon", None),
                ("", None), (None, None),
            ),
        ),
    ),
    Word(
        "time_or_null", "a date or a moment", "DATE or TIMESTAMP",
        "the day of a moment, or the moment at which a day begins; NULL where the type does not hold it",
        (
            edge(
                "CAST(time_or_null(moment_or_null({0}), DATE) AS VARCHAR)", "VARCHAR", "VARCHAR",
                ("1969-12-31 23:59:59", "1969-12-31"), ("2024-02-29", "2024-02-29"), (None, None),
            ),
            edge(
                "CAST(time_or_null(read_or_null({0}, DATE), TIMESTAMP) AS VARCHAR)", "VARCHAR", "VARCHAR",
                ("2024-02-29", "2024-02-29 00:00:00"), (None, None),
            ),
        ),
        least=2, most=2, typed=True,
    ),
    Word(
        "whole_or_null", "a DOUBLE, or a decimal", "BIGINT",
        "the same number where it is a whole one of 64 bits; else NULL",
        (
            edge(
                "whole_or_null({0})", "DOUBLE", "BIGINT",
                (3.0, 3), (-0.0, 0), (0.5, None), (2.0**63, None), (-(2.0**63), LEAST), (NAN, None), (INFINITY, None),
                (-INFINITY, None), (None, None),
            ),
            edge(
                "whole_or_null(decimal_or_null({0}, DECIMAL(22, 2)))", "BIGINT", "BIGINT",
                (MOST, MOST), (-5, -5), (None, None),
            ),
            edge(
                "whole_or_null(decimal_or_null({0}, DECIMAL(4, 2)))", "DOUBLE", "BIGINT",
                (1.25, None), (-3.0, -3), (0.01, None),
            ),
        ),
    ),
)  # fmt: skip
