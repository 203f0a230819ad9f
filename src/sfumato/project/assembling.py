"""From sfumato.yaml to a Project: read, filled in, built, and all faults told together."""

from __future__ import annotations

from pathlib import Path

from .. import checks
from ..errors import ArgumentError, PlanError
from ..ledger.stores.places import is_address
from ..private import Private
from .budgets import parts_of, total_of
from .building import about_of, engine_of, limits_of, privacy_of, schema_of, sources_of, unit_of, view_files_of
from .checking import filled
from .faults import Faults
from .form import ProjectForm
from .lines import Text, load
from .place import LedgerPlace
from .problems import ProjectError
from .project import Project
from .training_columns import checked_columns


def assembled(file: Path) -> Project:
    """The project of a file that exists."""
    text = load(file)
    form = filled(ProjectForm, text)
    faults = Faults(text)
    folder = file.absolute().parent

    def wrong(cause: str, fix: str) -> ProjectError:
        return text.wrong(("privacy",), cause, fix)

    faults.trying((), lambda: checks.label(form.name, "name"))
    faults.trying((), lambda: checks.label(form.version, "version"))
    unit = unit_of(form, faults)
    schema = None if unit is None else schema_of(form, unit, faults)
    sources, view_files = sources_of(form, folder, faults), view_files_of(form, folder, faults)
    limits, about = limits_of(form, faults), about_of(form, faults)
    engine = engine_of(form.engine, folder, faults)
    place = _place(form, folder, text, faults)
    total = total_of(form, faults)
    parts = {} if total is None else parts_of(form, total, faults)
    threshold = form.budget.alert_threshold
    if threshold is not None and not 0 < threshold <= 1:
        faults.add(("budget", "alert_threshold"), "it is no share of the budget", "give a number above 0, at most 1")
    privacy = None if unit is None else privacy_of(form.privacy, unit, faults, wrong)
    if form.training is not None and schema is not None:
        checked_columns(form.training, schema.tables, faults)
    faults.raise_any()
    assert unit is not None and schema is not None and privacy is not None and total is not None
    data = {**sources, **view_files} if len(sources) + len(view_files) > 1 else next(iter(sources.values()))
    try:
        private = Private(form.name, data, unit=unit, schema=schema, version=form.version, engine=engine)
    except (ArgumentError, PlanError) as problem:
        raise text.wrong(("tables",), problem.cause, problem.fix or "correct the tables") from None
    return Project(
        file=file, name=form.name, unit=unit, private=private, privacy=privacy, budget=total, allocations=parts,
        alert_threshold=None if threshold is None else float(threshold), limits=limits, about=about, place=place,
        sources=sources, text=text, training=form.training,
    )  # fmt: skip


def _place(form: ProjectForm, folder: Path, text: Text, faults: Faults) -> LedgerPlace:
    place = form.ledger
    served = is_address(place.place)
    anchor, key = (None if each is None else folder / each for each in (place.anchor, place.key))
    if (anchor is None) != (key is None):
        faults.add(("ledger",), "anchor and key belong together", "give both, or neither")
    if anchor is not None and not served and anchor.parent.resolve() == (folder / place.place).parent.resolve():
        faults.add(
            ("ledger", "anchor"),
            "the anchor lies in the ledger's folder, and would be copied and restored with it",
            "give it a folder of its own, such as anchor/budget.anchor; best on another disk",
        )
    return LedgerPlace(
        place=place.place if served else str(folder / place.place),
        anchor=anchor,
        key=key,
        principal=place.principal,
        file=text.file,
        line=text.lined.line(("ledger",)),
    )
