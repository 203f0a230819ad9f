"""A fault with a name, and the few ways to plant one. Only ever called in a child process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sfumato.audit.seams import Seam

_OURS = ("sfumato", "sfumato_referee")  # the detectors import by name, too
AREAS = ("noise", "reading", "clipping", "splitting", "accountants", "ledger", "SQL", "door", "training")


@dataclass(frozen=True)
class Mutant:
    """One fault of the library.

    area    the part of the library that it is in
    name    what is wrong, in a few words
    plant   plants it in this process, for good
    by      the detectors that are tried on it, by name
    needs   a package that the fault lies behind
    """

    area: str
    name: str
    plant: Callable[[], None]
    by: tuple[str, ...]
    needs: str | None = None


def swap(owner: Any, name: str, spoil: Callable[[Any], Any]) -> None:
    """Put `spoil(what is there)` in the place of an attribute. It must be there: else the fault fits nowhere."""
    original = vars(owner)[name]
    if isinstance(original, property):
        assert original.fget is not None
        setattr(owner, name, property(spoil(original.fget)))
    elif isinstance(original, cached_property):
        substitute = cached_property(spoil(original.func))
        substitute.__set_name__(owner, name)
        setattr(owner, name, substitute)
    elif isinstance(original, classmethod | staticmethod):
        setattr(owner, name, type(original)(spoil(original.__func__)))
    else:
        setattr(owner, name, spoil(original))


def plant(seam: Seam, spoil: Callable[[Any], Any]) -> None:
    """The same for a place that the library names itself (`sfumato.audit.seams`), for it has no public name."""
    swap(seam.owner(), seam.name, spoil)


def swap_everywhere(function: Any, spoil: Callable[[Any], Any]) -> None:
    """The same for a function of a module, wherever it was imported to by name."""
    substitute, places = spoil(function), 0
    for module in [each for name, each in sys.modules.items() if name.partition(".")[0] in _OURS]:
        for name in [name for name, value in vars(module).items() if value is function]:
            setattr(module, name, substitute)
            places += 1
    if not places:
        raise LookupError("the function is in no module of the library")


class Shelf(list[Mutant]):
    """The faults of one area; `@shelf.fault(name, by=...)` above the function that plants one puts it there."""

    def __init__(self, area: str, *, needs: str | None = None) -> None:
        super().__init__()
        self.area, self.needs = area, needs

    def fault(self, name: str, *, by: tuple[str, ...]) -> Callable[[Callable[[], None]], Callable[[], None]]:
        def put(plant: Callable[[], None]) -> Callable[[], None]:
            self.append(Mutant(self.area, name, plant, by, self.needs))
            return plant

        return put


def plans(*names: str) -> tuple[str, ...]:
    """The suite of conformance on these plans, as detectors."""
    return tuple(f"check_plan {name}" for name in names)


def verifies(*names: str) -> tuple[str, ...]:
    """Exact verification of these plans, as detectors."""
    return tuple(f"verify {name}" for name in names)


def attacks(*ids: str) -> tuple[str, ...]:
    """These attacks, as detectors."""
    return tuple(f"attack {id}" for id in ids)
