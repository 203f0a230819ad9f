"""The public names: few, sorted, each where it says it is, and none of them paid for before it is used."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import sfumato

HEAVY = ("numpy", "scipy", "cryptography")


def test_public_names_are_sorted_and_resolve() -> None:
    assert sfumato.__all__ == sorted(sfumato.__all__)
    assert dir(sfumato) == sfumato.__all__
    for name in sfumato.__all__:
        value = getattr(sfumato, name)
        home = sfumato._HOMES.get(name)
        expected = import_module(f"sfumato.{name}") if home is None else getattr(import_module(f"sfumato.{home}"), name)
        assert value is expected


def test_homes_hold_only_public_names() -> None:
    assert set(sfumato._HOMES) <= set(sfumato.__all__)
    modules = set(sfumato.__all__) - set(sfumato._HOMES)
    assert all(import_module(f"sfumato.{name}").__name__ == f"sfumato.{name}" for name in modules)


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(sfumato, "no_such_name")


def _as_ruff_sorts(name: str) -> tuple[bool, bool, str]:
    """Names in capitals, then classes, then the rest (RUF022)."""
    return not name.isupper(), not name[0].isupper(), name


def test_packages_list_what_they_export() -> None:
    for package in ("mechanisms", "ledger", "noise"):
        module = import_module(f"sfumato.{package}")
        assert module.__all__ == sorted(module.__all__, key=_as_ruff_sorts)
        assert all(hasattr(module, name) for name in module.__all__)


def test_import_alone_loads_nothing_heavy() -> None:
    code = f"import sys, sfumato; print([name for name in {HEAVY!r} if name in sys.modules])"
    source = str(Path(sfumato.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {source!r}); {code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"


def test_the_version_is_the_one_of_the_package() -> None:
    pyproject = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    assert f'\nversion = "{sfumato.__version__}"\n' in pyproject
