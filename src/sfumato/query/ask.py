"""`sql(...)`: a plan from the text of a query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING
from dataclasses import fields as fields_of
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from .. import checks
from ..errors import ArgumentError
from ..schema import Schema
from ..units import Unit
from . import noise_law, target
from .asked import asked
from .comments import options_in
from .dialects.pasted import dialect_of, in_duckdb_sql
from .hints import Hints
from .limits import Limits
from .plan import Sql
from .refusal import QueryError
from .unfolding import unfolded

if TYPE_CHECKING:
    from .above.report_plan import SqlReport

T = TypeVar("T", Limits, Hints)
P = TypeVar("P", "Sql", "SqlReport", "Sql | SqlReport")
ADVISE: Final = "advise"


def sql(
    text: str,
    data: Any,
    *,
    unit: Unit | None = None,
    epsilon: Any = None,
    delta: Any = None,
    rho: Any = None,
    accuracy: Mapping[str, Any] | None = None,
    group_rows: Any = None,
    alpha: Any = 0.05,
    keys: Mapping[str, Any] | None = None,
    bounds: Mapping[str, Any] | None = None,
    limits: Limits | Mapping[str, Any] | Literal["advise"] | None = None,
    shares: Mapping[str, Any] | None = None,
    advice: Any = None,
    floor: bool | None = None,
    unclip: bool | None = None,
    hints: Hints | Mapping[str, Any] | None = None,
    dialect: str | None = None,
    noise: Literal["gaussian", "laplace"] | None = None,
) -> Sql | SqlReport:
    """The plan that answers a query: `curator.quote` prices it, `curator.release` runs it.

    >>> from sfumato import Limits, Schema, Unit, schema, sql
    >>> table = Schema.of(ward=schema.category(["east", "west"]))
    >>> query = "SELECT ward, COUNT(*) AS n FROM data GROUP BY ward"
    >>> plan = sql(query, table, unit=Unit(), epsilon=1, limits=Limits(rows=1))
    >>> float(plan.event.epsilon)
    1.0

    data      the Private that it will run on, or a schema (then `unit` says whose presence is hidden)
    epsilon   what to spend: epsilon alone buys Laplace noise, epsilon with delta Gaussian noise, rho too
    accuracy  instead of that: the half-width wanted for columns of the answer at confidence 1 - alpha; the budget is
              then the least that gives it. Averages and quantiles also need `group_rows`, about how many rows a group
              has; of a quantile it is for values spread evenly over their bounds, or {"rank": 20} in rows of rank
    keys      the groups, by column, where they do not come from the schema or a public table; "select" chooses them
              privately
    bounds    (lowest, highest) by column, for what the schema gives no bounds for
    limits    how much one unit counts for at most; without it, or with "advise", the adviser measures that first, for
              the share `advice` of the budget
    hints     what is publicly known of the units, such as {"units": 5000, "rows": {1: 0.7, 5: 0.3}}: the limits are
              then chosen by it, for nothing
    shares    weights of the questions, where some should be more exact than others
    floor     raise negative numbers to 0 (the raw ones stay beside)
    unclip    raise sums by what the limits are estimated to take from them; the adviser measures that
    dialect   whose SQL the text is: "duckdb" (the default), "postgres", "bigquery", "snowflake", "tsql", "spark",
              "databricks" or "mysql"; it becomes the same question in DuckDB's, which is what the plan holds

    noise     "gaussian" (with delta, or rho) or "laplace" (for epsilon alone; delta is left out). By default what the
              budget says; without GROUP BY the smaller of both: where that is Laplace, delta is not spent

    All of it can also stand in a comment of the query: -- sfumato: epsilon=1, delta=1e-6, rows=10
    """
    schema, protects = schema_and_unit(data, unit)
    limits = None if isinstance(limits, str) and limits == ADVISE else limits
    given: dict[str, Any] = {
        "epsilon": epsilon, "delta": delta, "rho": rho, "accuracy": accuracy, "group_rows": group_rows, "keys": keys,
        "bounds": bounds, "limits": limits, "shares": shares, "advice": advice, "floor": floor,
        "unclip": unclip, "hints": hints, "dialect": dialect, "noise": noise,
    }  # fmt: skip
    checks.instance(text, str, "text", "a query")
    options = _merged(given, options_in(text, dialect))
    text = in_duckdb_sql(text, dialect_of(options.pop("dialect", "duckdb")), schema)
    query = unfolded(text, schema)
    try:
        return _planned(query.text, schema.stored, protects, options, alpha)
    except QueryError as refusal:
        problem = query.refused(refusal)
    raise problem


def _planned(text: str, schema: Schema, protects: Unit, options: dict[str, Any], alpha: Any) -> Sql | SqlReport:
    law = options.pop("noise", None)
    options = noise_law.options_for(law, options)
    wanted, size = options.pop("accuracy", None), options.pop("group_rows", None)
    if isinstance(options.get("limits"), Mapping):
        options["limits"] = _named(Limits, options["limits"], "limits")
    if isinstance(options.get("hints"), Mapping):
        options["hints"] = _named(Hints, options["hints"], "hints")
    fields = {"text": text, "schema": schema, "protects": protects, **options}
    if wanted is None:
        if fields.get("epsilon") is None and fields.get("rho") is None:
            raise ArgumentError(
                "say how much to spend: epsilon (with delta), rho, or the accuracy wanted.", code="how-much"
            )
        return _with_groups(_plan(fields, free=law is None))
    chance = checks.rational(alpha, "alpha", "a probability")
    if not 0 < chance < 1:
        raise checks.refuse("alpha", alpha, "a probability between 0 and 1")
    return _with_groups(target.cheapest(fields, wanted, size, chance, free=law is None))


def _plan(fields: Mapping[str, Any], *, free: bool) -> Sql | SqlReport:
    """One release, or releases with SQL above them; `free`: may the law of its noise be chosen?"""
    try:
        plan = asked(Sql(**fields))
    except QueryError as refusal:
        from .above.reporting import report  # here, as one release needs none of it

        return report(fields, refusal, free=free)
    return noise_law.least(plan) if free else noise_law.split(plan)


def _with_groups(plan: P) -> P:
    try:
        plan.check_groups()
    except QueryError as problem:
        raise (problem.within(plan.text) if isinstance(plan, Sql) else problem) from None
    return plan


def _named(kind: type[T], given: Mapping[str, Any], argument: str) -> T:
    """Limits or hints, given by name."""
    known: list[str] = [each.name for each in fields_of(kind)]
    needed: list[str] = [
        each.name for each in fields_of(kind) if each.default is MISSING and each.default_factory is MISSING
    ]
    for name in (*given, *needed):
        if name not in known or name not in given:
            must = f" ({' and '.join(needed)} at least)" if needed else ""
            raise checks.refuse(argument, name, f"{argument} by name: {', '.join(known)}{must}")
    return kind(**given)


def schema_and_unit(data: Any, unit: Unit | None) -> tuple[Schema, Unit]:
    """What a query is made for: the schema of the data, and whose presence is hidden."""
    schema = data if isinstance(data, Schema) else getattr(data, "schema", None)
    if not isinstance(schema, Schema):
        raise checks.refuse("data", type(data).__name__, "a Private, or a Schema")
    protects = unit if unit is not None else getattr(data, "unit", None)
    if not isinstance(protects, Unit):
        raise checks.refuse("unit", unit, "a Unit, where the data is given as a schema")
    return schema, protects


def _merged(given: Mapping[str, Any], written: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments and the options of a comment, each said once."""
    found = {name: value for name, value in given.items() if value is not None}
    for name, value in written.items():
        if name not in found:
            found[name] = value
        elif isinstance(value, Mapping) and isinstance(found[name], Mapping) and not set(value) & set(found[name]):
            found[name] = {**found[name], **value}
        else:
            raise ArgumentError(
                f"{name} is given twice: as an argument, and in a comment of the query.", code="given-twice"
            )
    return found
