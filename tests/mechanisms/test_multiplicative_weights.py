"""Private multiplicative weights: exact chances of transcripts on neighbouring tables, sessions, and accuracy."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import special

from sfumato import Budget, Curator, MemoryLedger, Private, Schema, Unit, bounds, record
from sfumato.accounting import pure
from sfumato.errors import ArgumentError, BudgetError, PlanError
from sfumato.interactive import Session
from sfumato.mechanisms import PrivateMultiplicativeWeights
from sfumato.mechanisms.multiplicative_weights import _BITS, MEASURED, SYNTHETIC, UNCHECKED
from sfumato.mechanisms.synthetic import Synthetic, far_off
from sfumato.rows import Rows
from sfumato.schema import category, key
from tests.helpers import read, seeded

NAMES = ("a", "b", "c")
SCHEMA = Schema.of(u=key(), w=category(NAMES))
QUESTIONS = ((1, 0, 0), (0, 1, 0.5), (1, 1, 0), (1, 0, 0), (0, 0, 1))


def plan_for(unit: Unit = Unit(), per_unit: int = 1, **fields: Any) -> PrivateMultiplicativeWeights:  # noqa: B008
    given: dict[str, Any] = {"epsilon": 1, "updates": 2, "threshold": 4, "passes": 3, "questions": QUESTIONS}
    return PrivateMultiplicativeWeights(query=bounds.histogram("w", NAMES, unit, per_unit=per_unit), **(given | fields))


def rows_of(unit: Unit, people: list[tuple[Any, ...]]) -> Any:
    return read(
        SCHEMA,
        unit,
        u=[f"u{i}" for i, person in enumerate(people) for _ in person],
        w=[cell for person in people for cell in person],
    )


def log_chance(plan: PrivateMultiplicativeWeights, rows: Any, said: list[Any], total: float) -> float:
    """ln P(answers and total), from the definition: a sum over the noise of the threshold."""
    cells = plan.query.steps(rows, plan.exponent + _BITS).astype(object)
    gate, made = plan.gate, Synthetic(3, total, plan.passes)
    reach = 42 * gate.threshold_law.spread + 10
    z = np.arange(-math.ceil(reach), math.ceil(reach) + 1, dtype=np.float64)
    chance = _log_discrete(gate.threshold_law.spread, z)
    known = 0.0
    if plan.total is None:
        known += _log_rounded(plan.law.scale, round(math.ldexp(total, -plan.exponent)) - (int(cells.sum()) << _BITS))
    left = plan.updates
    for question, answer in zip(plan.questions, said, strict=True):
        whole = plan.accept(question, rows.table)
        weights = np.ldexp(whole.astype(np.float64), -_BITS)
        if not left:
            assert answer["from"] == UNCHECKED and answer["value"] == weights @ made.cells
            continue
        truth = np.array([int(whole.astype(object) @ cells)])
        off = far_off(truth, np.array(float(weights @ made.cells)), plan.exponent)
        u = float(plan.test.in_units(off, gate.finer)[0])
        # above: u + nu >= z
        tail = _log_tail(gate.query_law.spread, z - u)
        if answer["from"] == SYNTHETIC:
            chance = chance + np.log(-np.expm1(np.minimum(tail, -1e-300)))
            continue
        chance = chance + tail
        left -= 1
        known += _log_rounded(plan.law.scale, round(math.ldexp(answer["value"], -plan.exponent)) - int(truth[0]))
        made.learn(weights, answer["value"])
    return float(special.logsumexp(chance)) + known


def _log_discrete(scale: float, z: np.ndarray) -> np.ndarray:
    return -np.abs(z) / scale + math.log(math.tanh(0.5 / scale))


def _log_tail(scale: float, k: np.ndarray) -> np.ndarray:
    """ln P(nu >= k) of the two-sided geometric law."""
    upper = -np.maximum(k, 0) / scale - math.log1p(math.exp(-1 / scale))
    lower = np.log1p(-np.exp(-(1 - np.minimum(k, 0)) / scale - math.log1p(math.exp(-1 / scale))))
    return np.where(k >= 1, upper, lower)


def _log_rounded(scale: float, k: int) -> float:
    if k == 0:
        return math.log(-math.expm1(-0.5 / scale))
    return -abs(k) / scale + math.log(math.sinh(0.5 / scale))


def pairs(unit: Unit) -> list[tuple[Any, Any]]:
    people: list[tuple[Any, ...]] = [("a",), ("b",), ("c",)]
    if unit.column is not None:
        people += [("a",) * 5, ("a", "b", "c")]
    if unit.change == "replace":
        changes = [(("a",), ("b",)), (("c",), ("a",)), (("b",), (None,))]
    else:
        changes = [((None,) * len(p) if unit.change == "zero-out" else (), p) for p in people]
    return [
        (rows_of(unit, [one] * unit.group + more), rows_of(unit, [other] * unit.group + more))
        for one, other in changes
        for more in ([("a",)] * 9,)
    ]


def transcripts(plan: PrivateMultiplicativeWeights, total: float) -> list[list[Any]]:
    """All ways in which the tests may turn out, with values far out, where the noise tells most."""
    found = []
    far = 2.0**14
    for pattern in range(2 ** len(plan.questions)):
        made, left, said = Synthetic(3, total, plan.passes), plan.updates, []
        for place, question in enumerate(plan.questions):
            weights = np.ldexp(plan.accept(question, SCHEMA.table()).astype(np.float64), -_BITS)
            if not left:
                said.append({"value": weights @ made.cells, "from": UNCHECKED})
            elif pattern >> place & 1:
                said.append({"value": far, "from": MEASURED})
                made.learn(weights, far)
                left -= 1
            else:
                said.append({"value": weights @ made.cells, "from": SYNTHETIC})
        found.append(said)
    return found


def worst_loss(plan: PrivateMultiplicativeWeights) -> float:
    worst = 0.0
    total = 24.0 if plan.total is None else float(plan.total)
    hoped = transcripts(plan, total)
    for one, other in pairs(plan.unit):
        for said in hoped:
            worst = max(worst, abs(log_chance(plan, one, said, total) - log_chance(plan, other, said, total)))
    return worst


@pytest.mark.parametrize("unit", [Unit(), Unit(change="replace"), Unit("user:u"), Unit(group=2)], ids=str)
def test_no_transcript_tells_neighbours_apart_by_more_than_epsilon(unit: Unit) -> None:
    plan = plan_for(unit, per_unit=2 if unit.column else 1, questions=QUESTIONS[:3])
    assert pure.epsilon(plan.event) == 1
    assert 0.4 <= worst_loss(plan) <= 1 + 1e-7


@record.record("test-pmw-quiet/1")
@dataclass(frozen=True, kw_only=True)
class Quiet(PrivateMultiplicativeWeights):
    """Guarantee: none. The tests draw hardly any noise."""

    @property
    def gate(self) -> Any:
        gate = super().gate
        law = type(gate.query_law)
        return replace(
            gate, query_law=law(gate.query_law.spread / 20), threshold_law=law(gate.threshold_law.spread / 20)
        )


@record.record("test-pmw-unpaid/1")
@dataclass(frozen=True, kw_only=True)
class Unpaid(PrivateMultiplicativeWeights):
    """Guarantee: none. Each measurement has the noise of a single one."""

    @property
    def law(self) -> Any:  # type: ignore[override]
        law = super().law
        return replace(law, scale=law.scale / (self.updates + 1))


@pytest.mark.parametrize("mutant", [Quiet, Unpaid])
def test_mutants_are_caught_by_the_same_check(mutant: Any) -> None:
    plan = plan_for(questions=QUESTIONS[:3])
    names = ("query", "epsilon", "updates", "threshold", "passes", "questions")
    assert worst_loss(mutant(**{name: getattr(plan, name) for name in names})) > 1.1


def test_runs_follow_the_law_that_was_checked() -> None:
    """How often the first question crosses, against the chance of it by the formula."""
    plan = plan_for(Unit(change="replace"), questions=QUESTIONS[:1], total=12, updates=1, epsilon=2)
    rows, runs = rows_of(plan.unit, [("a",)] * 9 + [("b",)] * 3), 3000
    run = seeded(3)
    crossed = sum(plan._run(rows, run)[0]["from"] == MEASURED for _ in range(runs)) / runs
    cells = np.array([9, 3, 0])
    off = far_off(np.array([int(cells[0]) << _BITS]), np.array(4.0), plan.exponent)
    u = float(plan.test.in_units(off, plan.gate.finer)[0])
    z = np.arange(-20000.0, 20001.0)
    chance = float(
        np.exp(_log_discrete(plan.gate.threshold_law.spread, z) + _log_tail(plan.gate.query_law.spread, z - u)).sum()
    )
    assert abs(crossed - chance) < 5 * math.sqrt(chance * (1 - chance) / runs)


def test_a_session_of_200_adaptive_questions_stays_accurate() -> None:
    """Half a million rows over 32 cells; each question is chosen after the last answer. All answers are within
    `accuracy`: at one in a thousand with seeded noise, and with the true noise of a session at one in ten billion."""
    cells, n = 32, 500_000
    names = tuple(range(cells))
    rng = np.random.default_rng(5)
    chance = np.exp(-np.arange(cells) / 4.0)
    column = rng.choice(cells, size=n, p=chance / chance.sum())
    truth = np.bincount(column, minlength=cells)
    unit = Unit()
    plan = PrivateMultiplicativeWeights(query=bounds.histogram("w", names, unit), epsilon=1, updates=60)
    private = Private("big", {"w": column}, unit=unit, schema=Schema.of(w=category(names)))
    ledger = MemoryLedger({"big": Budget(epsilon=1)})
    curator = Curator(private, ledger)

    def talk(session: Session, failure: float) -> None:
        answer, bar = 0.0, plan.accuracy(failure, 200)
        for place in range(200):
            edge = place % cells if place < 64 else int(abs(answer)) % cells
            weights = (np.arange(cells) <= edge).astype(float) if place % 2 else (np.arange(cells) == edge) * 0.5
            answer = session.ask(weights)
            assert abs(answer - weights @ truth) <= bar
        assert not session.over
        origins = [each["from"] for each in session.release.raw]
        assert origins.count(MEASURED) < 60 and UNCHECKED not in origins
        assert len(session.release.value) == 200 and len(session.release.error()) == 200

    rows = Rows.read(private.table, {"w": column}, unit)
    talk(Session(plan, seeded(), None, private.table, lambda: rows), 1e-3)  # type: ignore[arg-type]
    with curator.session(plan) as session:
        talk(session, 1e-10)
    assert plan.accuracy(0.05, 200) < n / 50
    with pytest.raises(BudgetError):
        curator.release(replace(plan, questions=((0,) * cells,)))


def test_after_the_last_update_it_answers_without_looking() -> None:
    plan = plan_for(updates=1, epsilon=5, threshold=1, questions=())
    conversation = plan._begin(seeded())
    rows, nobody = rows_of(Unit(), [("a",)] * 500), rows_of(Unit(), [])
    first = plan.accept((1, 0, 0), SCHEMA.table())
    assert conversation.answer(rows, first)["from"] == MEASURED
    answers = [conversation.answer(data, first) for data in (rows, nobody)]
    assert answers[0] == answers[1] and answers[0]["from"] == UNCHECKED and not conversation.over
    assert plan.error(answers, 0.05) == [None, None]


def test_error_bars_cover() -> None:
    plan = plan_for(Unit(change="replace"), total=40, epsilon=2, threshold=6, updates=2)
    rows, runs = rows_of(plan.unit, [("a",)] * 25 + [("b",)] * 15), 400
    truth = np.array([np.array(q, dtype=float) @ [25, 15, 0] for q in QUESTIONS])
    run = seeded(8)
    missed = told = 0
    for _ in range(runs):
        raw = plan._run(rows, run)
        bars = plan.error(raw, 0.1)
        for value, bar, wanted in zip(plan.finish(raw), bars, truth, strict=True):
            if bar is not None:
                told += 1
                missed += abs(value - wanted) > bar
    assert told > 400 and missed <= 0.1 * told + 4 * math.sqrt(0.1 * told)


def test_questions_are_read_in_any_form_and_kept_exactly() -> None:
    plan = plan_for(questions=[np.array([0.5, 0.0, 1.0]), (Fraction(1, 3), 0, True + 0)])
    assert plan.questions == ((Fraction(1, 2), 0, 1), (Fraction(1, 3), 0, 1))
    table = SCHEMA.table()
    assert plan.accept(np.array([1, 0, 1], dtype=np.int8), table).tolist() == [1 << _BITS, 0, 1 << _BITS]
    assert plan.accept([1 / 3, 0, 1], table).tolist() == [21845, 0, 1 << _BITS]
    assert record.parse(record.canonical(plan)) == plan
    for wrong in ([1, 0], [2, 0, 0], [-0.1, 0, 0], [math.nan, 0, 0], ["1", 0, 0], "abc", None, [[1], 0, 0], [None] * 3):
        with pytest.raises(PlanError, match="weights from 0 to 1"):
            plan.accept(wrong, table)


@pytest.mark.parametrize("unit", [Unit("user:u"), Unit("user:u", change="replace", group=1000)], ids=str)
def test_large_contributions_stay_exact(unit: Unit) -> None:
    for per_unit in (1, 40, 2**18 if unit.group == 1 else 1000):
        plan = plan_for(unit, per_unit=per_unit, epsilon=1)
        assert math.ceil(plan.moved) * plan.gate.finer < 2**61
        raw = plan._run(rows_of(unit, [("a", "b")] * 40), seeded())
        assert all(map(math.isfinite, plan.finish(raw)))


@pytest.mark.parametrize("people", [[], [(None,)], [("a",)], [("c",)] * 200], ids=len)
def test_odd_data_is_answered(people: list[tuple[Any, ...]]) -> None:
    for fields in ({"epsilon": 1e-5}, {"epsilon": 9, "threshold": 1e-90}, {"threshold": 1e90}, {"threshold": None}):
        plan = plan_for(**fields)
        raw = plan._run(rows_of(Unit(), people), seeded())
        assert len(raw) == 5 and all(map(math.isfinite, plan.finish(raw)))
        expected = plan.expected_error(0.05)
        assert expected is not None and expected > 0 and plan.explain()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"query": bounds.mean("x", 0, 1, Unit())}, "query"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": 2e-9}, "epsilon"),
        ({"updates": 0}, "updates"),
        ({"updates": 1001}, "updates"),
        ({"threshold": 0}, "threshold"),
        ({"threshold": math.nan}, "threshold"),
        ({"total": 3}, "total"),
        ({"passes": 0}, "passes"),
        ({"questions": ((1, 0),)}, "question"),
        ({"questions": 7}, "questions"),
    ],
)
def test_nonsense_is_refused_at_birth(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        replace(plan_for(), **fields)
