"""Draws that nobody has decided yet: arithmetic with public numbers keeps them so, and a look at them decides."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

from ..exact import Enclosure
from ..laws import Law
from . import chances


@lru_cache(maxsize=4096)
def _mass(law: Law, low: int | None, high: int | None) -> Enclosure:
    return chances.between(law, low, high)


class Decider(Protocol):
    """Who decides."""

    def at_least(self, drawn: Drawn, limit: Any) -> bool: ...
    def value(self, variable: Variable) -> int: ...


@dataclass
class Variable:
    """A draw that nobody has decided yet: it is known to lie in [low, high]."""

    law: Law
    low: int | None = None
    high: int | None = None
    joined: bool = False  # compared with the shared draw: its probability is in the vector

    def mass(self) -> Enclosure:
        return _mass(self.law, self.low, self.high)


class Drawn:
    """sign * draw + offset, where the draw is decided as late as it can be."""

    __slots__ = ("offset", "sign", "source", "variable")

    def __init__(self, source: Decider, variable: Variable, offset: int = 0, sign: int = 1) -> None:
        self.source, self.variable, self.offset, self.sign = source, variable, offset, sign

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Drawn):
            return int(self) + int(other)
        return Drawn(self.source, self.variable, self.offset + int(other), self.sign)

    __radd__ = __add__

    def __neg__(self) -> Drawn:
        return Drawn(self.source, self.variable, -self.offset, -self.sign)

    def __sub__(self, other: Any) -> Any:
        return self + (-other)

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __ge__(self, other: Any) -> bool:
        return self.source.at_least(self, other)

    def __gt__(self, other: Any) -> bool:
        return not self <= other

    def __le__(self, other: Any) -> bool:
        return -self >= -other

    def __lt__(self, other: Any) -> bool:
        return not self >= other

    def __eq__(self, other: object) -> bool:
        return int(self) == other

    __hash__ = None  # type: ignore[assignment]

    def __int__(self) -> int:
        return self.sign * self.source.value(self.variable) + self.offset

    __index__ = __int__

    def __float__(self) -> float:
        return float(int(self))

    def __abs__(self) -> int:
        return abs(int(self))

    def __mul__(self, other: Any) -> Any:
        return int(self) * other

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return int(self) / other
