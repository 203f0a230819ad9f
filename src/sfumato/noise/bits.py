"""Where randomness comes from.

`SecureBits` is an AES-256-CTR key stream, keyed from the operating system's entropy pool: as hard to predict as AES,
at memory speed. A process that forks, or an object that is copied or unpickled, starts a fresh key, so no two streams
are ever equal. `SeededBits` repeats itself and exists for tests; a Curator refuses it.
"""

from __future__ import annotations

import hashlib
import os
import threading
import weakref
from typing import Any, Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from ..checks import whole

Words = NDArray[np.uint64]

_POOL = 1 << 12  # words kept ready, so that a scalar draw does not pay for a call into the cipher
_REKEY = 1 << 26  # words under one key: far below the 2^64-block birthday bound of a 128-bit counter mode


class Bits(Protocol):
    """A source of independent uniform 64-bit words."""

    grade: str  # "exact": fit for a release; "seeded": repeatable, tests only

    def words(self, count: int) -> Words: ...


class _Stream:
    """The key stream of one key. Words are handed out once and wiped from the pool."""

    def __init__(self, key: bytes) -> None:
        self._encrypt = Cipher(algorithms.AES(key[:32]), modes.CTR(key[32:48])).encryptor()
        self._pool = np.empty(0, dtype=np.uint64)
        self._next = 0
        self.drawn = 0

    def fill(self, out: Words) -> None:
        out[:] = 0
        view = out.view(np.uint8).data
        self._encrypt.update_into(view, view)

    def words(self, count: int) -> Words:
        self.drawn += count
        if count >= _POOL:
            out = np.empty(count, dtype=np.uint64)
            self.fill(out)
            return out
        if self._next + count > self._pool.size:  # what is left over is dropped: words are cheap
            self._pool = np.empty(_POOL, dtype=np.uint64)
            self.fill(self._pool)
            self._next = 0
        part = self._pool[self._next : self._next + count]
        out = part.copy()
        part[:] = 0  # a later look at memory does not find noise already drawn
        self._next += count
        return out


class SecureBits:
    """The source for releases: AES-256-CTR keyed by the operating system."""

    grade = "exact"

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stream: _Stream | None = None
        _SOURCES.add(self)

    def words(self, count: int) -> Words:
        with self._lock:
            stream = self._stream
            if stream is None or stream.drawn > _REKEY:
                stream = self._stream = _Stream(os.urandom(48))
            return stream.words(count)

    def renew(self) -> None:
        """Forget the key. Called in every forked child, where parent and child would otherwise draw alike."""
        self._lock = threading.Lock()  # the parent's lock may have been held at the moment of the fork
        self._stream = None

    def __reduce__(self) -> tuple[type[SecureBits], tuple[()]]:
        return SecureBits, ()  # copies and pickles carry no key: they start their own

    def __repr__(self) -> str:
        return "SecureBits()"


class SeededBits:
    """A repeatable source, for tests only. A Curator refuses it."""

    grade = "seeded"

    def __init__(self, seed: int) -> None:
        self.seed = whole(seed, "seed", least=0, most=2**128)
        self._stream = _Stream(hashlib.sha384(b"sfumato test stream %d" % self.seed).digest())

    def words(self, count: int) -> Words:
        return self._stream.words(count)

    def __reduce__(self) -> tuple[Any, ...]:
        return SeededBits, (self.seed,)

    def __repr__(self) -> str:
        return f"SeededBits({self.seed})"


_SOURCES: weakref.WeakSet[SecureBits] = weakref.WeakSet()


def _renew_all() -> None:
    for source in _SOURCES:
        source.renew()


os.register_at_fork(after_in_child=_renew_all)
