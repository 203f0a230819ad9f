"""`.str`: functions of texts, as far as SQL here has what polars means."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from .operators import function
from .terms import Term, number, unlike

if TYPE_CHECKING:
    from .expr import Expr

_PATTERN = re.compile(r"[.^$*+?{}\[\]\\|()]")


def _text(value: Any, what: str) -> exp.Expr:
    if not isinstance(value, str):
        raise unlike(f"{what} is a text that stands in the query", "write it as a str")
    return exp.Literal.string(value)


def _count(value: Any, what: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise unlike(f"{what} is a whole number from 0 on", "count from the start, or use head() and tail()")
    return value


def _literal(pattern: str, literal: bool) -> exp.Expr:
    if not literal and isinstance(pattern, str) and _PATTERN.search(pattern):
        raise unlike("Private SQL has no regular expressions", "write literal=True, if the text is meant as it stands")
    return _text(pattern, "What is looked for")


class Texts:
    """Functions of a text. Built of an expression: `col("drug").str`."""

    def __init__(self, expr: Expr) -> None:
        self._expr = expr

    def _made(self, name: str, node: type[exp.Expr], **parts: Any) -> Expr:
        return self._expr._then(
            f"str.{name}", lambda term: function(term, node(this=term.tree.copy(), **parts), "text")
        )

    def _asked(self, name: str, node: type[exp.Expr], text: exp.Expr) -> Expr:
        def test(term: Term) -> Term:
            return function(term, node(this=term.tree.copy(), expression=text.copy()), "flag")

        return self._expr._then(f"str.{name}", test)

    def len_chars(self) -> Expr:
        return self._expr._then(
            "str.len_chars", lambda term: function(term, exp.Length(this=term.tree.copy()), "whole", lower=0)
        )

    def to_lowercase(self) -> Expr:
        return self._made("to_lowercase", exp.Lower)

    def to_uppercase(self) -> Expr:
        return self._made("to_uppercase", exp.Upper)

    def starts_with(self, prefix: str) -> Expr:
        return self._asked("starts_with", exp.StartsWith, _text(prefix, "The start"))

    def ends_with(self, suffix: str) -> Expr:
        return self._asked("ends_with", exp.EndsWith, _text(suffix, "The end"))

    def contains(self, pattern: str, *, literal: bool = False) -> Expr:
        return self._asked("contains", exp.Contains, _literal(pattern, literal))

    def replace_all(self, pattern: str, value: str, *, literal: bool = False) -> Expr:
        old = _literal(pattern, literal)
        if not pattern:
            raise unlike("Nothing cannot be replaced", "write the text that is to be replaced")
        return self._made("replace_all", exp.Replace, expression=old, replacement=_text(value, "What it becomes"))

    def slice(self, offset: int, length: int | None = None) -> Expr:
        start = number(_count(offset, "The start of a slice") + 1)
        parts = {} if length is None else {"length": number(_count(length, "The length of a slice"))}
        return self._made("slice", exp.Substring, start=start, **parts)

    def head(self, n: int) -> Expr:
        return self._made("head", exp.Left, expression=number(_count(n, "The number of characters")))

    def tail(self, n: int) -> Expr:
        return self._made("tail", exp.Right, expression=number(_count(n, "The number of characters")))

    def _stripped(self, name: str, characters: str | None, position: str | None) -> Expr:
        if characters is None:
            raise unlike("polars strips all kinds of blanks, SQL the space alone", f"say which: {name}(' ')")
        parts: dict[str, Any] = {} if characters == " " else {"expression": _text(characters, "What is stripped")}
        if position is not None:
            parts["position"] = position
        return self._made(name, exp.Trim, **parts)

    def strip_chars(self, characters: str | None = None) -> Expr:
        return self._stripped("strip_chars", characters, None)

    def strip_chars_start(self, characters: str | None = None) -> Expr:
        return self._stripped("strip_chars_start", characters, "LEADING")

    def strip_chars_end(self, characters: str | None = None) -> Expr:
        return self._stripped("strip_chars_end", characters, "TRAILING")
