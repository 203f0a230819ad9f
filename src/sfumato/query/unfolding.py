"""Views of the schema, unfolded: a query that names one gets its text as a CTE, and so the plan's text holds it.

Why that is all. What a view is allowed to do is then what a CTE is: the unit is tracked through it by the ordinary
rules, or it is refused by them; one that aggregates over units is a release. A plan holds the unfolded text and the
tables alone: the same question is the same plan, whether it came by a view or with the CTE written out, and a view that
changed makes another question. Views that a query does not read are no part of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import TokenType, exp, tokenize

from ..schema import Schema
from ..sources import tables_read
from .parsing import parsed, read_only
from .refusal import QueryError


@dataclass(frozen=True)
class Unfolded:
    """A query with the views that it reads.

    text     what is asked
    written  what somebody wrote
    at       where the views were put into it
    places   of each view's own text: its name, and where it begins and ends
    """

    text: str
    written: str
    at: int = 0
    places: tuple[tuple[str, int, int], ...] = ()

    def refused(self, refusal: QueryError) -> QueryError:
        """The refusal as one of what somebody wrote, or of a view's own text."""
        if not self.places or refusal.text != self.text or refusal.span is None:
            return refusal
        start, end = refusal.span
        for name, first, last in self.places:
            if first <= start and end <= last:
                rule = f"In the view {name!r}: {refusal.rule}"
                moved = QueryError(rule, refusal.rewrite, refusal.node, name=refusal.name, choices=refusal.choices)
                return moved.moved(self.text[first:last], (start - first, end - first))
        more = len(self.text) - len(self.written)
        start, end = (max(self.at, place - more) if place >= self.at else place for place in (start, end))
        return refusal.moved(self.written, (start, end))


def unfolded(text: str, schema: Schema) -> Unfolded:
    """The query with the views that it reads as CTEs; a query that reads none is left as it is."""
    if not schema.views or not (views := views_read(read_only(text), schema)):
        return Unfolded(text, text)
    for node in tables_read(read_only(text)):
        if node.name in views and (start := node.this.meta.get("start", 0)) and text[start - 1] == ".":
            raise QueryError("A view is in no schema of the database.", f"write {node.name}", node).within(text)
    taken = {cte.alias.lower(): cte for cte in read_only(text).find_all(exp.CTE)}
    for name in views:
        if name.lower() in taken:
            raise QueryError(
                f"{name!r} is a view of the schema, and a CTE of this query has the same name.",
                "give the CTE another name",
                taken[name.lower()],
            ).within(text)
    first, *rest = tokenize(text, dialect="duckdb")
    joins = first.token_type == TokenType.WITH
    at = first.end + 1 if joins else first.start
    if joins and rest and rest[0].text.upper() == "RECURSIVE":
        at = rest[0].end + 1
    before, places = text[:at] + (" " if joins else "WITH "), list[tuple[str, int, int]]()
    for place, name in enumerate(views):
        own = exp.to_identifier(name, quoted=True).sql("duckdb")
        before += f"{', ' * (place > 0)}{own} AS (\n"
        places.append((name, len(before), len(before) + len(schema.views[name])))
        before += f"{schema.views[name]}\n)"
    before += "," if joins else "\n"
    return Unfolded(before + text[at:], text, at, tuple(places))


def views_read(tree: exp.Query, schema: Schema) -> list[str]:
    """The views that a query reads and those that they read, each after what it reads, in an order of their own."""
    names = {name.lower(): name for name in schema.views}
    ordered: list[str] = []
    _add(tree, schema, names, ordered, ())
    return ordered


def _add(tree: exp.Query, schema: Schema, names: dict[str, str], ordered: list[str], within: tuple[str, ...]) -> None:
    for name in sorted(set(_views_in(tree, names))):
        if name in within:
            way = " reads ".join([*within[within.index(name) :], name])
            raise QueryError(f"A view reads itself: {way}.", "write one of them over tables, or over other views")
        if name not in ordered:
            _add(_query_of(name, schema.views[name]), schema, names, ordered, (*within, name))
            ordered.append(name)


def _views_in(tree: exp.Query, names: dict[str, str]) -> Iterator[str]:
    for node in tables_read(tree):
        if node.args.get("db") is None and node.name.lower() in names:
            yield names[node.name.lower()]


def _query_of(name: str, text: str) -> exp.Query:
    """The view's own tree. Its text is one query by itself and within brackets: it cannot end the CTE that it is put
    into, nor take what follows along."""
    try:
        tree = parsed(text)
        parsed(f"(\n{text}\n)")
    except QueryError as problem:
        problem.within(text)
        raise QueryError(f"In the view {name!r}: {problem.rule}", problem.rewrite) from None
    return tree
