"""What jax-privacy proves from counts of right guesses, on a grid, for tests/golden/."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from . import peers

PEER, WORKER, LIMIT = "jax-privacy", "jax_privacy_audit", 120.0
ERRORS = (0.05, 1e-6)
SIZES = ((20, 10), (100, 90), (1000, 50), (1000, 500), (1000, 990), (2000, 400))  # canaries, guesses
RIGHT = (0.55, 0.75, 0.9, 0.98, 1.0)
DELTAS = (0.0, 1e-5, 1e-3)


def grid() -> Iterator[dict]:
    for canaries, guesses in SIZES:
        for correct in sorted({round(share * guesses) for share in RIGHT}):
            for error in ERRORS:
                yield {"canaries": canaries, "guesses": guesses, "correct": correct, "error": error}


def files() -> Iterable[tuple[str, dict]]:
    points = [{"bound": "one run", "delta": delta, **point} for point in grid() for delta in DELTAS]
    points += [{"bound": "one run, curve", "delta": delta, **point} for point in grid() for delta in DELTAS if delta]
    points += [{"bound": "two sided", "delta": delta, **point} for point in grid() for delta in DELTAS]
    jobs = [{"do": "counts", "limit": LIMIT, **point} for point in points]
    answers = peers.run(PEER, WORKER, {"jobs": jobs})["answers"]
    kept = [{name: value for name, value in each.items() if name != "seconds"} for each in answers]
    rows = [point | each for point, each in zip(points, kept, strict=True)]
    yield "audit_bounds", {"peer": peers.PEERS[PEER][0], "rows": rows}
