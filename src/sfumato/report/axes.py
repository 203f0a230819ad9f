"""Where plots are drawn: the axes given, or new ones of matplotlib, asked for on first use."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .. import checks
from ..errors import SfumatoError, install_line


def axes(ax: Any = None) -> Any:
    """The axes given, or new ones."""
    if ax is not None:
        if not callable(getattr(ax, "plot", None)):
            raise checks.refuse("ax", ax, "axes of matplotlib, or leave it out")
        return ax
    try:
        pyplot = import_module("matplotlib.pyplot")
    except ImportError:
        raise SfumatoError(f"plots need matplotlib: {install_line('plots')}") from None
    return pyplot.subplots(layout="constrained")[1]
