"""TPC-H with customers as units: orders and line items are theirs through keys, the rest is public.

    python -m bench.workloads.tpch 0.1 1

The rows come from a generator on the registry (`tpchgen-cli`), as Parquet under .bench/data.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from sfumato.schema import Table, category, date, key, real, whole

from .. import peers
from ..query_data import FOLDER

UNIT = "c_custkey"
GENERATOR = "tpchgen"
_SPAN = ("1992-01-01", "1998-12-31")
_SHIPPED = ("AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK")
_INSTRUCTED = ("COLLECT COD", "DELIVER IN PERSON", "NONE", "TAKE BACK RETURN")
_PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
_SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")


def _money(lower: float, upper: float) -> object:
    return real(lower, upper, nulls=max(lower, 0), decimals=2)


TABLES: dict[str, Table] = {
    "customer": Table(
        {
            "c_custkey": key(), "c_name": key(), "c_address": key(), "c_nationkey": key(), "c_phone": key(),
            "c_acctbal": _money(-1000, 10_000), "c_mktsegment": category(_SEGMENTS), "c_comment": key(),
        },
        unit="c_custkey",
    ),
    "orders": Table(
        {
            "o_orderkey": key(), "o_custkey": key(), "o_orderstatus": category(("F", "O", "P")),
            "o_totalprice": _money(0, 600_000), "o_orderdate": date(*_SPAN), "o_orderpriority": category(_PRIORITIES),
            "o_clerk": key(), "o_shippriority": whole(0, 1, nulls=0), "o_comment": key(),
        },
        unit="o_custkey",
        names="c_custkey",
    ),
    "lineitem": Table(
        {
            "l_orderkey": key(), "l_partkey": key(), "l_suppkey": key(), "l_linenumber": whole(1, 7, nulls=1),
            "l_quantity": _money(0, 50), "l_extendedprice": _money(0, 105_000), "l_discount": _money(0, 0.1),
            "l_tax": _money(0, 0.08), "l_returnflag": category(("A", "N", "R")), "l_linestatus": category(("F", "O")),
            "l_shipdate": date(*_SPAN), "l_commitdate": date(*_SPAN), "l_receiptdate": date(*_SPAN),
            "l_shipinstruct": category(_INSTRUCTED), "l_shipmode": category(_SHIPPED), "l_comment": key(),
        },
        owner="l_orderkey -> orders.o_orderkey",
    ),
    "part": Table(
        {
            "p_partkey": key(), "p_name": key(), "p_mfgr": key(), "p_brand": key(), "p_type": key(),
            "p_size": whole(1, 50), "p_container": key(), "p_retailprice": _money(0, 3000), "p_comment": key(),
        },
        private=False,
    ),
    "supplier": Table(
        {
            "s_suppkey": key(), "s_name": key(), "s_address": key(), "s_nationkey": key(), "s_phone": key(),
            "s_acctbal": _money(-1000, 10_000), "s_comment": key(),
        },
        private=False,
    ),
    "partsupp": Table(
        {
            "ps_partkey": key(), "ps_suppkey": key(), "ps_availqty": whole(0, 10_000, nulls=0),
            "ps_supplycost": _money(0, 1000), "ps_comment": key(),
        },
        private=False,
    ),
    "nation": Table(
        {"n_nationkey": key(), "n_name": key(), "n_regionkey": key(), "n_comment": key()}, private=False
    ),
    "region": Table({"r_regionkey": key(), "r_name": key(), "r_comment": key()}, private=False),
}  # fmt: skip


def folder(scale: float) -> Path:
    return FOLDER / f"tpch-{scale:g}"


def ready(scale: float) -> dict[str, Path]:
    """The file of every table, once it is there."""
    place = folder(scale)
    if not place.exists():
        begun = place.with_suffix(".part")
        begun.mkdir(parents=True, exist_ok=True)
        program = peers.python(GENERATOR).parent / "tpchgen-cli"
        if not peers.ready(GENERATOR):
            raise peers.PeerMissingError(GENERATOR)
        subprocess.run([program, "parquet", "-s", str(scale), f"--output-dir={begun}"], check=True, capture_output=True)
        begun.rename(place)
    return {name: place / f"{name}.parquet" for name in TABLES}


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        print(ready(float(argument))["lineitem"].parent)
