"""How ClickHouse is asked in the suite over engines, and where it means something else."""

from __future__ import annotations

from typing import Any

from sfumato.sources.clickhouse_settings import BEHIND
from tests.sources.dbapi import clickhouse_engine


def asked_of_clickhouse(text: str) -> list[tuple[Any, ...]]:
    return list(clickhouse_engine.run(text + BEHIND))


CLICKHOUSE_WRONG: dict[str, Any] = {}
