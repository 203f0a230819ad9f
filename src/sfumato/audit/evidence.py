"""The worst pair and event of an audit as a file, and the same event counted again on fresh runs.

The rows in it are made up from the schema, so it may be shown to anybody; a pair that the user gave is in it as given.
It is read as JSON and never run: a view, an event and a table are rebuilt from numbers and texts that are checked, and
a damaged file is refused.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from numbers import Rational, Real
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__, checks, exact, record
from ..errors import ArgumentError, RecordError, SfumatoError
from ..noise import Bits, Noise, SeededBits
from ..plan import Plan
from . import views
from .arguments import bits_of
from .counting import Claims
from .neighbours import Pair
from .outputs import OutputReading
from .stages import data_for, table_for
from .subjects import Failed, MakeNoise, OfCode, OfPlan
from .telling import Candidate, Finding, ViewEvent, counted, judged, worst_claim

FORMAT = "sfumato-audit/1"
_RUNS, _BLOCK = 20_000, 20_000
_MOST_BYTES = 64 * 2**20
_DAMAGED = (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, RecordError, RecursionError)
_SAYS_SO = "source is not allowed: the file is damaged, or of another plan; save it again."
_ARRAYS = (
    "bool",
    "float16",
    "float32",
    "float64",
    "str",
    *(f"{sign}int{size}" for sign in ("", "u") for size in (8, 16, 32, 64)),
)
_ODD = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def claims_from(stated: Any) -> dict[float, float]:
    """Claims as {delta: epsilon}; one number is an epsilon at delta = 0."""
    pairs = stated.items() if isinstance(stated, Mapping) else [(0.0, stated)]
    claims = {}
    for delta, epsilon in pairs:
        if not all(isinstance(x, Real) and not isinstance(x, bool) for x in (delta, epsilon)):
            raise checks.refuse("claims", stated, "an epsilon, or {delta: epsilon}, such as {0.0: 1.0, 1e-6: 0.5}")
        if not (0 <= _float(delta) < 1 and 0 <= _float(epsilon) < math.inf):
            raise checks.refuse("claims", stated, "deltas from 0 to below 1, and epsilons from 0 on")
        claims[_float(delta)] = _float(epsilon)
    if not claims:
        raise checks.refuse("claims", {}, "at least one point, such as {0.0: 1.0}")
    return dict(sorted(claims.items()))


def _float(number: Any) -> float:
    """A claim as a float. Fractions are rounded up: a claim that grew calls nothing broken that is not."""
    return exact.float_above(Fraction(number)) if isinstance(number, Rational) else float(number)


def hash_of(plan: Plan[Any, Any] | None) -> str | None:
    """The plan's hash; None where it has no JSON."""
    try:
        return None if plan is None else plan.hash
    except (SfumatoError, TypeError):
        return None


def written(
    kind: str,
    plan: Plan[Any, Any] | None,
    pair: Pair,
    reading: OutputReading,
    candidate: Candidate,
    *,
    counts: tuple[tuple[int, int], tuple[int, int]],
    claims: Claims,
    bounds: tuple[float, float],
) -> dict[str, Any]:
    """The evidence as a JSON value."""
    raw: Any = pair.raw if pair.raw is not None else None if plan is not None else (pair.rows, pair.neighbour)
    sides = None if raw is None else [_plain(each, kinds=plan is None) for each in raw]
    return {
        "format": FORMAT,
        "version": __version__,
        "kind": kind,
        "plan": _plan(plan),
        "pair": {"change": pair.change, "tables": sides},
        "reading": reading.encode(),
        "view": candidate.view.encode(),
        "event": candidate.event.encode() | {"forward": candidate.forward, "words": str(candidate)},
        "runs": [trials for _, trials in counts],
        "counts": [hits for hits, _ in counts],
        "bounds": list(bounds),
        "claims": [[delta, epsilon] for delta, epsilon in claims.items() if math.isfinite(epsilon)],
    }


def _plan(plan: Plan[Any, Any] | None) -> Any:
    try:
        return None if plan is None else record.encode(plan)
    except (SfumatoError, TypeError):
        return None


def _plain(value: Any, *, kinds: bool = False) -> Any:
    """A made-up cell, column or table as JSON; what it is, where that cannot be written. With `kinds`, a tuple or an
    array is told from a list: a user's own code may ask for one."""
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return {"columns": {name: _plain(cells, kinds=kinds) for name, cells in value.items()}}
    if isinstance(value, list | tuple):
        listed = [_plain(cell, kinds=kinds) for cell in value]
        return {"tuple": listed} if kinds and isinstance(value, tuple) else listed
    if kinds and isinstance(value, np.ndarray) and (kind := _kind(value)) in _ARRAYS:
        return {"array": _plain(value.tolist()), "type": kind}
    if hasattr(value, "tolist"):
        return _plain(value.tolist(), kinds=kinds)
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"number": str(value)}
    return {"text": type(value).__name__ if kinds else repr(value)[:200]}  # a user's table is not told


def _kind(array: Any) -> str:
    return "str" if array.dtype.kind == "U" else str(array.dtype.name)


def _raw(data: Any) -> Any:
    """What `_plain` wrote."""
    if isinstance(data, list):
        return [_raw(cell) for cell in data]
    if not isinstance(data, dict):
        return data
    if set(data) == {"columns"} and isinstance(data["columns"], dict):
        return {name: _raw(cells) for name, cells in data["columns"].items()}
    if set(data) == {"number"} and data["number"] in _ODD:
        return _ODD[data["number"]]
    if set(data) == {"tuple"} and isinstance(data["tuple"], list):
        return tuple(_raw(cell) for cell in data["tuple"])
    if set(data) == {"array", "type"} and data["type"] in _ARRAYS:
        return np.array(_raw(data["array"]), dtype=data["type"])
    if set(data) == {"text"}:
        raise ArgumentError("source is not allowed: the pair was given as data that has no JSON, so it is not in it.")
    raise ValueError("a cell that cannot be made again")


def save(value: Mapping[str, Any], path: str | PathLike[str]) -> None:
    """Write the evidence."""
    if not isinstance(path, str | PathLike) or not str(path):
        raise checks.refuse("path", path, "the path of a file to write, such as 'found.json'")
    text = json.dumps(value, indent=1, allow_nan=False) + "\n"
    try:
        Path(path).write_text(text, encoding="utf-8")
    except (OSError, ValueError) as problem:
        why = _why(problem)
        raise ArgumentError(f"path is not allowed: it cannot be written ({why}). Give a file in a folder.") from None


def _why(problem: Exception) -> str:
    return (getattr(problem, "strerror", None) or "the system refused it").lower()


def _loaded(source: Any) -> Mapping[str, Any]:
    if isinstance(source, Mapping):
        return source
    if not isinstance(source, str | PathLike):
        raise checks.refuse("source", type(source).__name__, "the path of a file of evidence, or result.evidence")
    try:
        if Path(source).stat().st_size > _MOST_BYTES:
            raise ArgumentError("source is not allowed: the file is too large; give what result.save wrote.")
        written = Path(source).read_bytes()
    except (OSError, ValueError) as problem:
        if isinstance(problem, ArgumentError):
            raise
        why = _why(problem)
        raise ArgumentError(
            f"source is not allowed: it cannot be read ({why}). Give the path of what result.save wrote."
        ) from None
    try:
        document = json.loads(written)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise ArgumentError("source is not allowed: the file is no evidence of an audit; give what result.save wrote.")
    return document


def reproduce(
    source: Any,
    plan: Plan[Any, Any] | Callable[..., Any] | None = None,
    *,
    runs: int = _RUNS,
    confidence: float = 1 - 1e-6,
    noise: MakeNoise = Noise,
    bits: Bits | None = None,
) -> Finding:
    """Run the plan on the pair of a file again, and count that one event: a fresh lower bound beside the claim.

    source  the path that `result.save` wrote to, or `result.evidence`
    plan    the plan, where the file does not hold it (a planted bug, a live field); or the function that
            `check_mechanism` was given

    A plan is held to its price of today, code of your own to the claims in the file.
    """
    data = _loaded(source)
    if data.get("format") != FORMAT:
        raise ArgumentError(f"source is not allowed: its format is not {FORMAT!r}, the one that this version reads.")
    if not isinstance(confidence, float) or not 0 < confidence < 1:
        raise checks.refuse("confidence", confidence, "a chance above 0 and below 1, such as 0.95")
    count = checks.whole(runs, "runs", least=1, most=10**9)
    try:
        claims = claims_from(dict(data["claims"]))
        reading = OutputReading.decode(data["reading"])
        view = views.decode(data["view"], len(reading.names))
        candidate = Candidate(view, ViewEvent.decode(data["event"]), bool(data["event"]["forward"]), 0.0)
    except (*_DAMAGED, SfumatoError):  # what is refused here is in the file, and no argument
        raise ArgumentError(_SAYS_SO) from None
    try:
        subject, tables = _subject(data, plan, claims, noise)
    except ArgumentError:
        raise
    except (*_DAMAGED, SfumatoError):
        raise ArgumentError(_SAYS_SO) from None
    source_bits, alpha = _apart(bits_of(bits)), (1 - confidence) / 2
    sides, ran = [], False
    for table in tables:
        hits = 0
        for start in range(0, count, _BLOCK):
            try:
                outputs = subject.outputs(table, min(_BLOCK, count - start), source_bits)
            except SfumatoError:  # rows that the plan cannot read: no release failed, and nothing is charged
                raise ArgumentError(_SAYS_SO) from None
            ran = ran or not all(isinstance(output, Failed) for output in outputs)
            hits += counted(candidate, reading.of(outputs))[0]
        sides.append((hits, count))
    if not ran:
        raise ArgumentError("plan is not allowed: every run of it failed on this pair, so nothing was counted.")
    low, high = judged(candidate, sides[0], sides[1], alpha)
    return worst_claim(low, high, subject.claims, str(candidate))


def _apart(bits: Bits) -> Bits:
    """A seeded stream that no audit has drawn from: with the audit's own seed the runs that chose the event would come
    again, and an event that looked bad by chance would look bad twice."""
    return SeededBits(2**64 + int(bits.words(1)[0])) if isinstance(bits, SeededBits) else bits


def _subject(
    data: Mapping[str, Any], plan: Any, claims: Mapping[float, float], noise: MakeNoise
) -> tuple[OfPlan | OfCode, list[Any]]:
    """What is run again, and on which two inputs."""
    if data["pair"]["tables"] is None:
        raise ArgumentError("source is not allowed: the pair was given as data that has no JSON, so it is not in it.")
    one, other = (_raw(table) for table in data["pair"]["tables"])
    if callable(plan) and not isinstance(plan, Plan | type) and data["plan"] is None:
        code = OfCode(plan, claims, noise)
        code.check_runs(one, other)
        return code, [one, other]
    if plan is None:
        if data["plan"] is None:
            raise ArgumentError(
                "plan is missing: the file does not hold it, so give the plan or function that was audited."
            )
        plan = record.decode(data["plan"], Plan)
    if not isinstance(plan, Plan) or type(plan).__name__ != data["kind"]:
        raise ArgumentError(
            "plan is not allowed: the evidence is of a plan of another kind. Give the one that was audited, or none."
        )
    table = table_for(plan)
    return OfPlan(plan, noise), [data_for(plan, table, columns) for columns in (one, other)]
