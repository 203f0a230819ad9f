"""One way to write a query: the same question is the same text, however it was typed.

Names are in lower case and quoted only where they must be; tables have their own names, or numbered ones where one is
read twice, and columns are named by themselves where there is only one table; operands of AND, OR, = and <>, and the
values of IN, stand in a fixed order; constants stand on the right of comparisons; brackets stand where they are needed.
Each step keeps what the query means, by SQL's three-valued logic. What is not known to be safe is left as it is: then
two ways to write a question stay two questions, which costs budget and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB

_PLAIN = re.compile(r"[a-z][a-z0-9_]*")
_MIRRORED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.EQ: exp.EQ, exp.NEQ: exp.NEQ, exp.LT: exp.GT, exp.GT: exp.LT, exp.LTE: exp.GTE, exp.GTE: exp.LTE,
}  # fmt: skip
_CONNECTORS = (exp.And, exp.Or)
_SUMS, _PRODUCTS = (exp.Add, exp.Sub), (exp.Mul, exp.Div, exp.IntDiv, exp.Mod)
_TESTS = (*_MIRRORED, exp.Between, exp.In, exp.Is, exp.Like, exp.ILike)
# How tightly they bind, from the loosest on; what is in none of these is left alone.
_BINDING: tuple[tuple[type[exp.Expr], ...], ...] = (
    (exp.Or,), (exp.And,), (exp.Not,), _TESTS, (exp.DPipe,), _SUMS, _PRODUCTS, (exp.Neg,),
)  # fmt: skip
_RANK = {node: place for place, nodes in enumerate(_BINDING) for node in nodes}
_CHAINS = (*_CONNECTORS, *_SUMS, *_PRODUCTS, exp.DPipe)  # read from the left: a + b + c is (a + b) + c
# Within these no operand needs brackets.
_ROOMY = (
    exp.Where, exp.Having, exp.Qualify, exp.Select, exp.Alias, exp.Join, exp.If, exp.Case, exp.Paren, exp.Ordered,
    exp.Group, exp.Count, exp.CountIf, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Coalesce,
)  # fmt: skip


def text_of(node: exp.Expression) -> str:
    """By which a part of a query is found again."""
    return node.sql("duckdb", normalize=True)


class UnsureError(Exception):
    """The query has something that nobody proved safe to rewrite."""


def canonical(query: exp.Query) -> exp.Query:
    """The same query, written in the one way. Aliases of its columns stay, as does what is done with its groups."""
    tree = query.copy()
    for name in tree.find_all(exp.Identifier):
        name.set("this", name.name.lower())
        name.set("quoted", needs_quotes(name.name))
    for call in tree.find_all(exp.Anonymous):
        call.set("this", call.name.upper())
    _rename(tree, {}, frozenset())
    made = _ordered(tree)
    assert isinstance(made, exp.Query)
    return made


def written(tree: exp.Expr) -> str:
    """The text of a canonical tree."""
    return tree.sql("duckdb", comments=False)


def says(tree: exp.Expr, other: exp.Expr) -> bool:
    """Are they one tree, but for brackets?"""
    return bool(_unbracketed(tree) == _unbracketed(other))


def _unbracketed(tree: exp.Expr) -> exp.Expr:
    return tree.copy().transform(lambda node: _innermost(node) if isinstance(node, exp.Paren) else node, copy=False)


def _innermost(node: exp.Expr) -> exp.Expr:
    return _innermost(node.this) if isinstance(node, exp.Paren) else node


def _rename(query: exp.Expr, outer: Mapping[str, str], taken: frozenset[str]) -> None:
    """Tables by their own names. `outer` is what aliases around a subquery became, `taken` the names in use there."""
    given = query.args.get("with_")
    for each in [] if given is None else given.expressions:
        _rename(each.this, {}, frozenset())
    if isinstance(query, exp.Subquery):
        _rename(query.this, outer, taken)
    elif isinstance(query, exp.SetOperation):
        _rename(query.this, outer, taken)
        _rename(query.expression, outer, taken)
    elif isinstance(query, exp.Select):
        _rename_select(query, outer, taken)
    else:
        raise UnsureError


def _rename_select(select: exp.Select, outer: Mapping[str, str], taken: frozenset[str]) -> None:
    if select.args.get("from_") is None:
        raise UnsureError
    sources = [select.args["from_"].this, *(join.this for join in select.args.get("joins") or [])]
    inner: dict[str, str] = {}
    for source in sources:
        if not isinstance(source, exp.Table | exp.Subquery):
            raise UnsureError
        own = source.name if isinstance(source, exp.Table) else "part"
        new = _free(own, taken | set(inner.values()))
        old = source.alias or source.name
        if old in inner or (isinstance(source, exp.Subquery) and not old and "" in inner):
            raise UnsureError  # two of them, which is refused anyway, or nameless ones, which nothing can tell apart
        inner[old] = new
        _alias(source, new, bare=isinstance(source, exp.Table) and new == own)
        if isinstance(source, exp.Subquery):
            _rename(source.this, {}, frozenset())  # it sees nothing of what is around it
    names = {**outer, **inner}
    lone = len(sources) == 1 and not outer  # within an expression, a bare name might mean what is around it
    aliases = {each.alias: each.this for each in select.expressions if isinstance(each, exp.Alias)}
    for node in _within(select, {id(source) for source in sources}):
        if isinstance(node, exp.Query):
            _rename(node, names, taken | set(inner.values()))
        elif isinstance(node, exp.Column) and node.table:
            if node.table not in names or node.args.get("db") is not None:
                raise UnsureError
            here = node.table in inner
            node.set("table", _name(names[node.table]))
            if lone and here and not isinstance(node.this, exp.Star):
                _strip(node, aliases)


def _strip(column: exp.Column, aliases: Mapping[str, exp.Expr]) -> None:
    """The column by its own name, unless the SELECT list gives that name to something else."""
    meant = aliases.get(column.name)
    if meant is not None and not (isinstance(meant, exp.Column) and meant.name == column.name):
        raise UnsureError
    column.set("table", None)


def _free(own: str, taken: frozenset[str] | set[str]) -> str:
    number, name = 2, own
    while name in taken:
        name, number = f"{own}_{number}", number + 1
    return name


def _alias(source: exp.Expr, name: str, *, bare: bool) -> None:
    before = source.args.get("alias")
    columns = before.args.get("columns") if before is not None else None
    made = None if bare and not columns else exp.TableAlias(this=_name(name), columns=columns or None)
    source.set("alias", made)


def _name(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=needs_quotes(name))


def needs_quotes(name: str) -> bool:
    words = DuckDB.Tokenizer.KEYWORDS, DuckDB.Generator.RESERVED_KEYWORDS
    return not _PLAIN.fullmatch(name) or name.upper() in words[0] or name in words[1]


def _within(node: exp.Expr, without: set[int]) -> list[exp.Expr]:
    """The nodes of one SELECT, with the subqueries in its expressions but not what is in these."""
    found: list[exp.Expr] = []
    for part, value in node.args.items():
        for each in value if isinstance(value, list) else [value]:
            if not isinstance(each, exp.Expr) or id(each) in without or part == "with_":
                continue
            found.append(each)
            if not isinstance(each, exp.Query):
                found += _within(each, without)
    return found


def _ordered(node: exp.Expr) -> exp.Expr:
    """Brackets where they are needed, operands in their order; from the leaves up."""
    if isinstance(node, _CONNECTORS):  # a whole chain at once: level by level its terms would be written n^2 / 2 times
        kind = type(node)
        terms = [_ordered(each) for each in _operands(node, kind)]
        return _chain(kind, [term for each in terms for term in _operands(each, kind)])
    for part, value in list(node.args.items()):
        if isinstance(value, list):
            node.set(part, [_ordered(each) if isinstance(each, exp.Expr) else each for each in value])
        elif isinstance(value, exp.Expr):
            node.set(part, _ordered(value))
    if isinstance(node, exp.Paren):
        inside = node.this
        roomy = type(node.parent) in _RANK or type(node.parent) in _ROOMY
        known = type(inside) in _RANK or isinstance(inside, exp.Column | exp.Literal | exp.Paren | exp.Boolean)
        return inside if roomy and known else node
    if type(node) in _RANK:
        _bracket(node)
    if type(node) in _MIRRORED:
        return _mirrored(node)
    if isinstance(node, exp.In) and node.expressions:
        values = {written(each): each for each in node.expressions}
        node.set("expressions", [values[text] for text in sorted(values)])
    return node


def _operands(node: exp.Expr, kind: type[exp.Expr]) -> list[exp.Expr]:
    if isinstance(node, exp.Paren) and type(node.this) is kind:
        node = node.this
    if type(node) is not kind:
        return [node]
    return _operands(node.this, kind) + _operands(node.expression, kind)


def _chain(kind: Any, operands: list[exp.Expr]) -> exp.Expr:
    """Each operand once, in the order of their texts."""
    terms = {written(term): term for term in map(_bare, operands)}
    if len(terms) == 1:
        return next(iter(terms.values()))  # whatever stands around it brackets it
    first, *others = (_bracketed(terms[text], _RANK[kind]) for text in sorted(terms))
    tree: exp.Expr = first
    for term in others:
        tree = kind(this=tree, expression=term)
    return tree


def _bare(node: exp.Expr) -> exp.Expr:
    return node.this if isinstance(node, exp.Paren) and type(node.this) in _RANK else node


def _bracket(node: exp.Expr) -> None:
    """Brackets around the operands of an operator that bind no tighter than it does."""
    rank = _RANK[type(node)]
    for part in ("this", "expression", "low", "high"):
        value = node.args.get(part)
        if isinstance(value, exp.Expr):
            leftmost = part == "this" and isinstance(node, _CHAINS)
            node.set(part, _bracketed(_bare(value), rank - 1 if leftmost else rank))


def _bracketed(node: exp.Expr, rank: int) -> exp.Expr:
    return exp.Paren(this=node) if _RANK.get(type(node), len(_BINDING)) <= rank else node


def _mirrored(node: exp.Expr) -> exp.Expr:
    """Constants on the right; otherwise in the order of their texts."""
    left, right = node.this, node.expression
    if isinstance(right, exp.Query) or isinstance(left, exp.Query):
        return node
    fixed = [_constant(each) for each in (left, right)]
    wrong = fixed[0] > fixed[1] or (fixed[0] == fixed[1] and written(left) > written(right))
    return _MIRRORED[type(node)](this=right, expression=left) if wrong else node


def _constant(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) or (isinstance(node, exp.Neg | exp.Paren) and _constant(node.this))
