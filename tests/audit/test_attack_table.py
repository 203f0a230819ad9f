"""The registry of attacks and the page about it say the same."""

from __future__ import annotations

import re
from importlib import import_module

import pytest

from sfumato_referee import attacks
from sfumato_referee.attacks.table import LIST, Of
from sfumato_referee.mutation import MUTANTS
from tests.pages import ROOT

PAGE = (ROOT / "docs" / "audit" / "attacks.md").read_text(encoding="utf-8")


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def test_every_attack_has_a_row_on_the_page_and_every_row_an_attack() -> None:
    rows = {_cells(line)[0]: _cells(line) for line in PAGE.splitlines() if re.match(r"\| [A-Z]\d+ \|", line)}
    assert list(rows) == list(attacks.ATTACKS)
    for id, cells in rows.items():
        assert len(cells) == 5 and all(cells) and cells[4] == f"`sfumato attack {id}`", id


def test_every_fault_has_a_row_on_the_page_and_every_row_a_fault() -> None:
    table = PAGE.split("## The mutation run")[1]
    rows = [_cells(line)[:2] for line in table.splitlines() if line.startswith("| ")][1:]
    assert [tuple(row) for row in rows] == [(each.area, each.name) for each in MUTANTS]


def test_the_tables_of_attacks_agree() -> None:
    assert len({each.id for each in LIST}) == len(LIST)
    assert list(attacks.ATTACKS) == list(attacks.CONTROLS) == list(attacks._QUICK) == list(attacks.TITLES)


@pytest.mark.parametrize("each", LIST, ids=lambda each: each.id)
def test_every_function_of_the_table_is_there(each: object) -> None:
    assert hasattr(each, "run")
    for place in filter(None, (each.run, getattr(each, "control", None))):  # type: ignore[attr-defined]
        file, _, name = place.rpartition(".")
        assert callable(getattr(import_module(f"sfumato_referee.attacks.{file}"), name))
    for value in each.planted.values():  # type: ignore[attr-defined]
        if isinstance(value, Of) and not value.called:
            assert value.value() is not None
