"""G1, the audit itself: black-box auditors miss what is small (arXiv 2411.16516), so what would ours miss?

Faults are planted in the library, one at a time, each in a process of its own, and the tools of the audit look for them
(see `sfumato_referee.mutation`). At least 29 of 30 must be noticed, and the honest library must get through all of
them. The control has its eyes shut: detectors that always pass must be called broken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .verdict import Verdict

ENOUGH = 29 / 30


def attack(
    *, quick: bool = False, blind: bool = False, jobs: int = 2, progress: Callable[[float, str], None] | None = None
) -> Verdict:
    """All faults, or with `quick` a few of each area."""
    from .. import mutation

    ran = mutation.run(mutation.QUICK if quick else mutation.MUTANTS, jobs=jobs, blind=blind, progress=progress)
    survived, lame = ran.ended("survived"), ran.ended("could not run")
    broken = bool(ran.accused) or ran.share < ENOUGH
    words = f"{len(ran.ended('killed'))} of {len(ran.tried)} faults were noticed"
    words += _named("survived", [f"{each.area}: {each.name}" for each in survived])
    words += _named("could not run", [f"{each.area}: {each.name} ({each.problem})" for each in lame])
    words += _named("of the honest library complain", ran.accused)
    figures = {f"{each.area}: {each.name} [{_by(each)}], seconds": each.seconds for each in ran.tried}
    figures |= {"noticed": len(ran.ended("killed")), "survived": len(survived), "could not run": len(lame)}
    return Verdict("G1", broken, f"{words}.", figures)


def _by(tried: object) -> str:
    killers = getattr(tried, "killers", ())
    return "by " + ", ".join(killers) if killers else str(getattr(tried, "ending", ""))


def _named(what: str, names: Sequence[str]) -> str:
    return f"; {len(names)} {what}: {', '.join(names)}" if names else ""


def control() -> Verdict:
    """The run with its eyes shut."""
    return attack(quick=True, blind=True)
