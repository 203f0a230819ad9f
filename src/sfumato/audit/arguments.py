"""What the user of an audit hands in, refused before anything runs where it cannot be meant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .. import checks
from ..noise import Bits, Noise, SecureBits
from ..plan import Plan
from ..rows import Rows
from ..schema import Table
from .engines import Remembering
from .neighbours import Pair
from .stages import data_for, stage_of, table_for

_ONE = "raw columns or a frame, such as {'age': [30.0, 41.0]}"
_COLUMNS = "pairs of neighbouring tables as raw columns, such as [({'age': [30.0]}, {'age': [30.0, 41.0]})]"


def bits_of(bits: Bits | None) -> Bits:
    """The source of randomness; secure bits where none is given."""
    if bits is None:
        return SecureBits()
    if isinstance(bits, type) or not callable(getattr(bits, "words", None)):
        raise checks.refuse("bits", bits, "a source of bits, such as SeededBits(7) of sfumato.noise, or leave it out")
    return bits


def noise_of(noise: Noise | None) -> Noise:
    """The noise of a training; secure where none is given."""
    if noise is None:
        return Noise(SecureBits())
    checks.instance(noise, Noise, "noise", "a Noise, such as Noise(SeededBits(7)) of sfumato.noise, or leave it out")
    return noise


def check_progress(progress: Any) -> None:
    """Refuse what cannot be told how far the audit is."""
    if progress is not None and not callable(progress):
        raise checks.refuse("progress", progress, "a function of a share and a text, or leave it out")


def listed(pairs: Any) -> list[Any]:
    """Pairs of any kind, one by one."""
    if isinstance(pairs, str | Mapping) or not isinstance(pairs, Iterable):
        raise checks.refuse("pairs", type(pairs).__name__, "a list of pairs of neighbours")
    return list(pairs)


def check_maker(noise: Any) -> None:
    """Refuse what cannot make noise out of bits: a `Noise` itself is made already."""
    if not callable(noise):
        raise checks.refuse("noise", noise, "what makes noise out of bits: the class Noise, or a planted bug like it")


def table_pair(plan: Plan[Any, Any], table: Table, pair: Any) -> Pair:
    """A pair of the user's own: a `Pair`, or two tables as raw columns or frames."""
    if isinstance(pair, Pair):
        return pair
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise checks.refuse("pairs", type(pair).__name__, _COLUMNS)
    if all(isinstance(each, Rows | Remembering) for each in pair):  # as a plan runs on them
        return Pair(pair[0], pair[1], "a given pair")
    one, other = (stage_of(plan).fitting(table, _columns(each)) for each in pair)
    return Pair(data_for(plan, table, one), data_for(plan, table, other), "a given pair", (one, other))


def one_table(plan: Plan[Any, Any], table: Any, schema: Table | None) -> Any:
    """What a plan runs on, from raw columns or a frame."""
    read = table_for(plan) if schema is None else schema
    return data_for(plan, read, stage_of(plan).fitting(read, _columns(table, "table"), "table"))


def _columns(table: Any, name: str = "pairs") -> dict[str, list[Any]]:
    by_column = isinstance(table, Mapping) or (hasattr(table, "columns") and hasattr(table, "__getitem__"))
    if not by_column:
        raise checks.refuse(name, type(table).__name__, _COLUMNS if name == "pairs" else _ONE)
    names = list(table) if isinstance(table, Mapping) else list(table.columns)
    try:
        return {str(name): list(table[name]) for name in names}
    except TypeError:  # a cell where a column is asked for
        raise checks.refuse(name, type(table).__name__, _COLUMNS if name == "pairs" else _ONE) from None
