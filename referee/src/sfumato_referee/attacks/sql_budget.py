"""B1, R1 and R2: many questions instead of a clever one.

B1  the same query a thousand times: one charge, and the same bytes each time. Typed otherwise (another alias, other
    order of conditions) it is the same query, with the same numbers; one that merely comes to the same (x + 0) is
    another query, and is charged.
R1  Dinur and Nissim 2003: random subset counts, and least squares for everybody's bit. Laplace noise of epsilon 1 per
    query gives all bits away; under one budget either queries are refused, or no more bits are found than the budget
    allows: a share of e^eps / (1 + e^eps).
    (The bits are tossed anew in each run: the bound is for an attacker to whom they are fair coins.)
R2  COUNT(*) beside COUNT(*) without one person: two charges, and together they show no more than the two.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import stats

from sfumato import record
from sfumato.accounting.filters import Budget
from sfumato.audit import telling
from sfumato.audit.made_up import MadeUp
from sfumato.curator import Curator
from sfumato.errors import BudgetError, PrivacyWarning
from sfumato.ledger.memory import MemoryLedger
from sfumato.noise import Noise, SecureBits
from sfumato.private import Private
from sfumato.query import Limits, sql
from sfumato.schema import Schema, category, flag, key, real
from sfumato.units import Unit

from .asking import before_noise, one_table, source_of
from .verdict import FALSE_ALARM, Verdict, without_warnings

USER = Unit("user:u")
SCHEMA = one_table({"u": key(), "w": category(["a", "b"]), "x": real(0, 9)}, "u")
QUERY = "SELECT COUNT(*) AS n FROM t WHERE x > 1 AND w = 'a'"
ALIKE = (
    "SELECT COUNT(*) AS m FROM t WHERE x > 1 AND w = 'a'",
    "SELECT COUNT(*) AS n FROM t WHERE w = 'a' AND x > 1",
    "SELECT COUNT(*) AS n FROM t AS s WHERE (1 < s.x) AND 'a' = s.w",
    "select  count(*) as n from T where X > 1 and w = 'a';",
)
OTHERS = (
    "SELECT COUNT(*) AS n FROM t WHERE x + 0 > 1 AND w = 'a'",
    "SELECT COUNT(1) AS n FROM t WHERE x > 1 AND w = 'a'",
    "SELECT COUNT(*) AS n FROM t WHERE x > 1 OR w = 'a'",
    "SELECT COUNT(*) AS n FROM t WHERE x >= 1 AND w = 'a'",
    "SELECT COUNT(*) AS n FROM t WHERE x > 1 AND w = 'A'",
    "SELECT COUNT(*) AS n FROM t WHERE NOT (x > 1 AND w = 'a')",
)
PAIR = ("SELECT COUNT(*) AS n FROM t", "SELECT COUNT(*) AS n FROM t WHERE u <> 7")
BITS, QUERIES = 128, 1024
_SHARE = Fraction(1, 512)  # half of the queries are refused


def _curator(schema: Schema, columns: Any, budget: Any) -> tuple[Curator, MemoryLedger]:
    ledger = MemoryLedger({"d": Budget(epsilon=budget)})
    return Curator(Private("d", source_of(columns), unit=USER, schema=schema), ledger), ledger


def _count(text: str, epsilon: Any, schema: Schema) -> Any:
    return sql(text, schema, unit=USER, epsilon=epsilon, limits=Limits())


def repeating(*, repeats: int = 1000, stores: bool = True) -> Verdict:
    """B1. Without a store of answers, which is the planted bug, every repeat draws anew; `stores` False plants it."""
    columns = {"u": list(range(50)), "w": ["a", "b"] * 25, "x": [2.0] * 50}
    curator, ledger = _curator(SCHEMA, columns, 10)
    plan = _count(QUERY, Fraction(1, 100), SCHEMA)
    answers = {record.canonical(curator.release(plan).raw)}
    before = ledger.spent("d")
    for _ in range(repeats - 1):
        if not stores:  # the same question to a ledger that knows of none
            curator, _ledger = _curator(SCHEMA, columns, 10)
        answers.add(record.canonical(curator.release(plan).raw))
    for text in ALIKE if stores else ():
        answers.add(record.canonical(curator.release(_count(text, Fraction(1, 100), SCHEMA)).raw))
    free = stores and ledger.spent("d") != before
    unpaid = 0
    for text in OTHERS:
        left = ledger.spent("d")
        curator.release(_count(text, Fraction(1, 100), SCHEMA))
        unpaid += stores and ledger.spent("d") == left
    broken = len(answers) > 1 or bool(free) or unpaid > 0
    words = f"{repeats} repeats gave {len(answers)} answers; {unpaid} of {len(OTHERS)} others were not charged."
    return Verdict("B1", broken, words, {"answers": len(answers), "unpaid": unpaid})


def differencing(*, apart: bool = False) -> Verdict:
    """R2: the pair is paid for as two. `apart` plants a ledger for each query, so that the second is never added."""
    columns = {"u": list(range(50)), "w": ["a", "b"] * 25, "x": [2.0] * 50}
    curator, ledger = _curator(SCHEMA, columns, 1)
    paid = 0
    for text in PAIR:
        before = ledger.spent("d")
        curator.release(_count(text, Fraction(1, 2), SCHEMA))
        paid += ledger.spent("d") != before
        if apart:
            curator, _ = _curator(SCHEMA, columns, 1)
    try:
        curator.release(_count("SELECT COUNT(*) AS n FROM t WHERE u <> 8", Fraction(1, 2), SCHEMA))
        refused = False
    except BudgetError:
        refused = True
    shown = _pair_shows()
    words = (
        f"{paid} of 2 queries were charged; a third beyond the budget was {'refused' if refused else 'answered'}; the "
        f"pair shows an epsilon of {shown:.3g}, and 1 is paid for it."
    )
    return Verdict("R2", paid != 2 or not refused or shown > 1, words, {"paid": paid, "epsilon at least": shown})


def _pair_shows(runs: int = 100_000) -> float:
    """The epsilon that many such pairs prove, from the real noise on what is below it, with and without person 7."""
    noise, sides = Noise(SecureBits()), []
    for people in (range(50), [each for each in range(50) if each != 7]):
        answers = []
        for text in PAIR:
            plan = _count(text, Fraction(1, 2), SCHEMA)
            (coordinate,) = plan.fixed.sums
            columns = {"u": list(people), "w": ["a"] * len(people), "x": [2.0] * len(people)}
            (truth,) = before_noise(plan, {"t": columns})["numbers"][coordinate.measure.name]
            drawn = noise.draw(plan.fixed.law(coordinate), runs).astype(np.float64)
            answers.append(truth + np.ldexp(drawn, coordinate.exponent - coordinate.bits))
        sides.append(np.stack(answers, axis=1))
    return telling.most_telling(*sides, claims={0.0: 1.0}, false_alarm=FALSE_ALARM).epsilon


def reconstruction(
    *, per_query: Any = None, budget: Any = 1, people: int = BITS, queries: int = QUERIES, seed: int = 1
) -> Verdict:
    """R1, of a promise of epsilon = 1 in all. Spending 1 on each query, with a budget that lets all of them pass, is
    the control: nobody adds up."""
    subsets = MadeUp(seed).below(2, queries * people).reshape(queries, people)
    secret = Noise(SecureBits()).integers(2, people)
    schema = one_table({"u": key(), "bit": flag()}, "u")
    answers: list[float] = []
    with without_warnings(PrivacyWarning):
        curator, _ = _curator(schema, {"u": np.arange(people), "bit": secret.astype(bool)}, budget)
        for row in subsets:
            members = ", ".join(map(str, np.flatnonzero(row)))
            plan = _count(f"SELECT COUNT(*) AS n FROM t WHERE bit AND u IN ({members})", per_query or _SHARE, schema)
            try:
                answers.append(float(curator.release(plan).raw["numbers"]["rows"][0]))
            except BudgetError:
                break
    guess = np.linalg.lstsq(subsets[: len(answers)].astype(float), np.array(answers), rcond=None)[0] > 0.5
    right, allowed = int((guess == secret).sum()), math.e / (1 + math.e)
    chance = float(stats.binom.sf(right - 1, people, allowed))
    words = (
        f"{len(answers)} of {queries} queries were answered; {right} of {people} bits found, {allowed:.3f} are allowed."
    )
    return Verdict("R1", chance < FALSE_ALARM, words, {"share": right / people, "answered": len(answers)})


def forgetful() -> Verdict:
    """The control of B1."""
    return repeating(repeats=20, stores=False)


def nobody_adds_up() -> Verdict:
    """The control of R1."""
    return reconstruction(per_query=1, budget=QUERIES)


def one_charge() -> Verdict:
    """The control of R2."""
    return differencing(apart=True)
