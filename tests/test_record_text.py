"""The fast writer says, byte for byte, what `encode` and `json.dumps` say; and what it remembers is never stale."""

from __future__ import annotations

import copy
import enum
import gc
import json
import os
import pickle
import subprocess
import sys
import threading
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import Budget, Unit, events, record
from sfumato.accounting.budget import HalvesBudget
from sfumato.accounting.filters import Charge, Filter, Hold, RenyiOrder
from sfumato.accounting.holds import HeldSteps
from sfumato.errors import RecordError
from sfumato.events import Repeat
from sfumato.learn.clipping import Adaptive, Automatic, Flat, PerLayer
from sfumato.learn.sampling import Fixed, Poisson
from sfumato.ledger.stores.base import Account
from sfumato.plan import Receipt
from sfumato.schema import Named, Schema, category, real, tensor
from tests.helpers import few, many
from tests.rules.test_kind_rules import EVENTS, EXAMPLES, QUERIES

NOTHING = Fraction(0)
LAPLACE = events.Laplace(epsilon=0.25)
APPROXIMATE = events.Approximate(epsilon=0.2, delta=1e-8)


def plainly(value: Any) -> bytes:
    """The canonical JSON as it is defined."""
    text = json.dumps(record.encode(value), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text.encode("ascii")


def used() -> Filter:
    return Filter.of(Budget(epsilon=2, delta=1e-6)).spend(LAPLACE, NOTHING).spend(APPROXIMATE, Fraction(1, 10**8))


def receipt() -> Receipt:
    return Receipt("1f", ("a", "b"), "00", LAPLACE, "a@1", Unit("user:é"), "exact", note='"\n\ud800')


def records() -> Iterator[Any]:
    """New ones each time, so that none of them has been written before."""
    yield from (copy.deepcopy(event) for event in EVENTS.values())
    yield from QUERIES.values()
    yield from (make() for make in EXAMPLES.values())
    filter_ = used()
    yield from (filter_, *filter_.open, *(m for b in BUDGETS for m in b.members()))
    yield from map(copy.deepcopy, BUDGETS)
    yield filter_.charge(APPROXIMATE, Fraction(1, 10**8))
    yield Charge((None, (NOTHING, NOTHING)), filter_)
    yield Hold(LAPLACE, NOTHING).after(APPROXIMATE, Fraction(1, 10**8)).after(LAPLACE, NOTHING)
    yield HeldSteps(Repeat(LAPLACE, 3), NOTHING)
    yield from (Flat(norm=1), PerLayer(norm=2), Automatic(norm=1), Adaptive(norm=1))
    yield from (Poisson(rate=1, population=3, room=19), Fixed(size=2, population=3))
    yield Unit("user:\U0001f600", "replace", 3)
    yield receipt()
    yield Account(name="é", filter=filter_, held={"1": Hold(LAPLACE, NOTHING)}, unit=Unit())
    schema = Schema.of(age=real(0, 120, nulls=40), ward=category([1, 2]), face=tensor((2, 3), 0, 1), rows=9)
    yield from (schema, schema.table(), *schema.table().columns.values())


BUDGETS = (
    Budget(epsilon=1),
    Budget(epsilon=1, delta=1e-6),
    Budget(rho=0.5),
    Budget(epsilon=1, delta=1e-6, shares={"plans": 0.5, "adaptive": 0.25, "concentrated": 0.125, "renyi:7.5": 0.125}),
    Budget(epsilon=1, delta=1e-6, shares={"plans": 0.5, "gaussian": 0.5}),
    HalvesBudget(epsilon=1, delta=1e-6),
)


class Colour(enum.StrEnum):
    RED = "r\u00e9d"


class Number(enum.IntEnum):
    ONE = 1


class Half(Fraction):
    pass


Pair = namedtuple("Pair", "a b")


@record.record("text-nothing/1")
@dataclass(frozen=True)
class Nothing:
    pass


@record.record("text-names/1", kept=True)
@dataclass(frozen=True)
class Names:
    """Fields on both sides of "is", one of which is not ASCII."""

    zebra: Any = 1
    ante: Any = 2
    isa: Any = 3
    ir: Any = 4
    größe: Any = 5
    hidden: Any = field(default=6, init=False)


@record.record("tëxt-kind/1")
@dataclass(frozen=True)
class Kind:
    body: Callable[..., Any] | None = field(default=None, metadata=record.LIVE)


@record.record("text-derived/1")
@dataclass(frozen=True)
class Derived:
    body: Callable[..., Any] | None = field(default=None, init=False, metadata=record.LIVE)
    size: int = 1


@record.record("text-later/1", kept=True)
@dataclass(frozen=True)
class Later:
    """Fields that came later, first and last of all, with others between them and "is"."""

    ante: Any = field(default=1, metadata=record.LATER)
    body: Any = 2
    ir: Any = field(default=3, metadata=record.LATER)
    isa: Any = field(default=4, metadata=record.LATER)
    size: Any = 5
    zebra: Any = field(default=6, metadata=record.LATER)


@record.record("text-latest/1")
@dataclass(frozen=True)
class Latest:
    ante: Any = field(default=1, metadata=record.LATER)


@record.record("text-mapping/1")
@dataclass(frozen=True)
class Settings(Mapping[str, int]):
    size: int = 1

    def __getitem__(self, key: str) -> int:
        return self.size

    def __iter__(self) -> Iterator[str]:
        yield "size"

    def __len__(self) -> int:
        return 1


def body(x: int) -> int:
    return x + 1


ODD: tuple[Any, ...] = (
    *(
        True,
        False,
        None,
        0,
        -1,
        10**40,
        0.0,
        -0.0,
        1e16,
        1e-300,
        5e-324,
        0.1,
        "",
        "é",
        "\ud800",
        "\x00\x7f\u2028",
        '"\\/',
    ),
    *((), [], {}, ((),), {"a": {}}, {1: (None,), (): [Fraction(1, 3)], LAPLACE: 2}),
    *(Fraction(-3, 7), Fraction(4), Half(1, 2), Fraction(np.int64(3), np.int64(5)), [Half(2, 3)]),
    *(Colour.RED, Number.ONE, (Number.ONE, Colour.RED), Pair(1, (2,)), [Pair("a", None)]),
    *(OrderedDict(b=1, a=2), MappingProxyType({"b": 1, "a": (2,)}), {"x": MappingProxyType({})}),
    *(np.float64(0.1), np.float32(0.1), np.int8(-3), np.bool_(True), np.str_("é"), (np.float64(2), np.uint64(2**63))),
    *(np.arange(3), np.array(["é", "b"]), np.zeros((0, 2)), (np.array(True), {"a": np.array([1.5])})),
    *(Nothing(), (Nothing(), Nothing()), Names(), Names(größe=Names(ante=())), Kind(), Kind(body), (Kind(body),)),
    *(Derived(), Derived(2), Settings(), (Settings(3),), Latest(), Latest(()), (Latest(2),)),
    *(Later(), Later(ante=0), Later(ir=0), Later(isa=0), Later(zebra=0), Later(0, 0, 0, 0, 0, 0), Later(zebra=Later())),
)


@pytest.mark.parametrize("value", ODD, ids=lambda value: type(value).__name__)
def test_odd_values_are_written_as_they_are_defined(value: Any) -> None:
    assert record.canonical(value) == plainly(value) == record.canonical((value,))[1:-1]


def test_every_kind_of_record_is_written_as_it_is_defined_the_first_time_and_the_second() -> None:
    seen = set()
    for value in records():
        wanted = plainly(value)
        assert record.canonical(value) == wanted == record.canonical(value), type(value)
        seen.add(type(value))
    kept = {cls for cls, form in record._FORMS.items() if form.kept and cls.__module__.startswith("sfumato.")}
    assert kept <= seen, "a kept record without an example"


def test_all_that_is_registered_and_the_package_s_own_is_written_fast() -> None:
    ours = [cls for cls in record.kinds(object).values() if cls.__module__.startswith("sfumato.")]
    assert ours and all(cls in record._FORMS for cls in (*ours, Later, Latest))


plain = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.fractions(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=())),
    st.sampled_from([LAPLACE, APPROXIMATE, Unit(), BUDGETS[3], Nothing(), Number.ONE, Colour.RED, np.float32(0.5)]),
)
keys = st.one_of(st.text(max_size=3), st.integers(), st.fractions(), st.tuples(st.booleans(), st.text(max_size=2)))
nested = st.recursive(
    plain,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(keys, inner, max_size=3),
        st.dictionaries(keys, inner, max_size=3).map(MappingProxyType),
        st.builds(Names, zebra=inner, größe=inner, ir=inner),
        st.builds(Later, ante=inner, ir=inner, zebra=inner),
        st.builds(Pair, inner, inner),
    ),
    max_leaves=12,
)


@many
@given(nested)
def test_nested_values_are_written_as_they_are_defined(value: Any) -> None:
    assert record.canonical(value) == plainly(value) == record.canonical(value)


class Stranger:
    pass


@dataclass(frozen=True, kw_only=True)
class Unregistered(events.Laplace):
    """A record's child that nobody registered."""


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), np.float64("nan"), b"a", Stranger(), {1, 2}, 1j, Unregistered(epsilon=1), Nothing],
    ids=lambda value: type(value).__name__,
)
def test_what_has_no_json_is_refused_at_any_depth(value: Any) -> None:
    for inside in (value, (value,), [[value]], {"a": value}, Names(zebra=value), MappingProxyType({"a": value})):
        with pytest.raises(RecordError):
            record.canonical(inside)
        with pytest.raises(RecordError):
            record.encode(inside)


# What a record remembers


def written(value: Any) -> Any:
    record.canonical(value)
    hash(value)
    return value


def kept_records() -> list[Any]:
    return [value for value in records() if record._FORMS[type(value)].kept]


def test_nothing_is_remembered_before_a_record_is_complete() -> None:
    """Whoever hashed or wrote a half-made record would remember what it was not."""
    for value in kept_records():
        again = replace(value)
        assert not {record._TEXT, record._HASH} & set(again.__dict__), type(value)


def test_the_parts_of_what_is_kept_never_change() -> None:
    def check(value: Any) -> None:
        if isinstance(value, tuple | Named):
            for part in value.items() if isinstance(value, Named) else value:
                check(part)
        elif type(value) in record._FORMS:
            assert record._FORMS[type(value)].kept, type(value)
            for f in fields(value):
                check(getattr(value, f.name))
        else:
            assert value is None or type(value) in (bool, int, float, str, Fraction), type(value)

    listed = (
        Budget(epsilon=1, delta=1e-6, shares={"plans": 1}),
        events.Sequence([LAPLACE, LAPLACE]),  # type: ignore[arg-type]
        events.Partition("ward", [LAPLACE]),  # type: ignore[arg-type]
        events.GaussianMixture(shifts=[0, 1], weights=[0.5, 0.5]),
    )
    for value in (*kept_records(), *listed):
        check(value)


def test_changed_copies_forget() -> None:
    unit, filter_ = written(Unit()), written(used())
    assert record.canonical(replace(unit, group=2)) == plainly(Unit(group=2))
    assert hash(replace(unit, group=2)) == hash(Unit(group=2))
    later = record.moved(filter_, count=9)
    assert record.canonical(later) == plainly(replace(filter_, count=9)) != record.canonical(filter_)
    assert hash(later) == hash(replace(filter_, count=9)) and later == replace(filter_, count=9)
    member = next(written(m) for m in filter_.open if isinstance(m, RenyiOrder))
    assert member.name == record.moved(member, spent=Fraction(1)).name
    spent = record.moved(member, spent=Fraction(7, 5))
    assert record.canonical(spent) == plainly(replace(member, spent=Fraction(7, 5)))


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_copies_are_equal_and_written_alike(again: Callable[[Any], Any]) -> None:
    for value in kept_records():
        copied = again(written(value))
        assert copied == value and hash(copied) == hash(value) and record.canonical(copied) == plainly(value)
        assert {record._TEXT, record._HASH} <= set(copied.__dict__)


def test_a_hash_does_not_travel_to_another_process() -> None:
    """Hashes of texts are seeded per process: a pickled one would make equal records unequal keys."""
    sent = pickle.dumps([written(Unit("user:who")), written(LAPLACE), written(events.Repeat(LAPLACE, 3))])
    program = (
        "import pickle, sys; from sfumato import Unit, events; one = events.Laplace(epsilon=0.25)\n"
        "here = [Unit('user:who'), one, events.Repeat(one, 3)]\n"
        "there = pickle.loads(bytes.fromhex(sys.argv[1]))\n"
        "assert here == there and all(a in {b} for a, b in zip(there, here))"
    )
    for seed in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        subprocess.run([sys.executable, "-c", program, sent.hex()], env=env, check=True, timeout=600)


@few
@given(st.lists(st.fractions(), min_size=1, max_size=20))
def test_a_number_s_text_is_its_own_also_where_another_had_its_place(numbers: list[Fraction]) -> None:
    for number in numbers:
        record.canonical(Fraction(number))  # gone at once: its address is free again
        gc.collect(0)
        assert record.canonical(Fraction(number) + 1) == plainly(Fraction(number) + 1)


def test_the_memory_for_numbers_is_bounded() -> None:
    for n in range(record._MOST_EXACT + 100):
        record.canonical(Fraction(1, n + 1))
    assert len(record._EXACT) <= record._MOST_EXACT


def test_threads_write_alike() -> None:
    values = [*records(), *ODD]
    wanted, found = [plainly(value) for value in values], []

    def write() -> None:
        for _ in range(3):
            found.append([record.canonical(value) for value in values] == wanted)
            record._EXACT.clear()

    threads = [threading.Thread(target=write) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 24
