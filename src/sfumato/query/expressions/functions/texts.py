"""Text. A key is read as text first. Whatever can make a text longer is cut at LONGEST characters, so that no cell can
fill the engine's memory. Regular expressions are left out: what one engine takes another refuses, at run time.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from sqlglot import exp

from ....sources.vocabulary import call
from ...kinds import Kind, Likely, Typed
from ...refusal import QueryError
from .. import trees
from ..intervals import Interval
from .operands import MANY, Reader, Rule, as_text, constant_text, constant_whole, flags, nothing, wholes

LONGEST = 65_536


def changed(node: type[exp.Expression], compute: Callable[[str], str]) -> Rule:
    """LOWER, UPPER and their like: listed values go through too, where they are plain ASCII."""

    def rule(given: exp.Expression, read: Reader) -> Typed:
        operand = read.text(given.this)
        return Typed(node(this=operand.tree), Kind("text", values=mapped(compute, operand.kind)))

    return rule


def trimmed(node: exp.Trim, read: Reader) -> Typed:
    """TRIM, LTRIM and RTRIM, of blanks or of the characters given."""
    operand = read.text(node.this)
    side = str(node.args.get("position") or "BOTH").upper()
    name = {"BOTH": "trimmed", "LEADING": "trimmed_before", "TRAILING": "trimmed_behind"}[side]
    given = node.args.get("expression")
    what = () if given is None else (trees.text(constant_text(given, "What is trimmed", "TRIM(s, 'x')")),)
    compute = {"BOTH": str.strip, "LEADING": str.lstrip, "TRAILING": str.rstrip}[side]
    values = mapped(lambda each: compute(each, " "), operand.kind) if given is None else None
    return Typed(call(name, operand.tree, *what), Kind("text", values=values))


def length(node: exp.Length, read: Reader) -> Typed:
    operand = read.text(node.this)
    listed = mapped(str, operand.kind)
    values = None if listed is None else [len(each) for each in listed]
    return Typed(call("characters", operand.tree), wholes(Interval(Fraction(0), None), values))


def part(node: exp.Substring, read: Reader) -> Typed:
    """SUBSTR(s, start[, length]): a negative start counts from the end."""
    operand = read.text(node.this)
    example = "SUBSTR(s, 1, 3)"
    start, size = node.args.get("start"), node.args.get("length")
    places = [constant_whole(start or exp.Literal.number(1), "The start", example, -LONGEST, LONGEST)]
    if size is not None:
        places.append(constant_whole(size, "The length", example, 0, LONGEST))
    return Typed(call("part", operand.tree, *map(trees.whole, places)), Kind("text"))


def end(name: str) -> Rule:
    """LEFT and RIGHT."""

    def rule(node: exp.Expression, read: Reader) -> Typed:
        count = constant_whole(node.expression, "The number of characters", f"{name}(s, 2)", 0, LONGEST)
        operand = read.text(node.this)
        cut = (lambda each: each[:count]) if name == "LEFT" else (lambda each: each[max(len(each) - count, 0) :])
        word = "first_characters" if name == "LEFT" else "last_characters"
        return Typed(call(word, operand.tree, trees.whole(count)), Kind("text", values=mapped(cut, operand.kind)))

    return rule


def replaced(node: exp.Replace, read: Reader) -> Typed:
    """REPLACE(s, old, new), both texts standing in the query."""
    operand = read.text(node.this)
    example = "REPLACE(s, '-', ' ')"
    old = constant_text(node.expression, "What is replaced", example, 100)
    new = constant_text(node.args.get("replacement") or exp.Literal.string(""), "What it becomes", example, 100)
    tree = call("replaced", operand.tree, trees.text(old), trees.text(new))
    return Typed(tree if len(new) <= len(old) else _cut(tree), Kind("text"))


def joined(node: exp.DPipe, read: Reader) -> Typed:
    """s || t: NULL where either is."""
    left, right = (any_text(each, read) for each in (node.this, node.expression))
    return Typed(_cut(trees.binary(exp.DPipe, left.tree, right.tree, safe=True)), _pairs(left.kind, right.kind))


def concatenated(node: exp.Concat, read: Reader) -> Typed:
    """CONCAT(s, t, ...) leaves NULLs out."""
    empty = trees.text("")
    parts = [exp.Coalesce(this=any_text(each, read).tree, expressions=[empty.copy()]) for each in node.expressions]
    tree: exp.Expression = parts[0]
    for each in parts[1:]:
        tree = trees.binary(exp.DPipe, tree, each, safe=True)
    return Typed(_cut(tree), Kind("text"))


def searched(word: str) -> Rule:
    """STARTS_WITH, ENDS_WITH and CONTAINS."""

    def rule(node: exp.Expression, read: Reader) -> Typed:
        operands = node.expressions if isinstance(node, exp.Anonymous) else [node.this, node.expression]
        if len(operands) != 2:
            raise QueryError("A text is searched for another one.", "write CONTAINS(s, 'x')", node)
        one, other = operands
        return Typed(call(word, read.text(one).tree, read.text(other).tree), flags())

    return rule


def position(node: exp.StrPosition, read: Reader) -> Typed:
    """STRPOS(s, t): where t begins in s, 0 where it is not."""
    if any(node.args.get(each) is not None for each in ("position", "occurrence")):
        raise QueryError("STRPOS takes two texts.", "write STRPOS(s, 'x')", node)
    one, other = read.text(node.this), read.text(node.args["substr"])
    listed = mapped(str, one.kind)
    longest = None if listed is None else Likely(Fraction(0), Fraction(max((len(each) for each in listed), default=0)))
    return Typed(call("place_of", one.tree, other.tree), Kind("whole", Fraction(0), likely=longest))


def like(node: exp.Expression, read: Reader) -> Typed:
    """LIKE, ILIKE and their negations, with a pattern and an escape that stand in the query."""
    escape = ""
    if isinstance(node, exp.Escape):
        escape = constant_text(node.expression, "The escape", "s LIKE '10!%' ESCAPE '!'", 1)
        node = node.this
    if not isinstance(node, (exp.Like, exp.ILike)):
        raise QueryError("ESCAPE belongs to LIKE.", "write s LIKE '10!%' ESCAPE '!'", node)
    pattern = constant_text(node.expression, "The pattern", "s LIKE 'A%', or CONTAINS(s, t)")
    if escape and pattern.replace(escape * 2, "").endswith(escape):
        raise QueryError("The pattern ends with its escape character.", "write s LIKE '10!%' ESCAPE '!'", node)
    tree: exp.Expression = trees.binary(type(node), read.text(node.this).tree, trees.text(pattern))
    if escape:
        tree = exp.Escape(this=tree, expression=trees.text(escape))
    return Typed(exp.Not(this=exp.Paren(this=tree)) if node.args.get("negate") else tree, flags())


def no_regex(node: exp.Expression, _: Reader) -> Typed:
    rule = "Regular expressions are not read here: which patterns are valid differs between engines."
    raise QueryError(rule, "use LIKE, STARTS_WITH, ENDS_WITH or CONTAINS", node)


def any_text(node: exp.Expression, read: Reader) -> Typed:
    """Numbers and dates may be joined to texts."""
    operand = read.read(node)
    if (operand.kind.numeric or operand.kind.temporal) and not nothing(operand.kind):
        return Typed(trees.cast(operand.tree, "VARCHAR"), Kind("text"))
    return as_text(operand, node)


def _pairs(left: Kind, right: Kind) -> Kind:
    ones, others = left.values, right.values
    if ones is None or others is None or len(ones) * len(others) > MANY:
        return Kind("text")
    values = tuple(dict.fromkeys(one + other for one in ones for other in others))
    return Kind("text", values=None if any(len(each) > LONGEST for each in values) else values)


def mapped(compute: Callable[[str], str], kind: Kind) -> tuple[str, ...] | None:
    """Listed values through a function. Beyond ASCII, engines differ from Python in letters and their case."""
    if kind.values is None or not all(each.isascii() for each in kind.values):
        return None
    return tuple(dict.fromkeys(map(compute, kind.values)))


def _cut(tree: exp.Expression) -> exp.Expression:
    return call("first_characters", tree, trees.whole(LONGEST))


RULES: dict[type[exp.Expression], Rule] = {
    exp.Lower: changed(exp.Lower, str.lower),
    exp.Upper: changed(exp.Upper, str.upper),
    exp.Reverse: changed(exp.Reverse, lambda each: each[::-1]),
    exp.Trim: trimmed,
    exp.Length: length,
    exp.Substring: part,
    exp.Left: end("LEFT"),
    exp.Right: end("RIGHT"),
    exp.Replace: replaced,
    exp.DPipe: joined,
    exp.Concat: concatenated,
    exp.StartsWith: searched("begins_with"),
    exp.EndsWith: searched("ends_on"),
    exp.Contains: searched("holds"),
    exp.StrPosition: position,
    exp.Like: like,
    exp.ILike: like,
    exp.Escape: like,
    exp.RegexpLike: no_regex,
    exp.RegexpILike: no_regex,
    exp.SimilarTo: no_regex,
    exp.RegexpReplace: no_regex,
    exp.RegexpExtract: no_regex,
}

NAMED: dict[str, Rule] = {"prefix": searched("begins_with"), "suffix": searched("ends_on")}
