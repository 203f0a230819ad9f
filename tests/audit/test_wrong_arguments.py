"""What a newcomer gets wrong is refused by name, before time is spent: no error of Python's own comes out."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato import Schema, Unit, audit, bounds, events, schema
from sfumato.audit import Recorder, evidence
from sfumato.audit.arguments import bits_of, noise_of, table_pair
from sfumato.audit.counting import epsilon_lower_bound
from sfumato.audit.lessons import LESSONS
from sfumato.audit.stages import table_for
from sfumato.audit.subjects import OfCode
from sfumato.errors import ArgumentError, PlanError
from sfumato.laws import RoundedLaplace
from sfumato.mechanisms import Exponential, Laplace
from sfumato.noise import Noise, SeededBits
from sfumato_referee import attacks, power

_LAW = RoundedLaplace(1.0)
_WARDS = Exponential(query=bounds.votes("ward", ("a", "b"), Unit()), epsilon=1)
_TABLE = Schema.of(age=schema.real(0, 100))


def _refused(work: Callable[[], Any], name: str) -> ArgumentError:
    with pytest.raises(ArgumentError, match=name) as found:
        work()
    return found.value


def shifted(data: Any, noise: Any) -> Any:
    return int(data) + noise.draw(_LAW, 1)[0]


# Bits and noise


@pytest.mark.parametrize("bits", [7, "seed", np.random.default_rng(1), SeededBits, Noise(SeededBits(1))])
def test_what_is_no_source_of_bits(bits: Any) -> None:
    _refused(lambda: bits_of(bits), "bits")
    _refused(lambda: audit.replay(lambda data: 1, schema=_TABLE, bits=bits), "bits")


def test_bits_and_noise_that_are_left_out() -> None:
    assert bits_of(None).grade == noise_of(None).grade == "exact"
    seeded = SeededBits(3)
    assert bits_of(seeded) is seeded


@pytest.mark.parametrize("noise", [7, "x", SeededBits(1), Noise])
def test_what_is_no_noise(noise: Any) -> None:
    _refused(lambda: noise_of(noise), "noise")


@pytest.mark.parametrize("noise", [None, 5, Noise(SeededBits(1))])
def test_what_makes_no_noise(noise: Any) -> None:
    _refused(lambda: audit.check(Laplace(query=bounds.count(Unit()), epsilon=1), runs=100, noise=noise), "noise")
    _refused(lambda: audit.check_mechanism(shifted, [(0, 1)], 1, runs=100, noise=noise), "noise")


# Code of one's own


@pytest.mark.parametrize(
    "run", [lambda: 1, lambda a, b, c: 1, lambda a, *, b: 1, lambda **more: 1, lambda a, b, noise: 1]
)
def test_code_that_is_no_function_of_the_data(run: Any) -> None:
    _refused(lambda: OfCode(run, {0.0: 1.0}), "run")


def _with_default(data: Any, scale: float = 2.0) -> Any:
    return data * scale


def _by_name(data: Any, scale: float = 2.0, noise: Any = None) -> Any:
    return data * scale + 0 * noise.draw(_LAW, 1)[0]


def _only_by_name(data: Any, *, noise: Any) -> Any:
    return data * 2.0 + 0 * noise.draw(_LAW, 1)[0]


@pytest.mark.parametrize(
    "run", [_with_default, _by_name, _only_by_name, lambda data, noise: 2.0 * data, lambda *all: 2.0 * all[0]]
)
def test_arguments_with_a_default_keep_it(run: Any) -> None:
    """A second argument of any name used to be handed the noise: a scale, an epsilon, a variable bound by a lambda."""
    assert OfCode(run, {0.0: 1.0}).outputs(3.0, 2, SeededBits(1)) == [6.0, 6.0]


def test_code_that_fails_on_one_side_is_a_finding() -> None:
    def run(data: int, noise: Any) -> Any:
        return shifted(data, noise) if data else 1 / 0

    assert audit.check_mechanism(run, [(0, 1)], 1, runs=400, bits=SeededBits(1)).broken


def test_code_that_runs_on_neither_side_is_refused() -> None:
    code = OfCode(lambda data: data.nope, {0.0: 1.0})
    assert isinstance(_refused(lambda: code.check_runs(0, 1), "AttributeError").__cause__, AttributeError)
    OfCode(lambda data: 1 / data, {0.0: 1.0}).check_runs(0, 1)


# Evidence


def test_arrays_and_tuples_come_back_as_they_were() -> None:
    given = (np.array([1.0, math.nan]), [True, "x"], np.array(["a", "bc"]), {"n": (1, None)})
    plain = json.loads(json.dumps(evidence._plain(given, kinds=True)))
    back = evidence._raw(plain)
    assert isinstance(back, tuple) and back[0].dtype == np.float64 and np.isnan(back[0][1])
    assert back[1] == [True, "x"] and back[2].tolist() == ["a", "bc"] and back[3] == {"n": (1, None)}
    for damaged in ({"array": [1], "type": "object"}, {"array": [[1], [1, 2]], "type": "int64"}, {"tuple": 3}):
        with pytest.raises((ValueError, TypeError)):
            evidence._raw(damaged)


def test_code_on_arrays_is_counted_again() -> None:
    def run(data: Any, noise: Any) -> Any:
        return data.sum() + noise.draw(_LAW, 1)[0]

    pairs = [(np.array([1, 1]), np.array([1, 9]))]
    found = audit.check_mechanism(run, pairs, 1, runs=500, bits=SeededBits(1))
    kept = json.loads(json.dumps(found.evidence))
    assert found.broken and audit.reproduce(kept, run, runs=500, bits=SeededBits(2)).broken
    _refused(lambda: audit.reproduce(kept, lambda data: data.nope, runs=100), "run")


def test_a_table_of_the_user_is_not_written_into_evidence() -> None:
    class Frame:
        def __repr__(self) -> str:
            return "secret"

    found = audit.check_mechanism(lambda data: 1.0 * isinstance(data, int), [(Frame(), 1)], 1, runs=100)
    assert "secret" not in json.dumps(found.evidence)
    _refused(lambda: audit.reproduce(found.evidence, lambda data: 1.0, runs=100), "no JSON")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("evidence") / "found.json"
    audit.check(Laplace(query=bounds.count(Unit()), epsilon=1), runs=100, bits=SeededBits(1)).save(path)
    return path


def test_files_that_cannot_be_read_or_written(saved: Path) -> None:
    for source in (saved.parent / "none.json", saved.parent, saved / "below", "a\0b", ""):
        _refused(lambda source=source: audit.reproduce(source), "source")
    found = audit.check(Laplace(query=bounds.count(Unit()), epsilon=1), runs=100, bits=SeededBits(1))
    for path in (saved.parent / "none" / "found.json", saved.parent, None, 3, "", "a\0b"):
        _refused(lambda path=path: found.save(path), "path")


@pytest.mark.parametrize(
    ("more", "name"),
    [
        ({"confidence": "0.9"}, "confidence"),
        ({"confidence": None}, "confidence"),
        ({"confidence": 95}, "confidence"),
        ({"bits": 7}, "bits"),
        ({"noise": None}, "noise"),
        ({"plan": Laplace}, "plan"),
        ({"plan": lambda data: 1.0}, "plan"),
        ({"plan": "plan.yaml"}, "plan"),
    ],
)
def test_wrong_arguments_of_reproduce(saved: Path, more: dict[str, Any], name: str) -> None:
    _refused(lambda: audit.reproduce(saved, **{"runs": 100, **more}), name)


def test_a_plan_whose_every_run_fails_is_not_called_within() -> None:
    found = audit.check(_WARDS, runs=100, bits=SeededBits(1)).evidence
    _refused(lambda: audit.reproduce(found, runs=100, noise=lambda bits: None), "every run")


# Verification


@pytest.mark.parametrize("pairs", ["ALL", [], {}, 5, [1], [(1, 2)], [({"ward": ["a"]},)], [({"ward": 1}, {"ward": 2})]])
def test_wrong_pairs_of_verify(pairs: Any) -> None:
    _refused(lambda: audit.verify(_WARDS, pairs=pairs), "pairs")


def test_pairs_of_columns_and_of_frames_are_verified() -> None:
    one, other = {"ward": ["a"]}, {"ward": ["a", "b"]}
    assert audit.verify(_WARDS, pairs=[(one, other)]).holds
    pandas = pytest.importorskip("pandas")
    made = table_pair(_WARDS, table_for(_WARDS), (pandas.DataFrame(one), pandas.DataFrame(other)))
    assert made.raw == (one, other)
    with pytest.raises(PlanError, match="ward"):
        audit.verify(_WARDS, pairs=[({"wards": ["a"]}, {"wards": []})])


def test_a_verification_shows_itself_in_a_notebook() -> None:
    shown = audit.verify(_WARDS, pairs="all", rows=2)._repr_html_()
    assert "Exact verification of Exponential: holds" in shown and "%" in shown


# Replay


@pytest.mark.parametrize(
    ("more", "name"),
    [
        ({"claim": math.nan}, "claim"),
        ({"claim": -1}, "claim"),
        ({"claim": True}, "claim"),
        ({"claim": "1"}, "claim"),
        ({"form": 5}, "form"),
        ({"form": lambda: 1}, "form"),
        ({"pairs": 5}, "pairs"),
        ({"pairs": "ab"}, "pairs"),
        ({"pairs": []}, "pairs"),
        ({"pairs": [None]}, "pairs"),
        ({"pairs": ({"age": [1]}, {"age": []})}, "pairs"),
        ({"data": {"age": 1}}, "data"),
        ({"data": {"age": []}}, "data"),
        ({"pipeline": dict}, "pipeline"),
    ],
)
def test_wrong_arguments_of_replay(more: dict[str, Any], name: str) -> None:
    given: dict[str, Any] = {"pipeline": lambda data: 1, "schema": _TABLE, "most": 2, **more}
    _refused(lambda: audit.replay(given.pop("pipeline"), **given), name)


@pytest.mark.parametrize("value", ["1", None, -1, math.nan, math.inf, [1, 2], True])
@pytest.mark.parametrize("name", ["sensitivity", "scale"])
def test_a_size_that_is_none_judges_nothing(name: str, value: Any) -> None:
    if (name, value) == ("scale", None):
        return

    def pipeline(data: Any, recorder: Any) -> Any:
        sizes = {"sensitivity": 1, "event": events.Laplace(epsilon=1), name: value}
        return recorder.mechanism("count", len(data["age"]), noise=lambda exact: exact + 1.0, **sizes)

    told = audit.replay(pipeline, schema=_TABLE, most=2)
    assert told.verdict == "could not be judged"
    assert any(name in note for note in told.notes)  # on made-up rows the words of the error are told


@pytest.mark.parametrize(
    ("more", "name"),
    [
        ({"function": None}, "function"),
        ({"function": lambda: 1}, "function"),
        ({"function": max}, "function"),
        ({"norm": "L1"}, "norm"),
        ({"event": 5}, "event"),
        ({"sensitivity": None}, "sensitivity"),
        ({"private": 5}, "private"),
        ({"private": "x"}, "private"),
    ],
)
def test_wrong_arguments_of_wrap(more: dict[str, Any], name: str) -> None:
    given: dict[str, Any] = {"function": lambda value, sensitivity: value, **more}
    _refused(lambda: Recorder().wrap(given.pop("function"), **given), name)
    _refused(lambda: Recorder().mechanism("m", 1, sensitivity=1, noise=None), "noise")


# What may be data in the wrong place, and numbers of other kinds


@pytest.mark.parametrize("given", [[("secret", 12345)], [["secret"]], ({"a": ["secret"]},), [np.array(["secret"])]])
def test_rows_in_the_place_of_a_plan_are_not_told(given: Any) -> None:
    for work in (audit.check, audit.verify):
        assert "secret" not in str(_refused(lambda work=work: work(given), "plan"))
    assert "secret" not in str(_refused(lambda: audit.replay(lambda data: 1, schema=given), "schema"))


def test_cells_that_the_schema_has_no_place_for_are_not_told() -> None:
    """Python's own error came out, with the cell in it."""
    told = str(_refused(lambda: audit.replay(lambda data: 1, schema=_TABLE, data={"age": [1.0, "secret"]}), "data"))
    assert "secret" not in told and "schema" in told
    pandas = pytest.importorskip("pandas")
    _refused(lambda: audit.replay(lambda data: 1, schema=_TABLE, awkward=pandas.DataFrame({"age": [1]})), "awkward")


def test_a_claim_may_be_a_fraction_and_no_truth_value_is_a_time() -> None:
    plan = Laplace(query=bounds.count(Unit()), epsilon=1)
    for claim in (plan.epsilon, np.int64(1), np.float32(1), {Fraction(0): Fraction(1)}):
        found = audit.check_mechanism(shifted, [(0, 1)], claim, runs=50, bits=SeededBits(1))
        assert found.claim == 1.0
    third = evidence.claims_from(Fraction(1, 3))[0.0]
    assert third >= Fraction(1, 3) and evidence.claims_from(10**30) == {0.0: 1e30}
    for claim in ("1", True, [1], 10**400, Fraction(-1, 2), math.nan):
        _refused(lambda claim=claim: audit.check_mechanism(shifted, [(0, 1)], claim, runs=50), "claims")
    for minutes in (True, "1", 10**400, Fraction(-1, 2), math.nan, [1]):
        _refused(lambda minutes=minutes: audit.check(plan, minutes=minutes), "minutes")


def test_a_count_takes_pairs_of_any_columns() -> None:
    """It reads no column, and used to ask for one that nobody had named."""
    plan = Laplace(query=bounds.count(Unit()), epsilon=1)
    found = audit.check(plan, runs=500, pairs=[({"age": [30.0]}, {"age": [30.0, 41.0]})], bits=SeededBits(1))
    assert found.verdict == "within" and found.epsilon > 0
    with pytest.raises(PlanError, match=r"pairs .* no column 'ward'.* 'ward'"):
        audit.check(_WARDS, runs=100, pairs=[({"age": [30.0]}, {"age": []})])


@pytest.mark.parametrize(
    "damage",
    [
        {"claims": [["0", 1]]},
        {"claims": [[0, -1]]},
        {"pair": {"change": "x", "tables": [{"columns": {}}, {"columns": {}}]}},
        {"pair": {"change": "x", "tables": [{"columns": {"present": 3}}, {"columns": {"present": [[]]}}]}},
    ],
)
def test_damage_anywhere_in_evidence_is_told_as_such(saved: Path, damage: dict[str, Any]) -> None:
    """It used to be told as claims that nobody had given, or as a release that failed after its charge."""
    data = json.loads(saved.read_text(encoding="utf-8")) | damage
    _refused(lambda: audit.reproduce(data, runs=50), "source is not allowed: the file is damaged")


# Small tools that the pages show


@pytest.mark.parametrize(
    ("counts", "more", "name"),
    [
        ((5, 3, 0, 10), {}, "hits"),
        ((-1, 10, 0, 10), {}, "hits"),
        (("5", 10, 0, 10), {}, "hits"),
        ((5, 10, None, 10), {}, "other_hits"),
        ((5, 10, 0, 0), {}, "other_trials"),
        ((5, 10, 0, 10), {"delta": -0.1}, "delta"),
        ((5, 10, 0, 10), {"confidence": 95}, "confidence"),
    ],
)
def test_counts_that_are_none_bound_nothing(counts: Any, more: dict[str, Any], name: str) -> None:
    """More hits than trials gave a bound that is no number, and a delta below 0 one that is too high."""
    _refused(lambda: epsilon_lower_bound(*counts, **more), name)


def test_names_and_rounds_that_are_none() -> None:
    census = LESSONS["census"]()
    for rounds in (0, -1, "3", None, 2.5):
        _refused(lambda rounds=rounds: census.play(rounds), "rounds")
    wrong: Any = ["Q5"]
    for id in ("q55", None, wrong):
        with pytest.raises(attacks.CouldNotRunError, match="there is no attack"):
            attacks.attack(id)
    _refused(lambda: power.caught("Laplacee", SeededBits(1)), "name")
