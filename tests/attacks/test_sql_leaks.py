"""Ways in which SQL told of single rows, or could have: one test each, with what would have shown it beside it."""

from __future__ import annotations

import copy
import logging
import pickle
import random
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sfumato.openings
from sfumato import Budget, Curator, MemoryLedger, Private, Schema, Unit
from sfumato.errors import DataError
from sfumato.query import Limits, sql
from sfumato.query.refusal import QueryError
from sfumato.schema import Table, category, flag, key, real
from sfumato.sources import connect, source
from sfumato_referee.attacks.asking import before_noise

USER = Unit("user:u")
SCHEMA = Schema(
    {"t": Table({"u": key(), "s": key(), "w": category(["a", "b"]), "ok": flag(), "x": real(0, 9)}, unit="u")}
)


@pytest.mark.parametrize("condition", ["s", "w", "x", "CASE WHEN u = '42' THEN s ELSE 'true' END"])
@pytest.mark.parametrize("aggregate", ["COUNT(*)", "SUM(x)", "MEDIAN(x)", "COUNT(DISTINCT x)", "HISTOGRAM(x, [0, 9])"])
def test_a_filter_is_a_condition(aggregate: str, condition: str) -> None:
    """A text there was cast to a truth value by the engine, and the release failed where a cell spelt none."""
    with pytest.raises(QueryError, match="true or false"):
        sql(f"SELECT {aggregate} FILTER (WHERE {condition}) AS a FROM t", SCHEMA, unit=USER, epsilon=1, limits=Limits())


def test_counting_values_is_not_counting_truths() -> None:
    text = "SELECT COUNT(ok) AS a, COUNT(*) FILTER (WHERE ok) AS b, COUNT_IF(ok) AS c FROM t"
    plan = sql(text, SCHEMA, unit=USER, epsilon=1, limits=Limits(rows=4))
    columns = {
        "u": range(100),
        "s": ["p"] * 100,
        "w": ["a"] * 100,
        "ok": [i < 30 for i in range(100)],
        "x": [1.0] * 100,
    }
    raw = before_noise(plan, {"t": {name: list(cells) for name, cells in columns.items()}})
    assert sorted(round(each[0]) for each in raw["numbers"].values()) == [30, 30, 100]


@pytest.mark.parametrize(
    "text", ["SELECT COUNT(*) AS n FROM t", "SELECT w, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY w"]
)
def test_rows_that_are_units_are_all_counted(text: str) -> None:
    schema = Schema({"t": Table({"w": category(["a", "b"]), "x": real(0, 9)})})
    plan = sql(text, schema, unit=Unit(), epsilon=1)
    raw = before_noise(plan, {"t": {"w": np.array(["a", "b"] * 50), "x": np.full(100, 2.0)}})
    assert sum(raw["numbers"]["rows"]) == 100


def test_an_aggregate_that_is_none_of_ours_is_refused_in_words() -> None:
    for text in ("any_value(s)", "first(x)", "arg_max(s, x)"):
        with pytest.raises(QueryError, match="blurred"):
            sql(f"SELECT {text} AS a FROM t", SCHEMA, unit=USER, epsilon=1)


# Q6: time


def test_q6_a_stopped_statement_says_what_every_failure_says_and_stays_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    """One unit whose rows multiply in a self join. That it takes longer is seen from outside: the promise says so."""
    plain = sfumato.openings.connect
    monkeypatch.setattr(
        sfumato.openings, "connect", lambda *given, **named: plain(*given, **named, seconds=0.3, threads=1)
    )
    text = "SELECT SUM(a.x * b.x) AS n FROM t AS a JOIN t AS b ON a.u = b.u AND a.x + b.x > 1"
    ledger = MemoryLedger({"few": Budget(epsilon=10), "many": Budget(epsilon=10)})
    before = ledger.left("many")
    for name, rows in (("few", 60), ("many", 60_000)):
        columns = {"u": np.zeros(rows), "s": np.arange(rows), "w": np.full(rows, "a"), "ok": np.ones(rows, dtype=bool)}
        private = Private(name, {**columns, "x": np.ones(rows)}, unit=USER, schema=SCHEMA)
        plan, curator = sql(text, private, epsilon=1, limits=Limits()), Curator(private, ledger)
        if name == "few":  # it is the time that fails the other
            assert curator.release(plan).receipt is not None
            continue
        with pytest.raises(DataError) as failed:
            curator.release(plan)
    assert str(failed.value) == DataError.TEXT and failed.value.__context__ is None
    assert ledger.left("many") == ledger.left("few") != before


# P1: what objects say of themselves


def test_p1_nothing_that_is_printed_logged_or_stored_holds_a_cell(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    draw = random.Random(4)
    cells = [f"cell{draw.randrange(10**12):012d}" for _ in range(1000)]
    people = [f"name{draw.randrange(10**12):012d}" for _ in range(1000)]
    columns: dict[str, Any] = {"u": people, "s": cells, "w": ["a"] * 1000, "ok": [True] * 1000, "x": [1.0] * 1000}
    private = Private("d", columns, unit=USER, schema=SCHEMA)
    curator = Curator(private, MemoryLedger({"d": Budget(epsilon=10, delta=1e-3)}))
    texts = (
        "SELECT w, COUNT(*) AS n, AVG(LENGTH(s)) AS m FROM t GROUP BY w",
        "SELECT s, COUNT(*) AS n FROM t GROUP BY s",
        "SELECT COUNT(DISTINCT s) AS n, MEDIAN(CAST(s AS DOUBLE)) AS m FROM t WHERE s LIKE 'cell%'",
    )
    said = []
    with caplog.at_level(logging.DEBUG):
        for text in texts:
            bounds = {"m": (0, 9)} if " m " in text else {}
            plan = sql(text, private, epsilon=1, delta=1e-6, limits=Limits(), bounds=bounds)
            released = curator.release(plan)
            said += [
                repr(plan),
                str(released),
                repr(released),
                repr(released.value),
                released.explain(),
                str(plan.front),
            ]
            said += [repr(released.receipt), str(vars(released.value))]
        with connect({"t": (SCHEMA.table("t"), source(columns))}) as session:  # type: ignore[attr-defined]
            said += [repr(session), repr(private), repr(curator.private), repr(source(columns))]
            for each in (private, session):
                for store in (pickle.dumps, copy.copy, copy.deepcopy):
                    if each is session and store is copy.copy:
                        continue
                    with pytest.raises(TypeError) as refused:
                        store(each)
                    said.append("".join(traceback.format_exception(refused.value)))
    out, err = capfd.readouterr()
    everything = "\n".join(map(str, [*said, caplog.text, out, err]))
    assert len(everything) > 2000
    assert [each for each in (*cells, *people) if each in everything] == []
