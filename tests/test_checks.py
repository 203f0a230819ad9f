"""Bad public arguments: refused by name, before data is touched and before anything is charged."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import Budget, Curator, MemoryLedger, Private, Schema, Unit, bounds, checks, partition, repeat, reserve
from sfumato import mechanisms as m
from sfumato.errors import ArgumentError, PrivacyWarning
from sfumato.schema import category, key, real, whole
from tests.helpers import AGES, BY_PATIENT, PATIENTS, Columns, SpyLedger, few, laplace, many

NAN, INF = math.nan, math.inf
NOT_NUMBERS: list[Any] = [NAN, INF, -INF, "1", True, False, None, 1j, [1], Decimal("NaN"), Decimal("Infinity")]
HUGE: list[Any] = [Decimal("1e399"), Decimal("1e9999999"), 10**300, 1e308]
TINY: list[Any] = [1e-320, 5e-324, Decimal("1e-399"), Fraction(1, 10**200)]
EPSILONS = [0, -1, -0.0, *NOT_NUMBERS, *HUGE, *TINY, 1e-10, 10_001, np.bool_(True), np.float64("nan")]
DELTAS = [-1e-9, 1, 1.0, 2, *NOT_NUMBERS, *HUGE, *TINY]
SIZES = [0, -1, *NOT_NUMBERS, *HUGE[:2], *TINY]
BOUNDS = [*NOT_NUMBERS, *HUGE[:2], 1e-320, Decimal("-1e399")]
COUNTS = [0, -1, 1.5, 1.0, *NOT_NUMBERS, *HUGE, "3", np.float64(2.0), Fraction(1)]

QUERY = bounds.count(BY_PATIENT)
VOTES = bounds.votes("ward", ["north", "south"], BY_PATIENT)


def response(**fields: Any) -> m.RandomizedResponse:
    given_ = {"column": "ward", "categories": ["a", "b"], "epsilon": 1, "protects": Unit(change="replace"), **fields}
    return m.RandomizedResponse(**given_)


def declared(l1: Any = 1, l2: Any = 1, linf: Any = 1) -> bounds.Declared:
    return bounds.declared(lambda rows: 1, Unit(), reads={}, labels=["x"], l1=l1, l2=l2, linf=linf)


MAKERS: list[tuple[str, str, Callable[[Any], Any], list[Any]]] = [
    ("laplace", "epsilon", lambda v: m.Laplace(query=QUERY, epsilon=v), EPSILONS),
    ("exponential", "epsilon", lambda v: m.Exponential(query=VOTES, epsilon=v), EPSILONS),
    ("flip", "epsilon", lambda v: m.PermuteAndFlip(query=VOTES, epsilon=v), EPSILONS),
    ("response", "epsilon", lambda v: response(epsilon=v), EPSILONS),
    (
        "gaussian",
        "epsilon",
        lambda v: m.Gaussian(query=QUERY, epsilon=v, delta=1e-6),
        [v for v in EPSILONS if v is not None],
    ),
    ("gaussian", "delta", lambda v: m.Gaussian(query=QUERY, epsilon=1, delta=v), [0, *DELTAS]),
    ("gaussian", "rho", lambda v: m.Gaussian(query=QUERY, rho=v), [v for v in SIZES if v is not None]),
    (
        "gaussian",
        "multiplier",
        lambda v: m.Gaussian(query=QUERY, multiplier=v),
        [v for v in SIZES if v is not None],
    ),
    ("budget", "epsilon", lambda v: Budget(epsilon=v), [v for v in EPSILONS if v is not None]),
    ("budget", "delta", lambda v: Budget(epsilon=1, delta=v), DELTAS),
    ("budget", "rho", lambda v: Budget(rho=v), [v for v in SIZES if v is not None]),
    ("sum", "lower", lambda v: bounds.clipped_sum("age", v, 10, BY_PATIENT), [*BOUNDS, 10, 11]),
    ("sum", "upper", lambda v: bounds.clipped_sum("age", 0, v, BY_PATIENT), BOUNDS),
    ("mean", "lower", lambda v: bounds.mean("age", v, 10, BY_PATIENT), [*BOUNDS, 10, 11]),
    ("mean", "upper", lambda v: bounds.mean("age", 0, v, BY_PATIENT), BOUNDS),
    ("real", "lower", lambda v: real(v, 10), [*BOUNDS, 10, 11]),
    ("real", "upper", lambda v: real(0, v), BOUNDS),
    ("whole", "lower", lambda v: whole(v, 10), [*BOUNDS, 0.5]),
    ("count", "per_unit", lambda v: bounds.count(BY_PATIENT, per_unit=v), [*COUNTS, 2**18 + 1]),
    ("sum", "per_unit", lambda v: bounds.clipped_sum("age", 0, 1, BY_PATIENT, per_unit=v), [*COUNTS, 2**18 + 1]),
    ("histogram", "per_unit", lambda v: bounds.histogram("ward", ["a"], BY_PATIENT, per_unit=v), COUNTS),
    ("row count", "per_unit", lambda v: bounds.count(Unit(), per_unit=v), [2, *COUNTS]),
    ("repeat", "times", lambda v: repeat(laplace(), v), [*COUNTS, 10**9 + 1]),
    ("unit", "group", lambda v: Unit(group=v), [*COUNTS, 10**6 + 1]),
    ("declared", "declared_l1", lambda v: declared(l1=v), SIZES),
    ("declared", "declared_l2", lambda v: declared(l2=v), SIZES),
    ("declared", "declared_linf", lambda v: declared(linf=v), SIZES),
]
CASES = [
    pytest.param(name, make, value, id=f"{where}-{name}-{value!r}"[:60])
    for where, name, make, values in MAKERS
    for value in values
]
PRICES = [case for case in CASES if case.values[0] in ("epsilon", "delta", "rho")][::7]


@pytest.mark.parametrize(("name", "make", "value"), CASES)
def test_a_bad_argument_is_refused_with_its_name_its_value_and_what_is_allowed(
    name: str, make: Callable[[Any], Any], value: Any
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        with pytest.raises(ArgumentError) as caught:
            make(value)
    text = str(caught.value)
    assert text.startswith(f"{name} = {value!r}"[:75])
    assert " is not allowed: give " in text and text.endswith(".") and len(text) < 400


@pytest.mark.parametrize("value", [10**5000, Fraction(1, 10**5000)], ids=["long", "tiny"])
@pytest.mark.parametrize("check", [checks.epsilon, checks.bound, checks.whole])
def test_a_number_too_long_to_print_is_refused_like_any_other(check: Callable[..., Any], value: Any) -> None:
    with pytest.raises(ArgumentError, match="is not allowed: give"):
        check(value, "it")


@pytest.mark.parametrize("fields", [{"rho": 1e-60}, {"rho": 1e60}, {"multiplier": 1e-4}, {"multiplier": 1e10}])
def test_a_noise_multiplier_out_of_reach_is_refused_by_name(fields: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match=rf"{next(iter(fields))} = .*give a noise multiplier from 1e-3 to 1e9"):
        m.Gaussian(query=QUERY, **fields)


@pytest.mark.parametrize(("name", "make", "value"), PRICES)
def test_a_bad_plan_touches_no_data_and_charges_nothing(name: str, make: Callable[[Any], Any], value: Any) -> None:
    columns, ledger = Columns(AGES), SpyLedger({"patients": Budget(epsilon=1)})
    private = Private("patients", columns, unit=BY_PATIENT, schema=PATIENTS)
    curator, before = Curator(private, ledger), columns.reads
    for ask in (curator.release, curator.quote, curator.rehearse):
        with pytest.raises(ArgumentError), warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)
            ask(make(value))
    assert columns.reads == before and ledger.log == []


def test_a_calibration_that_is_out_of_reach_names_the_argument_that_was_given() -> None:
    with pytest.raises(ArgumentError) as caught:
        m.Gaussian(query=QUERY, epsilon=1e-9, delta=1e-12)
    text = str(caught.value)
    assert "None" not in text
    assert text.startswith(("epsilon = ", "delta = "))


@pytest.mark.parametrize("group", [1, 10**6])
@pytest.mark.parametrize("per_unit", [1000, 2**18])
@pytest.mark.parametrize(
    "make",
    [
        lambda query: m.Laplace(query=query, epsilon=1e-9),
        lambda query: m.Gaussian(query=query, multiplier=1e9),
    ],
    ids=["laplace", "gaussian"],
)
def test_noise_that_cannot_be_drawn_is_refused_before_it_is_charged(
    make: Callable[[Any], Any], per_unit: int, group: int
) -> None:
    unit = Unit("user:patient", group=group)
    columns, ledger = Columns(AGES), SpyLedger({"patients": Budget(rho=1000)})
    curator = Curator(Private("patients", columns, unit=unit, schema=PATIENTS), ledger)
    before = columns.reads
    with pytest.raises(ArgumentError, match=" give "):
        curator.release(make(bounds.count(unit, per_unit=per_unit)))
    assert "spend" not in ledger.log and columns.reads == before


@many
@given(
    st.sampled_from(["sum", "mean"]),
    st.integers(-(10**30), 10**30),
    st.sampled_from([1, 10, 10**3, 10**9, 10**18]),
    st.sampled_from([1e-9, 1e-4, 1, 9]),
)
def test_every_plan_that_is_born_can_draw_its_noise(kind: str, lower: int, width: int, epsilon: float) -> None:
    build = bounds.clipped_sum if kind == "sum" else bounds.mean
    try:
        plan = m.Laplace(query=build("age", lower, lower + width, BY_PATIENT), epsilon=epsilon)
    except ArgumentError:
        return  # refused at birth
    assert plan.law.spread > 0


@pytest.mark.parametrize(
    "make",
    [
        lambda: response(protects="row"),
        lambda: response(protects=None),
        lambda: bounds.count("row"),  # type: ignore[arg-type]
        lambda: m.Laplace(query=None, epsilon=1),  # type: ignore[arg-type]
        lambda: m.Laplace(query=laplace(), epsilon=1),  # type: ignore[arg-type]
        lambda: m.Exponential(query="ward", epsilon=1),  # type: ignore[arg-type]
        lambda: partition("ward", ["a"], 5),  # type: ignore[arg-type]
        lambda: partition("ward", "ab", laplace()),
        lambda: partition("ward", [], laplace()),
        lambda: partition("", ["a"], laplace()),
        lambda: repeat(5, 2),  # type: ignore[arg-type]
        lambda: reserve(unit="row", budget=Budget(epsilon=1)),  # type: ignore[arg-type]
        lambda: reserve(unit=Unit(), budget=1),  # type: ignore[arg-type]
        lambda: reserve(unit=Unit(), budget=Budget(epsilon=1), reads={"age": 5}),  # type: ignore[dict-item]
        lambda: reserve(5, unit=Unit(), budget=Budget(epsilon=1)),  # type: ignore[arg-type]
        lambda: bounds.declared(5, Unit(), reads={}, labels=["x"], l1=1, l2=1, linf=1),  # type: ignore[arg-type]
        lambda: bounds.declared(lambda r: 1, Unit(), reads={}, labels=[], l1=1, l2=1, linf=1),
        lambda: bounds.declared(lambda r: 1, Unit(), reads={}, labels="ab", l1=1, l2=1, linf=1),
        lambda: bounds.declared(lambda r: 1, Unit(), reads={"x": 5}, labels=["x"], l1=1, l2=1, linf=1),  # type: ignore[dict-item]
        lambda: bounds.declared(lambda r: 1, Unit(), reads=None, labels=["x"], l1=1, l2=1, linf=1),  # type: ignore[arg-type]
        lambda: declared(l1=1, l2=2, linf=1),
        lambda: declared(l1=3, l2=2, linf=2.5),
        lambda: bounds.histogram("ward", ["a", "a"], Unit()),
        lambda: bounds.histogram("ward", ["a", 1], Unit()),
        lambda: bounds.histogram("ward", [0.5], Unit()),
        lambda: bounds.histogram("ward", "ab", Unit()),
        lambda: bounds.histogram("", ["a"], Unit()),
        lambda: response(categories=["a"]),
        lambda: response(protects=Unit()),
        lambda: response(protects=Unit("user:a", "replace")),
        lambda: Budget(),
        lambda: Budget(epsilon=1, rho=1),
        lambda: Budget(rho=1, delta=1e-6),
        lambda: m.Gaussian(query=QUERY),
        lambda: m.Gaussian(query=QUERY, epsilon=1),
        lambda: m.Gaussian(query=QUERY, epsilon=1, delta=1e-6, rho=1),
        lambda: m.Gaussian(query=QUERY, multiplier=1, rho=1),
        lambda: MemoryLedger({}),
        lambda: MemoryLedger({"a": 1}),  # type: ignore[dict-item]
        lambda: MemoryLedger({"": Budget(epsilon=1)}),
        lambda: Private("", {}, unit=Unit(), schema=PATIENTS),
        lambda: Private("a", AGES, unit="row", schema=PATIENTS),  # type: ignore[arg-type]
        lambda: Private("a", AGES, unit=Unit(), schema=None),  # type: ignore[arg-type]
        lambda: Private("a", AGES, unit=BY_PATIENT, schema=PATIENTS, version=""),
        lambda: Curator("a", MemoryLedger({"a": Budget(epsilon=1)})),  # type: ignore[arg-type]
    ],
)
def test_what_is_not_of_the_right_kind_is_an_argument_error(make: Callable[[], Any]) -> None:
    with pytest.raises(ArgumentError):
        make()


@pytest.mark.parametrize("value", [0.1, Decimal("0.1"), Fraction(1, 10), np.float64(0.1)])
def test_a_number_is_the_decimal_it_prints_as(value: Any) -> None:
    assert checks.epsilon(value) == Fraction(1, 10)
    assert 10 * checks.epsilon(value) == 1


@few
@given(st.floats(1e-9, 10))
def test_every_float_in_range_is_taken_for_what_it_prints(value: float) -> None:
    assert checks.epsilon(value) == Fraction(repr(value)) and float(checks.epsilon(value)) == value


@pytest.mark.parametrize("value", [1e-9, 10**4, Decimal("1e-9"), np.int64(3), Fraction(10**4)])
def test_the_ends_of_the_range_are_allowed(value: Any) -> None:
    assert checks.epsilon(value, warn=False) == Fraction(str(value) if not isinstance(value, Fraction) else value)


@pytest.mark.parametrize(
    "make",
    [
        lambda v: m.Laplace(query=QUERY, epsilon=v),
        lambda v: m.Gaussian(query=QUERY, epsilon=v, delta=1e-6),
        lambda v: m.Exponential(query=VOTES, epsilon=v),
        lambda v: m.PermuteAndFlip(query=VOTES, epsilon=v),
        lambda v: response(epsilon=v),
        lambda v: Budget(epsilon=v),
    ],
)
def test_an_epsilon_above_ten_is_warned_about(make: Callable[[Any], Any]) -> None:
    make(10)
    with pytest.warns(PrivacyWarning, match=r"epsilon = 10\.5 is weak.*factor of e\^10\.5"):
        make(10.5)


def test_a_delta_above_one_over_n_is_warned_about_where_n_is_public() -> None:
    def curator(rows: int | None) -> Curator:
        schema = Schema.of(patient=key(), age=real(0, 120), ward=category(["north"]), unit="patient", rows=rows)
        private = Private("patients", AGES, unit=BY_PATIENT, schema=schema)
        return Curator(private, MemoryLedger({"patients": Budget(epsilon=10, delta=0.1)}))

    above, below = (m.Gaussian(query=QUERY, epsilon=1, delta=delta) for delta in (1.1e-4, 1e-4))
    for ask in ("quote", "release", "rehearse"):
        with pytest.warns(PrivacyWarning, match=r"delta = 0\.00011 is above 1/n with n = 10000"):
            getattr(curator(10_000), ask)(above)
        getattr(curator(10_000), ask)(below)
        getattr(curator(None), ask)(above)


def test_a_warning_made_an_error_stops_the_release_before_it_is_charged() -> None:
    ledger = SpyLedger({"patients": Budget(epsilon=10, delta=0.1)})
    curator = Curator(Private("patients", AGES, unit=BY_PATIENT, schema=PATIENTS), ledger)
    with pytest.raises(PrivacyWarning):  # pytest turns warnings into errors
        curator.release(m.Gaussian(query=QUERY, epsilon=1, delta=0.01))
    assert ledger.log == []


@pytest.mark.parametrize("value", ["", " ", "a\nb", "\x1b[31m", "a" * 201, None, 3, b"x"])
def test_a_label_is_printable_text(value: Any) -> None:
    with pytest.raises(ArgumentError, match="name = "):
        checks.label(value, "name")


@pytest.mark.parametrize("value", [0.0, 1.0, -0.5, 2, NAN, "x", None, True])
def test_a_bad_alpha_is_refused(value: Any) -> None:
    curator = Curator(
        Private("patients", AGES, unit=BY_PATIENT, schema=PATIENTS), MemoryLedger({"patients": Budget(epsilon=1)})
    )
    released = curator.release(m.Laplace(query=QUERY, epsilon=1))
    with pytest.raises(ArgumentError, match="alpha = "):
        released.error(value)


def test_the_ends_of_what_is_allowed_are_allowed() -> None:
    for end in (1e-100, 1e100, Fraction(1, 10**100), Fraction(10**100), Fraction(1e-100), Fraction(1e100)):
        assert checks.positive(end, "scale") > 0 and checks.bound(end, "upper") > 0
    for beyond in (9e-101, 2e100):
        with pytest.raises(ArgumentError, match="1e-100 to 1e100"):
            checks.bound(beyond, "upper")
