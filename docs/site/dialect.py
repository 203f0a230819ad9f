"""Pages are written for the Markdown of code hosts (CommonMark); the site's reader wants some of it otherwise.

- words behind a fence that speak to the tests (`python no-run`, `console exact`) are taken away
- a list right below a line of text gets an empty line above it, and so does an item below one of several paragraphs
- what belongs to an item of a list is indented by four, not by the width of its mark
- a line of text that begins with # is no heading without a space
"""

from __future__ import annotations

import re

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

_FENCE = re.compile(r" *```(?P<info>[^`]*)")
_MARKED = re.compile(r"(?P<rest> *```(?:python|console)) (?:no-run|exact)")
_ITEM = re.compile(r"(?P<indent> *)(?P<mark>[-*+]|(?P<number>\d+)[.)]) +(?=\S)")
_STEP = 4


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    return translated(markdown)


def translated(markdown: str) -> str:
    """The same page, for the site."""
    lines: list[str] = []
    inside: list[int] = []  # where the text of each open item starts, from the outermost
    fence: int | None = None  # by how much the lines of an open fence move
    before, parted = "", False  # was there an empty line since the last item?
    for line in markdown.splitlines():
        indent = len(line) - len(line.lstrip())
        if fence is not None:
            lines.append(_moved(line, fence))
            fence = None if _FENCE.fullmatch(line) else fence
        elif not line.strip():
            lines.append(line)
            parted = True
        elif item := _item(line, before, inside):
            sibling = _leave(inside, indent)
            if before.strip() and (parted if sibling else not inside):
                lines.append("")
            lines.append(" " * _STEP * len(inside) + line.lstrip())
            inside.append(item.end())
            parted = False
        else:
            if not before.strip() or _FENCE.fullmatch(line) or line.startswith("#"):
                _leave(inside, indent)
            by = _STEP * len(inside) - inside[-1] if inside and indent >= inside[-1] else 0
            if _FENCE.fullmatch(line):
                fence = by
                line = _MARKED.sub(r"\g<rest>", line)
            lines.append(_moved("\\" + line if re.match(r"#+[^#\s]", line) else line, by))
        before = line
    return "\n".join(lines) + "\n"


def _item(line: str, before: str, inside: list[int]) -> re.Match[str] | None:
    """The mark of an item, where this line is one: in the middle of a text, a list begins with 1 if it is numbered."""
    item = _ITEM.match(line)
    if item is None or (len(item["indent"]) >= _STEP and not inside):  # a block of code
        return None
    beside = inside and len(item["indent"]) < inside[-1]
    return item if item["number"] in (None, "1") or not before.strip() or beside else None


def _leave(inside: list[int], indent: int) -> bool:
    """Close the items that a line with this indent is not part of; was there any?"""
    count = len(inside)
    while inside and indent < inside[-1]:
        inside.pop()
    return len(inside) < count


def _moved(line: str, by: int) -> str:
    return " " * by + line if by >= 0 or not line.strip() else line[min(-by, len(line) - len(line.lstrip())) :]
