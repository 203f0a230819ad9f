"""A project that is being thought about: what the wizard or the flags have said so far. Nothing is written yet."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

from ...errors import SfumatoError
from ...foreign_keys import ARROW, ForeignKey, read_owner
from ..problems import CommandError
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
    """One table: what its file says, and what its columns are taken for.

    owner  the key that leads to whom its rows belong, in place of a column that names the unit
    """

    name: str
    look: TableLook
    columns: list[ColumnDraft] = field(default_factory=list)
    unit: str | None = None
    public: bool = False
    owner: ForeignKey | None = None

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


def read_key(text: str, table: TableDraft, tables: list[TableDraft]) -> ForeignKey:
    """order -> orders.id: a column of this table, and one of another private table that says whose its rows are."""
    form = f"write it as order {ARROW} orders.id"
    try:
        link = read_owner(text)
    except SfumatoError:
        raise CommandError("no key", f"{text[:60]!r} does not say where a column leads", form) from None
    target = next((each for each in tables if each.name == link.table and each is not table), None)
    if table.column(link.column) is None:
        names = ", ".join(column.name for column in table.columns)
        raise CommandError("no key", f"{table.name} has no column {link.column[:40]!r}", f"give one of {names}")
    if target is None or target.public:
        others = ", ".join(each.name for each in tables if each is not table and not each.public)
        raise CommandError("no key", f"{link.table[:40]!r} is no other private table", f"give one of {others}")
    if target.column(link.key) is None:
        names = ", ".join(column.name for column in target.columns)
        raise CommandError("no key", f"{target.name} has no column {link.key[:40]!r}", f"give one of {names}")
    return link


def put_keys(table: TableDraft, tables: list[TableDraft]) -> None:
    """Both ends of the key by which a table is owned are keys, whatever their cells look like."""
    if table.owner is not None:
        table.put(ColumnDraft(table.owner.column, "key", why="says whose row it is"))
        for target in tables:
            if target.name == table.owner.table:
                target.put(ColumnDraft(table.owner.key, "key", why="rows of other tables lead here"))


def led_nowhere(tables: list[TableDraft]) -> list[TableDraft]:
    """Tables whose keys lead to one that was left out, or that everybody may know, or in a circle."""
    ends = [table.name for table in tables if not table.public and table.owner is None]
    while more := [each.name for each in tables if each.owner and each.name not in ends and each.owner.table in ends]:
        ends += more
    return [table for table in tables if table.owner is not None and table.name not in ends]


@dataclass(frozen=True)
class ViewDraft:
    """A view of a DuckDB file: its query, by the project's names of tables."""

    name: str
    query: str
    path: Path


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
    views: list[ViewDraft] = field(default_factory=list)

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
