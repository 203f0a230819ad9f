"""The plans that are audited: of a list of releases, of a training, or those that sfumato ships.

They are built from files alone. No source is opened, and no ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...errors import SfumatoError
from ...office.training import training_plan
from ...plan import Plan
from ...project import Project, open_project
from ...project.lines import load
from ...project.project import FILE
from ...project.training import NAME as TRAINING
from ...project.training import load_training
from ...query import Sql
from ...schema import Schema
from ..problems import FILE as FILE_CODE
from ..problems import CommandError, meant
from ..watching import Terminal
from .ordering import order_of

_LIST = "sfumato-plan"
_NO_PLANS = (".json", ".csv", ".tsv", ".parquet", ".duckdb", ".sql", ".py", ".html")


@dataclass(frozen=True)
class Audit:
    """One plan to be audited.

    step     of a training: the same with one step, which is priced by itself; None for any other plan
    project  that it belongs to
    """

    name: str
    plan: Plan[Any, Any]
    step: Plan[Any, Any] | None = None
    project: Project | None = None


def plans_of(files: Sequence[str], folder: Path | None) -> list[Audit]:
    """Every release of these files. Names are told apart by their file where there are several."""
    audits: list[Audit] = []
    for file in files:
        place = Path(file) / FILE if Path(file).is_dir() else Path(file)
        several = f"{place.stem}: " if len(files) > 1 else ""
        audits += [replace(made, name=f"{several}{made.name}") for made in _of_file(place, folder)]
    return audits


def _of_file(file: Path, folder: Path | None) -> list[Audit]:
    if (ending := file.suffix.lower()) in _NO_PLANS:
        also = f"; evidence is counted by `--reproduce {file}`" if ending == ".json" else ""
        raise CommandError(
            f"{file.name} is no plan", "plans stand in YAML", f"give the list, as in `sfumato audit plan.yaml`{also}"
        )
    if not file.exists():
        raise CommandError(
            f"there is no file {file}",
            "an audit needs the list of the releases that you plan",
            "give the path of one, or write it: docs/project-file.md shows how",
            FILE_CODE,
        )
    written = load(file)
    begins = written.value if isinstance(written.value, dict) else {}
    if _LIST in begins:
        project = open_project(folder or (file.parent if (file.parent / FILE).exists() else Path()))
        return [Audit(each.name, plan, project=project) for each, plan in order_of(project, file).plans]
    if TRAINING not in begins and "training" not in begins:
        open_project(file)  # what is wrong with the file is told first
        raise CommandError(
            f"there is nothing to audit in {file.name}",
            "it has no training section, and queries stand in a list of their own",
            "give the list, as in `sfumato audit plan.yaml`; docs/project-file.md shows one",
        )
    return [_training(file, folder)]


def _training(file: Path, folder: Path | None) -> Audit:
    project, training = load_training(file, folder)
    plan = training_plan(project, training, watch=Terminal())
    return Audit(training.form.model.name, plan, replace(plan, times=1, draws=1), project)


def shipped_plans(names: Sequence[str]) -> list[Audit]:
    """Those that sfumato ships, all or some."""
    from ...audit.shipped import PLANS

    shipped: dict[str, Callable[[], Plan[Any, Any]]] = PLANS
    lower = {each.lower(): each for each in shipped}
    for name in names:
        if name.lower() not in lower:
            guess = meant(name, list(shipped))
            also = f"did you mean {guess}? " if guess else ""
            raise CommandError(
                f"there is no shipped plan {name[:40]!r}",
                "it is none of them",
                f"{also}There are: {', '.join(shipped)}",
            )
    chosen = list(dict.fromkeys(lower[each.lower()] for each in names)) or list(shipped)
    return [Audit(name, shipped[name]()) for name in chosen]


def alone(plan: Plan[Any, Any]) -> Plan[Any, Any]:
    """The same query over the only table that it reads, for checks that make up one table."""
    if not isinstance(plan, Sql) or len(plan.schema.tables) == 1:
        return plan
    from ...audit.engines import read_table

    table = plan.schema.tables[read_table(plan).name]
    try:
        if table.unit == plan.unit.column:
            return replace(plan, schema=Schema({table.name: table}))
    except SfumatoError:  # it reads others, too
        pass
    raise CommandError(
        "the promises cannot be checked",
        "the query reads several tables, or one whose unit has another name, and these checks make up one table",
        "leave --promises out",
    )
