"""One decision from one endless uniform number.

U is uniform on (0, 1), an endless string of bits of which 64 are drawn at a time. Somebody who can decide from an
interval asks for more bits until the interval decides; what comes out has exactly the law of the decision made from the
whole of U, and no probability is ever rounded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from .bits import Bits

T = TypeVar("T")

Decide = Callable[[int, int], T | None]
"""(n, precision) -> the answer that every U in [n, n+1) / 2^precision gives, or None if they do not all agree."""


def settle(decide: Decide[T], bits: Bits) -> T:
    n = precision = 0
    while True:
        n = (n << 64) | int(bits.words(1)[0])
        precision += 64
        decided = decide(n, precision)
        if decided is not None:
            return decided
