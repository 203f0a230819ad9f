"""The noise, side by side with numpy's float noise and with the samplers of OpenDP and diffprivlib.

    python -m bench.noise [--quick] [--check] [--json FILE]

Every round measures every library once, so that a slow minute of the machine falls on all of them alike; the figures
are medians over the rounds, in CPU time. Our tables are forgotten before each measurement: set-up counts.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from bench import peers, table
from bench.bars import Bar, bars_block, progress, times

os.environ.update(peers.ONE_THREAD)  # numpy's libraries read it once, when they load

import numpy as np

import sfumato.laws
from sfumato import bounds
from sfumato.mechanisms.laplace import Laplace
from sfumato.noise import Noise, SecureBits, forget
from sfumato.plan import Run
from sfumato.rows import Rows
from sfumato.schema import Table, real
from sfumato.units import Unit

DRAWS = 1_000_000
LONG_FIRST_DRAW = 100_000
TRAINING_SCALES = tuple(2.0**e for e in (14, 18, 22, 26))  # noise of a private gradient, in steps of its grid
CANDIDATES = 1_000_000
SEED = 20_240_229

SCALES = {
    "RoundedGaussian": (3.0, 1e3, 1e6),
    "DiscreteGaussian": (3.0, 1e3, 1e6),
    "RoundedLaplace": (2.0, 1e3, 1e6),
    "DiscreteLaplace": (2.0, 1e3, 1e6),
}
SELECTIONS = {"gumbel": "exponential mechanism (Gumbel noise)", "exponential": "permute-and-flip (exponential noise)"}
PEERS = {"opendp": "OpenDP", "diffprivlib": "diffprivlib"}


@dataclass(frozen=True)
class Case:
    """One law at one scale."""

    name: str
    scale: float

    @property
    def law(self) -> sfumato.laws.Law:
        parameter = "sigma" if self.name.endswith("Gaussian") else "scale"
        return getattr(sfumato.laws, self.name)(**{parameter: self.scale})

    @property
    def words(self) -> tuple[str, str]:
        symbol = "σ" if self.name.endswith("Gaussian") else "b"
        return spaced(self.name), f"{symbol} = {table.count(self.scale)}"

    @property
    def key(self) -> str:
        return spaced(self.name).lower().replace(" ", "_")

    def nearby(self) -> Case:
        """A parameter nobody has asked for before, so that no cache anywhere can know it."""
        return Case(self.name, self.scale * float(np.random.default_rng().uniform(0.9, 1.1)))


CASES = tuple(Case(name, scale) for name, scales in SCALES.items() for scale in scales)


@dataclass(frozen=True)
class Effort:
    """How much is measured in a run; the peers draw fewer than we do, for a million would take them minutes."""

    rounds: int
    fresh: int
    releases: int
    peer_draws: int
    peer_budget: float


FULL = Effort(rounds=7, fresh=5, releases=200, peer_draws=50_000, peer_budget=1.0)
QUICK = Effort(rounds=3, fresh=5, releases=100, peer_draws=10_000, peer_budget=0.4)


def spaced(name: str) -> str:
    return name.replace("Gaussian", " Gaussian").replace("Laplace", " Laplace")


def cpu(work: Callable[[], object]) -> float:
    """CPU seconds of one call: on a shared machine the clock on the wall measures the neighbours too."""
    start = time.process_time()
    work()
    return time.process_time() - start


class PrivateCount:
    """One private count over one row, the ledger apart."""

    def __init__(self) -> None:
        self._unit = Unit()
        self._rows = Rows.read(Table({"age": real(0, 120)}), {"age": [40.0]}, self._unit)
        self._run = Run(Noise(SecureBits()))
        self._plan = self._planned()

    def _planned(self) -> Laplace:
        return Laplace(query=bounds.count(self._unit), epsilon=0.5)

    def run(self) -> object:
        """The work on the data alone: the plan has its grid and its law."""
        return self._plan._run(self._rows, self._run)

    def plan_and_run(self) -> object:
        """What an analyst waits for: the plan written, its grid and law found, the count drawn and finished."""
        plan = self._planned()
        return plan.finish(plan._run(self._rows, self._run))


# Measuring


class Rounds:
    """The measurements of a run in CPU seconds, under the name of what was measured."""

    def __init__(self, effort: Effort) -> None:
        self.effort = effort
        self.absent: dict[str, str] = {}
        self.peer_draws: dict[tuple[str, Case], int] = {}  # the fewest of any round
        self._seconds: dict[tuple[object, ...], list[float]] = defaultdict(list)
        self._scores = np.random.default_rng(SEED).normal(size=CANDIDATES)
        self._count = PrivateCount()
        self._done = 0

    def median(self, *name: object) -> float | None:
        """None where nothing could be measured."""
        return statistics.median(self._seconds[name]) if name in self._seconds else None

    def run(self) -> None:
        self._draws()
        self._peer("opendp")
        self._training()
        self._first_draws()
        self._releases()
        self._selections()
        self._peer("diffprivlib")
        self._done += 1

    def _add(self, seconds: float, *name: object) -> None:
        self._seconds[name].append(seconds)

    def _ours(self, case: Case, draws: int) -> float:
        law = case.law
        forget()
        return cpu(lambda: Noise(SecureBits()).draw(law, draws))

    def _draws(self) -> None:
        """Every round starts at another law: whoever comes first finds the caches cold after the peers' processes."""
        start = 5 * self._done % len(CASES)
        for case in CASES[start:] + CASES[:start]:
            self._add(self._ours(case, DRAWS) / DRAWS, "draw", "sfumato", case)
            self._add(cpu(lambda: np.random.default_rng().normal(size=DRAWS)) / DRAWS, "draw", "numpy", case)

    def _training(self) -> None:
        """A step of training: noise onto integer sums, then floats. The tables are warm, for a training has many."""
        sums, floats = np.zeros(DRAWS, dtype=np.int64), np.empty(DRAWS, dtype=np.float32)
        for scale in TRAINING_SCALES:
            law, noise = sfumato.laws.RoundedGaussian(scale), Noise(SecureBits())
            noise.add(law, sums)
            self._add(cpu(partial(noise.draw, law, DRAWS)) / DRAWS, "training", "draw", scale)
            added = cpu(partial(noise.add, law, sums)) / DRAWS
            self._add(added, "training", "add", scale)
            self._add(added + cpu(lambda: np.copyto(floats, sums)) / DRAWS, "training", "step", scale)
            self._add(cpu(lambda: np.random.default_rng().normal(size=DRAWS)) / DRAWS, "training", "numpy", scale)

    def _first_draws(self) -> None:
        for case in CASES:
            for _ in range(self.effort.fresh):
                self._add(self._ours(case.nearby(), 1), "first", case)
            if case.scale == 1e3:
                self._long_first_draw(case.nearby())

    def _long_first_draw(self, case: Case) -> None:
        law = case.law
        self._add(self._ours(case, LONG_FIRST_DRAW), "long first", case.name)
        self._add(cpu(lambda: Noise(SecureBits()).draw(law, LONG_FIRST_DRAW)), "long second", case.name)

    def _releases(self) -> None:
        self._count.plan_and_run()
        for _ in range(self.effort.releases):
            self._add(cpu(self._count.run), "release")
            self._add(cpu(self._count.plan_and_run), "planned release")

    def _selections(self) -> None:
        scores = self._scores
        for noise in SELECTIONS:
            forget()
            self._add(cpu(lambda n=noise: Noise(SecureBits()).select(scores, noise=n)), "select", "sfumato", noise)
            gumbel_argmax = cpu(lambda: np.argmax(scores + np.random.default_rng().gumbel(size=CANDIDATES)))
            self._add(gumbel_argmax, "select", "numpy", noise)

    def _peer(self, peer: str) -> None:
        """A peer that is missing or breaks off is left out from then on, and the table says so."""
        if peer in self.absent:
            return
        effort = {"draws": self.effort.peer_draws, "budget": self.effort.peer_budget}
        selection = {"candidates": CANDIDATES, "seed": SEED}
        payload = {
            "draws": [{"law": case.key, "scale": case.scale, **effort} for case in CASES],
            "selections": [{"noise": noise, **selection} for noise in SELECTIONS],
        }
        try:
            answers = peers.run(peer, f"{peer}_noise", payload)
        except (peers.PeerMissingError, peers.PeerFailedError) as reason:
            self.absent[peer] = str(reason)
            return
        for case, answer in zip(CASES, answers["draws"], strict=True):
            self._add(answer["seconds"], "draw", peer, case)
            self.peer_draws[peer, case] = min(answer["draws"], self.peer_draws.get((peer, case), answer["draws"]))
        for noise, answer in zip(SELECTIONS, answers["selections"], strict=True):
            self._add(answer["seconds"], "select", peer, noise)


# Figures


@dataclass(frozen=True)
class Comparison:
    """CPU seconds of the same work in each library; None where a peer could not be measured."""

    sfumato: float
    numpy: float
    opendp: float | None
    diffprivlib: float | None

    @property
    def ours_to_numpy(self) -> float:
        return self.sfumato / self.numpy

    @property
    def opendp_to_ours(self) -> float | None:
        return None if self.opendp is None else self.opendp / self.sfumato

    def figures(self) -> dict:
        return asdict(self) | {"ours_to_numpy": self.ours_to_numpy, "opendp_to_ours": self.opendp_to_ours}


@dataclass(frozen=True)
class Training:
    """CPU seconds for each coordinate of a gradient."""

    draw: float
    add: float
    step: float
    numpy: float


@dataclass(frozen=True)
class Figures:
    """The medians of a run, in CPU seconds."""

    effort: Effort
    draws: dict[Case, Comparison]
    training: dict[float, Training]
    first: dict[Case, float]
    long_first: dict[str, float]
    long_second: dict[str, float]
    release: float
    planned_release: float
    selections: dict[str, Comparison]
    peer_draws: dict[tuple[str, Case], int]
    absent: dict[str, str]


def measure(effort: Effort, say: Callable[[str], object]) -> Figures:
    rounds = Rounds(effort)
    for number in range(effort.rounds):
        say(f"round {number + 1} of {effort.rounds}")
        rounds.run()

    def compared(work: str, of: object) -> Comparison:
        return Comparison(*(rounds.median(work, library, of) for library in ("sfumato", "numpy", *PEERS)))

    return Figures(
        effort=effort,
        draws={case: compared("draw", case) for case in CASES},
        training={
            scale: Training(*(rounds.median("training", what, scale) for what in ("draw", "add", "step", "numpy")))
            for scale in TRAINING_SCALES
        },
        first={case: rounds.median("first", case) for case in CASES},
        long_first={name: rounds.median("long first", name) for name in SCALES},
        long_second={name: rounds.median("long second", name) for name in SCALES},
        release=rounds.median("release"),
        planned_release=rounds.median("planned release"),
        selections={noise: compared("select", noise) for noise in SELECTIONS},
        peer_draws=rounds.peer_draws,
        absent=rounds.absent,
    )


def bars(figures: Figures) -> Iterator[Bar]:
    for case, compared in figures.draws.items():
        law = ", ".join(case.words)
        if case.scale < 1e6:
            yield at_least(f"{law}: OpenDP / sfumato", compared.opendp_to_ours, 400)
        yield at_most(f"{law}: sfumato / numpy", compared.ours_to_numpy, 2 if case.scale < 1e6 else 4)
    for scale, training in figures.training.items():
        yield at_most(f"training, {power(scale)}: draw / numpy normal", training.draw / training.numpy, 1.25)
        yield shorter(f"training, {power(scale)}: noise added, made float32", training.step, 25e-9)
    for name, scales in SCALES.items():
        slowest = max(figures.first[Case(name, scale)] for scale in scales)
        yield shorter(f"{spaced(name)}: first draw at a new parameter", slowest, 2e-3)
    yield shorter("one scalar release", figures.release, 100e-6)
    for noise, compared in figures.selections.items():
        yield at_most(f"{SELECTIONS[noise]}: sfumato / numpy Gumbel argmax", compared.ours_to_numpy, 5)
    for peer in figures.absent:
        yield Bar(f"{PEERS[peer]} measured", absence(peer), kept=False)


def at_least(what: str, found: float | None, limit: float) -> Bar:
    return Bar(f"{what} ≥ {limit}", times(found), kept=found is not None and found >= limit)


def at_most(what: str, found: float, limit: float) -> Bar:
    return Bar(f"{what} ≤ {limit}", times(found), kept=found <= limit)


def shorter(what: str, found: float, limit: float) -> Bar:
    return Bar(f"{what} < {table.duration(limit)}", table.duration(found), kept=found < limit)


# Reporting


def versions() -> dict[str, str]:
    pins = dict(pin.split("==") for peer in PEERS for pin in peers.PEERS[peer])
    return {"Python": platform.python_version(), "numpy": np.__version__} | {PEERS[peer]: pins[peer] for peer in PEERS}


def report(figures: Figures) -> str:
    heading = "\n".join(
        (
            "Noise: sfumato and its peers",
            " · ".join(f"{name} {version}" for name, version in versions().items()),
            f"CPU time, set-up included, medians of {figures.effort.rounds} interleaved repeats",
        )
    )
    parts = (draws_block, training_block, first_block, release_block, selection_block)
    return "\n\n".join((heading, *(part(figures) for part in parts)))


def draws_block(figures: Figures) -> str:
    head = ("law", "scale", "sfumato", "numpy normal", *PEERS.values(), "sfumato / numpy", "OpenDP / sfumato")
    rows = [
        (
            *case.words,
            table.duration(compared.sfumato),
            table.duration(compared.numpy),
            *(peer_cell(figures, peer, compared, case) for peer in PEERS),
            times(compared.ours_to_numpy),
            times(compared.opendp_to_ours),
        )
        for case, compared in figures.draws.items()
    ]
    title = f"One draw out of {table.count(DRAWS)}"
    return "\n".join((title, table.aligned([head, *rows], words=2), *peer_notes(figures)))


def power(scale: float) -> str:
    return f"σ = 2^{math.log2(scale):g}"


def training_block(figures: Figures) -> str:
    head = ("σ", "draw", "add to int64 sums", "and to float32", "numpy normal", "draw / numpy")
    rows = [
        (
            power(scale).removeprefix("σ = "),
            *map(table.duration, (found.draw, found.add, found.step, found.numpy)),
            times(found.draw / found.numpy),
        )
        for scale, found in figures.training.items()
    ]
    title = f"Noise of a training step, rounded Gaussian, for one of {table.count(DRAWS)} coordinates, tables warm"
    return "\n".join((title, table.aligned([head, *rows])))


def peer_notes(figures: Figures) -> Iterator[str]:
    asked = figures.effort.peer_draws
    yield f"  The peers drew {table.count(asked)} a repeat. OpenDP's integer noise is the discrete law, beside both."
    yield "  diffprivlib draws one by one; of the rounded laws it has the unrounded floats."
    for (peer, case), drawn in figures.peer_draws.items():
        if drawn < asked:
            finished = f"only {table.count(drawn)} draws" if drawn else "not one draw"
            within = table.duration(figures.effort.peer_budget)
            yield f"  {PEERS[peer]}, {', '.join(case.words)}: {finished} within {within}"
    for reason in figures.absent.values():
        yield "  " + reason.replace("\n", "\n    ")


def first_block(figures: Figures) -> str:
    near = [f"near {scale}" for scale in ("2 or 3", "1 000", "1 000 000")]
    many = table.count(LONG_FIRST_DRAW)
    head = ("law", *(f"1 draw, {where}" for where in near), f"{many} draws, near 1 000", "the same again")
    rows = [
        (
            spaced(name),
            *(table.duration(figures.first[Case(name, scale)]) for scale in scales),
            table.duration(figures.long_first[name]),
            table.duration(figures.long_second[name]),
        )
        for name, scales in SCALES.items()
    ]
    return "First draw at a new parameter\n" + table.aligned([head, *rows])


def release_block(figures: Figures) -> str:
    return "\n".join(
        (
            "One scalar release: a private count, tables warm, ledger apart",
            f"  the run of a plan                     {table.duration(figures.release)}",
            f"  a new plan, its run and its finish    {table.duration(figures.planned_release)}",
        )
    )


def selection_block(figures: Figures) -> str:
    head = ("mechanism", "sfumato", "numpy Gumbel argmax", *PEERS.values(), "sfumato / numpy", "OpenDP / sfumato")
    rows = [
        (
            SELECTIONS[noise],
            table.duration(compared.sfumato),
            table.duration(compared.numpy),
            *(peer_cell(figures, peer, compared) for peer in PEERS),
            times(compared.ours_to_numpy),
            times(compared.opendp_to_ours),
        )
        for noise, compared in figures.selections.items()
    ]
    return f"Selection over {table.count(CANDIDATES)} candidates\n" + table.aligned([head, *rows])


def peer_cell(figures: Figures, peer: str, compared: Comparison, case: Case | None = None) -> str:
    seconds = getattr(compared, peer)
    if seconds is None:
        return absence(peer)
    unfinished = figures.peer_draws.get((peer, case)) == 0
    return f"> {table.duration(seconds)}" if unfinished else table.duration(seconds)


def absence(peer: str) -> str:
    return "failed" if peers.ready(peer) else "not installed"


def as_json(figures: Figures) -> str:
    """All times in seconds."""
    content = {
        "versions": versions(),
        "effort": asdict(figures.effort),
        "draws": [
            asdict(case)
            | compared.figures()
            | {f"{peer}_draws": figures.peer_draws.get((peer, case)) for peer in PEERS}
            for case, compared in figures.draws.items()
        ],
        "training": [{"scale": scale} | asdict(found) for scale, found in figures.training.items()],
        "first_draw": [asdict(case) | {"seconds": seconds} for case, seconds in figures.first.items()],
        "first_100000_draws": figures.long_first,
        "second_100000_draws": figures.long_second,
        "scalar_release": figures.release,
        "scalar_release_with_new_plan": figures.planned_release,
        "selections": [{"noise": noise} | compared.figures() for noise, compared in figures.selections.items()],
        "absent": figures.absent,
        "bars": [asdict(bar) for bar in bars(figures)],
    }
    return json.dumps(content, indent=2) + "\n"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.noise", description="The noise, side by side with peers.")
    parser.add_argument("--quick", action="store_true", help="fewer repeats, under a minute")
    parser.add_argument("--check", action="store_true", help="hold the figures against the bars; exit 1 on a miss")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE, in seconds")
    options = parser.parse_args(arguments)
    figures = measure(QUICK if options.quick else FULL, say=progress)
    print(report(figures))
    if options.json:
        options.json.write_text(as_json(figures))
    if not options.check:
        return 0
    found = list(bars(figures))
    print("\n" + bars_block(found))
    return 0 if all(bar.kept for bar in found) else 1


if __name__ == "__main__":
    sys.exit(main())
