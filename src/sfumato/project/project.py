"""A project: a folder with sfumato.yaml in it, which says where the data is, whom to hide and what may be spent."""

from __future__ import annotations

import fnmatch
import glob
import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import checks
from ..errors import PlanError
from ..owners import other_names, paths
from ..query import Limits, Sql, sql, unreadable
from ..query.ask import ADVISE
from ..query.comments import options_in
from ..sources import SparkTable
from .accounts import Accounts, open_accounts
from .alone import LOCK, WAIT, alone
from .place import LedgerPlace
from .problems import faulty
from .turns import TurnTaker

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from ..accounting.budget import Budget
    from ..curator import Curator
    from ..ledger import About, Ledger
    from ..private import Private
    from ..query import SqlReport
    from ..schema import Schema, Table
    from ..sources import Source
    from ..units import Unit
    from .lines import Text
    from .privacy import Privacy
    from .training_form import TrainingForm

FILE = "sfumato.yaml"
_WILD = "*?["


@dataclass(frozen=True, kw_only=True, eq=False)
class Project:
    """What sfumato.yaml says, checked and built. Nothing of the data has been read.

    limits       of queries that give none; None lets the adviser measure them
    allocations  the budgets of the accounts below the data set's, by name
    training     as it is written; `training.load_training` says what it means
    """

    file: Path
    name: str
    unit: Unit
    private: Private
    privacy: Privacy
    budget: Budget
    allocations: Mapping[str, Budget]
    alert_threshold: float | None
    limits: Limits | None
    about: About
    place: LedgerPlace
    sources: Mapping[str, Source]
    text: Text
    training: TrainingForm | None = None

    @property
    def folder(self) -> Path:
        return self.file.parent

    @property
    def account(self) -> str:
        """The account of the data set, which bears the project's name."""
        return self.name

    @property
    def schema(self) -> Schema:
        return self.private.schema

    @property
    def hides(self) -> str:
        """The unit in words, with every table that calls it otherwise."""
        return self.unit.hiding(other_names(self.schema, self.unit), paths(self.schema, self.unit))

    def ledger(self, *, create: bool = False, read_only: bool = False, principal: str | None = None) -> Ledger:
        """The project's ledger, to be closed after use: `with project.ledger() as ledger:`.

        create     make it, its key and its folders, where there is none
        principal  who writes; the file's by default
        """
        return self.place.open(create=create, read_only=read_only, principal=principal)

    def open_accounts(self, ledger: Ledger) -> Accounts:
        """Make the accounts that the file names and the ledger lacks; tells what was made, and what differs."""
        return open_accounts(ledger, self.account, self.unit, self.budget, self.allocations)

    def curator(self, ledger: Any, account: str | None = None) -> Curator:
        """Who runs plans on this data, trainings one at a time; `account` says which part of the budget pays too."""
        return TurnTaker(self, ledger, account)

    def plan(self, text: str, **options: Any) -> Sql | SqlReport:
        """The plan of a query. What neither the options nor a comment of the query say, the file does.

        options  as `sf.sql` takes them; an option that is None says nothing; limits="advise" has the adviser measure
                 the limits although the file has some
        """
        checks.instance(text, str, "text", "a query")
        chosen = {name: value for name, value in options.items() if value is not None}
        written = options_in(text, options.get("dialect"))
        stated = {**written, **chosen}
        advise = chosen.get("limits") == ADVISE
        if advise:
            del chosen["limits"]
        if not {"epsilon", "rho", "accuracy"} & set(stated):
            if self.privacy.target_epsilon is None:
                cause = "neither the query nor the file says how much to spend"
                fix = "give the query an epsilon, or the file privacy: {target_epsilon: 0.5, target_delta: 1e-7}"
                raise self.text.wrong(("privacy",), cause, fix)
            chosen["epsilon"] = self.privacy.target_epsilon
        if "delta" not in stated and "rho" not in stated and self.privacy.target_delta is not None:
            chosen["delta"] = self.privacy.target_delta
        if self.limits is not None and not advise and "hints" not in stated:
            own = chosen.get("limits", {})
            if not isinstance(own, Limits):
                chosen["limits"] = {**self._usual_limits(set(written.get("limits", ()))), **own}
        return sql(text, self.private, **chosen)

    def unreadable(self, table: str | None = None, *, epsilon: Any = None) -> Sql:
        """The plan that counts the cells of a table that cannot be read. By default it takes a fifth of what a release
        takes, and no delta; where the file has no limits, a unit counts for one row, which is enough for a share."""
        if epsilon is None:
            if self.privacy.target_epsilon is None:
                cause = "neither the command nor the file says how much to spend"
                raise self.text.wrong(
                    ("privacy",), cause, "give an epsilon, or the file privacy: {target_epsilon: 0.5}"
                )
            epsilon = self.privacy.target_epsilon / 5
        return unreadable(self.private, table, epsilon=epsilon, limits=self.limits or Limits(rows=1))

    def _usual_limits(self, but: set[str]) -> dict[str, Any]:
        return {
            each.name: getattr(self.limits, each.name)
            for each in fields(Limits)
            if each.name not in but and each.name != "reach"
        }

    def alone(
        self, work: str, *, wait: float = WAIT, waits: Callable[[str], None] | None = None
    ) -> AbstractContextManager[None]:
        """For a training or a list of releases, here and in `sfumato run` and `sfumato train`: one at a time works on a
        project. The second waits so many seconds, then leaves with a BusyError; `with project.alone("train"): ...`

        work   what is done meanwhile, in a few words: whoever waits is told
        waits  is called once with whom it waits for
        """
        return alone(self.file, work, wait=wait, waits=waits)

    def alert(self, ledger: Any) -> str | None:
        """What to tell when the alert threshold is reached, by the gauge that has most room."""
        if self.alert_threshold is None:
            return None
        used = ledger.used(self.account)
        threshold = float(self.alert_threshold)
        if used is None or used < threshold:
            return None
        spent, percent = int(100 * used + 1e-9), f"{100 * threshold:g}"
        return f"{spent} % of the budget of {self.account!r} is spent; the file asks to be told from {percent} % on"

    def lives_by(self, path: Path) -> bool:
        """Is this a file that the project lives by, or would it become one? No answer is written over them, nor among
        the files of a table."""
        place, target = self.place, path.resolve()
        sides = () if place.served else (f"{place.place}{end}" for end in ("", "-wal", "-shm", "-journal", "-head"))
        own_files = (self.file, self.folder / LOCK, place.anchor, place.key, *sides)
        if target in {Path(each).resolve() for each in own_files if each is not None}:
            return True
        tables = (Path(str(each.path)) for each in self.sources.values() if hasattr(each, "path"))
        return any(_fits(target, each) for each in tables)

    def missing(self) -> tuple[str, ...]:
        """The tables whose files are not there."""
        return tuple(
            name
            for name, each in self.sources.items()
            if _has_file(each) and not _files(str(getattr(each, "path", "")))
        )

    def need_data(self) -> None:
        """Refuse to go on where files of tables are missing, not this user's to read, or hold other columns than the
        file says; the error has their lines."""
        faults = []
        for name, source in self.sources.items():
            path = str(getattr(source, "path", "")) if _has_file(source) else ""
            files = _files(path)
            shown = f"{Path(path).name!r} in {str(Path(path).parent)!r}"
            if _has_file(source) and not files:
                message = f"there is no file {shown}", "put it there, or correct the path"
            elif not all(os.access(file, os.R_OK) for file in files):
                message = f"this user may not read {shown}", "give this user the right to read it"
            elif (misfit := _misfit(self.schema.table(name), source)) is not None:
                message = misfit
            else:
                continue
            faults.append(self.text.fault(("tables", name, "source"), *message))
        if faults:
            raise faulty(self.text.file, faults)

    def __repr__(self) -> str:
        return f"<Project {self.name} in {str(self.folder)!r}: {', '.join(self.schema.tables)}; hides {self.hides}>"


def _misfit(table: Table, source: Source) -> tuple[str, str] | None:
    """Why a file does not hold the columns that it should, and what to do; None where it does."""
    try:
        source.compare(table)
    except PlanError as problem:
        return problem.cause, problem.fix or "correct the columns, or the file"
    return None


def _has_file(source: Source) -> bool:
    """Is it a file that this machine reads? What Spark reads may lie elsewhere."""
    return hasattr(source, "path") and not isinstance(source, SparkTable)


def _files(path: str) -> list[Path]:
    """The files of a table that are there. None of them is opened."""
    if not any(sign in path for sign in _WILD):
        return [Path(path)] if Path(path).is_file() else []
    whole = Path(path).absolute()
    return [each for each in Path(whole.anchor).glob(str(whole.relative_to(whole.anchor))) if each.is_file()]


def _fits(target: Path, table: Path) -> bool:
    """Is it the table's file, or would it count as one of its files?"""
    if not any(sign in str(table) for sign in _WILD):
        return target == table.resolve()
    steps = table.absolute().parts
    fixed = next(place for place, step in enumerate(steps) if any(sign in step for sign in _WILD))
    pattern = "/".join((glob.escape(Path(*steps[:fixed]).resolve().as_posix()), *steps[fixed:]))
    if fnmatch.fnmatchcase(target.as_posix(), pattern.replace("**/", "*")):
        return True
    return any(each.resolve() == target for each in _files(str(table)))  # one of them may be a link
