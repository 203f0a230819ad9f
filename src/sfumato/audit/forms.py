"""Tables in every form that somebody may hold one in, with ordinary cells and awkward ones: what the law of reading is
tried on.

The law: every cell is read by itself, totally. Rows that are added or taken away change no other row's value, nor the
label of its key, and no row decides whether a release ends. It is tried by reading ordinary rows with one awkward row
beside them and without it, by the way of core plans (`Rows`) and by the engine.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..rows import Rows
from ..schema import Column, Table, category, date, flag, key, moment, real, tensor, whole
from ..sources import Csv, Examples, columns_of, connect, source
from ..sources.base import needed
from ..sources.files import ENCODINGS
from ..sources.reading import flag_of, with_flags
from ..units import Unit

MEANINGS: dict[str, Column] = {
    "real": real(-10, 100),
    "whole": whole(-(2**63), 2**63 - 1),
    "category": category(["12", "ab", "7"]),
    "flag": flag(),
    "key": key(),
    "date": date("1990-01-01", "2030-12-31"),
    "moment": moment("1990-01-01", "2030-12-31"),
}
"""A column of every type that a schema knows; each reads the same cells."""

TABLE = Table({"n": whole(0, 10**6), **MEANINGS})
IMAGES = Table({"n": whole(0, 10**6), "tensor": tensor((2,), -1, 9)})


@dataclass(frozen=True)
class Kind:
    """One type of column: how it is made of raw cells, ordinary ones, and awkward ones.

    form    how a table of such columns lies there; one of FORMS
    table   the schema; its first column numbers the rows
    """

    name: str
    form: str
    column: Callable[[Sequence[Any]], Any]
    ordinary: tuple[Any, ...]
    awkward: tuple[Any, ...]
    table: Table = TABLE

    def stored(self, cells: Sequence[Any], numbers: Sequence[int], folder: Path) -> Any:
        """A table of these cells, in each of its columns, as what a Private is given."""
        values, numbered = self.column(list(cells)), list(numbers)
        text = self.form.startswith("csv")
        column = [str(number).encode("utf-16-le" if "utf-16" in self.form else "utf-8") for number in numbered]
        return FORMS[self.form](dict.fromkeys(self.table.columns, values) | {"n": column if text else numbered}, folder)

    def neighbours(self, places: Sequence[str] = ("middle",)) -> Iterator[tuple[str, list[Any], list[int]]]:
        """No row at all, and one awkward row beside the ordinary ones, or alone: words, cells, and numbers of rows."""
        count = len(self.ordinary)
        at = {"start": 0, "middle": count // 2, "end": count}
        yield "no row at all", [], []
        for (place, cell), where in itertools.product(enumerate(self.awkward), places):
            cells, numbers = ([], []) if where == "alone" else (list(self.ordinary), list(range(count)))
            cells.insert(at.get(where, 0), cell)
            numbers.insert(at.get(where, 0), count)
            yield f"awkward cell {place}, {where}", cells, numbers


def read_as_rows(kind: Kind, data: Any, reads: Callable[..., Rows] = Rows.read) -> dict[int, tuple[Any, ...]]:
    """What every column makes of each row, by the row's number: the way of core plans."""
    rows = reads(kind.table, columns_of(kind.table, source(data)), Unit())
    columns = [_values(rows, name) for name in kind.table.columns]
    return {row[0]: row[1:] for row in zip(*columns, strict=True)}


def changed_by(
    kind: Kind, places: Sequence[str], folder: Path, reads: Callable[[Kind, Any], dict[int, tuple[Any, ...]]]
) -> Iterator[str]:
    """Which awkward rows change how an ordinary one is read, or whether any is; no word of what they hold."""
    ordinary = range(len(kind.ordinary))
    alone = reads(kind, kind.stored(kind.ordinary, ordinary, folder))
    if set(alone) != set(ordinary):
        yield f"{kind.name}: ordinary rows are lost"
    for words, cells, numbers in kind.neighbours(places):
        try:
            data = kind.stored(cells, numbers, folder)
        except Exception:  # a cell that this form cannot hold: nobody can give it
            continue
        try:
            beside = reads(kind, data)
        except BaseException as problem:  # polars' panics are no Exceptions
            if isinstance(problem, KeyboardInterrupt | SystemExit):
                raise
            yield f"{kind.name}: {words} fails the reading"
            continue
        if any(repr(beside.get(number)) != repr(alone.get(number)) for number in numbers if number in ordinary):
            yield f"{kind.name}: {words} changes how others are read"


def _values(rows: Rows, name: str) -> list[Any]:
    series = rows[name]
    there = series.values[series.valid]
    values = iter(there.tolist() if series.keys is None else series.label(there))
    return [next(values) if valid else None for valid in series.valid.tolist()]


def read_by_engine(kind: Kind, data: Any) -> dict[int, tuple[Any, ...]]:
    """The same, as SQL sees it; behind the values, which cells cannot be read."""
    exp = needed("sqlglot").exp
    names = [name for name in kind.table.columns if name != "tensor"]
    flags = [flag for name in names if (flag := flag_of(kind.table, name)) is not None]
    opened = connect({"data": (kind.table, source(data))}, threads=1)
    rows: dict[int, tuple[Any, ...]] = {}
    try:
        for wanted, view in ((names, "data"), ([names[0], *flags], with_flags("data"))):
            columns = [exp.column(name, quoted=True) for name in wanted]
            table = opened.run(exp.select(*columns).from_(exp.to_table(view)))
            for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
                rows[row[0]] = rows.get(row[0], ()) + row[1:]
    finally:
        opened.close()
    return rows


def _in_arrow(columns: Mapping[str, Any], folder: Path) -> Any:
    return needed("pyarrow").table(dict(columns))


def _in_parquet(columns: Mapping[str, Any], folder: Path) -> Any:
    path = folder / "law.parquet"
    needed("pyarrow.parquet").write_table(_in_arrow(columns, folder), path)
    return path


def _in_duckdb(columns: Mapping[str, Any], folder: Path) -> Any:
    path = folder / "law.duckdb"
    path.unlink(missing_ok=True)
    opened = needed("duckdb").connect(str(path))
    try:
        opened.register("given", _in_arrow(columns, folder))
        opened.execute("CREATE TABLE data AS SELECT * FROM given")
    finally:
        opened.close()
    return path


def _in_pandas(columns: Mapping[str, Any], folder: Path) -> Any:
    return needed("pandas").DataFrame(dict(columns))


def _in_polars(columns: Mapping[str, Any], folder: Path) -> Any:
    return needed("polars").DataFrame(dict(columns))


def _by_name(columns: Mapping[str, Any], folder: Path) -> Any:
    return dict(columns)


def _in_csv(encoding: str, quote: str, **written: Any) -> Callable[[Mapping[str, Any], Path], Any]:
    plain = "utf-16-le" if encoding == "utf-16" else encoding
    sign = written.get("delimiter", ",")

    def write(columns: Mapping[str, Any], folder: Path) -> Any:
        lines = [sign.join(columns).encode(plain)]
        lines += [sign.encode(plain).join(cells) for cells in zip(*columns.values(), strict=True)]
        path = folder / "law.csv"
        path.write_bytes("\n".encode(plain).join([*lines, b""]))
        return Csv(path, encoding=encoding, quote=quote, **written)

    return write


WRITTEN: dict[str, dict[str, Any]] = {
    "with commas": {"delimiter": ";", "decimal": ",", "thousands": ".", "dates": ("%d.%m.%Y", "%d.%m.%y %H:%M")},
    "with blanks": {
        "trim": True,
        "null": "?",
        "thousands": " ",
        "dates": {"date": "%B %d %Y", "moment": ["%m/%d/%Y %I:%M %p", "%Y%m%d"]},
    },
}
"""Ways in which people write cells, by words for them: what `Csv` takes for each."""


class _Records:
    """A data set of map style."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self._columns = columns

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def __getitem__(self, place: int) -> dict[str, Any]:
        return {name: _raised(cells[place]) for name, cells in self._columns.items()}


def _raised(cell: Any) -> Any:
    if isinstance(cell, Exception):  # a record that cannot be read
        raise cell
    return cell


FORMS: dict[str, Callable[[Mapping[str, Any], Path], Any]] = {
    "arrow": _in_arrow,
    "polars": _in_polars,
    "pandas": _in_pandas,
    "columns": _by_name,
    "examples": lambda columns, folder: Examples(_Records(columns)),
    "parquet": _in_parquet,
    "duckdb": _in_duckdb,
    **{
        f"csv {encoding}{' unquoted' * (not quote)}": _in_csv(encoding, quote)
        for encoding in ENCODINGS
        for quote in ('"', "")
    },
    **{
        f"csv utf-8{' unquoted' * (not quote)} {words}": _in_csv("utf-8", quote, **written)
        for words, written in WRITTEN.items()
        for quote in ('"', "")
    },
}
