"""Streams of bits: no two alike, unless a seed asks for it."""

from __future__ import annotations

import copy
import hashlib
import os
import pickle
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from sfumato.errors import ArgumentError
from sfumato.noise import Noise, SecureBits, SeededBits, bits

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")


def in_child(work: Callable[[], bytes]) -> bytes:
    """What `work` returns in a forked child."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn where other threads run
        pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.write(write, work())
            status = 0
        finally:
            os._exit(status)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        found = pipe.read()
    _, status = os.waitpid(pid, 0)
    assert status == 0
    return found


def all_differ(parts: list[bytes]) -> bool:
    """No two words of any of the parts are equal."""
    words = np.frombuffer(b"".join(parts), dtype=np.uint64)
    return np.unique(words).size == words.size


@forks
def test_forked_children_draw_nothing_alike() -> None:
    source = SecureBits()
    before = source.words(100).tobytes()  # a stream that is under way, with words left in its pool
    children = [in_child(lambda: source.words(100).tobytes()) for _ in range(8)]
    assert all_differ([before, *children, source.words(100).tobytes()])


@forks
def test_without_the_renewal_a_fork_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bits.SecureBits, "renew", lambda self: None)
    source = SecureBits()
    source.words(100)
    children = [in_child(lambda: source.words(100).tobytes()) for _ in range(2)]
    assert children[0] == children[1] == source.words(100).tobytes()


@forks
def test_a_grandchild_is_a_stranger_too() -> None:
    source = SecureBits()
    source.words(1)

    def child() -> bytes:
        mine = source.words(50).tobytes()
        return mine + in_child(lambda: source.words(50).tobytes())

    family = in_child(child)
    assert len(family) == 800 and all_differ([family, source.words(50).tobytes()])


@forks
def test_a_child_does_not_wait_for_a_lock_that_was_held_at_the_fork() -> None:
    source = SecureBits()
    source.words(1)
    with source._lock:
        assert len(in_child(lambda: source.words(4).tobytes())) == 32


@pytest.mark.parametrize(
    "clone", [copy.copy, copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))], ids=["copy", "deepcopy", "pickle"]
)
def test_copies_and_pickles_start_their_own_stream(clone: Callable[[Any], Any]) -> None:
    source = SecureBits()
    before = source.words(100)
    clones = [clone(source) for _ in range(8)]
    assert all(type(c) is SecureBits and c is not source for c in clones)
    assert all_differ([before.tobytes(), source.words(100).tobytes(), *(c.words(100).tobytes() for c in clones)])
    inside = clone(Noise(source))
    assert inside._bits is source or all_differ([inside._bits.words(50).tobytes(), source.words(50).tobytes()])


def test_a_pickle_carries_no_key() -> None:
    source = SecureBits()
    empty = pickle.dumps(source)
    source.words(5000)
    assert pickle.dumps(source) == empty and len(empty) < 100


def test_threads_share_a_source_without_sharing_words() -> None:
    source, found = SecureBits(), []
    start = threading.Barrier(8)

    def work() -> None:
        start.wait()
        found.append(b"".join(source.words(n % 7 + 1).tobytes() for n in range(2000)))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert len(found) == 8 and all_differ(found)


def test_words_never_repeat_across_pools_blocks_and_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bits, "_REKEY", 10_000)
    source, keys, parts = SecureBits(), [], []
    for size in (1, 7, bits._POOL - 1, bits._POOL, bits._POOL + 1, 3, 20_000, 1, 1, 5000) * 4:
        parts.append(source.words(size).tobytes())
        keys.append(source._stream and source._stream._encrypt)  # kept, so that no address is used twice
        assert len(parts[-1]) == 8 * size
    assert all_differ(parts) and len({id(key) for key in keys}) > 2


def test_a_key_is_retired_after_its_share_of_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bits, "_REKEY", 100)
    source = SecureBits()
    source.words(60)
    first = source._stream
    source.words(60)
    assert source._stream is first
    source.words(1)
    assert source._stream is not first


def test_the_stream_is_aes_256_ctr_of_its_key() -> None:
    key = hashlib.sha384(b"sfumato test stream 5").digest()
    encryptor = Cipher(algorithms.AES(key[:32]), modes.CTR(key[32:])).encryptor()
    assert SeededBits(5).words(10_000).tobytes() == encryptor.update(bytes(80_000))


def test_words_handed_out_are_wiped_from_the_pool() -> None:
    source = SecureBits()
    taken = source.words(100)
    stream = source._stream
    assert stream is not None
    assert taken.any() and not stream._pool[:100].any() and stream._pool[100:].all()
    taken[:] = 1
    assert not stream._pool[:100].any()  # a copy was handed out, not a view
    source.words(50)
    assert not stream._pool[:150].any()


def test_two_sources_differ_and_words_look_uniform() -> None:
    one, other = SecureBits().words(1 << 16), SecureBits().words(1 << 16)
    assert all_differ([one.tobytes(), other.tobytes()])
    ones = np.unpackbits(one.view(np.uint8)).reshape(-1, 64).sum(axis=0)
    assert np.abs(ones.astype(np.int64) - 2**15).max() < 6.5 * 2**7  # 6.5 standard deviations for each of 64 places


@pytest.mark.parametrize("sizes", [[1000], [1, 999], [10] * 100, [4096, 5], [5000, 5000]])
def test_seeds_repeat(sizes: list[int]) -> None:
    one, other = SeededBits(7), SeededBits(7)
    for size in sizes:
        assert one.words(size).tobytes() == other.words(size).tobytes()
    assert SeededBits(8).words(4).tobytes() != SeededBits(7).words(4).tobytes()


def test_a_seeded_source_pickles_to_the_start_of_its_seed() -> None:
    source = SeededBits(7)
    first = source.words(4).tobytes()
    assert pickle.loads(pickle.dumps(source)).words(4).tobytes() == first
    assert copy.deepcopy(source).words(4).tobytes() == first


def test_grades_are_told_apart() -> None:
    assert SecureBits().grade == Noise(SecureBits()).grade == "exact"
    assert SeededBits(1).grade == Noise(SeededBits(1)).grade == "seeded"
    assert repr(SecureBits()) == "SecureBits()" and repr(SeededBits(3)) == "SeededBits(3)"


@pytest.mark.parametrize("seed", [-1, 2**128 + 1, 1.0, "1", None, True])
def test_a_bad_seed_is_refused_by_name(seed: Any) -> None:
    with pytest.raises(ArgumentError, match=r"^seed = "):
        SeededBits(seed)


def test_no_words_are_no_words() -> None:
    assert SecureBits().words(0).size == 0 and SeededBits(1).words(0).dtype == np.uint64
