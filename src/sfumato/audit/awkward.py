"""Types of columns that tables may hold, each with ordinary cells and with awkward ones: as somebody's data may hold
them, whether their makers allow them or not."""

from __future__ import annotations

import datetime as dt
import decimal
import itertools
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from ..sources.base import needed
from .forms import FORMS, IMAGES, Kind

_FAR = 2**62
_MOST = 2**63 - 1


def arrow_types() -> dict[str, tuple[Any, tuple[Any, ...], tuple[Any, ...]]]:
    """Arrow's types by name, with raw cells: numbers of time as numbers, texts as bytes."""
    pa = needed("pyarrow")
    types: dict[str, tuple[Any, tuple[Any, ...], tuple[Any, ...]]] = {}

    def put(kind: Any, ordinary: tuple[Any, ...], *awkward: Any) -> None:
        types[str(kind)] = kind, ordinary, (None, *awkward)

    for bits, sign in itertools.product((8, 16, 32, 64), ("", "u")):
        low, high = (0, 2**bits - 1) if sign else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        put(getattr(pa, f"{sign}int{bits}")(), (12, 7, 2**53 + 1 if bits == 64 else 1), low, high)
    put(pa.bool_(), (True, False))
    for kind in (pa.float32(), pa.float64()):
        put(kind, (12.0, 0.5, 7.0), float("nan"), float("inf"), -0.0, 1e300)
    put(pa.float16(), (np.float16(12), np.float16(0.5)), np.float16("nan"), np.float16("inf"))
    for name, digits in (("decimal32", 7), ("decimal64", 16), ("decimal128", 38), ("decimal256", 70)):
        if hasattr(pa, name):
            put(getattr(pa, name)(digits, 2), (decimal.Decimal("12.00"), decimal.Decimal("0.10")),
                decimal.Decimal(10) ** (digits - 3))  # fmt: skip
    put(pa.decimal128(5, -2), (decimal.Decimal("1200"),), decimal.Decimal("9999900"))
    put(pa.date32(), (20_000, 0), 2**31 - 1, -(2**31), 2**30, 3_000_000)
    put(pa.date64(), (20_000 * 86_400_000, 0), _FAR, -_FAR, 5)
    for unit, ticks in (("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)):
        for zone in (None, "UTC", "Europe/Rome"):
            put(pa.timestamp(unit, tz=zone), (1_700_000_000 * ticks, ticks // 2, 0), _FAR, -_FAR, _MOST, -_MOST - 1)
        put(pa.duration(unit), (90 * ticks, 0), _FAR, -_FAR, _MOST, 1)
    put(pa.time32("s"), (28_800, 0), -1, 86_400, 2**31 - 1)
    put(pa.time32("ms"), (28_800_250, 0), -1, 86_400_000)
    put(pa.time64("us"), (28_800_250_000, 0), -1, _FAR)
    put(pa.time64("ns"), (28_800_250_000_000, 0), 1, -1, _FAR)
    words = (b"12", b"ab", b"2020-01-01 08:00:00", b"yes")
    odd = (b"", b"\xff", b"\xed\xa0\x80", b"12.0", b"1e999", b"\0", b"x" * 100_000)
    for kind in (pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()):
        put(kind, words, *odd)
    put(pa.binary(2), (b"12", b"ab"), b"\xff\xff", b"\0\0")
    put(pa.null(), (None, None))
    for name in ("list_", "large_list", "list_view", "large_list_view"):
        put(getattr(pa, name)(pa.int64()), ([1, 2], [3]), [], [None])
    put(pa.list_(pa.int64(), 2), ([1, 2], [3, 4]), [None, 5])
    put(pa.struct([("a", pa.int64())]), ({"a": 1}, {"a": 2}), {"a": None})
    put(pa.map_(pa.string(), pa.int64()), ([("a", 1)], [("b", 2)]), [])
    put(pa.month_day_nano_interval(), ((1, 2, 3), (0, 0, 5)), (2**31 - 1, 0, _MOST))
    return types


def arrow_array(kind: Any, cells: Sequence[Any]) -> Any:
    """An Arrow array of raw cells, unchecked as its makers may leave it."""
    pa = needed("pyarrow")
    types = pa.types
    if types.is_temporal(kind) and not types.is_interval(kind):
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        return pa.array(cells, type=width).view(kind)
    for text, raw in ((pa.string(), pa.binary()), (pa.large_string(), pa.large_binary()),
                      (pa.string_view(), pa.binary_view())):  # fmt: skip
        if kind == text:
            return pa.Array.from_buffers(text, len(cells), pa.array(cells, type=raw).buffers())
    return pa.array(cells, type=kind)


def _packings() -> dict[str, Callable[[Any], Any]]:
    pa, compute = needed("pyarrow"), needed("pyarrow.compute")
    return {
        "chunks": lambda array: pa.chunked_array([array.slice(place, 1) for place in range(len(array))], array.type),
        "dictionary": lambda array: array.dictionary_encode(),
        "runs": compute.run_end_encode,
    }


def _of_arrow(form: str) -> Iterator[Kind]:
    """Arrow's types as one form holds them, which may be the file of another maker."""
    for name, (kind, ordinary, awkward) in arrow_types().items():
        if _holds(form, kind, ordinary):
            yield Kind(f"{form}: {name}", form, _made(form, kind), ordinary, awkward)


def _packed() -> Iterator[Kind]:
    types, pa = arrow_types(), needed("pyarrow")
    for name, (packing, pack) in itertools.product(
        ("string", "large_string", "binary", "int64", "double", "timestamp[us]", "date32[day]"), _packings().items()
    ):
        kind, ordinary, awkward = types[name]
        yield Kind(f"arrow: {name} in {packing}", "arrow", partial(_pack, pack, kind), ordinary, awkward)
    for name, storage, ordinary, awkward in (
        ("uuid", pa.binary(16), (bytes(range(16)), bytes(16)), (None, b"\xff" * 16)),
        ("json_", pa.string(), (b"12", b"ab"), (None, b"\xff")),
        ("bool8", pa.int8(), (1, 0), (None, 7)),
    ):
        if hasattr(pa, name):
            extend = partial(pa.ExtensionArray.from_storage, getattr(pa, name)())
            yield Kind(f"arrow: {name}", "arrow", partial(_pack, extend, storage), ordinary, awkward)
    for dense in (False, True):
        union = partial(_pack, partial(_in_union, dense=dense), pa.int64())
        yield Kind(f"arrow: union{', dense' * dense}", "arrow", union, (1, 2), (None,))


def _pack(pack: Callable[[Any], Any], kind: Any, cells: Sequence[Any]) -> Any:
    return pack(arrow_array(kind, cells))


def _in_union(array: Any, *, dense: bool) -> Any:
    pa = needed("pyarrow")
    children = pa.array([0] * len(array), pa.int8())
    if dense:
        return pa.UnionArray.from_dense(children, pa.array(range(len(array)), pa.int32()), [array])
    return pa.UnionArray.from_sparse(children, [array])


def _made(form: str, kind: Any) -> Callable[[Sequence[Any]], Any]:
    if form == "polars":
        return partial(_pack, needed("polars").from_arrow, kind)
    return partial(_pack, _in_pandas if form == "pandas" else _same, kind)


def _in_pandas(array: Any) -> Any:
    pandas = needed("pandas")
    cells = pandas.arrays.ArrowExtensionArray(needed("pyarrow").chunked_array([array]))
    return pandas.Series(cells, dtype=pandas.ArrowDtype(array.type))


def _same(array: Any) -> Any:
    return array


def _holds(form: str, kind: Any, ordinary: tuple[Any, ...]) -> bool:
    """Can this form hold the type at all?"""
    if form == "arrow":
        return True
    if form == "polars" and needed("pyarrow").types.is_decimal256(kind):  # it panics, on the terminal
        return False
    try:
        with tempfile.TemporaryDirectory() as folder:
            FORMS[form]({"x": _made(form, kind)(ordinary)}, Path(folder))
    except Exception:
        return False
    return True


class Odd:
    """Raises whatever is asked of it."""

    def __str__(self) -> str:
        raise RuntimeError

    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    __hash__ = None  # type: ignore[assignment]


_OBJECTS = (12, "ab", "2020-01-01 08:00:00", dt.datetime(2020, 1, 1, 8), 0.5, True, dt.date(2020, 1, 1))
_ODD_OBJECTS = (
    None, float("nan"), 10**400, "\ud800", b"\xff", decimal.Decimal("snan"), Odd(), [1], {"a": 1}, np.datetime64("NaT"),
    dt.datetime(9999, 12, 31, tzinfo=dt.timezone(dt.timedelta(hours=-5))), np.datetime64(_FAR, "s"), dt.timedelta.max,
    12.0, "12", 1j,
)  # fmt: skip


def _of_python() -> Iterator[Kind]:
    yield Kind("columns: list", "columns", list, _OBJECTS, _ODD_OBJECTS)
    yield Kind("columns: objects", "columns", _objects, _OBJECTS, _ODD_OBJECTS)
    yield Kind("examples: records", "examples", list, _OBJECTS, (*_ODD_OBJECTS, ValueError("no such record")))
    for name, ordinary, awkward in (
        ("i8", (12, 7), (_MOST, -_MOST - 1)),
        ("u8", (12, 7), (2**64 - 1,)),
        ("f8", (12.0, 0.5), (float("nan"), float("inf"), -0.0)),
        ("f2", (12.0, 0.5), (float("nan"), float("inf"))),
        ("g", (12.0, 0.5), (float("nan"), float("inf"))),
        ("?", (True, False), ()),
        ("c16", (1 + 1j, 2), (complex("nan"),)),
        ("U20", ("12", "ab"), ("", "\ud800", "x" * 20)),
        ("S20", (b"12", b"ab"), (b"", b"\xff")),
        *((f"M8[{unit}]", (0, 5), ("NaT", _FAR, -_FAR, _MOST)) for unit in ("D", "h", "s", "ms", "us", "ns")),
        *((f"m8[{unit}]", (0, 5), ("NaT", _FAR, -_FAR)) for unit in ("D", "s", "us", "ns")),
    ):
        yield Kind(f"columns: {name}", "columns", partial(_numpy, name), ordinary, awkward)
    yield Kind("columns: masked", "columns", _masked, (12, 7), (None,))


def _masked(cells: Sequence[Any]) -> Any:
    return np.ma.array([cell or 0 for cell in cells], mask=[cell is None for cell in cells], dtype=np.int64)


def _numpy(dtype: str, cells: Sequence[Any]) -> Any:
    if dtype[0] in "mM":
        return np.array([-_MOST - 1 if cell == "NaT" else cell for cell in cells], dtype=np.int64).view(dtype)
    return np.array(cells, dtype=dtype)


def _objects(cells: Sequence[Any]) -> Any:
    array = np.empty(len(cells), dtype=object)
    array[:] = list(cells)
    return array


def _of_pandas() -> Iterator[Kind]:
    pandas = needed("pandas")
    day = dt.datetime(2020, 1, 1, 8)
    for dtype, ordinary, awkward in (
        ("object", _OBJECTS, _ODD_OBJECTS),
        ("Int64", (12, 7), (None, _MOST)),
        ("UInt8", (12, 7), (None, 255)),
        ("Float64", (12.0, 0.5), (None, float("inf"))),
        ("boolean", (True, False), (None,)),
        ("string[python]", ("12", "ab"), (None, "")),
        ("string[pyarrow]", ("12", "ab"), (None, "")),
        ("str", ("12", "ab"), (None, "")),
        ("datetime64[ns]", (day, day), (None,)),
        ("datetime64[us]", (day, day), (None, dt.datetime(9999, 12, 31))),
        ("datetime64[us, Europe/Rome]", (day, day), (None,)),
        ("timedelta64[us]", (dt.timedelta(1), dt.timedelta(0, 5)), (None, dt.timedelta(10**8))),
        ("category", ("12", "ab"), (None, "", 7, day)),
        ("Sparse[int64]", (12, 0), (_MOST,)),
        ("period[D]", ("2020-01-01", "2021-01-01"), (None,)),
    ):
        yield Kind(f"pandas: {dtype}", "pandas", partial(pandas.Series, dtype=dtype), ordinary, awkward)
    numbers = pandas.CategoricalDtype([12, 7])
    yield Kind(
        "pandas: category of numbers",
        "pandas",
        partial(pandas.Series, dtype=numbers),
        (12, 7),
        (None,),
    )


def _of_polars() -> Iterator[Kind]:
    polars = needed("polars")
    for name, dtype, ordinary, awkward in (
        ("Object", polars.Object, _OBJECTS[:3], (None, "\ud800", b"\xff", [1])),
        ("Int128", polars.Int128, (12, 7), (None, 2**126)),
        ("UInt128", polars.UInt128, (12, 7), (None, 2**127)),
        ("Categorical", polars.Categorical, ("12", "ab"), (None, "")),
        ("Enum", polars.Enum(["12", "ab", ""]), ("12", "ab"), (None, "")),
        ("Array", polars.Array(polars.Int64, 2), ([1, 2], [3, 4]), (None, [None, 5])),
        ("Decimal", polars.Decimal(30, 2), (decimal.Decimal("12.00"), decimal.Decimal("0.10")), (None,)),
    ):
        yield Kind(f"polars: {name}", "polars", partial(polars.Series, name, dtype=dtype), ordinary, awkward)


_WRITTEN = (
    (
        "with commas",
        ("1.234,5", "12,5", "7", "ab", "31.12.2020", "1.2.20 23:59", "yes", "-1.234.567"),
        ("1.5", "1.23,4", ".", ",", "1,2,3", "1.234.5", ",5", "5,", "1e5,5", "1,5e5", "1.234,5e400", "--1,5",
         "infinity", "31.02.2020", "1.2.20", "1.2.0000", "1.2.99999", "epoch", "01.01.2020 24:00", "01.01.20 25:61",
         "%d.%m.%Y", "9" * 400 + ",5", "1." + "000." * 200 + "000", "\u0661,5", "1,5\u00a0"),
    ),
    (
        "with blanks",
        (" 1 234.5", "12 ", " 7", " ab ", "January 3 2020", " 12/31/2020 11:59 PM", "20200131", "?"),
        (" ? ", " ", "\u00a0", "1\u202f234", "1\u00a0234 567", "1  234", "1 23", "1 2345", "- 5", "Jan 3 2020",
         "Smarch 3 2020", "february 30 2020", "13/31/2020 01:00 PM", "12/31/2020 13:00 PM", "00000000", "99999999",
         "0x10", "inf", "1 000 e5"),
    ),
)  # fmt: skip


def _of_text() -> Iterator[Kind]:
    words = ("12", "ab", "2020-01-01 08:00:00", "yes", "é")
    for encoding, odd in (
        ("utf-8", (b"\xff", b"\xed\xa0\x80", b"\xc3", b"a,b,c", b"x" * 3_000_000)),
        ("latin-1", (bytes(range(0x80, 0xA0)), b"\x85", b"\xff", b"a,b,c")),
        (
            "utf-16",
            (b"\x00\xd8", b"\x00\xdc", b"\x00\xdc\x00\xd8", "x".encode("utf-16-le") * 10, "\ufeff".encode("utf-16-le")),
        ),
    ):
        plain = "utf-16-le" if encoding == "utf-16" else encoding
        cells = tuple(word.encode(plain) for word in words)
        shared = tuple(text.encode(plain) for text in ("", "\0", "\r", "1e999", "nan", " 12"))
        for quote in ("", " unquoted"):
            form = f"csv {encoding}{quote}"
            quotes = ('"'.encode(plain),) if quote else ('"a"'.encode(plain), 'a"b'.encode(plain))
            yield Kind(form, form, list, cells, (*shared, *odd, *quotes))
            if encoding == "utf-8":
                for way, ordinary, awkward in _WRITTEN:
                    yield Kind(
                        f"{form} {way}", f"{form} {way}", list,
                        tuple(word.encode() for word in ordinary),
                        (*shared, *quotes, *(word.encode() for word in awkward)),
                    )  # fmt: skip


def _of_tensors() -> Iterator[Kind]:
    pa = needed("pyarrow")
    pairs: tuple[Any, ...] = ([1, 2], [3, 4])
    odd: tuple[Any, ...] = (None, [None, 5], [2**40, -(2**40)])
    whole_lists = {
        "fixed": pa.list_(pa.int64(), 2),
        "any size": pa.list_(pa.int64()),
        "float": pa.list_(pa.float32(), 2),
    }
    for name, kind in whole_lists.items():
        cells = (*odd, [1], []) if name == "any size" else odd
        for form in ("arrow", "parquet"):
            yield Kind(f"{form}: tensors, {name}", form, partial(pa.array, type=kind), pairs, cells, IMAGES)
    objects = (*odd, [1], "ab", Odd(), [float("nan"), 1], np.zeros((3, 3)))
    yield Kind("columns: tensors", "columns", _objects, pairs, objects, IMAGES)
    yield Kind("examples: tensors", "examples", list, pairs, (*objects, ValueError("no such record")), IMAGES)


@cache
def kinds(form: str) -> list[Kind]:
    """All types that a table of this form may hold, as far as the installed libraries know them."""
    if form.startswith("csv"):
        return [kind for kind in _of_text() if kind.form == form]
    makers = {"arrow": _packed, "pandas": _of_pandas, "polars": _of_polars}
    own = [*makers.get(form, _of_python)(), *_of_tensors()]
    shared = _of_arrow(form) if form in ("arrow", "polars", "pandas", "parquet", "duckdb") else []
    return [*(kind for kind in own if kind.form == form), *shared]
