"""Private queries beside DuckDB without privacy, and beside OpenDP, PipelineDP, SmartNoise and Tumult.

    python -m bench.query [--quick | --kept] [--check] [--large] [--json FILE]

The question is a GROUP BY with COUNT(*), distinct users, SUM and AVG under unknown keys, for users, at epsilon 1 and
delta 1e-6 in total; the tables are in bench.query_data. Time is on the wall with two threads, from the file to the
table in Python, in a process that has done it once. DuckDB takes turns with us; peers are timed once in the same run,
with at most 5 keys per user and 3 rows per user and key. Errors are taken against the true answers, nothing bounded or
clipped: per aggregate the median over the 100 most common keys, a suppressed key counting as 1. Each peer stands there
with the best of its limits (bench.query_peers), and what it answered is kept under .bench/query: the first run takes an
hour, a later one minutes. `--quick` and `--kept` ask no peer anew that has answered before. `--large` adds 100 million
rows.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

import duckdb

from . import peers, query_peers, table
from .bars import Bar, bars_block, progress, times
from .query_data import KEYS, TABLES, Data
from .query_peers import AGGREGATES, NAMES, TIMED, TOP, Errors, Setting, Truth
from .query_raw import GROUPED, THREADS, UNGROUPED, Turns, seconds, turns
from .workers import query_sfumato

GIB = 2**30
RATIOS = {"unknown keys": 1.7, "public keys": 1.5, "ungrouped": 1.5}
FASTER = {"opendp-polars": 20, "pipeline-dp": 60, "smartnoise": 60, "tumult": 120}
MEDIANS = {"opendp-polars": 20, "pipeline-dp": 20}
SMALL, PEAK, HALF = 0.050, 6 * GIB, 0.5
QUICKEST = "opendp-polars"


@dataclass(frozen=True)
class Effort:
    on: str  # the table on which we and DuckDB take turns
    repeats: int
    fresh: bool  # peers are asked anew, and all of them


FULL = Effort(on="10m", repeats=5, fresh=True)
KEPT = Effort(on="10m", repeats=5, fresh=False)
QUICK = Effort(on="1m", repeats=3, fresh=False)


@dataclass(frozen=True)
class Accuracy:
    """The best of an engine's settings on one table."""

    setting: str
    errors: Errors
    released: int  # of the most common keys
    tried: int

    @property
    def off(self) -> float:
        return self.errors.headline


@dataclass
class Figures:
    """Seconds on the wall, bytes, and errors; what is missing was not measured, and `absent` may say why."""

    turns: dict[str, Turns] = field(default_factory=dict)
    grouped: dict[str, float] = field(default_factory=dict)
    medians: dict[str, float] = field(default_factory=dict)
    medians_off: dict[str, float] = field(default_factory=dict)
    accuracy: dict[str, dict[str, Accuracy]] = field(default_factory=dict)
    large: dict[str, float] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)


def measure(effort: Effort, large: bool, say: Callable[[str], object]) -> Figures:
    figures = Figures()
    _beside_duckdb(figures, effort, say)
    _beside_peers(figures, effort, say)
    for name in ("1m", "flights"):
        figures.accuracy[name] = _accuracy(figures, TABLES[name].ready(), effort, say)
    if large:
        say("100 million rows")
        _large(figures)
    return figures


def _beside_duckdb(figures: Figures, effort: Effort, say: Callable[[str], object]) -> None:
    path, little = TABLES[effort.on].ready().path, TABLES["10k"].ready().path
    public = list(range(1, KEYS + 1))
    pairs: dict[str, tuple[Callable[[], float], Callable[[], float], int]] = {
        "unknown keys": (lambda: query_sfumato.grouped(str(path))[0], partial(seconds, GROUPED, path), 1),
        "public keys": (lambda: query_sfumato.grouped(str(path), public)[0], partial(seconds, GROUPED, path), 1),
        "ungrouped": (lambda: query_sfumato.ungrouped(str(path))[0], partial(seconds, UNGROUPED, path), 1),
        "small": (lambda: query_sfumato.small(str(little)), partial(seconds, GROUPED, little), 5),
    }
    for what, (ours, raw, more) in pairs.items():
        say(f"beside DuckDB: {what}")
        figures.turns[what] = turns(ours, raw, effort.repeats * more)


def _beside_peers(figures: Figures, effort: Effort, say: Callable[[str], object]) -> None:
    data = TABLES["1m"].ready()
    truth = Truth.of(data)
    ours = {
        "grouped": lambda: query_sfumato.grouped(str(data.path)),
        "medians": lambda: query_sfumato.medians(str(data.path), truth.keys),
    }
    for what, work in ours.items():
        took = [work() for _ in range(effort.repeats + 1)][1:]
        getattr(figures, what)["sfumato"] = statistics.median(each for each, _ in took)
        if what == "medians":
            figures.medians_off["sfumato"] = query_peers.medians_off(took[0][1], truth)
    for setting in TIMED:
        say(f"1 million rows: {setting}")
        fresh = effort.fresh or (setting.peer == QUICKEST and query_peers.kept(setting, data, "timed") is None)
        _peer(figures, figures.grouped, setting, data, truth, "timed", fresh)
        if setting.peer in MEDIANS:
            answer = _peer(figures, figures.medians, setting, data, truth, "medians", effort.fresh)
            if answer is not None:
                figures.medians_off[setting.peer] = query_peers.medians_off(answer["table"], truth)


def _peer(
    figures: Figures, into: dict[str, float], setting: Setting, data: Data, truth: Truth, kind: str, fresh: bool
) -> dict | None:
    what = f"{NAMES[setting.peer]}, {kind} on {data.name}"
    if fresh:
        asking = partial(query_peers.ask_medians, keys=truth.keys) if kind == "medians" else query_peers.ask
        answer = query_peers.keep(setting, data, asking(setting, data, warm=True), truth, kind)
    else:
        answer = query_peers.kept(setting, data, kind) or {"failed": "never asked, and --quick asks no more"}
    if "failed" in answer:
        figures.absent[what] = answer["failed"]
        return None
    into[setting.peer] = answer["seconds"]
    return answer


def _accuracy(figures: Figures, data: Data, effort: Effort, say: Callable[[str], object]) -> dict[str, Accuracy]:
    """The best setting of every peer, found after the fact: ours has to choose without looking."""
    truth = Truth.of(data)
    found: dict[str, Accuracy] = {}
    ask = partial(query_sfumato.grouped, str(data.path), lower=data.lower, upper=data.upper, advised=True)
    mine = [ask()[1] for _ in range(effort.repeats)]
    middle = sorted(mine, key=lambda each: Errors.of(each, truth).headline)[len(mine) // 2]
    released = sum(key in middle for key in truth.answers)
    found["sfumato"] = Accuracy("the adviser's, unclip", Errors.of(middle, truth), released, len(mine))
    tried: dict[str, list[Accuracy]] = {peer: [] for peer in NAMES}
    for setting in query_peers.GRID:
        say(f"accuracy on {data.name}: {setting}")
        answer = query_peers.asked(setting, data, truth) if effort.fresh else query_peers.kept(setting, data)
        if answer is not None and "failed" not in answer:
            errors = Errors.of(answer["table"], truth)
            tried[setting.peer].append(Accuracy(setting.limits, errors, len(answer["table"]), 1))
    for peer, answers in tried.items():
        if answers:
            best = min(answers, key=lambda each: (each.off, -each.released))
            found[peer] = Accuracy(best.setting, best.errors, best.released, len(answers))
        else:
            figures.absent[f"{NAMES[peer]}, accuracy on {data.name}"] = "no answer"
    return found


def _large(figures: Figures) -> None:
    """In a process of its own, whose memory nothing else has touched."""
    job = {"do": "grouped", "path": str(TABLES["100m"].ready().path)}
    try:
        answer = peers.run_ours("query_sfumato", {"jobs": [job]}, threads=THREADS)["answers"][0]
    except peers.PeerFailedError as problem:
        answer = {"failed": str(problem)}
    if "failed" in answer:
        figures.absent["sfumato, 100 million rows"] = answer["failed"]
    else:
        figures.large = {"seconds": answer["seconds"], "peak": answer["peak"], "released": len(answer["table"])}


# Bars and report


def bars(figures: Figures, large: bool) -> Iterator[Bar]:
    for what, most in RATIOS.items():
        found = figures.turns.get(what)
        yield _bar(f"{what}: sfumato / DuckDB ≤ {most}", found and found.ratio, lambda x, most=most: x <= most, times)
    for of, name, least in (("grouped", "GROUP BY", FASTER), ("medians", "medians", MEDIANS)):
        took = getattr(figures, of)
        for peer, factor in least.items():
            ratio = took[peer] / took["sfumato"] if peer in took and "sfumato" in took else None
            promise = f"1 million rows, {name}: {NAMES[peer]} / sfumato ≥ {factor}"
            yield _bar(promise, ratio, lambda x, factor=factor: x >= factor, times)
    for name, found in figures.accuracy.items():
        peers_off = [each.off for engine, each in found.items() if engine != "sfumato"]
        ratio = found["sfumato"].off / min(peers_off) if "sfumato" in found and peers_off else None
        promise = f"error on {name}: sfumato / the best peer ≤ {HALF}"
        yield _bar(promise, ratio, lambda x: x <= HALF, times)
    small = figures.turns.get("small")
    promise = f"10 000 rows, durable ledger: sfumato - DuckDB < {SMALL * 1000:.0f} ms"
    yield _bar(promise, small and small.ours - small.raw, lambda x: x < SMALL, table.duration)
    if large:
        promise = f"100 million rows: peak memory < {PEAK // GIB} GiB"
        yield _bar(promise, figures.large.get("peak"), lambda x: x < PEAK, lambda x: f"{x / GIB:.2f} GiB")


def _bar(promise: str, value: float | None, kept: Callable[[float], bool], told: Callable[[float], str]) -> Bar:
    return Bar(promise, "not measured", kept=False) if value is None else Bar(promise, told(value), kept(value))


def report(figures: Figures, effort: Effort) -> str:
    blocks = [
        f"Private queries · Python {platform.python_version()} · DuckDB {duckdb.__version__} · {THREADS} threads, wall",
        *_duckdb_block(figures, effort),
        *_peers_block(figures),
        *(block for name in figures.accuracy for block in _accuracy_block(name, figures.accuracy[name])),
    ]
    if figures.large:
        took, peak = figures.large["seconds"], figures.large["peak"] / GIB
        blocks.append(f"\n100 million rows: {table.duration(took)}, peak memory {peak:.2f} GiB")
    if effort is QUICK:
        blocks.append("\nquick: 1 million rows instead of 10, and the peers' answers of an earlier run")
    return "\n".join((*blocks, *(f"  {what}: {why}" for what, why in figures.absent.items())))


def _duckdb_block(figures: Figures, effort: Effort) -> Iterator[str]:
    yield f"\nBeside DuckDB on {effort.on}, medians of {effort.repeats} turns (small: 10 000 rows and a durable ledger)"
    rows = [
        (what, table.duration(each.ours), table.duration(each.raw), times(each.ratio))
        for what, each in figures.turns.items()
    ]
    yield table.aligned([("what", "sfumato", "DuckDB", "ratio"), *rows])


def _peers_block(figures: Figures) -> Iterator[str]:
    yield f"\n1 million rows: GROUP BY with unknown keys; medians of {TOP} given keys, with their error"
    rows = []
    for engine, name in {"sfumato": "sfumato", **NAMES}.items():
        row = [name]
        for took in (figures.grouped, figures.medians):
            ours = took.get("sfumato")
            row.append(table.duration(took[engine]) if engine in took else "–")
            row.append(times(took[engine] / ours if engine in took and ours else None))
        off = figures.medians_off.get(engine)
        rows.append((*row, "–" if off is None else f"{off:.3f}"))
    yield table.aligned([("engine", "GROUP BY", "/ sfumato", "medians", "/ sfumato", "off by"), *rows])


def _accuracy_block(name: str, found: dict[str, Accuracy]) -> Iterator[str]:
    yield f"\nError on {name} against the true answers, medians over the {TOP} most common keys"
    rows = []
    for engine, each in sorted(found.items(), key=lambda item: item[1].off):
        errors = [f"{getattr(each.errors, aggregate):.3f}" for aggregate in AGGREGATES]
        settings = f"{each.setting} (best of {each.tried})" if engine != "sfumato" else each.setting
        rows.append((NAMES.get(engine, engine), settings, *errors, f"{each.off:.3f}", str(each.released)))
    yield table.aligned([("engine", "limits", *AGGREGATES, "mean of four", "keys"), *rows], words=2)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.query", description="Private queries, side by side.")
    parser.add_argument("--quick", action="store_true", help="1 million rows, peers' answers as kept; under a minute")
    parser.add_argument("--kept", action="store_true", help="10 million rows, peers' answers as kept; some minutes")
    parser.add_argument("--check", action="store_true", help="hold the figures against the bars; exit 1 on a miss")
    parser.add_argument("--large", action="store_true", help="100 million rows too, with peak memory")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE, in seconds")
    options = parser.parse_args(arguments)
    effort = QUICK if options.quick else KEPT if options.kept else FULL
    figures = measure(effort, options.large, say=progress)
    print(report(figures, effort))
    found = list(bars(figures, options.large))
    if options.json:
        content = {"effort": asdict(effort), "figures": asdict(figures), "bars": list(map(asdict, found))}
        options.json.write_text(json.dumps(content, indent=2) + "\n")
    if not options.check:
        return 0
    print("\n" + bars_block(found))
    return 0 if all(bar.kept for bar in found) else 1


if __name__ == "__main__":
    sys.exit(main())
