"""Which ledger is meant: a project's, or one named by its place. Reading needs no key; writing takes the anchor."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ....errors import PrivacyWarning
from ....ledger import About, FileAnchor, Key, Ledger, open_ledger
from ....ledger.stores.places import is_address
from ...problems import LEDGER, CommandError

if TYPE_CHECKING:
    from ....project import Project

_OLD = "it does not continue its anchor or its head, so it may be an older copy, in which spends are missing"


@dataclass(frozen=True)
class Where:
    """As it was typed.

    project    the folder of a project; the present one where no place is given
    place      a ledger's file or address, instead of a project's
    anchor     of that ledger, and `key` the file of the key that signs it
    principal  who acts
    """

    project: Path | None = None
    place: str | None = None
    anchor: Path | None = None
    key: Path | None = None
    principal: str | None = None

    @cached_property
    def home(self) -> Project | None:
        """The project, unless a place was given."""
        if self.place is not None:
            if self.project is not None:
                raise CommandError(
                    "that is more than one ledger", "--ledger and --project are given", "give one of the two"
                )
            return None
        if self.anchor is not None or self.key is not None:
            raise CommandError(
                "--anchor and --key-file belong to --ledger",
                "a project says its own in sfumato.yaml",
                "give --ledger as well, or leave them out",
            )
        from ....project import open_project  # a ledger that is named by its place needs none

        return open_project(self.project or Path())

    @property
    def about(self) -> About | None:
        return None if self.home is None else self.home.about

    @property
    def alert_threshold(self) -> float | None:
        return None if self.home is None else self.home.alert_threshold

    @property
    def folder(self) -> Path:
        """Where reports go by default."""
        return Path() if self.home is None else self.home.folder

    def account(self, named: str | None) -> str:
        """The account that was named, or the project's own."""
        if named is not None:
            return named
        if self.home is None:
            raise CommandError(
                "no account is named", "a ledger by its place has no first one", "name it: see `sfumato ledger status`"
            )
        return self.home.account

    @contextmanager
    def reading(self, *, bare: bool = False, paper: bool = False) -> Iterator[Ledger]:
        """Nothing is written, and no right to write is needed; on a server, the role decides that.

        bare   without its anchor: `verify` then tells what is wrong with the two, where opening both would fail
        paper  for something that others rely on: refused where an anchor tells that this is an older copy
        """
        place, anchor, key = self._parts()
        there = is_address(place) or Path(place).exists()
        if self.home is not None and not (bare and there):
            opened = self.home.ledger(read_only=True)
        else:
            signs = not bare and anchor is not None
            opened = open_ledger(
                place,
                read_only=not is_address(place),
                anchor=anchor if signs else None,
                key=key if signs else None,
            )
        with opened as ledger:
            if not ledger.continues:
                if paper:
                    raise CommandError(
                        "nothing is written about this ledger", _OLD, "see `sfumato ledger verify`", LEDGER
                    )
                warnings.warn(f"{_OLD}: see `sfumato ledger verify`", PrivacyWarning, stacklevel=3)
            yield ledger

    @contextmanager
    def writing(self) -> Iterator[Ledger]:
        """With the anchor, so that what is written is signed."""
        if self.home is not None:
            opened = self.home.ledger(principal=self.principal)
        else:
            place, anchor, key = self._parts()
            opened = open_ledger(place, principal=self.principal, anchor=anchor, key=key)
        with opened as ledger:
            yield ledger

    def proof(self) -> tuple[FileAnchor | None, str | None]:
        """The anchor to hold the ledger against, and the public key that it should be signed with, where the key is at
        hand: an auditor has none, and names the public one."""
        _, anchor, key = self._parts()
        if anchor is None:
            return None, None
        at_hand = key is not None and (self.home is None or key.is_file())
        return FileAnchor(anchor), Key.load(key).public if key is not None and at_hand else None

    def _parts(self) -> tuple[str, Path | None, Path | None]:
        if self.home is None:
            assert self.place is not None
            return self.place, self.anchor, self.key
        return self.home.place.place, self.home.place.anchor, self.home.place.key
