"""Record and replay of glue around any library: recorders, tables, books, and the pieces they are made of."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato import Unit, events
from sfumato.audit.replays import outside, tables
from sfumato.audit.replays.differences import differences
from sfumato.audit.replays.foreign import Recorder
from sfumato.audit.replays.recording import (
    EXCEPTION,
    MOVES,
    OVERSPENT,
    PUBLIC,
    RESULT,
    SHAPE,
    TWICE,
    UNUSED,
    vector_moves,
)
from sfumato.audit.replays.replayed import Replayed
from sfumato.audit.replays.replaying import replay
from sfumato.errors import ArgumentError
from sfumato.noise import SecureBits
from sfumato.schema import Schema, category, key, real, whole

ROW, REPLACE = Unit(), Unit(change="replace")
AGES = Schema.of(age=real(0, 100), ward=category(("east", "north")))
ONE = events.Laplace(epsilon=1)


def laplace(value: Any, sensitivity: float, epsilon: float) -> Any:
    """What a script has already."""
    return value + np.random.laplace(scale=sensitivity / epsilon, size=np.shape(value))


def clean(data: Any) -> Any:
    return np.clip(np.nan_to_num(data["age"], nan=0.0), 0, 100)


def ask(pipeline: Any, **more: Any) -> Replayed:
    return replay(pipeline, **{"schema": AGES, "unit": ROW, **more})


def total(recorder: Any, value: Any, name: str = "sum", sensitivity: float = 100, event: Any = ONE, **more: Any) -> Any:
    noise = lambda exact: exact + np.random.laplace(scale=sensitivity, size=np.shape(exact))  # noqa: E731
    return recorder.mechanism(name, value, sensitivity=sensitivity, event=event, noise=noise, **more)


# A recorder


def test_outside_an_audit_a_recorder_only_passes_on() -> None:
    recorder = Recorder()
    assert recorder.mechanism("m", 3, sensitivity=1, noise=lambda exact: exact + 1) == 4
    assert recorder.data(lambda: "loaded") == "loaded" and recorder.data([1]) == [1]
    assert recorder.charge(ONE) is ONE
    assert recorder.wrap(lambda value, sensitivity: value * 2)(5, 1) == 10


def test_a_script_with_three_lines_changed() -> None:
    recorder = Recorder()
    noisy = recorder.wrap(laplace, event=lambda given: events.Laplace(epsilon=given["epsilon"]))

    def script() -> Any:
        table = recorder.data(lambda: pytest.fail("the real file was read"))
        ages = clean(table)
        rows = noisy(len(ages), 1, epsilon=0.5)
        return noisy(ages.sum(), sensitivity=100, epsilon=0.5) / max(rows, 1)

    told = replay(script, schema=AGES, unit=ROW, recorder=recorder, claim=1)
    assert not told.findings and not told.notes
    assert [name for name, _ in told.calls] == ["laplace", "laplace"]
    assert told.calls[0][1] == events.Laplace(epsilon=Fraction(1, 2))
    assert replay(script, schema=AGES, unit=ROW, recorder=recorder, claim=0.9, most=3).kinds == {OVERSPENT}
    with pytest.raises(ZeroDivisionError):
        recorder.data(lambda: 1 / 0)  # it is off the tape again


def test_a_recorder_comes_off_the_tape_after_an_error() -> None:
    recorder = Recorder()

    def fails(data: Any) -> Any:
        raise ValueError("always")

    told = replay(fails, schema=AGES, unit=ROW, recorder=recorder, most=3)
    assert not told.broken and any("ValueError" in note for note in told.notes)
    assert recorder.data("mine") == "mine"


def test_what_is_public_of_a_wrapped_function() -> None:
    recorder = Recorder()
    noisy = recorder.wrap(laplace, sensitivity=100.0)

    def leaking(data: Any) -> Any:
        ages = clean(data)
        return noisy(ages.sum(), 100, 1 + len(ages) % 2)

    told = replay(leaking, schema=AGES, unit=ROW, recorder=recorder)
    assert {each.where for each in told.findings} == {"call 1, laplace: arguments.epsilon"} and told.kinds == {PUBLIC}


@pytest.mark.parametrize("more", [{"value": "x"}, {"sensitivity": "range"}, {"scale": "b"}, {"private": ("rng",)}])
def test_a_wrapped_function_must_have_the_arguments_that_are_named(more: Any) -> None:
    with pytest.raises(ArgumentError, match="has no argument"):
        Recorder().wrap(laplace, **more)


def test_a_value_that_is_no_number_is_refused() -> None:
    def bad(data: Any, recorder: Any) -> Any:
        try:
            return total(recorder, "many")
        except ArgumentError:
            return None

    assert not ask(bad, most=2).findings
    with pytest.raises(ArgumentError):
        Recorder().mechanism("m", 1, sensitivity=1, norm="l3", noise=float)  # type: ignore[arg-type]


def test_noise_may_be_added_in_place() -> None:
    def in_place(data: Any, recorder: Any) -> Any:
        counts = np.array([float((data["ward"] == ward).sum()) for ward in ("east", "north")])

        def add(values: Any) -> Any:
            values += np.random.laplace(scale=1, size=2)
            return values.copy()

        return recorder.mechanism("counts", counts, sensitivity=1, noise=add)

    assert not ask(in_place).findings


def test_noise_that_shares_a_generator_with_public_draws() -> None:
    def mixed(data: Any, recorder: Any) -> Any:
        generator = np.random.default_rng()
        noisy = recorder.mechanism("n", len(data["age"]), sensitivity=1, noise=lambda x: x + generator.laplace())
        return noisy, generator.permutation(5), random.random(), np.random.random()

    told = ask(mixed)
    assert not told.findings and not told.notes


def test_own_sampling_is_not_held_against_a_pipeline() -> None:
    """Batches drawn by the pipeline: with a row more, other rows are drawn. That proves nothing, unless rows are
    replaced."""

    def steps(data: Any, recorder: Any, clip: float = 100) -> Any:
        ages = np.clip(np.nan_to_num(data["age"], nan=0.0), 0, clip)
        answers = []
        for _ in range(3):
            batch = ages[np.random.random(len(ages)) < 0.5]
            answers.append(total(recorder, batch.sum(), "step"))
        return answers

    for _ in range(5):
        told = ask(steps)
        assert not told.findings and any("chance outside" in note for note in told.notes)
    fixed = ask(steps, unit=REPLACE, most=60)
    assert not fixed.findings and not fixed.notes
    wide = ask(lambda data, recorder: steps(data, recorder, 500), unit=REPLACE, most=60)
    assert wide.kinds == {MOVES}


def test_a_leak_beside_own_sampling_is_found() -> None:
    def leaking(data: Any, recorder: Any) -> Any:
        ages = clean(data)
        batch = ages[np.random.random(len(ages)) < 0.5]
        noisy = total(recorder, batch.sum(), "step", rows=len(ages))
        return noisy, np.random.random(), len(ages)

    found = {each.key for each in ask(leaking).findings}
    assert found == {(RESULT, "result[2]"), (PUBLIC, "call 1, step: rows")}


def test_a_mechanism_that_fails_on_some_data_tells() -> None:
    def underflow(exact: Any) -> Any:
        if exact > 2:
            raise FloatingPointError("probabilities do not sum to one")
        return exact

    def pipeline(data: Any, recorder: Any) -> Any:
        return recorder.mechanism("select", float(len(data["age"])), sensitivity=1, noise=underflow)

    assert ask(pipeline).kinds == {EXCEPTION}

    def always(data: Any, recorder: Any) -> Any:
        return recorder.mechanism("select", float(len(data["age"])), sensitivity=1, noise=lambda exact: 1 / 0)

    assert not ask(always).findings


def test_words_of_an_error_tell_too() -> None:
    def pipeline(data: Any, recorder: Any) -> Any:
        total(recorder, 0.0)
        raise ValueError(f"expected 10 rows, got {len(data['age'])}")

    (found,) = ask(pipeline, most=4).findings
    assert found.kind == EXCEPTION and "words" in found.words


@pytest.mark.parametrize(
    ("norm", "allowed"), [("l1", 2 * math.sqrt(2)), ("l2", 2), ("linf", math.sqrt(2))], ids=["l1", "l2", "linf"]
)
def test_each_norm_is_measured(norm: Any, allowed: float) -> None:
    one, other = np.zeros(2), np.full(2, math.sqrt(2))
    (tight,) = vector_moves(allowed, norm)(one, other)
    assert not tight.broken and tight.ratio == pytest.approx(1)
    (short,) = vector_moves(allowed * 0.999, norm)(one, other)
    assert short.broken


@pytest.mark.parametrize(
    ("one", "other", "broken"),
    [
        ([1.0], [math.nan], True),
        ([math.nan], [math.nan], False),
        ([math.inf], [math.inf], False),
        ([math.inf], [-math.inf], True),
        ([1e308], [-1e308], True),
        ([0.1 + 0.2], [1.3], False),
        ([1e17], [1e17 + 16], False),
    ],
)
def test_odd_movements(one: Any, other: Any, broken: bool) -> None:
    (move,) = vector_moves(1.0, "l1")(np.array(one), np.array(other))
    assert move.broken is broken


def test_no_sensitivity_at_all() -> None:
    (still,) = vector_moves(0.0, "l1")(np.zeros(1), np.zeros(1))
    (moved,) = vector_moves(0.0, "l1")(np.zeros(1), np.full(1, 1e-3))
    assert not still.broken and moved.ratio == math.inf


# Books


def booked(charges: list[Any], runs: list[Any]) -> frozenset[str]:
    def pipeline(data: Any, recorder: Any) -> Any:
        for event in charges:
            recorder.charge(event)
        for event in runs:
            total(recorder, 0.0, event=event)

    return ask(pipeline, most=1).kinds


HALF, GAUSS = events.Laplace(epsilon=Fraction(1, 2)), events.Gaussian(multiplier=2)


@pytest.mark.parametrize(
    ("charges", "runs", "kinds"),
    [
        ([ONE], [ONE], set()),
        ([ONE], [HALF, HALF], set()),  # in another form
        ([events.Pure(epsilon=2)], [ONE, HALF, HALF], set()),
        ([events.Repeat(HALF, 2)], [HALF, HALF], set()),
        ([events.Sequence((ONE, GAUSS))], [GAUSS, ONE], set()),
        ([ONE], [ONE, ONE], {TWICE}),
        ([HALF], [ONE], {OVERSPENT}),
        ([ONE], [ONE, GAUSS], {OVERSPENT}),
        ([ONE, HALF], [ONE], {UNUSED}),
        ([], [ONE, ONE], set()),  # nothing is booked here: a claim says what it may cost
    ],
)
def test_books(charges: Any, runs: Any, kinds: set[str]) -> None:
    assert booked(charges, runs) == kinds


def test_a_claim_of_gaussian_noise_is_priced_tightly() -> None:
    """Ten Gaussians cost far less together than the sum of what each costs: an honest claim is not called short."""
    from sfumato import Budget, epsilon

    def pipeline(data: Any, recorder: Any) -> Any:
        return [total(recorder, 0.0, event=GAUSS) for _ in range(10)]

    tight = float(epsilon(events.Repeat(GAUSS, 10), delta=1e-6))
    assert not ask(pipeline, claim=Budget(epsilon=tight, delta=1e-6), most=1).findings
    assert ask(pipeline, claim=Budget(epsilon=0.95 * tight, delta=1e-6), most=1).kinds == {OVERSPENT}


# Tables


def test_given_rows_and_given_pairs() -> None:
    def honest(data: Any, recorder: Any) -> Any:
        return total(recorder, clean(data).sum())

    def sized(data: Any, recorder: Any) -> Any:
        return total(recorder, clean(data).sum()) / max(1, len(data["age"]))

    rows = {"age": np.linspace(0, 100, 40), "who": np.repeat(np.arange(20), 2)}
    assert not replay(honest, data=rows).findings
    assert replay(sized, data=rows).kinds == {RESULT}
    assert replay(honest, data=rows, unit=Unit("user:who")).kinds == {MOVES}  # two rows each
    assert not replay(sized, data=rows, unit=REPLACE).findings
    assert not replay(honest, data=rows, unit=Unit(change="zero-out")).broken
    with pytest.raises(ArgumentError, match="whom"):
        replay(honest, data=rows, unit=Unit("user:whom"))
    one, other = {"age": np.array([1.0])}, {"age": np.array([1.0, 5.0])}
    told = replay(sized, pairs=[(one, other, "one more"), (one, one)])
    assert told.kinds == {RESULT} and told.findings[0].pair == "one more"


def test_frames_of_other_makers() -> None:
    pandas = pytest.importorskip("pandas")

    def framed(data: Any, recorder: Any) -> Any:
        by_ward = data.age.fillna(0).clip(0, 100).groupby(data.ward).sum().reindex(["east", "north"], fill_value=0)
        noisy = total(recorder, by_ward.to_numpy())
        return pandas.DataFrame({"ward": by_ward.index, "total": noisy})

    told = ask(framed, form=pandas.DataFrame, most=40)
    assert not told.findings and not told.notes

    def leaking(data: Any, recorder: Any) -> Any:
        return data.groupby("ward").age.count().to_frame()

    assert SHAPE in ask(leaking, form=pandas.DataFrame, most=40).kinds
    assert not replay(framed, data=pandas.DataFrame({"age": [1.0, 2.0, 3.0], "ward": ["east"] * 3})).findings


def test_tables_hold_what_was_promised() -> None:
    described = Schema.of(n=whole(1, 9), age=real(0, 1), ward=category(("a", "b")), who=key(), unit="who").table()
    unit = Unit("user:who")
    for awkward in (True, False):
        cases = list(tables.cases_of(described, unit, awkward=awkward))
        sizes = {len(set(case.before["who"])) for case in cases}
        assert {0, 1, 2, 3, 9, 63, 99} <= sizes
        for case in cases:
            unlike = set(case.before["who"]) ^ set(case.after["who"])
            assert len(unlike) == 1 and len({len(cells) for cells in case.after.values()}) == 1
            kept = [row for row in zip(*case.after.values(), strict=True) if not unlike & set(row[-1:])]
            assert len(kept) == len(case.before["who"])
        cells = {str(cell) for case in cases for cell in case.after["age"]}
        assert ("None" in cells) is awkward and ("-inf" in cells) is awkward
        columns = tables.typed(described, cases[-1].after, awkward=awkward)
        assert columns["n"].dtype == (np.float64 if awkward else np.int64) and columns["age"].dtype == np.float64
    small = Schema.of(age=real(0, 1), rows=10).table()
    assert max(len(case.after["age"]) for case in tables.cases_of(small, ROW) if "units" in case.base) == 10


def test_clean_rows_ask_less_of_a_pipeline() -> None:
    def plain(data: Any, recorder: Any) -> Any:
        return total(recorder, data["age"].sum())

    assert ask(plain).kinds == {MOVES} and not ask(plain, awkward=False).findings


def test_what_a_run_does_to_its_table_no_other_sees() -> None:
    def spoiling(data: Any, recorder: Any) -> Any:
        noisy = total(recorder, clean(data).sum())
        data["age"][:] = 1e9
        return noisy

    assert not ask(spoiling, most=30).findings
    assert not replay(spoiling, data={"age": [1.0, 2.0, 3.0]}).findings


# Chance, and differences


def test_generators_are_given_back_as_they_were() -> None:
    np.random.seed(5)
    random.seed(5)
    before = np.random.get_state()[1].copy(), random.getstate(), np.random.default_rng, SecureBits.words
    with outside.together(7, lambda: 0) as seen:
        first = np.random.random(), random.random(), np.random.default_rng().random()
        assert np.random.default_rng(3).random() == before[2](3).random()
        SecureBits().words(5)
    with outside.together(7, lambda: 1) as again:
        assert (np.random.random(), random.random(), np.random.default_rng().random()) == first
        SecureBits().words(5)
    with outside.together(8, lambda: 0) as other:
        assert np.random.random() != first[0]
    assert seen.words == 5 and again.words == 0 and seen.stand == again.stand != other.stand
    assert (np.random.get_state()[1] == before[0]).all() and random.getstate() == before[1]
    assert np.random.default_rng is before[2] and SecureBits.words is before[3]


class Thing:
    def __init__(self, inside: Any) -> None:
        self.inside = inside


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        (1, 1, []),
        (1, 2, [("result", "value")]),
        (1, 1.0, [("result", "shape")]),
        (math.nan, math.nan, []),
        (0.1 + 0.2, 0.3, [("result", "value")]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, [("the keys of result", "shape")]),
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}, [("result.a[1].b", "value")]),
        ([1, 2], [1], [("the length of result", "shape")]),
        ({1, 2}, {1, 3}, [("result", "shape")]),
        (np.arange(3), np.arange(3), []),
        (np.arange(3), np.arange(3.0), [("result", "shape")]),
        (np.array([1.0, math.nan]), np.array([1.0, math.nan]), []),
        (np.array([1.0, 2.0]), np.array([1.0, 3.0]), [("result", "value")]),
        (np.array(["a", None], dtype=object), np.array(["a", 1], dtype=object), [("result[1]", "shape")]),
        (Thing(1), Thing(1), []),
        (Thing(1), Thing(2), [("result.inside", "value")]),
        (object(), object(), [("result", "opaque")]),
        (ONE, HALF, [("result.epsilon", "value")]),
    ],
)
def test_differences(one: Any, other: Any, found: list[tuple[str, str]]) -> None:
    assert [(each.path, each.kind) for each in differences(one, other)] == found


def test_differences_in_functions_and_circles() -> None:
    def close(over: Any) -> Any:
        return lambda: over

    assert not differences(close(1), close(1)) and differences(close(1), close(2))
    one: list[Any] = [1]
    one.append(one)
    other: list[Any] = [1]
    other.append(other)
    assert not differences(one, other)
    assert len(differences(list(range(1000)), list(range(1, 1001)))) < 30
