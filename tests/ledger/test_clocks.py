"""L8: the clock is told, and decides nothing. Here it is moved for real, for a whole process, by libfaketime."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from sfumato_referee.attacks.ledger import clocks
from sfumato_referee.attacks.ledger.clocks import NOTHING_LEFT, RIGHT, later, prepared, years_told


def moved() -> None:
    if clocks.library() is None:
        pytest.skip("libfaketime is missing (install it, as root: apt install faketime)")


def check(folder: Path, clock: str, years: int, zone: str = "UTC", *, monotonic: bool = True) -> None:
    moved()
    found = later(prepared(folder), clock, zone=zone, monotonic=monotonic)
    assert found["told"] == RIGHT and found["before"] == ["9/10"] and found["holds"]
    if "@" not in clock:
        assert abs(int(str(found["year"])) - datetime.now(UTC).year - years) <= 1, "the clock was moved"
    assert years_told(folder)[-1] == found["year"], "entries tell the clock as it was"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("clock", "years", "zone"),
    [
        ("-10y", -10, "UTC"),
        ("+10y", 10, "UTC"),
        ("-1d", 0, "UTC"),
        ("+1d", 0, "UTC"),
        ("-40y", -40, "Pacific/Kiritimati"),
        ("+100y", 100, "UTC"),
        ("@2016-12-31 23:59:59", 0, "right/UTC"),  # into the leap second
        ("@2026-03-29 01:59:59", 0, "Europe/Berlin"),  # and over the hour that is not
        ("@2038-01-19 03:14:07", 0, "UTC"),
    ],
)
def test_l8_other_clocks(quick: Path, clock: str, years: int, zone: str) -> None:
    for monotonic in (True, False):
        check(quick / str(monotonic), clock, years, zone, monotonic=monotonic)


@pytest.mark.slow
def test_l8_a_clock_moved_by_years_gives_no_budget(quick: Path) -> None:
    """Forth, then back, on one ledger: what was paid stays paid."""
    moved()
    folder, now = prepared(quick / "here"), datetime.now(UTC).year
    first, then = later(folder, "+10y"), later(folder, "-10y")
    assert (first["told"], first["before"], first["holds"]) == (RIGHT, ["9/10"], True)
    assert (then["told"], then["before"], then["holds"]) == (NOTHING_LEFT, ["1"], True)
    assert int(str(then["year"])) < now < int(str(first["year"])), "the clock was moved"


@pytest.mark.slow
def test_l8_without_the_library_the_ledger_s_own_clock_is_moved(quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clocks, "library", lambda: None)
    found = later(prepared(quick / "here"), "+10y")
    assert found["told"] == RIGHT and found["holds"] and int(found["year"]) > datetime.now(UTC).year + 8
    assert clocks.control().broken
