"""A star schema of our own, and single-block reporting queries over it.

Sales of customers (private) with products, shops and days (public), as a warehouse holds them: a fact table of keys and
numbers, dimension tables with names. Customers by a power law, products by Zipf's law, amounts log-normal in cents.
"""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.schema import Table, category, date, key, real, whole

from ..query_data import SEED, Ranked

UNIT = "customer_id"
SEGMENTS, REGIONS = ("home", "office", "public"), ("east", "north", "south", "west")
CATEGORIES, CHANNELS = ("books", "clothes", "food", "games", "tools"), ("phone", "shop", "web")
FIRST, DAYS = datetime.date(2024, 1, 1), 731


def tables(sales: int) -> dict[str, tuple[Table, pa.Table]]:
    """Every table with its rows; a tenth as many customers as sales."""
    rng = np.random.default_rng([SEED, sales, 22])
    return {
        "sales": (_sales_table(), _sales(rng, sales)),
        "customers": (_customers_table(), _customers(rng, sales // 10)),
        "products": _products(rng),
        "shops": _shops(),
        "days": _days(),
    }


def _sales_table() -> Table:
    columns = {
        "sale_id": key(), "customer_id": key(), "product_id": key(), "shop_id": key(), "day_id": key(),
        "channel": category(CHANNELS), "sold_on": date(FIRST, FIRST + datetime.timedelta(DAYS - 1)),
        "pieces": whole(1, 20, nulls=1), "price": real(0, 500, nulls=0, decimals=2),
        "discount": real(0, 0.5, nulls=0, decimals=2),
    }  # fmt: skip
    return Table(columns, unit=UNIT)


def _sales(rng: np.random.Generator, rows: int) -> pa.Table:
    day = rng.integers(0, DAYS, rows)
    columns: dict[str, Any] = {
        "sale_id": np.arange(rows),
        "customer_id": Ranked(rng, rows // 10, 0.5).draw(rows),
        "product_id": Ranked(rng, 300, 0.8).draw(rows),
        "shop_id": rng.integers(1, 41, rows),
        "day_id": day + 1,
        "channel": np.array(CHANNELS)[rng.choice(3, rows, p=(0.1, 0.5, 0.4))],
        "sold_on": np.datetime64(FIRST) + day,
        "pieces": np.minimum(rng.geometric(0.5, rows), 20),
        "price": np.round(np.minimum(rng.lognormal(3.0, 0.8, rows), 500.0), 2),
        "discount": np.round(rng.choice((0.0, 0.05, 0.1, 0.25), rows, p=(0.7, 0.1, 0.1, 0.1)), 2),
    }
    return pa.table(columns)


def _customers_table() -> Table:
    columns = {
        "customer_id": key(), "segment": category(SEGMENTS), "region": category(REGIONS),
        "born": whole(1930, 2008, nulls=1980),
    }  # fmt: skip
    return Table(columns, unit=UNIT)


def _customers(rng: np.random.Generator, rows: int) -> pa.Table:
    columns = {
        "customer_id": np.arange(1, rows + 1),
        "segment": np.array(SEGMENTS)[rng.integers(0, 3, rows)],
        "region": np.array(REGIONS)[rng.choice(4, rows, p=(0.4, 0.3, 0.2, 0.1))],
        "born": rng.integers(1930, 2009, rows),
    }
    return pa.table(columns)


def _products(rng: np.random.Generator) -> tuple[Table, pa.Table]:
    columns = {
        "product_id": np.arange(1, 301),
        "product": [f"product {number:03}" for number in range(1, 301)],
        "category": [CATEGORIES[number % 5] for number in range(300)],
        "brand": [f"brand {number % 12:02}" for number in range(300)],
        "cost": np.round(rng.uniform(1, 40, 300), 2),
    }
    named = {"product_id": key(), "product": key(), "category": key(), "brand": key(), "cost": real(0, 50, decimals=2)}
    return Table(named, private=False), pa.table(columns)


def _shops() -> tuple[Table, pa.Table]:
    columns = {
        "shop_id": np.arange(1, 41),
        "shop": [f"shop {number:02}" for number in range(1, 41)],
        "city": [f"city {number % 10}" for number in range(40)],
        "country": [f"country {number % 10 % 3}" for number in range(40)],
    }
    return Table(dict.fromkeys(columns, key()), private=False), pa.table(columns)


def _days() -> tuple[Table, pa.Table]:
    days = [FIRST + datetime.timedelta(number) for number in range(DAYS)]
    columns = {
        "day_id": np.arange(1, DAYS + 1),
        "day": days,
        "year": [day.year for day in days],
        "quarter": [(day.month + 2) // 3 for day in days],
        "month": [day.month for day in days],
    }
    named = {
        "day_id": key(), "day": date(FIRST, days[-1]), "year": whole(2024, 2025), "quarter": whole(1, 4),
        "month": whole(1, 12),
    }  # fmt: skip
    return Table(named, private=False), pa.table(columns)


REPORTS: dict[str, str] = {
    "revenue": "SELECT SUM(price * pieces * (1 - discount)) AS revenue FROM sales",
    "revenue by year": (
        "SELECT year, SUM(price * pieces) AS revenue FROM sales, days WHERE sales.day_id = days.day_id GROUP BY year "
        "ORDER BY year"
    ),
    "revenue by quarter": (
        "SELECT d.year, d.quarter, SUM(s.price * s.pieces) AS revenue FROM sales s JOIN days d ON s.day_id = d.day_id "
        "GROUP BY d.year, d.quarter ORDER BY d.year, d.quarter"
    ),
    "by category and year": (
        "SELECT p.category, d.year, COUNT(*) AS n, SUM(s.pieces) AS pieces FROM sales s JOIN products p ON "
        "s.product_id = p.product_id JOIN days d ON s.day_id = d.day_id GROUP BY p.category, d.year"
    ),
    "brands of a category": (
        "SELECT p.brand, SUM(s.price * s.pieces) AS revenue FROM sales s, products p WHERE s.product_id = "
        "p.product_id AND p.category = 'food' GROUP BY p.brand ORDER BY revenue DESC"
    ),
    "by country and city": (
        "SELECT country, city, SUM(price * pieces) AS revenue FROM sales JOIN shops USING (shop_id) GROUP BY country, "
        "city ORDER BY country, city"
    ),
    "one country": (
        "SELECT city, COUNT(*) AS n FROM sales s JOIN shops t ON s.shop_id = t.shop_id WHERE t.country = 'country 1' "
        "GROUP BY city"
    ),
    "by channel": (
        "SELECT channel, COUNT(*) AS n, AVG(price) AS mean, SUM(price) AS total FROM sales GROUP BY channel"
    ),
    "by segment": (
        "SELECT c.segment, SUM(s.price * s.pieces) AS revenue FROM sales s JOIN customers c ON s.customer_id = "
        "c.customer_id GROUP BY c.segment"
    ),
    "by region and category": (
        "SELECT c.region, p.category, SUM(s.price) AS revenue FROM sales s JOIN customers c ON s.customer_id = "
        "c.customer_id JOIN products p ON s.product_id = p.product_id GROUP BY c.region, p.category"
    ),
    "by age": "SELECT (2025 - born) / 10 AS decade, COUNT(*) AS n FROM customers GROUP BY 1 ORDER BY 1",
    "profit": (
        "SELECT d.year, SUM(s.pieces * (s.price - p.cost)) AS profit FROM sales s JOIN products p ON s.product_id = "
        "p.product_id JOIN days d ON s.day_id = d.day_id GROUP BY d.year"
    ),
    "margin": (
        "SELECT p.category, SUM(s.price * s.pieces - p.cost * s.pieces) / SUM(s.price * s.pieces) AS margin FROM "
        "sales s JOIN products p ON s.product_id = p.product_id GROUP BY p.category"
    ),
    "buyers by month": (
        "SELECT DATE_TRUNC('month', sold_on) AS month, COUNT(DISTINCT customer_id) AS buyers FROM sales GROUP BY "
        "month ORDER BY month"
    ),
    "average basket": (
        "SELECT channel, AVG(price * pieces) AS basket FROM sales GROUP BY channel HAVING COUNT(*) > 1000"
    ),
    "share of web": (
        "SELECT d.year, SUM(CASE WHEN s.channel = 'web' THEN s.price ELSE 0 END) / SUM(s.price) AS share FROM sales s "
        "JOIN days d ON s.day_id = d.day_id GROUP BY d.year"
    ),
    "discounted": (
        "SELECT COUNT(*) AS n, SUM(price * discount) AS given FROM sales WHERE discount BETWEEN 0.1 - 0.05 AND 0.1 + "
        "0.05 AND pieces < 5"
    ),
    "first quarter": (
        "SELECT p.brand, COUNT(*) AS n FROM sales s JOIN days d ON s.day_id = d.day_id JOIN products p ON "
        "s.product_id = p.product_id WHERE d.year = 2024 AND d.quarter = 1 AND p.category IN ('games', 'tools') GROUP "
        "BY p.brand"
    ),
    "two countries": (
        "SELECT d.year, t.country, SUM(s.price) AS revenue FROM sales s, days d, shops t WHERE s.day_id = d.day_id "
        "AND s.shop_id = t.shop_id AND (t.country = 'country 0' OR t.country = 'country 2') GROUP BY d.year, "
        "t.country"
    ),
    "dear sales": "SELECT channel, MEDIAN(price) AS middle, MAX(price) AS dearest FROM sales GROUP BY channel",
    "products sold": (
        "SELECT t.city, COUNT(DISTINCT s.product_id) AS products FROM sales s JOIN shops t ON s.shop_id = t.shop_id "
        "GROUP BY t.city"
    ),
    "cube": (
        "SELECT p.category, s.channel, SUM(s.price) AS revenue FROM sales s JOIN products p ON s.product_id = "
        "p.product_id GROUP BY CUBE (p.category, s.channel)"
    ),
    "rollup": (
        "SELECT d.year, d.quarter, COUNT(*) AS n FROM sales s JOIN days d ON s.day_id = d.day_id GROUP BY ROLLUP "
        "(d.year, d.quarter)"
    ),
    "top products": (
        "SELECT p.product, SUM(s.pieces) AS pieces FROM sales s JOIN products p ON s.product_id = p.product_id GROUP "
        "BY p.product ORDER BY pieces DESC LIMIT 10"
    ),
    "share of region": (
        "SELECT c.region, SUM(s.price) / SUM(SUM(s.price)) OVER () AS share FROM sales s JOIN customers c ON "
        "s.customer_id = c.customer_id GROUP BY c.region"
    ),
}
