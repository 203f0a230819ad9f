"""Which store an address means. "<name>://..." is opened by the file <name>.py of this folder; a path by SQLite's.

A store that can be opened by its address has a function

    open_store(place, *, create, wait, read_only) -> Store

and a new one is found by the name of its file, without a line here.
"""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from . import sqlite
from .base import Store

_ALSO = {"postgresql": "postgres"}  # as its own tools write it


def _file_of(place: str | Path) -> str | None:
    """The module that opens an address; None for a path. What no file here opens is a path, however it looks."""
    scheme, mark, _ = str(place).partition("://")
    name = _ALSO.get(scheme, scheme)
    module = f"{__package__}.{name}"
    if not mark or not re.fullmatch("[a-z_]+", name) or find_spec(module) is None:
        return None
    return module if hasattr(import_module(module), "open_store") else None


def is_address(place: str | Path) -> bool:
    """Does it name a store by its scheme? Then nothing is known of a file or of what lies beside it."""
    return _file_of(place) is not None


def open_store(place: str | Path, *, create: bool = False, wait: float = 30.0, read_only: bool = False) -> Store:
    """The store at that place.

    create     make a new one where there is none
    wait       seconds to wait for other writers
    read_only  for auditors: writes nothing
    """
    module = _file_of(place)
    opens = sqlite if module is None else import_module(module)
    store: Store = opens.open_store(place, create=create, wait=wait, read_only=read_only)
    return store
