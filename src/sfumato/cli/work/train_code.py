"""Models and losses of the user's own, out of a Python file in the project's folder.

It is the user's code, and runs as such: before any data is opened, and with whatever it does to this process.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...project.training import Training

_PLACE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


def is_code(name: str) -> bool:
    """Does it name a function of the user's own?"""
    return ":" in name


def file_of(name: str, training: Training, field: str) -> Path:
    """The file that `module:function` names; refused where there is none in the folder."""
    if not _PLACE.fullmatch(name):
        raise training.wrong(
            field, f"{name[:60]!r} is no function of a file", "write module:function, such as net:make"
        )
    module = name.partition(":")[0]
    found = training.folder.joinpath(*module.split(".")).with_suffix(".py")
    if not found.is_file() or not found.resolve().is_relative_to(training.folder.resolve()):
        raise training.wrong(
            field,
            f"there is no file {found.name!r} in the folder of {training.file.name}",
            "put it there, or correct it",
        )
    return found


def function_of(name: str, training: Training, field: str) -> Any:
    """The function that `module:function` names."""
    file = file_of(name, training, field)
    module, _, function = name.partition(":")
    with beside(training.folder):
        spec = importlib.util.spec_from_file_location(module, file)
        assert spec is not None and spec.loader is not None
        made = importlib.util.module_from_spec(spec)
        before = sys.modules.get(module)
        sys.modules[module] = made  # dataclasses and pickles look it up
        try:
            spec.loader.exec_module(made)
        except Exception as problem:
            sys.modules.pop(module) if before is None else sys.modules.update({module: before})
            raise training.wrong(field, _told(file, problem), "correct the file") from problem
    found = getattr(made, function, None)
    if not callable(found):
        raise training.wrong(field, f"{file.name} has no function {function!r}", "write it, or correct the name")
    return found


def called(make: Any, name: str, training: Training, field: str) -> Any:
    """What the function makes, called without arguments."""
    file = file_of(name, training, field)
    try:
        with beside(training.folder):
            return make()
    except Exception as problem:
        raise training.wrong(
            field, _told(file, problem), "correct the function: it is called without arguments"
        ) from problem


def _told(file: Path, problem: Exception) -> str:
    """No data was opened, so the error may be told whole."""
    text = str(problem).strip().splitlines()
    return f"{file.name} fails: {type(problem).__name__}" + (f": {text[0][:200]}" if text else "")


@contextmanager
def beside(folder: Path) -> Iterator[None]:
    """Modules that lie beside it can be imported, too."""
    place = str(folder)
    sys.path.insert(0, place)
    try:
        yield
    finally:
        if place in sys.path:
            sys.path.remove(place)
