"""A plan says what it asks and what bounds one unit: from the marks of its fields, and safe where there are none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato import Unit, bounds, contributions, partition, questions, record, repeat, schema, sequence
from sfumato.errors import RecordError
from sfumato.mechanisms import Exponential, Gaussian, Laplace, Quantile, ThresholdKeys
from sfumato.plan import Plan
from sfumato.query import Limits, sql
from sfumato.report.accounts import old_entries
from sfumato.report.accounts.plans import bound_words
from tests.rules.test_kind_rules import EXAMPLES, QUERIES

ROW, USER = Unit(), Unit("user:id")
COUNT = Laplace(query=bounds.count(ROW), epsilon=1)


def text(plan: Any) -> str:
    return record.canonical(plan).decode("ascii")


def examples() -> Iterator[Plan[Any, Any]]:
    for make in EXAMPLES.values():
        yield make()
    for query in QUERIES.values():
        yield Laplace(query=query, epsilon=1)


EVERY = list(examples())
NAMES = [f"{type(plan).__name__} {type(getattr(plan, 'query', None)).__name__}" for plan in EVERY]


@pytest.mark.parametrize("plan", EVERY, ids=NAMES)
def test_what_a_plan_says_of_itself_is_json(plan: Plan[Any, Any]) -> None:
    assert json.loads(json.dumps(plan.asks())) == plan.asks() != []
    assert tuple(json.loads(json.dumps(plan.contribution_bounds()))) == plan.contribution_bounds()


TURNED_TODAY = (
    "Sql",
    "SGD",
    "SqlReport",
    "SqlSeries",
    "SqlStages",
    "SqlWorkload",
)  # their limits, hints and speed were taken for a part of the question


@pytest.mark.parametrize("plan", EVERY, ids=NAMES)
def test_a_question_is_the_one_that_was_read_from_stored_plans(plan: Plan[Any, Any]) -> None:
    same = questions.digest(plan.asks()) == old_entries.question(text(plan))
    assert same == (type(plan).__name__ not in TURNED_TODAY)


@pytest.mark.parametrize("plan", EVERY, ids=NAMES)
def test_bounds_are_those_that_were_read_from_stored_plans(plan: Plan[Any, Any]) -> None:
    """But for filters, which name rows and clamp nothing, and for radii, which were not listed."""
    before = [dict(bound) for bound in old_entries.contribution_bounds(text(plan)) if bound["kind"] != "between/1"]
    more = ("radius", contributions.WORDS)
    now = [{name: limit for name, limit in bound.items() if name not in more} for bound in plan.contribution_bounds()]
    assert now == before


@pytest.mark.parametrize(
    "plan",
    [plan for plan in EVERY if type(plan).__name__ not in ("SqlReport", "SqlSeries", "SqlStages", "SqlWorkload")],
)  # younger than those
def test_the_words_are_those_that_were_made_of_stored_plans(plan: Plan[Any, Any]) -> None:
    """Of bounds, which say theirs where limits do not speak by their names, and of what is done with noisy numbers."""
    for bound in plan.contribution_bounds():
        wordless = {name: limit for name, limit in bound.items() if name != contributions.WORDS}
        assert bound_words(bound, plan.unit.noun) == bound_words(wordless, plan.unit.noun)
    assert plan.afterwards() == old_entries.post_processing(text(plan))


@record.record("plan-test-of-marks/1")
@dataclass(frozen=True, kw_only=True)
class Marked(Laplace):
    """Fields of every mark, and one of none."""

    family = ""
    plain: Any = 3
    price: Any = field(default=3, metadata=questions.PRICE)
    reach: Any = field(default=3, metadata=questions.REACH)
    clip: Any = field(default=Fraction(3), metadata=questions.CLIP)
    coarse: Any = field(default=31, metadata=questions.COARSE)
    fine: Any = field(default=1, metadata=questions.FINE)
    listed: Any = field(default=(1, 2), metadata=questions.ANY_ORDER)
    later: Any = field(default=None, metadata=record.LATER)
    shown: Any = field(default=None, metadata=record.SHOWN)


def same(one: Plan[Any, Any], other: Plan[Any, Any]) -> bool:
    return questions.digest(one.asks()) == questions.digest(other.asks())


MARKED = Marked(query=bounds.count(ROW), epsilon=1)


@pytest.mark.parametrize(
    "value", [4, 3.0001, 3 + 1e-12, Fraction(9_000_001, 3_000_000), "3", None, True, (3,), {"a": 3}, np.int64(4)]
)
def test_a_field_of_which_nothing_is_said_is_part_of_the_question(value: Any) -> None:
    assert not same(MARKED, replace(MARKED, plain=value))


@pytest.mark.parametrize(
    ("name", "alike", "different"),
    [
        ("plain", 3.0, 3.1),
        ("price", 4, None),
        ("reach", 4, None),
        ("clip", Fraction(31, 10), 4),
        ("coarse", 34, 36),
        ("fine", Fraction(100001, 100000), Fraction(1001, 1000)),
        ("listed", (2, 1), (1, 3)),
        ("later", None, 1),
        ("shown", "otherwise", None),
        ("epsilon", 2, None),
    ],
)
def test_a_mark_says_what_a_field_is_to_the_question(name: str, alike: Any, different: Any) -> None:
    assert same(MARKED, replace(MARKED, **{name: alike}))
    assert different is None or not same(MARKED, replace(MARKED, **{name: different}))


def test_limits_are_the_fields_that_are_marked_so() -> None:
    own, query = MARKED.contribution_bounds()
    assert own == {"of": "plan", "kind": "plan-test-of-marks/1", "reach": 3, "clip": "3"}
    assert query == {"of": "query", "kind": "count/1", "per_unit": 1}


def test_nothing_is_part_of_no_question_without_being_marked() -> None:
    """Of all fields of the package's plans, those that are left out or rounded are marked where they are declared."""
    for plan in EVERY:
        for f in fields(plan):
            mark = next((mark for mark in questions.marks(type(plan)) if mark.name == f.name), None)
            assert mark is None or (mark.part == "all") == ("part of the question" not in f.metadata)


def test_a_value_without_json_is_refused() -> None:
    with pytest.raises(RecordError, match="no JSON"):
        replace(MARKED, plain=object()).asks()


def test_parts_are_asked_one_by_one() -> None:
    wards = Laplace(query=bounds.histogram("ward", ("a", "b"), ROW), epsilon=1)
    both = sequence(one=COUNT, two=repeat(wards, 3))
    assert sorted(map(questions.written, both.asks())) == sorted(map(questions.written, COUNT.asks() + wards.asks()))
    assert sequence(a=COUNT, b=replace(COUNT, epsilon=Fraction(2))).asks() == COUNT.asks()
    parts = partition("ward", ("a", "b"), COUNT).asks()
    assert [part[:3] for part in parts] == [["for", "ward", "a"], ["for", "ward", "b"]]


def test_a_family_answers_one_question() -> None:
    assert COUNT.family == Gaussian(query=bounds.count(ROW), rho=1).family == "value"
    assert COUNT.asks() == Gaussian(query=bounds.count(ROW), rho=1).asks()
    assert Exponential(query=bounds.votes("ward", ("a", "b"), ROW), epsilon=1).family == "best"
    assert Quantile(column="age", lower=0, upper=9, epsilon=1, protects=ROW).family == "quantile"
    assert ThresholdKeys(column="word", protects=ROW, epsilon=1, delta=1e-3).family == "keys"
    assert repeat(COUNT, 2).family == ""
    assert {type(plan).__name__ for plan in EVERY if plan.wraps} == {
        "Sequence", "Repeat", "Partition", "Joint", "SqlReport", "SqlSeries", "SqlStages", "Tidy",
    }  # fmt: skip


def test_bounds_stand_where_they_are_in_the_plan() -> None:
    sums = bounds.clipped_sum("age", 0, 120, USER, per_unit=2)
    nested = repeat(repeat(Laplace(query=sums, epsilon=1), 2), 2).contribution_bounds()
    limits = {"column": "age", "per_unit": 2, "lower": "0", "upper": "120"}
    assert nested == ({"of": "plan.plan.query", "kind": "sum/1", **limits},)


def test_dates_are_told_as_dates_and_public_tables_bound_nobody() -> None:
    tables = {
        "visits": schema.Table({"id": schema.key(), "day": schema.date("2020-01-01", "2020-12-31")}, unit="id"),
        "wards": schema.Table({"ward": schema.category(("a",)), "beds": schema.whole(0, 9)}, private=False),
    }
    found = list(contributions.within(schema.Schema(tables), "schema"))
    day = {"lower": "2020-01-01", "upper": "2020-12-31"}
    words = "day, where it is added up or ranked, is clamped to 2020-01-01 ... 2020-12-31"
    assert found == [{"of": "schema.tables.visits.columns.day", "kind": "column/1", **day, "words": words}]


def query(**how: Any) -> Plan[Any, Any]:
    columns = {"id": schema.key(), "days": schema.real(0, 9)}
    tables = schema.Schema({"visits": schema.Table(columns, unit="id")})
    return sql("SELECT SUM(days) AS total FROM visits", tables, unit=USER, **{"epsilon": 1, **how})


def test_a_query_says_its_limits_or_that_an_adviser_measures_them() -> None:
    bound = {"of": "schema.tables.visits.columns.days", "kind": "column/1", "lower": "0", "upper": "9"}
    clamped = "days, where it is added up or ranked, is clamped to 0 ... "
    measured = "up to where one id counts in full was measured, for a part of the price: see the notes on the answer"
    advised, *rest = query(delta=1e-6).contribution_bounds()
    assert advised == {"of": "limits", "kind": "sql-advised", "words": measured}
    assert rest == [bound | {"words": f"{clamped}9"}]
    limits, own = query(limits=Limits(rows=2), bounds={"days": (0, 5)}).contribution_bounds()
    assert limits["kind"] == "sql-limits/1" and limits["rows"] == "2" and limits["lengths"] == "add up"
    assert limits["words"].startswith(
        "one id counts in full up to 2 row(s) over all groups; where ids are counted, in "
    )
    fixed = {"of": "bounds.days", "kind": "sql-bounds", "column": "days", "lower": "0", "upper": "5"}
    assert own == fixed | {"words": f"{clamped}5"}


def test_a_query_at_other_limits_and_hints_asks_the_same() -> None:
    one = query(limits=Limits(rows=2))
    assert same(one, query(limits=Limits(rows=7), epsilon=3)) and same(one, query(delta=1e-6, floor=True))
    assert not same(one, query(limits=Limits(rows=2), bounds={"days": (0, 90)}))
