"""Makes a project folder, all of it or nothing: sfumato.yaml, the ledger with key and anchor, and a .gitignore."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ...project import open_project
from ...project.alone import LOCK
from ..interrupts import no_more

YAML, IGNORED = "sfumato.yaml", ".gitignore"
PLACE, ANCHOR, KEY = "budget.ledger", "anchor/budget.anchor", "budget.key"
_PARTS = (YAML, f".{YAML}.new", IGNORED, "budget.ledger*", "budget.key", "anchor")


@dataclass(frozen=True)
class NewParts:
    """What was made, as paths from the folder; and what the ledger says about its accounts."""

    files: tuple[str, ...]
    changes: tuple[str, ...] = ()


@contextmanager
def whole_or_nothing(folder: Path, *more: str) -> Iterator[None]:
    """Whatever goes wrong inside, also Ctrl-C: new parts of a project are removed, replaced files are put back.

    Only parts that `sfumato init` makes are touched, and only those that were not there before.
    """
    above = [each for each in (folder, *folder.parents) if not each.exists()]
    before = {path: path.read_bytes() if path.is_file() else None for path in _parts(folder, more)}
    try:
        yield
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            no_more()  # a second one must not cut the cleaning in two
        for path in _parts(folder, more):
            if path not in before:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        for path, content in before.items():
            if content is not None and path.name in (YAML, IGNORED) and path.read_bytes() != content:
                path.write_bytes(content)
        for place in above:
            if place.is_dir() and not any(place.iterdir()):
                place.rmdir()
        raise


def _parts(folder: Path, more: tuple[str, ...]) -> list[Path]:
    return [path for pattern in (*_PARTS, *more) for path in folder.glob(pattern)]


def write_yaml(folder: Path, text: str) -> None:
    """sfumato.yaml, in one step: a reader sees the old one or the new one."""
    folder.mkdir(parents=True, exist_ok=True)
    near = folder / f".{YAML}.new"
    near.write_text(text, encoding="utf-8")
    near.replace(folder / YAML)


def open_ledger_of(folder: Path) -> NewParts:
    """The ledger of a project that is complete: key, anchor, accounts. What is there already stays."""
    project = open_project(folder)
    names = (YAML, IGNORED, PLACE, ANCHOR, KEY)
    before = {name for name in names[2:] if (folder / name).exists()}
    with project.ledger(create=True) as ledger:
        changes = tuple(project.open_accounts(ledger))
    return NewParts(tuple(name for name in names if name not in before), changes)


def ignore(folder: Path, data: Iterable[Path]) -> None:
    """What must not get into a repository: the key, the ledger, and those data files that lie inside of the folder."""
    inside = [path.resolve() for path in data if path.resolve().is_relative_to(folder.resolve())]
    names = sorted({path.relative_to(folder.resolve()).as_posix() for path in inside})
    escaped = [re.sub(r"([*?\[\\ ])", r"\\\1", name) for name in names]
    path = folder / IGNORED
    content = path.read_text(encoding="utf-8") if path.is_file() else ""
    wanted = [f"/{KEY}", f"/{PLACE}*", f"/{LOCK}", *(f"/{name}" for name in escaped)]
    missing = [line for line in wanted if line not in content.splitlines()]
    if missing:
        head = "" if not content or content.endswith("\n") else "\n"
        path.write_text(content + head + "\n".join(missing) + "\n", encoding="utf-8")
