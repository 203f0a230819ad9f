"""Queries of public tables alone, from the shell: answered, and nothing is charged."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from sfumato.cli.documents import json_schema
from sfumato.office.reading_public import PublicDocument
from tests.cli.counting_house import told
from tests.cli.front import make_project, sfumato

BY_FLOOR = "SELECT floor, COUNT(*) AS n FROM wards GROUP BY floor ORDER BY floor"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path)


def test_they_are_answered_exactly_and_no_account_knows(project: Path) -> None:
    before = told("ledger", "status", at=project)
    ran = sfumato("query", BY_FLOOR, "--json", at=project)
    assert ran.code == 0, ran
    answer = json.loads(ran.out)
    jsonschema.validate(answer, json_schema(PublicDocument))
    assert answer["document"] == "public/1" and answer["price"].startswith("nothing")
    assert sum(row["n"] for row in answer["rows"]) == 3
    assert "public tables only" in answer["notes"][0]
    assert told("ledger", "status", at=project) == before


def test_people_are_told_that_nothing_was_paid(project: Path) -> None:
    ran = sfumato("query", BY_FLOOR, at=project)
    assert ran.code == 0 and "nothing was paid" in ran.out and "±" not in ran.out


@pytest.mark.parametrize(
    "query",
    [
        "SELECT ward FROM wards WHERE ward IN (SELECT ward FROM visits)",
        "SELECT COUNT(*) AS n FROM wards WHERE EXISTS (SELECT 1 FROM visits WHERE visits.ward = wards.ward)",
        "SELECT floor FROM wards UNION ALL SELECT cost FROM visits",
    ],
)
def test_a_private_table_anywhere_is_not_read_for_nothing(project: Path, query: str) -> None:
    ran = sfumato("query", query, at=project)
    assert ran.code == 4 and "nothing was charged" in ran.err
