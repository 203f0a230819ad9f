"""Record and replay of pipelines on sfumato's own curator: honest ones of many shapes pass, planted ones are found."""

from __future__ import annotations

import json
import random
import time
import uuid
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from sfumato import Budget, Curator, Unit, bounds, events, repeat, reserve, sequence
from sfumato import mechanisms as m
from sfumato.audit.replays import recording
from sfumato.audit.replays.recording import EXCEPTION, KINDS, MOVES, NUMBER, OUTSIDE, OVERSPENT, PUBLIC, RESULT, SHAPE
from sfumato.audit.replays.replayed import Replayed
from sfumato.audit.replays.replaying import replay
from sfumato.errors import ArgumentError, BudgetError, DataError
from sfumato.noise import Noise, SecureBits
from sfumato.plan import Run
from sfumato.schema import Schema, Table, category, real
from sfumato_referee.attacks import glue
from sfumato_referee.mutants.pipelines import PLANTED, ROW, VISITS, WARDS, Planted

COUNT = m.Laplace(query=bounds.count(ROW), epsilon=1)
SLOW = {"SQL", "a training", "a training loop of one's own"}


def ask(pipeline: Any, **more: Any) -> Replayed:
    return replay(pipeline, **{"schema": VISITS, "unit": ROW, "most": 24, **more})


def keys(told: Replayed) -> set[tuple[str, str]]:
    return {each.key for each in told.findings}


# The planted ones


@pytest.mark.parametrize("planted", PLANTED, ids=lambda each: each.name.replace(" ", "-"))
def test_a_planted_bug_is_found_for_what_it_is(planted: Planted) -> None:
    told = replay(planted.pipeline, **planted.more)
    assert planted.kind in told.kinds
    assert told.broken == (planted.kind != recording.UNUSED)
    assert planted.kind in str(told) and planted.kind in told._repr_html_()


def test_every_kind_of_finding_has_a_planted_bug() -> None:
    assert {each.kind for each in PLANTED} == set(KINDS)
    assert len(PLANTED) >= 12 and len({each.name for each in PLANTED}) == len(PLANTED)


# Honest pipelines


@pytest.mark.parametrize(
    "honest",
    [
        pytest.param(each, id=each.name.replace(" ", "-"), marks=[pytest.mark.slow] if each.name in SLOW else [])
        for each in glue.HONEST
    ],
)
def test_an_honest_pipeline_passes(honest: glue.Honest) -> None:
    if honest.needs:
        pytest.importorskip(honest.needs)
    told = replay(honest.pipeline, **{"most": 30, **honest.more})
    assert not told.findings, str(told)
    assert not told.notes and told.calls and told.verdict == "nothing found"


def test_what_names_a_run_is_not_held_against_it() -> None:
    def stamped(curator: Any) -> Any:
        release = curator.release(COUNT, note="today")
        print(f"done at {time.perf_counter()}")
        return {
            "release": release,
            "receipt": release.receipt,
            "id": uuid.uuid4().hex,
            "at": time.perf_counter(),
            "draw": np.random.default_rng().integers(10**9),
            "draw of its own seed": np.random.default_rng(seed=7).integers(10**9),
            "name": random.random(),
            "value": release.value,
        }

    told = ask(stamped)
    assert not told.findings
    assert any("result.id" in note for note in told.notes) and any("result.at" in note for note in told.notes)
    assert not any("draw" in note or "name" in note or "value" in note for note in told.notes)


def test_a_leak_beside_a_time_stamp_is_found() -> None:
    def leaking(curator: Any, data: Any) -> Any:
        return {"at": time.perf_counter(), "n": len(data["age"]), "count": curator.release(COUNT).value}

    assert keys(ask(leaking)) == {(RESULT, "result.n")}


def test_chance_that_the_size_moves_proves_nothing_by_itself() -> None:
    """A public draw that comes after a shuffle of n rows is another one on a neighbour, and no leak."""

    def shuffled(curator: Any, data: Any) -> Any:
        np.random.permutation(len(data["age"]))
        return curator.release(COUNT).value, float(np.random.random())

    told = ask(shuffled)
    assert not told.findings and any("chance outside" in note for note in told.notes)


def test_unseeded_noise_on_the_data_is_seen() -> None:
    def own(curator: Any, data: Any) -> Any:
        noise = np.random.default_rng()
        return curator.release(COUNT).value, len(data["age"]) + noise.laplace()

    assert keys(ask(own)) == {(OUTSIDE, "result[1]")}


def test_a_plan_run_by_hand_is_seen() -> None:
    """Twice on one charge: the second time past the ledger."""

    def twice(curator: Any) -> Any:
        with curator.supervise(reserve(unit=ROW, budget=Budget(epsilon=1))) as run:
            return run.release(COUNT), float(COUNT._run(run.data, Run(Noise(SecureBits())))[0])

    assert keys(ask(twice)) == {(OUTSIDE, "result[1]")}


def test_the_body_of_a_reserve_may_not_look() -> None:
    def looking(curator: Any, data: Any) -> Any:
        wide = 1 + int(np.nan_to_num(data["age"]).max(initial=0) > 50)

        def body(run: Any) -> Any:
            return [run.release(m.Laplace(query=bounds.count(Unit()), epsilon=0.25)) for _ in range(wide)]

        return curator.release(reserve(body, unit=ROW, budget=Budget(epsilon=1))).value

    kinds = ask(looking, most=None).kinds
    assert PUBLIC in kinds  # what a body closes over is a part of the plan, and goes into the ledger
    assert NUMBER in kinds


def test_bodies_inside_lists_and_repetitions_are_taped() -> None:
    def nested(curator: Any) -> Any:
        def body(run: Any) -> Any:
            first = run.release(m.Laplace(query=bounds.count(Unit()), epsilon=0.25))
            return first if first < 3 else run.release(m.Laplace(query=bounds.count(Unit()), epsilon=0.125))

        inner = reserve(body, unit=ROW, budget=Budget(epsilon=0.5))
        return curator.release(sequence(twice=repeat(inner, 2), rows=COUNT)).value

    told = ask(nested, claim=2)
    assert not told.findings and not told.notes
    names = [name for name, _ in told.calls]
    assert names[:2] == ["body of Sequence", "body of Repeat"] and names.count("body of Reserve") == 2


def test_a_failing_plan_that_fails_on_all_is_no_finding_and_one_that_tells_is() -> None:
    def failing(rows: Any) -> Any:
        raise ValueError

    def telling(rows: Any) -> Any:
        return [1.0 / len(rows)]

    def pipeline(fn: Any) -> Any:
        query = bounds.declared(fn, ROW, reads={"age": real(0, 100)}, labels=("x",), l1=1, l2=1, linf=1)

        def run(curator: Any) -> Any:
            try:
                return curator.release(m.Laplace(query=query, epsilon=1)).value
            except DataError:
                return None

        return run

    assert not ask(pipeline(failing)).findings
    assert EXCEPTION in ask(pipeline(telling)).kinds


def test_an_answer_from_the_store_stays_free_in_the_replay() -> None:
    def again(curator: Any) -> Any:
        return [curator.release(COUNT).value for _ in range(3)]

    assert not ask(again, claim=1, budget=Budget(epsilon=1)).findings


def test_a_refusal_of_the_ledger_is_the_same_on_neighbours() -> None:
    def greedy(curator: Any) -> Any:
        plans = [m.Laplace(query=bounds.count_where(ROW, {"ward": [ward]}), epsilon=1) for ward in WARDS]
        answers = []
        for plan in plans:
            try:
                answers.append(curator.release(plan).value)
            except BudgetError as problem:
                answers.append(str(problem))
        return answers

    told = ask(greedy, budget=Budget(epsilon=2))
    assert not told.findings and not told.notes


def test_a_pipeline_that_never_comes_through_is_not_called_clean_without_a_word() -> None:
    told = ask(lambda curator: curator.release(COUNT).value, budget=Budget(epsilon=0.5))
    assert not told.findings and any("BudgetError" in note for note in told.notes)
    assert told.verdict == "could not be judged" and not told.broken
    nothing = ask(lambda curator: 1)
    assert nothing.verdict == "nothing was recorded" and not nothing.broken


def test_a_pipeline_that_does_something_else_every_time_is_not_called_clean() -> None:
    def wild(curator: Any) -> Any:
        if SecureBits().words(1)[0] % 2:
            curator.release(m.Gaussian(query=bounds.count(ROW), epsilon=1, delta=1e-6))
        return curator.release(COUNT).value

    told = ask(wild, most=30)
    assert not told.findings and told.verdict == "could not be judged"


@pytest.mark.parametrize("change", ["add-remove", "replace", "zero-out"])
def test_every_relation(change: Any) -> None:
    unit = Unit(change=change)
    plan = m.Laplace(query=bounds.clipped_sum("age", 0, 100, unit), epsilon=1)

    def honest(curator: Any) -> Any:
        return curator.release(plan).value

    def sized(curator: Any, data: Any) -> Any:
        return curator.release(plan).value / max(1, len(data["age"]))

    def peeking(curator: Any, data: Any) -> Any:
        return curator.release(plan).value, float(np.nan_to_num(data["age"]).max(initial=0.0))

    assert not replay(honest, schema=VISITS, unit=unit, most=30).findings
    found = replay(sized, schema=VISITS, unit=unit, most=30).kinds
    assert found == ({RESULT} if change == "add-remove" else set())  # elsewhere the number of rows is public
    assert RESULT in replay(peeking, schema=VISITS, unit=unit, most=30).kinds


def test_a_group_moves_a_query_by_as_much_as_it_says() -> None:
    unit = Unit(group=3)

    def honest(curator: Any) -> Any:
        return curator.release(m.Laplace(query=bounds.clipped_sum("age", 0, 100, unit), epsilon=1)).value

    assert not replay(honest, schema=VISITS, unit=unit, most=20).findings


def test_the_worst_movement_is_told() -> None:
    planted = next(each for each in PLANTED if each.name == "the same, vouched for in a plan")
    (found,) = replay(planted.pipeline, **planted.more).findings
    # a square of 100 where 100 is declared
    assert found.kind == MOVES and found.ratio == pytest.approx(100, rel=0.01)


def test_a_claim_is_held_against_what_the_ledger_was_charged() -> None:
    def spends(curator: Any) -> Any:
        curator.release(COUNT)
        curator.release(m.Gaussian(query=bounds.histogram("ward", WARDS, ROW), epsilon=1, delta=1e-6))

    for claim in (Budget(epsilon=2, delta=1e-6), events.Approximate(epsilon=2, delta=1e-6)):
        assert not ask(spends, claim=claim, most=2).findings
    for claim in (1, Budget(epsilon=1.5, delta=1e-6), Budget(epsilon=2)):
        assert ask(spends, claim=claim, most=2).kinds == {OVERSPENT}
    rho = Budget(rho=0.6)
    assert not ask(lambda curator: curator.release(COUNT), claim=rho, most=2).findings
    assert ask(spends, claim=Budget(rho=0.5), most=2).kinds == {OVERSPENT}


def test_the_verdict_is_json_and_sorted() -> None:
    def bad(curator: Any, data: Any) -> Any:
        curator.release(COUNT, note=str(len(data["age"])))
        return list(data["age"]), len(data["age"])

    told = ask(bad, claim=0.5)
    facts = told.facts()
    assert json.loads(json.dumps(facts)) == facts and facts["broken"] is True and facts["is"] == "sfumato-replay/1"
    order = [KINDS.index(each.kind) for each in told.findings]
    assert order == sorted(order) and len(order) >= 4 and told.kinds == {RESULT, SHAPE, OVERSPENT, PUBLIC}
    assert isinstance(facts, Mapping) and facts["calls"][0]["name"] == "Laplace"


def test_values_are_told_only_of_made_up_rows() -> None:
    def bad(curator: Any, data: Any) -> Any:
        return float(curator.release(COUNT).value), float(np.sum(data["age"]))

    schema = Schema.of(age=real(0, 100))
    secret = {"age": [12.345] * 3}
    told = replay(bad, schema=schema, data=secret, unit=ROW)
    assert told.broken and "12.3" not in str(told) and "37.03" not in str(told)
    assert "on the other" in str(replay(bad, schema=schema, unit=ROW, most=3))


@pytest.mark.parametrize(
    ("pipeline", "more", "told"),
    [
        (lambda curator: None, {}, "schema"),
        (lambda: None, {}, "schema"),
        (lambda rows: None, {"schema": VISITS}, "rows"),
        (3, {"schema": VISITS}, "pipeline"),
        (lambda curator: None, {"schema": VISITS, "unit": "row"}, "unit"),
        (lambda curator: None, {"schema": VISITS, "most": 0}, "most"),
        (lambda curator: None, {"schema": VISITS, "recorder": 1}, "recorder"),
        (lambda data: None, {"data": [1, 2]}, "data"),
        (
            lambda data: None,
            {"schema": Schema({"a": Table({"x": real(0, 1)}), "b": Table({"x": real(0, 1)})})},
            "schema",
        ),
        (lambda curator: curator.release(COUNT), {"schema": VISITS, "claim": "cheap", "most": 1}, "claim"),
    ],
)
def test_arguments_are_checked(pipeline: Any, more: Any, told: str) -> None:
    with pytest.raises(ArgumentError, match=told):
        replay(pipeline, **more)


def test_the_curator_is_the_real_one() -> None:
    seen: list[Any] = []

    def look(curator: Any) -> Any:
        seen.append(curator)
        quote = curator.quote(COUNT)
        rehearsed = curator.rehearse(COUNT, rows=30).value
        return quote.price, quote.affordable, rehearsed, curator.release(COUNT).value

    assert not ask(look, most=6, budget=Budget(epsilon=2)).findings
    assert isinstance(seen[0], Curator) and all(each.ledger.verify().ok for each in seen)


@pytest.mark.slow
def test_sql_on_several_tables() -> None:
    pytest.importorskip("duckdb")
    from sfumato.query import sql

    described = Schema(
        {
            "visits": Table({"ward": category(WARDS), "days": real(0, 9)}),
            "wards": Table({"ward": category(WARDS), "floor": category(("ground", "first"))}, private=False),
        }
    )

    def honest(curator: Any) -> Any:
        text = "SELECT floor, COUNT(*) AS n FROM visits JOIN wards USING (ward) GROUP BY floor"
        return curator.release(sql(text, described, unit=ROW, epsilon=1)).to_csv()

    def leaking(curator: Any, data: Any) -> Any:
        longest = int(np.nan_to_num(np.clip(data["days"], 0, 9)).max(initial=0))
        text = f"SELECT COUNT(*) AS n FROM visits WHERE days < {longest}"
        return curator.release(sql(text, described, unit=ROW, epsilon=1)).to_csv()

    wards = {"wards": {"ward": list(WARDS), "floor": ["ground", "ground", "first"]}}
    for public in (None, wards):
        told = replay(honest, schema=described, unit=ROW, most=5, public=public)
        assert told.verdict == "nothing found" and not told.notes
    told = replay(leaking, schema=described, unit=ROW, most=3)
    assert told.kinds == {PUBLIC} and "plan.text" in told.findings[0].where
    rows = {"visits": {"ward": ["east"], "days": [2.0]}, **wards}
    more = {"visits": {"ward": ["east", "west"], "days": [2.0, 5.0]}, **wards}
    assert not replay(honest, schema=described, unit=ROW, pairs=[(rows, more)]).findings


@pytest.mark.slow
@pytest.mark.parametrize("leak", ["loss", "stop", ""])
def test_a_training_loop_that_looks_at_its_batches(leak: str) -> None:
    torch = pytest.importorskip("torch")
    from sfumato import learn
    from sfumato.learn.samples import line

    def train(curator: Any) -> Any:
        model, shown = line(), []
        more: dict[str, Any] = {"clip": 1, "multiplier": 1, "delta": 1e-3, "micro": 64, "rate": 1, "steps": 2}
        plan = learn.sgd(model, glue._off, data=curator.private, inputs="x", target="y", **more)
        optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
        with curator.supervise(plan) as run:
            for batch in run.batches():
                for x, y in batch:
                    losses = glue._off(model(x), y)
                    shown.append(float(losses.detach().sum()))
                    seen = float(x.abs().sum())
                    batch.backward(losses)
                optimiser.step()
                if leak == "stop" and round(7919 * seen) % 2:  # of two neighbours, one stops as often as not
                    break
        return shown if leak == "loss" else model

    told = replay(train, schema=Schema.of(x=real(-1, 1), y=real(-3, 3), rows=60), unit=ROW, most=10)
    if leak == "stop":
        assert NUMBER in told.kinds
    else:
        assert told.kinds == ({RESULT} if leak else set())
    assert not told.notes


@pytest.mark.slow
def test_the_attack_and_its_control() -> None:
    assert not glue.attack().broken
    assert glue.control().broken
    honest = [glue.Honest("honest", glue.own_noise, {"schema": VISITS, "unit": ROW})]
    assert not glue.control([Planted("honest", honest[0].pipeline, RESULT, honest[0].more)]).broken
    planted = PLANTED[0]
    assert glue.attack([glue.Honest(planted.name, planted.pipeline, planted.more)]).broken
    blind = glue.Honest(
        "blind", lambda curator: curator.release(COUNT), {"schema": VISITS, "budget": Budget(epsilon=0.5)}
    )
    assert glue.attack([blind]).broken  # where nothing was looked at, nothing was withstood
