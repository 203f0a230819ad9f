"""What every store says in the same words."""

from __future__ import annotations

DAMAGED = "the ledger is damaged: restore it, and check it with `verify` before anything is released"
LOCKED = "the ledger is locked by another process: try again when it is done"
CLOSED = "the ledger was closed: open it anew"
FORKED = "the ledger was opened by another process: open it anew in this one"
FORKED_MEMORY = (
    "this ledger is in the memory of the process that made it, and pays nothing in a fork: release there, or use a "
    "ledger in a file, which each process opens by itself"
)
NEWER = "the ledger was written by a newer version of sfumato: use that version, or a later one"
