"""From a frame to an answer, through a curator and a ledger."""

from __future__ import annotations

import subprocess
import sys

import polars as pl
from frames_kit import SCHEMA, UNIT, rows

import sfumato as sf
from sfumato import col, frames


def test_a_frame_is_priced_paid_and_answered_once() -> None:
    clinic = sf.Private("clinic", rows(), unit=UNIT, schema=SCHEMA)
    ledger = sf.MemoryLedger({"clinic": sf.Budget(epsilon=3, delta=1e-5)})
    curator = sf.Curator(clinic, ledger)
    visits = sf.frame(clinic, "visits")
    by_ward = visits.filter(col("cost") > 10).group_by("ward").agg(n=frames.len(), mean=col("cost").mean())
    plan = by_ward.plan(epsilon=1, delta=1e-6, limits={"rows": 5})
    assert curator.quote(plan).errors()["n"] > 0 and "0 of 3" in str(ledger.left("clinic"))
    release = curator.release(plan)
    left = ledger.left("clinic")
    assert "0 of 3" not in str(left)
    text = "SELECT ward, COUNT(*) AS number, AVG(cost) AS average FROM visits WHERE 10 < cost GROUP BY ward"
    again = curator.release(sf.sql(text, clinic, epsilon=1, delta=1e-6, limits={"rows": 5}))
    assert again.receipt == release.receipt and ledger.left("clinic") == left
    table = release.to_polars()
    assert isinstance(table, pl.DataFrame) and {"ward", "n", "n_std", "mean"} <= set(table.columns)
    assert list(release.to_pandas()["n"]) == table["n"].to_list() == again.value["number"]
    shares = by_ward.with_columns(share=col("n") / col("n").sum()).plan(epsilon=1, delta=1e-6, limits={"rows": 5})
    shown = curator.release(shares).value
    assert abs(sum(shown["share"]) - 1) < 1e-9


def test_importing_sfumato_loads_no_frames() -> None:
    code = (
        "import sys, sfumato, sfumato.query; print('sfumato.frames' in sys.modules); sfumato.col\n"
        "heavy = [name for name in ('polars', 'duckdb', 'pandas') if name in sys.modules]\n"
        "print('sfumato.frames' in sys.modules, bool(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True", "False"]
