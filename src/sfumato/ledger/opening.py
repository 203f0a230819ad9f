"""Open a ledger by its address, such as a file or a PostgreSQL database; with an anchor outside it, or without."""

from __future__ import annotations

from pathlib import Path

from .. import checks
from ..errors import ArgumentError
from .ledger import Ledger
from .proof.anchor import Anchor, FileAnchor
from .proof.anchored import AnchoredStore
from .proof.head import HeadFile
from .proof.headed import HeadedStore
from .proof.keys import Key
from .stores.base import Store
from .stores.places import is_address, open_store


def _anchor(given: str | Path | Anchor | None) -> Anchor | None:
    if given is None or isinstance(given, str | Path):
        return None if given is None else FileAnchor(given)
    if not all(hasattr(given, part) for part in ("mark", "last", "lines", "add")):
        raise checks.refuse("anchor", given, "the path of a file, or an Anchor")
    return given


def with_head(store: Store, place: str | Path, anchor: Anchor | None, principal: str | None = None) -> Store:
    """The store, held to the head outside it: with the anchor, or beside the file. A server keeps none of its own."""
    outside: HeadFile | None = getattr(anchor, "head", None)
    beside = () if is_address(place) else (HeadFile(f"{Path(place).resolve()}-head"),)
    if outside is not None:
        return HeadedStore(store, outside, also=beside, principal=principal or "")
    return HeadedStore(store, *beside, principal=principal or "") if beside else store


def open_ledger(
    place: str | Path,
    *,
    create: bool = False,
    principal: str | None = None,
    anchor: str | Path | Anchor | None = None,
    key: str | Path | Key | None = None,
    wait: float = 30.0,
    read_only: bool = False,
) -> Ledger:
    """A durable ledger.

    >>> import tempfile
    >>> from sfumato import Budget, open_ledger
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open_ledger(f"{folder}/budget.ledger", create=True) as ledger:
    ...         _ = ledger.open_account("visits", Budget(epsilon=1))
    ...         print(ledger.left("visits"))
    0 of 1 epsilon spent

    place      the path of its file, or "postgresql://role@host/database", or the address of another store
    create     make a new one where there is none
    principal  who writes; in a file that is a claim, on a server it is the role that is logged in
    anchor     where signed checkpoints go, outside the ledger: a path on another disk. Needs a key
    key        the path of a key file, as `Key.make(path)` writes it
    wait       seconds to wait for other writers
    read_only  for auditors: writes nothing
    """
    if (anchor is None) != (key is None):
        raise ArgumentError("anchor and key belong together: give both, or neither.")
    # All that can be refused is refused before anything is made at that place.
    checks.path(place, "place")
    checks.flag(create, "create")
    checks.flag(read_only, "read_only")
    if principal is not None:
        checks.label(principal, "principal")
    at = _anchor(anchor)
    with_key = key if isinstance(key, Key) or key is None else Key.load(key)
    checks.waiting(wait, "wait")
    store = open_store(place, create=create, wait=wait, read_only=read_only)
    try:
        store = with_head(store, place, at, principal)
        if at is not None and with_key is not None:
            store = AnchoredStore(store, at, with_key, principal=principal)
        return Ledger(store, principal=principal)
    except BaseException:
        store.close()
        raise
