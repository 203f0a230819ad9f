"""The same question is the same plan: what is paid for, run and stored is a query written in the one way.

Of a query as somebody wrote it three things remain: the canonical text, which asks for the groups and the aggregates
and nothing else, in the order in which they first occur; the options, by the names of that text; and how the answer is
to be shown (names and order of columns, HAVING, ORDER BY, LIMIT), which is post-processing and no part of the plan's
JSON or hash. So whoever asks for the same groups and aggregates again, at the same price, gets the stored answer for
nothing, under the names that they ask for now.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from sqlglot import exp

from ..errors import ArgumentError, PlanError
from . import aggregates
from .canonical import UnsureError, canonical, says, text_of, written
from .front import Front, front
from .outermost import aggregates_of, outputs_of
from .parsing import parsed
from .plan import Sql

_TAG = "as written"


def asked(plan: Sql) -> Sql:
    """The plan with its query in the one way, shown as it was written; as it is where that is not known to be safe."""
    try:
        made = _asked(plan)
    except (UnsureError, PlanError, ArgumentError, RecursionError):
        return plan
    object.__setattr__(made, "as_written", plan)
    return made if made.event == plan.event else plan


@dataclass(frozen=True)
class _Query:
    """A query in the one way.

    keys    the names of its groups, in order
    shown   (aggregate, its text in the query as it was written, name of the output that it was in)
    """

    text: str
    keys: tuple[str, ...]
    shown: tuple[tuple[exp.Expression, str, str], ...]

    @property
    def names(self) -> dict[str, str]:
        """By text of an aggregate as it was written: its text now."""
        return {before: text_of(node) for node, before, _ in self.shown}


def _asked(plan: Sql) -> Sql:
    query = _query(_ReadText(plan.text, plan.front))
    if len(set(query.names.values())) < len(plan.front.aggregates) and (plan.bounds or plan.shares or _reach(plan)):
        raise UnsureError  # two aggregates become one, and what was said of them might differ
    bounds, keys = _bounds(plan, query), _keys(plan, query)
    limits = plan.limits if plan.limits is None else replace(plan.limits, reach=_reaches(plan, query))
    shares = _shares(plan, query, bounds, keys) if plan.shares else {}
    return replace(
        plan, text=query.text, bounds=bounds, keys=keys, limits=limits, shares=shares, written=plan.text
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _ReadText:
    """A text and what was read of it: the same where that is the same object."""

    text: str
    front: Front

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ReadText) and self.front is other.front and self.text == other.text

    def __hash__(self) -> int:
        return id(self.front)


@lru_cache(maxsize=64)
def _query(plan: _ReadText) -> _Query:
    tree = parsed(plan.text)
    if not isinstance(tree, exp.Select):
        raise UnsureError
    for node, _ in aggregates_of(tree):
        node.meta[_TAG] = text_of(node)
    select = canonical(tree)
    assert isinstance(select, exp.Select)
    shown = tuple((node, node.meta[_TAG], name) for node, name in aggregates_of(select))
    groups = _groups(plan, select)
    names: list[str] = []
    for node in groups.values():
        name = node.name if isinstance(node, exp.Column) else text_of(node)
        names.append(name if name not in names else f"{name} {len(names) + 1}")
    asked_for: dict[str, exp.Expr] = {}
    for name, node in zip(names, groups.values(), strict=True):
        own = node.name if isinstance(node, exp.Column) else text_of(node)
        asked_for[text_of(node)] = node.copy() if own == name else exp.alias_(node.copy(), name, quoted=True)
    asked_for |= {text_of(node): node.copy() for node, _, _ in shown}
    select = select.copy()
    select.set("expressions", list(asked_for.values()))
    select.set("group", exp.Group(expressions=[node.copy() for node in groups.values()]) if groups else None)
    for part in ("having", "order", "limit", "offset"):
        select.set(part, None)
    text = written(select)
    again = parsed(text)
    if not says(again, select) or written(canonical(again)) != text:
        raise UnsureError  # the text would not be read as the tree that it stands for
    return _Query(text, tuple(names), shown)


def _groups(plan: _ReadText, select: exp.Select) -> dict[str, exp.Expression]:
    """What is grouped by, by its text: positions and aliases of the SELECT list are spelt out."""
    group = select.args.get("group")
    if group is None:
        return {}
    outputs = outputs_of(select)
    columns = {name for relation in plan.front.reading.scope.sources.values() for name in relation.columns}
    if group.args.get("all"):
        held = {id(node) for node, _ in aggregates_of(select)}
        nodes = [each for each in outputs.values() if not any(id(inner) in held for inner in each.walk())]
    else:
        nodes = list(group.expressions)
    found: dict[str, exp.Expression] = {}
    for node in nodes:
        if isinstance(node, exp.Literal):
            node = select.expressions[int(node.name) - 1].unalias()
        elif isinstance(node, exp.Column) and not node.table and node.name not in columns:
            node = outputs[node.name]
        found[text_of(node)] = node
    return found


def _reach(plan: Sql) -> Mapping[str, Any]:
    return {} if plan.limits is None else plan.limits.reach


def _told_apart(query: _Query) -> None:
    """Names of outputs are compared in lower case."""
    texts = set(query.names.values())
    if len({text.lower() for text in texts}) < len(texts):
        raise UnsureError


def _bounds(plan: Sql, query: _Query) -> dict[str, tuple[Fraction, Fraction]]:
    """By name of the aggregate where they were given by the name of its output, else by column."""
    if not plan.bounds:
        return {}
    _told_apart(query)
    found: dict[str, tuple[Fraction, Fraction]] = {}
    used: set[str] = set()
    first = {text_of(node): (node, name) for node, _, name in reversed(query.shown)}
    for text, (node, name) in first.items():
        one = plan.front.aggregates[node.meta[_TAG]]
        counts = isinstance(node.this if isinstance(node, exp.Filter) else node, exp.Count | exp.CountIf)
        if counts or not isinstance(one, aggregates.Statistic | aggregates.Ranked):
            continue  # of these nobody asks for bounds
        if name in plan.bounds:
            found[text.lower()] = plan.bounds[name]
            used.add(name)
            continue
        for column in node.find_all(exp.Column):
            if column.name in plan.bounds:
                found[column.name] = plan.bounds[column.name]
                used.add(column.name)
    if used != set(plan.bounds):
        raise UnsureError
    return dict(sorted(found.items()))


def _keys(plan: Sql, query: _Query) -> dict[str, Any]:
    if not plan.keys:
        return {}
    before = [key.name for key in plan.front.keys]
    if len(before) != len(query.keys):
        raise UnsureError
    pairs = zip(before, query.keys, strict=True)
    return {now.lower(): plan.keys[name.lower()] for name, now in pairs if name.lower() in plan.keys}


def _reaches(plan: Sql, query: _Query) -> dict[str, Any]:
    assert plan.limits is not None
    if not plan.limits.reach:
        return {}
    _told_apart(query)
    found: dict[str, Any] = {}
    for name, reach in plan.limits.reach.items():
        for text in plan.front.outermost.aliases.get(name.lower(), ()):
            one = plan.front.aggregates[text]
            if isinstance(one, aggregates.Statistic) and any(not m.whole or m.largest != 1 for m in one.measures):
                found[query.names[text].lower()] = reach
    return dict(sorted(found.items()))


def _shares(plan: Sql, query: _Query, bounds: Mapping[str, Any], keys: Mapping[str, Any]) -> dict[str, Fraction]:
    """By question, as the canonical query calls them."""
    options: dict[str, Any] = {"bounds": bounds, "keys": keys, "noise": plan.blur.kind, "released": plan.released}
    now = front(query.text, plan.schema, plan.protects, **options).aggregates
    names = {aggregates.VOTES: aggregates.VOTES}
    for before, text in query.names.items():
        one, other = plan.front.aggregates[before], now[text]
        if isinstance(one, aggregates.Statistic) and isinstance(other, aggregates.Statistic):
            names |= {a.name: b.name for a, b in zip(one.measures, other.measures, strict=True)}
        elif isinstance(one, aggregates.Ranked) and isinstance(other, aggregates.Ranked):
            names[one.tree] = other.tree
        else:
            names[before] = text
    found: dict[str, Fraction] = {}
    for question, weight in plan.front.by_question(plan.shares).items():
        if question not in names:
            raise UnsureError
        found[names[question]] = max(found.get(names[question], Fraction(0)), weight)
    return dict(sorted(found.items()))
