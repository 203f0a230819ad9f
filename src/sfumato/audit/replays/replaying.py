"""Record and replay: does a pipeline of yours read more than its mechanisms give it?

    audit.replay(pipeline, schema=schema, unit=unit)

The pipeline runs on a table and is put on tape; then it runs on neighbours of that table with the recorded answers
(recording.py). Everything that anybody sees must be the same: which mechanisms are called, in what order, with which
parameters, what is returned, printed, warned of and raised. What noise is added to may move as far as was declared.

No honest pipeline is accused: comparisons are exact, and a difference counts only if it is there in every further
replay on the neighbour, and in none on the very table that was recorded (a time of day, the name of a receipt).
"""

from __future__ import annotations

import copy
import inspect
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace as changed
from itertools import groupby
from pathlib import Path
from typing import Any

from ... import checks
from ...accounting.filters import Budget
from ...errors import ArgumentError, PrivacyWarning, SfumatoError
from ...events import Event
from ...noise import Bits
from ...owners import owners
from ...private import Private
from ...schema import Schema, Table
from ...units import Unit
from ..arguments import bits_of
from ..neighbours import ordinary
from .booking import Claim, accounting, check_claim
from .differences import Difference, differences
from .foreign import Recorder
from .holding import HELD, Storage, by_schema, held_data
from .pipeline_runs import PipelineStage, Ran
from .recording import EXCEPTION, MOVES, NUMBER, ORDER, OUTSIDE, RESULT, SHAPE, Finding, Tape
from .replayed import Replayed
from .tables import Case, cases_from, cases_of, columns_given, like, odd_cases, typed

_OTHER = 2**40 + 1  # another seed for what is drawn outside
_SEEDS = 16
_TIMES = 12
_MOST_WORDS = 200  # of an error that ended the pipeline on made-up rows
_CHANCE = (
    "depends on chance outside the mechanisms, and how much of it is drawn depends on the data, so nothing can be said "
    "of it; where rows are replaced (unit=Unit(change='replace')) it can"
)
_COURSE = (EXCEPTION, NUMBER, ORDER)  # what a pipeline does, rather than what it shows
_GIVEN = ("curator", "data", "recorder")


def replay(
    pipeline: Callable[..., Any],
    *,
    unit: Unit | None = None,
    schema: Schema | None = None,
    data: Any = None,
    pairs: Iterable[Any] | None = None,
    public: Mapping[str, Any] | None = None,
    recorder: Recorder | None = None,
    budget: Budget | None = None,
    claim: Claim = None,
    form: Callable[[Any], Any] | str | None = None,
    awkward: bool = True,
    most: int | None = None,
    name: str = "data",
    bits: Bits | None = None,
) -> Replayed:
    """Record a pipeline, replay it on neighbours, and say what they tell apart.

    pipeline  a function of any of: `curator` (a Curator on made-up rows), `data` (the raw columns, for glue that holds
              them as well), `recorder` (a Recorder, for mechanisms that are not sfumato's)
    schema    what the rows look like: neighbours are made up from it. A curator needs it
    data      rows of your own to make neighbours from, none of them sensitive: columns by name, a frame of pandas,
              polars or Arrow, or a file (a path, or a source). Neighbours of a frame or file are such a frame or file
    pairs     neighbours of your own: (table, neighbour), or (table, neighbour, words)
    public    the public tables by name, where the schema has some; rows are made up unless given
    recorder  the one that the pipeline uses, where it does not take it as an argument
    budget    the account of the curator, called `name`; a wide one unless given
    claim     what the pipeline is said to cost in all: an epsilon, a Budget, or an event
    form      what the pipeline gets its raw columns as, such as pandas.DataFrame; or the form in which both the curator
              and the pipeline get their tables: "pandas", "polars", "arrow", "csv", "parquet" or "duckdb" (a file is
              given as its source)
    awkward   with cells that real tables hold and a schema does not allow: beyond the bounds, nan, NULL; in frames and
              files also text that is not UTF-8, and moments that no calendar holds
    most      pairs to try at most; all of them unless given
    """
    started = time.perf_counter()
    arguments = _asked(pipeline, schema, recorder)
    checks.flag(awkward, "awkward")
    protects = unit if unit is not None else Unit()
    checks.instance(protects, Unit, "unit", "a Unit, such as Unit() or Unit('user:patient')")
    if isinstance(schema, Schema):
        owners(schema, protects)
    check_claim(claim)
    _check_form_given(form, pairs)
    table = None if schema is None or pairs is not None else _only(schema)
    source = bits_of(bits)
    storage, data = _held(form, table, data)
    if table is not None and data is not None and storage is None:
        _check_cells(table, data, awkward)
    folder = Path()  # until there is one for files

    def shaped(columns: Any) -> Any:
        if storage is not None:
            return storage.stored(columns, folder)
        assert not isinstance(form, str)
        if pairs is not None:
            return columns if form is None else form(columns)
        raw = typed(table, columns, awkward=awkward) if table is not None else like(data, columns)
        return raw if form is None else form(raw)

    def private(columns: Any) -> Private:
        assert schema is not None
        columns = columns if storage is None else shaped(columns)
        if table is None or len(schema.tables) == 1:
            return Private(name, columns, unit=protects, schema=schema)
        tables = {each.name: ordinary(each) for each in schema.tables.values()} | dict(public or {})
        return Private(name, {**tables, table.name: columns}, unit=protects, schema=schema)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        wide = budget if budget is not None else Budget(epsilon=1000, delta=0.01)
    stage = PipelineStage(
        pipeline, arguments, recorder, shaped, private, {name: wide}, shown=data is None and pairs is None
    )
    look = _Look(stage, claim, source)
    cases = list(_cases(schema, data, pairs, protects, awkward))
    if storage is not None and table is not None and data is None and awkward:
        cases = [*odd_cases(table, protects), *cases]
    cases = _spread(cases, most)
    if not cases:
        raise ArgumentError("data and pairs are not allowed to be empty: give rows, or pairs, to replay on.")
    with tempfile.TemporaryDirectory(prefix="replay-") as name_of_folder:
        folder = Path(name_of_folder)
        _check_form(shaped, form, cases[0].before)
        for _, same in groupby(cases, key=lambda case: case.base):
            look.at(list(same))
    return look.conclude(len(cases), time.perf_counter() - started)


def _check_form_given(form: Any, pairs: Any) -> None:
    if isinstance(form, str):
        checks.one_of(form, "form", HELD)
        if pairs is not None:
            raise ArgumentError(
                "form is not allowed beside pairs: give the pairs themselves in the form that you mean."
            )
    elif form is not None and not callable(form):
        allowed = f"what makes a table out of raw columns, such as pandas.DataFrame, or one of {', '.join(HELD)}"
        raise checks.refuse("form", form, allowed)


def _held(form: Any, table: Table | None, data: Any) -> tuple[Storage | None, Any]:
    """In which form tables lie, where it is one that the curator reads too; and the rows that were given, by column."""
    try:
        lying = None if data is None or (form is not None and not isinstance(form, str)) else held_data(data)
    except SfumatoError:
        raise
    except Exception:  # its text may hold a cell
        raise checks.refuse(
            "data", type(data).__name__, "columns by name, a frame, or a file that can be read"
        ) from None
    if lying is not None and form in (None, lying[0].form):
        return lying
    if not isinstance(form, str):
        return None, data
    if table is None:
        raise ArgumentError("schema is missing: it says in which types rows are held as " + repr(form) + ".")
    return by_schema(form, table), data if lying is None else lying[1]


def _only(schema: Schema) -> Table:
    checks.instance(schema, Schema, "schema", "a Schema, such as Schema.of(age=real(0, 120))")
    if sum(table.private for table in schema.tables.values()) != 1:
        raise ArgumentError(
            "schema is not allowed: rows are made up for one private table; give pairs=[(data, other)]."
        )
    return schema.table()


def _asked(pipeline: Any, schema: Schema | None, recorder: Recorder | None) -> tuple[str, ...]:
    """What the pipeline takes, by the names of its arguments."""
    if not callable(pipeline):
        raise checks.refuse("pipeline", type(pipeline).__name__, "a function")
    try:
        parameters = inspect.signature(pipeline).parameters.values()
    except (TypeError, ValueError):  # Python does not know what it takes
        raise checks.refuse("pipeline", type(pipeline).__name__, "a function of curator, data or recorder") from None
    names = [
        each.name
        for each in parameters
        if each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    ]
    if strange := [name for name in names if name not in _GIVEN]:
        raise ArgumentError(
            f"pipeline is not allowed to need {strange[0]!r}: it is given curator, data and recorder, by these names. "
            "Wrap it: replay(lambda data, recorder: yours(...))."
        )
    if "curator" in names and schema is None:
        raise ArgumentError("schema is missing: a pipeline that takes a curator is tried on rows made up from it.")
    if recorder is not None:
        checks.instance(recorder, Recorder, "recorder", "a Recorder")
    return tuple(names)


def _cases(schema: Any, data: Any, pairs: Any, unit: Unit, awkward: bool) -> Iterator[Case]:
    if pairs is not None:
        allowed = "pairs of neighbouring tables, such as [(table, neighbour)]"
        if isinstance(pairs, str | Mapping) or not isinstance(pairs, Iterable):
            raise checks.refuse("pairs", type(pairs).__name__, allowed)
        for number, pair in enumerate(pairs, 1):
            if not isinstance(pair, tuple | list) or len(pair) not in (2, 3):
                raise checks.refuse("pairs", type(pair).__name__, allowed)
            before, after, *words = pair
            yield Case(f"pair {number}", before, after, str(words[0]) if words else f"pair {number}")
    elif data is not None:
        columns_given(data)
        yield from cases_from(data, unit)
    elif schema is not None:
        yield from cases_of(schema.table(), unit, awkward=awkward)
    else:
        raise ArgumentError("schema, data and pairs are missing: give one of them, to make neighbours from.")


def _spread(cases: list[Case], most: int | None) -> list[Case]:
    """Some of the cases, from everywhere in the list."""
    if most is None or len(cases) <= checks.whole(most, "most"):
        return cases
    return [cases[place * len(cases) // most] for place in range(most)]


def _check_cells(table: Table, data: Any, awkward: bool) -> None:
    """Refuse cells that the schema has no place for, without a word of what they are."""
    columns = columns_given(data)
    try:
        typed(table, columns, awkward=awkward)
    except (TypeError, ValueError):
        raise ArgumentError(
            "data is not allowed: a column holds cells of another type than the schema says. Mend the column or the "
            "schema, or leave data out: rows are then made up from the schema."
        ) from None


def _check_form(shaped: Callable[[Any], Any], form: Any, columns: Any) -> None:
    """Refuse a form that makes nothing of the columns: that is a slip in the call, and no finding."""
    if form is None:
        return
    try:
        shaped(copy.deepcopy(columns))
    except Exception as problem:
        raise ArgumentError(
            f"form is not allowed: it raised {type(problem).__name__} on raw columns. Give one like pandas.DataFrame."
        ) from problem


class _Look:
    """What was found so far."""

    def __init__(self, stage: PipelineStage, claim: Claim, bits: Bits) -> None:
        self._stage, self._claim, self._bits = stage, claim, bits
        self._found: dict[tuple[str, str], Finding] = {}
        self._unstable: set[tuple[str, str]] = set()
        self._notes: dict[str, None] = {}
        self._runs = 0
        self._ended = False  # did a recording come to its end?
        self._calls: list[tuple[str, Event | None]] = []

    def at(self, cases: list[Case]) -> None:
        """Record the table that these cases begin from, and replay the others."""
        seed = int(self._bits.words(1)[0]) >> 1
        first = cases[0]
        recorded = self._run(first.before, None, seed, seed)
        if len(recorded.tape.calls) >= len(self._calls):
            self._calls = [(call.name, call.event) for call in recorded.tape.calls]
        for finding in (*recorded.tape.findings, *accounting(recorded, self._claim)):
            self._add(finding, "")
        self._ended |= recorded.problem is None
        if recorded.problem is not None:
            kind, words = recorded.problem
            ending = f"{kind} ({words[:_MOST_WORDS]})" if words and self._stage.shown else kind
            self._notes[f"it ended in {ending}: what would come after was not looked at"] = None
        for case in cases:
            again = self._run(case.after, recorded.tape, seed, seed)
            fresh = [each for each in self._compared(recorded, again) if self._is_new(each)]
            if fresh:
                self._confirm(fresh, recorded, case, seed)

    def _confirm(self, fresh: list[Finding], recorded: Ran, case: Case, seed: int) -> None:
        """Was it the data? The same table must never show it, and the neighbour always: what a run shows by itself with
        probability p passes for the data's doing with p^13 (1-p)^12 < 1e-7, and no second time.

        Chance outside the mechanisms starts alike in every run. Where the two runs drew as much of it, whatever differs
        is the data's doing. Where they did not (a shuffle of n rows), it must not move with such chance at all.
        """
        alone: set[tuple[str, str]] = set()
        there = {each.key for each in fresh}
        in_step, secure = True, 0
        for _ in range(_TIMES):
            same, again = (self._run(table, recorded.tape, seed, seed) for table in (case.before, case.after))
            alone |= {each.key for each in self._compared(recorded, same)}
            there &= {each.key for each in self._compared(recorded, again)}
            in_step &= recorded.stand == again.stand
            secure += same.secure
            if there <= alone:
                break
        noisy = self._noisy(recorded, case, seed) if any(each.kind == RESULT for each in fresh) else set()
        for finding in fresh:
            key = finding.key
            if key in alone or key not in there:
                self._unstable.add(key)
                if finding.kind == RESULT and secure:
                    words = "it differs from run to run, and secure noise was drawn that no mechanism asked for"
                    self._add(Finding(OUTSIDE, finding.where, words), case.words)
                else:
                    note = f"{finding.where}: differs from run to run by itself, so nothing can be said of it"
                    self._notes[note] = None
            elif not in_step and self._by_chance(finding, recorded, case, seed):
                self._unstable.add(key)
                self._notes[f"{finding.where}: {_CHANCE}"] = None
            else:
                if finding.kind == RESULT and key in noisy:
                    finding = changed(
                        finding, kind=OUTSIDE, words=f"{finding.words}, under noise that no mechanism drew"
                    )
                self._add(finding, case.words)

    def _noisy(self, recorded: Ran, case: Case, seed: int) -> set[tuple[str, str]]:
        """What has noise in it that no mechanism drew: another seed moves it, on either of the tables."""
        other = self._run(case.before, recorded.tape, seed, seed + _OTHER)
        one, two = (self._run(case.after, recorded.tape, seed, seed + more) for more in (0, _OTHER))
        results = ((recorded.result, other.result), (one.result, two.result))
        return {each.key for pair in results for each in self._seen(differences(*pair))}

    def _by_chance(self, finding: Finding, recorded: Ran, case: Case, seed: int) -> bool:
        """May it be chance? Not if, whatever the seed, the table itself never shows it and the neighbour always does,
        and alike. (A thing that chance alone shows with probability p passes for the data's doing with at most
        p^_SEEDS, and only if it did not happen to the table: with q = 1/2, less than 1e-9.)"""
        for number in range(1, _SEEDS + 1):
            outside = seed + number * _OTHER
            here = self._run(case.before, recorded.tape, seed, outside)
            if self._moved(finding, recorded, here):
                return True
            there = self._compared(recorded, self._run(case.after, recorded.tape, seed, outside))
            if (finding.kind, finding.where, finding.words) not in {(one.kind, one.where, one.words) for one in there}:
                return True
        return False

    def _moved(self, finding: Finding, recorded: Ran, here: Ran) -> bool:
        """Does the place of a finding show anything at all in a run on the same table?"""
        if finding.kind == MOVES:
            number = int(finding.where.removeprefix("call ").partition(",")[0])
            return len(here.tape.calls) < number or here.tape.calls[number - 1].moved > 0
        return finding.key in {one.key for one in self._compared(recorded, here)}

    def _compared(self, here: Ran, there: Ran) -> list[Finding]:
        """Everything that tells a replay from its recording."""
        findings = list(there.tape.findings)
        if there.tape.stopped:  # where the recording ended, perhaps with an error, this one went on
            if here.problem is not None:
                findings.append(Finding(EXCEPTION, "the pipeline", f"{here.problem[0]} on one, and none on the other"))
            return findings
        if here.problem != there.problem:
            one, other = (each.problem or ("no exception", "") for each in (here, there))
            words = f"{one[0]} on one and {other[0]} on the other"
            if one[0] == other[0]:
                words = f"the words of {one[0]} differ"
            findings.append(Finding(EXCEPTION, "the pipeline", words))
        elif here.problem is None:
            findings += self._seen(differences(here.result, there.result))
        if here.problem == there.problem:
            findings += self._seen(differences(here.printed, there.printed, "what is printed"))
            if here.warned != there.warned:
                self._notes["warnings differ between neighbours: keep the log as private as the data"] = None
        return findings

    def _seen(self, unlike: list[Difference]) -> Iterator[Finding]:
        for difference in unlike:
            if difference.kind == "opaque":
                self._notes[difference.describe(self._stage.shown)] = None
            else:
                kind = RESULT if difference.kind == "value" else SHAPE
                yield Finding(kind, difference.path, difference.describe(self._stage.shown))

    def _run(self, table: Any, recorded: Tape | None, seed: int, outside: int) -> Ran:
        self._runs += 1
        return self._stage.run(table, recorded, seed, outside)

    def _is_new(self, finding: Finding) -> bool:
        key = finding.key
        earlier = self._found.get(key) or self._found.get((OUTSIDE, key[1]))
        worse = earlier is not None and finding.ratio is not None and finding.ratio > (earlier.ratio or 0)
        return key not in self._unstable and (earlier is None or worse)

    def _add(self, finding: Finding, pair: str) -> None:
        if self._is_new(finding):
            self._found[finding.key] = changed(finding, pair=pair)

    def conclude(self, pairs: int, seconds: float) -> Replayed:
        blind = not self._ended or any(kind in _COURSE for kind, _ in self._unstable)
        more: dict[str, Any] = {"pairs": pairs, "runs": self._runs, "seconds": seconds, "blind": blind}
        return Replayed.of(self._found.values(), tuple(self._notes), calls=tuple(self._calls), **more)
