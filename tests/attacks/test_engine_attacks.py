"""Q1 to Q5, N1 to N5, R1, R2 and B1 where the tables are in a database: the same attacks, the same verdicts.

What is refused from its text alone (most of Q3, all of N5 and Q5) is the same on all engines; what cells do is not.
"""

from __future__ import annotations

import functools
import itertools
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sfumato.sources import Source
from sfumato_referee.attacks import sql_arguments, sql_budget, sql_errors, sql_numbers, sql_reach, sql_shapes, sql_units
from sfumato_referee.attacks.asking import placed
from sfumato_referee.attacks.verdict import Verdict
from tests.sources.dbapi import kit as dbapi_kit
from tests.sources.postgres import kit as postgres_kit
from tests.sources.spark import kit as spark_kit

_NAMES = itertools.count()


@functools.cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp())


_database = functools.cache(postgres_kit.database)
_mariadb = functools.cache(dbapi_kit.database)
PLACES: dict[str, Callable[[str, Any], Source]] = {
    "postgres": lambda name, rows: postgres_kit.store(_database(), f"public.{name}", rows),
    "mariadb": lambda name, rows: dbapi_kit.store(_mariadb(), name, rows),
    "clickhouse": lambda _, rows: dbapi_kit.store_in_clickhouse(rows),
    "spark": lambda name, rows: spark_kit.store(_folder() / name, rows),
}
ENGINES = [pytest.param(name, marks=spark_kit.SLOW if name == "spark" else pytest.mark.slow) for name in PLACES]
_stored: dict[tuple[str, str], Source] = {}
_asked: list[str] = []
_OF_TEXTS = ("N5", "Q5")  # which are refused before there is a table


def _place(engine: str, rows: Any) -> Source:
    """Stored once for all who ask the same cells of it."""
    cells = engine, f"{rows.schema}{rows.to_pydict()}"
    _asked.append(engine)
    if cells not in _stored:
        _stored[cells] = PLACES[engine](f"t{next(_NAMES)}", rows)
    return _stored[cells]


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    name: str = request.param
    with placed(functools.partial(_place, name)):
        yield name


# Questions of Q4 that nobody moves, two of them, and those that an engine says it does not run: frames by RANGE of
# values, FULL JOIN, a correlated subquery that computes with its COUNT.
UNMOVED = {"mariadb": 4, "clickhouse": 4}

ATTACKS: dict[str, Callable[[], Verdict]] = {
    "N1": lambda: sql_numbers.rounding(half=2**9, kinds=("arrow",), orders=2, mixed=2**8),
    "N2": lambda: sql_numbers.overflowing(kinds=("int8", "int64", "uint64")),
    "N3": lambda: sql_numbers.reordered(orders=4),
    "N4": lambda: sql_numbers.poisoned(kinds=("arrow",), every=5),
    "N5": sql_arguments.attack,
    "Q1": sql_errors.attack,
    "Q2": lambda: sql_shapes.attack(runs=20_000, releases=20),
    "Q3": sql_reach.attack,
    "Q4": lambda: sql_units.attack(heavy=60),
    "Q5": sql_units.data_bounds,
    "R1": lambda: sql_budget.reconstruction(people=32, queries=128),
    "R2": sql_budget.differencing,
    "B1": lambda: sql_budget.repeating(repeats=50),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_it_is_withstood_on_every_engine(attack: str, engine: str) -> None:
    _asked.clear()
    verdict = ATTACKS[attack]()
    assert not verdict.broken, (engine, verdict)
    if attack == "Q4":
        assert sum(share == 0 for share in verdict.figures.values()) == UNMOVED.get(engine, 2), verdict
    assert bool(_asked) == (attack not in _OF_TEXTS)
