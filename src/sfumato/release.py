"""What leaves the house: quotes before, releases after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, cast

from .checks import library, refuse
from .exhibits import Exhibit
from .plain_text import csv_text, printable
from .plan import Plan, Receipt, price_text, told_before

_ALPHA = 0.05
_ROWS_SHOWN = 20


@dataclass(frozen=True)
class Quote(Exhibit):
    """What a plan costs and how exact it will be. Nothing was touched or charged.

    left  what everything so far amounts to on each account that would pay, and what this would make of it, in words
    used  for each of them, the part of its limit that is gone before and after; None where it has no limit, infinite
          where the plan does not fit
    due   what is to be paid now, in words, where that is not the price: it is answered, or paid, already
    """

    _card = "sfumato.cards:quote"

    plan: Plan[Any, Any]
    affordable: bool
    left: tuple[str, ...] = ()
    used: Mapping[str, tuple[float | None, float | None]] = field(default_factory=dict)
    due: str | None = None

    @property
    def price(self) -> str:
        return price_text(self.plan)

    @property
    def epsilon(self) -> float:
        return float(self.plan.price())

    @property
    def delta(self) -> float:
        return float(self.plan.delta)

    @property
    def verdict(self) -> str:
        if self.due is not None and self.affordable:
            return "free now"
        return "fits the budget" if self.affordable else "does not fit the budget"

    def error(self, alpha: float = _ALPHA) -> float | None:
        """The half-width expected at confidence 1 - alpha, where the fields alone give it."""
        return self.plan.expected_error(_confidence(alpha))

    def errors(self, alpha: float = _ALPHA) -> Mapping[str, float]:
        """The half-widths expected of several answers, by name, where the fields alone give them."""
        return self.plan.expected_errors(_confidence(alpha))

    def __str__(self) -> str:
        lines = [*self.facts(), *(("budget", text) for text in self.left), ("verdict", self.verdict)]
        return "\n".join(f"{name:9} {printable(text)}" for name, text in lines)

    def facts(self) -> Iterator[tuple[str, str]]:
        """What is said before anything runs, by name."""
        yield from told_before(self.plan)
        yield from self.plan.expected_work().items()
        if self.due is not None:
            yield "due now", self.due


class Figure(NamedTuple):
    """One released value with its half-width; `name` says where in the release it stands."""

    name: str
    value: Any
    error: float | None

    @property
    def is_number(self) -> bool:
        return isinstance(self.value, int | float) and not isinstance(self.value, bool)

    @property
    def texts(self) -> tuple[str, str, str]:
        shown = f"{self.value:,.2f}" if isinstance(self.value, float) else str(self.value)
        words = "± {:,.2f}" if self.is_number else "scores within {:,.2f} of the best"  # of a selection
        name, shown = printable(self.name), printable(shown)
        return name, shown, "" if self.error is None else words.format(self.error)


@dataclass(frozen=True)
class Release(Exhibit):
    """A private answer. `value` is what to read, `raw` the noisy numbers it was made from."""

    _card = "sfumato.cards:release"

    plan: Plan[Any, Any]
    raw: Any
    receipt: Receipt | None

    @cached_property
    def value(self) -> Any:
        return self.plan.finish(self.raw)

    def error(self, alpha: float = _ALPHA) -> Any:
        """Half-widths at confidence 1 - alpha for each number by itself, shaped like the value."""
        return self.plan.error(self.raw, _confidence(alpha))

    def explain(self) -> str:
        """What was done, in numbered steps, with the numbers used."""
        steps = [*self.plan.explain(), f"hide {self.plan.hides}", f"pay {price_text(self.plan)}"]
        grade = "made-up rows, free" if self.receipt is None else f"{self.receipt.grade} noise, {self.receipt.loop}"
        text = "\n".join(f"{number}. {step}" for number, step in enumerate((*steps, grade), 1))
        return (
            printable(text, lines=True)
            + "\nError bars cover the noise; they do not cover values clamped to bounds or rows left out."
        )

    def figures(self, alpha: float = _ALPHA) -> list[Figure]:
        """Every released value by itself, with its name and its half-width."""
        return list(_flat("", self.value, self.error(alpha)))

    def rows(self, alpha: float = _ALPHA) -> list[tuple[str, str, str]]:
        """(name, value, error bar), ready to print."""
        return [figure.texts for figure in self.figures(alpha)]

    # other forms

    def to_pandas(self, alpha: float = _ALPHA) -> Any:
        """A pandas DataFrame: of a query its table, of anything else the columns name, value and error."""
        value = self.value
        return value.to_pandas(alpha) if _is_table(value) else library("pandas").DataFrame(self._columns(alpha))

    def to_polars(self, alpha: float = _ALPHA) -> Any:
        """The same as a polars DataFrame."""
        value = self.value
        return value.to_polars(alpha) if _is_table(value) else library("polars").DataFrame(self._columns(alpha))

    def to_arrow(self, alpha: float = _ALPHA) -> Any:
        """The same as a pyarrow Table."""
        value = self.value
        return value.to_arrow(alpha) if _is_table(value) else library("pyarrow").table(self._columns(alpha))

    def to_csv(self, path: str | Path | None = None, alpha: float = _ALPHA) -> str | None:
        """The same into a file, or as a text where no path is given."""
        value = self.value
        if _is_table(value):
            return cast("str | None", value.to_csv(path, alpha))
        columns = self._columns(alpha)
        text = csv_text([list(columns), *zip(*columns.values(), strict=True)])
        if path is None:
            return text
        Path(path).write_text(text, encoding="utf-8")
        return None

    def _columns(self, alpha: float) -> dict[str, list[Any]]:
        """A column of a frame has one type: values of different kinds become text."""
        figures = self.figures(alpha)
        values = [figure.value for figure in figures]
        present = [each for each in values if each is not None]
        if all(figure.is_number for figure in figures if figure.value is not None):
            if not all(isinstance(each, int) and -(2**63) <= each < 2**63 for each in present):
                values = [None if each is None else float(each) for each in values]
        elif not all(isinstance(each, bool) for each in present):
            values = [None if each is None else str(each) for each in values]
        errors = [None if figure.error is None else float(figure.error) for figure in figures]
        return {"name": [figure.name for figure in figures], "value": values, "error": errors}

    # what people see

    def __str__(self) -> str:
        groups, tables = self.groups()
        rows = [figure.texts for group in groups for figure in group]
        shown = rows[:_ROWS_SHOWN]
        names, values = (max((len(row[i]) for row in shown), default=0) for i in (0, 1))
        lines = [f"{name:{names}}  {value:>{values}}  {bar}".strip() for name, value, bar in shown]
        if len(rows) > len(shown):
            lines.append(f"... and {len(rows) - len(shown)} more")
        for name, table in tables:
            lines += [f"{name}:", str(table), ""] if name else [str(table)]
        return "\n".join([*lines, f"({self.footnote})"])

    def __repr__(self) -> str:
        return str(self)

    @property
    def footnote(self) -> str:
        """What stands below the figures: what was paid, and whom they hide."""
        rehearsed = "rehearsed on made-up rows; " if self.receipt is None else ""
        return f"{rehearsed}{price_text(self.plan)}; hides {self.plan.hides}; ± at 95 %"

    def groups(self) -> tuple[list[list[Figure]], list[tuple[str, Any]]]:
        """Figures in groups that share a scale, and tables that show themselves, by name. Each part of a sequence (a
        count, a mean) has a scale of its own."""
        value, bars = self.value, self.error()
        sections = [("", value, bars)]
        if self.plan.parts:
            sections = [(str(name), value[name], _part(bars, name)) for name in self.plan.parts]
        figures = [list(_flat(name, item, bar)) for name, item, bar in sections if not _is_table(item)]
        tables = [(name, item) for name, item, _ in sections if _is_table(item)]
        return figures, tables


def _confidence(alpha: float) -> float:
    if not isinstance(alpha, float) or not 0 < alpha < 1:
        raise refuse("alpha", alpha, "a probability above 0 and below 1")
    return alpha


def _is_table(value: Any) -> bool:
    """A table that shows itself, with its error bars: the answer to a query."""
    return hasattr(value, "_repr_html_")


def _part(bars: Any, name: Any) -> Any:
    return bars[name] if isinstance(bars, Mapping) else None


def _flat(name: str, value: Any, bar: Any) -> Iterator[Figure]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _flat(_below(name, key), item, _part(bar, key))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _flat(f"{name} [{index}]".strip(), item, bar[index] if isinstance(bar, list | tuple) else None)
    elif _is_table(value):
        yield from _cells(name, value, bar)
    else:
        yield Figure(name, value, bar)


def _cells(name: str, table: Any, bars: Mapping[str, Any]) -> Iterator[Figure]:
    """The numbers of a table, named by the keys of their row and their column; of a table of keys, the keys."""
    keys = [column for column in table.columns if bars[column] is None]
    numbers = [column for column in table.columns if bars[column] is not None]
    for place, row in enumerate(table.rows):
        group = ", ".join(str(row[key]) for key in keys)
        if not numbers:
            yield Figure(f"{name} [{place}]".strip(), group, None)
        for column in numbers:
            inner = _below(name, group) if keys else name
            yield from _flat(_below(inner, column), row[column], bars[column][place])


def _below(name: str, key: Any) -> str:
    return f"{name} / {key}" if name else str(key)
