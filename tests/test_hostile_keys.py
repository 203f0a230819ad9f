"""Keys that give orders to a terminal, break a line, turn the writing or cannot be seen: spelled out wherever a release
is shown, and as they are wherever it is data."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from sfumato import Budget, Curator, MemoryLedger, Private, Schema, Unit, bounds, mechanisms, plain_text, report
from sfumato.project import open_project
from sfumato.query import Limits, sql
from sfumato.release import Release
from sfumato.schema import Table, category, key
from tests.cli.front import environment, make_project, sfumato

KEYS = (
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "two\nlines",
    "back\rover",
    "tab\there",
    "csi\x9b2J",
    "del\x7f",
    "bidi\u202egpj.exe",
    "iso\u2066late",
    "zero\u200bwidth",
    "fill\u3164er",
    "join\u034fer",
    "line\u2028break",
    "=1+1|' /C calc'!A0",
    'quo"te,comma',
)
ORDERS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u034f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164]")
USER = Unit("user:u")
SCHEMA = Schema({"t": Table({"u": key(), "k": key()}, unit="u")})
QUERY = "SELECT k, COUNT(*) AS n FROM t GROUP BY k"


def data() -> dict[str, list[str]]:
    return {"u": [f"u{n}" for n in range(300 * len(KEYS))], "k": [KEYS[n % len(KEYS)] for n in range(300 * len(KEYS))]}


def answered(plan: Any) -> Release:
    unit, schema = plan.unit, SCHEMA if plan.unit == USER else Schema.of(k=category(KEYS))
    rows = data() if plan.unit == USER else {"k": data()["k"]}
    private = Private("d", rows, unit=unit, schema=schema)
    return Curator(private, MemoryLedger({"d": Budget(epsilon=10, delta=1e-3)})).release(plan)


@pytest.fixture(scope="module")
def queried() -> Release:
    return answered(sql(QUERY, SCHEMA, unit=USER, epsilon=5, delta=1e-4, limits=Limits()))


@pytest.fixture(scope="module")
def listed() -> Release:
    return answered(mechanisms.ThresholdKeys(column="k", protects=USER, epsilon=5, delta=1e-4))


@pytest.fixture(scope="module")
def counted() -> Release:
    return answered(mechanisms.Laplace(query=bounds.histogram("k", KEYS, Unit()), epsilon=5))


def harmless(text: str, *, keys: bool = True) -> None:
    assert not ORDERS.search(text), ascii(ORDERS.findall(text)[:5])
    if keys:
        assert "two\\nlines" in text and "two\nlines" not in text
        assert "\\x1b[31mred" in text and "bidi\\u202egpj.exe" in text and "fill\\u3164er" in text


def test_every_key_came_out(queried: Release, listed: Release, counted: Release) -> None:
    assert set(queried.value["k"]) == set(listed.value) == set(counted.value) == set(KEYS)


@pytest.mark.parametrize("name", ["queried", "listed", "counted"])
def test_what_people_see_of_a_release_is_harmless(name: str, request: pytest.FixtureRequest) -> None:
    release = request.getfixturevalue(name)
    for text in (str(release), repr(release), release._repr_html_()):
        harmless(text)
    harmless("\n".join(" ".join(row) for row in release.rows()))
    harmless(release.explain(), keys=False)
    assert all("two\nlines" not in text for text in (release.explain(), str(release)))
    assert sum("±" in line or "≥" in line for line in str(release).splitlines() if line[0] != "(") == len(KEYS)


def test_names_of_columns_are_harmless_too() -> None:
    release = answered(
        sql(QUERY.replace("AS n", 'AS "n\x1b[2J\n"'), SCHEMA, unit=USER, epsilon=5, delta=1e-4, limits=Limits())
    )
    harmless(str(release), keys=True)
    harmless(release._repr_html_())


@pytest.mark.parametrize("name", ["queried", "listed", "counted"])
def test_data_keep_their_keys(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Every reader of CSV gets one row for each key, and the key as it is, formulas and all."""
    release = request.getfixturevalue(name)
    release.to_csv(tmp_path / "a.csv")
    with (tmp_path / "a.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert {row[0] for row in rows[1:]} == set(KEYS) and len({len(row) for row in rows}) == 1
    assert set(release.to_pandas().iloc[:, 0]) == set(KEYS) == set(release.to_arrow().column(0).to_pylist())


def test_csv_quotes_every_kind_of_line_break() -> None:
    cells = ["a\rb", "a\nb", "a\r\nb", 'a"b', "a,b", "", None, 1.5]
    text = plain_text.csv_text([cells])
    assert text == '"a\rb","a\nb","a\r\nb","a""b","a,b",,,1.5\n'
    assert next(csv.reader(io.StringIO(text, newline=""))) == ["" if cell is None else str(cell) for cell in cells]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_project(tmp_path_factory.mktemp("hostile"), text=YAML)
    with (folder / "data" / "visits.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["u", "k"], *zip(*data().values(), strict=True)])
    return folder


YAML = """\
sfumato: 1
name: hostile
unit: user:u
tables:
  t:
    source: data/visits.csv
    columns: {u: key, k: key}
limits: {rows: 1}
ledger: {place: budget.ledger, principal: bea}
privacy: {target_epsilon: 5, target_delta: 1e-4}
budget: {total: {epsilon: 6, delta: 1e-3}}
"""


def on_a_terminal(folder: Path, *words: str) -> str:
    """What the terminal itself is sent."""
    child, end = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.execve(sys.executable, [sys.executable, "-m", "sfumato.cli", *words], environment(TERM="dumb"))
    sent = b""
    while True:
        try:
            more = os.read(end, 65536)
        except OSError:
            break
        if not more:
            break
        sent += more
    os.close(end)
    os.waitpid(child, 0)
    return sent.decode("utf-8").replace("\r\n", "\n")


def test_the_command_line_shows_no_orders_and_hands_data_on_as_it_is(project: Path) -> None:
    first = sfumato("query", QUERY, at=project)
    assert first.code == 0, first.err
    harmless(first.out)
    raw = sfumato("query", QUERY, "--format", "csv", at=project).out
    assert {row[0] for row in csv.reader(io.StringIO(raw, newline=""))} == {"k", *KEYS}
    for how in (("--format", "json"), ("--json",)):
        text = sfumato("query", QUERY, *how, at=project).out
        harmless(text, keys=False)
        rows = json.loads(text)
        assert {row["k"] for row in (rows if isinstance(rows, list) else rows["rows"])} == set(KEYS)
    harmless(on_a_terminal(project, "query", QUERY))
    shown = on_a_terminal(project, "query", QUERY, "--format", "csv")
    assert not ORDERS.search(shown) and "\\x1b[31mred" in shown
    with open_project(project).ledger(read_only=True) as ledger:
        (paid,) = ledger.releases()
        page = report.release_report(ledger, paid.id)
    harmless(page.html())
    assert json.dumps(page.as_dict()).count(json.dumps(KEYS[0])) == 1  # in its JSON, the key itself
