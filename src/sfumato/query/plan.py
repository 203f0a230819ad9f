"""A query as a plan: its price, its statement, its noise and its answer come from the same public fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

from .. import checks, contributions, events
from ..checks import Exact
from ..errors import ArgumentError, PlanError
from ..openings import ENGINE, Opening
from ..owners import other_names, paths
from ..plan import Plan, Run, rehearsed_above
from ..questions import COARSE, PRICE
from ..record import LATER, SHOWN, record
from ..runs import Bulk
from ..schema import COMMON_KEYS, Column, Named, Schema, Table, category, key, real
from ..sources import Connection
from ..sources.duckdb import DUCKDB
from ..units import Unit, rows_or_users
from . import advice_statements, copies, explain, finish, ranks, running
from .advice import ADVICE, Layout
from .adviser import advised
from .adviser import check as check_advice
from .blur import Blur, blur
from .candidates import blocks, check_sizes
from .design import Design, Questions, shares_of
from .front import Front, front
from .generous import check_generous
from .hints import Hints
from .hints import limits as limits_by
from .keys import check_groups
from .limits import Limits
from .raised import exposed_names
from .relations.bases import orphans_of
from .released.answer import Answer
from .unfolding import unfolded

if TYPE_CHECKING:
    from sqlglot import exp

ADVISED, BOUNDS = "sql-advised", "sql-bounds"
"""What bounds a unit where no record does: limits that an adviser measures, and the query's own bounds of columns."""
MEASURED = "up to where one {} counts in full was measured, for a part of the price: see the notes on the answer"
_APART = "rows of one key are hidden together, those of several are not, whoever had them"


@record("plan-sql/1")
@dataclass(frozen=True, kw_only=True)
class Sql(Plan[Connection, dict[str, Any]]):
    """The answer to a SELECT with aggregates, for a whole unit's contributions.

    Guarantee: that of its Event: a Gaussian mechanism (rho-zCDP, and (epsilon, delta)-DP where asked so), or epsilon-DP
        with Laplace noise; where groups are chosen privately, (0, key_delta) beside it.
    Needs: a schema with bounds for what is added up; a connection to an engine.
    Paper: Wilson, Zhang, Lam, Desfontaines, Simmons-Marengo, Gipson 2020 (bounding by user in SQL); Korolova et al.
        2009 and Gopi et al. 2020 (groups above a threshold); weights clip by a norm, as in Abadi et al. 2016.

    Proof sketch: every relational step keeps each row with one unit, and what a unit's rows become depends on no other
    unit (see relation.py). The engine adds up integers, weighted so that one unit moves the sums within its limits (see
    bounding.py); blur.py adds up all questions into one event; design.py has the threshold of groups. Everything after
    the noise (formulas, HAVING, ORDER BY, LIMIT) is post-processing.
    """

    text: str
    schema: Schema
    protects: Unit = field(metadata=PRICE)
    epsilon: Exact = field(default=None, metadata=PRICE)
    delta: Exact = field(default=Fraction(0), metadata=PRICE)
    rho: Exact = field(default=None, metadata=PRICE)
    keys: Mapping[str, Any] = field(default_factory=dict)
    bounds: Mapping[str, Any] = field(default_factory=dict, metadata=COARSE)
    limits: Limits | None = field(default=None, metadata=PRICE)
    shares: Mapping[str, Any] = field(default_factory=dict, metadata=PRICE)
    advice: Exact = field(default=ADVICE, metadata=PRICE)
    floor: bool = field(default=False, metadata=PRICE)
    unclip: bool = field(default=False, metadata=PRICE)
    hints: Hints | None = field(default=None, metadata=PRICE)
    released: Mapping[str, Table] = field(default=Named({}), metadata=LATER)
    """Tables that an earlier release of the same plan leaves, by name: the query reads them as public ones. Such a
    query runs as a stage of `SqlStages` and nowhere else."""
    written: str | None = field(default=None, compare=False, repr=False, metadata=SHOWN)
    """The query as somebody wrote it, where `text` is the same question in the one way: how the answer is shown."""
    as_written: ClassVar[Sql | None] = None
    """The plan of that query word for word, as earlier versions paid for it."""
    earlier: ClassVar[tuple[Sql, ...]] = ()
    """What earlier versions made of the same words and the same budget, where that was another plan."""
    spares_delta: ClassVar[bool] = False
    """Was a delta offered, and left out because Laplace noise is smaller?"""

    def __post_init__(self) -> None:
        checks.instance(self.text, str, "text", "a query")
        checks.instance(self.schema, Schema, "schema", "a Schema")
        object.__setattr__(self, "text", unfolded(self.text, self.schema).text)
        object.__setattr__(self, "schema", self.schema.stored)
        rows_or_users(self.protects)
        object.__setattr__(self, "released", _released(self.released))
        if (self.epsilon is None) == (self.rho is None):
            raise ArgumentError(
                "say how much to spend in one way: epsilon (with delta for Gaussian noise), or rho.", code="how-much"
            )
        if self.epsilon is not None:
            object.__setattr__(self, "epsilon", checks.epsilon(self.epsilon))
        else:
            object.__setattr__(self, "rho", checks.positive(self.rho, "rho"))
        object.__setattr__(self, "delta", checks.delta(self.delta, zero=True))
        object.__setattr__(self, "bounds", _bounds(self.bounds))
        object.__setattr__(self, "keys", _keys(self.keys))
        checks.instance(self.shares, Mapping, "shares", "weights by question")
        weights = {name: checks.positive(each, f"shares of {name}") for name, each in self.shares.items()}
        object.__setattr__(self, "shares", Named(weights))
        if self.limits is not None:
            checks.instance(self.limits, Limits, "limits", "Limits(rows=..., keys=...), or None for the adviser's")
        object.__setattr__(self, "advice", checks.positive(self.advice, "advice"))
        if self.advice > Fraction(1, 2):
            raise checks.refuse("advice", self.advice, "a share of the budget, at most 1/2")
        checks.instance(self.floor, bool, "floor", "True or False")
        checks.instance(self.unclip, bool, "unclip", "True or False")
        if self.hints is not None:
            checks.instance(self.hints, Hints, "hints", "hints by name, such as {'units': 5000, 'rows': 3}")
            self._take_hints(self.hints)
        if self.limits is not None:
            check_generous(self.front, self.limits.reach, self.text)
        if self.fixed is not None:
            _ = self.fixed.spreads
            running.check(self.front, self.fixed)
        else:
            check_advice(self)
        finish.check(self)  # what cannot be computed from the released numbers is refused before they are paid for

    def _take_hints(self, hints: Hints) -> None:
        """Limits by the hints, where none are given; else the hints only tell what the limits are expected to take."""
        if not self.front.units:
            raise ArgumentError("hints are not for rows that are units of their own: nothing limits them.")
        if self.limits is None:
            object.__setattr__(self, "limits", Limits())
            object.__setattr__(self, "limits", limits_by(self, hints))

    @property
    def unit(self) -> Unit:
        return self.protects

    @property
    def other_names(self) -> dict[str, str]:
        """Of the tables that the query reads."""
        read = self.front.private_tables
        return {table: column for table, column in other_names(self.schema, self.protects).items() if table in read}

    @property
    def paths(self) -> dict[str, str]:
        """Of the tables that the query reads."""
        read = self.front.private_tables
        links = {orphans_of(name): table.leads for name, table in self.schema.tables.items() if table.leads is not None}
        apart = {name: f"{link.column} leads to nobody: {_APART}" for name, link in links.items() if name in read}
        words = {table: words for table, words in paths(self.schema, self.protects).items() if table in read}
        return words | apart

    @property
    def opens(self) -> Opening[Connection]:
        return ENGINE

    def _contribution_bounds(self, path: str) -> Iterator[contributions.Bound]:
        """Limits first: those of the plan, or that an adviser measures them. Then the query's own bounds, which come
        before those of the schema."""
        square = self.rho is not None or self.delta != 0
        at = contributions.joined(path, "limits")
        if self.limits is not None:
            words = {contributions.WORDS: self.limits.words(self.protects.noun, square)}
            for limit in contributions.within(self.limits, at):
                yield limit | {"lengths": "square" if square else "add up"} | words
        elif self.protects.of != "row":
            yield {"of": at, "kind": ADVISED, contributions.WORDS: MEASURED.format(self.protects.noun)}
        for name, (low, high) in self.bounds.items():
            clamp = {"lower": contributions.scalar(low), "upper": contributions.scalar(high)}
            words = contributions.clamped(name, *clamp.values())
            yield {"of": contributions.joined(path, f"bounds.{name}"), "kind": BOUNDS, "column": name, **clamp, **words}
        for bound in contributions.within(self.schema, contributions.joined(path, "schema")):
            if bound["of"].rpartition(".")[2].lower() not in self.bounds:
                yield bound

    def afterwards(self) -> tuple[str, ...]:
        more = {
            "numbers below 0 raised to 0": self.floor,
            "sums raised by what limits are estimated to take": self.unclip,
        }
        return "SELECT list, HAVING, ORDER BY and LIMIT of queries", *(words for words, done in more.items() if done)

    @cached_property
    def front(self) -> Front:
        """The query taken apart: needs no data."""
        kind = "laplace" if self.rho is None and not self.delta else "gaussian"
        options: dict[str, Any] = {"bounds": self.bounds, "keys": self.keys, "noise": kind, "released": self.released}
        return front(self.text, self.schema, self.protects, written=self.written, **options)

    @cached_property
    def forms(self) -> tuple[Sql, ...]:
        """Its query in the one way, then word for word, then with the limits of 1 that stood where nobody gave any;
        then what earlier versions made of it."""
        plan = self.as_written
        if plan is None or plan.limits is None:
            return (self, *self.earlier) if plan is None else (self, plan, *self.earlier)
        ones: dict[str, Any] = {name: 1 for name in ("keys", "values") if getattr(plan.limits, name) is None}
        old = replace(plan, limits=replace(plan.limits, **ones))
        return (self, plan, old, *self.earlier) if ones else (self, plan, *self.earlier)

    @cached_property
    def questions(self) -> Questions:
        return Questions.of(self.front.aggregates, selects=self.front.selects)

    @cached_property
    def blur(self) -> Blur:
        return blur(self.unit, epsilon=self.epsilon, delta=self.delta, rho=self.rho, selects=self.front.selects)

    @property
    def event(self) -> events.Event:
        return self.blur.event

    @cached_property
    def layout(self) -> Layout:
        """What there is to measure of how much units hold, and of what limits cut."""
        return Layout.of(self)

    @property
    def advises(self) -> bool:
        """Does the adviser choose the limits, for a part of the budget? Rows that are units of their own need none."""
        return self.limits is None and self.layout.histograms > 0

    @property
    def measures_cuts(self) -> bool:
        """Is a part of the budget spent on what limits cut?"""
        return self.advises or (self.unclip and self.layout.histograms > 0)

    @cached_property
    def fixed(self) -> Design | None:
        """The design, where nothing is left to be measured before the answer itself."""
        return None if self.measures_cuts else self.design(self.limits or Limits())

    def design(self, limits: Limits, reaches: Mapping[str, Fraction] | None = None) -> Design:
        """Everything about the noise, for these limits."""
        rest = 1 - self.advice if self.measures_cuts else Fraction(1)
        weights = self.front.by_question(self.shares) if self.written is None else self.shares
        shares = shares_of(self.questions, weights, rest, selects=self.front.selects)
        if not self.front.units:
            if limits.reach:
                raise ArgumentError("reach is not for rows that are units of their own, unweighted: give bounds.")
            limits = replace(limits, rows=Fraction(1))  # nothing weights them: each counts in full
        limits = limits.completed(self.front.groups)
        reach = {each.name: limits.rows * each.largest for each in self.questions.measures}
        reach |= self.front.reaches(limits.reach)
        reach |= reaches or {}
        return Design(self.questions, self.blur, limits, reach, shares, self.front.selects, self.front.units)

    @property
    def rehearsal_rows(self) -> int:
        design = self.fixed or self.design(Limits(keys=COMMON_KEYS))
        if not design.selects or design.votes is None:
            return super().rehearsal_rows
        least = design.threshold * 2.0**-design.votes.coordinate.bits
        known = (len(key.values) if key.values is not None else 2 * COMMON_KEYS for key in self.front.keys)
        return rehearsed_above(least, prod(known))

    @property
    def columns(self) -> dict[str, Column]:
        return {}

    def check(self, table: Table) -> None:
        raise PlanError("a query runs on a Private that holds the tables of its schema, not inside another plan")

    def check_groups(self) -> None:
        """Refuse groups that no row can be in, and too many of them. Not asked at birth: what was stored before this
        was refused is still read."""
        check_groups(self.front.keys)
        check_sizes(self.front.keys, self.front.reading.facts)

    @property
    def lists(self) -> frozenset[str]:
        keys = self.front.keys
        tables = {key.origin[0] for key in keys if key.values is None and key.origin is not None}
        together = blocks(keys, self.front.reading.facts)
        return frozenset(tables).union(*(block.tables for block in together))

    def bind(self, connection: Connection) -> None:
        """Refuse statements that the engine does not take, and too many groups in public tables."""
        listed = self.lists or any(key.image is not None for key in self.front.keys)
        if listed and not self.front.selects:
            running.given(self.front, connection)
        for tree in self._statements.values():
            connection.bind(tree)
        if self.fixed is None and connection.gaps:  # an engine with all words takes what follows, too
            for tree in advice_statements.statements(self):
                connection.bind(tree)

    def check_schema(self, schema: Schema) -> None:
        """Refuse data of another schema."""
        if schema.stored != self.schema:
            raise PlanError("the query was made for another schema: build it with the schema of the data")
        if self.released:
            raise PlanError("the query reads what an earlier stage released: it runs within its plan, not by itself")
        self.check_groups()

    def _run(self, connection: Connection, run: Run) -> dict[str, Any]:
        fixed = self.fixed
        found = (
            advised(self, connection, run.noise)
            if fixed is None
            else running.answer(self.front, fixed, connection, run.noise)
        )
        return found if self.written is None else {**found, "written": self.written}

    @property
    def bulk(self) -> Bulk:
        """Where groups and limits are known before anything runs, by the code that all queries share."""
        shared = type(self)._run is Sql._run
        return "steady" if shared and self.fixed is not None and not self.front.selects else "no"

    def _runs(self, data: Connection, run: Run, count: int) -> Any:
        if self.bulk == "no" or self.fixed is None:
            return super()._runs(data, run, count)
        return copies.answers(self.front, self.fixed, data, run.noise, count)

    def as_shown(self, raw: Mapping[str, Any]) -> Sql:
        """Read back from JSON, it is shown as whoever paid for it wrote it."""
        first = raw.get("written")
        return self if self.written is not None or first is None else replace(self, written=first)

    def finish(self, raw: dict[str, Any]) -> Answer:
        return finish.answer(self.as_shown(raw), raw)

    def error(self, raw: dict[str, Any], alpha: float) -> Any:
        answer = self.finish(raw)
        return {name: answer.half_width(name, alpha) if name in answer.numbers else None for name in answer.columns}

    def expected_error(self, alpha: float) -> float | None:
        widths = finish.expected(self, alpha)
        return next(iter(widths.values())) if len(widths) == 1 else None

    def expected_errors(self, alpha: float) -> Mapping[str, float]:
        return ranks.named(self, finish.expected(self, alpha))

    def expected_work(self) -> Mapping[str, str]:
        """Nothing of time and memory; but why a part of the budget that was offered is not taken."""
        return {"noise": explain.SPARED} if self.spares_delta else {}

    @property
    def error_words(self) -> str:
        return ", of noise alone" if exposed_names(self) else ""

    def statements(self) -> dict[str, str]:
        """The SQL that the engine runs, by what it is for; with the adviser, as it would be for limits of 1."""
        return {name: DUCKDB.text(tree, pretty=True) for name, tree in self._statements.items()}

    @cached_property
    def _statements(self) -> dict[str, exp.Query]:
        return running.statements(self.front, self.fixed or self.design(Limits()))

    def explain(self) -> list[str]:
        return explain.steps(self)

    @classmethod
    def sample(cls) -> Sql:
        """As `sql` makes it: in the one way that its question is written."""
        columns = {"id": key(), "ward": category(("east", "north", "west")), "days": real(0, 9)}
        tables = Schema({"visits": Table(columns, unit="id")})
        text = "SELECT ward, COUNT(*), SUM(days) FROM visits GROUP BY ward"
        return cls(text=text, schema=tables, protects=Unit("user:id"), epsilon=1, delta=1e-6, limits=Limits(rows=2))


def _released(tables: Any) -> Named[str, Table]:
    checks.instance(tables, Mapping, "released", "tables by name")
    for name, table in tables.items():
        checks.instance(table, Table, f"released {name}", "a table")
        if table.private:
            raise checks.refuse(f"released {name}", "private", "a public table: what was released is nobody's")
    return Named(tables)


def _bounds(given: Any) -> Named[str, tuple[Fraction, Fraction]]:
    checks.instance(given, Mapping, "bounds", "bounds by column, such as {'days': (0, 30)}")
    found = {}
    for name, each in given.items():
        if not isinstance(each, list | tuple) or len(each) != 2:
            raise checks.refuse(f"bounds of {name}", each, "a pair (lowest, highest)")
        low, high = each
        found[checks.label(name, "bounds").lower()] = checks.interval(low, high, f"lowest {name}", f"highest {name}")
    return Named(found)


def _keys(given: Any) -> Named[str, Any]:
    checks.instance(given, Mapping, "keys", "groups by column, such as {'ward': ['A', 'B']}")
    lists = {checks.label(name, "keys").lower(): each for name, each in given.items()}
    for name, each in lists.items():
        if not isinstance(each, list | tuple | str):
            raise checks.refuse(f"keys of {name}", type(each).__name__, "a list of different values, or 'select'")
    return Named({name: each if isinstance(each, str) else tuple(each) for name, each in lists.items()})
