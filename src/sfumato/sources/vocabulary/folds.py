"""Aggregates and window functions. None may depend on the order in which an engine meets rows."""

from __future__ import annotations

from .words import INFINITY, LEAST, MOST, NAN, Word, edge

WORDS = (
    Word(
        "exact_sum", "integers of up to 64 bits, or decimals of up to 15 digits; INT128 where the total fits 127 bits",
        "INT128, or DECIMAL(38)",
        "the sum of those that are not NULL, exactly: as wide as 2^63 terms of 64 bits need, never wrapped around, "
        "never "
        "saturated, never rounded; NULL where there is none",
        (
            edge(
                "exact_sum({0})", "BIGINT", "INT128",
                ([MOST, MOST], 2**64 - 2), ([LEAST, LEAST, LEAST], -3 * 2**63), ([MOST, 1, LEAST, None], 0),
                ([None], None),
                ([], None), ([5], 5),
            ),
            edge("exact_sum({0})", "INT", "INT128", ([2**31 - 1] * 3, 3 * 2**31 - 3), ([], None)),
            edge("exact_sum({0})", "INT128", "INT128", ([2**126, 2**126 - 1], 2**127 - 1),
            ([-(2**100), None], -(2**100))),
            edge(
                "CAST(exact_sum(decimal_or_null({0}, DECIMAL(15, 1))) AS DOUBLE)", "DOUBLE", "DOUBLE",
                ([0.1] * 10, 1.0), ([99999999999999.9, 0.1], 1e14), ([], None),
            ),
        ),
        fold=True,
    ),
    Word(
        "count", "values, different values, or rows", "BIGINT",
        "how many rows, or how many that are not NULL; 0 for none",
        (
            edge("count(*)", "BIGINT", "BIGINT", ([None, 1], 2), ([], 0)),
            edge("count({0})", "BIGINT", "BIGINT", ([None, 1, 1], 2), ([None], 0), ([], 0)),
            edge("count(DISTINCT {0})", "BIGINT", "BIGINT", ([None, 1, 1, 2], 2), ([None], 0)),
            edge("count(DISTINCT {0})", "DOUBLE", "BIGINT", ([0.0, -0.0, NAN, NAN], 2)),
            edge("count(DISTINCT {0})", "VARCHAR", "BIGINT", (["a", "A", "a ", "a"], 3)),
        ),
        "Count", fold=True,
    ),
    Word(
        "minimum", "values with an order", "as they are",
        "the least that is not NULL, by the word `less`; NULL for none",
        (
            edge("min({0})", "DOUBLE", "DOUBLE", ([NAN, INFINITY, None], INFINITY), ([NAN], NAN), ([], None)),
            edge("min({0})", "VARCHAR", "VARCHAR", (["a", "Z", ""], ""), (["b", "é"], "b")),
        ),
        "Min", fold=True,
    ),
    Word(
        "maximum", "values with an order", "as they are",
        "the greatest that is not NULL, by the word `less`; NULL for none",
        (
            edge("max({0})", "DOUBLE", "DOUBLE", ([INFINITY, NAN], NAN), ([None], None)),
            edge("max({0})", "VARCHAR", "VARCHAR", (["a", "Z"], "a"), (["z", "é"], "é")),
        ),
        "Max", fold=True,
    ),
    Word(
        "all_true", "conditions", "BOOLEAN", "are all true that are not NULL? NULL for none",
        (edge("bool_and({0})", "BOOLEAN", "BOOLEAN", ([True, None], True), ([True, False], False), ([], None)),),
        "LogicalAnd", fold=True,
    ),
    Word(
        "any_true", "conditions", "BOOLEAN", "is any true? NULL where none is anything but NULL",
        (edge("bool_or({0})", "BOOLEAN", "BOOLEAN", ([False, None], False), ([True, False], True), ([None], None)),),
        "LogicalOr", fold=True,
    ),
    Word(
        "value_at", "values with an order, and a constant share from 0 to 1", "as they are",
        "the least value that at least this share of those that are not NULL does not exceed; the least for 0",
        (
            edge("value_at({0}, 0.5)", "BIGINT", "BIGINT", ([1, 2, 3, 4], 2), ([4, None, 2], 2), ([], None)),
            edge("value_at({0}, 1.0)", "BIGINT", "BIGINT", ([1, 2, 3], 3)),
            edge("value_at({0}, 0.0)", "BIGINT", "BIGINT", ([3, 1, 2], 1)),
        ),
        least=2, most=2, fold=True,
    ),
    Word(
        "row_number", "a window", "BIGINT",
        "1, 2, ... in the order of the window, which tells all rows apart, NULLs last",
        node="RowNumber",
    ),
    Word("rank", "a window", "BIGINT", "1 and the number of rows before that are not equal", node="Rank"),
    Word("dense_rank", "a window", "BIGINT", "1 and the number of different rows before", node="DenseRank"),
    Word("tile", "a window and a number of parts", "BIGINT", "which part, of sizes that differ by 1 at most",
    node="Ntile"),
    Word("earlier", "a window, a value, an offset, a default", "as the value", "that of so many rows before",
    node="Lag"),
    Word("later", "a window, a value, an offset, a default", "as the value", "that of so many rows after",
    node="Lead"),
    Word("first_of", "a window and a value", "as the value", "that of the first row of the frame", node="FirstValue"),
    Word("last_of", "a window and a value", "as the value", "that of the last row of the frame", node="LastValue"),
    Word("nth_of", "a window, a value, a place", "as the value", "that of this row of the frame, or NULL",
    node="NthValue"),
    Word(
        "table_once", "a table of WITH", "rows",
        "computed once, however often it is read: the same rows each time, at the price of one",
        node="CTE",
    ),
)  # fmt: skip
