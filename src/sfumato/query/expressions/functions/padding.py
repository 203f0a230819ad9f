"""LPAD, RPAD and REPEAT: how long they make a text stands in the query, and no cell becomes longer than LONGEST."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from ....sources.vocabulary import call
from ...kinds import Kind, Typed
from ...refusal import QueryError
from .. import trees
from .operands import Reader, Rule, constant_text, constant_whole
from .texts import LONGEST, any_text, mapped

_WIDEST = 1000
"""Characters that a text is padded to, and times that it is repeated."""


def padded(node: exp.Pad, read: Reader) -> Typed:
    """LPAD(s, 5, '0'): so many characters, the first ones where there are more."""
    before = bool(node.args.get("is_left"))
    example = "LPAD(s, 5, '0')" if before else "RPAD(s, 5, ' ')"
    width = constant_whole(node.expression, "The number of characters", example, 0, _WIDEST)
    filler = node.args.get("fill_pattern")
    fill = " " if filler is None else constant_text(filler, "What is added", example)
    if not fill:
        raise QueryError("Nothing cannot fill a text up.", f"write {example}", node)
    text, whole = any_text(node.this, read), (fill * width)[:width]
    kind = Kind("text", values=mapped(_pad(width, whole, before), text.kind) if fill.isascii() else None)
    if not before:  # the first characters of the text and as many fillers as there could be room for
        longer = trees.binary(exp.DPipe, text.tree, trees.text(whole), safe=True)
        return Typed(call("first_characters", longer, trees.whole(width)), kind)
    lacking = trees.binary(exp.Sub, trees.whole(width), call("characters", text.tree.copy()))
    room = call("greatest_present", lacking, trees.whole(0))
    more = call("first_characters", trees.text(whole), room)
    longer = trees.binary(exp.DPipe, more, call("first_characters", text.tree, trees.whole(width)), safe=True)
    return Typed(longer, kind)


def _pad(width: int, whole: str, before: bool) -> Callable[[str], str]:
    if before:
        return lambda text: whole[: max(width - len(text), 0)] + text[:width]
    return lambda text: (text + whole)[:width]


def repeated(node: exp.Repeat, read: Reader) -> Typed:
    """REPEAT(s, 3): no more often than it takes to reach LONGEST characters, where it is cut."""
    example = "REPEAT(s, 3)"
    times = constant_whole(node.args["times"], "The number of times", example, 0, _WIDEST)
    text = any_text(node.this, read)
    kind = Kind("text", values=mapped(lambda word: (word * times)[:LONGEST], text.kind))
    first = call("first_characters", text.tree, trees.whole(LONGEST))
    size = call("greatest_present", call("characters", first.copy()), trees.whole(1))
    enough = trees.binary(exp.Add, trees.binary(exp.IntDiv, trees.whole(LONGEST), size), trees.whole(1))
    often = call("least_present", enough, trees.whole(times))
    return Typed(call("first_characters", call("repeated", first, often), trees.whole(LONGEST)), kind)


RULES: dict[type[exp.Expression], Rule] = {exp.Pad: padded, exp.Repeat: repeated}
