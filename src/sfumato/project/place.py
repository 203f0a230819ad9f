"""Where a project keeps its ledger, the anchor outside it, and the key that signs."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ..ledger.opening import open_ledger
from ..ledger.proof.keys import Key
from ..ledger.stores.places import is_address
from .problems import ProjectError

if TYPE_CHECKING:
    from ..ledger import Ledger


@dataclass(frozen=True, kw_only=True)
class LedgerPlace:
    """The `ledger` section, with whole paths.

    place  a file, or the address of a database
    line   of the file of the project, for messages
    """

    place: str = field(repr=False)
    anchor: Path | None
    key: Path | None
    principal: str | None
    file: str
    line: int

    def __str__(self) -> str:
        """Where it is; of an address, without who logs in and with what."""
        if not self.served:
            return self.place
        address = urlsplit(self.place)
        return f"{address.scheme}://{address.hostname or ''}{address.path}"

    @property
    def served(self) -> bool:
        """Is it in a database?"""
        return is_address(self.place)

    def open(self, *, create: bool, read_only: bool, principal: str | None) -> Ledger:
        """See Project.ledger. Whoever only reads needs no key."""
        if not create:
            self._must_be_there()
        elif not read_only:
            self._make_room()
        reading = read_only and not self.served
        signs = self.key is not None and not (reading and not self.key.is_file())
        return open_ledger(
            self.place,
            create=create,
            principal=principal or self.principal,
            anchor=self.anchor if signs else None,
            key=self.key if signs else None,
            read_only=reading,
        )

    def _must_be_there(self) -> None:
        if not self.served and not Path(self.place).exists():
            raise ProjectError(
                "there is no ledger yet",
                f"{self.file}:{self.line} names {Path(self.place).name!r}, which does not exist",
                "make it with `sfumato ledger open`; if there was one before, bring it back: a new one would not know "
                "what was spent",
                file=self.file,
                line=self.line,
            )

    def _must_be_the_first(self) -> None:
        """An anchor without its ledger: a new one in its place would forget what was spent."""
        if self.served or self.anchor is None or Path(self.place).exists():
            return
        if self.anchor.is_file() and self.anchor.stat().st_size:
            raise ProjectError(
                "the ledger is gone, but its anchor is there",
                f"{self.file}:{self.line} names {Path(self.place).name!r}, which does not exist; "
                f"{self.anchor.name!r} holds checkpoints of it",
                "bring the ledger back. If it is lost for good, what it released is still out: move the anchor and the "
                "key away, run `sfumato ledger open`, and count that as spent",
                file=self.file,
                line=self.line,
            )

    def _make_room(self) -> None:
        """Folders, and a key where nothing was ever signed. A key that got lost is not replaced: it proves the past."""
        self._must_be_the_first()
        places = [each for each in (self.anchor, self.key) if each is not None]
        places += [] if self.served else [Path(self.place)]
        try:
            for path in places:
                path.parent.mkdir(parents=True, exist_ok=True)
        except OSError:
            raise ProjectError(
                "the ledger cannot be made",
                f"a folder that {self.file}:{self.line} names cannot be made",
                "correct the path, or give this user the right to write there",
                file=self.file,
                line=self.line,
            ) from None
        new = not (self.anchor is not None and self.anchor.exists()) and (self.served or not Path(self.place).exists())
        if self.key is not None and new and not self.key.exists():
            Key.make(self.key)
