"""Numbers: arithmetic, rounding, casts. Overflow and a division by 0 are never asked for: the compiler guards them."""

from __future__ import annotations

from .words import INFINITY, LEAST, MOST, NAN, Word, edge

HALVES = ((0.5, 0), (1.5, 2), (2.5, 2), (-0.5, 0), (-1.5, -2), (-2.5, -2))

WORDS = (
    Word(
        "sum_of_two", "two numbers, or a date and days or an interval", "as they are",
        "left + right; doubles by IEEE 754, integers exactly where it fits, which the compiler proves",
        (
            edge("{0} + {1}", "BIGINT BIGINT", "BIGINT", (MOST - 1, 1, MOST), (LEAST, MOST, -1), (None, 1, None)),
            edge("{0} + {1}", "INT128 INT128", "INT128", (2**125, 2**125 + 1, 2**126 + 1), (-(2**100), 1, 1 - 2**100)),
            edge(
                "{0} + {1}", "DOUBLE DOUBLE", "DOUBLE",
                (0.1, 0.2, 0.30000000000000004), (1e308, 1e308, INFINITY), (INFINITY, -INFINITY, NAN),
                (-0.0, -0.0, -0.0), (2.0**53, 1.0, 2.0**53),
            ),
        ),
        "Add",
    ),
    Word(
        "difference", "two numbers, or a date and days or an interval", "as they are",
        "left - right, as the sum of two",
        (
            edge("{0} - {1}", "BIGINT BIGINT", "BIGINT", (LEAST + 1, 1, LEAST), (5, None, None)),
            edge("{0} - {1}", "INT128 INT128", "INT128", (-(2**125), 2**125 + 1, -(2**126) - 1)),
            edge("{0} - {1}", "DOUBLE DOUBLE", "DOUBLE", (INFINITY, INFINITY, NAN), (0.0, 0.0, 0.0)),
        ),
        "Sub",
    ),
    Word(
        "product", "two numbers", "as they are", "left * right, as the sum of two",
        (
            edge("{0} * {1}", "BIGINT BIGINT", "BIGINT", (2**31, 2**31, 2**62), (LEAST, 1, LEAST), (0, None, None)),
            edge("{0} * {1}", "INT128 INT128", "INT128", (MOST, MOST, MOST**2), (LEAST, LEAST, 2**126)),
            edge(
                "{0} * {1}", "DOUBLE DOUBLE", "DOUBLE",
                (1e200, 1e200, INFINITY), (INFINITY, 0.0, NAN), (-1.0, 0.0, -0.0), (5e-324, 0.5, 0.0),
            ),
        ),
        "Mul",
    ),
    Word(
        "negative", "a number", "as it is", "0 less the number; of a double, its sign turned",
        (
            edge("-{0}", "BIGINT", "BIGINT", (MOST, -MOST), (None, None)),
            edge("-{0}", "INT128", "INT128", (2**126 + 1, -(2**126) - 1)),
            edge("-{0}", "DOUBLE", "DOUBLE", (0.0, -0.0), (NAN, NAN), (INFINITY, -INFINITY)),
        ),
        "Neg",
    ),
    Word(
        "quotient", "two DOUBLEs", "DOUBLE", "left / right by IEEE 754, never of integers",
        (
            edge(
                "{0} / {1}", "DOUBLE DOUBLE", "DOUBLE",
                (1.0, 3.0, 1 / 3), (1.0, None, None), (-7.0, 2.0, -3.5), (INFINITY, INFINITY, NAN),
                (1.0, INFINITY, 0.0),
                (1.0, -INFINITY, -0.0),
            ),
        ),
        "Div",
    ),
    Word(
        "whole_quotient", "two integers, the divisor not 0", "as they are",
        "left / right cut off towards 0; NULL where either is; never asked of 0, nor of -2^63 by -1",
        (
            edge(
                "{0} // {1}", "BIGINT BIGINT", "BIGINT",
                (7, 2, 3), (-7, 2, -3), (7, -2, -3), (-7, -2, 3), (MOST, 1, MOST), (LEAST, 2, -(2**62)),
                (LEAST, MOST, -1),
                (1, None, None), (None, 1, None),
            ),
            edge("{0} // {1}", "INT128 INT128", "INT128", (2**100, -3, -(2**100 // 3)), (-(2**126), 2**63, LEAST)),
        ),
        "IntDiv",
    ),
    Word(
        "remainder", "two numbers, the divisor not 0", "as they are",
        "left - right * (left / right cut off towards 0), with the sign of left; NULL where either is; never asked "
        "of 0",
        (
            edge(
                "{0} % {1}", "BIGINT BIGINT", "BIGINT",
                (7, 3, 1), (-7, 3, -1), (7, -3, 1), (-7, -3, -1), (LEAST, 10, -8), (1, None, None),
            ),
            edge(
                "{0} % {1}", "INT128 INT128", "INT128",
                (-(2**126) - 1, 2**63, -1), (2**126 - 1, 10**13, 1857942052863),
            ),
            edge("{0} % {1}", "DOUBLE DOUBLE", "DOUBLE", (7.5, 2.0, 1.5), (-7.5, 2.0, -1.5), (1.0, 0.25, 0.0)),
        ),
        "Mod",
    ),
    Word(
        "shifted_right", "an integer from 0 on, and a number of bits up to 62", "as it is", "left / 2^right, cut off",
        (edge("{0} >> {1}", "BIGINT INT", "BIGINT", (MOST, 62, 1), (MOST, 1, 2**62 - 1), (1, 1, 0), (None, 1, None)),),
        "BitwiseRightShift",
    ),
    Word(
        "bits_of_both", "two integers from 0 on", "as they are", "the bits that both have",
        (edge("{0} & {1}", "BIGINT BIGINT", "BIGINT", (MOST, 2**40 - 1, 2**40 - 1), (6, 3, 2), (None, 1, None)),),
        "BitwiseAnd",
    ),
    Word(
        "size", "a number, of integers not the least", "as it is", "the number without its sign",
        (
            edge("abs({0})", "BIGINT", "BIGINT", (-MOST, MOST), (0, 0), (None, None)),
            edge("abs({0})", "INT128", "INT128", (-(2**126) - 1, 2**126 + 1), (2**126 - 1, 2**126 - 1)),
            edge("abs({0})", "DOUBLE", "DOUBLE", (-0.0, 0.0), (-INFINITY, INFINITY), (NAN, NAN)),
        ),
        "Abs",
    ),
    Word(
        "sign", "a number", "an integer", "-1, 0 or 1; 0 for NaN",
        (edge("CAST(sign({0}) AS BIGINT)", "DOUBLE", "BIGINT", (-2.5, -1), (-0.0, 0), (1e-300, 1), (None, None)),),
        "Sign",
    ),
    Word(
        "floor", "a DOUBLE", "DOUBLE", "the largest whole number that is not larger",
        (
            edge(
                "floor({0})", "DOUBLE", "DOUBLE",
                (-0.5, -1.0), (-0.0, -0.0), (2.0**53 + 2, 2.0**53 + 2), (INFINITY, INFINITY), (NAN, NAN), (None, None),
            ),
        ),
        "Floor",
    ),
    Word(
        "ceiling", "a DOUBLE", "DOUBLE", "the least whole number that is not less",
        (edge("ceil({0})", "DOUBLE", "DOUBLE", (-0.5, -0.0), (0.1, 1.0), (NAN, NAN), (None, None)),),
        "Ceil",
    ),
    Word(
        "cut", "a DOUBLE", "DOUBLE", "the number cut off towards 0",
        (edge("cut({0})", "DOUBLE", "DOUBLE", (-1.9, -1.0), (1.9, 1.0), (-0.5, -0.0), (INFINITY, INFINITY),
        (NAN, NAN)),),
    ),
    Word(
        "rounded", "a number and a constant number of decimals", "as it is",
        "halves away from 0; with d > 0 decimals round(x * 10^d) / 10^d in doubles, x where that overflows",
        (
            edge(
                "round({0}, 0)", "DOUBLE", "DOUBLE",
                (0.5, 1.0), (1.5, 2.0), (2.5, 3.0), (-0.5, -1.0), (-2.5, -3.0), (0.49999999999999994, 0.0),
                (None, None),
            ),
            edge("round({0}, 2)", "DOUBLE", "DOUBLE", (1.005, 1.0), (2.675, 2.68), (1e308, 1e308)),
            edge("round({0}, -1)", "BIGINT", "BIGINT", (25, 30), (-25, -30), (24, 20)),
        ),
        "Round",
    ),
    Word(
        "root", "a DOUBLE from 0 on", "DOUBLE", "the square root, correctly rounded",
        (edge("sqrt({0})", "DOUBLE", "DOUBLE", (2.0, 2.0**0.5), (-0.0, -0.0), (INFINITY, INFINITY), (None, None)),),
        "Sqrt",
    ),
    Word(
        "exponential", "a DOUBLE", "DOUBLE", "e to this power, to the last digits; infinite where it overflows",
        (edge("exp({0})", "DOUBLE", "DOUBLE", (0.0, 1.0), (-INFINITY, 0.0), (1000.0, INFINITY), (None, None)),),
        "Exp",
    ),
    Word(
        "power", "two DOUBLEs", "DOUBLE", "left to the power right, to the last digits; NaN where it is not real",
        (
            edge(
                "pow({0}, {1})", "DOUBLE DOUBLE", "DOUBLE",
                (2.0, 10.0, 1024.0), (-3.0, 2.0, 9.0), (-8.0, 0.5, NAN), (10.0, 400.0, INFINITY), (0.0, 0.0, 1.0),
                (1.0, None, None),
            ),
        ),
        "Pow",
    ),
    Word(
        "natural_log", "a positive DOUBLE", "DOUBLE", "the natural logarithm, to the last digits",
        (edge("natural_log({0})", "DOUBLE", "DOUBLE", (1.0, 0.0), (INFINITY, INFINITY), (None, None)),),
    ),
    Word(
        "decimal_log", "a positive DOUBLE", "DOUBLE", "the logarithm to base 10, to the last digits",
        (edge("decimal_log({0})", "DOUBLE", "DOUBLE", (1000.0, 3.0), (1.0, 0.0), (None, None)),),
    ),
    Word(
        "binary_log", "a positive DOUBLE", "DOUBLE", "the logarithm to base 2, to the last digits",
        (edge("binary_log({0})", "DOUBLE", "DOUBLE", (8.0, 3.0), (5e-324, -1074.0), (None, None)),),
    ),
    Word(
        "octaves", "2 and a positive DOUBLE", "DOUBLE",
        "the logarithm to base 2, exact for powers of two; only bins that are a unit's own affair are read off it",
        (edge("log(2, {0})", "DOUBLE", "DOUBLE", (1.0, 0.0), (8.0, 3.0), (2.0**88, 88.0), (None, None)),),
        "Log",
    ),
    Word(
        "is_finite", "a DOUBLE", "BOOLEAN", "is it neither NaN nor infinite? NULL for NULL",
        (edge("is_finite({0})", "DOUBLE", "BOOLEAN", (1.0, True), (NAN, False), (-INFINITY, False), (None, None)),),
    ),
    Word(
        "sign_bit", "a DOUBLE", "BOOLEAN", "is its sign bit set? It tells -0.0 from 0.0, which are equal",
        (edge("sign_bit({0})", "DOUBLE", "BOOLEAN", (-0.0, True), (0.0, False), (-1.0, True), (None, None)),),
    ),
    Word(
        "cast", "a value that the type holds", "the type",
        "the same value in another type: integers and decimals wider, or narrower where they fit; an integer or "
        "decimal "
        "as the nearest DOUBLE, halves to even; any value as its text; a constant text as what it writes",
        (
            edge("CAST({0} AS DOUBLE)", "BIGINT", "DOUBLE", (2**53 + 1, 2.0**53), (MOST, 2.0**63), (None, None)),
            edge("CAST({0} AS INT128)", "BIGINT", "INT128", (LEAST, LEAST), (None, None)),
            edge("CAST({0} AS BIGINT)", "INT128", "BIGINT", (MOST, MOST), (LEAST, LEAST)),
            edge("CAST({0} AS DOUBLE)", "INT128", "DOUBLE", (2**64 + 1, 2.0**64), (-(2**100), -(2.0**100))),
            edge("CAST({0} AS BIGINT)", "BOOLEAN", "BIGINT", (True, 1), (False, 0), (None, None)),
            edge("CAST({0} AS VARCHAR)", "BIGINT", "VARCHAR", (LEAST, str(LEAST)), (-0, "0"), (None, None)),
            edge("CAST({0} AS VARCHAR)", "INT128", "VARCHAR", (-(2**126) - 1, str(-(2**126) - 1)), (2**70, str(2**70))),
        ),
        "Cast",
    ),
    Word(
        "nearest", "a DOUBLE that the type holds when rounded", "the type", "the nearest whole number, halves to even",
        (
            edge("nearest({0}, BIGINT)", "DOUBLE", "BIGINT", *HALVES, (-(2.0**63), LEAST), (2.0**62, 2**62),
            (None, None)),
            edge("nearest({0}, INT)", "DOUBLE", "INT", *HALVES, (2.0**31 - 1, 2**31 - 1)),
        ),
        least=2, most=2, typed=True,
    ),
    Word(
        "nearest_or_null", "any DOUBLE", "the type",
        "the nearest whole number, halves to even; NULL where the type does not hold it, for NaN and infinities",
        (
            edge(
                "nearest_or_null({0}, BIGINT)", "DOUBLE", "BIGINT",
                *HALVES, (2.0**63, None), (-(2.0**63), LEAST), (NAN, None), (INFINITY, None), (-1e300, None),
                (None, None),
            ),
            edge("nearest_or_null({0}, INT)", "DOUBLE", "INT", (2.0**31, None), (-(2.0**31), -(2**31)), (NAN, None)),
            edge("nearest_or_null({0}, UTINYINT)", "DOUBLE", "UTINYINT", (255.4, 255), (256.0, None), (-1.0, None)),
        ),
        least=2, most=2, typed=True,
    ),
    Word(
        "narrowed_or_null", "an integer", "an integer type", "the same number; NULL where the type does not hold it",
        (
            edge("narrowed_or_null({0}, INT)", "BIGINT", "INT", (2**31 - 1, 2**31 - 1), (2**31, None), (None, None)),
            edge("narrowed_or_null({0}, UINT)", "BIGINT", "UINT", (2**32 - 1, 2**32 - 1), (2**32, None), (-1, None)),
            edge("narrowed_or_null({0}, TINYINT)", "BIGINT", "TINYINT", (-128, -128), (128, None)),
        ),
        least=2, most=2, typed=True,
    ),
    Word(
        "read_or_null", "a text, or a key of any type", "the type",
        "what the text writes, blanks around it left out, a number with decimals as the nearest whole one; NULL "
        "where it "
        "writes nothing of the type, and never an error that would quote the cell",
        (
            edge(
                "read_or_null({0}, BIGINT)", "VARCHAR", "BIGINT",
                ("12", 12), (" -7 ", -7), ("", None), ("x", None), ("12x", None), (str(MOST), MOST),
                (str(2**63), None),
                ("1e3", 1000), (None, None),
            ),
            edge(
                "read_or_null({0}, DOUBLE)", "VARCHAR", "DOUBLE",
                ("1.5", 1.5), ("-0", -0.0), ("1e-400", 0.0), ("", None), ("one", None), ("nan", NAN),
                ("-inf", -INFINITY),
            ),
            edge(
                "read_or_null({0}, BOOLEAN)", "VARCHAR", "BOOLEAN",
                ("true", True), ("false", False), ("maybe", None), ("", None), (None, None),
            ),
            edge(
                "CAST(read_or_null({0}, DATE) AS VARCHAR)", "VARCHAR", "VARCHAR",
                ("2024-02-29", "2024-02-29"), ("2023-02-29", None), ("", None), ("soon", None),
            ),
        ),
        least=2, most=2, typed=True,
    ),
    Word(
        "decimal_or_null", "a number", "a DECIMAL",
        "the nearest decimal of so many places; NULL where it has more digits than the type",
        (
            edge(
                "CAST(decimal_or_null({0}, DECIMAL(4, 2)) AS DOUBLE)", "DOUBLE", "DOUBLE",
                (1.25, 1.25), (99.99, 99.99), (100.0, None), (-0.0, 0.0), (NAN, None), (INFINITY, None), (None, None),
            ),
            edge(
                "CAST(decimal_or_null({0}, DECIMAL(2, 0)) AS BIGINT)", "BIGINT", "BIGINT",
                (99, 99), (100, None), (-99, -99), (None, None),
            ),
            edge(
                "CAST(decimal_or_null(decimal_or_null({0}, DECIMAL(10, 3)), DECIMAL(4, 2)) AS DOUBLE)",
                "DOUBLE", "DOUBLE", (1.125, 1.13), (-1.125, -1.13), (99.994, 99.99), (99.995, None), (None, None),
            ),
        ),
        least=2, most=2, typed=True,
    ),
)  # fmt: skip
