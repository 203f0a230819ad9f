"""The accountant, side by side with dp-accounting, prv-accountant, Opacus and autodp.

    python -m bench.accounting [--quick] [--check] [--json FILE]

Everybody answers in a process of his own, one thread, CPU time, imports left out. What the bars compare is done once
before the clock starts, on both sides, and measured in rounds that take turns; the figures are medians over the rounds.
Our accountant forgets every earlier price before it is timed. It is asked twice: at its own accuracy, and at the
loosest of a ladder of accuracies whose upper end is no higher than dp-accounting's at h = 1e-4; speed is compared at
the latter.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from sfumato import record

from . import peers, table
from .bars import Bar, bars_block, progress, times
from .parts import Part, discrete_gaussian, event, gaussian, laplace, pure

NAMES = {
    "dp-accounting": "dp-accounting",
    "prv-accountant": "prv-accountant",
    "opacus": "Opacus",
    "autodp": "autodp",
}


@dataclass(frozen=True)
class Case:
    """What is priced, and how many times faster than dp-accounting we promise to be."""

    name: str
    words: str
    parts: tuple[Part, ...]
    delta: float
    faster: float | None = None
    step: float = 1e-4  # of dp-accounting's lattice

    def asked(self) -> dict:
        return {"parts": list(self.parts), "delta": self.delta}

    def event(self) -> dict:
        return {"event": record.encode(event(self.parts)), "delta": self.delta}


PHASES = (
    gaussian(2.0, 500, 0.01),
    gaussian(1.5, 1000, 0.005),
    gaussian(4.0, 300, 0.02),
    gaussian(0.8, 2000, 0.001),
    gaussian(1.1, 1500, 0.004),
)
CASES = (
    Case("1", "q = 256/60000, σ = 1.1, T = 14 063", (gaussian(1.1, 14_063, 256 / 60_000),), 1e-5, faster=12),
    Case("2", "q = 0.01, σ = 2, T = 1 000", (gaussian(2.0, 1000, 0.01),), 1e-5, faster=12),
    Case("3", "q = 0.004266, σ = 1, T = 600", (gaussian(1.0, 600, 0.004266),), 1e-5, faster=12),
    Case("4", "q = 1e-4, σ = 0.6, T = 1 000 000", (gaussian(0.6, 1_000_000, 1e-4),), 1e-7, faster=12),
    Case(
        "5",
        "five phases of DP-SGD, 20 Laplace 0.2, 20 discrete Gaussian σ = 10",
        (*PHASES, laplace(5.0, 20), discrete_gaussian(10.0, 1, 20)),
        1e-5,
        faster=8,
    ),
    Case("7", "100 times pure 0.1", (pure(0.1, 100),), 1e-6, step=0.1),
)
SHORT_AND_LONG = tuple(Case(f"T = {t}", "", (gaussian(0.6, t, 1e-4),), 1e-7) for t in (1_000, 1_000_000))
LADDER = (0.0, 3e-4, 1e-4, 3e-5, 1e-5, 3e-6)
OPTIMAL_COMPOSITION = 4.774568
SIGMA = {"epsilon": 1.0, "delta": 1e-5}
TRAINING = {"epsilon": 3.0, "delta": 1e-5, "rate": 256 / 60_000, "times": 2344}
TOLERANCE = 1e-3
SHUFFLE = {"epsilon": 1.0, "users": 100_000, "delta": 1e-6}
SHUFFLE_REFERENCE = {"any report": 0.01528, "two values": 0.01243, "closed form": 0.07255}
"""Computed apart, for no library has them: the clones of Feldman, McMillan, Talwar 2021 for any local mechanism, those
of 2023, which are proven for randomized response over two values, and the formula of 2021."""


@dataclass(frozen=True)
class Method:
    """One peer's way to an epsilon. The slow ones are asked once, unwarmed, and not in a quick run."""

    peer: str
    words: str
    job: dict
    slow: bool = False

    @property
    def name(self) -> str:
        return f"{NAMES[self.peer]} {self.words}"


TIGHT = Method("dp-accounting", "PLD h = 1e-4", {"do": "pld", "step": 1e-4})
BOTH_ENDS = Method("dp-accounting", "PLD h = 1e-4, both ends", {"do": "pld", "step": 1e-4, "lower": True})
OTHERS = (
    BOTH_ENDS,
    Method("dp-accounting", "PLD h = 1e-3", {"do": "pld", "step": 1e-3}),
    Method("dp-accounting", "RDP", {"do": "rdp"}),
    Method("prv-accountant", "error 0.1", {"do": "prv", "error": 0.1}),
    Method("prv-accountant", "error 0.01", {"do": "prv", "error": 0.01}, slow=True),
    Method("opacus", "PRV", {"do": "spent", "accountant": "prv"}, slow=True),
    Method("opacus", "RDP", {"do": "spent", "accountant": "rdp"}),
    Method("opacus", "GDP (not a bound)", {"do": "spent", "accountant": "gdp"}),
    Method("autodp", "RDP", {"do": "rdp"}),
)
SIGMAS = (
    Method("dp-accounting", "get_sigma_gaussian", {"do": "gaussian_sigma", **SIGMA}),
    Method("autodp", "analytic", {"do": "gaussian_sigma", **SIGMA}),
)
CALIBRATION = Method(
    "dp-accounting", "calibrate, PLD, same tolerance", {"do": "calibrate", "tolerance": 7e-4, **TRAINING}
)
CALIBRATIONS = (
    Method(
        "dp-accounting", "calibrate, PLD, its own tolerance", {"do": "calibrate", "tolerance": None, **TRAINING}, True
    ),
    Method("dp-accounting", "get_smallest_subsampled", {"do": "smallest", "law": "sampled_gaussian", **TRAINING}, True),
    Method("prv-accountant", "error 0.1", {"do": "calibrate", "error": 0.1, **TRAINING}, True),
    Method("opacus", "PRV", {"do": "calibrate", "accountant": "prv", **TRAINING}, True),
    Method("opacus", "RDP", {"do": "calibrate", "accountant": "rdp", **TRAINING}, True),
    Method("autodp", "RDP", {"do": "calibrate", **TRAINING}, True),
)
LIMIT = 30.0  # seconds on the wall for one answer of a peer


@dataclass(frozen=True)
class Effort:
    rounds: int
    slow: bool
    spends: int


FULL = Effort(rounds=5, slow=True, spends=100_000)
QUICK = Effort(rounds=2, slow=False, spends=10_000)


# Measuring


class Answers:
    """What everybody answered, under (who, what), with the CPU seconds of every round."""

    def __init__(self) -> None:
        self.absent: dict[str, str] = {}
        self._found: dict[tuple[str, str], list[dict]] = defaultdict(list)

    def ask(self, peer: str, jobs: dict[tuple[str, str], dict]) -> None:
        """A peer that is missing or breaks off is left out from then on, and the report says so."""
        if peer in self.absent or not jobs:
            return
        payload = {"jobs": list(jobs.values())}
        try:
            if peer == "sfumato":
                found = peers.run_ours("sfumato_accounting", payload)
            else:
                found = peers.run(peer, f"{peer.replace('-', '_')}_accounting", payload)
        except (peers.PeerMissingError, peers.PeerFailedError) as reason:
            self.absent[peer] = str(reason)
            return
        for key, answer in zip(jobs, found["answers"], strict=True):
            self._found[key].append(answer)

    def value(self, who: str, what: str, end: str = "upper") -> float | None:
        answers = self._found.get((who, what))
        return answers[0].get(end) if answers else None

    def seconds(self, who: str, what: str) -> float | None:
        measured = [each["seconds"] for each in self._found.get((who, what), ()) if "seconds" in each]
        return statistics.median(measured) if measured else None

    def failure(self, who: str, what: str) -> str | None:
        answers = self._found.get((who, what))
        return answers[0].get("failed") if answers else None

    def failures(self) -> Iterator[str]:
        for (who, what), answers in self._found.items():
            if "failed" in answers[0]:
                yield f"{who}, {what}: {answers[0]['failed']}"

    def plain(self) -> list[dict]:
        return [
            {"who": who, "what": what, **answers[0], "seconds": self.seconds(who, what)}
            for (who, what), answers in self._found.items()
        ]


def measure(effort: Effort, say: Callable[[str], object]) -> Answers:
    answers = Answers()
    ladder = None
    for number in range(effort.rounds):
        say(f"round {number + 1} of {effort.rounds}")
        answers.ask("dp-accounting", _tight_jobs())
        ladder = ladder or _ladder(answers)
        answers.ask("sfumato", _our_jobs(ladder))
    say("the other methods")
    for peer in NAMES:
        answers.ask(peer, _other_jobs(peer, effort))
    answers.ask("sfumato", _single_jobs(effort))
    return answers


def _tight_jobs() -> dict[tuple[str, str], dict]:
    return {(TIGHT.name, case.name): {**TIGHT.job, "step": case.step, "warm": True, **case.asked()} for case in CASES}


def _our_jobs(ladder: dict[str, float]) -> dict[tuple[str, str], dict]:
    jobs = {}
    for case in CASES:
        jobs["sfumato", case.name] = {"do": "epsilon", "warm": True, **case.event()}
        asked = {"do": "epsilon", "warm": True, "accuracy": ladder[case.name] or None, **case.event()}
        jobs["sfumato, as tight", case.name] = asked
        jobs["sfumato, public door", case.name] = {"do": "price", "warm": True, **case.event()}
    jobs["sfumato", "6a"] = {"do": "calibrate", "warm": True, "tolerance": 1e-6, "rate": 1.0, "times": 1, **SIGMA}
    jobs["sfumato", "6b"] = {"do": "calibrate", "warm": True, "tolerance": TOLERANCE, **TRAINING}
    for kind in SHUFFLE_REFERENCE:
        jobs["sfumato", f"8 {kind}"] = {"do": "shuffled", "warm": True, "kind": kind, **SHUFFLE}
    return jobs


def _ladder(answers: Answers) -> dict[str, float]:
    """The loosest accuracy at which our upper end is no higher than dp-accounting's, for every case; 0 is our own."""
    steps = {}
    for case in CASES:
        theirs = answers.value(TIGHT.name, case.name)
        if theirs is not None:
            asked = {"do": "as_tight", "upper": theirs + 1e-9, "accuracies": LADDER, **case.event()}
            steps["sfumato, accuracy", case.name] = asked
    answers.ask("sfumato", steps)
    return {case.name: answers.value("sfumato, accuracy", case.name, "accuracy") or 0.0 for case in CASES}


def _other_jobs(peer: str, effort: Effort) -> dict[tuple[str, str], dict]:
    jobs = {}
    for method in OTHERS:
        if method.peer != peer or (method.slow and not effort.slow):
            continue
        for case in CASES:
            if method is BOTH_ENDS and case.name == "4" and not effort.slow:
                continue  # its lower end is 0 there
            job = {**method.job, **case.asked()}
            if case.step != 1e-4 and "step" in job:
                job["step"] = case.step
            warm = effort.slow and not method.slow and method is not BOTH_ENDS
            jobs[method.name, case.name] = {**job, "warm": warm, "limit": LIMIT}
    for method in SIGMAS:
        if method.peer == peer:
            jobs[method.name, "6a"] = {**method.job, "warm": True}
    for method in (CALIBRATION, *CALIBRATIONS):
        if method.peer == peer and (effort.slow or not method.slow):
            jobs[method.name, "6b"] = {**method.job, "limit": 4 * LIMIT}
    return jobs


def _single_jobs(effort: Effort) -> dict[tuple[str, str], dict]:
    """Not a matter of rounds: the filter's own median is inside, memory does not vary."""
    jobs = {("sfumato", "one more"): {"do": "one_more", "spends": effort.spends}}
    for case in SHORT_AND_LONG:
        jobs["sfumato", f"memory {case.name}"] = {"do": "memory", **case.event()}
    return jobs


# Bars


def bars(found: Answers, effort: Effort) -> Iterator[Bar]:
    for case in CASES:
        yield from _tightness(found, case)
    yield from _exactness(found)
    for case in CASES:
        if case.faster is not None:
            yield from _speed(found, case)
    yield from _calibrations(found)
    yield from _shuffles(found)
    yield from _state(found, effort)
    for peer in found.absent:
        yield Bar(f"{NAMES.get(peer, peer)} measured", "not measured", kept=False)


def _tightness(found: Answers, case: Case) -> Iterator[Bar]:
    ours, theirs = found.value("sfumato, as tight", case.name), found.value(TIGHT.name, case.name)
    yield Bar(
        f"case {case.name}: upper end ≤ dp-accounting's {number(theirs)}",
        number(ours),
        kept=ours is not None and theirs is not None and ours <= theirs + 1e-9,
    )
    for method in (BOTH_ENDS, *(each for each in OTHERS if each.job["do"] == "prv")):
        lower = found.value(method.name, case.name, "lower")
        if lower is not None:
            kept = ours is not None and ours >= lower - 1e-9
            yield Bar(f"case {case.name}: upper end ≥ {method.name}'s lower {number(lower)}", number(ours), kept)


def _exactness(found: Answers) -> Iterator[Bar]:
    ours = found.value("sfumato", "7")
    kept = ours is not None and abs(ours - OPTIMAL_COMPOSITION) <= 1e-6
    yield Bar(f"case 7: the optimal composition {OPTIMAL_COMPOSITION}", number(ours), kept)


def _speed(found: Answers, case: Case) -> Iterator[Bar]:
    ours, theirs = found.seconds("sfumato, as tight", case.name), found.seconds(TIGHT.name, case.name)
    ratio = None if ours is None or theirs is None else theirs / ours
    promise = f"case {case.name}: dp-accounting / sfumato, as tight ≥ {case.faster:g}"
    yield Bar(promise, times(ratio), kept=ratio is not None and ratio >= case.faster)
    lower, upper = (found.value("sfumato", case.name, end) for end in ("lower", "upper"))
    width = None if lower is None or upper is None else (upper - lower) / max(1.0, upper)
    promise = f"case {case.name}: certified width / max(1, ε) ≤ 1e-3"
    yield Bar(promise, "–" if width is None else f"{width:.1e}", kept=width is not None and width <= 1e-3)
    yield _shorter(f"case {case.name}: at that width", found.seconds("sfumato", case.name), 0.5)


def _calibrations(found: Answers) -> Iterator[Bar]:
    ours = found.value("sfumato", "6a", "sigma")
    theirs = found.value(SIGMAS[0].name, "6a", "sigma")
    kept = ours is not None and theirs is not None and ours <= theirs * (1 + 1e-6)
    yield Bar(f"case 6a: σ ≤ dp-accounting's {number(theirs)} (1 + 1e-6)", number(ours), kept)
    ours, theirs = found.value("sfumato", "6b", "sigma"), found.value(CALIBRATION.name, "6b", "sigma")
    kept = ours is not None and theirs is not None and ours <= theirs * (1 + TOLERANCE)
    yield Bar(f"case 6b: σ ≤ dp-accounting's {number(theirs)} (1 + 1e-3)", number(ours), kept)
    for method in (CALIBRATION, CALIBRATIONS[0]):
        spent, needed = found.seconds(method.name, "6b"), found.seconds("sfumato", "6b")
        if spent is not None or method is CALIBRATION:
            ratio = None if spent is None or needed is None else spent / needed
            yield Bar(f"case 6b: {method.name} / sfumato ≥ 100", times(ratio), ratio is not None and ratio >= 100)


def _shuffles(found: Answers) -> Iterator[Bar]:
    for kind, reference in SHUFFLE_REFERENCE.items():
        ours = found.value("sfumato", f"8 {kind}")
        kept = ours is not None and ours <= reference * (1 + 1e-3)
        yield Bar(f"case 8: {kind} ≤ {reference} (1 + 1e-3)", number(ours), kept)


def _state(found: Answers, effort: Effort) -> Iterator[Bar]:
    for kind in ("repeated", "distinct"):
        seconds = found.value("sfumato", "one more", kind)
        yield _shorter(f"one more event ({kind}) after {table.count(effort.spends)}", seconds, 1e-3)
    short, long = (found.value("sfumato", f"memory {case.name}", "bytes") for case in SHORT_AND_LONG)
    ratio = None if short is None or long is None else long / short
    yield Bar("memory at T = 1e6 / at T = 1e3 < 3", times(ratio), kept=ratio is not None and ratio < 3)


def _shorter(what: str, seconds: float | None, limit: float) -> Bar:
    kept = seconds is not None and seconds < limit
    return Bar(f"{what} < {table.duration(limit)}", span(seconds), kept)


# Reporting


def versions() -> dict[str, str]:
    return {"Python": platform.python_version()} | {
        name: peers.PEERS[peer][0].partition("==")[2] for peer, name in NAMES.items()
    }


def report(found: Answers, effort: Effort) -> str:
    heading = "\n".join(
        (
            "Accounting: sfumato and its peers",
            " · ".join(f"{name} {version}" for name, version in versions().items()),
            "CPU time without imports, after one warm-up of the same call; "
            f"sfumato and dp-accounting h = 1e-4: medians of {effort.rounds} interleaved rounds, the others once",
            *(f"  case {case.name}   {case.words}, δ = {case.delta:g}" for case in CASES),
        )
    )
    blocks = (heading, epsilon_block(found), time_block(found), calibration_block(found), state_block(found, effort))
    notes = [f"  {line}" for line in (*found.absent.values(), *found.failures())]
    return "\n\n".join((*blocks, "\n".join(["No answer", *notes]) if notes else "")).rstrip()


OURS = ("sfumato", "sfumato, as tight", "sfumato, public door")


def _who() -> tuple[str, ...]:
    return (*OURS, TIGHT.name, *(method.name for method in OTHERS))


def epsilon_block(found: Answers) -> str:
    head = ("ε (upper end, or both)", *(f"case {case.name}" for case in CASES))
    rows = [(who, *(ends(found, who, case.name) for case in CASES)) for who in _who()]
    return table.aligned([head, *rows])


def time_block(found: Answers) -> str:
    head = ("CPU time", *(f"case {case.name}" for case in CASES))
    rows = [(who, *(span(found.seconds(who, case.name)) for case in CASES)) for who in _who()]
    ratios = []
    for case in CASES:
        ours, theirs = found.seconds("sfumato, as tight", case.name), found.seconds(TIGHT.name, case.name)
        ratios.append(times(None if ours is None or theirs is None else theirs / ours))
    return table.aligned([head, *rows, ("dp-accounting h = 1e-4 / sfumato, as tight", *ratios)])


def calibration_block(found: Answers) -> str:
    head = ("calibration and shuffling", "case", "answer", "CPU time")
    rows = [("sfumato", "6a", *_sigma(found, "sfumato", "6a"))]
    rows += [(method.name, "6a", *_sigma(found, method.name, "6a")) for method in SIGMAS]
    rows += [("sfumato", "6b", *_sigma(found, "sfumato", "6b"))]
    rows += [(method.name, "6b", *_sigma(found, method.name, "6b")) for method in (CALIBRATION, *CALIBRATIONS)]
    rows += [
        (f"sfumato, {kind}", "8", ends(found, "sfumato", f"8 {kind}"), span(found.seconds("sfumato", f"8 {kind}")))
        for kind in SHUFFLE_REFERENCE
    ]
    return table.aligned([head, *rows])


def _sigma(found: Answers, who: str, what: str) -> tuple[str, str]:
    answer = found.value(who, what, "sigma") or found.value(who, what, "parameter")
    return number(answer), span(found.seconds(who, what))


def state_block(found: Answers, effort: Effort) -> str:
    repeated, distinct = (found.value("sfumato", "one more", kind) for kind in ("repeated", "distinct"))
    held = [found.value("sfumato", f"memory {case.name}", "bytes") for case in SHORT_AND_LONG]
    megabytes = ", ".join(
        f"{case.name}: {'–' if size is None else f'{size / 1e6:.1f} MB'}"
        for case, size in zip(SHORT_AND_LONG, held, strict=True)
    )
    after = f"one more event after {table.count(effort.spends)} on a filter"
    return "\n".join(
        (
            f"  {after}   {span(repeated)}, a new one {span(distinct)}",
            f"  {'memory of one price'.ljust(len(after))}   {megabytes}",
        )
    )


def ends(found: Answers, who: str, what: str) -> str:
    lower, upper = (found.value(who, what, end) for end in ("lower", "upper"))
    if upper is None:
        return "–"
    return number(upper) if lower is None else f"{number(lower)}..{number(upper)}"


def number(value: float | None) -> str:
    return "–" if value is None else f"{value:.6f}"


def span(seconds: float | None) -> str:
    return "–" if seconds is None else table.duration(seconds)


def as_json(found: Answers, effort: Effort) -> str:
    """All times in seconds."""
    content = {
        "versions": versions(),
        "effort": asdict(effort),
        "cases": [{"case": case.name, "words": case.words, **case.asked()} for case in CASES],
        "answers": found.plain(),
        "absent": found.absent,
        "bars": [asdict(bar) for bar in bars(found, effort)],
    }
    return json.dumps(content, indent=2) + "\n"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.accounting", description="The accountant beside its peers.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and no slow methods, about a minute")
    parser.add_argument("--check", action="store_true", help="hold the figures against the bars; exit 1 on a miss")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE, in seconds")
    options = parser.parse_args(arguments)
    effort = QUICK if options.quick else FULL
    found = measure(effort, say=progress)
    print(report(found, effort))
    if options.json:
        options.json.write_text(as_json(found, effort))
    if not options.check:
        return 0
    kept = list(bars(found, effort))
    print("\n" + bars_block(kept))
    return 0 if all(bar.kept for bar in kept) else 1


if __name__ == "__main__":
    sys.exit(main())
