"""The small programs behind the site: what they make of pages and docstrings, and that a fault in a page is a fault."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.pages import ROOT

DOCS = ROOT / "docs"


def _hook(name: str) -> ModuleType:
    """A small program of the site, which mkdocs loads by its path."""
    spec = importlib.util.spec_from_file_location(f"docs_site_{name}", DOCS / "site" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("text\n- a\n- b\n", "text\n\n- a\n- b\n"),
        ("- a\n\n  more\n- b\n", "- a\n\n    more\n\n- b\n"),
        ("1. a\n   - b\n     c\n\ntext\n", "1. a\n    - b\n        c\n\ntext\n"),
        ("- a\n\n  ```python no-run\n  - x\n    y\n  ```\n", "- a\n\n    ```python\n    - x\n      y\n    ```\n"),
        ("a sum of\n2006. And\n- no\n", "a sum of\n2006. And\n\n- no\n"),
        ("```text\nno\n- list\n#no heading\n```\n", "```text\nno\n- list\n#no heading\n```\n"),
        ("#{k} of\n\n# Heading\n- a\n", "\\#{k} of\n\n# Heading\n\n- a\n"),
        ("    code\n    - code\n", "    code\n    - code\n"),
        ("```console exact\n$ a\n```\n", "```console\n$ a\n```\n"),
    ],
)
def test_pages_are_translated_for_the_site(written: str, wanted: str) -> None:
    assert _hook("dialect").translated(written) == wanted


def test_links_out_of_the_docs_are_moved() -> None:
    moved = _hook("outside")._moved
    assert moved("[a](../README.md#x) [b](sql.md)", "docs/index.md", "index.md") == "[a](in-short.md#x) [b](sql.md)"
    assert moved("[a](docs/sql.md#y) [b](https://a.b/c.md)", "README.md", "in-short.md") == (
        "[a](sql.md#y) [b](https://a.b/c.md)"
    )
    proof = "[p](../../src/sfumato/accounting/filters.proof.md)"
    assert moved(proof, "docs/theory/composition.md", "theory/composition.md") == "[p](../proofs/filters.md)"


def test_docstrings_become_markdown() -> None:
    text = (
        "What it is, of a < b * c.\n\nname   what it means,\n       and more\n`q`, r  two\nText again.\n"
        "Guarantee: all\n    of it.\nPaper: X 2006.\n\n>>> f(1)\n\n    x = y_1\n"
    )
    assert _hook("aligned").markdown(text).split("\n\n") == [
        "What it is, of a &#60; b &#42; c.",
        "- `name`: what it means, and more\n- `q`, `r`: two",
        "Text again.",
        "**Guarantee**: all of it.",
        "**Paper**: X 2006.",
        "```pycon\n>>> f(1)\n```",
        "```text\n  x = y&#95;1\n```".replace("&#95;", "_"),
    ]


def test_an_example_keeps_what_it_prints() -> None:
    example = ">>> print(quote)\nprice     epsilon = 0.5\n>>> for x in y:\n...     f(x)\n1 < 2"
    assert _hook("aligned").markdown(f"What it is.\n\n{example}\n") == f"What it is.\n\n```pycon\n{example}\n```"


@pytest.mark.parametrize(
    ("index", "other", "told"),
    [
        ("[a](other.md#b)", "# A\n\n## B\n", None),
        ("[a](missing.md)", "# A\n", "missing.md"),
        ("[a](other.md#c)", "# A\n\n## B\n", "no such anchor|does not contain an anchor"),
        ("a", "# A\n", "not included in the .nav."),
        ("[a](/other.md)", "# A\n", "absolute"),
    ],
)
def test_a_fault_in_a_page_fails_the_build(index: str, other: str, told: str | None, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "index.md").write_text(f"# Home\n\n{index}\n", encoding="utf-8")
    (docs / "other.md").write_text(other, encoding="utf-8")
    config = tmp_path / "mkdocs.yml"
    nav = "[index.md, other.md]" if "](" in index else "[index.md]"
    config.write_text(f"INHERIT: {ROOT / 'mkdocs.yml'}\nhooks: []\nwatch: []\nnav: {nav}\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--config-file", str(config), "--site-dir", str(tmp_path / "site")],
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert (done.returncode == 0) == (told is None), done.stdout
    assert told is None or re.search(told, done.stdout), done.stdout
