"""Half the noise, caught or not: every kind of plan at telling parameters, audited again and again.

    python -m bench.audit_power [--quick] [--check] [--only NAME ...] [--times N] [--json FILE]

Each audit is `power.caught`: audit.check at the parameters of power.STRONGEST, with a noise that halves every scale.
`predicted` is the chance to be caught by the exact law of the best event, where that law is known. Seconds are the
processor's, of the dearest audit. The same plans with all of their noise must not be accused. --check fails unless
every mutant is caught every time within 60 seconds, and no honest plan is accused. --quick does a few of them once.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

from sfumato.audit import neighbours
from sfumato.noise import SecureBits
from sfumato.openings import ENGINE
from sfumato_referee import power

_SECONDS = 60.0
_PAIRS = 100  # of the usual search, where a setting has none of its own
_QUICK = ("Laplace", "Gaussian", "Exponential", "RandomizedResponse", "SparseVector", "OptimalKeys", "L2Noise", "Sql")


@dataclass(frozen=True)
class Row:
    """One kind of plan."""

    name: str
    runs: int
    predicted: float
    times: int
    caught: int
    ways: tuple[str, ...]
    seconds: float
    honest: int
    false_alarms: int

    @property
    def passes(self) -> bool:
        return self.caught == self.times and self.false_alarms == 0 and self.seconds <= _SECONDS

    def __str__(self) -> str:
        chance = "-" if math.isnan(self.predicted) else f"{self.predicted:.4f}"
        return (
            f"{self.name:<30}{self.runs:>8}{chance:>10}{self.caught:>6} of {self.times:<4}{self.seconds:>8.1f}"
            f"{self.false_alarms:>6} of {self.honest:<4}  {', '.join(self.ways)}"
        )


def measured(name: str, times: int, honest: int) -> Row:
    """So many audits of the mutant, and of the plan as it is."""
    setting = power.STRONGEST[name]
    found = [power.caught(name, SecureBits()) for _ in range(times)]
    accused = sum(power.caught(name, SecureBits(), mutant=False).broken for _ in range(honest))
    ways = tuple(way for way, share in power.shares(found).items() if share == 1)
    return Row(
        name,
        setting.runs,
        _predicted(name),
        times,
        sum(each.broken for each in found),
        ways,
        max(each.seconds for each in found),
        honest,
        accused,
    )


def _predicted(name: str) -> float:
    setting = power.STRONGEST[name]
    plan = setting.make()
    if plan.opens is ENGINE or name == "SGD":
        return math.nan
    pairs = setting.pairs(plan) if setting.pairs else list(islice(neighbours.pairs(plan), _PAIRS))
    found = [power.predicted(plan, pair, runs=setting.runs) for pair in pairs]
    return max((each for each in found if not math.isnan(each)), default=math.nan)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.audit_power", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few, each once")
    parser.add_argument("--check", action="store_true", help="exit 1 where a mutant is missed or a plan accused")
    parser.add_argument("--only", nargs="*", help="kinds of plans; all of them, or with --quick a few")
    parser.add_argument("--times", type=int, default=20, help="audits of each mutant")
    parser.add_argument("--json", type=Path, help="also write the figures to a file")
    asked = parser.parse_args()
    times, honest = (1, 1) if asked.quick else (asked.times, max(asked.times // 4, 1))
    print(
        f"{'mechanism':<30}{'runs':>8}{'predicted':>10}{'caught':>13}{'seconds':>8}{'false alarms':>14}  every time by"
    )
    rows = []
    for name in asked.only or (_QUICK if asked.quick else power.STRONGEST):
        rows.append(measured(name, times, honest))
        print(rows[-1], flush=True)
    if asked.json:
        asked.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    failed = [row.name for row in rows if not row.passes]
    print("every mutant is caught" if not failed else f"not as promised: {', '.join(failed)}")
    return 1 if asked.check and failed else 0


if __name__ == "__main__":
    sys.exit(main())
