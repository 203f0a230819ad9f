"""Releases with SQL above them, as one plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from ... import checks
from ...combine import Sequence
from ...errors import ArgumentError, PlanError
from ...record import SHOWN, record
from ...schema import Schema, Table, category, key, real
from ...sources.mentions import mentions
from ...units import Unit
from ..canonical import text_of
from ..kinds import Kind
from ..limits import Limits
from ..parsing import parsed
from ..plan import Sql
from ..relations.bases import base_tables
from ..released.answer import Answer
from . import above_answer, permitted, shown_rows
from .above_rules import public_tables
from .released_tables import key_type, number_type

if TYPE_CHECKING:
    import pyarrow

    from ...sources import Connection


@record("plan-sql-report/1")
@dataclass(frozen=True, kw_only=True)
class SqlReport(Sequence):
    """Private aggregates, and ordinary SQL over what they released.

    Guarantee: that of its Event, the composition of its releases.
    Needs: releases of one schema; SQL that reads their tables and public ones, and nothing else.
    Paper: Dwork, McSherry, Nissim, Smith 2006 (composition, post-processing); Dong, Roth, Su 2022 (of Gaussians).

    Proof sketch: each part is a plan with an event of its own, fixed in advance. What is above runs in an engine that
    holds the released tables and public tables: a function of what was released, and of what is public anyway.

    plans   the releases, by name
    above   the SQL over the tables _name: how the answer is shown, so no part of the question. Where it reads no public
            table it is worked out whenever somebody looks, and other SQL over the same releases is free
    beside  the same, where it reads public tables: it is worked out when the plan runs, since these are not stored
    """

    above: str | None = field(default=None, compare=False, repr=False, metadata=SHOWN)
    beside: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, part in self.plans.items():
            checks.instance(part, Sql, name, "a query")
        if len({part.schema for part in self.sqls.values()}) != 1:
            raise ArgumentError("the releases read different schemas: make them with one.")
        if self.beside is not None and self.above is None:
            object.__setattr__(self, "above", self.beside)
        if self.above is not None:
            checks.instance(self.above, str, "above", "a query over what is released")
            permitted.check(parsed(self.above), [*(f"_{name}" for name in self.plans), *self.public])
            reads = self.beside_releases(self.above)
            if reads and self.beside != self.above:
                raise ArgumentError(f"above reads the public table {reads[0]!r}: give the same text as beside.")

    @cached_property
    def sqls(self) -> dict[str, Sql]:
        """The releases."""
        return {name: part for name, part in self.plans.items() if isinstance(part, Sql)}

    @property
    def schema(self) -> Schema:
        return next(iter(self.sqls.values())).schema

    @property
    def parts(self) -> Mapping[str, Any]:
        """It is answered as a whole."""
        return {}

    @cached_property
    def public(self) -> Mapping[str, Table]:
        """By lower-case name: the tables that are nobody's."""
        return public_tables(self.schema)

    def beside_releases(self, text: str) -> list[str]:
        """Those that the SQL above reads."""
        tree = parsed(text)
        names = {node.name.lower() for node in tree.find_all(exp.Table)} - {
            cte.alias.lower() for cte in tree.find_all(exp.CTE)
        }
        return [name for name in self.public if name in names]

    def _gathered(self, data: Connection, raws: dict[str, Any]) -> dict[str, Any]:
        """The releases; beside them what is above, where public tables have a part in it."""
        stored: dict[str, Any] = {"releases": raws}
        if self.above is not None:
            stored["above"] = self.above
        if self.beside is not None:
            tables = base_tables(self.schema, self.unit, names=mentions(parsed(self.beside)).names)
            read = {name: data.run(tables[name].tree) for name in self.beside_releases(self.beside)}
            stored["shown"] = shown_rows.shown(self.sqls, raws, self.beside, read)
        return stored

    def finish(self, raw: dict[str, Any]) -> Answer:
        text = self.above if self.above is not None else raw.get("above")
        raws = raw["releases"]
        table = raw["shown"] if "shown" in raw and self.beside is not None else None
        if table is None:
            if text is None:
                raise PlanError("what is to be shown of the releases is not known: ask with the query")
            table = shown_rows.shown(self.sqls, raws, text, {})
        return above_answer.answer(self.sqls, raws, table)

    def error(self, raw: dict[str, Any], alpha: float) -> Any:
        answer = self.finish(raw)
        return {name: answer.half_width(name, alpha) if name in answer.numbers else None for name in answer.columns}

    def check_groups(self) -> None:
        """Refuse groups that no row can be in, too many of them, and SQL above that the engine does not take."""
        for part in self.sqls.values():
            part.check_groups()
        if self.above is not None:
            shown_rows.bind(self.above, {**self._empty_releases(), **self._empty_public()})

    def _empty_releases(self) -> dict[str, pyarrow.Schema]:
        import pyarrow

        tables = {}
        for name, part in self.sqls.items():
            front = part.front
            keys = {each.name: key_type(each.typed.kind.type, []) for each in front.keys}
            types = {}
            for title, node in front.outermost.outputs:
                text = text_of(node)
                aggregate = front.aggregates.get(text)
                types[title] = keys[front.outermost.named[text]] if aggregate is None else number_type(aggregate)
            tables[f"_{name}"] = pyarrow.schema(list(types.items()))
        return tables

    def _empty_public(self) -> dict[str, pyarrow.Schema]:
        import pyarrow

        assert self.above is not None
        relations = base_tables(self.schema, self.unit, names=mentions(parsed(self.above)).names)

        def typed(kinds: Mapping[str, Kind]) -> Iterator[tuple[str, Any]]:
            yield from ((name, key_type(kind.type, [])) for name, kind in kinds.items())

        reads = self.beside_releases(self.above)
        return {name: pyarrow.schema(list(typed(relations[name].columns))) for name in reads}

    def afterwards(self) -> tuple[str, ...]:
        return "SQL above releases, in an engine that holds nothing else", *super().afterwards()

    def expected_errors(self, alpha: float) -> Mapping[str, float]:
        """Of the released numbers; what is above them has error bars of its own when it is there."""
        if len(self.sqls) == 1:
            return {name: width for part in self.sqls.values() for name, width in part.expected_errors(alpha).items()}
        return super().expected_errors(alpha)

    @property
    def error_words(self) -> str:
        return next(iter(self.sqls.values())).error_words

    def explain(self) -> list[str]:
        tail = [] if self.above is None else [f"run above, on released numbers and public tables alone: {self.above}"]
        return [*super().explain(), *tail]

    @classmethod
    def sample(cls) -> SqlReport:
        columns = {"id": key(), "ward": category(("east", "north", "west")), "days": real(0, 9)}
        tables = Schema({"visits": Table(columns, unit="id")})
        part = Sql(
            text="SELECT ward, COUNT(*) FROM visits GROUP BY ward", schema=tables, protects=Unit("user:id"),
            epsilon=1, delta=1e-6, limits=Limits(rows=2),
            written="SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward",
        )  # fmt: skip
        above = "SELECT _release_1.ward, n, n / SUM(n) OVER () AS share FROM _release_1"
        return cls(plans={"release_1": part}, above=above)
