"""Q2: which groups an answer has, and in which order and types, must not tell of one person.

With given keys the shape is public. With chosen keys a group that one unit alone has is shown with probability at most
delta: the law gives the probability exactly, a simulation of the same draws counts it, and whole releases show it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato.audit import surface
from sfumato.audit.counting import at_least
from sfumato.noise import Noise, SecureBits
from sfumato.query import Limits, Sql
from sfumato.schema import category, key, real
from sfumato.sources import connect
from sfumato.units import Unit

from ..mutants import queries
from .asking import LIBRARY, Asks, one_table, source_of, watched
from .verdict import FALSE_ALARM, Verdict

USER = Unit("user:u")
SCHEMA = one_table({"u": key(), "w": category(["a", "b"]), "tag": key(), "x": real(-1, 9)}, "u")
DELTA = 1e-3
RUNS = 10**6

GIVEN = (
    "SELECT w, COUNT(*) AS n, AVG(x) AS m FROM t GROUP BY w",
    "SELECT COUNT(*) AS n, MEDIAN(x) AS m, HISTOGRAM(x, [0, 1, 2]) AS h, COUNT(DISTINCT tag) AS k FROM t",
    "SELECT w, MAX(x) AS m FROM t GROUP BY w ORDER BY w",
    "SELECT w || '!' AS g, COUNT(*) AS n FROM t WHERE w <> 'b' OR x > 1 GROUP BY g",
)


def _table(u: list[Any], w: list[Any], tag: list[Any], x: list[Any]) -> dict[str, dict[str, list[Any]]]:
    return {"t": {"u": u, "w": w, "tag": tag, "x": x}}


TABLES = (
    _table([1, 2, 3], ["a", "a", "b"], ["p", "p", "p"], [1.0, 2.0, 3.0]),
    _table([], [], [], []),
    _table([1], ["b"], ["q"], [1.0]),
    _table([1, 2], [None, None], [None, None], [None, None]),
    _table([None, None], ["a", "b"], ["p", "q"], [1.0, 2.0]),
    _table([1, 2, 3], ["zz", "a", "a"], [3, "p", None], [float("nan"), -0.0, "x"]),
)


def attack(asks: Asks = LIBRARY, *, runs: int = RUNS, releases: int = 200) -> Verdict:
    shapes = 0
    for text in GIVEN:
        seen = [watched(asks, text, SCHEMA, USER, table, epsilon=1, limits=Limits()) for table in TABLES]
        shapes += sum(not each.same(seen[0]) for each in seen[1:])
    chances = [_chance(asks, groups, runs) for groups in (1, 3)]
    least = max(at_least(np.array([hits]), runs, FALSE_ALARM / 4)[0] for hits in chances)
    shown = _shown(asks, releases)
    sign, orders, impossible = _signs(asks), _orders(asks), _impossible(asks)
    often = at_least(np.array([shown]), releases, FALSE_ALARM / 4)[0]
    broken = shapes > 0 or least > DELTA or often > DELTA or sign > 1 or orders > 1 or impossible > 0
    words = (
        f"{shapes} shapes of given groups differ; one person's group shows in {max(chances)} of {runs} draws at delta "
        f"{DELTA:g}, and in {shown} of {releases} releases; 0.0 and -0.0 make {sign} kinds of key; "
        f"the same groups come in {orders} orders, and {impossible} groups that no row can be in."
    )
    figures = {"shapes": shapes, "chance at least": float(least), "shown": shown, "zeros": sign, "orders": orders}
    figures["impossible"] = impossible
    return Verdict("Q2", broken, words, figures)


def _plan(asks: Asks) -> Any:
    text = "SELECT tag, COUNT(*) AS n FROM t GROUP BY tag"
    return asks(text, SCHEMA, unit=USER, epsilon=1, delta=2 * DELTA, limits=Limits(keys=1, most_keys=3))


def _chance(asks: Asks, groups: int, runs: int) -> int:
    """How often any of the groups that one person alone is in reaches the threshold, in draws of the real law."""
    plan = _plan(asks)
    if not isinstance(plan, Sql):
        return runs
    design = plan.fixed
    assert design is not None and design.votes is not None
    height = design.votes.weight(groups, plan.blur)
    drawn = Noise(SecureBits()).draw(design.law(design.votes.coordinate), runs * groups).reshape(runs, groups)
    return int(((height + drawn) >= design.threshold).any(axis=1).sum())


def _shown(asks: Asks, releases: int) -> int:
    """Whole releases, one person with a key of their own."""
    plan = _plan(asks)
    columns = {"u": list(range(60)), "w": ["a"] * 60, "tag": ["p"] * 59 + ["mine"], "x": [1.0] * 60}
    session = connect({"t": (SCHEMA.table("t"), source_of(columns))})
    try:
        noise = Noise(SecureBits())
        return sum("mine" in surface.run(plan, session, noise)["keys"]["tag"] for _ in range(releases))
    finally:
        session.close()


def _signs(asks: Asks) -> int:
    """The sign of a zero that stands for a group is the sign of whichever row came first."""
    schema = one_table({"u": key(), "x": real(-1, 9)}, "u")
    plan: Any = asks(
        "SELECT x, COUNT(*) AS n FROM t GROUP BY x", schema, unit=USER, epsilon=1, delta=1e-6, limits=Limits()
    )
    seen = set()
    for cells in ([0.0] * 300, [-0.0] * 300, [-0.0] + [0.0] * 300, [0.0] + [-0.0] * 300):
        session = connect({"t": (schema.table("t"), source_of({"u": np.arange(len(cells)), "x": np.array(cells)}))})
        try:
            seen.add(str(surface.run(plan, session, Noise(SecureBits()))["keys"]))
        finally:
            session.close()
    return len(seen)


def _impossible(asks: Asks) -> int:
    """Groups that noise alone fills, and that people would take for small ones: products of keys that hang together."""
    text = "SELECT w, w || '!' AS v, COUNT(*) AS n FROM t WHERE w <> 'b' GROUP BY w, v"
    session = connect({"t": (SCHEMA.table("t"), source_of(_table([1, 2], ["a", "b"], ["p", "q"], [1.0, 2.0])["t"]))})
    try:
        plan: Any = asks(text, SCHEMA, unit=USER, epsilon=1, limits=Limits())
        keys = surface.run(plan, session, Noise(SecureBits()))["keys"]
    finally:
        session.close()
    return sum((w, v) != ("a", "a!") for w, v in zip(*keys.values(), strict=True))


def _orders(asks: Asks) -> int:
    """In how many orders the same chosen groups come, as rows change theirs: the first row would be one person's."""
    tags = ["p", "q", "r", "s"]
    plan: Any = asks(
        "SELECT tag, COUNT(*) AS n FROM t GROUP BY tag", SCHEMA, unit=USER, epsilon=1, delta=DELTA, limits=Limits()
    )
    seen = set()
    for first in range(len(tags)):
        cells = [tags[first], *(tags[:: (-1) ** first] * 200)]
        columns = {"u": list(range(len(cells))), "w": ["a"] * len(cells), "tag": cells, "x": [1.0] * len(cells)}
        session = connect({"t": (SCHEMA.table("t"), source_of(columns))})
        try:
            tags_shown = surface.run(plan, session, Noise(SecureBits()))["keys"]["tag"]
        finally:
            session.close()
        if set(tags_shown) == set(tags):
            seen.add(tuple(tags_shown))
    return len(seen)


CONTROL: Asks = queries.making(queries.EveryGroup)
