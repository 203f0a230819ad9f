"""HTML for notebooks: cards, tables, budget bars and error bars that need no script and no style sheet.

Every text is escaped on its way in; only what is made here (`Html`) is taken as it is. Lines have the colour of the
page's own text, and fills stand out on light and on dark. MathJax, which many notebooks run over what they show, is
told to keep away: to it a key of the data that reads "$\\href{...}$" would be a link.
"""

from __future__ import annotations

import html
import math
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from .plain_text import percent, printable

SPENT, NOW, SHORT = "#7a869a", "#d9822b", "#d64545"
"""Fills of a bar: what was spent before, what is asked for now, and what does not fit."""

_WIDEST = 240  # characters of a cell: whoever needs a longer key has it in the value itself
_BAR_WIDTH, _BAR_HEIGHT = 220, 10
_ERROR_WIDTH, _ERROR_HEIGHT, _MARGIN = 120, 14, 4
_CELL = "padding:2px 10px 2px 0;vertical-align:middle;border:0;background:none;max-width:42em;overflow-wrap:break-word;"
_QUIET = "margin:4px 0;font-size:90%;opacity:.75"


class Html(str):
    """A text that is HTML already."""

    __slots__ = ()


def text(value: Any) -> Html:
    """Any value as words on a page."""
    return value if isinstance(value, Html) else Html(html.escape(printable(value, lines=True)))


def card(title: str, *parts: Any, note: str = "") -> Html:
    """What a notebook shows of one thing: a title, its parts one below the other, and a footnote."""
    head = f'<div style="font-weight:600;margin:0 0 4px">{text(title)}</div>' if title else ""
    below = f'<p style="{_QUIET}">{text(note)}</p>' if note else ""
    body = "".join(map(text, parts))
    return Html(f'<div class="tex2jax_ignore mathjax_ignore" style="margin:4px 0">{head}{body}{below}</div>')


def paragraph(words: Any, *, quiet: bool = False) -> Html:
    """One sentence or more."""
    return Html(f'<p style="{_QUIET if quiet else "margin:4px 0"}">{text(words)}</p>')


def details(title: str, *parts: Any) -> Html:
    """What opens when it is asked for."""
    return Html(f"<details><summary>{text(title)}</summary>{''.join(map(text, parts))}</details>")


def table(
    head: Sequence[Any], rows: Iterable[Sequence[Any]], *, right: Collection[int] = (), caption: str = ""
) -> Html:
    """A table; `right` are the places of columns of numbers. An empty `head` leaves the heading out."""
    heading = "".join(_cell("th", head[i], i in right, "border-bottom:1px solid;") for i in range(len(head)))
    body = ""
    for row in rows:
        body += "<tr>" + "".join(_cell("td", row[i], i in right) for i in range(len(row))) + "</tr>"
    above = f'<caption style="caption-side:top;text-align:left">{text(caption)}</caption>' if caption else ""
    top = f"<thead><tr>{heading}</tr></thead>" if head else ""
    style = "border-collapse:collapse;margin:2px 0;width:auto;font-size:inherit"
    return Html(f'<table style="{style}">{above}{top}<tbody>{body}</tbody></table>')


def facts(pairs: Iterable[tuple[Any, Any]]) -> Html:
    """Names with what there is to say of them."""
    return table((), ((Html(f'<span style="opacity:.75">{text(name)}</span>'), value) for name, value in pairs))


def indented(words: Any, depth: int) -> Html:
    """A text that stands below another one."""
    return Html(f'<span style="padding-left:{1.5 * depth:g}em">{text(words)}</span>')


def steps(lines: Iterable[str]) -> Html:
    """A numbered list. A step of several lines (a statement of SQL) opens on a click."""
    items = ""
    for line in lines:
        first, *others = line.split("\n")
        words = text(first)
        if others:
            code = f'<pre style="margin:2px 0;background:none;white-space:pre-wrap">{text(chr(10).join(others))}</pre>'
            words = Html(f"<details><summary>{words}</summary>{code}</details>")
        items += f'<li style="margin:1px 0">{words}</li>'
    return Html(f'<ol style="margin:4px 0;padding-left:24px">{items}</ol>')


def bar(used: float, now: float = 0.0) -> Html:
    """How much of a limit is gone, what is asked for now, and what is left, as shares of 1. More than 1: it does not
    fit."""
    before, asked = _share(used), max(0.0, now) if not math.isnan(now) else 0.0
    fits = before + asked <= 1 + 1e-12
    words = [f"{percent(before)} spent"]
    words += [f"this {percent(asked)}" if math.isfinite(asked) else "this does not fit"] if asked else []
    words += [f"{percent(max(0.0, 1 - before - asked))} left" if fits else "more than is left"]
    told = ", ".join(words)
    start = _pixels(before)
    end = max(start, min(_BAR_WIDTH, start + (_pixels(min(asked, 1.0)) if asked else 0)))
    drawn = f'<rect width="{start}" height="{_BAR_HEIGHT}" fill="{SPENT}"/>' if start else ""
    if end > start:
        drawn += f'<rect x="{start}" width="{end - start}" height="{_BAR_HEIGHT}" fill="{NOW if fits else SHORT}"/>'
    if not fits and end == start:  # nothing is left to draw it in
        drawn += f'<rect x="{start - 3}" width="3" height="{_BAR_HEIGHT}" fill="{SHORT}"/>'
    frame = f'<rect x=".5" y=".5" width="{_BAR_WIDTH - 1}" height="{_BAR_HEIGHT - 1}" fill="none"'
    drawn += f'{frame} stroke="currentColor" stroke-opacity=".5"/>'
    picture = _svg(_BAR_WIDTH, _BAR_HEIGHT, told, drawn)
    return Html(f'<span style="white-space:nowrap">{picture} <small>{text(told)}</small></span>')


_DASHES = ' stroke-dasharray="2 2"'


def span(points: Iterable[tuple[float, float | None]]) -> tuple[float, float] | None:
    """The stretch that holds these numbers with their error bars, so that all are drawn to one scale."""
    ends = [value + sign * (width or 0.0) for value, width in points for sign in (-1, 1) if math.isfinite(value)]
    ends = [end for end in ends if math.isfinite(end)]
    return (min(ends), max(ends)) if ends else None


def error_bar(
    value: float,
    width: float | None,
    within: tuple[float, float] | None,
    *,
    doubt: bool = False,
    above: bool = False,
    below: bool = False,
) -> Html:
    """A number as a point with its error bar, drawn to the scale of `within`, as far as it is in sight there; a thin
    line at 0. Where the truth may be any amount above or below, dashes lead out of sight, and no end is drawn."""
    if within is None or width is None or not math.isfinite(value):
        return Html("")
    low, high = within
    at, middle = _across(value, low, high), _ERROR_HEIGHT / 2
    colour = SHORT if doubt else "currentColor"
    style = f'stroke="{colour}" stroke-opacity=".7"'
    drawn = ""
    if low < 0 < high:
        zero = _across(0.0, low, high)
        drawn += _line(zero, 0, zero, _ERROR_HEIGHT, 'stroke="currentColor" stroke-opacity=".3"')
    left, right = (_across(x, low, high) for x in (low if below else value - width, high if above else value + width))
    known = left if not below else at, right if not above else at
    if known[0] < known[1] or not (above or below):
        drawn += _line(known[0], middle, known[1], middle, style + ("" if math.isfinite(width) else _DASHES))
    for x, end, open_ in ((value - width, left, below), (value + width, right, above)):
        if open_:
            drawn += _line(min(at, end), middle, max(at, end), middle, style + _DASHES)
        elif low <= x <= high:
            drawn += _line(end, middle - 3, end, middle + 3, style)
    if low <= value <= high:
        drawn += f'<circle cx="{at:.1f}" cy="{middle:g}" r="2.5" fill="{colour}"/>'
    words = _bar_words(value, width, above, below) + (", hidden by noise" if doubt else "")
    return _svg(_ERROR_WIDTH, _ERROR_HEIGHT, words, drawn)


def _bar_words(value: float, width: float, above: bool, below: bool) -> str:
    if above != below:
        return f"{value:.6g}, at {f'least {value - width:.6g}' if above else f'most {value + width:.6g}'}"
    return f"{value:.6g}{', noise' if above else ''} ± {width:.3g}"


def _cell(kind: str, value: Any, right: bool, more: str = "") -> str:
    if not isinstance(value, Html):
        words = str(value)
        value = words if len(words) <= _WIDEST else words[: _WIDEST - 3] + "..."
    side = "right" if right else "left"
    return f'<{kind} style="{_CELL}{more}text-align:{side}">{text(value)}</{kind}>'


def _share(value: float) -> float:
    return 1.0 if math.isnan(value) else min(max(value, 0.0), 1.0)  # what is not known is not told as left


def _pixels(share: float) -> int:
    """A little that is spent, and a little that is left, can be seen."""
    if share <= 0:
        return 0
    return _BAR_WIDTH if share >= 1 else min(max(round(share * _BAR_WIDTH), 1), _BAR_WIDTH - 1)


def _across(x: float, low: float, high: float) -> float:
    """Halves first: the ends of the largest numbers are farther apart than a float can tell."""
    length = high / 2 - low / 2
    share = (x / 2 - low / 2) / length if length > 0 else 0.5
    share = min(max(share, 0.0), 1.0) if not math.isnan(share) else 0.5
    return _MARGIN + share * (_ERROR_WIDTH - 2 * _MARGIN)


def _line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:g}" x2="{x2:.1f}" y2="{y2:g}" {style}/>'


def _svg(width: int, height: int, words: str, drawn: str) -> Html:
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return Html(f'<svg {size} style="vertical-align:middle" role="img" aria-label="{text(words)}">{drawn}</svg>')
