"""Events: valid from birth, frozen, JSON by name and version."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError, fields, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import events, record
from sfumato.errors import ArgumentError, RecordError
from sfumato.units import RELATIONS
from tests.helpers import many

BAD = [0, -1, math.nan, math.inf, -math.inf, 1e-320, "1", True, None, Decimal("1e999"), Decimal("NaN"), 1j, [1]]
LEAVES: dict[str, dict[str, Any]] = {
    "Laplace": {"epsilon": 1},
    "Gaussian": {"multiplier": 1},
    "RandomizedResponse": {"epsilon": 1, "categories": 2},
    "Exponential": {"epsilon": 1},
    "PermuteAndFlip": {"epsilon": 1},
    "Pure": {"epsilon": 1},
    "Approximate": {"epsilon": 1, "delta": 1e-6},
    "ZeroConcentrated": {"rho": 1},
}


def leaf(name: str, **more: Any) -> events.Event:
    made = getattr(events, name)(**{**LEAVES[name], **more})
    assert isinstance(made, events.Event)
    return made


@pytest.mark.parametrize("value", BAD)
@pytest.mark.parametrize(("kind", "field"), [(k, f) for k, given_ in LEAVES.items() for f in given_])
def test_a_bad_parameter_is_refused_at_birth_by_name(kind: str, field: str, value: Any) -> None:
    if (kind, field, value) == ("Approximate", "epsilon", 0) and value is not False:
        assert leaf(kind, epsilon=0).epsilon == 0  # type: ignore[attr-defined]
        return
    with pytest.raises(ArgumentError) as caught:
        leaf(kind, **{field: value})
    assert str(caught.value).startswith(f"{field} = {value!r} is not allowed: give ")


@pytest.mark.parametrize("kind", LEAVES)
def test_a_leaf_is_frozen_exact_and_survives_json(kind: str) -> None:
    for relation in RELATIONS:
        event = leaf(kind, relation=relation)
        assert event.relation == relation
        for f in fields(event):  # type: ignore[arg-type]
            with pytest.raises(FrozenInstanceError):
                setattr(event, f.name, 1)
        back = record.parse(record.canonical(event), events.Event)
        assert back == event and type(back) is type(event) and hash(back) == hash(event)
    for name in LEAVES[kind]:
        assert isinstance(getattr(event, name), Fraction | int) and not isinstance(getattr(event, name), float)
    with pytest.raises(ArgumentError, match="relation = 'add'"):
        leaf(kind, relation="add")


@pytest.mark.parametrize("bad", [1, 1.0, 1e-200, Fraction(-1, 2), 2])
def test_a_delta_of_one_or_more_is_refused(bad: Any) -> None:
    with pytest.raises(ArgumentError, match="delta = "):
        events.Approximate(epsilon=1, delta=bad)


def test_a_float_means_the_decimal_it_prints_as() -> None:
    tenths = [events.Laplace(epsilon=tenth) for tenth in (0.1, Decimal("0.1"), Fraction(1, 10))]
    assert tenths[0] == tenths[1] == tenths[2] and tenths[0].epsilon == Fraction(1, 10)


def test_composite_events_refuse_what_is_no_event() -> None:
    one = leaf("Laplace")
    for bad in [(), [], None, one, "ab", (one, 1), {one}, (one, None)]:
        with pytest.raises(ArgumentError, match="events"):
            events.Sequence(bad)  # type: ignore[arg-type]
        with pytest.raises(ArgumentError, match="events"):
            events.Partition("ward", bad)  # type: ignore[arg-type]
    for bad in [None, 1, "laplace", (one,)]:
        with pytest.raises(ArgumentError, match="event"):
            events.Repeat(bad, 2)  # type: ignore[arg-type]
    for times in [0, -1, 1.5, 2.0, True, None, "2", math.nan, 2**54]:
        with pytest.raises(ArgumentError, match="times = "):
            events.Repeat(one, times)  # type: ignore[arg-type]
    for column in ["", None, 3, "\n"]:
        with pytest.raises(ArgumentError, match="column = "):
            events.Partition(column, (one,))  # type: ignore[arg-type]


def test_events_between_different_neighbours_never_mix() -> None:
    pair = (leaf("Laplace"), leaf("Gaussian", relation="replace"))
    with pytest.raises(ArgumentError, match="mix neighbour relations"):
        events.Sequence(pair)
    with pytest.raises(ArgumentError, match="mix neighbour relations"):
        events.Partition("ward", pair)
    with pytest.raises(ArgumentError, match="mix neighbour relations"):
        events.Sequence((events.Repeat(pair[0], 2), events.Partition("ward", (pair[1],))))


def test_replacing_a_unit_reaches_two_parts_and_anything_else_one() -> None:
    reached = {r: events.Partition("ward", (leaf("Laplace", relation=r),) * 3).touched for r in RELATIONS}
    assert reached == {"add-remove": 1, "replace": 2, "zero-out": 1}


def trees(relation: str) -> st.SearchStrategy[events.Event]:
    some = st.sampled_from(sorted(LEAVES)).map(lambda kind: leaf(kind, relation=relation))
    return st.recursive(
        some,
        lambda inner: st.one_of(
            st.lists(inner, min_size=1, max_size=3).map(lambda parts: events.Sequence(tuple(parts))),
            st.lists(inner, min_size=1, max_size=3).map(lambda parts: events.Partition("ward", tuple(parts))),
            st.tuples(inner, st.integers(1, 2**53)).map(lambda pair: events.Repeat(*pair)),
        ),
        max_leaves=6,
    )


@pytest.mark.slow
@many
@given(st.sampled_from(RELATIONS).flatmap(trees))
def test_any_tree_of_events_survives_json(event: events.Event) -> None:
    text = record.canonical(event)
    back = record.parse(text, events.Event)
    assert back == event and hash(back) == hash(event) and record.canonical(back) == text
    assert back.relation == event.relation


def test_stored_events_are_checked_again() -> None:
    text = record.canonical(leaf("Gaussian", multiplier=3))
    for swap in (b'"-3"', b'"0"', b'"nan"', b'"inf"', b'"1/0"', b"null", b"[]"):
        with pytest.raises(RecordError):
            record.parse(text.replace(b'"3"', swap))
    mixed = record.encode(events.Sequence((leaf("Laplace"), leaf("Laplace"))))
    mixed["events"][1]["relation"] = "replace"
    with pytest.raises(RecordError, match="mix neighbour relations"):
        record.decode(mixed)
    swapped = record.encode(events.Repeat(leaf("Laplace"), 2))
    swapped["event"] = {"is": "unit/1"}
    with pytest.raises(RecordError, match="event"):
        record.decode(swapped)


def test_what_a_stored_event_looks_like_never_changes() -> None:
    event = events.Sequence(
        (
            events.Repeat(events.Gaussian(multiplier=Fraction(3, 2)), 7),
            events.Partition("ward", (events.RandomizedResponse(epsilon=0.1, categories=3),)),
        )
    )
    assert record.canonical(event) == (
        b'{"events":[{"event":{"is":"gaussian/1","multiplier":{"is":"exact","value":"3/2"},"relation":"add-remove"},'
        b'"is":"repeat/1","times":7},{"column":"ward","events":[{"categories":3,"epsilon":{"is":"exact","value":"1/10"},'
        b'"is":"randomized-response/1","relation":"add-remove"}],"is":"partition/1"}],"is":"sequence/1"}'
    )
    names = {"laplace", "gaussian", "randomized-response", "exponential", "permute-and-flip", "pure", "approximate"}
    known = {f"{name}/1" for name in names | {"zero-concentrated", "sequence", "repeat", "partition"}}
    assert known <= set(record.kinds(events.Event))


def test_replacing_a_field_validates_again() -> None:
    with pytest.raises(ArgumentError, match="epsilon = -1"):
        replace(leaf("Laplace"), epsilon=-1)  # type: ignore[type-var]


def test_a_mixture_is_not_priced_between_data_sets_of_one_size() -> None:
    with pytest.raises(ArgumentError, match="who is replaced is not sampled"):
        events.GaussianMixture(shifts=(0, 1), weights=(0.5, 0.5), relation="replace")
