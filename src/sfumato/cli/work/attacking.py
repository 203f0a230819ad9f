"""`sfumato attack`: the known attacks on this installation, each beside its planted bug."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Literal

from rich.console import Console
from rich.text import Text

from ..documents import Document, Part
from ..problems import CHECK, CommandError, lacking, meant
from ..progress import working
from ..screen import columns, say
from ..telling import Outcome
from . import referee

if TYPE_CHECKING:
    from .referee import Verdict

Ended = Literal["withstood", "came through", "could not run"]
Control = Literal["found", "missed", "could not run", "not tried"]


class AttackPart(Part):
    """One attack. `control` says whether it found the bug that was planted for it."""

    id: str
    what: str
    verdict: Ended
    text: str
    figures: dict[str, float]
    control: Control
    control_text: str
    seconds: float


class AttackDocument(Document):
    document: Literal["attack/1"] = "attack/1"
    holds: bool
    quick: bool
    attacks: list[AttackPart]


class AttacksDocument(Document):
    """The attacks that there are, by id."""

    document: Literal["attacks/1"] = "attacks/1"
    attacks: dict[str, str]


def listed() -> Outcome:
    """What there is."""
    titles = referee.attacks().TITLES

    def show(console: Console) -> None:
        columns(console, ("id", "attack"), list(titles.items()))
        say(console, "`sfumato attack F1 Q3` runs some of them, `sfumato attack --all` all.", style="dim")

    return Outcome(AttacksDocument(attacks=titles), show)


def attacked(ids: list[str], *, every: bool, quick: bool, controls: bool) -> Outcome:
    """Run them, and say how each ended."""
    titles = referee.attacks().TITLES
    chosen = list(titles) if every else list(dict.fromkeys(each.upper() for each in ids))
    if every and ids:
        raise CommandError("that is more than all", "--all and ids are given", "give one of the two")
    if not chosen:
        raise CommandError(
            "no attack is named", "all of them take some minutes", "name some (see --list), or give --all, with --quick"
        )
    if strange := [each for each in chosen if each not in titles]:
        guess = meant(strange[0], list(titles))
        also = f"did you mean {guess}? " if guess else ""
        raise CommandError(
            f"there is no attack {strange[0][:20]!r}",
            "it is not on the list",
            f"{also}`sfumato attack --list` has them",
        )
    done = []
    for place, name in enumerate(chosen, 1):
        with working(f"attack {place} of {len(chosen)}: {name}, {titles[name]}"):
            done.append(_one(name, titles[name], quick, controls))
    holds = all(each.verdict == "withstood" and each.control in ("found", "not tried") for each in done)
    body = AttackDocument(holds=holds, quick=quick, attacks=done)
    return Outcome(body, lambda console: _show(console, body), 0 if holds else CHECK)


def _one(id: str, title: str, quick: bool, controls: bool) -> AttackPart:
    began = time.perf_counter()
    verdict = _tried(id, quick=quick)
    planted = _tried(id, quick=quick, control=True) if controls else None
    return AttackPart(
        id=id,
        what=title,
        verdict="could not run" if isinstance(verdict, str) else "came through" if verdict.broken else "withstood",
        text=verdict if isinstance(verdict, str) else verdict.text,
        figures={} if isinstance(verdict, str) else dict(verdict.figures),
        control=_control(planted),
        control_text="" if planted is None else planted if isinstance(planted, str) else planted.text,
        seconds=time.perf_counter() - began,
    )


def _tried(id: str, *, quick: bool, control: bool = False) -> Verdict | str:
    """The verdict, or why there is none. Attacks run on made-up data, so any text may be told."""
    attacks = referee.attacks()
    try:
        verdict: Verdict = attacks.attack(id, control=control, quick=quick)
    except attacks.CouldNotRunError as problem:
        return str(problem)
    except ModuleNotFoundError as problem:
        return ": ".join(lacking(problem.name or "a package"))
    except Exception as problem:  # whatever kept it from running says nothing about the target
        return f"{type(problem).__name__}: {problem}"
    return verdict


def _control(planted: Verdict | str | None) -> Control:
    if planted is None:
        return "not tried"
    if isinstance(planted, str):
        return "could not run"
    return "found" if planted.broken else "missed"


def _show(console: Console, body: AttackDocument) -> None:
    rows = []
    for part in body.attacks:
        verdict = Text(part.verdict, style="green" if part.verdict == "withstood" else "bold red")
        control = Text(part.control, style="" if part.control in ("found", "not tried") else "bold red")
        rows.append((part.id, part.what, verdict, control, f"{part.seconds:.1f} s"))
    columns(console, ("id", "attack", "verdict", "planted bug", "time"), rows, right=(4,))
    for part in body.attacks:
        if part.verdict != "withstood":
            say(console, part.text, first=f"{part.id}  ")
        if part.control in ("missed", "could not run"):
            say(console, f"its planted bug: {part.control_text}", first=f"{part.id}  ")
    if body.holds:
        effort = ", with less effort than usual" if body.quick else ""
        whole = sum(each.seconds for each in body.attacks)
        say(console, f"All {len(body.attacks)} withstood{effort}, in {whole:.0f} s.", style="green")
    else:
        say(console, "NOT ALL HELD: release nothing with this installation until it is known why.", style="bold red")
