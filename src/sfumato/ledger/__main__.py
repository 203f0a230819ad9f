"""`python -m sfumato.ledger verify LEDGER --anchor FILE`: 0 it holds, 1 it does not, 2 it could not be checked.

LEDGER is the path of a file, or the address of a database (postgresql://...). Nothing is written.
"""

from __future__ import annotations

import argparse
import re
import sys
import warnings
from collections.abc import Sequence

from ..errors import LedgerError, PrivacyWarning, SfumatoError
from .opening import with_head
from .proof.anchor import Anchor, FileAnchor, read
from .proof.checkpoints import own_key
from .proof.verify import verify
from .stores.base import Store
from .stores.places import is_address, open_store


def main(arguments: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    try:
        if not all(re.fullmatch("[0-9a-f]{64}", key) for key in given.key):
            raise LedgerError("--key is not a public key: give the 64 hex digits of Key.load(path).public")
        anchor = FileAnchor(given.anchor) if given.anchor is not None else None
        store = with_head(_opened(given.ledger), given.ledger, anchor)
        try:
            return int(given.run(store, anchor, given.key))
        finally:
            store.close()
    except SfumatoError as problem:
        print(f"the ledger could not be checked: {problem}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m sfumato.ledger", description="Look at a ledger.")
    tasks = parser.add_subparsers(dest="task", required=True)
    for name, run, help in (
        ("verify", _verify, "is it what was written?"),
        ("head", _head, "the number and hash of its last entry, and the last checkpoint"),
    ):
        task = tasks.add_parser(name, help=help)
        task.set_defaults(run=run)
        task.add_argument("ledger", help="the ledger's file, or its postgresql:// address")
        task.add_argument("--anchor", help="the file of checkpoints outside it; without it, a cut-off end is not seen")
        task.add_argument("--key", action="append", default=[], help="a public key (hex) that may have signed them")
    return parser


def _opened(ledger: str) -> Store:
    return open_store(ledger, read_only=not is_address(ledger))


def _verify(store: Store, anchor: Anchor | None, keys: list[str]) -> int:
    report = verify(store, anchor, trusted=keys)
    print(report)
    return 0 if report.ok else 1


def _head(store: Store, anchor: Anchor | None, keys: list[str]) -> int:
    line = None if anchor is None else anchor.last()
    with store.reading() as book:
        number, digest = book.head
        print(f"entry {number}  {digest.hex()}")
        if anchor is None:
            return 0
        if line is None:
            print("no checkpoint")
            return 1
        last = read(line, keys or [own_key(line)])
        print(f"checkpoint {last.serial} at entry {last.number}  {last.hash}  {last.at}  signed with {last.key}")
        found = book.entry(last.number)
    if found is None or found[0].hash.hex() != last.hash:
        print("THE LEDGER DOES NOT CONTINUE ITS ANCHOR: run verify")
        return 1
    return 0


if __name__ == "__main__":
    warnings.simplefilter("ignore", PrivacyWarning)  # a weak budget was told when it was opened
    sys.exit(main())
