"""What a release reads: data sets, each with its version and the blocks of it, as one text that nothing else shares."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote

from . import checks

_ESCAPED = {"%": "%25", "@": "%40", "#": "%23", ",": "%2C", "&": "%26"}
_AND = "&"
_SUCH = "an address such as 'visits@1' or 'visits@1#2026-01'"


class Address(NamedTuple):
    """One data set: `name@version`, or `name@version#block,block`."""

    name: str
    version: str
    blocks: tuple[str, ...] = ()

    def __str__(self) -> str:
        blocks = "#" + ",".join(map(_escaped, self.blocks)) if self.blocks else ""
        return f"{_escaped(self.name)}@{_escaped(self.version)}{blocks}"


def written(addresses: Iterable[Address]) -> str:
    """Several data sets in one text, in one order."""
    return _AND.join(sorted(map(str, addresses)))


def read(text: str) -> tuple[Address, ...]:
    """The data sets that an address names."""
    if not isinstance(text, str):
        raise checks.refuse("data", text, _SUCH)
    return _read(text)


@lru_cache(maxsize=1024)
def _read(text: str) -> tuple[Address, ...]:
    addresses = tuple(_one(part) for part in text.split(_AND))
    whole = all(each.name and each.version for each in addresses) and len({each.name for each in addresses}) == len(
        addresses
    )
    if _AND.join(map(str, addresses)) != text or not whole:
        raise checks.refuse("data", text, _SUCH)
    return addresses


def _one(part: str) -> Address:
    """What it says, if it says it in the one way that `str(Address)` does."""
    front, has_blocks, blocks = part.partition("#")
    name, _, version = front.partition("@")
    return Address(unquote(name), unquote(version), tuple(map(unquote, blocks.split(","))) if has_blocks else ())


def _escaped(text: str) -> str:
    return "".join(_ESCAPED.get(letter, letter) for letter in text)
