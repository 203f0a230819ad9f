"""The pages of docs/migration, both sides run: a peer's blocks by the peer, ours by us, and the answers held together.

    python -m bench.migration [--check] [PAGE ...]

On such a page the first Python block makes the data, and both sides run it. Of the others, those marked `no-run` are
the peer's: they run from top to bottom in the peer's own environment (`make bench-setup`). Both sides leave what they
found under the same names, and the truth is computed here from the file that the first block made. How far an answer
may be off is set so that the louder side fails by its noise with probability below 1e-9.
"""

from __future__ import annotations

import argparse
import csv
import io
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tests.pages import ROOT, blocks

from . import peers
from .bars import Bar, bars_block

FOLDER = ROOT / "docs" / "migration"
Rows = list[dict[str, str]]
Found = float | bool | dict[str, float] | None


@dataclass(frozen=True)
class Question:
    """A name on both sides of a page, what is true of the data, and how far an answer may be off.

    few     of a table with unknown keys: of the keys with so few rows at most one may show. Each does with probability
            of about delta, so two of them are a fault
    enough  keys with so many rows have to be there
    """

    truth: Callable[[Rows], Found]
    within: float = 0.0
    few: int | None = None
    enough: float = 0.0


@dataclass(frozen=True)
class Page:
    """A page of docs/migration: whose blocks stand on it, and what both sides answer."""

    peer: str
    questions: dict[str, Question]


def _by_ward(summary: Callable[[list[float]], float]) -> Callable[[Rows], dict[str, float]]:
    def truth(rows: Rows) -> dict[str, float]:
        wards = {row["ward"] for row in rows}
        return {ward: summary([float(row["cost"]) for row in rows if row["ward"] == ward]) for ward in wards}

    return truth


def _patients_by_drug(rows: Rows) -> dict[str, float]:
    return dict(Counter(drug for drug, _ in {(row["drug"], row["patient"]) for row in rows}))


def _cost(summary: Callable[[list[float]], float]) -> Callable[[Rows], float]:
    return lambda rows: summary([float(row["cost"]) for row in rows])


COUNT = Question(lambda rows: len(rows), within=250)
TOTAL = Question(_cost(sum), within=60_000)
TOTALS = Question(_by_ward(sum), within=60_000)
MEAN = Question(_cost(statistics.fmean), within=12)
MEANS = Question(_by_ward(statistics.fmean), within=25)
MEDIAN = Question(_cost(statistics.median), within=12)
MEDIANS = Question(_by_ward(statistics.median), within=25)
DRUGS = Question(lambda rows: dict(Counter(row["drug"] for row in rows)), within=800, few=3, enough=2500)
PATIENTS = Question(_patients_by_drug, within=800, few=3, enough=2500)
REFUSED = Question(lambda rows: True)

BY_TABLE = {"count": COUNT, "totals": TOTALS, "mean": MEAN}
"""What every library of queries answers."""

PRICES = {
    "training": (2.381690, 5e-4),
    "leak": (8.76944e-8, 1e-9),
    "mixed": (11.1492, 1e-2),
    "noise": (13.35961, 1e-3),
    "renyi": (2.5966, 1e-3),
}
"""Known from elsewhere (the tests of accounting hold them to more digits), and how far dp-accounting's grid is off."""

PAGES = {
    "opendp": Page("opendp-polars", BY_TABLE | {"median": MEDIAN, "drugs": DRUGS, "refused": REFUSED}),
    "smartnoise": Page("smartnoise", BY_TABLE | {"patients": PATIENTS}),
    "tumult": Page("tumult", BY_TABLE | {"median": MEDIAN, "drugs": DRUGS, "refused": REFUSED}),
    "pipelinedp": Page(
        "pipeline-dp",
        {
            "totals": replace(TOTALS, within=150_000),
            "means": MEANS,
            "medians": MEDIANS,
            "patients": PATIENTS,
            "refused": REFUSED,
        },
    ),
    "diffprivlib": Page(
        "diffprivlib", {"count": COUNT, "total": TOTAL, "mean": MEAN, "median": MEDIAN, "refused": REFUSED}
    ),
    "dp-accounting": Page(
        "dp-accounting",
        {name: Question(lambda _, price=price: price, within) for name, (price, within) in PRICES.items()},
    ),
}


def check(name: str) -> Iterator[Bar]:
    """Both sides of one page, each answer beside the truth."""
    page = PAGES[name]
    theirs, ours = sides(name)
    names = list(page.questions)
    told = {
        page.peer: peers.run(page.peer, "page_blocks", {"blocks": theirs, "names": names}, threads=2),
        "sfumato": peers.run_ours("page_blocks", {"blocks": ours, "names": names}, threads=2),
    }
    data = {answer["data"] for answer in told.values()}
    yield Bar(f"{name}: one file for both", f"{len(data)} files", kept=len(data) == 1)
    rows = list(csv.DictReader(io.StringIO(data.pop())))
    for asked, question in page.questions.items():
        truth = question.truth(rows)
        for who, answer in told.items():
            found = answer["found"][asked]
            yield Bar(f"{name}: {asked} by {who}", _shown(found), kept=right(question, found, truth))


def right(question: Question, found: Found, truth: Found) -> bool:
    """Whether an answer is one to the question: near the truth, no key missing that belongs there, none too rare."""
    if isinstance(truth, bool) or isinstance(found, bool):
        return found is truth
    if not isinstance(truth, dict):
        return isinstance(found, float) and abs(found - float(truth or 0)) <= question.within
    if not isinstance(found, dict):
        return False
    near = all(
        isinstance(value, float) and key in truth and abs(value - truth[key]) <= question.within
        for key, value in found.items()
    )
    needed = {key for key, value in truth.items() if question.few is None or value >= question.enough}
    rare = [key for key in found if question.few is not None and truth.get(key, 0) <= question.few]
    return near and needed <= set(found) and len(rare) <= 1


def sides(name: str) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """The blocks that the peer runs, and ours."""
    path = FOLDER / f"{name}.md"
    python = [block for block in blocks(path) if block.kind == "python"]
    first, *others = [(f"{path.name}:{block.line}", "\n" * block.line + block.text, block.mark) for block in python]
    theirs = [(place, text) for place, text, mark in others if mark == "no-run"]
    ours = [(place, text) for place, text, mark in others if mark != "no-run"]
    return [first[:2], *theirs], [first[:2], *ours]


def _shown(found: Found) -> str:
    if isinstance(found, dict):
        return ", ".join(f"{key} {_shown(value)}" for key, value in list(found.items())[:3])
    return f"{found:.7g}" if isinstance(found, float) else str(found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", metavar="PAGE", help=f"some of {', '.join(PAGES)}; all of them otherwise")
    parser.add_argument("--check", action="store_true", help="exit 1 where an answer is not one, or a peer is missing")
    asked = parser.parse_args()
    found: list[Bar] = []
    for name in asked.pages or PAGES:
        if name not in PAGES:
            parser.error(f"there is no page {name}: {', '.join(PAGES)}")
        try:
            found += check(name)
        except (peers.PeerMissingError, peers.PeerFailedError) as problem:
            print(problem, file=sys.stderr)
            found.append(Bar(f"{name}: both sides run", "no", kept=False))
    print(bars_block(found))
    return 1 if asked.check and not all(bar.kept for bar in found) else 0


if __name__ == "__main__":
    sys.exit(main())
