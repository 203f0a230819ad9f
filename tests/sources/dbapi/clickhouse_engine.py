"""A real ClickHouse for the tests: `chdb`, the engine as a library within the process. It is loaded when somebody asks
for it, and has its tables in a folder of its own."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from collections.abc import Sequence
from typing import Any

import pytest


@functools.cache
def _folder() -> str:
    folder = tempfile.mkdtemp(prefix="chdb")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def opened() -> Any:
    """A connection of chdb's driver."""
    dbapi = pytest.importorskip("chdb.dbapi", reason="needs chdb: pip install chdb")
    return dbapi.connect(_folder())


@functools.cache
def _administrator() -> Any:
    return opened()


def run(*statements: str) -> Sequence[tuple[Any, ...]]:
    """Statements one after the other; the rows of the last."""
    cursor = _administrator().cursor()
    for statement in statements:
        cursor.execute(statement)
    return [tuple(row) for row in cursor.fetchall()] if cursor.description else []
