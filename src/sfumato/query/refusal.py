"""How a query is refused: the clause underlined, the rule that failed, and the nearest rewrite that works."""

from __future__ import annotations

from sqlglot import exp

from ..errors import PlanError

TYPED = "typed"  # where a function's node keeps its name as it was typed: the parser may know it by another one


def typed_name(function: exp.Func) -> str:
    """A function's name as it was typed, or the parser's where nobody typed it as a name."""
    return str(function.meta.get(TYPED) or function.sql_name())


class QueryError(PlanError):
    """The query cannot be answered privately as it stands. Raised before anything is charged; holds no data."""

    def __init__(self, rule: str, rewrite: str, node: exp.Expr | None = None) -> None:
        super().__init__(rule)
        self.rule, self.rewrite, self.node = rule, rewrite, node
        self.text: str | None = None

    def within(self, text: str) -> QueryError:
        """The same refusal, that shows where in the query's text it is."""
        if self.text is None:
            self.text = text
        return self

    def __str__(self) -> str:
        shown = underlined(self.text, self.node) if self.text is not None and self.node is not None else ""
        return f"{self.rule}{shown}\nInstead: {self.rewrite}"


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
