"""A query in the SQL of another database becomes the same question in DuckDB's SQL, or is refused.

sqlglot reads the text as its dialect does, and writes DuckDB's. What the two mean differently it often does not see, so
nothing is left to it alone: a function passes where it is known to mean the same everywhere (`SAME`), where somebody
wrote down what it becomes (`CHANGES`), or where it is refused anyway (clocks, random numbers, regular expressions).
Every other is refused by its name. From then on there is one path: the text that is read, paid for and stored is
DuckDB's, and the dialect is no part of the plan, so the same question is the same plan whoever pastes it.
"""

from __future__ import annotations

import sqlglot
from sqlglot import exp
from sqlglot.errors import ErrorLevel

from ... import checks
from ...errors import SfumatoError
from ...schema import Schema
from ..parsing import UNREAD, not_sql, too_deep
from ..refusal import QueryError, typed_name
from ..spellings import one_filter, several_counted
from . import pasted_dates, pasted_numbers, pasted_texts
from .pasting import ALIASES, TITLES, Change, Paste
from .value_types import ValueTypes

DIALECTS = tuple(TITLES)

SAME = (
    exp.Count, exp.Sum, exp.Min, exp.Max, exp.Variance, exp.VariancePop, exp.Stddev, exp.StddevSamp, exp.StddevPop,
    exp.Corr, exp.CovarSamp, exp.CovarPop, exp.Median, exp.Quantile, exp.ApproxDistinct, exp.PercentileCont,
    exp.PercentileDisc, exp.LogicalOr, exp.LogicalAnd, exp.RowNumber, exp.Rank, exp.DenseRank, exp.Ntile, exp.Lag,
    exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue, exp.Coalesce, exp.Nullif, exp.Case, exp.If, exp.Nvl2,
    exp.DecodeCase, exp.And, exp.Or, exp.Exists, exp.Abs, exp.Sign, exp.Floor, exp.Ceil, exp.Sqrt, exp.Exp, exp.Ln,
    exp.Log, exp.Pow, exp.Lower, exp.Upper, exp.Trim, exp.Replace, exp.Reverse, exp.StartsWith, exp.EndsWith,
    exp.Contains, exp.WidthBucket, exp.Date, exp.EqualNull, exp.Interval, exp.Array,
    exp.WeekStart, exp.In, exp.Pad, exp.Repeat, exp.Mode,
)  # fmt: skip
REFUSED_LATER = (
    exp.CurrentDate, exp.CurrentTimestamp, exp.CurrentTime, exp.CurrentDatetime, exp.Localtimestamp, exp.Localtime,
    exp.Rand, exp.Uuid, exp.RegexpLike, exp.RegexpILike, exp.RegexpReplace, exp.RegexpExtract, exp.SimilarTo,
    exp.AnyValue, exp.First, exp.GroupConcat, exp.Unnest,
)  # fmt: skip
NAMED = ("HISTOGRAM", "MEAN", "UNREADABLE", "NOW")
CHANGES: dict[type[exp.Expr], Change] = {
    **pasted_numbers.CHANGES, **pasted_texts.CHANGES, **pasted_dates.CHANGES,
}  # fmt: skip


def _fold(kind: type[exp.Expr]) -> Change:
    return lambda node, _: kind(this=node.expressions[0])


def _from_monday(node: exp.Anonymous, _: Paste) -> exp.Expr:
    """WEEKDAY(d) of Spark and MySQL: 0 for Monday."""
    iso = exp.Extract(this=exp.var("ISODOW"), expression=node.expressions[0])
    return exp.paren(exp.Sub(this=iso, expression=exp.Literal.number(1)))


def _date_part(node: exp.Anonymous, paste: Paste) -> exp.Expr:
    unit, operand = node.expressions
    return pasted_dates.extract(exp.Extract(this=exp.var(unit.name), expression=operand), paste)


_SPARKS = ("spark", "databricks")
SPELT_SO: dict[tuple[str, int, str], Change] = {
    ("STDEVP", 1, "tsql"): _fold(exp.StddevPop),
    ("VAR", 1, "tsql"): _fold(exp.Variance),
    ("VARP", 1, "tsql"): _fold(exp.VariancePop),
    **{("STD", 1, each): _fold(exp.Stddev) for each in _SPARKS},
    **{("WEEKDAY", 1, each): _from_monday for each in (*_SPARKS, "mysql")},
    **{(name, 2, each): _date_part for name in ("DATE_PART", "DATEPART") for each in _SPARKS},
}
"""By name, number of arguments and dialect, of functions that sqlglot does not know there."""


def dialect_of(name: object) -> str:
    """The dialect that a name means."""
    checks.instance(name, str, "dialect", f"one of {', '.join(DIALECTS)}")
    word = ALIASES.get(str(name).lower(), str(name).lower())
    if word not in DIALECTS:
        raise checks.refuse("dialect", name, f"one of {', '.join(DIALECTS)}")
    return word


def in_duckdb_sql(text: str, dialect: str, schema: Schema) -> str:
    """The same question in DuckDB's SQL."""
    if dialect == "duckdb":
        return text
    try:
        trees = [tree for tree in sqlglot.parse(text, dialect=dialect) if tree and not isinstance(tree, exp.Semicolon)]
        if len(trees) != 1 or not isinstance(trees[0], exp.Query):
            raise QueryError("One SELECT is answered.", "give one query: SELECT ... FROM ...")
        tree = _changed(trees[0], dialect, schema)
        return tree.sql("duckdb", unsupported_level=ErrorLevel.RAISE, comments=False)
    except QueryError as problem:
        raise problem.within(text) from None
    except SfumatoError:
        raise
    except UNREAD as problem:
        raise not_sql(problem, TITLES[dialect]) from None
    except RecursionError:
        raise too_deep() from None


def _changed(tree: exp.Expr, dialect: str, schema: Schema) -> exp.Expr:
    """From the leaves up, so that whoever changes a node finds its operands done."""
    types = ValueTypes(schema, tree.copy(), numeric=dialect == "postgres", means_cut=dialect == "tsql")
    paste = Paste(dialect, types)
    root = exp.Paren(this=tree)
    for node in reversed(list(tree.walk(bfs=True))):
        changed = _change(node, paste)
        if changed is not node:
            changed.meta.update({**node.meta, **changed.meta})
            node.replace(changed)
    changed_tree = root.this
    assert isinstance(changed_tree, exp.Expr)
    return changed_tree.pop()


def _change(node: exp.Expr, paste: Paste) -> exp.Expr:
    change = CHANGES.get(type(node))
    if change is not None:
        return change(node, paste)
    if isinstance(node, exp.Table):
        node.set("hints", None)  # WITH (NOLOCK): how to read, not what
    if isinstance(node, exp.Limit | exp.Fetch):
        return _limit(node)
    if isinstance(node, exp.Count):
        return several_counted(node) or node
    if isinstance(node, exp.Filter):
        return one_filter(node) or node
    if isinstance(node, exp.Values | exp.Unnest):
        _named_columns(node, paste.dialect)
    if not isinstance(node, exp.Func) or isinstance(node, (*SAME, *REFUSED_LATER)):
        return node
    if isinstance(node, exp.Anonymous):
        name = node.name.upper()
        spelling = SPELT_SO.get((name, len(node.expressions), paste.dialect))
        if spelling is not None:
            return spelling(node, paste)
        if name in NAMED:
            return node
    name = node.name if isinstance(node, exp.Anonymous) else typed_name(node)
    raise QueryError(
        f"Nobody has written down yet what {name.upper()} of {paste.title} means in this SQL.",
        "write it in functions of docs/sql.md, and leave dialect out where they are DuckDB's",
        node,
    )


_LISTED = {"postgres": "column", "snowflake": "column", "spark": "col", "databricks": "col"}
"""What columns of VALUES are called that nobody gave a name, before their number from 1."""


def _named_columns(node: exp.Values | exp.Unnest, dialect: str) -> None:
    """Names that DuckDB would give in another way: columns of VALUES, and what UNNEST(...) AS x calls its values."""
    alias = node.args.get("alias") or exp.TableAlias()
    columns, row = alias.args.get("columns"), node.expressions[0]
    if isinstance(node, exp.Unnest) and columns and not alias.name:
        alias.set("this", columns[0].copy())
    elif isinstance(node, exp.Values) and not columns and dialect in _LISTED:
        many = len(row.expressions) if isinstance(row, exp.Tuple) else 1
        alias.set("columns", [exp.to_identifier(f"{_LISTED[dialect]}{place + 1}") for place in range(many)])
        if not alias.name or alias.name.startswith("_"):
            alias.set("this", exp.to_identifier("listed"))
    node.set("alias", alias if alias.name else None)


def _limit(node: exp.Limit | exp.Fetch) -> exp.Expr:
    """TOP n, FETCH FIRST n ROWS ONLY: LIMIT n."""
    options = node.args.get("limit_options")
    if options is not None and (options.args.get("percent") or options.args.get("with_ties")):
        raise QueryError("The first so many groups are shown, not a share of them or ties.", "write TOP 10", node)
    count = node.args.get("count") if isinstance(node, exp.Fetch) else node.expression
    return exp.Limit(expression=count)
