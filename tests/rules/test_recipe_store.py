"""The recipe "Add a store" of CONTRIBUTING.md, followed to the letter from an empty folder."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.pages import ROOT

# In a process of its own: the one new file, as if it stood in the folder.
_STORE = """
import sys
from pathlib import Path
import sfumato.ledger.stores

sfumato.ledger.stores.__path__.append(sys.argv[1])

import pytest
from sfumato import Budget, open_ledger
from sfumato.errors import BudgetError, LedgerError
from sfumato.ledger.stores.jsonlines import JsonLinesStore
from tests.helpers import laplace
from tests.ledger.stores import MEMBERS, Member, Stores, answered

home = Path(sys.argv[1])


def make(path: Path) -> str:
    JsonLinesStore(path, create=True).close()
    return str(path)


MEMBERS["jsonlines"] = Member(make, JsonLinesStore)
from tests.ledger.test_stores import DURABLE, SUITE

stores = Stores("jsonlines", home)
for promise in (*SUITE, *DURABLE):
    promise(stores)
    stores.done()

# By its address, without a line anywhere else; with an anchor, too.
address = f"jsonlines://{home}/budget"
with pytest.raises(LedgerError, match="there is no ledger"):
    open_ledger(address)
from sfumato.ledger.proof.keys import Key

(home / "outside").mkdir()
Key.make(home / "key")
outside = {"anchor": home / "outside" / "anchor", "key": home / "key"}
with open_ledger(address, create=True, principal="ana", **outside) as ledger:
    ledger.open_account("a", Budget(epsilon=1), reason="other people")
    answered(ledger, laplace(0.5))
file = home / "budget"
older = file.read_bytes()
with open_ledger(address, principal="ana", **outside) as ledger:
    answered(ledger, laplace(0.25))
    assert ledger.verify().ok
whole = file.read_bytes()

# A line that was cut short never was; any other change is found.
file.write_bytes(whole + b'{"entries": [[')
with open_ledger(address, principal="ana", **outside) as ledger:
    assert ledger.verify().ok
    with pytest.raises(BudgetError):
        ledger.spend(("a",), laplace(0.5), data="a@1", grade="exact", note="")
file.write_bytes(older)
with open_ledger(address, principal="ana", **outside) as ledger, pytest.raises(LedgerError):
    ledger.spend(("a",), laplace(0.125), data="a@1", grade="exact", note="")

changed = 0
for at in range(10, len(whole), max(1, len(whole) // 60)):
    file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    try:
        with open_ledger(address) as ledger:
            assert not ledger.verify().ok, (at, whole[at - 40 : at + 40])
    except LedgerError:
        pass
    changed += 1
assert changed >= 60
print("followed")
"""


def test_a_store_is_one_file_and_one_line_of_the_tests(tmp_path: Path) -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = re.search(r"^## Add a store\n(.*?)^## ", page, re.S | re.M)
    assert section is not None
    (block,) = re.findall(r"^```python\n(.*?)^```$", section.group(1), re.S | re.M)
    (tmp_path / "jsonlines.py").write_text(block, encoding="utf-8")
    command = [sys.executable, "-c", _STORE, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, cwd=ROOT)
    assert (done.returncode, done.stdout.strip()) == (0, "followed"), done.stderr
