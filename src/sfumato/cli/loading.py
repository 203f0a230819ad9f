"""What a command needs is loaded at once, without looking for garbage meanwhile: there is none, and each look goes over
all that was loaded so far."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import LazyLoader, find_spec, module_from_spec

_UNUSED = ("numpy.f2py", "numpy.testing")
"""scipy asks numpy for everything that it has, and so for a compiler of Fortran and for tools of tests, which take as
long as the rest of numpy. They come when somebody looks into them."""


@contextmanager
def loading(*, numbers: bool = False) -> Iterator[None]:
    """Around imports. What they leave stays to the end of the process, so it is not looked at again.

    numbers  are numpy and scipy among them?
    """
    before = gc.isenabled()
    gc.disable()
    try:
        if numbers:
            for name in _UNUSED:
                _postpone(name)
        yield
    finally:
        gc.freeze()
        if before:
            gc.enable()


def _postpone(name: str) -> None:
    """Let a module be there without having been read."""
    package, _, short = name.rpartition(".")
    if name in sys.modules or (spec := find_spec(name)) is None or spec.loader is None:
        return
    spec.loader = LazyLoader(spec.loader)
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    setattr(sys.modules[package], short, module)
