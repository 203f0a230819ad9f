"""The columns that a training names: do they exist, and do they go together?"""

from __future__ import annotations

from collections.abc import Mapping

from ..plain_yaml import Path
from ..schema import Table
from .checking import meant
from .faults import Faults
from .training_form import TrainingForm


def checked_columns(form: TrainingForm, tables: Mapping[str, Table], faults: Faults) -> None:
    """Are there such columns? One private table is trained on."""
    private = [table for table in tables.values() if table.private]
    if len(private) != 1:
        cause = f"there are {len(private)} private tables, and a training reads the rows of one"
        faults.add(("training",), cause, "make a project for the table that it reads")
        return
    columns = [name for name in private[0].columns if name != private[0].unit]
    named: list[tuple[Path, str]] = [(("features", number), name) for number, name in enumerate(form.features)]
    named.append((("target", "column"), form.target.column))
    named += [] if form.subgroup is None else [(("subgroup",), form.subgroup)]
    for place, name in named:
        if name not in columns:
            faults.add(("training", *place), f"there is no column {name[:60]!r}", meant(name, columns))
    if not form.features:
        faults.add(("training", "features"), "there is no column to learn from", f"give some of {', '.join(columns)}")
    if len(set(form.features)) < len(form.features):
        faults.add(("training", "features"), "a column is given twice", "give each once")
    if form.target.column in form.features:
        faults.add(
            ("training", "features"), "the target is among the features", "leave it out: it is what is to be told"
        )
    if form.subgroup is not None and form.public_test is None:
        cause = "without public data there is nothing to tell subgroups apart on"
        faults.add(("training", "subgroup"), cause, "add public_test, or leave subgroup out")
