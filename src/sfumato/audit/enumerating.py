"""Every outcome of a plan with its exact probability: the plan's own `_run`, on noise that follows a script.

The plan runs again and again, each time on the next script in depth-first order, as programs are enumerated in
probabilistic languages. So what comes out is the law of the code that runs, for these rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from .. import record
from ..exact import Enclosure
from ..plan import Run
from .chances import BITS
from .scripted import ElsewhereError, Scripted, TooManyError

_TRIED = 256  # paths before the number of all of them is guessed


@dataclass
class ListedLaw:
    """Every outcome with an enclosure of its probability. `rest` bounds what was not listed, and may lie anywhere."""

    chances: dict[bytes, Enclosure] = field(default_factory=dict)
    rest: Fraction = Fraction(0)
    paths: int = 0

    def add(self, outcome: bytes, chance: Enclosure) -> None:
        before = self.chances.get(outcome)
        self.chances[outcome] = chance if before is None else before + chance


def listed(
    run: Callable[[Any, Run], Any], rows: Any, *, most: int, noise: Callable[[list[int], int], Scripted] = Scripted
) -> ListedLaw:
    """The law of what `run(rows, Run(noise))` returns, over at most so many paths."""
    script: list[int] = []
    law = ListedLaw()
    while True:
        source = noise(script, most)
        law.paths += 1
        if law.paths > most:
            raise TooManyError(f"there are more than {most} ways for this plan to run on one table")
        try:
            outcome = record.canonical(run(rows, Run(source, rehearsal=True)))
        except ElsewhereError:
            law.rest += source.elsewhere
        except (AttributeError, TypeError) as problem:  # numbers that are not decided yet went where only numbers go
            raise TooManyError("its code treats a draw in a way that is not followed") from problem
        else:
            chance = source.chance
            if chance.hi > 0:
                law.add(outcome, chance)
        if law.paths == _TRIED and sum(each.lo for each in law.chances.values()) * 50 * most < _TRIED << BITS:
            raise TooManyError(f"there are far more than {most} ways for this plan to run on one table")
        while script and script[-1] + 1 >= source.options[len(script) - 1]:
            script.pop()
        if not script:
            return law
        script[-1] += 1
