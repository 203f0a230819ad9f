"""Many tables of one query's cells, measured together and told in agreement with one another.

The claim: all tables together cost what the event of the cells says, whatever is asked of them.

Proof sketch. A row is in one cell. Of each measured number a unit's rows are weighted, all by the same weight, so that
they add up to at most its reach over all cells (bounding.py). What the strategy measures of the cells moves by at most
that times its largest column, and gets noise for it (measured_cells.py): one Gaussian mechanism of the multiplier in
the event, or epsilon-DP. The strategy was chosen by public fields alone. Everything after the noise (least squares,
sums of cells, intervals) is post-processing: one estimate of the cells, of which all tables are sums, so they agree.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import checks, contributions, events
from ...errors import ArgumentError, PlanError
from ...plan import Plan, Run
from ...questions import PRICE
from ...record import record
from ...runs import Alike, Bulk, sizes
from ...schema import Schema, Table, category, key, whole
from ...sources.duckdb import DUCKDB
from ...strategies import Nested, Product
from ...units import Unit
from ..dated.told_columns import ToldColumn, told_columns
from ..keys import check_groups
from ..limits import Limits
from ..plan import Sql
from ..raised import exposed_names
from ..released.answer import Answer
from .asked_tables import AskedTable, TableColumn
from .cell_statement import Columns, cell_statement, cells_of, sums_of
from .choosing import check_sizes, chosen
from .measured_cells import MeasuredCells
from .told_tables import answer_of, widths

if TYPE_CHECKING:
    from ...sources import Connection

WHO, ACROSS = "A workload", "cell"
_SHOWN = 8


@record("plan-sql-workload/1")
@dataclass(frozen=True, kw_only=True)
class SqlWorkload(Plan["Connection", dict[str, Any]]):
    """Many tables, ranges and cumulative sums of the same cells, under one price.

    Guarantee: that of its Event: a Gaussian mechanism (rho-zCDP, and (epsilon, delta)-DP where asked so), or epsilon-DP
        with Laplace noise.
    Needs: cells by public groups, of numbers that add up; limits for a unit of several rows.
    Paper: Li, Hay, Rastogi, Miklau, McGregor 2010 (the matrix mechanism); McKenna, Miklau, Hay, Machanavajjhala 2018
        (products, weighted marginals); Xiao, He, Zhang, Kifer 2023 (residuals of marginals).

    Proof sketch: see the top of this file, and measured_cells.py.

    cells     the query of the finest cells; its event is that of the whole
    tables    what is told
    strategy  what is measured
    """

    cells: Sql
    tables: tuple[AskedTable, ...]
    strategy: Product | Nested = field(metadata=PRICE)

    def __post_init__(self) -> None:
        checks.instance(self.cells, Sql, "cells", "a query")
        if not isinstance(self.strategy, Product | Nested):
            raise checks.refuse("strategy", "...", "strategies.Product or strategies.Nested")
        object.__setattr__(self, "tables", tuple(self.tables))
        for table in self.tables:
            checks.instance(table, AskedTable, "tables", "tables that are asked")
        names = [table.name for table in self.tables]
        if not names or len(set(names)) < len(names):
            raise checks.refuse("tables", "...", "at least one table, each with a name of its own")
        _ = self.told_columns
        check_columns(self.tables, self.columns_by_name)
        check_sizes(self.tables, self.columns_by_name)
        if self.strategy.sizes != tuple(len(column.values) for column in self.columns_by_name.values()):
            raise checks.refuse("strategy", "...", "one for the columns of these cells")
        for table in self.tables:
            places = [self.columns_by_name[name].place for name in table.columns]
            if isinstance(self.strategy, Nested) and not self.strategy.determines(self.strategy.finest(places)):
                raise checks.refuse("strategy", "...", f"measurements that determine table {table.name!r}")
        for number in self.numbers:
            sums_of(self.cells.front, self._design, number.number).check()
            for table_ in number.tables:
                number.laws(table_)  # noise that no sampler draws is refused now

    @property
    def unit(self) -> Unit:
        return self.cells.unit

    @property
    def schema(self) -> Schema:
        return self.cells.schema

    @property
    def event(self) -> events.Event:
        return self.cells.event

    @property
    def _design(self) -> Any:
        assert self.cells.fixed is not None
        return self.cells.fixed

    @cached_property
    def told_columns(self) -> tuple[ToldColumn, ...]:
        return told_columns(self.cells, WHO, ACROSS)

    @cached_property
    def columns_by_name(self) -> Mapping[str, TableColumn]:
        return columns_of(self.cells)

    @cached_property
    def numbers(self) -> tuple[MeasuredCells, ...]:
        """What is measured of the cells: the rows, or what is added up."""
        return tuple(MeasuredCells(self.strategy, number, self.cells.blur) for number in self._design.sums)

    @cached_property
    def norms_of(self) -> Mapping[tuple[str, str], tuple[Any, Any, Any]]:
        """By measured number and table, what the answers' error bars are made of."""
        pairs = ((number, table) for number in self.numbers for table in self.tables)
        return {(n.inner.measure.name, t.name): n.norms(t, self.columns_by_name) for n, t in pairs}

    def check_schema(self, schema: Schema) -> None:
        if schema.stored != self.cells.schema:
            raise PlanError("the workload was made for another schema: build it with the schema of the data")
        check_groups(self.cells.front.keys)

    def check(self, table: Table) -> None:
        raise PlanError("a workload runs on a Private that holds the tables of its schema, not inside another plan")

    def bind(self, connection: Connection) -> None:
        for tree in self._statements.values():
            connection.bind(tree)

    @cached_property
    def _statements(self) -> dict[str, Any]:
        return {
            number.inner.measure.name: cell_statement(
                sums_of(self.cells.front, self._design, number.number), number.sets
            )
            for number in self.numbers
        }

    def statements(self) -> dict[str, str]:
        """The SQL that the engine runs, by what it is for."""
        return {name: DUCKDB.text(tree, pretty=True) for name, tree in self._statements.items()}

    def _run(self, data: Connection, run: Run) -> dict[str, Any]:
        told_ = self._blurred(self._exactly(data), run, 1)
        return {"numbers": {name: [table[0].tolist() for table in tables] for name, tables in told_.items()}}

    def _exactly(self, data: Connection) -> list[Any]:
        """What is measured, without noise."""
        columns = list(self.columns_by_name.values())
        exact = []
        for number in self.numbers:
            cells: Mapping[Columns, Any] = cells_of(
                data.run(self._statements[number.inner.measure.name]), number.sets, columns
            )
            exact.append(number.exactly(cells))
        return exact

    def _blurred(self, exact: list[Any], run: Run, runs: int) -> dict[str, list[Any]]:
        """By measured number and table, a row for each run."""
        pairs = zip(self.numbers, exact, strict=True)
        return {item.inner.measure.name: item.blurred(numbers, run.noise, runs) for item, numbers in pairs}

    @property
    def bulk(self) -> Bulk:
        return "steady" if type(self)._run is SqlWorkload._run else "no"

    def _runs(self, data: Connection, run: Run, count: int) -> Any:
        """The engine is asked once: cells are the same in every run, and each has noise of its own."""
        if self.bulk == "no":
            return super()._runs(data, run, count)
        exact = self._exactly(data)
        parts = []
        for size in sizes(count, self.strategy.measurements * len(self.numbers)):
            blurred = self._blurred(exact, run, size)
            places = tuple(
                ("numbers", name, table, place)
                for name, tables in blurred.items()
                for table, numbers in enumerate(tables)
                for place in range(numbers.shape[1])
            )
            parts.append(Alike(places, np.concatenate([table for each in blurred.values() for table in each], axis=1)))
        return Alike.joined(parts)

    def finish(self, raw: Mapping[str, Any]) -> Answer:
        return answer_of(self, raw, self.notes)

    def error(self, raw: Mapping[str, Any], alpha: float) -> Any:
        answer = self.finish(raw)
        return {name: answer.half_width(name, alpha) if name in answer.numbers else None for name in answer.columns}

    def expected_errors(self, alpha: float) -> Mapping[str, float]:
        """The widest in each table."""
        return {
            f"{table.name}: {column.title}": float(np.max(widths(self, table, column, alpha)))
            for table in self.tables
            for column in self.told_columns
        }

    @property
    def error_words(self) -> str:
        return ", of noise alone" if exposed_names(self.cells) else ""

    @property
    def notes(self) -> list[str]:
        """What is to be said beside the numbers."""
        lines = ["all tables are sums of one estimate of the cells: they agree, and numbers may be below 0"]
        lines += [self._limits] if self.cells.front.units else []
        lines += ["what limits cut from the numbers is not known"] * bool(exposed_names(self.cells))
        return lines + ["rows without a group (NULL) are left out"] * bool(self.columns_by_name)

    @property
    def _limits(self) -> str:
        unit, rows = self.unit.column or "row", float((self.cells.limits or Limits()).rows)
        if self.cells.front.reading.single:
            return f"each {unit} counts once"
        many = "1 row" if rows == 1 else f"{rows:g} rows"
        return f"each {unit} counts in full up to {many} in all; one that holds more is weighted down, not cut off"

    def afterwards(self) -> tuple[str, ...]:
        return "the least-squares estimate of the cells, and sums of it", *super().afterwards()

    def _contribution_bounds(self, path: str) -> Iterator[contributions.Bound]:
        """Those of the cells; but lengths add up over all of a unit's rows."""
        for bound in contributions.within(self.cells, contributions.joined(path, "cells")):
            if "lengths" in bound and self.cells.limits is not None:
                words = {contributions.WORDS: self.cells.limits.words(self.unit.noun, square=False)}
                bound = bound | {"lengths": "add up"} | words
            yield bound

    def expected_work(self) -> Mapping[str, str]:
        """How much is measured, and told."""
        measured = self.strategy.measurements
        told_ = sum(math.prod(w.shape) for w in (widths(self, table, None, 0.5) for table in self.tables))
        return {"measures": f"{measured:,} numbers, and tells {told_:,} in {len(self.tables)} table(s)"}

    def explain(self) -> list[str]:
        lines = ["read the rows: each belongs to one " + (self.unit.column or "row") + ", and to one cell"]
        lines += [f"group by {c.name}: {len(c.values)} public values" for c in self.columns_by_name.values()]
        if self.cells.front.units:
            lines.append(self._limits)
        lines += list(strategy_words(self.strategy, self.columns_by_name))
        for number in self.numbers:
            law, step = number.laws(number.tables[0])[0][0], 2.0**number.exponent
            lines.append(
                f"add up {number.inner.measure.title} and add {self.cells.blur.kind} noise of standard deviation "
                f"{law.std * step:.4g} and more"
            )
        names = [table.name for table in self.tables[:_SHOWN]] + ["..."] * (len(self.tables) > _SHOWN)
        lines.append(f"tell {len(self.tables)} table(s) by least squares: {', '.join(names)}")
        lines += [f"{name}: ± {width:.4g} at 95 %, at most" for name, width in self.expected_errors(0.05).items()]
        return [*lines, *(f"run, for {name}:\n{text}" for name, text in self.statements().items())]

    @classmethod
    def sample(cls) -> SqlWorkload:
        columns = {"id": key(), "ward": category(("east", "west")), "days": whole(0, 3)}
        tables = Schema({"visits": Table(columns, unit="id")})
        text = "SELECT ward, days, COUNT(*) FROM visits GROUP BY ward, days"
        cells = Sql(text=text, schema=tables, protects=Unit("user:id"), epsilon=1, limits=Limits(rows=2))
        wanted = (
            AskedTable(name="ward", columns={"ward": "values"}),
            AskedTable(name="days", columns={"days": "cumulative"}),
        )
        return cls(cells=cells, tables=wanted, strategy=strategy_for(cells, wanted, "tables"))


def columns_of(cells: Sql) -> Mapping[str, TableColumn]:
    """The columns of the cells, by lower-case name; all of their values are public."""
    for key_ in cells.front.keys:
        if key_.values is None:
            raise ArgumentError(
                f"the groups of {key_.name} are not known before data is read: give them, keys={{'column': [...]}}."
            )
    return {key_.name.lower(): TableColumn.of(place, key_) for place, key_ in enumerate(cells.front.keys)}


def check_columns(tables: tuple[AskedTable, ...], columns: Mapping[str, TableColumn]) -> None:
    """Every column of a table is one of the cells', and each of those is in some table."""
    for table in tables:
        for name, form in table.columns.items():
            if name not in columns:
                raise checks.refuse(f"columns of {table.name}", name, f"groups of the query: {', '.join(columns)}")
            columns[name].ends(form)
    wanted = {name for table in tables for name in table.columns}
    if left := [name for name in columns if name not in wanted]:
        raise ArgumentError(
            f"no table has the column {left[0]!r}: leave it out of the query's GROUP BY, or ask for it."
        )


def strategy_for(cells: Sql, tables: tuple[AskedTable, ...], kind: str) -> Product | Nested:
    """The best of that kind."""
    told_columns(cells, WHO, ACROSS)  # refused before anything is looked for
    columns = columns_of(cells)
    check_columns(tables, columns)
    return chosen(kind, tables, columns, cells.blur.kind, cells.unit.change)


def strategy_words(strategy: Product | Nested, columns: Mapping[str, TableColumn]) -> Iterator[str]:
    """What is measured, in plain words."""
    names, many = [column.name for column in columns.values()], f"{strategy.measurements:,} numbers"
    if isinstance(strategy, Product):
        kinds = [type(factor).__name__.lower() for factor in strategy.factors]
        over = ", ".join(f"{kind} over {name}" for kind, name in zip(kinds, names, strict=True))
        yield f"measure {many} of the cells of all columns: {over or 'the total'}"
        return
    yield f"measure {many} in {len(strategy.tables)} table(s), each with its share of the budget"
    pairs = sorted(zip(strategy.shares, strategy.tables, strict=True), reverse=True)
    for share, table in pairs[:_SHOWN]:
        shape = zip(names, strategy.shape(table), table, strict=True)
        parts = [f"{name} in {groups}" for name, groups, level in shape if level]
        yield f"{100 * float(share):.3g} %: {' by '.join(parts) or 'the total'}"
    if len(pairs) > _SHOWN:
        yield f"... and {len(pairs) - _SHOWN} more"
