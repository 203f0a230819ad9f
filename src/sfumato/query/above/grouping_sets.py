"""ROLLUP, CUBE and GROUPING SETS: several groupings of the same rows.

Where all groups are public and all aggregates are sums (COUNT, SUM, and AVG as their ratio), the finest groups alone
are measured, and the released sums are added up above: one set of measurements, one price, and coarser rows are the
sums of the finer ones. Elsewhere that would be wrong: groups that were not shown would be missing in every total, and
different values or quantiles do not add up. There every set is a release of its own, all of them priced together, and
coarser rows need not be the sums of the finer ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations, product
from typing import Any

from sqlglot import exp

from ..canonical import text_of
from ..keys import keys_of
from ..relations.bases import named
from .above_rules import AboveError
from .pulling import Swap, above
from .release_blocks import GroupKey, MeasuredAggregate, ReleaseBlock, ReleasePart

_SETS = (exp.Rollup, exp.Cube, exp.GroupingSets)
_CLAUSES = ("rollup", "cube", "grouping_sets", "totals")
MOST = 64
"""Sets in one query."""

Group = tuple[exp.Expression, ...]


def sets_of(select: exp.Select) -> list[Group] | None:
    """Every set that the block is grouped by; None where it is grouped once, or not at all."""
    group = select.args.get("group")
    if group is None:
        return None
    if any(group.args.get(clause) for clause in _CLAUSES):
        raise AboveError("This way to write GROUP BY is not read.", "write GROUP BY ROLLUP (a, b)", group)
    if not any(isinstance(node, _SETS) for node in group.expressions):
        return None
    ways = [_ways(node) for node in group.expressions]
    sets = list(dict.fromkeys(tuple(chain.from_iterable(parts)) for parts in product(*ways)))
    if len(sets) > MOST:
        raise AboveError(f"The query is grouped in more than {MOST} ways.", "ask for fewer sets", group)
    return sets


def _ways(node: exp.Expression) -> list[Group]:
    if isinstance(node, exp.Rollup):
        parts = [_members(part) for part in node.expressions]
        return [tuple(chain.from_iterable(parts[:many])) for many in range(len(parts), -1, -1)]
    if isinstance(node, exp.Cube):
        parts = [_members(part) for part in node.expressions]
        chosen = chain.from_iterable(combinations(parts, many) for many in range(len(parts), -1, -1))
        return [tuple(chain.from_iterable(some)) for some in chosen]
    if isinstance(node, exp.GroupingSets):
        return list(chain.from_iterable(_ways(part) for part in node.expressions))
    return [_members(node)]


def _members(node: exp.Expression) -> Group:
    while isinstance(node, exp.Paren):
        node = node.this
    return tuple(node.expressions) if isinstance(node, exp.Tuple) else (node,)


def pulled(
    block: ReleaseBlock, sets: Sequence[Group], keys: Mapping[str, Any], release: Callable[[ReleasePart], str]
) -> exp.Select:
    """The block over its release, or over one for each set. `keys` are groups that somebody gave."""
    names = {key.alias: key.typed for key in block.keys}
    public = all(key.known for key in keys_of(names, {name: keys[name] for name in names if name in keys}))
    if public and all(_adds_up(measured.node) for measured in block.aggregates.values()):
        return _added_up(block, sets, release)
    return _apart(block, sets, release)


def _adds_up(node: exp.Expression) -> bool:
    plain = node.this if isinstance(node, exp.Filter) else node
    return isinstance(plain, exp.Count | exp.CountIf | exp.Sum | exp.Avg) and not isinstance(plain.this, exp.Distinct)


def _added_up(block: ReleaseBlock, sets: Sequence[Group], release: Callable[[ReleasePart], str]) -> exp.Select:
    """Released sums of the finest groups, grouped again by the engine."""
    finest = dict(block.aggregates)
    for measured in block.aggregates.values():
        for node in _sums(measured.node):
            names = measured.names if _is_sum(node) else ()  # what is said of a mean is said of what it adds up
            finest.setdefault(text_of(node), MeasuredAggregate(f"part {len(finest) + 1}", node, names))
    finest = {text: measured for text, measured in finest.items() if not _is_mean(measured.node)}
    whole = replace(block, aggregates=finest)
    name = release(whole.part(block.keys))
    swap = _Adding(block, f"_{name}", sums={text: measured.alias for text, measured in finest.items()})
    having = block.select.args.get("having")
    without = block.select.copy()
    without.set("having", None)
    tree = above(replace(block, select=without), name, swap)
    groups = [exp.Tuple(expressions=[swap.key(_key_of(block, node)) for node in group]) for group in sets]
    tree.set("group", exp.Group(expressions=[exp.GroupingSets(expressions=groups)]))
    if having is not None:
        tree.set("having", exp.Having(this=swap(having.this, aliases=True)))
    return tree


def _sums(node: exp.Expression) -> list[exp.Expression]:
    """What is added up for an aggregate: of a mean, the sum and the number."""
    if not _is_mean(node):
        return []
    plain = node.this if isinstance(node, exp.Filter) else node
    parts: list[exp.Expression] = [exp.Sum(this=plain.this.copy()), exp.Count(this=plain.this.copy())]
    if not isinstance(node, exp.Filter):
        return parts
    return [exp.Filter(this=part, expression=node.expression.copy()) for part in parts]


def _is_mean(node: exp.Expression) -> bool:
    return isinstance(node.this if isinstance(node, exp.Filter) else node, exp.Avg)


def _is_sum(node: exp.Expression) -> bool:
    return isinstance(node.this if isinstance(node, exp.Filter) else node, exp.Sum)


def _key_of(block: ReleaseBlock, node: exp.Expression) -> GroupKey:
    """The key that a member of a set is: by its text, its name in the SELECT list, or its place there."""
    if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit():
        outputs = list(block.outputs.values())
        node = outputs[int(node.name) - 1] if 1 <= int(node.name) <= len(outputs) else node
    name = node.name.lower() if isinstance(node, exp.Column) and not node.table else ""
    texts = {text_of(node), *([text_of(block.outputs[name])] if name in block.outputs else [])}
    for key in block.keys:
        if text_of(key.node) in texts:
            return key
    tree = block.reading.translate(node).tree
    return next(key for key in block.keys if key.typed.tree == tree)


@dataclass(frozen=True)
class _Adding(Swap):
    """Aggregates are sums of what the finest groups released."""

    sums: Mapping[str, str] | None = None

    def aggregate(self, measured: MeasuredAggregate) -> exp.Expression:
        assert self.sums is not None
        if not _is_mean(measured.node):
            return self._sum(self.sums[text_of(measured.node)])
        over, under = (self._sum(self.sums[text_of(node)]) for node in _sums(measured.node))
        return exp.paren(exp.Div(this=over, expression=under, typed=False, safe=False))

    def _sum(self, alias: str) -> exp.Expression:
        return exp.Sum(this=exp.column(alias, table=self.table, quoted=True))

    def grouping(self, node: exp.Expression) -> exp.Expression:
        members = [self.key(_key_of(self.block, member)) for member in node.expressions]
        return type(node)(expressions=members)


def _apart(block: ReleaseBlock, sets: Sequence[Group], release: Callable[[ReleasePart], str]) -> exp.Select:
    """A release for each set, stacked: NULL stands for a key that is not in the set, and a column beside it says so."""
    parts: list[exp.Select] = []
    for group in sets:
        mine = [key for key in block.keys if any(_key_of(block, node) is key for node in group)]
        name = f"_{release(block.part(mine))}"
        columns: list[exp.Expression] = []
        for key in block.keys:
            own = key in mine
            value = exp.column(key.alias, table=name, quoted=True) if own else exp.Null()
            columns.append(named(value, key.alias))
            columns.append(named(exp.Literal.number(int(not own)), f"{key.alias} left out"))
        for measured in block.aggregates.values():
            value = exp.column(measured.alias, table=name, quoted=True)
            columns.append(named(value, measured.alias))
        parts.append(exp.Select(expressions=columns).from_(exp.to_table(name, quoted=True)))
    stacked: exp.Query = parts[0]
    for part in parts[1:]:
        stacked = exp.Union(this=stacked, expression=part, distinct=False)
    tree = above(block, "sets", _Stacked(block, "_sets"))
    alias = exp.TableAlias(this=exp.to_identifier("_sets", quoted=True))
    tree.set("from_", exp.From(this=exp.Subquery(this=stacked, alias=alias)))
    return tree


@dataclass(frozen=True)
class _Stacked(Swap):
    """Columns of the stacked releases."""

    def grouping(self, node: exp.Expression) -> exp.Expression:
        bits: exp.Expression = exp.Literal.number(0)
        for member in node.expressions:
            column = exp.column(f"{_key_of(self.block, member).alias} left out", table=self.table, quoted=True)
            bits = exp.paren(exp.Add(this=exp.Mul(this=bits, expression=exp.Literal.number(2)), expression=column))
        return bits
