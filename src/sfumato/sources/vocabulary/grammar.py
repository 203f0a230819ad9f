"""What holds words together: the nodes of a SELECT that reads and no more, the parts that each may have, and the types.

Names are those of sqlglot's classes, which are not imported here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from .dates import PARTS, UNITS

NODES: Mapping[str, frozenset[str]] = {
    name: frozenset(parts.split())
    for name, parts in {
        "Select": "expressions from_ joins where group having qualify distinct with_ order",
        "Union": "this expression with_",
        "Subquery": "this alias",
        "With": "expressions",
        "CTE": "this alias materialized",
        "Values": "expressions alias",
        "From": "this",
        "Join": "this side kind on using",
        "Table": "this alias quoted",
        "TableAlias": "this columns",
        "Where": "this",
        "Group": "expressions",
        "Having": "this",
        "Qualify": "this",
        "Distinct": "expressions",
        "Order": "expressions",
        "Ordered": "this desc nulls_first",
        "Window": "this partition_by order spec over",
        "WindowSpec": "kind start start_side end end_side",
        "Alias": "this alias",
        "Column": "this table",
        "Identifier": "this quoted",
        "Star": "",
        "Tuple": "expressions",
        "Paren": "this",
        "Literal": "this is_string",
        "Boolean": "this",
        "Null": "",
        "Var": "this",
        "DataType": "this expressions nested",
        "DataTypeParam": "this",
    }.items()
}
"""By node: the parts that it may have."""

WORD_PARTS = frozenset({
    "this", "expression", "expressions", "to", "ifs", "default", "true", "low", "high", "unit", "query", "offset",
    "decimals", "safe", "typed", "big_int",
})  # fmt: skip
"""The parts of nodes that stand for words."""

_FRAME = frozenset({"UNBOUNDED", "CURRENT ROW", "PRECEDING", "FOLLOWING", "ROWS", "RANGE"})
SPELLED: Mapping[tuple[str, str], frozenset[str]] = {
    ("Join", "side"): frozenset({"LEFT", "RIGHT", "FULL"}),
    ("Join", "kind"): frozenset({"INNER", "OUTER", "CROSS", "SEMI", "ANTI"}),
    ("Window", "over"): frozenset({"OVER"}),
    **{("WindowSpec", part): _FRAME for part in ("kind", "start", "start_side", "end", "end_side")},
    ("Var", "this"): frozenset(PARTS) | frozenset(UNITS),
}
"""Parts that are texts and no nodes: what they may say. (Of other nodes, only literals and names hold texts.)"""

NUMBER = re.compile(r"-?\d+(\.\d*)?([eE][+-]?\d+)?")
"""A number as it may be written."""
NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
"""A name that may stand without quotes."""

TYPES: Mapping[str, str] = {
    "TINYINT": "an integer of 8 bits",
    "SMALLINT": "an integer of 16 bits",
    "INT": "an integer of 32 bits",
    "BIGINT": "an integer of 64 bits",
    "INT128": "an integer of 128 bits: what exact sums are",
    "UTINYINT": "an integer of 8 bits without a sign",
    "USMALLINT": "an integer of 16 bits without a sign",
    "UINT": "an integer of 32 bits without a sign",
    "DOUBLE": "a number of IEEE 754 with 64 bits, NaN and infinities among them",
    "DECIMAL": "a decimal of up to 38 digits and a constant number of places, exactly",
    "BOOLEAN": "true or false",
    "VARCHAR": "a text of any length, in Unicode, compared by its bytes in UTF-8",
    "DATE": "a day",
    "TIMESTAMP": "a moment of a day, without a time zone, in whole microseconds",
}
"""By name: what they hold. All hold NULL too."""
