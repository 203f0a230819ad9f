"""L8: the clock is told, and decides nothing.

Claim. No rule of the ledger that lets a spend pass reads a clock. (Approvals run out by the latest time that any entry
told, so a clock that is put back makes none of them younger.)

The attack moves the clock of a whole process (with libfaketime where it is installed, and else the ledger's own) by
days and years, both ways, into a leap second, over the hour that is not and to the end of 32-bit time, and asks for
what is left of an account, which is 1/10: 1/5 is refused, 1/10 is paid, and 1e-9 is refused. The planted bug has a
fresh budget each year.
"""

from __future__ import annotations

import json
from contextlib import closing
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from sfumato import record
from sfumato.accounting.filters import Budget
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.proof.anchor import FileAnchor
from sfumato.ledger.proof.anchored import AnchoredStore
from sfumato.ledger.proof.keys import Key
from sfumato.ledger.stores.sqlite import SQLiteStore

from ..verdict import Verdict
from .ground import count, folder, pay
from .striking import ENVIRONMENT, WORKER, said

LIBRARIES = (
    "usr/lib/*/faketime/libfaketime.so.1",
    "usr/lib*/faketime/libfaketime.so.1",
    "usr/local/lib/faketime/*.so.1",
)
DAYS = {"-10y": -3650, "+10y": 3650, "-1d": -1, "+1d": 1, "+100y": 36500, "-40y": -14600}
TIMES = ("@2016-12-31 23:59:59", "@2026-03-29 01:59:59", "@2038-01-19 03:14:07")
ZONES = {"@2016-12-31 23:59:59": "right/UTC", "@2026-03-29 01:59:59": "Europe/Berlin", "-40y": "Pacific/Kiritimati"}
RIGHT, NOTHING_LEFT = ["refused", "paid", "refused"], ["refused"] * 3


def attack(*, design: str = "right", clocks: tuple[str, ...] = (*DAYS, *TIMES)) -> Verdict:
    with_library = library() is not None
    faults, moved = [], set[int]()
    with folder() as home:
        for number, clock in enumerate(clocks):
            place = prepared(home / str(number))
            found = later(place, clock, design)
            moved.add(int(found["year"]))
            if found["told"] != RIGHT or found["before"] != ["9/10"] or not found["holds"]:
                faults.append(f"at {clock}")
            elif years_told(place)[-1] != found["year"]:
                faults.append(f"at {clock}, entries tell another time")
        place = prepared(home / "forth and back")
        there, back = later(place, "+10y", design), later(place, "-10y", design)
        if (there["told"], back["told"]) != (RIGHT, NOTHING_LEFT) or not (there["holds"] and back["holds"]):
            faults.append("forth and back by ten years")
        if int(back["year"]) >= datetime.now(UTC).year:
            faults.append("the clock was not moved")
    words = f"{len(clocks) + 2} clocks ({'of the whole process' if with_library else 'of the ledger'}): "
    words += f"more than was left could be spent {faults[0]}." if faults else "none of them gave any budget."
    return Verdict("L8", bool(faults), words, {"clocks": len(clocks) + 2, "faults": len(faults), "years": len(moved)})


def control() -> Verdict:
    return attack(design="yearly", clocks=("+10y",))


def library() -> str | None:
    """libfaketime, if it is here."""
    found = [str(path) for pattern in LIBRARIES for path in Path("/").glob(pattern)]
    return found[0] if found else None


def prepared(place: Path) -> Path:
    """A ledger with an anchor, and an account of 1 that has paid 9/10."""
    (place / "outside").mkdir(parents=True)
    store = SQLiteStore(place / "ledger", create=True)
    anchor, key = FileAnchor(place / "outside" / "anchor"), Key.make(place / "key")
    with closing(AnchoredStore(store, anchor, key)) as held:
        ledger = Ledger(held)
        ledger.open_account("a", Budget(epsilon=1))
        pay(ledger, count(Fraction(9, 10)))
    return place


def later(place: Path, clock: str, design: str = "right", zone: str = "", *, monotonic: bool = True) -> dict[str, Any]:
    """What a process gets whose clock is that one."""
    environment = {**ENVIRONMENT, "TZ": zone or ZONES.get(clock, "UTC")}
    if clock in DAYS:
        seconds = DAYS[clock] * 86400
    else:
        seconds = round((datetime.fromisoformat(clock[1:]).replace(tzinfo=UTC) - datetime.now(UTC)).total_seconds())
    if (preloaded := library()) is not None:
        environment |= {"LD_PRELOAD": preloaded, "FAKETIME": clock}
        seconds = 0
    if not monotonic:
        environment["FAKETIME_DONT_FAKE_MONOTONIC"] = "1"
    found: dict[str, Any] = json.loads(said([*WORKER, "later", str(place), design, str(seconds)], environment)[-1])
    return found


def years_told(place: Path) -> list[int]:
    """By the entries, one after the other."""
    with closing(SQLiteStore(place / "ledger", read_only=True)) as store:
        return [datetime.fromisoformat(record.parse(body)["at"]).year for _, body in store.entries()]
