"""Pages of the repository that are not under docs/: the README and others, and proofs that stand beside their code.

They get an address in the site, and links to them lead there, so that one and the same link works in a checkout, on a
code host and in the site.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
PLACES = {"README.md": "in-short.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
PLACES |= {
    path.relative_to(ROOT).as_posix(): f"proofs/{path.name.removesuffix('.proof.md')}.md"
    for path in sorted((ROOT / "src").rglob("*.proof.md"))
}
_HOMES = {place: home for home, place in PLACES.items()}
_LINK = re.compile(r"(?<=\]\()(?![a-z][a-z0-9+.-]*:|#|/)(?P<path>[^)#\s]+)(?P<anchor>#[^)\s]*)?(?=\))")
_CODE = re.compile(r"^(?P<indent> *)```.*?^(?P=indent)```[ ]*$|`[^`\n]+`", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for home, place in PLACES.items():
        files.append(File.generated(config, place, content=(ROOT / home).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The page with the paths of its links as they are in the site. Code is left alone."""
    place = page.file.src_uri
    home = _HOMES.get(place, f"docs/{place}")
    pieces, last = [], 0
    for code in _CODE.finditer(markdown):
        pieces += [_moved(markdown[last : code.start()], home, place), code.group()]
        last = code.end()
    return "".join([*pieces, _moved(markdown[last:], home, place)])


def _moved(text: str, home: str, place: str) -> str:
    def target(link: re.Match[str]) -> str:
        named = posixpath.normpath(posixpath.join(posixpath.dirname(home), link["path"]))
        found = PLACES.get(named, named.removeprefix("docs/"))
        return posixpath.relpath(found, posixpath.dirname(place) or ".") + (link["anchor"] or "")

    return _LINK.sub(target, text)
