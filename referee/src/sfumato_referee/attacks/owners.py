"""O2 to O4: whose a row is. An answer must move by what was declared when one unit goes, as the receipt names it.

O2  a table of the schema names another unit than the one that is protected: visits, where patients are promised
O3  a column of a DuckDB file has a collation, by which 'ANNA' is 'anna': two people are one, and a group is shown in
    one person's spelling
O4  a name in a DuckDB file is a view that computes over all rows
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sfumato.audit.sql_losses import SLACK
from sfumato.errors import SfumatoError
from sfumato.private import Private
from sfumato.query import Limits
from sfumato.schema import Schema, Table, category, flag, key, real
from sfumato.sources import DuckDBTable, connect
from sfumato.sources.base import needed
from sfumato.units import Unit

from ..mutants import queries, sessions
from .asking import LIBRARY, Asks, Opens, before_noise, moved
from .verdict import Verdict

PATIENT = Unit("user:patient")
_COST = {"patient": key(), "visit": key(), "cost": real(0, 1)}
_LINES = {"visit": key(), "cost": real(0, 1)}
_SUM = "SELECT COUNT(*) AS n, SUM(cost) AS s FROM visits"


def schemas() -> Iterator[tuple[str, Schema]]:
    """Every way to say two units, for patients who come and go."""
    people = Table({"patient": key()}, unit="patient")
    wards = Table({"ward": key()}, private=False)
    visits, lines = Table(_COST, unit="visit"), Table(_LINES, unit="visit")
    category_ = Table({**_COST, "visit": category([f"v{i}" for i in range(400)])}, unit="visit")
    for name, table in (("beside", visits), ("instead", lines), ("as a category", category_)):
        yield f"{name}, alone", Schema({"visits": table})
        yield f"{name}, with a public table", Schema({"visits": table, "wards": wards})
        yield f"{name}, with the patients", Schema({"visits": table, "people": people})
        yield f"{name}, twice", Schema({"visits": table, "others": lines})


def _visits() -> dict[str, list[Any]]:
    """The first patient has 300 visits, the others two each; a visit is one row."""
    who = ["p0"] * 300 + [f"p{i}" for i in range(1, 40) for _ in range(2)]
    return {"patient": who, "visit": [f"v{i}" for i in range(len(who))], "cost": [1.0] * len(who)}


def two_units(asks: Asks = LIBRARY) -> Verdict:
    """O2."""
    shares: dict[str, float] = {}
    refused = 0
    whole = _visits()
    gone = {name: cells[300:] for name, cells in whole.items()}
    for name, schema in schemas():
        try:
            plan = asks(_SUM, schema, unit=PATIENT, epsilon=1, limits=Limits(rows=1))
        except SfumatoError:
            refused += 1
            continue
        pair = []
        for table in (whole, gone):
            columns = {each: table[each] for each in schema.table("visits").columns}
            pair.append(before_noise(plan, {"visits": columns}))
        shares[name] = moved(plan, *pair)
    born = [name for name, schema in schemas() if _born(schema)]
    worst = max(shares.values(), default=0.0)
    text = (
        f"{refused} of {refused + len(shares)} schemas with two units were refused, {len(born)} were taken for private "
        f"data; one patient moves an answer by {worst:.9g} of what was declared."
    )
    return Verdict("O2", worst > SLACK or bool(born), text, {"worst": worst, "born": float(len(born)), **shares})


def _born(schema: Schema) -> bool:
    data: Any = {name: {each: [] for each in table.columns} for name, table in schema.tables.items()}
    try:
        Private("d", data if len(data) > 1 else data["visits"], unit=PATIENT, schema=schema)
    except SfumatoError:
        return False
    return True


COLLATIONS = ("NOCASE", "NOACCENT", "NFC", "NOCASE.NOACCENT", "de")
_PERSON = Unit("user:who")
_TEXTS = Schema(
    {
        "t": Table(
            {"who": key(), "tag": key(), "w": category(["anna", "bo"]), "ok": flag(), "x": real(-1, 1)}, unit="who"
        )
    }
)
_ASKED = (
    "SELECT COUNT(*) AS n, SUM(x) AS s FROM t",
    "SELECT tag, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY tag",
    "SELECT w, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY w",
    "SELECT COUNT(DISTINCT tag) AS k, COUNT(DISTINCT who) AS n FROM t",
    "SELECT COUNT(*) AS n, SUM(a.x) AS s FROM t a JOIN t b ON a.who = b.who AND a.tag = b.tag",
    "SELECT ok, SUM(x) AS s FROM t GROUP BY ok",
    "SELECT CASE WHEN CAST(tag AS VARCHAR) < 'bo' THEN 'low' WHEN tag = 'anna' THEN 'anna' ELSE 'high' END AS g, "
    "SUM(x) AS s FROM t GROUP BY g",
)
_TWINS = {
    "NOCASE": ("anna", "ANNA"),
    "NOACCENT": ("anna", "ánna"),
    "NFC": ("ánna", "a\u0301nna"),
    "NOCASE.NOACCENT": ("anna", "ÁNNA"),
    "de": ("anna", "a\u00adnna"),  # which no eye tells apart, nor German rules
}


def collated(opens: Opens = connect, *, collations: Sequence[str] = COLLATIONS) -> Verdict:
    """O3."""
    shares: dict[str, float] = {}
    respelled = []
    for collation in collations:
        with tempfile.TemporaryDirectory() as folder:
            pair = [_texts(Path(folder) / f"{i}.duckdb", collation, victim=not i) for i in (0, 1)]
            if None in pair:
                continue  # this build of the engine has no such collation
            for text in _ASKED:
                limits = Limits(rows=1, keys=2, values=1)
                plan = LIBRARY(text, _TEXTS, unit=_PERSON, epsilon=1, delta=1e-6, limits=limits)
                one, other = (before_noise(plan, {"t": file}, opens=opens) for file in pair)
                shares[f"{collation}: {text[:40]}"] = moved(plan, one, other)
                if not _groups(other) <= _groups(one):  # the victim's rows may add groups, and take none away
                    respelled.append(f"{collation}: {text}")
    worst = max(shares.values(), default=0.0)
    text = (
        f"One person moves an answer by {worst:.9g} of what was declared, in {len(shares)} queries of files with "
        f"collations; {len(respelled)} show a group in that person's spelling."
    )
    return Verdict("O3", worst > SLACK or bool(respelled), text, {"worst": worst, "respelled": float(len(respelled))})


def _texts(path: Path, collation: str, *, victim: bool) -> DuckDBTable | None:
    """Somebody's one row, and a hundred of the victim, whose name is the same but for the collation; and others."""
    own, twin = _TWINS[collation]
    rows = [("zoe", own, own, "yes", 1.0), (own, own, own, "no", 1.0), ("bo", "bo", "bo", "yes", 0.5)]
    if victim:
        rows = [(twin, twin, twin, "yés", -1.0)] * 100 + rows
    with needed("duckdb").connect(str(path)) as engine:
        try:
            if collation == "de":
                engine.execute("LOAD icu")
            texts = ", ".join(f"{name} VARCHAR COLLATE {collation}" for name in ("who", "tag", "w", "ok"))
            engine.execute(f"CREATE TABLE t ({texts}, x DOUBLE)")
        except Exception:
            return None
        engine.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", rows)
    return DuckDBTable(path)


def _groups(raw: Mapping[str, Any]) -> set[tuple[Any, ...]]:
    return set(zip(*raw["keys"].values(), strict=True))


_VIEWS = {
    "a share of the largest": "CREATE VIEW t AS SELECT who, cost / max(cost) OVER () AS x FROM base",
    "a rank": "CREATE VIEW t AS SELECT who, CAST(rank() OVER (ORDER BY cost) AS DOUBLE) / 50 AS x FROM base",
    "a subquery": "CREATE VIEW t AS SELECT who, cost / (SELECT max(cost) FROM base) AS x FROM base",
    "a limit": "CREATE VIEW t AS SELECT who, cost AS x FROM base ORDER BY cost DESC LIMIT 40",
    "rows that change hands": (
        "CREATE VIEW t AS SELECT 'p' || row_number() OVER (ORDER BY cost DESC) % 45 AS who, cost / 1000 AS x FROM base"
    ),
    "a view of a view": (
        "CREATE VIEW v AS SELECT who, cost / max(cost) OVER () AS x FROM base; CREATE VIEW t AS SELECT * FROM v"
    ),
    "other letters": 'CREATE VIEW "T" AS SELECT who, cost / max(cost) OVER () AS x FROM base',
    "a macro": "CREATE MACRO t() AS TABLE SELECT who, cost / max(cost) OVER () AS x FROM base",
}
_X = Schema({"t": Table({"who": key(), "x": real(0, 1)}, unit="who")})


def views(opens: Opens = connect) -> Verdict:
    """O4."""
    shares: dict[str, float] = {}
    refused = 0
    plan = LIBRARY("SELECT COUNT(*) AS n, SUM(x) AS s FROM t", _X, unit=_PERSON, epsilon=1, limits=Limits(rows=1))
    for name, statement in _VIEWS.items():
        with tempfile.TemporaryDirectory() as folder:
            pair = [_computed(Path(folder) / f"{i}.duckdb", statement, victim=not i) for i in (0, 1)]
            seen = [_seen(plan, each, opens) for each in pair]
            if seen[0] is None or seen[1] is None:
                refused += 1
            else:
                shares[name] = moved(plan, seen[0], seen[1])
    worst = max(shares.values(), default=0.0)
    text = (
        f"{refused} of {len(_VIEWS)} names that are no table were refused; of the others one person moves an answer by "
        f"{worst:.9g} of what was declared."
    )
    return Verdict("O4", worst > SLACK, text, {"worst": worst, "refused": float(refused), **shares})


def _computed(path: Path, statement: str, *, victim: bool) -> DuckDBTable:
    """Thirty people who cost 1, and one who costs 1,000."""
    with needed("duckdb").connect(str(path)) as engine:
        engine.execute("CREATE TABLE base (who VARCHAR, cost DOUBLE)")
        rows = [(f"p{i}", 1.0) for i in range(1, 31)] + ([("p0", 1000.0)] if victim else [])
        engine.executemany("INSERT INTO base VALUES (?, ?)", rows)
        engine.execute(statement)
    return DuckDBTable(path)


def _seen(plan: Any, file: DuckDBTable, opens: Opens) -> dict[str, Any] | None:
    try:
        return before_noise(plan, {"t": file}, opens=opens)
    except Exception:  # the engine's own, behind the planted bug
        return None


CONTROL: Asks = queries.making(queries.TablesSayWho)
TRUSTING: Opens = sessions.Trusting
