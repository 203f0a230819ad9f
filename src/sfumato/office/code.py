"""Code of the user's own runs with this user's rights, outside of every guarantee: that is said."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def code_runs(names: Iterable[str], folder: Path) -> str:
    """What to tell whoever names functions of the form module:function."""
    files = ", ".join(dict.fromkeys(name.partition(":")[0].replace(".", "/") + ".py" for name in names))
    return f"{files} in {folder.name}/ is imported and runs: it is your code, and no part of the guarantee"
