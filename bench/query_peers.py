"""What the peers answer to private queries, and how far off it is. Answers are kept under .bench/query.

    python -m bench.query_peers [PEER ...]    fill the store with every setting on both tables (an hour or so)

The question: for every key the rows, the distinct users, the sum and the mean of `v1`, keys unknown, at epsilon 1 and
delta 1e-6 for all of it together and for users, not rows. Limits are the keys per user (L0) and the rows per user and
key (Linf). Every peer is asked as a careful user would (see its worker), at each of the limits that GRID names for it.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import duckdb

from . import peers
from .query_data import TABLES, Data

STORE = peers.HOME / "query"
EDITION = 1  # a new one when a worker asks otherwise than before: what was kept is then forgotten
EPSILON, DELTA, TOP, THREADS = 1.0, 1e-6, 100, 2
KEYS_PER_USER, ROWS_PER_KEY = (1, 5, 20, 100), (1, 3, 10, 30)
AGGREGATES = ("count", "users", "sum", "mean")
LONGEST = {"1m": 200_000, "10k": 200_000, "10m": 2_000_000, "flights": 50_000}  # public: rows of the largest key
NAMES = {"opendp-polars": "OpenDP", "pipeline-dp": "PipelineDP", "smartnoise": "SmartNoise", "tumult": "Tumult"}
SCRIPTS = {peer: f"query_{peer.removesuffix('-polars').replace('-', '_')}" for peer in NAMES}
CANDIDATES = 201  # of OpenDP's medians: half a unit apart


@dataclass(frozen=True)
class Setting:
    """A peer, its limits and its noise (None: it has no choice)."""

    peer: str
    l0: int
    linf: int
    noise: str | None = None

    def __str__(self) -> str:
        return f"{NAMES[self.peer]} {self.limits}"

    @property
    def limits(self) -> str:
        if self.peer == "smartnoise":
            return f"{self.l0 * self.linf} rows"
        return f"L0={self.l0} Linf={self.linf}" + (f" {self.noise}" if self.noise else "")

    @property
    def file(self) -> str:
        return "-".join(map(str, filter(None, (self.peer, self.l0, self.linf, self.noise))))


def _grid() -> Iterator[Setting]:
    """All sixteen limits for the two that have both, each with the noise that suits it.

    Laplace noise grows with L0, Gaussian with its root. PipelineDP adds up epsilons, and by the formulas its Gaussian
    has the smaller deviation from about 15 keys on. OpenDP composes Gaussians by zCDP: at 5 keys the two are about
    even in error, and the Gaussian releases more keys.
    """
    for peer, gaussian_from in (("pipeline-dp", 15), ("opendp-polars", 5)):
        for l0 in KEYS_PER_USER:
            for linf in ROWS_PER_KEY:
                yield Setting(peer, l0, linf, "gaussian" if l0 >= gaussian_from else "laplace")
    for rows in (1, 3, 5, 10, 15, 30, 60, 100, 300):  # SmartNoise limits the rows of a user alone
        yield Setting("smartnoise", rows, 1)
    for l0, linf in ((1, 1), (5, 1), (5, 3), (20, 1)):  # Tumult takes a minute and more for each
        yield Setting("tumult", l0, linf)


GRID = tuple(_grid())
TIMED = (
    Setting("opendp-polars", 5, 3, "laplace"),
    Setting("pipeline-dp", 5, 3, "laplace"),
    Setting("smartnoise", 5, 3),
    Setting("tumult", 5, 3),
)


@dataclass(frozen=True)
class Truth:
    """The raw answers, unbounded and unclipped, for the most common keys."""

    keys: tuple[int | str, ...]
    answers: Mapping[str, tuple[float, ...]]
    medians: Mapping[str, float]

    @classmethod
    def of(cls, data: Data) -> Truth:
        with duckdb.connect() as connection:
            rows = connection.execute(
                f"""SELECT key, count(*), count(DISTINCT user_id), sum(v1), avg(v1), median(v1)
                FROM '{data.ready().path}' GROUP BY key ORDER BY count(*) DESC, key LIMIT {TOP}"""
            ).fetchall()
        return cls(
            tuple(key for key, *_ in rows),
            {str(key): tuple(values) for key, *values, _ in rows},
            {str(key): median for key, *_, median in rows},
        )


@dataclass(frozen=True)
class Errors:
    """Per aggregate the median over the most common keys of |answer - truth| / |truth|; 1 for a suppressed key."""

    count: float
    users: float
    sum: float
    mean: float

    @property
    def headline(self) -> float:
        return statistics.mean(asdict(self).values())

    @classmethod
    def of(cls, table: Mapping[str, Sequence[float | None]], truth: Truth) -> Errors:
        columns = zip(*(_off(table.get(key), true) for key, true in truth.answers.items()), strict=True)
        return cls(*map(statistics.median, columns))


def _off(found: Sequence[float | None] | None, true: Sequence[float]) -> list[float]:
    if found is None:
        return [1.0] * len(true)
    return [1.0 if value is None else abs(value - right) / abs(right) for value, right in zip(found, true, strict=True)]


def medians_off(found: Mapping[str, float], truth: Truth) -> float:
    return statistics.median(abs(found[key] - right) / abs(right) for key, right in truth.medians.items())


# Asking, and keeping what was said


def asked(setting: Setting, data: Data, truth: Truth) -> dict:
    """The setting's answer, kept or new: `table` for the most common keys, `released` keys; or `failed`."""
    return kept(setting, data) or keep(setting, data, ask(setting, data), truth)


def ask(setting: Setting, data: Data, *, warm: bool = False, limit: float = 900.0) -> dict:
    job = {"do": "grouped", **_given(setting, data), "limit": limit}
    if setting.noise:
        job["noise"] = setting.noise
    return _run(setting.peer, job | _warm(warm))


def ask_medians(
    setting: Setting, data: Data, keys: Sequence[int | str], *, warm: bool = False, limit: float = 900.0
) -> dict:
    job = {"do": "medians", **_given(setting, data), "keys": list(keys), "limit": limit}
    job |= {"noise": setting.noise} if setting.peer == "pipeline-dp" else {"candidates": CANDIDATES}
    return _run(setting.peer, job | _warm(warm))


def _warm(wanted: bool) -> dict:
    return {"warm": str(TABLES["10k"].ready().path)} if wanted else {}


def _given(setting: Setting, data: Data) -> dict:
    given = {"path": str(data.ready().path), "l0": setting.l0, "linf": setting.linf, "epsilon": EPSILON, "delta": DELTA}
    given |= {"lower": float(data.lower), "upper": float(data.upper)}
    return given | ({"longest": LONGEST[data.name]} if setting.peer == "opendp-polars" else {})


def _run(peer: str, job: dict) -> dict:
    try:
        return peers.run(peer, SCRIPTS[peer], {"jobs": [job]}, threads=THREADS)["answers"][0]
    except (peers.PeerMissingError, peers.PeerFailedError) as problem:
        return {"failed": str(problem), "again": True}  # nothing that the peer said: never kept


def kept(setting: Setting, data: Data, kind: str = "") -> dict | None:
    """What the peer answered before, to the question of that kind: asked cold for errors, or `timed`, or `medians`."""
    path = _path(setting, data, kind)
    if not path.exists():
        return None
    found = json.loads(path.read_text())
    return found if found["of"] == _stamp(setting.peer) else None


def keep(setting: Setting, data: Data, answer: dict, truth: Truth, kind: str = "") -> dict:
    """The answer as it is kept: with the most common keys alone."""
    if "again" in answer:
        return answer
    small = dict(answer)
    if "table" in answer:
        small["released"] = len(answer["table"])
        small["table"] = {key: answer["table"][key] for key in truth.answers if key in answer["table"]}
    path = _path(setting, data, kind)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(small | {"of": _stamp(setting.peer)}) + "\n")
    return small


def _path(setting: Setting, data: Data, kind: str) -> Path:
    return STORE / f"{data.name}-{data.edition}" / f"{setting.file}{kind and '-' + kind}.json"


def _stamp(peer: str) -> dict:
    return {"pins": list(peers.PEERS[peer]), "edition": EDITION}


def fill(only: Sequence[str], data: Data, say: Callable[[str], object]) -> None:
    truth = Truth.of(data)
    for setting in GRID:
        if setting.peer in only:
            answer = asked(setting, data, truth)
            say(f"{data.name} {setting}: {told(answer, truth)}")


def told(answer: dict, truth: Truth) -> str:
    if "failed" in answer:
        return answer["failed"]
    errors = Errors.of(answer["table"], truth)
    each = ", ".join(f"{name} {value:.3f}" for name, value in asdict(errors).items())
    return f"{errors.headline:.3f} ({each}), {answer['released']} keys, {answer['seconds']:.1f} s"


def main() -> int:
    only = sys.argv[1:] or list(NAMES)
    for name in ("flights", "1m"):
        fill(only, TABLES[name], lambda line: print(line, flush=True))
    return 0


if __name__ == "__main__":
    sys.exit(main())
