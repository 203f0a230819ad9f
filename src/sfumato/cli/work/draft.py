"""A project that is being thought about: what the wizard or the flags have said so far. Nothing is written yet."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

from .proposing import ColumnDraft
from .table_looks import TableLook

_KEYWORDS = (
    " all and any as asc between by case cast create cross default desc distinct drop else end except exists false for "
    "from full group having in inner insert intersect interval into is join left like limit natural not null offset on "
    "or order outer primary qualify right row rows select set table then to true union unique update user using values "
    "when where window with "
)

ONE_RELEASE = Fraction(1, 1000)  # of delta


@dataclass
class TableDraft:
    """One table: what its file says, and what its columns are taken for."""

    name: str
    look: TableLook
    columns: list[ColumnDraft] = field(default_factory=list)
    unit: str | None = None
    public: bool = False

    @property
    def used(self) -> list[ColumnDraft]:
        return [column for column in self.columns if column.kind != "out"]

    def column(self, name: str) -> ColumnDraft | None:
        return next((column for column in self.columns if column.name == name), None)

    def put(self, column: ColumnDraft) -> None:
        """Put it in the place of the one of its name; how many decimals it has is declared by the file."""
        self.columns = [
            replace(column, decimals=each.decimals) if each.name == column.name else each for each in self.columns
        ]


@dataclass
class Draft:
    """A whole project.

    unit     the word after "user:", or None where each row is a unit
    rows     how many rows a unit may count for; None lets the adviser measure it
    """

    folder: Path
    name: str
    tables: list[TableDraft]
    unit: str | None = None
    rows: str | None = None
    epsilon: str = "1"
    delta: str = "1e-6"
    release_epsilon: str = "0.2"
    release_delta: str = "1e-9"
    principal: str = "me"

    def share(self) -> None:
        """One release takes a fifth of epsilon and a thousandth of delta where nothing else is said: then epsilon is
        gone before delta is, also where every release looks for keys that nobody knows."""
        self.release_epsilon = _short(float(self.epsilon) / 5)
        self.release_delta = _short(float(self.delta) * float(ONE_RELEASE))


def _short(number: float) -> str:
    return f"{number:.3g}".replace("e-0", "e-")


def plain_name(text: str, otherwise: str) -> str:
    """A name that needs no quotes in SQL."""
    word = re.sub(r"\W+", "_", text.strip().lower(), flags=re.ASCII).strip("_")[:60] or otherwise
    return f"t_{word}" if word[:1].isdigit() or _is_keyword(word) else word


def in_sql(name: str) -> str:
    """The name of a column as a query writes it."""
    plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) and not _is_keyword(name.lower())
    return name if plain else '"' + name.replace('"', '""') + '"'


def _is_keyword(word: str) -> bool:
    return f" {word} " in _KEYWORDS
