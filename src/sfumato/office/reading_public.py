"""Queries of public tables alone: read for nothing, past all accounts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..project.project import Project
from ..query.released.answer import Answer
from .answers import plain, table_bytes
from .documents import Document, Json
from .files import check_out, write_out

PUBLIC = "nothing: it reads public tables only"


@dataclass(frozen=True, kw_only=True)
class PublicDocument(Document):
    """An answer that cost nothing, and that nobody is hidden in."""

    document: Literal["public/1"] = "public/1"
    project: str
    price: str
    columns: list[str]
    rows: list[dict[str, Json]]
    notes: list[str]
    out: str | None


def read_public(
    project: Project, text: str, *, dialect: str | None = None, out: Path | None = None, format: str = "csv"
) -> tuple[PublicDocument, Answer]:
    """Ask the public tables of a project. The ledger is not asked, and need not be there."""
    if out is not None:
        check_out(out, project)
    project.need_data()
    from ..query import public

    answer = public(text, project.private, dialect=dialect)
    if out is not None:
        write_out(out, encoded_answer(answer, format))
    rows = [{name: plain(cell) for name, cell in row.items()} for row in answer.rows]
    shown = None if out is None else str(out)
    document = PublicDocument(
        project=project.name, price=PUBLIC, columns=list(answer.columns), rows=rows, notes=list(answer.notes), out=shown
    )
    return document, answer


def encoded_answer(answer: Answer, format: str) -> bytes:
    return table_bytes(answer, answer, format, 0.05)
