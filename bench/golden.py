"""Values that peer libraries give, kept as test oracles: `python -m bench.golden` writes tests/golden/ anew.

Tests read the files and never need a peer; a peer that changes its mind shows up as a diff.
"""

from __future__ import annotations

import json

from . import accounting_golden, audit_golden
from .peers import PEERS, ROOT, run

GOLDEN = ROOT / "tests" / "golden"

EPSILONS = [0.001, 0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0]
DELTAS = [1e-12, 1e-9, 1e-6, 1e-5, 1e-3, 0.1]
SCALES = [0.5, 1.0, 2.0, 10.0, 100.0, 1000.0]
ALPHAS = [0.5, 0.1, 0.05, 0.01, 1e-6]

CASES = {
    "analytic_gaussian": ("diffprivlib", "diffprivlib_golden", {"epsilons": EPSILONS, "deltas": DELTAS}),
    "discrete_error_bars": ("opendp", "opendp_golden", {"scales": SCALES, "alphas": ALPHAS}),
}


def main() -> None:
    GOLDEN.mkdir(exist_ok=True)
    for name, (peer, script, payload) in CASES.items():
        write(name, {"peer": PEERS[peer][0], **run(peer, script, payload)})
    for files in (accounting_golden.files, audit_golden.files):
        for name, answer in files():
            write(name, answer)


def write(name: str, answer: dict) -> None:
    """One line for each entry of a list, so that a diff shows which answers changed."""
    lists = {key: value for key, value in answer.items() if isinstance(value, list)}
    lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in answer.items() if key not in lists]
    for key, value in lists.items():
        entries = ",\n".join(f"  {json.dumps(entry)}" for entry in value)
        lines.append(f" {json.dumps(key)}: [\n{entries}\n ]")
    (GOLDEN / f"{name}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"tests/golden/{name}.json", flush=True)


if __name__ == "__main__":
    main()
