"""What SQL above releases may say: a list of what is allowed, so that whatever nobody thought of is refused.

Above are released and public tables only, in an engine that reaches nothing else, so nothing here guards privacy: that
is the walk of query_blocks.py. What this keeps is that an answer is a function of what was released: no clock, no
random numbers, no files, settings or functions in FROM.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlglot import exp

from ..refusal import typed_name
from .above_rules import AboveError

_WORDS = """
    abs acos acosh addmonths and array arrayconcat arraycontains arraysize arraysum asin asinh atan atan2 atanh
    case cast cbrt ceil chr coalesce concat concatws contains cos cosh cot date dateadd datebin datediff
    datefromparts datestrtodate datesub datetrunc day dayname dayofmonth dayofweek dayofweekiso dayofyear degrees
    endswith equalnull exists exp extract factorial floor greatest hour if initcap isinf isnan lastday least left
    length levenshtein ln log lower minute month monthname monthsbetween nullif nvl2 or overlay pad pi pow quarter
    radians regexpcount regexpextract regexpfullmatch regexpilike regexplike regexpreplace repeat replace reverse
    right round rownumber safedivide second sign sin sinh space split splitpart sqrt startswith strposition
    strtodate strtotime struct substring tan tanh timestamp timestampadd timestampdiff timestampfromparts
    timestampsub timestamptrunc timestrtotime timetostr translate trim trunc trycast tsordstodate typeof unicode
    upper week weekofyear widthbucket xor year yearofweek yearofweekiso
"""
_FUNCTIONS = frozenset(_WORDS.split())
"""By the parser's names."""
_MORE = """
    ROUND_EVEN LIST_SUM LIST_AVG LIST_MAX LIST_MIN LIST_EXTRACT LEN PRINTF FORMAT TO_CHAR DATE_PART DATEPART GAMMA
    LGAMMA EVEN FDIV FMOD GCD LCM MEAN AVERAGE PRODUCT FAVG FSUM ISODOW STRFTIME STRPTIME BAR
"""
_NAMED = frozenset(_MORE.split())
"""Those that the parser does not know."""
_REFUSED: dict[type[exp.Expr], str] = {
    exp.Pivot: "PIVOT", exp.Lateral: "LATERAL", exp.TableSample: "TABLESAMPLE",
    exp.Placeholder: "A placeholder", exp.Parameter: "A parameter", exp.Command: "A command", exp.Into: "INTO",
    exp.Columns: "COLUMNS", exp.Lambda: "A function of one's own", exp.Introducer: "This",
    exp.SessionParameter: "A setting",
}  # fmt: skip


def check(tree: exp.Query, tables: Collection[str]) -> None:
    """Refuse what is not on the list. `tables` are the released and public ones."""
    names = {*tables, *(cte.alias.lower() for cte in tree.find_all(exp.CTE))}
    for node in tree.walk():
        if type(node) in _REFUSED:
            raise AboveError(f"{_REFUSED[type(node)]} cannot stand above a release.", "leave it out", node)
        if isinstance(node, exp.Table):
            _check_table(node, names)
        elif isinstance(node, exp.Anonymous):
            if node.name.upper() not in _NAMED:
                raise _refused(node, node.name.upper())
        elif isinstance(node, exp.Func) and not isinstance(node, exp.AggFunc) and node.key not in _FUNCTIONS:
            raise _refused(node, typed_name(node))
        elif isinstance(node, exp.With) and node.args.get("recursive"):
            raise AboveError("A recursive WITH cannot stand here.", "write the steps out as plain CTEs", node)


def _check_table(node: exp.Table, names: Collection[str]) -> None:
    if not isinstance(node.this, exp.Identifier) or node.args.get("db") or node.name.lower() not in names:
        raise AboveError(
            "FROM reads released tables, public tables and CTEs here, and this is none of them.", "name one", node
        )


def _refused(node: exp.Expr, name: str) -> AboveError:
    return AboveError(
        f"{name} cannot be used above a release: an answer is a function of the numbers that were released.",
        "leave it out, or compute it from the answer",
        node,
    )


def steadied(tree: exp.Query) -> exp.Query:
    """The same where a cell cannot make it fail: what cannot be cast, and what is divided by 0, is NULL."""

    def change(node: exp.Expression) -> exp.Expression:
        if type(node) is exp.Cast:
            return exp.TryCast(**node.args)
        if isinstance(node, exp.Div) and not isinstance(node.expression, exp.Literal):
            divisor = node.expression
            while isinstance(divisor, exp.Paren):  # the brackets of a subquery stay
                divisor = divisor.this
            node.set("expression", exp.Nullif(this=divisor, expression=exp.Literal.number(0)))
        return node

    steady = tree.copy().transform(change)
    assert isinstance(steady, exp.Query)
    return steady
