"""Releases in stages, as one plan: what the first of them released, the next ones read as a public table.

The claim: the whole costs what its releases cost together, composed adaptively, and it is charged before any of them
runs.

Proof sketch. Fix what the earlier stages released. Their tables are then public tables like those of the schema, and a
later stage is an `Sql` over them: its event holds for every content of a public table, so for this one. Its event is
made at birth, of its own fields alone: text, schema, and the *types* of the tables between (`released_stages.py`),
never their cells; its limits, groups and noise are, too, or are measured and paid for within it. So the parameters of
all mechanisms are fixed in advance while their inputs are chosen adaptively, and each mechanism keeps its event for
every such choice. That is adaptive composition, for which the accountants' sums hold as they are: epsilons and pairs
(Dwork, Rothblum, Vadhan 2010, section III: the adversary chooses each mechanism after seeing the earlier answers), rho
of zCDP (Bun, Steinke 2016, lemma 2.3), trade-off functions and so Gaussian multipliers (Dong, Roth, Su 2022, theorem
4), and dominating pairs, which privacy loss distributions convolve (Zhu, Dong, Wang 2022, theorem 10).

What leaves a stage is what `Sql._run` returned and stored, with the noise in it: `stage_cells` sees nothing else. No
refusal hangs on it either: all stages are bound before anybody pays, with tables of the same types that have no rows,
and no expression of the engine raises for any cell. A number that is not there is NULL, and so is what is compared
with it. Which groups a later stage has is told by the schema and its public tables, or paid for within it: a table of
an earlier stage has no say in that (`public_images.RELEASED`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import starmap
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ArgumentError, PlanError
from ...plan import Run
from ...record import record
from ...schema import Schema, Table, category, key, real
from ...units import Unit
from ..limits import Limits
from ..plan import Sql
from ..released.answer import Answer
from .released_stages import by_itself, no_cells, stage_cells, stage_table
from .report_plan import SqlReport

if TYPE_CHECKING:
    from ...sources import Connection

_WORDS = (
    "rows were compared with what {} released first, not with the exact numbers: what is said here is true of rows "
    "compared with the released ones, and ± does not cover how far these are off"
)
_SHOWN = 4


@record("plan-sql-stages/1")
@dataclass(frozen=True, kw_only=True)
class SqlStages(SqlReport):
    """Private aggregates, some of which read what others of them released.

    Guarantee: that of its Event, the composition of its releases.
    Needs: releases of one schema, in an order in which each reads tables of earlier ones alone.
    Paper: Dwork, Rothblum, Vadhan 2010; Bun, Steinke 2016; Dong, Roth, Su 2022 (adaptive composition).

    Proof sketch: given what the earlier stages released, a stage is a query over public tables that hold it, with an
    event that was fixed before any of them ran; events fixed in advance compose adaptively as they do otherwise.

    plans  the releases in the order in which they run; where a part names a table among its `released`, it is what the
           part of that name left
    above  as in a report; without it the answer is that of the last release
    """

    dear = True

    def __post_init__(self) -> None:
        super().__post_init__()
        earlier: dict[str, Sql] = {}
        for name, part in self.sqls.items():
            for table, columns in part.released.items():
                if table not in earlier or stage_table(table, earlier[table]) != columns:
                    raise ArgumentError(f"{name} reads {table!r}, which is no table that an earlier stage leaves.")
            earlier[name] = part

    @property
    def forms(self) -> tuple[SqlStages, ...]:
        """No earlier version knew stages."""
        return (self,)

    @cached_property
    def stages(self) -> tuple[str, ...]:
        """The releases that later ones read."""
        read = {table for part in self.sqls.values() for table in part.released}
        return tuple(name for name in self.sqls if name in read)

    def _run(self, data: Connection, run: Run) -> dict[str, Any]:  # type: ignore[override]
        raws: dict[str, Any] = {}
        for name, part in self.sqls.items():
            for table, columns in part.released.items():
                data.hand_over(columns, stage_cells(self.sqls[table], raws[table]))
            raws[name] = part._run(data, run)
        return self._gathered(data, raws)

    def bind(self, connection: Connection) -> None:
        """All stages, each with tables of the right types and no rows in the places of earlier ones."""
        for part in self.sqls.values():
            for table, columns in part.released.items():
                connection.hand_over(columns, no_cells(self.sqls[table]))
            part.bind(connection)

    def check_schema(self, schema: Schema) -> None:
        if schema != self.schema:
            raise PlanError("the query was made for another schema: build it with the schema of the data")
        self.check_groups()

    @property
    def last(self) -> Sql:
        return list(self.sqls.values())[-1]

    def finish(self, raw: dict[str, Any]) -> Answer:
        if self.above is None and raw.get("above") is None:
            answer = self.last.finish(raw["releases"][list(self.sqls)[-1]])
        else:
            answer = super().finish(raw)
        own = [f"{name}: {_compared(self.sqls[name], raw['releases'][name])}" for name in self.stages]
        answer.notes = (*own, *answer.notes)
        answer.notes = (_WORDS.format(", ".join(self.stages)), *answer.notes)
        return answer

    def expected_errors(self, alpha: float) -> Mapping[str, float]:
        return self.last.expected_errors(alpha) if self.above is None else super().expected_errors(alpha)

    def afterwards(self) -> tuple[str, ...]:
        steps = super().afterwards()
        return steps if self.above is not None else steps[1:]

    def explain(self) -> list[str]:
        lines = [f"{name}: its table is public from then on, and read by later stages" for name in self.stages]
        return [*lines, *super().explain()]

    @classmethod
    def sample(cls) -> SqlStages:
        columns = {"id": key(), "ward": category(("east", "north", "west")), "days": real(0, 9)}
        tables = Schema({"visits": Table(columns, unit="id")})
        budget: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "limits": Limits(rows=2)}
        own: dict[str, Any] = {"schema": tables, "protects": Unit("user:id"), **budget}
        first = Sql(text="SELECT AVG(days) FROM visits", **own)
        second = Sql(
            text="SELECT ward, COUNT(*) FROM visits WHERE days > (SELECT MAX(release_1.number_1) FROM release_1) "
            "GROUP BY ward",
            released={"release_1": stage_table("release_1", first)},
            **own,
        )
        return cls(plans={"release_1": first, "release_2": second})


def _compared(part: Sql, raw: Mapping[str, Any]) -> str:
    """The numbers that rows were compared with: a few of them as they are, of many how many and how exact."""
    answer = by_itself(part).finish({name: value for name, value in raw.items() if name != "written"})
    return "; ".join(_column(title, answer) for title in answer.columns if title in answer.numbers)


def _column(title: str, answer: Answer) -> str:
    pairs = list(zip(answer[title], answer.half_width(title, 0.05), strict=True))
    if len(pairs) <= _SHOWN:
        return f"{title} = {', '.join(starmap(_number, pairs))}"
    widths = [width for _, width in pairs if isinstance(width, float) and np.isfinite(width)]
    middle = f", ± {np.median(widths):.3g} in the middle" if widths else ", with ± unknown"
    return f"{len(pairs)} numbers {title}{middle}"


def _number(value: Any, width: Any) -> str:
    shown = f"{value:,.6g}" if isinstance(value, int | float) else str(value)
    return f"{shown} ± {width:.3g}" if isinstance(width, float) and np.isfinite(width) else shown
