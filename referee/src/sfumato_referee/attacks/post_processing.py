"""P1: whatever is shown of a release comes from the release alone, and no object, word or log holds a cell.

A table of random cells is released from: noisy sums, histograms, chosen keys, SQL, a query that raises and one that
warns with a cell in its words. Then the data is overwritten, and everything that can be shown is shown again: it must
be the same to the byte. All of it, with what was logged (at DEBUG), warned and printed on the way, tracebacks with
their local variables, and pickles where there are any, is searched for every cell. Keys that enough units share are
released on purpose, and are not looked for.
"""

from __future__ import annotations

import contextlib
import io
import logging
import pickle
import struct
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato import bounds, report
from sfumato.accounting.filters import Budget
from sfumato.audit import surface
from sfumato.audit.made_up import MadeUp
from sfumato.curator import Curator
from sfumato.errors import SfumatoError
from sfumato.ledger.memory import MemoryLedger
from sfumato.mechanisms.gaussian import Gaussian
from sfumato.mechanisms.laplace import Laplace
from sfumato.mechanisms.quantile import Quantile
from sfumato.mechanisms.threshold_keys import ThresholdKeys
from sfumato.noise import Noise, SecureBits
from sfumato.plan import Plan, Run
from sfumato.private import Private
from sfumato.query import Limits, sql
from sfumato.release import Release
from sfumato.rows import Rows
from sfumato.schema import Schema, category, key, real
from sfumato.units import Unit

from ..forced import opened, tables_of
from .verdict import Verdict

CELLS = 1000
USER = Unit("user:who")
WARDS = ("east", "west")
SCHEMA = Schema.of(who=key(), name=key(), ward=category(WARDS), dose=real(0, 1000), unit="who")
_KEPT: dict[str, NDArray[Any]] = {}  # where one of the planted bugs finds the data again
_SHOWN = 10  # digits of a number that are looked for: chance makes them once in 10^10


class SecretTable:
    """Random cells, in arrays that can be overwritten."""

    def __init__(self, rows: int, seed: int = 11) -> None:
        draw = MadeUp(seed)
        words = draw.below(2**60, 2 * rows).tolist()
        self.columns: dict[str, NDArray[Any]] = {
            "who": np.array([f"id{each:015x}" for each in words[:rows]], dtype=object),
            "name": np.array([f"nm{each:015x}" for each in words[rows:]], dtype=object),
            "ward": np.array(WARDS, dtype=object)[draw.below(2, rows)],
            "dose": draw.uniform(0, 1000, rows),
        }
        self.columns["name"][rows // 2 :] = "common"  # a key that many share, and that may be shown

    def secrets(self) -> tuple[list[str], list[bytes]]:
        """What must be found nowhere: as text, and as the bytes of a number."""
        names = [*self.columns["who"], *(each for each in self.columns["name"] if each != "common")]
        doses = self.columns["dose"].tolist()
        return [*names, *(repr(each)[: _SHOWN + 1] for each in doses)], [struct.pack("<d", each) for each in doses]

    def overwrite(self) -> None:
        """The data is gone: other cells are in its place."""
        for name, cells in self.columns.items():
            cells[:] = 0.5 if name == "dose" else "gone"


def _raises(rows: Rows) -> Any:
    raise ValueError(f"cannot use {rows['dose'].values[0]!r} of {rows['who'].label(rows.units[:1])}")


def _warns(rows: Rows) -> Any:
    warnings.warn(f"odd: {rows['dose'].values[0]!r}", UserWarning, stacklevel=1)
    return [len(rows)]


def _declared(compute: Callable[[Rows], Any]) -> bounds.Declared:
    reads = {"dose": real(0, 1000), "who": key()}
    return bounds.declared(compute, USER, reads=reads, labels=["n"], l1=10, l2=10, linf=10)


def plans() -> dict[str, Plan[Any, Any]]:
    """One of each kind of thing that can be shown; the last two go wrong."""
    text = "SELECT name, COUNT(*) AS n, AVG(dose) AS dose FROM t GROUP BY name"
    return {
        "sum": Laplace(query=bounds.clipped_sum("dose", 0, 1000, USER), epsilon=1),
        "histogram": Gaussian(query=bounds.histogram("ward", WARDS, USER), epsilon=1, delta=1e-6),
        "median": Quantile(column="dose", lower=0, upper=1000, q=(0.5,), epsilon=1, protects=USER),
        "keys": ThresholdKeys(column="name", protects=USER, epsilon=1, delta=1e-6),
        "query": sql(text, Schema({"t": SCHEMA.table()}), unit=USER, epsilon=1, delta=1e-6, limits=Limits()),
        "warns": Laplace(query=_declared(_warns), epsilon=1),
        "raises": Laplace(query=_declared(_raises), epsilon=1),
        "too much": Laplace(query=bounds.count(USER), epsilon=1000),
    }


@dataclass
class ReleaseScene:
    """Who takes part: the library, or somebody with a planted bug in the place of one of them."""

    private: type[Private] = Private
    curator: type[Curator] = Curator
    more: dict[str, Plan[Any, Any]] = field(default_factory=dict)


def attack(scene: ReleaseScene | None = None, *, cells: int = CELLS) -> Verdict:
    """Release, overwrite, show again, search."""
    scene, table = scene or ReleaseScene(), SecretTable(cells // 2)
    _KEPT.update(table.columns)
    texts, numbers = table.secrets()
    with _overheard() as heard:
        shown, problems = _played(scene, table)
        first = {name: show() for name, show in shown.items()}
        table.overwrite()
        again = {name: show() for name, show in shown.items()}
    moved = [name for name in first if first[name] != again[name]]
    views = {**first, **problems, "logs and warnings": "\n".join(heard)}
    leaks = [name for name, text in views.items() if _holds(text, texts, numbers)]
    words = (
        f"{len(moved)} of {len(first)} views change when the data does {moved[:2]}; of {len(views)} texts and pickles "
        f"{len(leaks)} hold a cell {leaks[:2]}."
    )
    figures = {"views": len(first), "changed": len(moved), "texts": len(views), "with a cell": len(leaks)}
    return Verdict("P1", bool(moved or leaks), words, figures | {"cells looked for": len(texts)})


def _played(scene: ReleaseScene, table: SecretTable) -> tuple[dict[str, Callable[[], str]], dict[str, str]]:
    """Everything that can be shown, as something to call; and what was told where something went wrong."""
    ledger = MemoryLedger({"d": Budget(epsilon=50, delta=1e-3)})
    private = scene.private("d", table.columns, unit=USER, schema=SCHEMA)
    wider = scene.private("d", table.columns, unit=USER, schema=Schema({"t": SCHEMA.table()}))
    shown: dict[str, Callable[[], str]] = {}
    problems: dict[str, str] = {}
    for name, plan in (plans() | scene.more).items():
        curator = scene.curator(wider if name == "query" else private, ledger)
        try:
            release = curator.release(plan) if name not in scene.more else _as_it_is(plan, private)
        except Exception as problem:
            problems |= {f"the error of {name!r}, {way}": text for way, text in _told(problem)}
            continue
        shown |= {f"{name}: {view}": _view(release, view) for view in _VIEWS}
        if release.receipt is not None:
            page = report.release_report(ledger, release.receipt.id, release=release)
            problems |= {f"the report on {name!r}": page.json(), f"its page on {name!r}": page.html()}
        problems |= {f"a pickle of the {name!r} {what}": _pickled(each) for what, each in _objects(release, curator)}
    run = Run(Noise(SecureBits()))
    for what, subject in {"private": private, "ledger": ledger, "run": run, "curator": curator, "wider": wider}.items():
        problems[f"repr of the {what}"] = repr(subject)
        problems[f"str of the {what}"] = str(subject)
        problems[f"HTML of the {what}"] = getattr(subject, "_repr_html_", str)()
        problems[f"a pickle of the {what}"] = _pickled(subject)
    problems["the ledger's entries"] = "\n".join(map(repr, ledger.history()))
    problems["the ledger's answers"] = "\n".join(map(repr, ledger.releases()))
    problems["a statement"] = str(ledger.statement("d"))
    return shown, problems


def _as_it_is(plan: Plan[Any, Any], private: Private) -> Release:
    """A planted bug has no JSON: it runs as a curator would run it."""
    return Release(plan, surface.run(plan, opened(private, plan.opens), Noise(SecureBits())), None)


_VIEWS: dict[str, Callable[[Release], Any]] = {
    "str": str,
    "repr": repr,
    "HTML": lambda release: release._repr_html_(),
    "value": lambda release: release.value,
    "error": lambda release: release.error(),
    "explain": lambda release: release.explain(),
    "rows": lambda release: release.rows(),
    "csv": lambda release: release.to_csv(),
    "raw": lambda release: release.raw,
    "plan": lambda release: (repr(release.plan), release.plan._repr_html_() if release.receipt else ""),
}


def _view(release: Release, view: str) -> Callable[[], str]:
    """As whoever reads the stored numbers sees it: one release computes its value once, and would show that again."""
    return lambda: str(_VIEWS[view](replace(release)))


def _objects(release: Release, curator: Curator) -> Iterator[tuple[str, Any]]:
    yield "release", release
    yield "plan", release.plan
    yield "receipt", release.receipt
    yield "curator", curator


def _pickled(subject: Any) -> str:
    """The bytes as text, one character for each; what cannot be pickled says why."""
    try:
        return pickle.dumps(subject).decode("latin-1")
    except Exception as problem:
        return str(problem)


def _told(problem: Exception) -> Iterator[tuple[str, str]]:
    """All that an error carries: words, arguments, notes, causes, and its frames with what they hold."""
    yield "in words", f"{problem!s} {problem!r} {problem.args!r} {getattr(problem, '__notes__', '')}"
    yield "as a traceback", "".join(traceback.format_exception(problem))
    with_locals = traceback.TracebackException.from_exception(problem, capture_locals=True)
    yield "with its variables", "".join(with_locals.format()) if isinstance(problem, SfumatoError) else ""
    yield "pickled", _pickled(problem)


class _Kept(logging.Handler):
    def __init__(self, into: list[str]) -> None:
        super().__init__(logging.NOTSET)
        self._into = into

    def emit(self, record: logging.LogRecord) -> None:
        self._into.append(f"{record.getMessage()} {record.args!r} {record.exc_text or ''}")


@contextlib.contextmanager
def _overheard() -> Iterator[list[str]]:
    """Whatever is logged, warned or printed meanwhile."""
    heard: list[str] = []
    printed, root, handler = io.StringIO(), logging.getLogger(), _Kept(heard)
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        with (
            warnings.catch_warnings(record=True) as warned,
            contextlib.redirect_stderr(printed),
            contextlib.redirect_stdout(printed),
        ):
            warnings.simplefilter("always")
            yield heard
        heard += [f"{each.message} {each.filename}" for each in warned] + [printed.getvalue()]
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


def _holds(text: str, texts: list[str], numbers: list[bytes]) -> bool:
    if any(each in text for each in texts):
        return True
    raw = text.encode("latin-1", errors="ignore")
    return any(each in raw for each in numbers)


# planted bugs


@dataclass(frozen=True, kw_only=True)
class ReadsAgain(Laplace):
    """What is shown is made of the release, and of the data as it is now."""

    def finish(self, raw: Any) -> Any:
        return float(super().finish(raw)) + 1e-3 * float(_KEPT["dose"].mean())


class ShowsItself(Private):
    """The first rows stand in its repr, as with any frame."""

    def __repr__(self) -> str:
        return f"<Private {self.name}: {[vars(each) for each in tables_of(self).sources.values()]}>"


class TellsOn(Curator):
    """Says what went wrong, in the words of what went wrong."""

    def release(self, plan: Plan[Any, Any], *, note: str = "", key: str | None = None) -> Release:
        try:
            return super().release(plan, note=note, key=key)
        except SfumatoError as problem:
            try:
                surface.run(plan, opened(self.private, plan.opens), Noise(SecureBits()))
            except ValueError as cause:
                raise RuntimeError(f"the release failed: {cause}") from None
            raise problem


def control() -> Verdict:
    """Every planted bug must be found."""
    again = ReadsAgain(query=bounds.clipped_sum("dose", 0, 1000, USER), epsilon=1)
    scenes = {
        "finish reads the data": ReleaseScene(more={"again": again}),
        "the data in a repr": ReleaseScene(private=ShowsItself),
        "a cell in an error": ReleaseScene(curator=TellsOn),
    }
    verdicts = {name: attack(scene, cells=100) for name, scene in scenes.items()}
    missed = [name for name, verdict in verdicts.items() if not verdict.broken]
    summary = " ".join(f"{name}: {verdict.text}" for name, verdict in verdicts.items())
    return Verdict("P1", not missed, f"Not found: {', '.join(missed)}." if missed else summary)
