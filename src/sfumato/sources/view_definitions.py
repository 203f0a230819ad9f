"""Views of a DuckDB file: their definitions become views of the schema, which the compiler unfolds.

A view's cells are never read: it may compute over all rows at once. Its definition is read instead, out of the file's
catalogue, which holds no row, and is from then on a text of the schema. It names the tables as the file does, so they
are named as the schema does, by their places: a table of the same file under the same name. What it reads must all be
there. The file may change its view later; then the text is another question, so before each charge both are compared.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..errors import PlanError
from ..schema import Schema
from .base import CLOSED, Source, needed
from .catalogue import attach, same_name, view_definitions
from .files import DuckDBTable
from .table_names import tables_read

_MOST = 100  # views that read views


def with_views_of_files(
    schema: Schema, sources: Mapping[str, Source], views: Mapping[str, DuckDBTable]
) -> tuple[Schema, dict[str, DuckDBTable]]:
    """The schema with what the files say of these views, and of the views that they read; and where all of them are."""
    texts, places = dict(schema.views), dict(views)
    for name, place in views.items():
        if name not in texts:
            before = set(texts)
            _Reader(schema, sources, place, texts).add(place.table or name, name)
            places |= {other: DuckDBTable(place.path, other) for other in texts if other not in before | set(views)}
    return Schema(schema.tables, views=texts) if len(texts) > len(schema.views) else schema, places


def compare_view(name: str, place: DuckDBTable, schema: Schema, sources: Mapping[str, Source]) -> None:
    """Refuse a view that the file has no more, or that says something else there now."""
    texts = {other: text for other, text in schema.views.items() if other != name}
    _Reader(schema, sources, place, texts).add(place.table or name, name)
    if _in_one_way(texts[name]) != _in_one_way(schema.views[name]):
        raise PlanError(
            f"the view {name!r} in {Path(place.path).name!r} says something else now than the schema does: give the "
            "schema its text of today (a query that reads it is then another question), or name no file for it"
        )


def proposed_views(file: Path, tables: Mapping[str, str]) -> dict[str, str]:
    """The views of a file that read these tables (by their names there: their names in the schema), with their texts;
    those that read anything else are left out."""
    texts: dict[str, str] = {}
    for called in sorted(_definitions(DuckDBTable(file))):
        draft = dict(texts)
        try:
            _Reader(None, {}, DuckDBTable(file), draft, tables).add(called, called)
        except PlanError:
            continue
        texts = draft
    return texts


class _Reader:
    """Reads definitions of one file into `texts`, by the names of the schema."""

    def __init__(
        self,
        schema: Schema | None,
        sources: Mapping[str, Source],
        place: DuckDBTable,
        texts: dict[str, str],
        tables: Mapping[str, str] | None = None,
    ) -> None:
        self._place, self._texts = place, texts
        self._taken = set() if schema is None else {name.lower() for name in schema.tables}
        self._tables = dict(tables or {})
        own = Path(place.path).absolute()
        for name, source in sources.items():
            if isinstance(source, DuckDBTable) and Path(source.path).absolute() == own:
                self._tables.setdefault(source.table or name, name)
        self._open: list[str] = []

    def add(self, called: str, name: str) -> None:
        """Read the view that the file calls so."""
        definition = next((text for own, text in _definitions(self._place).items() if same_name(own, called)), None)
        if definition is None:
            raise PlanError(f"the DuckDB file of the view {name!r} has no view {called!r}: name one that it has")
        if called.lower() in self._open or len(self._open) > _MOST:
            raise PlanError(f"the view {name!r} reads itself: its definition cannot be unfolded")
        if name.lower() in self._taken:
            raise PlanError(f"the schema has a table {name!r}, which is a view in the file: leave one of them out")
        self._open.append(called.lower())
        tree = _query_in(definition, name)
        qualified = {column.table.lower() for column in tree.find_all(needed("sqlglot").exp.Column)}
        for node in list(tables_read(tree)):
            self._rename(node, name, qualified)
        self._open.pop()
        self._texts[name] = tree.sql("duckdb")

    def _rename(self, node: Any, view: str, qualified: set[str]) -> None:
        """A table as the schema calls it; its columns may go on bearing its old name (`qualified`)."""
        exp, called = needed("sqlglot").exp, node.name
        place = [part.name.lower() for part in node.parts[:-1]]
        if place not in ([], ["main"]):
            raise PlanError(f"the view {view!r} reads {node.sql('duckdb')}, which is not in its file's schema main")
        name = next((own for there, own in self._tables.items() if same_name(there, called)), None)
        if name is None:
            name = self._view_read(called, view)
        alias = node.args.get("alias") or exp.TableAlias(this=node.this.copy())
        node.set("db", None)
        if name.lower() != called.lower() and called.lower() in qualified:
            node.set("alias", alias)
        node.set("this", exp.to_identifier(name, quoted=not name.isidentifier() or None))

    def _view_read(self, called: str, view: str) -> str:
        """A view that another one reads comes along, under its own name."""
        own = next((name for name in _definitions(self._place) if same_name(name, called)), None)
        if own is None:
            raise PlanError(
                f"the view {view!r} reads {called!r}, which is no table of the schema in the same file: name that "
                f"table in the schema, with {Path(self._place.path).name!r} as its data"
            )
        if not any(same_name(own, name) for name in self._texts):
            self.add(own, own)
        return own


def _definitions(place: DuckDBTable) -> Mapping[str, str]:
    file = place.file()
    status = Path(file).stat()
    return _read(file, (status.st_ino, status.st_size, status.st_mtime_ns))


@lru_cache(maxsize=64)
def _read(file: str, state: tuple[int, ...]) -> Mapping[str, str]:
    """Look into a file's catalogue, once for each `state` of it."""
    with needed("duckdb").connect(":memory:", config=CLOSED) as engine:
        attach(engine, file, "compared", Path(file).name)
        return view_definitions(engine, "compared")


def _query_in(definition: str, name: str) -> Any:
    """The query of CREATE VIEW, in SQL as people write it."""
    sqlglot = needed("sqlglot")
    exp = sqlglot.exp
    created: Any = None
    with contextlib.suppress(sqlglot.errors.SqlglotError, RecursionError):
        created = sqlglot.parse_one(_as_typed(definition), dialect="duckdb")
    query = created.args.get("expression") if isinstance(created, exp.Create) else None
    if not isinstance(query, exp.Query):
        raise PlanError(f"the definition of the view {name!r} cannot be read: write it under views, as a SELECT")
    query = _changed(query, _plain)
    columns = created.this.expressions if isinstance(created.this, exp.Schema) else []
    if columns:
        alias = exp.TableAlias(this=exp.to_identifier(name, quoted=True), columns=[each.copy() for each in columns])
        query = exp.Select(expressions=[exp.Star()]).from_(exp.Subquery(this=query, alias=alias))
    return query


def _as_typed(definition: str) -> str:
    """The engine writes POSITION(a IN b) as "position"(b, a), which the parser reads the other way round."""
    tokens = needed("sqlglot").tokenize(definition, dialect="duckdb")
    parts, last = [], 0
    for token, after in itertools.pairwise(tokens):
        if token.text.lower() == "position" and after.text == "(" and definition[token.start] in '"pP':
            parts += [definition[last : token.start], "strpos"]
            last = token.end + 1
    return "".join([*parts, definition[last:]])


_SPANS = {"TO_YEARS": "YEAR", "TO_MONTHS": "MONTH", "TO_WEEKS": "WEEK", "TO_DAYS": "DAY", "TO_HOURS": "HOUR",
          "TO_MINUTES": "MINUTE", "TO_SECONDS": "SECOND"}  # fmt: skip


def _plain(node: Any) -> Any:
    """What the engine's catalogue spells in its own way: COUNT(*), intervals, IN (SELECT ...)."""
    exp = needed("sqlglot").exp
    if isinstance(node, exp.Func):
        listed = not isinstance(node, exp.Anonymous)
        name, operands = (node.sql_name(), [node.this]) if listed else (node.name.upper(), node.expressions)
        if name == "COUNT_STAR":
            return exp.Count(this=exp.Star())
        if name in _SPANS and len(operands) == 1 and (number := _number(operands[0])) is not None:
            return exp.Interval(this=exp.Literal.string(number), unit=exp.var(_SPANS[name]))
    if isinstance(node, exp.Select) and node.args.get("from_") is not None:
        first, joins = _without_brackets(node.args["from_"].this)
        if joins:
            node.args["from_"].set("this", first)
            node.set("joins", [*joins, *(node.args.get("joins") or [])])
    if isinstance(node, exp.EQ) and isinstance(node.expression, exp.Any):
        inner = node.expression.this
        inner = inner.this if isinstance(inner, exp.Subquery) else inner
        if isinstance(inner, exp.Query):
            return exp.In(this=node.this, query=exp.Subquery(this=inner))
    return node


def _without_brackets(node: Any) -> tuple[Any, list[Any]]:
    """The first table of FROM and its joins: `((a LEFT JOIN b ON p) JOIN c ON q)` is read from the left anyway."""
    exp = needed("sqlglot").exp
    if isinstance(node, exp.Subquery) and not node.alias and not isinstance(node.this, exp.Select | exp.SetOperation):
        first, joins = _without_brackets(node.this)
        return first, [*joins, *(node.args.get("joins") or [])]
    joins = node.args.get("joins") or []
    node.set("joins", None)
    return node, joins


def _number(node: Any) -> str | None:
    """The whole number within CAST(TRUNC(CAST(3 AS DOUBLE)) AS INTEGER)."""
    exp = needed("sqlglot").exp
    while isinstance(node, exp.Cast | exp.Trunc | exp.Paren):
        node = node.this
    sign = ""
    if isinstance(node, exp.Neg):
        sign, node = "-", node.this
    if isinstance(node, exp.Literal) and node.name.isdigit():
        return sign + node.name
    return None


def _in_one_way(text: str) -> Any:
    """As a tree: neither brackets nor quotes nor the case of names tell two definitions apart."""
    sqlglot = needed("sqlglot")
    exp = sqlglot.exp
    try:
        tree = sqlglot.parse_one(text, dialect="duckdb")
    except sqlglot.errors.SqlglotError:
        return text
    for name in tree.find_all(exp.Identifier):
        name.set("this", name.name.lower())
        name.set("quoted", False)
    return _changed(tree, lambda node: node.this if isinstance(node, exp.Paren) else node)


def _changed(tree: Any, change: Callable[[Any], Any]) -> Any:
    """The tree with its nodes changed, the innermost first."""
    for node in reversed(list(tree.walk(bfs=True))):
        after = change(node)
        if after is not node and node is tree:
            return after
        if after is not node:
            node.replace(after)
    return tree
