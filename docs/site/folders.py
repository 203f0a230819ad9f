"""In the navigation, an entry that ends in a slash stands for all pages of that folder, in the order of their names."""

from __future__ import annotations

from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files


def on_files(files: Files, config: MkDocsConfig) -> Files:
    pages = sorted(file.src_uri for file in files.documentation_pages())
    config.nav = [entry for entry in (_expanded(each, pages) for each in config.nav or []) if entry is not None]
    return files


def _expanded(entry: Any, pages: list[str]) -> Any:
    """The entry with its folders opened, or None where a folder has no page yet."""
    if not isinstance(entry, dict):
        return entry
    ((title, content),) = entry.items()
    if isinstance(content, list):
        inner = [each for each in (_expanded(part, pages) for part in content) if each is not None]
        return {title: inner} if inner else None
    if not content.endswith("/"):
        return entry
    inside = [page for page in pages if page.startswith(content) and "/" not in page.removeprefix(content)]
    inside.sort(key=lambda page: (not page.endswith("/index.md"), page))
    return {title: inside} if inside else None
