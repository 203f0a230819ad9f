"""Files that the engine cannot read to the end, written anew into the session's own folder.

DuckDB fails on a file as a whole where one cell is not what the format says: bytes 0x80 to 0x9f in latin-1, half of a
character in UTF-16, text in Parquet that is not UTF-8, a time of day beyond 24 hours, milliseconds that do not fit into
microseconds. Whether a release fails would then depend on one row.

Claim: what is written anew holds every other cell as it was. CSV goes through a codec that is total, and what is no
text becomes bytes that are no UTF-8, whose row the reader leaves out. Parquet keeps its columns and rows; text becomes
bytes, which the session reads as text cell by cell (`reading`), and of the others only the cells named above change. So
it does not matter to any other row which of the two files was read. Which one it was shows in the time it takes.
"""

from __future__ import annotations

import codecs
from pathlib import Path
from typing import Any

import numpy as np

from ..cells import plain_arrow
from .base import needed

_PIECE = 2**22
_NO_TEXT = b"\xff"
_DAY = {"s": 86_400, "ms": 86_400 * 10**3, "us": 86_400 * 10**6, "ns": 86_400 * 10**9}


def in_utf_8(file: str, encoding: str, target: str) -> str:
    """The file that holds the text in UTF-8: the given one, or `target`, which is written."""
    if encoding == "utf-8":
        return file
    decoder = codecs.getincrementaldecoder(encoding)(errors="surrogatepass")
    with Path(file).open("rb") as source, Path(target).open("wb") as anew:
        while piece := source.read(_PIECE):
            anew.write(decoder.decode(piece).encode("utf-8", "surrogatepass"))
        try:
            anew.write(decoder.decode(b"", final=True).encode("utf-8", "surrogatepass"))
        except UnicodeDecodeError:  # it ends within a character
            anew.write(_NO_TEXT)
    return target


def without_odd_cells(file: str, names: list[str], target: str) -> None:
    """These columns of a Parquet file, piece by piece, so that the engine reads all of them to the end."""
    arrow, parquet = needed("pyarrow"), needed("pyarrow.parquet")
    with parquet.ParquetFile(file, coerce_int96_timestamp_unit="us") as source:
        kinds = {name: _column(source.schema_arrow.field(name).type, arrow) for name in names}
        with parquet.ParquetWriter(target, arrow.schema(list(kinds.items())), write_statistics=False) as anew:
            for batch in source.iter_batches(columns=names):
                columns = [_cells(batch.column(name), arrow) for name in names]
                anew.write_batch(arrow.record_batch(columns, names=names))


def _column(kind: Any, arrow: Any) -> Any:
    return _cells(arrow.nulls(0, kind), arrow).type


def _cells(cells: Any, arrow: Any) -> Any:
    types = arrow.types
    if not types.is_nested(cells.type):
        cells = plain_arrow(cells)
    kind = cells.type
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return cells.cast(arrow.large_binary())
    if types.is_time(kind):
        width = arrow.int32() if types.is_time32(kind) else arrow.int64()
        numbers = cells.view(width).fill_null(-1).to_numpy()
        return arrow.array(numbers, type=width, mask=(numbers < 0) | (numbers >= _DAY[kind.unit])).view(kind)
    if types.is_timestamp(kind) and kind.unit == "ms":
        most = (2**63 - 2) // 1000
        hidden = cells.is_null().to_numpy(zero_copy_only=False)
        exact = np.clip(cells.view(arrow.int64()).fill_null(0).to_numpy(), -most, most) * 1000
        return arrow.array(exact, type=arrow.int64(), mask=hidden).view(arrow.timestamp("us", tz=kind.tz))
    return cells
