"""Text functions on released values: UPPER(ward), SUBSTRING, CONCAT and their like over the keys of groups.

Post-processing, as everything here. NULL in gives NULL out, but CONCAT leaves NULLs out. A number that is written as
text has no error bar any more, so only a cast or CONCAT writes one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

from sqlglot import exp

from ..refusal import QueryError
from .figures import Figure, constant
from .values import Keys, Lists, Objects, Value, keys_of, objects


class Evaluating(Protocol):
    """Who evaluates expressions over released values."""

    size: int

    def value(self, node: exp.Expression) -> Value: ...

    def public(self, node: exp.Expression, what: str) -> float: ...


Method = Callable[[Any, Any], Value]


def written(value: Value, node: exp.Expression) -> Keys:
    """Whatever it is, as text; lists have none."""
    if isinstance(value, Figure):
        return Keys(objects(_digits(float(number)) for number in value.value), "text")
    if isinstance(value, Lists):
        raise QueryError("A list is no text.", "use a key or a number here", node)
    return keys_of(value).as_text()


def _digits(number: float) -> str | None:
    return f"{number:.15g}" if math.isfinite(number) else None


def _texts(evaluation: Evaluating, node: exp.Expression) -> Objects:
    value = evaluation.value(node)
    if isinstance(value, Figure | Lists):
        raise QueryError(
            "Text is needed here, and this is a number.", f"write CAST({node.sql('duckdb')} AS VARCHAR)", node
        )
    return keys_of(value).as_text().values


def _mapped(change: Callable[[str], str]) -> Method:
    def method(evaluation: Evaluating, node: exp.Expression) -> Value:
        return Keys(objects(None if text is None else change(text) for text in _texts(evaluation, node.this)), "text")

    return method


def _whole(evaluation: Evaluating, node: exp.Expression, what: str) -> int:
    number = evaluation.public(node, what)
    if not float(number).is_integer() or abs(number) > 65_536:
        raise QueryError(f"{what} must be a whole number.", "write it out, such as 3", node)
    return int(number)


def _part(evaluation: Evaluating, node: exp.Substring) -> Value:
    """A negative start counts from the end, 0 is before the first."""
    start = _whole(evaluation, node.args.get("start") or exp.Literal.number(1), "The start")
    length = node.args.get("length")
    size = None if length is None else _whole(evaluation, length, "The length")

    def cut(text: str) -> str:
        first = max(len(text) + start, 0) if start < 0 else start - 1
        end = len(text) if size is None else max(first + size, 0)
        return text[max(first, 0) : end]

    return Keys(objects(None if text is None else cut(text) for text in _texts(evaluation, node.this)), "text")


def _end(first: bool) -> Method:
    def method(evaluation: Evaluating, node: exp.Expression) -> Value:
        count = max(_whole(evaluation, node.expression, "The number of characters"), 0)
        texts = _texts(evaluation, node.this)
        starts = [0 if first or text is None else max(len(text) - count, 0) for text in texts]
        cut = [None if text is None else text[at : at + count] for text, at in zip(texts, starts, strict=True)]
        return Keys(objects(cut), "text")

    return method


def _trimmed(evaluation: Evaluating, node: exp.Trim) -> Value:
    signs = " " if node.expression is None else _literal(node.expression)
    strip = {"LEADING": str.lstrip, "TRAILING": str.rstrip}.get(str(node.args.get("position") or "").upper(), str.strip)
    return Keys(objects(None if text is None else strip(text, signs) for text in _texts(evaluation, node.this)), "text")


def _replaced(evaluation: Evaluating, node: exp.Replace) -> Value:
    old, new = _literal(node.expression), _literal(node.args.get("replacement") or exp.Literal.string(""))
    texts = _texts(evaluation, node.this)
    return Keys(objects(None if text is None else text.replace(old, new) if old else text for text in texts), "text")


def _literal(node: exp.Expression) -> str:
    if not isinstance(node, exp.Literal) or not node.is_string:
        raise QueryError("This must be a text in the query.", "write it out, as in REPLACE(k, '-', ' ')", node)
    return str(node.this)


def _length(evaluation: Evaluating, node: exp.Length) -> Value:
    texts = _texts(evaluation, node.this)
    return constant([math.nan if text is None else float(len(text)) for text in texts], evaluation.size)


def _joined(evaluation: Evaluating, node: exp.DPipe) -> Value:
    left, right = (written(evaluation.value(each), each).values for each in (node.this, node.expression))
    pairs = zip(left, right, strict=True)
    return Keys(objects(None if None in pair else "".join(pair) for pair in pairs), "text")


def _concatenated(evaluation: Evaluating, node: exp.Concat) -> Value:
    columns = [written(evaluation.value(each), each).values for each in node.expressions]
    return Keys(
        objects("".join(text for text in row if text is not None) for row in zip(*columns, strict=True)), "text"
    )


METHODS: dict[type[exp.Expression], Method] = {
    exp.Upper: _mapped(str.upper),
    exp.Lower: _mapped(str.lower),
    exp.Reverse: _mapped(lambda text: text[::-1]),
    exp.Substring: _part,
    exp.Left: _end(first=True),
    exp.Right: _end(first=False),
    exp.Trim: _trimmed,
    exp.Replace: _replaced,
    exp.Length: _length,
    exp.DPipe: _joined,
    exp.Concat: _concatenated,
}
