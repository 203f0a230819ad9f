"""Views of DuckDB files that a new project may take over: those that read its tables alone, and that queries may read.
Their definitions stand in the file's catalogue; no row is read."""

from __future__ import annotations

import tempfile
import warnings
from dataclasses import replace
from pathlib import Path

from ...errors import SfumatoError
from ...project import open_project
from ...sources import proposed_views
from . import wizard_words as words
from .column_words import listed
from .draft import Draft, ViewDraft
from .making import YAML
from .prompts import Prompts
from .writing_yaml import written


def ask_views(prompts: Prompts, draft: Draft) -> list[ViewDraft]:
    """Which of the views queries may read."""
    views, notes = fitting_views(draft)
    for note in notes:
        prompts.say(note, "yellow")
    if not views:
        return []
    names = [view.name for view in views]
    chosen = prompts.ask(
        "Which of these views may queries read?",
        why=words.VIEWS_WHY,
        more=words.VIEWS_MORE,
        read=lambda text: () if text == "none" else tuple(name for name in listed(text) if name in names),
        default=", ".join(names),
    )
    return [view for view in views if view.name in chosen]


def fitting_views(draft: Draft) -> tuple[list[ViewDraft], list[str]]:
    """The views that a project like this can have, and why it cannot have the others."""
    candidates = _candidates(draft)
    if not candidates:
        return [], []
    if written(draft)[1]:
        names = ", ".join(view.name for view in candidates)
        return [], [f"views of the data ({names}) are left out until the rest is filled in: then add them under views"]
    views: list[ViewDraft] = []
    notes: list[str] = []
    for view in candidates:
        refusal = _refusal(replace(draft, views=[*views, view]))
        if refusal is None:
            views.append(view)
        else:
            notes.append(f"the view {view.name} is left out: {refusal}")
    return views, notes


def _candidates(draft: Draft) -> list[ViewDraft]:
    tables: dict[Path, dict[str, str]] = {}
    for table in draft.tables:
        if table.look.kind == "duckdb" and table.look.table is not None:
            tables.setdefault(table.look.path, {})[table.look.table] = table.name
    taken = {table.name.lower() for table in draft.tables}
    views: list[ViewDraft] = []
    for path, names in tables.items():
        for name, query in proposed_views(path, names).items():
            if name.lower() not in taken:
                taken.add(name.lower())
                views.append(ViewDraft(name, query, path))
    return views


def _refusal(draft: Draft) -> str | None:
    """Why the project would be refused with its views, in the first line of the words; None where it is not."""
    with tempfile.TemporaryDirectory() as place, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whoever made the budget is warned when it is read for good
        Path(place, YAML).write_text(written(draft)[0], encoding="utf-8")
        try:
            open_project(Path(place))
        except SfumatoError as problem:
            return problem.cause.splitlines()[0]
    return None
