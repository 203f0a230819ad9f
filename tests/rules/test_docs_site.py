"""The documentation site builds without a warning, fetches nothing from elsewhere, and says what the code says."""

from __future__ import annotations

import fcntl
import json
import os
import re
import subprocess
import sys
import zlib
from collections import Counter
from dataclasses import dataclass, field
from html.parser import HTMLParser
from importlib import import_module
from inspect import isclass, isfunction
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from markdown_it import MarkdownIt

from tests.pages import PAGES, ROOT

DOCS = ROOT / "docs"
OUTSIDE = {"README.md": "in-short", "CONTRIBUTING.md": "contributing", "CHANGELOG.md": "changelog"}
PACKAGES = ("sfumato", *(f"sfumato.{name}" for name in ("bounds", "strategies", "mechanisms", "ledger", "query")))
PACKAGES += ("sfumato.report", "sfumato.project")
COUNTED = ("h1", "h2", "h3", "h4", "li", "table", "tr", "pre", "img")
FETCHING = {"src", "srcset", "data", "poster", "action", "background"}
_ELSEWHERE = re.compile(r"^\s*(?:[a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)
_CSS = re.compile(r"(?:url\(|@import)\s*[\"']?\s*(?:https?:)?//", re.IGNORECASE)


def _mkdocs(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "mkdocs",
            "build",
            *arguments,
        ],  # never --quiet: it turns warnings off, and strictness with them
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "NO_MKDOCS_2_WARNING": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site; with several workers, built by the first that needs it."""
    mine = tmp_path_factory.getbasetemp()
    shared = mine.parent if "PYTEST_XDIST_WORKER" in os.environ else mine
    place, told = shared / "docs-site", shared / "docs-site.txt"
    with (shared / "docs-site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not told.exists():
            done = _mkdocs("--site-dir", str(place))
            told.write_text(f"{done.returncode}\n{done.stdout}", encoding="utf-8")
    code, _, output = told.read_text(encoding="utf-8").partition("\n")
    assert code == "0" and not re.search("^(WARNING|ERROR)", output, re.MULTILINE), output
    return place


@dataclass
class Seen(HTMLParser):
    """What a page of the site refers to and consists of."""

    fetched: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)
    classes: set[str] = field(default_factory=set)
    styles: str = ""
    _article: bool = False
    _style: bool = False

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.fetched += [given[name] for name in FETCHING & set(given)]
        self.styles += given.get("style", "")
        if "href" in given:
            (self.links if tag == "a" else self.fetched).append(given["href"])
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        self.classes |= set(given.get("class", "").split())
        self._article |= tag == "article"
        self._style = tag == "style"
        if self._article:
            self.counts[f"ol from {given.get('start', 1)}" if tag == "ol" else tag] += 1

    def handle_endtag(self, tag: str) -> None:
        self._article &= tag != "article"
        self._style = False

    def handle_data(self, data: str) -> None:
        if self._style:
            self.styles += data


def _seen(text: str) -> Seen:
    seen = Seen()
    seen.feed(text)
    return seen


@pytest.fixture(scope="session")
def built(site: Path) -> dict[str, Seen]:
    return {path.relative_to(site).as_posix(): _seen(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}


def _place(page: Path) -> str:
    """The address of a page in the site."""
    name = page.relative_to(ROOT).as_posix()
    return f"{OUTSIDE.get(name) or page.relative_to(DOCS).with_suffix('').as_posix()}.html"


@pytest.mark.slow
def test_nothing_is_fetched_from_elsewhere(site: Path, built: dict[str, Seen]) -> None:
    found = [(place, url) for place, seen in built.items() for url in seen.fetched if _ELSEWHERE.match(url)]
    found += [(place, "style") for place, seen in built.items() if _CSS.search(seen.styles)]
    found += [(path.name, "style") for path in site.rglob("*.css") if _CSS.search(path.read_text(encoding="utf-8"))]
    assert found == []
    # The theme's script would fetch a diagram library, or figures of a code host, for pages with these parts.
    assert not any({"mermaid", "md-source"} & seen.classes for seen in built.values())


def test_the_check_above_can_fail() -> None:
    page = '<link href="https://a.b/c.css"><script src="//a.b"></script><img srcset="http://a/b 2x"><a href="http://x">'
    seen = _seen(f'{page}</a><style>@import "https://a";</style><p style="background: url(//a/b)"></p><img src="a/b">')
    assert [bool(_ELSEWHERE.match(url)) for url in seen.fetched] == [True, True, True, False]
    assert len(_CSS.findall(seen.styles)) == 2
    assert seen.links == ["http://x"]


def test_every_page_is_in_the_navigation(built: dict[str, Seen]) -> None:
    linked = {urlsplit(link).path for link in built["index.html"].links}
    assert [place for page in PAGES if (place := _place(page)) not in linked | {"index.html"}] == []


def test_links_inside_the_site_lead_somewhere(site: Path, built: dict[str, Seen]) -> None:
    broken = []
    for place, seen in built.items():
        if place == "404.html":
            continue
        for link in seen.links:
            url = urlsplit(link)
            if url.scheme or url.netloc:
                continue
            target = os.path.normpath(site / Path(place).parent / unquote(url.path)) if url.path else str(site / place)
            name = Path(target, "index.html" if Path(target).is_dir() else "").relative_to(site).as_posix()
            wanted = unquote(url.fragment)
            if not (site / name).exists() or (wanted and name in built and wanted not in built[name].ids):
                broken.append(f"{place}: {link}")
    assert broken == []


def _host_anchors(page: Path) -> set[str]:
    """The anchors that code hosts make of a page's headings."""
    tokens = MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8"))
    heads = [each for before, each in pairwise(tokens) if before.type == "heading_open"]
    texts = ["".join(child.content for child in head.children or []) for head in heads]
    slugs, seen = set(), Counter[str]()
    for text in texts:
        slug = re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")
        slugs.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return slugs


def test_anchors_also_work_on_a_code_host() -> None:
    broken = []
    for page in PAGES:
        text = re.sub(r"^ *```.*?^ *```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        for path, anchor in re.findall(r"\]\((?![a-z]+:)([^)#\s]*)#([^)\s]+)\)", text):
            target = (page.parent / path) if path else page
            if anchor not in _host_anchors(target):
                broken.append(f"{page.relative_to(ROOT)}: {path}#{anchor}")
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_reads_the_same_in_the_site_and_on_a_code_host(page: Path, built: dict[str, Seen]) -> None:
    """Lists, tables and code blocks that one of the two readers of Markdown sees and the other does not."""
    text = page.read_text(encoding="utf-8")
    if page.is_relative_to(DOCS / "reference"):
        return  # made from docstrings
    there = _seen(f"<article>{MarkdownIt('commonmark').enable('table').render(text)}</article>").counts
    here = built[_place(page)].counts
    counted = {*COUNTED, *(tag for tag in (*here, *there) if tag.startswith("ol "))}
    assert {tag: here[tag] for tag in counted} == {tag: there[tag] for tag in counted}


def test_search_is_there(site: Path, built: dict[str, Seen]) -> None:
    assert "md-search__input" in built["index.html"].classes
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    places = {entry["location"] for entry in index["docs"]}
    assert {"index.html", "theory/definitions.html", "reference/private-curator.html#sfumato.Curator"} <= places


def _known(site: Path) -> set[str]:
    raw = (site / "objects.inv").read_bytes().split(b"\n", 4)[4]
    return {line.split()[0] for line in zlib.decompress(raw).decode().splitlines()}


@pytest.mark.parametrize("package", [*PACKAGES, "sfumato.events", "sfumato.errors"])
def test_the_reference_has_every_public_name(package: str, site: Path) -> None:
    module, known = import_module(package), _known(site)
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == package]
    missing = []
    for name in getattr(module, "__all__", [name for name in own if isclass(getattr(module, name))]):
        value = getattr(module, name)
        if (isclass(value) or isfunction(value)) and not name.startswith("_"):
            missing += [name] if not {f"{package}.{name}", f"{value.__module__}.{name}"} & known else []
    assert missing == []


def test_the_reference_has_every_command_and_exit_code(site: Path) -> None:
    from typer.main import get_command

    from sfumato.cli import problems, telling
    from sfumato.cli.app import app

    text = (site / "reference" / "command-line.html").read_text(encoding="utf-8")
    top = get_command(app)
    commands = [("sfumato", top)]
    for name, command in commands:  # grows as groups are opened
        commands += [(f"{name} {below}", each) for below, each in getattr(command, "commands", {}).items()]
    assert len(commands) > 10
    for name, command in commands[1:]:
        if not command.hidden:
            assert f">{name}<" in text.replace("&para;", ""), name
            for param in command.params:
                assert getattr(param, "hidden", False) or not param.opts[0].startswith("-") or param.opts[0] in text
    codes = {value for name, value in vars(problems).items() if name.isupper() and isinstance(value, int)}
    told = set(map(int, re.findall(r"^\| (\d+) \|", (DOCS / "reference/command-line.md").read_text(), re.MULTILINE)))
    assert told == codes | {0, telling.GONE}
