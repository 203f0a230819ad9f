"""O6: rows that are owned through keys. Without one person, and the rows whose keys lead to nobody else, an answer
moves by what was declared: also where the person has many orders, shares keys with others, and holds some twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.audit.sql_losses import SLACK
from sfumato.errors import SfumatoError
from sfumato.query import Limits
from sfumato.schema import Schema, Table, category, key, real
from sfumato.units import Unit

from ..mutants import queries
from .asking import LIBRARY, Asks, before_noise, moved
from .verdict import Verdict

PERSON = Unit("user:person")
CHAIN = Schema(
    {
        "people": Table({"person": key(), "ward": category(["a", "b"])}, unit="person"),
        "orders": Table({"id": key(), "buyer": key(), "ward": category(["a", "b"])}, owner="buyer -> people.person"),
        "items": Table({"order": key(), "item": key(), "x": real(-1, 1)}, owner="order -> orders.id"),
        "notes": Table({"item": key(), "x": real(-1, 1)}, owner="item -> items.item"),
    }
)
_PER_KEY = '(SELECT "order" AS k, COUNT(*) AS n, MAX(x) AS x FROM items GROUP BY "order") AS s'
ASKED = (
    "SELECT COUNT(*) AS n, SUM(x) AS s FROM items",
    "SELECT COUNT(*) AS n, SUM(x) AS s FROM notes",
    'SELECT o.ward, COUNT(*) AS n, SUM(i.x) AS s FROM orders o JOIN items i ON i."order" = o.id GROUP BY o.ward',
    "SELECT p.ward, COUNT(*) AS n FROM people p, orders o, items i, notes t WHERE p.person = o.buyer AND "
    'i."order" = o.id AND t.item = i.item GROUP BY p.ward',
    f"SELECT COUNT(*) AS n, SUM(x) AS s FROM {_PER_KEY}",
    f"SELECT COUNT(*) AS n FROM orders o JOIN {_PER_KEY} ON s.k = o.id WHERE s.n > 1",
    'SELECT COUNT(*) AS n FROM items a JOIN items b ON a."order" = b."order" AND a.item <> b.item',
    'SELECT COUNT(*) AS n, SUM(x) AS s FROM (SELECT x FROM items QUALIFY ROW_NUMBER() OVER (PARTITION BY "order" '
    "ORDER BY x) = 1)",
    'SELECT COUNT(DISTINCT "order") AS k, COUNT(DISTINCT item) AS i FROM items',
)


def _tables(orders: int, *, victim: bool) -> Mapping[str, Mapping[str, list[Any]]]:
    """Twenty people with two orders each; the victim has many. Each order has three items, each item a note. Some keys
    are the victim's twice, some are somebody's besides: those rows stay."""
    whose = [(f"o{person} {i}", f"p{person}") for person in range(1, 21) for i in range(2)]
    mine = [(f"o0 {i}", "p0") for i in range(orders)]
    shared = [(f"o0 {i}", f"p{1 + i % 20}") for i in range(0, orders, 7)]
    mine += mine[::5] + [(f"o{1 + i % 20} 0", "p0") for i in range(10)]
    owned = whose + shared + (mine if victim else [])
    ids = {each for each, _ in owned}
    items = [(each, f"{each}/{i}") for each in sorted({name for name, _ in [*whose, *mine]} & ids) for i in range(3)]
    people = [f"p{i}" for i in range(0 if victim else 1, 21)]
    return {
        "people": {"person": people, "ward": ["a"] * len(people)},
        "orders": {
            "id": [each for each, _ in owned], "buyer": [who for _, who in owned],
            "ward": ["ab"[len(each) % 2] for each, _ in owned],
        },
        "items": {
            "order": [each for each, _ in items], "item": [item for _, item in items], "x": [1.0] * len(items),
        },
        "notes": {"item": [item for _, item in items], "x": [-1.0] * len(items)},
    }  # fmt: skip


def attack(asks: Asks = LIBRARY, *, orders: int = 400) -> Verdict:
    shares: dict[str, float] = {}
    refused = 0
    whole, gone = _tables(orders, victim=True), _tables(orders, victim=False)
    for text in ASKED:
        try:
            plan = asks(text, CHAIN, unit=PERSON, epsilon=1, delta=1e-6, limits=Limits(rows=2, keys=2, values=2))
            shares[text[:60]] = moved(plan, before_noise(plan, whole), before_noise(plan, gone))
        except SfumatoError:
            refused += 1
    worst = max(shares.values(), default=0.0)
    text = (
        f"One person with {orders} orders moves an answer by {worst:.9g} of what was declared, in {len(shares)} "
        f"queries along keys; {refused} were refused."
    )
    return Verdict("O6", worst > SLACK, text, {"worst": worst, "refused": float(refused), **shares})


CONTROL: Asks = queries.making(queries.KeysSayWho)
