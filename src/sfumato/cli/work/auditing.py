"""`sfumato audit`: every plan of a file held to its price, on made-up rows."""

from __future__ import annotations

import json
import math
import re
import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

from ... import audit as auditor
from ... import kinds
from ...audit.conformance import ConformanceError
from ...audit.evidence import hash_of
from ...audit.scripted import TooManyError
from ...audit.stages import stage_of
from ...errors import ArgumentError, SfumatoError
from ...noise import Bits, SeededBits
from ...report.audit_pages import Audited, audit_report, number
from ..problems import CHECK, FILE, CommandError, lacking
from ..progress import metered, working
from ..telling import Outcome
from .audit_plans import Audit, alone, plans_of, shipped_plans
from .audit_training import audited_training
from .audit_words import AuditDocument, ReproducedDocument, show_audit, show_reproduced

_MINUTES = 1.0
_PARTS = 1000  # of the bar, for each plan
_MOST_PATHS = 2_000  # ways that a plan may run on one table, where every outcome is listed
Progress = Callable[[float, str], None]


@dataclass(frozen=True)
class AuditOptions:
    """What the command line says; see `sfumato audit --help`."""

    what: tuple[str, ...] = ()
    shipped: bool = False
    project: Path | None = None
    minutes: float | None = None
    runs: int | None = None
    false_alarm: float = 1e-6
    seed: int | None = None
    verify: bool = False
    promises: bool = False
    out: Path | None = None
    evidence: Path | None = None
    overwrite: bool = False

    def check(self) -> None:
        """Refuse what cannot be meant, before anything runs."""
        if self.minutes is not None and self.runs is not None:
            raise CommandError("that is two efforts", "--minutes and --runs are given", "give one of the two")
        if self.minutes is not None and not (math.isfinite(self.minutes) and self.minutes > 0):
            raise CommandError("--minutes is wrong", "it is no time above 0", "give minutes, such as --minutes 2")
        if self.runs is not None and not 100 <= self.runs <= 10**9:
            raise CommandError("--runs is wrong", "it is not between 100 and 1e9", "give runs, such as --runs 20000")
        if not 0 < self.false_alarm < 0.5:
            raise CommandError(
                "--false-alarm is wrong", "it is no chance between 0 and 0.5", "give one, such as --false-alarm 1e-6"
            )
        if self.seed is not None and not 0 <= self.seed < 2**63:
            raise CommandError("--seed is wrong", "it is no whole number from 0 on", "give one, such as --seed 7")

    def check_counting(self) -> None:
        """Refuse options that --reproduce would leave unheeded: who asks for a report is to have one."""
        unheeded = {"minutes", "verify", "promises", "out", "evidence", "overwrite"}
        options = [name for name in unheeded if getattr(self, name) not in (None, False)]
        if options:
            raise CommandError(
                "that is two commands",
                f"--reproduce counts one event again, and --{min(options)} is for an audit",
                "leave one of the two out; --runs, --seed and --false-alarm go with --reproduce, and --json tells all",
            )

    def command(self) -> str:
        """The line that does it again."""
        line = ["sfumato", "audit", *(["--shipped"] if self.shipped else []), *self.what]
        for name in ("project", "minutes", "runs", "seed"):
            value = getattr(self, name)
            line += [] if value is None else [f"--{name}", f"{value:g}" if isinstance(value, float) else str(value)]
        line += [] if self.false_alarm == 1e-6 else ["--false-alarm", f"{self.false_alarm:g}"]
        for name in ("verify", "promises"):
            line += [f"--{name}"] if getattr(self, name) else []
        return shlex.join(line)

    def bits(self, place: int) -> Bits | None:
        """Those of the n-th plan, where they are seeded."""
        return None if self.seed is None else SeededBits(self.seed + place)


def audited(options: AuditOptions) -> Outcome:
    """Audit the plans, write what is to be written, and say how each ended."""
    options.check()
    if not options.what and not options.shipped:
        raise CommandError(
            "no plan is named",
            "an audit needs plans",
            "give a file, as in `sfumato audit plan.yaml`, or --shipped for those that sfumato ships",
        )
    _check_out(options)
    plans = shipped_plans(options.what) if options.shipped else plans_of(options.what, options.project)
    _check_place(plans, options)
    ended = _all(plans, options)
    title = "Plans that sfumato ships" if options.shipped else ", ".join(Path(each).name for each in options.what)
    report = audit_report(ended, title=f"Audit of {title}", command=options.command(), seed=options.seed)
    fields = report.as_dict()
    body = AuditDocument.model_validate(
        {name: value for name, value in fields.items() if name not in ("report", "redacted")}
        | {"document": "audit/1", "out": None, "evidence": _evidence(ended, options)}
    )
    if options.out is not None:
        report.write(options.out)
        body.out = str(options.out)
    return Outcome(body, lambda console: show_audit(console, body), 0 if body.holds else CHECK)


def _all(plans: list[Audit], options: AuditOptions) -> list[Audited]:
    ends = time.monotonic() + 60 * (options.minutes or _MINUTES)
    ended = []
    with metered("auditing", _PARTS * len(plans)) as meter:
        for place, audit in enumerate(plans):

            def progress(done: float, text: str, place: int = place, name: str = audit.name) -> None:
                meter(int(_PARTS * (place + min(max(done, 0.0), 1.0))), f"{name}: {text}")

            left = max(ends - time.monotonic(), 0.0) / 60 / (len(plans) - place)
            ended.append(_one(audit, options, place, left, options.false_alarm / len(plans), progress))
    return ended


def _one(
    audit: Audit, options: AuditOptions, place: int, minutes: float, false_alarm: float, progress: Progress
) -> Audited:
    """One plan, looked at in every way that was asked for. What one way cannot do, the others still do."""
    problems: list[str] = []
    effort: dict[str, Any] = {"runs": options.runs} if options.runs is not None else {"minutes": max(minutes, 1e-3)}
    how = {"false_alarm": false_alarm, "bits": options.bits(place), "progress": progress}
    progress(0.0, "begins")
    findings: dict[str, Any]
    if audit.step is not None:
        findings = _tried(lambda: audited_training(audit.plan, audit.step, effort, how), problems) or {}
    else:
        findings = {"result": _tried(lambda: auditor.check(audit.plan, **effort, **how), problems)}
    if options.verify:
        progress(1.0, "every outcome")
        findings["verified"], findings["unverified"] = _verified(audit.plan, problems)
    if options.promises:
        progress(1.0, "the promises of every plan")
        findings["promises"], findings["broken_promise"] = _promises(audit.plan, problems)
    return Audited(name=audit.name, plan=audit.plan, problem="; ".join(problems) or None, **findings)


def _tried(work: Callable[[], Any], problems: list[str]) -> Any:
    """What came of it; what kept it from running is told whole: an audit reads no data but made-up rows."""
    try:
        return work()
    except ModuleNotFoundError as problem:
        problems.append(": ".join(lacking(problem.name or "a package")))
    except SfumatoError as problem:
        problems.append(str(problem))
    except Exception as problem:
        problems.append(f"{type(problem).__name__}: {problem}")
    return None


def _promises(plan: Any, problems: list[str]) -> tuple[Any, str | None]:
    """The promises that hold, each with its figure, or the one that is broken."""
    broken: list[str] = []

    def checked() -> Any:
        try:
            return auditor.check_plan(alone(plan)).passed
        except ConformanceError as problem:
            broken.append(str(problem))
            return ()

    return _tried(checked, problems) or (), broken[0] if broken else None


def _verified(plan: Any, problems: list[str]) -> tuple[Any, str | None]:
    """What listing every outcome shows; or why they cannot be listed, which is no fault of the plan."""
    unlisted: list[str] = []
    if not stage_of(plan).lists_outcomes or plan.steps is not None:
        return None, "its outcomes are too many to be listed"

    def listed() -> Any:
        try:
            return auditor.verify(plan, most=_MOST_PATHS)
        except TooManyError as problem:
            unlisted.append(str(problem))

    return _tried(listed, problems), unlisted[0] if unlisted else None


def _check_out(options: AuditOptions) -> None:
    """Refuse files that cannot be written, before the time is spent."""
    if (out := options.out) is not None:
        if out.suffix.lower() not in (".html", ".json"):
            raise CommandError(
                f"{out} has no ending that is known", "a report is HTML or JSON", "let it end in .html or .json"
            )
        if not out.resolve().parent.is_dir():
            raise CommandError(
                f"{out} cannot be written", "its folder is not there", "make it, or give another --out", FILE
            )
        if out.exists() and (not options.overwrite or not out.is_file()):
            raise CommandError(f"there is a file {out}", "it would be lost", "give another --out, or --overwrite", FILE)
        if out.suffix.lower() == ".html" and find_spec("jinja2") is None:
            raise ModuleNotFoundError("the page of a report needs jinja2", name="jinja2")
    if options.evidence is not None:
        try:
            options.evidence.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            why = (problem.strerror or "the system refused it").lower()
            raise CommandError(
                f"{options.evidence} cannot be used", why, "give --evidence a folder that can be made", FILE
            ) from None


def _check_place(plans: list[Audit], options: AuditOptions) -> None:
    """Refuse to write over a file that a project lives by."""
    if options.out is not None and any(each.project and each.project.lives_by(options.out) for each in plans):
        raise CommandError(
            f"{options.out} cannot be written", "it is a file of the project itself", "give --out another name", FILE
        )
    if options.evidence is not None and not options.overwrite:
        for path in _evidence_files(options.evidence, [(each.name, hash_of(each.plan)) for each in plans]):
            if path.exists():
                raise CommandError(
                    f"there is a file {path}", "it would be lost", "give another --evidence, or --overwrite", FILE
                )


def _evidence(ended: list[Audited], options: AuditOptions) -> list[str]:
    """One file for each plan that has some; their paths."""
    if options.evidence is None:
        return []
    written = []
    paths = _evidence_files(options.evidence, [(each.name, each.hash) for each in ended])
    for plan, path in zip(ended, paths, strict=True):
        if plan.result is not None and plan.result.evidence:
            plan.result.save(path)
            written.append(str(path))
    return written


def _evidence_files(folder: Path, plans: Sequence[tuple[str, str | None]]) -> list[Path]:
    """A file for each plan, by name and hash; those of the same name and plan are numbered."""
    files: list[Path] = []
    for name, hash in plans:
        plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-.") or "plan"
        stem = f"{plain[:80]}-{(hash or 'planted')[:8]}"
        places = (folder / f"{stem}{f'-{number}' if number > 1 else ''}.json" for number in count(1))
        files.append(next(place for place in places if place not in files))
    return files


def reproduced(file: Path, options: AuditOptions) -> Outcome:
    """Count the evidence of an earlier audit again, on fresh runs. A training is no part of its evidence: its file is
    given beside it."""
    options.check()
    options.check_counting()
    kinds.load(queries=True)  # so that a stored query can be read back
    effort: dict[str, Any] = {} if options.runs is None else {"runs": options.runs}
    plans = (
        shipped_plans(options.what)
        if options.shipped
        else plans_of(options.what, options.project)
        if options.what
        else []
    )
    try:
        evidence = json.loads(file.read_bytes())
        fitting = [each.plan for each in plans if type(each.plan).__name__ == evidence["kind"]]
        plan = fitting[0] if len(fitting) == 1 else None
        with working("counting the evidence again"):
            counted = auditor.reproduce(file, plan, confidence=1 - options.false_alarm, bits=options.bits(0), **effort)
    except (ValueError, KeyError, TypeError, ArgumentError) as problem:
        ours = str(problem) if isinstance(problem, ArgumentError) else "it is no evidence of an audit"
        cause, _, fix = ours.rstrip(".").partition(": ")
        raise CommandError(
            f"{file.name} cannot be counted again",
            fix or cause,
            "give a file that `sfumato audit --evidence` wrote; for a training, the training's file as well",
            FILE,
        ) from None
    body = ReproducedDocument(
        file=str(file),
        kind=evidence["kind"],
        pair=evidence["pair"]["change"],
        event=counted.event,
        epsilon=number(counted.epsilon),
        claim=number(counted.claim),
        delta=counted.delta,
        broken=counted.broken,
    )
    return Outcome(body, lambda console: show_reproduced(console, body), CHECK if counted.broken else 0)
