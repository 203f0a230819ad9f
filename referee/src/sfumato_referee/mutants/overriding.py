"""A subclass of the library's with one inner place of it changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from sfumato.audit.seams import Seam

C = TypeVar("C", bound=type)


def overriding(seam: Seam, make: Callable[[Any], Any]) -> Callable[[C], C]:
    """Above a class: it has `make(what it inherits)` at that place, and its parent stays as it is."""

    def changed(cls: C) -> C:
        setattr(cls, seam.name, make(getattr(cls, seam.name)))
        return cls

    return changed
