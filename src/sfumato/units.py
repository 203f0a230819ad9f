"""Whose presence is hidden: the unit of privacy and the change that neighbours differ by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from . import checks
from .record import record

Relation = Literal["add-remove", "replace", "zero-out"]
RELATIONS: tuple[Relation, ...] = get_args(Relation)

_WORDS = {
    "add-remove": "present or absent",
    "replace": "exchanged for any other",
    "zero-out": "blanked out (the number of them is public)",
}


@record("unit/1", kept=True)
@dataclass(frozen=True)
class Unit:
    """The unit of privacy.

    of      "row", or "user:<column>" for everything that one value of that column ever contributed
    change  what neighbours differ by: a unit added or removed, replaced by any other, or zeroed out
    group   hide any `group` units together (group privacy); sensitivities grow by this factor
    """

    of: str = "row"
    change: Relation = "add-remove"
    group: int = 1

    def __post_init__(self) -> None:
        checks.one_of(self.change, "change", RELATIONS)
        object.__setattr__(self, "group", checks.whole(self.group, "group", most=10**6))
        of = checks.label(self.of, "of")
        if of != "row" and (not of.startswith("user:") or len(of) <= len("user:")):
            raise checks.refuse("of", self.of, "'row' or 'user:<column>'")

    @property
    def column(self) -> str | None:
        """The column that names the unit, or None where each row is its own unit."""
        return None if self.of == "row" else self.of.removeprefix("user:")

    def hiding(self, other_names: Mapping[str, str]) -> str:
        """The unit in words, with the column that names it in every table that calls it otherwise."""
        return str(self) + "".join(f"; in {table} {column} names it" for table, column in other_names.items())

    def __str__(self) -> str:
        one = "one row" if self.column is None else f"everything one {self.column} ever contributed"
        many = f"any {self.group} of: {one}" if self.group > 1 else one
        return f"{many}, {_WORDS[self.change]}"
