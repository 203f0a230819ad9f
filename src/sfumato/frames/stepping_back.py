"""A refusal of a frame's query, in words of the step that wrote what is underlined."""

from __future__ import annotations

from sqlglot import exp

from ..query.parsing import parsed
from ..query.refusal import QueryError

_STEPS: tuple[tuple[type[exp.Expr], str], ...] = (
    (exp.Window, "over()"), (exp.Filter, "filter() before an aggregate"), (exp.Where, "filter()"),
    (exp.Having, "filter() of groups"), (exp.Qualify, "filter() of a window"), (exp.Group, "group_by()"),
    (exp.Join, "join()"), (exp.Order, "sort()"), (exp.Limit, "head()"), (exp.Distinct, "unique()"),
    (exp.SetOperation, "concat()"),
)  # fmt: skip


def of_frame(refusal: QueryError, text: str) -> QueryError:
    """The same refusal, with the step that wrote the clause, where that is known."""
    span = refusal.span
    if refusal.text != text or span is None or (step := _step(text, span[0])) is None:
        return refusal
    rule = f"{refusal.rule} ({step} wrote this.)"
    again = QueryError(
        rule, refusal.rewrite, refusal.node, name=refusal.name, choices=refusal.choices, write=refusal._write,
        query=refusal._query,
    )  # fmt: skip
    return again.moved(text, span)


def _step(text: str, start: int) -> str | None:
    """The method that writes the clause which begins there: that of its first name or value."""
    marked = [node for node in parsed(text).walk() if node.meta.get("start", -1) >= start]
    node: exp.Expr | None = min(marked, key=lambda part: int(part.meta["start"]), default=None)
    while node is not None:
        for kind, step in _STEPS:
            if isinstance(node, kind):
                return step
        if isinstance(node, exp.Select):
            return "agg()" if node.args.get("group") else "select() or with_columns()"
        node = node.parent
    return None
