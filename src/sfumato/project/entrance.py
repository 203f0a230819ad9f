"""A project, from the folder that holds its file."""

from __future__ import annotations

from pathlib import Path

from .. import checks
from ..errors import install_line
from .problems import ProjectError
from .project import FILE, Project


def open_project(place: str | Path = ".") -> Project:
    """A project, from its folder or its sfumato.yaml. All that is wrong with the file is told at once, with lines.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from sfumato import open_project
    >>> from sfumato.example import write_example
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_example(Path(folder))
    ...     print(open_project(folder).name)
    hospital
    """
    file = Path(checks.path(place, "place"))
    if file.suffix.lower() not in (".yaml", ".yml") or file.is_dir():
        file = file / FILE
    if not file.exists():
        raise ProjectError(
            f"there is no project in {str(file.parent)!r}",
            f"it has no file {file.name}",
            "make one with `sfumato init`, or name another folder",
            file=file.name,
        )
    try:
        from .assembling import assembled
    except ImportError as problem:
        if (problem.name or "").partition(".")[0] not in ("pydantic", "pydantic_core", "yaml"):
            raise
        raise ProjectError(
            "projects cannot be read here", "they need pydantic and PyYAML", install_line("cli")
        ) from None
    return assembled(file)
