"""Private training beside ordinary training and beside Opacus, and its accuracy on real data.

    python -m bench.learn [--quick] [--check] [--data PATH] [--model NAME ...] [--json FILE]

Time is CPU time of one thread for one step (clip, noise, SGD) on one batch; the ordinary step, ours and Opacus' take
turns in one run, and a ratio is the median over rounds. Opacus runs in all its modes (hooks, functorch, ew, ghost), and
the quickest is compared; after two rounds only modes within 1.5 times of its best go on. Memory is the peak above the
start, in a fresh process for each figure. The models are in bench.learn_models. `--data` names a folder with `mnist/`
and `adult/`, and trains the recipes of bench.learn_accuracy through the front door, with exact noise, three times each;
Opacus trains in the same run where a bar is about it. That takes about an hour, and `--no-times` does nothing else.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import torch

from . import learn_accuracy, peers, table
from .bars import Bar, bars_block, progress, times
from .learn_accuracy import Scores
from .learn_models import CASES
from .learn_turns import OPACUS, Peaks, Turns, peaks, take_turns

RATIOS = {"mlp": 1.4, "cnn": 1.2, "resnet18gn": 1.4, "transformer": 1.15, "lora": 1.05, "lstm": 2.2}
FASTER = {"mlp": 1.35, "cnn": 1.0, "resnet18gn": 1.35, "transformer": 1.35, "lora": 1.0, "lstm": 1.35}
EXACT, MEMORY = 25e-9, 1.5
MIB = 2**20


@dataclass(frozen=True)
class Effort:
    models: tuple[str, ...]
    rounds: int
    fresh: int  # processes for each figure of memory
    hooks: bool  # memory of Opacus too


FULL = Effort(models=tuple(CASES), rounds=9, fresh=3, hooks=True)
QUICK = Effort(models=("mlp", "cnn"), rounds=7, fresh=1, hooks=False)


@dataclass
class Figures:
    """Seconds, bytes and percent; what is missing was not measured, and `absent` may say why."""

    turns: dict[str, Turns] = field(default_factory=dict)
    peaks: dict[str, Peaks] = field(default_factory=dict)
    scores: dict[str, Scores] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)


def measure(effort: Effort, data: Path | None, say: Callable[[str], object]) -> Figures:
    figures = Figures()
    for name in effort.models:
        try:
            figures.turns[name] = take_turns(name, effort.rounds, say)
            figures.peaks[name] = peaks(name, effort.fresh, ("ordinary", "hooks") if effort.hooks else (), say)
        except (peers.PeerMissingError, peers.PeerFailedError) as problem:
            figures.absent[name] = str(problem)
    if data is None:
        figures.absent["accuracy"] = "skipped: give --data PATH, a folder with mnist/ and adult/"
    else:
        figures.scores = learn_accuracy.scores(data, say)
    return figures


# Bars and report


def bars(figures: Figures, effort: Effort) -> Iterator[Bar]:
    for name in effort.models:
        turns, peak = figures.turns.get(name, Turns()), figures.peaks.get(name, Peaks())
        most, least = RATIOS[name], FASTER[name]
        yield _bar(f"{name}: private / ordinary step ≤ {most}", turns.ratio, lambda x, most=most: x <= most, times)
        promise = f"{name}: the best mode of Opacus / sfumato ≥ {least}"
        yield _bar(promise, turns.faster, lambda x, least=least: x >= least, times)
        promise = f"{name}: exact noise adds ≤ {EXACT * 1e9:.0f} ns for a parameter"
        yield _bar(promise, turns.more(CASES[name].trainable), lambda x: x <= EXACT, table.duration)
        yield _bar(f"{name}: memory, private / ordinary ≤ {MEMORY}", peak.ratio, lambda x: x <= MEMORY, times)
    for name, score in figures.scores.items():
        yield _bar(f"{name}: {score.promise}", score.figure, lambda x, score=score: score.kept(x), score.told)


def _bar(promise: str, value: float | None, kept: Callable[[float], bool], told: Callable[[float], str]) -> Bar:
    return Bar(promise, "not measured", kept=False) if value is None else Bar(promise, told(value), kept(value))


def report(figures: Figures, effort: Effort) -> str:
    blocks = [
        f"Private training · Python {platform.python_version()} · torch {torch.__version__} · one thread, CPU time",
        *(_times_block(figures, effort) if figures.turns else ()),
        *(_noise_block(figures) if figures.turns else ()),
        *(_memory_block(figures) if figures.peaks else ()),
        *(_scores_block(figures) if figures.scores else ()),
    ]
    if effort.models and len(effort.models) < len(CASES):
        blocks.append(f"\nnot timed: {', '.join(name for name in CASES if name not in effort.models)}")
    for name, turns in figures.turns.items():
        blocks += [f"  {name}, {what}: {why}" for what, why in turns.absent.items()]
    return "\n".join((*blocks, *(f"  {what}: {why}" for what, why in figures.absent.items())))


def _times_block(figures: Figures, effort: Effort) -> Iterator[str]:
    yield f"\nA step, as a ratio to the ordinary step of the same process: medians of {effort.rounds} rounds"
    rows = []
    for name, turns in figures.turns.items():
        ordinary = turns.ours.get("ordinary")
        spread = [a / b for a, b in zip(turns.ours.get("fast", ()), ordinary or (), strict=False)]
        rows.append(
            (
                name,
                table.count(CASES[name].trainable),
                table.duration(statistics.median(ordinary)) if ordinary else "–",
                times(turns.ratio),
                f"{min(spread):.2f}–{max(spread):.2f}" if spread else "–",
                *(times(turns.opacus_ratio(mode)) for mode in OPACUS),
                times(turns.faster),
            )
        )
    head = ("model", "trainable", "ordinary", "sfumato", "(spread)", *OPACUS, "best / ours")
    yield table.aligned([head, *rows])


def _noise_block(figures: Figures) -> Iterator[str]:
    yield "\nNoise, CPU time for a parameter; in front: what exact noise adds to the main thread, drawn in another"
    rows = []
    for name, turns in figures.turns.items():
        count = CASES[name].trainable
        alone = [turns.blurred.get(way) for way in ("fast", "exact")]
        more, front = turns.more(count), turns.more_in_front(count)
        rows.append(
            (
                name,
                *("–" if took is None else f"{statistics.median(took) / count * 1e9:.1f} ns" for took in alone),
                *("–" if value is None else f"{value * 1e9:.1f} ns" for value in (more, front)),
            )
        )
    yield table.aligned([("model", "fast", "exact", "more", "in front"), *rows])


def _memory_block(figures: Figures) -> Iterator[str]:
    yield "\nPeak memory above the start, MiB"
    rows = []
    for name, peak in figures.peaks.items():
        ours = [peak.ours.get(mode) for mode in ("ordinary", "fast")]
        theirs = [peak.opacus.get(mode) for mode in ("ordinary", "hooks")]
        opacus = theirs[1] / theirs[0] if theirs[0] and theirs[1] else None
        shown = ("–" if each is None else f"{each / MIB:.0f}" for each in (*ours, theirs[1]))
        rows.append((name, *shown, times(peak.ratio), times(opacus)))
    yield table.aligned([("model", "ordinary", "sfumato", "hooks", "ratio", "hooks' ratio"), *rows])


def _scores_block(figures: Figures) -> Iterator[str]:
    yield "\nAccuracy on real data, % of the test records; exact noise, delta 1e-5"
    rows = [
        (name, score.recipe, score.mean, score.spread, score.beside, score.minutes)
        for name, score in figures.scores.items()
    ]
    yield table.aligned([("task", "recipe", "sfumato", "(seeds)", "beside", "CPU min"), *rows], words=2)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.learn", description="Private training, side by side.")
    parser.add_argument("--quick", action="store_true", help="the two smallest models; about a minute")
    parser.add_argument("--check", action="store_true", help="hold the figures against the bars; exit 1 on a miss")
    parser.add_argument("--data", type=Path, metavar="PATH", help="a folder with mnist/ and adult/, for accuracy")
    parser.add_argument("--model", action="append", choices=tuple(CASES), help="only this model; may be repeated")
    parser.add_argument("--no-times", action="store_true", help="accuracy alone")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE, in seconds and bytes")
    options = parser.parse_args(arguments)
    effort = QUICK if options.quick else FULL
    if options.model or options.no_times:
        effort = replace(effort, models=tuple(options.model or ()))
    figures = measure(effort, options.data, say=progress)
    print(report(figures, effort))
    found = list(bars(figures, effort))
    if options.json:
        content = {"effort": asdict(effort), "figures": asdict(figures), "bars": list(map(asdict, found))}
        options.json.write_text(json.dumps(content, indent=2) + "\n")
    if not options.check:
        return 0
    print("\n" + bars_block(found))
    return 0 if all(bar.kept for bar in found) else 1


if __name__ == "__main__":
    sys.exit(main())
