"""Dates as text: STRFTIME(d, '%Y-%m'). Made of parts and digits, so that no engine's own formats are asked.

NULL in gives NULL out. The texts are public where the parts are: all months between the column's bounds, or the twelve
months of any year. What is listed may hold texts that no date has, which costs an empty group and nothing else.
"""

from __future__ import annotations

import datetime
import itertools
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from sqlglot import exp

from .... import times
from ....sources.vocabulary import call
from ...kinds import Kind, Typed
from ...refusal import QueryError
from .. import trees
from . import dates
from .operands import MANY, Reader, Rule, constant_text


@dataclass(frozen=True)
class _Sign:
    """A sign of a format.

    unit   the part of a date that it writes
    width  how many digits it has
    ends   (lowest, highest) number of the part; (0, 0) for years, of which there are too many
    shown  the part of a date that is public
    """

    unit: str
    width: int
    ends: tuple[int, int]
    shown: Callable[[datetime.date], int]

    def text(self, moment: exp.Expression) -> exp.Expression:
        number = trees.cast(exp.Extract(this=exp.var(self.unit.upper()), expression=moment.copy()), "BIGINT")
        padded = trees.binary(exp.DPipe, trees.text("000"), trees.cast(number, "VARCHAR"), safe=True)
        return call("last_characters", padded, trees.whole(self.width))

    def digits(self, number: int) -> str:
        return f"{number:04d}"[-self.width :]


_SIGNS: dict[str, _Sign] = {
    "%Y": _Sign("year", 4, (0, 0), lambda day: day.year),
    "%m": _Sign("month", 2, (1, 12), lambda day: day.month),
    "%d": _Sign("day", 2, (1, 31), lambda day: day.day),
    "%j": _Sign("doy", 3, (1, 366), lambda day: day.timetuple().tm_yday),
    "%H": _Sign("hour", 2, (0, 23), lambda _: 0),
    "%M": _Sign("minute", 2, (0, 59), lambda _: 0),
    "%S": _Sign("second", 2, (0, 59), lambda _: 0),
}
_LONG = {"%F": "%Y-%m-%d", "%T": "%H:%M:%S"}
_TIMES = ("hour", "minute", "second")


def written_date(node: exp.TimeToStr, read: Reader) -> Typed:
    """STRFTIME(d, '%Y-%m'), its format standing in the query."""
    example = "STRFTIME(d, '%Y-%m')"
    pattern = constant_text(node.args["format"], "The format", example, 100)
    for sign, longer in _LONG.items():
        pattern = pattern.replace(sign, longer)
    pieces = [piece for piece in re.split("(%.)", pattern, flags=re.DOTALL) if piece]
    wrong = next((piece for piece in pieces if piece.startswith("%") and piece not in (*_SIGNS, "%%")), None)
    if wrong is not None or not any(piece in _SIGNS for piece in pieces):
        signs = ", ".join((*_SIGNS, *_LONG))
        raise QueryError(f"A format is made of {signs} and other characters.", f"write {example}", node)
    date = read.time(node.this)
    moment = trees.cast(date.tree, "TIMESTAMP") if date.kind.is_date else date.tree
    texts = [_SIGNS[piece].text(moment) if piece in _SIGNS else trees.text(piece[-1:] if piece == "%%" else piece)
             for piece in pieces]  # fmt: skip
    tree = texts[0]
    for text in texts[1:]:
        tree = trees.binary(exp.DPipe, tree, text, safe=True)
    return Typed(tree, Kind("text", values=_texts(pieces, date.kind), nullable=date.kind.nullable))


def _texts(pieces: list[str], kind: Kind) -> tuple[str, ...] | None:
    """All that can come of it, where these are few."""
    signs = [_SIGNS[piece] for piece in pieces if piece in _SIGNS]
    if all(sign.ends[1] for sign in signs):
        if math.prod(sign.ends[1] - sign.ends[0] + 1 for sign in signs) > MANY:
            return None
        ranges = [range(sign.ends[0], sign.ends[1] + 1) for sign in signs]
        return tuple(dict.fromkeys(_spelt(pieces, numbers) for numbers in itertools.product(*ranges)))
    if kind.lower is None or kind.upper is None or any(sign.unit in _TIMES for sign in signs):
        return None
    units = {sign.unit for sign in signs}
    finest = "day" if units & {"day", "doy"} else "month" if "month" in units else "year"
    days = Kind("date", _in_days(kind, int(kind.lower)), _in_days(kind, int(kind.upper)))
    starts = dates.starts_between(days, finest)
    if starts is None:
        return None
    return tuple(dict.fromkeys(_spelt(pieces, [sign.shown(day) for sign in signs]) for day in starts))


def _in_days(kind: Kind, end: int) -> Fraction:
    moment = times.read(end, kind.type)
    return Fraction(times.days(moment.date() if isinstance(moment, datetime.datetime) else moment) or 0)


def _spelt(pieces: list[str], numbers: tuple[int, ...] | list[int]) -> str:
    rest = iter(numbers)
    texts = [_SIGNS[piece].digits(next(rest)) if piece in _SIGNS else piece[-1:] if piece == "%%" else piece
             for piece in pieces]  # fmt: skip
    return "".join(texts)


RULES: dict[type[exp.Expression], Rule] = {exp.TimeToStr: written_date}
