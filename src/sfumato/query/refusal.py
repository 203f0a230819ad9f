"""How a query is refused: the clause underlined, the rule that failed, and the nearest rewrite that works."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sqlglot import exp

from ..errors import PlanError

_CALL = re.compile(r"(\w+)\s*\(\s*$")
TYPED = "typed"  # where a function's node keeps its name as it was typed: the parser may know it by another one


def typed_name(function: exp.Func) -> str:
    """A function's name as it was typed, or the parser's where nobody typed it as a name."""
    return str(function.meta.get(TYPED) or function.sql_name())


class QueryError(PlanError):
    """The query cannot be answered privately as it stands. Raised before anything is charged; holds no data.

    rewrite  what to do instead, in words
    write    what to write in the place of what is underlined, where that is known: then `rewritten` is the whole query
    query    the whole query in another way, where more than one place changes
    """

    code = "query"

    def __init__(
        self,
        rule: str,
        rewrite: str,
        node: exp.Expr | None = None,
        *,
        name: str = "",
        choices: Iterable[str] = (),
        write: str = "",
        query: str = "",
    ) -> None:
        super().__init__(rule, cause=rule, fix=rewrite)
        self.name, self.choices = name, tuple(choices)  # what is not there, and what is
        self.rule, self.rewrite, self.node = rule, rewrite, node
        self.text: str | None = None
        self._write, self._query = write, query
        self._span: tuple[int, int] | None = None

    def within(self, text: str) -> QueryError:
        """The same refusal, that shows where in the query's text it is."""
        if self.text is None:
            self.text = text
        return self

    @property
    def span(self) -> tuple[int, int] | None:
        """Where the clause stands in the text; None where nobody knows."""
        if self._span is not None or self.text is None or self.node is None:
            return self._span
        return span_of(self.text, self.node)

    def moved(self, text: str, span: tuple[int, int]) -> QueryError:
        """The same refusal, of a clause that stands here in another text."""
        self.text, self._span = text, span
        return self

    @property
    def rewritten(self) -> str | None:
        """The query as the advice would have it; None where it is words alone."""
        if self._query:
            return self._query
        span = self.span
        if not self._write or span is None or self.text is None:
            return None
        return self.text[: span[0]] + self._write + self.text[span[1] :]

    @property
    def cause(self) -> str:
        """The rule, and the clause that breaks it."""
        shown = "" if self.text is None else underlined(self.text, self.span)
        return f"{self.rule}{shown}"

    def __str__(self) -> str:
        return f"{self.cause}\nInstead: {self.rewrite}"


def no_such(kind: str, name: str, names: Iterable[str], node: exp.Expr) -> QueryError:
    """The error for a table or column that is not there; the caller raises it."""
    choices = tuple(names)
    rewrite = f"use one of: {', '.join(choices) or 'none'}"
    return QueryError(f"There is no {kind} {name!r} here.", rewrite, node, name=name, choices=choices)


def underlined(text: str, span: tuple[int, int] | None) -> str:
    """The line of the text that the clause begins on, with the clause marked below it; empty where nobody knows."""
    if span is None:
        return ""
    start, end = span
    line = text.rfind("\n", 0, start) + 1
    stop = text.find("\n", start)
    stop = len(text) if stop < 0 else stop
    number = text.count("\n", 0, start) + 1
    marks = " " * (start - line) + "^" * max(min(end, stop) - start, 1)
    head = f"{number} | "
    return f"\n{head}{text[line:stop]}\n{' ' * len(head)}{marks}"


def span_of(text: str, node: exp.Expr) -> tuple[int, int] | None:
    """Where a clause stands in the text; None where nobody knows."""
    spans = [(each.meta["start"], each.meta["end"]) for each in node.walk() if "start" in each.meta]
    if not spans:
        return None
    start, end = min(first for first, _ in spans), max(last for _, last in spans) + 1
    if isinstance(node, exp.Func) and "start" not in node.meta:  # only its operands are marked
        word = _CALL.search(text, 0, start)
        start = word.start() if word is not None and word[1].upper() in node.sql_names() else start
    while text[start:end].count("(") > text[start:end].count(")") and end < len(text):
        end += 1  # sqlglot marks names and literals, not the brackets around them
    return start, end
