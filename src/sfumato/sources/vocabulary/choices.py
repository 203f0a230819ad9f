"""Comparisons, truth and choices, with SQL's three values of truth."""

from __future__ import annotations

from .words import INFINITY, LEAST, MOST, NAN, Word, edge

WORDS = (
    Word(
        "equal", "two values of one type", "BOOLEAN",
        "are they the same? NaN is NaN, -0.0 is 0.0, texts by their bytes",
        (
            edge("{0} = {1}", "DOUBLE DOUBLE", "BOOLEAN", (NAN, NAN, True), (-0.0, 0.0, True), (1.0, None, None)),
            edge("{0} = {1}", "VARCHAR VARCHAR", "BOOLEAN", ("a", "A", False), ("a", "a ", False), ("", "", True)),
            edge("{0} = {1}", "BIGINT BIGINT", "BOOLEAN", (2**53, 2**53 + 1, False), (LEAST, LEAST, True)),
        ),
        "EQ",
    ),
    Word(
        "different", "two values of one type", "BOOLEAN", "are they not the same?",
        (edge("{0} <> {1}", "DOUBLE DOUBLE", "BOOLEAN", (NAN, NAN, False), (NAN, 1.0, True), (None, None, None)),),
        "NEQ",
    ),
    Word(
        "less", "two values of one type", "BOOLEAN", "NaN above all numbers, texts by their bytes in UTF-8",
        (
            edge(
                "{0} < {1}", "DOUBLE DOUBLE", "BOOLEAN",
                (INFINITY, NAN, True), (NAN, 1.0, False), (-0.0, 0.0, False), (None, 1.0, None),
            ),
            edge(
                "{0} < {1}", "VARCHAR VARCHAR", "BOOLEAN",
                ("Z", "a", True), ("z", "é", True), ("", "a", True), ("a", "a ", True), ("10", "9", True),
            ),
        ),
        "LT",
    ),
    Word(
        "at_most", "two values of one type", "BOOLEAN", "less or equal",
        (edge("{0} <= {1}", "DOUBLE DOUBLE", "BOOLEAN", (NAN, NAN, True), (NAN, INFINITY, False), (0.0, -0.0, True)),),
        "LTE",
    ),
    Word(
        "greater", "two values of one type", "BOOLEAN", "not less and not equal",
        (edge("{0} > {1}", "DOUBLE DOUBLE", "BOOLEAN", (NAN, INFINITY, True), (NAN, NAN, False), (1.0, None, None)),),
        "GT",
    ),
    Word(
        "at_least", "two values of one type", "BOOLEAN", "greater or equal",
        (edge("{0} >= {1}", "DOUBLE DOUBLE", "BOOLEAN", (NAN, NAN, True), (1.0, NAN, False)),),
        "GTE",
    ),
    Word(
        "same", "two values of one type", "BOOLEAN", "equal, or both NULL; never NULL",
        (
            edge(
                "{0} IS NOT DISTINCT FROM {1}", "BIGINT BIGINT", "BOOLEAN",
                (None, None, True), (1, None, False), (1, 1, True),
            ),
        ),
        "NullSafeEQ",
    ),
    Word(
        "not_same", "two values of one type", "BOOLEAN", "not the same; never NULL",
        (
            edge(
                "{0} IS DISTINCT FROM {1}", "DOUBLE DOUBLE", "BOOLEAN",
                (None, None, False), (1.0, None, True), (NAN, NAN, False),
            ),
        ),
        "NullSafeNEQ",
    ),
    Word(
        "between", "three values of one type", "BOOLEAN", "low <= value AND value <= high",
        (
            edge(
                "{0} BETWEEN {1} AND {2}", "DOUBLE DOUBLE DOUBLE", "BOOLEAN",
                (1.0, 1.0, 2.0, True), (NAN, 0.0, INFINITY, False), (5.0, 9.0, None, False), (5.0, 1.0, None, None),
            ),
        ),
        "Between",
    ),
    Word(
        "among", "a value and a list of such, a subquery, or tuples", "BOOLEAN",
        "is it equal to one of them? NULL where it is not and one of them, or itself, is NULL",
        (
            edge(
                "{0} IN (1, 2, 3)", "BIGINT", "BOOLEAN", (2, True), (4, False), (None, None),
            ),
            edge("{0} IN ({1}, 7)", "BIGINT BIGINT", "BOOLEAN", (1, None, None), (7, None, True)),
        ),
        "In",
    ),
    Word("exists", "a subquery", "BOOLEAN", "has it any row? Never NULL", node="Exists"),
    Word(
        "is_null", "a value", "BOOLEAN", "is it NULL? NaN is not",
        (edge("{0} IS NULL", "DOUBLE", "BOOLEAN", (None, True), (NAN, False), (0.0, False)),),
        "Is",
    ),
    Word(
        "both", "two conditions", "BOOLEAN", "false where either is, else NULL where either is, else true",
        (
            edge(
                "{0} AND {1}", "BOOLEAN BOOLEAN", "BOOLEAN",
                (None, False, False), (None, True, None), (None, None, None), (True, True, True),
            ),
        ),
        "And",
    ),
    Word(
        "either", "two conditions", "BOOLEAN", "true where either is, else NULL where either is, else false",
        (
            edge(
                "{0} OR {1}", "BOOLEAN BOOLEAN", "BOOLEAN",
                (None, True, True), (None, False, None), (None, None, None), (False, False, False),
            ),
        ),
        "Or",
    ),
    Word(
        "not", "a condition", "BOOLEAN", "false for true, true for false, NULL for NULL",
        (edge("NOT {0}", "BOOLEAN", "BOOLEAN", (True, False), (False, True), (None, None)),),
        "Not",
    ),
    Word(
        "case", "conditions with values of one type", "as the values",
        "the value of the first condition that is true, else the last one, else NULL; what is not chosen never fails",
        (
            edge(
                "CASE WHEN {0} > 0 THEN 1 WHEN {0} <= 0 THEN 2 END", "BIGINT", "INT", (5, 1), (-5, 2), (None, None),
            ),
            edge("CASE WHEN {0} > 0 THEN 1 ELSE 3 END", "BIGINT", "INT", (None, 3), (1, 1)),
        ),
        "Case",
    ),
    Word("branch", "a condition and a value", "as the value", "one branch of a case", node="If"),
    Word(
        "first_present", "values of one type", "as they are", "the first that is not NULL; NULL where all are",
        (edge("coalesce({0}, {1})", "DOUBLE DOUBLE", "DOUBLE", (None, 2.0, 2.0), (NAN, 2.0, NAN),
        (None, None, None)),),
        "Coalesce",
    ),
    Word(
        "null_if", "two values of one type", "as they are", "the first; NULL where they are equal",
        (
            edge("nullif({0}, {1})", "BIGINT BIGINT", "BIGINT", (0, 0, None), (1, None, 1), (None, 1, None)),
            edge("nullif({0}, {1})", "DOUBLE DOUBLE", "DOUBLE", (-0.0, 0.0, None), (1.0, 0.0, 1.0)),
        ),
        "Nullif",
    ),
    Word(
        "least_present", "values of one type", "as they are",
        "the least of those that are not NULL; NULL where all are",
        (
            edge(
                "least_present({0}, {1})", "DOUBLE DOUBLE", "DOUBLE",
                (None, 1.0, 1.0), (1.0, None, 1.0), (NAN, 1.0, 1.0), (NAN, None, NAN), (None, None, None),
            ),
            edge("least_present({0}, {1})", "BIGINT BIGINT", "BIGINT", (MOST, LEAST, LEAST), (None, 3, 3)),
            edge("least_present({0}, {1})", "INT128 INT128", "INT128", (2**100, 2**99, 2**99)),
        ),
        least=2, most=1000,
    ),
    Word(
        "greatest_present", "values of one type", "as they are",
        "the greatest of those that are not NULL, NaN above all numbers; NULL where all are",
        (
            edge(
                "greatest_present({0}, {1})", "DOUBLE DOUBLE", "DOUBLE",
                (None, 1.0, 1.0), (NAN, INFINITY, NAN), (None, None, None), (-INFINITY, None, -INFINITY),
            ),
            edge("greatest_present({0}, {1})", "BIGINT BIGINT", "BIGINT", (MOST, LEAST, MOST), (None, 3, 3)),
        ),
        least=2, most=1000,
    ),
    Word(
        "ordering_hash", "values of any types", "an integer from 0 to 2^64 - 1",
        "a fixed mixing of the values, NULL among them, by which rows of one unit are ordered: equal for equal "
        "values, "
        "in any order of rows and on any number of threads; which number it is, is the engine's own affair",
        (
            edge(
                "ordering_hash({0}, {1}) = ordering_hash({1}, {0})", "BIGINT BIGINT", "BOOLEAN",
                (1, 1, True), (1, 2, False), (0, None, False),
            ),
            edge(
                "ordering_hash({0}) = ordering_hash({1})", "VARCHAR VARCHAR", "BOOLEAN",
                ("a", "a", True), ("a", "b", False), ("", None, False), (None, None, True),
            ),
        ),
        least=1, most=1000,
    ),
)  # fmt: skip
