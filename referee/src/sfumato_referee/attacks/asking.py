"""What the attacks on SQL share: tables of all source kinds, a query's numbers before the noise, how far neighbours
move them beside what was declared, and how a release ends for who watches it.

The mutants of `mutants.queries` are asked in the same way.
"""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.accounting.filters import Budget
from sfumato.audit import surface
from sfumato.audit.sql_losses import Overheard, apart, beside_noise, without_noise
from sfumato.curator import Curator
from sfumato.errors import SfumatoError, guarded
from sfumato.ledger.memory import MemoryLedger
from sfumato.noise import Noise, SecureBits
from sfumato.plan import Plan
from sfumato.private import Private
from sfumato.query import Sql, sql
from sfumato.schema import Schema, Table
from sfumato.sources import Source, connect, source
from sfumato.sources.base import needed
from sfumato.units import Unit

Columns = Mapping[str, Any]
Asks = Callable[..., Plan[Any, Any]]
"""Makes a plan of (text, schema, unit=..., epsilon=..., limits=..., ...): `sql`, or a planted bug."""

Opens = Callable[[Mapping[str, tuple[Table, Any]]], Any]
"""Opens sources as a session over their tables: `connect`, or a planted bug."""

Place = Callable[[Any], Source]
"""Makes an Arrow table one of an engine's own."""

_PLACE: ContextVar[Place | None] = ContextVar("place", default=None)

KINDS = ("columns", "arrow", "pandas", "polars", "parquet", "csv", "duckdb")


@contextmanager
def placed(place: Place) -> Iterator[None]:
    """Attacks within keep their tables there, whatever kind of source they would take."""
    before = _PLACE.set(place)
    try:
        yield
    finally:
        _PLACE.reset(before)


def here() -> bool:
    """Are tables kept in the engine of this process?"""
    return _PLACE.get() is None


def source_of(data: Any) -> Source:
    """The source of these cells: in the engine where attacks keep their tables now, or as they are."""
    place = _PLACE.get()
    return source(data) if place is None or isinstance(data, Source) else place(_arrow(data))


def _arrow(data: Any) -> Any:
    """Cells of several types in one column are texts, as a database would have them."""
    arrow = needed("pyarrow")
    if not isinstance(data, Mapping):
        return data
    columns = {}
    for name, cells in data.items():
        try:
            columns[name] = arrow.array(cells)
        except (arrow.ArrowInvalid, arrow.ArrowTypeError):
            columns[name] = arrow.array([None if cell is None else str(cell) for cell in cells])
    return arrow.table(columns)


def stored(columns: Columns, kind: str, folder: Path, name: str = "t", *, group: int = 100_000) -> Any:
    """The columns as one kind of source; `group` rows to a row group of a Parquet file."""
    if not here():
        return source_of(columns)
    if kind == "columns":
        return dict(columns)
    arrow = needed("pyarrow").table({each: needed("pyarrow").array(cells) for each, cells in columns.items()})
    if kind == "arrow":
        return arrow
    if kind == "pandas":
        return needed("pandas").DataFrame({each: np.asarray(cells) for each, cells in columns.items()})
    if kind == "polars":
        return needed("polars").from_arrow(arrow)
    path = folder / f"{name}.{kind}"
    path.unlink(missing_ok=True)
    if kind == "parquet":
        needed("pyarrow.parquet").write_table(arrow, path, row_group_size=group)
    elif kind == "csv":
        needed("pyarrow.csv").write_csv(arrow, path)
    else:
        opened = needed("duckdb").connect(str(path))
        opened.register("given", arrow)
        opened.execute(f'CREATE TABLE "{name}" AS SELECT * FROM given')
        opened.close()
    return path


def before_noise(
    plan: Any, tables: Mapping[str, Any], threads: int | None = None, opens: Opens = connect
) -> dict[str, Any]:
    """What a release would be without its noise, every group shown, with the leaves that quantiles are read from."""
    sources = {name: (plan.schema.table(name), source_of(each)) for name, each in tables.items()}
    session: Any = opens(sources) if threads is None else connect(sources, threads=threads)
    try:
        if isinstance(plan, Sql) and plan.fixed is not None:
            plan.fixed.__dict__["threshold"] = -(2**62)
        return without_noise(plan, session)
    finally:
        session.close()


def moved(plan: Any, one: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    """How far two tables without noise lie apart, as a share of what a unit may move: at most 1 for neighbours."""
    design = plan.fixed
    squared = design.blur.kind == "gaussian"

    def length(differences: Any) -> float:
        sizes = [abs(float(each)) for each in differences]
        return math.sqrt(math.fsum(size**2 for size in sizes)) if squared else math.fsum(sizes)

    whole = float(sum(each.share for each in design.sums))
    parts = []
    for coordinate in design.sums:
        ratio = length(apart(one, other, "numbers", coordinate.measure.name)) / float(coordinate.reach)
        parts.append(float(coordinate.share) / whole * (ratio**2 if squared else ratio))
    shares = [math.sqrt(math.fsum(parts)) if squared else math.fsum(parts)]
    if design.votes is not None:
        shares.append(length(apart(one, other, "numbers", "units")) / float(design.keys_reach))
    for name in design.questions.distinct:
        shares.append(sum(map(abs, apart(one, other, "distinct", name))) / design.limits.values)
    for here, there in zip(one["leaves"], other["leaves"], strict=True):
        places = here.keys() | there.keys()
        gaps = (here.get(place, 0) - there.get(place, 0) for place in places)
        shares.append(length(gaps) / float(design.rows_reach * 2**design.bits))
    return max(*shares, beside_noise(plan, one, other))


@dataclass(frozen=True)
class Seen:
    """A release as an outsider sees it: how it ended, in which words, what was charged, and the answer's shape."""

    status: str
    words: str
    charged: str
    shape: tuple[Any, ...]
    trace: str = ""

    def same(self, other: Seen) -> bool:
        return (self.status, self.words, self.charged, self.shape) == (
            other.status,
            other.words,
            other.charged,
            other.shape,
        )


def watched(asks: Asks, text: str, schema: Schema, unit: Unit, tables: Mapping[str, Any], **options: Any) -> Seen:
    """Ask, and watch. A planted bug has no JSON, so it runs as a curator would run it, without a ledger."""
    ledger = MemoryLedger({"d": Budget(epsilon=10, delta=0.01)})
    sources = {name: source_of(each) for name, each in tables.items()}
    data = sources if len(sources) > 1 else next(iter(sources.values()))
    status, shape, words, trace = "answered", (), "", ""
    try:
        private = Private("d", data, unit=unit, schema=schema)
        plan = asks(text, schema, unit=unit, **options)
        if type(plan) is Sql:
            shape = _shape(Curator(private, ledger).release(plan).raw)
        else:
            shape = _shape(guarded(lambda: _ran(plan, tables)))
    except SfumatoError as error:
        status, words = type(error).__name__, str(error)
        trace = "".join(traceback.format_exception(error))
    return Seen(status, words, str(ledger.spent("d")), shape, trace)


def _ran(plan: Any, tables: Mapping[str, Any]) -> Any:
    session = connect({name: (plan.schema.table(name), source_of(each)) for name, each in tables.items()})
    try:
        return surface.run(plan, Overheard(session), Noise(SecureBits()))
    finally:
        session.close()


def _shape(raw: Mapping[str, Any]) -> tuple[Any, ...]:
    """Columns, types and groups, without the numbers."""
    numbers = {part: sorted(raw.get(part, {})) for part in ("numbers", "distinct", "ranked", "binned")}
    kinds = {name: sorted({type(each).__name__ for each in column}) for name, column in raw["keys"].items()}
    return raw["groups"], str(numbers), str(kinds), str(sorted(raw["keys"].items()))


def one_table(columns: Mapping[str, Any], unit: str | None = None) -> Schema:
    """A schema of one private table, t."""
    return Schema({"t": Table(columns, unit=unit)})


LIBRARY: Asks = sql
