"""How a query is refused: the clause underlined, the rule that failed, and the nearest rewrite that works."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from ..errors import PlanError

TYPED = "typed"  # where a function's node keeps its name as it was typed: the parser may know it by another one


def typed_name(function: exp.Func) -> str:
    """A function's name as it was typed, or the parser's where nobody typed it as a name."""
    return str(function.meta.get(TYPED) or function.sql_name())


class QueryError(PlanError):
    """The query cannot be answered privately as it stands. Raised before anything is charged; holds no data."""

    code = "query"

    def __init__(
        self, rule: str, rewrite: str, node: exp.Expr | None = None, *, name: str = "", choices: Iterable[str] = ()
    ) -> None:
        super().__init__(rule, cause=rule, fix=rewrite)
        self.name, self.choices = name, tuple(choices)  # what is not there, and what is
        self.rule, self.rewrite, self.node = rule, rewrite, node
        self.text: str | None = None

    def within(self, text: str) -> QueryError:
        """The same refusal, that shows where in the query's text it is."""
        if self.text is None:
            self.text = text
        return self

    @property
    def cause(self) -> str:
        """The rule, and the clause that breaks it."""
        shown = underlined(self.text, self.node) if self.text is not None and self.node is not None else ""
        return f"{self.rule}{shown}"

    def __str__(self) -> str:
        return f"{self.cause}\nInstead: {self.rewrite}"


def no_such(kind: str, name: str, names: Iterable[str], node: exp.Expr) -> QueryError:
    """The error for a table or column that is not there; the caller raises it."""
    choices = tuple(names)
    rewrite = f"use one of: {', '.join(choices) or 'none'}"
    return QueryError(f"There is no {kind} {name!r} here.", rewrite, node, name=name, choices=choices)


def underlined(text: str, node: exp.Expr) -> str:
    """The line of the text that the clause begins on, with the clause marked below it; empty where nobody knows."""
    spans = [(each.meta["start"], each.meta["end"]) for each in node.walk() if "start" in each.meta]
    if not spans:
        return ""
    start, end = min(first for first, _ in spans), max(last for _, last in spans) + 1
    while text[start:end].count("(") > text[start:end].count(")") and end < len(text):
        end += 1  # sqlglot marks names and literals, not the brackets around them
    line = text.rfind("\n", 0, start) + 1
    stop = text.find("\n", start)
    stop = len(text) if stop < 0 else stop
    number = text.count("\n", 0, start) + 1
    marks = " " * (start - line) + "^" * max(min(end, stop) - start, 1)
    head = f"{number} | "
    return f"\n{head}{text[line:stop]}\n{' ' * len(head)}{marks}"
