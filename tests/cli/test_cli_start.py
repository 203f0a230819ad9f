"""`sfumato --help` comes at once: nothing heavy is loaded for it. (How fast: `python -m bench.startup --check`.)"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.front import environment, make_project, sfumato

HEAVY = ("numpy", "scipy", "duckdb", "torch", "sqlglot", "yaml", "pyarrow", "cryptography", "jinja2", "pydantic")
LOADED = f"""
import sys
from sfumato.cli.start import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    assert end.code == 0, end.code
print("LOADED", [name for name in {HEAVY!r} if name in sys.modules])
"""


@pytest.mark.parametrize("words", [("--help",), ("--version",), ("query", "-h"), ("ledger", "-h")], ids=" ".join)
def test_help_loads_nothing_heavy(words: tuple[str, ...], tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *words],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    )
    # Newer typers read the options of a single command by pydantic themselves.
    allowed = ["LOADED []"] if len(words) == 1 else ["LOADED []", "LOADED ['pydantic']"]
    assert done.stdout.splitlines()[-1] in allowed


def test_without_its_packages_it_says_what_to_install(tmp_path: Path) -> None:
    code = (
        "import sys; from importlib import util; real = util.find_spec\n"
        "util.find_spec = lambda name, *more: None if name == 'rich' else real(name, *more)\n"
        "from sfumato.cli.start import main; main(['describe'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 3 and done.stdout == ""
    assert "pip install '.[cli]'" in done.stderr and "rich" in done.stderr


def test_no_words_show_the_help_and_end_as_misuse(tmp_path: Path) -> None:
    ran = sfumato(at=tmp_path)
    assert ran.code == 2 and "Usage: sfumato" in ran.out + ran.err


def test_misuse_is_json_where_json_is_asked(tmp_path: Path) -> None:
    import json

    ran = sfumato("query", "--json", "--nonsense", at=tmp_path)
    assert ran.code == 2 and ran.err == ""
    assert json.loads(ran.out)["document"] == "problem/1"


def test_a_query_may_begin_with_a_comment(tmp_path: Path) -> None:
    folder = make_project(tmp_path)
    text = "-- sfumato: epsilon=0.25, delta=1e-7, noise=gaussian\nSELECT COUNT(*) AS n FROM visits"
    ran = sfumato("quote", text, at=folder)
    assert ran.code == 0 and "epsilon = 0.25 at delta = 1e-07" in ran.out
    twice = sfumato("quote", text, "--epsilon", "1", at=folder)
    assert twice.code == 2 and "say it once" in twice.err
