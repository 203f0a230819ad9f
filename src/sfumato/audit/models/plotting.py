"""Pictures of an audit: how well members were told, beside what the claim allows.

matplotlib is an extra, asked for on first use; `roc_data` gives the same as plain numbers, and `roc_svg` as a drawing
that a page can hold as it is.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from ... import checks
from ...report.axes import axes
from ...report.explanations import most_found
from .outcome import ModelAudit

_LEAST = 1e-4
_POINTS = 120
_WIDE, _TALL, _MARGIN = 360.0, 300.0, 44.0


def roc_data(audit: ModelAudit, *, least: float = _LEAST) -> dict[str, Any]:
    """What is drawn: rates that were seen, and the most that the claim allows, from the rate `least` on.

    seen, allowed  pairs of false- and true-positive rates
    """
    checks.instance(audit, ModelAudit, "audit", "an audit of a training, such as audit.models.one_run gives")
    if isinstance(least, bool) or not isinstance(least, int | float) or not 0 < least < 1:
        raise checks.refuse("least", least, "a rate above 0 and below 1, such as 1e-4")
    rates = np.geomspace(least, 1.0, _POINTS)
    allowed = most_found(rates, audit.claim, audit.delta)
    seen = [(max(false, least), max(found, least)) for false, found in audit.points]
    return {
        "least": least,
        "seen": seen,
        "allowed": list(zip(rates.tolist(), np.maximum(allowed, least).tolist(), strict=True)),
        "epsilon": audit.epsilon,
        "claim": audit.claim,
        "delta": audit.delta,
        "confidence": audit.confidence,
        "broken": audit.broken,
    }


def plot_roc(audit: ModelAudit, *, ax: Any = None, label: str | None = None, least: float = _LEAST) -> Any:
    """True against false positives, both on a log scale; what the claim rules out is shaded."""
    data = roc_data(audit, least=least)
    ax = axes(ax)
    at, most = zip(*data["allowed"], strict=True)
    ax.fill_between(at, most, 1.0, alpha=0.2, color="grey", label=f"ruled out by epsilon = {audit.claim:.3g}")
    if data["seen"]:
        ax.plot(*zip(*data["seen"], strict=True), label=label or audit.way)
    ax.plot([least, 1], [least, 1], linestyle=":", color="grey", label="guessing")
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlim(least, 1)
    ax.set_ylim(least, 1)
    ax.set_xlabel("false-positive rate")
    ax.set_ylabel("true-positive rate")
    ax.set_title(f"Members told apart: epsilon at least {audit.epsilon:.3g}")
    ax.legend()
    return ax


def plot_bounds(audits: Iterable[ModelAudit], *, ax: Any = None) -> Any:
    """The lower bound of each audit beside the claim that it is held against."""
    argument: Any = audits
    listed: list[ModelAudit] = list(argument) if isinstance(argument, Iterable) else [argument]
    if not listed or not all(isinstance(each, ModelAudit) for each in listed):
        raise checks.refuse("audits", type(argument).__name__, "a list of audits, such as audit.models.one_run gives")
    ax = axes(ax)
    places = np.arange(len(listed))
    bars = ax.barh(places, [each.epsilon for each in listed], height=0.5, label="proven at least")
    ax.bar_label(bars, [f"{each.epsilon:.3g}" for each in listed], padding=3)  # 0 would be no bar at all
    for bar, audit in zip(bars, listed, strict=True):
        if audit.broken:
            bar.set(edgecolor="#b3261e", linewidth=2.0)
    claims = [(each.claim, place) for place, each in enumerate(listed) if math.isfinite(each.claim)]
    if claims:
        ends = [(place - 0.35, place + 0.35) for _, place in claims]
        ax.vlines([claim for claim, _ in claims], *zip(*ends, strict=True), color="#b3261e", label="claimed")
    ax.set_yticks(places, [each.way for each in listed], parse_math=False)
    ax.invert_yaxis()  # in the order of the list, from the top
    ax.set_xlim(left=0)
    ax.margins(x=0.1)
    ax.set_xlabel("epsilon")
    ax.set_title("What was proven of what is claimed")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, frameon=False)  # below: it would lie on a claim
    return ax


def roc_svg(audit: ModelAudit, *, least: float = _LEAST) -> str:
    """The same picture as SVG text, in the colours of the page around it."""
    data = roc_data(audit, least=least)

    def at(point: tuple[float, float]) -> str:
        share = [1 - math.log(min(max(each, least), 1.0)) / math.log(least) for each in point]
        return f"{_MARGIN + share[0] * (_WIDE - _MARGIN - 8):.1f},{8 + (1 - share[1]) * (_TALL - _MARGIN - 8):.1f}"

    outline = " ".join(at(each) for each in [*data["allowed"], (1.0, 1.0), (least, 1.0)])
    seen = " ".join(at(each) for each in data["seen"])
    decades = [10.0**power for power in range(math.ceil(math.log10(least) - 1e-9), 1)]
    ticks = "".join(_tick(at((each, least)), each, down=True) + _tick(at((least, each)), each) for each in decades)
    words = html.escape(f"{audit.way}: epsilon at least {audit.epsilon:.3g}, claimed {audit.claim:.3g}")
    quiet, colour = 'fill="currentColor" font-size="11"', "#d64545" if audit.broken else "#d9822b"
    middle = _MARGIN + (_WIDE - _MARGIN) / 2
    return (
        f'<svg viewBox="0 0 {_WIDE:g} {_TALL:g}" width="{_WIDE:g}" height="{_TALL:g}" role="img" aria-label="{words}">'
        f'<polygon points="{outline}" fill="currentColor" fill-opacity=".12"/>'
        f'<polyline points="{at((least, least))} {at((1.0, 1.0))}" fill="none" stroke="currentColor" '
        f'stroke-opacity=".4" stroke-dasharray="2 3"/>'
        f'<polyline points="{seen}" fill="none" stroke="{colour}" stroke-width="1.6"/>'
        f'{ticks}<text {quiet} x="{middle:g}" y="{_TALL - 6:g}" text-anchor="middle">false-positive rate</text>'
        f'<text {quiet} transform="translate(10 {(_TALL - _MARGIN) / 2:g}) rotate(-90)" text-anchor="middle">'
        f"true-positive rate</text>{_legend(audit, colour)}</svg>"
    )


def _tick(point: str, rate: float, *, down: bool = False) -> str:
    x, y = map(float, point.split(","))
    x, y, anchor = (x, y + 13, "middle") if down else (x - 5, y + 4, "end")
    name = f"{rate:g}".replace("e-0", "e-")
    return f'<text fill="currentColor" font-size="10" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{name}</text>'


def _legend(audit: ModelAudit, colour: str) -> str:
    """What is what, in the corner that no attack worth drawing comes to: many false positives, few true ones."""
    x, y = _WIDE - 168, _TALL - _MARGIN - 44
    keys = (
        f'<line x1="{x:g}" x2="{x + 18:g}" y1="{y - 4:g}" y2="{y - 4:g}" stroke="{colour}" stroke-width="1.6"/>',
        f'<rect x="{x:g}" y="{y + 7:g}" width="18" height="9" fill="currentColor" fill-opacity=".2"/>',
        f'<line x1="{x:g}" x2="{x + 18:g}" y1="{y + 28:g}" y2="{y + 28:g}" stroke="currentColor" '
        f'stroke-opacity=".4" stroke-dasharray="2 3"/>',
    )
    names = ("the attack", f"ruled out by epsilon = {audit.claim:.3g}", "guessing")
    return "".join(
        f'{key}<text fill="currentColor" font-size="10" x="{x + 24:g}" y="{y + 16 * place:g}">{name}</text>'
        for place, (key, name) in enumerate(zip(keys, names, strict=True))
    )


__all__ = ["plot_bounds", "plot_roc", "roc_data", "roc_svg"]
