"""Other names of the same functions: what people of other databases write is read as what it stands for.

The one path reads DuckDB's names. A function that DuckDB does not have, but that is another name of something that is
read here, becomes that when the text is parsed, so that the same question is the same plan. Nothing that was read
before becomes anything else.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

HOMES = frozenset({"main", "public", "dbo"})
"""Where DuckDB, PostgreSQL and SQL Server put tables of which nobody says where they are."""
_PARSERS = "_values"  # what the parser calls VALUES that nobody gave a name
Spelling = Callable[..., exp.Expr]


def _zero() -> exp.Expr:
    return exp.Literal.number(0)


def _operand(node: exp.Expr) -> exp.Expr:
    return exp.paren(node, copy=False) if isinstance(node, exp.Binary | exp.Not | exp.Predicate) else node


def _quotient(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return exp.Div(this=_operand(left), expression=_operand(right), typed=False, safe=False)


def _quotient_or_zero(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """DIV0: 0 where the divisor is."""
    none = exp.EQ(this=_operand(right.copy()), expression=_zero())
    there = exp.Not(this=exp.Is(this=_operand(left.copy()), expression=exp.Null()))
    return _when(exp.And(this=none, expression=there), _zero(), _quotient(left, right))


def _when(condition: exp.Expr, value: exp.Expr, otherwise: exp.Expr | None = None) -> exp.Expr:
    return exp.Case(ifs=[exp.If(this=condition, true=value)], default=otherwise)


def _missing(value: exp.Expr, instead: exp.Expr | None = None) -> exp.Expr:
    """ISNULL: a question in MySQL and Spark, COALESCE in T-SQL."""
    if instead is not None:
        return exp.Coalesce(this=value, expressions=[instead])
    return exp.paren(exp.Is(this=_operand(value), expression=exp.Null()), copy=False)


def _part(name: exp.Expr, date: exp.Expr) -> exp.Expr:
    """DATEPART(month, d), the part without quotes."""
    return exp.Extract(this=exp.var(name.name.upper()), expression=date)


def _later(unit: exp.Expr, number: exp.Expr, date: exp.Expr) -> exp.Expr:
    """DATEADD(day, 3, d)."""
    digits = number.this if isinstance(number, exp.Neg) else number
    if isinstance(digits, exp.Literal):  # as the parser has it in INTERVAL 3 DAY
        number = exp.Literal.string(number.sql("duckdb"))
    span = exp.Interval(this=number, unit=exp.var(unit.name.upper()))
    return exp.paren(exp.Add(this=_operand(date), expression=span), copy=False)


def _of_rows_where(fold: type[exp.Expr]) -> Spelling:
    """SUM_IF(x, condition): an aggregate with a FILTER."""
    return lambda value, condition: exp.Filter(this=fold(this=value), expression=exp.Where(this=condition))


def several_counted(node: exp.Expr) -> exp.Expr | None:
    """COUNT(DISTINCT a, b): pairs of which neither is missing."""
    parts = node.this.expressions if isinstance(node.this, exp.Distinct) else []
    if len(parts) < 2:
        return None
    there = [exp.Not(this=exp.Is(this=_operand(part.copy()), expression=exp.Null())) for part in parts]
    pairs = exp.Distinct(expressions=[exp.Tuple(expressions=list(parts))])
    return exp.Filter(this=exp.Count(this=pairs, big_int=True), expression=exp.Where(this=exp.and_(*there, copy=False)))


def one_filter(node: exp.Expr) -> exp.Expr | None:
    """A FILTER around what has one already."""
    if not isinstance(node.this, exp.Filter):
        return None
    both = exp.and_(node.this.expression.this, node.expression.this)
    return exp.Filter(this=node.this.this, expression=exp.Where(this=both))


def _quantile(value: exp.Expr, chance: exp.Expr, _: exp.Expr | None = None) -> exp.Expr:
    """How exact an approximation is to be does not matter: the noise says."""
    return exp.Quantile(this=value, quantile=chance)


def _within_group(node: exp.PercentileCont | exp.PercentileDisc) -> exp.Expr | None:
    """QUANTILE_CONT(x, 0.5 ORDER BY x), as DuckDB writes PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x)."""
    order = node.expression
    if not isinstance(order, exp.Order) or order.this is None or len(order.expressions) != 1:
        return None
    if order.expressions[0].this != node.this:
        return None
    return exp.WithinGroup(this=type(node)(this=order.this), expression=exp.Order(expressions=order.expressions))


SPELLINGS: dict[tuple[str, int], Spelling] = {
    ("VAR", 1): lambda x: exp.Variance(this=x),
    ("VARP", 1): lambda x: exp.VariancePop(this=x),
    ("STD", 1): lambda x: exp.Stddev(this=x),
    ("STDEVP", 1): lambda x: exp.StddevPop(this=x),
    ("STDDEVP", 1): lambda x: exp.StddevPop(this=x),
    ("SUM_IF", 2): _of_rows_where(exp.Sum),
    ("SUMIF", 2): _of_rows_where(exp.Sum),
    ("AVG_IF", 2): _of_rows_where(exp.Avg),
    ("AVGIF", 2): _of_rows_where(exp.Avg),
    ("APPROX_PERCENTILE", 2): _quantile,
    ("PERCENTILE_APPROX", 2): _quantile,
    ("PERCENTILE_APPROX", 3): _quantile,
    ("PERCENTILE", 2): _quantile,
    ("IFF", 3): _when,
    ("ISNULL", 1): _missing,
    ("ISNULL", 2): _missing,
    ("ISNOTNULL", 1): lambda x: exp.Not(this=_missing(x)),
    ("ZEROIFNULL", 1): lambda x: exp.Coalesce(this=x, expressions=[_zero()]),
    ("NULLIFZERO", 1): lambda x: exp.Nullif(this=x, expression=_zero()),
    ("SAFE_DIVIDE", 2): _quotient,
    ("DIV0", 2): _quotient_or_zero,
    ("SQUARE", 1): lambda x: exp.Pow(this=x, expression=exp.Literal.number(2)),
    ("MID", 3): lambda text, start, length: exp.Substring(this=text, start=start, length=length),
    ("DATEADD", 3): _later,
    ("TO_DATE", 1): lambda x: exp.Cast(this=x, to=exp.DataType.build("DATE")),
    ("EOMONTH", 1): lambda x: exp.LastDay(this=x),
}
"""By name and number of arguments, of functions that the parser does not know."""

NODES: dict[type[exp.Expr], Callable[..., exp.Expr | None]] = {
    exp.Count: several_counted,
    exp.Filter: one_filter,
    exp.ApproxDistinct: lambda node: exp.Count(this=exp.Distinct(expressions=[node.this]), big_int=True),
    exp.Nvl2: lambda node: _when(
        exp.Not(this=exp.Is(this=_operand(node.this), expression=exp.Null())), node.args["true"], node.args.get("false")
    ),
    exp.EqualNull: lambda node: exp.paren(exp.NullSafeEQ(this=node.this, expression=node.expression), copy=False),
    exp.PercentileCont: _within_group,
    exp.PercentileDisc: _within_group,
    exp.SafeDivide: lambda node: exp.paren(_quotient(node.this, node.expression), copy=False),
}
"""By node, of those that it knows under a name that nobody reads."""


def spelt_alike(tree: exp.Query) -> exp.Query:
    """The tree in which every function has the name that is read here; changed in place."""
    ctes = {each.alias.lower() for each in tree.find_all(exp.CTE)}
    for node in reversed(list(tree.walk(bfs=True))):
        if isinstance(node, exp.Table | exp.Column):
            _without_schema(node, ctes)
        if isinstance(node, exp.Values) and node.alias == _PARSERS:
            node.set("alias", None)
        plain = _plain(node)
        if plain is not None:
            plain.meta.update(node.meta)  # it is underlined where the other name stands
            node.replace(plain)
    return tree


def _without_schema(node: exp.Table | exp.Column, ctes: set[str]) -> None:
    """main.visits and clinic.public.visits are the table `visits`: a schema of ours has one place for tables. A CTE of
    that name is another table, so there the name stays, and is refused."""
    name = node.name if isinstance(node, exp.Table) else node.table
    if node.args.get("db") is not None and node.args["db"].name.lower() in HOMES and name.lower() not in ctes:
        node.set("db", None)
        node.set("catalog", None)


def _plain(node: exp.Expr) -> exp.Expr | None:
    if not isinstance(node, exp.Anonymous):
        spelling = NODES.get(type(node))
        return None if spelling is None else spelling(node)
    name, arguments = node.name.upper(), node.expressions
    if name in ("DATEPART", "DATE_PART") and len(arguments) == 2:
        return _part(*arguments) if isinstance(arguments[0], exp.Column) and not arguments[0].table else None
    if name in ("DATE_SUB", "DATE_ADD") and len(arguments) == 2 and isinstance(arguments[1], exp.Interval):
        sign = exp.Sub if name == "DATE_SUB" else exp.Add
        return exp.paren(sign(this=_operand(arguments[0]), expression=arguments[1]), copy=False)
    spelling = SPELLINGS.get((name, len(arguments)))
    return None if spelling is None else spelling(*arguments)
