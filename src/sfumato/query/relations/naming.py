"""What user SQL may name, and what its names stand for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sqlglot import exp

from ..expressions import trees
from ..refusal import QueryError
from ..relation import Scope

_WORDS = {
    "sample": ("TABLESAMPLE draws rows at random, so an answer would not be a function of the data.", "leave it out"),
    "into": ("SELECT INTO writes a table.", "leave INTO out"),
    "locks": ("FOR UPDATE locks rows.", "leave it out"),
    "pivots": (
        "PIVOT makes columns out of values.",
        "write one column each: SUM(CASE WHEN k = 'a' THEN x END)",
    ),
    "laterals": ("LATERAL reads rows for each row.", "join the table instead"),
    "joins": ("A join in brackets cannot be read.", "leave the brackets out"),
    "with_": ("WITH cannot stand here.", "move it to the beginning of the query"),
    "limit": ("LIMIT in a subquery picks rows across units.", "put LIMIT at the end of the whole query"),
    "offset": ("OFFSET in a subquery picks rows across units.", "put it at the end of the whole query"),
}


def known_parts(node: exp.Expr, allowed: Sequence[str]) -> None:
    """Refuses clauses that nobody wrote a rule for."""
    for part, value in node.args.items():
        if value and part not in allowed:
            word = part.strip("_").upper().replace("_", " ")
            rule, rewrite = _WORDS.get(part, (f"{word} is not possible here.", "leave it out"))
            raise QueryError(rule, rewrite, value if isinstance(value, exp.Expression) else node)


def refuse_our_names(node: exp.Expr) -> None:
    for each in node.find_all(exp.Identifier):
        if each.name.startswith("_"):
            raise QueryError(
                f"Names that begin with an underscore are reserved: {each.name!r}.", "choose another name", each
            )


def spelt_out(node: exp.Expression, select: exp.Select, scope: Scope) -> exp.Expression:
    """The expression with aliases of the SELECT list replaced by what they stand for; columns of tables go first."""
    aliases = {each.alias.lower(): each.this for each in select.expressions if isinstance(each, exp.Alias)}
    known = {name for relation in scope.sources.values() for name in relation.columns}
    return _spelt(node, {name: each for name, each in aliases.items() if name not in known})


def _spelt(node: exp.Expression, aliases: dict[str, exp.Expression]) -> exp.Expression:
    if not aliases:
        return node.copy()

    def meant(each: exp.Expression) -> exp.Expression:
        if isinstance(each, exp.Column) and not each.table and each.name.lower() in aliases:
            name = each.name.lower()
            others = {other: tree for other, tree in aliases.items() if other != name}
            return trees.wrapped(_spelt(aliases[name], others))
        return each

    return changed(node, meant)


def changed(node: exp.Expression, change: Callable[[exp.Expression], exp.Expression]) -> exp.Expression:
    """A copy with nodes replaced from the top down; what was replaced, and subqueries, are not entered."""
    new = change(node)
    if new is not node:
        return new
    if isinstance(node, exp.Query):
        return node.copy()
    copy = type(node)()  # its parts are copied below, each once
    copy.meta.update(node.meta)
    copy.type = node.type
    for part, value in node.args.items():
        if isinstance(value, list):
            copy.set(part, [changed(each, change) if isinstance(each, exp.Expression) else each for each in value])
        else:
            copy.set(part, changed(value, change) if isinstance(value, exp.Expression) else value)
    return copy


def found(node: exp.Expression, *types: type[exp.Expr]) -> Iterator[exp.Expression]:
    """The nodes of these types, outermost first, not looking into subqueries."""
    if isinstance(node, types):
        yield node
    for value in node.args.values():
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, exp.Expression) and not isinstance(each, exp.Query):
                yield from found(each, *types)
