"""Units that keep a sample of their groups: a rule on their own rows, and the rest is left out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import ArgumentError
from sfumato.query import running
from sfumato.schema import Table, key, real
from sfumato.sources import connect, source

VISITS = Table({"who": key(), "shop": key(), "paid": real(0, 9)}, name="visits", unit="who")
SCHEMA = sf.Schema({"visits": VISITS})
WHO = sf.Unit("user:who")
QUERY = "SELECT shop, COUNT(*) AS n, SUM(paid) AS total FROM visits GROUP BY shop"


def sums(data: pa.Table, **limits: Any) -> dict[Any, tuple[int, ...]]:
    """The exact integers by shop, before noise."""
    keys = {"shop": [f"s{i}" for i in range(8)]}
    plan = sf.sql(QUERY, SCHEMA, unit=WHO, epsilon=1, delta=1e-6, keys=keys, limits={"rows": 1000, **limits})
    assert plan.fixed is not None
    opened = connect({"visits": (VISITS, source(data))})
    try:
        rows = opened.run(running._sums(plan.front, plan.fixed).statement).to_pylist()
    finally:
        opened.close()
    return {row["k0"]: (int(row["s0"]), int(row["s1"])) for row in rows}


def table(seed: int = 1, people: int = 60) -> pa.Table:
    random = np.random.default_rng(seed)
    who = random.integers(0, people, 3000)
    shops = [f"s{i}" for i in random.integers(0, 8, 3000)]
    return pa.table({"who": who, "shop": shops, "paid": random.random(3000) * 9})


def test_a_unit_keeps_so_many_groups_and_all_its_rows_there() -> None:
    data = table()
    everything, some = sums(data), sums(data, sample=2)
    assert set(some) == set(everything) and all(some[shop][0] < everything[shop][0] for shop in some)
    assert sums(data, sample=8) == everything
    one = data.filter(pa.compute.equal(data["who"], 7))
    alone = sums(one, sample=2)
    assert len(alone) == 2 and all(alone[shop] == sums(one)[shop] for shop in alone)


def test_what_others_keep_is_their_own_affair() -> None:
    data = table()
    without = data.filter(pa.compute.not_equal(data["who"], 7))
    alone = sums(data.filter(pa.compute.equal(data["who"], 7)), sample=3)
    both, others = sums(data, sample=3), sums(without, sample=3)
    for shop in both:
        mine = alone.get(shop, (0, 0))
        assert both[shop] == tuple(a + b for a, b in zip(others[shop], mine, strict=True))


def test_the_salt_draws_anew() -> None:
    data = table()
    assert sums(data, sample=2) == sums(data, sample=2, salt=0) != sums(data, sample=2, salt=1)


def test_a_sample_is_for_units_with_groups() -> None:
    with pytest.raises(ArgumentError, match="sample"):
        sf.sql("SELECT COUNT(*) AS n FROM visits", SCHEMA, unit=WHO, epsilon=1, limits={"sample": 2})
    for wrong in (0, -1, 1.5, "2"):
        with pytest.raises(ArgumentError, match="sample"):
            sf.Limits(sample=wrong)
