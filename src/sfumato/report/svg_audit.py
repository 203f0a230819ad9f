"""Drawings of an audit, as SVG text: what was proven against what was claimed, by delta; and an attacker's successes.

A drawing takes its colours from the page. One that stands alone, as in a notebook, brings them along.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

_WIDE, _TALL = 720.0, 260.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 52.0, 14.0, 14.0, 42.0
_ZERO = 46.0  # room at the left for delta = 0, which no logarithm has
_SQUARE = 300.0
_LOWEST = 1e-4  # of the rates that are drawn
_ALONE = (
    "<style>.sfumato-alone text{font:11.5px sans-serif;fill:#5b6773}.sfumato-alone .grid{stroke:#e2e6ea}"
    ".sfumato-alone .limit{stroke:#b3261e;stroke-width:1.6;fill:none}"
    ".sfumato-alone .gauge{stroke:#1f6f78;stroke-width:2.2;fill:none}.sfumato-alone .dot{fill:#1f6f78}"
    ".sfumato-alone .over{fill:#b3261e}.sfumato-alone .chance{stroke:#8a95a0;stroke-dasharray:3 4}</style>"
)

Scale = Callable[[float], float]


def curve(points: Iterable[Mapping[str, Any]], *, alone: bool = False) -> str:
    """Epsilon by delta: the claim, and what was shown at least. "" where there is nothing to draw.

    points  each with `delta`, `claim` and `shown`; what is not a finite number is left out
    """
    drawn = sorted(
        (float(each["delta"]), float(each["claim"]), float(each["shown"])) for each in points if _finite(each)
    )
    if not drawn:
        return ""
    deltas = [delta for delta, _, _ in drawn]
    low, high = _decades([each for each in deltas if each > 0])
    top = 1.08 * max(max(claim, shown) for _, claim, shown in drawn) or 1.0
    left = _LEFT + (_ZERO if deltas[0] == 0 else 0.0)

    def x(delta: float) -> float:
        if delta == 0:
            return _LEFT + 12
        return left + (_WIDE - _RIGHT - left) * (math.log10(delta) - low) / (high - low)

    def y(epsilon: float) -> float:
        return _TOP + (_TALL - _TOP - _BOTTOM) * (1 - epsilon / top)

    parts = _rulers(top, y)
    parts += [_below(x(10.0**each), f"1e{each}" if each else "1") for each in _few(low, high)]
    if deltas[0] == 0:
        parts.append(_below(x(0), "0"))
    parts.append(_below((_LEFT + _WIDE - _RIGHT) / 2, "delta", 14))
    parts.append(f'<text class="tick" x="{_LEFT:g}" y="{_TOP - 3:g}">epsilon</text>')
    parts.append(_path("limit", [(x(delta), y(claim)) for delta, claim, _ in drawn], "the claim"))
    parts.append(_path("gauge g0", [(x(delta), y(shown)) for delta, _, shown in drawn], "proven at least"))
    for delta, claim, shown in drawn:
        over = shown > claim
        title = f"delta = {_short(delta)}: at least {shown:.4g}, claimed {claim:.4g}"
        parts.append(_dot(x(delta), y(shown), title, over=over))
    worst = max(drawn, key=lambda point: point[2] - point[1])
    label = f"Epsilon by delta: at delta = {_short(worst[0])}, {worst[2]:.4g} is proven and {worst[1]:.4g} claimed"
    return _svg(label, parts, _WIDE, _TALL, alone)


def rates(points: Sequence[Sequence[float]], bound: Sequence[Sequence[float]] = (), *, alone: bool = False) -> str:
    """An attacker's true positives by false positives, both on a log scale; and what the claim allows at most.

    points, bound  pairs (false-positive rate, true-positive rate)
    """
    if not points:
        return ""

    def place(rate: float) -> float:
        return (math.log10(max(float(rate), _LOWEST)) - math.log10(_LOWEST)) / -math.log10(_LOWEST)

    def x(rate: float) -> float:
        return _LEFT + (_SQUARE - _LEFT - _RIGHT) * place(rate)

    def y(rate: float) -> float:
        return _TOP + (_SQUARE - _TOP - _BOTTOM) * (1 - place(rate))

    parts = []
    for power in range(int(math.log10(_LOWEST)), 1):
        rate, name = 10.0**power, f"1e{power}" if power else "1"
        parts.append(_rule(y(rate), name, _SQUARE))
        parts.append(_below(x(rate), name, tall=_SQUARE))
    parts.append(_below((_LEFT + _SQUARE - _RIGHT) / 2, "false positives", 14, tall=_SQUARE))
    parts.append(f'<text class="tick" x="{_LEFT:g}" y="{_TOP - 3:g}">true positives</text>')
    chance = [(x(10.0**each), y(10.0**each)) for each in (math.log10(_LOWEST), 0.0)]
    parts.append(_path("chance", chance, "guessing"))
    if bound:
        parts.append(_path("limit", [(x(fpr), y(tpr)) for fpr, tpr in sorted(map(tuple, bound))], "the claim"))
    parts.append(_path("gauge g0", [(x(fpr), y(tpr)) for fpr, tpr in sorted(map(tuple, points))], "the attack"))
    return _svg("True positives by false positives of the attack, on log scales", parts, _SQUARE, _SQUARE, alone)


def share_bar(share: float | None, broken: bool) -> str:
    """How much of the claim was proven, as a bar; what goes beyond the claim is drawn as such."""
    if share is None:
        return ""
    part = min(max(share, 0.0), 1.5) / 1.5
    label = f"{100 * share:.3g} % of the claim"
    kind = "this over" if broken else "this"
    return (
        f'<svg class="meter claim" viewBox="0 0 150 6" preserveAspectRatio="none" role="img" aria-label="{label}">'
        f'<rect class="left" x="0" y="0" width="100" height="6"/>'
        f'<rect class="{kind}" x="0" y="1" width="{150 * part:.1f}" height="4"/>'
        f'<line class="limit" x1="100" x2="100" y1="0" y2="6"/></svg>'
    )


def _finite(point: Mapping[str, Any]) -> bool:
    numbers = (point["delta"], point["claim"], point["shown"])
    return all(isinstance(each, int | float) and math.isfinite(each) for each in numbers)


def _decades(deltas: Sequence[float]) -> tuple[int, int]:
    if not deltas:
        return -9, 0
    low, high = math.floor(math.log10(min(deltas))), math.ceil(math.log10(max(deltas)))
    return low, max(high, low + 1)


def _few(low: int, high: int) -> list[int]:
    step = -(-(high - low) // 10)
    return list(range(low, high + 1, step))


def _rulers(top: float, y: Scale) -> list[str]:
    raw = top / 4
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(size * each for each in (1, 2, 2.5, 5, 10) if size * each >= raw)
    return [_rule(y(step * each), f"{step * each:.4g}", _WIDE) for each in range(int(top / step) + 1)]


def _rule(at: float, name: str, wide: float) -> str:
    return (
        f'<line class="grid" x1="{_LEFT:g}" x2="{wide - _RIGHT:g}" y1="{at:.1f}" y2="{at:.1f}"/>'
        f'<text class="tick" x="{_LEFT - 6:g}" y="{at + 4:.1f}" text-anchor="end">{name}</text>'
    )


def _below(at: float, name: str, down: float = 0.0, *, tall: float = _TALL) -> str:
    y = tall - _BOTTOM + 16 + down
    return f'<text class="tick" x="{at:.1f}" y="{y:g}" text-anchor="middle">{name}</text>'


def _path(kind: str, points: Sequence[tuple[float, float]], name: str) -> str:
    line = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return f'<path class="{kind}" d="M{line}"><title>{html.escape(name)}</title></path>'


def _dot(x: float, y: float, name: str, *, over: bool) -> str:
    kind = "dot over" if over else "dot"
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="3"><title>{html.escape(name)}</title></circle>'


def _short(number: float) -> str:
    return f"{number:.3g}".replace("e-0", "e-")


def _svg(label: str, parts: Sequence[str], wide: float, tall: float, alone: bool) -> str:
    kind = "plot sfumato-alone" if alone else "plot small" if wide == tall else "plot"
    size = f' width="{wide:g}" height="{tall:g}"' if alone else ""
    return (
        f'<svg class="{kind}" viewBox="0 0 {wide:g} {tall:g}"{size} role="img" aria-label="{html.escape(label)}">'
        f"<title>{html.escape(label)}</title>{_ALONE if alone else ''}{''.join(parts)}</svg>"
    )
