"""Chance outside mechanisms, while a pipeline is recorded or replayed: made the same in every run, and counted.

What a pipeline draws by itself (a shuffle, the first weights of a model, noise of its own) must not be taken for a
difference that the data made. So the global generators start every run alike, and give them back as they were. A second
seed then tells whether a number has such noise in it. Nothing is drawn here.
"""

from __future__ import annotations

import hashlib
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Any

from ...noise import SecureBits
from ...noise.bits import Words

_DEFAULT = "default_rng"


class Outside:
    """What was drawn outside mechanisms: words of secure noise, and where the other generators came to stand."""

    def __init__(self) -> None:
        self.words = 0
        self.generators: list[Any] = []
        self.stand: tuple[str, ...] = ()


@contextmanager
def together(seed: int, inside: Callable[[], int]) -> Iterator[Outside]:
    """Every generator that is not a mechanism's starts from the seed. `inside` says how many mechanisms run now."""
    seen = Outside()
    with ExitStack() as stack:
        shared = [module for name in ("random", "numpy.random") if (module := sys.modules.get(name)) is not None]
        for module in shared:
            stack.enter_context(_global(module, seed))
        if (numpys := sys.modules.get("numpy.random")) is not None:
            stack.enter_context(_fresh(numpys, seed, seen))
        stands: list[Callable[[], Any]] = [_reader(module) for module in shared]
        if "torch" in sys.modules:
            from ...learn.chance import apart

            stack.enter_context(apart(seed % 2**62))
            torch = sys.modules["torch"]
            stands.append(lambda: torch.get_rng_state().numpy())
        stack.enter_context(_counting(seen, inside))
        yield seen
        seen.stand = tuple(_hash(read()) for read in stands)
        seen.stand += tuple(_hash(each.bit_generator.state) for each in seen.generators)


def _hash(state: Any) -> str:
    return hashlib.sha256(_written(state)).hexdigest()


def _written(state: Any) -> bytes:
    if isinstance(state, dict):
        state = tuple(state.items())
    if isinstance(state, tuple):
        return b";".join(_written(each) for each in state) if len(state) < 100 else repr(state).encode()
    return bytes(state.tobytes()) if hasattr(state, "tobytes") else repr(state).encode()


def _reader(module: ModuleType) -> Any:
    return getattr(module, "getstate", None) or getattr(module, "get_state", None)


@contextmanager
def _global(module: ModuleType, seed: int) -> Iterator[None]:
    """The one generator that all of a process shares, `random`'s or numpy's."""
    read = _reader(module)
    write: Any = getattr(module, "setstate", None) or getattr(module, "set_state", None)
    before = read()
    module.seed(seed % 2**32)
    try:
        yield
    finally:
        write(before)


@contextmanager
def _fresh(module: ModuleType, first: int, seen: Outside) -> Iterator[None]:
    """numpy's generators that are made without a seed: the k-th of this thread is the k-th of every run."""
    original, thread = getattr(module, _DEFAULT), threading.get_ident()

    def same(seed: Any = None) -> Any:  # called as numpy's own is, by keyword too
        if seed is not None or threading.get_ident() != thread:
            return original(seed)
        seen.generators.append(original([first % 2**64, len(seen.generators)]))
        return seen.generators[-1]

    setattr(module, _DEFAULT, same)
    try:
        yield
    finally:
        setattr(module, _DEFAULT, original)


@contextmanager
def _counting(seen: Outside, inside: Callable[[], int]) -> Iterator[None]:
    """Secure bits stay as they are: nobody's release is to get noise that can be known. They are only counted."""
    words, thread = SecureBits.words, threading.get_ident()

    def watched(self: SecureBits, count: int) -> Words:
        if threading.get_ident() == thread and not inside():
            seen.words += count
        return words(self, count)

    SecureBits.words = watched  # type: ignore[method-assign]
    try:
        yield
    finally:
        SecureBits.words = words  # type: ignore[method-assign]
