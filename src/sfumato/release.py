"""What leaves the house: quotes before, releases after."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .accounting import zcdp
from .checks import refuse
from .errors import UnsupportedEventError
from .plan import Plan, Receipt

_ALPHA = 0.05
_ROWS_SHOWN = 20


@dataclass(frozen=True)
class Quote:
    """What a plan costs and how exact it will be. Nothing was touched or charged."""

    plan: Plan[Any]
    affordable: bool
    left: tuple[str, ...] = ()

    @property
    def price(self) -> str:
        return price_text(self.plan)

    @property
    def epsilon(self) -> float:
        return float(self.plan.price())

    @property
    def delta(self) -> float:
        return float(self.plan.delta)

    def error(self, alpha: float = _ALPHA) -> float | None:
        """The half-width expected at confidence 1 - alpha, where the fields alone give it."""
        return self.plan.expected_error(_confidence(alpha))

    def errors(self, alpha: float = _ALPHA) -> Mapping[str, float]:
        """The half-widths expected of several answers, by name, where the fields alone give them."""
        return self.plan.expected_errors(_confidence(alpha))

    def __str__(self) -> str:
        return "\n".join(f"{name:9} {text}" for name, text in self._lines())

    def _lines(self) -> Iterator[tuple[str, str]]:
        yield "price", self.price
        yield "hides", str(self.plan.unit)
        width = self.error()
        if width is not None:
            yield "error", f"±{width:.4g} at 95 %"
        else:
            for name, each in self.errors().items():
                yield "error", f"{name}: ±{each:.4g} at 95 %"
        for text in self.left:
            yield "budget", text
        yield "verdict", "fits the budget" if self.affordable else "does not fit the budget"

    def _repr_html_(self) -> str:
        return _html_table(("", "quote"), self._lines())


@dataclass(frozen=True)
class Release:
    """A private answer. `value` is what to read, `raw` the noisy numbers it was made from."""

    plan: Plan[Any]
    raw: Any
    receipt: Receipt | None

    @property
    def value(self) -> Any:
        return self.plan.finish(self.raw)

    def error(self, alpha: float = _ALPHA) -> Any:
        """Half-widths at confidence 1 - alpha for each number by itself, shaped like the value."""
        return self.plan.error(self.raw, _confidence(alpha))

    def explain(self) -> str:
        """What was done, in numbered steps, with the numbers used."""
        steps = [*self.plan.explain(), f"hide {self.plan.unit}", f"pay {price_text(self.plan)}"]
        grade = "made-up rows, free" if self.receipt is None else f"{self.receipt.grade} noise, {self.receipt.loop}"
        text = "\n".join(f"{number}. {step}" for number, step in enumerate((*steps, grade), 1))
        return text + "\nError bars cover the noise; they do not cover values clamped to bounds or rows left out."

    def rows(self, alpha: float = _ALPHA) -> list[tuple[str, str, str]]:
        """(name, value, error bar), ready to print."""
        return list(_flat("", self.value, self.error(alpha)))

    def __str__(self) -> str:
        value = self.value
        if hasattr(value, "_repr_html_"):  # a table that shows itself, with its error bars
            return f"{value}\n{self._footnote()}"
        rows = self.rows()
        shown = rows[:_ROWS_SHOWN]
        names, values = (max((len(row[i]) for row in shown), default=0) for i in (0, 1))
        lines = [f"{name:{names}}  {value:>{values}}  {bar}".strip() for name, value, bar in shown]
        if len(rows) > len(shown):
            lines.append(f"... and {len(rows) - len(shown)} more")
        return "\n".join([*lines, self._footnote()])

    def _footnote(self) -> str:
        rehearsed = "rehearsed on made-up rows; " if self.receipt is None else ""
        return f"({rehearsed}{price_text(self.plan)}; hides {self.plan.unit}; ± at 95 %)"

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        value = self.value
        if hasattr(value, "_repr_html_"):
            return f"{value._repr_html_()}<p>{html.escape(self._footnote())}</p>"
        return _html_table(("", "value", "± at 95 %"), self.rows()[:_ROWS_SHOWN], self._footnote())


def _confidence(alpha: float) -> float:
    if not isinstance(alpha, float) or not 0 < alpha < 1:
        raise refuse("alpha", alpha, "a probability above 0 and below 1")
    return alpha


def price_text(plan: Plan[Any]) -> str:
    try:
        epsilon = float(plan.price())
    except UnsupportedEventError:  # no delta was named, so there is no epsilon: the native currency
        return f"rho = {float(zcdp.rho(plan.event)):.6g}"
    return f"epsilon = {epsilon:.6g}" + (f" at delta = {float(plan.delta):.3g}" if plan.delta else "")


def _flat(name: str, value: Any, bar: Any) -> Iterator[tuple[str, str, str]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            inner = f"{name} / {key}" if name else str(key)
            yield from _flat(inner, item, bar[key] if isinstance(bar, Mapping) else None)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _flat(f"{name} [{index}]", item, bar[index] if isinstance(bar, list) else None)
    else:
        shown = f"{value:,.2f}" if isinstance(value, float) else str(value)
        number = isinstance(value, int | float) and not isinstance(value, bool)
        words = "± {:,.2f}" if number else "scores within {:,.2f} of the best"  # of a selection
        yield name, shown, "" if bar is None else words.format(bar)


def _html_table(head: tuple[str, ...], rows: Any, note: str = "") -> str:
    cells = "".join(f"<th>{html.escape(cell)}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table><p>{html.escape(note)}</p>"
