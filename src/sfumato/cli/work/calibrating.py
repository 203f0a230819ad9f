"""`sfumato calibrate`: the least noise for a target, or the most steps."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.text import Text

from ... import checks, record
from ...accounting.calibrate import Calibrated, calibrate, most_steps
from ...accounting.search import ABOVE, WITHIN
from ...errors import ArgumentError
from ...events import Event
from ..documents import Document
from ..problems import BUDGET, CommandError
from ..screen import facts
from ..telling import Outcome
from .accountant import Between, price_in_words, sentences_of
from .event_words import words
from .events_from import TypedEvent
from .numbers import exact, exact_or_none
from .planned_training import PlannedTraining, training

_KINDS = ("gaussian", "laplace", "steps")
_UNITS = {"gaussian": "standard deviation", "laplace": "scale"}


@dataclass(frozen=True)
class Aim:
    """The target as it was typed."""

    epsilon: str | None
    delta: str | None
    rho: str | None
    account: str | None


class CalibrateDocument(Document):
    """`parameter` is the noise in units of the sensitivity, or a number of steps."""

    document: Literal["calibrate/1"] = "calibrate/1"
    what: Literal["gaussian", "laplace", "steps"]
    parameter: float
    target: str
    epsilon: Between | None
    rho: float | None
    delta: float
    noise: float | None = None
    event: Any
    words: str
    sentences: list[str]


def calibrated(what: str, typed: TypedEvent, aim: Aim, sensitivity: str | None, project: Path | None) -> Outcome:
    """The least noise, or the most steps, within the target."""
    if what not in _KINDS:
        raise CommandError(
            f"{what!r} cannot be calibrated", "it is none of the kinds", f"give one of {', '.join(_KINDS)}"
        )
    times = _sensitivity(what, sensitivity)
    planned = None if project is None and aim.account is None else training(project or Path())
    solve = _family(what, typed, planned)
    with ExitStack() as room:
        target, words_of_it = _target(aim, planned, what, room)
        solution = _within(what, solve, target, words_of_it)
    size = float(solution)
    body = CalibrateDocument(
        what=_kind(what),
        parameter=size,
        target=words_of_it,
        epsilon=None
        if solution.epsilon is None
        else Between(lower=solution.epsilon.lower, upper=solution.epsilon.upper),
        rho=None if solution.rho is None else float(solution.rho),
        delta=float(solution.delta),
        noise=None if times is None else size * times,
        event=record.encode(solution.event),
        words=words(solution.event),
        sentences=[]
        if solution.epsilon is None
        else sentences_of(solution.epsilon.upper, solution.delta, solution.event.relation),
    )
    return Outcome(body, lambda console: _show(console, body))


def _kind(what: str) -> Literal["gaussian", "laplace", "steps"]:
    return "gaussian" if what == "gaussian" else "laplace" if what == "laplace" else "steps"


def _family(what: str, typed: TypedEvent, planned: PlannedTraining | None) -> Callable[[dict[str, Any]], Calibrated]:
    """What is looked for, as a function of the target."""
    if what == "steps":
        return _steps(typed, planned)
    if typed.noises:
        raise CommandError(
            f"{typed.noises[0]} is what is looked for",
            "it was given as well",
            "leave it out; or `sfumato calibrate steps` finds the steps for a noise that is fixed",
        )

    def noisier(size: float) -> Event:
        if what == "laplace":
            return typed.around(typed.laplace_of(1 / Fraction(size)))
        if planned is None or not planned.trains(typed):
            return typed.around(typed.gaussian_of(size))
        return planned.event(typed, size)

    return lambda target: calibrate(noisier, **target)


def _steps(typed: TypedEvent, planned: PlannedTraining | None) -> Callable[[dict[str, Any]], Calibrated]:
    if typed.steps is not None:
        raise CommandError("--steps is what is looked for", "it was given as well", "leave it out")
    by_project = planned is not None and typed.noises in ([], ["--gaussian"])
    if len(typed.noises) != 1 and not by_project:
        raise CommandError("whose steps?", "one noise must be fixed", "give --gaussian or --laplace, one of the two")

    def longer(times: int) -> Event:
        if by_project and planned is not None:
            return planned.event(typed, steps=times)
        return replace(typed, steps=times).built()

    longer(1)  # what cannot be is told before the search
    return lambda target: most_steps(longer, **target)


def _target(aim: Aim, planned: PlannedTraining | None, what: str, room: ExitStack) -> tuple[dict[str, Any], str]:
    epsilon, delta = exact_or_none(aim.epsilon, "--epsilon"), exact_or_none(aim.delta, "--delta")
    rho = exact_or_none(aim.rho, "--rho")
    if delta is None and planned is not None and rho is None and what != "laplace":
        delta = planned.delta
    if aim.account is not None:
        if epsilon is not None or rho is not None:
            raise CommandError("that is more than one target", "--account is given beside another", "give one of them")
        assert planned is not None
        ledger = room.enter_context(planned.project.ledger(read_only=True))
        return {"account": ledger.room(aim.account), "delta": delta}, f"what account {aim.account!r} still accepts"
    if epsilon is None and rho is None and planned is not None:
        epsilon = planned.epsilon
    if (epsilon is None) == (rho is None):
        raise CommandError(
            "there is no target" if rho is None else "that is more than one target",
            "neither --epsilon nor --rho nor --account is given" if rho is None else "--epsilon and --rho are given",
            "give --epsilon with --delta, or --rho, or --account",
        )
    if rho is not None:
        return {"rho": rho, "delta": delta}, f"rho = {float(rho):g}"
    if not delta and what == "gaussian":
        raise CommandError(
            "Gaussian noise needs a delta",
            "none is given",
            "give --delta 1e-6: well below one by the number of people",
        )
    return {"epsilon": epsilon, "delta": delta}, f"epsilon = {float(epsilon or 0):g}" + (
        f" at delta = {float(delta):g}" if delta else ""
    )


def _sensitivity(what: str, text: str | None) -> float | None:
    if text is not None and what == "steps":
        raise CommandError("steps have no sensitivity", "--sensitivity is about noise", "leave it out")
    return None if text is None else float(checks.positive(exact(text, "--sensitivity"), "sensitivity"))


def _within(
    what: str, solve: Callable[[dict[str, Any]], Calibrated], target: dict[str, Any], words_of_it: str
) -> Calibrated:
    try:
        return solve(target)
    except ArgumentError as problem:
        if problem.argument != "family" or problem.code not in (WITHIN, ABOVE):
            raise
        thing = "number of steps" if what == "steps" else "amount of noise"
        if problem.code == WITHIN:
            raise CommandError(f"any {thing} is within {words_of_it}", "none costs more", "allow less") from None
        raise CommandError(
            f"no {thing} is within {words_of_it}",
            "all that were tried cost more",
            "allow more, or ask for less",
            BUDGET,
        ) from None


def _show(console: Console, body: CalibrateDocument) -> None:
    lines: list[tuple[str, Any]] = []
    if body.what == "steps":
        lines.append(("steps", _strong(f"{int(body.parameter):,}", f", the most within {body.target}")))
    else:
        noise = _strong(f"{body.parameter:.7g}", f" times the sensitivity, the least within {body.target}")
        lines.append((_UNITS[body.what], noise))
    if body.noise is not None:
        lines.append(("", f"{body.noise:.6g} in the answer's own numbers"))
    lines.append(("event", body.words))
    if body.epsilon is not None:
        lines.append(("epsilon", price_in_words(body.epsilon, body.delta)))
    elif body.rho is not None:
        lines.append(("rho", f"{body.rho:.6g}"))
    facts(console, [*lines, *(("means", sentence) for sentence in body.sentences)])


def _strong(figure: str, rest: str) -> Text:
    return Text.assemble((figure, "bold"), rest)
