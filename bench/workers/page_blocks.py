"""Runs Python blocks of a page in an empty folder, with the interpreter they are for: the worker for bench.migration.

JSON in: the blocks and the names to look at. JSON out: what stands under each name, and the file that the first block
made. Blocks print for readers, and Spark for nobody: all of it goes to stderr.
"""

import json
import os
import sys
import tempfile
from pathlib import Path


def main() -> None:
    asked = json.load(sys.stdin)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    os.environ["PYSPARK_PYTHON"] = sys.executable  # Spark's own processes must be of this environment too
    namespace = {"__name__": "page"}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for place, text in asked["blocks"]:
            exec(compile(text, place, "exec"), namespace)
        made = Path("visits.csv")
        data = made.read_text(encoding="utf-8") if made.exists() else ""
        os.chdir("/")
    json.dump({"found": {name: plain(namespace.get(name)) for name in asked["names"]}, "data": data}, answers)
    answers.close()


def plain(value):
    """A number, a truth, or a table of numbers, whatever the library wraps it in; None for anything else."""
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, bool) or value is None:
        return value
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


if __name__ == "__main__":
    main()
