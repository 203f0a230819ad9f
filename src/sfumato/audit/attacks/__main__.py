"""`python -m sfumato.audit.attacks F1 [--control]`: exit 0 = withstood, 1 = broken, 2 = could not run."""

from __future__ import annotations

import argparse
import sys

from . import ATTACKS, attack


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m sfumato.audit.attacks", description=__doc__)
    parser.add_argument("id", choices=list(ATTACKS), help="the attack")
    parser.add_argument("--control", action="store_true", help="attack the planted bug instead: must exit 1")
    given = parser.parse_args(arguments)  # a bad argument exits 2
    try:
        verdict = attack(given.id, control=given.control)
    except Exception as error:  # whatever kept it from running says nothing about the target
        print(f"{given.id}: could not run: {error}", file=sys.stderr)
        return 2
    print(verdict)
    return 1 if verdict.broken else 0


if __name__ == "__main__":
    sys.exit(main())
