"""What is installed is what was written: wheel and source archive, and every line that says how to install it."""

from __future__ import annotations

import email.message
import email.parser
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

import sfumato_referee
from sfumato import __version__

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "sfumato"
REFEREE = ROOT / "referee" / "src" / "sfumato_referee"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
DATA = (
    "example/project/sfumato.yaml",
    "ledger/policy/example.yaml",
    "ledger/stores/migrations/sqlite_0001.sql",
    "ledger/stores/migrations/postgres_0001.sql",
    "accounting/filters.proof.md",
    "project/sfumato.schema.json",
    "report/report.schema.json",
    "report/templates/account.html.j2",
    "py.typed",
)
_LINE = re.compile(r"pip install ([^\n`\"]+)")
_EXTRA = re.compile(r"\[([\w,{}]+)\]")


PLANTED = ("attacks/", "mutants/", "mutation/", "referee")


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both archives, built without a network from what stands here."""
    into = tmp_path_factory.mktemp("dist")
    _build(ROOT, into, "-t", "wheel", "-t", "sdist")
    return into


@pytest.fixture(scope="module")
def referee(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Those of the adversary, which is a distribution of its own."""
    into = tmp_path_factory.mktemp("referee")
    _build(ROOT / "referee", into, "-t", "wheel", "-t", "sdist")
    return into


def _build(at: Path, into: Path, *targets: str) -> None:
    words = [sys.executable, "-m", "hatchling", "build", "-d", str(into), *targets]
    subprocess.run(words, cwd=at, check=True, capture_output=True)


def _wheel(dist: Path) -> zipfile.ZipFile:
    (file,) = dist.glob("*.whl")
    return zipfile.ZipFile(file)


def _metadata(wheel: zipfile.ZipFile) -> email.message.Message:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return email.parser.Parser().parsestr(wheel.read(name).decode())


def test_the_wheel_holds_the_package_whole_and_nothing_else(dist: Path) -> None:
    wheel = _wheel(dist)
    inside = {name for name in wheel.namelist() if ".dist-info/" not in name}
    written = {
        f"sfumato/{path.relative_to(SOURCE).as_posix()}"
        for path in SOURCE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert inside == written
    assert {f"sfumato/{name}" for name in DATA} <= inside
    assert not [name for name in wheel.namelist() if "test" in Path(name).parts[0] or "bench/" in name]


def test_wheel_and_source_archive_hold_no_planted_fault(dist: Path) -> None:
    """Neither the adversary's files, nor its name, but where the library looks for it."""
    (file,) = dist.glob("*.tar.gz")
    with tarfile.open(file) as archive:
        sources = [name.partition("/")[2] for name in archive.getnames()]
    shipped = [name.partition("/")[2] for name in _wheel(dist).namelist() if name.startswith("sfumato/")]
    shipped += [name.removeprefix("src/sfumato/") for name in sources if name.startswith("src/")]
    assert {name for name in shipped if any(part in name for part in PLANTED)} == {"cli/work/referee.py"}
    assert not [name for name in sources if name.partition("/")[0] == "referee"]


def test_the_adversary_is_a_wheel_of_its_own(referee: Path, tmp_path: Path) -> None:
    wheel = _wheel(referee)
    inside = {name for name in wheel.namelist() if ".dist-info/" not in name}
    written = {
        f"sfumato_referee/{path.relative_to(REFEREE).as_posix()}"
        for path in REFEREE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert inside == written
    assert {"sfumato_referee/attacks/ledger/golden/schema-1/ledger", "sfumato_referee/py.typed"} <= inside
    told = _metadata(wheel)
    assert (told["Name"], told["Version"], told["Requires-Python"]) == ("sfumato-referee", __version__, ">=3.11")
    assert told.get_all("Requires-Dist") == [f"sfumato=={__version__}"]
    assert any(name.endswith("licenses/LICENSE") for name in wheel.namelist())
    (file,) = referee.glob("*.tar.gz")
    with tarfile.open(file) as archive:
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    _build(unpacked, tmp_path / "again", "-t", "wheel")
    again = _wheel(tmp_path / "again")
    assert {each.filename: each.CRC for each in wheel.infolist()} == {
        each.filename: each.CRC for each in again.infolist()
    }


def test_library_and_adversary_are_of_one_version() -> None:
    assert sfumato_referee.VERSION == __version__ == PROJECT["version"]
    assert (ROOT / "referee" / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_the_wheel_says_what_pyproject_says(dist: Path) -> None:
    wheel = _wheel(dist)
    told = _metadata(wheel)
    assert (told["Name"], told["Version"], told["Requires-Python"]) == ("sfumato", __version__, ">=3.11")
    assert set(told.get_all("Provides-Extra") or ()) == set(EXTRAS)
    always = {each for each in told.get_all("Requires-Dist") or () if "extra ==" not in each}
    assert {re.match(r"[\w-]+", each).group() for each in always} == {"numpy", "scipy", "cryptography"}  # type: ignore[union-attr]
    (scripts,) = (name for name in wheel.namelist() if name.endswith("entry_points.txt"))
    assert "sfumato = sfumato.cli.start:main" in wheel.read(scripts).decode()
    assert any(name.endswith("licenses/LICENSE") for name in wheel.namelist())


def test_the_source_archive_builds_the_same_wheel(dist: Path, tmp_path: Path) -> None:
    (file,) = dist.glob("*.tar.gz")
    with tarfile.open(file) as archive:
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    assert (unpacked / "LICENSE").is_file() and (unpacked / "tests").is_dir() and not (unpacked / ".ci").exists()
    _build(unpacked, tmp_path / "again", "-t", "wheel")
    first, again = _wheel(dist), _wheel(tmp_path / "again")
    assert {each.filename: each.CRC for each in first.infolist()} == {
        each.filename: each.CRC for each in again.infolist()
    }


def test_the_installed_wheel_answers_a_question(dist: Path, referee: Path, tmp_path: Path) -> None:
    """In a fresh environment, which has the wheel and, by path, the packages that it needs; `sfumato attack` says how
    to install the adversary there, and finds it once it is."""
    home, at = tmp_path / "fresh", tmp_path / "work"
    venv.create(home, with_pip=False)
    (wheel,) = dist.glob("*.whl")
    python = home / "bin" / "python"
    words = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-deps", "--no-index"]
    subprocess.run([*words, "--no-compile", str(wheel)], check=True, capture_output=True)
    (site,) = home.glob("lib/python*/site-packages")
    needed = [path for path in sys.path if Path(path).name == "site-packages"]
    (site / "needed.pth").write_text("\n".join(needed) + "\n", encoding="utf-8")  # what is linked in there is not seen
    at.mkdir()
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}

    def run(*words: str) -> str:
        done = subprocess.run([*words], cwd=at, env=clean, capture_output=True, text=True, check=True)
        return done.stdout

    assert Path(run(str(python), "-c", "import sfumato; print(sfumato.__file__)").strip()).is_relative_to(home)
    sfumato = str(home / "bin" / "sfumato")
    assert __version__ in run(sfumato, "--version")
    run(sfumato, "init", ".", "--example")
    assert "receipt" in run(sfumato, "query", "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward")
    run(sfumato, "ledger", "report")
    assert "NIST SP 800-226" in (at / "report-hospital.html").read_text(encoding="utf-8")
    asked = subprocess.run([sfumato, "attack", "--list"], cwd=at, env=clean, capture_output=True, text=True)
    assert asked.returncode == 3 and "pip install ./referee in a checkout of sfumato" in " ".join(asked.stderr.split())
    (wheel,) = referee.glob("*.whl")
    subprocess.run([*words, "--no-compile", str(wheel)], check=True, capture_output=True)
    assert "Q5" in run(sfumato, "attack", "--list")
    assert "All 1 withstood" in run(sfumato, "attack", "Q5")


def _readers() -> list[Path]:
    """Whatever a person reads: pages, and the texts of the package."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    return [*pages, *SOURCE.rglob("*.py")]


def test_every_line_that_installs_something_works_today() -> None:
    """From a checkout, with extras that there are: the name on registries is not ours."""
    wrong = []
    for path in _readers():
        text = path.read_text(encoding="utf-8")
        for line in _LINE.findall(text):
            asked = [name for names in _EXTRA.findall(line) for name in names.split(",") if "{" not in name]
            if re.match(r"'?sfumato", line) or not set(asked) <= set(EXTRAS):
                wrong.append(f"{path.relative_to(ROOT)}: {line}")
        wrong += [f"{path.relative_to(ROOT)}: {hit}" for hit in re.findall(r"sfumato\[\w+\]", text)]
        wrong += [
            f"{path.relative_to(ROOT)}: no extra {name}"
            for name in re.findall(r"install_line\([\"'](\w+)[\"']\)", text)
            if name not in EXTRAS
        ]
    assert wrong == []


def test_the_extras_of_the_readme_bring_what_its_lines_use() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (named,) = re.findall(r"^\$ pip install '\.\[([\w,]+)\]'", text, re.MULTILINE)
    brought = {re.match(r"[\w-]+", need).group() for name in named.split(",") for need in EXTRAS[name]}  # type: ignore[union-attr]
    assert "to_pandas" in text and {"pandas", "duckdb", "typer", "jinja2"} <= brought
    assert not {"torch", "matplotlib"} & brought


def test_the_demo_sets_up_what_the_readme_installs() -> None:
    """Not the tools of developers, nor PyTorch."""
    made = subprocess.run(["make", "-n", "-B", "demo"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "'.[cli,sql,report]'" in made and "test" not in made
