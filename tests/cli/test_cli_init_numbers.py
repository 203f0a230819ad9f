"""Numbers that `init` does not take: shown as they were typed, with what to give instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.front import sfumato


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--epsilon", "0"), ("epsilon = 0 is not allowed", "fix  give a finite number from 1e-9")),
        (("--delta", "2"), ("delta = 2 is not allowed", "fix  give 0 or a number above 0")),
        (("--rows", "-3"), ("rows = '-3' is not allowed", "fix  give a number such as 8")),
        (("--column", "cost=real:10:0"), ("lower = 10 is not allowed", "fix  give a number below upper = 0")),
    ],
)
def test_a_number_is_refused_as_it_was_typed(tmp_path: Path, flags: tuple[str, ...], said: tuple[str, str]) -> None:
    (tmp_path / "visits.csv").write_text("patient,cost\n1,2\n")
    bounds = () if "--column" in flags else ("--column", "cost=real:0:10")
    done = sfumato("init", "--yes", "--source", "visits.csv", "--unit", "patient", *bounds, *flags, at=tmp_path)
    assert done.code == 2 and all(each in done.err for each in said)
    assert "Fraction" not in done.err and not (tmp_path / "sfumato.yaml").exists()
