"""`python -m sfumato_referee.mutation [--every] [area or words ...]`: the table of all faults, or of those named; with
--every all detectors of each are tried, not only the first that notices it."""

from __future__ import annotations

import sys

from . import MUTANTS, run, summed_up


def main(words: list[str]) -> int:
    every, words = "--every" in words, [word for word in words if word != "--every"]
    chosen = [each for each in MUTANTS if not words or any(word in f"{each.area}: {each.name}" for word in words)]
    ran = run(
        chosen,
        every=every,
        progress=lambda done, text: print(f"{100 * done:3.0f} %  {text}", file=sys.stderr, flush=True),
    )
    print(summed_up(ran))
    return 1 if ran.accused or len(ran.ended("killed")) < len(ran.tried) else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
