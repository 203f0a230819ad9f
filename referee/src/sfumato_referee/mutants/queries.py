"""Private SQL gone wrong in the usual ways. None is registered: no curator releases with it.

Each is what a first version of such a layer does: send the text to the engine and add noise, bound rows where users are
promised, show whatever groups there are, or number rows and let the numbers choose.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from sfumato import checks, events
from sfumato.audit.silent import Silent
from sfumato.checks import Exact
from sfumato.laws import RoundedLaplace
from sfumato.noise import SeededBits
from sfumato.openings import ENGINE, Opening
from sfumato.plan import Plan, Run
from sfumato.query import Limits, Sql, SqlStages, running, sql
from sfumato.query.above.released_stages import stage_cells
from sfumato.query.design import Design
from sfumato.query.front import Front
from sfumato.query.front import front as understood
from sfumato.schema import Schema
from sfumato.sources import Connection
from sfumato.sources.base import needed
from sfumato.units import Unit

_BITS = 16


@dataclass(frozen=True, kw_only=True)
class AsWritten(Plan[Connection, dict[str, Any]]):
    """The analyst's text, as it is, in the engine; Laplace noise on whatever numbers come back. Casts raise with the
    cell in their words, doubles are added in the order of rows, every group shows, and files can be read."""

    text: str
    schema: Schema
    protects: Unit
    epsilon: Exact = Fraction(1)
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checks.epsilon(self.epsilon))

    @property
    def unit(self) -> Unit:
        return self.protects

    @property
    def opens(self) -> Opening[Connection]:
        return ENGINE

    @property
    def event(self) -> events.Pure:
        return events.Pure(epsilon=self.epsilon, relation=self.unit.change)

    def _run(self, rows: Any, run: Run) -> dict[str, Any]:
        table = rows.engine.sql(self.text).to_arrow_table()
        names = {name: str(kind) for name, kind in zip(table.column_names, table.schema.types, strict=True)}
        texts = {name for name, kind in names.items() if kind in ("string", "bool") or kind.startswith("dictionary")}
        keys = {name: table.column(name).to_pylist() for name in names if name in texts}
        law = RoundedLaplace(float(2**_BITS / self.epsilon))
        numbers = {}
        for name in (each for each in names if each not in keys):
            exact = [float(each if each is not None else 0.0) for each in table.column(name).to_pylist()]
            drawn = run.noise.draw(law, len(exact))
            numbers[name] = [value + int(more) / 2**_BITS for value, more in zip(exact, drawn, strict=True)]
        return {"groups": table.num_rows, "keys": keys, "numbers": numbers, "distinct": {}, "ranked": {}, "binned": {}}


def as_written(text: str, schema: Schema, *, unit: Unit, epsilon: Any = 1, **_: Any) -> AsWritten:
    return AsWritten(text=text, schema=schema, protects=unit, epsilon=epsilon)


@dataclass(frozen=True, kw_only=True)
class WrappingSums(AsWritten):
    """SELECT SUM(x) FROM t in 64 bits, which wrap around."""

    def _run(self, rows: Any, run: Run) -> dict[str, Any]:
        cells = (
            rows.engine.sql("SELECT coalesce(TRY_CAST(x AS BIGINT), 0) AS x FROM t")
            .to_arrow_table()
            .column(0)
            .to_numpy()
        )
        total = float(np.sum(cells, dtype=np.int64))
        return {"groups": 1, "keys": {}, "numbers": {"a": [total]}, "distinct": {}, "ranked": {}, "binned": {}}


def wrapping(text: str, schema: Schema, *, unit: Unit, epsilon: Any = 1, **_: Any) -> WrappingSums:
    return WrappingSums(text=text, schema=schema, protects=unit, epsilon=epsilon)


@dataclass(frozen=True, kw_only=True)
class RowsForUsers(Sql):
    """Users are promised, rows are bounded: a user with a thousand rows moves a sum a thousand times too far."""

    def _run(self, rows: Any, run: Run) -> dict[str, Any]:
        assert self.fixed is not None
        return running.answer(by_rows(self.front), self.fixed, rows, run.noise)


def by_rows(front: Front) -> Front:
    """The same question as one whose units are rows."""
    reading = replace(front.reading, unit=None)
    return Front(replace(front.outermost, reading=reading), front.keys)


@dataclass(frozen=True, kw_only=True)
class EveryGroup(Sql):
    """Every group is shown: a key that one user alone has gives the user away."""

    @cached_property
    def fixed(self) -> Design | None:
        design = self.design(self.limits or Limits())
        design.__dict__["threshold"] = -(2**62)
        return design


@dataclass(frozen=True, kw_only=True)
class ReachWithoutWeights(Sql):
    """Noise for a reach that was asked for, where nothing holds a row to it: rows that are units have no weights."""

    smaller: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def fixed(self) -> Design | None:
        design = self.design(Limits())
        small = {name: Fraction(self.smaller.get(name, reach)) for name, reach in design.reaches.items()}
        return replace(design, reaches=small)


@dataclass(frozen=True, kw_only=True)
class NumbersChoose(Sql):
    """Rows are numbered, and their numbers choose the values that COUNT(DISTINCT) takes of each: without one row all
    others have other numbers, and choose anew."""

    def _run(self, rows: Any, run: Run) -> dict[str, Any]:
        assert self.fixed is not None
        mixed: Any = _Mixed(rows)
        return running.answer(self.front, self.fixed, mixed, run.noise)


@dataclass(frozen=True, kw_only=True)
class TablesSayWho(Sql):
    """A table's own unit is taken, whichever is protected: visits are bounded, and patients promised."""

    @cached_property
    def front(self) -> Front:
        own = next(t for t in self.schema.tables.values() if t.private and t.unit not in (None, self.unit.column))
        alone = Schema({own.name: replace(own, names=None)})
        noise = "gaussian" if self.delta else "laplace"
        whose = replace(self.unit, of=f"user:{own.unit}")
        return understood(self.text, alone, whose, bounds=self.bounds, keys=self.keys, noise=noise)

    @property
    def other_names(self) -> dict[str, str]:
        return {}


@dataclass(frozen=True, kw_only=True)
class KeysSayWho(Sql):
    """A chain loses its owner: rows belong to the key that they hold, so orders are bounded, and people promised."""

    @cached_property
    def front(self) -> Front:
        keyed = [table for table in self.schema.tables.values() if table.leads is not None]
        own = next((table for table in keyed if f"FROM {table.name}" in self.text), keyed[0])
        assert own.leads is not None
        alone = Schema({own.name: replace(own, owner=None, unit=own.leads.column)})
        noise = "gaussian" if self.delta else "laplace"
        whose = replace(self.unit, of=f"user:{own.leads.column}")
        return understood(self.text, alone, whose, bounds=self.bounds, keys=self.keys, noise=noise)

    @property
    def other_names(self) -> dict[str, str]:
        return {}

    @property
    def paths(self) -> dict[str, str]:
        return {}


@dataclass(frozen=True, kw_only=True)
class ExactStages(SqlStages):
    """What is compared with is computed exactly, and only what is shown gets noise."""

    def _run(self, data: Any, run: Run) -> dict[str, Any]:
        return with_exact_numbers(self, data, run)


def with_exact_numbers(plan: SqlStages, data: Any, run: Run) -> dict[str, Any]:
    """Later stages read what earlier ones would be without noise; what is stored has it."""
    raws: dict[str, Any] = {}
    for name, part in plan.sqls.items():
        for table, columns in part.released.items():
            exact = plan.sqls[table]._run(data, Run(Silent(SeededBits(0))))
            data.hand_over(columns, stage_cells(plan.sqls[table], exact))
        raws[name] = part._run(data, run)
    return {"releases": raws}


def in_exact_stages(text: str, schema: Schema, *, unit: Unit, **options: Any) -> ExactStages:
    """Asks as `sql` does."""
    plan = sql(text, schema, unit=unit, **options)
    assert isinstance(plan, SqlStages)
    return ExactStages(plans=plan.plans, above=plan.above, beside=plan.beside)


class _Mixed:
    """Puts the number of the row back into the order that values are taken in."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def run(self, tree: Any) -> Any:
        exp = needed("sqlglot").exp
        for node in tree.find_all(exp.Anonymous):
            if node.name == "ordering_hash":
                node.set("expressions", [exp.column("_unit"), *node.expressions])
        return self._inner.run(tree)


def making(kind: type[Sql], **more: Any) -> Any:
    """Asks with a planted bug as `sql` asks."""

    def ask_with_bug(text: str, schema: Schema, *, unit: Unit, **options: Any) -> Sql:
        return kind(text=text, schema=schema, protects=unit, **{"limits": Limits(), **options, **more})

    return ask_with_bug
