"""`sfumato rehearse`: the whole way of a query, on rows that are made up from the schema."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import JsonValue
from rich.console import Console
from rich.text import Text

from ...accounting.filters import Budget
from ...curator import Curator
from ...errors import SfumatoError
from ...ledger import MemoryLedger
from ...plan import price_text
from ...project import open_project
from ..documents import Document
from ..problems import REFUSED, CommandError
from ..progress import working
from ..screen import facts, say
from ..telling import Outcome
from .answers import Column, Number, columns_of, notes_of, rows_of, show_answer
from .asked import Asked


class RehearseDocument(Document):
    """An answer on made-up rows: it says nothing about the data, and was free."""

    document: Literal["rehearse/1"] = "rehearse/1"
    project: str
    made_up: Literal[True] = True
    price: str
    hides: str
    alpha: float
    columns: list[Column]
    rows: list[dict[str, Number | JsonValue]]
    notes: list[str]


def rehearsed(folder: Path, asked: Asked, *, rows: int | None) -> Outcome:
    """Run a query of a project on made-up rows. The ledger is not asked, and need not be there."""
    text, options = asked.text(), asked.options()
    project = open_project(folder)
    plan = project.plan(text, **options)
    curator = Curator(project.private, MemoryLedger({project.name: Budget(epsilon=1)}))
    try:
        with working("rehearsing the query"):
            answer = curator.rehearse(plan, rows=rows).value
    except (SfumatoError, OSError):
        raise
    except Exception as error:  # no data was read, so all may be told
        raise CommandError(
            "the rehearsal failed",
            f"{type(error).__name__}: {error}",
            "change the query; --debug shows where it failed",
            REFUSED,
        ) from error
    body = RehearseDocument(
        project=project.name,
        price=price_text(plan),
        hides=plan.hides,
        alpha=asked.alpha,
        columns=columns_of(answer),
        rows=rows_of(answer, asked.alpha),
        notes=notes_of(answer),
    )

    def show(console: Console) -> None:
        say(console, "MADE-UP ROWS: this says nothing about the data", style="bold yellow")
        show_answer(console, answer, asked.alpha)
        console.print()
        would = Text.assemble((body.price, "bold"), ("  would be the price; the rehearsal was free", "dim"))
        facts(console, [("price", would), ("hides", body.hides)])

    return Outcome(body, show)
