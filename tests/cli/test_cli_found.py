"""What a reader of the code found wrong once: each stays mended."""

from __future__ import annotations

import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from sfumato.cli.problems import problem_of
from sfumato.project import open_project
from tests.cli.front import YAML, environment, make_project, sfumato

COUNT = "SELECT COUNT(*) AS n FROM visits"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_project(tmp_path_factory.mktemp("found"))


@pytest.mark.parametrize(
    "words",
    [
        ("explain", "1", "--prior", "1e999"),
        ("explain", "1", "--rates", "0.1,1e400"),
        ("calibrate", "--rho", "1e999"),
        ("ledger", "forecast", "--error", "1e999"),
    ],
    ids=" ".join,
)
def test_a_number_that_fits_no_float_is_refused_in_words(words: tuple[str, ...], project: Path) -> None:
    ran = sfumato(*words, at=project)
    assert ran.code == 2 and "too large" in ran.err and "sfumato itself failed" not in ran.err


def test_a_piped_query_that_is_too_long_is_not_cut_into_another_one(project: Path) -> None:
    """Its first million characters are a query of their own."""
    long = COUNT + " " * 1_000_000 + " WHERE cost > 5"
    ran = sfumato("query", at=project, stdin=long)
    assert ran.code == 2 and "too long" in ran.err
    assert "0 releases so far" in sfumato("describe", at=project).out


@pytest.mark.parametrize(
    ("module", "extra"),
    [("sqlglot", ".[sql]"), ("pyarrow.parquet", ".[sql]"), ("jinja2", ".[report]")],
)
def test_a_missing_package_is_named_with_the_extra_that_brings_it(module: str, extra: str) -> None:
    problem = problem_of(ModuleNotFoundError("x", name=module))
    assert problem.code == 3 and problem.why == f"{module.partition('.')[0]} is needed for this"
    assert problem.fix == f"pip install '{extra}' in a checkout of sfumato"


@pytest.mark.slow
def test_without_sql_commands_say_what_to_install(project: Path) -> None:
    """One process for all: sqlglot is hidden from it."""
    code = (
        "import sys; sys.modules['sqlglot'] = None\n"
        "from sfumato.cli.start import main\n"
        "for words in (['describe'], ['schema'], ['attack', 'Q3', '--quick']):\n"
        "    try: main(words)\n"
        "    except SystemExit as end: print('ended', end.code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=project, env=environment(), capture_output=True, text=True, check=True
    )
    assert [line for line in done.stdout.splitlines() if line.startswith("ended")] == ["ended 3", "ended 3", "ended 9"]
    assert done.stderr.count("pip install '.[sql]'") == 2
    assert "sqlglot is needed for this: pip install '.[sql]'" in done.stdout


def test_describe_tells_what_to_do_about_this_very_ledger(tmp_path: Path) -> None:
    folder = make_project(tmp_path)
    place = folder / "budget.ledger"
    held = bytearray(place.read_bytes())
    held[100:107] = b"garbage"
    place.write_bytes(held)
    told = sfumato("describe", at=folder).out
    assert "damaged" in told and "ledger verify" in told and "ledger open" not in told
    for each in folder.glob("budget.ledger*"):
        each.unlink()
    assert "sfumato ledger open" in sfumato("describe", at=folder).out


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [("describe",), ("describe", "--json"), ("--help",), ("schema", "query")], ids=" ".join
)
def test_an_output_on_a_full_disk_is_told_in_three_lines(project: Path, words: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "sfumato.cli", *words]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, cwd=project, env=environment(), stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 3 and "Traceback" not in done.stderr and "Exception ignored" not in done.stderr
    assert done.stderr.startswith("the output cannot be written\n  why  no space left")


@pytest.mark.slow
def test_a_closed_output_goes_nowhere(project: Path) -> None:
    shell = f'"{sys.executable}" -m sfumato.cli ledger verify >&- 2>&-'
    assert subprocess.run(shell, shell=True, cwd=project, env=environment()).returncode == 0


@pytest.mark.parametrize("threshold", ["0.07", "0.9"])
def test_the_report_warns_from_the_share_on_that_the_project_names(tmp_path: Path, threshold: str) -> None:
    folder = make_project(tmp_path, text=YAML.replace("alert_threshold: 0.5", f"alert_threshold: {threshold}"))
    assert sfumato("query", COUNT, "--epsilon", "1", at=folder).code == 0
    assert sfumato("ledger", "report", "--out", "r.json", at=folder).code == 0
    found = json.loads((folder / "r.json").read_text())
    assert found["over_time"]["marks"] == [float(threshold)]
    passed = found["account"]["used"] >= float(threshold)
    assert passed == (threshold == "0.07") == any("passes the mark" in each["words"] for each in found["alerts"])


def test_the_example_takes_no_other_flags(tmp_path: Path) -> None:
    ran = sfumato("init", "mine", "--example", "--epsilon", "3", at=tmp_path)
    assert ran.code == 2 and "--example" in ran.err and not (tmp_path / "mine").exists()


def test_a_limit_in_rho_can_be_raisable_too(tmp_path: Path) -> None:
    text = YAML.replace("total: {epsilon: 2, delta: 1e-6}", "total: {rho: 0.5}")
    folder = make_project(
        tmp_path, text=text.replace("alert_threshold: 0.5", "").replace("0.5, evaluation: 0.3", "0.5")
    )
    assert sfumato("ledger", "allocate", "ana", "--rho", "0.1", "--raisable", at=folder).code == 0
    with open_project(folder).ledger(read_only=True) as ledger:
        limit = ledger.statement("ana").limit
    assert limit is not None and limit.raisable and limit.rho == Fraction(1, 10)
