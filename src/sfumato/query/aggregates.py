"""Which sums an aggregate is made of, and how it is made of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

from sqlglot import exp

from ..sources.duckdb import DUCKDB
from .kinds import Kind, Typed
from .leaves import Leaves, bin_of, leaves_of
from .measures import Measure, count_rows, stored_text
from .refusal import QueryError
from .released import formulas
from .released.figures import Figure

Figures = Mapping[str, Figure]
Interval = tuple[Fraction, Fraction]

VOTES = "units"
"""The name that the number of units of a group is measured under."""


@dataclass(frozen=True)
class Statistic:
    """A number per group that sums make.

    counts_units  does it need the number of units, too?
    pulls         for each measure: the square of how far the number moves where the measure moves by its reach, in
                  reaches of the number (that of its last measure): on average over what its mean may be, evenly between
                  the bounds. All 1 if left out
    """

    measures: tuple[Measure, ...]
    formula: Callable[[Figures], Figure]
    counts_units: bool = False
    pulls: tuple[Fraction, ...] = ()


@dataclass(frozen=True)
class DistinctValues:
    """COUNT(DISTINCT column): `value` is the column, as an engine expression."""

    value: exp.Expression
    title: str


@dataclass(frozen=True)
class Ranked:
    """Quantiles: rows fall into leaves. ends: -1 for MIN, 1 for MAX, 0 for probabilities."""

    x: Typed
    leaves: Leaves
    chances: tuple[float, ...]
    listed: bool
    end: int

    @property
    def tree(self) -> str:
        """Names the counts that it is read from."""
        return f"ranks of {stored_text(self.x.tree)}"


@dataclass(frozen=True)
class Binned:
    """HISTOGRAM(x, edges): rows fall into bins."""

    bin: exp.Expression
    edges: tuple[Any, ...]
    title: str


Aggregate = Statistic | DistinctValues | Ranked | Binned


@dataclass(frozen=True)
class Argument:
    """What an aggregate is taken of, clamped to [lower, upper]; NULL where a FILTER leaves the row out."""

    tree: exp.Expression
    lower: Fraction
    upper: Fraction
    nullable: bool
    whole: bool
    text: str
    inside: bool = False
    generous: bool = False

    @property
    def spoken(self) -> str:
        """The text without the types that exact arithmetic goes through."""
        if "CAST(" not in self.text:
            return self.text
        holder = exp.paren(DUCKDB.lowered(self.tree), copy=False)
        for node in list(holder.find_all(exp.Cast)):
            inner = node.this  # an exact number stands there as a text
            node.replace(exp.Literal.number(inner.this) if isinstance(inner, exp.Literal) else inner)
        return str(holder.this.sql("duckdb"))

    def around(self, centre: Fraction) -> Measure:
        """The sum of x - centre."""
        tree = self.tree.copy()
        if centre:
            tree = exp.Sub(this=_real(tree), expression=_number(centre))
        less = f" - {float(centre):g}" if centre else ""
        name, title = f"sum of {self.text}{less}", f"sum of {self.spoken}{less}"
        whole = self.whole and centre.denominator == 1
        ends = self.lower - centre, self.upper - centre
        beside = self.count().name
        return Measure(name, tree, *ends, whole, title, self.nullable, self.inside, beside, self.generous)

    def count(self) -> Measure:
        """How many are not NULL."""
        if not self.nullable:
            return count_rows()
        there = counted(exp.Not(this=exp.Is(this=self.tree.copy(), expression=exp.Null())), self.text)
        return replace(there, title=f"rows with {self.spoken}")

    def beside(self, other: Argument) -> Argument:
        """NULL where the other is."""
        if not other.nullable:
            return self
        there = exp.Not(this=exp.Is(this=exp.paren(other.tree.copy()), expression=exp.Null()))
        tree = kept(self.tree.copy(), there)
        return replace(self, tree=tree, nullable=True, text=stored_text(tree))

    def middle(self) -> Fraction:
        """Of the interval; a short number, so that shifting by it is as exact as floats are. The middle of a generous
        interval is far from all values, and the end that is nearest to 0 is not."""
        if self.generous:
            nearest = min(max(Fraction(0), self.lower), self.upper)
            return Fraction(float(nearest))
        middle = (self.lower + self.upper) / 2
        return Fraction(math.floor(middle)) if self.upper - self.lower > 4 else Fraction(float(middle))

    def product(self, other: Argument, centre: Fraction, its: Fraction) -> Measure:
        """The sum of (x - centre)(y - its)."""
        one, two = (
            exp.paren(exp.Sub(this=_real(a.tree.copy()), expression=_number(c)))
            for a, c in ((self, centre), (other, its))
        )
        corners = [
            a * b for a in (self.lower - centre, self.upper - centre) for b in (other.lower - its, other.upper - its)
        ]
        low, high = min(corners), max(corners)
        if self.text == other.text and centre == its:
            low = Fraction(0)
        name = f"sum of ({self.text} - {float(centre):g}) ({other.text} - {float(its):g})"
        beside = self.count().name
        generous = self.generous or other.generous
        tree = exp.Mul(this=one, expression=two)
        return Measure(name, tree, low, high, False, name, counted_by=beside, generous=generous)


def counted(condition: exp.Expression, text: str) -> Measure:
    """How many rows a condition holds for."""
    tree = exp.Case(ifs=[exp.If(this=condition, true=exp.Literal.number(1))])
    return Measure(f"rows with {text}", tree, Fraction(0), Fraction(1), True, f"rows with {text}")


def rows() -> Statistic:
    measure = count_rows()
    return Statistic((measure,), lambda found: found[measure.name])


def count(measure: Measure) -> Statistic:
    return Statistic((measure,), lambda found: found[measure.name])


def units() -> Statistic:
    return Statistic((), lambda found: found[VOTES], counts_units=True)


def total(x: Argument, centre: Fraction) -> Statistic:
    s, n = x.around(centre), x.count()
    if not centre:
        return Statistic((s,), lambda found: found[s.name])
    return Statistic((n, s), lambda found: formulas.total(found[n.name], found[s.name], float(centre)))


def mean(x: Argument, centre: Fraction) -> Statistic:
    s, n = x.around(centre), x.count()
    ends = float(x.lower), float(x.upper)
    # (s - mean n) / N, where s and n stand for their noise
    pulls = _moment(s, 2), Fraction(1)
    return Statistic(
        (n, s), lambda found: formulas.mean(found[n.name], found[s.name], float(centre), *ends), pulls=pulls
    )


def spread(x: Argument, centre: Fraction, *, sample: bool, root: bool) -> Statistic:
    s, q, n = x.around(centre), x.product(x, centre, centre), x.count()
    width = float(x.upper - x.lower)
    made = formulas.deviation if root else formulas.variance

    def formula(found: Figures) -> Figure:
        return made(found[n.name], found[s.name], found[q.name], sample=sample, width=width)

    # (q - 2 mean s + mean^2 n) / N, where rows lie close to their mean
    return Statistic((n, s, q), formula, pulls=(_moment(s, 4), 4 * _moment(s, 2), Fraction(1)))


OfSums = Callable[[Argument, Fraction], Statistic]
"""An aggregate of one column, made of sums: of the column, and of a number near its middle that is taken off first."""
OF_SUMS: dict[type[exp.Expression], OfSums] = {
    exp.Sum: total,
    exp.Avg: mean,
    exp.Variance: partial(spread, sample=True, root=False),
    exp.VariancePop: partial(spread, sample=False, root=False),
    exp.Stddev: partial(spread, sample=True, root=True),
    exp.StddevSamp: partial(spread, sample=True, root=True),
    exp.StddevPop: partial(spread, sample=False, root=True),
}
"""By the node that sqlglot reads them as."""
NAMED: dict[str, OfSums] = {"MEAN": mean, "AVERAGE": mean}
"""By name, for those that sqlglot does not know."""


def together(x: Argument, y: Argument, cx: Fraction, cy: Fraction, *, how: str) -> Statistic:
    """COVAR_SAMP, COVAR_POP or CORR: rows where either is NULL are left out."""
    n, sx, sy, sxy = x.count(), x.around(cx), y.around(cy), x.product(y, cx, cy)
    # (sxy - mean y sx - mean x sy + mean x mean y n) / N
    two, one = _moment(sx, 2), _moment(sy, 2)
    pulls: tuple[Fraction, ...] = two * one, one, two, Fraction(1)
    if how == "corr":
        qx, qy = x.product(x, cx, cx), y.product(y, cy, cy)
        names = [each.name for each in (n, sx, sy, qx, qy, sxy)]
        # Over both deviations, and r/2 of each variance's error besides: r^2 is 1/3 on average.
        part = Fraction(1, 12)
        own = part * (_moment(sx, 4) + _moment(sy, 4)), 4 * part * two, 4 * part * one
        pulls = *(a + b for a, b in zip(pulls[:3], own, strict=True)), part, part, Fraction(1)
        return Statistic(
            (n, sx, sy, qx, qy, sxy),
            lambda found: formulas.correlation(*(found[name] for name in names)),
            pulls=pulls,
        )
    most = float((x.upper - x.lower) * (y.upper - y.lower)) / 4

    def formula(found: Figures) -> Figure:
        parts = (found[each.name] for each in (n, sx, sy, sxy))
        return formulas.covariance(*parts, sample=how == "sample", most=most)

    return Statistic((n, sx, sy, sxy), formula, pulls=pulls)


def _moment(x: Measure, power: int) -> Fraction:
    """The mean of m^power, in powers of the largest row, for m evenly between the least and the largest row."""
    low, high = x.lower / x.largest, x.upper / x.largest
    return (high ** (power + 1) - low ** (power + 1)) / ((power + 1) * (high - low))


def ranked(
    x: Typed,
    bounds: Interval | None,
    chances: tuple[float, ...],
    *,
    listed: bool,
    end: int,
    noise: str,
    node: exp.Expression,
) -> Ranked:
    return Ranked(x, leaves_of(x.kind, bounds, noise=noise, node=node), chances, listed, end)


def binned(x: Typed, edges: tuple[Any, ...], node: exp.Expression) -> Binned:
    return Binned(bin_of(x, edges, node), edges, node.sql())


def kept(tree: exp.Expression, condition: exp.Expression | None) -> exp.Expression:
    """NULL where the condition does not hold."""
    if condition is None:
        return tree
    return exp.Case(ifs=[exp.If(this=condition.copy(), true=tree)])


def interval_of(kind: Kind, given: Interval | None, node: exp.Expression, name: str) -> Interval:
    """The bounds of what is added up: those given, or what is publicly known."""
    if given is not None:
        return given
    if not kind.bounded and kind.likely is not None and kind.likely.bounded:
        return _apart(*(bound or Fraction(0) for bound in (kind.likely.lower, kind.likely.upper)))
    if kind.lower is None or kind.upper is None:
        text = node.sql("duckdb")
        clamped = f"LEAST(GREATEST({text}, 0), 100)"
        raise QueryError(
            f"The values of {text} have no public bounds, so one row could move the answer without limit.",
            f"give bounds that do not come from the data: bounds={{{name!r}: (lowest, highest)}}, or write {clamped}",
            node,
            write=clamped,
        )
    return _apart(kind.lower, kind.upper)


def _apart(lower: Fraction, upper: Fraction) -> Interval:
    return (lower, upper) if lower != upper else (min(lower, Fraction(0)), max(upper, Fraction(1)))


def _real(tree: exp.Expression) -> exp.Expression:
    return exp.cast(tree, "DOUBLE")


def _number(value: Fraction) -> exp.Expression:
    return exp.cast(exp.Literal.string(repr(float(value))), "DOUBLE")
