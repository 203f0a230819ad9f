"""What a lesson is: an attack on what was published without differential privacy, then the same on ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import grid
from ...mechanisms.additive import Additive
from ...rows import Rows
from ...schema import Schema
from .game import Score, allowed, play, released

Columns = Mapping[str, Any]
ROUNDS = 400


@dataclass(frozen=True)
class Shown:
    """What an attack found, in words and in numbers."""

    text: str
    figures: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """One attack that history knows, on made-up people.

    without    the attack on what was published, as it was published then
    ours       what a curator publishes instead, where the secret bit of one person is so
    bare       the same numbers without the noise, or without the ledger: the planted bug
    guess      what the attacker, who knows everybody else, makes of it
    """

    name: str
    id: str
    title: str
    source: str
    story: str
    without: Callable[[], Shown]
    ours: Callable[[bool], Any]
    bare: Callable[[bool], Any]
    guess: Callable[[Any], bool]
    epsilon: float
    moral: str

    @property
    def allowed(self) -> float:
        """The share of right guesses that epsilon leaves to anybody."""
        return allowed(self.epsilon)

    def play(self, rounds: int = ROUNDS, *, protected: bool = True) -> Score:
        """The game on what a curator publishes, or on the bare numbers."""
        return play(self.ours if protected else self.bare, self.guess, rounds)

    def taught(self, rounds: int = ROUNDS) -> Taught:
        """The attack on what was published, and the game on ours and on the bare numbers."""
        return Taught(self, self.without(), self.play(rounds), self.play(min(rounds, 100), protected=False))

    def tell(self, rounds: int = ROUNDS) -> str:
        """The lesson as a text: the story, what the attack finds, and how the same attack fares against ours."""
        return "\n\n".join(self.taught(rounds).paragraphs())


@dataclass(frozen=True)
class Taught:
    """A lesson that was tried."""

    lesson: Lesson
    found: Shown
    ours: Score
    bare: Score

    def paragraphs(self) -> list[str]:
        lesson, ours = self.lesson, self.ours
        return [
            f"{lesson.title} ({lesson.source})",
            lesson.story,
            f"Without differential privacy. {self.found.text}",
            f"With it, at epsilon = {lesson.epsilon:g}. One person's secret is tossed like a coin, and the attacker "
            f"knows everybody else. From the bare numbers {100 * self.bare.share:.0f} % of guesses are right. From "
            f"ours {100 * ours.share:.0f} % of {ours.rounds} were, and nobody can be right in more than "
            f"{100 * lesson.allowed:.1f} % in the long run, whatever he knows or computes.",
            lesson.moral,
        ]


def answered(plan: Additive, columns: Columns, schema: Schema) -> NDArray[np.float64]:
    """What a curator answers, as a vector."""
    return flat(released(plan, columns, schema))


def exactly(plan: Additive, columns: Columns, schema: Schema) -> NDArray[np.float64]:
    """The same numbers before the noise: what nobody may see."""
    rows = Rows.read(schema.table(), columns, plan.unit)
    return flat(plan.finish(grid.to_float(plan.query.steps(rows, plan.exponent), plan.exponent)))


def flat(value: Any) -> NDArray[np.float64]:
    """The numbers of a finished answer."""
    values = list(value.values()) if isinstance(value, Mapping) else value
    return np.atleast_1d(np.asarray(values, dtype=np.float64)).ravel()


def nearer(plan: Additive, tables: Callable[[bool], Columns], schema: Schema) -> Callable[[Any], bool]:
    """The best guess from Laplace noise between two tables: the one whose numbers are nearer, all distances added. (The
    likelihood of Laplace noise falls with the sum of distances.)"""
    no, yes = (exactly(plan, tables(bit), schema) for bit in (False, True))
    return lambda seen: bool(np.abs(flat(seen) - yes).sum() < np.abs(flat(seen) - no).sum())


def lesson_on(plan: Additive, tables: Callable[[bool], Columns], schema: Schema, **texts: Any) -> Lesson:
    """A lesson whose game is about one plan of noisy numbers."""
    return Lesson(
        ours=lambda bit: answered(plan, tables(bit), schema),
        bare=lambda bit: exactly(plan, tables(bit), schema),
        guess=nearer(plan, tables, schema),
        epsilon=float(plan.price()),
        **texts,
    )
