"""From a document to a page. Every text is escaped, and marks that would turn or hide letters are written out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ArgumentError, install_line
from . import svg, svg_audit, words

if TYPE_CHECKING:
    from jinja2 import Environment

_TEMPLATES = Path(__file__).with_name("templates")


def page(document: Mapping[str, Any], fingerprint: str) -> str:
    """The page of a release's, an account's, an audit's or a series' document."""
    kind = str(document["report"]).partition("/")[0].removeprefix("report-")
    drawn = _environment().get_template(f"{kind}.html.j2").render(**document, fingerprint=fingerprint)
    return drawn.strip() + "\n"


@cache
def _environment() -> Environment:
    try:
        import jinja2
        from markupsafe import Markup
    except ImportError:
        raise ArgumentError(
            f"the page of a report needs jinja2, which is not installed: {install_line('report')}. The JSON form needs "
            "nothing more."
        ) from None

    def shown(value: Any) -> Any:
        """Whatever a template prints: drawings as they are, anything else as harmless text."""
        return value if isinstance(value, Markup) else words.visible("" if value is None else str(value))

    def bars(rows: list[list[dict[str, Any]]], place: int) -> list[Markup]:
        return [Markup(each) for each in svg.error_bars([row[place] for row in rows])]

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(
        error_bars=bars,
        meter=lambda before, after: Markup(svg.meter(before, after)),
        steps=lambda lines, marks: Markup(svg.steps(lines, marks)),
        drawn=Markup,
        curve=lambda points: Markup(svg_audit.curve(points)),
        rates=lambda points, bound: Markup(svg_audit.rates(points, bound)),
        share_bar=lambda share, broken: Markup(svg_audit.share_bar(share, broken)),
        colour={"within": "good", "broken": "bad", "could not run": "warning"},
        figure=words.figure,
        near=words.near,
        day=words.day,
        mechanism=words.mechanism,
        percent=words.percent,
    )
    environment.filters["tojson_plain"] = lambda value: json.dumps(value, indent=1)
    return environment
