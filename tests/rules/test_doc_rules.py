"""Docs are tested: every code block runs, every public thing says what it is."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.pages import PAGES, ROOT, Block, Command, blocks, commands, reader, run

SOURCE = ROOT / "src" / "sfumato"
REFEREE = ROOT / "referee" / "src" / "sfumato_referee"
FILES = [*sorted(SOURCE.rglob("*.py")), *sorted(REFEREE.rglob("*.py"))]

_SHORT_FUNCTION, _SHORT_CLASS, _ENTRIES = 15, 4, ("main", "attack")


_LONG = {
    f"{name}.md"
    for name in (
        "use-in-ci", "share-a-budget", "choose-epsilon", "choose-bounds", "your-own-file", "join-tables",
        "count-unknown-keys", "release-any-plan", "explain-to-a-manager", "train-a-model", "project-file", "command",
        "models", "dp-sgd", "report-every-day",
        "diffprivlib", "dp-accounting", "opendp", "pipelinedp", "smartnoise", "tumult", "tutorial", "learn", "sql",
        "ask-spark", "notebooks", "explain", "replay", "selection", "check", "verify", "quantiles",
    )
}  # fmt: skip
"""Pages of many commands, or of long work: slow where the machine is busy. The README runs always."""


def _parameter(page: Path) -> Any:
    return pytest.param(page, marks=[pytest.mark.slow] if page.name in _LONG else [], id=str(page.relative_to(ROOT)))


@pytest.fixture(scope="module")
def opened() -> Iterator[subprocess.Popen[str]]:
    with reader() as started:
        yield started


@pytest.mark.parametrize("page", [_parameter(page) for page in PAGES])
def test_code_blocks_run(page: Path, tmp_path: Path, opened: subprocess.Popen[str]) -> None:
    """The README in a process of its own, as its reader does it."""
    if page.name == "ask-spark.md" and shutil.which("java") is None:
        pytest.skip("Spark needs Java 17 or later: apt-get install openjdk-17-jre-headless")
    problem = run(page, tmp_path, None if page.name == "README.md" else opened)
    assert not problem, problem


def _page(folder: Path, text: str) -> Path:
    page = folder / "page.md"
    page.write_text(text, encoding="utf-8")
    return page


def test_fences_are_read(tmp_path: Path) -> None:
    page = _page(
        tmp_path,
        "```python\na = 1\n```\n\n- x\n\n  ```python no-run\n  b = 2\n  ```\n\n```text\nno\n```\n\n"
        '```yaml title="a/b.yaml"\nc: 3\n```\n\n```console exact\n$ echo hi\nhi\n```\n',
    )
    assert list(blocks(page)) == [
        Block("python", 1, "a = 1\n"),
        Block("python", 7, "b = 2\n", mark="no-run"),
        Block("file", 15, "c: 3\n", title="a/b.yaml"),
        Block("console", 19, "$ echo hi\nhi\n", mark="exact"),
    ]


@pytest.mark.parametrize("info", ["python norun", "console exact no-run", 'yaml title="../a"', 'yaml title="/a"'])
def test_a_fence_that_says_something_odd_is_noticed(info: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        list(blocks(_page(tmp_path, f"```{info}\nx\n```\n")))


def test_commands_are_read() -> None:
    text = "$ one # exit 5\nshown\n> shown too\n$ two \\\n> more\n\n# not a code\n# exit 3\n$ three\n"
    assert commands(Block("console", 1, text)) == [
        Command("one # exit 5", 5, "shown\n> shown too\n"),
        Command("two \\\nmore", 3, "\n# not a code\n"),
        Command("three", 0, ""),
    ]
    with pytest.raises(AssertionError):
        commands(Block("console", 1, "output of nothing\n"))


def test_a_page_runs_from_top_to_bottom_in_one_folder(tmp_path: Path) -> None:
    page = _page(
        tmp_path,
        '```yaml title="deep/a.yaml"\nb: 1\n```\n'
        "```python\nfrom pathlib import Path\nPath('made').write_text(Path('deep/a.yaml').read_text())\n```\n"
        '```console exact\n$ cat made\nb: 1\n$ cd deep; export COLOUR="a b"\n$ cat a.yaml; echo $COLOUR\n'
        "b: 1\na b\n$ cat <<END\n> one\n> END\none\n$ python -c 'raise SystemExit(5)'  # exit 5\n```\n"
        "```python\nassert Path('a.yaml').exists()\n```\n"
        "```console\n$ sfumato --version\nwhatever\n$ sfumato no-such-command\nsays so\n# exit 2\n```\n",
    )
    assert run(page, tmp_path) == ""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("```console\n$ false\n```\n", "ended with 1, not 0"),
        ("```console\n$ true # exit 5\n```\n", "ended with 0, not 5"),
        ("```console exact\n$ echo a\nb\n```\n", "is not what the page shows"),
        ("```console exact\n$ echo a\n```\n", "is not what the page shows"),
        ("\n\n```console\n$ no-such-program\n```\n", "at line 3"),
        ("```console\n$ read answer\n```\n", "ended with 1"),
        ("\n```python\nassert 1 > 2\n```\n", "page_line_2.py"),
        ("```python\nimport warnings\nwarnings.warn('x')\n```\n", "UserWarning"),
    ],
)
def test_a_page_that_does_not_work_is_noticed(
    text: str, told: str, tmp_path: Path, opened: subprocess.Popen[str]
) -> None:
    assert told in run(_page(tmp_path, text), tmp_path, opened)


def test_a_page_in_a_process_of_its_own_is_noticed_too(tmp_path: Path) -> None:
    assert "page_line_1.py" in run(_page(tmp_path, "```python\nassert 1 > 2\n```\n"), tmp_path)


def _silent(tree: ast.Module) -> Iterator[str]:
    """Public things that should say what they are, and do not.

    Functions up to 15 lines and classes up to 4 say it by themselves, a class derived from one of the same file is said
    by that one, and the entry of a file (`main`, `attack`) by the file's own docstring.
    """
    named = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    for node in tree.body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef) or node.name.startswith("_") or ast.get_docstring(node):
            continue
        lines = (node.end_lineno or node.lineno) - node.body[0].lineno + 1
        if isinstance(node, ast.ClassDef):
            said = lines <= _SHORT_CLASS or any(ast.unparse(base) in named for base in node.bases)
        else:
            said = lines <= _SHORT_FUNCTION or node.name in _ENTRIES
        if not said:
            yield node.name


def test_public_things_have_docstrings() -> None:
    silent = []
    for path in FILES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        silent += [] if ast.get_docstring(tree) else [f"{path.relative_to(ROOT)} itself"]
        silent += [f"{path.relative_to(ROOT)}: {name}" for name in _silent(tree)]
    assert FILES and silent == []


@pytest.mark.parametrize("text", ["def f():\n" + "    pass\n" * 16, "class C:\n" + "    a = 1\n" * 5])
def test_what_says_nothing_of_itself_is_seen(text: str) -> None:
    assert list(_silent(ast.parse(text))) and not list(_silent(ast.parse(text.replace(":\n", ":\n    'It.'\n", 1))))


def test_links_between_pages_lead_somewhere() -> None:
    broken = []
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:|mailto:|#)([^)#\s]+)", page.read_text(encoding="utf-8")):
            if not (page.parent / target).exists():
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert broken == []
