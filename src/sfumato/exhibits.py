"""Things that show themselves in notebooks and plots name who draws them, and know no more of it.

    class Budget(Exhibit):
        _card = "sfumato.cards:budget"

Drawing (HTML, matplotlib) is loaded when somebody looks: paying and releasing need none of it. The names stand here
below what they name, as texts, and a test follows every one (docs/decisions/0044-what-is-drawn.md).
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar


def draw(by: str, what: Any, *more: Any) -> Any:
    """What the function `by`, written as "module:function", makes of a thing."""
    module, _, function = by.partition(":")
    return getattr(import_module(module), function)(what, *more)


class Exhibit:
    """What a notebook shows as a card, drawn by the function that `_card` names."""

    __slots__ = ()
    _card: ClassVar[str]

    def _repr_html_(self) -> str:
        return str(draw(self._card, self))
