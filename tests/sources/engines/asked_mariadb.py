"""How MariaDB is asked in the suite over engines, and where it means something else."""

from __future__ import annotations

import functools
from decimal import Decimal
from typing import Any

from sfumato.sources.mariadb_server import SETTINGS
from tests.sources.dbapi import mariadb_server


@functools.cache
def _opened() -> Any:
    opened = mariadb_server.opened()
    with opened.cursor() as cursor:
        for setting in SETTINGS:
            cursor.execute(setting)
    return opened


def asked_of_mariadb(text: str) -> list[tuple[Any, ...]]:
    """Its numbers of any width are decimals to the driver."""
    with _opened().cursor() as cursor:
        cursor.execute(text)
        return [tuple(int(cell) if isinstance(cell, Decimal) else cell for cell in row) for row in cursor.fetchall()]


MARIADB_WRONG: dict[str, Any] = {}
