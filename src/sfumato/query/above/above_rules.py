"""What is refused above releases, and how the parts of a query are written down."""

from __future__ import annotations

from sqlglot import ErrorLevel, exp
from sqlglot.errors import UnsupportedError

from ...schema import Schema, Table
from ..refusal import QueryError


class AboveError(QueryError):
    """A refusal of a rule of this folder: it is told in place of what a query without anything above would be told."""


def written(tree: exp.Query) -> str:
    """The text of a part; refused where the text would say less than the tree, which is then another question."""
    try:
        return tree.sql("duckdb", comments=False, unsupported_level=ErrorLevel.RAISE)
    except UnsupportedError:
        pass
    raise QueryError("A function of this query means something else in DuckDB's SQL.", "write it in DuckDB's", tree)


def public_tables(schema: Schema) -> dict[str, Table]:
    """By lower-case name: the tables that SQL above releases may read."""
    return {name.lower(): table for name, table in schema.tables.items() if not table.private}


def by_own_names(query: exp.Query) -> exp.Query:
    """Public tables in lower case, which is how they are handed over."""
    tree = query.copy()
    for table in tree.find_all(exp.Table):
        if isinstance(table.this, exp.Identifier) and not table.name.startswith("_"):
            alias = table.args.get("alias")
            name = table.name
            table.set("this", exp.to_identifier(name.lower(), quoted=True))
            if alias is None:
                table.set("alias", exp.TableAlias(this=exp.to_identifier(name, quoted=True)))
    return tree


class PublicOnlyError(AboveError):
    """The refusal of a plan for a query that needs none."""

    code = "public-only"


def public_only(tree: exp.Query) -> PublicOnlyError:
    """The refusal; the caller raises it."""
    return PublicOnlyError(
        "The query reads public tables only: it needs no privacy, and nothing to pay.",
        "ask it for nothing, with sf.public(query, data) or `sfumato query`",
        tree,
    )
