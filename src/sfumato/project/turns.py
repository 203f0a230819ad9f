"""A curator of a project: its trainings take turns with all long work on the project, of other processes too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from ..curator import Curator
from ..plan import Plan
from ..release import Release
from .alone import WAIT

if TYPE_CHECKING:
    from .project import Project


class TurnTaker(Curator):
    """Whatever pays step by step waits for its turn before anything is held."""

    def __init__(self, project: Project, ledger: Any, account: str | None) -> None:
        super().__init__(project.private, ledger, accounts=None if account is None else (account,))
        self._project = project

    def _stepwise(self, plan: Plan[Any, Any], note: str, key: str | None) -> Release:
        with self._project.alone("a training", wait=WAIT):
            before = self._before(plan, key)  # whoever had the turn before may have answered it
            return super()._stepwise(plan, note, key) if before.release is None else before.release

    @contextmanager
    def supervise(self, plan: Plan[Any, Any], *, note: str = "", key: str | None = None) -> Iterator[Any]:
        steps = getattr(plan, "steps", None) is not None
        turn = self._project.alone("a training of one's own", wait=WAIT) if steps else nullcontext()
        with turn, super().supervise(plan, note=note, key=key) as run:
            yield run
