"""Every kind of record that this version knows. Whoever reads stored plans back asks for them first."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec


def load(*, queries: bool = False) -> None:
    """Import what registers records, so that no stored name is unknown only because nobody has used it yet.

    queries  SQL, too, where its extra is installed: reading a query back takes some 20 ms, so only who checks prices
             asks for it
    """
    sql = ("query",) if queries and find_spec("sqlglot") is not None else ()
    for part in ("bounds", "combine", "events", "jointly", "learn.features", "mechanisms", "strategies", "tidy", *sql):
        import_module(f".{part}", __package__)
