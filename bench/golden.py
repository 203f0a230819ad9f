"""Values that peer libraries give, kept as test oracles: `python -m bench.golden` writes tests/golden/ anew.

Tests read the files and never need a peer; a peer that changes its mind shows up as a diff.
"""

from __future__ import annotations

import json

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
        answer = {"peer": PEERS[peer][0], **run(peer, script, payload)}
        (GOLDEN / f"{name}.json").write_text(json.dumps(answer, indent=1) + "\n")
        print(f"tests/golden/{name}.json  from {PEERS[peer][0]}")


if __name__ == "__main__":
    main()
