"""L14: an upgrade forgets nothing.

Ledgers of every version of the schema lie in golden/schema-N, and in schema-N-word where entries came to say more, each
with every kind of entry, as that version wrote it, with its anchor, the public key, and what it amounted to then.
Today's version opens a copy of each: it must verify with its anchor, no account may have spent less in any currency,
keys and stored answers must be found, and one more spend is paid on top. The planted bug is an upgrade that leaves out
what one account had spent.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

from sfumato import record
from sfumato.audit import surface
from sfumato.errors import SfumatoError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.proof.anchor import FileAnchor
from sfumato.ledger.proof.anchored import AnchoredStore
from sfumato.ledger.proof.keys import Key
from sfumato.ledger.proof.verify import verify
from sfumato.ledger.stores.base import Store
from sfumato.ledger.stores.sqlite import SQLiteStore

from ...mutants.stores import ForgetfulUpgrade
from ..verdict import CouldNotRunError, Verdict
from .ground import count, folder

GOLDEN = Path(__file__).parent / "golden"
FILES = ("ledger", "anchor", "public", "told.json")
MORE = Fraction(1, 1000)  # so little that no member of an account is closed by it
_SPENDS = ("ana's", ("ana's", "north", "visits"))  # who asks, and who pays, in each of these ledgers


def attack(*, kind: Callable[..., Store] = SQLiteStore) -> Verdict:
    versions = sorted(GOLDEN.glob("schema-*"))
    if not versions:
        raise CouldNotRunError("the ledgers of earlier versions are not installed.")
    wrong: list[str] = []
    for version in versions:
        with folder() as home:
            for name in ("ledger", "told.json", "public"):
                shutil.copyfile(version / name, home / name)
            (home / "outside").mkdir()
            shutil.copyfile(version / "anchor", home / "outside" / "anchor")
            wrong += [f"{version.name}: {each}" for each in _opened(home, kind)]
    words = f"Ledgers of {len(versions)} version(s) were opened: "
    words += f"{wrong[0]}." if wrong else "nothing that was spent comes free."
    return Verdict("L14", bool(wrong), words, {"versions": len(versions), "wrong": len(wrong)})


def control() -> Verdict:
    return attack(kind=ForgetfulUpgrade)


def _opened(home: Path, kind: Callable[..., Store]) -> list[str]:
    """What is wrong with the ledger as today's version sees it, and after one more spend."""
    before = json.loads((home / "told.json").read_text(encoding="utf-8"))
    public, anchor = (home / "public").read_text(encoding="utf-8").strip(), FileAnchor(home / "outside" / "anchor")
    try:
        place = kind(home / "ledger")
    except SfumatoError as problem:
        return [f"it cannot be opened: {problem}"]
    try:
        now = told(place)
        wrong = lost(now, before)
        if not (report := verify(place, anchor, trusted=[public])).ok:
            wrong.append(f"it does not verify: {report.problems[0]}")
        if wrong:
            return wrong
        wrong += _answers(Ledger(place, principal="ana"))
        key = Key.make(home / "key")
        ledger = Ledger(AnchoredStore(place, anchor, key, principal="ana", trusted=(public,)), principal="ana")
        asks, pays = _SPENDS
        ledger.spend((asks,), count(MORE), data="visits@2", grade="exact", note="one more")
        after = told(place)
        sums = [[Fraction(each["spent"][name]["epsilon"]) for name in pays] for each in (now, after)]
        if [new - old for old, new in zip(*sums, strict=True)] != [MORE] * len(pays):
            wrong.append("one more spend is not paid on top")
        surface.store_of(ledger).checkpoint()  # type: ignore[attr-defined]
        if not verify(place, anchor, trusted=[public, key.public]).ok:
            wrong.append("it does not verify after one more spend")
        return wrong + lost(after, now)
    finally:
        place.close()


def _answers(ledger: Ledger) -> list[str]:
    """Stored answers and keys are found by what an earlier version wrote."""
    plan = count(Fraction(1, 4))
    paid = ledger.paid("first", ("ana's",), plan, data="visits@1")
    stored = ledger.answer(("ana's",), plan.hash, "visits@1")
    right = paid is not None and paid[1] == b"[1,2,3]" and stored == paid
    return [] if right else ["an answer that was paid for is not found"]


def told(store: Store) -> dict[str, Any]:
    """What a ledger amounts to: the last entry, the kinds of entries, and what each account has spent."""
    ledger = Ledger(store)
    entries = [record.parse(body, dict) for _, body in store.entries()]
    with store.reading() as book:
        names = book.accounts()
    return {
        "entries": len(entries),
        "kinds": sorted({entry["kind"] for entry in entries}),
        "spent": {name: {gauge.currency: str(gauge.spent) for gauge in ledger.spent(name)} for name in sorted(names)},
        "answers": sum(entry.get("answer") is not None for entry in entries),
    }


def lost(now: dict[str, Any], before: dict[str, Any]) -> list[str]:
    """What is less than it was: an account's spending in some currency, entries, stored answers."""
    found = []
    for account, gauges in before["spent"].items():
        for currency, spent in gauges.items():
            left = now["spent"].get(account, {}).get(currency)
            if left is None or Fraction(left) < Fraction(spent):
                found.append(f"account {account} has forgotten {currency}")
    return found + [f"{name} were lost" for name in ("entries", "answers") if now[name] < before[name]]
