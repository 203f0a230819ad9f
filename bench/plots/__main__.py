"""Draw the plots of the docs anew: each file here has a `plot(axes)`, and becomes docs/mechanisms/plots/<name>.svg, or
<name>.svg in the folder `HOME` that it names itself."""

from __future__ import annotations

import pkgutil
import sys
from importlib import import_module
from pathlib import Path

import matplotlib as mpl

mpl.use("svg")
import matplotlib.pyplot as plt

import bench.plots

HOME = Path(__file__).resolve().parents[2] / "docs" / "mechanisms" / "plots"
STYLE = {
    "svg.hashsalt": "sfumato",  # the same figures give the same file
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "figure.figsize": (5.2, 3.2),
}


def families() -> list[str]:
    return sorted(found.name for found in pkgutil.iter_modules(bench.plots.__path__) if found.name != "__main__")


def draw(name: str, folder: Path | None = None) -> Path:
    """One plot."""
    module = import_module(f"bench.plots.{name}")
    folder = folder or getattr(module, "HOME", HOME)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(layout="constrained", figsize=getattr(module, "SIZE", None))
        module.plot(axes)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}.svg"
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)
    return path


def main() -> int:
    for name in sys.argv[1:] or families():
        print(f"{name}: {draw(name).stat().st_size // 1024} KiB", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
