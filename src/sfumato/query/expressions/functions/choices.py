"""Choices: comparisons, AND, OR, NOT, CASE, COALESCE and their like, with SQL's three-valued logic."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from ....sources.vocabulary import call
from ...kinds import Kind, Typed
from ...refusal import QueryError
from .. import trees
from ..intervals import greatest, least
from .agreement import agreed, comparable, merged, of_one_type
from .operands import MANY, Reader, Rule, flags, interval, never_null, nothing, shown

ORDERED = (exp.LT, exp.LTE, exp.GT, exp.GTE)


def boolean(node: exp.Boolean, _: Reader) -> Typed:
    value = bool(node.this)
    return Typed(trees.flag(value), Kind("flag", values=(value,), nullable=False))


def null(_: exp.Null, __: Reader) -> Typed:
    return Typed(trees.null("BIGINT"), Kind("whole", values=()))


def comparison(node: exp.Expression, read: Reader) -> Typed:
    left, right = comparable([node.this, node.expression], read, ordered=isinstance(node, ORDERED))
    safe = isinstance(node, (exp.NullSafeEQ, exp.NullSafeNEQ))
    kind = never_null() if safe else flags(left.kind, right.kind)
    return Typed(trees.binary(type(node), left.tree, right.tree), kind)


def between(node: exp.Between, read: Reader) -> Typed:
    if node.args.get("symmetric"):
        raise QueryError("BETWEEN SYMMETRIC is not read here.", "write the smaller end first", node)
    operands = comparable([node.this, node.args["low"], node.args["high"]], read, ordered=True)
    value, low, high = (trees.wrapped(each.tree) for each in operands)
    return Typed(exp.Between(this=value, low=low, high=high), flags(*(each.kind for each in operands)))


def among(node: exp.In, read: Reader) -> Typed:
    """x IN (a, b, ...)."""
    if node.args.get("query") is not None or node.args.get("unnest") is not None or not node.expressions:
        rule = "IN takes a list of values here."
        raise QueryError(rule, f"write {shown(node.this)} IN ('a', 'b'), or join with a table of the values", node)
    if len(node.expressions) > MANY:
        raise QueryError(f"IN takes at most {MANY} values.", "join with a public table of the values", node)
    value, *listed = comparable([node.this, *node.expressions], read)
    kind = flags(value.kind, *(each.kind for each in listed))
    return Typed(exp.In(this=trees.wrapped(value.tree), expressions=[each.tree for each in listed]), kind)


def is_(node: exp.Is, read: Reader) -> Typed:
    """IS NULL, IS TRUE, IS FALSE."""
    asked = node.expression
    if isinstance(asked, exp.Null):
        found = read.read(node.this)
        return Typed(exp.Is(this=trees.wrapped(found.tree), expression=exp.Null()), never_null())
    if isinstance(asked, exp.Boolean):
        found = read.flag(node.this)
        # Spelt as a comparison that is never NULL, which every engine has.
        tree = trees.binary(exp.NullSafeEQ, found.tree, trees.flag(bool(asked.this)))
        return Typed(tree, never_null())
    raise QueryError("IS takes NULL, TRUE or FALSE.", f"write {shown(node.this)} IS NULL", node)


def logic(node: Any, read: Reader) -> Typed:
    """A chain of AND, or of OR, however long."""
    nodes = list(node.flatten())
    if len(nodes) > MANY:
        raise QueryError(f"There are more than {MANY} conditions in a row.", "use IN, or a join", node)
    parts = [read.flag(each) for each in nodes]
    tree = trees.wrapped(parts[0].tree)
    for each in parts[1:]:
        tree = type(node)(this=tree, expression=trees.wrapped(each.tree))
    return Typed(tree, flags(*(each.kind for each in parts)))


def negation(node: exp.Not, read: Reader) -> Typed:
    found = read.flag(node.this)
    values = tuple(not each for each in found.kind.values) if found.kind.values is not None else (False, True)
    return Typed(exp.Not(this=trees.wrapped(found.tree)), Kind("flag", values=values, nullable=found.kind.nullable))


def case(node: exp.Case, read: Reader) -> Typed:
    """CASE in both forms; without ELSE it may be NULL."""
    branches = [(each.this, each.args["true"]) for each in node.args["ifs"]]
    return _chosen(node.this, branches, node.args.get("default"), read)


def if_(node: exp.If, read: Reader) -> Typed:
    """IF(condition, a, b)."""
    return _chosen(None, [(node.this, node.args["true"])], node.args.get("false"), read)


def _chosen(
    subject: exp.Expression | None,
    branches: list[tuple[exp.Expression, exp.Expression]],
    otherwise: exp.Expression | None,
    read: Reader,
) -> Typed:
    asked, given = [one for one, _ in branches], [other for _, other in branches]
    type_, values = agreed([*given, *([] if otherwise is None else [otherwise])], read)
    matched: exp.Expression | None = None
    if subject is None:
        conditions = [read.flag(each).tree for each in asked]
    else:
        first, *others = comparable([subject, *asked], read)
        matched, conditions = first.tree, [each.tree for each in others]
    pairs = [(condition, value.tree) for condition, value in zip(conditions, values, strict=False)]
    tree = trees.cases(pairs, None if otherwise is None else values[-1].tree, matched)
    nullable = otherwise is None or any(each.kind.nullable for each in values)
    return Typed(tree, merged(type_, [each.kind for each in values], nullable=nullable))


def coalesce(node: exp.Coalesce, read: Reader) -> Typed:
    nodes = [node.this, *node.expressions]
    type_, operands = agreed(nodes, read)
    first, *rest = (each.tree for each in operands)
    kinds = [each.kind for each in operands]
    kind = merged(type_, kinds, nullable=all(each.nullable for each in kinds))
    return Typed(exp.Coalesce(this=first, expressions=rest), kind)


def nullif(node: exp.Nullif, read: Reader) -> Typed:
    """NULLIF(a, b): a, but NULL where it equals b."""
    found, other = read.read(node.this), read.read(node.expression)
    _, (left, right) = of_one_type([node.this, node.expression], [found, other])
    unlike = trees.binary(exp.NullSafeNEQ, left.tree, right.tree)
    differs = trees.binary(exp.Or, unlike, exp.Is(this=trees.wrapped(right.tree.copy()), expression=exp.Null()))
    kind = found.kind
    kept = Kind(kind.type, kind.lower, kind.upper, kind.values, places=kind.places)
    return Typed(trees.when(differs, found.tree.copy()), kept)


@dataclass(frozen=True)
class Extreme(Typed):
    """GREATEST or LEAST, taken apart so that one within another is short: LEAST(GREATEST(x, 0), 9) asks for x once.

    bare    the extreme of the operands that are not NULL
    needed  operands that must not be NULL
    """

    bare: exp.Expression
    needed: tuple[exp.Expression, ...]


def _needed(found: Typed) -> tuple[exp.Expression, ...]:
    if isinstance(found, Extreme):
        return found.needed
    return (found.tree,) if found.kind.nullable else ()


def extreme(node: exp.Greatest | exp.Least, read: Reader) -> Typed:
    """GREATEST and LEAST: NULL if any operand is (some engines leave NULLs out; here NULL in, NULL out)."""
    nodes = [node.this, *node.expressions]
    type_, operands = agreed(nodes, read, ordered=True)
    if len(operands) == 1:
        return operands[0]
    first, *rest = (each.bare if isinstance(each, Extreme) else each.tree for each in operands)
    bare = call("greatest_present" if isinstance(node, exp.Greatest) else "least_present", first, *rest)
    unknown = [tree for each in operands for tree in _needed(each)]
    tree: exp.Expression = bare
    if unknown:
        missing: exp.Expression = exp.Is(this=trees.wrapped(unknown[0].copy()), expression=exp.Null())
        for each in unknown[1:]:
            null = exp.Is(this=trees.wrapped(each.copy()), expression=exp.Null())
            missing = exp.Or(this=missing, expression=null)
        tree = trees.when(exp.Not(this=exp.Paren(this=missing)), bare.copy())
    kind = merged(type_, [each.kind for each in operands], nullable=bool(unknown))
    if type_ in ("real", "whole") and not any(nothing(each.kind) for each in operands):
        bounds = (greatest if isinstance(node, exp.Greatest) else least)(*(interval(each.kind) for each in operands))
        inside = None if kind.values is None else tuple(each for each in kind.values if bounds.holds(each))
        kind = replace(kind, lower=bounds.lower, upper=bounds.upper, values=inside)
    return Extreme(tree, kind, bare, tuple(unknown))


RULES: dict[type[exp.Expression], Rule] = {
    exp.Boolean: boolean,
    exp.Null: null,
    **dict.fromkeys((exp.EQ, exp.NEQ, *ORDERED, exp.NullSafeEQ, exp.NullSafeNEQ), comparison),
    exp.Between: between,
    exp.In: among,
    exp.Is: is_,
    exp.And: logic,
    exp.Or: logic,
    exp.Not: negation,
    exp.Case: case,
    exp.If: if_,
    exp.Coalesce: coalesce,
    exp.Nullif: nullif,
    exp.Greatest: extreme,
    exp.Least: extreme,
}
