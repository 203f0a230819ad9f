"""R3 to R6: attacks that history knows, on tables that were published without differential privacy (`audit.lessons`).

Each ends in a game: one person's secret is tossed like a coin, and the attacker, who knows everybody else, guesses it
from what is published. Against a release at epsilon he is right in at most e^epsilon / (1 + e^epsilon) of the rounds;
the planted bug publishes the bare numbers, as they were published then.
"""

from __future__ import annotations

from sfumato.audit.lessons import LESSONS

from .verdict import FALSE_ALARM, Verdict

ROUNDS = 2_000


def attack(name: str, *, rounds: int = ROUNDS, protected: bool = True) -> Verdict:
    """One lesson's game, on what a curator publishes, or on the bare numbers."""
    lesson = LESSONS[name]()
    bare, score = lesson.without(), lesson.play(rounds, protected=protected)
    broken = score.beats(lesson.allowed, FALSE_ALARM)
    text = (
        f"{score.right} of {rounds} guesses were right, and {100 * lesson.allowed:.1f} % are allowed. What was "
        f"published without privacy: {bare.text}"
    )
    return Verdict(lesson.id, broken, text, {"right guesses": score.share, "allowed": lesson.allowed, **bare.figures})


def control(name: str) -> Verdict:
    """The same game on the bare numbers."""
    return attack(name, rounds=200, protected=False)
