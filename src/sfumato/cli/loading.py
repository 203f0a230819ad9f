"""What a command needs is loaded at once, without looking for garbage meanwhile: there is none, and each look goes over
all that was loaded so far."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loading() -> Iterator[None]:
    """Around imports. What they leave stays to the end of the process, so it is not looked at again."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if before:
            gc.enable()
