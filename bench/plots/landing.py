"""The first page: visits to the made-up hospital by ward, as an analyst gets them, beside the truth."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from sfumato import open_project
from sfumato.audit.arguments import one_table
from sfumato.example import hospital, write_example
from sfumato.noise import Noise, SeededBits
from sfumato.plan import Run

HOME = Path(__file__).resolve().parents[2] / "docs" / "assets"
SIZE = (7.4, 3.5)
QUESTION = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
EPSILON, BUDGET = 0.3, 2.0
_INK, _TEAL, _TRUTH, _SOFT = "#22303c", "#00796b", "#d5dde3", "#6b7b88"


def answered() -> Any:
    """The answer of the first page's five lines, with noise of a fixed seed: a picture is the same every time."""
    with TemporaryDirectory() as folder:
        write_example(Path(folder))
        plan = open_project(folder).plan(QUESTION, epsilon=EPSILON, limits="advise")
    return plan.finish(plan._run(one_table(plan, hospital().visits, None), Run(Noise(SeededBits(5)))))


def plot(axes: Any) -> None:
    answer = answered()
    wards, counts = np.unique(hospital().visits["ward"], return_counts=True)
    truth = dict(zip(wards.tolist(), counts.tolist(), strict=True))
    order = sorted(range(len(answer)), key=lambda row: truth[answer["ward"][row]])
    names = [answer["ward"][row] for row in order]
    values, ends = [answer["n"][row] for row in order], [answer.interval("n")[row] for row in order]
    places = np.arange(len(order))
    axes.barh(places, [truth[name] for name in names], height=0.62, color=_TRUTH, label="the truth, which stays hidden")
    bars = [[value - low for value, (low, _) in zip(values, ends, strict=True)],
            [high - value for value, (_, high) in zip(values, ends, strict=True)]]  # fmt: skip
    axes.errorbar(values, places, xerr=bars, fmt="o", color=_TEAL, markersize=5.5, elinewidth=2, capsize=4, capthick=2,
                  label="the answer, ± its error bar at 95 %")  # fmt: skip
    room = max(high for _, high in ends)
    for place, value, (low, high) in zip(places, values, ends, strict=True):
        axes.text(high + 0.02 * room, place, f"{value:,.0f} ± {(high - low) / 2:,.0f}", va="center", color=_INK)
    axes.set_yticks(places, names, color=_INK)
    axes.set_xlim(0, 1.25 * room)
    axes.set_xticks([])
    axes.tick_params(length=0)
    axes.grid(visible=False)
    axes.spines["bottom"].set_visible(False)
    axes.spines["left"].set_color(_TRUTH)
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 0.02), labelcolor=_INK)
    axes.set_title(QUESTION, loc="left", family="monospace", fontsize=9.5, color=_INK, pad=12)
    _budget(axes)


def _budget(axes: Any) -> None:
    """What the answer took from the budget."""
    under = axes.inset_axes([0.0, -0.17, 1.0, 0.07])
    under.barh([0], [BUDGET], color=_TRUTH, height=1)
    under.barh([0], [EPSILON], color=_TEAL, height=1)
    under.set_xlim(0, BUDGET)
    under.set_ylim(-0.5, 0.5)
    under.axis("off")
    under.text(EPSILON + 0.02 * BUDGET, -0.02, f"epsilon {EPSILON:g} of {BUDGET:g} is spent, and entered in the ledger",
               va="center", color=_INK, fontsize=8.5)  # fmt: skip
    under.text(-0.012 * BUDGET, 0, "budget", va="center", ha="right", color=_INK)
