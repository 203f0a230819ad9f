"""Values that meet in a comparison or in the branches of a CASE must be of one type: which, and who is cast to it."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from ...kinds import SQL_TYPES, Kind, Type, Typed
from ...refusal import QueryError
from .. import trees
from ..decimals import Exact, compared, shared_places
from ..intervals import Interval, hull
from .operands import MANY, NAMES, Reader, as_real, as_whole, date_or_moment, interval, nothing, reals, settled, shown

CASTS: dict[str, str] = {"real": "DOUBLE", "whole": "BIGINT", "flag": "BOOLEAN", "date": "DATE", "moment": "TIMESTAMP"}


def agreed(nodes: Sequence[exp.Expression], read: Reader, *, ordered: bool = False) -> tuple[Type, list[Typed]]:
    """The operands, all of one type; `ordered` for those that are asked which is larger."""
    found = [read.read(node) for node in nodes]
    if ordered:
        found = _have_order(nodes, found)
    return of_one_type(nodes, found)


def comparable(nodes: Sequence[exp.Expression], read: Reader, *, ordered: bool = False) -> list[Typed]:
    """The operands of a comparison, all of one type; decimals that doubles cannot tell apart stay decimals."""
    found = [read.exact(node) for node in nodes]
    if ordered:
        found = _have_order(nodes, found)
    if any(isinstance(each, Exact) for each in found) and all(each.kind.numeric for each in found):
        decimals = None if any(nothing(each.kind) for each in found) else compared(found)
        if decimals is not None:
            return decimals
    settled_ones = [settled(each) for each in found]
    references = {each.kind.reference for each in settled_ones}
    if len(references) == 1 and None not in references:  # along a declared key, cells have one type as they are
        return settled_ones
    return of_one_type(nodes, settled_ones)[1]


def _have_order(nodes: Sequence[exp.Expression], operands: Sequence[Typed]) -> list[Typed]:
    """Keys have the order of what they are compared with: of numbers (what is none is NULL), or of texts by bytes."""
    others = {each.kind.type for each in operands if not nothing(each.kind)} - {"key"}
    if others and others <= {"real", "whole"}:
        return [_key_number(each) if each.kind.type == "key" else each for each in operands]
    for node, each in zip(nodes, operands, strict=True):
        if each.kind.type == "key" and others != {"text"}:
            instead = f"use CAST({shown(node)} AS BIGINT) or CAST({shown(node)} AS VARCHAR)"
            raise QueryError("Keys have no order: they are only equal or different.", instead, node)
    return list(operands)


def _key_number(key: Typed) -> Typed:
    text = trees.cast(key.tree, "VARCHAR")
    return Typed(trees.finite(trees.read_or_null(text, "DOUBLE")), Kind("real"))


def of_one_type(nodes: Sequence[exp.Expression], operands: Sequence[Typed]) -> tuple[Type, list[Typed]]:
    """What was read, all of one type.

    Numbers meet as reals unless all are whole; a flag that meets one is 1 or 0. Dates meet timestamps as timestamps; a
    text that stands in the query is read as a date where it meets one. A key meets anything as text. A NULL is of any
    type.
    """
    operands = _with_flags(nodes, operands)
    types = {each.kind.type for each in operands if not nothing(each.kind)}
    if not types:
        return operands[0].kind.type, [_null(operands[0].kind.type) for _ in operands]
    if types <= {"real", "whole"}:
        whole = types == {"whole"}
        return ("whole" if whole else "real"), [_number(each, whole=whole) for each in operands]
    if types & {"date", "moment"} and types <= {"date", "moment", "text"}:
        return _as_dates(nodes, operands)
    if "key" in types and types <= {"key", "text", "whole", "date"}:
        return "text", [_name(node, each) for node, each in zip(nodes, operands, strict=True)]
    if len(types) == 1 and types <= {"flag", "text"}:
        (type_,) = types
        return type_, [_null(type_) if nothing(each.kind) else each for each in operands]
    first = next(each.kind.type for each in operands if not nothing(each.kind))
    if len(types) == 1:
        raise QueryError(f"{NAMES[first].capitalize()} is no value by itself.", "add it to a date", nodes[0])
    alike = {"real", "whole"} if first in ("real", "whole") else {first}
    at, other = next(
        (n, f) for n, f in zip(nodes, operands, strict=True) if f.kind.type not in alike and not nothing(f.kind)
    )
    rule = f"{NAMES[first].capitalize()} and {NAMES[other.kind.type]} do not go together."
    raise QueryError(rule, _written_as(at, other.kind.type, first), at)


def _with_flags(nodes: Sequence[exp.Expression], operands: Sequence[Typed]) -> Sequence[Typed]:
    """Flags beside numbers as 1 and 0; beside flags, a text of the query that spells one is one: flag = 'true'."""
    types = {each.kind.type for each in operands if not nothing(each.kind)}
    if "flag" not in types or len(types) == 1:
        return operands
    if types <= {"flag", "real", "whole"}:
        return [as_whole(each) for each in operands]
    if types == {"flag", "text"}:
        spelt = [_spelt_flag(node) for node in nodes]
        if all(each.kind.type == "flag" or flag is not None for each, flag in zip(operands, spelt, strict=True)):
            return [each if flag is None else flag for each, flag in zip(operands, spelt, strict=True)]
    return operands


def _spelt_flag(node: exp.Expression) -> Typed | None:
    """The words that a flag's cells may have."""
    if not isinstance(node, exp.Literal) or not node.is_string:
        return None
    word = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}.get(node.name.lower())
    return None if word is None else Typed(trees.flag(word), Kind("flag", values=(word,), nullable=False))


def _written_as(node: exp.Expression, now: Type, type_: Type) -> str:
    """How to write a value of one type so that it is of another. A text of the query that is no number is NULL when it
    is cast: that would be paid for, and say nothing."""
    if type_ in ("date", "moment") and now not in ("text", "key"):  # no cast leads there
        return "write a date there, such as DATE '2024-01-31'"
    if isinstance(node, exp.Literal) and node.is_string and type_ in ("real", "whole"):
        try:
            float(node.name)
        except ValueError:
            return "write a number here"
        return f"write {node.name} without quotes"
    if isinstance(node, exp.Literal) and not node.is_string and type_ == "text":
        return f"write '{node.name}', with quotes"
    return f"use CAST({shown(node)} AS {CASTS.get(type_, 'VARCHAR')})"


def merged(type_: Type, branches: Sequence[Kind], *, nullable: bool = True) -> Kind:
    """What is known of a value that is one of the branches'."""
    some = [each for each in branches if not nothing(each)]
    if not some:
        return Kind(type_, values=())
    values: tuple[object, ...] | None = None
    if all(each.values is not None for each in some):
        values = tuple(dict.fromkeys(value for each in some for value in each.values or ()))
        values = values if len(values) <= MANY else None
    if type_ not in ("real", "whole"):
        return Kind(type_, values=values, nullable=nullable)
    bounds, places = hull(*(interval(each) for each in some)), None
    if type_ == "real":
        bounds, places = _decimals(some, bounds)
    return Kind(type_, bounds.lower, bounds.upper, values=values, nullable=nullable, places=places)


def _decimals(branches: Sequence[Kind], bounds: Interval) -> tuple[Interval, int | None]:
    """Where all branches are decimals, so is the value, within their bounds as declared."""
    declared = hull(*(Interval(each.lower, each.upper) for each in branches))
    places = shared_places(list(branches), declared)
    return (bounds, None) if places is None else (declared, places)


def _number(found: Typed, *, whole: bool) -> Typed:
    if nothing(found.kind):
        return _null("whole" if whole else "real")
    if whole or found.kind.is_real:
        return found
    kind = reals(interval(found.kind).floats())
    if (places := shared_places([found.kind], Interval(found.kind.lower, found.kind.upper))) is not None:
        kind = replace(kind, places=places)  # a whole number is a decimal without places
    listed = None if found.kind.values is None else _floats(found.kind.values)
    return Typed(as_real(found), replace(kind, values=listed, nullable=found.kind.nullable))


def _floats(values: tuple[int, ...]) -> tuple[float, ...]:
    return tuple(dict.fromkeys(map(float, values)))


def _as_dates(nodes: Sequence[exp.Expression], found: Sequence[Typed]) -> tuple[Type, list[Typed]]:
    read: list[Typed] = []
    for node, each in zip(nodes, found, strict=True):
        if each.kind.type != "text" or nothing(each.kind):
            read.append(each)
            continue
        if not isinstance(node, exp.Literal):
            raise QueryError("A date and text do not go together.", f"use CAST({shown(node)} AS DATE)", node)
        read.append(date_or_moment(node, node.name))
    type_: Type = "moment" if any(each.kind.type == "moment" for each in read) else "date"
    return type_, [_null(type_) if nothing(each.kind) else _date(each, type_) for each in read]


def _date(found: Typed, type_: Type) -> Typed:
    if found.kind.type == type_:
        return found
    listed = found.kind.values
    values = None if listed is None else tuple(datetime.datetime.combine(each, datetime.time.min) for each in listed)
    return Typed(trees.cast(found.tree, "TIMESTAMP"), Kind("moment", values=values, nullable=found.kind.nullable))


def _name(node: exp.Expression, found: Typed) -> Typed:
    """As the text of a key. A number that is written in the query is compared as it is written."""
    if nothing(found.kind):
        return _null("text")
    if found.kind.type == "text":
        return found
    if found.kind.is_whole and found.kind.values is not None and len(found.kind.values) == 1:
        text = str(found.kind.values[0])
        return Typed(trees.text(text), Kind("text", values=(text,), nullable=False))
    return Typed(trees.cast(found.tree, "VARCHAR"), Kind("text", nullable=found.kind.nullable))


def _null(type_: Type) -> Typed:
    sql = SQL_TYPES.get(type_, "VARCHAR")
    return Typed(trees.null(sql), Kind(type_, values=()))
