"""Queries are read back by `verify`: one that paid for another event than its own is named."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from sfumato import Schema, Unit, schema, sql
from sfumato.ledger.proof import reprice
from tests.ledger.test_replay_rules import Entry, chained, found_wrong, free

TABLE = Schema.of(ward=schema.category(["east", "west"]))
QUERY: Any = sql("SELECT COUNT(*) AS n FROM data", TABLE, unit=Unit(), epsilon=Fraction(1, 2))
CHEAP: Any = sql("SELECT COUNT(*) AS n FROM data", TABLE, unit=Unit(), epsilon=Fraction(1, 100))


def entries() -> list[Entry]:
    office = free()
    office["ana"].spend(("team",), QUERY, data="visits@1", grade="exact", note="")
    return office.entries()


def test_a_query_that_paid_for_less_is_named() -> None:
    lived = entries()
    assert chained(lived).first_bad is None and not chained(lived).notes
    paid = lived[-1]
    forged = {**paid, "receipt": replace(paid["receipt"], event=CHEAP.event)}
    assert "event is not that of its plan" in found_wrong(chained([*lived[:-1], forged]), len(lived))


def test_queries_that_cannot_be_read_back_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    lived = entries()
    monkeypatch.setattr(reprice, "_event", lambda text: None)
    (note,) = chained(lived).notes
    assert note.startswith("1 queries could not be read back here") and ".[sql]" in note
