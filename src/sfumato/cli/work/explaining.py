"""`sfumato explain`: what an epsilon means."""

from __future__ import annotations

import warnings
from typing import Literal

from rich.console import Console
from rich.text import Text

from ...errors import PrivacyWarning
from ...report.deployments import Placement, place
from ...report.explanations import ABOUT, Explanation, explain, percent
from ..documents import Document, Part
from ..screen import columns, say
from ..telling import Outcome
from .numbers import exact, rates


class Attacker(Part):
    """The most that any attacker reaches, as shares of the people."""

    false_positive: float
    true_positive: float


class Published(Part):
    """A public deployment; `differs` says why its figure cannot be set beside this one."""

    name: str
    year: int
    epsilon: float
    delta: float
    unit: str
    trust: str
    differs: list[str]
    source: str


class ExplainDocument(Document):
    """What an epsilon means: in odds, and for the best attacker there can be."""

    document: Literal["explain/1"] = "explain/1"
    epsilon: float
    delta: float
    prior: float
    relation: str
    factor: float | None
    raised: float
    lowered: float
    band: str
    sentences: list[str]
    attackers: list[Attacker]
    deployments: list[Published] | None = None
    notes: list[str]


def explained(epsilon: str, delta: str, prior: str, shares: str, relation: str, others: bool) -> Outcome:
    """An epsilon in odds, against attackers, and beside what others published."""
    size, at = exact(epsilon, "EPSILON"), exact(delta, "--delta")
    explanation = explain(
        size,
        delta=at or None,
        prior=float(exact(prior, "--prior")),
        rates=rates(shares, "--rates"),
        relation=relation,
    )
    placed, notes = _placed(explanation) if others else (None, [])
    body = ExplainDocument(
        epsilon=explanation.epsilon,
        delta=explanation.delta,
        prior=explanation.prior,
        relation=explanation.relation,
        factor=explanation.factor if explanation.epsilon < 709 else None,
        raised=explanation.raised,
        lowered=explanation.lowered,
        band=band(explanation.epsilon),
        sentences=list(explanation.sentences()),
        attackers=[
            Attacker(false_positive=each.false_positive, true_positive=each.true_positive)
            for each in explanation.attacks
        ],
        deployments=None if placed is None else _published(placed),
        notes=notes,
    )

    def show(console: Console) -> None:
        for sentence in (*body.sentences, body.band):
            say(console, sentence)
        console.print()
        _attackers(console, body)
        console.print()
        if body.deployments is None:
            say(console, "--compare-deployments sets it beside what others have published.", style="dim")
            return
        _beside(console, body)
        for note in body.notes:
            say(console, note, first="- ", style="dim")

    return Outcome(body, show)


def band(epsilon: float) -> str:
    """Where an epsilon stands by NIST SP 800-226 (draft), which calls up to 1 conservative and large ones doubtful."""
    if epsilon <= 1:
        return "NIST SP 800-226 calls epsilon up to 1 a conservative choice."
    if epsilon <= 10:
        return (
            "NIST SP 800-226 calls epsilon up to 1 conservative; above that, it says, what is protected in practice "
            "depends on the case."
        )
    return "That is weak: the promise alone says little above epsilon = 10, least of all for people who stand out."


def _placed(explanation: Explanation) -> tuple[Placement, list[str]]:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", PrivacyWarning)
        placed = place(explanation.epsilon, delta=explanation.delta)
    return placed, [str(each.message).partition(" Do not rank")[0] for each in warned]


def _published(placed: Placement) -> list[Published]:
    return [
        Published(
            name=each.name,
            year=each.year,
            epsilon=each.epsilon,
            delta=each.delta,
            unit=each.unit,
            trust=each.trust,
            differs=list(differs),
            source=each.source,
        )
        for each, differs in placed.rows
    ]


def _attackers(console: Console, body: ExplainDocument) -> None:
    _, innocent, members = ABOUT[body.relation]
    say(console, f"The best attacker there can be accuses some of the people {innocent}:")
    shares = [(percent(each.false_positive), percent(each.true_positive)) for each in body.attackers]
    columns(console, ("accused of these", f"found of those {members}, at most"), shares, right=(0, 1))


def _beside(console: Console, body: ExplainDocument) -> None:
    own = [Text(cell, style="bold") for cell in (f"{body.epsilon:.4g}", f"{body.delta:g}", "-> this one", "person", "")]
    rows = []
    for deployment in body.deployments or []:
        differs = f"other {', '.join(deployment.differs)}" if deployment.differs else ""
        where, whom = f"{deployment.name} ({deployment.year})", f"{deployment.unit}, {deployment.trust}"
        cells = (f"{deployment.epsilon:.4g}", f"{deployment.delta:g}", where, whom, differs)
        rows.append([Text(cell, style="dim" if differs else "") for cell in cells])
    below = sum(each.epsilon <= body.epsilon for each in body.deployments or [])
    rows.insert(below, own)
    columns(console, ("epsilon", "delta", "published", "hides", ""), rows, right=(0, 1))
