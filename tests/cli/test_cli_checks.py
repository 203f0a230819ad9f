"""`sfumato attack` and `sfumato bench`: what holds ends with 0, the rest with 9; nothing passes by not running."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from sfumato import __version__
from sfumato.cli.work import benching, referee
from sfumato.mechanisms import Laplace
from sfumato_referee import attacks
from sfumato_referee.attacks import CouldNotRunError, Verdict, precision, targets
from tests.cli.counting_house import refused, told
from tests.cli.front import sfumato

FINE, BROKEN = Verdict("F1", False, "Nothing seen.", {"epsilon at least": 0.3}), Verdict("F1", True, "It shows.")


def given(patch: pytest.MonkeyPatch, attack: Verdict | Exception, control: Verdict | Exception = BROKEN) -> None:
    """F1 ends so, and so on its planted bug."""

    def ends(how: Verdict | Exception) -> Verdict:
        if isinstance(how, Exception):
            raise how
        return how

    patch.setitem(attacks.ATTACKS, "F1", lambda: ends(attack))
    patch.setitem(attacks._QUICK, "F1", lambda: ends(attack))
    patch.setitem(attacks.CONTROLS, "F1", lambda: ends(control))


def test_every_attack_has_a_title_and_the_list_runs_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(attacks.TITLES) == list(attacks.ATTACKS) and attacks._QUICK.keys() <= attacks.ATTACKS.keys()
    given(monkeypatch, RuntimeError("it ran"))
    found = told("attack", "--list", at=tmp_path)
    assert found["attacks"] == attacks.TITLES
    shown = sfumato("attack", "--list", at=tmp_path)
    assert shown.code == 0 and all(each in shown.out for each in attacks.ATTACKS)


def test_withstood_ends_with_0(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, FINE)
    found = told("attack", "f1", at=tmp_path)
    (one,) = found["attacks"]
    assert found["holds"] and (one["verdict"], one["control"]) == ("withstood", "found")
    assert one["figures"] == {"epsilon at least": 0.3} and one["seconds"] >= 0
    assert "All 1 withstood" in sfumato("attack", "F1", at=tmp_path).out
    (quick,) = told("attack", "F1", "--quick", at=tmp_path)["attacks"]
    assert quick["control"] == "not tried"
    (both,) = told("attack", "F1", "--quick", "--controls", at=tmp_path)["attacks"]
    assert both["control"] == "found"


@pytest.mark.parametrize(
    ("attack", "control", "verdict", "planted", "says"),
    [
        (BROKEN, BROKEN, "came through", "found", "It shows."),
        (FINE, FINE, "withstood", "missed", "its planted bug: Nothing seen."),
        (CouldNotRunError("no fork here"), BROKEN, "could not run", "found", "no fork here"),
        (FINE, ZeroDivisionError("oops"), "withstood", "could not run", "ZeroDivisionError: oops"),
    ],
)
def test_whatever_does_not_hold_ends_with_9(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    attack: Verdict | Exception,
    control: Verdict | Exception,
    verdict: str,
    planted: str,
    says: str,
) -> None:
    given(monkeypatch, attack, control)
    found = told("attack", "F1", at=tmp_path, code=9)
    (one,) = found["attacks"]
    assert not found["holds"] and (one["verdict"], one["control"]) == (verdict, planted)
    ran = sfumato("attack", "F1", at=tmp_path)
    assert ran.code == 9 and says in ran.out and "NOT ALL HELD" in ran.out


def test_true_attacks_run_on_the_library_and_on_the_textbook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(attacks.ATTACKS, "F2", lambda: precision.attack([targets.Library(Laplace)], releases=20_000))
    monkeypatch.setitem(attacks.CONTROLS, "F2", lambda: precision.attack([targets.Textbook()], releases=20_000))
    found = told("attack", "F2", "Q5", at=tmp_path)
    assert [(each["verdict"], each["control"]) for each in found["attacks"]] == [("withstood", "found")] * 2


def test_what_is_asked_wrongly_is_refused(tmp_path: Path) -> None:
    assert "--all" in refused("attack", at=tmp_path, code=2).err
    assert "--list" in refused("attack", "F99", at=tmp_path, code=2).err
    assert "more than all" in refused("attack", "F1", "--all", at=tmp_path, code=2).err


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder like a checkout, with one benchmark that prints what it was given."""
    for folder in ("bench", "src/sfumato", "docs/deep"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "bench" / "bars.py").write_text("")
    (tmp_path / "bench" / "noise.py").write_text(
        "import sys, pathlib\nprint('given', sys.argv[1:])\nprint('in', pathlib.Path.cwd().name)\n"
        "sys.exit(1 if '--check' in sys.argv else 0)\n"
    )
    return tmp_path


def test_a_benchmark_runs_in_the_checkout_from_any_folder_in_it(checkout: Path) -> None:
    found = told("bench", "noise", "--quick", at=checkout / "docs" / "deep")
    assert found["kept"] is True
    assert found["benchmarks"] == [{"name": "noise", "exit": 0, "output": ["given ['--quick']", f"in {checkout.name}"]}]
    shown = sfumato("bench", "noise", at=checkout)
    assert shown.code == 0 and "given []" in shown.out


def test_a_missed_bar_ends_with_9(checkout: Path) -> None:
    found = told("bench", "noise", "--check", at=checkout, code=9)
    assert found["kept"] is False and found["benchmarks"][0]["exit"] == 1
    assert "a bar was missed" in sfumato("bench", "noise", "--check", at=checkout).out


def test_without_a_checkout_it_says_where_to_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benching.sfumato, "__file__", str(tmp_path / "lib" / "a" / "sfumato" / "__init__.py"))
    assert "checkout" in refused("bench", "noise", at=tmp_path, code=3).err


def test_benchmarks_are_listed_and_named_rightly(checkout: Path) -> None:
    assert json.loads(sfumato("bench", "--json", at=checkout).out)["benchmarks"] == benching.NAMES
    assert "holdout" in refused("bench", "nose", at=checkout, code=2).err
    assert "up to date" in refused("bench", "query", at=checkout, code=3).err


def test_every_benchmark_of_the_list_is_there() -> None:
    root = Path(__file__).parents[2]
    missing = [name for name in benching.NAMES if not (root / "bench" / f"{name}.py").is_file()]
    assert missing == []


@pytest.fixture
def not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A library that runs from some installation, without the adversary."""
    for name in [name for name in sys.modules if name.partition(".")[0] == referee.PACKAGE]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if not (Path(path) / referee.PACKAGE).is_dir()])
    monkeypatch.setattr(sys, "meta_path", [each for each in sys.meta_path if "Editable" not in repr(each)])
    monkeypatch.setattr(referee.sfumato, "__file__", str(tmp_path / "lib" / "a" / "sfumato" / "__init__.py"))
    return tmp_path


@pytest.mark.parametrize("words", [("--list",), ("F1",), ("--all", "--quick")])
def test_without_the_adversary_it_says_how_to_install_it(not_installed: Path, words: tuple[str, ...]) -> None:
    said = " ".join(refused("attack", *words, at=not_installed, code=3).err.split())
    assert "sfumato-referee" in said
    assert f"pip install ./referee in a checkout of sfumato {__version__}" in said


def test_in_a_checkout_the_line_is_the_one_to_type_there(not_installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("src/sfumato", f"referee/src/{referee.PACKAGE}", "docs/deep", "elsewhere"):
        (not_installed / "house" / folder).mkdir(parents=True)
    house = not_installed / "house"
    assert refused("attack", "F1", at=house, code=3).err.rstrip().endswith("pip install ./referee")
    deep = refused("attack", "F1", at=house / "docs" / "deep", code=3).err
    assert deep.rstrip().endswith("pip install ../../referee")
    monkeypatch.setattr(referee.sfumato, "__file__", str(house / "src" / "sfumato" / "__init__.py"))
    monkeypatch.chdir(not_installed)
    assert referee.install_line() == f"pip install {house.resolve() / 'referee'}"


def test_an_adversary_of_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato_referee.VERSION", "0.0.9")
    said = refused("attack", "--list", at=tmp_path, code=3).err
    assert "0.0.9" in said and "pip install" in said
