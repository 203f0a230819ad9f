"""Whole queries in another way, for refusals whose advice changes more than one place."""

from __future__ import annotations

from sqlglot import exp, parse_one


def _text(query: exp.Expr) -> str:
    return query.sql("duckdb", comments=False)


def per_unit_first(select: exp.Select) -> str:
    """One number for each unit in a subquery, and their average above it."""
    inner = select.copy()
    for part in ("having", "order", "limit", "offset"):
        inner.set(part, None)
    folds = [each for each in inner.expressions if each.find(exp.AggFunc) is not None]
    if not folds or inner.args.get("with_") is not None:
        return ""
    alias = folds[0].alias or "each_one"
    shown = [each for each in inner.expressions if each.find(exp.AggFunc) is None]
    inner.set("expressions", [*shown, exp.alias_(folds[0].unalias(), alias, quoted=bool(folds[0].alias))])
    return f'SELECT AVG(LEAST(GREATEST("{alias}", 0), 100)) AS "{alias}" FROM ({_text(inner)}) AS units'


def with_where(count: exp.Expr) -> str:
    """The query of an aggregate with its FILTER as a condition on all rows."""
    select = count.find_ancestor(exp.Select)
    if select is None:
        return ""
    query = select.copy()
    for part in query.find_all(exp.Filter):
        if part.this == count:
            query = query.where(part.expression.this.copy())
            for same in [each for each in query.find_all(exp.Filter) if each == part]:
                same.replace(same.this.copy())
            return _text(query)
    return ""


def once_per_unit(fold: exp.Expr, unit: str) -> str:
    """An aggregate of different values, taken of the rows of each unit first."""
    select = fold.find_ancestor(exp.Select)
    parts = ("group", "having", "with_", "order")
    if select is None or not unit or len(select.expressions) != 1 or any(select.args.get(part) for part in parts):
        return ""
    inner, shown = select.copy(), select.expressions[0]
    if shown.unalias() != fold:
        return ""
    column = parse_one(unit, dialect="duckdb")
    for part in column.find_all(exp.Identifier):
        part.set("quoted", True)
    inner.set("expressions", [column, exp.alias_(fold.copy(), "each_one")])
    inner.set("group", exp.Group(expressions=[column.copy()]))
    outer = "SUM" if isinstance(fold, exp.Sum) else "AVG"
    return f'SELECT {outer}(each_one) AS "{shown.alias or "each_one"}" FROM ({_text(inner)}) AS units'


def counting(select: exp.Select) -> str:
    """How many rows there are of each kind that the query would show."""
    if select.args.get("with_") is not None or any(each.find(exp.Star) for each in select.expressions):
        return ""
    query = select.copy()
    keys = [each.unalias() for each in query.expressions]
    if not all(isinstance(key, exp.Column) for key in keys):
        return ""
    for part in ("distinct", "order", "limit", "offset", "having"):
        query.set(part, None)
    names = {each.alias_or_name.lower() for each in query.expressions}
    name = next(
        each for each in ("n", "rows_of_it", *(f"n{place}" for place in range(len(names)))) if each not in names
    )
    query.set("expressions", [*query.expressions, exp.alias_(exp.Count(this=exp.Star(), big_int=True), name)])
    query.set("group", exp.Group(expressions=[key.copy() for key in keys]))
    return _text(query)
