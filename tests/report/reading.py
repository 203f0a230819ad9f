"""How tests read a report: its document against the published schema, its page as a strict reader takes it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker

from sfumato.report import Report, json_schema

VOID = {"meta", "br"}
DRAWN = {"svg", "rect", "line", "circle", "path", "text", "title"}
KNOWN = {
    "html", "head", "meta", "title", "style", "body", "main", "section", "footer", "h1", "h2", "h3", "p", "span", "b",
    "br", "div", "dl", "dt", "dd", "ul", "li", "table", "thead", "tbody", "tr", "th", "td", "code", "pre", "details",
    "summary", *DRAWN,
}  # fmt: skip


def document(report: Report) -> dict[str, Any]:
    """The document, which the schema of its own kind must accept."""
    found = report.as_dict()
    schema = json_schema()
    kind = found["report"].removeprefix("report-").partition("/")[0]
    one = {**schema, "oneOf": [{"$ref": f"#/$defs/{kind}"}]}
    problems = [
        f"{list(each.absolute_path)}: {each.message}"
        for problem in Draft202012Validator(one, format_checker=FormatChecker()).iter_errors(found)
        for each in (problem.context or [problem])
    ]
    assert problems == []
    Draft202012Validator(schema).validate(found)
    return found


class Page(HTMLParser):
    """Tags must be known, closed in order, and reach nowhere; `texts` is what a reader sees."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.cells: list[str] = []
        self.styles = ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in KNOWN, tag
        self.tags.append(tag)
        for name, value in attrs:
            assert not name.startswith("on"), name
            assert name not in ("href", "src", "srcset", "xlink:href", "action", "style", "data", "poster"), name
            assert "url(" not in (value or "").lower()
        if tag in ("td", "dd", "li", "p", "h1", "pre"):
            self.cells.append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, (tag, self.open)
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.open[-1:] == ["style"]:
            self.styles += data
            return
        self.texts.append(data)
        if self.cells:
            self.cells[-1] += data

    @property
    def text(self) -> str:
        return "".join(self.texts).replace("\u00a0", " ")


def page(report: Report) -> Page:
    """The page, checked: whole, and without anything from elsewhere."""
    html = report.html()
    assert html.startswith("<!doctype html>") and html.endswith("</html>\n")
    found = Page(html)
    assert not re.search(r"url\(|@import|expression\(|javascript:", found.styles)
    assert "default-src 'none'" in html
    assert "script" not in found.tags and "Undefined" not in found.text
    assert report.fingerprint in found.text
    return found
