"""L8: the clock is told, and decides nothing. Here it is moved for real, for a whole process, by libfaketime."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import pytest

from sfumato import Budget, record
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.proof.anchor import FileAnchor
from sfumato.ledger.proof.anchored import AnchoredStore
from sfumato.ledger.proof.keys import Key
from sfumato.ledger.stores.sqlite import SQLiteStore
from tests.helpers import laplace
from tests.ledger.stores import pay
from tests.ledger.striking import ENVIRONMENT, ROOT

LIBRARIES = (
    "usr/lib/*/faketime/libfaketime.so.1",
    "usr/lib*/faketime/libfaketime.so.1",
    "usr/local/lib/faketime/*.so.1",
)


def library() -> str:
    found = [str(path) for pattern in LIBRARIES for path in Path("/").glob(pattern)]
    if not found:
        pytest.skip("libfaketime is missing (install it, as root: apt install faketime)")
    return found[0]


def prepared(folder: Path) -> Path:
    """A ledger with an anchor, and an account of 1 that has paid 9/10."""
    (folder / "outside").mkdir(parents=True)
    store = SQLiteStore(folder / "ledger", create=True)
    anchor, key = FileAnchor(folder / "outside" / "anchor"), Key.make(folder / "key")
    with closing(AnchoredStore(store, anchor, key)) as held:
        ledger = Ledger(held)
        ledger.open_account("a", Budget(epsilon=1))
        pay(ledger, laplace(Fraction(9, 10)), data="a@1")
    return folder


def later(folder: Path, clock: str, zone: str = "UTC", *, monotonic: bool = True) -> dict[str, object]:
    environment = {**ENVIRONMENT, "LD_PRELOAD": library(), "FAKETIME": clock, "TZ": zone}
    if not monotonic:
        environment["FAKETIME_DONT_FAKE_MONOTONIC"] = "1"
    command = [sys.executable, "-m", "tests.ledger.workers.later", str(folder)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


def check(folder: Path, clock: str, years: int, zone: str = "UTC", *, monotonic: bool = True) -> None:
    found = later(prepared(folder), clock, zone, monotonic=monotonic)
    assert found["told"] == ["refused", "paid", "refused"] and found["before"] == ["9/10"] and found["holds"]
    if "@" not in clock:
        assert abs(int(str(found["year"])) - datetime.now(UTC).year - years) <= 1, "the clock was moved"
    with closing(SQLiteStore(folder / "ledger", read_only=True)) as store:
        told = [datetime.fromisoformat(record.parse(body)["at"]).year for _, body in store.entries()]
    assert told[-1] == found["year"], "entries tell the clock as it was"


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


def test_l8_a_clock_moved_by_years_gives_no_budget(quick: Path) -> None:
    """Forth, then back, on one ledger: what was paid stays paid."""
    folder, now = prepared(quick / "here"), datetime.now(UTC).year
    first, then = later(folder, "+10y"), later(folder, "-10y")
    assert (first["told"], first["before"], first["holds"]) == (["refused", "paid", "refused"], ["9/10"], True)
    assert (then["told"], then["before"], then["holds"]) == (["refused"] * 3, ["1"], True)
    assert int(str(then["year"])) < now < int(str(first["year"])), "the clock was moved"
