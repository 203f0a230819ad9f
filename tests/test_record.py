"""JSON by registered name: round trips, refusals, fingerprints."""

from __future__ import annotations

import contextlib
import functools
import json
import math
import pickle
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sfumato import Budget, Schema, Unit, bounds, events, partition, record, repeat, reserve, sequence
from sfumato import mechanisms as m
from sfumato.errors import ArgumentError, RecordError
from sfumato.schema import Named, category, key, real
from tests.helpers import few, many

UNIT = Unit("user:patient", "replace", 2)
COUNT = m.Laplace(query=bounds.count(UNIT, per_unit=3), epsilon=0.5)
SINGLE = m.Laplace(query=bounds.histogram("ward", ["a", "b"], Unit("row", "replace")), epsilon=0.5)
RECORDS: dict[str, Any] = {
    "unit": UNIT,
    "schema": Schema.of(patient=key(), age=real(0, 120, nulls=40), ward=category([1, 2]), unit="patient", rows=9),
    "budget": Budget(epsilon=1, delta=1e-6),
    "rho budget": Budget(rho=0.5),
    "event": events.Partition("ward", (events.Repeat(events.Gaussian(multiplier=2), 3),)),
    "count": bounds.count(UNIT, per_unit=2),
    "sum": bounds.clipped_sum("age", -0.5, Fraction(1, 3), UNIT, per_unit=2),
    "mean": bounds.mean("age", 0, 120, UNIT),
    "histogram": bounds.histogram("ward", [True, False], UNIT),
    "laplace": COUNT,
    "gaussian": m.Gaussian(query=bounds.count(UNIT), epsilon=1, delta=1e-6),
    "rho gaussian": m.Gaussian(query=bounds.count(UNIT), rho=0.25),
    "exponential": m.Exponential(query=bounds.votes("ward", ["a", "b"], UNIT), epsilon=2),
    "flip": m.PermuteAndFlip(query=bounds.votes("ward", [3, 1], UNIT), epsilon=2),
    "response": m.RandomizedResponse(
        column="ward", categories=["a", "b"], epsilon=1, protects=Unit(change="replace", group=3)
    ),
    "sequence": sequence(a=COUNT, b=m.Laplace(query=bounds.count(UNIT), epsilon=1)),
    "repeat": repeat(COUNT, 5),
    "partition": partition("ward", [10, 20], SINGLE),
    "flag partition": partition("smoker", [False, True], SINGLE),
    "supervised": reserve(unit=UNIT, budget=Budget(epsilon=1), reads={"age": real(0, 120)}),
}


def same(a: Any, b: Any) -> bool:
    """Equal, and of the same types all the way down; a list comes back as a tuple."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return (
            isinstance(a, np.ndarray)
            and isinstance(b, np.ndarray)
            and a.shape == b.shape
            and (a.dtype.kind in "US" or a.dtype == b.dtype)
            and (a.tolist() == b.tolist() or a.tobytes() == b.tobytes())
        )
    if isinstance(a, list | tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        keys = list(map(same, a, b))
        return isinstance(b, dict) and len(a) == len(b) and all(keys) and all(map(same, a.values(), b.values()))
    if isinstance(a, float):
        return isinstance(b, float) and math.copysign(1, a) == math.copysign(1, b) and a == b
    return type(a) is type(b) and a == b


numbers = st.one_of(st.integers(), st.fractions(), st.floats(allow_nan=False, allow_infinity=False))
simple = st.one_of(st.none(), st.booleans(), numbers, st.text())
arrays = hnp.arrays(
    st.sampled_from([np.bool_, np.int8, np.uint16, np.int64, np.uint64, np.float32, np.float64]),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
)
maps = st.one_of(
    st.dictionaries(st.text(), simple, max_size=4),
    st.dictionaries(st.integers(), simple, max_size=4),
    st.dictionaries(st.booleans(), simple, max_size=2),
)
values = st.recursive(
    st.one_of(simple, arrays),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(), inner, max_size=3),
    ),
    max_leaves=8,
)


@many
@given(st.one_of(values, maps))
def test_plain_values_survive_json(value: Any) -> None:
    text = record.canonical(value)
    back = record.parse(text)
    assert same(value, back)
    assert record.canonical(back) == text  # canonical is a fixed point
    json.loads(text)  # and it is JSON


@few
@given(hnp.arrays(np.float64, st.integers(0, 5), elements=st.floats(width=64)))
def test_arrays_keep_every_bit(array: np.ndarray[Any, Any]) -> None:
    back = record.parse(record.canonical(array))
    assert back.tobytes() == array.tobytes() and back.dtype == array.dtype and back.flags.writeable


def test_arrays_of_other_layouts_and_byte_orders_keep_their_values() -> None:
    grid = np.arange(12, dtype=">i4").reshape(3, 4)
    for array in (grid, grid.T, grid[::2, ::-1], np.asfortranarray(grid), np.array(7.5), np.array(["a", "žluť", ""])):
        back = record.parse(record.canonical(array))
        assert back.tolist() == array.tolist() and back.shape == array.shape
    assert record.canonical(grid) == record.canonical(grid.astype("<i4"))
    assert record.parse(record.canonical(np.array([b"x", b"yz"]))).tolist() == ["x", "yz"]


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        -math.inf,
        np.float64("nan"),
        1j,
        Decimal("0.1"),
        b"bytes",
        {1, 2},
        object(),
        lambda: 1,
        range(3),
        (i for i in range(3)),
        np.array([object()]),
        np.array([1j]),
        np.array(["2020-01-01"], dtype="M8[D]"),
        np.zeros(2, dtype=[("a", "i4")]),
        Path("/etc/passwd"),
        np.longdouble(1) / 3,
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_has_no_json_is_refused(value: Any) -> None:
    with pytest.raises(RecordError):
        record.canonical(value)


def test_numpy_scalars_become_plain_values() -> None:
    assert record.encode([np.int8(3), np.bool_(True), np.float32(0.5), np.str_("x")]) == [3, True, 0.5, "x"]


@pytest.mark.parametrize("name", RECORDS)
def test_every_kind_of_record_survives_json(name: str) -> None:
    value = RECORDS[name]
    text = record.canonical(value)
    back = record.parse(text, type(value))
    assert back == value and type(back) is type(value)
    assert record.canonical(back) == text and record.digest(back) == record.digest(value)
    assert json.loads(text)["is"] == type(value).kind


def other(value: Any, field: str) -> Any:
    """Another valid value for the field of a record."""
    given_ = getattr(value, field)
    special = {
        "of": "user:other",
        "change": "zero-out",
        "relation": "zero-out",
        "column": "other",
        "lower": Fraction(-77),
        "upper": Fraction(777),
        "categories": ("other", *[c for c in given_ if isinstance(c, str)]) if field == "categories" else None,
        "unit": Unit("user:patient", "zero-out") if isinstance(given_, Unit) else given_,
        "protects": Unit("row", "zero-out"),
        "rho": Fraction(3, 7) if getattr(value, "rho", None) is not None else None,
        "multiplier": Fraction(3, 7),
        "epsilon": Fraction(3, 7) if getattr(value, "epsilon", None) is not None else None,
        "delta": Fraction(3, 10**9),
        "query": bounds.votes("else", ["a", "b"], UNIT),
        "plan": SINGLE,
        "plans": {"x": COUNT},
        "budget": Budget(epsilon=2),
        "reads": {},
        "event": events.Laplace(epsilon=3),
        "events": (events.Laplace(epsilon=3),),
    }
    if isinstance(given_, int) and not isinstance(given_, bool):
        return given_ + 1
    return special.get(field, given_)


def test_the_digest_changes_with_every_field() -> None:
    changed: set[tuple[str, str]] = set()
    for value in RECORDS.values():
        for f in fields(value):
            new = other(value, f.name)
            if new == getattr(value, f.name) or new is None:
                continue
            try:
                turned = replace(value, **{f.name: new})
            except ArgumentError:
                continue  # this field cannot be changed alone
            assert record.digest(turned) != record.digest(value), (value, f.name)
            changed.add((type(value).kind, f.name))
    wanted = {
        ("unit/1", "of"),
        ("unit/1", "change"),
        ("unit/1", "group"),
        ("budget/2", "epsilon"),
        ("budget/2", "delta"),
        ("budget/2", "rho"),
        ("partition/1", "column"),
        ("partition/1", "events"),
        ("count/1", "per_unit"),
        ("count/1", "unit"),
        ("sum/1", "column"),
        ("sum/1", "lower"),
        ("sum/1", "upper"),
        ("sum/1", "per_unit"),
        ("histogram/1", "categories"),
        ("plan-laplace/1", "epsilon"),
        ("plan-laplace/1", "query"),
        ("plan-gaussian/1", "epsilon"),
        ("plan-gaussian/1", "delta"),
        ("plan-gaussian/1", "rho"),
        ("plan-exponential/1", "epsilon"),
        ("plan-randomized-response/1", "column"),
        ("plan-randomized-response/1", "categories"),
        ("plan-randomized-response/1", "protects"),
        ("plan-repeat/1", "times"),
        ("plan-repeat/1", "plan"),
        ("plan-partition/1", "column"),
        ("plan-sequence/1", "plans"),
        ("plan-reserve/1", "budget"),
        ("plan-reserve/1", "reads"),
    }
    assert wanted <= changed


def test_different_records_never_share_a_digest() -> None:
    digests = [record.digest(value) for value in RECORDS.values()]
    assert len(set(digests)) == len(digests)
    laplace = m.Laplace(query=bounds.votes("w", ["a", "b"], Unit()), epsilon=1)
    kinds = [laplace, *(kind(query=laplace.query, epsilon=1) for kind in (m.Exponential, m.PermuteAndFlip))]
    assert len({record.digest(plan) for plan in kinds}) == 3
    ones = [1, 1.0, True, "1", Fraction(1), (1,), {1: None}, {"1": None}, {True: None}, np.array([1]), np.array([1.0])]
    assert len({record.digest(value) for value in ones}) == len(ones)


def test_the_order_of_a_map_counts() -> None:
    assert record.digest(Named({"a": 1, "b": 2})) != record.digest(Named({"b": 2, "a": 1}))


def test_what_is_stored_today_can_be_read_for_ever() -> None:
    assert record.canonical(COUNT) == (
        b'{"epsilon":{"is":"exact","value":"1/2"},"is":"plan-laplace/1","query":{"is":"count/1","per_unit":3,"unit":'
        b'{"change":"replace","group":2,"is":"unit/1","of":"user:patient"}}}'
    )
    assert record.canonical({"b": [1, None], 2: Fraction(-1, 3)}) == (
        b'{"is":"map","items":[["b",[1,null]],[2,{"is":"exact","value":"-1/3"}]]}'
    )
    assert record.canonical(np.array([1.0, -0.0])) == (
        b'{"data":"AAAAAAAA8D8AAAAAAAAAgA==","dtype":"<f8","is":"array","shape":[2]}'
    )


@pytest.mark.parametrize(
    "text",
    [
        '{"is": "gaussian/2", "multiplier": 1}',
        '{"is": "gaussian", "multiplier": 1}',
        '{"is": "Gaussian/1", "multiplier": 1}',
        '{"is": "os.system", "command": "true"}',
        '{"is": "sfumato.units.Unit"}',
        '{"is": ["unit/1"]}',
        '{"is": null}',
        '{"is": 1}',
        "{}",
        '{"of": "row"}',
        '{"is": "unit/1", "of": "row", "shape": 3}',
        '{"is": "unit/1", "__class__": "x"}',
        '{"is": "gaussian/1"}',
        '{"is": "unit/1", "group": 0}',
        '{"is": "unit/1", "group": {"is": "unit/1"}}',
        '{"is": "exact"}',
        '{"is": "exact", "value": "1/0"}',
        '{"is": "exact", "value": "x"}',
        '{"is": "exact", "value": null}',
        '{"is": "exact", "value": [1, 2]}',
        '{"is": "map"}',
        '{"is": "map", "items": 3}',
        '{"is": "map", "items": [[1]]}',
        '{"is": "map", "items": [[[1, {}], 2]]}',
        '{"is": "map", "items": [[{"is": "map", "items": []}, 2]]}',
        '{"is": "array", "dtype": "<f8", "shape": [2], "data": "AAAAAAAA8D8="}',
        '{"is": "array", "dtype": "<f8", "shape": [1], "data": "%%%"}',
        '{"is": "array", "dtype": "O", "shape": [1], "data": "AAAAAAAA8D8="}',
        '{"is": "array", "dtype": "|O", "shape": [1], "data": "AAAAAAAA8D8="}',
        '{"is": "array", "dtype": "nonsense", "shape": [1], "data": "AAAAAAAA8D8="}',
        '{"is": "array", "dtype": "<f8", "shape": "x", "data": "AAAAAAAA8D8="}',
        '{"is": "array", "dtype": "<f8", "shape": [1]}',
        '{"is": "live", "fingerprint": "00"}',
        "",
        "{",
        "nan",
        "'x'",
        b"\x80\x04K\x01.",
        b"\xff\xfe",
    ],
)
def test_what_cannot_be_read_is_refused(text: str | bytes) -> None:
    with pytest.raises(RecordError):
        record.parse(text)


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", '{"is": "map", "items": [["a", -Infinity]]}'])
def test_reading_refuses_what_writing_refuses(text: str) -> None:
    with pytest.raises(RecordError):
        record.parse(text)


def test_deep_nesting_is_refused_and_not_a_crash() -> None:
    with pytest.raises(RecordError):
        record.parse("[" * 100_000 + "]" * 100_000)


@pytest.mark.parametrize("value", ['"1e99999"', '"0.5"', '" 1/2"', '"1_000"', "0.1", "true", '"2/4"'])
def test_an_exact_number_is_read_only_in_the_form_that_is_written(value: str) -> None:
    # "1e999999999" would fill the memory, and 0.1 would mean a binary fraction here and one tenth elsewhere.
    with pytest.raises(RecordError):
        record.parse(f'{{"is": "exact", "value": {value}}}')


def test_an_array_is_read_only_in_the_types_that_are_written() -> None:
    for dtype in ('"<c16"', '"<M8[s]"', '"|V8"', "null", '{"names": ["a"], "formats": ["<f8"]}'):
        text = f'{{"is": "array", "dtype": {dtype}, "shape": [1], "data": "AAAAAAAA8D8AAAAAAAAAAA=="}}'
        with pytest.raises(RecordError):
            record.parse(text.replace("AAAAAAAA8D8AAAAAAAAAAA==", "AAAAAAAA8D8=") if "c16" not in dtype else text)


@many
@given(st.sampled_from(sorted(RECORDS)), st.data())
def test_stored_records_with_a_field_missing_or_broken_never_slip_through(name: str, data: st.DataObject) -> None:
    stored = record.encode(RECORDS[name])
    field = data.draw(st.sampled_from([key_ for key_ in stored if key_ != "is"]))
    broken = dict(stored)
    if data.draw(st.booleans()):
        del broken[field]
    else:
        broken[field] = data.draw(
            st.sampled_from([None, -1, "", [], "x", {"is": "exact", "value": "-1"}, {"is": "y/1"}])
        )
    try:
        back = record.decode(broken)
    except RecordError:
        return
    record.canonical(back)  # a default filled it in, or the value is allowed: still a whole record


@few
@given(st.text(), st.binary())
def test_reading_noise_raises_nothing_but_a_record_error(text: str, raw: bytes) -> None:
    for each in (text, raw):
        with contextlib.suppress(RecordError):
            record.parse(each)


def test_reading_asks_for_the_expected_type() -> None:
    text = record.canonical(Unit())
    assert record.parse(text, Unit) == Unit()
    with pytest.raises(RecordError, match="expected a Event, read a Unit"):
        record.parse(text, events.Event)


def test_nothing_is_read_by_pickle_or_import_path() -> None:
    source = Path(record.__file__).read_text()
    for word in ("import pickle", "importlib", "eval(", "exec(", "__import__", "allow_pickle=True", "getattr(sys"):
        assert word not in source
    with pytest.raises(RecordError):
        record.parse(pickle.dumps(Unit()))


def test_a_record_is_registered_once_under_a_good_name() -> None:
    @dataclass(frozen=True)
    class Good:
        x: int

    for name in ("unit/1", "word", "word/", "/1", "word/x", ""):
        with pytest.raises(TypeError, match="Good"):
            record.record(name)(Good)
    with pytest.raises(TypeError):
        record.record("test-plain/1")(type("Plain", (), {}))


def test_a_record_must_be_frozen() -> None:
    @dataclass
    class Loose:
        x: int

    with pytest.raises(TypeError):
        record.record("test-loose/1")(Loose)


def test_a_subclass_is_not_its_parent_s_record() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Cheaper(events.Laplace):
        pass

    with pytest.raises(RecordError, match="Cheaper"):
        record.canonical(Cheaper(epsilon=1))


# Fingerprints of live values


def _adder(amount: Any) -> Any:
    def add(rows: Any) -> Any:
        return amount

    return add


def _named_only(amount: Any) -> Any:
    def add(rows: Any, *, by: Any = amount) -> Any:
        return by

    return add


def _defaulted(amount: Any) -> Any:
    def add(rows: Any, by: Any = amount) -> Any:
        return by

    return add


def _doubled(fn: Any) -> Any:
    @functools.wraps(fn)
    def scaled(rows: Any) -> Any:
        return 2 * fn(rows)

    return scaled


def _tripled(fn: Any) -> Any:
    @functools.wraps(fn)
    def scaled(rows: Any) -> Any:
        return 3 * fn(rows)

    return scaled


class _Scaler:
    def __init__(self, by: int) -> None:
        self.by = by

    def scale(self, rows: Any) -> int:
        return self.by


_THRESHOLD = 50


def _above(rows: Any) -> Any:
    return rows > _THRESHOLD


print_ = record.fingerprint


def test_the_same_source_has_the_same_fingerprint() -> None:
    assert print_(_adder(1)) == print_(_adder(1))
    assert print_(_adder(_adder(2))) == print_(_adder(_adder(2)))
    assert len(print_(_adder(1))) == 64


def test_another_closure_or_default_has_another_fingerprint() -> None:
    ones = [1, 2, 1.0, "1", Fraction(1), (1, 2), {"a": 1}, {"a": 2}, np.arange(3), np.arange(4), Unit(), _adder(1)]
    assert len({print_(_adder(value)) for value in ones}) == len(ones)
    assert print_(_adder(_adder(1))) != print_(_adder(_adder(2)))
    assert print_(_defaulted(1)) != print_(_defaulted(2))


def test_another_keyword_only_default_has_another_fingerprint() -> None:
    assert print_(_named_only(1)) != print_(_named_only(2))


def test_a_method_of_another_object_has_another_fingerprint_or_none() -> None:
    try:
        first, second = print_(_Scaler(1).scale), print_(_Scaler(2).scale)
    except ArgumentError:
        return  # refused: the object's state has no JSON
    assert first != second


def test_two_lambdas_on_one_line_have_two_fingerprints() -> None:
    one, two = (lambda rows: 1), (lambda rows: 2)
    assert print_(one) != print_(two)


def test_a_decorated_function_is_not_the_one_it_wraps() -> None:
    plain = _adder(1)
    assert len({print_(plain), print_(_doubled(plain)), print_(_tripled(plain))}) == 3


def test_another_global_has_another_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    # A notebook's variables are globals: with the threshold changed, the stored answer would be to another question.
    before = print_(_above)
    monkeypatch.setitem(globals(), "_THRESHOLD", 60)
    assert print_(_above) != before


def test_a_lambda_has_a_fingerprint() -> None:
    assert print_(lambda rows: 1)


@pytest.mark.parametrize("value", [len, print, max, functools.partial(_adder(1)), 3, "text", object(), None])
def test_what_has_no_source_has_no_fingerprint(value: Any) -> None:
    with pytest.raises(ArgumentError):
        print_(value)


def test_what_a_closure_cannot_tell_is_refused() -> None:
    for hidden in (object(), math.nan, {1, 2}):
        with pytest.raises((ArgumentError, RecordError)):
            print_(_adder(hidden))


def test_a_live_field_is_written_by_fingerprint_and_never_read_back() -> None:
    query = bounds.declared(_adder(1), Unit(), reads={}, labels=["x"], l1=1, l2=1, linf=1)
    stored = record.encode(query)
    assert stored["fn"] == {"is": "live", "fingerprint": print_(_adder(1))}
    with pytest.raises(RecordError, match="live field cannot be rebuilt"):
        record.decode(stored)
    turned = bounds.declared(_adder(2), Unit(), reads={}, labels=["x"], l1=1, l2=1, linf=1)
    assert record.digest(turned) != record.digest(query)


class _Model:
    weights = b"abc"


def test_areas_register_fingerprints_of_their_own_types() -> None:
    with pytest.raises(ArgumentError, match="_Model has no fingerprint"):
        print_(_Model())
    record.fingerprint.register(_Model, lambda model: model.weights.hex())
    assert print_(_Model()) == "616263"
