"""The adversary is a distribution of its own, `sfumato-referee`: this is the one place that looks for it."""

from __future__ import annotations

import shlex
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import sfumato

from ..problems import FILE, CommandError

if TYPE_CHECKING:
    from sfumato_referee.attacks import Verdict as Verdict

PACKAGE = "sfumato_referee"


def attacks() -> ModuleType:
    """The attacks that `sfumato attack` runs. Refuses where they are not installed, or not of this version."""
    try:
        package = import_module(PACKAGE)
    except ModuleNotFoundError as problem:
        if problem.name != PACKAGE:
            raise
        raise CommandError(
            "the attacks are not installed",
            "they and their planted bugs are a distribution of their own, sfumato-referee",
            install_line(),
            FILE,
        ) from None
    if sfumato.__version__ != package.VERSION:
        raise CommandError(
            "the attacks are of another version",
            f"sfumato-referee is {package.VERSION}, sfumato {sfumato.__version__}",
            install_line(),
            FILE,
        )
    return import_module(f"{PACKAGE}.attacks")


def install_line() -> str:
    """How it is installed, as a path from here: from the checkout that one stands in, or that sfumato runs from."""
    here = Path.cwd()
    beside = Path(sfumato.__file__).resolve().parents[2]
    for up, folder in enumerate((here, *here.parents)):
        if _is_checkout(folder):
            return f"pip install {Path(*[Path('..')] * up, 'referee') if up else './referee'}"
    if _is_checkout(beside):
        return f"pip install {shlex.quote(str(beside / 'referee'))}"
    return f"pip install ./referee in a checkout of sfumato {sfumato.__version__}"


def _is_checkout(folder: Path) -> bool:
    return (folder / "referee" / "src" / PACKAGE).is_dir() and (folder / "src" / "sfumato").is_dir()
