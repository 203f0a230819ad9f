"""Texts. Characters are code points; upper and lower case beyond ASCII are the engine's own affair."""

from __future__ import annotations

from .words import Word, edge

WORDS = (
    Word(
        "joined", "two texts", "VARCHAR", "one after the other; NULL where either is",
        (edge("{0} || {1}", "VARCHAR VARCHAR", "VARCHAR", ("a", "b", "ab"), ("", "", ""), ("a", None, None)),),
        "DPipe",
    ),
    Word(
        "like", "a text and a constant pattern", "BOOLEAN",
        "% fits any characters, _ one; upper and lower case differ; without ESCAPE no character escapes",
        (
            edge(
                "{0} LIKE 'a_%'", "VARCHAR", "BOOLEAN",
                ("ab", True), ("AB", False), ("a", False), ("a\nb", True), ("aé", True), (None, None),
            ),
            edge("{0} LIKE '10!%' ESCAPE '!'", "VARCHAR", "BOOLEAN", ("10%", True), ("100", False)),
            edge("{0} LIKE 'a\\%'", "VARCHAR", "BOOLEAN", ("a\\b", True), ("a%", False)),
        ),
        "Like",
    ),
    Word(
        "like_any_case", "a text and a constant pattern", "BOOLEAN", "LIKE with letters of either case alike",
        (edge("{0} ILIKE 'a_%'", "VARCHAR", "BOOLEAN", ("AB", True), ("b", False), (None, None)),),
        "ILike",
    ),
    Word("escaped", "a LIKE and a character", "BOOLEAN", "LIKE whose pattern has this escape character",
    node="Escape"),
    Word(
        "lower", "a text", "VARCHAR", "capital letters made small",
        (edge("lower({0})", "VARCHAR", "VARCHAR", ("AbZ9", "abz9"), ("", ""), (None, None)),), "Lower",
    ),
    Word(
        "upper", "a text", "VARCHAR", "small letters made capital",
        (edge("upper({0})", "VARCHAR", "VARCHAR", ("abZ9", "ABZ9"), ("", ""), (None, None)),), "Upper",
    ),
    Word(
        "reverse", "a text", "VARCHAR", "its characters from the last to the first",
        (edge("reverse({0})", "VARCHAR", "VARCHAR", ("abc", "cba"), ("", ""), (None, None)),), "Reverse",
    ),
    Word(
        "characters", "a text", "BIGINT", "how many code points it has",
        (edge("characters({0})", "VARCHAR", "BIGINT", ("", 0), ("😀", 1), ("é", 1), ("a b", 3), (None, None)),),
    ),
    Word(
        "trimmed", "a text, and which characters", "VARCHAR", "without blanks, or these characters, at both ends",
        (
            edge("trimmed({0})", "VARCHAR", "VARCHAR", ("  a b ", "a b"), ("", ""), (None, None)),
            edge("trimmed({0}, 'xy')", "VARCHAR", "VARCHAR", ("xyaxy", "a"), ("xyx", "")),
        ),
        least=1, most=2,
    ),
    Word(
        "trimmed_before", "a text, and which characters", "VARCHAR", "without blanks, or these characters, before it",
        (edge("trimmed_before({0})", "VARCHAR", "VARCHAR", ("  a ", "a "), (None, None)),), least=1, most=2,
    ),
    Word(
        "trimmed_behind", "a text, and which characters", "VARCHAR", "without blanks, or these characters, behind it",
        (edge("trimmed_behind({0})", "VARCHAR", "VARCHAR", (" a  ", " a"), (None, None)),), least=1, most=2,
    ),
    Word(
        "part", "a text, a constant start from 1, and a length", "VARCHAR",
        "its characters from this one on; a negative start counts from the end, 0 is before the first",
        (
            edge("part({0}, 2, 2)", "VARCHAR", "VARCHAR", ("abcd", "bc"), ("a", ""), ("😀bc", "bc"), (None, None)),
            edge("part({0}, -2)", "VARCHAR", "VARCHAR", ("abc", "bc")),
        ),
        least=2, most=3,
    ),
    Word(
        "first_characters", "a text and a number from 0 on", "VARCHAR", "its first characters",
        (edge("first_characters({0}, 2)", "VARCHAR", "VARCHAR", ("abc", "ab"), ("😀bc", "😀b"), ("", ""),
        (None, None)),),
        least=2, most=2,
    ),
    Word(
        "last_characters", "a text and a number from 0 on", "VARCHAR", "its last characters",
        (edge("last_characters({0}, 2)", "VARCHAR", "VARCHAR", ("abc", "bc"), ("a", "a"), (None, None)),), least=2,
        most=2,
    ),
    Word(
        "repeated", "a text and a number from 0 on", "VARCHAR", "so many copies of it, one after the other",
        (
            edge("repeated({0}, 2)", "VARCHAR", "VARCHAR", ("ab", "abab"), ("😀", "😀😀"), ("", ""), (None, None)),
            edge("repeated({0}, 0)", "VARCHAR", "VARCHAR", ("ab", ""), (None, None)),
        ),
        least=2, most=2,
    ),
    Word(
        "replaced", "a text and two constant ones", "VARCHAR", "every occurrence of the second made the third",
        (
            edge("replaced({0}, 'a', 'bb')", "VARCHAR", "VARCHAR", ("aca", "bbcbb"), ("", ""), (None, None)),
            edge("replaced({0}, '', 'x')", "VARCHAR", "VARCHAR", ("abc", "abc")),
        ),
        least=3, most=3,
    ),
    Word(
        "begins_with", "two texts", "BOOLEAN", "does the first begin with the second?",
        (
            edge(
                "begins_with({0}, {1})", "VARCHAR VARCHAR", "BOOLEAN",
                ("abc", "ab", True), ("abc", "", True), ("a", "A", False), ("a", None, None),
            ),
        ),
        least=2, most=2,
    ),
    Word(
        "ends_on", "two texts", "BOOLEAN", "does the first end with the second?",
        (
            edge(
                "ends_on({0}, {1})", "VARCHAR VARCHAR", "BOOLEAN",
                ("abc", "bc", True), ("abc", "", True), ("a", "A", False), ("a", None, None),
            ),
        ),
        least=2, most=2,
    ),
    Word(
        "holds", "two texts", "BOOLEAN", "does the first hold the second?",
        (
            edge(
                "holds({0}, {1})", "VARCHAR VARCHAR", "BOOLEAN",
                ("abc", "b", True), ("abc", "", True), ("a", "A", False), (None, "a", None),
            ),
        ),
        least=2, most=2,
    ),
    Word(
        "place_of", "two texts", "BIGINT",
        "at which character the second begins in the first, from 1; 0 where it is not",
        (
            edge(
                "place_of({0}, {1})", "VARCHAR VARCHAR", "BIGINT",
                ("abc", "c", 3), ("😀b", "b", 2), ("abc", "x", 0), ("abc", "", 1), ("a", None, None),
            ),
        ),
        least=2, most=2,
    ),
    Word(
        "texts_of", "two constant texts", "VARCHAR, a row for each",
        "the parts of the first between occurrences of the second: a long list of public texts, as one constant",
        least=2, most=2,
    ),
    Word(
        "wholes_of", "two constant texts", "BIGINT, a row for each", "the same of integers",
        least=2, most=2,
    ),
)  # fmt: skip
