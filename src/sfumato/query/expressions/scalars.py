"""Expressions over one row: SQL as the analyst wrote it into an engine expression that never raises.

The result is a function of the row alone: no clock, no random numbers, no other row. NULL in gives NULL out unless the
function says otherwise. There is no NaN and no infinity: what would be one is NULL. Only what `functions` lists is
read; everything else is refused with the nearest thing that works.
"""

from __future__ import annotations

import difflib
from dataclasses import replace
from typing import Any

from sqlglot import exp

from ..kinds import Typed
from ..refusal import QueryError, typed_name
from ..relation import Scope
from .functions import NAMED, RULES
from .functions.operands import Reader, Rule
from .likely import followed

AGGREGATES = (exp.AggFunc, exp.Window, exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)
NAMED_AGGREGATES = ("histogram", "quantiles")
"""Aggregates that sqlglot reads as functions unknown to it."""
QUERIES = (exp.Subquery, exp.Exists, exp.Any, exp.All, exp.Query)


def translate(node: exp.Expression, scope: Scope) -> Typed:
    """The engine expression for a node of the query, and what is known of its values."""
    reader = Reader(scope, rule)
    try:
        plain = reader.read(node)
        if not reader.likely:
            return plain
        trusting = Reader(scope, rule, trusting=True, specials=reader.specials)
        likely = followed(plain.kind, trusting.read(node).kind, reader.likely)
        return replace(plain, kind=replace(plain.kind, likely=likely))
    except RecursionError:
        raise QueryError("The expression is nested too deeply.", "compute a part of it in a subquery first") from None


def rule(node: exp.Expression) -> Rule:
    """Who translates this node."""
    if isinstance(node, AGGREGATES) or (isinstance(node, exp.Anonymous) and node.name.lower() in NAMED_AGGREGATES):
        return special
    if isinstance(node, QUERIES) or (isinstance(node, exp.In) and node.args.get("query") is not None):
        return special
    found = NAMED.get(node.name.lower()) if isinstance(node, exp.Anonymous) else RULES.get(type(node))
    if found is not None:
        return found
    if isinstance(node, exp.Column):
        return column
    if isinstance(node, exp.Paren):
        return lambda each, read: read.loose(each.this)
    return unknown


def column(node: exp.Column, read: Reader) -> Typed:
    if isinstance(node.this, exp.Star):
        raise QueryError("A star cannot stand here.", "name the column", node)
    if node.args.get("db") is not None:
        raise QueryError("A column is named by itself or after its table.", f"write {node.table}.{node.name}", node)
    found = read.scope.column(node)
    return Typed(found.tree.copy(), found.kind)  # a name may be used twice, and a tree has one parent


def special(node: exp.Expression, read: Reader) -> Typed:
    """Aggregates, windows and subqueries, where the clause allows them."""
    if read.scope.special is not None:
        if id(node) not in read.specials:
            read.specials[id(node)] = read.scope.special(node)
        typed = read.specials[id(node)]
        return Typed(typed.tree.copy(), typed.kind)
    if isinstance(node, (*AGGREGATES, exp.Anonymous)):
        what = "A window function" if isinstance(node, exp.Window) else "An aggregate"
        instead = "compute it per unit in a subquery first, or move the condition to HAVING"
        raise QueryError(f"{what} cannot stand here.", instead, node)
    raise QueryError("A subquery cannot stand here.", "join with it in FROM", node)


def unknown(node: Any, _: Reader) -> Typed:
    if not isinstance(node, exp.Func):
        if isinstance(node, exp.Placeholder | exp.Parameter):
            raise QueryError("A parameter has no value here.", "write the value in the place of ? or $1", node)
        if isinstance(node, exp.Star):
            raise QueryError("A star stands for no value here.", "name the column", node)
        if isinstance(node, exp.Bracket):
            instead = "use SUBSTRING(x, 1, 1) for a part of a text"
            raise QueryError("Parts in square brackets are not read here.", instead, node)
        instead = "use columns, numbers, texts, comparisons, CASE and functions"
        raise QueryError(f"{shown_name(node)} is not read here.", instead, node)
    name = node.name if isinstance(node, exp.Anonymous) else typed_name(node)
    near = difflib.get_close_matches(name.lower(), NAMES, n=1, cutoff=0.75)  # 0.67 is STRFTIME and TRIM
    instead = f"use {near[0].upper()}" if near else "use one of: " + ", ".join(sorted(NAMES)).upper()
    raise QueryError(f"The function {name.upper()} is not one of those that may be used on rows.", instead, node)


def shown_name(node: exp.Expression) -> str:
    """A word for a node that is no function: its class in plain words."""
    words = "".join(f" {each.lower()}" if each.isupper() else each for each in type(node).__name__)
    return words.strip().capitalize()


def _names() -> list[str]:
    refused = {"clock", "no_regex"}
    by_node = [
        name.lower()
        for node, each in RULES.items()
        if issubclass(node, exp.Func) and each.__name__ not in refused
        for name in node.sql_names()
    ]
    by_name = [name for name, each in NAMED.items() if each.__name__ not in refused]
    hidden = {
        "and",
        "or",
        "if",
        "case",
        "cast",
        "dayofweek_iso",
        "str_position",
        "timestamp_trunc",
        "pad",
        "time_to_str",
    }
    spelt = {"log10", "log2", "lpad", "ltrim", "rpad", "rtrim", "strftime", "strpos"}  # one node is several of them
    return sorted({*by_node, *by_name, *spelt} - hidden)


NAMES = _names()
