"""Where budgets live: every release is an entry, paid before the data is opened."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .memory import MemoryLedger

if TYPE_CHECKING:
    from ..report.accounts import About
    from .ledger import Ledger
    from .opening import open_ledger
    from .policy.approvals import Act
    from .policy.file import compare, dump_policy, load_policy, parse_policy
    from .policy.policy import Policy
    from .proof.anchor import FileAnchor
    from .proof.keys import Key
    from .proof.verify import verify

_HOMES = {
    "About": ".report.accounts",
    "Act": "policy.approvals",
    "FileAnchor": "proof.anchor",
    "Key": "proof.keys",
    "Ledger": "ledger",
    "Policy": "policy.policy",
    "compare": "policy.file",
    "dump_policy": "policy.file",
    "load_policy": "policy.file",
    "open_ledger": "opening",
    "parse_policy": "policy.file",
    "verify": "proof.verify",
}

__all__ = [
    "About",
    "Act",
    "FileAnchor",
    "Key",
    "Ledger",
    "MemoryLedger",
    "Policy",
    "compare",
    "dump_policy",
    "load_policy",
    "open_ledger",
    "parse_policy",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'sfumato.ledger' has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
