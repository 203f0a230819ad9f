"""Q4 and Q5: a unit that tries to count for more than one, and bounds that the data itself sets.

Q4  one user with very many rows in three tables that are joined, a self join, a union of a table with itself, rows
    repeated by subqueries, windows, public tables that fan out, values chosen by row numbers, squares beyond 2^63:
    what one unit moves, before the noise, beside what was declared. (The generator of random queries does the rest.)
    Units that are replaced, groups of them, and queries with an adviser: beside the noise that is drawn.
Q5  bounds and conditions that come from everybody's rows: refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sfumato.audit.made_up import MadeUp
from sfumato.audit.sql_losses import SLACK, beside_noise
from sfumato.errors import PlanError, SfumatoError
from sfumato.query import Limits, Sql, SqlStages
from sfumato.schema import Schema, Table, category, flag, key, real, whole
from sfumato.units import Unit

from ..mutants import queries
from .asking import LIBRARY, Asks, before_noise, here, moved
from .verdict import Verdict

USER, ROW = Unit("user:u"), Unit()
HEAVY = 10_000

SCHEMA = Schema(
    {
        "visits": Table(
            {
                "u": key(), "x": real(-10, 10), "n": whole(0, 5), "w": category(["a", "b", "c"]), "ok": flag(),
                "tag": key(),
            },
            unit="u",
        ),
        "orders": Table({"who": key(), "amount": real(0, 50), "item": key()}, unit="who", names="u"),
        "claims": Table({"u": key(), "cost": real(0, 9)}, unit="u"),
        "places": Table({"w": category(["a", "b", "c"]), "region": key()}, private=False),
    }
)  # fmt: skip
ROWS = Schema(
    {
        "t": Table({"w": category(["a", "b"]), "x": real(0, 50)}),
        "p": Table({"w": category(["a", "b"]), "item": key()}, private=False),
    }
)

QUESTIONS = (
    "SELECT w, COUNT(*) AS n, COUNT(DISTINCT u) AS k, SUM(x) AS s, AVG(x) AS m FROM visits GROUP BY w",
    "SELECT tag, COUNT(*) AS n, SUM(x) AS s FROM visits GROUP BY tag",
    "SELECT COUNT(*) AS n, SUM(a.x + b.x) AS s FROM visits a JOIN visits b ON a.u = b.u AND a.w = b.w AND b.n = 1",
    "SELECT COUNT(*) AS n, SUM(amount) AS s FROM visits JOIN orders ON u = who AND n = 0 JOIN claims USING (u)",
    "SELECT COUNT(*) AS n, SUM(x) AS s FROM (SELECT u, x FROM visits UNION ALL SELECT u, x FROM visits) q",
    "SELECT COUNT(*) AS n, SUM(y) AS s FROM (SELECT u, x AS y FROM visits UNION ALL SELECT who, amount FROM orders) q",
    "SELECT region, COUNT(*) AS n FROM visits JOIN places USING (w) GROUP BY region",
    "SELECT COUNT(*) AS n, SUM(c) AS s FROM (SELECT u, w, COUNT(*) AS c FROM visits GROUP BY u, w) q WHERE c < 1e9",
    "SELECT SUM(r) AS s FROM (SELECT u, ROW_NUMBER() OVER (PARTITION BY u ORDER BY x) AS r FROM visits) q WHERE r < 9",
    "SELECT COUNT(d) AS n FROM (SELECT u, SUM(DISTINCT n) AS d FROM visits GROUP BY u) q",
    "SELECT g, COUNT(*) AS n FROM (SELECT u, MODE(tag) AS g FROM visits GROUP BY u) q GROUP BY g",
    "SELECT SUM(c) AS s FROM (SELECT u, COUNT(*) OVER (PARTITION BY u ORDER BY x RANGE BETWEEN 1 PRECEDING AND 2 "
    "FOLLOWING) AS c FROM visits) q",
    "SELECT name, COUNT(*) AS n, COUNT(DISTINCT (tag, n)) AS k FROM visits JOIN (VALUES ('a', 'one'), ('a', 'two'), "
    "('b', 'two')) AS t(w, name) USING (w) GROUP BY name",
    "SELECT MEDIAN(x) AS m, HISTOGRAM(x, [-10, 0, 10]) AS h, COUNT(DISTINCT tag) AS k FROM visits",
    "SELECT w, MEDIAN(x) AS m, COUNT(DISTINCT tag) AS k FROM visits GROUP BY w",
    "SELECT COUNT(*) AS n FROM visits a LEFT JOIN orders o ON a.u = o.who AND o.amount > 10 AND a.n = 2",
    "SELECT COUNT(*) AS n FROM visits a FULL JOIN claims c USING (u) WHERE n = 3 OR n IS NULL",
    "SELECT COUNT(*) AS n FROM visits a ANTI JOIN orders o ON a.u = o.who",
    "SELECT COUNT(*) AS n FROM visits a WHERE (SELECT COUNT(*) FROM visits b WHERE b.u = a.u) > 200",
    "SELECT COUNT(*) AS n FROM visits a WHERE NOT EXISTS (SELECT 1 FROM claims c WHERE c.u = a.u AND c.cost > 9 + a.n)",
    "SELECT SUM(x) AS s FROM visits WHERE u IN (SELECT who FROM orders GROUP BY who HAVING COUNT(*) > 10)",
    "SELECT SUM(x) AS s FROM visits a WHERE x > (SELECT AVG(b.x) FROM visits b WHERE b.u = a.u)",
    "WITH visits AS (SELECT u, x FROM visits WHERE ok) SELECT COUNT(*) AS n, SUM(x) AS s FROM visits",
    'SELECT COUNT(*) AS n FROM (SELECT u AS "U", x AS k0, w AS q0 FROM visits) "k0" JOIN claims q0 ON "k0"."u" = q0.u',
    "SELECT CASE WHEN u = '0' THEN 'me' ELSE 'they' END AS g, COUNT(*) AS n FROM visits GROUP BY g",
    "SELECT CAST(u AS VARCHAR) || '' AS g, COUNT(*) AS n FROM visits GROUP BY g",
    "SELECT u.x AS g, COUNT(*) AS n FROM (SELECT u, ROUND(x) AS x FROM visits) u GROUP BY g",
)
_OPEN = {"s": (-20, 60)}
BEYOND = "SELECT tag, SUM(x) AS s FROM visits GROUP BY tag"

BY_ROW = (
    "SELECT COUNT(DISTINCT item) AS k FROM t JOIN p USING (w)",
    "SELECT w, COUNT(*) AS n, SUM(x) AS s, AVG(x) AS m FROM t GROUP BY w",
    "SELECT COUNT(*) AS n FROM t",
    "SELECT item, COUNT(*) AS n, SUM(x) AS s FROM t JOIN p USING (w) GROUP BY item",
    "SELECT MEDIAN(x) AS m, HISTOGRAM(x, [0, 10, 50]) AS h FROM t JOIN p USING (w)",
    "SELECT HISTOGRAM(x, [0, 10, 50]) AS h FROM t",
)

OTHERWISE = (
    "SELECT w, COUNT(*) AS n, COUNT(DISTINCT u) AS k, SUM(x) AS s FROM visits GROUP BY w",
    "SELECT MEDIAN(x) AS m, HISTOGRAM(x, [-10, 0, 10]) AS h, COUNT(DISTINCT tag) AS k FROM visits",
    "SELECT SUM(x) AS s FROM visits",
)

BOUNDS_OF_DATA = (
    "SELECT SUM(greatest(least(x, MAX(x)), MIN(x))) FROM visits",
    "SELECT SUM(greatest(least(x, (SELECT MAX(x) FROM visits)), 0)) FROM visits",
    "SELECT SUM(least(x, m)) FROM (SELECT u, x, MAX(x) OVER () AS m FROM visits) q",
    "SELECT SUM(least(x, m)) FROM (SELECT u, x, MAX(x) OVER (PARTITION BY w) AS m FROM visits) q",
    "SELECT SUM(x) FROM visits WHERE x < (SELECT AVG(x) FROM visits)",
    "SELECT SUM(x) FROM visits WHERE x > ALL (SELECT amount FROM orders)",
    "SELECT SUM(x) FROM visits WHERE tag IN (SELECT who FROM orders)",
    "SELECT SUM(x) FROM visits WHERE u IN (SELECT item FROM orders)",
    "SELECT SUM(x) FROM visits v WHERE EXISTS (SELECT 1 FROM orders o WHERE o.who = v.u OR o.amount > 9)",
    "SELECT SUM(x) FROM visits v WHERE EXISTS (SELECT 1 FROM orders v WHERE v.who = v.who)",
    "SELECT SUM(x) FROM visits v WHERE EXISTS (SELECT 1 FROM orders o WHERE o.item = v.tag)",
    "SELECT HISTOGRAM(x, [0, MAX(x)]) FROM visits",
    "SELECT QUANTILE(x, n) FROM visits",
    "WITH m AS (SELECT w, MAX(x) AS t FROM visits GROUP BY w) SELECT SUM(x) FROM visits JOIN m USING (w) WHERE x < t",
    "SELECT SUM(x) FROM visits, (SELECT AVG(x) AS m FROM visits) q WHERE x < m",
    "SELECT COUNT(*) FROM visits LIMIT (SELECT MAX(n) FROM visits)",
    "SELECT SUM(1.0 * LENGTH(tag)) FROM visits",
    "WITH m AS (SELECT MAX(x) AS top FROM visits) SELECT SUM(least(x, top)) FROM visits, m",
    "SELECT SUM(x) FROM visits JOIN places USING (w) WHERE region IN (SELECT item FROM orders)",
    "SELECT SUM(x) FROM visits JOIN (SELECT w FROM places WHERE w IN (SELECT w FROM visits)) p USING (w)",
    "SELECT SUM(a.x) FROM visits a JOIN visits b ON a.w = b.w",
    "SELECT SUM(a.x) FROM visits a JOIN visits b ON a.u = b.u OR TRUE",
    "SELECT SUM(a.x) FROM visits a JOIN visits b ON CAST(a.u AS VARCHAR) = CAST(b.u AS VARCHAR)",
    "SELECT SUM(a.x) FROM (SELECT tag AS u, x FROM visits) a JOIN visits b USING (u)",
    "SELECT SUM(a.x) FROM (SELECT CASE WHEN ok THEN u END AS u, x FROM visits) a JOIN visits b USING (u)",
)


def tables(heavy: int = HEAVY) -> dict[str, dict[str, list[Any]]]:
    """User 0 has `heavy` rows in the first table and a few in others, NULL is nobody, the rest have one to three."""
    draw = MadeUp(5)
    who = [0] * heavy + [i for i in range(1, 60) for _ in range(1 + i % 3)] + [None] * 5
    some = len(who)
    visits = {
        "u": [None if each is None else str(each) for each in who],
        "x": draw.uniform(-12, 12, some).tolist(),
        "n": [min(i % 60, 5) for i in range(some)],
        "w": [["a", "b", "c", None][int(i)] for i in draw.below(4, some)],
        "ok": [bool(i % 2) for i in range(some)],
        "tag": [f"t{i % 97}" for i in range(some)],
    }
    buys = [0] * 20 + list(range(1, 40, 2))
    orders = {"who": buys, "amount": draw.uniform(0, 60, len(buys)).tolist(), "item": [f"i{i % 7}" for i in buys]}
    claims = {"u": [0] * 20 + list(range(30)), "cost": draw.uniform(0, 10, 50).tolist()}
    places = {"w": ["a", "a", "b", "e", None], "region": ["r1", "r2", "r1", "r3", "r4"]}
    return {"visits": visits, "orders": orders, "claims": claims, "places": places}


def without(everybody: Mapping[str, Mapping[str, list[Any]]], user: str) -> dict[str, dict[str, list[Any]]]:
    owners = {"visits": "u", "orders": "who", "claims": "u"}
    left = {}
    for name, columns in everybody.items():
        cells = columns[owners[name]] if name in owners else [None] * len(next(iter(columns.values())))
        places = [i for i, each in enumerate(cells) if str(each) != user]
        left[name] = {column: [values[i] for i in places] for column, values in columns.items()}
    return left


def attack(
    asks: Asks = LIBRARY, by_row: Asks | None = None, *, heavy: int = HEAVY, questions: Sequence[str] = QUESTIONS
) -> Verdict:
    """Q4."""
    shares: dict[str, float] = {}
    everybody = tables(heavy)
    for text in questions:
        for delta in (1e-6, 0):
            if not delta and any(f" {each} AS g" in text or f"BY {each}" in text for each in ("tag", "g")):
                continue
            limits = Limits(rows=3, keys=2, values=2, most_keys=500)
            bounds = _OPEN if "AS s" in text and "SUM(" in text and "SUM(x) AS s" not in text else {}
            options = {"epsilon": 1, "limits": limits, "bounds": bounds} | ({"delta": delta} if delta else {})
            plan = asks(text, SCHEMA, unit=USER, **options)
            try:
                whole_ = before_noise(plan, everybody)
            except PlanError:
                if here():
                    raise
                shares[text] = 0.0  # the engine declares that it does not run it: nothing was read
                continue
            for user in ("0", "1", "2"):
                share = moved(plan, whole_, before_noise(plan, without(everybody, user)))
                shares[text] = max(shares.get(text, 0.0), share)
    for text in BY_ROW:
        shares[text] = _row(by_row or asks, text)
    shares[BEYOND] = _beyond(asks)
    if asks is LIBRARY:
        for text in OTHERWISE:
            shares[f"otherwise: {text}"] = _otherwise(asks, text, everybody)
    worst = max(shares, key=lambda question: shares[question])
    text = f"One unit moves at most {shares[worst]:.9g} of what was declared, by {worst!r}."
    return Verdict("Q4", shares[worst] > SLACK, text, {text[:60]: share for text, share in shares.items()})


def _beyond(asks: Asks) -> float:
    """One user far beyond every limit in so many groups that the squares of it pass 2^63: in integers of 64 bits they
    would wrap below 0, and who counts for less than nothing gets full weight."""
    worst = 0.0
    for groups in (8, 12, 16):
        tags = [f"t{i}" for i in range(groups)]
        plan = asks(BEYOND, SCHEMA, unit=USER, epsilon=1, delta=1e-6, limits=Limits(rows=1, keys=1, reach={"s": 1e-3}))
        visits: dict[str, list[Any]] = {
            "u": ["0"] * groups + ["1"] * groups,
            "x": [10.0] * (2 * groups),
            "tag": tags * 2,
        }
        visits |= {"n": [0] * (2 * groups), "w": ["a"] * (2 * groups), "ok": [True] * (2 * groups)}
        everybody = {**tables(1), "visits": visits}
        worst = max(worst, moved(plan, before_noise(plan, everybody), before_noise(plan, without(everybody, "0"))))
    return worst


def _otherwise(asks: Asks, text: str, everybody: Mapping[str, Mapping[str, list[Any]]]) -> float:
    """Who is replaced by somebody else, three who go at once, and what the adviser leaves of the budget."""
    worst = 0.0
    limits = Limits(rows=3, keys=2, values=2, most_keys=500)
    gone = without(without(without(everybody, "0"), "1"), "2")
    neighbours = {
        Unit("user:u", change="replace"): tuple(_replaced(everybody, *who) for who in ((10.0, "a"), (-10.0, "b"))),
        Unit("user:u", group=3): (everybody, gone),
    }
    for delta in (1e-6, 0):
        options: dict[str, Any] = {"epsilon": 1} | ({"delta": delta} if delta else {})
        for unit, tables_ in neighbours.items():
            plan = asks(text, SCHEMA, unit=unit, limits=limits, **options)
            worst = max(worst, beside_noise(plan, *(before_noise(plan, each) for each in tables_)))
        plan, advised = (asks(text, SCHEMA, unit=USER, limits=each, **options) for each in (limits, None))
        assert isinstance(advised, Sql)
        left = float(1 - advised.advice)
        share = beside_noise(
            plan, before_noise(plan, everybody), before_noise(plan, without(everybody, "0")), advised.design(limits)
        )
        worst = max(worst, share / (left**0.5 if delta else left))
    return worst


def _replaced(everybody: Mapping[str, Mapping[str, list[Any]]], x: float, w: str) -> dict[str, dict[str, list[Any]]]:
    """User 0 is somebody all of whose rows say the same: against somebody else, everything moves one way."""
    visits = dict(everybody["visits"])
    for name, cell in (("x", x), ("w", w), ("tag", f"{w} alone")):
        visits[name] = [cell if who == "0" else old for who, old in zip(visits["u"], visits[name], strict=True)]
    return {**{table: dict(columns) for table, columns in everybody.items()}, "visits": visits}


def _row(asks: Asks, text: str) -> float:
    """Rows that are units: the first is taken away, so that all others have other numbers."""
    items = {"w": ["a"] * 300 + ["b"] * 2, "item": [f"w{i}" for i in range(302)]}
    worst = 0.0
    for size in (300, 301):
        w = np.array(["a", "b"] * size)[:size]
        x = np.linspace(0, 50, size)
        limits = Limits() if "JOIN" in text else Limits(rows=0.01)  # no weight holds a lone row to less than one row
        plan = asks(text, ROWS, unit=ROW, epsilon=1, delta=1e-6, limits=limits)
        pair = [before_noise(plan, {"t": {"w": w[k:], "x": x[k:]}, "p": items}) for k in (0, 1)]
        worst = max(worst, moved(plan, *pair))
    return worst


def data_bounds(asks: Asks = LIBRARY) -> Verdict:
    """Q5."""
    taken = []
    for text in BOUNDS_OF_DATA:
        try:
            plan = asks(text, SCHEMA, unit=USER, epsilon=1, delta=1e-6, limits=Limits())
        except SfumatoError:
            continue
        if not isinstance(plan, SqlStages):  # which release such a bound first, with noise: that is Q7's affair
            taken.append(text)
    text = f"{len(taken)} of {len(BOUNDS_OF_DATA)} queries with bounds out of the data were taken: {taken[:1]}."
    return Verdict("Q5", bool(taken), text, {"taken": len(taken)})


CONTROL: Asks = queries.making(queries.RowsForUsers)
ROW_CONTROL: Asks = queries.making(queries.NumbersChoose)
WRITTEN: Asks = queries.as_written
