"""Functions of the user's own, out of a Python file in the project's folder: models, losses, bodies of reserves.

It is the user's code, and runs as such: before any data is opened, and with whatever it does to this process.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_PLACE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
Wrong = Callable[[str, str], Exception]
"""Makes the error of a cause and a fix, for the line that names the function."""


def is_code(name: str) -> bool:
    """Does it name a function of the user's own?"""
    return ":" in name


def file_of(name: str, written_in: Path, wrong: Wrong) -> Path:
    """The file that `module:function` names; refused where there is none in the folder of the file that names it."""
    if not _PLACE.fullmatch(name):
        raise wrong(f"{name[:60]!r} is no function of a file", "write module:function, such as net:make")
    module, folder = name.partition(":")[0], written_in.absolute().parent
    file = folder.joinpath(*module.split(".")).with_suffix(".py")
    if not file.is_file() or not file.resolve().is_relative_to(folder.resolve()):
        cause = f"there is no file {file.name!r} in the folder of {written_in.name}"
        raise wrong(cause, "put it there, or correct it")
    return file


def function_of(name: str, written_in: Path, wrong: Wrong) -> Any:
    """The function that `module:function` names."""
    file = file_of(name, written_in, wrong)
    module, _, function = name.partition(":")
    with beside(written_in):
        spec = importlib.util.spec_from_file_location(module, file)
        assert spec is not None and spec.loader is not None
        loaded = importlib.util.module_from_spec(spec)
        before = sys.modules.get(module)
        sys.modules[module] = loaded  # dataclasses and pickles look it up
        try:
            spec.loader.exec_module(loaded)
        except Exception as problem:
            sys.modules.pop(module) if before is None else sys.modules.update({module: before})
            raise wrong(failure(file, problem), "correct the file") from problem
    written = getattr(loaded, function, None)
    if not callable(written):
        raise wrong(f"{file.name} has no function {function!r}", "write it, or correct the name")
    return written


def failure(file: Path, problem: Exception) -> str:
    """No data was opened, so the error may be told whole."""
    text = str(problem).strip().splitlines()
    return f"{file.name} fails: {type(problem).__name__}" + (f": {text[0][:200]}" if text else "")


@contextmanager
def beside(written_in: Path) -> Iterator[None]:
    """Modules that lie beside it can be imported, too."""
    place = str(written_in.absolute().parent)
    sys.path.insert(0, place)
    try:
        yield
    finally:
        if place in sys.path:
            sys.path.remove(place)
