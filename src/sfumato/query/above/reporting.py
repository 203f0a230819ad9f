"""From the text of a query to a report, where the query is made of releases with SQL above them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlglot import exp

from ...errors import ArgumentError
from ...schema import Schema
from .. import noise_law
from ..asked import asked as in_one_way
from ..front import front
from ..parsing import parsed, too_deep
from ..plan import Sql
from ..refusal import QueryError
from . import part_options, permitted
from .above_rules import AboveError, by_own_names, public_only, public_tables, written
from .query_blocks import QuerySplit
from .report_plan import SqlReport
from .stage_needed import StageNeededError, placed
from .stages_plan import SqlStages
from .staging import Staging


def report(fields: Mapping[str, Any], refusal: QueryError, *, free: bool = False) -> SqlReport:
    """The report that answers the query; `refusal` is why one release does not; `free`: may the law of
    its noise be chosen?"""
    if refusal.node is None:  # what was said beside the query is wrong, not a clause of it
        raise refusal
    tree = parsed(fields["text"])
    keys = {name.lower(): values for name, values in (fields.get("keys") or {}).items()}
    staging = Staging(tree, fields, part_options.of_one)
    split = QuerySplit(fields["schema"], fields["protects"], keys)
    try:
        while True:
            split = QuerySplit(fields["schema"], fields["protects"], keys, dict(staging.releases), staging.released)
            try:
                status = split.walk(placed(staging.tree))
                break
            except StageNeededError as wanted:
                staging.take(wanted)
        if status == "public":
            tables = list(tree.find_all(exp.Table))
            if not tables or not all(isinstance(table.this, exp.Identifier) for table in tables):
                raise refusal  # files, functions, or nothing is read: no public table
            if {table.name.lower() for table in tables} & private_tables(fields["schema"]):
                raise refusal
            raise public_only(tree)
        if status == "rows" or split.tree is None:
            if staging.releases:  # then that is no longer why
                _ = front(
                    written(staging.tree),
                    fields["schema"],
                    fields["protects"],
                    bounds={},
                    keys={},
                    noise="gaussian",
                    released=staging.released,
                )
            raise refusal
        if staging.releases:
            return _staged(split, staging)
        plan = _report(split, fields, free=free)
        if not split.nested and not _runs(plan):
            raise refusal  # a plain query was meant, and its refusal says more than the engine does
        return plan
    except QueryError as problem:
        if problem is refusal or (not split.nested and not staging.releases and not isinstance(problem, AboveError)):
            raise refusal from None
        raise problem.within(fields["text"]) from None
    except RecursionError:
        raise too_deep() from None


def _runs(plan: SqlReport) -> bool:
    """Does the engine take what is above? What is wrong with the releases is told later."""
    try:
        plan.check_groups()
    except AboveError:
        return False
    except QueryError:
        pass
    return True


def _staged(split: QuerySplit, staging: Staging) -> SqlReport:
    """The stages; where the last of them is the whole query, it is shown as that is."""
    fields = {**staging.fields, "released": staging.released}
    plans = {name: in_one_way(plan) for name, plan in part_options.parts(split.releases, fields).items()}
    last = list(plans)[-1]
    if not split.nested and len(plans) == len(staging.releases) + 1:
        whole = _as_whole(plans[last], written(staging.tree))
        if whole is not None:
            return SqlStages(plans={**plans, last: whole})
    above = _report(split, fields, free=False)
    return SqlStages(plans=plans, above=above.above, beside=above.beside)


def _as_whole(part: Sql, text: str) -> Sql | None:
    """The last stage, shown as the whole query asks for it, where that is the same question."""
    try:
        whole = in_one_way(replace(part, text=text, written=None))
    except (QueryError, ArgumentError):
        return None
    return whole if whole == part else None


def _report(split: QuerySplit, fields: Mapping[str, Any], *, free: bool) -> SqlReport:
    assert split.tree is not None
    tree = permitted.steadied(by_own_names(split.tree))
    text = written(tree)
    plans = {name: in_one_way(plan) for name, plan in part_options.parts(split.releases, fields).items()}
    chosen = noise_law.least if free and len(plans) == 1 else noise_law.split
    plans = {name: chosen(plan) for name, plan in plans.items()}
    public = set(public_tables(split.schema))
    permitted.check(tree, [*(f"_{name}" for name in plans), *public])
    ctes = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    reads = any(table.name.lower() in public - ctes for table in tree.find_all(exp.Table))
    return SqlReport(plans=plans, above=text, beside=text if reads else None)


def private_tables(schema: Schema) -> set[str]:
    """By lower-case name."""
    return {name.lower() for name, table in schema.tables.items() if table.private}
