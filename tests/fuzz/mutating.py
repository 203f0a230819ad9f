"""Inputs changed at random: bytes, numbers, pieces of others. For machines without a coverage-guided fuzzer."""

from __future__ import annotations

import random

_PIECES = (
    b"\0", b"\xff", b"\xed\xa0\x80", b"9" * 500, b"1e999", b"-1", b"nan", b"[" * 200, b"(" * 200, b'"', b"'", b"\n",
    b"\t",
    b"&a", b"*a", b"{}", b"null", b"1/0", b"\xe2\x80\xa8", b"0" * 50, b".", b"e-400", b"--", b"/*", b";", b"\\u0000",
)  # fmt: skip
_LONGEST = 4000


def mutated(draw: random.Random, pool: list[bytes]) -> bytes:
    """One of the pool with a few changes; now and then bytes from nowhere, or choices."""
    if not pool or draw.random() < 0.05:
        return draw.randbytes(draw.randrange(80))
    if draw.random() < 0.2:
        return b"\0" + draw.randbytes(draw.randrange(1, 80))
    data = draw.choice(pool)
    for _ in range(draw.choice((1, 1, 2, 4, 8))):
        data = _changed(draw, data, pool)
    return data[:_LONGEST]


def _changed(draw: random.Random, data: bytes, pool: list[bytes]) -> bytes:
    at, end = sorted(draw.randrange(len(data) + 1) for _ in range(2))
    end = min(end, at + 40)
    way = draw.randrange(6)
    if way == 0:
        return data[:at] + draw.choice(_PIECES) + data[at:]
    if way == 1:
        return data[:at] + draw.choice(_PIECES) + data[end:]
    if way == 2:
        return data[:at] + data[end:]
    if way == 3:
        return data[:end] + data[at:end] * draw.choice((1, 2, 50)) + data[end:]
    if way == 4:
        return data[:at] + draw.randbytes(1) + data[at + 1 :]
    other = draw.choice(pool)
    return data[:at] + other[draw.randrange(len(other) + 1) :]
