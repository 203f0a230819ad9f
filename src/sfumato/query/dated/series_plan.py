"""One query of a growing table, asked of each block of time once: a list of releases that is priced as one.

The claim: all releases together cost what the series' event says, for a unit over the whole horizon, whatever it does
in however many blocks; also where later rows answer to earlier releases, and whatever else is released in between.

Proof sketch. Fix a unit u. A neighbouring history of the table is the same history without u's rows, at all times. Each
part is an `Sql` with an event that was fixed at birth, and it is run once, on the table as it stands then. Part b reads
u's rows of block b alone, of which there are some or none.

    without `most`   every part may be told apart by its own event: of T blocks of a level, T times
    with `most` = M  u's rows count in block b only where b is among the first M blocks that u has rows in. So at most M
                     parts of that level see u at all; given what was released before, any other part is the same on
                     both histories. An adversary who chooses, after seeing what came before, which M of the T parts are
                     not the same, plays the M-fold adaptive composition of the event, and the others follow from the
                     public history alone

Levels compose: (sum over levels of M_l times the event of level l), fixed in advance. Rows that come later, and may
answer to what was released, change the inputs of later parts and no parameter: adaptive composition with data sets
chosen in each round (Dwork, Rothblum, Vadhan 2010, section III), in one history as in the other (Jain, Raskhodnikova,
Sivakumar, Smith 2023). What is released in between composes concurrently (Vadhan, Wang 2021; Haney et al. 2023).

What `most` needs beside that: rows are added and never taken away while the series runs, and its blocks are released in
their order, to which the ledger holds them (`turns`): one that was passed over is not paid any more. For then u's rows
in the blocks that counted before are still there when a later block is released, and are among its first ones: let b be
the last block in which u counted, being the k-th of them; its rank in b's release is at least k, so k <= M. Without
`most` nothing is needed: late rows, deleted rows and any order keep the price.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ... import checks, events
from ...checks import Exact
from ...errors import ArgumentError, PlanError
from ...plan import Plan, Run, event_text
from ...questions import PRICE
from ...record import record
from ...schema import Named, Schema, Table, category, date, key
from ...units import Unit
from ..limits import Limits
from ..plan import Sql
from .block_text import DatedQuery
from .series_reading import SeriesReading
from .time_blocks import LEVELS, MOST_DAYS, TimeBlock, blocks_within, day_of, in_order
from .told_columns import told_columns

if TYPE_CHECKING:
    from ...sources import Connection

_FEW = (1, 7, 30)


@record("plan-sql-series/1")
@dataclass(frozen=True, kw_only=True)
class SqlSeries(Plan["Connection", dict[str, Any]]):
    """One query, asked of each block of time once, under one price for the whole horizon.

    Guarantee: that of its Event, for everything that a unit has in all blocks: of each level, the event of one block as
        many times as a unit may count in blocks of that level; the levels composed.
    Needs: a table whose rows are dated. Where a unit counts in fewer blocks than there are: rows that are added and
        never taken away, and blocks that are released in their order.
    Paper: Dwork, Rothblum, Vadhan 2010 (adaptive composition); Jain, Raskhodnikova, Sivakumar, Smith 2023 (tables that
        grow, also in answer to releases); Hay, Rastogi, Miklau, Suciu 2010 (levels that add up).

    firsts  by level, the plan of its first block; those of the others differ from it in their dates alone
    query   the query of the whole table
    column  the column that dates its rows
    start   the first day of the horizon, which is so many `days` long
    most    by level, in how many of its blocks a unit may count
    hashes  of the parts, by the name of their block, in the order in which blocks are over: the ledger reads them
    delta   the delta at which the whole is priced
    """

    firsts: Mapping[str, Sql]
    query: str
    column: str
    start: str = field(metadata=PRICE)
    days: int = field(metadata=PRICE)
    most: Mapping[str, int] = field(metadata=PRICE)
    hashes: Mapping[str, str] | None = field(default=None, metadata=PRICE)
    delta: Exact = field(default=Fraction(0), metadata=PRICE)
    wraps = True
    dear = True

    def __post_init__(self) -> None:
        checks.instance(self.firsts, Mapping, "firsts", "queries by level")
        for level, part in self.firsts.items():
            checks.instance(part, Sql, level, "a query")
        checks.instance(self.query, str, "query", "a query")
        object.__setattr__(self, "firsts", Named(self.firsts))
        object.__setattr__(self, "most", most_blocks(self.start, self.days, self.most))
        object.__setattr__(self, "delta", checks.delta(self.delta, zero=True))
        if (
            list(self.firsts) != list(self.most)
            or len({(part.schema, part.unit) for part in self.firsts.values()}) != 1
        ):
            raise ArgumentError("the plans of the levels are not alike: make the series anew of its query.")
        if self.unit.change != "add-remove" or self.unit.group != 1:
            raise checks.refuse("unit", self.unit, "one unit that is present or absent, where data comes in blocks")
        for level, part in self.firsts.items():
            if part.text != self.text_of(next(block for block in self.blocks.values() if block.level == level)):
                raise ArgumentError(f"the plan of the first {level} asks something else than the series' query of it.")
        for item in (self.parts if self._dated.mentions else self.firsts).values():
            told_columns(item)  # refuses what does not add up, and groups or limits that are not known beforehand
        hashes = {name: part.hash for name, part in self.parts.items()}
        if self.hashes is not None and list(self.hashes.items()) != list(hashes.items()):
            raise ArgumentError("hashes are not those of the parts: leave them out.")
        object.__setattr__(self, "hashes", Named(hashes))

    @property
    def unit(self) -> Unit:
        return next(iter(self.firsts.values())).unit

    @property
    def schema(self) -> Schema:
        return next(iter(self.firsts.values())).schema

    @property
    def first_day(self) -> dt.date:
        return day_of(self.start, "start")

    @cached_property
    def blocks(self) -> dict[str, TimeBlock]:
        """By name, in the order in which they are over."""
        levels = (blocks_within(self.first_day, self.days, level) for level in self.most)
        return {block.name: block for block in in_order([block for blocks in levels for block in blocks])}

    @cached_property
    def _dated(self) -> DatedQuery:
        return DatedQuery.of(self.query, self.schema, self.unit, self.column)

    def text_of(self, block: TimeBlock) -> str:
        """What is asked of one block."""
        return self._dated.of_block(block, self.first_day, self.counted(block.level))

    @cached_property
    def parts(self) -> Mapping[str, Sql]:
        """The releases by the name of their block, such as "day 2026-01-31", in the order in which blocks are over.
        Dates alone are different: where the query does not speak of them, what was checked of a level's first part
        holds for all."""
        dated: Callable[[Sql, str], Sql] = _anew if self._dated.mentions else _with_text
        return {name: dated(self.firsts[block.level], self.text_of(block)) for name, block in self.blocks.items()}

    def _names(self, level: str) -> tuple[str, ...]:
        return tuple(name for name, block in self.blocks.items() if block.level == level)

    def counted(self, level: str) -> int | None:
        """In how many blocks a unit counts, where that has to be counted: not where it is all of them, nor where the
        unit is a row, which is in one."""
        return None if self.most[level] >= len(self._names(level)) or self.unit.of == "row" else self.most[level]

    @property
    def turns(self) -> tuple[tuple[str, ...], ...]:
        """Levels where a unit counts in fewer blocks than there are: blocks in their order, as the proof needs it."""
        levels = ((most, self._names(level)) for level, most in self.most.items())
        return tuple(names for most, names in levels if most < len(names))

    @property
    def compared(self) -> tuple[Plan[Any, Any], ...]:
        return tuple(self.firsts.values())

    @property
    def event(self) -> events.Event:
        return self.event_of(self.days)

    def event_of(self, days: int) -> events.Event:
        """What a unit loses that has rows on so many days at most."""
        parts = self.firsts.items()
        return events.Sequence(tuple(events.Repeat(part.event, min(self.most[name], days)) for name, part in parts))

    def _run(self, data: Connection, run: Run) -> dict[str, Any]:
        """All of it at once, on a table that is complete."""
        return {name: part._run(data, run) for name, part in self.parts.items()}

    def check_schema(self, schema: Schema) -> None:
        if schema.stored != self.schema:
            raise PlanError("the query was made for another schema: build it with the schema of the data")
        for part in self.firsts.values():
            part.check_groups()

    def _like(self, name: str) -> Sql:
        """A part whose design is that of this one."""
        return self.parts[name] if self._dated.mentions else self.firsts[self.blocks[name].level]

    def finish(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self._like(name).finish(item) for name, item in raw.items()}

    def error(self, raw: Mapping[str, Any], alpha: float) -> dict[str, Any]:
        return {name: self._like(name).error(item, alpha) for name, item in raw.items()}

    def read(self, raws: Mapping[str, Any]) -> SeriesReading:
        """What can be told of the blocks that were released, by the names of their parts."""
        for name in raws:
            checks.one_of(name, "block", tuple(self.parts))
        return SeriesReading.of({name: self._like(name) for name in raws}, self.blocks, raws)

    def expected_errors(self, alpha: float) -> Mapping[str, float]:
        parts = self.firsts.items()
        return {f"a {name}: {title}": w for name, part in parts for title, w in part.expected_errors(alpha).items()}

    def expected_work(self) -> Mapping[str, str]:
        """Beside the price, which is that of all days: what a unit loses that has rows on fewer."""
        words = "{}, for a {} with rows on no more days"
        return {
            f"{many} day{'s'[: many > 1]}": words.format(event_text(self.event_of(many), self.delta), self.unit.noun)
            for many in _FEW
            if many < self.days
        }

    @property
    def error_words(self) -> str:
        return next(iter(self.firsts.values())).error_words

    def afterwards(self) -> tuple[str, ...]:
        return "windows, roll-ups and orders of what the blocks released", *super().afterwards()

    def explain(self) -> list[str]:
        lines = [f"one release for each block of {self.days} days from {self.start}, by {self.column}, each made once"]
        for level, part in self.firsts.items():
            many = len(self._names(level))
            count = "all" if self.counted(level) is None else f"the first {self.most[level]} that it is in"
            lines += [f"{level}: {many} blocks, a unit counts in {count}", *(f"{level}: {x}" for x in part.explain())]
        return lines

    @classmethod
    def sample(cls) -> SqlSeries:
        columns = {"id": key(), "ward": category(("east", "west")), "day": date("2026-01-05", "2026-01-06")}
        tables = Schema({"visits": Table(columns, unit="id")})
        query, part = "SELECT ward, COUNT(*) FROM visits GROUP BY ward", {"epsilon": 1, "limits": Limits(rows=2)}
        most, options = {"day": 1}, {"day": part}
        return cls(**of_query(query, tables, Unit("user:id"), "day", "2026-01-05", 2, most, options))


def of_query(
    query: str,
    schema: Schema,
    unit: Unit,
    column: str,
    start: str,
    days: int,
    most: Mapping[str, int],
    options: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """Fields of a series: the first part of each level, with the options of the level."""
    dated, first = DatedQuery.of(query, schema, unit, column), day_of(start, "start")
    for part in options.values():  # refused in its own words
        told_columns(Sql(text=query, schema=schema, protects=unit, **part))
    firsts: dict[str, Sql] = {}
    for level, blocks in most_blocks(start, days, most).items():
        every = blocks_within(first, days, level)
        text = dated.of_block(every[0], first, None if blocks >= len(every) or unit.of == "row" else blocks)
        firsts[level] = Sql(text=text, schema=schema, protects=unit, **options[level])
    return {"firsts": firsts, "query": query, "column": column, "start": start, "days": days, "most": most}


def most_blocks(start: str, days: int, most: Any) -> Named[str, int]:
    """Levels, and in how many of their blocks a unit counts, checked."""
    checks.whole(days, "days", most=MOST_DAYS)
    if not isinstance(most, Mapping) or not most:
        raise checks.refuse("most", most, "levels such as {'day': 30}, with how many blocks a unit counts in")
    first = day_of(start, "start")
    if first.year + 5 > dt.MAXYEAR:
        raise checks.refuse("start", start, "a day of this age")
    for level, blocks in most.items():
        every = len(blocks_within(first, days, checks.one_of(level, "level", LEVELS)))
        if not every:
            raise ArgumentError(f"no whole {level} lies in {days} days from {start}: leave it out, or take more days.")
        checks.whole(blocks, f"most of {level}", most=every)
    return Named(most)


def _anew(part: Sql, text: str) -> Sql:
    return replace(part, text=text)


def _with_text(part: Sql, text: str) -> Sql:
    """The same plan of another text, which is known to be right."""
    other = object.__new__(Sql)
    for item in fields(part):
        object.__setattr__(other, item.name, text if item.name == "text" else getattr(part, item.name))
    return other
