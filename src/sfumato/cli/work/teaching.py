"""`sfumato lesson`: what happens without differential privacy."""

from __future__ import annotations

from typing import Literal

from rich.console import Console

from ...audit.lessons import LESSONS
from ..documents import Document
from ..problems import CommandError, meant
from ..progress import working
from ..screen import columns, say
from ..telling import Outcome


class LessonDocument(Document):
    """One lesson. `found` is what the attack got from what was published without privacy; `right` and `allowed` are
    shares of guesses at one person's secret, from ours and from the bare numbers."""

    document: Literal["lesson/1"] = "lesson/1"
    name: str
    attack: str
    title: str
    source: str
    story: str
    found: str
    figures: dict[str, float]
    epsilon: float
    rounds: int
    right: float
    right_from_bare_numbers: float
    allowed: float
    moral: str


class LessonsDocument(Document):
    """The lessons that there are, by name."""

    document: Literal["lessons/1"] = "lessons/1"
    lessons: dict[str, str]


def listed() -> Outcome:
    titles = {name: make().title for name, make in LESSONS.items()}

    def show(console: Console) -> None:
        columns(console, ("name", "lesson"), list(titles.items()))
        say(console, f"`sfumato lesson {next(iter(titles))}` tries one.", style="dim")

    return Outcome(LessonsDocument(lessons=titles), show)


def taught(name: str, rounds: int) -> Outcome:
    """The attack on what was published, then the same on ours."""
    if name not in LESSONS:
        guess = meant(name, list(LESSONS))
        also = f"did you mean {guess}? " if guess else ""
        raise CommandError(
            f"there is no lesson {name[:20]!r}", "it is not on the list", f"{also}`sfumato lesson` has them"
        )
    lesson = LESSONS[name]()
    with working("attacking"):
        lesson_taught = lesson.taught(rounds)
    body = LessonDocument(
        name=name,
        attack=lesson.id,
        title=lesson.title,
        source=lesson.source,
        story=lesson.story,
        found=lesson_taught.found.text,
        figures=dict(lesson_taught.found.figures),
        epsilon=lesson.epsilon,
        rounds=rounds,
        right=lesson_taught.ours.share,
        right_from_bare_numbers=lesson_taught.bare.share,
        allowed=lesson.allowed,
        moral=lesson.moral,
    )

    def show(console: Console) -> None:
        for number, part in enumerate(lesson_taught.paragraphs()):
            say(console, part, style="bold" if number == 0 else "")
            console.print()

    return Outcome(body, show)
